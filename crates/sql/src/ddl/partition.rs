//! Declared partitions: made, attached and detached, and what definitions of a partitioned table do
//! to them. A partition's columns have the places that they have in the partitioned table, so that
//! a statement over that one means the same over each of them.

use std::sync::Arc;

use thermocline_engine::ddl::Change;
use thermocline_engine::{
    ColumnDef, ForeignKeyDef, IndexDef, LockMode, PartitionBound, PartitionDef, Table, TableDef,
};
use thermocline_values::value::{Value, ValueRef};

use super::create_table::KeyConstraint;
use super::options::{self, access_method};
use super::partition_bound::{covers_key, of_no_use, partitioned_by};
use super::partition_changes::{is_like, linked};
use super::{Definition, names};
use crate::error::{Result, SqlError};
use crate::parse::constraint::{ColumnConstraint, TableConstraint};
use crate::parse::index::CreateIndex;
use crate::parse::partition::BoundedBy;
use crate::parse::table::{AlterOperation, Columns, CreateTable};
use crate::temporary::is_temporary;

impl Definition<'_> {
    /// CREATE TABLE … PARTITION OF.
    pub(super) async fn create_partition(
        &mut self,
        create: &CreateTable,
        of: &BoundedBy,
        (schema, name): (String, String),
    ) -> Result<u32> {
        let parent = self.find_table(&of.table)?;
        self.lock_whole(&parent).await?;
        let parent = self.current(parent.oid)?;
        if parent.partitioned.is_none() {
            return Err(of_no_use(format!("\"{}\" is not partitioned", parent.name)));
        }
        is_as_lasting(&parent, &schema)?;
        let bound = self.bound(&parent, of)?;
        self.no_conflict(&parent, &name, (&bound, of))?;
        self.default_has_none(&parent, &bound).await?;
        let mut def = self.like_parent(&parent, &schema, &name);
        let said = options::read(&create.options)?;
        if !create.options.is_empty() {
            def.evictable = said.evictable;
            def.options.extend(said.texts);
        }
        if let Some(method) = &create.access_method {
            def.access_method = access_method(method)?;
        }
        if let Some(tablespace) = create.tablespace.as_ref().or(said.tablespace.as_ref()) {
            def.tablespace = self.tablespace_named(tablespace)?;
        }
        if let Some(by) = &create.partition_by {
            def.partitioned = Some(partitioned_by(&def, by)?);
            for index in def.indexes.iter().filter(|index| index.unique) {
                covers_key(&def, &index.columns, Some(index.primary))?;
            }
        }
        let oid = def.oid;
        self.apply(Change::CreateTable(def)).await?;
        for column in &create.columns {
            self.more_of_column(oid, column).await?;
        }
        for constraint in &create.constraints {
            let operation = AlterOperation::AddConstraint(constraint.clone());
            self.alter_one(oid, &operation).await?;
        }
        for key in &parent.foreign_keys {
            self.copy_foreign_key(oid, key).await?;
        }
        self.put_partition(&parent, oid, bound).await?;
        let table = self.current(oid)?;
        self.check_expressions(&table)?;
        Ok(oid)
    }

    /// A partition's definition, as its table's, with indexes of its own.
    fn like_parent(&self, parent: &Table, schema: &str, name: &str) -> TableDef {
        let columns = parent.columns.iter().map(|column| {
            // Its own sequence stays with the partitioned table, which numbers for all.
            let is_identity = column.identity.is_some();
            ColumnDef {
                identity: None,
                sequence: None,
                default: column.default.clone().filter(|_| !is_identity),
                missing: Value::Null,
                added_in: 0,
                ..column.clone()
            }
        });
        let mut def = TableDef {
            schema: schema.to_owned(),
            checks: parent.checks.clone(),
            partition_key: parent.partition_key.clone(),
            evictable: parent.evictable,
            options: parent.options.clone(),
            access_method: parent.access_method,
            tablespace: parent.tablespace,
            partition_of: Some(parent.oid),
            ..TableDef::new(self.db.allocate_oid(), name, columns.collect())
        };
        let mut made = vec![name.to_owned()];
        for index in &parent.indexes {
            let index = self.like_index(&def, index, &mut made);
            def.indexes.push(index);
        }
        def
    }

    /// An index like one of the partitioned table, with a name of its own.
    fn like_index(&self, def: &TableDef, index: &IndexDef, made: &mut Vec<String>) -> IndexDef {
        let catalog = self.catalog();
        let key = def.key_of(index).iter().chain(&index.include).copied();
        let columns = super::index_column_names(def, &key.collect::<Vec<_>>());
        let joined = names::joined(columns.iter().map(String::as_str));
        let (joined, label) = match (index.primary, index.constraint) {
            (true, _) => ("", "pkey"),
            (_, true) => (joined.as_str(), "key"),
            _ => (joined.as_str(), "idx"),
        };
        let name = names::choose(&def.name, joined, label, |name| {
            names::is_taken(&catalog, &def.schema, made, name)
        });
        made.push(name.clone());
        IndexDef {
            oid: self.db.allocate_oid(),
            name,
            ..index.clone()
        }
    }

    /// What a partition says more of a column: a default, NOT NULL, a constraint.
    async fn more_of_column(&mut self, oid: u32, column: &Columns) -> Result<()> {
        let Columns::Of(name, constraints) = column else {
            return Err(SqlError::syntax("a partition has the columns of its table"));
        };
        for constraint in constraints {
            let operation = match constraint {
                ColumnConstraint::Null => continue,
                ColumnConstraint::NotNull => AlterOperation::NotNull {
                    column: name.clone(),
                    not_null: true,
                },
                ColumnConstraint::Default(text) => AlterOperation::Default {
                    column: name.clone(),
                    default: Some(text.clone()),
                },
                ColumnConstraint::Of(constraint) => {
                    AlterOperation::AddConstraint(at_column(constraint, name))
                }
                ColumnConstraint::Identity { .. } | ColumnConstraint::Generated(_) => {
                    return Err(SqlError::unsupported(
                        "identity and generated columns of a partition alone are not supported",
                        "Define them in the partitioned table.",
                    ));
                }
            };
            self.alter_one(oid, &operation).await?;
        }
        Ok(())
    }

    /// An operation of ALTER TABLE on this table alone.
    async fn alter_one(&mut self, oid: u32, operation: &AlterOperation) -> Result<()> {
        let table = self.current(oid)?;
        Box::pin(self.alter_alone(&table, operation)).await
    }

    async fn copy_foreign_key(&mut self, oid: u32, key: &ForeignKeyDef) -> Result<()> {
        let referred = self.current(key.table)?;
        self.lock_whole(&referred).await?;
        let mut def = self.current(oid)?.def.clone();
        def.foreign_keys.push(ForeignKeyDef {
            oid: self.db.allocate_oid(),
            ..key.clone()
        });
        self.apply(Change::AlterTable(def)).await?;
        let mut referred = self.current(key.table)?.def.clone();
        if !referred.referenced_by.contains(&oid) {
            referred.referenced_by.push(oid);
            self.link(referred).await?;
        }
        Ok(())
    }

    /// Says in the partitioned table's definition that this is a partition of it.
    async fn put_partition(
        &mut self,
        parent: &Table,
        oid: u32,
        bound: PartitionBound,
    ) -> Result<()> {
        let table = self.current(oid)?;
        let mut def = self.current(parent.oid)?.def.clone();
        let indexes = linked(&def, &table);
        let by = def.partitioned.iter().flat_map(|by| &by.partitions);
        let mut defaults = by.filter(|of| of.bound == PartitionBound::Default);
        if let Some(default) = defaults.next() {
            // Who is about to store a row there looks again where it belongs.
            let default = self.current(default.table)?;
            for leaf in self.catalog().leaves_of(&default) {
                self.lock_whole(&leaf).await?;
                self.link(leaf.def.clone()).await?;
            }
        }
        if let Some(by) = &mut def.partitioned {
            by.partitions.push(PartitionDef {
                table: oid,
                bound,
                indexes,
            });
        }
        self.apply(Change::AlterTable(def)).await
    }

    /// Locks a table as ALTER TABLE does.
    pub(super) async fn lock_whole(&mut self, table: &Arc<Table>) -> Result<()> {
        let mode = LockMode::AccessExclusive;
        let locked = self.db.lock_to_define(self.txn, self.options, table, mode);
        Ok(locked.await?)
    }

    /// 23514 where the default partition has rows that a new bound asks for.
    async fn default_has_none(&mut self, parent: &Table, bound: &PartitionBound) -> Result<()> {
        let Some(by) = &parent.partitioned else {
            return Ok(());
        };
        let mut all = by.partitions.iter();
        let default = all.find(|partition| partition.bound == PartitionBound::Default);
        let Some(default) = default.map(|partition| partition.table) else {
            return Ok(());
        };
        let with_new = with_partition(parent, bound.clone());
        let new = by.partitions.len();
        let default = self.current(default)?;
        match self.some_row_is(&default, &with_new, |position| position == Some(new)).await? {
            false => Ok(()),
            true => Err(SqlError::new(
                "23514",
                format!(
                    "updated partition constraint for default partition \"{}\" would be violated by some row",
                    default.name
                ),
            )
            .with_table(&default.schema, &default.name)),
        }
    }

    /// Whether some row of a table, or of its partitions, belongs where `is` says by the map of another.
    async fn some_row_is(
        &mut self,
        table: &Arc<Table>,
        of: &Table,
        is: impl Fn(Option<usize>) -> bool + Send + Sync,
    ) -> Result<bool> {
        let (Some((map, _)), Some(by)) = (&of.partition_map, &of.partitioned) else {
            return Ok(false);
        };
        let catalog = self.catalog();
        for leaf in catalog.leaves_of(table) {
            self.lock_whole(&leaf).await?;
            let found = self.any_row(&leaf, |tuple| {
                let key = by.columns.iter().map(|column| leaf.value(tuple, *column));
                let key: Vec<ValueRef<'_>> = key.collect();
                Ok(is(map.find(&key)))
            });
            if found.await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// ALTER TABLE … ATTACH PARTITION.
    pub(super) async fn attach_partition(
        &mut self,
        parent: &Arc<Table>,
        attached: &BoundedBy,
    ) -> Result<()> {
        if parent.partitioned.is_none() {
            let message = format!("table \"{}\" is not partitioned", parent.name);
            return Err(SqlError::new("42809", message));
        }
        let table = self.find_plain_table(&attached.table)?;
        self.lock_whole(&table).await?;
        let table = self.current(table.oid)?;
        if table.partition_of.is_some() {
            let message = format!("\"{}\" is already a partition", table.name);
            return Err(SqlError::new("42809", message));
        }
        let catalog = self.catalog();
        let mut above = catalog.partition_ancestors(parent);
        if above.any(|of| of.oid == table.oid) || table.oid == parent.oid {
            return Err(
                SqlError::new("42P07", "circular inheritance not allowed").with_detail(format!(
                    "\"{}\" is already a child of \"{}\".",
                    parent.name, table.name
                )),
            );
        }
        is_as_lasting(parent, &table.schema)?;
        has_no_triggers(&table)?;
        fits_into(&table, parent)?;
        let bound = self.bound(parent, attached)?;
        self.no_conflict(parent, &table.name, (&bound, attached))?;
        for index in &parent.indexes {
            let table = self.current(table.oid)?;
            if !table
                .indexes
                .iter()
                .any(|own| is_like((&parent.def, index), (&table.def, own)))
            {
                self.index_like(&table, parent, index).await?;
            }
        }
        let table = self.current(table.oid)?;
        lies_like(&table, parent)?;
        let with_new = with_partition(parent, bound.clone());
        let new = with_new
            .partitioned
            .as_ref()
            .map_or(0, |by| by.partitions.len() - 1);
        if self
            .some_row_is(&table, &with_new, |position| position != Some(new))
            .await?
        {
            let message = format!(
                "partition constraint of relation \"{}\" is violated by some row",
                table.name
            );
            return Err(SqlError::new("23514", message).with_table(&table.schema, &table.name));
        }
        if bound != PartitionBound::Default {
            self.default_has_none(parent, &bound).await?;
        }
        for key in &parent.foreign_keys {
            let same = |own: &&ForeignKeyDef| own.table == key.table && own.columns == key.columns;
            if !table.foreign_keys.iter().any(|own| same(&own)) {
                self.copy_foreign_key(table.oid, key).await?;
                let number = self.current(table.oid)?.foreign_keys.len() - 1;
                self.verify_references(table.oid, number).await?;
            }
        }
        let mut def = self.current(table.oid)?.def.clone();
        def.partition_of = Some(parent.oid);
        self.apply(Change::AlterTable(def)).await?;
        self.put_partition(parent, table.oid, bound).await
    }

    /// Makes an index on a table that is to be a partition, or on one that is.
    pub(super) async fn index_like(
        &mut self,
        table: &Arc<Table>,
        parent: &Table,
        index: &IndexDef,
    ) -> Result<()> {
        let named = |column: &usize| parent.columns[*column].name.clone();
        if index.constraint {
            let key = KeyConstraint {
                name: None,
                columns: index.columns.iter().map(named).collect(),
                include: index.include.iter().map(named).collect(),
                primary: index.primary,
                nulls_equal: index.nulls_equal,
            };
            return self.add_key(table.oid, &key).await;
        }
        let of = vec![table.schema.clone(), table.name.clone()];
        let create = CreateIndex::like(&parent.def, index, of);
        Box::pin(self.create_index(&create)).await?;
        Ok(())
    }

    /// ALTER TABLE … DETACH PARTITION.
    pub(super) async fn detach_partition(
        &mut self,
        parent: &Arc<Table>,
        name: &[String],
    ) -> Result<()> {
        if parent.partitioned.is_none() {
            let message = format!("table \"{}\" is not partitioned", parent.name);
            return Err(SqlError::new("42809", message));
        }
        let table = self.find_table(name)?;
        self.lock_whole(&table).await?;
        if table.partition_of != Some(parent.oid) {
            let message = format!(
                "relation \"{}\" is not a partition of relation \"{}\"",
                table.name, parent.name
            );
            return Err(SqlError::new("42P01", message));
        }
        let mut def = self.current(table.oid)?.def.clone();
        def.partition_of = None;
        self.apply(Change::AlterTable(def)).await?;
        self.forget_partition(parent.oid, table.oid).await
    }

    /// Takes a partition out of the partitioned table's definition.
    pub(super) async fn forget_partition(&mut self, parent: u32, table: u32) -> Result<()> {
        let Some(parent) = self.catalog().table(parent).cloned() else {
            return Ok(());
        };
        self.lock_whole(&parent).await?;
        let mut def = self.current(parent.oid)?.def.clone();
        if let Some(by) = &mut def.partitioned {
            by.partitions.retain(|partition| partition.table != table);
        }
        self.link(def).await
    }
}

/// The table with one partition more, of no table.
fn with_partition(parent: &Table, bound: PartitionBound) -> Table {
    let mut def = parent.def.clone();
    if let Some(by) = &mut def.partitioned {
        by.partitions.push(PartitionDef {
            table: 0,
            bound,
            indexes: Vec::new(),
        });
    }
    Table::new(def, 1)
}

/// A constraint that stands at a column, as one of the table.
fn at_column(constraint: &TableConstraint, column: &str) -> TableConstraint {
    let mut constraint = constraint.clone();
    let columns = match &mut constraint {
        TableConstraint::Key { columns, .. } => columns,
        TableConstraint::ForeignKey(key) => &mut key.columns,
        TableConstraint::Check { .. } => return constraint,
    };
    if columns.is_empty() {
        columns.push(column.to_owned());
    }
    constraint
}

fn is_as_lasting(parent: &Table, schema: &str) -> Result<()> {
    match (is_temporary(&parent.schema), is_temporary(schema)) {
        (false, true) => Err(SqlError::new(
            "42809",
            format!(
                "cannot create a temporary relation as partition of permanent relation \"{}\"",
                parent.name
            ),
        )),
        (true, false) => Err(SqlError::new(
            "42809",
            format!(
                "cannot create a permanent relation as partition of temporary relation \"{}\"",
                parent.name
            ),
        )),
        _ => Ok(()),
    }
}

/// 0A000 for a table with triggers.
pub(super) fn has_no_triggers(table: &Table) -> Result<()> {
    match table.triggers.is_empty() {
        true => Ok(()),
        false => Err(SqlError::unsupported(
            format!("triggers of partition \"{}\" are not supported", table.name),
            "Drop them, and have the application do what they do.",
        )),
    }
}

/// 42804 unless a table has the columns and checks of the one that it is to be a partition of.
fn fits_into(table: &Table, parent: &Table) -> Result<()> {
    let mismatch = |message: String| SqlError::new("42804", message);
    for (_, column) in parent.live_columns() {
        let name = &column.name;
        let Some(own) = table.column_named(name).map(|at| &table.columns[at]) else {
            return Err(mismatch(format!(
                "child table is missing column \"{name}\""
            )));
        };
        if own.data_type != column.data_type || own.domain != column.domain {
            return Err(mismatch(format!(
                "child table \"{}\" has different type for column \"{name}\"",
                table.name
            )));
        }
        if column.not_null && !own.not_null {
            return Err(mismatch(format!(
                "column \"{name}\" in child table must be marked NOT NULL"
            )));
        }
        if own.generated != column.generated {
            return Err(mismatch(format!(
                "column \"{name}\" in child table must {}be a generated column",
                if column.generated { "" } else { "not " }
            )));
        }
    }
    for (_, column) in table.live_columns() {
        if parent.column_named(&column.name).is_none() {
            return Err(mismatch(format!(
                "table \"{}\" contains column \"{}\" not found in parent \"{}\"",
                table.name, column.name, parent.name
            ))
            .with_detail("The new partition may contain only the columns present in parent."));
        }
    }
    for check in &parent.checks {
        let mut own = table.checks.iter();
        if !own.any(|own| own.name == check.name && own.expression == check.expression) {
            return Err(mismatch(format!(
                "child table is missing constraint \"{}\"",
                check.name
            )));
        }
    }
    Ok(())
}

/// 0A000 where the columns of a table lie elsewhere than those of the one that it is to be a
/// partition of.
fn lies_like(table: &Table, parent: &Table) -> Result<()> {
    let both = table.columns.iter().zip(&parent.columns);
    let mut same = both.map(|(own, of)| {
        own.is_seen() == of.is_seen()
            && own.hidden == of.hidden
            && (!own.is_seen() || own.name == of.name)
    });
    match table.columns.len() == parent.columns.len() && same.all(|same| same) {
        true => Ok(()),
        false => Err(SqlError::unsupported(
            format!(
                "a partition whose columns are not in the order of table \"{}\" is not supported",
                parent.name
            ),
            "Create it with PARTITION OF, or with LIKE, and copy the rows; dropped columns and indexes over expressions have places, too.",
        )),
    }
}
