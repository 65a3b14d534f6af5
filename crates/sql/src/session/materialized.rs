//! The rows of materialized views: CREATE and REFRESH run the query by the rights of the view's
//! owner, and store what it gives.
//!
//! A REFRESH puts new storage in the place of the old, so the rows come as a whole with the
//! commit. After a crash they are the old ones or the new ones. What CONCURRENTLY does is in
//! `differences.rs`.

use std::sync::Arc;

use thermocline_engine::Table;
use thermocline_values::types::DataType;

use super::analytical::AnalyticalRows;
use super::lookup::Place;
use super::{Client, Session};
use crate::analysis::FRESH;
use crate::bind::{self, BindContext};
use crate::ddl::{MADE, find_relation};
use crate::error::{Result, SqlError};
use crate::output::RowWriter;
use crate::parse::statement::{Ddl, IsolationLevel, Modes};
use crate::pg_catalog::quote_ident;
use crate::plan::{InsertTarget, Reason};
use crate::typed::TypedQuery;

/// So often a query is analysed anew because what it reads was defined anew meanwhile.
const ATTEMPTS_MAX: usize = 8;

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
        let mut stream = self.stream_of_refresh(table, &text, Ok).await?;
        let mut rows = RowWriter::kept();
        let stores = self.store_stream(&mut stream, &target, &types, &[], &mut rows);
        stores.await.map_err(while_building)
    }

    /// The rows of a query that may name [`FRESH`]. Its tree is changed before it runs.
    pub(super) async fn stream_of_refresh(
        &mut self,
        table: &Table,
        text: &str,
        change: fn(Arc<TypedQuery>) -> Result<Arc<TypedQuery>>,
    ) -> Result<AnalyticalRows> {
        for attempt in 1.. {
            let typed = change(self.query_of_refresh(table, text)?)?;
            let catalog = self.transaction.catalog(&self.engine.db);
            match self.start_analytical(&typed, &catalog, &[]).await {
                Err(error) if error.stale_plan && attempt < ATTEMPTS_MAX => {}
                stream => return stream,
            }
        }
        Err(SqlError::internal("a query that is always stale"))
    }

    /// Where rows of the view are stored, and the types of their columns.
    pub(super) fn target_of(&self, table: &Arc<Table>) -> Result<(InsertTarget, Vec<DataType>)> {
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
