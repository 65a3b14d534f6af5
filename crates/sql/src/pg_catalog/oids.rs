//! Object ids of things that the engine's catalog has but does not number:
//! constraints, defaults, row types. They are derived from the numbers it has,
//! in ranges that users' objects do not reach, and stay the same as long as
//! the thing does.

use thermocline_engine::TypeDef;
use thermocline_engine::catalog::{IndexDef, TableDef};
use thermocline_query::types::user::ROW_TYPES;

/// The superuser, as in PostgreSQL.
pub(crate) const OWNER: u32 = 10;
pub(crate) const PG_CATALOG: u32 = 11;
pub(crate) const PG_TOAST: u32 = 99;
pub(crate) const INFORMATION_SCHEMA: u32 = 13_207;
/// The one database.
pub(crate) const DATABASE: u32 = crate::session::DATABASE_OID;
pub(crate) const DEFAULT_TABLESPACE: u32 = 1663;
pub(crate) const HEAP: u32 = 2;
/// The access method of column tables; PostgreSQL has none of this number.
pub(crate) const COLUMNS: u32 = 3;
pub(crate) const BTREE: u32 = 403;
pub(crate) const HASH: u32 = 405;
pub(crate) const DEFAULT_COLLATION: u32 = 100;

const INDEX_CONSTRAINTS: u32 = 0x4000_0000;
const CHECKS: u32 = 0x5000_0000;
const DOMAIN_CHECKS: u32 = 0x1800_0000;
const DEFAULTS: u32 = 0x6000_0000;
const RULES: u32 = 0x7800_0000;
/// The labels of enums.
pub(crate) const LABELS: u32 = 0x1000_0000;
/// The largest oid that derivation leaves apart.
const OID_MASK: u32 = 0x00ff_ffff;

/// The constraint that an index stands for.
pub(crate) fn index_constraint_oid(index: &IndexDef) -> u32 {
    INDEX_CONSTRAINTS | (index.oid & 0x0fff_ffff)
}

/// The number of a CHECK constraint of a table.
pub(crate) fn check_oid(table: &TableDef, number: usize) -> u32 {
    CHECKS | ((table.oid & 0x000f_ffff) << 8) | (number as u32 & 0xff)
}

/// The number of a condition of a domain.
pub(crate) fn domain_check_oid(domain: u32, number: usize) -> u32 {
    // Each eighth number is that of a domain.
    DOMAIN_CHECKS | (((domain >> 3) & 0x0007_ffff) << 8) | (number as u32 & 0xff)
}

/// The default of a column (from 0).
pub(crate) fn default_oid(table: &TableDef, column: usize) -> u32 {
    DEFAULTS | ((table.oid & 0x0003_ffff) << 10) | (column as u32 & 0x3ff)
}

/// The rule that gives a view's rows.
pub(crate) fn rule_oid(view: u32) -> u32 {
    RULES | (view & OID_MASK)
}

/// A table's row type.
pub(crate) fn row_type_oid(table: u32) -> u32 {
    ROW_TYPES | (table & OID_MASK)
}

/// The relation that a composite type is in `pg_class`.
pub(crate) fn of_composite(def: &TypeDef) -> u32 {
    def.oid + 2
}
