//! Window functions: their signatures. Executors compute them over the rows
//! of a window, which no function of this crate sees.

use super::{Function, WindowKind};
use crate::types::ids;

/// The functions of this file.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    Function::window(3104, "cume_dist", &[], ids::FLOAT8, WindowKind::CumeDist).called_on_null(),
    Function::window(3102, "dense_rank", &[], ids::INT8, WindowKind::DenseRank).called_on_null(),
    Function::window(3112, "first_value", &[ids::ANYELEMENT], ids::ANYELEMENT, WindowKind::FirstValue),
    Function::window(3106, "lag", &[ids::ANYELEMENT], ids::ANYELEMENT, WindowKind::Lag),
    Function::window(3107, "lag", &[ids::ANYELEMENT, ids::INT4], ids::ANYELEMENT, WindowKind::Lag),
    Function::window(3108, "lag", &[ids::ANYCOMPATIBLE, ids::INT4, ids::ANYCOMPATIBLE], ids::ANYCOMPATIBLE, WindowKind::Lag),
    Function::window(3113, "last_value", &[ids::ANYELEMENT], ids::ANYELEMENT, WindowKind::LastValue),
    Function::window(3109, "lead", &[ids::ANYELEMENT], ids::ANYELEMENT, WindowKind::Lead),
    Function::window(3110, "lead", &[ids::ANYELEMENT, ids::INT4], ids::ANYELEMENT, WindowKind::Lead),
    Function::window(3111, "lead", &[ids::ANYCOMPATIBLE, ids::INT4, ids::ANYCOMPATIBLE], ids::ANYCOMPATIBLE, WindowKind::Lead),
    Function::window(3114, "nth_value", &[ids::ANYELEMENT, ids::INT4], ids::ANYELEMENT, WindowKind::NthValue),
    Function::window(3105, "ntile", &[ids::INT4], ids::INT4, WindowKind::Ntile),
    Function::window(3103, "percent_rank", &[], ids::FLOAT8, WindowKind::PercentRank).called_on_null(),
    Function::window(3101, "rank", &[], ids::INT8, WindowKind::Rank).called_on_null(),
    Function::window(3100, "row_number", &[], ids::INT8, WindowKind::RowNumber).called_on_null(),
];
