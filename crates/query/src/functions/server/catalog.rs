//! What the catalog is asked: definitions, descriptions, names, sizes, sequences.

use crate::functions::Function;
use crate::types::ids;

/// The functions of this file.
pub(in crate::functions) static FUNCTIONS: &[Function] = &[
    Function::server(1216, "col_description", &[ids::OID, ids::INT4], ids::TEXT),
    Function::server(1575, "currval", &[ids::REGCLASS], ids::INT8).volatile(),
    Function::server(2559, "lastval", &[], ids::INT8).volatile(),
    Function::server(1574, "nextval", &[ids::REGCLASS], ids::INT8).volatile(),
    Function::server(1348, "obj_description", &[ids::OID], ids::TEXT),
    Function::server(1215, "obj_description", &[ids::OID, ids::NAME], ids::TEXT),
    Function::server(3448, "pg_collation_actual_version", &[ids::OID], ids::TEXT).volatile(),
    Function::server(3815, "pg_collation_is_visible", &[ids::OID], ids::BOOL),
    Function::server(
        3843,
        "pg_column_is_updatable",
        &[ids::REGCLASS, ids::INT2, ids::BOOL],
        ids::BOOL,
    ),
    Function::server(2093, "pg_conversion_is_visible", &[ids::OID], ids::BOOL),
    Function::server(
        6249,
        "pg_database_collation_actual_version",
        &[ids::OID],
        ids::TEXT,
    )
    .volatile(),
    Function::server(2168, "pg_database_size", &[ids::NAME], ids::INT8).volatile(),
    Function::server(2324, "pg_database_size", &[ids::OID], ids::INT8).volatile(),
    Function::server(
        3537,
        "pg_describe_object",
        &[ids::OID, ids::OID, ids::INT4],
        ids::TEXT,
    ),
    Function::server(
        3454,
        "pg_filenode_relation",
        &[ids::OID, ids::OID],
        ids::REGCLASS,
    ),
    Function::server(2081, "pg_function_is_visible", &[ids::OID], ids::BOOL),
    Function::server_set(6159, "pg_get_catalog_foreign_keys", &[], ids::RECORD).columns(&[
        ("fktable", ids::REGCLASS),
        ("fkcols", ids::TEXT_ARRAY),
        ("pktable", ids::REGCLASS),
        ("pkcols", ids::TEXT_ARRAY),
        ("is_array", ids::BOOL),
        ("is_opt", ids::BOOL),
    ]),
    Function::server(1387, "pg_get_constraintdef", &[ids::OID], ids::TEXT),
    Function::server(
        2508,
        "pg_get_constraintdef",
        &[ids::OID, ids::BOOL],
        ids::TEXT,
    ),
    Function::server(
        1716,
        "pg_get_expr",
        &[ids::PG_NODE_TREE, ids::OID],
        ids::TEXT,
    ),
    Function::server(
        2509,
        "pg_get_expr",
        &[ids::PG_NODE_TREE, ids::OID, ids::BOOL],
        ids::TEXT,
    ),
    Function::server(
        3808,
        "pg_get_function_arg_default",
        &[ids::OID, ids::INT4],
        ids::TEXT,
    ),
    Function::server(2162, "pg_get_function_arguments", &[ids::OID], ids::TEXT),
    Function::server(
        2232,
        "pg_get_function_identity_arguments",
        &[ids::OID],
        ids::TEXT,
    ),
    Function::server(2165, "pg_get_function_result", &[ids::OID], ids::TEXT),
    Function::server(6197, "pg_get_function_sqlbody", &[ids::OID], ids::TEXT),
    Function::server(2098, "pg_get_functiondef", &[ids::OID], ids::TEXT),
    Function::server(1643, "pg_get_indexdef", &[ids::OID], ids::TEXT),
    Function::server(
        2507,
        "pg_get_indexdef",
        &[ids::OID, ids::INT4, ids::BOOL],
        ids::TEXT,
    ),
    Function::server_set(1686, "pg_get_keywords", &[], ids::RECORD).columns(&[
        ("word", ids::TEXT),
        ("catcode", ids::CHAR),
        ("barelabel", ids::BOOL),
        ("catdesc", ids::TEXT),
        ("baredesc", ids::TEXT),
    ]),
    Function::server(
        3954,
        "pg_get_object_address",
        &[ids::TEXT, ids::TEXT_ARRAY, ids::TEXT_ARRAY],
        ids::RECORD,
    )
    .named(&["type", "object_names", "object_args"])
    .columns(&[
        ("classid", ids::OID),
        ("objid", ids::OID),
        ("objsubid", ids::INT4),
    ]),
    Function::server(
        3408,
        "pg_get_partition_constraintdef",
        &[ids::OID],
        ids::TEXT,
    ),
    Function::server(3352, "pg_get_partkeydef", &[ids::OID], ids::TEXT),
    Function::server_set(6119, "pg_get_publication_tables", &[ids::TEXT], ids::RECORD)
        .named(&["pubname"])
        .columns(&[
            ("relid", ids::OID),
            ("attrs", ids::INT2VECTOR),
            ("qual", ids::PG_NODE_TREE),
        ]),
    Function::server(
        6120,
        "pg_get_replica_identity_index",
        &[ids::REGCLASS],
        ids::REGCLASS,
    ),
    Function::server(1573, "pg_get_ruledef", &[ids::OID], ids::TEXT),
    Function::server(2504, "pg_get_ruledef", &[ids::OID, ids::BOOL], ids::TEXT),
    Function::server(
        1665,
        "pg_get_serial_sequence",
        &[ids::TEXT, ids::TEXT],
        ids::TEXT,
    ),
    Function::server(3415, "pg_get_statisticsobjdef", &[ids::OID], ids::TEXT),
    Function::server(
        6174,
        "pg_get_statisticsobjdef_columns",
        &[ids::OID],
        ids::TEXT,
    ),
    Function::server(
        6173,
        "pg_get_statisticsobjdef_expressions",
        &[ids::OID],
        ids::TEXT_ARRAY,
    ),
    Function::server(1662, "pg_get_triggerdef", &[ids::OID], ids::TEXT),
    Function::server(2730, "pg_get_triggerdef", &[ids::OID, ids::BOOL], ids::TEXT),
    Function::server(1642, "pg_get_userbyid", &[ids::OID], ids::NAME),
    Function::server(1640, "pg_get_viewdef", &[ids::TEXT], ids::TEXT),
    Function::server(1641, "pg_get_viewdef", &[ids::OID], ids::TEXT),
    Function::server(2505, "pg_get_viewdef", &[ids::TEXT, ids::BOOL], ids::TEXT),
    Function::server(2506, "pg_get_viewdef", &[ids::OID, ids::BOOL], ids::TEXT),
    Function::server(3159, "pg_get_viewdef", &[ids::OID, ids::INT4], ids::TEXT),
    Function::server(
        3839,
        "pg_identify_object",
        &[ids::OID, ids::OID, ids::INT4],
        ids::RECORD,
    )
    .named(&["classid", "objid", "objsubid"])
    .columns(&[
        ("type", ids::TEXT),
        ("schema", ids::TEXT),
        ("name", ids::TEXT),
        ("identity", ids::TEXT),
    ]),
    Function::server(
        3382,
        "pg_identify_object_as_address",
        &[ids::OID, ids::OID, ids::INT4],
        ids::RECORD,
    )
    .named(&["classid", "objid", "objsubid"])
    .columns(&[
        ("type", ids::TEXT),
        ("object_names", ids::TEXT_ARRAY),
        ("object_args", ids::TEXT_ARRAY),
    ]),
    Function::server(
        638,
        "pg_index_column_has_property",
        &[ids::REGCLASS, ids::INT4, ids::TEXT],
        ids::BOOL,
    ),
    Function::server(
        637,
        "pg_index_has_property",
        &[ids::REGCLASS, ids::TEXT],
        ids::BOOL,
    ),
    Function::server(
        636,
        "pg_indexam_has_property",
        &[ids::OID, ids::TEXT],
        ids::BOOL,
    ),
    Function::server(
        676,
        "pg_indexam_progress_phasename",
        &[ids::OID, ids::INT8],
        ids::TEXT,
    )
    .immutable(),
    Function::server(2998, "pg_indexes_size", &[ids::REGCLASS], ids::INT8).volatile(),
    Function::server(2083, "pg_opclass_is_visible", &[ids::OID], ids::BOOL),
    Function::server(2082, "pg_operator_is_visible", &[ids::OID], ids::BOOL),
    Function::server(3829, "pg_opfamily_is_visible", &[ids::OID], ids::BOOL),
    Function::server_set(2289, "pg_options_to_table", &[ids::TEXT_ARRAY], ids::RECORD)
        .named(&["options_array"])
        .columns(&[("option_name", ids::TEXT), ("option_value", ids::TEXT)]),
    Function::server_set(
        3425,
        "pg_partition_ancestors",
        &[ids::REGCLASS],
        ids::REGCLASS,
    )
    .volatile()
    .named(&["partitionid"])
    .columns(&[("relid", ids::REGCLASS)]),
    Function::server(3424, "pg_partition_root", &[ids::REGCLASS], ids::REGCLASS).immutable(),
    Function::server_set(3423, "pg_partition_tree", &[ids::REGCLASS], ids::RECORD)
        .volatile()
        .named(&["rootrelid"])
        .columns(&[
            ("relid", ids::REGCLASS),
            ("parentrelid", ids::REGCLASS),
            ("isleaf", ids::BOOL),
            ("level", ids::INT4),
        ]),
    Function::server(2999, "pg_relation_filenode", &[ids::REGCLASS], ids::OID),
    Function::server(3034, "pg_relation_filepath", &[ids::REGCLASS], ids::TEXT),
    Function::server(
        6121,
        "pg_relation_is_publishable",
        &[ids::REGCLASS],
        ids::BOOL,
    ),
    Function::server(
        3842,
        "pg_relation_is_updatable",
        &[ids::REGCLASS, ids::BOOL],
        ids::INT4,
    ),
    Function::server(2325, "pg_relation_size", &[ids::REGCLASS], ids::INT8).volatile(),
    Function::server(
        2332,
        "pg_relation_size",
        &[ids::REGCLASS, ids::TEXT],
        ids::INT8,
    )
    .volatile(),
    // What a sequence is when it is read like a table.
    Function::server(
        9990,
        "thermocline_sequence_is_called",
        &[ids::OID],
        ids::BOOL,
    )
    .volatile(),
    Function::server(9991, "thermocline_sequence_value", &[ids::OID], ids::INT8).volatile(),
    Function::server(4032, "pg_sequence_last_value", &[ids::REGCLASS], ids::INT8).volatile(),
    Function::server(3078, "pg_sequence_parameters", &[ids::OID], ids::RECORD)
        .named(&["sequence_oid"])
        .columns(&[
            ("start_value", ids::INT8),
            ("minimum_value", ids::INT8),
            ("maximum_value", ids::INT8),
            ("increment", ids::INT8),
            ("cycle_option", ids::BOOL),
            ("cache_size", ids::INT8),
            ("data_type", ids::OID),
        ]),
    Function::server(3403, "pg_statistics_obj_is_visible", &[ids::OID], ids::BOOL),
    Function::server(2079, "pg_table_is_visible", &[ids::OID], ids::BOOL),
    Function::server(2997, "pg_table_size", &[ids::REGCLASS], ids::INT8).volatile(),
    Function::server_set(2556, "pg_tablespace_databases", &[ids::OID], ids::OID),
    Function::server(3778, "pg_tablespace_location", &[ids::OID], ids::TEXT),
    Function::server(2322, "pg_tablespace_size", &[ids::OID], ids::INT8).volatile(),
    Function::server(2323, "pg_tablespace_size", &[ids::NAME], ids::INT8).volatile(),
    Function::server(2286, "pg_total_relation_size", &[ids::REGCLASS], ids::INT8).volatile(),
    Function::server(3758, "pg_ts_config_is_visible", &[ids::OID], ids::BOOL),
    Function::server(3757, "pg_ts_dict_is_visible", &[ids::OID], ids::BOOL),
    Function::server(3756, "pg_ts_parser_is_visible", &[ids::OID], ids::BOOL),
    Function::server(3768, "pg_ts_template_is_visible", &[ids::OID], ids::BOOL),
    Function::server(2080, "pg_type_is_visible", &[ids::OID], ids::BOOL),
    Function::server(1576, "setval", &[ids::REGCLASS, ids::INT8], ids::INT8).volatile(),
    Function::server(
        1765,
        "setval",
        &[ids::REGCLASS, ids::INT8, ids::BOOL],
        ids::INT8,
    )
    .volatile(),
    Function::server(1993, "shobj_description", &[ids::OID, ids::NAME], ids::TEXT),
    Function::server(3495, "to_regclass", &[ids::TEXT], ids::REGCLASS),
    Function::server(4195, "to_regcollation", &[ids::TEXT], ids::REGCOLLATION),
    Function::server(4086, "to_regnamespace", &[ids::TEXT], ids::REGNAMESPACE),
    Function::server(3492, "to_regoper", &[ids::TEXT], ids::REGOPER),
    Function::server(3476, "to_regoperator", &[ids::TEXT], ids::REGOPERATOR),
    Function::server(3494, "to_regproc", &[ids::TEXT], ids::REGPROC),
    Function::server(3479, "to_regprocedure", &[ids::TEXT], ids::REGPROCEDURE),
    Function::server(4093, "to_regrole", &[ids::TEXT], ids::REGROLE),
    Function::server(3493, "to_regtype", &[ids::TEXT], ids::REGTYPE),
];
