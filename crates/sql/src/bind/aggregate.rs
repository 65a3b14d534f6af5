//! Aggregation while binding. With GROUP BY or an aggregate function the
//! select list, HAVING and ORDER BY read another row: the group's keys, then
//! the results of the aggregate functions.

use sqlparser::ast::{
    self, DuplicateTreatment, FunctionArg, FunctionArgExpr, FunctionArguments, Visit, Visitor,
};
use std::ops::ControlFlow;
use thermocline_storage::types::DataType;

use super::scope::folded;
use super::typed::{Binder, Typed};
use super::{Bindable, Refusal};
use crate::error::SqlError;
use crate::expr::{Expr, base_type};
use crate::plan::{AggregateCall, AggregateFunction};

/// The groups and calls met so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Aggregation {
    pub(crate) groups: Vec<(Expr, DataType)>,
    pub(crate) calls: Vec<AggregateCall>,
}

/// The aggregate function of this name, if it is one of ours.
pub(super) fn aggregate_function(name: &str) -> Option<AggregateFunction> {
    Some(match name {
        "count" => AggregateFunction::Count,
        "sum" => AggregateFunction::Sum,
        "avg" => AggregateFunction::Average,
        "min" => AggregateFunction::Minimum,
        "max" => AggregateFunction::Maximum,
        "bool_and" | "every" => AggregateFunction::BoolAnd,
        "bool_or" => AggregateFunction::BoolOr,
        _ => return None,
    })
}

/// Whether an aggregate function of ours is called in `ast`, not counting its
/// subqueries.
pub(super) fn calls_aggregate<V: Visit>(ast: &V) -> bool {
    struct Calls {
        subqueries: u32,
    }
    impl Visitor for Calls {
        type Break = ();
        fn pre_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
            self.subqueries += 1;
            ControlFlow::Continue(())
        }
        fn post_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
            self.subqueries -= 1;
            ControlFlow::Continue(())
        }
        fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<()> {
            match expr {
                ast::Expr::Function(function)
                    if self.subqueries == 0
                        && function.over.is_none()
                        && function_name(function)
                            .is_some_and(|name| aggregate_function(&name).is_some()) =>
                {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    ast.visit(&mut Calls { subqueries: 0 }).is_break()
}

/// A function's folded name without `pg_catalog`; `None` in another schema.
pub(super) fn function_name(function: &ast::Function) -> Option<String> {
    let mut parts = Vec::with_capacity(2);
    for part in &function.name.0 {
        match part {
            ast::ObjectNamePart::Identifier(ident) => parts.push(folded(ident)),
            ast::ObjectNamePart::Function(_) => return None,
        }
    }
    match parts.len() {
        1 => parts.pop(),
        2 if parts[0] == "pg_catalog" => parts.pop(),
        _ => None,
    }
}

impl Binder<'_> {
    /// In an aggregation: the group key that `ast` repeats, if it does.
    pub(super) fn grouped(&mut self, ast: &ast::Expr) -> Bindable<Option<Typed>> {
        let Some(aggregation) = self.aggregation.take() else {
            return Ok(None);
        };
        let mut found = None;
        if !aggregation.groups.is_empty()
            && !calls_aggregate(ast)
            && let Ok(typed) = self.expression(ast)
        {
            found = aggregation
                .groups
                .iter()
                .position(|(group, _)| *group == typed.expr)
                .map(|position| {
                    let mut key =
                        Typed::known(Expr::Column(position), aggregation.groups[position].1);
                    key.span = typed.span;
                    key
                });
        }
        self.aggregation = Some(aggregation);
        Ok(found)
    }

    /// Whether GROUP BY holds the whole primary key: then PostgreSQL allows
    /// every other column too.
    pub(super) fn groups_by_primary_key(&self) -> bool {
        let (Some(aggregation), [relation]) = (&self.aggregation, self.relations.as_slice()) else {
            return false;
        };
        relation.table.indexes.iter().any(|index| {
            index.primary
                && index.columns.iter().all(|column| {
                    aggregation
                        .groups
                        .iter()
                        .any(|(group, _)| *group == Expr::Column(*column))
                })
        })
    }

    /// A call of an aggregate function.
    pub(super) fn aggregate(
        &mut self,
        function: AggregateFunction,
        call: &ast::Function,
    ) -> Bindable<Typed> {
        let name = function_name(call).unwrap_or_default();
        let FunctionArguments::List(list) = &call.args else {
            return Err(SqlError::syntax(format!("{name} needs arguments")).into());
        };
        if list.duplicate_treatment == Some(DuplicateTreatment::Distinct) {
            return Err(Refusal::declined("an aggregate with DISTINCT"));
        }
        if !list.clauses.is_empty() || !call.within_group.is_empty() {
            return Err(Refusal::declined("an ordered aggregate"));
        }
        let Some(aggregation) = self.aggregation.take() else {
            let error = SqlError::new("42803", "aggregate functions are not allowed here");
            return Err(Refusal::declined_with("a nested aggregate", error));
        };
        let bound = self.aggregate_call(function, &name, list, call.filter.as_deref());
        let mut aggregation = aggregation;
        let (bound, result) = match bound {
            Ok(bound) => bound,
            Err(refusal) => {
                self.aggregation = Some(aggregation);
                return Err(refusal);
            }
        };
        let position = aggregation
            .calls
            .iter()
            .position(|known| *known == bound)
            .unwrap_or_else(|| {
                aggregation.calls.push(bound);
                aggregation.calls.len() - 1
            });
        let column = aggregation.groups.len() + position;
        self.aggregation = Some(aggregation);
        Ok(Typed::known(Expr::Column(column), result))
    }

    fn aggregate_call(
        &mut self,
        function: AggregateFunction,
        name: &str,
        list: &ast::FunctionArgumentList,
        filter: Option<&ast::Expr>,
    ) -> Bindable<(AggregateCall, DataType)> {
        let argument = match list.args.as_slice() {
            [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)] => None,
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] => {
                let typed = self.expression(argument)?;
                Some(self.settled(typed)?)
            }
            _ => return Err(Refusal::declined(format!("this form of {name}"))),
        };
        let filter = match filter {
            Some(filter) => {
                let typed = self.expression(filter)?;
                Some(self.condition(typed, "FILTER")?)
            }
            None => None,
        };
        let Some((argument, argument_type)) = argument else {
            if function != AggregateFunction::Count {
                return Err(no_function(name, "").into());
            }
            let call = AggregateCall {
                function,
                argument: None,
                argument_type: DataType::BigInt,
                filter,
            };
            return Ok((call, DataType::BigInt));
        };
        let Some(result) = result_type(function, argument_type) else {
            return Err(no_function(name, argument_type.base_name()).into());
        };
        let call = AggregateCall {
            function,
            argument: Some(argument),
            argument_type,
            filter,
        };
        Ok((call, result))
    }
}

/// 42883 as for any function.
#[cold]
pub(super) fn no_function(name: &str, arguments: &str) -> SqlError {
    SqlError::new(
        "42883",
        format!("function {name}({arguments}) does not exist"),
    )
    .with_hint(
        "No function matches the given name and argument types. You might need to add explicit type casts.",
    )
}

fn result_type(function: AggregateFunction, argument: DataType) -> Option<DataType> {
    use AggregateFunction::{Average, BoolAnd, BoolOr, Count, Maximum, Minimum, Sum};
    Some(match (function, base_type(argument)) {
        (Count, _) => DataType::BigInt,
        (Sum, DataType::SmallInt | DataType::Integer) => DataType::BigInt,
        (Sum, DataType::BigInt | DataType::Numeric { .. }) => DataType::NUMERIC,
        (Sum, floating @ (DataType::Real | DataType::Double)) => floating,
        (Average, DataType::Real | DataType::Double) => DataType::Double,
        (Average, number) if number.is_number() => DataType::NUMERIC,
        (
            Minimum | Maximum,
            DataType::Boolean | DataType::Uuid | DataType::Bytea | DataType::Other { .. },
        ) => return None,
        (Minimum | Maximum, DataType::Varchar(_)) => DataType::Text,
        (Minimum | Maximum, other) => other,
        (BoolAnd | BoolOr, DataType::Boolean) => DataType::Boolean,
        _ => return None,
    })
}
