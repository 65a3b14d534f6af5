//! Functions that users make. To the engine they are texts: what the names in a body mean is found
//! out by the floor above, whenever the function is called.

use serde::{Deserialize, Serialize};

/// A function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionDef {
    /// Object id; stays for the function's life.
    pub oid: u32,
    /// Schema's name.
    pub schema: String,
    /// Name. Several functions may have it, with arguments of other types.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<FunctionArgument>,
    /// The number of the type that it gives; of one row, where it gives several.
    pub result: u32,
    /// It gives any number of rows.
    pub returns_set: bool,
    /// The columns of what it gives, where they are declared with it (OUT, TABLE).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<FunctionArgument>,
    /// It gives NULL where an argument is NULL.
    pub strict: bool,
    /// Its last argument is an array, which any number of arguments are gathered in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub variadic: bool,
    /// What it depends on.
    pub volatility: FunctionVolatility,
    /// The text of its body.
    pub body: String,
    /// What the body is written in.
    #[serde(default, skip_serializing_if = "FunctionLanguage::is_sql")]
    pub language: FunctionLanguage,
    /// The name of its only OUT argument, where the body knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out: Option<String>,
    /// It is a procedure: for each of its parameters, in order, `i`, `o` or `b` for both ways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub procedure: Option<String>,
    /// It runs as its owner, whoever calls it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub definer: bool,
    /// Settings that hold while it runs, each with its values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<(String, Vec<String>)>,
}

/// What a body is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum FunctionLanguage {
    /// SQL
    #[default]
    Sql,
    /// PL/pgSQL
    PlPgSql,
}

impl FunctionLanguage {
    /// Whether it is SQL.
    #[must_use]
    pub const fn is_sql(&self) -> bool {
        matches!(self, Self::Sql)
    }

    /// Its name in `pg_language`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sql => "sql",
            Self::PlPgSql => "plpgsql",
        }
    }
}

/// An argument, or a column of what a function gives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionArgument {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The number of its type.
    pub type_oid: u32,
    /// The SQL text of what it is where nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// What a function's result depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FunctionVolatility {
    /// On its arguments alone.
    Immutable,
    /// On the database, too, as a statement sees it.
    Stable,
    /// On anything; it may change rows.
    Volatile,
}

impl FunctionDef {
    /// The numbers of its arguments' types.
    pub fn types(&self) -> impl Iterator<Item = u32> {
        self.arguments.iter().map(|argument| argument.type_oid)
    }

    /// Whether it is of a kind: `f`, `p` for a procedure, or `r` for either.
    pub fn is_of_kind(&self, kind: char) -> bool {
        match kind {
            'p' => self.procedure.is_some(),
            'f' => self.procedure.is_none(),
            _ => true,
        }
    }

    /// Its parameters in order, each with how it goes: those of a procedure as it was written,
    /// those of a function before what it gives.
    pub fn parameters(&self) -> Vec<(char, &FunctionArgument)> {
        let (mut inputs, mut outputs) = (self.arguments.iter(), self.columns.iter());
        let modes = self.procedure.iter().flat_map(|modes| modes.chars());
        let in_order = modes.filter_map(|mode| {
            let output = (mode != 'i').then(|| outputs.next()).flatten();
            let input = (mode != 'o').then(|| inputs.next()).flatten();
            Some((mode, input.or(output)?))
        });
        in_order.collect()
    }

    /// Whether a type is one of its arguments, its result or its columns.
    pub fn names_type(&self, oid: u32) -> bool {
        let mut columns = self.columns.iter().map(|column| column.type_oid);
        self.result == oid || self.types().any(|of| of == oid) || columns.any(|of| of == oid)
    }

    /// Whether it is called as another one is.
    pub(crate) fn is_called_as(&self, other: &Self) -> bool {
        self.schema == other.schema && self.name == other.name && self.types().eq(other.types())
    }

    /// About what it takes in memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let argument = |argument: &FunctionArgument| {
            let default = argument.default.as_ref().map_or(0, String::len);
            64 + argument.name.as_ref().map_or(0, String::len) + default
        };
        let arguments = self.arguments.iter().chain(&self.columns).map(argument);
        let setting = |(name, values): &(String, Vec<String>)| {
            64 + name.len() + values.iter().map(|value| 32 + value.len()).sum::<usize>()
        };
        let settings = self.settings.iter().map(setting).sum::<usize>();
        let texts = self.name.len() + self.body.len() + settings;
        size_of::<Self>() + texts + arguments.sum::<usize>()
    }
}
