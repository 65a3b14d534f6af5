//! The name of a result column that was given none (PostgreSQL's FigureColname).

use pg_raw_parse::Node;
use pg_raw_parse::raw::{A_Expr_Kind, MinMaxOp, SQLValueFunctionOp, SubLinkType};

/// The name, and how good it is: 2 for one that says it, 1 for a type's, 0 for none.
fn figured(node: Node<'_>) -> (Option<String>, u8) {
    match node {
        Node::ColumnRef(column) => {
            let name = column.fields().iter().filter_map(Node::as_str).next_back();
            (name.map(str::to_owned), if name.is_some() { 2 } else { 0 })
        }
        Node::A_Indirection(indirection) => {
            let name = indirection
                .indirection()
                .iter()
                .filter_map(Node::as_str)
                .next_back();
            match name {
                Some(name) => (Some(name.to_owned()), 2),
                None => figured(indirection.arg()),
            }
        }
        Node::FuncCall(call) => {
            let name = call.funcname().iter().filter_map(Node::as_str).next_back();
            (name.map(str::to_owned), 2)
        }
        Node::A_Expr(expr) if expr.kind == A_Expr_Kind::AEXPR_NULLIF => (Some("nullif".into()), 2),
        Node::TypeCast(cast) => {
            let inner = figured(cast.arg());
            if inner.1 > 1 {
                return inner;
            }
            let name = cast.type_name().and_then(|name| {
                name.names()
                    .iter()
                    .filter_map(|part| part.sval())
                    .next_back()
            });
            match name {
                Some(name) => (Some(name.to_owned()), 1),
                None => inner,
            }
        }
        Node::CollateClause(collate) => figured(collate.arg()),
        Node::GroupingFunc(_) => (Some("grouping".into()), 2),
        Node::SubLink(link) => match link.sub_link_type {
            SubLinkType::EXISTS_SUBLINK => (Some("exists".into()), 2),
            SubLinkType::ARRAY_SUBLINK => (Some("array".into()), 2),
            SubLinkType::EXPR_SUBLINK => match link.subselect() {
                Node::SelectStmt(select) => {
                    let mut select = select;
                    while let Some(left) = select.larg() {
                        select = left;
                    }
                    match select.target_list().first() {
                        Some(target) => match target.name() {
                            Some(name) => (Some(name.to_owned()), 2),
                            None => figured(target.val()),
                        },
                        None => (None, 0),
                    }
                }
                _ => (None, 0),
            },
            _ => (None, 0),
        },
        Node::CaseExpr(case) => {
            let inner = figured(case.defresult());
            if inner.1 > 1 {
                inner
            } else {
                (Some("case".into()), 1)
            }
        }
        Node::A_ArrayExpr(_) => (Some("array".into()), 2),
        Node::RowExpr(_) => (Some("row".into()), 2),
        Node::CoalesceExpr(_) => (Some("coalesce".into()), 2),
        Node::MinMaxExpr(expr) => match expr.op {
            MinMaxOp::IS_LEAST => (Some("least".into()), 2),
            _ => (Some("greatest".into()), 2),
        },
        Node::SQLValueFunction(function) => {
            let name = match function.op {
                SQLValueFunctionOp::SVFOP_CURRENT_DATE => "current_date",
                SQLValueFunctionOp::SVFOP_CURRENT_TIME
                | SQLValueFunctionOp::SVFOP_CURRENT_TIME_N => "current_time",
                SQLValueFunctionOp::SVFOP_CURRENT_TIMESTAMP
                | SQLValueFunctionOp::SVFOP_CURRENT_TIMESTAMP_N => "current_timestamp",
                SQLValueFunctionOp::SVFOP_LOCALTIME | SQLValueFunctionOp::SVFOP_LOCALTIME_N => {
                    "localtime"
                }
                SQLValueFunctionOp::SVFOP_LOCALTIMESTAMP
                | SQLValueFunctionOp::SVFOP_LOCALTIMESTAMP_N => "localtimestamp",
                SQLValueFunctionOp::SVFOP_CURRENT_ROLE => "current_role",
                SQLValueFunctionOp::SVFOP_CURRENT_USER => "current_user",
                SQLValueFunctionOp::SVFOP_USER => "user",
                SQLValueFunctionOp::SVFOP_SESSION_USER => "session_user",
                SQLValueFunctionOp::SVFOP_CURRENT_CATALOG => "current_catalog",
                _ => "current_schema",
            };
            (Some(name.to_owned()), 2)
        }
        _ => (None, 0),
    }
}

/// The name of a column that is this expression.
pub(super) fn of(node: Node<'_>) -> String {
    figured(node).0.unwrap_or_else(|| "?column?".to_owned())
}

/// The name of a function in FROM that is this expression.
pub(super) fn of_function(node: Node<'_>) -> String {
    match node {
        Node::FuncCall(call) => call
            .funcname()
            .iter()
            .filter_map(Node::as_str)
            .next_back()
            .unwrap_or("unknown")
            .to_owned(),
        other => of(other),
    }
}
