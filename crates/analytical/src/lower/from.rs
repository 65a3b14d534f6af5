//! FROM: relations.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr as DfExpr, LogicalPlan, TableScanBuilder};
use thermocline_query::error::Result;
use thermocline_query::tree::{Column, Expr, ExprKind, From, Query, Relation, RelationKind};
use thermocline_query::types::ids;

use super::plan::{df, project};
use super::scope::RelationColumns;
use super::{Lowerer, Rel, contradiction};
use crate::evaluate::{column as bound_column, columns_of};
use crate::operators::generate::{Generate, Source};
use crate::operators::rows::Rows;
use crate::udf::{RowFunction, named};

impl Lowerer<'_> {
    /// The rows of a tree of joins for each row of `base`.
    pub(super) fn from(&mut self, query: &Query, from: &From, base: Rel) -> Result<Rel> {
        match from {
            From::Relation(place) => self.relation(query, *place, base),
            From::Join {
                kind,
                left,
                right,
                condition,
            } => {
                if !base.is_one_row() && self.tree_refs(query, from).is_empty() {
                    let rel = self.from(query, from, Rel::one_row())?;
                    return base.crossed(rel);
                }
                self.join(query, *kind, (left, right), condition.as_ref(), base)
            }
        }
    }

    /// The columns outside of a tree of joins that it refers to.
    pub(super) fn tree_refs(&self, query: &Query, from: &From) -> Vec<usize> {
        let mut found = BTreeSet::new();
        self.collect_tree_refs(query, from, &mut found);
        found.into_iter().collect()
    }

    fn collect_tree_refs(&self, query: &Query, from: &From, found: &mut BTreeSet<usize>) {
        match from {
            From::Relation(place) => {
                let Some(relation) = query.relations.get(*place) else {
                    return;
                };
                match &relation.kind {
                    RelationKind::Table(_) => {}
                    RelationKind::Subquery(query, _) => self.query_refs(query, 1, found),
                    RelationKind::Common { level, place } => {
                        let scope = self.scopes.len().checked_sub(1 + level);
                        let scope = scope.and_then(|place| self.scopes.get(place));
                        if let Some(common) = scope.and_then(|scope| scope.with.get(*place)) {
                            found.extend(&common.refs);
                        }
                    }
                    RelationKind::Functions { calls, .. } => {
                        for (call, _) in calls {
                            self.expr_refs(call, 0, found);
                        }
                    }
                    RelationKind::Values(rows, _) => {
                        for expr in rows.iter().flatten() {
                            self.expr_refs(expr, 0, found);
                        }
                    }
                }
            }
            From::Join {
                left,
                right,
                condition,
                ..
            } => {
                self.collect_tree_refs(query, left, found);
                self.collect_tree_refs(query, right, found);
                if let Some(condition) = condition {
                    self.expr_refs(condition, 0, found);
                }
            }
        }
    }

    fn relation(&mut self, query: &Query, place: usize, base: Rel) -> Result<Rel> {
        let relation = query
            .relations
            .get(place)
            .ok_or_else(|| contradiction("a relation that is not there"))?;
        let refs = self.tree_refs(query, &From::Relation(place));
        let (rel, columns) = match &relation.kind {
            RelationKind::Table(oid) => {
                let (rel, columns) = self.table(*oid, relation, place)?;
                (base.crossed(rel)?, columns)
            }
            RelationKind::Subquery(inner, _) => {
                let (rel, outputs) = self.within(base, &refs, |lowerer, base| {
                    lowerer.query(inner, base, false)
                })?;
                (rel, outputs.into_iter().map(Some).collect())
            }
            RelationKind::Common { level, place } => {
                let (rel, outputs) = self.common(*level, *place, base)?;
                (rel, outputs.into_iter().map(Some).collect())
            }
            RelationKind::Functions { calls, ordinality } => {
                self.functions(relation, calls, *ordinality, base, refs.is_empty())?
            }
            RelationKind::Values(rows, _) => self.values(relation, rows, base, refs.is_empty())?,
        };
        let columns = RelationColumns {
            ids: columns,
            whole: None,
        };
        self.with_whole_row(relation, place, rel, columns)
    }

    /// Rows of something that may refer to columns of `base`, for each row of it.
    pub(super) fn within<T>(
        &mut self,
        base: Rel,
        refs: &[usize],
        lower: impl FnOnce(&mut Self, Option<Rel>) -> Result<(Rel, T)>,
    ) -> Result<(Rel, T)> {
        if refs.is_empty() {
            let (rel, more) = lower(self, None)?;
            return Ok((base.crossed(rel)?, more));
        }
        let applied = self.apply(base, refs, None, |lowerer, domain| {
            lower(lowerer, Some(domain))
        })?;
        let on = applied.on();
        let kind = datafusion::common::JoinType::Inner;
        Ok((applied.outer.joined(applied.inner, kind, on)?, applied.more))
    }

    /// The type that a column of a table is read as, if it is. One that no name leads to says none itself.
    fn read_as(&self, relation: usize, place: usize, column: &Column) -> Option<u32> {
        let used = self.scopes.last()?.used.get(relation)?;
        let by_itself = used.columns.get(place).copied().flatten();
        match column.is_dropped() {
            true => by_itself,
            false => by_itself
                .or(used.whole.then_some(column.oid))
                .and(Some(column.oid)),
        }
    }

    fn table(
        &mut self,
        oid: u32,
        relation: &Relation,
        place: usize,
    ) -> Result<(Rel, Vec<Option<usize>>)> {
        let mut columns = Vec::with_capacity(relation.columns.len());
        for (at, column) in relation.columns.iter().enumerate() {
            let read = self.read_as(place, at, column);
            columns.push(read.map(|oid| self.fresh(oid)));
        }
        let used = columns
            .iter()
            .enumerate()
            .filter_map(|(at, id)| id.map(|id| (at, id)));
        let used: Vec<(usize, usize)> = used.collect();
        if let Some(rows) = self.tables.rows(oid) {
            let rows = Rows {
                rows: Arc::new(rows?),
                columns: used
                    .iter()
                    .map(|(at, id)| (*id, relation.columns[*at].oid, *at))
                    .collect(),
            };
            let plan = df(crate::operators::plan(Arc::new(rows), Vec::new()))?;
            let ids = used.iter().map(|(_, id)| *id).collect();
            return Ok((Rel { plan, columns: ids }, columns));
        }
        let provider = self.tables.table(oid, relation)?;
        let schema = provider.schema();
        let name = format!("t{}", self.types.len());
        let source = provider_as_source(provider);
        let scan = df(TableScanBuilder::new(name.as_str(), source).build())?;
        let rel = Rel {
            plan: LogicalPlan::TableScan(scan),
            columns: Vec::new(),
        };
        let mut exprs = Vec::with_capacity(used.len());
        for (at, id) in &used {
            let field = schema.fields().get(*at);
            let field = field.ok_or_else(|| contradiction("a table without its column"))?;
            let from = datafusion::common::Column::new(Some(name.as_str()), field.name());
            exprs.push(named(DfExpr::Column(from), *id));
        }
        let plan = project(&rel, exprs)?;
        let ids = used.iter().map(|(_, id)| *id).collect();
        Ok((Rel { plan, columns: ids }, columns))
    }

    fn functions(
        &mut self,
        relation: &Relation,
        calls: &[(Expr, usize)],
        ordinality: bool,
        base: Rel,
        alone: bool,
    ) -> Result<(Rel, Vec<Option<usize>>)> {
        let mut rel = if alone { Rel::one_row() } else { base.clone() };
        let mut sources = Vec::with_capacity(calls.len());
        let mut columns = Vec::new();
        let mut types = relation.columns.iter().map(|column| column.oid);
        let mut exprs = Vec::new();
        for (call, width) in calls {
            let (bound, with) = self.bound(call, rel)?;
            rel = with;
            let mut ids = Vec::with_capacity(*width);
            for _ in 0..*width {
                let oid = types
                    .next()
                    .ok_or_else(|| contradiction("a function's columns"))?;
                ids.push((self.fresh(oid), oid));
            }
            columns.extend(ids.iter().map(|(id, _)| Some(*id)));
            exprs.push(bound.clone());
            sources.push(Source::Call(bound, ids));
        }
        let number = ordinality.then(|| self.fresh(ids::INT8));
        columns.extend(number.map(Some));
        let generate = Generate {
            sources,
            ordinality: number,
            inputs: self.typed(&columns_of(&exprs)),
            context: self.context.clone(),
        };
        let rel = rel.operated(Arc::new(generate))?;
        Ok((if alone { base.crossed(rel)? } else { rel }, columns))
    }

    fn values(
        &mut self,
        relation: &Relation,
        rows: &[Vec<Expr>],
        base: Rel,
        alone: bool,
    ) -> Result<(Rel, Vec<Option<usize>>)> {
        let mut rel = if alone { Rel::one_row() } else { base.clone() };
        let types: Vec<u32> = relation.columns.iter().map(|column| column.oid).collect();
        let ids: Vec<(usize, u32)> = types.iter().map(|oid| (self.fresh(*oid), *oid)).collect();
        let mut bound = Vec::with_capacity(rows.len());
        for row in rows {
            let mut exprs = Vec::with_capacity(row.len());
            for expr in row {
                let (expr, with) = self.bound(expr, rel)?;
                rel = with;
                exprs.push(expr);
            }
            bound.push(exprs);
        }
        let columns = ids.iter().map(|(id, _)| Some(*id)).collect();
        let generate = Generate {
            inputs: self.typed(&columns_of(bound.iter().flatten())),
            sources: vec![Source::Values(bound, ids)],
            ordinality: None,
            context: self.context.clone(),
        };
        let rel = rel.operated(Arc::new(generate))?;
        Ok((if alone { base.crossed(rel)? } else { rel }, columns))
    }

    /// Notes the columns of a relation, and makes its whole row if that is used.
    fn with_whole_row(
        &mut self,
        relation: &Relation,
        place: usize,
        mut rel: Rel,
        mut columns: RelationColumns,
    ) -> Result<Rel> {
        let used = self.scopes.last().and_then(|scope| scope.used.get(place));
        if used.is_some_and(|used| used.whole) {
            let mut parts = Vec::with_capacity(columns.ids.len());
            let all = columns.ids.iter().zip(&relation.columns);
            let live = all.filter(|(_, column)| !column.is_dropped());
            let mut names = Vec::with_capacity(columns.ids.len());
            for (id, column) in live {
                let id = id.ok_or_else(|| contradiction("a row without its column"))?;
                parts.push(bound_column(id, column.oid));
                names.push(Arc::clone(&column.name));
            }
            let row = Expr::new(ExprKind::Row(parts), ids::RECORD, -1);
            let whole = self.fresh(ids::RECORD);
            let value = RowFunction::row(&row, names, &|id| self.types[id], &self.context);
            rel = rel.with(vec![(whole, value)])?;
            columns.whole = Some(whole);
        }
        if let Some(slot) = self
            .scopes
            .last_mut()
            .and_then(|scope| scope.relations.get_mut(place))
        {
            *slot = columns;
        }
        Ok(rel)
    }
}
