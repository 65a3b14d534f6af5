//! Functions and operators of texts.

mod case;
mod convert;
pub(in crate::functions) mod ctype;
mod make;
mod part;

use std::cmp::Ordering;

pub(in crate::functions) use self::case::lowered;
pub(in crate::functions) use self::make::is_variadic;
pub(in crate::functions) use self::part::{characters, end_of_part, negative_length};
use super::Function;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::Result;
use crate::types::ids;
use crate::types::text::{compare_bpchar, without_padding};

/// The functions of this file.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::row(67, "texteq", &[ids::TEXT, ids::TEXT], ids::BOOL, |_, a| {
        truth(equal(a))
    }),
    Function::row(157, "textne", &[ids::TEXT, ids::TEXT], ids::BOOL, |_, a| {
        truth(!equal(a))
    }),
    Function::row(
        740,
        "text_lt",
        &[ids::TEXT, ids::TEXT],
        ids::BOOL,
        |_, a| truth(order(a).is_lt()),
    ),
    Function::row(
        741,
        "text_le",
        &[ids::TEXT, ids::TEXT],
        ids::BOOL,
        |_, a| truth(order(a).is_le()),
    ),
    Function::row(
        742,
        "text_gt",
        &[ids::TEXT, ids::TEXT],
        ids::BOOL,
        |_, a| truth(order(a).is_gt()),
    ),
    Function::row(
        743,
        "text_ge",
        &[ids::TEXT, ids::TEXT],
        ids::BOOL,
        |_, a| truth(order(a).is_ge()),
    ),
    Function::row(
        2160,
        "text_pattern_lt",
        &[ids::TEXT, ids::TEXT],
        ids::BOOL,
        |_, a| truth(order(a).is_lt()),
    ),
    Function::row(
        2161,
        "text_pattern_le",
        &[ids::TEXT, ids::TEXT],
        ids::BOOL,
        |_, a| truth(order(a).is_le()),
    ),
    Function::row(
        2164,
        "text_pattern_gt",
        &[ids::TEXT, ids::TEXT],
        ids::BOOL,
        |_, a| truth(order(a).is_gt()),
    ),
    Function::row(
        2163,
        "text_pattern_ge",
        &[ids::TEXT, ids::TEXT],
        ids::BOOL,
        |_, a| truth(order(a).is_ge()),
    ),
    Function::row(62, "nameeq", &[ids::NAME, ids::NAME], ids::BOOL, |_, a| {
        truth(equal(a))
    }),
    Function::row(659, "namene", &[ids::NAME, ids::NAME], ids::BOOL, |_, a| {
        truth(!equal(a))
    }),
    Function::row(655, "namelt", &[ids::NAME, ids::NAME], ids::BOOL, |_, a| {
        truth(order(a).is_lt())
    }),
    Function::row(656, "namele", &[ids::NAME, ids::NAME], ids::BOOL, |_, a| {
        truth(order(a).is_le())
    }),
    Function::row(657, "namegt", &[ids::NAME, ids::NAME], ids::BOOL, |_, a| {
        truth(order(a).is_gt())
    }),
    Function::row(658, "namege", &[ids::NAME, ids::NAME], ids::BOOL, |_, a| {
        truth(order(a).is_ge())
    }),
    Function::row(
        240,
        "nameeqtext",
        &[ids::NAME, ids::TEXT],
        ids::BOOL,
        |_, a| truth(equal(a)),
    ),
    Function::row(
        245,
        "namenetext",
        &[ids::NAME, ids::TEXT],
        ids::BOOL,
        |_, a| truth(!equal(a)),
    ),
    Function::row(
        241,
        "namelttext",
        &[ids::NAME, ids::TEXT],
        ids::BOOL,
        |_, a| truth(order(a).is_lt()),
    ),
    Function::row(
        242,
        "nameletext",
        &[ids::NAME, ids::TEXT],
        ids::BOOL,
        |_, a| truth(order(a).is_le()),
    ),
    Function::row(
        244,
        "namegttext",
        &[ids::NAME, ids::TEXT],
        ids::BOOL,
        |_, a| truth(order(a).is_gt()),
    ),
    Function::row(
        243,
        "namegetext",
        &[ids::NAME, ids::TEXT],
        ids::BOOL,
        |_, a| truth(order(a).is_ge()),
    ),
    Function::row(
        247,
        "texteqname",
        &[ids::TEXT, ids::NAME],
        ids::BOOL,
        |_, a| truth(equal(a)),
    ),
    Function::row(
        252,
        "textnename",
        &[ids::TEXT, ids::NAME],
        ids::BOOL,
        |_, a| truth(!equal(a)),
    ),
    Function::row(
        248,
        "textltname",
        &[ids::TEXT, ids::NAME],
        ids::BOOL,
        |_, a| truth(order(a).is_lt()),
    ),
    Function::row(
        249,
        "textlename",
        &[ids::TEXT, ids::NAME],
        ids::BOOL,
        |_, a| truth(order(a).is_le()),
    ),
    Function::row(
        251,
        "textgtname",
        &[ids::TEXT, ids::NAME],
        ids::BOOL,
        |_, a| truth(order(a).is_gt()),
    ),
    Function::row(
        250,
        "textgename",
        &[ids::TEXT, ids::NAME],
        ids::BOOL,
        |_, a| truth(order(a).is_ge()),
    ),
    Function::row(
        1048,
        "bpchareq",
        &[ids::BPCHAR, ids::BPCHAR],
        ids::BOOL,
        |_, a| truth(equal_bpchar(a)),
    ),
    Function::row(
        1053,
        "bpcharne",
        &[ids::BPCHAR, ids::BPCHAR],
        ids::BOOL,
        |_, a| truth(!equal_bpchar(a)),
    ),
    Function::row(
        1049,
        "bpcharlt",
        &[ids::BPCHAR, ids::BPCHAR],
        ids::BOOL,
        |_, a| truth(order_bpchar(a).is_lt()),
    ),
    Function::row(
        1050,
        "bpcharle",
        &[ids::BPCHAR, ids::BPCHAR],
        ids::BOOL,
        |_, a| truth(order_bpchar(a).is_le()),
    ),
    Function::row(
        1051,
        "bpchargt",
        &[ids::BPCHAR, ids::BPCHAR],
        ids::BOOL,
        |_, a| truth(order_bpchar(a).is_gt()),
    ),
    Function::row(
        1052,
        "bpcharge",
        &[ids::BPCHAR, ids::BPCHAR],
        ids::BOOL,
        |_, a| truth(order_bpchar(a).is_ge()),
    ),
    Function::row(
        2174,
        "bpchar_pattern_lt",
        &[ids::BPCHAR, ids::BPCHAR],
        ids::BOOL,
        |_, a| truth(order_bpchar(a).is_lt()),
    ),
    Function::row(
        2175,
        "bpchar_pattern_le",
        &[ids::BPCHAR, ids::BPCHAR],
        ids::BOOL,
        |_, a| truth(order_bpchar(a).is_le()),
    ),
    Function::row(
        2178,
        "bpchar_pattern_gt",
        &[ids::BPCHAR, ids::BPCHAR],
        ids::BOOL,
        |_, a| truth(order_bpchar(a).is_gt()),
    ),
    Function::row(
        2177,
        "bpchar_pattern_ge",
        &[ids::BPCHAR, ids::BPCHAR],
        ids::BOOL,
        |_, a| truth(order_bpchar(a).is_ge()),
    ),
    Function::row(61, "chareq", &[ids::CHAR, ids::CHAR], ids::BOOL, |_, a| {
        truth(order_char(a).is_eq())
    }),
    Function::row(70, "charne", &[ids::CHAR, ids::CHAR], ids::BOOL, |_, a| {
        truth(order_char(a).is_ne())
    }),
    Function::row(
        1246,
        "charlt",
        &[ids::CHAR, ids::CHAR],
        ids::BOOL,
        |_, a| truth(order_char(a).is_lt()),
    ),
    Function::row(72, "charle", &[ids::CHAR, ids::CHAR], ids::BOOL, |_, a| {
        truth(order_char(a).is_le())
    }),
    Function::row(73, "chargt", &[ids::CHAR, ids::CHAR], ids::BOOL, |_, a| {
        truth(order_char(a).is_gt())
    }),
    Function::row(74, "charge", &[ids::CHAR, ids::CHAR], ids::BOOL, |_, a| {
        truth(order_char(a).is_ge())
    }),
    Function::row(
        360,
        "bttextcmp",
        &[ids::TEXT, ids::TEXT],
        ids::INT4,
        compare,
    ),
    Function::row(
        359,
        "btnamecmp",
        &[ids::NAME, ids::NAME],
        ids::INT4,
        compare,
    ),
    Function::row(
        246,
        "btnametextcmp",
        &[ids::NAME, ids::TEXT],
        ids::INT4,
        pattern_compare,
    ),
    Function::row(
        253,
        "bttextnamecmp",
        &[ids::TEXT, ids::NAME],
        ids::INT4,
        pattern_compare,
    ),
    Function::row(
        2166,
        "bttext_pattern_cmp",
        &[ids::TEXT, ids::TEXT],
        ids::INT4,
        pattern_compare,
    ),
    Function::row(
        1078,
        "bpcharcmp",
        &[ids::BPCHAR, ids::BPCHAR],
        ids::INT4,
        bpchar_compare,
    ),
    Function::row(
        2180,
        "btbpchar_pattern_cmp",
        &[ids::BPCHAR, ids::BPCHAR],
        ids::INT4,
        bpchar_pattern_compare,
    ),
    Function::row(
        358,
        "btcharcmp",
        &[ids::CHAR, ids::CHAR],
        ids::INT4,
        |_, a| {
            Ok(Datum::Int4(
                i32::from(a[0].as_char()) - i32::from(a[1].as_char()),
            ))
        },
    ),
    Function::row(
        458,
        "text_larger",
        &[ids::TEXT, ids::TEXT],
        ids::TEXT,
        |_, a| either(a, order(a).is_gt()),
    ),
    Function::row(
        459,
        "text_smaller",
        &[ids::TEXT, ids::TEXT],
        ids::TEXT,
        |_, a| either(a, order(a).is_lt()),
    ),
    Function::row(
        1063,
        "bpchar_larger",
        &[ids::BPCHAR, ids::BPCHAR],
        ids::BPCHAR,
        |_, a| either(a, order_bpchar(a).is_ge()),
    ),
    Function::row(
        1064,
        "bpchar_smaller",
        &[ids::BPCHAR, ids::BPCHAR],
        ids::BPCHAR,
        |_, a| either(a, order_bpchar(a).is_le()),
    ),
    Function::row(870, "lower", &[ids::TEXT], ids::TEXT, case::lower),
    Function::row(871, "upper", &[ids::TEXT], ids::TEXT, case::upper),
    Function::row(872, "initcap", &[ids::TEXT], ids::TEXT, case::initcap),
    Function::row(1317, "length", &[ids::TEXT], ids::INT4, part::length),
    Function::row(
        1318,
        "length",
        &[ids::BPCHAR],
        ids::INT4,
        part::bpchar_length,
    ),
    Function::row(1381, "char_length", &[ids::TEXT], ids::INT4, part::length),
    Function::row(
        1372,
        "char_length",
        &[ids::BPCHAR],
        ids::INT4,
        part::bpchar_length,
    ),
    Function::row(
        1369,
        "character_length",
        &[ids::TEXT],
        ids::INT4,
        part::length,
    ),
    Function::row(
        1367,
        "character_length",
        &[ids::BPCHAR],
        ids::INT4,
        part::bpchar_length,
    ),
    Function::row(1257, "textlen", &[ids::TEXT], ids::INT4, part::length),
    Function::row(
        1374,
        "octet_length",
        &[ids::TEXT],
        ids::INT4,
        part::octet_length,
    ),
    Function::row(
        1375,
        "octet_length",
        &[ids::BPCHAR],
        ids::INT4,
        part::octet_length,
    ),
    Function::row(
        1811,
        "bit_length",
        &[ids::TEXT],
        ids::INT4,
        part::bit_length,
    ),
    Function::row(
        937,
        "substring",
        &[ids::TEXT, ids::INT4],
        ids::TEXT,
        part::substring,
    ),
    Function::row(
        936,
        "substring",
        &[ids::TEXT, ids::INT4, ids::INT4],
        ids::TEXT,
        part::substring,
    ),
    Function::row(
        883,
        "substr",
        &[ids::TEXT, ids::INT4],
        ids::TEXT,
        part::substring,
    ),
    Function::row(
        877,
        "substr",
        &[ids::TEXT, ids::INT4, ids::INT4],
        ids::TEXT,
        part::substring,
    ),
    Function::row(
        1405,
        "overlay",
        &[ids::TEXT, ids::TEXT, ids::INT4],
        ids::TEXT,
        part::overlay,
    ),
    Function::row(
        1404,
        "overlay",
        &[ids::TEXT, ids::TEXT, ids::INT4, ids::INT4],
        ids::TEXT,
        part::overlay,
    ),
    Function::row(3060, "left", &[ids::TEXT, ids::INT4], ids::TEXT, part::left),
    Function::row(
        3061,
        "right",
        &[ids::TEXT, ids::INT4],
        ids::TEXT,
        part::right,
    ),
    Function::row(
        849,
        "position",
        &[ids::TEXT, ids::TEXT],
        ids::INT4,
        part::position,
    ),
    Function::row(
        868,
        "strpos",
        &[ids::TEXT, ids::TEXT],
        ids::INT4,
        part::position,
    ),
    Function::row(
        3696,
        "starts_with",
        &[ids::TEXT, ids::TEXT],
        ids::BOOL,
        part::starts_with,
    ),
    Function::row(885, "btrim", &[ids::TEXT], ids::TEXT, part::btrim),
    Function::row(
        884,
        "btrim",
        &[ids::TEXT, ids::TEXT],
        ids::TEXT,
        part::btrim,
    ),
    Function::row(881, "ltrim", &[ids::TEXT], ids::TEXT, part::ltrim),
    Function::row(
        875,
        "ltrim",
        &[ids::TEXT, ids::TEXT],
        ids::TEXT,
        part::ltrim,
    ),
    Function::row(882, "rtrim", &[ids::TEXT], ids::TEXT, part::rtrim),
    Function::row(
        876,
        "rtrim",
        &[ids::TEXT, ids::TEXT],
        ids::TEXT,
        part::rtrim,
    ),
    Function::row(
        2088,
        "split_part",
        &[ids::TEXT, ids::TEXT, ids::INT4],
        ids::TEXT,
        part::split_part,
    ),
    Function::row(
        394,
        "string_to_array",
        &[ids::TEXT, ids::TEXT],
        ids::TEXT_ARRAY,
        part::string_to_array,
    )
    .called_on_null(),
    Function::row(
        376,
        "string_to_array",
        &[ids::TEXT, ids::TEXT, ids::TEXT],
        ids::TEXT_ARRAY,
        part::string_to_array,
    )
    .called_on_null(),
    Function::set(
        6160,
        "string_to_table",
        &[ids::TEXT, ids::TEXT],
        ids::TEXT,
        part::string_to_table,
    )
    .called_on_null(),
    Function::set(
        6161,
        "string_to_table",
        &[ids::TEXT, ids::TEXT, ids::TEXT],
        ids::TEXT,
        part::string_to_table,
    )
    .called_on_null(),
    Function::row(
        1258,
        "textcat",
        &[ids::TEXT, ids::TEXT],
        ids::TEXT,
        make::textcat,
    ),
    Function::row(
        2003,
        "textanycat",
        &[ids::TEXT, ids::ANYNONARRAY],
        ids::TEXT,
        make::cat_any,
    )
    .stable(),
    Function::row(
        2004,
        "anytextcat",
        &[ids::ANYNONARRAY, ids::TEXT],
        ids::TEXT,
        make::cat_any,
    )
    .stable(),
    Function::row(3058, "concat", &[ids::ANY], ids::TEXT, make::concat)
        .called_on_null()
        .stable()
        .variadic(ids::ANY),
    Function::row(
        3059,
        "concat_ws",
        &[ids::TEXT, ids::ANY],
        ids::TEXT,
        make::concat_ws,
    )
    .called_on_null()
    .stable()
    .variadic(ids::ANY),
    Function::row(
        395,
        "array_to_string",
        &[ids::ANYARRAY, ids::TEXT],
        ids::TEXT,
        make::array_to_string,
    )
    .stable(),
    Function::row(
        384,
        "array_to_string",
        &[ids::ANYARRAY, ids::TEXT, ids::TEXT],
        ids::TEXT,
        make::array_to_string,
    )
    .called_on_null()
    .stable(),
    Function::row(
        1622,
        "repeat",
        &[ids::TEXT, ids::INT4],
        ids::TEXT,
        make::repeat,
    ),
    Function::row(879, "lpad", &[ids::TEXT, ids::INT4], ids::TEXT, make::lpad),
    Function::row(
        873,
        "lpad",
        &[ids::TEXT, ids::INT4, ids::TEXT],
        ids::TEXT,
        make::lpad,
    ),
    Function::row(880, "rpad", &[ids::TEXT, ids::INT4], ids::TEXT, make::rpad),
    Function::row(
        874,
        "rpad",
        &[ids::TEXT, ids::INT4, ids::TEXT],
        ids::TEXT,
        make::rpad,
    ),
    Function::row(
        2087,
        "replace",
        &[ids::TEXT, ids::TEXT, ids::TEXT],
        ids::TEXT,
        make::replace,
    ),
    Function::row(
        878,
        "translate",
        &[ids::TEXT, ids::TEXT, ids::TEXT],
        ids::TEXT,
        make::translate,
    ),
    Function::row(3062, "reverse", &[ids::TEXT], ids::TEXT, make::reverse),
    Function::row(1621, "chr", &[ids::INT4], ids::TEXT, make::chr),
    Function::row(1620, "ascii", &[ids::TEXT], ids::INT4, make::ascii),
    Function::row(
        4350,
        "normalize",
        &[ids::TEXT, ids::TEXT],
        ids::TEXT,
        make::normalize,
    )
    .defaults(&[Some("NFC")]),
    Function::row(
        4351,
        "is_normalized",
        &[ids::TEXT, ids::TEXT],
        ids::BOOL,
        make::is_normalized,
    )
    .defaults(&[Some("NFC")]),
    Function::row(6198, "unistr", &[ids::TEXT], ids::TEXT, make::unistr),
    Function::row(2089, "to_hex", &[ids::INT4], ids::TEXT, convert::to_hex),
    Function::row(2090, "to_hex", &[ids::INT8], ids::TEXT, convert::to_hex),
    Function::row(
        266,
        "nameconcatoid",
        &[ids::NAME, ids::OID],
        ids::NAME,
        convert::name_and_oid,
    ),
    Function::row(
        668,
        "bpchar",
        &[ids::BPCHAR, ids::INT4, ids::BOOL],
        ids::BPCHAR,
        convert::bpchar,
    ),
    Function::row(
        669,
        "varchar",
        &[ids::VARCHAR, ids::INT4, ids::BOOL],
        ids::VARCHAR,
        convert::varchar,
    ),
    Function::row(407, "name", &[ids::TEXT], ids::NAME, convert::text_name),
    Function::row(1400, "name", &[ids::VARCHAR], ids::NAME, convert::text_name),
    Function::row(409, "name", &[ids::BPCHAR], ids::NAME, convert::bpchar_name),
    Function::row(408, "bpchar", &[ids::NAME], ids::BPCHAR, convert::same),
    Function::row(1401, "varchar", &[ids::NAME], ids::VARCHAR, convert::same),
    Function::row(406, "text", &[ids::NAME], ids::TEXT, convert::same),
    Function::row(401, "text", &[ids::BPCHAR], ids::TEXT, convert::bpchar_text),
    Function::row(946, "text", &[ids::CHAR], ids::TEXT, convert::char_text),
    Function::row(
        860,
        "bpchar",
        &[ids::CHAR],
        ids::BPCHAR,
        convert::char_bpchar,
    ),
    Function::row(944, "char", &[ids::TEXT], ids::CHAR, convert::text_char),
    Function::row(78, "char", &[ids::INT4], ids::CHAR, convert::int4_char),
    Function::row(77, "int4", &[ids::CHAR], ids::INT4, convert::char_int4),
];

fn truth(value: bool) -> Result<Datum> {
    Ok(Datum::Bool(value))
}

fn order(a: &[Datum]) -> Ordering {
    a[0].as_text().as_bytes().cmp(a[1].as_text().as_bytes())
}

fn equal(a: &[Datum]) -> bool {
    a[0].as_text() == a[1].as_text()
}

fn order_bpchar(a: &[Datum]) -> Ordering {
    compare_bpchar(&a[0], &a[1])
}

fn equal_bpchar(a: &[Datum]) -> bool {
    without_padding(a[0].as_text()) == without_padding(a[1].as_text())
}

fn order_char(a: &[Datum]) -> Ordering {
    a[0].as_char().cmp(&a[1].as_char())
}

/// Which of two texts comes first: the difference of the first bytes that
/// differ, where the end counts as 0.
fn difference(a: &str, b: &str) -> Result<Datum> {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let byte = |text: &str| text.as_bytes().get(same).copied().map_or(0, i32::from);
    Ok(Datum::Int4(byte(a) - byte(b)))
}

fn compare(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    difference(a[0].as_text(), a[1].as_text())
}

fn bpchar_compare(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    difference(
        without_padding(a[0].as_text()),
        without_padding(a[1].as_text()),
    )
}

/// As `compare`, where the end is less than all else and no more.
fn pattern_compare(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let (a, b) = (a[0].as_text().as_bytes(), a[1].as_text().as_bytes());
    Ok(Datum::Int4(bytes_difference(a, b)))
}

fn bpchar_pattern_compare(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let bytes = |value: &Datum| without_padding(value.as_text()).as_bytes().to_vec();
    Ok(Datum::Int4(bytes_difference(&bytes(&a[0]), &bytes(&a[1]))))
}

/// The difference of the first bytes that differ, else the sign of that of the lengths.
pub(in crate::functions) fn bytes_difference(a: &[u8], b: &[u8]) -> i32 {
    let different = a.iter().zip(b).find(|(a, b)| a != b);
    different.map_or_else(
        || a.len().cmp(&b.len()) as i32,
        |(a, b)| i32::from(*a) - i32::from(*b),
    )
}

/// One of two values: the first where this holds for it.
fn either(a: &[Datum], first: bool) -> Result<Datum> {
    Ok(a[usize::from(!first)].clone())
}
