//! The order of inner joins. Joins stand in a plan as the statement has them; where another order
//! makes far fewer rows on the way, it is taken: of all pairs that have a key in common the one that
//! makes the fewest rows is joined first, and so on (greedy operator ordering, Fegaras 1998).
//!
//! How many rows there are is known of tables ([`super::cardinality`]); what filters leave is guessed.
//! So the order changes only where the guess is clear.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Join, JoinConstraint, LogicalPlan, Projection};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::cardinality::{Classes, Estimate, estimate};

/// The rows on the way must be fewer by this factor for another order to be taken.
const CLEARLY: f64 = 0.5;
/// Relations of one join that are ordered.
const RELATIONS_MAX: usize = 32;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct JoinOrder;

impl OptimizerRule for JoinOrder {
    fn name(&self) -> &str {
        "join_order"
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        ordered(plan)
    }
}

fn ordered(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !is_inner(&plan) {
        return plan.map_children(ordered);
    }
    let mut tree = Tree::default();
    tree.count(&plan);
    if !(3..=RELATIONS_MAX).contains(&tree.relations) || tree.is_volatile {
        return plan.map_children(ordered);
    }
    let joins = Joins::of(&plan)?;
    let (as_written, _) = joins.walk(&plan, &mut 0);
    let (steps, cost) = joins.greedy();
    if cost > as_written * CLEARLY {
        return inner_children(plan);
    }
    let schema = Arc::clone(plan.schema());
    let joined = joins.build(&steps)?;
    let projection = Projection::new_from_schema(Arc::new(joined), schema);
    Ok(Transformed::yes(LogicalPlan::Projection(projection)))
}

/// Orders what the relations of a join are made of, and leaves the join.
fn inner_children(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match is_inner(&plan) {
        true => plan.map_children(inner_children),
        false => ordered(plan),
    }
}

fn is_inner(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join) if join.join_type == JoinType::Inner
        && join.null_equality == NullEquality::NullEqualsNothing)
}

/// What passes on some columns under their names.
fn passes(plan: &LogicalPlan) -> Option<&LogicalPlan> {
    match plan {
        LogicalPlan::Projection(projection) if is_inner(&projection.input) => {
            let mut exprs = projection.expr.iter();
            let plain = exprs.all(|expr| matches!(expr, Expr::Column(_)));
            plain.then_some(projection.input.as_ref())
        }
        _ => None,
    }
}

/// How large a tree of inner joins is.
#[derive(Default)]
struct Tree {
    relations: usize,
    is_volatile: bool,
}

impl Tree {
    fn count(&mut self, plan: &LogicalPlan) {
        match plan {
            LogicalPlan::Join(join) if is_inner(plan) => {
                let keys = join.on.iter().flat_map(|(left, right)| [left, right]);
                self.is_volatile |= keys.chain(&join.filter).any(Expr::is_volatile);
                self.count(&join.left);
                self.count(&join.right);
            }
            plan => match passes(plan) {
                Some(inner) => self.count(inner),
                None => self.relations += 1,
            },
        }
    }
}

/// Some of the relations, as bits.
type Set = u64;

/// Two sides that are equal, and the relations that each is of.
struct Key {
    sides: [(Expr, Set); 2],
    class: usize,
}

struct Joins {
    relations: Vec<(LogicalPlan, Estimate)>,
    keys: Vec<Key>,
    filters: Vec<(Expr, Set)>,
    classes: Classes,
}

/// Two components are joined, by their places; the result stands in the place of the first.
type Step = (usize, usize);

impl Joins {
    fn of(plan: &LogicalPlan) -> Result<Self> {
        let mut joins = Self {
            relations: Vec::new(),
            keys: Vec::new(),
            filters: Vec::new(),
            classes: Classes::default(),
        };
        let (mut keys, mut filters) = (Vec::new(), Vec::new());
        joins.flatten(plan, &mut keys, &mut filters)?;
        for (left, right) in keys {
            let sides = [left, right].map(|side| {
                let set = joins.set_of(&side);
                (side, set)
            });
            joins.classes.join(&sides[0].0, &sides[1].0);
            joins.keys.push(Key { sides, class: 0 });
        }
        for key in &mut joins.keys {
            key.class = joins.classes.of(&key.sides[0].0);
        }
        for filter in filters {
            let set = joins.set_of(&filter);
            joins.filters.push((filter, set));
        }
        for (_, estimate) in &joins.relations {
            joins.classes.learn(estimate);
        }
        Ok(joins)
    }

    fn flatten(
        &mut self,
        plan: &LogicalPlan,
        keys: &mut Vec<(Expr, Expr)>,
        filters: &mut Vec<Expr>,
    ) -> Result<()> {
        match plan {
            LogicalPlan::Join(join) if is_inner(plan) => {
                self.flatten(&join.left, keys, filters)?;
                self.flatten(&join.right, keys, filters)?;
                keys.extend(join.on.iter().cloned());
                filters.extend(
                    join.filter
                        .clone()
                        .into_iter()
                        .flat_map(split_conjunction_owned),
                );
            }
            plan => match passes(plan) {
                Some(inner) => self.flatten(inner, keys, filters)?,
                None => {
                    let relation = ordered(plan.clone())?.data;
                    let estimate = estimate(&relation);
                    self.relations.push((relation, estimate));
                }
            },
        }
        Ok(())
    }

    fn set_of(&self, expr: &Expr) -> Set {
        let refs = expr.column_refs();
        let mut set = 0;
        for (at, (relation, _)) in self.relations.iter().enumerate() {
            if refs
                .iter()
                .any(|column| relation.schema().has_column(column))
            {
                set |= 1 << at;
            }
        }
        set
    }

    /// The keys between two sets: the first side is of the first set.
    fn between(&self, a: Set, b: Set) -> impl Iterator<Item = (&Key, bool)> {
        self.keys.iter().filter_map(move |key| {
            let [left, right] = [key.sides[0].1, key.sides[1].1];
            let is_within = |set: Set, of: Set| set != 0 && set & !of == 0;
            if is_within(left, a) && is_within(right, b) {
                return Some((key, false));
            }
            (is_within(left, b) && is_within(right, a)).then_some((key, true))
        })
    }

    /// The rows of a join of two sets, and whether they have a key in common.
    fn joined(&self, (a, a_rows): (Set, f64), (b, b_rows): (Set, f64)) -> (f64, bool) {
        let mut rows = a_rows * b_rows;
        let mut classes: Vec<usize> = Vec::new();
        for (key, _) in self.between(a, b) {
            if !classes.contains(&key.class) {
                classes.push(key.class);
                rows /= self.classes.distinct(key.class, a_rows.min(b_rows));
            }
        }
        let has_key = !classes.is_empty();
        for (_, set) in &self.filters {
            let is_new = set & !(a | b) == 0 && set & !a != 0 && set & !b != 0;
            if is_new {
                rows *= 0.5;
            }
        }
        (rows.max(1.0), has_key)
    }

    /// The rows that joins as they are written make, and which relations they are of. `next` counts the
    /// relations.
    fn walk(&self, plan: &LogicalPlan, next: &mut usize) -> (f64, (Set, f64)) {
        match plan {
            LogicalPlan::Join(join) if is_inner(plan) => {
                let (left_cost, left) = self.walk(&join.left, next);
                let (right_cost, right) = self.walk(&join.right, next);
                let (rows, _) = self.joined(left, right);
                (left_cost + right_cost + rows, (left.0 | right.0, rows))
            }
            plan => match passes(plan) {
                Some(inner) => self.walk(inner, next),
                None => {
                    let at = *next;
                    *next += 1;
                    (0.0, (1 << at, self.relations[at].1.rows))
                }
            },
        }
    }

    /// The steps of a good order, and the rows that they make.
    fn greedy(&self) -> (Vec<Step>, f64) {
        let mut parts: Vec<Option<(Set, f64)>> = self
            .relations
            .iter()
            .enumerate()
            .map(|(at, (_, estimate))| Some((1 << at, estimate.rows)))
            .collect();
        let (mut steps, mut cost) = (Vec::new(), 0.0);
        for _ in 1..parts.len() {
            let mut best: Option<(bool, f64, f64, Step)> = None;
            for (i, a) in parts.iter().enumerate() {
                for (j, b) in parts.iter().enumerate().skip(i + 1) {
                    let (Some(a), Some(b)) = (a, b) else { continue };
                    let (rows, has_key) = self.joined(*a, *b);
                    // The smaller one is the side that is read first.
                    let step = if a.1 <= b.1 { (i, j) } else { (j, i) };
                    let worth = (!has_key, rows, a.1 + b.1);
                    let is_better = best.is_none_or(|(no_key, fewest, inputs, _)| {
                        (worth.0, worth.1, worth.2) < (no_key, fewest, inputs)
                    });
                    if is_better {
                        best = Some((worth.0, worth.1, worth.2, step));
                    }
                }
            }
            let Some((_, rows, _, (first, second))) = best else {
                break;
            };
            let sets = [first, second].map(|at| parts[at].map_or(0, |(set, _)| set));
            parts[second] = None;
            parts[first] = Some((sets[0] | sets[1], rows));
            cost += rows;
            steps.push((first, second));
        }
        (steps, cost)
    }

    fn build(self, steps: &[Step]) -> Result<LogicalPlan> {
        let Self {
            relations,
            mut keys,
            mut filters,
            ..
        } = self;
        let mut parts: Vec<Option<(Set, LogicalPlan)>> = relations
            .into_iter()
            .enumerate()
            .map(|(at, (plan, _))| Some((1 << at, plan)))
            .collect();
        for (first, second) in steps {
            let (Some((a, left)), Some((b, right))) = (parts[*first].take(), parts[*second].take())
            else {
                return datafusion::common::internal_err!("a relation is joined twice");
            };
            let mut on = Vec::new();
            let mut filter = Vec::new();
            keys.retain(|key| {
                let [(x, of_x), (y, of_y)] = &key.sides;
                if (of_x | of_y) & !(a | b) != 0 {
                    return true;
                }
                if of_x & !a == 0 && of_y & !b == 0 {
                    on.push((x.clone(), y.clone()));
                } else if of_x & !b == 0 && of_y & !a == 0 {
                    on.push((y.clone(), x.clone()));
                } else {
                    filter.push(x.clone().eq(y.clone()));
                }
                false
            });
            filters.retain(|(expr, set)| {
                let is_due = set & !(a | b) == 0;
                if is_due {
                    filter.push(expr.clone());
                }
                !is_due
            });
            let join = Join::try_new(
                Arc::new(left),
                Arc::new(right),
                on,
                conjunction(filter),
                JoinType::Inner,
                JoinConstraint::On,
                NullEquality::NullEqualsNothing,
                false,
            )?;
            parts[*first] = Some((a | b, LogicalPlan::Join(join)));
        }
        match parts.into_iter().flatten().next() {
            Some((_, plan)) if keys.is_empty() && filters.is_empty() => Ok(plan),
            _ => datafusion::common::internal_err!("a condition of a join is left over"),
        }
    }
}
