//! The way from a statement to its plan: the one it was last given, or a new one. It is analysed
//! once, by PostgreSQL's rules; the typed tree says who runs it.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use pg_raw_parse::Node;
use thermocline_engine::authority::Object;
use thermocline_engine::{Account, Catalog, ChargeKind, Database};
use thermocline_query::analyze::Variables;
use thermocline_query::parse::{Parsed, parse};
use thermocline_query::{change, tree};

use super::context::SessionContext;
use super::current_of::Standing;
use super::plpgsql::{CallsBefore, Scope};
use super::prepared::{PlanSettings, Planned, Prepared, Sizes, declared_oids};
use crate::analysis::{self, Around, BoundStatement, SessionFacts};
use crate::bind::{BindContext, Bound};
use crate::error::{Result, SqlError};
use crate::expr::SessionInfo;
use crate::one_row;
use crate::parse::{Query, footprint};
use crate::plan::{Plan, Reason, ShortPlan};
use crate::privilege::Actor;
use crate::short;
use crate::typed::{self, TypedQuery};

/// The trees of shorter texts are not asked room for.
const SMALL_TEXT_BYTES: u64 = 16 << 10;

/// What a statement is planned against: its session's catalog and settings.
pub(super) struct Lookup<'a> {
    pub(super) db: &'a Arc<Database>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) context: &'a SessionContext,
    /// What plans over partitions are charged to.
    pub(super) account: &'a Account,
    /// The variables of the body of PL/pgSQL that the statement stands in.
    pub(super) scope: Option<&'a Scope<'a>>,
    /// The statement is the query that a CALL stands for.
    pub(super) is_call: bool,
    /// The materialized view whose REFRESH the statement is of.
    pub(super) refreshes: Option<u32>,
    /// The statement does not run.
    pub(super) only_planned: bool,
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

    /// The plan that still holds.
    pub(super) fn current_plan(&self, prepared: &Prepared) -> Option<Arc<Planned>> {
        let settings = self.context.settings(|settings| PlanSettings::of(settings));
        prepared.current_plan(self.db, &self.catalog, &settings)
    }

    /// Whether Parse of its text would make the same: its plan still holds, and says nothing of the
    /// moment.
    pub(super) fn is_as_new(&self, prepared: &Prepared) -> bool {
        prepared.query().is_none()
            || self
                .current_plan(prepared)
                .is_some_and(|planned| !planned.of_the_moment)
    }

    /// The typed tree of a text; none if that is not all that the statement does, or if it says
    /// what the time is.
    pub(super) fn tree(&self, text: &str, declared: &[u32]) -> Result<Option<change::Statement>> {
        let place = Place { text, declared };
        let bound = self.bound(query_of(&self.parsed(place)?)?, place, true)?;
        let is_all = bound.analyzed.calls.is_empty() && !bound.of_the_moment;
        Ok(is_all.then_some(bound.analyzed.statement))
    }

    /// A new plan.
    pub(super) fn planned(
        &self,
        place: Place<'_>,
        query: &Query,
        settings: &PlanSettings,
    ) -> Result<Planned> {
        let parsed = query.take_tree().map_or_else(|| self.parsed(place), Ok)?;
        let statement = query_of(&parsed)?;
        let whole = |bound| self.whole(bound, place.declared, settings.clone());
        if !settings.analytical_only
            && let Some(typed) = one_row::bind(
                statement,
                place.text,
                place.declared,
                self.context,
                (self.context.transaction_us(), &settings.styles),
                self.variables(),
            )
        {
            let plan = |typed| Plan::Short(ShortPlan::OneRow(typed));
            return typed.map(|typed| {
                let of_the_moment = typed.of_the_moment;
                let bound = whole(typed.bound(self.catalog.version, plan));
                bound.of_the_moment(of_the_moment)
            });
        }
        let mut bound = self.bound(statement, place, true)?;
        let of_the_moment = bound.of_the_moment;
        let whole = |bound| whole(bound).of_the_moment(of_the_moment);
        let calls = std::mem::take(&mut bound.analyzed.calls);
        let calls = CallsBefore::new(calls, &bound.analyzed.parameters).map(Arc::new);
        drop(parsed);
        let actor = Actor::named(&settings.role, &self.catalog)?;
        let sizes = Sizes::of(self.db);
        let of_partitions = Mutex::new(self.account.nothing(ChargeKind::Plan));
        let charge = |bytes: u64| Ok(of_partitions.lock().grow(bytes)?);
        let context = BindContext {
            partitions: Some(&charge),
            actor: Some(&actor),
            row_estimate: Some(&|table| sizes.of_table(table)),
            ..BindContext::new(&self.catalog, &settings.search_path).styled(&settings.styles)
        };
        let (bound, oids) = match bound.into_reading() {
            Ok(typed) if calls.is_some() => {
                let is_computed = match typed.calls {
                    true => is_one_row(&typed.query),
                    false => one_row::takes(&typed.query),
                };
                let bound = match is_computed {
                    true => typed.bound(self.catalog.version, |typed| {
                        Plan::Short(ShortPlan::OneRow(typed))
                    }),
                    false => self.analytical_plan(typed, Reason::Form("it reads no table"))?,
                };
                return Ok(with_calls(whole(bound), calls));
            }
            Ok(typed) => {
                let planned = match () {
                    () if settings.analytical_only && typed.needs_turn() => Err(Reason::Setting),
                    () if typed.calls && is_one_row(&typed.query) => {
                        let plan = |typed| Plan::Short(ShortPlan::OneRow(typed));
                        return Ok(whole(typed.bound(self.catalog.version, plan)));
                    }
                    () if typed.calls => {
                        let plan = || short::calling(&typed, &context);
                        crate::stack::with_room(typed.depth, plan)?
                    }
                    () if let Some(bound) = short::behind_a_subquery(&typed, &context)? => {
                        Ok(bound)
                    }
                    () if is_analytical(&typed.query) => Err(Reason::Form("it reads no table")),
                    () => {
                        let plan = || short::reading(&typed, &context);
                        crate::stack::with_room(typed.depth, plan)?
                    }
                };
                match planned {
                    Ok(bound) => (bound, declared_oids(&typed.parameters, place.declared)),
                    Err(reason) => return self.analytical_plan(typed, reason).map(whole),
                }
            }
            Err(BoundStatement {
                analyzed, tables, ..
            }) => {
                let oids = declared_oids(&analyzed.parameters, place.declared);
                (short::statement(analyzed, &tables, &context)?, oids)
            }
        };
        let mut planned = whole(bound);
        planned.parameter_oids = oids;
        planned.of_partitions = Some(of_partitions.into_inner());
        planned.sizes = sizes.taken();
        Ok(with_calls(planned, calls))
    }

    /// The tree of a cursor's query, if it is one to stand on.
    pub(super) fn standing(&self, place: Place<'_>) -> Option<Standing> {
        let parsed = self.parsed(place).ok()?;
        let bound = self.bound(query_of(&parsed).ok()?, place, false).ok()?;
        Standing::of(&bound.into_query().ok()?)
    }

    /// A query for the analytical side.
    pub(super) fn analytical(&self, place: Place<'_>, reason: Reason) -> Result<Bound> {
        let parsed = self.parsed(place)?;
        // It would lock nothing there.
        match self.bound(query_of(&parsed)?, place, false)?.into_reading() {
            Ok(typed) => self.analytical_plan(typed, reason),
            Err(_) => Err(SqlError::unsupported(
                "a query that locks or changes rows is not supported on the analytical path",
                "SET thermocline.path = auto.",
            )),
        }
    }

    fn analytical_plan(&self, typed: TypedQuery, reason: Reason) -> Result<Bound> {
        analysis::answered(&typed.query)?;
        let plan = |typed| Plan::Analytical { reason, typed };
        Ok(typed.calling_last().bound(self.catalog.version, plan))
    }

    fn bound(
        &self,
        statement: Node<'_>,
        Place { text, declared }: Place<'_>,
        takes_calls: bool,
    ) -> Result<BoundStatement> {
        let facts = self.facts()?;
        let around = Around {
            variables: self.variables(),
            takes_calls,
            is_call: self.is_call,
            refreshes: self.refreshes,
            only_planned: self.only_planned,
            makes: None,
        };
        let (catalog, db) = (&self.catalog, self.db);
        analysis::bind_statement(statement, text, declared, (catalog, db, facts), around)
    }

    fn variables(&self) -> Option<&dyn Variables> {
        self.scope.map(|scope| scope as &dyn Variables)
    }

    /// What analysis may know of the session. Rights are those of the catalog that the statement
    /// is planned against.
    fn facts(&self) -> Result<SessionFacts> {
        let context = self.context;
        let (search_path, creation_path, styles, role) = context.settings(|settings| {
            (
                settings.search_path(),
                settings.creation_path(),
                settings.styles(),
                settings.role(),
            )
        });
        let actor = match self.refreshes {
            // Whoever refreshes a view, its owner reads.
            Some(view) => {
                let owner = self.catalog.authority.owner(&Object::Table(view));
                Actor::numbered(owner, &self.catalog)?
            }
            None => Actor::named(&role, &self.catalog)?,
        };
        Ok(SessionFacts {
            actor,
            session_user: context.session_user(),
            database: context.database.clone(),
            search_path: search_path.to_vec(),
            creation_path: creation_path.to_vec(),
            process_id: context.process_id,
            trigger_depth: context.triggers_around(),
            explains: false,
            now_us: context.transaction_us(),
            styles,
            settings: None,
            transactions: (0, 0),
            own: Arc::default(),
            sessions: None,
            numbers: None,
            calls: None,
        })
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
            description: OnceLock::new(),
            catalog: Arc::clone(&self.catalog),
            settings,
            sizes: Vec::new(),
            asked: self.scope.map(Scope::asked),
            calls: None,
            of_partitions: None,
            of_the_moment: false,
            bound,
        }
    }
}

fn query_of(parsed: &Parsed) -> Result<Node<'_>> {
    typed::query_of(parsed).ok_or_else(|| SqlError::internal("a text without its statement"))
}

/// A plan with the calls before it. Its client knows of its own parameters only.
fn with_calls(mut planned: Planned, calls: Option<Arc<CallsBefore>>) -> Planned {
    if let Some(calls) = &calls {
        planned.parameters.truncate(calls.own());
        planned.parameter_oids.truncate(calls.own());
    }
    planned.calls = calls;
    planned
}

/// Whether a query is of one row, which is computed on the spot.
fn is_one_row(query: &tree::Query) -> bool {
    query.from.is_empty() && one_row::takes(query)
}

/// Whether a query reads no table, and calls no function that is the session's alone.
fn is_analytical(query: &tree::Query) -> bool {
    cfg!(feature = "analytics") && query.from.is_empty() && analysis::answered(query).is_ok()
}
