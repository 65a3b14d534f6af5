//! MERGE. One query joins the source to the table. For each row it gives the key of the row that
//! this one matches, which action is for it, and the values that this action needs. What an action
//! computes is computed for its rows only.

use std::sync::Arc;

use thermocline_engine::authority::Privileges;
use thermocline_query::change::{Given, Merge, MergeAction, Overriding};
use thermocline_query::datum::Datum;
use thermocline_query::tree::{self, Case, ExprKind};
use thermocline_query::types::ids;
use thermocline_values::types::DataType;

use super::update::{Found, Key};
use super::{Changer, is_volatile, target};
use crate::analysis::may_read_all;
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::plan::{InsertPlan, InsertSource, MergePlan, Routes, ShortPlan};

/// The rows that each action is for, if no action before is.
struct Conditions(Vec<tree::Expr>);

impl Conditions {
    fn of(merge: &Merge, key: &tree::Expr) -> Self {
        let all = merge.actions.iter().map(|when| {
            let is_null = ExprKind::IsNull(Box::new(key.clone()), !when.matched);
            let mut all = vec![tree::Expr::new(is_null, ids::BOOL, -1)];
            all.extend(when.condition.clone());
            tree::Expr::new(ExprKind::And(all), ids::BOOL, -1)
        });
        Self(all.collect())
    }

    /// The number of the action that is for a row, NULL for none.
    fn number(&self) -> tree::Expr {
        let conditions = self.0.iter().zip(0..);
        let branches = conditions.map(|(condition, number)| {
            let number = tree::Expr::constant(Datum::Int4(number), ids::INT4);
            (condition.clone(), number)
        });
        case(branches.collect(), ids::INT4)
    }

    /// An expression for rows that this action is for; NULL for others.
    fn guarded(&self, action: usize, expr: tree::Expr) -> tree::Expr {
        if matches!(expr.kind, ExprKind::Constant(_)) {
            return expr;
        }
        let (oid, modifier) = (expr.oid, expr.modifier);
        let before = self.0[..action].iter();
        let null = || tree::Expr::constant(Datum::Null, oid).with_modifier(modifier);
        let mut branches: Vec<_> = before.map(|before| (before.clone(), null())).collect();
        branches.push((self.0[action].clone(), expr));
        case(branches, oid).with_modifier(modifier)
    }
}

fn case(branches: Vec<(tree::Expr, tree::Expr)>, oid: u32) -> tree::Expr {
    let kind = ExprKind::Case(Box::new(Case {
        operand: None,
        branches,
        otherwise: tree::Expr::constant(Datum::Null, oid),
    }));
    tree::Expr::new(kind, oid, -1)
}

impl Changer<'_, '_> {
    pub(super) fn merge(&mut self, merge: Merge) -> Result<ShortPlan> {
        let mut conditions = merge
            .actions
            .iter()
            .filter_map(|when| when.condition.as_ref());
        if conditions.any(is_volatile) {
            return Err(SqlError::unsupported(
                "a volatile function in a condition of MERGE is not supported",
                "Compute it in the query that is the source.",
            ));
        }
        let (key, mut found) = self.by_key()?;
        let Some(first) = found.selected.first() else {
            return Err(SqlError::internal("a key of no column"));
        };
        let conditions = Conditions::of(&merge, first);
        found.selected.push(conditions.number());
        found.stored.push((DataType::Integer, String::new()));
        let mut actions = Vec::with_capacity(merge.actions.len());
        for (number, when) in merge.actions.into_iter().enumerate() {
            let guard = |expr: tree::Expr| conditions.guarded(number, expr);
            actions.push(self.merge_action(when.action, &key, &mut found, &guard)?);
        }
        let mut query = merge.query;
        query.targets = found.selected.into_iter().map(target).collect();
        if let Some(actor) = self.context.actor {
            may_read_all(&query, Some(actor), self.context.catalog)?;
        }
        let key_columns = self.key_found(&mut query, &key)?;
        Ok(ShortPlan::Merge(Arc::new(MergePlan {
            table: Arc::clone(&self.table),
            query: self.planner.read_query(query)?,
            key_columns,
            targets: found.stored,
            actions,
            lock: self.lock_by(&key)?,
            own_parameters: self.planner.befores.types().len(),
        })))
    }

    fn merge_action(
        &mut self,
        action: MergeAction,
        key: &Key,
        found: &mut Found,
        guard: &dyn Fn(tree::Expr) -> tree::Expr,
    ) -> Result<Option<ShortPlan>> {
        let table = Arc::clone(&self.table);
        Ok(Some(match action {
            MergeAction::Nothing => return Ok(None),
            MergeAction::Update(mut assignments) => {
                self.leave_computed(&mut assignments)?;
                let moves = self.changes_key(&assignments);
                let mut assigned = Vec::with_capacity(assignments.len());
                for (column, given) in assignments {
                    assigned.push((column, self.merged(column, given, found, guard)?));
                }
                self.updated_by(key, assigned, None, moves)?
            }
            MergeAction::Delete => {
                if let Some(actor) = self.context.actor {
                    actor.need_table(self.context.catalog, &table, Privileges::DELETE)?;
                }
                self.deleted_by(key, None)?
            }
            MergeAction::Insert {
                columns,
                values,
                overriding,
            } => {
                if let Some(actor) = self.context.actor {
                    let catalog = self.context.catalog;
                    actor.need_some_column(catalog, &table, Privileges::INSERT)?;
                }
                let mut row = Vec::with_capacity(values.len());
                for (column, given) in columns.iter().zip(values) {
                    self.needs(*column, Privileges::INSERT)?;
                    let is_identity = table.columns[*column].identity.is_some();
                    let given = match given {
                        Given::Value(_) if is_identity && overriding == Overriding::User => {
                            Given::Default
                        }
                        Given::Value(_) => {
                            self.may_insert(*column, overriding)?;
                            given
                        }
                        Given::Default => given,
                    };
                    row.push(self.merged(*column, given, found, guard)?);
                }
                let mut target = self.insert_target(columns)?;
                target.routes = Routes::of(&self.context, &target)?;
                ShortPlan::Insert(Arc::new(InsertPlan {
                    target: Arc::new(target),
                    source: InsertSource::Values(vec![row]),
                }))
            }
        }))
    }

    /// A column's value: its default, or what the query gives.
    fn merged(
        &self,
        column: usize,
        given: Given,
        found: &mut Found,
        guard: &dyn Fn(tree::Expr) -> tree::Expr,
    ) -> Result<Expr> {
        Ok(match given {
            Given::Default => self.default_of(column)?,
            Given::Value(expr) => {
                let def = &self.table.columns[column];
                self.selected(found, guard(expr), (def.data_type, def.name.clone()))
            }
        })
    }
}
