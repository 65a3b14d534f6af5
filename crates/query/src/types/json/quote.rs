//! Texts as JSON writes them, and which texts are JSON's numbers.

/// Appends a text as a string of JSON, in quotes.
pub fn quote(text: &str, out: &mut String) {
    out.reserve(text.len() + 2);
    out.push('"');
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escaped = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            0x08 => "\\b",
            0x0c => "\\f",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..=0x1f => "",
            _ => continue,
        };
        out.push_str(&text[from..at]);
        from = at + 1;
        if escaped.is_empty() {
            out.push_str("\\u00");
            out.push(if byte >= 0x10 { '1' } else { '0' });
            out.push(char::from(b"0123456789abcdef"[usize::from(byte & 15)]));
        } else {
            out.push_str(escaped);
        }
    }
    out.push_str(&text[from..]);
    out.push('"');
}

/// Whether a text is a number as JSON writes them.
#[must_use]
pub fn is_number(text: &str) -> bool {
    let bytes = text.as_bytes();
    let start = usize::from(bytes.first() == Some(&b'-'));
    let (end, good) = number_end(bytes, start);
    good && end == bytes.len()
}

/// Where a number that begins at `at`, behind its sign, ends; and whether it is one.
pub(super) fn number_end(bytes: &[u8], mut at: usize) -> (usize, bool) {
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let mut good = true;
    match bytes.get(at) {
        Some(b'0') => at += 1,
        Some(b'1'..=b'9') => at = digits(at),
        _ => good = false,
    }
    if bytes.get(at) == Some(&b'.') {
        let end = digits(at + 1);
        good &= end > at + 1;
        at = end;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        if matches!(bytes.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        let end = digits(at);
        good &= end > at;
        at = end;
    }
    // What follows without a space belongs to the word that is shown as wrong.
    while bytes.get(at).copied().is_some_and(is_word) {
        good = false;
        at += 1;
    }
    (at, good)
}

/// Whether a byte belongs to a word.
pub(super) const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}
