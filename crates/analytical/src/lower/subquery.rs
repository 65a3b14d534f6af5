//! Queries within expressions: each becomes a join that gives its value as a column.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::logical_expr::{Expr as DfExpr, lit};
use thermocline_query::datum::Datum;
use thermocline_query::error::Result;
use thermocline_query::tree::{Case, Expr, ExprKind, Query, Subquery, SubqueryKind};
use thermocline_query::types::array::Array;
use thermocline_query::types::{self, ids};

use super::expr::all_of;
use super::native_group::Grouped;
use super::plan::{On, project};
use super::query::has_query;
use super::{Lowerer, Rel, contradiction};
use crate::evaluate::column as bound_column;
use crate::operators::group::Group;
use crate::operators::states::{Aggregation, Internal};
use crate::udf::{column, named};

/// What a query gives over a domain.
pub(super) struct Applied<T> {
    /// The rows outside.
    pub outer: Rel,
    /// The rows of the query, with the domain's columns.
    pub inner: Rel,
    /// Columns that are equal, outside and inside.
    pub keys: Vec<(usize, usize)>,
    /// What there is beside.
    pub more: T,
}

impl<T> Applied<T> {
    /// How both are joined.
    pub(super) fn on(&self) -> On {
        let keys = self.keys.iter();
        On {
            keys: keys.map(|(a, b)| (column(*a), column(*b))).collect(),
            filter: None,
            nulls_equal: true,
        }
    }
}

fn boolean(kind: ExprKind) -> Expr {
    Expr::new(kind, ids::BOOL, -1)
}

fn truth(value: bool) -> Expr {
    Expr::constant(Datum::Bool(value), ids::BOOL)
}

/// The test of a subquery over columns that are there.
pub(super) fn substitute(test: &mut Expr, columns: &[Expr]) {
    if let ExprKind::SubqueryColumn(place) = &test.kind {
        if let Some(column) = columns.get(*place) {
            test.kind = column.kind.clone();
        }
        return;
    }
    if matches!(test.kind, ExprKind::Subquery(_)) {
        return;
    }
    test.children_mut(&mut |child| substitute(child, columns));
}

/// Whether a query gives one row whatever it reads.
fn is_one_row(query: &Query) -> bool {
    let grand = query
        .group
        .as_ref()
        .is_some_and(|group| group.exprs.is_empty() && group.sets.len() == 1);
    grand
        && query.having.is_none()
        && !query.has_set_targets
        && query.limit.is_none()
        && query.offset.is_none()
        && query.set_operation.is_none()
}

impl Lowerer<'_> {
    /// Lowers something over the domain of the columns `refs` (first numbers) of `outer`. With a
    /// guard only of rows of which it is true.
    pub(super) fn apply<T>(
        &mut self,
        outer: Rel,
        refs: &[usize],
        guard: Option<&Expr>,
        lower: impl FnOnce(&mut Self, Rel) -> Result<(Rel, T)>,
    ) -> Result<Applied<T>> {
        let mut outer = self.shared(outer)?;
        let mut keys: Vec<(usize, usize)> = Vec::with_capacity(refs.len());
        let before = self.renames.clone();
        for id in refs {
            let current = self.current(*id);
            if !outer.columns.contains(&current) {
                return Err(contradiction("a reference to what is not there"));
            }
            let new = self.fresh(self.types[current]);
            keys.push((current, new));
        }
        if keys.is_empty() {
            // A domain of one row, if any.
            let (marked, mark) = self.marked(outer)?;
            outer = marked;
            let new = self.fresh(ids::BOOL);
            keys.push((mark, new));
        }
        for (id, (_, new)) in refs.iter().zip(&keys) {
            self.renames.insert(*id, *new);
        }
        let mut rows = outer.clone();
        if let Some(guard) = guard
            && let Some(predicate) = self.predicate(std::slice::from_ref(guard))
        {
            rows = rows.filtered(predicate)?;
        }
        let exprs = keys.iter().map(|(old, new)| named(column(*old), *new));
        let domain = Rel {
            plan: project(&rows, exprs.collect())?,
            columns: keys.iter().map(|(_, new)| *new).collect(),
        };
        let domain = domain.distinct_bytes()?;
        let domain = self.shared(domain)?;
        self.outside.push(before);
        let result = lower(self, domain);
        self.renames = self.outside.pop().unwrap_or_default();
        let (inner, more) = result?;
        Ok(Applied {
            outer,
            inner,
            keys,
            more,
        })
    }

    /// Replaces queries within a bound expression by columns. The guards say where it is asked at all.
    pub(super) fn extract(
        &mut self,
        mut expr: Expr,
        rel: Rel,
        guards: &[Expr],
    ) -> Result<(Expr, Rel)> {
        if !has_query(&expr) {
            return Ok((expr, rel));
        }
        let mut rel = rel;
        match &mut expr.kind {
            ExprKind::Subquery(subquery) => return self.attach(subquery, expr.oid, rel, guards),
            ExprKind::Case(case) => {
                rel = self.extract_case(case, rel, guards)?;
                return Ok((expr, rel));
            }
            ExprKind::Coalesce(parts) => {
                let mut guards = guards.to_vec();
                for part in parts {
                    let taken = std::mem::replace(part, truth(true));
                    (*part, rel) = self.extract(taken, rel, &guards)?;
                    guards.push(boolean(ExprKind::IsNull(Box::new(part.clone()), true)));
                }
                return Ok((expr, rel));
            }
            _ => {}
        }
        let mut state = Some(Ok(rel));
        expr.children_mut(&mut |child| {
            let Some(Ok(rel)) = state.take_if(|state| state.is_ok()) else {
                return;
            };
            let taken = std::mem::replace(child, truth(true));
            state = Some(self.extract(taken, rel, guards).map(|(replaced, rel)| {
                *child = replaced;
                rel
            }));
        });
        let rel = state.ok_or_else(|| contradiction("an expression without an end"))??;
        Ok((expr, rel))
    }

    fn extract_case(&mut self, case: &mut Case, mut rel: Rel, guards: &[Expr]) -> Result<Rel> {
        if let Some(operand) = &mut case.operand {
            let taken = std::mem::replace(operand, truth(true));
            (*operand, rel) = self.extract(taken, rel, guards)?;
        }
        let mut before: Vec<(Expr, Expr)> = Vec::new();
        let operand = case.operand.clone();
        let reached = |before: &[(Expr, Expr)], otherwise: bool| {
            let case = Case {
                operand: operand.clone(),
                branches: before.to_vec(),
                otherwise: truth(otherwise),
            };
            let mut guards = guards.to_vec();
            if !before.is_empty() {
                guards.push(boolean(ExprKind::Case(Box::new(case))));
            }
            guards
        };
        for (condition, value) in &mut case.branches {
            if has_query(condition) {
                let taken = std::mem::replace(condition, truth(true));
                (*condition, rel) = self.extract(taken, rel, &reached(&before, true))?;
            }
            if has_query(value) {
                before.push((condition.clone(), truth(true)));
                let guards = reached(&before, false);
                before.pop();
                let taken = std::mem::replace(value, truth(true));
                (*value, rel) = self.extract(taken, rel, &guards)?;
            }
            before.push((condition.clone(), truth(false)));
        }
        if has_query(&case.otherwise) {
            let taken = std::mem::replace(&mut case.otherwise, truth(true));
            (case.otherwise, rel) = self.extract(taken, rel, &reached(&before, true))?;
        }
        Ok(rel)
    }

    /// Groups by a domain alone.
    pub(super) fn reduced(
        &mut self,
        rel: Rel,
        domain: &[usize],
        aggregates: Vec<Aggregation>,
    ) -> Result<Rel> {
        let of = Grouped {
            domain,
            keys: &[],
            aggregates: &aggregates,
            present: None,
        };
        if let Some(native) = self.natively(&rel, &of)? {
            return Ok(native);
        }
        let mut group = Group {
            domain: self.typed(domain),
            keys: Vec::new(),
            sets: vec![Vec::new()],
            groupings: Vec::new(),
            aggregates,
            present: None,
            inputs: Vec::new(),
            context: self.context.clone(),
        };
        group.inputs = self.typed(&group.used());
        rel.operated(Arc::new(group))
    }

    /// Joins what a subquery gives to the rows; the answer is its value.
    fn attach(
        &mut self,
        subquery: &Subquery,
        oid: u32,
        rel: Rel,
        guards: &[Expr],
    ) -> Result<(Expr, Rel)> {
        let mut refs = BTreeSet::new();
        self.query_refs(&subquery.query, 1, &mut refs);
        let of_query = refs.len();
        if let Some(test) = &subquery.test
            && matches!(subquery.kind, SubqueryKind::Any | SubqueryKind::All)
        {
            self.expr_refs(test, 0, &mut refs);
        }
        if of_query == 0
            && guards.is_empty()
            && let Some(hashed) = self.hashed(subquery, &rel)?
        {
            return self.attach_hashed(subquery, rel, hashed);
        }
        let refs: Vec<usize> = refs.into_iter().collect();
        // A test within the subquery may itself have subqueries: they are asked outside.
        let guard = all_of(guards.to_vec());
        if refs.is_empty() && guard.is_none() {
            let (inner, outputs) = self.query(&subquery.query, None, false)?;
            let (inner, value) = self.value_of(subquery, oid, inner, &outputs, &[])?;
            return Ok((value, rel.crossed(inner)?));
        }
        let applied = self.apply(rel, &refs, guard.as_ref(), |lowerer, domain| {
            let domain_columns = domain.columns.clone();
            let (inner, outputs) = lowerer.query(&subquery.query, Some(domain), false)?;
            lowerer.value_of(subquery, oid, inner, &outputs, &domain_columns)
        })?;
        let on = applied.on();
        let rel = applied.outer.joined(applied.inner, JoinType::Left, on)?;
        Ok((applied.more, rel))
    }

    /// One row for each of the domain, and the subquery's value over it; where there is no such
    /// row, its columns are NULL.
    fn value_of(
        &mut self,
        subquery: &Subquery,
        oid: u32,
        inner: Rel,
        outputs: &[usize],
        domain: &[usize],
    ) -> Result<(Rel, Expr)> {
        let columns: Vec<Expr> = outputs
            .iter()
            .map(|id| bound_column(*id, self.types[*id]))
            .collect();
        let single = |lowerer: &mut Self, column: &Expr| {
            let id = lowerer.fresh(column.oid);
            Aggregation::internal(id, Internal::Single, vec![column.clone()], column.oid)
        };
        match subquery.kind {
            SubqueryKind::Scalar => {
                let value = columns
                    .first()
                    .ok_or_else(|| contradiction("a value without its column"))?;
                if is_one_row(&subquery.query) {
                    // The domain may be among the columns already.
                    let id = self.fresh(value.oid);
                    let inner = inner.with(vec![(id, self.scalar(value))])?;
                    let mut kept = domain.to_vec();
                    kept.push(id);
                    return Ok((inner.only(&kept)?, bound_column(id, value.oid)));
                }
                let aggregate = single(self, value);
                let value = bound_column(aggregate.id, value.oid);
                Ok((self.reduced(inner, domain, vec![aggregate])?, value))
            }
            SubqueryKind::Row => {
                let aggregates: Vec<Aggregation> =
                    columns.iter().map(|column| single(self, column)).collect();
                let singles: Vec<Expr> = aggregates
                    .iter()
                    .map(|aggregate| bound_column(aggregate.id, aggregate.result))
                    .collect();
                let inner = self.reduced(inner, domain, aggregates)?;
                let mut test = match &subquery.test {
                    Some(test) => self.outside(test, domain)?,
                    None => Expr::new(ExprKind::Row(singles.clone()), oid, -1),
                };
                substitute(&mut test, &singles);
                Ok((inner, test))
            }
            SubqueryKind::Exists => {
                let inner = match domain {
                    [] => inner.limited(0, Some(1))?,
                    _ => inner,
                };
                let id = self.fresh(ids::BOOL);
                let aggregate =
                    Aggregation::internal(id, Internal::Any, vec![truth(true)], ids::BOOL);
                let inner = self.reduced(inner, domain, vec![aggregate])?;
                let found = Box::new(bound_column(id, ids::BOOL));
                Ok((inner, boolean(ExprKind::Is(found, Some(true), true))))
            }
            SubqueryKind::Array => {
                let value = columns
                    .first()
                    .ok_or_else(|| contradiction("an array without its column"))?;
                let kind = Internal::Array(value.oid);
                let id = self.fresh(oid);
                let aggregate = Aggregation::internal(id, kind, vec![value.clone()], oid);
                let inner = self.reduced(inner, domain, vec![aggregate])?;
                let element = types::element_of(oid).unwrap_or(value.oid);
                let empty = Datum::Array(Arc::new(Array::of(element, Vec::new())));
                let parts = vec![bound_column(id, oid), Expr::constant(empty, oid)];
                Ok((inner, Expr::new(ExprKind::Coalesce(parts), oid, -1)))
            }
            SubqueryKind::Any | SubqueryKind::All => {
                let any = subquery.kind == SubqueryKind::Any;
                let mut test = match &subquery.test {
                    Some(test) => self.bind(test)?,
                    None => return Err(contradiction("a quantifier without its test")),
                };
                substitute(&mut test, &columns);
                let kind = if any { Internal::Any } else { Internal::All };
                let id = self.fresh(ids::BOOL);
                let (test, inner) = self.extract(test, inner, &[])?;
                let aggregate = Aggregation::internal(id, kind, vec![test], ids::BOOL);
                let (inner, mark) = {
                    let inner = self.reduced(inner, domain, vec![aggregate])?;
                    self.marked(inner)?
                };
                let missing = boolean(ExprKind::IsNull(
                    Box::new(bound_column(mark, ids::BOOL)),
                    true,
                ));
                let value = boolean(ExprKind::Case(Box::new(Case {
                    operand: None,
                    branches: vec![(missing, truth(!any))],
                    otherwise: bound_column(id, ids::BOOL),
                })));
                Ok((inner, value))
            }
        }
    }

    /// A test that is asked of the outer rows, bound as they are outside of the domain.
    fn outside(&mut self, test: &Expr, domain: &[usize]) -> Result<Expr> {
        if domain.is_empty() {
            return self.bind(test);
        }
        let outside = self.outside.last().cloned().unwrap_or_default();
        let within = std::mem::replace(&mut self.renames, outside);
        let bound = self.bind(test);
        self.renames = within;
        bound
    }

    /// For `x = ANY (query)` and `x <> ALL (query)` of a query that refers to nothing outside:
    /// the outer value, if it can be looked up in a hash table.
    fn hashed(&mut self, subquery: &Subquery, rel: &Rel) -> Result<Option<Expr>> {
        let wanted = match subquery.kind {
            SubqueryKind::Any => "=",
            SubqueryKind::All => "<>",
            _ => return Ok(None),
        };
        let Some(ExprKind::Call(call)) = subquery.test.as_ref().map(|test| &test.kind) else {
            return Ok(None);
        };
        let [left, right] = call.arguments.as_slice() else {
            return Ok(None);
        };
        let fits = call.operator == Some(wanted)
            && matches!(right.kind, ExprKind::SubqueryColumn(0))
            && left.oid == right.oid
            && crate::sort_key::has_order(left.oid)
            && !has_query(left)
            && !left.any(&mut |expr| matches!(expr.kind, ExprKind::SubqueryColumn(_)));
        if !fits {
            return Ok(None);
        }
        let value = self.bind(left)?;
        let of_rel = crate::evaluate::columns_of([&value]);
        Ok(of_rel
            .iter()
            .all(|id| rel.columns.contains(id))
            .then_some(value))
    }

    fn attach_hashed(&mut self, subquery: &Subquery, rel: Rel, value: Expr) -> Result<(Expr, Rel)> {
        let (inner, outputs) = self.query(&subquery.query, None, false)?;
        let output = *outputs
            .first()
            .ok_or_else(|| contradiction("a quantifier without its column"))?;
        let oid = self.types[output];
        let found = bound_column(output, oid);
        let inner = self.shared(inner.only(&[output])?)?;
        let (rows, values) = (self.fresh(ids::INT8), self.fresh(ids::INT8));
        let mut of_values = Aggregation::internal(values, Internal::Count, Vec::new(), ids::INT8);
        let is_value = boolean(ExprKind::IsNull(Box::new(found.clone()), false));
        of_values.filter = Some(is_value.clone());
        let of_rows = Aggregation::internal(rows, Internal::Count, Vec::new(), ids::INT8);
        let totals = self.reduced(inner.clone(), &[], vec![of_rows, of_values])?;
        let different = self.different(inner, &[], &[output])?;
        let (different, mark) = self.marked(different)?;
        let different = match self.predicate(&[is_value]) {
            Some(predicate) => different.filtered(predicate)?,
            None => different,
        };
        let id = self.fresh(value.oid);
        let rel = rel.with(vec![(id, self.scalar(&value))])?;
        let on = self.equal(&bound_column(id, value.oid), &found);
        let rel = rel.joined(different, JoinType::Left, on)?;
        let rel = rel.crossed(totals)?;
        let result = self.fresh(ids::BOOL);
        let any = subquery.kind == SubqueryKind::Any;
        let when = |condition: DfExpr, value: Option<bool>| {
            let value = match value {
                Some(value) => lit(value),
                None => lit(datafusion::common::ScalarValue::Boolean(None)),
            };
            (Box::new(condition), Box::new(value))
        };
        let unknown = column(id).is_null().or(column(values).lt(column(rows)));
        let case = DfExpr::Case(datafusion::logical_expr::Case::new(
            None,
            vec![
                when(column(mark).is_not_null(), Some(any)),
                when(column(rows).eq(lit(0_i64)), Some(!any)),
                when(unknown, None),
            ],
            Some(Box::new(lit(!any))),
        ));
        let rel = rel.with(vec![(result, case)])?;
        Ok((bound_column(result, ids::BOOL), rel))
    }

    /// The condition of a join that two bound values are equal.
    pub(super) fn equal(&self, left: &Expr, right: &Expr) -> On {
        let key = |expr: &Expr| match crate::form::Form::of(expr.oid).is_exact() {
            true => self.scalar(expr),
            false => crate::udf::RowFunction::key(expr, &|id| self.types[id], &self.context),
        };
        On {
            keys: vec![(key(left), key(right))],
            ..On::default()
        }
    }
}
