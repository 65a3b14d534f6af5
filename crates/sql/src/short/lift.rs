//! Subqueries that do not depend on the row that is changed. They are queries of their own, which
//! run before the change; what they give are parameters of it.
//!
//! PostgreSQL runs such a subquery when its value is first needed. Here it runs once in any case:
//! an error in one whose value nobody needs is told, too.

use crate::typed::held;
use std::sync::Arc;

use thermocline_query::datum::Datum;
use thermocline_query::tree::{Expr, ExprKind, Query, Subscript};
use thermocline_query::types::domain::base;
use thermocline_query::types::{array_of, element_of, ids};
use thermocline_query::walk::expr_reads_rows_out;
use thermocline_values::types::DataType;

use super::{Changer, target};
use crate::error::Result;
use crate::plan::{Before, BeforeColumn, LockingRead, ShortPlan};

/// What was lifted out of a change.
pub(super) struct Lifted {
    own_parameters: usize,
    before: Vec<Before>,
}

impl Lifted {
    pub(super) const fn new(own_parameters: usize) -> Self {
        Self {
            own_parameters,
            before: Vec::new(),
        }
    }

    /// How many parameters the change has: the statement's, and those of what was lifted.
    pub(super) fn parameters(&self) -> usize {
        self.own_parameters + self.before.len()
    }

    /// The plan behind what runs before it.
    pub(super) fn before(self, plan: ShortPlan) -> ShortPlan {
        plan.behind(self.before, self.own_parameters)
    }
}

impl Changer<'_> {
    /// Puts parameters in the place of subqueries that no row decides. `scope` has the WITH that
    /// they may name.
    ///
    /// # Errors
    /// 0A000 for one that cannot be asked before.
    pub(super) fn lift(&mut self, expr: &mut Expr, scope: &Query) -> Result<()> {
        let is_value = matches!(&expr.kind, ExprKind::Subquery(_)) && !expr_reads_rows_out(expr, 0);
        if is_value {
            return self.lift_one(expr, scope);
        }
        let mut done = Ok(());
        expr.children_mut(&mut |child| {
            if done.is_ok() {
                done = self.lift(child, scope);
            }
        });
        done
    }

    fn lift_one(&mut self, expr: &mut Expr, scope: &Query) -> Result<()> {
        let (oid, modifier, location) = (base(expr.oid), expr.modifier, expr.location);
        let held = held(oid, -1).filter(|_| element_of(oid).is_none());
        let taken = std::mem::replace(expr, Expr::constant(Datum::Null, oid));
        let query = Query {
            with: scope.with.clone(),
            targets: vec![target(taken)],
            ..Query::default()
        };
        let read = LockingRead {
            query: self.read_query(query)?,
            locks: Vec::new(),
            limit: None,
            offset: None,
            waits: false,
            own_parameters: self.lifted.own_parameters,
        };
        let (column, element) = match held {
            Some(data_type) => (BeforeColumn::Typed(data_type), oid),
            None => (BeforeColumn::Text(DataType::Text), ids::TEXT),
        };
        let number = self.lifted.parameters();
        self.lifted.before.push(Before {
            plan: ShortPlan::LockingRead(Arc::new(read)),
            columns: vec![column],
        });
        // The array has one element.
        let array = Expr::new(ExprKind::Parameter(number), array_of(element), location);
        let first = Expr::constant(Datum::Int4(1), ids::INT4);
        let subscript = Subscript {
            value: array,
            bounds: vec![(None, Some(first))],
            slice: false,
        };
        let value = Expr::new(ExprKind::Subscript(Box::new(subscript)), element, location);
        *expr = match held {
            Some(_) => value.with_modifier(modifier),
            None => Expr::new(ExprKind::ThroughText(Box::new(value)), oid, location)
                .with_modifier(modifier),
        };
        Ok(())
    }
}
