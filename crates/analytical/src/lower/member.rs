//! What is joined with everything else of a FROM: its list and the inner joins within, flat. A
//! member that refers to others comes right after them, so that it is not computed for each row
//! of members that it has nothing to do with.

use std::collections::BTreeSet;

use datafusion::common::JoinType;
use thermocline_query::error::Result;
use thermocline_query::tree::{Expr, From, JoinKind, Query};

use super::expr::{all_of, conjuncts};
use super::query::has_query;
use super::scope::{relations_of_expr, relations_of_relation};
use super::{Lowerer, Rel};
use crate::udf::is_volatile;

/// Members and the conditions that join them.
#[derive(Default)]
pub(super) struct Members<'q> {
    members: Vec<&'q From>,
    /// Conditions of ON.
    conditions: Vec<Expr>,
    /// Conditions of WHERE that may be asked before all members are there.
    filter: Vec<Expr>,
}

impl<'q> Members<'q> {
    /// The members of FROM and those of the conditions of WHERE that members may be left out by.
    pub(super) fn of_query(query: &'q Query) -> Self {
        let mut members = Self::of_from(query);
        let filter = query.filter.clone().map(conjuncts).unwrap_or_default();
        let simple = |condition: &Expr| !has_query(condition) && !is_volatile(condition);
        members.filter = filter.into_iter().filter(simple).collect();
        members
    }

    /// The members of FROM.
    pub(super) fn of_from(query: &'q Query) -> Self {
        let mut members = Self::default();
        query.from.iter().for_each(|from| members.add(from));
        members
    }

    /// The members of an inner join.
    pub(super) fn of_join((left, right): (&'q From, &'q From), on: Option<&Expr>) -> Self {
        let mut members = Self::default();
        members.add(left);
        members.add(right);
        members
            .conditions
            .extend(on.cloned().into_iter().flat_map(conjuncts));
        members
    }

    fn add(&mut self, from: &'q From) {
        match from {
            From::Join {
                kind: JoinKind::Inner,
                left,
                right,
                condition,
            } => {
                self.add(left);
                self.add(right);
                let condition = condition.iter().cloned().flat_map(conjuncts);
                self.conditions.extend(condition);
            }
            other => self.members.push(other),
        }
    }
}

/// The relations of a member, and those that it refers to.
fn relations(query: &Query, from: &From, own: &mut BTreeSet<usize>, needs: &mut BTreeSet<usize>) {
    match from {
        From::Relation(place) => {
            own.insert(*place);
            if let Some(relation) = query.relations.get(*place) {
                relations_of_relation(relation, needs);
            }
        }
        From::Join {
            left,
            right,
            condition,
            ..
        } => {
            relations(query, left, own, needs);
            relations(query, right, own, needs);
            condition
                .iter()
                .for_each(|expr| relations_of_expr(expr, needs));
        }
    }
}

/// Takes the conditions that refer to relations that are there.
fn ready(conditions: &mut Vec<Expr>, there: &BTreeSet<usize>) -> Vec<Expr> {
    let (now, later) = std::mem::take(conditions).into_iter().partition(|expr| {
        let mut needs = BTreeSet::new();
        relations_of_expr(expr, &mut needs);
        !has_query(expr) && needs.is_subset(there)
    });
    *conditions = later;
    now
}

impl Lowerer<'_> {
    /// All members joined, for each row of `base`.
    pub(super) fn members(
        &mut self,
        query: &Query,
        members: Members<'_>,
        base: Rel,
    ) -> Result<Rel> {
        let Members {
            members,
            mut conditions,
            mut filter,
        } = members;
        let mut pending: Vec<_> = members
            .into_iter()
            .map(|from| {
                let (mut own, mut needs) = (BTreeSet::new(), BTreeSet::new());
                relations(query, from, &mut own, &mut needs);
                let needs: BTreeSet<usize> = needs.difference(&own).copied().collect();
                (from, own, needs)
            })
            .collect();
        // Relations beside the join are in `base` already.
        let mine = pending.iter().flat_map(|(_, own, _)| own);
        let mine: BTreeSet<usize> = mine.copied().collect();
        let mut there: BTreeSet<usize> = (0..query.relations.len()).collect();
        there.retain(|relation| !mine.contains(relation));
        let mut rel = base;
        while !pending.is_empty() {
            let is_ready = |needs: &BTreeSet<usize>| needs.is_subset(&there);
            let place = pending
                .iter()
                .position(|(_, _, needs)| !needs.is_disjoint(&mine) && is_ready(needs))
                .or_else(|| pending.iter().position(|(_, _, needs)| is_ready(needs)))
                .unwrap_or(0);
            let (from, own, _) = pending.remove(place);
            if self.tree_refs(query, from).is_empty() {
                there.extend(&own);
                let right = self.from(query, from, Rel::one_row())?;
                let now = ready(&mut conditions, &there);
                rel = self.member(rel, right, now)?;
                continue;
            }
            // It is computed over what is there: the fewer rows the better.
            let before = ready(&mut filter, &there);
            if let Some(before) = all_of(before) {
                rel = self.filter(rel, &before)?;
            }
            rel = self.from(query, from, rel)?;
            there.extend(&own);
            if let Some(now) = all_of(ready(&mut conditions, &there)) {
                rel = self.filter(rel, &now)?;
            }
        }
        match all_of(conditions) {
            Some(rest) => self.filter(rel, &rest),
            None => Ok(rel),
        }
    }

    fn member(&mut self, left: Rel, right: Rel, conditions: Vec<Expr>) -> Result<Rel> {
        if left.is_one_row() || right.is_one_row() {
            let rel = left.crossed(right)?;
            return match all_of(conditions) {
                Some(conditions) => self.filter(rel, &conditions),
                None => Ok(rel),
            };
        }
        let conditions = conditions.iter().map(|condition| self.bind(condition));
        let conditions = conditions.collect::<Result<Vec<_>>>()?;
        let on = self.on(conditions, &left, &right);
        left.joined(right, JoinType::Inner, on)
    }
}
