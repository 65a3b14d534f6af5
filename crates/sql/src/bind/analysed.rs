//! Expressions that the binder has no form for: analysed by `thermocline_query`, whose functions,
//! operators and casts are PostgreSQL's, and evaluated by it over columns and parameters.

use crate::typed::held;
use sqlparser::ast;
use thermocline_engine::authority::Privileges;
use thermocline_query::analyze::{self, Catalog, Stored, Wanted};
use thermocline_query::call::Plain;
use thermocline_query::error::{QueryError, Result as QueryResult};
use thermocline_query::functions::{Body, Volatility};
use thermocline_query::parse::parse;
use thermocline_query::tree::{self, Column, ExprKind};
use thermocline_query::types::ids;
use thermocline_storage::types::DataType;

use super::scope::Relation;
use super::typed::{Binder, Typed};
use super::{Bindable, Refusal, TypeNames};
use crate::error::SqlError;
use crate::expr::{Analysed, Expr};
use crate::one_row::{OF_SEQUENCES, SESSION_FUNCTIONS};
use crate::output::OtherType;

/// The relations in scope, under the names that [`Binder::analysed`] gives them, and users' types.
struct InScope<'a>(&'a [Relation], TypeNames<'a>);

fn name_of(number: usize) -> String {
    format!("\"relation {number}\"")
}

impl Catalog for InScope<'_> {
    fn relation(&self, schema: Option<&str>, name: &str) -> QueryResult<Option<Stored>> {
        let number = name.strip_prefix("relation ");
        let relation = number
            .filter(|_| schema.is_none())
            .and_then(|number| self.0.get(number.parse::<usize>().ok()?));
        let Some(relation) = relation else {
            return Err(QueryError::unsupported(
                "a subquery is not supported in this expression",
            ));
        };
        let column = |(place, def): (usize, &thermocline_engine::ColumnDef)| Column {
            name: relation.column_name(place).into(),
            oid: match def.dropped {
                true => 0,
                false => def.type_oid(),
            },
            modifier: def.type_modifier(),
            origin: None,
        };
        Ok(Some(Stored {
            oid: relation.table.oid,
            schema: relation.table.schema.as_str().into(),
            columns: relation
                .table
                .columns
                .iter()
                .enumerate()
                .map(column)
                .collect(),
            primary_key: Vec::new(),
            row_type: 0,
            view: None,
            reader: None,
        }))
    }

    fn user_type(&self, schema: Option<&str>, name: &str) -> Option<u32> {
        self.1.user_type(schema, name)
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Binder<'_> {
    /// A value for a column, by whoever has a form for it.
    pub(super) fn value_for(
        &mut self,
        ast: &ast::Expr,
        column: &str,
        data_type: DataType,
    ) -> Bindable<Expr> {
        let own = self.expression(ast);
        let own = own.and_then(|typed| self.assigned(typed, column, data_type));
        own.or_else(|refusal| {
            let wanted = Wanted::Column {
                name: column,
                oid: data_type.oid(),
                modifier: data_type.typmod(),
            };
            Ok(self.analysed(ast, wanted, refusal)?.0.expr)
        })
    }

    /// A condition, each of its conjuncts by whoever has a form for it.
    pub(super) fn condition_of(&mut self, ast: &ast::Expr, clause: &str) -> Bindable<Expr> {
        let mut conjuncts = Vec::new();
        let mut rest = ast;
        // Parsers nest a long chain deeply.
        loop {
            match rest {
                ast::Expr::Nested(inner) if conjuncts.is_empty() => rest = inner,
                ast::Expr::BinaryOp {
                    left,
                    op: ast::BinaryOperator::And,
                    right,
                } => {
                    conjuncts.push(&**right);
                    rest = left;
                }
                _ => break,
            }
        }
        conjuncts.push(rest);
        let mut bound = Vec::with_capacity(conjuncts.len());
        for conjunct in conjuncts.into_iter().rev() {
            let own = self.expression(conjunct);
            let own = own.and_then(|typed| self.condition(typed, clause));
            bound.push(match own {
                Ok(condition) => condition,
                Err(refusal) => {
                    let wanted = Wanted::Condition(clause);
                    self.analysed(conjunct, wanted, refusal)?.0.expr
                }
            });
        }
        Ok(match bound.len() {
            1 => bound.swap_remove(0),
            _ => Expr::And(bound),
        })
    }

    /// A value to be shown, by whoever has a form for it; and its column's name, where that is
    /// another than the binder's.
    pub(super) fn shown(&mut self, ast: &ast::Expr) -> Bindable<(Typed, Option<String>)> {
        match self.expression(ast) {
            Ok(typed) => Ok((typed, None)),
            Err(refusal) => {
                let (typed, name) = self.analysed(ast, Wanted::Value, refusal)?;
                Ok((typed, Some(name)))
            }
        }
    }

    /// An expression as `thermocline_query` has it; `refusal` is why the binder has not, which
    /// is the answer where a statement has another path, or neither knows it.
    fn analysed(
        &mut self,
        ast: &ast::Expr,
        wanted: Wanted<'_>,
        refusal: Refusal,
    ) -> Bindable<(Typed, String)> {
        if self.aggregation.is_some() {
            return Err(refusal);
        }
        match self.try_analysed(ast, wanted) {
            Ok(named) => Ok(named),
            // A right that is missing, and what the binder does not know at all.
            Err(error) if matches!(error.sqlstate, "42501" | "42803") => Err(error.into()),
            Err(error) => Err(match refusal {
                Refusal::Declined { reason, error: own } => Refusal::Declined {
                    reason,
                    error: match error.sqlstate {
                        "0A000" => own,
                        _ => Box::new(error),
                    },
                },
                Refusal::Error(own) if own.sqlstate == "0A000" && error.sqlstate != "0A000" => {
                    Refusal::Error(Box::new(error))
                }
                refusal => refusal,
            }),
        }
    }

    fn try_analysed(
        &mut self,
        ast: &ast::Expr,
        wanted: Wanted<'_>,
    ) -> Result<(Typed, String), SqlError> {
        let mut text = format!("SELECT {ast}");
        for (number, relation) in self.relations.iter().enumerate() {
            let before = if number == 0 { " FROM" } else { "," };
            let (name, alias) = (name_of(number), quoted(&relation.alias));
            text.push_str(&format!("{before} {name} AS {alias}"));
        }
        let parsed = parse(&text)?;
        let Some(statement) = parsed.statements().stmts().next() else {
            return Err(SqlError::internal("an expression without a statement"));
        };
        let declared: Vec<u32> = self.parameter_oids();
        let plain = Plain {
            settings: self.context.literals.settings().clone(),
        };
        let analyzed = analyze::analyze_scalar(
            statement,
            &InScope(&self.relations, self.context.type_names()),
            &plain,
            &declared,
            wanted,
        )?;
        let [target] = analyzed.query.targets.as_slice() else {
            return Err(SqlError::internal("an expression of several columns"));
        };
        let mut expr = target.expr.clone();
        let name = target.name.to_string();
        match not_of_a_row(&expr) {
            Some(AGGREGATE) => {
                let message = "aggregate functions are not allowed here";
                return Err(SqlError::new("42803", message));
            }
            Some(what) => {
                let message = format!("{what} is not supported in this expression");
                return Err(SqlError::unsupported(message));
            }
            None => {}
        }
        for (number, oid) in analyzed.parameters.iter().enumerate() {
            if matches!(*oid, 0 | ids::UNKNOWN) {
                continue;
            }
            let Some(data_type) = held(*oid, -1) else {
                let message = format!("a parameter of type number {oid} is not supported here");
                return Err(SqlError::unsupported(message));
            };
            self.settle_parameter(number, data_type);
        }
        let mut arguments = Vec::new();
        self.take_arguments(&mut expr, &mut arguments)?;
        let oid = expr.oid;
        let data_type = held(oid, expr.modifier);
        let volatile = is_volatile(&expr);
        let analysed = Analysed {
            expr,
            arguments,
            data_type,
            volatile,
            text: ast.to_string(),
        };
        let mut typed = Typed::known(
            Expr::Analysed(std::sync::Arc::new(analysed)),
            data_type.unwrap_or(DataType::Text),
        );
        if data_type.is_none() {
            typed.other = Some(OtherType(oid));
        }
        Ok((typed, name))
    }

    /// Puts places of `arguments` where the expression has columns and parameters.
    fn take_arguments(
        &self,
        expr: &mut tree::Expr,
        arguments: &mut Vec<(Expr, DataType)>,
    ) -> Result<(), SqlError> {
        let argument = match &expr.kind {
            ExprKind::Column {
                relation, column, ..
            } => {
                let Some(scope) = self.relations.get(*relation) else {
                    return Err(SqlError::internal("a column of no relation"));
                };
                if let Some(actor) = self.context.actor {
                    actor.need_column(&scope.table, *column, Privileges::SELECT)?;
                }
                let data_type = scope.table.columns[*column].data_type;
                Some((Expr::Column(scope.offset + column), data_type))
            }
            ExprKind::Parameter(number) => {
                let data_type = held(expr.oid, -1).unwrap_or(DataType::Text);
                Some((Expr::Parameter(*number), data_type))
            }
            _ => None,
        };
        if let Some(argument) = argument {
            let column = arguments.len();
            arguments.push(argument);
            expr.kind = ExprKind::Column {
                level: 0,
                relation: 0,
                column,
            };
            return Ok(());
        }
        let mut done = Ok(());
        expr.children_mut(&mut |child| {
            if done.is_ok() {
                done = self.take_arguments(child, arguments);
            }
        });
        done
    }
}

/// Whether the session answers a function.
fn is_answered(name: &str) -> bool {
    SESSION_FUNCTIONS.contains(&name) || OF_SEQUENCES.contains(&name)
}

const AGGREGATE: &str = "an aggregate";

/// What of an expression cannot be computed from a row.
pub(crate) fn not_of_a_row(expr: &tree::Expr) -> Option<&'static str> {
    let mut found = None;
    expr.any(&mut |expr| {
        found = match &expr.kind {
            ExprKind::Subquery(_) | ExprKind::SubqueryColumn(_) => Some("a subquery"),
            ExprKind::Aggregate(_) | ExprKind::Grouping(..) => Some(AGGREGATE),
            ExprKind::Window(_) => Some("a window function"),
            ExprKind::WholeRow { .. } => Some("a whole row"),
            ExprKind::Column { level, .. } if *level > 0 => Some("a subquery"),
            ExprKind::Call(call) if call.function.returns_set() => Some("a set"),
            // The session answers those that the binder knows.
            ExprKind::Call(call) if matches!(call.function.body, Body::Server) => {
                (!is_answered(call.function.name)).then_some("this function of the server")
            }
            _ => None,
        };
        found.is_some()
    });
    found
}

pub(crate) fn is_volatile(expr: &tree::Expr) -> bool {
    expr.any(&mut |expr| match &expr.kind {
        ExprKind::Call(call) => call.function.volatility == Volatility::Volatile,
        _ => false,
    })
}
