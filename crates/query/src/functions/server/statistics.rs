//! Statistics of tables, sessions and the server.

use crate::functions::Function;
use crate::types::ids;

/// The functions of this file.
pub(in crate::functions) static FUNCTIONS: &[Function] = &[
    Function::server(2230, "pg_stat_clear_snapshot", &[], ids::VOID)
        .volatile()
        .called_on_null(),
    Function::server(2623, "pg_stat_file", &[ids::TEXT], ids::RECORD)
        .volatile()
        .named(&["filename"])
        .columns(&[
            ("size", ids::INT8),
            ("access", ids::TIMESTAMPTZ),
            ("modification", ids::TIMESTAMPTZ),
            ("change", ids::TIMESTAMPTZ),
            ("creation", ids::TIMESTAMPTZ),
            ("isdir", ids::BOOL),
        ]),
    Function::server(3307, "pg_stat_file", &[ids::TEXT, ids::BOOL], ids::RECORD)
        .volatile()
        .named(&["filename", "missing_ok"])
        .columns(&[
            ("size", ids::INT8),
            ("access", ids::TIMESTAMPTZ),
            ("modification", ids::TIMESTAMPTZ),
            ("change", ids::TIMESTAMPTZ),
            ("creation", ids::TIMESTAMPTZ),
            ("isdir", ids::BOOL),
        ]),
    Function::server(2137, "pg_stat_force_next_flush", &[], ids::VOID)
        .volatile()
        .called_on_null(),
    Function::server_set(2022, "pg_stat_get_activity", &[ids::INT4], ids::RECORD)
        .called_on_null()
        .named(&["pid"])
        .columns(&[
            ("datid", ids::OID),
            ("pid", ids::INT4),
            ("usesysid", ids::OID),
            ("application_name", ids::TEXT),
            ("state", ids::TEXT),
            ("query", ids::TEXT),
            ("wait_event_type", ids::TEXT),
            ("wait_event", ids::TEXT),
            ("xact_start", ids::TIMESTAMPTZ),
            ("query_start", ids::TIMESTAMPTZ),
            ("backend_start", ids::TIMESTAMPTZ),
            ("state_change", ids::TIMESTAMPTZ),
            ("client_addr", ids::INET),
            ("client_hostname", ids::TEXT),
            ("client_port", ids::INT4),
            ("backend_xid", ids::XID),
            ("backend_xmin", ids::XID),
            ("backend_type", ids::TEXT),
            ("ssl", ids::BOOL),
            ("sslversion", ids::TEXT),
            ("sslcipher", ids::TEXT),
            ("sslbits", ids::INT4),
            ("ssl_client_dn", ids::TEXT),
            ("ssl_client_serial", ids::NUMERIC),
            ("ssl_issuer_dn", ids::TEXT),
            ("gss_auth", ids::BOOL),
            ("gss_princ", ids::TEXT),
            ("gss_enc", ids::BOOL),
            ("leader_pid", ids::INT4),
            ("query_id", ids::INT8),
        ]),
    Function::server(3056, "pg_stat_get_analyze_count", &[ids::OID], ids::INT8),
    Function::server(3195, "pg_stat_get_archiver", &[], ids::RECORD)
        .called_on_null()
        .columns(&[
            ("archived_count", ids::INT8),
            ("last_archived_wal", ids::TEXT),
            ("last_archived_time", ids::TIMESTAMPTZ),
            ("failed_count", ids::INT8),
            ("last_failed_wal", ids::TEXT),
            ("last_failed_time", ids::TIMESTAMPTZ),
            ("stats_reset", ids::TIMESTAMPTZ),
        ]),
    Function::server(
        3057,
        "pg_stat_get_autoanalyze_count",
        &[ids::OID],
        ids::INT8,
    ),
    Function::server(3055, "pg_stat_get_autovacuum_count", &[ids::OID], ids::INT8),
    Function::server(
        1940,
        "pg_stat_get_backend_activity",
        &[ids::INT4],
        ids::TEXT,
    ),
    Function::server(
        2094,
        "pg_stat_get_backend_activity_start",
        &[ids::INT4],
        ids::TIMESTAMPTZ,
    ),
    Function::server(
        1392,
        "pg_stat_get_backend_client_addr",
        &[ids::INT4],
        ids::INET,
    ),
    Function::server(
        1393,
        "pg_stat_get_backend_client_port",
        &[ids::INT4],
        ids::INT4,
    ),
    Function::server(1938, "pg_stat_get_backend_dbid", &[ids::INT4], ids::OID),
    Function::server_set(1936, "pg_stat_get_backend_idset", &[], ids::INT4),
    Function::server(1937, "pg_stat_get_backend_pid", &[ids::INT4], ids::INT4),
    Function::server(
        1391,
        "pg_stat_get_backend_start",
        &[ids::INT4],
        ids::TIMESTAMPTZ,
    ),
    Function::server(1939, "pg_stat_get_backend_userid", &[ids::INT4], ids::OID),
    Function::server(
        2853,
        "pg_stat_get_backend_wait_event",
        &[ids::INT4],
        ids::TEXT,
    ),
    Function::server(
        2788,
        "pg_stat_get_backend_wait_event_type",
        &[ids::INT4],
        ids::TEXT,
    ),
    Function::server(
        2857,
        "pg_stat_get_backend_xact_start",
        &[ids::INT4],
        ids::TIMESTAMPTZ,
    ),
    Function::server(
        2771,
        "pg_stat_get_bgwriter_buf_written_checkpoints",
        &[],
        ids::INT8,
    ),
    Function::server(
        2772,
        "pg_stat_get_bgwriter_buf_written_clean",
        &[],
        ids::INT8,
    ),
    Function::server(
        2773,
        "pg_stat_get_bgwriter_maxwritten_clean",
        &[],
        ids::INT8,
    ),
    Function::server(
        2770,
        "pg_stat_get_bgwriter_requested_checkpoints",
        &[],
        ids::INT8,
    ),
    Function::server(
        3075,
        "pg_stat_get_bgwriter_stat_reset_time",
        &[],
        ids::TIMESTAMPTZ,
    ),
    Function::server(
        2769,
        "pg_stat_get_bgwriter_timed_checkpoints",
        &[],
        ids::INT8,
    ),
    Function::server(1934, "pg_stat_get_blocks_fetched", &[ids::OID], ids::INT8),
    Function::server(1935, "pg_stat_get_blocks_hit", &[ids::OID], ids::INT8),
    Function::server(2859, "pg_stat_get_buf_alloc", &[], ids::INT8),
    Function::server(3063, "pg_stat_get_buf_fsync_backend", &[], ids::INT8),
    Function::server(2775, "pg_stat_get_buf_written_backend", &[], ids::INT8),
    Function::server(3161, "pg_stat_get_checkpoint_sync_time", &[], ids::FLOAT8),
    Function::server(3160, "pg_stat_get_checkpoint_write_time", &[], ids::FLOAT8),
    Function::server(6186, "pg_stat_get_db_active_time", &[ids::OID], ids::FLOAT8),
    Function::server(
        2844,
        "pg_stat_get_db_blk_read_time",
        &[ids::OID],
        ids::FLOAT8,
    ),
    Function::server(
        2845,
        "pg_stat_get_db_blk_write_time",
        &[ids::OID],
        ids::FLOAT8,
    ),
    Function::server(
        1944,
        "pg_stat_get_db_blocks_fetched",
        &[ids::OID],
        ids::INT8,
    ),
    Function::server(1945, "pg_stat_get_db_blocks_hit", &[ids::OID], ids::INT8),
    Function::server(
        3426,
        "pg_stat_get_db_checksum_failures",
        &[ids::OID],
        ids::INT8,
    ),
    Function::server(
        3428,
        "pg_stat_get_db_checksum_last_failure",
        &[ids::OID],
        ids::TIMESTAMPTZ,
    ),
    Function::server(3070, "pg_stat_get_db_conflict_all", &[ids::OID], ids::INT8),
    Function::server(
        3068,
        "pg_stat_get_db_conflict_bufferpin",
        &[ids::OID],
        ids::INT8,
    ),
    Function::server(3066, "pg_stat_get_db_conflict_lock", &[ids::OID], ids::INT8),
    Function::server(
        3067,
        "pg_stat_get_db_conflict_snapshot",
        &[ids::OID],
        ids::INT8,
    ),
    Function::server(
        3069,
        "pg_stat_get_db_conflict_startup_deadlock",
        &[ids::OID],
        ids::INT8,
    ),
    Function::server(
        3065,
        "pg_stat_get_db_conflict_tablespace",
        &[ids::OID],
        ids::INT8,
    ),
    Function::server(3152, "pg_stat_get_db_deadlocks", &[ids::OID], ids::INT8),
    Function::server(
        6187,
        "pg_stat_get_db_idle_in_transaction_time",
        &[ids::OID],
        ids::FLOAT8,
    ),
    Function::server(1941, "pg_stat_get_db_numbackends", &[ids::OID], ids::INT4),
    Function::server(
        6185,
        "pg_stat_get_db_session_time",
        &[ids::OID],
        ids::FLOAT8,
    ),
    Function::server(6188, "pg_stat_get_db_sessions", &[ids::OID], ids::INT8),
    Function::server(
        6189,
        "pg_stat_get_db_sessions_abandoned",
        &[ids::OID],
        ids::INT8,
    ),
    Function::server(
        6190,
        "pg_stat_get_db_sessions_fatal",
        &[ids::OID],
        ids::INT8,
    ),
    Function::server(
        6191,
        "pg_stat_get_db_sessions_killed",
        &[ids::OID],
        ids::INT8,
    ),
    Function::server(
        3074,
        "pg_stat_get_db_stat_reset_time",
        &[ids::OID],
        ids::TIMESTAMPTZ,
    ),
    Function::server(3151, "pg_stat_get_db_temp_bytes", &[ids::OID], ids::INT8),
    Function::server(3150, "pg_stat_get_db_temp_files", &[ids::OID], ids::INT8),
    Function::server(
        2762,
        "pg_stat_get_db_tuples_deleted",
        &[ids::OID],
        ids::INT8,
    ),
    Function::server(
        2759,
        "pg_stat_get_db_tuples_fetched",
        &[ids::OID],
        ids::INT8,
    ),
    Function::server(
        2760,
        "pg_stat_get_db_tuples_inserted",
        &[ids::OID],
        ids::INT8,
    ),
    Function::server(
        2758,
        "pg_stat_get_db_tuples_returned",
        &[ids::OID],
        ids::INT8,
    ),
    Function::server(
        2761,
        "pg_stat_get_db_tuples_updated",
        &[ids::OID],
        ids::INT8,
    ),
    Function::server(1942, "pg_stat_get_db_xact_commit", &[ids::OID], ids::INT8),
    Function::server(1943, "pg_stat_get_db_xact_rollback", &[ids::OID], ids::INT8),
    Function::server(2879, "pg_stat_get_dead_tuples", &[ids::OID], ids::INT8),
    Function::server(2978, "pg_stat_get_function_calls", &[ids::OID], ids::INT8),
    Function::server(
        2980,
        "pg_stat_get_function_self_time",
        &[ids::OID],
        ids::FLOAT8,
    ),
    Function::server(
        2979,
        "pg_stat_get_function_total_time",
        &[ids::OID],
        ids::FLOAT8,
    ),
    Function::server(5053, "pg_stat_get_ins_since_vacuum", &[ids::OID], ids::INT8),
    Function::server(
        2783,
        "pg_stat_get_last_analyze_time",
        &[ids::OID],
        ids::TIMESTAMPTZ,
    ),
    Function::server(
        2784,
        "pg_stat_get_last_autoanalyze_time",
        &[ids::OID],
        ids::TIMESTAMPTZ,
    ),
    Function::server(
        2782,
        "pg_stat_get_last_autovacuum_time",
        &[ids::OID],
        ids::TIMESTAMPTZ,
    ),
    Function::server(
        2781,
        "pg_stat_get_last_vacuum_time",
        &[ids::OID],
        ids::TIMESTAMPTZ,
    ),
    Function::server(2878, "pg_stat_get_live_tuples", &[ids::OID], ids::INT8),
    Function::server(
        3177,
        "pg_stat_get_mod_since_analyze",
        &[ids::OID],
        ids::INT8,
    ),
    Function::server(1928, "pg_stat_get_numscans", &[ids::OID], ids::INT8),
    Function::server_set(3318, "pg_stat_get_progress_info", &[ids::TEXT], ids::RECORD)
        .named(&["cmdtype"])
        .columns(&[
            ("pid", ids::INT4),
            ("datid", ids::OID),
            ("relid", ids::OID),
            ("param1", ids::INT8),
            ("param2", ids::INT8),
            ("param3", ids::INT8),
            ("param4", ids::INT8),
            ("param5", ids::INT8),
            ("param6", ids::INT8),
            ("param7", ids::INT8),
            ("param8", ids::INT8),
            ("param9", ids::INT8),
            ("param10", ids::INT8),
            ("param11", ids::INT8),
            ("param12", ids::INT8),
            ("param13", ids::INT8),
            ("param14", ids::INT8),
            ("param15", ids::INT8),
            ("param16", ids::INT8),
            ("param17", ids::INT8),
            ("param18", ids::INT8),
            ("param19", ids::INT8),
            ("param20", ids::INT8),
        ]),
    Function::server_set(6248, "pg_stat_get_recovery_prefetch", &[], ids::RECORD)
        .volatile()
        .columns(&[
            ("stats_reset", ids::TIMESTAMPTZ),
            ("prefetch", ids::INT8),
            ("hit", ids::INT8),
            ("skip_init", ids::INT8),
            ("skip_new", ids::INT8),
            ("skip_fpw", ids::INT8),
            ("skip_rep", ids::INT8),
            ("wal_distance", ids::INT4),
            ("block_distance", ids::INT4),
            ("io_depth", ids::INT4),
        ]),
    Function::server(
        6169,
        "pg_stat_get_replication_slot",
        &[ids::TEXT],
        ids::RECORD,
    )
    .named(&["slot_name"])
    .columns(&[
        ("slot_name", ids::TEXT),
        ("spill_txns", ids::INT8),
        ("spill_count", ids::INT8),
        ("spill_bytes", ids::INT8),
        ("stream_txns", ids::INT8),
        ("stream_count", ids::INT8),
        ("stream_bytes", ids::INT8),
        ("total_txns", ids::INT8),
        ("total_bytes", ids::INT8),
        ("stats_reset", ids::TIMESTAMPTZ),
    ]),
    Function::server_set(2306, "pg_stat_get_slru", &[], ids::RECORD)
        .called_on_null()
        .columns(&[
            ("name", ids::TEXT),
            ("blks_zeroed", ids::INT8),
            ("blks_hit", ids::INT8),
            ("blks_read", ids::INT8),
            ("blks_written", ids::INT8),
            ("blks_exists", ids::INT8),
            ("flushes", ids::INT8),
            ("truncates", ids::INT8),
            ("stats_reset", ids::TIMESTAMPTZ),
        ]),
    Function::server(
        3788,
        "pg_stat_get_snapshot_timestamp",
        &[],
        ids::TIMESTAMPTZ,
    ),
    Function::server_set(6118, "pg_stat_get_subscription", &[ids::OID], ids::RECORD)
        .called_on_null()
        .named(&["subid"])
        .columns(&[
            ("subid", ids::OID),
            ("relid", ids::OID),
            ("pid", ids::INT4),
            ("received_lsn", ids::PG_LSN),
            ("last_msg_send_time", ids::TIMESTAMPTZ),
            ("last_msg_receipt_time", ids::TIMESTAMPTZ),
            ("latest_end_lsn", ids::PG_LSN),
            ("latest_end_time", ids::TIMESTAMPTZ),
        ]),
    Function::server(
        6231,
        "pg_stat_get_subscription_stats",
        &[ids::OID],
        ids::RECORD,
    )
    .named(&["subid"])
    .columns(&[
        ("subid", ids::OID),
        ("apply_error_count", ids::INT8),
        ("sync_error_count", ids::INT8),
        ("stats_reset", ids::TIMESTAMPTZ),
    ]),
    Function::server(1933, "pg_stat_get_tuples_deleted", &[ids::OID], ids::INT8),
    Function::server(1930, "pg_stat_get_tuples_fetched", &[ids::OID], ids::INT8),
    Function::server(
        1972,
        "pg_stat_get_tuples_hot_updated",
        &[ids::OID],
        ids::INT8,
    ),
    Function::server(1931, "pg_stat_get_tuples_inserted", &[ids::OID], ids::INT8),
    Function::server(1929, "pg_stat_get_tuples_returned", &[ids::OID], ids::INT8),
    Function::server(1932, "pg_stat_get_tuples_updated", &[ids::OID], ids::INT8),
    Function::server(3054, "pg_stat_get_vacuum_count", &[ids::OID], ids::INT8),
    Function::server(1136, "pg_stat_get_wal", &[], ids::RECORD)
        .called_on_null()
        .columns(&[
            ("wal_records", ids::INT8),
            ("wal_fpi", ids::INT8),
            ("wal_bytes", ids::NUMERIC),
            ("wal_buffers_full", ids::INT8),
            ("wal_write", ids::INT8),
            ("wal_sync", ids::INT8),
            ("wal_write_time", ids::FLOAT8),
            ("wal_sync_time", ids::FLOAT8),
            ("stats_reset", ids::TIMESTAMPTZ),
        ]),
    Function::server(3317, "pg_stat_get_wal_receiver", &[], ids::RECORD)
        .called_on_null()
        .columns(&[
            ("pid", ids::INT4),
            ("status", ids::TEXT),
            ("receive_start_lsn", ids::PG_LSN),
            ("receive_start_tli", ids::INT4),
            ("written_lsn", ids::PG_LSN),
            ("flushed_lsn", ids::PG_LSN),
            ("received_tli", ids::INT4),
            ("last_msg_send_time", ids::TIMESTAMPTZ),
            ("last_msg_receipt_time", ids::TIMESTAMPTZ),
            ("latest_end_lsn", ids::PG_LSN),
            ("latest_end_time", ids::TIMESTAMPTZ),
            ("slot_name", ids::TEXT),
            ("sender_host", ids::TEXT),
            ("sender_port", ids::INT4),
            ("conninfo", ids::TEXT),
        ]),
    Function::server_set(3099, "pg_stat_get_wal_senders", &[], ids::RECORD)
        .called_on_null()
        .columns(&[
            ("pid", ids::INT4),
            ("state", ids::TEXT),
            ("sent_lsn", ids::PG_LSN),
            ("write_lsn", ids::PG_LSN),
            ("flush_lsn", ids::PG_LSN),
            ("replay_lsn", ids::PG_LSN),
            ("write_lag", ids::INTERVAL),
            ("flush_lag", ids::INTERVAL),
            ("replay_lag", ids::INTERVAL),
            ("sync_priority", ids::INT4),
            ("sync_state", ids::TEXT),
            ("reply_time", ids::TIMESTAMPTZ),
        ]),
    Function::server(
        3044,
        "pg_stat_get_xact_blocks_fetched",
        &[ids::OID],
        ids::INT8,
    )
    .volatile(),
    Function::server(3045, "pg_stat_get_xact_blocks_hit", &[ids::OID], ids::INT8).volatile(),
    Function::server(
        3046,
        "pg_stat_get_xact_function_calls",
        &[ids::OID],
        ids::INT8,
    )
    .volatile(),
    Function::server(
        3048,
        "pg_stat_get_xact_function_self_time",
        &[ids::OID],
        ids::FLOAT8,
    )
    .volatile(),
    Function::server(
        3047,
        "pg_stat_get_xact_function_total_time",
        &[ids::OID],
        ids::FLOAT8,
    )
    .volatile(),
    Function::server(3037, "pg_stat_get_xact_numscans", &[ids::OID], ids::INT8).volatile(),
    Function::server(
        3042,
        "pg_stat_get_xact_tuples_deleted",
        &[ids::OID],
        ids::INT8,
    )
    .volatile(),
    Function::server(
        3039,
        "pg_stat_get_xact_tuples_fetched",
        &[ids::OID],
        ids::INT8,
    )
    .volatile(),
    Function::server(
        3043,
        "pg_stat_get_xact_tuples_hot_updated",
        &[ids::OID],
        ids::INT8,
    )
    .volatile(),
    Function::server(
        3040,
        "pg_stat_get_xact_tuples_inserted",
        &[ids::OID],
        ids::INT8,
    )
    .volatile(),
    Function::server(
        3038,
        "pg_stat_get_xact_tuples_returned",
        &[ids::OID],
        ids::INT8,
    )
    .volatile(),
    Function::server(
        3041,
        "pg_stat_get_xact_tuples_updated",
        &[ids::OID],
        ids::INT8,
    )
    .volatile(),
    Function::server(
        6230,
        "pg_stat_have_stats",
        &[ids::TEXT, ids::OID, ids::OID],
        ids::BOOL,
    )
    .volatile(),
    Function::server(2274, "pg_stat_reset", &[], ids::VOID)
        .volatile()
        .called_on_null(),
    Function::server(
        6170,
        "pg_stat_reset_replication_slot",
        &[ids::TEXT],
        ids::VOID,
    )
    .volatile()
    .called_on_null(),
    Function::server(3775, "pg_stat_reset_shared", &[ids::TEXT], ids::VOID).volatile(),
    Function::server(
        3777,
        "pg_stat_reset_single_function_counters",
        &[ids::OID],
        ids::VOID,
    )
    .volatile(),
    Function::server(
        3776,
        "pg_stat_reset_single_table_counters",
        &[ids::OID],
        ids::VOID,
    )
    .volatile(),
    Function::server(2307, "pg_stat_reset_slru", &[ids::TEXT], ids::VOID)
        .volatile()
        .called_on_null(),
    Function::server(
        6232,
        "pg_stat_reset_subscription_stats",
        &[ids::OID],
        ids::VOID,
    )
    .volatile()
    .called_on_null(),
];
