//! What administrators call: files, the log, backups, replication.

use crate::functions::Function;
use crate::types::ids;

/// The functions of this file.
pub(in crate::functions) static FUNCTIONS: &[Function] = &[
    Function::server_set(3083, "pg_available_extension_versions", &[], ids::RECORD).columns(&[
        ("name", ids::NAME),
        ("version", ids::TEXT),
        ("superuser", ids::BOOL),
        ("trusted", ids::BOOL),
        ("relocatable", ids::BOOL),
        ("schema", ids::NAME),
        ("requires", ids::NAME_ARRAY),
        ("comment", ids::TEXT),
    ]),
    Function::server_set(3082, "pg_available_extensions", &[], ids::RECORD).columns(&[
        ("name", ids::NAME),
        ("default_version", ids::TEXT),
        ("comment", ids::TEXT),
    ]),
    Function::server(
        2172,
        "pg_backup_start",
        &[ids::TEXT, ids::BOOL],
        ids::PG_LSN,
    )
    .volatile()
    .defaults(&[Some("false")])
    .named(&["label", "fast"]),
    Function::server(2739, "pg_backup_stop", &[ids::BOOL], ids::RECORD)
        .volatile()
        .defaults(&[Some("true")])
        .named(&["wait_for_archive"])
        .columns(&[
            ("lsn", ids::PG_LSN),
            ("labelfile", ids::TEXT),
            ("spcmapfile", ids::TEXT),
        ]),
    Function::server_set(3400, "pg_config", &[], ids::RECORD)
        .columns(&[("name", ids::TEXT), ("setting", ids::TEXT)]),
    Function::server(3442, "pg_control_checkpoint", &[], ids::RECORD)
        .volatile()
        .columns(&[
            ("checkpoint_lsn", ids::PG_LSN),
            ("redo_lsn", ids::PG_LSN),
            ("redo_wal_file", ids::TEXT),
            ("timeline_id", ids::INT4),
            ("prev_timeline_id", ids::INT4),
            ("full_page_writes", ids::BOOL),
            ("next_xid", ids::TEXT),
            ("next_oid", ids::OID),
            ("next_multixact_id", ids::XID),
            ("next_multi_offset", ids::XID),
            ("oldest_xid", ids::XID),
            ("oldest_xid_dbid", ids::OID),
            ("oldest_active_xid", ids::XID),
            ("oldest_multi_xid", ids::XID),
            ("oldest_multi_dbid", ids::OID),
            ("oldest_commit_ts_xid", ids::XID),
            ("newest_commit_ts_xid", ids::XID),
            ("checkpoint_time", ids::TIMESTAMPTZ),
        ]),
    Function::server(3444, "pg_control_init", &[], ids::RECORD)
        .volatile()
        .columns(&[
            ("max_data_alignment", ids::INT4),
            ("database_block_size", ids::INT4),
            ("blocks_per_segment", ids::INT4),
            ("wal_block_size", ids::INT4),
            ("bytes_per_wal_segment", ids::INT4),
            ("max_identifier_length", ids::INT4),
            ("max_index_columns", ids::INT4),
            ("max_toast_chunk_size", ids::INT4),
            ("large_object_chunk_size", ids::INT4),
            ("float8_pass_by_value", ids::BOOL),
            ("data_page_checksum_version", ids::INT4),
        ]),
    Function::server(3443, "pg_control_recovery", &[], ids::RECORD)
        .volatile()
        .columns(&[
            ("min_recovery_end_lsn", ids::PG_LSN),
            ("min_recovery_end_timeline", ids::INT4),
            ("backup_start_lsn", ids::PG_LSN),
            ("backup_end_lsn", ids::PG_LSN),
            ("end_of_backup_record_required", ids::BOOL),
        ]),
    Function::server(3441, "pg_control_system", &[], ids::RECORD)
        .volatile()
        .columns(&[
            ("pg_control_version", ids::INT4),
            ("catalog_version_no", ids::INT4),
            ("system_identifier", ids::INT8),
            ("pg_control_last_modified", ids::TIMESTAMPTZ),
        ]),
    Function::server(
        4224,
        "pg_copy_logical_replication_slot",
        &[ids::NAME, ids::NAME],
        ids::RECORD,
    )
    .volatile()
    .named(&["src_slot_name", "dst_slot_name"])
    .columns(&[("slot_name", ids::NAME), ("lsn", ids::PG_LSN)]),
    Function::server(
        4223,
        "pg_copy_logical_replication_slot",
        &[ids::NAME, ids::NAME, ids::BOOL],
        ids::RECORD,
    )
    .volatile()
    .named(&["src_slot_name", "dst_slot_name", "temporary"])
    .columns(&[("slot_name", ids::NAME), ("lsn", ids::PG_LSN)]),
    Function::server(
        4222,
        "pg_copy_logical_replication_slot",
        &[ids::NAME, ids::NAME, ids::BOOL, ids::NAME],
        ids::RECORD,
    )
    .volatile()
    .named(&["src_slot_name", "dst_slot_name", "temporary", "plugin"])
    .columns(&[("slot_name", ids::NAME), ("lsn", ids::PG_LSN)]),
    Function::server(
        4221,
        "pg_copy_physical_replication_slot",
        &[ids::NAME, ids::NAME],
        ids::RECORD,
    )
    .volatile()
    .named(&["src_slot_name", "dst_slot_name"])
    .columns(&[("slot_name", ids::NAME), ("lsn", ids::PG_LSN)]),
    Function::server(
        4220,
        "pg_copy_physical_replication_slot",
        &[ids::NAME, ids::NAME, ids::BOOL],
        ids::RECORD,
    )
    .volatile()
    .named(&["src_slot_name", "dst_slot_name", "temporary"])
    .columns(&[("slot_name", ids::NAME), ("lsn", ids::PG_LSN)]),
    Function::server(
        3786,
        "pg_create_logical_replication_slot",
        &[ids::NAME, ids::NAME, ids::BOOL, ids::BOOL],
        ids::RECORD,
    )
    .volatile()
    .defaults(&[Some("false"), Some("false")])
    .named(&["slot_name", "plugin", "temporary", "twophase"])
    .columns(&[("slot_name", ids::NAME), ("lsn", ids::PG_LSN)]),
    Function::server(
        3779,
        "pg_create_physical_replication_slot",
        &[ids::NAME, ids::BOOL, ids::BOOL],
        ids::RECORD,
    )
    .volatile()
    .defaults(&[Some("false"), Some("false")])
    .named(&["slot_name", "immediately_reserve", "temporary"])
    .columns(&[("slot_name", ids::NAME), ("lsn", ids::PG_LSN)]),
    Function::server(3098, "pg_create_restore_point", &[ids::TEXT], ids::PG_LSN).volatile(),
    Function::server(3800, "pg_current_logfile", &[], ids::TEXT)
        .volatile()
        .called_on_null(),
    Function::server(3801, "pg_current_logfile", &[ids::TEXT], ids::TEXT)
        .volatile()
        .called_on_null(),
    Function::server(3330, "pg_current_wal_flush_lsn", &[], ids::PG_LSN).volatile(),
    Function::server(2852, "pg_current_wal_insert_lsn", &[], ids::PG_LSN).volatile(),
    Function::server(2849, "pg_current_wal_lsn", &[], ids::PG_LSN).volatile(),
    Function::server(3780, "pg_drop_replication_slot", &[ids::NAME], ids::VOID).volatile(),
    Function::server(
        3086,
        "pg_extension_config_dump",
        &[ids::REGCLASS, ids::TEXT],
        ids::VOID,
    )
    .volatile(),
    Function::server_set(3084, "pg_extension_update_paths", &[ids::NAME], ids::RECORD)
        .named(&["name"])
        .columns(&[
            ("source", ids::TEXT),
            ("target", ids::TEXT),
            ("path", ids::TEXT),
        ]),
    Function::server_set(2282, "pg_get_backend_memory_contexts", &[], ids::RECORD)
        .volatile()
        .columns(&[
            ("name", ids::TEXT),
            ("ident", ids::TEXT),
            ("parent", ids::TEXT),
            ("level", ids::INT4),
            ("total_bytes", ids::INT8),
            ("total_nblocks", ids::INT8),
            ("free_bytes", ids::INT8),
            ("free_chunks", ids::INT8),
            ("used_bytes", ids::INT8),
        ]),
    Function::server_set(3781, "pg_get_replication_slots", &[], ids::RECORD)
        .called_on_null()
        .columns(&[
            ("slot_name", ids::NAME),
            ("plugin", ids::NAME),
            ("slot_type", ids::TEXT),
            ("datoid", ids::OID),
            ("temporary", ids::BOOL),
            ("active", ids::BOOL),
            ("active_pid", ids::INT4),
            ("xmin", ids::XID),
            ("catalog_xmin", ids::XID),
            ("restart_lsn", ids::PG_LSN),
            ("confirmed_flush_lsn", ids::PG_LSN),
            ("wal_status", ids::TEXT),
            ("safe_wal_size", ids::INT8),
            ("two_phase", ids::BOOL),
        ]),
    Function::server_set(5052, "pg_get_shmem_allocations", &[], ids::RECORD)
        .volatile()
        .columns(&[
            ("name", ids::TEXT),
            ("off", ids::INT8),
            ("size", ids::INT8),
            ("allocated_size", ids::INT8),
        ]),
    Function::server(1137, "pg_get_wal_replay_pause_state", &[], ids::TEXT).volatile(),
    Function::server_set(6224, "pg_get_wal_resource_managers", &[], ids::RECORD)
        .volatile()
        .columns(&[
            ("rm_id", ids::INT4),
            ("rm_name", ids::TEXT),
            ("rm_builtin", ids::BOOL),
        ]),
    Function::server_set(3401, "pg_hba_file_rules", &[], ids::RECORD)
        .volatile()
        .columns(&[
            ("line_number", ids::INT4),
            ("type", ids::TEXT),
            ("database", ids::TEXT_ARRAY),
            ("user_name", ids::TEXT_ARRAY),
            ("address", ids::TEXT),
            ("netmask", ids::TEXT),
            ("auth_method", ids::TEXT),
            ("options", ids::TEXT_ARRAY),
            ("error", ids::TEXT),
        ]),
    Function::server_set(6250, "pg_ident_file_mappings", &[], ids::RECORD)
        .volatile()
        .columns(&[
            ("line_number", ids::INT4),
            ("map_name", ids::TEXT),
            ("sys_name", ids::TEXT),
            ("pg_username", ids::TEXT),
            ("error", ids::TEXT),
        ]),
    Function::server(
        3445,
        "pg_import_system_collations",
        &[ids::REGNAMESPACE],
        ids::INT4,
    )
    .volatile(),
    Function::server(3073, "pg_is_wal_replay_paused", &[], ids::BOOL).volatile(),
    Function::server(3820, "pg_last_wal_receive_lsn", &[], ids::PG_LSN).volatile(),
    Function::server(3821, "pg_last_wal_replay_lsn", &[], ids::PG_LSN).volatile(),
    Function::server(3830, "pg_last_xact_replay_timestamp", &[], ids::TIMESTAMPTZ).volatile(),
    Function::server(
        4543,
        "pg_log_backend_memory_contexts",
        &[ids::INT4],
        ids::BOOL,
    )
    .volatile(),
    Function::server(
        3577,
        "pg_logical_emit_message",
        &[ids::BOOL, ids::TEXT, ids::TEXT],
        ids::PG_LSN,
    )
    .volatile(),
    Function::server(
        3578,
        "pg_logical_emit_message",
        &[ids::BOOL, ids::TEXT, ids::BYTEA],
        ids::PG_LSN,
    )
    .volatile(),
    Function::server_set(
        3783,
        "pg_logical_slot_get_binary_changes",
        &[ids::NAME, ids::PG_LSN, ids::INT4, ids::TEXT_ARRAY],
        ids::RECORD,
    )
    .volatile()
    .called_on_null()
    .variadic(ids::TEXT)
    .defaults(&[Some("{}")])
    .named(&["slot_name", "upto_lsn", "upto_nchanges", "options"])
    .columns(&[
        ("lsn", ids::PG_LSN),
        ("xid", ids::XID),
        ("data", ids::BYTEA),
    ]),
    Function::server_set(
        3782,
        "pg_logical_slot_get_changes",
        &[ids::NAME, ids::PG_LSN, ids::INT4, ids::TEXT_ARRAY],
        ids::RECORD,
    )
    .volatile()
    .called_on_null()
    .variadic(ids::TEXT)
    .defaults(&[Some("{}")])
    .named(&["slot_name", "upto_lsn", "upto_nchanges", "options"])
    .columns(&[("lsn", ids::PG_LSN), ("xid", ids::XID), ("data", ids::TEXT)]),
    Function::server_set(
        3785,
        "pg_logical_slot_peek_binary_changes",
        &[ids::NAME, ids::PG_LSN, ids::INT4, ids::TEXT_ARRAY],
        ids::RECORD,
    )
    .volatile()
    .called_on_null()
    .variadic(ids::TEXT)
    .defaults(&[Some("{}")])
    .named(&["slot_name", "upto_lsn", "upto_nchanges", "options"])
    .columns(&[
        ("lsn", ids::PG_LSN),
        ("xid", ids::XID),
        ("data", ids::BYTEA),
    ]),
    Function::server_set(
        3784,
        "pg_logical_slot_peek_changes",
        &[ids::NAME, ids::PG_LSN, ids::INT4, ids::TEXT_ARRAY],
        ids::RECORD,
    )
    .volatile()
    .called_on_null()
    .variadic(ids::TEXT)
    .defaults(&[Some("{}")])
    .named(&["slot_name", "upto_lsn", "upto_nchanges", "options"])
    .columns(&[("lsn", ids::PG_LSN), ("xid", ids::XID), ("data", ids::TEXT)]),
    Function::server_set(5031, "pg_ls_archive_statusdir", &[], ids::RECORD)
        .volatile()
        .columns(&[
            ("name", ids::TEXT),
            ("size", ids::INT8),
            ("modification", ids::TIMESTAMPTZ),
        ]),
    Function::server_set(2625, "pg_ls_dir", &[ids::TEXT], ids::TEXT).volatile(),
    Function::server_set(
        3297,
        "pg_ls_dir",
        &[ids::TEXT, ids::BOOL, ids::BOOL],
        ids::TEXT,
    )
    .volatile(),
    Function::server_set(3353, "pg_ls_logdir", &[], ids::RECORD)
        .volatile()
        .columns(&[
            ("name", ids::TEXT),
            ("size", ids::INT8),
            ("modification", ids::TIMESTAMPTZ),
        ]),
    Function::server_set(6271, "pg_ls_logicalmapdir", &[], ids::RECORD)
        .volatile()
        .columns(&[
            ("name", ids::TEXT),
            ("size", ids::INT8),
            ("modification", ids::TIMESTAMPTZ),
        ]),
    Function::server_set(6270, "pg_ls_logicalsnapdir", &[], ids::RECORD)
        .volatile()
        .columns(&[
            ("name", ids::TEXT),
            ("size", ids::INT8),
            ("modification", ids::TIMESTAMPTZ),
        ]),
    Function::server_set(6272, "pg_ls_replslotdir", &[ids::TEXT], ids::RECORD)
        .volatile()
        .named(&["slot_name"])
        .columns(&[
            ("name", ids::TEXT),
            ("size", ids::INT8),
            ("modification", ids::TIMESTAMPTZ),
        ]),
    Function::server_set(5029, "pg_ls_tmpdir", &[], ids::RECORD)
        .volatile()
        .columns(&[
            ("name", ids::TEXT),
            ("size", ids::INT8),
            ("modification", ids::TIMESTAMPTZ),
        ]),
    Function::server_set(5030, "pg_ls_tmpdir", &[ids::OID], ids::RECORD)
        .volatile()
        .named(&["tablespace"])
        .columns(&[
            ("name", ids::TEXT),
            ("size", ids::INT8),
            ("modification", ids::TIMESTAMPTZ),
        ]),
    Function::server_set(3354, "pg_ls_waldir", &[], ids::RECORD)
        .volatile()
        .columns(&[
            ("name", ids::TEXT),
            ("size", ids::INT8),
            ("modification", ids::TIMESTAMPTZ),
        ]),
    Function::server(3436, "pg_promote", &[ids::BOOL, ids::INT4], ids::BOOL)
        .volatile()
        .defaults(&[Some("true"), Some("60")])
        .named(&["wait", "wait_seconds"]),
    Function::server(3828, "pg_read_binary_file", &[ids::TEXT], ids::BYTEA).volatile(),
    Function::server(
        3827,
        "pg_read_binary_file",
        &[ids::TEXT, ids::INT8, ids::INT8],
        ids::BYTEA,
    )
    .volatile(),
    Function::server(
        3295,
        "pg_read_binary_file",
        &[ids::TEXT, ids::INT8, ids::INT8, ids::BOOL],
        ids::BYTEA,
    )
    .volatile(),
    Function::server(3826, "pg_read_file", &[ids::TEXT], ids::TEXT).volatile(),
    Function::server(
        2624,
        "pg_read_file",
        &[ids::TEXT, ids::INT8, ids::INT8],
        ids::TEXT,
    )
    .volatile(),
    Function::server(
        3293,
        "pg_read_file",
        &[ids::TEXT, ids::INT8, ids::INT8, ids::BOOL],
        ids::TEXT,
    )
    .volatile(),
    Function::server(
        4100,
        "pg_read_file_old",
        &[ids::TEXT, ids::INT8, ids::INT8],
        ids::TEXT,
    )
    .volatile(),
    Function::server(2621, "pg_reload_conf", &[], ids::BOOL).volatile(),
    Function::server(
        6012,
        "pg_replication_origin_advance",
        &[ids::TEXT, ids::PG_LSN],
        ids::VOID,
    )
    .volatile(),
    Function::server(6003, "pg_replication_origin_create", &[ids::TEXT], ids::OID).volatile(),
    Function::server(6004, "pg_replication_origin_drop", &[ids::TEXT], ids::VOID).volatile(),
    Function::server(6005, "pg_replication_origin_oid", &[ids::TEXT], ids::OID),
    Function::server(
        6013,
        "pg_replication_origin_progress",
        &[ids::TEXT, ids::BOOL],
        ids::PG_LSN,
    )
    .volatile(),
    Function::server(
        6008,
        "pg_replication_origin_session_is_setup",
        &[],
        ids::BOOL,
    )
    .volatile(),
    Function::server(
        6009,
        "pg_replication_origin_session_progress",
        &[ids::BOOL],
        ids::PG_LSN,
    )
    .volatile(),
    Function::server(6007, "pg_replication_origin_session_reset", &[], ids::VOID).volatile(),
    Function::server(
        6006,
        "pg_replication_origin_session_setup",
        &[ids::TEXT],
        ids::VOID,
    )
    .volatile(),
    Function::server(6011, "pg_replication_origin_xact_reset", &[], ids::VOID).volatile(),
    Function::server(
        6010,
        "pg_replication_origin_xact_setup",
        &[ids::PG_LSN, ids::TIMESTAMPTZ],
        ids::VOID,
    )
    .volatile(),
    Function::server(
        3878,
        "pg_replication_slot_advance",
        &[ids::NAME, ids::PG_LSN],
        ids::RECORD,
    )
    .volatile()
    .named(&["slot_name", "upto_lsn"])
    .columns(&[("slot_name", ids::NAME), ("end_lsn", ids::PG_LSN)]),
    Function::server(2622, "pg_rotate_logfile", &[], ids::BOOL).volatile(),
    Function::server(4099, "pg_rotate_logfile_old", &[], ids::BOOL).volatile(),
    Function::server_set(3329, "pg_show_all_file_settings", &[], ids::RECORD)
        .volatile()
        .columns(&[
            ("sourcefile", ids::TEXT),
            ("sourceline", ids::INT4),
            ("seqno", ids::INT4),
            ("name", ids::TEXT),
            ("setting", ids::TEXT),
            ("applied", ids::BOOL),
            ("error", ids::TEXT),
        ]),
    Function::server_set(6014, "pg_show_replication_origin_status", &[], ids::RECORD)
        .volatile()
        .called_on_null()
        .columns(&[
            ("local_id", ids::OID),
            ("external_id", ids::TEXT),
            ("remote_lsn", ids::PG_LSN),
            ("local_lsn", ids::PG_LSN),
        ]),
    Function::server(6241, "pg_stop_making_pinned_objects", &[], ids::VOID).volatile(),
    Function::server(2848, "pg_switch_wal", &[], ids::PG_LSN).volatile(),
    Function::server(
        3165,
        "pg_wal_lsn_diff",
        &[ids::PG_LSN, ids::PG_LSN],
        ids::NUMERIC,
    )
    .immutable(),
    Function::server(3071, "pg_wal_replay_pause", &[], ids::VOID).volatile(),
    Function::server(3072, "pg_wal_replay_resume", &[], ids::VOID).volatile(),
    Function::server(2851, "pg_walfile_name", &[ids::PG_LSN], ids::TEXT).immutable(),
    Function::server(2850, "pg_walfile_name_offset", &[ids::PG_LSN], ids::RECORD)
        .immutable()
        .named(&["lsn"])
        .columns(&[("file_name", ids::TEXT), ("file_offset", ids::INT4)]),
];
