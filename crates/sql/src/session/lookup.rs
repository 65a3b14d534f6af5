//! The way from a statement to its plan: the one it was last given, or a new one by whom it is
//! for. A query that reads no users' table is analysed by PostgreSQL's rules, and so is one that
//! the short path declines; the binder has what the short path runs over tables.

use std::sync::Arc;

use pg_raw_parse::Node;
use sqlparser::ast;
use thermocline_engine::{Catalog, Database};
use thermocline_query::parse::{Parsed, parse};
use thermocline_storage::types::DataType;

use super::context::SessionContext;
use super::current_of::Standing;
use super::prepared::{Binding, PlanSettings, Planned, Prepared, bind_query, declared_oids};
use crate::analysis::{self, SessionFacts};
use crate::bind::{self, BindContext, Bound, Refusal};
use crate::error::{Result, SqlError};
use crate::expr::SessionInfo;
use crate::one_row;
use crate::parse::Query;
use crate::pg_catalog;
use crate::plan::{After, Plan, ReadQuery, ShortPlan};
use crate::privilege::Actor;
use crate::short;
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
                return self.analytical(place, reason.to_owned()).map(whole);
            }
            Query::Change(_) => return self.change(place, settings),
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
        if !query.is_query() {
            let planned = match bound {
                Ok(planned) => self.with_query(planned, place.declared),
                Err(refusal) => Err(refusal.into()),
            };
            return planned.or_else(|error| match error.sqlstate {
                // What one analysis does not do the other may.
                "0A000" => {
                    let changed = self.change(place, settings);
                    changed.map_err(|told| match told.sqlstate {
                        // Who gives a reason says more.
                        "0A000" if told.detail.is_none() => error,
                        _ => told,
                    })
                }
                _ => Err(error),
            });
        }
        let refusal = match bound {
            Ok(planned) => return self.with_query(planned, place.declared),
            Err(refusal) => refusal,
        };
        match (refused, refusal) {
            (Some(refused), Refusal::Declined { .. }) => Err(refused),
            // Both say so: the analysis in PostgreSQL's words.
            (Some(refused), Refusal::Error(error)) => Err(match error.sqlstate {
                "42883" => refused,
                _ => *error,
            }),
            (None, Refusal::Error(error) | Refusal::Declined { error, .. }) if reads.is_none() => {
                Err(*error)
            }
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

    /// A plan with the queries analysed that find its rows, if there are any.
    fn with_query(&self, mut planned: Planned, declared: &[u32]) -> Result<Planned> {
        let Plan::Short(plan) = &planned.bound.plan else {
            return Ok(planned);
        };
        let (plan, bound, own) = match plan {
            ShortPlan::After(after) => {
                let mut after = After::clone(after);
                let mut settled = vec![0; after.own_parameters];
                for before in &mut after.before {
                    if let Some((plan, _)) = self.analysed_plan(&before.plan, &mut settled)? {
                        before.plan = plan;
                    }
                }
                let bound = match self.analysed_plan(&after.plan, &mut settled)? {
                    Some((plan, bound)) => {
                        after.plan = plan;
                        bound
                    }
                    None => planned.bound.clone(),
                };
                let own = after.own_parameters;
                (ShortPlan::After(Arc::new(after)), bound, own)
            }
            plan => match self.analysed_plan(plan, &mut Vec::new())? {
                Some((plan, bound)) => (plan, bound, usize::MAX),
                None => return Ok(planned),
            },
        };
        let Bound {
            mut parameters,
            columns,
            ..
        } = bound;
        parameters.truncate(own);
        let typed = plan.read_query().and_then(|query| query.typed.as_ref());
        let of = |types: &[DataType]| types.iter().map(DataType::oid).collect();
        let mut oids = typed.map_or_else(|| of(&parameters), |typed| typed.parameters.clone());
        oids.truncate(own);
        planned.parameter_oids = declared_oids(&oids, declared);
        planned.parameters.clone_from(&parameters);
        planned.bound.parameters = parameters;
        if let Some(read) = plan.locking_read() {
            let mut columns = columns.unwrap_or_default();
            columns.truncate(columns.len().saturating_sub(read.key_columns()));
            planned.columns = Some(columns.clone().into());
            planned.bound.columns = Some(columns);
        }
        planned.bound.plan = Plan::Short(plan);
        Ok(planned)
    }

    /// A plan with its query analysed, and what that was bound to; `None` for one without.
    /// The types of the statement's own parameters are `settled` one by one, where several
    /// queries mention them.
    fn analysed_plan(
        &self,
        plan: &ShortPlan,
        settled: &mut [u32],
    ) -> Result<Option<(ShortPlan, Bound)>> {
        let Some(query) = plan.read_query() else {
            return Ok(None);
        };
        let mut declared = query.declared.clone();
        if !settled.is_empty() {
            let mentioned = bind::mentioned_parameters(&query.text);
            for (at, oid) in settled.iter().enumerate() {
                match declared.get_mut(at) {
                    Some(declared) if *declared == 0 && *oid != 0 => *declared = *oid,
                    // What it is does not matter here.
                    Some(declared) if *declared == 0 && !mentioned.contains(&(at + 1)) => {
                        *declared = DataType::Text.oid();
                    }
                    _ => {}
                }
            }
        }
        let place = Place {
            text: &query.text,
            declared: &declared,
        };
        let bound = self
            .analytical(place, query.reason.clone())
            .map_err(|mut error| {
                // Its place is in the query's own text.
                error.position = None;
                error
            })?;
        let Some(typed) = bound.plan.typed().cloned() else {
            return Err(SqlError::internal("a query without its tree"));
        };
        bind::assignable(&typed.output_columns(), &plan.read_targets())?;
        for (at, settled) in settled.iter_mut().enumerate() {
            let was_told = query.declared.get(at).is_some_and(|oid| *oid != 0);
            let told = typed.parameters.get(at).copied().unwrap_or_default();
            if was_told || bind::mentioned_parameters(&query.text).contains(&(at + 1)) {
                *settled = told;
            }
        }
        let query = ReadQuery {
            typed: Some(typed),
            ..query.clone()
        };
        Ok(Some((plan.with_read_query(query), bound)))
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
        let bound = self.analytical(place, String::new()).ok()?;
        Standing::of(bound.plan.typed()?)
    }

    /// The plan of a change of rows, by PostgreSQL's grammar and rules.
    fn change(&self, place: Place<'_>, settings: &PlanSettings) -> Result<Planned> {
        let parsed = self.parsed(place)?;
        let statement = query_of(&parsed)?;
        let Place { text, declared } = place;
        let facts = facts(self.context)?;
        let (analyzed, tables) =
            analysis::bind_change(statement, text, declared, &self.catalog, self.db, facts)?;
        let oids = declared_oids(&analyzed.parameters, declared);
        let actor = Actor::named(&settings.role, &self.catalog)?;
        let context = BindContext {
            actor: Some(&actor),
            ..BindContext::new(&self.catalog, &settings.search_path).styled(&settings.styles)
        };
        let bound = short::change(analyzed, &tables, &context)?;
        let mut planned = self.whole(bound, declared, settings.clone());
        planned.parameter_oids = oids;
        Ok(planned)
    }

    /// A query for the analytical side.
    pub(super) fn analytical(&self, place: Place<'_>, reason: String) -> Result<Bound> {
        let parsed = self.parsed(place)?;
        let query = query_of(&parsed)?;
        self.analysed(query, place, reason)
    }

    fn analysed(
        &self,
        statement: Node<'_>,
        Place { text, declared, .. }: Place<'_>,
        reason: String,
    ) -> Result<Bound> {
        let facts = facts(self.context)?;
        let typed = analysis::bind(statement, text, declared, &self.catalog, self.db, facts)?;
        let plan = |typed| Plan::Analytical { reason, typed };
        Ok(typed.bound(self.catalog.version, plan))
    }

    /// The tree of a text, by PostgreSQL's grammar.
    fn parsed(&self, Place { text, .. }: Place<'_>) -> Result<Parsed> {
        let bytes = text.len() as u64;
        if bytes > SMALL_TEXT_BYTES {
            self.context.room_for_value(bytes * TREE_BYTES_A_BYTE)?;
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
