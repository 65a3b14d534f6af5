//! Statements again with other literals, as clients send them that put values into their texts. A
//! statement goes on to have one right answer: what orders or bounds its rows stays as it is, and a
//! text gives way to one of the same form.

use super::expressions::Random;

/// Behind these words numbers are places, or say how many rows come.
const FIXED: [&str; 4] = ["order by", "group by", "limit", "offset"];

/// A literal of a text: from, to.
type Literal = (usize, usize);

/// The numbers and strings that may be others.
fn literals(sql: &str) -> Vec<Literal> {
    let lower = sql.to_ascii_lowercase();
    let end = FIXED.iter().filter_map(|word| lower.find(word)).min();
    let bytes = &sql.as_bytes()[..end.unwrap_or(sql.len())];
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let from = at;
        let length =
            |rest: &[u8], f: &dyn Fn(u8) -> bool| rest.iter().take_while(|byte| f(**byte)).count();
        match bytes[at] {
            quote @ (b'\'' | b'"') => {
                at += 2 + length(&bytes[at + 1..], &|byte| byte != quote);
                if quote == b'\'' && at <= bytes.len() && bytes.get(at) != Some(&quote) {
                    found.push((from, at));
                }
            }
            byte if byte.is_ascii_digit() => {
                at += length(&bytes[at..], &|byte| is_word(byte) || byte == b'.');
                if bytes[from..at].iter().all(u8::is_ascii_digit) {
                    found.push((from, at));
                }
            }
            byte if is_word(byte) => at += length(&bytes[at..], &is_word),
            _ => at += 1,
        }
    }
    found
}

/// What two strings have in common that may stand for each other.
fn form(text: &str) -> String {
    let shown = text.chars().map(|char| match char {
        '0'..='9' => '9',
        char if char.is_alphabetic() => 'a',
        other => other,
    });
    let mut form: Vec<char> = shown.collect();
    form.dedup_by(|next, last| next == last && *last == 'a');
    form.into_iter().collect()
}

/// The strings of a round's statements.
#[derive(Default)]
pub struct Variations {
    strings: Vec<String>,
}

impl Variations {
    /// Notes the strings of a statement; whether it has literals that can be others.
    pub fn note(&mut self, sql: &str) -> bool {
        let literals = literals(sql);
        for (from, to) in &literals {
            let text = &sql[*from..*to];
            if text.starts_with('\'') && !self.strings.iter().any(|known| known == text) {
                self.strings.push(text.to_owned());
            }
        }
        let first = sql.split_ascii_whitespace().next().unwrap_or_default();
        !literals.is_empty() && ["select", "insert", "update", "delete"].contains(&first)
    }

    /// The statement with other literals.
    pub fn of(&self, sql: &str, random: &mut Random) -> String {
        let mut varied = String::new();
        let mut end = 0;
        for (from, to) in literals(sql) {
            let text = &sql[from..to];
            varied.push_str(&sql[end..from]);
            let own = form(text);
            let others = self.strings.iter().filter(|other| form(other) == own);
            let others: Vec<&str> = others.map(String::as_str).collect();
            match text.starts_with('\'') {
                true if others.len() > 1 => varied.push_str(random.pick(&others)),
                // No zero, which divides nothing.
                false if random.chance(60) && text.len() < 3 && text != "0" => {
                    varied.push_str(&random.within(1..=12).to_string());
                }
                _ => varied.push_str(text),
            }
            end = to;
        }
        varied + &sql[end..]
    }
}
