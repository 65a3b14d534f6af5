//! Binding of subscripts and fields.

use sqlparser::ast::{AccessExpr, Expr as AstExpr, Subscript};

use super::bind::Binder;
use super::bind_expr::unsupported;
use super::coerce::coerce;
use super::expr::{Expr, Typed};
use crate::analytics::folded;
use crate::error::{Result, SqlError};
use crate::pg_catalog::pg_type::PgType;

impl Binder<'_> {
    /// Elements of arrays and fields of records, one after the other.
    pub(super) fn access(
        &mut self,
        root: &AstExpr,
        chain: &[AccessExpr],
        whole: &AstExpr,
    ) -> Result<Typed> {
        // A column in two or three parts may arrive as an access chain.
        let mut names = Vec::new();
        let mut rest = chain;
        if let AstExpr::Identifier(ident) = root {
            names.push(ident.clone());
            while let Some((AccessExpr::Dot(AstExpr::Identifier(ident)), more)) = rest.split_first()
            {
                names.push(ident.clone());
                rest = more;
            }
        }
        let mut typed = if names.len() > 1 {
            self.expr(&AstExpr::CompoundIdentifier(names))?
        } else {
            rest = chain;
            self.expr(root)?
        };
        for access in rest {
            typed = match access {
                AccessExpr::Subscript(Subscript::Index { index }) => {
                    let element = typed
                        .data_type
                        .element()
                        .ok_or_else(|| SqlError::new("42804", "cannot subscript this type"))?;
                    let lower_bound = i64::from(!matches!(typed.data_type.oid, 22 | 30));
                    let index = self.expr(index)?;
                    let index = coerce(index, PgType::INT4, self)?;
                    Typed::new(
                        Expr::Subscript {
                            array: Box::new(typed.expr),
                            index: Box::new(index.expr),
                            lower_bound,
                        },
                        element,
                    )
                }
                AccessExpr::Dot(AstExpr::Identifier(ident)) => {
                    self.field(typed, &folded(ident), whole)?
                }
                _ => return Err(unsupported(whole)),
            };
        }
        Ok(typed)
    }

    /// A field of a record.
    fn field(&mut self, typed: Typed, name: &str, whole: &AstExpr) -> Result<Typed> {
        let Expr::Set(index) = typed.expr else {
            return record_field(typed, name, whole);
        };
        let call = self
            .collected
            .last()
            .and_then(|collected| collected.sets.get(index))
            .ok_or_else(|| unsupported(whole))?;
        let types: Vec<PgType> = call
            .arguments
            .iter()
            .map(|(_, data_type)| *data_type)
            .collect();
        let columns = call.function.columns("", &types);
        let at = columns
            .iter()
            .position(|(column, _)| column == name)
            .ok_or_else(|| SqlError::undefined_column(name))?;
        Ok(Typed::new(
            Expr::Field(Box::new(Expr::Set(index)), at),
            columns[at].1,
        ))
    }
}

/// A field of a record that comes out of a subquery: records there are those
/// of `_pg_expandarray` (an element and its number) and of ROW.
fn record_field(typed: Typed, name: &str, whole: &AstExpr) -> Result<Typed> {
    if typed.data_type != PgType::RECORD {
        return Err(unsupported(whole));
    }
    let row_field = || {
        name.strip_prefix('f')?
            .parse::<usize>()
            .ok()?
            .checked_sub(1)
    };
    let (at, data_type) = match name {
        "x" => (0, PgType::INT2),
        "n" => (1, PgType::INT4),
        _ => (
            row_field().ok_or_else(|| SqlError::undefined_column(name))?,
            PgType::TEXT,
        ),
    };
    Ok(Typed::new(Expr::Field(Box::new(typed.expr), at), data_type))
}
