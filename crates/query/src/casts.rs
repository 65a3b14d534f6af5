//! The casts: rows of `pg_cast`. Any type can besides be cast to and from the
//! text types through its text form.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::types::ids;

/// Where a cast is made without being asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Context {
    /// Anywhere in an expression.
    Implicit,
    /// Where a value is given to a column.
    Assignment,
    /// Only where it is written: `CAST (… AS …)`, `…::…`.
    Explicit,
}

/// How a cast is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// By the function with this number.
    Function(u32),
    /// The value stays as it is.
    Binary,
    /// Through its text form.
    Text,
}

/// A cast.
#[derive(Debug)]
pub struct Cast {
    /// The type of what is cast.
    pub source: u32,
    /// The type that comes of it.
    pub target: u32,
    /// How it is made.
    pub method: Method,
    /// Where it is made without being asked for.
    pub context: Context,
}

static BY_TYPES: LazyLock<HashMap<(u32, u32), &'static Cast>> = LazyLock::new(|| {
    CASTS
        .iter()
        .map(|cast| ((cast.source, cast.target), cast))
        .collect()
});

/// The cast between two types, if `pg_cast` has one.
#[must_use]
pub fn between(source: u32, target: u32) -> Option<&'static Cast> {
    BY_TYPES.get(&(source, target)).copied()
}

#[rustfmt::skip]
const fn cast(source: u32, target: u32, method: Method, context: Context) -> Cast {
    Cast { source, target, method, context }
}

/// All casts between types that are here.
#[rustfmt::skip]
pub static CASTS: &[Cast] = &[
    cast(ids::BOOL, ids::INT4, Method::Function(2558), Context::Explicit),
    cast(ids::BOOL, ids::TEXT, Method::Function(2971), Context::Assignment),
    cast(ids::BOOL, ids::BPCHAR, Method::Function(2971), Context::Assignment),
    cast(ids::BOOL, ids::VARCHAR, Method::Function(2971), Context::Assignment),
    cast(ids::CHAR, ids::INT4, Method::Function(77), Context::Explicit),
    cast(ids::CHAR, ids::TEXT, Method::Function(946), Context::Implicit),
    cast(ids::CHAR, ids::BPCHAR, Method::Function(860), Context::Assignment),
    cast(ids::CHAR, ids::VARCHAR, Method::Function(946), Context::Assignment),
    cast(ids::NAME, ids::TEXT, Method::Function(406), Context::Implicit),
    cast(ids::NAME, ids::BPCHAR, Method::Function(408), Context::Assignment),
    cast(ids::NAME, ids::VARCHAR, Method::Function(1401), Context::Assignment),
    cast(ids::INT8, ids::INT2, Method::Function(714), Context::Assignment),
    cast(ids::INT8, ids::INT4, Method::Function(480), Context::Assignment),
    cast(ids::INT8, ids::REGPROC, Method::Function(1287), Context::Implicit),
    cast(ids::INT8, ids::OID, Method::Function(1287), Context::Implicit),
    cast(ids::INT8, ids::FLOAT4, Method::Function(652), Context::Implicit),
    cast(ids::INT8, ids::FLOAT8, Method::Function(482), Context::Implicit),
    cast(ids::INT8, ids::BIT, Method::Function(2075), Context::Explicit),
    cast(ids::INT8, ids::NUMERIC, Method::Function(1781), Context::Implicit),
    cast(ids::INT8, ids::REGPROCEDURE, Method::Function(1287), Context::Implicit),
    cast(ids::INT8, ids::REGOPER, Method::Function(1287), Context::Implicit),
    cast(ids::INT8, ids::REGOPERATOR, Method::Function(1287), Context::Implicit),
    cast(ids::INT8, ids::REGCLASS, Method::Function(1287), Context::Implicit),
    cast(ids::INT8, ids::REGTYPE, Method::Function(1287), Context::Implicit),
    cast(ids::INT8, ids::REGNAMESPACE, Method::Function(1287), Context::Implicit),
    cast(ids::INT8, ids::REGROLE, Method::Function(1287), Context::Implicit),
    cast(ids::INT8, ids::REGCOLLATION, Method::Function(1287), Context::Implicit),
    cast(ids::INT2, ids::INT8, Method::Function(754), Context::Implicit),
    cast(ids::INT2, ids::INT4, Method::Function(313), Context::Implicit),
    cast(ids::INT2, ids::REGPROC, Method::Function(313), Context::Implicit),
    cast(ids::INT2, ids::OID, Method::Function(313), Context::Implicit),
    cast(ids::INT2, ids::FLOAT4, Method::Function(236), Context::Implicit),
    cast(ids::INT2, ids::FLOAT8, Method::Function(235), Context::Implicit),
    cast(ids::INT2, ids::NUMERIC, Method::Function(1782), Context::Implicit),
    cast(ids::INT2, ids::REGPROCEDURE, Method::Function(313), Context::Implicit),
    cast(ids::INT2, ids::REGOPER, Method::Function(313), Context::Implicit),
    cast(ids::INT2, ids::REGOPERATOR, Method::Function(313), Context::Implicit),
    cast(ids::INT2, ids::REGCLASS, Method::Function(313), Context::Implicit),
    cast(ids::INT2, ids::REGTYPE, Method::Function(313), Context::Implicit),
    cast(ids::INT2, ids::REGNAMESPACE, Method::Function(313), Context::Implicit),
    cast(ids::INT2, ids::REGROLE, Method::Function(313), Context::Implicit),
    cast(ids::INT2, ids::REGCOLLATION, Method::Function(313), Context::Implicit),
    cast(ids::INT4, ids::BOOL, Method::Function(2557), Context::Explicit),
    cast(ids::INT4, ids::CHAR, Method::Function(78), Context::Explicit),
    cast(ids::INT4, ids::INT8, Method::Function(481), Context::Implicit),
    cast(ids::INT4, ids::INT2, Method::Function(314), Context::Assignment),
    cast(ids::INT4, ids::REGPROC, Method::Binary, Context::Implicit),
    cast(ids::INT4, ids::OID, Method::Binary, Context::Implicit),
    cast(ids::INT4, ids::FLOAT4, Method::Function(318), Context::Implicit),
    cast(ids::INT4, ids::FLOAT8, Method::Function(316), Context::Implicit),
    cast(ids::INT4, ids::BIT, Method::Function(1683), Context::Explicit),
    cast(ids::INT4, ids::NUMERIC, Method::Function(1740), Context::Implicit),
    cast(ids::INT4, ids::REGPROCEDURE, Method::Binary, Context::Implicit),
    cast(ids::INT4, ids::REGOPER, Method::Binary, Context::Implicit),
    cast(ids::INT4, ids::REGOPERATOR, Method::Binary, Context::Implicit),
    cast(ids::INT4, ids::REGCLASS, Method::Binary, Context::Implicit),
    cast(ids::INT4, ids::REGTYPE, Method::Binary, Context::Implicit),
    cast(ids::INT4, ids::REGNAMESPACE, Method::Binary, Context::Implicit),
    cast(ids::INT4, ids::REGROLE, Method::Binary, Context::Implicit),
    cast(ids::INT4, ids::REGCOLLATION, Method::Binary, Context::Implicit),
    cast(ids::REGPROC, ids::INT8, Method::Function(1288), Context::Assignment),
    cast(ids::REGPROC, ids::INT4, Method::Binary, Context::Assignment),
    cast(ids::REGPROC, ids::OID, Method::Binary, Context::Implicit),
    cast(ids::REGPROC, ids::REGPROCEDURE, Method::Binary, Context::Implicit),
    cast(ids::TEXT, ids::CHAR, Method::Function(944), Context::Assignment),
    cast(ids::TEXT, ids::NAME, Method::Function(407), Context::Implicit),
    cast(ids::TEXT, ids::XML, Method::Function(2896), Context::Explicit),
    cast(ids::TEXT, ids::BPCHAR, Method::Binary, Context::Implicit),
    cast(ids::TEXT, ids::VARCHAR, Method::Binary, Context::Implicit),
    cast(ids::TEXT, ids::REGCLASS, Method::Function(1079), Context::Implicit),
    cast(ids::OID, ids::INT8, Method::Function(1288), Context::Assignment),
    cast(ids::OID, ids::INT4, Method::Binary, Context::Assignment),
    cast(ids::OID, ids::REGPROC, Method::Binary, Context::Implicit),
    cast(ids::OID, ids::REGPROCEDURE, Method::Binary, Context::Implicit),
    cast(ids::OID, ids::REGOPER, Method::Binary, Context::Implicit),
    cast(ids::OID, ids::REGOPERATOR, Method::Binary, Context::Implicit),
    cast(ids::OID, ids::REGCLASS, Method::Binary, Context::Implicit),
    cast(ids::OID, ids::REGTYPE, Method::Binary, Context::Implicit),
    cast(ids::OID, ids::REGNAMESPACE, Method::Binary, Context::Implicit),
    cast(ids::OID, ids::REGROLE, Method::Binary, Context::Implicit),
    cast(ids::OID, ids::REGCOLLATION, Method::Binary, Context::Implicit),
    cast(ids::JSON, ids::JSONB, Method::Text, Context::Assignment),
    cast(ids::XML, ids::TEXT, Method::Binary, Context::Assignment),
    cast(ids::XML, ids::BPCHAR, Method::Binary, Context::Assignment),
    cast(ids::XML, ids::VARCHAR, Method::Binary, Context::Assignment),
    cast(ids::PG_NODE_TREE, ids::TEXT, Method::Binary, Context::Implicit),
    cast(ids::CIDR, ids::TEXT, Method::Function(730), Context::Assignment),
    cast(ids::CIDR, ids::INET, Method::Binary, Context::Implicit),
    cast(ids::CIDR, ids::BPCHAR, Method::Function(730), Context::Assignment),
    cast(ids::CIDR, ids::VARCHAR, Method::Function(730), Context::Assignment),
    cast(ids::FLOAT4, ids::INT8, Method::Function(653), Context::Assignment),
    cast(ids::FLOAT4, ids::INT2, Method::Function(238), Context::Assignment),
    cast(ids::FLOAT4, ids::INT4, Method::Function(319), Context::Assignment),
    cast(ids::FLOAT4, ids::FLOAT8, Method::Function(311), Context::Implicit),
    cast(ids::FLOAT4, ids::NUMERIC, Method::Function(1742), Context::Assignment),
    cast(ids::FLOAT8, ids::INT8, Method::Function(483), Context::Assignment),
    cast(ids::FLOAT8, ids::INT2, Method::Function(237), Context::Assignment),
    cast(ids::FLOAT8, ids::INT4, Method::Function(317), Context::Assignment),
    cast(ids::FLOAT8, ids::FLOAT4, Method::Function(312), Context::Assignment),
    cast(ids::FLOAT8, ids::NUMERIC, Method::Function(1743), Context::Assignment),
    cast(ids::MACADDR8, ids::MACADDR, Method::Function(4124), Context::Implicit),
    cast(ids::MACADDR, ids::MACADDR8, Method::Function(4123), Context::Implicit),
    cast(ids::INET, ids::TEXT, Method::Function(730), Context::Assignment),
    cast(ids::INET, ids::CIDR, Method::Function(1715), Context::Assignment),
    cast(ids::INET, ids::BPCHAR, Method::Function(730), Context::Assignment),
    cast(ids::INET, ids::VARCHAR, Method::Function(730), Context::Assignment),
    cast(ids::BPCHAR, ids::CHAR, Method::Function(944), Context::Assignment),
    cast(ids::BPCHAR, ids::NAME, Method::Function(409), Context::Implicit),
    cast(ids::BPCHAR, ids::TEXT, Method::Function(401), Context::Implicit),
    cast(ids::BPCHAR, ids::XML, Method::Function(2896), Context::Explicit),
    cast(ids::BPCHAR, ids::BPCHAR, Method::Function(668), Context::Implicit),
    cast(ids::BPCHAR, ids::VARCHAR, Method::Function(401), Context::Implicit),
    cast(ids::VARCHAR, ids::CHAR, Method::Function(944), Context::Assignment),
    cast(ids::VARCHAR, ids::NAME, Method::Function(1400), Context::Implicit),
    cast(ids::VARCHAR, ids::TEXT, Method::Binary, Context::Implicit),
    cast(ids::VARCHAR, ids::XML, Method::Function(2896), Context::Explicit),
    cast(ids::VARCHAR, ids::BPCHAR, Method::Binary, Context::Implicit),
    cast(ids::VARCHAR, ids::VARCHAR, Method::Function(669), Context::Implicit),
    cast(ids::VARCHAR, ids::REGCLASS, Method::Function(1079), Context::Implicit),
    cast(ids::DATE, ids::TIMESTAMP, Method::Function(2024), Context::Implicit),
    cast(ids::DATE, ids::TIMESTAMPTZ, Method::Function(1174), Context::Implicit),
    cast(ids::TIME, ids::TIME, Method::Function(1968), Context::Implicit),
    cast(ids::TIME, ids::INTERVAL, Method::Function(1370), Context::Implicit),
    cast(ids::TIME, ids::TIMETZ, Method::Function(2047), Context::Implicit),
    cast(ids::TIMESTAMP, ids::DATE, Method::Function(2029), Context::Assignment),
    cast(ids::TIMESTAMP, ids::TIME, Method::Function(1316), Context::Assignment),
    cast(ids::TIMESTAMP, ids::TIMESTAMP, Method::Function(1961), Context::Implicit),
    cast(ids::TIMESTAMP, ids::TIMESTAMPTZ, Method::Function(2028), Context::Implicit),
    cast(ids::TIMESTAMPTZ, ids::DATE, Method::Function(1178), Context::Assignment),
    cast(ids::TIMESTAMPTZ, ids::TIME, Method::Function(2019), Context::Assignment),
    cast(ids::TIMESTAMPTZ, ids::TIMESTAMP, Method::Function(2027), Context::Assignment),
    cast(ids::TIMESTAMPTZ, ids::TIMESTAMPTZ, Method::Function(1967), Context::Implicit),
    cast(ids::TIMESTAMPTZ, ids::TIMETZ, Method::Function(1388), Context::Assignment),
    cast(ids::INTERVAL, ids::TIME, Method::Function(1419), Context::Assignment),
    cast(ids::INTERVAL, ids::INTERVAL, Method::Function(1200), Context::Implicit),
    cast(ids::TIMETZ, ids::TIME, Method::Function(2046), Context::Assignment),
    cast(ids::TIMETZ, ids::TIMETZ, Method::Function(1969), Context::Implicit),
    cast(ids::BIT, ids::INT8, Method::Function(2076), Context::Explicit),
    cast(ids::BIT, ids::INT4, Method::Function(1684), Context::Explicit),
    cast(ids::BIT, ids::BIT, Method::Function(1685), Context::Implicit),
    cast(ids::BIT, ids::VARBIT, Method::Binary, Context::Implicit),
    cast(ids::VARBIT, ids::BIT, Method::Binary, Context::Implicit),
    cast(ids::VARBIT, ids::VARBIT, Method::Function(1687), Context::Implicit),
    cast(ids::NUMERIC, ids::INT8, Method::Function(1779), Context::Assignment),
    cast(ids::NUMERIC, ids::INT2, Method::Function(1783), Context::Assignment),
    cast(ids::NUMERIC, ids::INT4, Method::Function(1744), Context::Assignment),
    cast(ids::NUMERIC, ids::FLOAT4, Method::Function(1745), Context::Implicit),
    cast(ids::NUMERIC, ids::FLOAT8, Method::Function(1746), Context::Implicit),
    cast(ids::NUMERIC, ids::NUMERIC, Method::Function(1703), Context::Implicit),
    cast(ids::REGPROCEDURE, ids::INT8, Method::Function(1288), Context::Assignment),
    cast(ids::REGPROCEDURE, ids::INT4, Method::Binary, Context::Assignment),
    cast(ids::REGPROCEDURE, ids::REGPROC, Method::Binary, Context::Implicit),
    cast(ids::REGPROCEDURE, ids::OID, Method::Binary, Context::Implicit),
    cast(ids::REGOPER, ids::INT8, Method::Function(1288), Context::Assignment),
    cast(ids::REGOPER, ids::INT4, Method::Binary, Context::Assignment),
    cast(ids::REGOPER, ids::OID, Method::Binary, Context::Implicit),
    cast(ids::REGOPER, ids::REGOPERATOR, Method::Binary, Context::Implicit),
    cast(ids::REGOPERATOR, ids::INT8, Method::Function(1288), Context::Assignment),
    cast(ids::REGOPERATOR, ids::INT4, Method::Binary, Context::Assignment),
    cast(ids::REGOPERATOR, ids::OID, Method::Binary, Context::Implicit),
    cast(ids::REGOPERATOR, ids::REGOPER, Method::Binary, Context::Implicit),
    cast(ids::REGCLASS, ids::INT8, Method::Function(1288), Context::Assignment),
    cast(ids::REGCLASS, ids::INT4, Method::Binary, Context::Assignment),
    cast(ids::REGCLASS, ids::OID, Method::Binary, Context::Implicit),
    cast(ids::REGTYPE, ids::INT8, Method::Function(1288), Context::Assignment),
    cast(ids::REGTYPE, ids::INT4, Method::Binary, Context::Assignment),
    cast(ids::REGTYPE, ids::OID, Method::Binary, Context::Implicit),
    cast(ids::JSONB, ids::BOOL, Method::Function(3556), Context::Explicit),
    cast(ids::JSONB, ids::INT8, Method::Function(3452), Context::Explicit),
    cast(ids::JSONB, ids::INT2, Method::Function(3450), Context::Explicit),
    cast(ids::JSONB, ids::INT4, Method::Function(3451), Context::Explicit),
    cast(ids::JSONB, ids::JSON, Method::Text, Context::Assignment),
    cast(ids::JSONB, ids::FLOAT4, Method::Function(3453), Context::Explicit),
    cast(ids::JSONB, ids::FLOAT8, Method::Function(2580), Context::Explicit),
    cast(ids::JSONB, ids::NUMERIC, Method::Function(3449), Context::Explicit),
    cast(ids::REGNAMESPACE, ids::INT8, Method::Function(1288), Context::Assignment),
    cast(ids::REGNAMESPACE, ids::INT4, Method::Binary, Context::Assignment),
    cast(ids::REGNAMESPACE, ids::OID, Method::Binary, Context::Implicit),
    cast(ids::REGROLE, ids::INT8, Method::Function(1288), Context::Assignment),
    cast(ids::REGROLE, ids::INT4, Method::Binary, Context::Assignment),
    cast(ids::REGROLE, ids::OID, Method::Binary, Context::Implicit),
    cast(ids::REGCOLLATION, ids::INT8, Method::Function(1288), Context::Assignment),
    cast(ids::REGCOLLATION, ids::INT4, Method::Binary, Context::Assignment),
    cast(ids::REGCOLLATION, ids::OID, Method::Binary, Context::Implicit),
    cast(ids::XID8, ids::XID, Method::Function(5071), Context::Explicit),
];
