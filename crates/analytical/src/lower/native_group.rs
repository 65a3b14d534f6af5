//! Groups by DataFusion: in several streams, and on disk where memory is short. Keys that Arrow
//! does not tell apart as PostgreSQL does are grouped by bytes of theirs, and of each group the
//! first value is shown. DISTINCT aggregates of the same arguments are computed in two steps: the
//! first groups by the arguments, too.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::functions_aggregate::expr_fn::{bool_and, bool_or, count, max, min, sum};
use datafusion::logical_expr::{
    Aggregate, Cast, Expr as DfExpr, ExprFunctionExt, LogicalPlan, lit,
};
use thermocline_query::datum::Datum;
use thermocline_query::error::Result;
use thermocline_query::tree::{Case, Expr, ExprKind};
use thermocline_query::types::ids;

use super::expr::all_of;
use super::plan::df;
use super::{Lowerer, Rel};
use crate::aggregates::{self, Role, own};
use crate::equal_key::equal_key;
use crate::evaluate::{as_column, column as bound_column};
use crate::form::Form;
use crate::operators::states::{Aggregation, Internal, What};
use crate::udf::{column, is_volatile, named};

/// What is grouped, and by what.
pub(super) struct Grouped<'a> {
    /// Columns that go through as they are, and by whose very bytes rows are told apart.
    pub domain: &'a [usize],
    /// The grouping expressions and the columns that they become.
    pub keys: &'a [(usize, Expr)],
    /// The aggregates.
    pub aggregates: &'a [Aggregation],
    /// A column that is NULL in rows that stand for no row, only for their domain.
    pub present: Option<usize>,
}

/// Columns that are computed before rows are grouped.
#[derive(Default)]
struct Before {
    columns: Vec<(usize, DfExpr)>,
    computed: Vec<(Expr, usize)>,
    /// Keys of columns, which must be there first.
    keys: Vec<(usize, DfExpr)>,
}

/// The columns that rows are grouped by, and those of which the first value is shown: where it
/// is, what it becomes, its type.
#[derive(Default)]
struct By {
    columns: Vec<usize>,
    firsts: Vec<(usize, usize, u32)>,
}

/// An aggregate's arguments, and which rows it takes.
struct Fed {
    arguments: Vec<DfExpr>,
    filter: Option<DfExpr>,
}

fn is_exact(oid: u32) -> bool {
    Form::of(oid).is_exact() && oid != ids::JSON
}

fn name_of(of: &Aggregation) -> &'static str {
    match of.what {
        What::Function(function) => function.name,
        What::Internal(_) => "",
    }
}

/// Whether each value counts once, and it matters.
fn is_distinct(of: &Aggregation) -> bool {
    let once = matches!(
        name_of(of),
        "min" | "max" | "bool_and" | "bool_or" | "every" | "bit_and" | "bit_or"
    );
    of.distinct && !once
}

/// The aggregate of DataFusion that means the same.
fn of_datafusion(of: &Aggregation, arguments: &[DfExpr]) -> Option<DfExpr> {
    if matches!(of.what, What::Internal(Internal::Count)) {
        return Some(count(lit(1_i64)));
    }
    let argument = match (name_of(of), arguments) {
        ("count", []) => return Some(count(lit(1_i64))),
        (_, [argument]) => argument.clone(),
        _ => return None,
    };
    let oid = of.arguments.first()?.oid;
    match name_of(of) {
        "count" => Some(count(argument)),
        "sum" if matches!(oid, ids::INT2 | ids::INT4) => {
            let wide = Cast::new(Box::new(argument), DataType::Int64);
            Some(sum(DfExpr::Cast(wide)))
        }
        "bool_and" | "every" => Some(bool_and(argument)),
        "bool_or" => Some(bool_or(argument)),
        name @ ("min" | "max")
            if oid == of.result
                && matches!(
                    Form::of(oid),
                    Form::Int2
                        | Form::Int4
                        | Form::Int8
                        | Form::Date
                        | Form::Timestamp
                        | Form::TimestampTz
                        | Form::Text
                ) =>
        {
            Some(match name {
                "min" => min(argument),
                _ => max(argument),
            })
        }
        _ => None,
    }
}

impl Lowerer<'_> {
    /// The groups; `None` where an aggregate needs all its rows in one place.
    pub(super) fn natively(&mut self, rel: &Rel, of: &Grouped<'_>) -> Result<Option<Rel>> {
        let possible = |of: &Aggregation| own(of, &self.context).is_some();
        if !of.aggregates.iter().all(possible) {
            return Ok(None);
        }
        if of.domain.is_empty() && of.keys.is_empty() && of.aggregates.is_empty() {
            return Ok(None);
        }
        if of.keys.iter().any(|(_, expr)| expr.oid == ids::JSON) {
            return Ok(None);
        }
        let mut before = Before::default();
        let by = self.grouped_by(of, &mut before);
        let rel = if of.aggregates.iter().any(is_distinct) {
            match self.in_two_steps(rel, of, by, before)? {
                Some(rel) => rel,
                None => return Ok(None),
            }
        } else {
            let mut results = self.firsts(&by);
            for aggregate in of.aggregates {
                let fed = self.fed(aggregate, of.present, false, &mut before);
                let call = self.whole(aggregate, fed)?;
                results.push(named(call, aggregate.id));
            }
            self.aggregated(before.over(rel)?, &by.columns, results)?
        };
        let keys = of.keys.iter().map(|(id, _)| *id);
        let results = of.aggregates.iter().map(|of| of.id);
        let columns: Vec<usize> = of
            .domain
            .iter()
            .copied()
            .chain(keys)
            .chain(results)
            .collect();
        if rel.columns.len() == columns.len() {
            return Ok(Some(Rel { columns, ..rel }));
        }
        rel.only(&columns).map(Some)
    }

    fn grouped_by(&mut self, of: &Grouped<'_>, before: &mut Before) -> By {
        let mut by = By {
            columns: of.domain.to_vec(),
            firsts: Vec::new(),
        };
        for (id, expr) in of.keys {
            if is_exact(expr.oid) {
                if as_column(expr) != Some(*id) {
                    before.columns.push((*id, self.scalar(expr)));
                }
                by.columns.push(*id);
                continue;
            }
            let value = self.value_before(expr, before);
            by.columns.push(self.key_before(value, expr.oid, before));
            by.firsts.push((value, *id, expr.oid));
        }
        by
    }

    /// A column that an expression is in.
    fn value_before(&mut self, expr: &Expr, before: &mut Before) -> usize {
        if let Some(id) = as_column(expr) {
            return id;
        }
        let mut computed = before.computed.iter();
        if let Some((_, id)) = computed.find(|(other, _)| other.same(expr)) {
            return *id;
        }
        let id = self.fresh(expr.oid);
        before.columns.push((id, self.scalar(expr)));
        if !is_volatile(expr) {
            before.computed.push((expr.clone(), id));
        }
        id
    }

    fn key_before(&mut self, value: usize, oid: u32, before: &mut Before) -> usize {
        let key = self.fresh(ids::BYTEA);
        before.keys.push((key, equal_key(column(value), oid)));
        key
    }

    fn firsts(&self, by: &By) -> Vec<DfExpr> {
        let first = |(value, id, oid): &(usize, usize, u32)| {
            let first = aggregates::first(*oid, &self.context);
            named(first.call(Role::Whole, vec![column(*value)]), *id)
        };
        by.firsts.iter().map(first).collect()
    }

    /// Which rows an aggregate takes.
    fn condition(of: &Aggregation, present: Option<usize>) -> Option<Expr> {
        let present = present.map(|id| {
            let column = bound_column(id, ids::BOOL);
            Expr::new(ExprKind::IsNull(Box::new(column), false), ids::BOOL, -1)
        });
        all_of(present.into_iter().chain(of.filter.clone()).collect())
    }

    /// An aggregate's arguments. What may fail is asked only of rows that are taken; so is what
    /// is to be `NULL` for the others.
    fn fed(
        &mut self,
        of: &Aggregation,
        present: Option<usize>,
        nulls: bool,
        before: &mut Before,
    ) -> Fed {
        let condition = Self::condition(of, present);
        let mut left_out = false;
        let mut arguments = Vec::with_capacity(of.arguments.len());
        for argument in &of.arguments {
            let native = self.native(argument);
            match (&condition, native) {
                (None, Some(native)) => arguments.push(native),
                (Some(_), Some(native)) if !nulls => arguments.push(native),
                (None, None) => {
                    arguments.push(column(self.value_before(argument, before)));
                }
                (Some(condition), _) => {
                    let case = guarded(condition, argument);
                    arguments.push(column(self.value_before(&case, before)));
                    left_out = true;
                }
            }
        }
        let filter = condition.filter(|_| !(left_out && of.strict));
        let filter = filter.map(|filter| match self.native(&filter) {
            Some(native) => native,
            None => column(self.value_before(&filter, before)),
        });
        Fed { arguments, filter }
    }

    /// An aggregate over values.
    fn whole(&self, of: &Aggregation, fed: Fed) -> Result<DfExpr> {
        let call = match of_datafusion(of, &fed.arguments) {
            Some(call) => Some(call),
            None => own(of, &self.context).map(|own| own.call(Role::Whole, fed.arguments)),
        };
        let call = call.ok_or_else(|| super::contradiction("an aggregate that is none"))?;
        filtered(call, fed.filter)
    }

    fn aggregated(&self, rel: Rel, by: &[usize], results: Vec<DfExpr>) -> Result<Rel> {
        let keys: Vec<DfExpr> = by.iter().map(|id| column(*id)).collect();
        let mut columns = by.to_vec();
        columns.extend(results.iter().filter_map(|result| match result {
            DfExpr::Alias(alias) => alias.name.strip_prefix('c')?.parse::<usize>().ok(),
            _ => None,
        }));
        let aggregate = Aggregate::try_new(Arc::new(rel.plan), keys, results);
        Ok(Rel {
            plan: LogicalPlan::Aggregate(df(aggregate)?),
            columns,
        })
    }

    /// First by the arguments, too, then without. The other aggregates' states go from the first
    /// step to the second.
    fn in_two_steps(
        &mut self,
        rel: &Rel,
        of: &Grouped<'_>,
        mut by: By,
        mut before: Before,
    ) -> Result<Option<Rel>> {
        let Some(arguments) = self.same_arguments(of) else {
            return Ok(None);
        };
        let mut first = By {
            columns: by.columns.clone(),
            firsts: Vec::new(),
        };
        for (value, _, oid) in &mut by.firsts {
            let id = self.fresh(*oid);
            first.firsts.push((*value, id, *oid));
            *value = id;
        }
        let mut values = Vec::with_capacity(arguments.len());
        for argument in &arguments {
            let value = self.value_before(argument, &mut before);
            if is_exact(argument.oid) {
                first.columns.push(value);
                values.push(column(value));
                continue;
            }
            first
                .columns
                .push(self.key_before(value, argument.oid, &mut before));
            let id = self.fresh(argument.oid);
            first.firsts.push((value, id, argument.oid));
            values.push(column(id));
        }
        let mut states = self.firsts(&first);
        let mut results = self.firsts(&by);
        for aggregate in of.aggregates {
            if is_distinct(aggregate) {
                let fed = Fed {
                    arguments: values.clone(),
                    filter: None,
                };
                results.push(named(self.whole(aggregate, fed)?, aggregate.id));
                continue;
            }
            let Some(own) = own(aggregate, &self.context) else {
                return Ok(None);
            };
            let fed = self.fed(aggregate, of.present, false, &mut before);
            let id = self.fresh(ids::BYTEA);
            let state = filtered(own.call(Role::ToStates, fed.arguments), fed.filter)?;
            states.push(named(state, id));
            let whole = own.call(Role::OfStates, vec![column(id)]);
            results.push(named(whole, aggregate.id));
        }
        first.columns.sort_unstable();
        first.columns.dedup();
        let rel = self.aggregated(before.over(rel)?, &first.columns, states)?;
        self.aggregated(rel, &by.columns, results).map(Some)
    }

    /// The arguments that all DISTINCT aggregates have. NULL where a row is not taken.
    fn same_arguments(&self, of: &Grouped<'_>) -> Option<Vec<Expr>> {
        let mut same: Option<Vec<Expr>> = None;
        for aggregate in of.aggregates.iter().filter(|of| is_distinct(of)) {
            let condition = Self::condition(aggregate, of.present);
            if aggregate.arguments.is_empty() || (condition.is_some() && !aggregate.strict) {
                return None;
            }
            let arguments = aggregate.arguments.iter();
            let arguments: Vec<Expr> = arguments
                .map(|argument| match &condition {
                    Some(condition) => guarded(condition, argument),
                    None => argument.clone(),
                })
                .collect();
            if arguments
                .iter()
                .any(|argument| argument.oid == ids::JSON || is_volatile(argument))
            {
                return None;
            }
            match &same {
                None => same = Some(arguments),
                Some(same) => {
                    let mut pairs = same.iter().zip(&arguments);
                    if same.len() != arguments.len() || !pairs.all(|(a, b)| a.same(b)) {
                        return None;
                    }
                }
            }
        }
        same
    }
}

impl Before {
    fn over(self, rel: &Rel) -> Result<Rel> {
        rel.clone().with(self.columns)?.with(self.keys)
    }
}

fn filtered(call: DfExpr, filter: Option<DfExpr>) -> Result<DfExpr> {
    match filter {
        Some(filter) => df(call.filter(filter).build()),
        None => Ok(call),
    }
}

/// An expression where a condition is true, else NULL.
fn guarded(condition: &Expr, expr: &Expr) -> Expr {
    let case = Case {
        operand: None,
        branches: vec![(condition.clone(), expr.clone())],
        otherwise: Expr::constant(Datum::Null, expr.oid),
    };
    Expr::new(ExprKind::Case(Box::new(case)), expr.oid, -1)
}
