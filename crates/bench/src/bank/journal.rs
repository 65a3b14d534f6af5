//! The client's journal: a line a transfer, with what became of it.
//!
//! A line is written whole and at once after the outcome is known, before the
//! next transfer of the same client begins. The journal is to survive the
//! server's crash, not the machine's: it is not synced.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;

use crate::Result;

/// What became of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The commit was acknowledged.
    Acknowledged,
    /// The transaction was refused or rolled back.
    Refused,
    /// The connection broke before the answer.
    Unanswered,
}

impl Outcome {
    fn sign(self) -> char {
        match self {
            Outcome::Acknowledged => '+',
            Outcome::Refused => '-',
            Outcome::Unanswered => '?',
        }
    }
}

/// Appends to the journal.
#[derive(Debug)]
pub(super) struct JournalWriter(Mutex<File>);

impl JournalWriter {
    pub fn open(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(JournalWriter(Mutex::new(file)))
    }

    pub fn note(&self, outcome: Outcome, transfer: i64) -> io::Result<()> {
        let line = format!("{} {transfer}\n", outcome.sign());
        let mut file = match self.0.lock() {
            Ok(file) => file,
            Err(poisoned) => poisoned.into_inner(),
        };
        file.write_all(line.as_bytes())
    }
}

/// A journal read back.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Journal {
    pub acknowledged: HashSet<i64>,
    pub refused: HashSet<i64>,
    pub unanswered: HashSet<i64>,
}

impl Journal {
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path);
        let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self> {
        let mut journal = Journal::default();
        for line in text.lines() {
            let (sign, number) = line.split_once(' ').unwrap_or((line, ""));
            let transfer = number
                .parse()
                .map_err(|_| format!("not a line of a journal: \"{line}\""))?;
            match sign {
                "+" => journal.acknowledged.insert(transfer),
                "-" => journal.refused.insert(transfer),
                "?" => journal.unanswered.insert(transfer),
                _ => return Err(format!("not a line of a journal: \"{line}\"").into()),
            };
        }
        Ok(journal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_read_back_over_several_runs() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("journal");
        for base in [0, 10] {
            let writer = JournalWriter::open(&path).expect("it can be made");
            writer
                .note(Outcome::Acknowledged, base + 1)
                .expect("written");
            writer.note(Outcome::Refused, base + 2).expect("written");
            writer.note(Outcome::Unanswered, base + 3).expect("written");
        }
        let journal = Journal::read(&path).expect("it is a journal");
        assert_eq!(journal.acknowledged, HashSet::from([1, 11]));
        assert_eq!(journal.refused, HashSet::from([2, 12]));
        assert_eq!(journal.unanswered, HashSet::from([3, 13]));
    }

    #[test]
    fn a_damaged_journal_is_not_trusted() {
        assert!(Journal::parse("+ 1\n+ ").is_err());
        assert!(Journal::parse("* 1\n").is_err());
        assert!(Journal::parse("").is_ok());
    }
}
