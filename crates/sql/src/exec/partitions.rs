//! Statements over partitioned tables: which partitions the values of a key leave, and where a new
//! row goes.

use thermocline_engine::{Isolation, PartitionMap};
use thermocline_values::value::{Value, ValueRef};

use super::lookup::{Keys, whole_keys};
use super::row::{NewRow, verify_bounds};
use super::update::{Moved, move_in, move_out};
use super::{ExecContext, execute};
use crate::error::{Result, SqlError};
use crate::expr::{Datum, EvalContext};
use crate::output::RowWriter;
use crate::plan::{EachPlan, InsertTarget, Partitions, PartitionsBelow, ShortPlan, Source};
use crate::styles::Styles;

/// Adds the positions of the partitions, of so many, that may have keys which a source asks for.
pub(crate) fn having(
    map: &PartitionMap,
    source: &Source,
    context: &EvalContext<'_>,
    count: usize,
    found: &mut Vec<usize>,
) -> Result<()> {
    if map.is_by_hash() {
        if !whole_keys(source, context, |key| found.extend(map.find(key)))? {
            found.extend(0..count);
        }
    } else {
        match &Keys::of(source, context)? {
            Keys::Nothing => {}
            Keys::Scan | Keys::Row(_) => found.extend(0..count),
            Keys::Point(key) => found.extend(map.find_bytes(key)),
            Keys::Points(keys) => found.extend(keys.iter().filter_map(|key| map.find_bytes(key))),
            Keys::Ranges(ranges) => {
                for (lower, upper) in ranges {
                    map.between(lower, upper, found);
                }
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(())
}

/// Adds the numbers of the leaves that are left.
pub(crate) fn left(
    of: &Partitions,
    context: &EvalContext<'_>,
    found: &mut Vec<usize>,
) -> Result<()> {
    let Some((map, _)) = &of.table().partition_map else {
        return Ok(());
    };
    let mut positions = Vec::new();
    having(map, &of.key, context, of.below.len(), &mut positions)?;
    for position in positions {
        match &of.below[position] {
            PartitionsBelow::Leaf(number) => found.push(*number),
            PartitionsBelow::Partitions(deeper) => left(deeper, context, found)?,
        }
    }
    Ok(())
}

/// Runs a statement over the partitions that are left. A query over several is for others.
pub(super) async fn each(
    plan: &EachPlan,
    context: &mut ExecContext<'_>,
    parameters: &[Value],
    rows: &mut RowWriter,
) -> Result<u64> {
    let evaluation = EvalContext {
        parameters,
        now_us: context.now_us,
        session: context.session,
        styles: context.styles,
        outer: None,
    };
    let mut leaves = Vec::new();
    left(&plan.partitions, &evaluation, &mut leaves)?;
    if plan.reads && leaves.len() != 1 {
        return Err(SqlError::takes_long());
    }
    let mut own = None;
    let moves = |leaf: &usize| {
        let plan = plan.plans.get(*leaf).and_then(Option::as_ref);
        matches!(plan, Some(ShortPlan::Update(update)) if update.moves.is_some())
    };
    let is_one = leaves.len() == 1 && !leaves.iter().any(moves);
    if !is_one && context.txn.is_none() {
        own = Some(context.db.begin(Isolation::ReadCommitted, false));
    }
    let mut count = 0;
    // They go in when all partitions have been looked at: none is changed twice.
    let mut moved = Moved::new(context.options);
    let mut into = None;
    for leaf in leaves {
        let Some(Some(over_leaf)) = plan.plans.get(leaf) else {
            return Err(SqlError::internal("a partition that was not planned for"));
        };
        let mut inner = context.within(own.as_mut());
        if let ShortPlan::Update(update) = over_leaf
            && update.moves.is_some()
        {
            into.clone_from(&update.moves);
            count += move_out(update, &mut inner, parameters, rows, &mut moved).await?;
            continue;
        }
        count += Box::pin(execute(over_leaf, &mut inner, parameters, rows)).await?;
    }
    if let Some(into) = into {
        let mut inner = context.within(own.as_mut());
        count += move_in(&into, &moved, &mut inner, parameters, rows).await?;
    }
    if let Some(own) = own {
        context.db.commit(own, context.options).await?;
    }
    Ok(count)
}

/// Where a row goes: into the table itself, or into the partition of its key.
///
/// # Errors
/// 23514 where no partition is for it.
pub(super) fn routed<'t>(
    target: &'t InsertTarget,
    row: &[Datum<'_>],
    styles: &Styles,
) -> Result<&'t InsertTarget> {
    if target.routes.is_some() {
        // It may be a partition of another table itself.
        verify_bounds(&target.checks, &target.table, &NewRow(row), styles)?;
    }
    let mut target = target;
    while let Some(routes) = &target.routes {
        let table = &target.table;
        let (Some(by), Some((map, _))) = (&table.partitioned, &table.partition_map) else {
            return Err(SqlError::internal("routes of a table without partitions"));
        };
        let found = match by.columns.as_slice() {
            [column] => map.find(&[row[*column].as_ref()]),
            columns => {
                let key = columns.iter().map(|column| row[*column].as_ref());
                map.find(&key.collect::<Vec<_>>())
            }
        };
        let Some(next) = found.and_then(|position| routes.targets.get(position)) else {
            let key = by
                .columns
                .iter()
                .map(|column| (*column, row[*column].as_ref()));
            return Err(no_partition(target, &key.collect::<Vec<_>>(), styles));
        };
        target = next;
    }
    if target.table.partitioned.is_some() {
        return Err(SqlError::internal("a partitioned table without routes"));
    }
    Ok(target)
}

#[cold]
fn no_partition(target: &InsertTarget, key: &[(usize, ValueRef<'_>)], styles: &Styles) -> SqlError {
    let table = &target.table;
    let mut names = Vec::new();
    let mut values = Vec::new();
    for (column, value) in key {
        let def = &table.columns[*column];
        names.push(def.name.as_str());
        if value.is_null() {
            values.push("null".to_owned());
            continue;
        }
        let mut text = Vec::new();
        if let Err(error) = styles.write(*value, &def.data_type, &mut text) {
            text.extend_from_slice(error.message.as_bytes());
        }
        values.push(String::from_utf8_lossy(&text).into_owned());
    }
    let message = format!("no partition of relation \"{}\" found for row", table.name);
    SqlError::new("23514", message)
        .with_detail(format!(
            "Partition key of the failing row contains ({}) = ({}).",
            names.join(", "),
            values.join(", ")
        ))
        .with_table(&table.schema, &table.name)
}
