//! Binding of function calls: aggregates, window functions, set-returning
//! functions, and the rest.

use sqlparser::ast::{
    self, DuplicateTreatment, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, WindowType,
};

use super::aggregate::{AggregateCall, AggregateFunction};
use super::bind::{Binder, order_of};
use super::bind_expr::single_column;
use super::coerce::coerce;
use super::expr::{Expr, Order, SetCall, Typed};
use super::plan::{WindowCall, WindowFunction};
use super::set_returning::SetFunction;
use crate::analytics::last_part;
use crate::error::{Result, SqlError};
use crate::pg_catalog::pg_type::{PgType, format_type};

/// 42883 in PostgreSQL's words.
pub(super) fn no_function(name: &str, types: &[PgType]) -> SqlError {
    let types: Vec<String> = types
        .iter()
        .map(|data_type| match *data_type {
            PgType::UNKNOWN => "unknown".to_owned(),
            known => format_type(known.oid, None),
        })
        .collect();
    SqlError::new(
        "42883",
        format!("function {name}({}) does not exist", types.join(", ")),
    )
    .with_hint(
        "No function matches the given name and argument types. You might need to add explicit \
         type casts.",
    )
}

/// The arguments of a call as they are written.
#[derive(Default)]
struct Arguments<'a> {
    expressions: Vec<&'a ast::Expr>,
    /// `count(*)`
    star: bool,
    distinct: bool,
    order: Vec<&'a ast::OrderByExpr>,
}

fn written(call: &ast::Function) -> Result<Arguments<'_>> {
    let mut arguments = Arguments::default();
    let FunctionArguments::List(list) = &call.args else {
        return match call.args {
            FunctionArguments::None => Ok(arguments),
            _ => Err(SqlError::unsupported("a subquery as the argument list")),
        };
    };
    arguments.distinct = matches!(list.duplicate_treatment, Some(DuplicateTreatment::Distinct));
    for argument in &list.args {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => arguments.expressions.push(expr),
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => arguments.star = true,
            _ => return Err(SqlError::unsupported("named arguments")),
        }
    }
    for clause in &list.clauses {
        match clause {
            FunctionArgumentClause::OrderBy(order) => arguments.order.extend(order),
            _ => return Err(SqlError::unsupported("this clause in a function call")),
        }
    }
    Ok(arguments)
}

impl Binder<'_> {
    pub(super) fn function(&mut self, call: &ast::Function) -> Result<Typed> {
        let name = last_part(&call.name).unwrap_or_default();
        // ARRAY(SELECT …) is parsed as a function of a subquery.
        if let FunctionArguments::Subquery(query) = &call.args
            && name == "array"
        {
            let plan = self.subquery(query)?;
            let element = single_column(&plan)?;
            return Ok(Typed::new(
                Expr::ArrayOfQuery(std::sync::Arc::new(plan)),
                element.array(),
            ));
        }
        let arguments = written(call)?;
        if let Some(window) = &call.over {
            return self.window(&name, &arguments, call, window);
        }
        if let Some(function) = AggregateFunction::by_name(&name) {
            let aggregate = self.aggregate(function, &arguments, call)?;
            let result = aggregate.result();
            let collected = self
                .collected
                .last_mut()
                .filter(|collected| collected.aggregates_allowed)
                .ok_or_else(|| {
                    SqlError::new("42803", "aggregate functions are not allowed in WHERE")
                })?;
            collected.aggregates.push(aggregate);
            let index = collected.aggregates.len() - 1;
            return Ok(Typed::new(Expr::Aggregate { depth: 0, index }, result));
        }
        if arguments.star || arguments.distinct || !arguments.order.is_empty() {
            return Err(SqlError::new(
                "42809",
                format!("{name} is not an aggregate function"),
            ));
        }
        let bound = arguments
            .expressions
            .iter()
            .map(|expr| self.expr(expr))
            .collect::<Result<Vec<_>>>()?;
        if name == "coalesce" {
            let (values, data_type) = self.unified(bound)?;
            return Ok(Typed::new(Expr::Coalesce(values), data_type));
        }
        if matches!(name.as_str(), "nullif" | "greatest" | "least") {
            let (values, data_type) = self.unified(bound)?;
            let values = values
                .into_iter()
                .map(|expr| Typed::new(expr, data_type))
                .collect();
            return self.call(&name, values);
        }
        if let Some(function) = SetFunction::by_name(&name) {
            let arguments: Vec<(Expr, PgType)> = bound
                .into_iter()
                .map(|typed| (typed.expr, typed.data_type))
                .collect();
            let types: Vec<PgType> = arguments.iter().map(|(_, data_type)| *data_type).collect();
            let columns = function.columns(&name, &types);
            let result = match columns.as_slice() {
                [(_, data_type)] => *data_type,
                _ => PgType::RECORD,
            };
            let collected = self
                .collected
                .last_mut()
                .filter(|collected| collected.sets_allowed)
                .ok_or_else(|| {
                    SqlError::unsupported("set-returning functions are not allowed here")
                })?;
            collected.sets.push(SetCall {
                function,
                arguments,
            });
            return Ok(Typed::new(Expr::Set(collected.sets.len() - 1), result));
        }
        let bound = self.expected(&name, bound)?;
        self.call(&name, bound)
    }

    /// Arguments that are object ids may come as quoted literals.
    fn expected(&mut self, name: &str, arguments: Vec<Typed>) -> Result<Vec<Typed>> {
        let by_number = name.starts_with("pg_get_") && name != "pg_get_serial_sequence"
            || matches!(
                name,
                "format_type"
                    | "obj_description"
                    | "col_description"
                    | "shobj_description"
                    | "pg_table_is_visible"
                    | "pg_type_is_visible"
                    | "pg_relation_is_publishable"
                    | "pg_encoding_to_char"
            );
        let by_relation = matches!(
            name,
            "pg_relation_size"
                | "pg_table_size"
                | "pg_total_relation_size"
                | "pg_indexes_size"
                | "pg_sequence_last_value"
        );
        let by_session = matches!(
            name,
            "pg_cancel_backend"
                | "pg_terminate_backend"
                | "pg_blocking_pids"
                | "pg_safe_snapshot_blocking_pids"
                | "pg_isolation_test_session_is_blocked"
        );
        arguments
            .into_iter()
            .enumerate()
            .map(|(at, typed)| match at {
                0 if typed.is_unknown() && by_session => coerce(typed, PgType::INT4, self),
                1 if typed.is_unknown() && name == "pg_terminate_backend" => {
                    coerce(typed, PgType::INT8, self)
                }
                1 if typed.is_unknown() && by_session => coerce(typed, PgType::INT4_ARRAY, self),
                0 if typed.is_unknown() && by_number && name != "pg_get_expr" => {
                    coerce(typed, PgType::OID, self)
                }
                0 if typed.is_unknown() && by_relation => coerce(typed, PgType::REGCLASS, self),
                _ => Ok(typed),
            })
            .collect()
    }

    fn aggregate(
        &mut self,
        function: AggregateFunction,
        arguments: &Arguments<'_>,
        call: &ast::Function,
    ) -> Result<AggregateCall> {
        if arguments.star {
            let filter = self.filter(call)?;
            return Ok(AggregateCall {
                function: AggregateFunction::CountRows,
                arguments: Vec::new(),
                distinct: false,
                order: Vec::new(),
                filter,
            });
        }
        let nested = self
            .collected
            .last_mut()
            .map(|collected| std::mem::replace(&mut collected.aggregates_allowed, false));
        let bound = arguments
            .expressions
            .iter()
            .map(|expr| {
                let typed = self.expr(expr)?;
                Ok(if typed.is_unknown() {
                    let typed = coerce(typed, PgType::TEXT, self)?;
                    (typed.expr, typed.data_type)
                } else {
                    (typed.expr, typed.data_type)
                })
            })
            .collect::<Result<Vec<_>>>();
        let order = self.orders(&arguments.order);
        let filter = self.filter(call);
        if let (Some(collected), Some(allowed)) = (self.collected.last_mut(), nested) {
            collected.aggregates_allowed = allowed;
        }
        Ok(AggregateCall {
            function,
            arguments: bound?,
            distinct: arguments.distinct,
            order: order?,
            filter: filter?,
        })
    }

    fn filter(&mut self, call: &ast::Function) -> Result<Option<Expr>> {
        match &call.filter {
            Some(filter) => Ok(Some(self.condition(filter)?)),
            None => Ok(None),
        }
    }

    fn orders(&mut self, order: &[&ast::OrderByExpr]) -> Result<Vec<Order>> {
        order
            .iter()
            .map(|item| {
                let expr = self.expr(&item.expr)?.expr;
                Ok(order_of(item, expr))
            })
            .collect()
    }

    fn window(
        &mut self,
        name: &str,
        arguments: &Arguments<'_>,
        call: &ast::Function,
        window: &WindowType,
    ) -> Result<Typed> {
        let WindowType::WindowSpec(spec) = window else {
            return Err(SqlError::unsupported("named windows on system catalogs"));
        };
        if spec.window_frame.is_some() {
            return Err(SqlError::unsupported("window frames on system catalogs"));
        }
        let (function, result) = match name {
            "row_number" => (WindowFunction::RowNumber, PgType::INT8),
            "rank" => (WindowFunction::Rank, PgType::INT8),
            "dense_rank" => (WindowFunction::DenseRank, PgType::INT8),
            _ => {
                let function = AggregateFunction::by_name(name).ok_or_else(|| {
                    SqlError::unsupported(format!("the window function {name} on system catalogs"))
                })?;
                let aggregate = self.aggregate(function, arguments, call)?;
                let result = aggregate.result();
                (WindowFunction::Aggregate(aggregate), result)
            }
        };
        let partition = spec
            .partition_by
            .iter()
            .map(|expr| Ok(self.expr(expr)?.expr))
            .collect::<Result<Vec<_>>>()?;
        let order: Vec<&ast::OrderByExpr> = spec.order_by.iter().collect();
        let order = self.orders(&order)?;
        let collected = self
            .collected
            .last_mut()
            .ok_or_else(|| SqlError::internal("a window function outside of a query"))?;
        collected.windows.push(WindowCall {
            function,
            partition,
            order,
        });
        let index = collected.windows.len() - 1;
        Ok(Typed::new(Expr::Window(index), result))
    }
}

impl AggregateCall {
    fn result(&self) -> PgType {
        let argument = self.arguments.first().map(|(_, data_type)| *data_type);
        self.function.result(argument)
    }
}
