//! Functions about sessions: what others do, who waits for whom, stopping them and telling them.

use thermocline_values::value::Value;

use crate::error::Result;
use crate::pg_catalog::SystemSession;
use crate::pg_catalog::content;
use crate::pg_catalog::datum::Datum;
use crate::session::{SessionContext, Signal};

/// Calls one of them.
pub(super) fn call(function: &str, session: &SystemSession, values: &[Datum]) -> Result<Datum> {
    let facts = &session.facts;
    let own = || facts.sessions.as_ref()?.find(facts.process_id);
    let client = || own().and_then(|own| own.client_address());
    if let "pg_listening_channels" | "pg_notification_queue_usage" | "pg_notify" = function {
        return own().map_or(Ok(Datum::Null), |own| notification(function, &own, values));
    }
    let Some(first) = values.first() else {
        return Ok(match (function, client()) {
            ("inet_client_addr", Some(client)) => {
                Datum::text(client.ip().to_canonical().to_string())
            }
            ("inet_client_port", Some(client)) => Datum::Int(i64::from(client.port())),
            _ => Datum::Null,
        });
    };
    let (Some(process_id), false) = (first.as_int(), values.iter().any(Datum::is_null)) else {
        return Ok(Datum::Null);
    };
    let blockers = || content::blockers(session, process_id);
    Ok(match function {
        "pg_blocking_pids" | "pg_safe_snapshot_blocking_pids" => {
            Datum::array(blockers().into_iter().map(Datum::Int))
        }
        "pg_isolation_test_session_is_blocked" => {
            let among = values.get(1).and_then(Datum::as_array).unwrap_or_default();
            let interesting =
                |blocker: &i64| among.iter().any(|one| one.as_int() == Some(*blocker));
            Datum::Bool(blockers().iter().any(interesting))
        }
        "pg_cancel_backend" | "pg_terminate_backend" => {
            let signal = match function {
                "pg_cancel_backend" => Signal::Cancel,
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

/// What the session listens to, and what it tells others.
fn notification(function: &str, own: &SessionContext, values: &[Datum]) -> Result<Datum> {
    let text = |at: usize| values.get(at).and_then(Datum::as_text).unwrap_or_default();
    Ok(match function {
        "pg_listening_channels" => {
            Datum::array(own.listening_channels().into_iter().map(Datum::text))
        }
        "pg_notification_queue_usage" => Datum::Scalar(Value::Double(own.notification_usage())),
        _ => {
            own.notify(text(0), text(1))?;
            Datum::text("")
        }
    })
}
