//! Functions and operators of `json`.

mod access;
mod aggregate;
mod iso;
mod make;
mod populate;
mod sets;
mod strip;

pub(super) use access::path_of;
pub(super) use aggregate::no_key;

pub(super) use iso::{
    DAY, date_text, offset_at, timestamp_text, timestamptz_text, write_offset, write_time,
};
pub(super) use make::{
    Kind, argument_type, check_pairs, field_name, is_plain_text, key_text, kind_of, moment_text,
    number_kept, object_entries, spread,
};
pub(crate) use populate::POPULATING;
pub(super) use populate::{jsonb_populate_record, jsonb_populate_recordset, without_columns};
pub(super) use sets::pair_maker;

use self::access::*;
use self::make::*;
use self::populate::{json_populate_record, json_populate_recordset};
use self::sets::*;
use self::strip::json_strip_nulls;
use super::Function;
use crate::types::ids;

/// The functions of this file.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(
        3153,
        "array_to_json",
        &[ids::ANYARRAY],
        ids::JSON,
        array_to_json,
    )
    .stable(),
    Function::row(
        3154,
        "array_to_json",
        &[ids::ANYARRAY, ids::BOOL],
        ids::JSON,
        array_to_json,
    )
    .stable(),
    Function::aggregate(
        3175,
        "json_agg",
        &[ids::ANYELEMENT],
        ids::JSON,
        &aggregate::JSON_AGG,
    )
    .called_on_null()
    .stable(),
    Function::row(
        3949,
        "json_array_element",
        &[ids::JSON, ids::INT4],
        ids::JSON,
        json_array_element,
    )
    .named(&["from_json", "element_index"]),
    Function::row(
        3950,
        "json_array_element_text",
        &[ids::JSON, ids::INT4],
        ids::TEXT,
        json_array_element_text,
    )
    .named(&["from_json", "element_index"]),
    Function::set(
        3955,
        "json_array_elements",
        &[ids::JSON],
        ids::JSON,
        json_array_elements,
    )
    .named(&["from_json"])
    .columns(&[("value", ids::JSON)]),
    Function::set(
        3969,
        "json_array_elements_text",
        &[ids::JSON],
        ids::TEXT,
        json_array_elements_text,
    )
    .named(&["from_json"])
    .columns(&[("value", ids::TEXT)]),
    Function::row(
        3956,
        "json_array_length",
        &[ids::JSON],
        ids::INT4,
        json_array_length,
    ),
    Function::row(
        3198,
        "json_build_array",
        &[ids::ANY],
        ids::JSON,
        json_build_array,
    )
    .called_on_null()
    .stable()
    .variadic(ids::ANY),
    Function::row(3199, "json_build_array", &[], ids::JSON, json_build_array)
        .stable()
        .called_on_null(),
    Function::row(
        3200,
        "json_build_object",
        &[ids::ANY],
        ids::JSON,
        json_build_object,
    )
    .called_on_null()
    .stable()
    .variadic(ids::ANY),
    Function::row(3201, "json_build_object", &[], ids::JSON, json_build_object)
        .stable()
        .called_on_null(),
    Function::set(3958, "json_each", &[ids::JSON], ids::RECORD, json_each)
        .named(&["from_json"])
        .columns(&[("key", ids::TEXT), ("value", ids::JSON)]),
    Function::set(
        3959,
        "json_each_text",
        &[ids::JSON],
        ids::RECORD,
        json_each_text,
    )
    .named(&["from_json"])
    .columns(&[("key", ids::TEXT), ("value", ids::TEXT)]),
    Function::row(
        3951,
        "json_extract_path",
        &[ids::JSON, ids::TEXT_ARRAY],
        ids::JSON,
        json_extract_path,
    )
    .variadic(ids::TEXT)
    .named(&["from_json", "path_elems"]),
    Function::row(
        3953,
        "json_extract_path_text",
        &[ids::JSON, ids::TEXT_ARRAY],
        ids::TEXT,
        json_extract_path_text,
    )
    .variadic(ids::TEXT)
    .named(&["from_json", "path_elems"]),
    Function::row(
        3202,
        "json_object",
        &[ids::TEXT_ARRAY],
        ids::JSON,
        json_object,
    ),
    Function::row(
        3203,
        "json_object",
        &[ids::TEXT_ARRAY, ids::TEXT_ARRAY],
        ids::JSON,
        json_object,
    ),
    Function::aggregate(
        3197,
        "json_object_agg",
        &[ids::ANY, ids::ANY],
        ids::JSON,
        &aggregate::JSON_OBJECT_AGG,
    )
    .called_on_null()
    .stable(),
    Function::row(
        3947,
        "json_object_field",
        &[ids::JSON, ids::TEXT],
        ids::JSON,
        json_object_field,
    )
    .named(&["from_json", "field_name"]),
    Function::row(
        3948,
        "json_object_field_text",
        &[ids::JSON, ids::TEXT],
        ids::TEXT,
        json_object_field_text,
    )
    .named(&["from_json", "field_name"]),
    Function::set(
        3957,
        "json_object_keys",
        &[ids::JSON],
        ids::TEXT,
        json_object_keys,
    ),
    Function::row(3204, "json_to_record", &[ids::JSON], ids::RECORD, |_, _| {
        without_columns("json_to_record")
    })
    .stable(),
    Function::set(
        3205,
        "json_to_recordset",
        &[ids::JSON],
        ids::RECORD,
        |_, _| without_columns("json_to_recordset"),
    )
    .stable(),
    Function::row(
        3960,
        "json_populate_record",
        &[ids::ANYELEMENT, ids::JSON, ids::BOOL],
        ids::ANYELEMENT,
        json_populate_record,
    )
    .called_on_null()
    .stable()
    .defaults(&[Some("false")])
    .named(&["base", "from_json", "use_json_as_text"]),
    Function::set(
        3961,
        "json_populate_recordset",
        &[ids::ANYELEMENT, ids::JSON, ids::BOOL],
        ids::ANYELEMENT,
        json_populate_recordset,
    )
    .called_on_null()
    .stable()
    .defaults(&[Some("false")])
    .named(&["base", "from_json", "use_json_as_text"]),
    Function::row(
        3261,
        "json_strip_nulls",
        &[ids::JSON],
        ids::JSON,
        json_strip_nulls,
    ),
    Function::row(3968, "json_typeof", &[ids::JSON], ids::TEXT, json_typeof),
    Function::row(3155, "row_to_json", &[ids::RECORD], ids::JSON, row_to_json).stable(),
    Function::row(
        3156,
        "row_to_json",
        &[ids::RECORD, ids::BOOL],
        ids::JSON,
        row_to_json,
    )
    .stable(),
    Function::row(3176, "to_json", &[ids::ANYELEMENT], ids::JSON, to_json).stable(),
];
