//! Functions of catalog queries: those that look into the catalog, those that
//! ask the session, and a few on arrays and texts. What is not here is looked
//! up among the storage floor's scalar functions.

mod arrays;
mod definitions;
mod privileges;
mod quoting;
mod sessions;
mod settings;

pub(crate) use definitions::index as index_definition;
pub(crate) use quoting::quote_ident;
use quoting::quote_literal;

use thermocline_storage::functions as scalar;
use thermocline_storage::types::DataType;

use super::run::Run;
use super::text::{datum_text, json_string, json_text, scalar_value};
use crate::error::{Result, SqlError};
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::pg_type::{PgType, format_type};

/// A compiled regular expression.
pub(crate) type Regex = PgRegex;

/// PostgreSQL's regular expressions, as far as the regex crate's agree.
pub(crate) struct PgRegex(regex::Regex);

impl PgRegex {
    pub(crate) fn new(pattern: &str, insensitive: bool) -> Result<Self> {
        regex::RegexBuilder::new(pattern)
            .case_insensitive(insensitive)
            .size_limit(1 << 20)
            .build()
            .map(Self)
            .map_err(|_| {
                SqlError::new(
                    "2201B",
                    format!("invalid regular expression: \"{pattern}\""),
                )
            })
    }

    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// The bytes of what [`Self::replace`] gives, at most.
    fn replaced_bytes(&self, text: &str, replacement: &str, all: bool) -> u64 {
        let times = match all {
            true if text.len().saturating_mul(replacement.len()) > 1 << 16 => {
                self.0.find_iter(text).count()
            }
            true => text.len() + 1,
            false => 1,
        };
        // What groups put in is part of the text, each of them at most all of it.
        let groups = 1 + replacement.matches('$').count();
        (groups.saturating_mul(text.len()) as u64)
            .saturating_add(times.saturating_mul(replacement.len()) as u64)
    }

    fn replace(&self, text: &str, replacement: &str, all: bool) -> String {
        if all {
            self.0.replace_all(text, replacement).into_owned()
        } else {
            self.0.replace(text, replacement).into_owned()
        }
    }
}

macro_rules! functions {
    ($($variant:ident($($name:literal)|+) -> $result:expr),* $(,)?) => {
        /// A function.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Function {
            $($variant,)*
            /// A function of the storage floor, with the type of its result.
            Scalar(&'static str, PgType),
        }

        /// The names of all functions but the storage floor's.
        pub(crate) const NAMES: &[&str] = &[$($($name,)+)*];

        impl Function {
            fn named(name: &str) -> Option<Self> {
                Some(match name {
                    $($($name)|+ => Self::$variant,)*
                    _ => return None,
                })
            }

            /// The type of the result for arguments of these types.
            pub(crate) fn result(self, arguments: &[PgType]) -> PgType {
                let first = arguments.first().copied().unwrap_or(PgType::TEXT);
                // Results that depend on the first argument look at it.
                let _ = first;
                match self {
                    $(Self::$variant => {
                        let result: fn(PgType) -> PgType = $result;
                        result(first)
                    })*
                    Self::Scalar(_, result) => result,
                }
            }
        }
    };
}

const BOOL: fn(PgType) -> PgType = |_| PgType::BOOL;
const TEXT: fn(PgType) -> PgType = |_| PgType::TEXT;
const NAME: fn(PgType) -> PgType = |_| PgType::NAME;
const INT4: fn(PgType) -> PgType = |_| PgType::INT4;
const INT8: fn(PgType) -> PgType = |_| PgType::INT8;
const SAME: fn(PgType) -> PgType = |first| first;
const TIME: fn(PgType) -> PgType = |_| PgType::TIMESTAMPTZ;

functions! {
    Version("version") -> TEXT,
    CurrentSchema("current_schema") -> NAME,
    CurrentSchemas("current_schemas") -> |_| PgType::NAME_ARRAY,
    CurrentDatabase("current_database" | "current_catalog") -> NAME,
    CurrentUser("current_user" | "user" | "current_role") -> NAME,
    SessionUser("session_user") -> NAME,
    CurrentSetting("current_setting") -> TEXT,
    SetConfig("set_config") -> TEXT,
    BackendPid("pg_backend_pid") -> INT4,
    CancelBackend("pg_cancel_backend") -> BOOL,
    TerminateBackend("pg_terminate_backend") -> BOOL,
    BlockingPids("pg_blocking_pids" | "pg_safe_snapshot_blocking_pids") -> |_| PgType::INT4_ARRAY,
    IsBlocked("pg_isolation_test_session_is_blocked") -> BOOL,
    ClientAddress("inet_client_addr") -> |_| PgType::INET,
    ClientPort("inet_client_port") -> INT4,
    Now("now" | "current_timestamp" | "transaction_timestamp" | "statement_timestamp" | "clock_timestamp") -> TIME,
    CurrentDate("current_date") -> |_| PgType::DATE,
    StartTime("pg_postmaster_start_time" | "pg_conf_load_time") -> TIME,
    UserById("pg_get_userbyid") -> NAME,
    EncodingToChar("pg_encoding_to_char") -> NAME,
    CharToEncoding("pg_char_to_encoding") -> INT4,
    FormatType("format_type") -> TEXT,
    GetExpr("pg_get_expr") -> TEXT,
    GetConstraintDef("pg_get_constraintdef") -> TEXT,
    GetIndexDef("pg_get_indexdef") -> TEXT,
    GetSerialSequence("pg_get_serial_sequence") -> TEXT,
    NoDefinition("pg_get_viewdef" | "pg_get_functiondef" | "pg_get_function_result"
        | "pg_get_function_arguments" | "pg_get_function_identity_arguments"
        | "pg_get_function_sqlbody" | "pg_get_triggerdef" | "pg_get_statisticsobjdef_columns"
        | "pg_get_statisticsobjdef" | "pg_get_ruledef" | "pg_get_partkeydef"
        | "pg_get_partition_constraintdef" | "obj_description" | "col_description"
        | "shobj_description" | "pg_tablespace_location" | "inet_server_addr") -> TEXT,
    IsVisible("pg_table_is_visible") -> BOOL,
    IsOfCatalog("pg_type_is_visible" | "pg_collation_is_visible" | "pg_function_is_visible"
        | "pg_operator_is_visible" | "pg_opclass_is_visible" | "pg_opfamily_is_visible"
        | "pg_conversion_is_visible" | "pg_ts_config_is_visible") -> BOOL,
    IsPublishable("pg_relation_is_publishable") -> BOOL,
    Never("pg_is_in_recovery" | "pg_is_other_temp_schema") -> BOOL,
    HasRelationPrivilege("has_table_privilege" | "has_sequence_privilege") -> BOOL,
    HasColumnPrivilege("has_column_privilege") -> BOOL,
    HasAnyColumnPrivilege("has_any_column_privilege") -> BOOL,
    HasSchemaPrivilege("has_schema_privilege") -> BOOL,
    HasDatabasePrivilege("has_database_privilege") -> BOOL,
    HasRole("pg_has_role") -> BOOL,
    HasFunctionPrivilege("has_function_privilege") -> BOOL,
    HasTypePrivilege("has_type_privilege") -> BOOL,
    HasTablespacePrivilege("has_tablespace_privilege") -> BOOL,
    HasLanguagePrivilege("has_language_privilege") -> BOOL,
    HasParameterPrivilege("has_parameter_privilege") -> BOOL,
    ToRegtype("to_regtype") -> |_| PgType::REGTYPE,
    ToRegclass("to_regclass") -> |_| PgType::REGCLASS,
    ToRegnamespace("to_regnamespace") -> |_| PgType::REGNAMESPACE,
    UnlockAll("pg_advisory_unlock_all") -> |_| PgType::VOID,
    AclDefault("acldefault") -> |_| PgType::ACLITEM_ARRAY,
    QuoteIdent("quote_ident") -> TEXT,
    QuoteLiteral("quote_literal" | "quote_nullable") -> TEXT,
    RelationSize("pg_relation_size" | "pg_table_size" | "pg_total_relation_size"
        | "pg_indexes_size" | "pg_database_size") -> INT8,
    SizePretty("pg_size_pretty") -> TEXT,
    SequenceLastValue("pg_sequence_last_value") -> INT8,
    ArrayToString("array_to_string") -> TEXT,
    ArrayPosition("array_position") -> INT4,
    ArrayUpper("array_upper") -> INT4,
    ArrayLower("array_lower") -> INT4,
    ArrayLength("array_length") -> INT4,
    Cardinality("cardinality") -> INT4,
    ArrayRemove("array_remove") -> SAME,
    ArrayAppend("array_append" | "array_cat") -> SAME,
    StringToArray("string_to_array") -> |_| PgType::TEXT_ARRAY,
    JsonBuildObject("json_build_object") -> |_| PgType::JSON,
    JsonbBuildObject("jsonb_build_object") -> |_| PgType::JSONB,
    JsonBuildArray("json_build_array") -> |_| PgType::JSON,
    ToJson("to_json" | "row_to_json") -> |_| PgType::JSON,
    NullIf("nullif") -> SAME,
    Greatest("greatest") -> SAME,
    Least("least") -> SAME,
    Concat("concat") -> TEXT,
    ConcatWs("concat_ws") -> TEXT,
    RegexpReplace("regexp_replace") -> TEXT,
    TypeOf("pg_typeof") -> |_| PgType::REGTYPE,
    TransactionId("txid_current" | "pg_current_xact_id") -> INT8,
    NumericPrecision("_pg_numeric_precision") -> INT4,
}

impl Function {
    /// The function of this name for arguments of these types.
    pub(crate) fn by_name(name: &str, arguments: &[PgType]) -> Option<Self> {
        if let Some(function) = Self::named(name) {
            return Some(function);
        }
        let types = scalar_types(arguments)?;
        let found = scalar::lookup(name, &types)?;
        let result = PgType::of_column(&found.result);
        // Names live as long as the program: there are only so many functions.
        let name = KNOWN_SCALAR.iter().find(|known| **known == name)?;
        Some(Self::Scalar(name, result))
    }
}

/// The storage floor's functions that catalog queries use.
const KNOWN_SCALAR: &[&str] = &[
    "abs",
    "btrim",
    "ceil",
    "ceiling",
    "char_length",
    "character_length",
    "date_part",
    "date_trunc",
    "extract",
    "floor",
    "left",
    "length",
    "lower",
    "lpad",
    "ltrim",
    "mod",
    "octet_length",
    "position",
    "power",
    "repeat",
    "replace",
    "reverse",
    "right",
    "round",
    "rpad",
    "rtrim",
    "sign",
    "sqrt",
    "strpos",
    "substr",
    "substring",
    "trim",
    "trunc",
    "upper",
];

/// Whether there is a function of this name, for any arguments.
fn is_known(name: &str) -> bool {
    Function::named(name).is_some()
        || KNOWN_SCALAR.contains(&name)
        || crate::bind::session_function(name).is_some()
}

fn scalar_types(arguments: &[PgType]) -> Option<Vec<DataType>> {
    arguments
        .iter()
        .map(|data_type| match data_type.oid {
            oid if PgType::of(oid).is_oid() => Some(DataType::BigInt),
            oid => match DataType::from_oid(oid, data_type.typmod) {
                Some(data_type) => Some(data_type),
                None if data_type.is_text() => Some(DataType::Text),
                None => None,
            },
        })
        .collect()
}

fn call_scalar(name: &str, values: &[Datum], types: &[PgType], run: &Run<'_>) -> Result<Datum> {
    let missing = || SqlError::new("42883", format!("function {name} does not exist"));
    let scalar_types = scalar_types(types).ok_or_else(missing)?;
    let function = scalar::lookup(name, &scalar_types).ok_or_else(missing)?;
    let arguments = values
        .iter()
        .zip(&scalar_types)
        .map(|(value, data_type)| scalar_value(value, data_type).ok_or_else(missing))
        .collect::<Result<Vec<_>>>()?;
    if let Some(size) = function.size {
        let bytes = size(&arguments);
        if bytes <= scalar::VALUE_BYTES_MAX {
            run.made(bytes)?;
        }
    }
    Ok(function.invoke(arguments, &scalar_types)?.into())
}

/// Calls a function.
pub(crate) fn call(
    function: Function,
    values: &[Datum],
    types: &[PgType],
    run: &Run<'_>,
) -> Result<Datum> {
    let session = run.session();
    let facts = session.facts;
    let text = |at: usize| values.get(at).and_then(Datum::as_text);
    let int = |at: usize| values.get(at).and_then(Datum::as_int);
    let oid = |at: usize| values.get(at).and_then(Datum::as_oid);
    let type_at = |at: usize| types.get(at).copied().unwrap_or(PgType::TEXT);
    let optional = |found: Option<String>| found.map_or(Datum::Null, Datum::text);
    Ok(match function {
        Function::Scalar(name, _) => call_scalar(name, values, types, run)?,
        Function::Version => Datum::text(crate::session::version()),
        Function::CurrentSchema => facts.search_path.first().map_or(Datum::Null, Datum::text),
        Function::CurrentSchemas => settings::current_schemas(session, values),
        Function::CurrentDatabase => Datum::text(&facts.database),
        Function::CurrentUser => Datum::text(facts.actor.name()),
        Function::SessionUser => Datum::text(&facts.session_user),
        Function::CurrentSetting => settings::current_setting(run, values)?,
        Function::SetConfig => settings::set_config(run, values)?,
        Function::BackendPid => Datum::Int(i64::from(facts.process_id)),
        Function::CancelBackend
        | Function::TerminateBackend
        | Function::BlockingPids
        | Function::IsBlocked
        | Function::ClientAddress
        | Function::ClientPort => sessions::call(function, session, values)?,
        Function::Now | Function::StartTime => {
            Datum::Scalar(thermocline_storage::value::Value::TimestampTz(facts.now_us))
        }
        Function::CurrentDate => {
            let days = facts.now_us.div_euclid(86_400_000_000);
            Datum::Scalar(thermocline_storage::value::Value::Date(
                i32::try_from(days).unwrap_or(i32::MAX),
            ))
        }
        Function::UserById => match oid(0) {
            None => Datum::Null,
            Some(oid) => Datum::text(
                run.names()
                    .role_name(oid)
                    .unwrap_or_else(|| format!("unknown (OID={oid})")),
            ),
        },
        Function::EncodingToChar => Datum::text(match int(0) {
            Some(6) => "UTF8",
            Some(0) => "SQL_ASCII",
            _ => "",
        }),
        Function::CharToEncoding => Datum::Int(match text(0) {
            Some(name) if name.to_lowercase().replace('-', "") == "utf8" => 6,
            Some(_) => -1,
            None => return Ok(Datum::Null),
        }),
        Function::FormatType => match oid(0) {
            None => Datum::Null,
            Some(oid) => {
                let typmod = int(1).and_then(|typmod| i32::try_from(typmod).ok());
                Datum::text(
                    run.names()
                        .type_name(oid)
                        .unwrap_or_else(|| format_type(oid, typmod)),
                )
            }
        },
        // Expressions are kept as their SQL text.
        Function::GetExpr => values.first().cloned().unwrap_or_default(),
        Function::GetConstraintDef => match oid(0) {
            None => Datum::Null,
            Some(oid) => {
                let pretty = values.get(1).is_some_and(Datum::is_true);
                optional(definitions::constraint(session, oid, pretty))
            }
        },
        Function::GetIndexDef => match oid(0) {
            None => Datum::Null,
            Some(oid) => optional(definitions::index(session, oid, int(1).unwrap_or(0))),
        },
        Function::GetSerialSequence => match (text(0), text(1)) {
            (Some(table), Some(column)) => definitions::serial_sequence(session, table, column)?,
            _ => Datum::Null,
        },
        Function::NoDefinition => Datum::Null,
        Function::IsVisible => match oid(0) {
            None => Datum::Null,
            Some(oid) => session.is_visible(oid).into(),
        },
        Function::IsOfCatalog => match oid(0) {
            None => Datum::Null,
            Some(_) => Datum::Bool(true),
        },
        Function::IsPublishable => match oid(0) {
            None => Datum::Null,
            Some(oid) => Datum::Bool(session.catalog.table(oid).is_some()),
        },
        Function::Never => Datum::Bool(false),
        Function::HasRelationPrivilege
        | Function::HasColumnPrivilege
        | Function::HasAnyColumnPrivilege
        | Function::HasSchemaPrivilege
        | Function::HasDatabasePrivilege
        | Function::HasFunctionPrivilege
        | Function::HasTypePrivilege
        | Function::HasTablespacePrivilege
        | Function::HasLanguagePrivilege
        | Function::HasParameterPrivilege
        | Function::HasRole => privileges::has(function, run, values)?,
        Function::ToRegtype => text(0)
            .and_then(|name| run.names().type_by_name(name))
            .map_or(Datum::Null, Datum::oid),
        Function::ToRegclass => text(0)
            .and_then(|name| run.names().relation_by_name(name))
            .map_or(Datum::Null, Datum::oid),
        Function::ToRegnamespace => text(0)
            .and_then(|name| run.names().schema_by_name(name))
            .map_or(Datum::Null, Datum::oid),
        Function::UnlockAll => Datum::text(""),
        Function::AclDefault => definitions::acl_default(session, text(0), oid(1)),
        Function::QuoteIdent => text(0).map_or(Datum::Null, |name| Datum::text(quote_ident(name))),
        Function::QuoteLiteral => match values.first() {
            None | Some(Datum::Null) => Datum::Null,
            Some(value) => Datum::text(quote_literal(&datum_text(value, type_at(0), run.names()))),
        },
        Function::RelationSize => oid(0).map_or(Datum::Null, |oid| {
            Datum::Int(session.relation_bytes(oid) as i64)
        }),
        Function::SizePretty => int(0).map_or(Datum::Null, |bytes| Datum::text(pretty_size(bytes))),
        Function::SequenceLastValue => oid(0)
            .and_then(|oid| session.sequence_last_value(oid))
            .into(),
        Function::ArrayToString => arrays::to_string(values, type_at(0), run)?,
        Function::ArrayPosition => arrays::position(values),
        Function::ArrayUpper => arrays::bound(values, type_at(0), true),
        Function::ArrayLower => arrays::bound(values, type_at(0), false),
        Function::ArrayLength => arrays::length(values),
        Function::Cardinality => arrays::cardinality(values),
        Function::ArrayRemove => arrays::remove(values),
        Function::ArrayAppend => arrays::append(values),
        Function::StringToArray => arrays::from_string(values),
        Function::JsonBuildObject | Function::JsonbBuildObject => json_object(values, types, run)?,
        Function::JsonBuildArray => {
            let elements: Vec<String> = values
                .iter()
                .zip(types)
                .map(|(value, data_type)| json_text(value, *data_type, run.names()))
                .collect();
            Datum::text(format!("[{}]", elements.join(", ")))
        }
        Function::ToJson => match values.first() {
            None | Some(Datum::Null) => Datum::Null,
            Some(value) => Datum::text(json_text(value, type_at(0), run.names())),
        },
        Function::NullIf => match values {
            [left, right] if !left.is_null() && !right.is_null() && left == right => Datum::Null,
            [left, ..] => left.clone(),
            [] => Datum::Null,
        },
        Function::Greatest => values
            .iter()
            .filter(|v| !v.is_null())
            .max()
            .cloned()
            .unwrap_or_default(),
        Function::Least => values
            .iter()
            .filter(|v| !v.is_null())
            .min()
            .cloned()
            .unwrap_or_default(),
        Function::Concat | Function::ConcatWs => {
            let separator = match function {
                Function::ConcatWs => match text(0) {
                    Some(separator) => separator,
                    None => return Ok(Datum::Null),
                },
                _ => "",
            };
            let skip = usize::from(function == Function::ConcatWs);
            let texts: Vec<String> = values
                .iter()
                .zip(types)
                .skip(skip)
                .filter(|(value, _)| !value.is_null())
                .map(|(value, data_type)| datum_text(value, *data_type, run.names()))
                .collect();
            let bytes: usize = texts.iter().map(|text| text.len() + separator.len()).sum();
            run.made(bytes as u64)?;
            Datum::text(texts.join(separator))
        }
        Function::RegexpReplace => match (text(0), text(1), text(2)) {
            (Some(subject), Some(pattern), Some(replacement)) => {
                let flags = text(3).unwrap_or("");
                let regex = PgRegex::new(pattern, flags.contains('i'))?;
                let replacement = dollar_groups(replacement);
                let all = flags.contains('g');
                run.made(regex.replaced_bytes(subject, &replacement, all))?;
                Datum::text(regex.replace(subject, &replacement, all))
            }
            _ => Datum::Null,
        },
        Function::TypeOf => Datum::oid(type_at(0).oid),
        Function::TransactionId => Datum::Int(facts.transactions.0 as i64 + 1),
        Function::NumericPrecision => Datum::Null,
    })
}

/// `\1` of PostgreSQL's replacements is `${1}` of the regex crate's.
fn dollar_groups(replacement: &str) -> String {
    let mut out = String::new();
    let mut characters = replacement.chars();
    while let Some(character) = characters.next() {
        match character {
            '$' => out.push_str("$$"),
            '\\' => match characters.next() {
                Some(digit) if digit.is_ascii_digit() => {
                    out.push_str("${");
                    out.push(digit);
                    out.push('}');
                }
                Some('&') => out.push_str("${0}"),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            other => out.push(other),
        }
    }
    out
}

fn json_object(values: &[Datum], types: &[PgType], run: &Run<'_>) -> Result<Datum> {
    if !values.len().is_multiple_of(2) {
        return Err(SqlError::new(
            "22023",
            "argument list must have even number of elements",
        ));
    }
    let mut parts = Vec::new();
    for (pair, types) in values.chunks_exact(2).zip(types.chunks_exact(2)) {
        let name = datum_text(&pair[0], types[0], run.names());
        let value = json_text(&pair[1], types[1], run.names());
        parts.push(format!("{} : {value}", json_string(&name)));
    }
    Ok(Datum::text(format!("{{{}}}", parts.join(", "))))
}

fn pretty_size(bytes: i64) -> String {
    let mut value = bytes;
    let mut unit = "bytes";
    for larger in ["kB", "MB", "GB", "TB", "PB"] {
        if value.unsigned_abs() < 10 * 1024 {
            break;
        }
        value = value.saturating_add(value.signum() * 512) / 1024;
        unit = larger;
    }
    format!("{value} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_they_must_be() {
        assert_eq!(quote_ident("a_1"), "a_1");
        assert_eq!(quote_ident("Mixed"), "\"Mixed\"");
        assert_eq!(quote_ident("order"), "\"order\"");
        assert_eq!(quote_ident("1a"), "\"1a\"");
        assert_eq!(quote_literal("it's"), "'it''s'");
    }

    #[test]
    fn sizes_are_rounded_as_in_postgresql() {
        assert_eq!(pretty_size(10_239), "10239 bytes");
        assert_eq!(pretty_size(10_240), "10 kB");
        assert_eq!(pretty_size(123_456_789), "118 MB");
    }

    #[test]
    fn every_known_scalar_function_is_there_for_some_types() {
        use DataType::{BigInt, Date, Double, Integer, Text, Timestamp};
        let shapes: &[&[DataType]] = &[
            &[Text],
            &[Integer],
            &[Double],
            &[Text, Text],
            &[Text, Integer],
            &[Text, Integer, Text],
            &[Text, Text, Text],
            &[Text, Timestamp],
            &[Text, Date],
            &[BigInt, BigInt],
            &[Double, Double],
        ];
        let missing: Vec<&&str> = KNOWN_SCALAR
            .iter()
            .filter(|name| {
                !shapes
                    .iter()
                    .any(|types| scalar::lookup(name, types).is_some())
            })
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
