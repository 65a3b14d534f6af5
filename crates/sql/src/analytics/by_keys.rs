//! Joins tell scans their keys. A hash join that drops the second side's rows without a match needs no
//! others of them: a table's rows can be read by an index over the join's keys.
//!
//! Which scan a column of the second side comes from is followed down through what neither makes it
//! another nor makes rows of several: filters, projections, exchanges, sorts, joins, aggregates by it.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};

use super::learned::{LearnExec, Learned};
use super::partitioned::PartitionsExec;
use super::scan::SnapshotScanExec;

/// Has joins tell scans their keys.
#[derive(Debug)]
pub(super) struct ByKeys;

/// Where each key of the join stands among a node's columns, as far as it does.
type Places = Vec<Option<usize>>;

impl PhysicalOptimizerRule for ByKeys {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = plan.transform_up(|node| {
            let join = node.downcast_ref::<HashJoinExec>();
            Ok(match join.map(told).transpose()?.flatten() {
                Some(children) => Transformed::yes(rebuilt(&node, children)?),
                None => Transformed::no(node),
            })
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &'static str {
        "by_keys"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn rebuilt(
    node: &Arc<dyn ExecutionPlan>,
    children: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(node).replace_children(children, options)
}

/// The sides of a join of which the first tells a scan of the other its keys, if there is one.
fn told(join: &HashJoinExec) -> Result<Option<Vec<Arc<dyn ExecutionPlan>>>> {
    let drops_others = matches!(
        join.join_type(),
        JoinType::Inner
            | JoinType::Left
            | JoinType::LeftSemi
            | JoinType::LeftAnti
            | JoinType::LeftMark
            | JoinType::RightSemi
    );
    if !drops_others || join.null_aware || join.null_equality() == NullEquality::NullEqualsNull {
        return Ok(None);
    }
    let places: Places = join.on().iter().map(|(_, key)| place_of(key)).collect();
    let mut offer = Offer::default();
    let Some(right) = offer.to(join.right(), &places)? else {
        return Ok(None);
    };
    let keys = join.on().iter().map(|(key, _)| Arc::clone(key)).collect();
    let left = Arc::new(LearnExec::new(Arc::clone(join.left()), keys, offer.taken));
    Ok(Some(vec![left, right]))
}

/// The column that a key is; of a whole number it may be a wider one's.
fn place_of(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    if let Some(column) = expr.downcast_ref::<Column>() {
        return Some(column.index());
    }
    let cast = expr.downcast_ref::<CastExpr>()?;
    let is_wider = *cast.cast_type() == datafusion::arrow::datatypes::DataType::Int64;
    let inner = cast.expr().downcast_ref::<Column>()?;
    is_wider.then(|| inner.index())
}

/// Keys on their way to scans.
#[derive(Default)]
struct Offer {
    taken: Vec<Arc<Learned>>,
}

impl Offer {
    /// The node with scans that read by the keys; `None`: there is none.
    fn to(
        &mut self,
        node: &Arc<dyn ExecutionPlan>,
        places: &Places,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        // Of some rows of many others would be kept.
        if places.iter().all(Option::is_none) || node.fetch().is_some() {
            return Ok(None);
        }
        if let Some(scan) = node.downcast_ref::<SnapshotScanExec>() {
            let taken = scan.told(places);
            return Ok(taken.map(|(scan, learned)| {
                self.taken.push(learned);
                Arc::new(scan) as _
            }));
        }
        let children = node.children();
        let inputs: Vec<Option<Places>> = inputs(node, places);
        let mut new: Vec<Arc<dyn ExecutionPlan>> = Vec::with_capacity(children.len());
        let mut is_taken = false;
        for (child, places) in children.into_iter().zip(inputs) {
            let told = match places {
                Some(places) => self.to(child, &places)?,
                None => None,
            };
            is_taken |= told.is_some();
            new.push(told.unwrap_or_else(|| Arc::clone(child)));
        }
        match is_taken {
            true => rebuilt(node, new).map(Some),
            false => Ok(None),
        }
    }
}

/// Where the keys stand in each input, of which rows with other keys can be left out.
fn inputs(node: &Arc<dyn ExecutionPlan>, places: &Places) -> Vec<Option<Places>> {
    if node.downcast_ref::<RepartitionExec>().is_some()
        || node.downcast_ref::<CoalescePartitionsExec>().is_some()
        || node.downcast_ref::<CooperativeExec>().is_some()
        || node.downcast_ref::<LearnExec>().is_some()
        || node.downcast_ref::<SortExec>().is_some()
        || node.downcast_ref::<SortPreservingMergeExec>().is_some()
        || node.downcast_ref::<UnionExec>().is_some()
        || node.downcast_ref::<PartitionsExec>().is_some()
    {
        return node
            .children()
            .iter()
            .map(|_| Some(places.clone()))
            .collect();
    }
    if let Some(filter) = node.downcast_ref::<FilterExec>() {
        let projection = filter.projection().as_ref();
        let map = |place: usize| projection.map_or(Some(place), |all| all.get(place).copied());
        return vec![Some(through(places, map))];
    }
    if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
        let map = |place: usize| place_of(&projection.expr().get(place)?.expr);
        return vec![Some(through(places, map))];
    }
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        let groups = aggregate.group_expr();
        if !groups.is_single() || aggregate.limit_options().is_some() {
            return vec![None];
        }
        let map = |place: usize| {
            let (group, _) = groups.expr().get(place)?;
            Some(group.downcast_ref::<Column>()?.index())
        };
        return vec![Some(through(places, map))];
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        return of_join(join, places);
    }
    node.children().iter().map(|_| None).collect()
}

fn through(places: &Places, map: impl Fn(usize) -> Option<usize>) -> Places {
    places.iter().map(|place| place.and_then(&map)).collect()
}

fn of_join(join: &HashJoinExec, places: &Places) -> Vec<Option<Places>> {
    let left_columns = join.left().schema().fields().len();
    let projection = join.projection.as_ref();
    let joined = |place: usize| projection.map_or(Some(place), |all| all.get(place).copied());
    let left = || {
        through(places, |place| {
            joined(place).filter(|place| *place < left_columns)
        })
    };
    let right = |first: usize| through(places, |place| joined(place)?.checked_sub(first));
    // A row that a join asks whether it has a match decides about others; one that it passes on
    // or leaves out by itself does not.
    match join.join_type() {
        JoinType::Inner => vec![Some(left()), Some(right(left_columns))],
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
            vec![Some(left()), None]
        }
        JoinType::Right => vec![None, Some(right(left_columns))],
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
            vec![None, Some(right(0))]
        }
        JoinType::Full => vec![None, None],
    }
}
