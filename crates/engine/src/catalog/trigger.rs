//! Triggers: which function a change of a table's rows calls. To the engine they are a part of the
//! table's definition. The floor above calls them.

use serde::{Deserialize, Serialize};

/// What a trigger is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TriggerEvent {
    /// INSERT
    Insert,
    /// DELETE
    Delete,
    /// UPDATE
    Update,
    /// TRUNCATE
    Truncate,
}

impl TriggerEvent {
    /// All, in the order in which PostgreSQL writes them.
    pub const ALL: [Self; 4] = [Self::Insert, Self::Delete, Self::Update, Self::Truncate];

    /// As SQL names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Insert => "INSERT",
            Self::Delete => "DELETE",
            Self::Update => "UPDATE",
            Self::Truncate => "TRUNCATE",
        }
    }

    /// Its bit among all.
    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A trigger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TriggerDef {
    /// Object id; stays for the trigger's life.
    pub oid: u32,
    /// Name; no other trigger of the table has it.
    pub name: String,
    /// The object id of the function that it calls.
    pub function: u32,
    /// It comes before the change, else behind it.
    pub before: bool,
    /// It is called for each row, else once for each statement.
    pub row: bool,
    /// What it is for.
    pub events: Vec<TriggerEvent>,
    /// UPDATE OF: positions of the columns; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<usize>,
    /// WHEN: the condition's SQL text, over the rows `old` and `new`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// What the function is told in `TG_ARGV`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// ALTER TABLE … DISABLE TRIGGER
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disabled: bool,
}

impl TriggerDef {
    /// Whether it is enabled, and for this.
    #[must_use]
    pub fn is_for(&self, event: TriggerEvent) -> bool {
        !self.disabled && self.events.contains(&event)
    }

    /// About what it takes in memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let arguments = self.arguments.iter().map(|argument| 32 + argument.len());
        let condition = self.condition.as_ref().map_or(0, String::len);
        size_of::<Self>() + 128 + self.name.len() + condition + arguments.sum::<usize>()
    }
}

/// What a table's triggers are for, in a word for each question that a statement asks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Firing {
    any: u8,
    before_rows: u8,
    rows: u8,
}

impl Firing {
    pub fn of(triggers: &[TriggerDef]) -> Self {
        let bits = |asked: &dyn Fn(&TriggerDef) -> bool| {
            let asked = triggers.iter().filter(|one| !one.disabled && asked(one));
            let events = asked.flat_map(|trigger| &trigger.events);
            events.fold(0, |bits, event| bits | event.bit())
        };
        Self {
            any: bits(&|_| true),
            before_rows: bits(&|trigger| trigger.before && trigger.row),
            rows: bits(&|trigger| trigger.row),
        }
    }

    /// Whether an enabled trigger is for this.
    #[inline]
    pub const fn on(self, event: TriggerEvent) -> bool {
        self.any & event.bit() != 0
    }

    /// The same of those for each row.
    #[inline]
    pub const fn on_rows(self, event: TriggerEvent) -> bool {
        self.rows & event.bit() != 0
    }

    /// The same of those before each row.
    #[inline]
    pub const fn before_rows(self, event: TriggerEvent) -> bool {
        self.before_rows & event.bit() != 0
    }
}
