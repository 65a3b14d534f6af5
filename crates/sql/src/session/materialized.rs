//! The rows of materialized views: CREATE and REFRESH run the query by the rights of the view's
//! owner, and store what it gives.
//!
//! A REFRESH puts new storage in the place of the old, so the rows come as a whole with the
//! commit. After a crash they are the old ones or the new ones. CONCURRENTLY compares
//! the new rows with the old, and changes those that differ: who reads waits for nothing.

use std::collections::HashSet;
use std::sync::Arc;

use thermocline_engine::{Charge, ChargeKind, Table};
use thermocline_query::tree::{Expr, ExprKind};
use thermocline_query::types::ids;
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use super::by_query::bytes_of;
use super::lookup::Place;
use super::{Client, Session};
use crate::analysis::FRESH;
use crate::bind::{self, BindContext};
use crate::ddl::{MADE, find_relation, unique_key};
use crate::error::{Result, SqlError};
use crate::output::RowWriter;
use crate::parse::statement::{Ddl, IsolationLevel, Modes};
use crate::pg_catalog::quote_ident;
use crate::plan::{DeletePlan, InsertTarget, Reason, ShortPlan, row_numbered};
use crate::typed::TypedQuery;

/// Rows of a comparison that come at a time.
const BATCH_ROWS: usize = 256;
/// So often a query is analysed anew because what it reads was defined anew meanwhile.
const ATTEMPTS_MAX: usize = 8;

/// What comparing gives: the numbers of the rows that go, and the rows that come.
#[derive(Default)]
struct Differences {
    gone: Vec<Vec<Value>>,
    come: Vec<Vec<Value>>,
}

impl Session {
    /// CREATE or REFRESH MATERIALIZED VIEW. A transaction that was begun for it sees one snapshot.
    /// Whether what the query read has changed since is not asked at its commit: the rows are
    /// those of a moment.
    pub(super) async fn materialized(
        &mut self,
        of: &Ddl,
        own: bool,
        client: &mut Client,
    ) -> Result<&'static str> {
        if own {
            self.transaction.set_modes(Modes {
                isolation: Some(IsolationLevel::RepeatableRead),
                ..Modes::default()
            })?;
        }
        let (tag, _) = self.carry_out(of, None, client).await?;
        self.fill_materialized(of, tag).await?;
        Ok(tag)
    }

    /// Stores the rows that a CREATE or REFRESH, which was carried out with this tag, is to give.
    async fn fill_materialized(&mut self, of: &Ddl, tag: &str) -> Result<()> {
        self.rows_processed = 0;
        let (name, concurrently) = match of {
            Ddl::Materialized(create) if tag == MADE => (&create.view.name, false),
            Ddl::Refresh(refresh) if refresh.with_data => (&refresh.name, refresh.concurrently),
            _ => return Ok(()),
        };
        let catalog = self.transaction.catalog(&self.engine.db);
        let search_path = self.context.settings(|settings| settings.search_path());
        let table = find_relation(&catalog, &search_path, name)
            .and_then(|(schema, name)| catalog.table_by_name(&schema, &name))
            .cloned()
            .ok_or_else(|| SqlError::internal("the view that is filled is not there"))?;
        match concurrently {
            false => self.rows_processed = self.fill(&table).await?,
            true => self.change_differences(&table).await?,
        }
        Ok(())
    }

    /// Stores the rows of the query in the view's storage, which has none.
    async fn fill(&mut self, table: &Arc<Table>) -> Result<u64> {
        let text = format!("SELECT * FROM {}", quote_ident(FRESH));
        let (target, types) = self.target_of(table)?;
        for attempt in 1.. {
            let typed = self.query_of_refresh(table, &text)?;
            let catalog = self.transaction.catalog(&self.engine.db);
            match self.start_analytical(&typed, &catalog, &[]).await {
                Err(error) if error.stale_plan && attempt < ATTEMPTS_MAX => {}
                Err(error) => return Err(error),
                Ok(mut stream) => {
                    let mut rows = RowWriter::kept();
                    let stores = self.store_stream(&mut stream, &target, &types, &[], &mut rows);
                    return stores.await.map_err(while_building);
                }
            }
        }
        Err(SqlError::internal("a query that is always stale"))
    }

    /// Where rows of the view are stored, and the types of their columns.
    fn target_of(&self, table: &Arc<Table>) -> Result<(InsertTarget, Vec<DataType>)> {
        let catalog = self.transaction.catalog(&self.engine.db);
        let styles = self.context.styles();
        // Who may refresh it needs no right to change it.
        let context = BindContext::new(&catalog, &[]).styled(&styles);
        let places = table.live();
        let types = places.iter().map(|place| table.columns[*place].data_type);
        let types = types.collect();
        Ok((bind::insert_target(table, &places, &context)?, types))
    }

    /// A query that may name [`FRESH`].
    fn query_of_refresh(&self, table: &Table, text: &str) -> Result<Arc<TypedQuery>> {
        let mut lookup = self.lookup();
        lookup.refreshes = Some(table.oid);
        let place = Place {
            text,
            declared: &[],
        };
        let bound = lookup.analytical(place, Reason::NewTable)?;
        let typed = bound.plan.typed().cloned();
        typed.ok_or_else(|| SqlError::internal("an analytical query without its tree"))
    }

    /// Changes the rows that differ from those of the query.
    async fn change_differences(&mut self, table: &Arc<Table>) -> Result<()> {
        // What is found is charged until it is stored.
        let mut charge = self.account.nothing(ChargeKind::Result);
        let differences = self.differences(table, &mut charge).await?;
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
            thermocline_engine::give_way().await;
            self.store_found(batch, &target, &types, &[], &mut rows)
                .await?;
        }
        Ok(())
    }

    /// 0A000 where texts do not say all of a number: rows are compared by their texts.
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
        let text = comparison(table)?;
        self.shows_all_digits()?;
        let db = Arc::clone(&self.engine.db);
        let options = self.options();
        for attempt in 1.. {
            let typed = self.query_of_refresh(table, &text)?;
            let typed = numbered(&typed)?;
            let catalog = self.transaction.catalog(&db);
            let mut stream = match self.start_analytical(&typed, &catalog, &[]).await {
                Err(error) if error.stale_plan && attempt < ATTEMPTS_MAX => continue,
                stream => stream?,
            };
            let mut found = Differences::default();
            let (mut gone, mut twice) = (HashSet::new(), HashSet::new());
            loop {
                let next = stream.next_values(BATCH_ROWS);
                let batch = db.interruptible(&options, next).await??;
                if batch.is_empty() {
                    return Ok(found);
                }
                for mut row in batch {
                    let new = row.split_off(COMPARED);
                    let [number, is_new, repeated] = row.as_slice() else {
                        return Err(SqlError::internal("a comparison without its columns"));
                    };
                    charge.grow(bytes_of(&row) + bytes_of(&new))?;
                    if let Value::Text(repeated) = repeated
                        && !twice.insert((repeated.clone(), number.clone()))
                    {
                        return Err(repeated_row(table, repeated));
                    }
                    if let Value::BigInt(number) = number
                        && gone.insert(*number)
                    {
                        found.gone.push(vec![Value::BigInt(*number)]);
                    }
                    if *is_new != Value::Null {
                        found.come.push(new);
                    }
                }
            }
        }
        Err(SqlError::internal("a query that is always stale"))
    }
}

/// The columns of a comparison before those of the new row: the number of the old row, whether
/// there is a new one, and the new one as a text where its key comes twice.
const COMPARED: usize = 3;

/// The query that finds the old rows and the new ones that are not the same. They are
/// matched by a unique key. A row with a NULL in it is matched by none, so it is always put anew.
/// Memory holds the keys of all old rows and digests of their texts, which tell what is equal and
/// looks different, too.
fn comparison(table: &Table) -> Result<String> {
    let name = |column: &usize| quote_ident(&table.columns[*column].name);
    let key = unique_key(table).ok_or_else(|| SqlError::internal("a view without its key"))?;
    let key: Vec<String> = key.iter().map(name).collect();
    let columns: Vec<String> = table.live().iter().map(name).collect();
    let matched = key.iter().map(|key| format!("o.{key} = n.{key}"));
    let matched: Vec<String> = matched.collect();
    let is_whole = |all: &[String]| {
        let all = all.iter().map(|name| format!("n.{name} IS NOT NULL"));
        all.collect::<Vec<_>>().join(" AND ")
    };
    let new: Vec<String> = columns.iter().map(|name| format!("n.{name}")).collect();
    let digest = format!(
        "sha256(convert_to(ROW({})::text, 'UTF8')) AS \"(digest)\"",
        columns.join(", ")
    );
    Ok(format!(
        "SELECT o.\"(number)\", n.\"(count)\", \
         CASE WHEN n.\"(count)\" > 1 AND {all_whole} THEN ROW({new})::text END, {new} \
         FROM (SELECT ctid AS \"(number)\", {key}, {digest} FROM {schema}.{view}) AS o \
         FULL JOIN \
         (SELECT *, count(*) OVER (PARTITION BY {key}) AS \"(count)\", {digest} FROM {fresh}) AS n \
         ON {matched} \
         WHERE o.\"(digest)\" IS DISTINCT FROM n.\"(digest)\" \
         OR n.\"(count)\" > 1 AND {key_whole}",
        all_whole = is_whole(&columns),
        key_whole = is_whole(&key),
        new = new.join(", "),
        schema = quote_ident(&table.schema),
        view = quote_ident(&table.name),
        key = key.join(", "),
        fresh = quote_ident(FRESH),
        matched = matched.join(" AND "),
    ))
}

/// The comparison with the number of the old row as a number, which its `ctid` is.
fn numbered(typed: &TypedQuery) -> Result<Arc<TypedQuery>> {
    let mut query = typed.query.clone();
    let first = query.targets.first_mut();
    let first = first.ok_or_else(|| SqlError::internal("a comparison of nothing"))?;
    let place = ExprKind::Relabel(Box::new(first.expr.clone()));
    first.expr = Expr::new(place, ids::INT8, -1);
    Ok(Arc::new(typed.with_query(query)))
}

/// A key that comes twice as PostgreSQL tells it, which builds the indexes when the rows are there.
#[cold]
fn while_building(mut error: SqlError) -> SqlError {
    if let ("23505", Some(index)) = (error.sqlstate, error.constraint.clone()) {
        error.message = format!("could not create unique index \"{index}\"");
        let told = error.detail.take();
        error.detail = told.map(|detail| detail.replace("already exists", "is duplicated"));
    }
    error
}

/// 21000 for a new row that comes twice.
#[cold]
fn repeated_row(table: &Table, row: &str) -> SqlError {
    let message = format!(
        "new data for materialized view \"{}\" contains duplicate rows without any null columns",
        table.name
    );
    SqlError::new("21000", message).with_detail(format!("Row: {row}"))
}
