//! Literals: the type that each has by itself.

use pg_raw_parse::ConstValue;
use pg_raw_parse::nodes::A_Const;

use super::Analyzer;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::tree::{Expr, ExprKind};
use crate::types::{self, ids};

impl Analyzer<'_> {
    pub(super) fn constant(&self, constant: &A_Const) -> Result<Expr> {
        let (value, oid) = match constant.val() {
            None => (Datum::Null, ids::UNKNOWN),
            Some(ConstValue::Integer(value)) => (Datum::Int4(value), ids::INT4),
            Some(ConstValue::Float(text)) => return self.number(text, constant.location),
            Some(ConstValue::Boolean(value)) => (Datum::Bool(value), ids::BOOL),
            Some(ConstValue::String(text)) => (Datum::text(text), ids::UNKNOWN),
            Some(ConstValue::BitString(text)) => {
                let call = Call::new(self.environment, &[], ids::BIT);
                let value = types::input(&call, ids::BIT, text, -1)
                    .map_err(|error| error.at(constant.location))?;
                (value, ids::BIT)
            }
            Some(_) => return Err(QueryError::internal("a literal of an unknown kind")),
        };
        Ok(Expr::new(ExprKind::Constant(value), oid, constant.location))
    }

    /// A number with a point or too long for `int4`. The grammar takes PostgreSQL 16's forms
    /// (`0x1F`, `1_000`), too.
    fn number(&self, text: &str, location: i32) -> Result<Expr> {
        let digits = text.replace('_', "");
        let radix = match digits.as_bytes() {
            [b'0', b'x' | b'X', ..] => 16,
            [b'0', b'o' | b'O', ..] => 8,
            [b'0', b'b' | b'B', ..] => 2,
            _ => 10,
        };
        let whole = match radix {
            10 => digits.parse::<i64>().ok(),
            radix => i64::from_str_radix(&digits[2..], radix).ok(),
        };
        // The grammar has put the sign in: `-2147483648`.
        if let Some(small) = whole.and_then(|whole| i32::try_from(whole).ok()) {
            let kind = ExprKind::Constant(Datum::Int4(small));
            return Ok(Expr::new(kind, ids::INT4, location));
        }
        if let Some(whole) = whole {
            return Ok(Expr::new(
                ExprKind::Constant(Datum::Int8(whole)),
                ids::INT8,
                location,
            ));
        }
        let call = Call::new(self.environment, &[], ids::NUMERIC);
        let value =
            types::input(&call, ids::NUMERIC, &digits, -1).map_err(|error| error.at(location))?;
        Ok(Expr::new(ExprKind::Constant(value), ids::NUMERIC, location))
    }
}
