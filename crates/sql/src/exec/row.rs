//! Rows as expressions see them: a stored tuple, a row about to be stored, a
//! conflicting pair. Nothing is decoded that is not asked for.

use thermocline_engine::Table;
use thermocline_values::value::ValueRef;

use crate::error::{Result, SqlError};
use crate::expr::{Datum, EvalContext, RowAccess};
use crate::output::{ColumnType, RowWriter};
use crate::plan::{Check, CheckOf, OutputExpr};
use crate::styles::Styles;

/// A stored tuple.
#[derive(Clone, Copy)]
pub(crate) struct TupleRow<'a> {
    pub(crate) table: &'a Table,
    pub(crate) tuple: &'a [u8],
}

impl RowAccess for TupleRow<'_> {
    #[inline]
    fn column(&self, column: usize) -> ValueRef<'_> {
        self.table.value(self.tuple, column)
    }
}

/// A stored tuple, and behind its columns the row's number.
pub(crate) struct NumberedRow<'a> {
    pub(crate) row: TupleRow<'a>,
    pub(crate) number: i64,
}

impl RowAccess for NumberedRow<'_> {
    fn column(&self, column: usize) -> ValueRef<'_> {
        match column == self.row.table.columns.len() {
            true => ValueRef::BigInt(self.number),
            false => self.row.column(column),
        }
    }
}

/// A row about to be stored.
#[derive(Clone, Copy)]
pub(crate) struct NewRow<'a, 'v>(pub(crate) &'a [Datum<'v>]);

impl RowAccess for NewRow<'_, '_> {
    #[inline]
    fn column(&self, column: usize) -> ValueRef<'_> {
        self.0[column].as_ref()
    }
}

/// ON CONFLICT: the existing row, and behind its columns the new one's.
pub(crate) struct ConflictRow<'a> {
    pub(crate) table: &'a Table,
    pub(crate) existing: &'a [u8],
    pub(crate) excluded: &'a [u8],
}

impl RowAccess for ConflictRow<'_> {
    #[inline]
    fn column(&self, column: usize) -> ValueRef<'_> {
        let width = self.table.columns.len();
        match column.checked_sub(width) {
            None => self.table.value(self.existing, column),
            Some(column) => self.table.value(self.excluded, column),
        }
    }
}

/// Evaluates an output list into a row of the result.
pub(crate) fn write_row<R: RowAccess + ?Sized>(
    output: &[OutputExpr],
    row: &R,
    context: &EvalContext<'_>,
    rows: &mut RowWriter,
) -> Result<()> {
    rows.begin_row(output.len());
    for column in output {
        let value = column.expr.evaluate(row, context)?;
        write_value(value.as_ref(), &column.column_type, rows)?;
    }
    rows.end_row();
    rows.check()
}

/// Writes one value of a result.
#[inline]
pub(crate) fn write_value(
    value: ValueRef<'_>,
    column_type: &ColumnType,
    rows: &mut RowWriter,
) -> Result<()> {
    match column_type {
        ColumnType::Scalar(data_type) => rows.value(value, data_type),
        ColumnType::Other(other) => match value {
            ValueRef::Text(text) => rows.other(text, *other)?,
            _ => rows.null(),
        },
    }
    Ok(())
}

/// 23514 unless no check is false for the row, and 44000 where a view would not show it.
pub(crate) fn verify_checks<R: RowAccess + ?Sized>(
    checks: &[Check],
    table: &Table,
    row: &R,
    context: &EvalContext<'_>,
) -> Result<()> {
    for check in checks {
        let truth = check.condition.truth(row, context)?;
        let error = match &check.of {
            CheckOf::View if truth != Some(true) => {
                let name = &check.name;
                let message = format!("new row violates check option for view \"{name}\"");
                SqlError::new("44000", message)
            }
            CheckOf::Domain(domain) if truth == Some(false) => {
                return Err(of_no_domain(domain, &check.name));
            }
            CheckOf::Table if truth == Some(false) => {
                let message = format!(
                    "new row for relation \"{}\" violates check constraint \"{}\"",
                    table.name, check.name
                );
                SqlError::new("23514", message)
                    .with_table(&table.schema, &table.name)
                    .with_constraint(check.name.clone())
            }
            CheckOf::Partition(parent, at) if !belongs(parent, *at, row) => of_no_bound(table),
            _ => continue,
        };
        return Err(error.with_detail(failing_row(table, row, context.styles)));
    }
    Ok(())
}

/// 23514 for a row that belongs to another partition than this table, or than one that it is below.
pub(crate) fn verify_bounds<R: RowAccess + ?Sized>(
    checks: &[Check],
    table: &Table,
    row: &R,
    styles: &Styles,
) -> Result<()> {
    for check in checks {
        if let CheckOf::Partition(parent, at) = &check.of
            && !belongs(parent, *at, row)
        {
            return Err(of_no_bound(table).with_detail(failing_row(table, row, styles)));
        }
    }
    Ok(())
}

#[cold]
fn of_no_bound(table: &Table) -> SqlError {
    let name = &table.name;
    let message = format!("new row for relation \"{name}\" violates partition constraint");
    SqlError::new("23514", message).with_table(&table.schema, &table.name)
}

/// Whether a row belongs to the partition at a position.
fn belongs<R: RowAccess + ?Sized>(parent: &Table, at: usize, row: &R) -> bool {
    let (Some(by), Some((map, _))) = (&parent.partitioned, &parent.partition_map) else {
        return false;
    };
    let key = by.columns.iter().map(|column| row.column(*column));
    map.find(&key.collect::<Vec<_>>()) == Some(at)
}

/// 23514, or 23502 without a constraint's name: a value that is none of a domain.
#[cold]
pub(crate) fn of_no_domain(domain: &str, constraint: &str) -> SqlError {
    match constraint {
        "" => SqlError::new(
            "23502",
            format!("domain {domain} does not allow null values"),
        ),
        _ => {
            let message =
                format!("value for domain {domain} violates check constraint \"{constraint}\"");
            SqlError::new("23514", message).with_constraint(constraint)
        }
    }
}

/// 23502: NULL for a column that refuses it.
#[cold]
pub(crate) fn null_violation<R: RowAccess + ?Sized>(
    table: &Table,
    column: usize,
    row: &R,
    styles: &Styles,
) -> SqlError {
    let name = &table.columns[column].name;
    let message = format!(
        "null value in column \"{name}\" of relation \"{}\" violates not-null constraint",
        table.name
    );
    SqlError::new("23502", message)
        .with_detail(failing_row(table, row, styles))
        .with_table(&table.schema, &table.name)
        .with_column(name.clone())
}

/// PostgreSQL shows this many bytes of a value in a detail.
const SHOWN_BYTES_MAX: usize = 64;

fn failing_row<R: RowAccess + ?Sized>(table: &Table, row: &R, styles: &Styles) -> String {
    let mut detail = String::from("Failing row contains (");
    for (place, (column, def)) in table.live_columns().enumerate() {
        if place > 0 {
            detail.push_str(", ");
        }
        let value = row.column(column);
        if value.is_null() {
            detail.push_str("null");
            continue;
        }
        let mut text = Vec::new();
        if let Err(error) = styles.write(value, &def.data_type, &mut text) {
            text.extend_from_slice(error.message.as_bytes());
        }
        let text = String::from_utf8_lossy(&text);
        if text.len() > SHOWN_BYTES_MAX {
            let mut end = SHOWN_BYTES_MAX;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            detail.push_str(&text[..end]);
            detail.push_str("...");
        } else {
            detail.push_str(&text);
        }
    }
    detail.push_str(").");
    detail
}

/// Calls `body` with the values of `datums`, without allocating for tables of
/// ordinary width.
pub(crate) fn with_values<R>(datums: &[Datum<'_>], body: impl FnOnce(&[ValueRef<'_>]) -> R) -> R {
    const INLINE: usize = 24;
    if datums.len() <= INLINE {
        let mut values = [ValueRef::Null; INLINE];
        for (value, datum) in values.iter_mut().zip(datums) {
            *value = datum.as_ref();
        }
        body(&values[..datums.len()])
    } else {
        let values: Vec<ValueRef<'_>> = datums.iter().map(Datum::as_ref).collect();
        body(&values)
    }
}
