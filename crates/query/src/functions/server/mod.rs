//! What the server is asked: about itself, its sessions and its catalog. The
//! rows say `Body::Server`, and `Environment::call` answers under the
//! function's name; overloads differ in the count and the variants of the
//! arguments (names are texts, numbers of objects are `Datum::Oid`).
//!
//! | module | functions |
//! |---|---|
//! | `session` | settings, transaction, locks, time of start |
//! | `catalog` | definitions, descriptions, names, sizes, sequences |
//! | `privilege` | `has_…_privilege`, access lists |
//! | `statistics` | `pg_stat_…` |
//! | `administration` | files, the log, backups, replication |
//! | `information` | functions of `information_schema`, computed but one |
//!
//! These are the ones that a server has to answer, since clients ask for them;
//! others may be refused. `current_catalog`, `current_role` and `user` are
//! `current_database` and `current_user` by the grammar. `format_type` is with
//! records, names of encodings with encodings, those of time zones with times.
//!
//! | asked of | functions |
//! |---|---|
//! | the server | `version`, `pg_is_in_recovery`, `pg_postmaster_start_time`, `pg_conf_load_time`, `pg_reload_conf`, `pg_stat_statements_reset` |
//! | the session | `current_database`, `current_schema`, `current_schemas`, `current_user`, `session_user`, `pg_backend_pid`, `current_setting`, `set_config`, `inet_client_addr`, `inet_client_port`, `inet_server_addr`, `txid_current`, `pg_current_xact_id`, `pg_advisory_unlock_all` |
//! | other sessions | `pg_cancel_backend`, `pg_terminate_backend`, `pg_blocking_pids`, `pg_safe_snapshot_blocking_pids`, `pg_isolation_test_session_is_blocked` |
//! | sequences | `nextval`, `currval`, `lastval`, `setval`, `pg_sequence_last_value` |
//! | definitions | `pg_get_expr`, `pg_get_constraintdef`, `pg_get_indexdef`, `pg_get_serial_sequence`, `pg_get_viewdef`, `pg_get_functiondef`, `pg_get_function_result`, `pg_get_function_arguments`, `pg_get_function_identity_arguments`, `pg_get_function_sqlbody`, `pg_get_triggerdef`, `pg_get_ruledef`, `pg_get_statisticsobjdef`, `pg_get_statisticsobjdef_columns`, `pg_get_partkeydef`, `pg_get_partition_constraintdef` |
//! | descriptions | `obj_description`, `col_description`, `shobj_description` |
//! | names | `to_regtype`, `to_regclass`, `to_regnamespace`, `pg_get_userbyid`, `pg_tablespace_location` |
//! | visibility | `pg_table_is_visible`, `pg_type_is_visible`, `pg_collation_is_visible`, `pg_function_is_visible`, `pg_operator_is_visible`, `pg_opclass_is_visible`, `pg_opfamily_is_visible`, `pg_conversion_is_visible`, `pg_ts_config_is_visible`, `pg_is_other_temp_schema`, `pg_relation_is_publishable` |
//! | sizes | `pg_relation_size`, `pg_table_size`, `pg_total_relation_size`, `pg_indexes_size`, `pg_database_size` |
//! | privileges | `has_table_privilege`, `has_sequence_privilege`, `has_column_privilege`, `has_any_column_privilege`, `has_schema_privilege`, `has_database_privilege`, `has_function_privilege`, `has_type_privilege`, `has_tablespace_privilege`, `has_language_privilege`, `has_parameter_privilege`, `pg_has_role`, `acldefault` |
//! | sets | `pg_partition_ancestors`, `pg_options_to_table` |

pub(super) mod administration;
pub(super) mod catalog;
pub(super) mod information;
pub(super) mod privilege;
pub(super) mod session;
pub(super) mod statistics;
