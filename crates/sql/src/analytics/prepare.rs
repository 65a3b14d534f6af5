//! A query's syntax tree made ready for DataFusion's planner: output columns
//! get PostgreSQL's names, integer literals PostgreSQL's types, and what
//! DataFusion does not parse (schema-qualified operators and functions,
//! collations) its plain form. The meaning does not change.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, CastKind, CharacterLength, DataType, Expr, Fetch, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, GroupByExpr, Ident, LimitClause, ObjectName, OrderByExpr,
    OrderByKind, Query, Select, SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor,
    Value, ValueWithSpan, VisitMut, VisitorMut, visit_expressions,
};

use super::column_name::{column_name, folded, last_part};
use super::types::UNIQUE_MARK;

/// Prepares `query`.
pub(crate) fn prepare(query: &mut Query) {
    let _ = query.visit(&mut Preparation);
    hide_output_names(query);
}

/// In ORDER BY a bare name is an output column's first, but a name within an
/// expression is always an input column's. Output columns of such names get a
/// mark behind theirs, as in [`name_columns`], so that they are not taken.
fn hide_output_names(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else {
        return;
    };
    let Some(OrderByKind::Expressions(order)) =
        query.order_by.as_mut().map(|order| &mut order.kind)
    else {
        return;
    };
    let mut within = HashSet::new();
    for key in order.iter() {
        if matches!(key.expr, Expr::Identifier(_)) {
            continue;
        }
        let _ = visit_expressions(&key.expr, |expr| {
            if let Expr::Identifier(name) = expr {
                within.insert(folded(name));
            }
            ControlFlow::<()>::Continue(())
        });
    }
    let mut hidden = HashMap::new();
    for (position, item) in select.projection.iter_mut().enumerate() {
        let SelectItem::ExprWithAlias { expr, alias } = item else {
            continue;
        };
        let name = folded(alias);
        let itself = matches!(expr, Expr::Identifier(input) if folded(input) == name);
        if within.contains(&name) && !itself {
            alias.value = format!("{name}{UNIQUE_MARK}{position}");
            hidden.insert(name, alias.clone());
        }
    }
    for key in order {
        if let Expr::Identifier(name) = &mut key.expr
            && let Some(alias) = hidden.get(&folded(name))
        {
            *name = alias.clone();
        }
    }
}

struct Preparation;

/// Marks a number as one that keeps its form: a position in ORDER BY or GROUP
/// BY, a limit, an argument that DataFusion wants as a plain literal. The flag
/// is `Value::Number`'s second field, which DataFusion does not look at.
fn keep(expr: &mut Expr) {
    if let Expr::Value(ValueWithSpan {
        value: Value::Number(_, kept),
        ..
    }) = expr
    {
        *kept = true;
    }
}

fn keep_arguments(arguments: &mut FunctionArguments) {
    if let FunctionArguments::List(list) = arguments {
        list.args.iter_mut().for_each(keep_argument);
    }
}

fn keep_argument(argument: &mut FunctionArg) {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
        | FunctionArg::Named {
            arg: FunctionArgExpr::Expr(expr),
            ..
        } => keep(expr),
        _ => {}
    }
}

fn keep_order(order: &mut [OrderByExpr]) {
    for order in order {
        keep(&mut order.expr);
    }
}

/// `FETCH FIRST n ROWS ONLY` is another spelling of `LIMIT n`.
fn limit_instead(query: &mut Query, fetch: Fetch) {
    let mut rows = fetch
        .quantity
        .unwrap_or_else(|| Expr::value(Value::Number("1".to_owned(), true)));
    keep(&mut rows);
    match &mut query.limit_clause {
        Some(LimitClause::LimitOffset { limit, .. }) => *limit = Some(rows),
        Some(LimitClause::OffsetCommaLimit { limit, .. }) => *limit = rows,
        None => {
            query.limit_clause = Some(LimitClause::LimitOffset {
                limit: Some(rows),
                offset: None,
                limit_by: Vec::new(),
            });
        }
    }
}

/// The arguments of `mod(a, b)`, which is another spelling of `a % b`.
fn modulo_arguments(function: &Function) -> Option<(Expr, Expr)> {
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let [
        FunctionArg::Unnamed(FunctionArgExpr::Expr(left)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(right)),
    ] = list.args.as_slice()
    else {
        return None;
    };
    (last_part(&function.name)? == "mod").then(|| {
        let nested = |expr: &Expr| Expr::Nested(Box::new(expr.clone()));
        (nested(left), nested(right))
    })
}

/// Gives every output column its PostgreSQL name. A name that is taken gets a
/// mark behind it, which is cut off again when the result is described.
fn name_columns(select: &mut Select) {
    let mut taken = HashSet::new();
    for (position, item) in select.projection.iter_mut().enumerate() {
        let (expr, name, plain) = match item {
            SelectItem::UnnamedExpr(expr) => {
                let name = column_name(expr);
                let plain = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
                (expr, name, plain)
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                let name = folded(alias);
                (expr, name, false)
            }
            _ => continue,
        };
        let alias = if taken.insert(name.clone()) {
            if plain {
                continue;
            }
            name
        } else {
            format!("{name}{UNIQUE_MARK}{position}")
        };
        let expr = std::mem::replace(expr, Expr::value(Value::Null));
        *item = SelectItem::ExprWithAlias {
            expr,
            alias: Ident::with_quote('"', alias),
        };
    }
}

fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expr),
        data_type,
        array: false,
        format: None,
    }
}

/// The length of `varchar(n)` or `char(n)`.
fn text_length(data_type: &DataType) -> Option<u64> {
    let length = match data_type {
        DataType::Varchar(length)
        | DataType::CharacterVarying(length)
        | DataType::CharVarying(length)
        | DataType::Char(length)
        | DataType::Character(length) => length.as_ref()?,
        _ => return None,
    };
    match length {
        CharacterLength::IntegerLength { length, .. } => Some(*length),
        CharacterLength::Max => None,
    }
}

/// The operator that `OPERATOR(pg_catalog.x)` names.
pub(crate) fn plain_operator(parts: &[String]) -> Option<BinaryOperator> {
    Some(match parts.last()?.as_str() {
        "=" => BinaryOperator::Eq,
        "<>" | "!=" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        "<=" => BinaryOperator::LtEq,
        ">" => BinaryOperator::Gt,
        ">=" => BinaryOperator::GtEq,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "*" => BinaryOperator::Multiply,
        "/" => BinaryOperator::Divide,
        "%" => BinaryOperator::Modulo,
        "||" => BinaryOperator::StringConcat,
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "~~*" => BinaryOperator::PGILikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        "!~~*" => BinaryOperator::PGNotILikeMatch,
        _ => return None,
    })
}

/// Takes `pg_catalog.` off the name of a function.
fn strip_schema(name: &mut ObjectName) {
    let qualified = name.0.len() == 2
        && name.0[0]
            .as_ident()
            .is_some_and(|ident| ident.value.eq_ignore_ascii_case("pg_catalog"));
    if qualified {
        name.0.remove(0);
    }
}

/// A set-returning function in FROM makes one column, named like its alias.
fn name_function_columns(factor: &mut TableFactor) {
    let (name, alias) = match factor {
        TableFactor::Table {
            name,
            alias,
            args: Some(arguments),
            ..
        } => {
            arguments.args.iter_mut().for_each(keep_argument);
            strip_schema(name);
            (name, alias)
        }
        TableFactor::Function {
            name, args, alias, ..
        } => {
            args.iter_mut().for_each(keep_argument);
            strip_schema(name);
            (name, alias)
        }
        _ => return,
    };
    let Some(function) = last_part(name) else {
        return;
    };
    let alias = alias.get_or_insert_with(|| TableAlias {
        explicit: true,
        name: Ident::new(&function),
        columns: Vec::new(),
        at: None,
    });
    if alias.columns.is_empty() {
        alias.columns.push(TableAliasColumnDef {
            name: alias.name.clone(),
            data_type: None,
        });
    }
}

impl VisitorMut for Preparation {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let Some(order) = &mut query.order_by
            && let OrderByKind::Expressions(order) = &mut order.kind
        {
            keep_order(order);
        }
        match &mut query.limit_clause {
            Some(LimitClause::LimitOffset { limit, offset, .. }) => {
                limit.iter_mut().for_each(keep);
                offset.iter_mut().for_each(|offset| keep(&mut offset.value));
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
                keep(offset);
                keep(limit);
            }
            None => {}
        }
        if query
            .fetch
            .as_ref()
            .is_some_and(|fetch| !fetch.percent && !fetch.with_ties)
            && let Some(fetch) = query.fetch.take()
        {
            limit_instead(query, fetch);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        name_columns(select);
        if let GroupByExpr::Expressions(expressions, _) = &mut select.group_by {
            expressions.iter_mut().for_each(keep);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        name_function_columns(factor);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(Function {
            name,
            args,
            over,
            within_group,
            ..
        }) = expr
        {
            strip_schema(name);
            if over.is_some() || !within_group.is_empty() {
                keep_arguments(args);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let take = |expr: &mut Expr| std::mem::replace(expr, Expr::value(Value::Null));
        match expr {
            Expr::Value(ValueWithSpan {
                value: Value::Number(text, false),
                ..
            }) if text.parse::<i32>().is_ok() => {
                let number = take(expr);
                *expr = cast(number, DataType::Int(None));
            }
            Expr::Collate { expr: inner, .. } => *expr = take(inner),
            Expr::Function(function) => {
                if let Some((left, right)) = modulo_arguments(function) {
                    *expr = Expr::Nested(Box::new(Expr::BinaryOp {
                        left: Box::new(left),
                        op: BinaryOperator::Modulo,
                        right: Box::new(right),
                    }));
                }
            }
            Expr::BinaryOp {
                op: op @ BinaryOperator::PGCustomBinaryOperator(_),
                ..
            } => {
                if let BinaryOperator::PGCustomBinaryOperator(parts) = op
                    && let Some(plain) = plain_operator(parts)
                {
                    *op = plain;
                }
            }
            Expr::Cast {
                expr: inner,
                data_type,
                ..
            } => {
                if let Some(length) = text_length(data_type) {
                    let text = cast(take(inner), DataType::Text);
                    let number = |number: u64| {
                        Some(Box::new(Expr::value(Value::Number(
                            number.to_string(),
                            true,
                        ))))
                    };
                    **inner = Expr::Substring {
                        expr: Box::new(text),
                        substring_from: number(1),
                        substring_for: number(length),
                        special: true,
                        shorthand: false,
                    };
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::ast::Statement;
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::parser::Parser;

    use super::*;

    fn prepared(sql: &str) -> String {
        let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap();
        let Statement::Query(mut query) = statements.remove(0) else {
            panic!("not a query");
        };
        prepare(&mut query);
        query.to_string()
    }

    // The mark of a number that keeps its form shows as an L.
    #[test]
    fn integers_are_typed_but_positions_and_limits_stay() {
        assert_eq!(
            prepared("select a + 1 from t group by 1 order by 1 limit 5"),
            "SELECT a + CAST(1 AS INT) AS \"?column?\" FROM t GROUP BY 1L ORDER BY 1L LIMIT 5L"
        );
        assert_eq!(
            prepared("select 5000000000"),
            "SELECT 5000000000 AS \"?column?\""
        );
    }

    #[test]
    fn equal_names_are_told_apart() {
        assert_eq!(
            prepared("select a, a, count(*), count(b) from t").replace(UNIQUE_MARK, "#"),
            "SELECT a, a AS \"a#1\", count(*) AS \"count\", count(b) AS \"count#3\" FROM t"
        );
    }

    #[test]
    fn an_expression_in_order_by_reads_input_columns() {
        assert_eq!(
            prepared("select a::text, b as c from t order by length(a), c, a")
                .replace(UNIQUE_MARK, "#"),
            "SELECT a::TEXT AS \"a#0\", b AS \"c\" FROM t ORDER BY length(a), c, \"a#0\""
        );
        assert_eq!(
            prepared("select a, a + b as c from t order by a + b"),
            "SELECT a, a + b AS \"c\" FROM t ORDER BY a + b"
        );
    }

    #[test]
    fn qualified_operators_functions_and_collations_become_plain() {
        assert_eq!(
            prepared(
                "select pg_catalog.lower(a) from t where a operator(pg_catalog.~) 'x' collate \"C\""
            ),
            "SELECT lower(a) AS \"lower\" FROM t WHERE a ~ 'x'"
        );
    }

    #[test]
    fn a_function_in_from_makes_a_column_of_its_alias() {
        assert_eq!(
            prepared("select g from generate_series(1, 3) as g"),
            "SELECT g FROM generate_series(1L, 3L) AS g (g)"
        );
    }
}
