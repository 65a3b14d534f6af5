//! The way from a statement to its plan: the one it was last given, or a new one by whom it is
//! for. A query that reads no users' table is analysed by PostgreSQL's rules; the binder has the
//! others.

use std::sync::Arc;

use pg_raw_parse::Node;
use sqlparser::ast;
use thermocline_engine::{Catalog, Database};
use thermocline_query::parse::parse;

use super::context::SessionContext;
use super::prepared::{Planned, Prepared, declared_oids};
#[cfg(feature = "analytics")]
use crate::analytics::SessionFacts;
use crate::bind::{self, Bound};
use crate::error::Result;
use crate::expr::SessionInfo;
use crate::one_row;
#[cfg(feature = "analytics")]
use crate::pg_catalog;
use crate::plan::{Plan, ShortPlan};
use crate::typed;
use crate::typed::reads::{Reads, reads};

/// The trees of shorter texts are not asked room for.
const SMALL_TEXT_BYTES: u64 = 16 << 10;
/// What a tree takes at most for a byte of its text.
const TREE_BYTES_A_BYTE: u64 = 100;

/// What a statement is planned against: its session's catalog and settings.
pub(super) struct Lookup<'a> {
    pub(super) db: &'a Arc<Database>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) context: &'a SessionContext,
}

impl Lookup<'_> {
    /// The plan that still holds, or a new one to be described and kept.
    pub(super) fn plan(&self, prepared: &Prepared, query: &ast::Statement) -> Result<Found> {
        let (search_path, role, analytical_only) = self.context.settings(|settings| {
            (
                settings.search_path(),
                settings.role(),
                settings.analytical_only(),
            )
        });
        if let Some(planned) =
            prepared.current_plan(self.db, &self.catalog, &search_path, &role, analytical_only)
        {
            return Ok(Found::Kept(planned));
        }
        if let Some(bound) = self.typed(
            (&prepared.text, prepared.place),
            query,
            &prepared.declared,
            &search_path,
            analytical_only,
        ) {
            let planned = self.planned(
                bound?,
                &prepared.declared,
                search_path,
                role,
                analytical_only,
            );
            return prepared.keep(planned).map(Found::Kept);
        }
        let planned = prepared.bind(
            query,
            self.db,
            &self.catalog,
            &search_path,
            &role,
            analytical_only,
        )?;
        match planned.bound.plan {
            Plan::Short(_) => prepared.keep(planned).map(Found::Kept),
            Plan::Analytical { .. } => Ok(Found::Undescribed(Box::new(planned))),
        }
    }

    /// The query at a place of a text, analysed by PostgreSQL's rules, if it reads no users' table.
    pub(super) fn typed(
        &self,
        (text, place): (&str, usize),
        statement: &ast::Statement,
        declared: &[u32],
        search_path: &[String],
        analytical_only: bool,
    ) -> Option<Result<Bound>> {
        let ast::Statement::Query(query) = statement else {
            return None;
        };
        let reads = reads(query, &self.catalog, search_path, &is_system);
        if reads == Reads::Tables || !bind::is_pure(statement) {
            return None;
        }
        let bytes = text.len() as u64;
        // Without room for the tree of a long text it is the binder's, whose trees are smaller.
        if bytes > SMALL_TEXT_BYTES
            && self
                .context
                .room_for_value(bytes * TREE_BYTES_A_BYTE)
                .is_err()
        {
            return None;
        }
        let parsed = parse(text).ok()?;
        let query = typed::query_at(&parsed, place)?;
        let version = self.catalog.version;
        let (context, now_us) = (self.context, self.context.transaction_us());
        if let (Reads::Nothing { .. }, false) = (reads, analytical_only)
            && let Some(typed) = one_row::bind(query, text, declared, context, now_us)
        {
            let plan = |typed| Plan::Short(ShortPlan::OneRow(typed));
            return Some(typed.map(|typed| typed.bound(version, plan)));
        }
        self.of_catalogs(query, text, declared, reads)
    }

    #[cfg(feature = "analytics")]
    fn of_catalogs(
        &self,
        statement: Node<'_>,
        text: &str,
        declared: &[u32],
        reads: Reads,
    ) -> Option<Result<Bound>> {
        // Whoever makes long series wants operators that put rows aside.
        if reads == (Reads::Nothing { series: true }) {
            return None;
        }
        let facts = match facts(self.context) {
            Ok(facts) => facts,
            Err(error) => return Some(Err(error)),
        };
        let typed = pg_catalog::bind(statement, text, declared, &self.catalog, self.db, facts)?;
        let plan = |typed| Plan::Analytical {
            reason: match reads {
                Reads::Nothing { .. } => "it reads no table".to_owned(),
                _ => "it reads system catalogs".to_owned(),
            },
            typed: Some(typed),
        };
        Some(typed.map(|typed| typed.bound(self.catalog.version, plan)))
    }

    #[cfg(not(feature = "analytics"))]
    fn of_catalogs(&self, _: Node<'_>, _: &str, _: &[u32], _: Reads) -> Option<Result<Bound>> {
        None
    }

    /// What is kept of a query that was bound whole.
    pub(super) fn planned(
        &self,
        bound: Bound,
        declared: &[u32],
        search_path: Arc<[String]>,
        role: Arc<str>,
        analytical_only: bool,
    ) -> Planned {
        let oids = bound
            .plan
            .typed()
            .map_or(&[][..], |typed| &typed.parameters);
        Planned {
            parameter_oids: declared_oids(oids, declared),
            parameters: bound.parameters.clone(),
            columns: bound.columns.clone().map(Arc::from),
            catalog: Arc::clone(&self.catalog),
            search_path,
            role,
            analytical_only,
            sizes: Vec::new(),
            bound,
        }
    }
}

/// Whether there is a relation of the system of this name.
fn is_system(schema: Option<&str>, name: &str) -> bool {
    #[cfg(feature = "analytics")]
    return pg_catalog::is_relation(schema, name);
    #[cfg(not(feature = "analytics"))]
    {
        let _ = (schema, name);
        false
    }
}

/// See [`Lookup::plan`].
pub(super) enum Found {
    Kept(Arc<Planned>),
    Undescribed(Box<Planned>),
}

/// What analysis may know of the session.
#[cfg(feature = "analytics")]
fn facts(context: &SessionContext) -> Result<SessionFacts> {
    let search_path = context.settings(|settings| settings.search_path());
    Ok(SessionFacts {
        actor: context.actor()?,
        session_user: context.session_user(),
        database: context.database.clone(),
        search_path: search_path.to_vec(),
        process_id: context.process_id,
        now_us: context.transaction_us(),
        ..SessionFacts::default()
    })
}
