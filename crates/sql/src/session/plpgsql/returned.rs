//! RETURN NEXT and RETURN QUERY: the rows that a call gives are kept, and charged, until it ends.

use std::sync::Arc;

use thermocline_query::analyze::wrong_width;
use thermocline_query::datum::{Datum, Record};
use thermocline_query::tree::Column;
use thermocline_query::types::domain::{base, is_domain};
use thermocline_query::types::user::Class;
use thermocline_query::types::{format_type, ids};

use super::Machine;
use super::frame::Typed;
use super::rows::of_statement;
use crate::analysis::composite;
use crate::error::{Result, SqlError};
use crate::plpgsql::tree::{Expression, Source};

impl Machine<'_> {
    pub(super) async fn return_next(&mut self, value: Option<&Expression>) -> Result<()> {
        let row = match value {
            None => self.columns_now(),
            Some(value) => {
                let typed = self.value(value).await?;
                self.as_row(typed)?
            }
        };
        self.frame.give(row)
    }

    /// What the variables that are columns of the result hold.
    pub(super) fn columns_now(&self) -> Vec<Datum> {
        let slots = self.compiled.body.columns.iter();
        slots.map(|slot| self.frame.held[*slot].datum()).collect()
    }

    /// A value as a row of the result.
    pub(super) fn as_row(&self, typed: Typed) -> Result<Vec<Datum>> {
        let columns = Arc::clone(&self.frame.columns);
        let to = |column: &Column| (column.oid, column.modifier);
        match (&typed.value, &*columns) {
            (Datum::Record(record), columns) if self.frame.gives_rows => {
                if record.values.len() != columns.len() {
                    let detail = format!(
                        "Number of returned columns ({}) does not match expected column count \
                         ({}).",
                        record.values.len(),
                        columns.len()
                    );
                    return Err(mismatch(
                        "returned record type does not match expected record type",
                    )
                    .with_detail(detail));
                }
                let each = record.values.iter().zip(record.types.iter()).zip(columns);
                each.map(|((value, oid), column)| {
                    let one = Typed {
                        value: value.clone(),
                        oid: *oid,
                        modifier: -1,
                    };
                    self.cast(one, to(column))
                })
                .collect()
            }
            (Datum::Null, columns) if self.frame.gives_rows => Ok(vec![Datum::Null; columns.len()]),
            (_, [column]) if !self.frame.gives_rows => Ok(vec![self.cast(typed, to(column))?]),
            _ => Err(SqlError::new(
                "42804",
                "cannot return non-composite value from function returning composite type",
            )),
        }
    }

    /// What the whole call gives, when it has come to its end.
    pub(super) fn finish(&mut self) -> Result<()> {
        let compiled = self.compiled;
        if compiled.returns_set || compiled.of_statements.is_some() && !compiled.returns_nothing {
            return Ok(());
        }
        if compiled.of_trigger {
            return match self.frame.returned {
                Some(_) => Ok(()),
                None => Err(SqlError::new(
                    "2F005",
                    "control reached end of trigger procedure without RETURN",
                )),
            };
        }
        if compiled.returns_nothing {
            let mut row = self.columns_now();
            if let (true, [column]) = (row.is_empty(), &*self.frame.columns)
                && column.oid == ids::VOID
            {
                row.push(Datum::text(""));
            }
            return self.frame.give(row);
        }
        let Some(returned) = self.frame.returned.take() else {
            let message = "control reached end of function without RETURN";
            return Err(SqlError::new("2F005", message));
        };
        self.frame.at = (0, "while casting return value to function's return type");
        let row = self.as_row(returned)?;
        self.frame.give(row)
    }

    /// The last statement of a body of SQL: its rows, or the first of them.
    pub(super) async fn give(&mut self, of: &Expression) -> Result<()> {
        let mut found = self.query(of).await?;
        let given = found.columns();
        let mut rows = 0;
        while let Some(row) = self.next_row(&mut found)? {
            let row = self.as_declared(row, &given)?;
            self.frame.give(row)?;
            rows += 1;
            if !self.compiled.returns_set {
                break;
            }
            self.turn_over().await?;
        }
        if rows == 0 && !self.compiled.returns_set {
            let width = self.frame.columns.len();
            self.frame.give(vec![Datum::Null; width])?;
        }
        Ok(())
    }

    /// A row of these columns as the function gives it.
    fn as_declared(&self, row: Vec<Datum>, given: &[Column]) -> Result<Vec<Datum>> {
        let wanted = &*self.frame.columns;
        let typed = |(value, column): (Datum, &Column)| Typed {
            value,
            oid: column.oid,
            modifier: column.modifier,
        };
        // A row in one value, or values that are one row.
        let is_row = |oid| oid == ids::RECORD || Class::of(base(oid)) == Some(Class::Composite);
        if let [one] = given
            && is_row(one.oid)
        {
            let mut row = row;
            let value = row.pop().unwrap_or_default();
            return self.as_row(typed((value, one)));
        }
        let whole = match wanted {
            [one] if !self.frame.gives_rows && is_row(one.oid) => Some(one),
            _ => None,
        };
        let mut columns = given.to_vec();
        if let Some(one) = whole {
            let catalog = self.session.transaction.catalog(&self.session.engine.db);
            columns = composite(&catalog, base(one.oid)).unwrap_or(columns);
        }
        let wanted = match whole {
            Some(_) => &columns,
            None => wanted,
        };
        if given.len() != wanted.len() {
            let result = self.compiled.of_statements.unwrap_or(ids::RECORD);
            return Err(wrong_width(result, wanted.len(), given.len()).into());
        }
        let each = row.into_iter().zip(given).zip(wanted);
        let values: Vec<Datum> = each
            .map(|(given, column)| self.cast(typed(given), (column.oid, column.modifier)))
            .collect::<Result<_>>()?;
        if whole.is_none() {
            return Ok(values);
        }
        Ok(vec![Datum::Record(Arc::new(Record {
            types: wanted.iter().map(|column| column.oid).collect(),
            names: Some(
                wanted
                    .iter()
                    .map(|column| Arc::clone(&column.name))
                    .collect(),
            ),
            modifiers: Some(wanted.iter().map(|column| column.modifier).collect()),
            values,
        }))])
    }

    pub(super) async fn return_query(&mut self, rows: &Source) -> Result<()> {
        let mut found = self.source(rows).await?;
        if found.is_change {
            let message = "cannot open a command that gives no rows as a cursor";
            return Err(SqlError::new("42P11", message));
        }
        let columns = Arc::clone(&self.frame.columns);
        fits(&found.columns(), &columns).map_err(|error| match rows {
            Source::Query(query) => of_statement(error, &query.text),
            Source::Dynamic(_) => error,
        })?;
        let given = found.columns();
        let has_checks = columns.iter().any(|column| is_domain(column.oid));
        let mut count = 0;
        while let Some(mut row) = self.next_row(&mut found)? {
            if has_checks {
                for ((value, from), to) in row.iter_mut().zip(&given).zip(&*columns) {
                    let typed = Typed {
                        value: std::mem::take(value),
                        oid: from.oid,
                        modifier: from.modifier,
                    };
                    *value = self.cast(typed, (to.oid, to.modifier))?;
                }
            }
            self.frame.give(row)?;
            count += 1;
            self.turn_over().await?;
        }
        self.counted(count)
    }
}

#[cold]
fn mismatch(message: &str) -> SqlError {
    SqlError::new("42804", message)
}

/// Whether a query gives rows of these columns.
fn fits(given: &[Column], wanted: &[Column]) -> Result<()> {
    let message = "structure of query does not match function result type";
    if given.len() != wanted.len() {
        let detail = format!(
            "Number of returned columns ({}) does not match expected column count ({}).",
            given.len(),
            wanted.len()
        );
        return Err(mismatch(message).with_detail(detail));
    }
    let mut each = given.iter().zip(wanted).enumerate();
    match each.find(|(_, (given, wanted))| base(given.oid) != base(wanted.oid)) {
        None => Ok(()),
        Some((at, (given, wanted))) => {
            let detail = format!(
                "Returned type {} does not match expected type {} in column {}.",
                format_type(given.oid, given.modifier),
                format_type(wanted.oid, wanted.modifier),
                at + 1
            );
            Err(mismatch(message).with_detail(detail))
        }
    }
}
