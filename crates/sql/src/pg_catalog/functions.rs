//! Functions that look into the catalog or ask the session, by the names under which
//! `thermocline_query` asks for them. The texts of types shown by name are among them.

mod definitions;
mod privileges;
mod quoting;
mod sessions;
mod settings;
mod shown;
mod signatures;
mod triggers;
mod view;

pub(crate) use definitions::{
    action_name, index as index_definition, index_expressions, index_predicate,
};
pub(crate) use quoting::quote_ident;
pub(crate) use shown::{default_shown, shown};
pub(crate) use signatures::outputs;
pub(crate) use triggers::{trigger_action, trigger_condition};
pub(crate) use view::view_definition;

use thermocline_engine::TablespaceReport;
use thermocline_values::value::Value;

use super::content;
use super::datum::Datum;
use super::environment::SystemEnvironment;
use super::session::{Names, parts};
use super::written_bound;
use crate::ddl::is_operation;
use crate::error::{Result, SqlError};

/// The functions that are answered here, of those that `thermocline_query` leaves to the server.
const ANSWERED: [&str; 90] = [
    "acldefault",
    "col_description",
    "current_database",
    "current_schema",
    "current_schemas",
    "current_setting",
    "current_user",
    "format_type",
    "has_any_column_privilege",
    "has_column_privilege",
    "has_database_privilege",
    "has_function_privilege",
    "has_language_privilege",
    "has_parameter_privilege",
    "has_schema_privilege",
    "has_sequence_privilege",
    "has_table_privilege",
    "has_tablespace_privilege",
    "has_type_privilege",
    "inet_client_addr",
    "inet_client_port",
    "inet_server_addr",
    "obj_description",
    "pg_backend_pid",
    "pg_blocking_pids",
    "pg_cancel_backend",
    "pg_collation_is_visible",
    "pg_conf_load_time",
    "pg_conversion_is_visible",
    "pg_current_xact_id",
    "pg_database_size",
    "pg_function_is_visible",
    "pg_get_constraintdef",
    "pg_get_expr",
    "pg_get_function_arguments",
    "pg_get_function_identity_arguments",
    "pg_get_function_result",
    "pg_get_function_sqlbody",
    "pg_get_functiondef",
    "pg_get_indexdef",
    "pg_get_partition_constraintdef",
    "pg_get_partkeydef",
    "pg_get_ruledef",
    "pg_get_serial_sequence",
    "pg_get_statisticsobjdef",
    "pg_get_statisticsobjdef_columns",
    "pg_get_triggerdef",
    "pg_get_userbyid",
    "pg_get_viewdef",
    "pg_has_role",
    "pg_indexes_size",
    "pg_is_in_recovery",
    "pg_is_other_temp_schema",
    "pg_isolation_test_session_is_blocked",
    "pg_listening_channels",
    "pg_my_temp_schema",
    "pg_notification_queue_usage",
    "pg_notify",
    "pg_opclass_is_visible",
    "pg_operator_is_visible",
    "pg_opfamily_is_visible",
    "pg_options_to_table",
    "pg_partition_ancestors",
    "pg_partition_root",
    "pg_postmaster_start_time",
    "pg_relation_is_publishable",
    "pg_relation_size",
    "pg_safe_snapshot_blocking_pids",
    "pg_sequence_last_value",
    "pg_table_is_visible",
    "pg_table_size",
    "pg_tablespace_location",
    "pg_tablespace_size",
    "pg_terminate_backend",
    "pg_total_relation_size",
    "pg_trigger_depth",
    "pg_ts_config_is_visible",
    "pg_type_is_visible",
    "session_user",
    "set_config",
    "shobj_description",
    "thermocline_sequence_is_called",
    "thermocline_sequence_value",
    "to_regclass",
    "to_regnamespace",
    "to_regproc",
    "to_regrole",
    "to_regtype",
    "txid_current",
    "version",
];

/// Whether a function of this name is answered here.
pub(crate) fn is_answered(name: &str) -> bool {
    ANSWERED.binary_search(&name).is_ok()
}

/// The value of a function; 0A000 for one that is not answered here.
pub(super) fn call(name: &str, values: &[Datum], run: &SystemEnvironment) -> Result<Datum> {
    let session = run.session();
    let facts = &session.facts;
    let text = |at: usize| values.get(at).and_then(Datum::as_text);
    let int = |at: usize| values.get(at).and_then(Datum::as_int);
    let oid = |at: usize| values.get(at).and_then(Datum::as_oid);
    let named = |found: Option<String>| found.map_or(Datum::Null, Datum::text);
    let numbered = |found: Option<u32>| found.map_or(Datum::Null, Datum::oid);
    let absent = |sqlstate, what: &str| {
        let name = text(0).unwrap_or_default();
        Err(SqlError::new(
            sqlstate,
            format!("{what} \"{name}\" does not exist"),
        ))
    };
    Ok(match name {
        "version" => Datum::text(crate::session::version()),
        "current_schema" => {
            let listed = facts.creation_path.iter();
            let first = listed
                .clone()
                .find(|name| session.schema_oid(name).is_some());
            first.map_or(Datum::Null, Datum::text)
        }
        "current_schemas" => settings::current_schemas(session, values),
        "current_database" => Datum::text(&facts.database),
        "current_user" => Datum::text(facts.actor.name()),
        "session_user" => Datum::text(&facts.session_user),
        "current_setting" => settings::current_setting(run, values)?,
        "set_config" => settings::set_config(run, values)?,
        "pg_backend_pid" => Datum::Int(i64::from(facts.process_id)),
        "pg_trigger_depth" => Datum::Int(i64::from(facts.trigger_depth)),
        "pg_cancel_backend"
        | "pg_terminate_backend"
        | "pg_blocking_pids"
        | "pg_safe_snapshot_blocking_pids"
        | "pg_isolation_test_session_is_blocked"
        | "pg_listening_channels"
        | "pg_notification_queue_usage"
        | "pg_notify"
        | "inet_client_addr"
        | "inet_client_port" => sessions::call(name, session, values)?,
        "pg_postmaster_start_time" | "pg_conf_load_time" => {
            Datum::Scalar(Value::TimestampTz(facts.now_us))
        }
        "pg_get_userbyid" => match oid(0) {
            None => Datum::Null,
            Some(oid) => Datum::text(
                session
                    .role_name(oid)
                    .unwrap_or_else(|| format!("unknown (OID={oid})")),
            ),
        },
        "format_type" => match oid(0).and_then(|oid| session.type_name(oid)) {
            Some(name) => Datum::text(name),
            None => return Err(unanswered(name)),
        },
        // Expressions are kept as their SQL text.
        "pg_get_expr" => match text(0) {
            Some(text) if !values.get(2).is_some_and(Datum::is_true) && is_operation(text) => {
                Datum::text(format!("({text})"))
            }
            _ => values.first().cloned().unwrap_or_default(),
        },
        "pg_get_constraintdef" => match oid(0) {
            None => Datum::Null,
            Some(oid) => {
                let pretty = values.get(1).is_some_and(Datum::is_true);
                named(definitions::constraint(session, oid, pretty))
            }
        },
        "pg_get_indexdef" => match oid(0) {
            None => Datum::Null,
            Some(oid) => named(definitions::index(session, oid, int(1).unwrap_or(0))),
        },
        "pg_get_serial_sequence" => match (text(0), text(1)) {
            (Some(table), Some(column)) => definitions::serial_sequence(session, table, column)?,
            _ => Datum::Null,
        },
        "pg_get_triggerdef" => match oid(0) {
            None => Datum::Null,
            Some(oid) => {
                let pretty = values.get(1).is_some_and(Datum::is_true);
                named(triggers::trigger(session, oid, pretty))
            }
        },
        "pg_get_viewdef" => {
            let by_name = || session.relation_by_name(text(0)?);
            let view = match values.first() {
                Some(Datum::Text(_)) => {
                    let oid = by_name()
                        .ok_or_else(|| SqlError::undefined_table(text(0).unwrap_or_default()))?;
                    session.catalog.view_of(oid)
                }
                _ => oid(0).and_then(|oid| session.catalog.view_of(oid)),
            };
            named(view.map(|view| view_definition(session, view)))
        }
        "obj_description" | "col_description" | "shobj_description" => {
            content::description(name, session, values)
        }
        "pg_get_functiondef" => named(oid(0).and_then(|oid| signatures::definition(session, oid))),
        "pg_get_function_result" => named(oid(0).and_then(|oid| signatures::result(session, oid))),
        "pg_get_function_arguments" | "pg_get_function_identity_arguments" => {
            let with_defaults = name == "pg_get_function_arguments";
            named(oid(0).and_then(|oid| signatures::arguments(session, oid, with_defaults)))
        }
        "pg_tablespace_location" => {
            let def = oid(0).map(|oid| session.catalog.tablespaces.get(&oid));
            def.map_or(Datum::Null, |def| {
                Datum::text(def.map_or("", |def| &def.location))
            })
        }
        "pg_tablespace_size" => match (oid(0), text(0)) {
            (Some(oid), _) => tablespace_bytes(session, |report| report_oid(report) == oid),
            (None, Some(name)) => {
                let bytes = tablespace_bytes(session, |report| report_name(report) == name);
                match (bytes, name) {
                    (Datum::Null, "pg_global") => Datum::Int(0),
                    (Datum::Null, _) => return absent("42704", "tablespace"),
                    (bytes, _) => bytes,
                }
            }
            (None, None) => Datum::Null,
        },
        "pg_get_partkeydef" => {
            let table = oid(0).and_then(|oid| session.catalog.table(oid));
            let key = table.and_then(|table| {
                let by = table.partitioned.as_ref()?;
                Some(written_bound::key(table, by))
            });
            named(key)
        }
        "pg_get_partition_constraintdef" => {
            let table = oid(0).and_then(|oid| session.catalog.table(oid));
            named(table.and_then(|table| written_bound::constraint_of(&session.catalog, table)))
        }
        // There is nothing of their kind.
        "pg_get_function_sqlbody"
        | "pg_get_statisticsobjdef_columns"
        | "pg_get_statisticsobjdef"
        | "pg_get_ruledef"
        | "inet_server_addr" => Datum::Null,
        "pg_partition_ancestors" => match oid(0) {
            None => Datum::Null,
            Some(oid) => {
                let above = written_bound::ancestors(&session.catalog, oid);
                Datum::array(above.into_iter().map(Datum::oid))
            }
        },
        "pg_partition_root" => {
            let root = oid(0).and_then(|oid| written_bound::ancestors(&session.catalog, oid).pop());
            numbered(root)
        }
        // A set without rows.
        "pg_options_to_table" => Datum::Null,
        "pg_table_is_visible" => match oid(0) {
            None => Datum::Null,
            Some(oid) => session.is_visible(oid).into(),
        },
        "pg_type_is_visible" => match oid(0) {
            None => Datum::Null,
            Some(oid) => Datum::Bool(session.is_visible_type(oid)),
        },
        "pg_function_is_visible" => match oid(0) {
            None => Datum::Null,
            Some(oid) => Datum::Bool(session.is_visible_function(oid)),
        },
        "pg_collation_is_visible"
        | "pg_operator_is_visible"
        | "pg_opclass_is_visible"
        | "pg_opfamily_is_visible"
        | "pg_conversion_is_visible"
        | "pg_ts_config_is_visible" => match oid(0) {
            None => Datum::Null,
            Some(_) => Datum::Bool(true),
        },
        "pg_relation_is_publishable" => match oid(0) {
            None => Datum::Null,
            Some(oid) => {
                let table = session.catalog.table(oid);
                Datum::Bool(table.is_some_and(|table| !table.is_materialized()))
            }
        },
        "pg_is_in_recovery" => Datum::Bool(false),
        "pg_my_temp_schema" => Datum::oid(session.temporary_schema().unwrap_or(0)),
        "pg_is_other_temp_schema" => oid(0).map_or(Datum::Null, |oid| {
            let schemas = &mut session.catalog.schemas.iter();
            let schema = schemas.find(|schema| schema.oid == oid);
            Datum::Bool(schema.is_some_and(|schema| session.is_others(&schema.name)))
        }),
        "has_table_privilege"
        | "has_sequence_privilege"
        | "has_column_privilege"
        | "has_any_column_privilege"
        | "has_schema_privilege"
        | "has_database_privilege"
        | "has_function_privilege"
        | "has_type_privilege"
        | "has_tablespace_privilege"
        | "has_language_privilege"
        | "has_parameter_privilege"
        | "pg_has_role" => privileges::has(name, session, values)?,
        "to_regtype" => numbered(text(0).and_then(|name| session.type_by_name(name))),
        "to_regclass" => numbered(text(0).and_then(|name| session.relation_by_name(name))),
        "to_regnamespace" => {
            text(0).map_or(Ok(()), of_one_part)?;
            numbered(text(0).and_then(|name| session.schema_by_name(name)))
        }
        "to_regrole" => {
            text(0).map_or(Ok(()), of_one_part)?;
            numbered(text(0).and_then(|name| session.role_by_name(name)))
        }
        "regclassin" => match text(0).and_then(|name| session.relation_by_name(name)) {
            Some(oid) => Datum::oid(oid),
            None => return Err(SqlError::undefined_table(text(0).unwrap_or_default())),
        },
        "regtypein" => match text(0).and_then(|name| session.type_by_name(name)) {
            Some(oid) => Datum::oid(oid),
            None => return absent("42704", "type"),
        },
        "regnamespacein" => match text(0).and_then(|name| session.schema_by_name(name)) {
            Some(oid) => Datum::oid(oid),
            None => return absent("3F000", "schema"),
        },
        "regrolein" => match text(0).and_then(|name| session.role_by_name(name)) {
            Some(oid) => Datum::oid(oid),
            None => return absent("42704", "role"),
        },
        "regclassout" => named(oid(0).and_then(|oid| session.relation_name(oid))),
        "regtypeout" => named(oid(0).and_then(|oid| session.type_name(oid))),
        "regnamespaceout" => named(oid(0).and_then(|oid| session.schema_name(oid))),
        "regroleout" => named(oid(0).and_then(|oid| session.role_name(oid))),
        "regprocout" => named(oid(0).and_then(|oid| signatures::name(session, oid))),
        "regprocedureout" => named(oid(0).and_then(|oid| signatures::procedure(session, oid))),
        "regprocin" | "regprocedurein" => {
            let text = text(0).unwrap_or_default();
            match signatures::number(session, text, name == "regprocedurein")? {
                Some(oid) => Datum::oid(oid),
                None => return Err(no_function(text)),
            }
        }
        "to_regproc" => match text(0) {
            Some(text) => numbered(signatures::number(session, text, false).ok().flatten()),
            None => Datum::Null,
        },
        "acldefault" => definitions::acl_default(session, text(0), oid(1)),
        "pg_relation_size"
        | "pg_table_size"
        | "pg_total_relation_size"
        | "pg_indexes_size"
        | "pg_database_size" => oid(0).map_or(Datum::Null, |oid| {
            let bytes = session.relation_bytes(oid);
            Datum::Int(i64::try_from(bytes).unwrap_or(i64::MAX))
        }),
        "pg_sequence_last_value" => oid(0)
            .and_then(|oid| session.sequence_last_value(oid))
            .into(),
        "thermocline_sequence_value" | "thermocline_sequence_is_called" => {
            let state = oid(0).and_then(|oid| session.sequence_state(oid));
            match (state, name) {
                (None, _) => Datum::Null,
                (Some((value, _)), "thermocline_sequence_value") => Datum::Int(value),
                (Some((_, is_called)), _) => Datum::Bool(is_called),
            }
        }
        "txid_current" | "pg_current_xact_id" => Datum::Int(facts.transactions.0 as i64 + 1),
        _ => return Err(unanswered(name)),
    })
}

#[cold]
fn unanswered(name: &str) -> SqlError {
    SqlError::unsupported(
        format!("function {name} is not supported"),
        "Leave the call out, or compute its result in the application.",
    )
}

#[cold]
fn no_function(name: &str) -> SqlError {
    SqlError::new("42883", format!("function \"{name}\" does not exist"))
}

/// Whether there is a function of this name, for any arguments.
fn is_known(name: &str) -> bool {
    !thermocline_query::functions::named(name).is_empty()
}

/// The object id of a tablespace.
fn report_oid(report: &TablespaceReport) -> u32 {
    match report.oid {
        0 => super::DEFAULT_TABLESPACE,
        oid => oid,
    }
}

fn report_name(report: &TablespaceReport) -> &str {
    match report.oid {
        0 => "pg_default",
        _ => &report.name,
    }
}

/// What the blocks of a tablespace take; NULL where there is none.
fn tablespace_bytes(
    session: &super::SystemSession,
    is_it: impl Fn(&TablespaceReport) -> bool,
) -> Datum {
    let reports = session.db.tablespace_reports();
    let report = reports.iter().find(|report| is_it(report));
    report.map_or(Datum::Null, |report| {
        Datum::Int(i64::try_from(report.block_bytes).unwrap_or(i64::MAX))
    })
}

/// 42602 for a name with a point, where none is meant.
fn of_one_part(name: &str) -> Result<()> {
    match parts(name).len() {
        1 => Ok(()),
        _ => Err(SqlError::new("42602", "invalid name syntax")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::SessionFacts;

    #[test]
    fn all_of_the_list_are_answered_and_in_order() {
        assert!(ANSWERED.is_sorted());
        let device = std::sync::Arc::new(thermocline_device::SimulatedDevice::new());
        let config = thermocline_engine::Config::new(device).memory_limit(1 << 30);
        let db = thermocline_engine::Database::open(config).unwrap();
        let run = SystemEnvironment::new(&db.catalog(), &db, SessionFacts::default(), None);
        for name in ANSWERED {
            let answer = call(name, &[], &run);
            let refused = answer.is_err_and(|error| error.sqlstate == "0A000");
            // It is asked of users' types only.
            assert!(!refused || name == "format_type", "{name}");
        }
        assert_eq!(call("nextval", &[], &run).unwrap_err().sqlstate, "0A000");
        db.close().unwrap();
    }

    #[test]
    fn names_are_quoted_where_they_must_be() {
        assert_eq!(quote_ident("a_1"), "a_1");
        assert_eq!(quote_ident("Mixed"), "\"Mixed\"");
        assert_eq!(quote_ident("order"), "\"order\"");
        assert_eq!(quote_ident("1a"), "\"1a\"");
    }
}
