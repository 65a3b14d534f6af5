//! Times as people write them: `250ms`, `1.5s`, `5min`. Units are PostgreSQL's; a number alone is
//! seconds.

use std::time::Duration;

/// The time that `text` says, if it is from `least` to `most`, or why it says none.
pub(crate) fn parse(text: &str, least: Duration, most: Duration) -> Result<Duration, String> {
    let trimmed = text.trim();
    let end = trimmed
        .find(|character: char| !character.is_ascii_digit() && character != '.')
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let seconds = match unit.trim() {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(bad(text)),
    };
    let number: f64 = number.parse().map_err(|_| bad(text))?;
    let time = Duration::try_from_secs_f64(number * seconds).map_err(|_| bad(text))?;
    match (least..=most).contains(&time) {
        true => Ok(time),
        false => Err(format!("\"{text}\" is not from {least:?} to {most:?}")),
    }
}

fn bad(text: &str) -> String {
    format!("\"{text}\" is not a time; write for example 500ms or 2s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_bounds() {
        let parsed = |text| parse(text, Duration::from_millis(100), Duration::from_secs(3600));
        for (text, milliseconds) in [
            ("250ms", 250),
            ("1.5 s", 1500),
            ("2", 2000),
            ("2min", 120_000),
            (" 1h ", 3_600_000),
        ] {
            assert_eq!(
                parsed(text),
                Ok(Duration::from_millis(milliseconds)),
                "{text}"
            );
        }
        for text in ["", "s", "1 day", "-1s", "1.2.3s", "99ms", "2h", "9e9h"] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }
}
