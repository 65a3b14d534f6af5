//! Aggregates and window functions: which query they belong to, and where they may stand.

use super::Analyzer;
use super::call::Decoration;
use super::coerce::common_type;
use super::scope::Clause;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::functions::{AggregateKind, Body, Function};
use crate::tree::{AggregateCall, Expr, ExprKind, Query, RelationKind, SortKey, WindowCall};

impl Analyzer<'_> {
    #[expect(clippy::too_many_arguments, reason = "the parts of one call")]
    pub(super) fn aggregate(
        &mut self,
        function: &'static Function,
        mut arguments: Vec<Expr>,
        result: u32,
        mut order: Vec<SortKey>,
        filter: Option<Expr>,
        decoration: &Decoration<'_>,
        location: i32,
    ) -> Result<Expr> {
        let name = function.name;
        let Body::Aggregate(aggregate) = function.body else {
            return Err(QueryError::internal("an aggregate has a state"));
        };
        let error = |message: String| QueryError::new("42809", message).at(location);
        if arguments.is_empty() && !decoration.star && !decoration.within_group {
            return Err(error(format!(
                "{name}(*) must be used to call a parameterless aggregate function"
            )));
        }
        let is_set = !matches!(aggregate.kind, AggregateKind::Normal);
        if is_set && !decoration.within_group {
            return Err(error(format!(
                "WITHIN GROUP is required for ordered-set aggregate {name}"
            )));
        }
        if !is_set && decoration.within_group {
            return Err(error(format!(
                "{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"
            )));
        }
        let types: Box<[u32]> = arguments.iter().map(|argument| argument.oid).collect();
        let mut direct = Vec::new();
        match aggregate.kind {
            AggregateKind::Normal => {}
            AggregateKind::OrderedSet { .. } | AggregateKind::Hypothetical => {
                let keys = order.len();
                let rest = arguments.split_off(arguments.len() - keys);
                direct = std::mem::replace(&mut arguments, rest);
                if matches!(aggregate.kind, AggregateKind::Hypothetical) {
                    if direct.len() != keys {
                        return Err(error(format!(
                            "function {name} needs as many direct arguments as it has keys in WITHIN GROUP"
                        )));
                    }
                    for (own, key) in direct.iter_mut().zip(&mut arguments) {
                        let oid = common_type(&[own, key], "WITHIN GROUP")?;
                        let taken = std::mem::replace(own, Expr::constant(Datum::Null, 0));
                        *own = self.coerce_to_common(taken, oid, "WITHIN GROUP")?;
                        let taken = std::mem::replace(key, Expr::constant(Datum::Null, 0));
                        *key = self.coerce_to_common(taken, oid, "WITHIN GROUP")?;
                    }
                }
                for (key, argument) in order.iter_mut().zip(&arguments) {
                    key.expr = argument.clone();
                }
                for key in &order {
                    super::order::check_ordered(&key.expr)?;
                }
            }
        }
        if decoration.distinct && !is_set {
            for argument in &arguments {
                super::order::check_equality(argument)?;
            }
            for key in &mut order {
                let mut given = arguments.iter();
                let given = given.find(|argument| {
                    argument.same(&key.expr) || before_relabel(argument).same(&key.expr)
                });
                if let Some(argument) = given {
                    key.expr = argument.clone();
                } else {
                    return Err(QueryError::new(
                        "42P10",
                        "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
                    )
                    .at(key.expr.location));
                }
            }
        }
        // It belongs to the innermost query that its arguments name columns of.
        let inner: Vec<&Expr> = arguments
            .iter()
            .chain(order.iter().map(|key| &key.expr))
            .chain(&filter)
            .collect();
        let level = inner
            .iter()
            .filter_map(|expr| least_level(expr, 0))
            .min()
            .unwrap_or(0);
        for expr in &inner {
            if let Some(place) = nested(expr, level) {
                return Err(
                    QueryError::new("42803", "aggregate function calls cannot be nested").at(place),
                );
            }
            let window = expr.any(&mut |expr| matches!(expr.kind, ExprKind::Window(_)));
            if window {
                return Err(QueryError::new(
                    "42803",
                    "aggregate function calls cannot contain window function calls",
                )
                .at(expr.location));
            }
            if super::coerce::returns_set(expr) {
                return Err(QueryError::unsupported("aggregate function calls cannot contain set-returning function calls", "You might be able to move the set-returning function into a LATERAL FROM item.")
                    .at(location));
            }
        }
        let Some(owner) = self.levels.len().checked_sub(1 + level) else {
            return Err(QueryError::internal("an aggregate of no query"));
        };
        let owner = &mut self.levels[owner];
        match owner.clause {
            Clause::Targets
            | Clause::Having
            | Clause::Order
            | Clause::DistinctOn
            | Clause::WindowOrder
            | Clause::WindowPartition => {}
            clause => {
                let place = match clause {
                    Clause::Join => "JOIN conditions",
                    Clause::MergeWhen => "MERGE WHEN conditions",
                    Clause::FromFunction => "functions in FROM",
                    Clause::FromSubquery => "FROM clause of their own query level",
                    other => other.name(),
                };
                return Err(QueryError::new(
                    "42803",
                    format!("aggregate functions are not allowed in {place}"),
                )
                .at(location));
            }
        }
        owner.has_aggregates = true;
        let call = AggregateCall {
            function,
            level,
            direct,
            arguments,
            types,
            order,
            distinct: decoration.distinct,
            filter,
        };
        Ok(Expr::new(
            ExprKind::Aggregate(Box::new(call)),
            result,
            location,
        ))
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one call")]
    pub(super) fn window_call(
        &mut self,
        function: &'static Function,
        arguments: Vec<Expr>,
        result: u32,
        filter: Option<Expr>,
        over: &pg_raw_parse::nodes::WindowDef,
        decoration: &Decoration<'_>,
        location: i32,
    ) -> Result<Expr> {
        let name = function.name;
        if !function.is_window() && !function.is_aggregate() {
            return Err(QueryError::new(
                "42809",
                format!(
                    "OVER specified, but {name} is not a window function nor an aggregate function"
                ),
            )
            .at(location));
        }
        let refused = match () {
            () if decoration.distinct => {
                Some("DISTINCT is not implemented for window functions".to_owned())
            }
            () if !decoration.order.is_empty() => {
                Some("aggregate ORDER BY is not implemented for window functions".to_owned())
            }
            () if filter.is_some() && function.is_window() => {
                Some("FILTER is not implemented for non-aggregate window functions".to_owned())
            }
            () => None,
        };
        if let Some(message) = refused {
            return Err(
                QueryError::unsupported(message, "Compute the value in a subquery first.")
                    .at(location),
            );
        }
        if arguments.is_empty() && function.is_aggregate() && !decoration.star {
            return Err(QueryError::new(
                "42809",
                format!("{name}(*) must be used to call a parameterless aggregate function"),
            )
            .at(location));
        }
        let nested = self.level().in_window;
        let clause = self.level().clause;
        match clause {
            Clause::Targets | Clause::Order | Clause::DistinctOn if !nested => {}
            _ if nested => {
                return Err(
                    QueryError::new("42P20", "window function calls cannot be nested").at(location),
                );
            }
            clause => {
                let place = match clause {
                    Clause::Join => "JOIN conditions",
                    Clause::MergeWhen => "MERGE WHEN conditions",
                    Clause::FromFunction => "functions in FROM",
                    Clause::WindowPartition | Clause::WindowOrder | Clause::WindowFrame => {
                        "window definitions"
                    }
                    other => other.name(),
                };
                return Err(QueryError::new(
                    "42P20",
                    format!("window functions are not allowed in {place}"),
                )
                .at(location));
            }
        }
        self.level().has_windows = true;
        let window = self.over(over)?;
        let call = WindowCall {
            function,
            types: arguments.iter().map(|argument| argument.oid).collect(),
            arguments,
            filter,
            window,
        };
        Ok(Expr::new(
            ExprKind::Window(Box::new(call)),
            result,
            location,
        ))
    }
}

/// An argument as it was before it was taken for another type that has the same values.
fn before_relabel(argument: &Expr) -> &Expr {
    match &argument.kind {
        ExprKind::Relabel(inner) => inner,
        _ => argument,
    }
}

/// The level of the innermost query whose columns an expression names, `depth` queries further in than it stands.
pub(super) fn least_level(expr: &Expr, depth: usize) -> Option<usize> {
    let mut least: Option<usize> = None;
    let mut note = |level: Option<usize>| {
        if let Some(level) = level {
            least = Some(least.map_or(level, |least| least.min(level)));
        }
    };
    match &expr.kind {
        ExprKind::Column { level, .. } | ExprKind::WholeRow { level, .. } => {
            note(level.checked_sub(depth))
        }
        ExprKind::Subquery(subquery) => note(least_level_of_query(&subquery.query, depth + 1)),
        _ => {}
    }
    expr.children(&mut |child| note(least_level(child, depth)));
    least
}

fn least_level_of_query(query: &Query, depth: usize) -> Option<usize> {
    let mut least: Option<usize> = None;
    let mut note = |level: Option<usize>| {
        if let Some(level) = level {
            least = Some(least.map_or(level, |least| least.min(level)));
        }
    };
    for common in &query.with {
        note(least_level_of_query(&common.query, depth + 1));
    }
    for relation in &query.relations {
        match &relation.kind {
            RelationKind::Subquery(inner, _) => note(least_level_of_query(inner, depth + 1)),
            RelationKind::Functions { calls, .. } => calls
                .iter()
                .for_each(|(call, _)| note(least_level(call, depth))),
            RelationKind::Values(rows, _) => rows
                .iter()
                .flatten()
                .for_each(|expr| note(least_level(expr, depth))),
            RelationKind::Table(_) | RelationKind::Common { .. } => {}
        }
    }
    query.own_exprs(&mut |expr| note(least_level(expr, depth)));
    least
}

/// Where an aggregate of this level stands within an expression.
fn nested(expr: &Expr, level: usize) -> Option<i32> {
    if let ExprKind::Aggregate(call) = &expr.kind
        && call.level == level
    {
        return Some(expr.location);
    }
    let mut found = None;
    expr.children(&mut |child| found = found.or_else(|| nested(child, level)));
    found
}
