//! DROP TABLE, VIEW, INDEX, SEQUENCE and SCHEMA, and TRUNCATE.

use thermocline_engine::ColumnDef;
use thermocline_engine::ddl::Change;

use super::sequence::regclass;
use super::{Definition, no_schema};
use crate::error::{Result, SqlError};
use crate::parse::statement::{Drop, Dropped};
use crate::parse::table::Truncate;

impl Definition<'_> {
    pub(super) async fn drop_objects(&mut self, drop: &Drop) -> Result<&'static str> {
        let (kind, if_exists, cascade) = (drop.kind, drop.if_exists, drop.cascade);
        // Tables and views go together: what is named stands in nobody's way.
        let mut together = Vec::new();
        for parts in &drop.names {
            match kind {
                Dropped::Schema => self.drop_schema(parts, if_exists, cascade).await?,
                Dropped::Table
                | Dropped::View
                | Dropped::Materialized
                | Dropped::Index
                | Dropped::Sequence => {
                    let later = self.drop_relation(kind, parts, if_exists, cascade);
                    together.extend(later.await?.filter(|oid| !together.contains(oid)));
                }
                Dropped::Database | Dropped::None(_) => {
                    self.drop_unknown(kind, parts, if_exists)?;
                }
            }
        }
        self.drop_together(&together, cascade).await?;
        Ok(kind.tag())
    }

    /// A kind of object of which there is none.
    fn drop_unknown(&mut self, kind: Dropped, parts: &[String], if_exists: bool) -> Result<()> {
        let (message, sqlstate) = self.missing(kind, parts, if_exists);
        if if_exists {
            self.notice("00000", format!("{message}, skipping"));
            return Ok(());
        }
        Err(SqlError::new(sqlstate, message))
    }

    /// What is said of what is not there, with its code.
    fn missing(&self, kind: Dropped, parts: &[String], skips: bool) -> (String, &'static str) {
        let what = kind.name();
        let of_table = match kind {
            Dropped::None(missing) if missing.of_table => parts.split_last(),
            _ => None,
        };
        if let Some((name, table)) = of_table {
            let shown = table.join(".");
            if self.find_relation(table).is_none() {
                return (format!("relation \"{shown}\" does not exist"), "42P01");
            }
            let of = match skips || what == "rule" {
                true => "relation",
                false => "table",
            };
            let table = table.last().map_or("", String::as_str);
            let message = format!("{what} \"{name}\" for {of} \"{table}\" does not exist");
            return (message, "42704");
        }
        let sqlstate = match kind {
            Dropped::Database => "3D000",
            Dropped::None(missing) if missing.is_relation => "42P01",
            _ => "42704",
        };
        let name = parts.join(".");
        (format!("{what} \"{name}\" does not exist"), sqlstate)
    }

    /// Drops an index or a sequence; the number of a table or a view, which go later.
    async fn drop_relation(
        &mut self,
        dropped: Dropped,
        parts: &[String],
        if_exists: bool,
        cascade: bool,
    ) -> Result<Option<u32>> {
        let kind = dropped.name();
        let name = parts.join(".");
        let Some((schema, relation)) = self.find_relation(parts) else {
            let message = format!("{kind} \"{name}\" does not exist");
            if if_exists {
                self.notice("00000", format!("{message}, skipping"));
                return Ok(None);
            }
            let sqlstate = match dropped {
                Dropped::Index => "42704",
                _ => "42P01",
            };
            return Err(SqlError::new(sqlstate, message));
        };
        let catalog = self.catalog();
        let is = |other: &str| {
            let [of_kind, of_other] = [kind, other].map(|name| match name {
                "index" => "an",
                _ => "a",
            });
            let message = format!("\"{relation}\" is not {of_kind} {kind}");
            let command = other.to_uppercase();
            SqlError::new("42809", message)
                .with_hint(format!("Use DROP {command} to remove {of_other} {other}."))
        };
        if let Some(table) = catalog.table_by_name(&schema, &relation) {
            let of_kind = match table.is_materialized() {
                true => Dropped::Materialized,
                false => Dropped::Table,
            };
            if dropped != of_kind {
                return Err(is(table.kind()));
            }
            return Ok(Some(table.oid));
        }
        if let Some(view) = catalog.view_by_name(&schema, &relation) {
            if dropped != Dropped::View {
                return Err(is("view"));
            }
            return Ok(Some(view.oid));
        }
        if let Some((table, at)) = catalog.index_by_name(&schema, &relation) {
            if dropped != Dropped::Index {
                return Err(is("index"));
            }
            let index = &table.indexes[at];
            if index.constraint {
                let table_name = &table.name;
                return Err(depended_on(format!(
                    "cannot drop index {relation} because constraint {relation} on table {table_name} requires it"
                ))
                .with_hint(format!(
                    "You can drop constraint {relation} on table {table_name} instead."
                )));
            }
            self.is_no_parents(table, &relation)?;
            let what = format!("index {relation}");
            self.free_of_need(table, index.oid, &what, cascade).await?;
            let (table, index) = (table.oid, index.oid);
            self.drop_index(table, index).await?;
            return Ok(None);
        }
        if let Some(sequence) = catalog.sequence_by_name(&schema, &relation) {
            if dropped != Dropped::Sequence {
                return Err(is("sequence"));
            }
            self.drop_sequence(sequence.oid, cascade).await?;
            return Ok(None);
        }
        Err(SqlError::undefined_table(&name))
    }

    /// Drops tables with their partitions, and views, and with CASCADE the views that read them.
    pub(super) async fn drop_together(&mut self, oids: &[u32], cascade: bool) -> Result<()> {
        let named = oids;
        let all = self.with_partitions(oids.to_vec()).await?;
        let oids = all.as_slice();
        let catalog = self.catalog();
        let is_view = |oid: &&u32| catalog.view_of(**oid).is_some();
        let views: Vec<u32> = oids.iter().filter(is_view).copied().collect();
        let actor = self.actor()?;
        for oid in named {
            let change = match catalog.views.contains_key(oid) {
                true => Change::DropView(*oid),
                false => Change::DropTable(*oid),
            };
            super::rights::check(&change, &actor, &catalog)?;
            if let (true, Some(table)) = (views.contains(oid), catalog.table(*oid)) {
                self.nothing_is_pending(table, "DROP TABLE")?;
            }
        }
        loop {
            match self.drop_views_over(oids, &views, cascade).await {
                // Somebody has made another view while this waited for its lock.
                Err(error) if error.sqlstate == "2BP01" && error.detail.is_none() => {}
                dropped => break dropped?,
            }
        }
        let is_table = |oid: &u32| !views.contains(oid);
        let tables: Vec<u32> = oids.iter().copied().filter(is_table).collect();
        self.free_of_references(&tables, cascade).await?;
        for oid in &tables {
            let table = self.current(*oid)?;
            self.nothing_is_pending(&table, "DROP TABLE")?;
            if let Some(parent) = table.partition_of.filter(|parent| !tables.contains(parent)) {
                self.forget_partition(parent, *oid).await?;
            }
            // Who owns a partitioned table drops its partitions with it.
            match named.contains(oid) {
                true => self.apply(Change::DropTable(*oid)).await?,
                false => self.apply_unasked(Change::DropTable(*oid)).await?,
            }
        }
        Ok(())
    }

    async fn drop_views_over(&mut self, oids: &[u32], views: &[u32], cascade: bool) -> Result<()> {
        self.drop_dependents(oids, cascade).await?;
        self.drop_views(views).await
    }

    /// Drops a sequence; the defaults that use it go with it if told to.
    pub(super) async fn drop_sequence(&mut self, oid: u32, cascade: bool) -> Result<()> {
        let catalog = self.catalog();
        let Some(sequence) = catalog.sequences.get(&oid) else {
            return Ok(());
        };
        let named = regclass(sequence);
        let uses = |column: &ColumnDef| {
            let default = column.default.as_deref();
            column.sequence == Some(oid) || default.is_some_and(|text| text.contains(&named))
        };
        let mut users = Vec::new();
        for table in catalog.tables.values() {
            let columns = table.live_columns().filter(|(_, column)| uses(column));
            users.extend(columns.map(|(place, column)| (table, place, column)));
        }
        let of_identity = |(_, _, column): &&(_, _, &ColumnDef)| column.identity.is_some();
        if let Some((table, _, column)) = users.iter().find(of_identity) {
            return Err(depended_on(format!(
                "cannot drop sequence {} because column {} of table {} requires it",
                sequence.name, column.name, table.name
            )));
        }
        if !cascade && !users.is_empty() {
            let lines = users.iter().map(|(table, _, column)| {
                format!(
                    "default value for column {} of table {} depends on sequence {}",
                    column.name, table.name, sequence.name
                )
            });
            return Err(depended_on(format!(
                "cannot drop sequence {} because other objects depend on it",
                sequence.name
            ))
            .with_detail(lines.collect::<Vec<_>>().join("\n"))
            .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        for (table, place, _) in users {
            let mut def = self.current(table.oid)?.def.clone();
            def.columns[place].default = None;
            def.columns[place].sequence = None;
            self.apply(Change::AlterTable(def)).await?;
        }
        self.apply(Change::DropSequence(oid)).await
    }

    pub(super) async fn drop_schema(
        &mut self,
        parts: &[String],
        if_exists: bool,
        cascade: bool,
    ) -> Result<()> {
        let name = parts.last().map_or("", String::as_str);
        let catalog = self.catalog();
        if catalog.schema(name).is_none() {
            if if_exists {
                self.notice(
                    "00000",
                    format!("schema \"{name}\" does not exist, skipping"),
                );
                return Ok(());
            }
            return Err(no_schema(name));
        }
        let tables: Vec<u32> = catalog
            .tables
            .values()
            .filter(|table| table.schema == name && !table.is_materialized())
            .map(|table| table.oid)
            .collect();
        let sequences: Vec<u32> = catalog
            .sequences
            .values()
            .filter(|sequence| sequence.schema == name)
            .map(|sequence| sequence.oid)
            .collect();
        let views = catalog.all_views().filter(|view| view.schema == name);
        let views: Vec<u32> = views.map(|view| view.oid).collect();
        let types = catalog.types.values().filter(|def| def.schema == name);
        let types: Vec<_> = types.cloned().collect();
        let functions = catalog.functions.values().filter(|def| def.schema == name);
        let functions: Vec<_> = functions.cloned().collect();
        let empty = tables.is_empty()
            && sequences.is_empty()
            && views.is_empty()
            && types.is_empty()
            && functions.is_empty();
        if !cascade && !empty {
            return Err(depended_on(format!(
                "cannot drop schema {name} because other objects depend on it"
            ))
            .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        let inside: Vec<u32> = tables.iter().chain(&views).copied().collect();
        self.drop_dependents(&inside, cascade).await?;
        self.drop_views(&views).await?;
        self.free_of_references(&tables, cascade).await?;
        for table in &tables {
            let parent = self.current(*table)?.partition_of;
            if let Some(parent) = parent.filter(|parent| !tables.contains(parent)) {
                self.forget_partition(parent, *table).await?;
            }
        }
        for oid in tables
            .iter()
            .flat_map(|oid| self.below(*oid))
            .collect::<Vec<_>>()
        {
            if !tables.contains(&oid) {
                // In another schema.
                self.drop_together(&[oid], cascade).await?;
            }
        }
        for table in tables {
            self.apply(Change::DropTable(table)).await?;
        }
        for sequence in sequences {
            // Those that a dropped table owned are gone with it.
            if self.catalog().sequences.contains_key(&sequence) {
                self.drop_sequence(sequence, true).await?;
            }
        }
        for def in functions {
            self.drop_function(&def, true).await?;
        }
        for def in types {
            self.drop_type_def(&def, true).await?;
        }
        self.apply(Change::DropSchema(name.to_owned())).await
    }

    pub(super) async fn truncate(&mut self, truncate: &Truncate) -> Result<&'static str> {
        for name in &truncate.only {
            if self.find_table(name)?.partitioned.is_some() {
                let message = "cannot truncate only a partitioned table";
                return Err(SqlError::new("42809", message).with_hint(
                    "Do not specify the ONLY keyword, or use TRUNCATE ONLY on the partitions directly.",
                ));
            }
        }
        let tables = truncate.tables.iter();
        let tables = tables
            .map(|name| Ok(self.find_plain_table(name)?.oid))
            .collect::<Result<Vec<u32>>>()?;
        let tables = self.with_partitions(tables).await?;
        let tables = self.truncated_together(tables, truncate.cascade)?;
        for oid in &tables {
            let table = self.current(*oid)?;
            self.nothing_is_pending(&table, "TRUNCATE")?;
        }
        let restart_identity = truncate.restart_identity;
        if self.truncates.is_some() {
            let tables = tables.iter().map(|oid| self.current(*oid));
            self.truncates = Some(tables.collect::<Result<_>>()?);
            return Ok("TRUNCATE TABLE");
        }
        self.apply(Change::Truncate {
            tables,
            restart_identity,
        })
        .await?;
        Ok("TRUNCATE TABLE")
    }
}

#[cold]
fn depended_on(message: String) -> SqlError {
    SqlError::new("2BP01", message)
}
