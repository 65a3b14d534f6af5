//! Which aggregate is computed by what.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};
use datafusion::logical_expr::Expr as DfExpr;
use thermocline_query::functions::{AggregateKind, Body};
use thermocline_query::types::ids;
use thermocline_query::types::numeric::Dispersion;

use super::boxed::Boxed;
use super::dispersions::{self, Decimal, OfExact, Whole};
use super::extremes::{self, OfNumerics, OfPadded, Side};
use super::floats::FloatSum;
use super::function::{Maker, Role, call};
use super::grouped::Grouped;
use super::integers::{Integers, Wanted};
use super::kind::Kind;
use super::numerics::Numerics;
use super::plain::{Count, First};
use crate::evaluate::Context;
use crate::form::Form;
use crate::operators::states::{Aggregation, Internal, What};

/// An aggregate of ours within DataFusion's grouping.
pub struct Own {
    maker: Maker,
    form: Form,
}

impl Own {
    fn new(kind: impl Kind, strict: bool, result: u32, context: &Context) -> Self {
        let (kind, context) = (Arc::new(kind), context.clone());
        Self {
            maker: Arc::new(move |role| {
                let kind = Arc::clone(&kind);
                Box::new(Grouped::new(kind, role, strict, result, context.clone()))
            }),
            form: Form::of(result),
        }
    }

    /// A call of it. It has the arguments' values; of states it has the states.
    #[must_use]
    pub fn call(&self, role: Role, arguments: Vec<DfExpr>) -> DfExpr {
        call(Arc::clone(&self.maker), role, self.form, arguments)
    }
}

/// The first value of a type, be it NULL.
#[must_use]
pub fn first(oid: u32, context: &Context) -> Own {
    Own::new(First(oid), false, oid, context)
}

/// The aggregate, if rows may come in any order and states become one.
#[must_use]
pub fn own(of: &Aggregation, context: &Context) -> Option<Own> {
    if !of.order.is_empty() || !of.direct.is_empty() || of.within_group {
        return None;
    }
    match of.what {
        What::Internal(Internal::First) => {
            let argument = of.arguments.first()?;
            return Some(first(argument.oid, context));
        }
        What::Internal(Internal::Count) => {
            return Some(Own::new(Count, false, of.result, context));
        }
        What::Internal(_) => {}
        What::Function(function) => {
            let Body::Aggregate(aggregate) = &function.body else {
                return None;
            };
            if aggregate.kind != AggregateKind::Normal {
                return None;
            }
            if let Some(typed) = typed(function.name, of, context) {
                return Some(typed);
            }
        }
    }
    let boxed = Boxed {
        what: of.what,
        types: Arc::clone(&of.types),
        result: of.result,
        arguments: of.arguments.iter().map(|argument| argument.oid).collect(),
        context: context.clone(),
    };
    boxed
        .is_mergeable()
        .then(|| Own::new(boxed, of.strict, of.result, context))
}

fn dispersion(name: &str) -> Option<Dispersion> {
    let (sample, deviation) = match name {
        "var_pop" => (false, false),
        "var_samp" | "variance" => (true, false),
        "stddev_pop" => (false, true),
        "stddev_samp" | "stddev" => (true, true),
        _ => return None,
    };
    Some(Dispersion { sample, deviation })
}

fn typed(name: &str, of: &Aggregation, context: &Context) -> Option<Own> {
    macro_rules! kind {
        ($kind:expr) => {
            Some(Own::new($kind, true, of.result, context))
        };
    }
    let oid = match of.arguments.as_slice() {
        [] if name == "count" => return Some(Own::new(Count, false, of.result, context)),
        [one] => one.oid,
        _ => return None,
    };
    if let Some(dispersion) = dispersion(name) {
        return match oid {
            ids::INT2 => kind!(OfExact::<Whole<Int16Type>>::new(dispersion)),
            ids::INT4 => kind!(OfExact::<Whole<Int32Type>>::new(dispersion)),
            ids::INT8 => kind!(OfExact::<Whole<Int64Type>>::new(dispersion)),
            ids::NUMERIC => kind!(OfExact::<Decimal>::new(dispersion)),
            ids::FLOAT4 => kind!(dispersions::OfFloats::<Float32Type>::new(Some(dispersion))),
            ids::FLOAT8 => kind!(dispersions::OfFloats::<Float64Type>::new(Some(dispersion))),
            _ => None,
        };
    }
    let side = match name {
        "min" => Side::Least,
        _ => Side::Greatest,
    };
    match (name, oid) {
        ("count", _) => kind!(Count),
        ("sum", ids::INT2) => kind!(Integers::<Int16Type>::new(Wanted::Int8)),
        ("sum", ids::INT4) => kind!(Integers::<Int32Type>::new(Wanted::Int8)),
        ("sum", ids::INT8) => kind!(Integers::<Int64Type>::new(Wanted::Numeric)),
        ("avg", ids::INT2) => kind!(Integers::<Int16Type>::new(Wanted::Average)),
        ("avg", ids::INT4) => kind!(Integers::<Int32Type>::new(Wanted::Average)),
        ("avg", ids::INT8) => kind!(Integers::<Int64Type>::new(Wanted::Average)),
        ("sum" | "avg", ids::NUMERIC) => kind!(Numerics {
            average: name == "avg",
        }),
        ("sum", ids::FLOAT4) => kind!(FloatSum::<Float32Type>::new()),
        ("sum", ids::FLOAT8) => kind!(FloatSum::<Float64Type>::new()),
        ("avg", ids::FLOAT4) => kind!(dispersions::OfFloats::<Float32Type>::new(None)),
        ("avg", ids::FLOAT8) => kind!(dispersions::OfFloats::<Float64Type>::new(None)),
        ("min" | "max", ids::FLOAT4) => kind!(extremes::OfFloats::<Float32Type>::new(side)),
        ("min" | "max", ids::FLOAT8) => kind!(extremes::OfFloats::<Float64Type>::new(side)),
        ("min" | "max", ids::NUMERIC) => kind!(OfNumerics(side)),
        ("min" | "max", ids::BPCHAR) => kind!(OfPadded(side)),
        _ => None,
    }
}
