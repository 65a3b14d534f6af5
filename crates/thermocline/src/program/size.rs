//! Sizes as people write them: `256MB`, `1GB`, `1.5 GB`, `1048576`. Units are
//! PostgreSQL's, of 1024; a number alone is bytes.

/// The bytes that `text` says, or why it says none.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let bad = || format!("\"{text}\" is not a size; write for example 256MB or 4GB");
    let trimmed = text.trim();
    let end = trimmed
        .find(|character: char| !character.is_ascii_digit() && character != '.')
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return Err(bad()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.len() > 6 || fraction.contains('.') {
        return Err(bad());
    }
    let whole: u64 = whole.parse().map_err(|_| bad())?;
    let mut bytes = whole.checked_mul(factor).ok_or_else(bad)?;
    if number.contains('.') {
        let digits: u64 = fraction.parse().map_err(|_| bad())?;
        let parts = 10u64.pow(fraction.len() as u32);
        // At most 10^6 × 2^40: fits.
        bytes = bytes.checked_add(digits * factor / parts).ok_or_else(bad)?;
    }
    Ok(bytes)
}

/// A size for people: the largest unit that keeps three digits.
pub(crate) fn show(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TB", 40), ("GB", 30), ("MB", 20), ("kB", 10)];
    for (unit, shift) in UNITS {
        let factor = 1u64 << shift;
        if bytes >= factor {
            return if bytes.is_multiple_of(factor) {
                format!("{} {unit}", bytes / factor)
            } else {
                format!("{:.1} {unit}", bytes as f64 / factor as f64)
            };
        }
    }
    format!("{bytes} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_postgresql_writes_them() {
        for (text, bytes) in [
            ("256MB", 256 << 20),
            ("1GB", 1 << 30),
            ("1.5 GB", 3 << 29),
            ("64kB", 64 << 10),
            ("2TiB", 2 << 40),
            ("1048576", 1 << 20),
            (" 12 mb ", 12 << 20),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_said() {
        for text in [
            "",
            "MB",
            "-1GB",
            "1XB",
            "1.2.3GB",
            ".5GB",
            "1.GB",
            "99999999999TB",
            "1 000",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_shown_shortly() {
        assert_eq!(show(1 << 30), "1 GB");
        assert_eq!(show((1 << 30) + (1 << 29)), "1.5 GB");
        assert_eq!(show(5), "5 bytes");
    }
}
