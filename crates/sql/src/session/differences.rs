//! REFRESH MATERIALIZED VIEW CONCURRENTLY: the rows that the query gives and the old rows have not
//! come, and old rows that it does not give go. Who reads waits for nothing.
//!
//! Rows are compared by digests of their texts, which tell what is equal and looks different,
//! too. Memory holds the digests of all old rows, and the rows that come and go. All
//! of it is charged until the rows are stored.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use thermocline_engine::{Charge, ChargeKind, Table, give_way};
use thermocline_query::tree::{Expr, ExprKind};
use thermocline_query::types::ids;
use thermocline_values::value::Value;

use super::Session;
use super::analytical::AnalyticalRows;
use super::by_query::bytes_of;
use crate::analysis::FRESH;
use crate::error::{Result, SqlError};
use crate::exec::Touched;
use crate::output::RowWriter;
use crate::pg_catalog::quote_ident;
use crate::plan::{DeletePlan, ShortPlan, row_numbered};
use crate::typed::TypedQuery;

/// Rows that come at a time.
const BATCH_ROWS: usize = 256;
/// What the digest of an old row takes in memory, in bytes.
const OLD_ROW_BYTES: u64 = 80;

/// What sha256 gives.
type Digest = [u8; 32];
/// The number of each old row by its digest, and whether the row stays.
type OldRows = HashMap<Digest, (i64, bool)>;

/// What comparing gives: the numbers of the rows that go, and the rows that come.
struct Differences {
    gone: Vec<Vec<Value>>,
    come: Vec<Vec<Value>>,
    /// A new row without a NULL comes twice.
    repeated: bool,
}

impl Session {
    /// Changes the rows of the view that differ from those of its query.
    pub(super) async fn change_differences(&mut self, table: &Arc<Table>) -> Result<()> {
        let mut charge = self.account.nothing(ChargeKind::Result);
        let differences = self.differences(table, &mut charge).await?;
        if differences.repeated {
            return Err(self.repeated(table).await?);
        }
        let delete = ShortPlan::Delete(Arc::new(DeletePlan {
            by_key: false,
            source: row_numbered(table, 0),
            returning: None,
        }));
        let mut rows = RowWriter::values();
        self.each((&delete, 0), &differences.gone, &[], &mut rows)
            .await?;
        let (target, types) = self.target_of(table)?;
        for batch in differences.come.chunks(BATCH_ROWS) {
            give_way().await;
            let mut touched = Touched::default();
            self.store_found((&types, batch), &target, &mut touched, &[], &mut rows)
                .await?;
        }
        Ok(())
    }

    /// 0A000 where texts do not say all of a number.
    fn shows_all_digits(&self) -> Result<()> {
        let digits = self
            .context
            .settings(|settings| settings.get("extra_float_digits"));
        match digits.is_none_or(|digits| digits.parse().is_ok_and(|digits: i32| digits > 0)) {
            true => Ok(()),
            false => Err(SqlError::unsupported(
                "REFRESH MATERIALIZED VIEW CONCURRENTLY with extra_float_digits below 1 is not supported",
                "SET extra_float_digits = 1.",
            )),
        }
    }

    async fn differences(
        &mut self,
        table: &Arc<Table>,
        charge: &mut Charge,
    ) -> Result<Differences> {
        self.shows_all_digits()?;
        let (mut old, same) = self.old_rows(table, charge).await?;
        let (columns, row) = (names(table).join(", "), row_of(table));
        let fresh = quote_ident(FRESH);
        let text =
            format!("SELECT sha256(convert_to({row}::text, 'UTF8')), {columns} FROM {fresh}");
        let mut stream = self.stream_of_refresh(table, &text, Ok).await?;
        let mut come = Vec::new();
        let mut repeated = false;
        loop {
            let batch = self.next_batch(&mut stream).await?;
            if batch.is_empty() {
                break;
            }
            for mut row in batch {
                let new = row.split_off(1);
                match old.get_mut(&digest_of(&row[0])?) {
                    Some((_, stays @ false)) => {
                        *stays = true;
                        continue;
                    }
                    Some((_, true)) if !new.contains(&Value::Null) => repeated = true,
                    Some(_) | None => {}
                }
                charge.grow(bytes_of(&new))?;
                come.push(new);
            }
        }
        let gone = old.into_values().filter(|(_, stays)| !stays);
        let gone = gone.map(|(number, _)| number).chain(same);
        Ok(Differences {
            gone: gone.map(|number| vec![Value::BigInt(number)]).collect(),
            repeated: repeated || comes_twice(&come),
            come,
        })
    }

    /// The old rows. Of those that are the same, which have a NULL in each unique key, all but one
    /// go: their numbers.
    async fn old_rows(
        &mut self,
        table: &Table,
        charge: &mut Charge,
    ) -> Result<(OldRows, Vec<i64>)> {
        let text = format!(
            "SELECT ctid, sha256(convert_to({}::text, 'UTF8')) FROM {}.{}",
            row_of(table),
            quote_ident(&table.schema),
            quote_ident(&table.name)
        );
        let mut stream = self.stream_of_refresh(table, &text, numbered).await?;
        let (mut old, mut same) = (OldRows::new(), Vec::new());
        loop {
            let batch = self.next_batch(&mut stream).await?;
            if batch.is_empty() {
                return Ok((old, same));
            }
            charge.grow(OLD_ROW_BYTES * batch.len() as u64)?;
            for row in batch {
                let [Value::BigInt(number), digest] = row.as_slice() else {
                    return Err(SqlError::internal("an old row without its number"));
                };
                let before = old.insert(digest_of(digest)?, (*number, false));
                same.extend(before.map(|(number, _)| number));
            }
        }
    }

    async fn next_batch(&mut self, stream: &mut AnalyticalRows) -> Result<Vec<Vec<Value>>> {
        let options = self.options();
        self.next_values(stream, BATCH_ROWS, &options).await
    }

    /// 21000 for a new row that comes twice.
    #[cold]
    async fn repeated(&mut self, table: &Arc<Table>) -> Result<SqlError> {
        let whole = names(table).into_iter();
        let whole: Vec<String> = whole.map(|name| format!("{name} IS NOT NULL")).collect();
        let text = format!(
            "SELECT row FROM (SELECT {}::text AS row FROM {} WHERE {}) AS rows \
             GROUP BY row HAVING count(*) > 1 LIMIT 1",
            row_of(table),
            quote_ident(FRESH),
            whole.join(" AND ")
        );
        let mut stream = self.stream_of_refresh(table, &text, Ok).await?;
        let found = self.next_batch(&mut stream).await?;
        let message = format!(
            "new data for materialized view \"{}\" contains duplicate rows without any null columns",
            table.name
        );
        let error = SqlError::new("21000", message);
        Ok(match found.into_iter().flatten().next() {
            Some(Value::Text(row)) => error.with_detail(format!("Row: {row}")),
            _ => error,
        })
    }
}

/// Whether rows without a NULL are the same.
fn comes_twice(rows: &[Vec<Value>]) -> bool {
    let mut seen = HashSet::new();
    let whole = rows.iter().filter(|row| !row.contains(&Value::Null));
    let mut again = whole.filter(|row| !seen.insert(*row));
    again.next().is_some()
}

fn digest_of(value: &Value) -> Result<Digest> {
    let digest = match value {
        Value::Bytea(bytes) => Digest::try_from(&bytes[..]).ok(),
        _ => None,
    };
    digest.ok_or_else(|| SqlError::internal("a row without its digest"))
}

fn names(table: &Table) -> Vec<String> {
    let columns = table.live_columns();
    let names = columns.map(|(_, column)| quote_ident(&column.name));
    names.collect()
}

/// A row of the view, written as a value.
fn row_of(table: &Table) -> String {
    format!("ROW({})", names(table).join(", "))
}

/// The query with the number of the row as a number, which its `ctid` is.
fn numbered(typed: Arc<TypedQuery>) -> Result<Arc<TypedQuery>> {
    let mut query = typed.query.clone();
    let first = query.targets.first_mut();
    let first = first.ok_or_else(|| SqlError::internal("a query of no columns"))?;
    let place = ExprKind::Relabel(Box::new(first.expr.clone()));
    first.expr = Expr::new(place, ids::INT8, -1);
    Ok(Arc::new(typed.with_query(query)))
}
