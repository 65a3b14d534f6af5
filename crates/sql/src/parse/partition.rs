//! PARTITION BY and PARTITION OF. Values of bounds are kept as their texts.

use pg_raw_parse::Node;
use pg_raw_parse::list::NodeList;
use pg_raw_parse::nodes::{
    PartitionBoundSpec, PartitionCmd, PartitionSpec, PartitionStrategy as Written,
};
use thermocline_engine::PartitionStrategy;
use thermocline_query::parse::written;

use super::node;
use crate::error::{Result, SqlError};

/// PARTITION BY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionBy {
    /// RANGE, LIST or HASH
    pub strategy: PartitionStrategy,
    /// The columns of the key, and where each stands in the statement.
    pub columns: Vec<(String, Option<u32>)>,
}

/// A table and which rows of another are its own: PARTITION OF and ATTACH PARTITION.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundedBy {
    /// The other table of PARTITION OF, the partition of ATTACH PARTITION.
    pub table: Vec<String>,
    /// FOR VALUES
    pub bound: Bound,
    /// Where that stands in the statement,
    pub at: Option<u32>,
    /// and where its values do: of a range those of FROM.
    pub values_at: Vec<Option<u32>>,
}

/// The character of a statement that a byte of it begins.
fn place(text: &str, location: i32) -> Option<u32> {
    let before = text.get(..usize::try_from(location).ok()?)?;
    u32::try_from(before.chars().count() + 1).ok()
}

/// FOR VALUES, and DEFAULT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// DEFAULT
    Default,
    /// IN: the values' texts.
    List(Vec<String>),
    /// FROM and TO
    Range {
        /// FROM
        from: Vec<End>,
        /// TO
        to: Vec<End>,
    },
    /// WITH
    Hash {
        /// MODULUS
        modulus: i32,
        /// REMAINDER
        remainder: i32,
    },
}

/// A column of an end of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// MINVALUE
    Least,
    /// MAXVALUE
    Greatest,
    /// The text of a value.
    Value(String),
}

/// DETACH PARTITION.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detach {
    /// The partition.
    pub table: Vec<String>,
}

pub(super) fn by(spec: &PartitionSpec, text: &str) -> Result<PartitionBy> {
    let strategy = match spec.strategy {
        Written::PARTITION_STRATEGY_LIST => PartitionStrategy::List,
        Written::PARTITION_STRATEGY_HASH => PartitionStrategy::Hash,
        _ => PartitionStrategy::Range,
    };
    let mut columns = Vec::new();
    for part in spec.part_params().iter() {
        if !part.opclass().is_empty() || !part.collation().is_empty() {
            return Err(SqlError::unsupported(
                "operator classes and collations of a partition key are not supported",
                "Leave them out: keys are compared as in an index.",
            ));
        }
        let Some(name) = part.name() else {
            return Err(SqlError::unsupported(
                "an expression in a partition key is not supported",
                "Keep its value in a column, and partition by that.",
            ));
        };
        columns.push((name.to_owned(), place(text, part.location)));
    }
    Ok(PartitionBy { strategy, columns })
}

/// A table and its bound.
pub(super) fn bounded(
    table: Vec<String>,
    spec: &PartitionBoundSpec,
    text: &str,
) -> Result<BoundedBy> {
    let values = match spec.strategy as u8 {
        b'l' => spec.listdatums(),
        _ => spec.lowerdatums(),
    };
    let values_at = values.iter().map(|value| place(text, location(value)));
    Ok(BoundedBy {
        table,
        bound: bound(spec)?,
        at: place(text, spec.location),
        values_at: values_at.collect(),
    })
}

/// Where a value begins.
fn location(value: Node<'_>) -> i32 {
    match value {
        Node::A_Const(constant) => constant.location,
        Node::ColumnRef(name) => name.location,
        Node::FuncCall(call) => call.location,
        Node::TypeCast(cast) => match cast.arg() {
            Node::None => cast.location,
            inner => location(inner),
        },
        _ => -1,
    }
}

fn bound(spec: &PartitionBoundSpec) -> Result<Bound> {
    if spec.is_default {
        return Ok(Bound::Default);
    }
    Ok(match spec.strategy as u8 {
        b'h' => Bound::Hash {
            modulus: spec.modulus,
            remainder: spec.remainder,
        },
        b'l' => {
            let values = spec.listdatums().iter().map(written::expression);
            Bound::List(values.collect::<Result<_, _>>()?)
        }
        _ => Bound::Range {
            from: ends(spec.lowerdatums())?,
            to: ends(spec.upperdatums())?,
        },
    })
}

fn ends(list: &NodeList) -> Result<Vec<End>> {
    let end = |value: Node<'_>| {
        if let Node::ColumnRef(name) = value {
            match node::strings(name.fields()).as_slice() {
                [word] if word == "minvalue" => return Ok(End::Least),
                [word] if word == "maxvalue" => return Ok(End::Greatest),
                _ => {}
            }
        }
        Ok(End::Value(written::expression(value)?))
    };
    list.iter().map(end).collect()
}

/// ATTACH PARTITION of a table.
pub(super) fn attached(command: &PartitionCmd, text: &str) -> Result<BoundedBy> {
    let spec = command.bound();
    let spec = spec.ok_or_else(|| SqlError::internal("a partition without a bound"))?;
    bounded(node::relation(command.name()), spec, text)
}

/// DETACH PARTITION.
pub(super) fn detached(command: &PartitionCmd) -> Detach {
    Detach {
        table: node::relation(command.name()),
    }
}
