//! Pieces of plans.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{DFSchema, JoinType, NullEquality};
use datafusion::logical_expr::{
    Aggregate, EmptyRelation, Expr as DfExpr, Filter, Join, JoinConstraint, Limit, LogicalPlan,
    Projection, Union, lit,
};
use thermocline_query::error::Result;
use thermocline_query::types::ids;

use super::{Lowerer, Rel};
use crate::errors::query_error;
use crate::operators::shared::Shared;
use crate::operators::{self, Operator};
use crate::udf::{column, named};

pub(super) fn df<T>(result: datafusion::error::Result<T>) -> Result<T> {
    result.map_err(|error| query_error(&error))
}

/// A plan that gives these expressions.
pub(super) fn project(rel: &Rel, exprs: Vec<DfExpr>) -> Result<LogicalPlan> {
    let projection = Projection::try_new(exprs, Arc::new(rel.plan.clone()));
    Ok(LogicalPlan::Projection(df(projection)?))
}

/// How two relations are joined.
#[derive(Default)]
pub(super) struct On {
    /// Pairs that are equal.
    pub keys: Vec<(DfExpr, DfExpr)>,
    /// What else is true.
    pub filter: Option<DfExpr>,
    /// Whether NULL equals NULL in the keys.
    pub nulls_equal: bool,
}

impl Rel {
    /// One row without columns.
    pub(super) fn one_row() -> Self {
        Self {
            plan: LogicalPlan::EmptyRelation(EmptyRelation {
                produce_one_row: true,
                schema: Arc::new(DFSchema::empty()),
            }),
            columns: Vec::new(),
        }
    }

    pub(super) fn is_one_row(&self) -> bool {
        matches!(&self.plan, LogicalPlan::EmptyRelation(empty) if empty.produce_one_row)
            && self.columns.is_empty()
    }

    /// Only the rows of which this is true.
    pub(super) fn filtered(self, predicate: DfExpr) -> Result<Self> {
        let filter = Filter::try_new(predicate, Arc::new(self.plan));
        Ok(Self {
            plan: LogicalPlan::Filter(df(filter)?),
            columns: self.columns,
        })
    }

    /// No rows of the same columns.
    pub(super) fn without_rows(self) -> Self {
        Self {
            plan: LogicalPlan::EmptyRelation(EmptyRelation {
                produce_one_row: false,
                schema: Arc::clone(self.plan.schema()),
            }),
            columns: self.columns,
        }
    }

    /// With more columns.
    pub(super) fn with(self, added: Vec<(usize, DfExpr)>) -> Result<Self> {
        if added.is_empty() {
            return Ok(self);
        }
        let mut exprs: Vec<DfExpr> = self.columns.iter().map(|id| column(*id)).collect();
        let mut columns = self.columns.clone();
        for (id, expr) in added {
            exprs.push(named(expr, id));
            columns.push(id);
        }
        Ok(Self {
            plan: project(&self, exprs)?,
            columns,
        })
    }

    /// Only these columns.
    pub(super) fn only(&self, columns: &[usize]) -> Result<Self> {
        let exprs = columns.iter().map(|id| column(*id)).collect();
        Ok(Self {
            plan: project(self, exprs)?,
            columns: columns.to_vec(),
        })
    }

    /// An operator of ours over this.
    pub(super) fn operated(self, operator: Arc<dyn Operator>) -> Result<Self> {
        let mut columns = if operator.passes() {
            self.columns
        } else {
            Vec::new()
        };
        columns.extend(operator.added().iter().map(|(id, _)| *id));
        Ok(Self {
            plan: df(operators::plan(operator, vec![self.plan]))?,
            columns,
        })
    }

    /// Joined with another relation.
    pub(super) fn joined(self, right: Self, kind: JoinType, on: On) -> Result<Self> {
        let (mut columns, of_right) = (self.columns, right.columns);
        match kind {
            JoinType::LeftSemi | JoinType::LeftAnti => {}
            _ => columns.extend(of_right),
        }
        let nulls = if on.nulls_equal {
            NullEquality::NullEqualsNull
        } else {
            NullEquality::NullEqualsNothing
        };
        let join = Join::try_new(
            Arc::new(self.plan),
            Arc::new(right.plan),
            on.keys,
            on.filter,
            kind,
            JoinConstraint::On,
            nulls,
            false,
        );
        Ok(Self {
            plan: LogicalPlan::Join(df(join)?),
            columns,
        })
    }

    /// All pairs with another relation.
    pub(super) fn crossed(self, right: Self) -> Result<Self> {
        if self.is_one_row() {
            return Ok(right);
        }
        if right.is_one_row() {
            return Ok(self);
        }
        self.joined(right, JoinType::Inner, On::default())
    }

    /// Rows that differ, by the bytes of their values.
    pub(super) fn distinct_bytes(self) -> Result<Self> {
        let keys = self.columns.iter().map(|id| column(*id)).collect();
        let aggregate = Aggregate::try_new(Arc::new(self.plan), keys, Vec::new());
        Ok(Self {
            plan: LogicalPlan::Aggregate(df(aggregate)?),
            columns: self.columns,
        })
    }

    /// Some rows of it.
    pub(super) fn limited(self, skip: usize, fetch: Option<usize>) -> Result<Self> {
        let number = |rows: usize| Box::new(lit(i64::try_from(rows).unwrap_or(i64::MAX)));
        Ok(Self {
            plan: LogicalPlan::Limit(Limit {
                skip: (skip > 0).then(|| number(skip)),
                fetch: fetch.map(number),
                input: Arc::new(self.plan),
            }),
            columns: self.columns,
        })
    }

    /// The rows of several relations: of each the columns given, under these names.
    pub(super) fn union(parts: Vec<(Self, Vec<usize>)>, columns: Vec<usize>) -> Result<Self> {
        let mut inputs = Vec::with_capacity(parts.len());
        for (part, from) in parts {
            let exprs = from.iter().zip(&columns);
            let exprs = exprs.map(|(id, out)| named(column(*id), *out)).collect();
            inputs.push(Arc::new(project(&part, exprs)?));
        }
        let Some(first) = inputs.first() else {
            return Err(super::contradiction("a union of nothing"));
        };
        let fields = first.schema().iter().map(|(_, field)| {
            let field = field.as_ref().clone().with_nullable(true);
            (None, Arc::new(field))
        });
        let schema = DFSchema::new_with_metadata(fields.collect(), HashMap::new());
        let schema = Arc::new(df(schema)?);
        Ok(Self {
            plan: LogicalPlan::Union(Union { inputs, schema }),
            columns,
        })
    }
}

impl Lowerer<'_> {
    /// A relation that is computed once and read wherever it stands.
    pub(super) fn shared(&self, rel: Rel) -> Result<Rel> {
        if rel.is_one_row() {
            return Ok(rel);
        }
        let shared = Arc::new(Shared::new(
            rel.plan,
            self.typed(&rel.columns),
            Arc::clone(&self.generation),
            Arc::clone(&self.context.environment),
        ));
        Ok(Rel {
            plan: df(operators::plan(shared, Vec::new()))?,
            columns: rel.columns,
        })
    }

    /// The same rows, all columns under new numbers.
    pub(super) fn renamed(&mut self, rel: &Rel) -> Result<Rel> {
        let mut exprs = Vec::with_capacity(rel.columns.len());
        let mut columns = Vec::with_capacity(rel.columns.len());
        for id in &rel.columns {
            let new = self.fresh(self.types[*id]);
            exprs.push(named(column(*id), new));
            columns.push(new);
        }
        Ok(Rel {
            plan: project(rel, exprs)?,
            columns,
        })
    }

    /// A column that is true.
    pub(super) fn marked(&mut self, rel: Rel) -> Result<(Rel, usize)> {
        let mark = self.fresh(ids::BOOL);
        Ok((rel.with(vec![(mark, lit(true))])?, mark))
    }
}
