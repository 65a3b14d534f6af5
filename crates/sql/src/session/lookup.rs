//! The way from a statement to its plan: the one it was last given, or a new one by whom it is
//! for. A query that reads no users' table is analysed by PostgreSQL's rules, and so is one that
//! the short path declines; the binder has what the short path runs over tables.

use std::sync::Arc;

use pg_raw_parse::Node;
use sqlparser::ast;
use thermocline_engine::{Catalog, Database};
use thermocline_query::parse::{Parsed, parse};

use super::context::SessionContext;
use super::current_of::Standing;
use super::prepared::{Binding, PlanSettings, Planned, Prepared, Sizes, bind_query, declared_oids};
use crate::analysis::{self, BoundStatement, SessionFacts};
use crate::bind::{self, BindContext, Bound, Refusal};
use crate::error::{Result, SqlError};
use crate::expr::SessionInfo;
use crate::one_row;
use crate::parse::{Query, footprint};
use crate::pg_catalog;
use crate::plan::{Plan, ShortPlan};
use crate::privilege::Actor;
use crate::short;
use crate::typed;
use crate::typed::reads::{Reads, reads};

/// The trees of shorter texts are not asked room for.
const SMALL_TEXT_BYTES: u64 = 16 << 10;

/// What a statement is planned against: its session's catalog and settings.
pub(super) struct Lookup<'a> {
    pub(super) db: &'a Arc<Database>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) context: &'a SessionContext,
}

/// A query and its text.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) text: &'a str,
    /// The numbers of the types that the client declared for the parameters.
    pub(super) declared: &'a [u32],
}

impl Lookup<'_> {
    /// The plan that still holds, or a new one to be kept.
    pub(super) fn plan(&self, prepared: &Prepared, query: &Query) -> Result<Arc<Planned>> {
        let settings = self.context.settings(|settings| PlanSettings::of(settings));
        if let Some(planned) = prepared.current_plan(self.db, &self.catalog, &settings) {
            return Ok(planned);
        }
        let place = Place {
            text: &prepared.text,
            declared: &prepared.declared,
        };
        let planned = match self.planned(place, query, &settings) {
            // A text may have a secret that is not kept, or statements of ours beside.
            Err(error) if error.sqlstate == "42601" => {
                let text = query.to_string();
                let own = Place {
                    text: &text,
                    ..place
                };
                self.planned(own, query, &settings).map_err(|_| error)?
            }
            planned => planned?,
        };
        prepared.keep(planned)
    }

    /// A new plan.
    pub(super) fn planned(
        &self,
        place: Place<'_>,
        query: &Query,
        settings: &PlanSettings,
    ) -> Result<Planned> {
        let whole = |bound| self.whole(bound, place.declared, settings.clone());
        let tree = match query {
            Query::Tree(tree) => tree,
            Query::Text(_) => {
                let reason = "only PostgreSQL's grammar reads it";
                return self.statement(place, None, settings, reason.to_owned());
            }
            Query::Change(change) => {
                return self.statement(place, change.take_tree(), settings, String::new());
            }
        };
        let reads = match tree.as_ref() {
            ast::Statement::Query(inner) if bind::is_pure(tree) => Some(reads(
                inner,
                &self.catalog,
                &settings.search_path,
                &pg_catalog::is_relation,
            )),
            _ => None,
        };
        let mut refused = None;
        match reads {
            Some(Reads::Tables) if settings.analytical_only => {
                let reason = "thermocline.path is analytical";
                return self.analytical(place, reason.to_owned()).map(whole);
            }
            Some(reads @ (Reads::Nothing | Reads::Catalogs)) => {
                match self.without_tables(place, reads, settings) {
                    Ok(bound) => return Ok(whole(bound)),
                    // What is not known there may be known to the binder.
                    Err(error) if matches!(error.sqlstate, "0A000" | "42883" | "53200") => {
                        refused = Some(error);
                    }
                    Err(error) => return Err(error),
                }
            }
            Some(Reads::Tables) | None => {}
        }
        let binding = Binding {
            db: self.db,
            catalog: &self.catalog,
            settings,
        };
        let bound = bind_query(tree, place.text, place.declared, &binding);
        let refusal = match bound {
            Ok(planned) => return Ok(planned),
            Err(refusal) => refusal,
        };
        if reads.is_none() {
            let reason = match refusal {
                Refusal::Declined { reason, .. } => reason,
                Refusal::Error(_) => "a row lock".to_owned(),
            };
            return self.statement(place, None, settings, reason);
        }
        match (refused, refusal) {
            (Some(refused), Refusal::Declined { .. }) => Err(refused),
            // Both say so: the analysis in PostgreSQL's words.
            (Some(refused), Refusal::Error(error)) => Err(match error.sqlstate {
                "42883" => refused,
                _ => *error,
            }),
            // What the short path takes for an error need not be one.
            (None, Refusal::Error(error)) => {
                let reason = "the short path does not know it";
                match self.analytical(place, reason.to_owned()) {
                    Ok(bound) => Ok(whole(bound)),
                    Err(told) if told.sqlstate == "0A000" => Err(*error),
                    Err(told) => Err(told),
                }
            }
            (None, Refusal::Declined { reason, .. }) => self.analytical(place, reason).map(whole),
        }
    }

    /// A query that reads no users' table.
    fn without_tables(
        &self,
        place: Place<'_>,
        reads: Reads,
        settings: &PlanSettings,
    ) -> Result<Bound> {
        let parsed = self.parsed(place)?;
        let query = query_of(&parsed)?;
        let version = self.catalog.version;
        let (context, now_us) = (self.context, self.context.transaction_us());
        if let (Reads::Nothing, false) = (reads, settings.analytical_only)
            && let Some(typed) = one_row::bind(
                query,
                place.text,
                place.declared,
                context,
                (now_us, &settings.styles),
            )
        {
            let plan = |typed| Plan::Short(ShortPlan::OneRow(typed));
            return typed.map(|typed| typed.bound(version, plan));
        }
        let reason = match reads {
            Reads::Nothing => "it reads no table",
            _ => "it reads system catalogs",
        };
        self.analysed(query, place, reason.to_owned())
    }

    /// The tree of a cursor's query, if it is one to stand on.
    pub(super) fn standing(&self, place: Place<'_>) -> Option<Standing> {
        let parsed = self.parsed(place).ok()?;
        let bound = self.bound(query_of(&parsed).ok()?, place).ok()?;
        Standing::of(&bound.into_query().ok()?)
    }

    /// The plan of a statement by PostgreSQL's grammar and rules; `reason` is why the short path
    /// does not run it, if it only reads.
    fn statement(
        &self,
        place: Place<'_>,
        parsed: Option<Parsed>,
        settings: &PlanSettings,
        reason: String,
    ) -> Result<Planned> {
        let (declared, catalog) = (place.declared, &self.catalog);
        let parsed = parsed.map_or_else(|| self.parsed(place), Ok)?;
        let bound = self.bound(query_of(&parsed)?, place)?;
        drop(parsed);
        let BoundStatement {
            analyzed, tables, ..
        } = match bound.into_reading() {
            Ok(typed) => {
                let plan = |typed| Plan::Analytical { reason, typed };
                let bound = typed.bound(catalog.version, plan);
                return Ok(self.whole(bound, declared, settings.clone()));
            }
            Err(statement) => statement,
        };
        let oids = declared_oids(&analyzed.parameters, declared);
        let actor = Actor::named(&settings.role, catalog)?;
        let sizes = Sizes::of(self.db);
        let context = BindContext {
            actor: Some(&actor),
            row_estimate: Some(&|table| sizes.of_table(table)),
            ..BindContext::new(catalog, &settings.search_path).styled(&settings.styles)
        };
        let bound = short::statement(analyzed, &tables, &context)?;
        let mut planned = self.whole(bound, declared, settings.clone());
        planned.parameter_oids = oids;
        planned.sizes = sizes.taken();
        Ok(planned)
    }

    /// A query for the analytical side.
    pub(super) fn analytical(&self, place: Place<'_>, reason: String) -> Result<Bound> {
        let parsed = self.parsed(place)?;
        let query = query_of(&parsed)?;
        self.analysed(query, place, reason)
    }

    fn bound(
        &self,
        statement: Node<'_>,
        Place { text, declared }: Place<'_>,
    ) -> Result<BoundStatement> {
        let facts = facts(self.context)?;
        analysis::bind_statement(statement, text, declared, &self.catalog, self.db, facts)
    }

    /// A query for the analytical side, which would lock nothing.
    fn analysed(&self, statement: Node<'_>, place: Place<'_>, reason: String) -> Result<Bound> {
        let Ok(typed) = self.bound(statement, place)?.into_reading() else {
            return Err(SqlError::unsupported(
                "a query that locks or changes rows is not for the analytical path",
            ));
        };
        let plan = |typed| Plan::Analytical { reason, typed };
        Ok(typed.bound(self.catalog.version, plan))
    }

    /// The tree of a text, by PostgreSQL's grammar.
    fn parsed(&self, Place { text, .. }: Place<'_>) -> Result<Parsed> {
        let bytes = text.len() as u64;
        if bytes > SMALL_TEXT_BYTES {
            self.context.room_for_value(footprint(text))?;
        }
        parse(text).map_err(|error| typed::positioned(error, text))
    }

    /// What is kept of a query that was bound whole.
    pub(super) fn whole(&self, bound: Bound, declared: &[u32], settings: PlanSettings) -> Planned {
        let oids = bound
            .plan
            .typed()
            .map_or(&[][..], |typed| &typed.parameters);
        Planned {
            parameter_oids: declared_oids(oids, declared),
            parameters: bound.parameters.clone(),
            columns: bound.columns.clone().map(Arc::from),
            catalog: Arc::clone(&self.catalog),
            settings,
            sizes: Vec::new(),
            bound,
        }
    }
}

fn query_of(parsed: &Parsed) -> Result<Node<'_>> {
    typed::query_of(parsed).ok_or_else(|| SqlError::internal("a text without its statement"))
}

/// What analysis may know of the session.
fn facts(context: &SessionContext) -> Result<SessionFacts> {
    let (search_path, creation_path, styles) = context.settings(|settings| {
        (
            settings.search_path(),
            settings.creation_path(),
            settings.styles(),
        )
    });
    Ok(SessionFacts {
        actor: context.actor()?,
        session_user: context.session_user(),
        database: context.database.clone(),
        search_path: search_path.to_vec(),
        creation_path: creation_path.to_vec(),
        process_id: context.process_id,
        now_us: context.transaction_us(),
        styles,
        ..SessionFacts::default()
    })
}
