//! Statements over a partitioned table: which partitions a condition leaves, the plans over them, and
//! where new rows go. A partition's columns have the places of its table's, so a condition over that
//! table is one over each of them.

use std::sync::Arc;

use thermocline_engine::{Catalog, Table};

use super::{
    ConflictPlan, InsertTarget, Path, Reference, ShortPlan, Source, choose, unique_within_partition,
};
use crate::bind::BindContext;
use crate::error::{Result, SqlError};
use crate::expr::Expr;

/// The partitions of a table that a condition leaves.
#[derive(Clone, Debug)]
pub struct Partitions {
    /// The table.
    table: Arc<Table>,
    /// What the condition says of the key, as a look into an index over it.
    pub(crate) key: Source,
    /// By the positions of its partitions.
    pub(crate) below: Vec<PartitionsBelow>,
}

/// A partition.
#[derive(Clone, Debug)]
pub enum PartitionsBelow {
    /// It has rows: its number among those of all.
    Leaf(usize),
    /// It has partitions.
    Partitions(Box<Partitions>),
}

impl Partitions {
    /// Those of a partitioned table; they are added to `leaves`, whose places are their numbers.
    pub(crate) fn of(
        catalog: &Catalog,
        table: &Arc<Table>,
        condition: Option<&Expr>,
        leaves: &mut Vec<Arc<Table>>,
    ) -> Result<Self> {
        let (Some(by), Some((_, key_table))) = (&table.partitioned, &table.partition_map) else {
            return Err(SqlError::internal("the partitions of a table without any"));
        };
        let (key, _) = choose(key_table, condition.cloned(), &[], || false);
        let mut below = Vec::with_capacity(by.partitions.len());
        for partition in &by.partitions {
            let partition = catalog.table(partition.table);
            let partition =
                partition.ok_or_else(|| SqlError::internal("a partition that is not there"))?;
            below.push(match partition.partitioned {
                None => {
                    leaves.push(Arc::clone(partition));
                    PartitionsBelow::Leaf(leaves.len() - 1)
                }
                Some(_) => {
                    let deeper = Self::of(catalog, partition, condition, leaves)?;
                    PartitionsBelow::Partitions(Box::new(deeper))
                }
            });
        }
        Ok(Self {
            table: Arc::clone(table),
            key,
            below,
        })
    }

    /// Whether what the condition says of keys is known already.
    pub(crate) fn is_known(&self) -> bool {
        let mut parts = Vec::new();
        if let Path::Probe(probe) = &self.key.path {
            parts.extend(probe.keys.iter().flatten());
            parts.extend(
                probe
                    .lower
                    .iter()
                    .chain(&probe.upper)
                    .map(|bound| &bound.part),
            );
        }
        let mut known = true;
        for part in parts {
            part.expr.walk(&mut |expr| {
                known &= matches!(
                    expr,
                    Expr::Constant(_) | Expr::Cast(..) | Expr::Arithmetic(..)
                );
            });
        }
        known
            && self.below.iter().all(|below| match below {
                PartitionsBelow::Leaf(_) => true,
                PartitionsBelow::Partitions(deeper) => deeper.is_known(),
            })
    }

    /// The partitioned table.
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }
}

/// A statement over a partitioned table, as one over each of its partitions.
#[derive(Clone, Debug)]
pub struct EachPlan {
    /// Which of them are left.
    pub partitions: Partitions,
    /// The statement over each, as far as it can be left.
    pub plans: Vec<Option<ShortPlan>>,
    /// It is a query: over one partition only, since the rows of several are not put together here.
    pub reads: bool,
}

/// Where the rows of a partitioned table go.
#[derive(Clone, Debug)]
pub struct Routes {
    /// By the positions of its partitions. They have the values of all columns that are not
    /// generated.
    pub targets: Vec<InsertTarget>,
}

impl Routes {
    /// The way of rows into a table's partitions; none if it has no partitions.
    ///
    /// # Errors
    /// As binding what partitions compute and check.
    pub(crate) fn of(
        context: &BindContext<'_>,
        target: &InsertTarget,
    ) -> Result<Option<Arc<Self>>> {
        let table = &target.table;
        let Some(by) = &table.partitioned else {
            return Ok(None);
        };
        // The rights on the table are those that count.
        let context = &BindContext {
            actor: None,
            ..*context
        };
        context.charge_partitions(by.partitions.len(), parts_of(target))?;
        let catalog = context.catalog;
        let mut targets = Vec::with_capacity(by.partitions.len());
        for partition in &by.partitions {
            let own = |index: &usize| {
                let of = table.indexes.get(*index)?.oid;
                let (_, own) = partition.indexes.iter().find(|(parent, _)| *parent == of)?;
                Some(*own)
            };
            let Some(leaf) = catalog.table(partition.table) else {
                return Err(SqlError::internal("a partition that is not there"));
            };
            let conflict = target.conflict.as_ref().map(|conflict| ConflictPlan {
                arbiters: match conflict.of_any {
                    true => (0..leaf.indexes.len())
                        .filter(|at| leaf.indexes[*at].unique)
                        .collect(),
                    false => {
                        let own = conflict.arbiters.iter().filter_map(own);
                        let place = |oid| leaf.indexes.iter().position(|index| index.oid == oid);
                        own.filter_map(place).collect()
                    }
                },
                of_any: conflict.of_any,
                update: conflict.update.clone().map(|mut update| {
                    // The row that is there may have more than this one says.
                    update.replaces = false;
                    update
                }),
            });
            let mut into = InsertTarget {
                checks: context.checks_of(leaf)?,
                unique_within_partition: unique_within_partition(leaf),
                references: Reference::of(catalog, leaf, |_| true),
                table: Arc::clone(leaf),
                columns: target.columns.clone(),
                defaults: Vec::new(),
                generated: context.generated_of(leaf)?,
                conflict,
                returning: target.returning.clone(),
                routes: None,
            };
            into.routes = Self::of(context, &into)?;
            targets.push(into);
        }
        Ok(Some(Arc::new(Self { targets })))
    }
}

/// How many parts the expressions have that each partition's target has a copy of.
fn parts_of(target: &InsertTarget) -> usize {
    let returned = target.returning.iter().flatten().map(|output| &output.expr);
    let update = target.conflict.as_ref();
    let update = update.and_then(|conflict| conflict.update.as_ref());
    let assigned = update.iter().flat_map(|update| &update.assignments);
    let filters = update.iter().filter_map(|update| update.filter.as_ref());
    let all = returned
        .chain(assigned.map(|(_, expr)| expr))
        .chain(filters);
    all.map(Expr::parts).sum()
}
