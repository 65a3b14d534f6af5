//! Byte sizes as people write them: `512MB`, `1 GB`, `65536`. As in PostgreSQL
//! a kilobyte is 1024 bytes.

const UNITS: [(&str, u64); 6] = [
    ("tb", 1 << 40),
    ("gb", 1 << 30),
    ("mb", 1 << 20),
    ("kb", 1 << 10),
    ("b", 1),
    ("", 1),
];

/// The bytes that `text` means, or what is wrong with it.
pub fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits_end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    let unit = unit.trim().to_ascii_lowercase();
    let wrong = || format!("\"{text}\" is not a size; write a number and B, kB, MB, GB or TB");
    let factor = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, factor)| *factor)
        .ok_or_else(wrong)?;
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number
        .checked_mul(factor)
        .ok_or_else(|| format!("\"{text}\" is too large"))
}

/// Bytes for a person: three or four digits and a unit.
pub fn display(bytes: u64) -> String {
    for (name, factor) in [("GB", 1u64 << 30), ("MB", 1 << 20), ("kB", 1 << 10)] {
        if bytes >= 10 * factor {
            return format!("{} {name}", bytes / factor);
        }
        if bytes >= factor {
            return format!("{:.1} {name}", bytes as f64 / factor as f64);
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_units() {
        assert_eq!(parse("65536"), Ok(65_536));
        assert_eq!(parse("512MB"), Ok(512 << 20));
        assert_eq!(parse(" 1 gb "), Ok(1 << 30));
        assert_eq!(parse("16kB"), Ok(16 << 10));
        assert!(parse("MB").is_err());
        assert!(parse("1.5GB").is_err());
        assert!(parse("-1").is_err());
        assert!(parse("99999999999TB").is_err());
    }

    #[test]
    fn sizes_are_shown_with_a_unit_that_fits() {
        assert_eq!(display(512), "512 B");
        assert_eq!(display(1536), "1.5 kB");
        assert_eq!(display(256 << 20), "256 MB");
        assert_eq!(display(2 << 30), "2.0 GB");
    }
}
