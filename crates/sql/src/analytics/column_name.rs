//! The name PostgreSQL gives to a result column without an alias.

use sqlparser::ast::{self, Expr, ObjectName, SelectItem, SetExpr, TrimWhereField};

/// What a column is called that has no better name.
pub(crate) const UNNAMED: &str = "?column?";

/// The name of the column that `expr` makes.
pub(crate) fn column_name(expr: &Expr) -> String {
    figure(expr).map_or_else(|| UNNAMED.to_owned(), |(name, _)| name)
}

/// An identifier as PostgreSQL folds it.
pub(crate) fn folded(ident: &ast::Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

/// The last part of a name, folded.
pub(crate) fn last_part(name: &ObjectName) -> Option<String> {
    name.0.last().and_then(|part| part.as_ident()).map(folded)
}

/// The name and whether it is a strong one, which a cast does not replace.
fn figure(expr: &Expr) -> Option<(String, bool)> {
    let strong = |name: &str| Some((name.to_owned(), true));
    match expr {
        Expr::Identifier(ident) => Some((folded(ident), true)),
        Expr::CompoundIdentifier(parts) => parts.last().map(|ident| (folded(ident), true)),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let field = access_chain.iter().rev().find_map(|access| match access {
                ast::AccessExpr::Dot(field) => figure(field),
                ast::AccessExpr::Subscript(_) => None,
            });
            field.or_else(|| figure(root))
        }
        Expr::Function(function) => last_part(&function.name).map(|name| (name, true)),
        Expr::Cast {
            expr, data_type, ..
        } => match figure(expr) {
            Some((name, true)) => Some((name, true)),
            _ => Some((type_name(data_type), false)),
        },
        Expr::TypedString(typed) => Some((type_name(&typed.data_type), false)),
        Expr::Interval(_) => Some(("interval".to_owned(), false)),
        Expr::Case { else_result, .. } => match else_result.as_deref().and_then(figure) {
            Some((name, true)) => Some((name, true)),
            _ => Some(("case".to_owned(), false)),
        },
        Expr::Nested(expr) | Expr::Collate { expr, .. } => figure(expr),
        Expr::Subquery(query) => {
            let mut body = query.body.as_ref();
            loop {
                body = match body {
                    SetExpr::Query(query) => query.body.as_ref(),
                    SetExpr::SetOperation { left, .. } => left.as_ref(),
                    SetExpr::Values(_) => return strong("column1"),
                    SetExpr::Select(select) => {
                        return match select.projection.first()? {
                            SelectItem::UnnamedExpr(expr) => figure(expr),
                            SelectItem::ExprWithAlias { alias, .. } => Some((folded(alias), true)),
                            _ => None,
                        };
                    }
                    _ => return None,
                };
            }
        }
        Expr::Exists { .. } => strong("exists"),
        Expr::Array(_) => strong("array"),
        Expr::Extract { .. } => strong("extract"),
        Expr::Substring {
            shorthand: true, ..
        } => strong("substr"),
        Expr::Substring { .. } => strong("substring"),
        Expr::Position { .. } => strong("position"),
        Expr::Overlay { .. } => strong("overlay"),
        Expr::Ceil { .. } => strong("ceil"),
        Expr::Floor { .. } => strong("floor"),
        Expr::AtTimeZone { .. } => strong("timezone"),
        Expr::Trim { trim_where, .. } => strong(match trim_where {
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
            _ => "btrim",
        }),
        Expr::Tuple(_) => strong("row"),
        _ => None,
    }
}

/// The name of a type in `pg_type`, as written in a cast.
fn type_name(data_type: &ast::DataType) -> String {
    use ast::DataType as Sql;
    if let Sql::Custom(name, _) = data_type {
        return last_part(name).unwrap_or_else(|| UNNAMED.to_owned());
    }
    if let Ok(data_type) = crate::bind::data_type(data_type) {
        return data_type.typname().to_owned();
    }
    match data_type {
        Sql::Array(element) => match element {
            ast::ArrayElemTypeDef::AngleBracket(element)
            | ast::ArrayElemTypeDef::SquareBracket(element, _)
            | ast::ArrayElemTypeDef::Parenthesis(element) => type_name(element),
            ast::ArrayElemTypeDef::None => "array".to_owned(),
        },
        Sql::Regclass => "regclass".to_owned(),
        Sql::Interval { .. } => "interval".to_owned(),
        other => other.to_string().to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::parser::Parser;

    use super::*;

    fn name(sql: &str) -> String {
        let expr = Parser::new(&PostgreSqlDialect {})
            .try_with_sql(sql)
            .unwrap()
            .parse_expr()
            .unwrap();
        column_name(&expr)
    }

    #[test]
    fn columns_are_named_as_in_postgresql() {
        for (sql, expected) in [
            ("a", "a"),
            ("T.B", "b"),
            ("\"T\".\"B\"", "B"),
            ("1", "?column?"),
            ("a + 1", "?column?"),
            ("count(*)", "count"),
            ("pg_catalog.version()", "version"),
            ("a::int", "a"),
            ("'1'::int", "int4"),
            ("cast('1' as numeric(10,2))", "numeric"),
            ("date '2024-01-01'", "date"),
            ("case when a then 1 else 2 end", "case"),
            ("case when a then 1 else b end", "b"),
            ("extract(year from d)", "extract"),
            ("trim(both ' ' from a)", "btrim"),
            ("substring(a from 1 for 2)", "substring"),
            ("(select max(x) from t)", "max"),
            ("exists (select 1)", "exists"),
            ("array[1,2]", "array"),
            ("true", "?column?"),
            ("substr(a, 2)", "substr"),
            ("coalesce(a, b)", "coalesce"),
            ("current_date", "current_date"),
            ("a collate \"C\"", "a"),
            ("'x'::regclass::oid", "oid"),
        ] {
            assert_eq!(name(sql), expected, "{sql}");
        }
    }
}
