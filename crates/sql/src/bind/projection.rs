//! Select lists and RETURNING: the output expressions, their names as
//! PostgreSQL chooses them, and what a client is told of each column.

use sqlparser::ast::{
    self, SelectItem, SelectItemQualifiedWildcardKind, WildcardAdditionalOptions,
};

use super::aggregate::function_name;
use super::scope::{folded, name_parts};
use super::typed::{Binder, Typed};
use super::{Bindable, Refusal, TypeNames, data_type};
use crate::error::SqlError;
use crate::expr::Expr;
use crate::output::{ColumnType, OutputColumn};
use crate::parse::tokens::fold_parts;
use crate::plan::OutputExpr;

/// The columns that a select list may have, as in PostgreSQL.
pub(crate) const SELECT_LIST_MAX: usize = 1664;

/// 54011, in PostgreSQL's words.
#[cold]
pub(crate) fn too_many_columns() -> SqlError {
    SqlError::new(
        "54011",
        format!("target lists can have at most {SELECT_LIST_MAX} entries"),
    )
}

impl Binder<'_> {
    /// Binds a select list.
    pub(super) fn select_list(
        &mut self,
        items: &[SelectItem],
    ) -> Bindable<(Vec<OutputExpr>, Vec<OutputColumn>)> {
        let mut output = Vec::with_capacity(items.len());
        let mut columns = Vec::with_capacity(items.len());
        for item in items {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let (typed, name) = self.shown(expr)?;
                    let name = name.unwrap_or_else(|| column_name(expr));
                    self.output(typed, name, &mut output, &mut columns)?;
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    let (typed, _) = self.shown(expr)?;
                    self.output(typed, folded(alias), &mut output, &mut columns)?;
                }
                SelectItem::Wildcard(options) => {
                    plain(options)?;
                    if self.relations.is_empty() {
                        let message = "SELECT * with no tables specified is not valid";
                        return Err(SqlError::syntax(message).into());
                    }
                    self.all_columns(None, &mut output, &mut columns)?;
                }
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    options,
                ) => {
                    plain(options)?;
                    let parts = name_parts(name)?;
                    self.all_columns(parts.last().map(String::as_str), &mut output, &mut columns)?;
                }
                SelectItem::QualifiedWildcard(..) | SelectItem::ExprWithAliases { .. } => {
                    return Err(Refusal::declined("this form of select item"));
                }
            }
        }
        Ok((output, columns))
    }

    fn all_columns(
        &mut self,
        qualifier: Option<&str>,
        output: &mut Vec<OutputExpr>,
        columns: &mut Vec<OutputColumn>,
    ) -> Bindable<()> {
        let relations: Vec<_> = self
            .relations
            .iter()
            .filter(|relation| qualifier.is_none_or(|name| relation.alias == name))
            .cloned()
            .collect();
        if let (Some(name), true) = (qualifier, relations.is_empty()) {
            let message = format!("missing FROM-clause entry for table \"{name}\"");
            return Err(SqlError::new("42P01", message).into());
        }
        for relation in relations {
            for (column, _) in relation.table.live_columns() {
                let name = relation.column_name(column).to_owned();
                let ident = ast::Expr::CompoundIdentifier(vec![
                    ast::Ident::with_quote('"', relation.alias.clone()),
                    ast::Ident::with_quote('"', name.clone()),
                ]);
                let typed = self.expression(&ident)?;
                self.output(typed, name, output, columns)?;
            }
        }
        Ok(())
    }

    fn output(
        &mut self,
        typed: Typed,
        name: String,
        output: &mut Vec<OutputExpr>,
        columns: &mut Vec<OutputColumn>,
    ) -> Bindable<()> {
        let other = typed.other;
        let (expr, scalar) = self.settled(typed)?;
        let column_type = other.map_or(ColumnType::Scalar(scalar), ColumnType::Other);
        let mut column = OutputColumn::new(name, column_type);
        if let Some((table_oid, number)) = self.origin(&expr) {
            column = column.from_table(table_oid, number);
        }
        if output.len() >= SELECT_LIST_MAX {
            return Err(too_many_columns().into());
        }
        output.push(OutputExpr { expr, column_type });
        columns.push(column);
        Ok(())
    }

    /// The table and the column number (from 1) behind a plain column.
    fn origin(&self, expr: &Expr) -> Option<(u32, usize)> {
        let expr = match (&self.aggregation, expr) {
            (Some(aggregation), Expr::Column(position)) => &aggregation.groups.get(*position)?.0,
            _ => expr,
        };
        let Expr::Column(position) = expr else {
            return None;
        };
        self.relations
            .iter()
            .find(|relation| {
                (relation.offset..relation.offset + relation.table.columns.len()).contains(position)
            })
            .map(|relation| (relation.table.oid, position - relation.offset + 1))
    }
}

fn plain(options: &WildcardAdditionalOptions) -> Bindable<()> {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike,
        opt_exclude,
        opt_except,
        opt_replace,
        opt_rename,
        opt_alias,
    } = options;
    if opt_ilike.is_some()
        || opt_exclude.is_some()
        || opt_except.is_some()
        || opt_replace.is_some()
        || opt_rename.is_some()
        || opt_alias.is_some()
    {
        return Err(Refusal::declined("a wildcard with options"));
    }
    Ok(())
}

/// The name PostgreSQL gives to a column without an alias.
pub(super) fn column_name(expr: &ast::Expr) -> String {
    figured(expr).map_or_else(|| "?column?".to_owned(), |(name, _)| name)
}

/// The name and whether it is a strong one, that a cast around it leaves.
fn figured(expr: &ast::Expr) -> Option<(String, bool)> {
    let strong = |name: &str| Some((name.to_owned(), true));
    match expr {
        ast::Expr::Identifier(ident) => Some((folded(ident), true)),
        ast::Expr::CompoundIdentifier(parts) => Some((folded(parts.last()?), true)),
        ast::Expr::Nested(inner) => figured(inner),
        ast::Expr::Collate { expr, .. } => figured(expr),
        ast::Expr::Function(function) => {
            let name = function_name(function).or_else(|| match function.name.0.last()? {
                ast::ObjectNamePart::Identifier(ident) => Some(folded(ident)),
                ast::ObjectNamePart::Function(_) => None,
            })?;
            Some((name, true))
        }
        ast::Expr::Cast {
            expr,
            data_type: target,
            ..
        } => match figured(expr) {
            Some((name, true)) => Some((name, true)),
            _ => type_column_name(target).map(|name| (name, false)),
        },
        ast::Expr::TypedString(typed) => {
            type_column_name(&typed.data_type).map(|name| (name, false))
        }
        ast::Expr::Interval(_) => Some(("interval".to_owned(), false)),
        ast::Expr::Case { else_result, .. } => match else_result.as_deref().and_then(figured) {
            Some((name, true)) => Some((name, true)),
            _ => Some(("case".to_owned(), false)),
        },
        ast::Expr::Extract { .. } => strong("extract"),
        ast::Expr::Ceil { .. } => strong("ceil"),
        ast::Expr::Floor { .. } => strong("floor"),
        ast::Expr::Position { .. } => strong("position"),
        ast::Expr::Substring {
            shorthand: true, ..
        } => strong("substr"),
        ast::Expr::Substring { .. } => strong("substring"),
        ast::Expr::Trim { trim_where, .. } => strong(match trim_where {
            None | Some(ast::TrimWhereField::Both) => "btrim",
            Some(ast::TrimWhereField::Leading) => "ltrim",
            Some(ast::TrimWhereField::Trailing) => "rtrim",
        }),
        _ => None,
    }
}

fn type_column_name(target: &ast::DataType) -> Option<String> {
    if let ast::DataType::Interval { .. } = target {
        return Some("interval".to_owned());
    }
    if let Ok(built_in) = data_type(target, TypeNames::of_none()) {
        return Some(built_in.typname().to_owned());
    }
    match target {
        ast::DataType::Custom(name, _) => fold_parts(name).pop(),
        _ => None,
    }
}
