//! The result of a catalog query on its way out.

use std::vec::IntoIter;

use thermocline_storage::cast::{CastContext, coerce};
use thermocline_storage::types::DataType;
use thermocline_storage::value::Value;

use super::datum::Datum;
use super::pg_type::PgType;
use super::query::{QueryPlan, Run, datum_text, scalar_value};
use crate::analytics::SettingChange;
use crate::error::{Result, SqlError};
use crate::output::{ColumnType, OtherType, OutputColumn, RowWriter};

/// A value made ready while the catalog was in reach.
enum Cell {
    Null,
    Scalar(Value),
    /// A type that tables do not hold, as text.
    Text(String),
    /// A number shown by name.
    Named(u32, String),
}

/// The rows of a catalog query.
pub(crate) struct CatalogRows {
    rows: IntoIter<Vec<Cell>>,
    changes: Vec<SettingChange>,
}

impl CatalogRows {
    pub(crate) fn new(plan: &QueryPlan, rows: Vec<Vec<Datum>>, run: &Run<'_>) -> Self {
        let types: Vec<PgType> = plan.columns.iter().map(|column| column.data_type).collect();
        let rows: Vec<Vec<Cell>> = rows
            .into_iter()
            .map(|row| {
                row.iter()
                    .zip(&types)
                    .map(|(datum, data_type)| cell(datum, *data_type, run))
                    .collect()
            })
            .collect();
        let changes = run
            .take_settings()
            .into_iter()
            .map(|request| SettingChange {
                name: request.name,
                value: request.value,
                local: request.local,
            })
            .collect();
        Self {
            rows: rows.into_iter(),
            changes,
        }
    }

    pub(crate) fn setting_changes(&self) -> &[SettingChange] {
        &self.changes
    }

    pub(crate) fn write(
        &mut self,
        columns: &[OutputColumn],
        rows: &mut RowWriter,
        rows_max: usize,
    ) -> Result<usize> {
        let mut written = 0;
        for row in self.rows.by_ref().take(rows_max) {
            rows.begin_row(columns.len());
            for (cell, column) in row.into_iter().zip(columns) {
                match (cell, &column.data_type) {
                    (Cell::Null, _) => rows.null(),
                    (Cell::Scalar(value), ColumnType::Scalar(data_type)) => {
                        rows.value(value.as_ref(), data_type);
                    }
                    (Cell::Named(oid, _), _) if rows.is_binary() => rows.raw(&oid.to_be_bytes()),
                    (Cell::Named(_, text), _) => rows.text(&text),
                    (Cell::Text(text), ColumnType::Other(OtherType::Unknown)) => rows.text(&text),
                    (Cell::Text(text), ColumnType::Other(other)) => rows.other(&text, *other)?,
                    (Cell::Text(text), ColumnType::Scalar(data_type)) => {
                        let value = coerce(
                            Value::Text(text),
                            &DataType::Text,
                            data_type,
                            CastContext::Explicit,
                        )?;
                        rows.value(value.as_ref(), data_type);
                    }
                    (Cell::Scalar(_), ColumnType::Other(_)) => {
                        return Err(SqlError::internal("a value of another type than announced"));
                    }
                }
            }
            rows.end_row();
            written += 1;
        }
        Ok(written)
    }
}

fn cell(datum: &Datum, data_type: PgType, run: &Run<'_>) -> Cell {
    if datum.is_null() {
        return Cell::Null;
    }
    if let ColumnType::Scalar(scalar) = data_type.column_type()
        && let Some(value) = scalar_value(datum, &scalar)
    {
        return Cell::Scalar(value);
    }
    let text = datum_text(datum, data_type, run.names());
    match datum.as_oid() {
        Some(oid) if data_type.is_reg() => Cell::Named(oid, text),
        _ => Cell::Text(text),
    }
}

/// The columns of a query's result.
pub(crate) fn output_columns(plan: &QueryPlan) -> Vec<OutputColumn> {
    plan.columns
        .iter()
        .map(|column| {
            let mut output = OutputColumn::new(&column.name, column.data_type.column_type());
            output.type_oid = column.data_type.oid;
            match column.origin {
                Some((table, number)) => {
                    output.from_table(table, usize::try_from(number).unwrap_or(0))
                }
                None => output,
            }
        })
        .collect()
}

/// The type that a parameter is announced with. Object ids travel as bigint,
/// names and arrays as text.
pub(crate) fn parameter_type(data_type: PgType) -> DataType {
    if let Some(scalar) = DataType::from_oid(data_type.oid, data_type.typmod) {
        return scalar;
    }
    if data_type.is_oid() {
        return DataType::BigInt;
    }
    DataType::Text
}

/// The parameters' values.
pub(crate) fn parameter_values(types: &[DataType], values: &[Value]) -> Result<Vec<Datum>> {
    if values.len() < types.len() {
        return Err(SqlError::new(
            "42P02",
            format!("there is no parameter ${}", values.len() + 1),
        ));
    }
    Ok(values.iter().cloned().map(Datum::from).collect())
}
