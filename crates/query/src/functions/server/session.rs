//! What the session is asked: its settings, transaction, locks, and others like it.

use crate::functions::Function;
use crate::types::ids;

/// The functions of this file.
pub(in crate::functions) static FUNCTIONS: &[Function] = &[
    Function::server(1181, "age", &[ids::XID], ids::INT4),
    Function::server(861, "current_database", &[], ids::NAME),
    Function::server(817, "current_query", &[], ids::TEXT)
        .volatile()
        .called_on_null(),
    Function::server(1402, "current_schema", &[], ids::NAME),
    Function::server(1403, "current_schemas", &[ids::BOOL], ids::NAME_ARRAY),
    Function::server(2077, "current_setting", &[ids::TEXT], ids::TEXT),
    Function::server(3294, "current_setting", &[ids::TEXT, ids::BOOL], ids::TEXT),
    Function::server(745, "current_user", &[], ids::NAME),
    Function::server(710, "getpgusername", &[], ids::NAME),
    Function::server(2196, "inet_client_addr", &[], ids::INET).called_on_null(),
    Function::server(2197, "inet_client_port", &[], ids::INT4).called_on_null(),
    Function::server(2198, "inet_server_addr", &[], ids::INET).called_on_null(),
    Function::server(2199, "inet_server_port", &[], ids::INT4).called_on_null(),
    Function::server(3939, "mxid_age", &[ids::XID], ids::INT4),
    Function::server(2880, "pg_advisory_lock", &[ids::INT8], ids::VOID).volatile(),
    Function::server(2886, "pg_advisory_lock", &[ids::INT4, ids::INT4], ids::VOID).volatile(),
    Function::server(2881, "pg_advisory_lock_shared", &[ids::INT8], ids::VOID).volatile(),
    Function::server(
        2887,
        "pg_advisory_lock_shared",
        &[ids::INT4, ids::INT4],
        ids::VOID,
    )
    .volatile(),
    Function::server(2884, "pg_advisory_unlock", &[ids::INT8], ids::BOOL).volatile(),
    Function::server(
        2890,
        "pg_advisory_unlock",
        &[ids::INT4, ids::INT4],
        ids::BOOL,
    )
    .volatile(),
    Function::server(2892, "pg_advisory_unlock_all", &[], ids::VOID).volatile(),
    Function::server(2885, "pg_advisory_unlock_shared", &[ids::INT8], ids::BOOL).volatile(),
    Function::server(
        2891,
        "pg_advisory_unlock_shared",
        &[ids::INT4, ids::INT4],
        ids::BOOL,
    )
    .volatile(),
    Function::server(3089, "pg_advisory_xact_lock", &[ids::INT8], ids::VOID).volatile(),
    Function::server(
        3093,
        "pg_advisory_xact_lock",
        &[ids::INT4, ids::INT4],
        ids::VOID,
    )
    .volatile(),
    Function::server(
        3090,
        "pg_advisory_xact_lock_shared",
        &[ids::INT8],
        ids::VOID,
    )
    .volatile(),
    Function::server(
        3094,
        "pg_advisory_xact_lock_shared",
        &[ids::INT4, ids::INT4],
        ids::VOID,
    )
    .volatile(),
    Function::server(2026, "pg_backend_pid", &[], ids::INT4),
    Function::server(2561, "pg_blocking_pids", &[ids::INT4], ids::INT4_ARRAY).volatile(),
    Function::server(2171, "pg_cancel_backend", &[ids::INT4], ids::BOOL).volatile(),
    Function::server(3162, "pg_collation_for", &[ids::ANY], ids::TEXT).called_on_null(),
    Function::server(2121, "pg_column_compression", &[ids::ANY], ids::TEXT),
    Function::server(2034, "pg_conf_load_time", &[], ids::TIMESTAMPTZ),
    Function::server(5059, "pg_current_xact_id", &[], ids::XID8),
    Function::server(5060, "pg_current_xact_id_if_assigned", &[], ids::XID8),
    Function::server_set(2511, "pg_cursor", &[], ids::RECORD).columns(&[
        ("name", ids::TEXT),
        ("statement", ids::TEXT),
        ("is_holdable", ids::BOOL),
        ("is_binary", ids::BOOL),
        ("is_scrollable", ids::BOOL),
        ("creation_time", ids::TIMESTAMPTZ),
    ]),
    Function::server(3809, "pg_export_snapshot", &[], ids::TEXT).volatile(),
    Function::server_set(3819, "pg_get_multixact_members", &[ids::XID], ids::RECORD)
        .volatile()
        .named(&["multixid"])
        .columns(&[("xid", ids::XID), ("mode", ids::TEXT)]),
    Function::server(3810, "pg_is_in_recovery", &[], ids::BOOL).volatile(),
    Function::server(2855, "pg_is_other_temp_schema", &[ids::OID], ids::BOOL),
    Function::server(
        3378,
        "pg_isolation_test_session_is_blocked",
        &[ids::INT4, ids::INT4_ARRAY],
        ids::BOOL,
    )
    .volatile(),
    Function::server(315, "pg_jit_available", &[], ids::BOOL).volatile(),
    Function::server(3583, "pg_last_committed_xact", &[], ids::RECORD)
        .volatile()
        .columns(&[
            ("xid", ids::XID),
            ("timestamp", ids::TIMESTAMPTZ),
            ("roident", ids::OID),
        ]),
    Function::server_set(3035, "pg_listening_channels", &[], ids::TEXT),
    Function::server_set(1371, "pg_lock_status", &[], ids::RECORD)
        .volatile()
        .columns(&[
            ("locktype", ids::TEXT),
            ("database", ids::OID),
            ("relation", ids::OID),
            ("page", ids::INT4),
            ("tuple", ids::INT2),
            ("virtualxid", ids::TEXT),
            ("transactionid", ids::XID),
            ("classid", ids::OID),
            ("objid", ids::OID),
            ("objsubid", ids::INT2),
            ("virtualtransaction", ids::TEXT),
            ("pid", ids::INT4),
            ("mode", ids::TEXT),
            ("granted", ids::BOOL),
            ("fastpath", ids::BOOL),
            ("waitstart", ids::TIMESTAMPTZ),
        ]),
    Function::server(2854, "pg_my_temp_schema", &[], ids::OID),
    Function::server(3296, "pg_notification_queue_usage", &[], ids::FLOAT8).volatile(),
    Function::server(3036, "pg_notify", &[ids::TEXT, ids::TEXT], ids::VOID)
        .volatile()
        .called_on_null(),
    Function::server(2560, "pg_postmaster_start_time", &[], ids::TIMESTAMPTZ),
    Function::server_set(2510, "pg_prepared_statement", &[], ids::RECORD).columns(&[
        ("name", ids::TEXT),
        ("statement", ids::TEXT),
        ("prepare_time", ids::TIMESTAMPTZ),
        ("parameter_types", ids::REGTYPE_ARRAY),
        ("from_sql", ids::BOOL),
        ("generic_plans", ids::INT8),
        ("custom_plans", ids::INT8),
    ]),
    Function::server_set(1065, "pg_prepared_xact", &[], ids::RECORD)
        .volatile()
        .columns(&[
            ("transaction", ids::XID),
            ("gid", ids::TEXT),
            ("prepared", ids::TIMESTAMPTZ),
            ("ownerid", ids::OID),
            ("dbid", ids::OID),
        ]),
    Function::server(
        3376,
        "pg_safe_snapshot_blocking_pids",
        &[ids::INT4],
        ids::INT4_ARRAY,
    )
    .volatile(),
    Function::server(6240, "pg_settings_get_flags", &[ids::TEXT], ids::TEXT_ARRAY),
    Function::server_set(2084, "pg_show_all_settings", &[], ids::RECORD).columns(&[
        ("name", ids::TEXT),
        ("setting", ids::TEXT),
        ("unit", ids::TEXT),
        ("category", ids::TEXT),
        ("short_desc", ids::TEXT),
        ("extra_desc", ids::TEXT),
        ("context", ids::TEXT),
        ("vartype", ids::TEXT),
        ("source", ids::TEXT),
        ("min_val", ids::TEXT),
        ("max_val", ids::TEXT),
        ("enumvals", ids::TEXT_ARRAY),
        ("boot_val", ids::TEXT),
        ("reset_val", ids::TEXT),
        ("sourcefile", ids::TEXT),
        ("sourceline", ids::INT4),
        ("pending_restart", ids::BOOL),
    ]),
    Function::server(2626, "pg_sleep", &[ids::FLOAT8], ids::VOID).volatile(),
    Function::server(3935, "pg_sleep_for", &[ids::INTERVAL], ids::VOID).volatile(),
    Function::server(3936, "pg_sleep_until", &[ids::TIMESTAMPTZ], ids::VOID).volatile(),
    Function::server(
        2096,
        "pg_terminate_backend",
        &[ids::INT4, ids::INT8],
        ids::BOOL,
    )
    .volatile()
    .defaults(&[Some("0")])
    .named(&["pid", "timeout"]),
    Function::server(3163, "pg_trigger_depth", &[], ids::INT4),
    Function::server(2882, "pg_try_advisory_lock", &[ids::INT8], ids::BOOL).volatile(),
    Function::server(
        2888,
        "pg_try_advisory_lock",
        &[ids::INT4, ids::INT4],
        ids::BOOL,
    )
    .volatile(),
    Function::server(2883, "pg_try_advisory_lock_shared", &[ids::INT8], ids::BOOL).volatile(),
    Function::server(
        2889,
        "pg_try_advisory_lock_shared",
        &[ids::INT4, ids::INT4],
        ids::BOOL,
    )
    .volatile(),
    Function::server(3091, "pg_try_advisory_xact_lock", &[ids::INT8], ids::BOOL).volatile(),
    Function::server(
        3095,
        "pg_try_advisory_xact_lock",
        &[ids::INT4, ids::INT4],
        ids::BOOL,
    )
    .volatile(),
    Function::server(
        3092,
        "pg_try_advisory_xact_lock_shared",
        &[ids::INT8],
        ids::BOOL,
    )
    .volatile(),
    Function::server(
        3096,
        "pg_try_advisory_xact_lock_shared",
        &[ids::INT4, ids::INT4],
        ids::BOOL,
    )
    .volatile(),
    Function::server(
        3581,
        "pg_xact_commit_timestamp",
        &[ids::XID],
        ids::TIMESTAMPTZ,
    )
    .volatile(),
    Function::server(
        6168,
        "pg_xact_commit_timestamp_origin",
        &[ids::XID],
        ids::RECORD,
    )
    .volatile()
    .named(&["xid"])
    .columns(&[("timestamp", ids::TIMESTAMPTZ), ("roident", ids::OID)]),
    Function::server(5066, "pg_xact_status", &[ids::XID8], ids::TEXT).volatile(),
    Function::server(746, "session_user", &[], ids::NAME),
    Function::server(
        2078,
        "set_config",
        &[ids::TEXT, ids::TEXT, ids::BOOL],
        ids::TEXT,
    )
    .volatile()
    .called_on_null(),
    Function::server(2943, "txid_current", &[], ids::INT8),
    Function::server(3348, "txid_current_if_assigned", &[], ids::INT8),
    Function::server(3360, "txid_status", &[ids::INT8], ids::TEXT).volatile(),
    Function::server(89, "version", &[], ids::TEXT),
];
