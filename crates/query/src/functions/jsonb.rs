//! Functions and operators of `jsonb`.

mod access;
mod aggregate;
mod casts;
mod change;
mod compare;
mod contain;
mod make;
mod sets;

use self::access::*;
use self::casts::*;
use self::change::*;
use self::compare::*;
use self::contain::*;
use self::make::*;
use self::sets::*;
use super::Function;
use super::json::{jsonb_populate_record, jsonb_populate_recordset, without_columns};
use crate::types::ids;

/// The functions of this file.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(3556, "bool", &[ids::JSONB], ids::BOOL, to_bool),
    Function::row(3453, "float4", &[ids::JSONB], ids::FLOAT4, to_float4),
    Function::row(2580, "float8", &[ids::JSONB], ids::FLOAT8, to_float8),
    Function::row(3450, "int2", &[ids::JSONB], ids::INT2, to_int2),
    Function::row(3451, "int4", &[ids::JSONB], ids::INT4, to_int4),
    Function::row(3452, "int8", &[ids::JSONB], ids::INT8, to_int8),
    Function::aggregate(
        3267,
        "jsonb_agg",
        &[ids::ANYELEMENT],
        ids::JSONB,
        &aggregate::JSONB_AGG,
    )
    .called_on_null()
    .stable(),
    Function::row(
        3215,
        "jsonb_array_element",
        &[ids::JSONB, ids::INT4],
        ids::JSONB,
        jsonb_array_element,
    )
    .named(&["from_json", "element_index"]),
    Function::row(
        3216,
        "jsonb_array_element_text",
        &[ids::JSONB, ids::INT4],
        ids::TEXT,
        jsonb_array_element_text,
    )
    .named(&["from_json", "element_index"]),
    Function::set(
        3219,
        "jsonb_array_elements",
        &[ids::JSONB],
        ids::JSONB,
        jsonb_array_elements,
    )
    .named(&["from_json"])
    .columns(&[("value", ids::JSONB)]),
    Function::set(
        3465,
        "jsonb_array_elements_text",
        &[ids::JSONB],
        ids::TEXT,
        jsonb_array_elements_text,
    )
    .named(&["from_json"])
    .columns(&[("value", ids::TEXT)]),
    Function::row(
        3207,
        "jsonb_array_length",
        &[ids::JSONB],
        ids::INT4,
        jsonb_array_length,
    ),
    Function::row(
        3271,
        "jsonb_build_array",
        &[ids::ANY],
        ids::JSONB,
        jsonb_build_array,
    )
    .called_on_null()
    .stable()
    .variadic(ids::ANY),
    Function::row(
        3272,
        "jsonb_build_array",
        &[],
        ids::JSONB,
        jsonb_build_array,
    )
    .stable()
    .called_on_null(),
    Function::row(
        3273,
        "jsonb_build_object",
        &[ids::ANY],
        ids::JSONB,
        jsonb_build_object,
    )
    .called_on_null()
    .stable()
    .variadic(ids::ANY),
    Function::row(
        3274,
        "jsonb_build_object",
        &[],
        ids::JSONB,
        jsonb_build_object,
    )
    .stable()
    .called_on_null(),
    Function::row(
        4044,
        "jsonb_cmp",
        &[ids::JSONB, ids::JSONB],
        ids::INT4,
        jsonb_cmp,
    ),
    Function::row(
        3301,
        "jsonb_concat",
        &[ids::JSONB, ids::JSONB],
        ids::JSONB,
        jsonb_concat,
    ),
    Function::row(
        4050,
        "jsonb_contained",
        &[ids::JSONB, ids::JSONB],
        ids::BOOL,
        jsonb_contained,
    ),
    Function::row(
        4046,
        "jsonb_contains",
        &[ids::JSONB, ids::JSONB],
        ids::BOOL,
        jsonb_contains,
    ),
    Function::row(
        3302,
        "jsonb_delete",
        &[ids::JSONB, ids::TEXT],
        ids::JSONB,
        jsonb_delete,
    ),
    Function::row(
        3303,
        "jsonb_delete",
        &[ids::JSONB, ids::INT4],
        ids::JSONB,
        jsonb_delete_place,
    ),
    Function::row(
        3343,
        "jsonb_delete",
        &[ids::JSONB, ids::TEXT_ARRAY],
        ids::JSONB,
        jsonb_delete_keys,
    )
    .variadic(ids::TEXT)
    .named(&["from_json", "path_elems"]),
    Function::row(
        3304,
        "jsonb_delete_path",
        &[ids::JSONB, ids::TEXT_ARRAY],
        ids::JSONB,
        jsonb_delete_path,
    ),
    Function::set(3208, "jsonb_each", &[ids::JSONB], ids::RECORD, jsonb_each)
        .named(&["from_json"])
        .columns(&[("key", ids::TEXT), ("value", ids::JSONB)]),
    Function::set(
        3932,
        "jsonb_each_text",
        &[ids::JSONB],
        ids::RECORD,
        jsonb_each_text,
    )
    .named(&["from_json"])
    .columns(&[("key", ids::TEXT), ("value", ids::TEXT)]),
    Function::row(
        4043,
        "jsonb_eq",
        &[ids::JSONB, ids::JSONB],
        ids::BOOL,
        jsonb_eq,
    ),
    Function::row(
        4047,
        "jsonb_exists",
        &[ids::JSONB, ids::TEXT],
        ids::BOOL,
        jsonb_exists,
    ),
    Function::row(
        4049,
        "jsonb_exists_all",
        &[ids::JSONB, ids::TEXT_ARRAY],
        ids::BOOL,
        jsonb_exists_all,
    ),
    Function::row(
        4048,
        "jsonb_exists_any",
        &[ids::JSONB, ids::TEXT_ARRAY],
        ids::BOOL,
        jsonb_exists_any,
    ),
    Function::row(
        3217,
        "jsonb_extract_path",
        &[ids::JSONB, ids::TEXT_ARRAY],
        ids::JSONB,
        jsonb_extract_path,
    )
    .variadic(ids::TEXT)
    .named(&["from_json", "path_elems"]),
    Function::row(
        3940,
        "jsonb_extract_path_text",
        &[ids::JSONB, ids::TEXT_ARRAY],
        ids::TEXT,
        jsonb_extract_path_text,
    )
    .variadic(ids::TEXT)
    .named(&["from_json", "path_elems"]),
    Function::row(
        4042,
        "jsonb_ge",
        &[ids::JSONB, ids::JSONB],
        ids::BOOL,
        jsonb_ge,
    ),
    Function::row(
        4040,
        "jsonb_gt",
        &[ids::JSONB, ids::JSONB],
        ids::BOOL,
        jsonb_gt,
    ),
    Function::row(
        3579,
        "jsonb_insert",
        &[ids::JSONB, ids::TEXT_ARRAY, ids::JSONB, ids::BOOL],
        ids::JSONB,
        jsonb_insert,
    )
    .defaults(&[Some("false")])
    .named(&["jsonb_in", "path", "replacement", "insert_after"]),
    Function::row(
        4041,
        "jsonb_le",
        &[ids::JSONB, ids::JSONB],
        ids::BOOL,
        jsonb_le,
    ),
    Function::row(
        4039,
        "jsonb_lt",
        &[ids::JSONB, ids::JSONB],
        ids::BOOL,
        jsonb_lt,
    ),
    Function::row(
        4038,
        "jsonb_ne",
        &[ids::JSONB, ids::JSONB],
        ids::BOOL,
        jsonb_ne,
    ),
    Function::row(
        3263,
        "jsonb_object",
        &[ids::TEXT_ARRAY],
        ids::JSONB,
        jsonb_object,
    ),
    Function::row(
        3264,
        "jsonb_object",
        &[ids::TEXT_ARRAY, ids::TEXT_ARRAY],
        ids::JSONB,
        jsonb_object,
    ),
    Function::aggregate(
        3270,
        "jsonb_object_agg",
        &[ids::ANY, ids::ANY],
        ids::JSONB,
        &aggregate::JSONB_OBJECT_AGG,
    )
    .called_on_null(),
    Function::row(
        3478,
        "jsonb_object_field",
        &[ids::JSONB, ids::TEXT],
        ids::JSONB,
        jsonb_object_field,
    )
    .named(&["from_json", "field_name"]),
    Function::row(
        3214,
        "jsonb_object_field_text",
        &[ids::JSONB, ids::TEXT],
        ids::TEXT,
        jsonb_object_field_text,
    )
    .named(&["from_json", "field_name"]),
    Function::set(
        3931,
        "jsonb_object_keys",
        &[ids::JSONB],
        ids::TEXT,
        jsonb_object_keys,
    ),
    Function::row(
        3490,
        "jsonb_to_record",
        &[ids::JSONB],
        ids::RECORD,
        |_, _| without_columns("jsonb_to_record"),
    )
    .stable(),
    Function::set(
        3491,
        "jsonb_to_recordset",
        &[ids::JSONB],
        ids::RECORD,
        |_, _| without_columns("jsonb_to_recordset"),
    )
    .stable(),
    Function::row(
        3209,
        "jsonb_populate_record",
        &[ids::ANYELEMENT, ids::JSONB],
        ids::ANYELEMENT,
        jsonb_populate_record,
    )
    .called_on_null()
    .stable(),
    Function::set(
        3475,
        "jsonb_populate_recordset",
        &[ids::ANYELEMENT, ids::JSONB],
        ids::ANYELEMENT,
        jsonb_populate_recordset,
    )
    .called_on_null()
    .stable(),
    Function::row(3306, "jsonb_pretty", &[ids::JSONB], ids::TEXT, jsonb_pretty),
    Function::row(
        3305,
        "jsonb_set",
        &[ids::JSONB, ids::TEXT_ARRAY, ids::JSONB, ids::BOOL],
        ids::JSONB,
        jsonb_set,
    )
    .defaults(&[Some("true")])
    .named(&["jsonb_in", "path", "replacement", "create_if_missing"]),
    Function::row(
        5054,
        "jsonb_set_lax",
        &[
            ids::JSONB,
            ids::TEXT_ARRAY,
            ids::JSONB,
            ids::BOOL,
            ids::TEXT,
        ],
        ids::JSONB,
        jsonb_set_lax,
    )
    .called_on_null()
    .defaults(&[Some("true"), Some("use_json_null")])
    .named(&[
        "jsonb_in",
        "path",
        "replacement",
        "create_if_missing",
        "null_value_treatment",
    ]),
    Function::row(
        3262,
        "jsonb_strip_nulls",
        &[ids::JSONB],
        ids::JSONB,
        jsonb_strip_nulls,
    ),
    Function::row(3210, "jsonb_typeof", &[ids::JSONB], ids::TEXT, jsonb_typeof),
    Function::row(3449, "numeric", &[ids::JSONB], ids::NUMERIC, to_numeric),
    Function::row(3787, "to_jsonb", &[ids::ANYELEMENT], ids::JSONB, to_jsonb).stable(),
];
