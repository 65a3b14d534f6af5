//! Calls of functions that only the session runs: PL/pgSQL, several statements of SQL. A tree has them as
//! calls of [`CALLED`] or [`CALLED_SET`], whose first argument is the function's number. No name leads to
//! these two, and no catalog shows them.

use super::{Body, Function, Volatility};
use crate::call::{Asked, Call};
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::tree::{Expr, ExprKind, FunctionCall};
use crate::types::ids;

/// A function that gives one value.
pub static CALLED: Function = Function {
    volatility: Volatility::Volatile,
    strict: false,
    ..Function::row(0, "called", &[], ids::RECORD, value)
};

/// A function that gives any number of rows.
pub static CALLED_SET: Function = Function {
    volatility: Volatility::Volatile,
    strict: false,
    body: Body::Set(rows),
    ..Function::row(0, "called", &[], ids::RECORD, value)
};

fn value(call: &Call<'_>, arguments: &[Datum]) -> Result<Datum> {
    let Some((Datum::Oid(function), arguments)) = arguments.split_first() else {
        return Err(QueryError::internal("a call of no function"));
    };
    call.environment.called(&Asked {
        function: *function,
        types: call.arguments.get(1..).unwrap_or_default(),
        result: call.result,
        arguments,
    })
}

fn rows(call: &Call<'_>, arguments: &[Datum]) -> Result<Vec<Datum>> {
    match value(call, arguments)? {
        Datum::Array(rows) => Ok(rows.elements.clone()),
        _ => Ok(Vec::new()),
    }
}

impl Expr {
    /// A call of the user's function of this number.
    pub(crate) fn called(
        (function, returns_set): (u32, bool),
        arguments: Vec<Self>,
        result: u32,
        location: i32,
    ) -> Self {
        let mut all = vec![Self::constant(Datum::Oid(function), ids::OID)];
        all.extend(arguments);
        let call = FunctionCall {
            function: match returns_set {
                true => &CALLED_SET,
                false => &CALLED,
            },
            operator: None,
            types: all.iter().map(|argument| argument.oid).collect(),
            arguments: all,
        };
        Self::new(ExprKind::Call(Box::new(call)), result, location)
    }

    /// Whether this itself is a call that only the session makes.
    #[must_use]
    pub fn is_called(&self) -> bool {
        self.called_number().is_some()
    }

    /// The number of the function that it calls, if only the session makes the call.
    pub(crate) fn called_number(&self) -> Option<u32> {
        let ExprKind::Call(call) = &self.kind else {
            return None;
        };
        let is_it =
            std::ptr::eq(call.function, &CALLED) || std::ptr::eq(call.function, &CALLED_SET);
        match call.arguments.first()?.kind {
            ExprKind::Constant(Datum::Oid(number)) if is_it => Some(number),
            _ => None,
        }
    }
}
