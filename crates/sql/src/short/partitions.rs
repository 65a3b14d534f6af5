//! Statements over a partitioned table: planned over each of the partitions that are left.

use std::sync::Arc;

use thermocline_engine::Table;
use thermocline_query::tree::{From, Query, RelationKind};

use super::Planner;
use super::pull_up::pulled_up;
use super::select::plain_form;
use crate::bind::BindContext;
use crate::error::{Result, SqlError};
use crate::exec::partitions::left;
use crate::expr::{EvalContext, Expr};
use crate::plan::{EachPlan, Partitions, Reason, ShortPlan, Source, choose};

/// Why a query over several partitions is for others.
pub(super) const PARTITIONED: Reason = Reason::Form("a partitioned table");

impl Planner<'_> {
    /// A plan over the rows that a source finds; of a partitioned table over those of each partition.
    pub(super) fn over_each(
        &self,
        context: &BindContext<'_>,
        source: Source,
        mut plan: impl FnMut(&BindContext<'_>, Source) -> Result<ShortPlan>,
    ) -> Result<ShortPlan> {
        if source.table.partitioned.is_none() {
            return plan(context, source);
        }
        // The rights on their table are those that count.
        let inner = BindContext {
            actor: None,
            ..*context
        };
        let condition = source.condition;
        let mut leaves = Vec::new();
        let partitions = Partitions::of(
            context.catalog,
            &source.table,
            condition.as_ref(),
            &mut leaves,
        )?;
        let parts = condition.as_ref().map_or(0, Expr::parts);
        let plans = planned((context, parts), &partitions, &leaves, |leaf| {
            let (source, _) = choose(leaf, condition.clone(), &[], || false);
            plan(&inner, source).map(Some)
        })?;
        Ok(ShortPlan::Each(Arc::new(EachPlan {
            partitions,
            plans: plans.unwrap_or_default(),
            reads: false,
        })))
    }

    /// The plan of a query over a partitioned table of which one partition is left; `None`: it is no
    /// such query.
    pub(super) fn over_one(&self, query: &Query) -> Result<Option<ShortPlan>> {
        let above = pulled_up(query);
        let query = above.as_ref().unwrap_or(query);
        let ([of], [From::Relation(0)]) = (query.relations.as_slice(), query.from.as_slice())
        else {
            return Ok(None);
        };
        let RelationKind::Table(oid) = of.kind else {
            return Ok(None);
        };
        let Some(table) = self.context.catalog.table(oid) else {
            return Ok(None);
        };
        if table.partitioned.is_none() || plain_form(query).is_err() {
            return Ok(None);
        }
        for target in &query.targets {
            self.context.may_use_sequences(&target.expr)?;
        }
        let Ok(whole) = self.planned(query, Some(table), None) else {
            return Ok(None);
        };
        let Some(source) = whole.source else {
            return Ok(None);
        };
        let mut leaves = Vec::new();
        let condition = source.condition.as_ref();
        let partitions = Partitions::of(self.context.catalog, table, condition, &mut leaves)?;
        if !partitions.key.is_bounded() {
            return Ok(None);
        }
        let parts = condition.map_or(0, Expr::parts);
        let plans = planned((&self.context, parts), &partitions, &leaves, |leaf| {
            let Ok(plan) = self.planned(query, Some(leaf), None) else {
                return Ok(None);
            };
            let is_bounded = plan.source.as_ref().is_some_and(Source::is_bounded);
            Ok(is_bounded.then(|| ShortPlan::Select(Arc::new(plan))))
        })?;
        Ok(plans.map(|plans| {
            ShortPlan::Each(Arc::new(EachPlan {
                partitions,
                plans,
                reads: true,
            }))
        }))
    }
}

/// The plans over the leaves that are left, by their numbers; `None` where one has none.
fn planned(
    (context, parts): (&BindContext<'_>, usize),
    partitions: &Partitions,
    leaves: &[Arc<Table>],
    mut plan: impl FnMut(&Arc<Table>) -> Result<Option<ShortPlan>>,
) -> Result<Option<Vec<Option<ShortPlan>>>> {
    let mut wanted = None;
    if partitions.is_known() {
        let mut found = Vec::new();
        left(partitions, &EvalContext::none(), &mut found)?;
        wanted = Some(found);
    }
    context.charge_partitions(wanted.as_ref().map_or(leaves.len(), Vec::len), parts)?;
    let mut plans = Vec::with_capacity(leaves.len());
    for (number, leaf) in leaves.iter().enumerate() {
        if wanted
            .as_ref()
            .is_some_and(|wanted| !wanted.contains(&number))
        {
            plans.push(None);
            continue;
        }
        match plan(leaf)? {
            Some(plan) => plans.push(Some(plan)),
            None => return Ok(None),
        }
    }
    Ok(Some(plans))
}

/// So many parts of conditions are in the plans over all partitions; where there would be more, a
/// query finds the rows, if they have keys.
const PARTS_MAX: usize = 1 << 14;

impl Planner<'_> {
    /// Whether a query is to find the rows of a change with this condition, because each partition's
    /// plan would have a copy of it.
    pub(super) fn is_found_by_query(&self, table: &Table, condition: Option<&Expr>) -> bool {
        let Some(by) = &table.partitioned else {
            return false;
        };
        let parts = condition
            .map_or(0, Expr::parts)
            .saturating_mul(by.partitions.len());
        parts > PARTS_MAX && table.indexes.iter().any(|index| index.primary)
    }
}

/// 0A000 for what needs to name a row of a partitioned table that has no primary key.
#[cold]
pub(super) fn needs_key(table: &Table) -> SqlError {
    SqlError::unsupported(
        format!(
            "a change of rows of partitioned table \"{}\" that a query finds is not supported without a primary key",
            table.name
        ),
        "Add a primary key, or change the partitions one by one.",
    )
}
