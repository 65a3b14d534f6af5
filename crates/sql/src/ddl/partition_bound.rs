//! Keys and bounds of declared partitions: from the statement's texts to values, with PostgreSQL's
//! errors.

use thermocline_engine::{
    BoundConflict, PartitionBound, PartitionStrategy, PartitionedBy, RangeEnd, Table, TableDef,
};
use thermocline_values::value::Value;

use super::Definition;
use super::create_table::with_key;
use crate::bind;
use crate::error::{Result, SqlError};
use crate::expr::{EvalContext, NoRow};
use crate::parse::partition::{Bound, BoundedBy, End, PartitionBy};
use crate::pg_catalog::written_bound;

/// PostgreSQL's limit.
const KEY_COLUMNS_MAX: usize = 32;

#[cold]
fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new("42P16", message)
}

#[cold]
pub(super) fn of_no_use(message: impl Into<String>) -> SqlError {
    SqlError::new("42P17", message)
}

/// What a new table is partitioned by.
///
/// # Errors
/// 42703 and 42P17 for columns that cannot be a key.
pub(super) fn partitioned_by(def: &TableDef, by: &PartitionBy) -> Result<PartitionedBy> {
    if by.strategy == PartitionStrategy::List && by.columns.len() > 1 {
        return Err(of_no_use(
            "cannot use \"list\" partition strategy with more than one column",
        ));
    }
    if by.columns.len() > KEY_COLUMNS_MAX {
        let message = format!("cannot partition using more than {KEY_COLUMNS_MAX} columns");
        return Err(SqlError::new("54011", message));
    }
    let mut columns = Vec::with_capacity(by.columns.len());
    for (name, at) in &by.columns {
        let Some(column) = def.column_named(name) else {
            if bind::is_system_column(name) {
                let message = format!("cannot use system column \"{name}\" in partition key");
                return Err(of_no_use(message));
            }
            let message = format!("column \"{name}\" named in partition key does not exist");
            return Err(SqlError::new("42703", message).with_position(*at));
        };
        if def.columns[column].generated {
            return Err(of_no_use("cannot use generated column in partition key")
                .with_detail(format!("Column \"{name}\" is a generated column.")));
        }
        with_key(&def.columns[column])?;
        columns.push(column);
    }
    Ok(PartitionedBy {
        strategy: by.strategy,
        columns,
        partitions: Vec::new(),
    })
}

/// 0A000 for a unique key of a partitioned table that does not say which partition a row is in.
pub(super) fn covers_key(def: &TableDef, columns: &[usize], primary: Option<bool>) -> Result<()> {
    let Some(by) = &def.partitioned else {
        return Ok(());
    };
    let mut missing = by.columns.iter().filter(|column| !columns.contains(column));
    let Some(missing) = missing.next() else {
        return Ok(());
    };
    let what = match primary {
        Some(true) => "PRIMARY KEY",
        _ => "UNIQUE",
    };
    let detail = format!(
        "{what} constraint on table \"{}\" lacks column \"{}\" which is part of the partition key.",
        def.name, def.columns[*missing].name
    );
    Err(SqlError::unsupported(
        "unique constraint on partitioned table must include all partitioning columns",
        "Add the columns of the partition key to it.",
    )
    .with_detail(detail))
}

impl Definition<'_> {
    /// The bound that a statement gives a partition of a table.
    pub(super) fn bound(&self, parent: &Table, bounded: &BoundedBy) -> Result<PartitionBound> {
        let bound = &bounded.bound;
        let Some(by) = &parent.partitioned else {
            return Err(SqlError::internal("a partition of no partitioned table"));
        };
        let wrong = |strategy: PartitionStrategy| {
            let name = strategy.name().to_lowercase();
            invalid(format!(
                "invalid bound specification for a {name} partition"
            ))
            .with_position(bounded.at)
        };
        match (by.strategy, bound) {
            (PartitionStrategy::Hash, Bound::Default) => Err(invalid(
                "a hash-partitioned table may not have a default partition",
            )),
            (_, Bound::Default) => Ok(PartitionBound::Default),
            (PartitionStrategy::Hash, Bound::Hash { modulus, remainder }) => {
                hash_bound(*modulus, *remainder)
            }
            (PartitionStrategy::List, Bound::List(texts)) => {
                let mut values: Vec<Value> = Vec::with_capacity(texts.len());
                for text in texts {
                    let value = self.bound_value(parent, by.columns[0], text)?;
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                Ok(PartitionBound::List(values))
            }
            (PartitionStrategy::Range, Bound::Range { from, to }) => Ok(PartitionBound::Range {
                from: self.ends(parent, by, ("FROM", from))?,
                to: self.ends(parent, by, ("TO", to))?,
            }),
            (strategy, _) => Err(wrong(strategy)),
        }
    }

    fn ends(
        &self,
        parent: &Table,
        by: &PartitionedBy,
        (word, ends): (&str, &[End]),
    ) -> Result<Vec<RangeEnd>> {
        if ends.len() != by.columns.len() {
            return Err(invalid(format!(
                "{word} must specify exactly one value per partitioning column"
            )));
        }
        let mut all: Vec<RangeEnd> = Vec::with_capacity(ends.len());
        for (end, column) in ends.iter().zip(&by.columns) {
            let next = match end {
                End::Least => RangeEnd::Least,
                End::Greatest => RangeEnd::Greatest,
                End::Value(text) => match self.bound_value(parent, *column, text)? {
                    Value::Null => return Err(invalid("cannot specify NULL in range bound")),
                    value => RangeEnd::Value(value),
                },
            };
            let word = match all.last() {
                Some(RangeEnd::Least) if next != RangeEnd::Least => "MINVALUE",
                Some(RangeEnd::Greatest) if next != RangeEnd::Greatest => "MAXVALUE",
                _ => {
                    all.push(next);
                    continue;
                }
            };
            let message = format!("every bound following {word} must also be {word}");
            return Err(SqlError::new("42804", message));
        }
        Ok(all)
    }

    /// A value of a bound, as the column has it.
    fn bound_value(&self, parent: &Table, column: usize, text: &str) -> Result<Value> {
        let def = &parent.columns[column];
        let bound = self.kept(&parent.schema, |context| {
            bind::bind_default(text, &def.name, def.data_type, context)
        })?;
        let context = EvalContext::without_parameters(self.now_us, self.session, self.styles);
        Ok(bound.evaluate(&NoRow, &context)?.into_value())
    }

    /// 42P17 where a table has no room for another partition of this name and bound.
    pub(super) fn no_conflict(
        &self,
        parent: &Table,
        name: &str,
        (bound, written): (&PartitionBound, &BoundedBy),
    ) -> Result<()> {
        let (Some((map, _)), Some(by)) = (&parent.partition_map, &parent.partitioned) else {
            return Ok(());
        };
        let Some(conflict) = map.conflict(by, bound) else {
            return Ok(());
        };
        let catalog = self.catalog();
        let named = |position: usize| {
            let table = by.partitions.get(position);
            let table = table.and_then(|partition| catalog.table(partition.table));
            table.map_or_else(String::new, |table| table.name.clone())
        };
        let at = match bound {
            PartitionBound::Range { .. } => written.values_at.first().copied().flatten(),
            PartitionBound::List(values) => {
                let in_one = |value: &Value| map.find_listed(value).is_some();
                let taken = values.iter().position(in_one);
                taken.and_then(|taken| written.values_at.get(taken).copied().flatten())
            }
            PartitionBound::Hash { .. } if matches!(conflict, BoundConflict::Modulus(..)) => None,
            PartitionBound::Hash { .. } | PartitionBound::Default => written.at,
        };
        let error = match conflict {
            BoundConflict::Overlaps(position) => of_no_use(format!(
                "partition \"{name}\" would overlap partition \"{}\"",
                named(position)
            )),
            BoundConflict::SecondDefault(position) => of_no_use(format!(
                "partition \"{name}\" conflicts with existing default partition \"{}\"",
                named(position)
            )),
            BoundConflict::Empty => {
                let (from, to) = match bound {
                    PartitionBound::Range { from, to } => (
                        written_bound::ends(parent, from),
                        written_bound::ends(parent, to),
                    ),
                    _ => Default::default(),
                };
                of_no_use(format!(
                    "empty range bound specified for partition \"{name}\""
                ))
                .with_detail(format!(
                    "Specified lower bound ({from}) is greater than or equal to upper bound ({to})."
                ))
            }
            BoundConflict::Modulus(other, position) => {
                let modulus = match bound {
                    PartitionBound::Hash { modulus, .. } => *modulus,
                    _ => 0,
                };
                let is = match modulus < other {
                    true => "a factor of",
                    false => "divisible by",
                };
                of_no_use("every hash partition modulus must be a factor of the next larger modulus")
                    .with_detail(format!(
                        "The new modulus {modulus} is not {is} {other}, the modulus of existing partition \"{}\".",
                        named(position)
                    ))
            }
        };
        Err(error.with_position(at))
    }
}

fn hash_bound(modulus: i32, remainder: i32) -> Result<PartitionBound> {
    let (Ok(modulus), Ok(remainder)) = (u32::try_from(modulus), u32::try_from(remainder)) else {
        return Err(invalid(match modulus < 0 {
            true => "modulus for hash partition must be an integer value greater than zero",
            false => {
                "remainder for hash partition must be an integer value greater than or equal to zero"
            }
        }));
    };
    if modulus == 0 {
        return Err(invalid(
            "modulus for hash partition must be an integer value greater than zero",
        ));
    }
    match remainder < modulus {
        true => Ok(PartitionBound::Hash { modulus, remainder }),
        false => Err(invalid(
            "remainder for hash partition must be less than modulus",
        )),
    }
}
