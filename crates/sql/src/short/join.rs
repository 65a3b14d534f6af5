//! Queries over several tables, to the rows of each of which an index leads: those of the first by
//! what the statement gives, those of the others by the rows before them. What no index bounds is
//! for the analytical path, which reads a table once and not again for each row.

use std::sync::Arc;

use thermocline_engine::Table;
use thermocline_query::tree::{Expr as Tree, ExprKind, From, JoinKind, Query};

use super::Planner;
use super::expression::{Lowering, is_volatile};
use super::select::{of_rows, plain_form};
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::{
    Bounded, ColumnsUsed, JoinStep, OrderKey, Reason, SelectPlan, Source, choose, conjunction,
};

/// Tables that are joined at most.
const TABLES_MAX: usize = 8;

/// Relations, a bit for each.
type Set = u32;

/// A part of the condition, and the relations that it reads.
#[derive(Clone, Copy)]
struct Conjunct<'q> {
    expr: &'q Tree,
    reads: Set,
}

/// A relation whose rows need not be there, and what joins them.
struct Outer<'q> {
    relation: usize,
    on: Vec<Conjunct<'q>>,
}

/// The relations of a query on their way into an order.
struct Joining<'q> {
    /// With what the query calls them, and where their columns begin once they are placed.
    tables: Vec<(Arc<Table>, Arc<str>, usize)>,
    placed: Set,
    width: usize,
    /// Those that must have a row, and are not placed.
    inner: Set,
    /// Those that need not, and are not placed.
    outer: Vec<Outer<'q>>,
    /// What is not asked yet.
    conjuncts: Vec<Conjunct<'q>>,
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
        Ok(self.nested_loops(query))
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

impl<'q> Joining<'q> {
    /// Takes a tree of joins apart: what an inner join asks may be asked later, too.
    fn take(&mut self, from: &'q From) -> std::result::Result<(), Reason> {
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
        let (relation, source, keeps) = match best {
            Some((_, relation, source)) => (relation, source, false),
            None => {
                let (relation, source) = self.next_outer()?;
                (relation, source, true)
            }
        };
        let used = ColumnsUsed::of(query, relation, &source.table);
        let after = match keeps {
            true => self.condition(relation, &self.conjuncts)?,
            false => None,
        };
        self.asked(relation);
        Ok(JoinStep {
            source,
            begin: self.place(relation),
            keeps,
            after,
            used,
        })
    }

    /// The first relation whose rows need not be there, and which an index leads to.
    fn next_outer(&mut self) -> std::result::Result<(usize, Source), Reason> {
        for (place, outer) in self.outer.iter().enumerate() {
            let known = self.placed | bit(outer.relation);
            if outer.on.iter().any(|conjunct| conjunct.reads & !known != 0) {
                continue;
            }
            let (source, _) = self.way(outer.relation, &outer.on, &[])?;
            if Bounded::by(&source) >= Bounded::Prefix {
                return Ok((self.outer.remove(place).relation, source));
            }
        }
        Err(Reason::Form("a join that no index bounds"))
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
        conjuncts: &[Conjunct<'_>],
    ) -> std::result::Result<Option<Expr>, Reason> {
        let lowering = Lowering::of_joined(&self.tables, relation);
        let ready = conjuncts
            .iter()
            .filter(|conjunct| self.is_ready(relation, conjunct));
        let ready = ready.map(|conjunct| lowering.given(conjunct.expr));
        Ok(conjunction(ready.collect::<std::result::Result<_, _>>()?))
    }

    fn is_ready(&self, relation: usize, conjunct: &Conjunct<'_>) -> bool {
        conjunct.reads & !(self.placed | bit(relation)) == 0
    }

    /// The way to the rows of a relation, and whether it gives them in this order.
    fn way(
        &self,
        relation: usize,
        conjuncts: &[Conjunct<'_>],
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
fn conjuncts_of<'q>(
    condition: &'q Tree,
    found: &mut Vec<Conjunct<'q>>,
) -> std::result::Result<(), Reason> {
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
        expr: condition,
        reads,
    });
    Ok(())
}
