//! Queries over several tables, to the rows of each of which an index leads: those of the first by
//! what the statement gives, those of the others by the rows before them. What no index bounds is
//! for the analytical path, which reads a table once and not again for each row.

use std::sync::Arc;

use thermocline_engine::Table;
use thermocline_query::tree::{
    Expr as Tree, ExprKind, From, JoinKind, Query, Subquery, SubqueryKind,
};

use super::Planner;
use super::expression::{Lowering, is_volatile};
use super::pull_up::is_rows_only;
use super::select::{distinct_as_groups, of_rows, plain_form};
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::{
    Bounded, ColumnsUsed, JoinStep, OrderKey, Path, Reason, SelectPlan, Source, StepKind, choose,
    conjunction,
};

/// Tables that are joined at most.
const TABLES_MAX: usize = 8;

/// Relations, a bit for each.
type Set = u32;

/// A part of the condition, and the relations that it reads.
struct Conjunct {
    expr: Tree,
    reads: Set,
}

/// A relation that is no more than asked for, or whose rows need not be there, and what joins them.
struct Outer {
    relation: usize,
    kind: StepKind,
    on: Vec<Conjunct>,
}

/// The relations of a query on their way into an order.
struct Joining {
    /// With what the query calls them, and where their columns begin once they are placed.
    tables: Vec<(Arc<Table>, Arc<str>, usize)>,
    placed: Set,
    width: usize,
    /// Those that must have a row, and are not placed.
    inner: Set,
    /// Those that need not, and are not placed.
    outer: Vec<Outer>,
    /// What is not asked yet.
    conjuncts: Vec<Conjunct>,
}

impl Planner<'_> {
    /// The plan of a query over several tables, or why the short path does not run it.
    ///
    /// # Errors
    /// 42501 without the right to use a sequence.
    pub(super) fn joined(&self, query: &Query) -> Result<std::result::Result<SelectPlan, Reason>> {
        for target in &query.targets {
            self.context.may_use_sequences(&target.expr)?;
        }
        let grouped = distinct_as_groups(query);
        Ok(self.nested_loops(grouped.as_ref().unwrap_or(query)))
    }

    fn nested_loops(&self, query: &Query) -> std::result::Result<SelectPlan, Reason> {
        plain_form(query)?;
        if query.relations.len() > TABLES_MAX {
            return Err(Reason::Form("a join of many tables"));
        }
        let mut tables = Vec::with_capacity(query.relations.len());
        for of in &query.relations {
            tables.push((self.table_below(of)?, of.alias.clone(), 0));
        }
        let mut joining = Joining {
            tables,
            placed: 0,
            width: 0,
            inner: 0,
            outer: Vec::new(),
            conjuncts: Vec::new(),
        };
        for from in &query.from {
            joining.take(from)?;
        }
        if let Some(filter) = &query.filter {
            conjuncts_of(filter, &mut joining.conjuncts)?;
        }
        self.take_asked(&mut joining)?;
        let (first, source, is_ordered) = joining.first(query)?;
        let mut joins = Vec::with_capacity(query.relations.len() - 1);
        while joining.inner != 0 || !joining.outer.is_empty() {
            joins.push(joining.next(query)?);
        }
        if !joining.conjuncts.is_empty() {
            return Err(Reason::Form("a condition of no table"));
        }
        let relations = joining.tables.iter();
        let relations: Vec<_> = relations
            .map(|(table, _, begin)| (&**table, *begin))
            .collect();
        let mut plan = of_rows(query, &Lowering::of_tables(&relations))?;
        if is_ordered {
            plan.sort.clear();
        }
        if Bounded::by(&source) == Bounded::Not && !(is_ordered && plan.ends_early(&source)) {
            return Err(Reason::LargeScan(source.table.name.clone()));
        }
        plan.used = ColumnsUsed::of(query, first, &source.table);
        plan.source = Some(source);
        plan.joins = joins;
        match plan.is_volatile() {
            true => Err(Reason::Form("a join with a volatile function")),
            false => Ok(plan),
        }
    }
}

impl Planner<'_> {
    /// Makes relations of the queries that a condition asks for rows: `EXISTS`, `NOT EXISTS`, `IN`.
    fn take_asked(&self, joining: &mut Joining) -> std::result::Result<(), Reason> {
        for conjunct in std::mem::take(&mut joining.conjuncts) {
            let Some((subquery, kind)) = asked(&conjunct.expr) else {
                joining.conjuncts.push(conjunct);
                continue;
            };
            let ([of], true) = (
                subquery.query.relations.as_slice(),
                is_rows_only(&subquery.query),
            ) else {
                return Err(Reason::Form("a subquery"));
            };
            let relation = joining.tables.len();
            if relation >= TABLES_MAX || subquery.query.from.len() != 1 {
                return Err(Reason::Form("a subquery"));
            }
            let table = (self.table_below(of)?, of.alias.clone(), 0);
            joining.tables.push(table);
            let mut on = Vec::new();
            for part in parts_of(subquery, relation).ok_or(Reason::Form("a subquery"))? {
                conjuncts_of(&part, &mut on)?;
            }
            let outer = Outer { relation, kind, on };
            match kind == StepKind::Semi && joining.gives_one(&outer)? {
                // It is a join like any other, and may come first.
                true => {
                    joining.inner |= bit(relation);
                    joining.conjuncts.extend(outer.on);
                }
                false => joining.outer.push(outer),
            }
        }
        Ok(())
    }
}

impl Joining {
    /// Takes a tree of joins apart: what an inner join asks may be asked later, too.
    fn take(&mut self, from: &From) -> std::result::Result<(), Reason> {
        let (kind, left, right, condition) = match from {
            From::Relation(relation) => {
                self.inner |= bit(*relation);
                return Ok(());
            }
            From::Join {
                kind,
                left,
                right,
                condition,
            } => (*kind, &**left, &**right, condition.as_ref()),
        };
        let (stays, comes) = match (kind, left, right) {
            (JoinKind::Inner, ..) => {
                self.take(left)?;
                self.take(right)?;
                return match condition {
                    Some(condition) => conjuncts_of(condition, &mut self.conjuncts),
                    None => Ok(()),
                };
            }
            (JoinKind::Left, stays, From::Relation(comes))
            | (JoinKind::Right, From::Relation(comes), stays) => (stays, *comes),
            _ => return Err(Reason::Form("an outer join of joins")),
        };
        self.take(stays)?;
        let mut on = Vec::new();
        if let Some(condition) = condition {
            conjuncts_of(condition, &mut on)?;
        }
        self.outer.push(Outer {
            relation: comes,
            kind: StepKind::Left,
            on,
        });
        Ok(())
    }

    /// Places the relation that comes first: it, the way to its rows, and whether they come in
    /// the order that the query asks for.
    fn first(&mut self, query: &Query) -> std::result::Result<(usize, Source, bool), Reason> {
        let mut best: Option<(Bounded, usize)> = None;
        for relation in self.inner_ones() {
            let (source, _) = self.way(relation, &self.conjuncts, &[])?;
            let bounded = Bounded::by(&source);
            if best.is_none_or(|(known, _)| bounded > known) {
                best = Some((bounded, relation));
            }
        }
        let ordered = self.ordered_by(query);
        let (relation, order) = match (best, ordered) {
            (Some((Bounded::Not, _)), Some((relation, order))) => (relation, order),
            (Some((_, relation)), Some((by, order))) if relation == by => (relation, order),
            (Some((_, relation)), _) => (relation, Vec::new()),
            (None, _) => return Err(Reason::Form("an outer join")),
        };
        let (source, in_order) = self.way(relation, &self.conjuncts, &order)?;
        self.asked(relation);
        self.place(relation);
        Ok((relation, source, in_order && !order.is_empty()))
    }

    /// Places the next relation.
    fn next(&mut self, query: &Query) -> std::result::Result<JoinStep, Reason> {
        let mut best: Option<(Bounded, usize, Source)> = None;
        for relation in self.inner_ones() {
            let (source, _) = self.way(relation, &self.conjuncts, &[])?;
            let bounded = Bounded::by(&source);
            let known = best.as_ref().map_or(Bounded::Range, |(known, ..)| *known);
            if bounded > known {
                best = Some((bounded, relation, source));
            }
        }
        let (relation, source, kind) = match best {
            Some((_, relation, source)) => (relation, source, StepKind::Inner),
            None => self.next_outer()?,
        };
        let used = ColumnsUsed::of(query, relation, &source.table);
        if matches!(kind, StepKind::Semi | StepKind::Anti) {
            return Ok(JoinStep {
                source,
                begin: self.width,
                kind,
                after: None,
                used,
            });
        }
        let after = match kind {
            StepKind::Left => self.condition(relation, &self.conjuncts)?,
            _ => None,
        };
        self.asked(relation);
        Ok(JoinStep {
            source,
            begin: self.place(relation),
            kind,
            after,
            used,
        })
    }

    /// The first relation whose rows need not be there, and which an index leads to.
    fn next_outer(&mut self) -> std::result::Result<(usize, Source, StepKind), Reason> {
        for (place, outer) in self.outer.iter().enumerate() {
            let known = self.placed | bit(outer.relation);
            if outer.on.iter().any(|conjunct| conjunct.reads & !known != 0) {
                continue;
            }
            let (source, _) = self.way(outer.relation, &outer.on, &[])?;
            if Bounded::by(&source) >= Bounded::Prefix {
                let outer = self.outer.remove(place);
                return Ok((outer.relation, source, outer.kind));
            }
        }
        Err(Reason::Form("a join that no index bounds"))
    }

    /// Whether a relation has at most one row for the rows of all others: a unique key is equal to
    /// what they give.
    fn gives_one(&mut self, outer: &Outer) -> std::result::Result<bool, Reason> {
        let placed = std::mem::replace(&mut self.placed, !bit(outer.relation));
        let way = self.way(outer.relation, &outer.on, &[]);
        self.placed = placed;
        Ok(match way?.0.path {
            Path::Probe(probe) => {
                let mut keys = probe.keys.iter();
                probe.is_unique(&self.tables[outer.relation].0) && keys.all(|key| key.len() == 1)
            }
            Path::Scan | Path::Row(_) => false,
        })
    }

    fn inner_ones(&self) -> impl Iterator<Item = usize> + use<> {
        let inner = self.inner;
        (0..TABLES_MAX).filter(move |relation| inner & bit(*relation) != 0)
    }

    /// What of these conditions can be asked of a row of this relation beside those that are
    /// placed.
    fn condition(
        &self,
        relation: usize,
        conjuncts: &[Conjunct],
    ) -> std::result::Result<Option<Expr>, Reason> {
        let lowering = Lowering::of_joined(&self.tables, relation);
        let ready = conjuncts
            .iter()
            .filter(|conjunct| self.is_ready(relation, conjunct));
        let ready = ready.map(|conjunct| lowering.given(&conjunct.expr));
        Ok(conjunction(ready.collect::<std::result::Result<_, _>>()?))
    }

    fn is_ready(&self, relation: usize, conjunct: &Conjunct) -> bool {
        conjunct.reads & !(self.placed | bit(relation)) == 0
    }

    /// The way to the rows of a relation, and whether it gives them in this order.
    fn way(
        &self,
        relation: usize,
        conjuncts: &[Conjunct],
        order: &[OrderKey],
    ) -> std::result::Result<(Source, bool), Reason> {
        let condition = self.condition(relation, conjuncts)?;
        let pays = || !order.is_empty();
        Ok(choose(&self.tables[relation].0, condition, order, pays))
    }

    /// Forgets the conditions that are asked where this relation is placed.
    fn asked(&mut self, relation: usize) {
        let known = self.placed | bit(relation);
        self.conjuncts
            .retain(|conjunct| conjunct.reads & !known != 0);
    }

    /// Gives a relation its place in the row; where its columns begin.
    fn place(&mut self, relation: usize) -> usize {
        let begin = self.width;
        let (table, _, place) = &mut self.tables[relation];
        *place = begin;
        self.width += table.columns.len();
        self.placed |= bit(relation);
        self.inner &= !bit(relation);
        begin
    }

    /// The one relation whose columns a query is ordered by, and how; none if it groups its rows.
    fn ordered_by(&self, query: &Query) -> Option<(usize, Vec<OrderKey>)> {
        if query.group.is_some() {
            return None;
        }
        let mut by = None;
        let mut keys = Vec::with_capacity(query.order.len());
        for order in &query.order {
            let ExprKind::Column {
                level: 0,
                relation,
                column,
            } = query.targets[order.target].expr.kind
            else {
                return None;
            };
            if *by.get_or_insert(relation) != relation {
                return None;
            }
            keys.push(OrderKey {
                column,
                descending: order.descending,
                nulls_first: order.nulls_first,
            });
        }
        let by = by.filter(|relation| self.inner & bit(*relation) != 0)?;
        Some((by, keys))
    }
}

const fn bit(relation: usize) -> Set {
    1 << relation
}

/// The parts of a condition that all must hold.
fn conjuncts_of(condition: &Tree, found: &mut Vec<Conjunct>) -> std::result::Result<(), Reason> {
    if let ExprKind::And(parts) = &condition.kind {
        return parts.iter().try_for_each(|part| conjuncts_of(part, found));
    }
    if is_volatile(condition) {
        return Err(Reason::Form("a join with a volatile function"));
    }
    let mut reads = 0;
    condition.any(&mut |expr| {
        if let ExprKind::Column {
            level: 0, relation, ..
        } = expr.kind
        {
            reads |= bit(relation);
        }
        false
    });
    found.push(Conjunct {
        expr: condition.clone(),
        reads,
    });
    Ok(())
}

/// The query whose rows a condition asks for.
fn asked(condition: &Tree) -> Option<(&Subquery, StepKind)> {
    let (inner, is_not) = match &condition.kind {
        ExprKind::Not(inner) => (&**inner, true),
        _ => (condition, false),
    };
    let ExprKind::Subquery(subquery) = &inner.kind else {
        return None;
    };
    match (subquery.kind, is_not) {
        (SubqueryKind::Exists, true) => Some((subquery, StepKind::Anti)),
        (SubqueryKind::Exists | SubqueryKind::Any, false) => Some((subquery, StepKind::Semi)),
        // NULL would have to be told from false.
        _ => None,
    }
}

/// What is asked of a row of a query within, as conditions of the query around it.
fn parts_of(subquery: &Subquery, own: usize) -> Option<Vec<Tree>> {
    let mut parts = Vec::new();
    if let Some(filter) = &subquery.query.filter {
        let mut filter = filter.clone();
        outward(&mut filter, own)?;
        parts.push(filter);
    }
    if let Some(test) = &subquery.test {
        let targets = subquery.query.targets.iter();
        let shown = targets.filter(|target| !target.hidden);
        let mut given: Vec<Tree> = shown.map(|target| target.expr.clone()).collect();
        given
            .iter_mut()
            .try_for_each(|expr| outward(expr, own).ok_or(()))
            .ok()?;
        let mut test = test.clone();
        tested(&mut test, &given)?;
        parts.push(test);
    }
    Some(parts)
}

/// Makes a filter of a query within one of the query around it, among whose relations the other
/// query's table has this number. None for what it cannot be.
fn outward(filter: &mut Tree, own: usize) -> Option<()> {
    match &mut filter.kind {
        ExprKind::Column {
            level: 0, relation, ..
        } => *relation = own,
        ExprKind::Column { level, .. } if *level == 1 => *level = 0,
        ExprKind::Column { .. }
        | ExprKind::WholeRow { .. }
        | ExprKind::Subquery(_)
        | ExprKind::SubqueryColumn(_) => return None,
        _ => {}
    }
    let mut done = Some(());
    filter.children_mut(&mut |child| done = done.and_then(|()| outward(child, own)));
    done
}

/// Puts what a query within gives in the place of its columns in what is asked of its rows.
fn tested(test: &mut Tree, given: &[Tree]) -> Option<()> {
    match &test.kind {
        ExprKind::SubqueryColumn(column) => {
            *test = given.get(*column)?.clone();
            return Some(());
        }
        ExprKind::Subquery(_) => return None,
        _ => {}
    }
    let mut done = Some(());
    test.children_mut(&mut |child| done = done.and_then(|()| tested(child, given)));
    done
}
