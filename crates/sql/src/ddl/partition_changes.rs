//! What definitions of a partitioned table do to its partitions, and which of a partition's own are
//! its table's to make.

use std::sync::Arc;

use thermocline_engine::ddl::Change;
use thermocline_engine::{IndexDef, Table, TableDef};

use super::Definition;
use crate::error::{Result, SqlError};
use crate::parse::constraint::TableConstraint;
use crate::parse::table::{AlterOperation, AlterTable};

impl Definition<'_> {
    /// Tables, and the partitions below them, locked.
    pub(super) async fn with_partitions(&mut self, tables: Vec<u32>) -> Result<Vec<u32>> {
        let mut all = tables;
        let below: Vec<u32> = all.iter().flat_map(|oid| self.below(*oid)).collect();
        for oid in below {
            if !all.contains(&oid) {
                let table = self.current(oid)?;
                self.lock_whole(&table).await?;
                all.push(oid);
            }
        }
        Ok(all)
    }

    /// The partitions of a table, and theirs, each behind the one that it is of.
    pub(super) fn below(&self, oid: u32) -> Vec<u32> {
        let catalog = self.catalog();
        let mut found = Vec::new();
        let mut next = vec![oid];
        while let Some(oid) = next.pop() {
            let by = catalog
                .table(oid)
                .and_then(|table| table.partitioned.as_ref());
            for partition in by.iter().flat_map(|by| &by.partitions) {
                found.push(partition.table);
                next.push(partition.table);
            }
        }
        found
    }

    /// Does to the partitions what was done to their table, where that is theirs, too. `before` is
    /// the table as it was.
    pub(super) async fn alter_below(
        &mut self,
        before: &Table,
        operation: &AlterOperation,
    ) -> Result<()> {
        let Some(operation) = of_partitions(operation) else {
            return Ok(());
        };
        let parent = self.current(before.oid)?;
        let Some(by) = parent.partitioned.clone() else {
            return Ok(());
        };
        for partition in &by.partitions {
            let table = self.current(partition.table)?;
            self.lock_whole(&table).await?;
            let table = self.current(partition.table)?;
            Box::pin(self.alter_alone(&table, &operation)).await?;
            Box::pin(self.alter_below(&table, &operation)).await?;
        }
        self.link_indexes(before.oid).await
    }

    /// ALTER TABLE ONLY of a partitioned table: what its partitions need not have, too.
    pub(super) async fn alter_only(
        &mut self,
        table: &Arc<Table>,
        alter: &AlterTable,
    ) -> Result<()> {
        use AlterOperation as Operation;
        for operation in &alter.operations {
            let is_key = matches!(
                operation,
                Operation::AddConstraint(TableConstraint::Key { .. })
            );
            if of_partitions(operation).is_some() && !is_key && !self.below(table.oid).is_empty() {
                return Err(SqlError::new(
                    "42P16",
                    "the partitions of a partitioned table cannot be left alone by this change",
                )
                .with_hint("Do not specify the ONLY keyword."));
            }
            let table = self.current(table.oid)?;
            self.alter_alone(&table, operation).await?;
        }
        Ok(())
    }

    /// ALTER INDEX … ATTACH PARTITION.
    pub(super) async fn attach_index(
        &mut self,
        name: &[String],
        partition: &[String],
    ) -> Result<&'static str> {
        let (table, at) = self.index_named(name)?;
        let (child, own) = self.index_named(partition)?;
        let (index, own) = (&table.indexes[at], &child.indexes[own]);
        if child.partition_of != Some(table.oid) {
            let message = format!(
                "cannot attach index \"{}\" as a partition of index \"{}\"",
                own.name, index.name
            );
            return Err(SqlError::new("42P17", message).with_detail(format!(
                "Index \"{}\" is not an index on any partition of table \"{}\".",
                own.name, table.name
            )));
        }
        let by = table.partitioned.iter().flat_map(|by| &by.partitions);
        let mut links = by
            .filter(|of| of.table == child.oid)
            .flat_map(|of| &of.indexes);
        if links.any(|(parent, linked)| *parent == index.oid && *linked != own.oid) {
            let message = format!(
                "cannot attach index \"{}\" as a partition of index \"{}\"",
                own.name, index.name
            );
            return Err(SqlError::new("55000", message).with_detail(format!(
                "Another index is already attached for partition \"{}\".",
                child.name
            )));
        }
        if !is_like((&table.def, index), (&child.def, own)) {
            let message = format!(
                "cannot attach index \"{}\" as a partition of index \"{}\"",
                own.name, index.name
            );
            return Err(
                SqlError::new("42P17", message).with_detail("The index definitions do not match.")
            );
        }
        self.lock_whole(&table).await?;
        let mut def = self.current(table.oid)?.def.clone();
        let by = def.partitioned.iter_mut().flat_map(|by| &mut by.partitions);
        for of in by.filter(|of| of.table == child.oid) {
            of.indexes
                .retain(|(parent, linked)| *parent != index.oid && *linked != own.oid);
            of.indexes.push((index.oid, own.oid));
        }
        self.apply(Change::AlterTable(def)).await?;
        Ok("ALTER INDEX")
    }

    fn index_named(&self, name: &[String]) -> Result<(Arc<Table>, usize)> {
        let catalog = self.catalog();
        let Some((schema, relation)) = self.find_relation(name) else {
            return Err(SqlError::undefined_table(&name.join(".")));
        };
        let found = catalog.index_by_name(&schema, &relation);
        let (table, at) = found
            .ok_or_else(|| SqlError::new("42809", format!("\"{relation}\" is not an index")))?;
        Ok((Arc::clone(table), at))
    }

    /// Drops the CHECK that partitions have from their table.
    pub(super) async fn drop_check_below(&mut self, oid: u32, name: &str) -> Result<()> {
        for oid in self.below(oid) {
            let table = self.current(oid)?;
            self.lock_whole(&table).await?;
            let mut def = self.current(oid)?.def.clone();
            def.checks.retain(|check| check.name != name);
            self.apply(Change::AlterTable(def)).await?;
        }
        Ok(())
    }

    /// Makes the index of a partitioned table's partitions that it has got itself.
    pub(super) async fn index_below(&mut self, oid: u32) -> Result<()> {
        let parent = self.current(oid)?;
        let Some(by) = parent.partitioned.clone() else {
            return Ok(());
        };
        for partition in &by.partitions {
            let table = self.current(partition.table)?;
            self.lock_whole(&table).await?;
            for index in &parent.indexes {
                let linked = partition.indexes.iter().any(|(of, _)| *of == index.oid);
                let table = self.current(partition.table)?;
                let like = |own: &IndexDef| is_like((&parent.def, index), (&table.def, own));
                if !linked && !table.indexes.iter().any(like) {
                    self.index_like(&table, &parent, index).await?;
                }
            }
            Box::pin(self.index_below(partition.table)).await?;
        }
        self.link_indexes(oid).await
    }

    /// Finds anew which indexes of its partitions a table's own stand for.
    async fn link_indexes(&mut self, oid: u32) -> Result<()> {
        let parent = self.current(oid)?;
        let mut def = parent.def.clone();
        let Some(by) = &mut def.partitioned else {
            return Ok(());
        };
        for partition in &mut by.partitions {
            let table = self.current(partition.table)?;
            partition.indexes = linked(&parent.def, &table);
        }
        match def == parent.def {
            true => Ok(()),
            false => self.link(def).await,
        }
    }

    /// The indexes of partitions that an index of their table stands for, each with its table.
    pub(super) fn indexes_below(&self, table: &Table, index: u32) -> Vec<(u32, u32)> {
        let catalog = self.catalog();
        let mut found = Vec::new();
        for partition in table.partitioned.iter().flat_map(|by| &by.partitions) {
            let own = partition.indexes.iter().find(|(of, _)| *of == index);
            let Some((_, own)) = own else { continue };
            found.push((partition.table, *own));
            if let Some(table) = catalog.table(partition.table) {
                found.extend(self.indexes_below(table, *own));
            }
        }
        found
    }

    /// 42809 for a change of a partition that only its table can make.
    pub(super) fn may_alter_partition(
        &self,
        table: &Table,
        operation: &AlterOperation,
    ) -> Result<()> {
        use AlterOperation as Operation;
        let catalog = self.catalog();
        let Some(parent) = table.partition_of.and_then(|oid| catalog.table(oid)) else {
            return Ok(());
        };
        let inherited = |verb: &str, column: &str| {
            let message = format!("cannot {verb} inherited column \"{column}\"");
            Err(SqlError::new("42P16", message))
        };
        let of_parent = |name: &str| {
            let mut checks = parent.checks.iter().map(|check| &check.name);
            let mut keys = parent.foreign_keys.iter().map(|key| &key.name);
            checks.any(|own| own == name) || keys.any(|own| own == name)
        };
        match operation {
            Operation::AddColumn { .. } => {
                Err(SqlError::new("42809", "cannot add column to a partition"))
            }
            Operation::DropColumn { name, .. } if table.column_named(name).is_some() => {
                inherited("drop", name)
            }
            Operation::RenameColumn { from, .. } if table.column_named(from).is_some() => {
                inherited("rename", from)
            }
            Operation::Type { column, .. } if table.column_named(column).is_some() => {
                inherited("alter", column)
            }
            Operation::NotNull {
                column,
                not_null: false,
            } if parent
                .column_named(column)
                .is_some_and(|at| parent.columns[at].not_null) =>
            {
                let message = format!("column \"{column}\" is marked NOT NULL in parent table");
                Err(SqlError::new("42P16", message))
            }
            Operation::DropConstraint { name, .. }
                if of_parent(name) || self.is_no_parents(table, name).is_err() =>
            {
                let message = format!(
                    "cannot drop inherited constraint \"{name}\" of relation \"{}\"",
                    table.name
                );
                Err(SqlError::new("42P16", message))
            }
            _ => Ok(()),
        }
    }

    /// 2BP01 where an index of a partition is there because its table has one.
    pub(super) fn is_no_parents(&self, table: &Table, name: &str) -> Result<()> {
        let catalog = self.catalog();
        let Some(parent) = table.partition_of.and_then(|oid| catalog.table(oid)) else {
            return Ok(());
        };
        let Some(index) = table.indexes.iter().find(|index| index.name == name) else {
            return Ok(());
        };
        let by = parent.partitioned.iter().flat_map(|by| &by.partitions);
        let mut links = by.flat_map(|partition| &partition.indexes);
        let of = links.find(|(_, own)| *own == index.oid);
        let of = of.and_then(|(of, _)| parent.indexes.iter().find(|index| index.oid == *of));
        let Some(of) = of else { return Ok(()) };
        let what = match index.constraint {
            true => format!("constraint {name} on table {}", table.name),
            false => format!("index {name}"),
        };
        let needs = match of.constraint {
            true => format!("constraint {} on table {}", of.name, parent.name),
            false => format!("index {}", of.name),
        };
        Err(SqlError::new(
            "2BP01",
            format!("cannot drop {what} because {needs} requires it"),
        )
        .with_hint(format!("You can drop {needs} instead.")))
    }
}

/// An operation as it is for the partitions of the table that it was for, if it is for them at all.
pub(super) fn of_partitions(operation: &AlterOperation) -> Option<AlterOperation> {
    use AlterOperation as Operation;
    match operation {
        Operation::AddConstraint(TableConstraint::Key {
            columns,
            include,
            primary,
            nulls_equal,
            ..
        }) => Some(Operation::AddConstraint(TableConstraint::Key {
            name: None,
            columns: columns.clone(),
            include: include.clone(),
            primary: *primary,
            nulls_equal: *nulls_equal,
        })),
        Operation::AddColumn { .. }
        | Operation::DropColumn { .. }
        | Operation::AddConstraint(_)
        | Operation::ValidateConstraint(_)
        | Operation::AlterConstraint { .. }
        | Operation::Default { .. }
        | Operation::DropExpression { .. }
        | Operation::NotNull { .. }
        | Operation::Type { .. }
        | Operation::RenameColumn { .. } => Some(operation.clone()),
        _ => None,
    }
}

/// Pairs of a table's indexes and those of its partition that are like them.
pub(super) fn linked(parent: &TableDef, table: &Table) -> Vec<(u32, u32)> {
    let mut taken: Vec<u32> = Vec::new();
    let mut pairs = Vec::new();
    for index in &parent.indexes {
        let free = table.indexes.iter().filter(|own| !taken.contains(&own.oid));
        let mut like = free.filter(|own| is_like((parent, index), (&table.def, own)));
        if let Some(own) = like.next() {
            taken.push(own.oid);
            pairs.push((index.oid, own.oid));
        }
    }
    pairs
}

/// Whether an index of a partition is what one of its table is.
pub(super) fn is_like(
    (parent, of): (&TableDef, &IndexDef),
    (table, own): (&TableDef, &IndexDef),
) -> bool {
    let same = |one: &[usize], other: &[usize]| {
        one.len() == other.len()
            && one.iter().zip(other).all(|(one, other)| {
                let (one, other) = (&parent.columns[*one], &table.columns[*other]);
                match (&one.hidden, &other.hidden) {
                    (None, None) => one.name == other.name,
                    (one, other) => one == other,
                }
            })
    };
    (of.unique, of.primary, of.constraint) == (own.unique, own.primary, own.constraint)
        && (of.kind, of.nulls_equal) == (own.kind, own.nulls_equal)
        && of.order == own.order
        && same(&of.columns, &own.columns)
        && same(&of.include, &own.include)
}
