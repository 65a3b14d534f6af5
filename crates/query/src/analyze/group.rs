//! GROUP BY with its sets, and what may stand in the targets of a grouped query.

use pg_raw_parse::Node;
use pg_raw_parse::nodes::{GroupingSet, SelectStmt};
use pg_raw_parse::raw::GroupingSetKind;

use super::Analyzer;
use super::order::check_equality;
use super::scope::Clause;
use crate::error::{QueryError, Result};
use crate::tree::{Expr, ExprKind, Grouping, Query, RelationKind, Target};

/// The most grouping sets, as PostgreSQL's.
const SETS_MAX: usize = 4096;

impl Analyzer<'_> {
    pub(super) fn group_clause(
        &mut self,
        select: &SelectStmt,
        targets: &mut Vec<Target>,
    ) -> Result<Option<Grouping>> {
        if select.group_clause().is_empty() {
            return Ok(None);
        }
        let mut grouping = Grouping::default();
        let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
        for node in select.group_clause().iter() {
            let own = self.group_item(node, targets, &mut grouping.exprs)?;
            let mut product = Vec::new();
            for before in &sets {
                for set in &own {
                    let mut both = before.clone();
                    both.extend(set.iter().copied().filter(|at| !before.contains(at)));
                    product.push(both);
                }
            }
            if product.len() > SETS_MAX {
                return Err(QueryError::new(
                    "54001",
                    format!("too many grouping sets present (maximum {SETS_MAX})"),
                ));
            }
            sets = product;
        }
        if select.group_distinct {
            let mut kept: Vec<Vec<usize>> = Vec::new();
            for set in sets {
                let mut sorted = set.clone();
                sorted.sort_unstable();
                let is_new = !kept.iter().any(|other| {
                    let mut other = other.clone();
                    other.sort_unstable();
                    other == sorted
                });
                if is_new {
                    kept.push(set);
                }
            }
            sets = kept;
        }
        grouping.sets = sets;
        Ok(Some(grouping))
    }

    fn group_item(
        &mut self,
        node: Node<'_>,
        targets: &mut Vec<Target>,
        exprs: &mut Vec<Expr>,
    ) -> Result<Vec<Vec<usize>>> {
        match node {
            Node::GroupingSet(set) => self.grouping_set(set, targets, exprs),
            // A row of expressions without the word is a list of them.
            Node::RowExpr(row)
                if row.row_format == pg_raw_parse::raw::CoercionForm::COERCE_IMPLICIT_CAST =>
            {
                let mut set = Vec::new();
                for node in row.args().iter() {
                    set.push(self.group_expr(node, targets, exprs)?);
                }
                Ok(vec![set])
            }
            node => Ok(vec![vec![self.group_expr(node, targets, exprs)?]]),
        }
    }

    fn grouping_set(
        &mut self,
        set: &GroupingSet,
        targets: &mut Vec<Target>,
        exprs: &mut Vec<Expr>,
    ) -> Result<Vec<Vec<usize>>> {
        let mut parts: Vec<Vec<Vec<usize>>> = Vec::new();
        for node in set.content().iter() {
            parts.push(self.group_item(node, targets, exprs)?);
        }
        let flat = |part: &Vec<Vec<usize>>| part.first().cloned().unwrap_or_default();
        Ok(match set.kind {
            GroupingSetKind::GROUPING_SET_EMPTY => vec![Vec::new()],
            GroupingSetKind::GROUPING_SET_SETS => parts.into_iter().flatten().collect(),
            GroupingSetKind::GROUPING_SET_ROLLUP => (0..=parts.len())
                .rev()
                .map(|count| parts[..count].iter().flat_map(flat).collect())
                .collect(),
            GroupingSetKind::GROUPING_SET_CUBE => {
                if parts.len() > 12 {
                    return Err(
                        QueryError::new("54011", "CUBE is limited to 12 elements").at(set.location)
                    );
                }
                (0..1_usize << parts.len())
                    .map(|left_out| {
                        parts
                            .iter()
                            .enumerate()
                            .filter(|(at, _)| left_out >> (parts.len() - 1 - at) & 1 == 0)
                            .flat_map(|(_, part)| flat(part))
                            .collect()
                    })
                    .collect()
            }
            _ => parts.iter().map(flat).collect(),
        })
    }

    fn group_expr(
        &mut self,
        node: Node<'_>,
        targets: &mut Vec<Target>,
        exprs: &mut Vec<Expr>,
    ) -> Result<usize> {
        let target = self.named_target(node, targets, Clause::Group)?;
        let undecided = std::mem::replace(
            &mut targets[target].expr,
            Expr::constant(crate::datum::Datum::Null, 0),
        );
        targets[target].expr = self.decide_unknown(undecided)?;
        let expr = targets[target].expr.clone();
        if expr.any(&mut |expr| matches!(expr.kind, ExprKind::Window(_))) {
            let message = "window functions are not allowed in GROUP BY";
            return Err(QueryError::new("42P20", message).at(expr.location));
        }
        check_equality(&expr)?;
        if let Some(at) = exprs.iter().position(|one| one.same(&expr)) {
            return Ok(at);
        }
        exprs.push(expr);
        Ok(exprs.len() - 1)
    }

    /// In a grouped query everything outside of aggregates is made of what is grouped by.
    pub(super) fn check_groups(&mut self, query: &mut Query) -> Result<()> {
        let Some(mut group) = query.group.take() else {
            return Ok(());
        };
        for target in &mut query.targets {
            self.check_grouped(&mut target.expr, &mut group, 0)?;
        }
        if let Some(having) = &mut query.having {
            self.check_grouped(having, &mut group, 0)?;
        }
        let mut windows = std::mem::take(&mut self.level().windows);
        for window in &mut windows {
            for expr in window
                .partition
                .iter_mut()
                .chain(window.order.iter_mut().map(|key| &mut key.expr))
            {
                self.check_grouped(expr, &mut group, 0)?;
            }
        }
        self.level().windows = windows;
        query.group = Some(group);
        Ok(())
    }

    fn check_grouped(&mut self, expr: &mut Expr, group: &mut Grouping, depth: usize) -> Result<()> {
        if depth == 0 && group.exprs.iter().any(|one| one.same(expr)) {
            return Ok(());
        }
        if depth > 0 {
            // Within a subquery the grouped expressions stand so many levels further out.
            let found = group.exprs.iter().any(|one| {
                let mut one = one.clone();
                one.raise_levels(0, depth.cast_signed());
                one.same(expr)
            });
            if found {
                return Ok(());
            }
        }
        match &mut expr.kind {
            ExprKind::Aggregate(call) if call.level >= depth => {
                let own = call.level == depth;
                for direct in call.direct.iter_mut().filter(|_| own) {
                    self.check_grouped(direct, group, depth).map_err(|error| {
                        error.with_detail(
                            "Direct arguments of an ordered-set aggregate must use only grouped columns.",
                        )
                    })?;
                }
                Ok(())
            }
            ExprKind::Grouping(places, level) if *level == depth => {
                self.settle_grouping(places, group, expr.location)
            }
            ExprKind::Column {
                level,
                relation,
                column,
            } if *level == depth => {
                let (relation, column) = (*relation, *column);
                if self.depends_on_key(relation, group) {
                    let kind = ExprKind::Column {
                        level: 0,
                        relation,
                        column,
                    };
                    let own = Expr::new(kind, expr.oid, -1).with_modifier(expr.modifier);
                    group.exprs.push(own);
                    let at = group.exprs.len() - 1;
                    for set in &mut group.sets {
                        set.push(at);
                    }
                    return Ok(());
                }
                let of = &self.levels[self.levels.len() - 1].relations[relation];
                let shown = format!("{}.{}", of.alias, of.columns[column].name);
                let message = match depth {
                    0 => format!(
                        "column \"{shown}\" must appear in the GROUP BY clause or be used in an aggregate function"
                    ),
                    _ => format!("subquery uses ungrouped column \"{shown}\" from outer query"),
                };
                Err(QueryError::new("42803", message).at(expr.location))
            }
            ExprKind::WholeRow { level, relation } if *level == depth => {
                let relation = *relation;
                if self.depends_on_key(relation, group) {
                    return Ok(());
                }
                let of = &self.levels[self.levels.len() - 1].relations[relation];
                let message = format!(
                    "column \"{}.*\" must appear in the GROUP BY clause or be used in an aggregate function",
                    of.alias
                );
                Err(QueryError::new("42803", message).at(expr.location))
            }
            ExprKind::Subquery(subquery) => {
                if let Some(test) = &mut subquery.test {
                    self.check_grouped(test, group, depth)?;
                }
                self.check_grouped_query(&mut subquery.query, group, depth + 1)
            }
            _ => {
                let mut outcome = Ok(());
                expr.children_mut(&mut |child| {
                    if outcome.is_ok() {
                        outcome = self.check_grouped(child, group, depth);
                    }
                });
                outcome
            }
        }
    }

    fn check_grouped_query(
        &mut self,
        query: &mut Query,
        group: &mut Grouping,
        depth: usize,
    ) -> Result<()> {
        if !crate::walk::refers_out(query, depth) {
            return Ok(());
        }
        for common in &mut query.with {
            self.check_grouped_query(&mut common.query, group, depth + 1)?;
        }
        for relation in &mut query.relations {
            if let RelationKind::Subquery(inner, _) = &mut relation.kind {
                self.check_grouped_query(inner, group, depth + 1)?;
            }
        }
        let mut outcome = Ok(());
        query.exprs_mut(&mut |expr| {
            if outcome.is_ok() {
                outcome = self.check_grouped(expr, group, depth);
            }
        });
        outcome
    }

    /// Whether the relation's primary key is among what is grouped by, in each set.
    fn depends_on_key(&self, relation: usize, group: &Grouping) -> bool {
        let level = &self.levels[self.levels.len() - 1];
        let Some(key) = level.keys.get(&relation) else {
            return false;
        };
        !key.is_empty()
            && key.iter().all(|place| {
                let at = group.exprs.iter().position(|expr| {
                    matches!(expr.kind, ExprKind::Column { level: 0, relation: of, column } if of == relation && column == *place)
                });
                at.is_some_and(|at| group.sets.iter().all(|set| set.contains(&at)))
            })
    }

    /// `GROUPING(a, b)`: the places of its arguments among the grouped expressions.
    fn settle_grouping(
        &mut self,
        places: &mut Vec<usize>,
        group: &Grouping,
        location: i32,
    ) -> Result<()> {
        let [pending] = places.as_slice() else {
            return Ok(());
        };
        let Some(arguments) = self.level().groupings.get(*pending).cloned() else {
            return Ok(());
        };
        let mut found = Vec::new();
        for argument in &arguments {
            let Some(at) = group.exprs.iter().position(|one| one.same(argument)) else {
                return Err(QueryError::new(
                    "42803",
                    "arguments to GROUPING must be grouping expressions of the associated query level",
                )
                .at(if argument.location >= 0 { argument.location } else { location }));
            };
            found.push(at);
        }
        *places = found;
        Ok(())
    }
}
