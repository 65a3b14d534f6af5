//! Functions that look at sessions and stop them.

use super::Function;
use crate::error::Result;
use crate::pg_catalog::SystemSession;
use crate::pg_catalog::datum::Datum;
use crate::session::Signal;

/// Calls one of them.
pub(super) fn call(
    function: Function,
    session: &SystemSession<'_>,
    values: &[Datum],
) -> Result<Datum> {
    let facts = session.facts;
    let own = || facts.sessions.as_ref()?.find(facts.process_id);
    let client = || own().and_then(|own| own.client_address());
    let Some(first) = values.first() else {
        return Ok(match (function, client()) {
            (Function::ClientAddress, Some(client)) => {
                Datum::text(client.ip().to_canonical().to_string())
            }
            (Function::ClientPort, Some(client)) => Datum::Int(i64::from(client.port())),
            _ => Datum::Null,
        });
    };
    let (Some(process_id), false) = (first.as_int(), values.iter().any(Datum::is_null)) else {
        return Ok(Datum::Null);
    };
    let blockers = || super::super::super::content::blockers(session, process_id);
    Ok(match function {
        Function::BlockingPids => Datum::array(blockers().into_iter().map(Datum::Int)),
        Function::IsBlocked => {
            let among = values.get(1).and_then(Datum::as_array).unwrap_or_default();
            let interesting =
                |blocker: &i64| among.iter().any(|one| one.as_int() == Some(*blocker));
            Datum::Bool(blockers().iter().any(interesting))
        }
        Function::CancelBackend | Function::TerminateBackend => {
            let signal = match function {
                Function::CancelBackend => Signal::Cancel,
                _ => Signal::Terminate(values.get(1).and_then(Datum::as_int).unwrap_or(0)),
            };
            // No session has a number beyond an integer's.
            let process_id = i32::try_from(process_id).unwrap_or(0);
            match own() {
                Some(own) => Datum::Bool(own.signal(&facts.actor, process_id, signal)?),
                None => Datum::Null,
            }
        }
        _ => Datum::Null,
    })
}
