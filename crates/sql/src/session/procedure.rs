//! CALL of a procedure of PL/pgSQL: it stands for a query that calls it in FROM. What it gives with
//! OUT and INOUT is one row.

use std::sync::Arc;

use thermocline_engine::FunctionDef;
use thermocline_query::types::ids;

use super::prepared::{Planned, Prepared};
use super::run::Run;
use super::{Client, Session};
use crate::error::{Result, SqlError};
use crate::messages;
use crate::output::{OutputColumn, RowWriter};
use crate::parse::statement::{Argument, Call, Statement};
use crate::parse::{self};
pub(super) use crate::pg_catalog::quote_ident;
use crate::temporary::meant;

/// How often a CALL is planned anew because of DDL beside it.
const STALE_PLANS_MAX: u32 = 5;

impl Session {
    /// The procedures of PL/pgSQL of a name.
    fn procedures_named(&self, call: &Call) -> Vec<Arc<FunctionDef>> {
        let mut named = self.functions_named(call);
        named.retain(|def| def.procedure.is_some());
        named
    }

    /// The functions and procedures in the catalog that a CALL may mean.
    pub(super) fn functions_named(&self, call: &Call) -> Vec<Arc<FunctionDef>> {
        let catalog = self.transaction.catalog(&self.engine.db);
        if catalog.functions.is_empty() {
            return Vec::new();
        }
        let path = self.context.settings(|settings| settings.search_path());
        let (schemas, name): (Vec<&str>, &String) = match call.name.as_slice() {
            [name] => (path.iter().map(String::as_str).collect(), name),
            [schema, name] | [_, schema, name] => (vec![meant(schema, &path)], name),
            _ => return Vec::new(),
        };
        let named = schemas
            .iter()
            .flat_map(|schema| catalog.functions_named(schema, name));
        named.cloned().collect()
    }

    /// Whether a CALL is of a procedure of PL/pgSQL.
    pub(super) fn calls_body(&self, call: &Call) -> bool {
        !self.procedures_named(call).is_empty()
    }

    /// The query that a CALL stands for: its arguments without those that only come back.
    fn query_of_call(&self, call: &Call, declared: &[u32]) -> Result<Prepared> {
        let given = call.arguments.len();
        let named = self.procedures_named(call);
        let fitting = |def: &Arc<FunctionDef>| -> Option<(bool, Vec<char>)> {
            Some((def.columns.is_empty(), modes_of(def, call)?))
        };
        let mut all = named.iter().filter_map(fitting);
        let shown = call.name.join(".");
        let Some(first) = all.next() else {
            let types = vec!["unknown"; given].join(", ");
            let message = format!("procedure {shown}({types}) does not exist");
            return Err(SqlError::new("42883", message).with_hint(
                "No procedure matches the given name and argument types. You might need to add \
                 explicit type casts.",
            ));
        };
        if all.any(|other| other != first) {
            let message = format!("procedure {shown} is not unique");
            return Err(SqlError::new("42725", message).with_hint(
                "Could not choose a best candidate procedure. You might need to add explicit \
                 type casts.",
            ));
        }
        let (gives_nothing, modes) = first;
        let unnamed = given - call.names.len();
        let inputs = call.arguments.iter().zip(&modes).enumerate();
        let inputs = inputs.filter(|(_, (_, mode))| **mode != 'o');
        let texts = inputs.map(|(place, (argument, _))| {
            let value = match argument {
                Argument::Parameter(number) => format!("${number}"),
                Argument::Text(text) => {
                    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
                }
                Argument::Expression(text) => format!("({text})"),
            };
            match place.checked_sub(unnamed) {
                Some(named) => format!("{} => {value}", quote_ident(&call.names[named])),
                None => value,
            }
        });
        let name: Vec<String> = call.name.iter().map(|part| quote_ident(part)).collect();
        let text = format!(
            "SELECT {}{}({})",
            if gives_nothing { "" } else { "* FROM " },
            name.join("."),
            texts.collect::<Vec<_>>().join(", ")
        );
        let mut parts = parse::parse_parts(&text)?;
        let (Some(part), true) = (parts.pop(), parts.is_empty()) else {
            return Err(SqlError::internal("a CALL that is no query"));
        };
        let prepared = Prepared::new(Arc::from(&*text), Some(part.statement), declared.to_vec());
        Ok(prepared.undescribed().of_depth(part.depth))
    }

    fn plan_call(&self, prepared: &Prepared) -> Result<Arc<Planned>> {
        let Some(Statement::Query(query)) = &prepared.statement else {
            return Err(SqlError::internal("a CALL that is no query"));
        };
        let mut lookup = self.lookup();
        lookup.is_call = true;
        let planned = lookup.plan(prepared, query).map_err(of_call)?;
        match &planned.calls {
            Some(calls) if calls.is_one() => Ok(planned),
            _ => Err(SqlError::unsupported(
                "a call of a function of PL/pgSQL within a CALL is not supported",
                "Ask for its value first.",
            )),
        }
    }

    /// What a CALL is planned as, for those who ask about it before it runs.
    pub(super) fn planned_call(&self, call: &Call, declared: &[u32]) -> Result<Arc<Planned>> {
        self.plan_call(&self.query_of_call(call, declared)?)
    }

    /// Runs a CALL.
    pub(super) async fn call_body(
        &mut self,
        call: &Call,
        run: &Run<'_>,
        client: &mut Client,
    ) -> Result<()> {
        let prepared = self.query_of_call(call, &run.prepared.declared)?;
        let Some(query) = prepared.query() else {
            return Err(SqlError::internal("a CALL that is no query"));
        };
        let may_end = !self.transaction.is_in_block();
        let mark = client.out.len();
        for attempt in 1.. {
            let planned = self.plan_call(&prepared)?;
            self.plpgsql.may_end = may_end;
            let ran = match columns_of(&planned) {
                Some(_) => self.run_query(query, &planned, run, client).await.map(drop),
                None => {
                    let mut nothing = RowWriter::values();
                    let answer = self.answer(query, &planned, run.parameters, &mut nothing);
                    let answer = answer.await.map(drop);
                    self.tell_notices(client);
                    answer
                }
            };
            self.plpgsql.may_end = false;
            match ran {
                Err(error) if error.stale_plan && attempt < STALE_PLANS_MAX => {
                    client.out.truncate(mark);
                }
                ran => {
                    ran.map_err(of_call)?;
                    break;
                }
            }
        }
        messages::command_complete(&mut client.out, "CALL");
        Ok(())
    }
}

/// How the arguments of a CALL go in and out, if the procedure takes them: those without a name in
/// its order, and what is not given has a default.
fn modes_of(def: &FunctionDef, call: &Call) -> Option<Vec<char>> {
    let parameters = def.parameters();
    let unnamed = call.arguments.len() - call.names.len();
    let mut given: Vec<usize> = (0..unnamed).collect();
    for name in &call.names {
        let place = parameters
            .iter()
            .position(|(_, of)| of.name.as_deref() == Some(name.as_str()))?;
        given.push(place);
    }
    let is_given = |place: usize| given.contains(&place);
    let rest = parameters.iter().enumerate();
    let mut rest = rest.filter(|(place, _)| !is_given(*place));
    let times = |place: &usize| given.iter().filter(|other| *other == place).count();
    if rest.any(|(_, (_, of))| of.default.is_none()) || given.iter().any(|at| times(at) > 1) {
        return None;
    }
    let mode = |place: &usize| Some(parameters.get(*place)?.0);
    given.iter().map(mode).collect()
}

/// The columns of a CALL's row; none where it gives nothing.
pub(super) fn columns_of(planned: &Planned) -> Option<Arc<[OutputColumn]>> {
    let columns = planned.columns.clone()?;
    let is_nothing = matches!(&*columns, [one] if one.type_oid == ids::VOID);
    (!is_nothing).then_some(columns)
}

/// An error whose place would be in another text.
fn of_call(mut error: SqlError) -> SqlError {
    error.position = None;
    error
}
