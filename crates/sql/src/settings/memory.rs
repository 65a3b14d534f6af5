//! Amounts of memory as settings: a number of pieces, or a number with a unit.

use std::ops::RangeInclusive;

use crate::error::{Result, SqlError};

/// Units in bytes, the largest first.
const UNITS: [(&str, f64); 5] = [
    ("TB", 1_099_511_627_776.0),
    ("GB", 1_073_741_824.0),
    ("MB", 1_048_576.0),
    ("kB", 1024.0),
    ("B", 1.0),
];

/// An amount in the form that SHOW writes. A number alone is one of pieces of `piece_kb` each, of
/// which there may be as many as `range` says.
pub(super) fn accept(
    name: &str,
    text: &str,
    piece_kb: i64,
    range: RangeInclusive<i64>,
) -> Result<String> {
    let invalid = || {
        let message = format!("invalid value for parameter \"{name}\": \"{text}\"");
        SqlError::new("22023", message)
    };
    let trimmed = text.trim();
    let end = trimmed.find(|character: char| character.is_ascii_alphabetic());
    let (number, unit) = trimmed.split_at(end.unwrap_or(trimmed.len()));
    let number: f64 = number.trim().parse().map_err(|_| invalid())?;
    let piece_bytes = piece_kb as f64 * 1024.0;
    let factor = match unit {
        "" => piece_bytes,
        unit => match UNITS.iter().find(|(of, _)| *of == unit) {
            Some((_, bytes)) => *bytes,
            None => {
                return Err(invalid().with_hint(
                    "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".",
                ));
            }
        },
    };
    let pieces = (number * factor / piece_bytes).round();
    let (min, max) = (*range.start(), *range.end());
    if !(min as f64..=max as f64).contains(&pieces) {
        let shown = match piece_kb {
            1 => "kB".to_owned(),
            piece_kb => format!("{piece_kb}kB"),
        };
        return Err(SqlError::new(
            "22023",
            format!(
                "{pieces} {shown} is outside the valid range for parameter \"{name}\" ({min} .. {max})"
            ),
        ));
    }
    Ok(shown(pieces as i64 * piece_kb))
}

/// In the largest unit that is exact.
fn shown(kb: i64) -> String {
    match kb {
        0 => "0".to_owned(),
        kb if kb % (1 << 30) == 0 => format!("{}TB", kb >> 30),
        kb if kb % (1 << 20) == 0 => format!("{}GB", kb >> 20),
        kb if kb % (1 << 10) == 0 => format!("{}MB", kb >> 10),
        kb => format!("{kb}kB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_in_the_largest_exact_unit() {
        let work_mem = |text| accept("work_mem", text, 1, 64..=2_147_483_647);
        for (text, expected) in [
            ("4096", "4MB"),
            ("64kB", "64kB"),
            (" 1.5 GB ", "1536MB"),
            ("2097152 B", "2MB"),
        ] {
            assert_eq!(work_mem(text).unwrap(), expected);
        }
        for text in ["63", "1 mb", "-1", "x", "3TB"] {
            assert_eq!(work_mem(text).unwrap_err().sqlstate, "22023", "{text}");
        }
        let pages = accept("temp_buffers", "100", 8, 100..=1_073_741_823).unwrap();
        assert_eq!(pages, "800kB");
    }
}
