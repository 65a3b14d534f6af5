//! CREATE TABLE: columns, constraints and options become a table definition
//! with its indexes and sequences.

use std::sync::Arc;

use thermocline_engine::ddl::Change;
use thermocline_engine::{
    CheckDef, ColumnDef, Identity, IndexDef, IndexKind, SequenceDef, Table, TableDef,
};

use super::check::{CheckConstraint, named_check};
use super::column_type::column_type;
use super::named::table_with_schemas;
use super::options::{self, TableOptions, access_method};
use super::partition_bound::{covers_key, partitioned_by};
use super::{Definition, exists, names};
use crate::bind::{self, TypeNames};
use crate::error::{Result, SqlError};
use crate::parse::constraint::{ColumnConstraint, ForeignKey, TableConstraint};
use crate::parse::index::CreateIndex;
use crate::parse::sequence::SequenceOptions;
use crate::parse::statement::{Life, OnCommit, TableOf};
use crate::parse::table::{Column, Columns, CreateTable};
use crate::temporary::{is_temporary, path_within};

/// PostgreSQL's limit.
pub(super) const COLUMNS_MAX: usize = 1600;
/// PostgreSQL's limit.
pub(super) const INDEX_COLUMNS_MAX: usize = 32;

/// A PRIMARY KEY or UNIQUE.
pub(super) struct KeyConstraint {
    pub(super) name: Option<String>,
    pub(super) columns: Vec<String>,
    pub(super) include: Vec<String>,
    pub(super) primary: bool,
    /// NULLS NOT DISTINCT
    pub(super) nulls_equal: bool,
}

/// A column's own part of its definition.
pub(super) struct ColumnPart {
    pub(super) def: ColumnDef,
    /// The sequence it owns, if it is serial or an identity column.
    pub(super) sequence: Option<SequenceOptions>,
}

/// What a definition is built up of.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) columns: Vec<ColumnPart>,
    pub(super) keys: Vec<KeyConstraint>,
    pub(super) checks: Vec<CheckConstraint>,
    /// Foreign keys, and the columns that they stand at.
    pub(super) foreign_keys: Vec<(ForeignKey, Option<String>)>,
    /// Indexes that are no constraints.
    pub(super) indexes: Vec<PlainIndex>,
    /// Indexes of more than columns, which are made when the table is there.
    pub(super) computed_indexes: Vec<CreateIndex>,
}

/// An index that is no constraint.
pub(super) struct PlainIndex {
    pub(super) columns: Vec<String>,
    pub(super) unique: bool,
    pub(super) kind: IndexKind,
}

impl Definition<'_> {
    pub(super) async fn create_table(&mut self, create: &CreateTable) -> Result<&'static str> {
        const TAG: &str = "CREATE TABLE";
        let mut options = options::read(&create.options)?;
        if let Some(method) = create.access_method.as_deref().or(self.access_method) {
            options.access_method = access_method(method)?;
        }
        let life = create.life;
        let (schema, name) = self.new_name(&create.name, life.temporary).await?;
        check_life(life, &schema)?;
        if self.catalog().relation_exists(&schema, &name) {
            if create.if_not_exists {
                self.notice(
                    "42P07",
                    format!("relation \"{name}\" already exists, skipping"),
                );
                return Ok(TAG);
            }
            return Err(exists(&name));
        }
        if let Some(of) = &create.partition_of {
            let partition = self.create_partition(create, of, (schema, name));
            let oid = Box::pin(partition).await?;
            self.note_life(oid, life);
            return Ok(TAG);
        }
        let catalog = self.catalog();
        let mut parts = self.parts(create, self.type_names(&catalog))?;
        let foreign_keys = std::mem::take(&mut parts.foreign_keys);
        let said = create
            .tablespace
            .as_deref()
            .or(options.tablespace.as_deref());
        let tablespace = match said {
            Some(name) => self.tablespace_named(name)?,
            None if life.temporary => 0,
            None => self.tablespace_by_default(),
        };
        let computed_indexes = std::mem::take(&mut parts.computed_indexes);
        let (mut def, sequences) = self.table_def(&schema, &name, parts, options)?;
        def.tablespace = tablespace;
        if let Some(by) = &create.partition_by {
            def.partitioned = Some(partitioned_by(&def, by)?);
            for index in def.indexes.iter().filter(|index| index.unique) {
                covers_key(&def, &index.columns, Some(index.primary))?;
            }
        }
        let path = path_within(&schema, self.search_path);
        table_with_schemas(&mut def, &catalog, &path)?;
        let oid = def.oid;
        for sequence in sequences {
            self.apply(Change::CreateSequence(sequence)).await?;
        }
        self.apply(Change::CreateTable(def)).await?;
        let catalog = self.catalog();
        let table = catalog
            .table(oid)
            .ok_or_else(|| SqlError::internal("the table that was made is not there"))?;
        self.check_expressions(table)?;
        for index in computed_indexes {
            let table = vec![schema.clone(), name.clone()];
            self.create_index(&CreateIndex { table, ..index }).await?;
        }
        for (key, column) in &foreign_keys {
            self.add_foreign_key(oid, key, column.as_deref(), true)
                .await?;
        }
        self.note_life(oid, life);
        Ok(TAG)
    }

    fn note_life(&mut self, oid: u32, life: Life) {
        if let Some(on_commit @ (OnCommit::DeleteRows | OnCommit::Drop)) = life.on_commit {
            self.on_commit.push((oid, on_commit));
        }
    }

    /// A table of columns whose types are known.
    pub(super) async fn create_table_of(&mut self, table: &TableOf) -> Result<&'static str> {
        const TAG: &str = "CREATE TABLE AS";
        let (schema, name) = self.new_name(&table.name, table.life.temporary).await?;
        check_life(table.life, &schema)?;
        if self.catalog().relation_exists(&schema, &name) {
            if table.if_not_exists {
                let message = format!("relation \"{name}\" already exists, skipping");
                self.notice("42P07", message);
                return Ok(TAG);
            }
            return Err(exists(&name));
        }
        if table.columns.len() > COLUMNS_MAX {
            return Err(SqlError::new(
                "54011",
                format!("tables can have at most {COLUMNS_MAX} columns"),
            ));
        }
        let columns = table.columns.iter().map(|column| ColumnPart {
            def: ColumnDef {
                domain: column.domain,
                ..ColumnDef::new(&column.name, column.data_type)
            },
            sequence: None,
        });
        let parts = Parts {
            columns: columns.collect(),
            ..Parts::default()
        };
        let mut options = TableOptions::default();
        if let Some(method) = self.access_method {
            options.access_method = access_method(method)?;
        }
        let (mut def, _) = self.table_def(&schema, &name, parts, options)?;
        if !table.life.temporary {
            def.tablespace = self.tablespace_by_default();
        }
        let oid = def.oid;
        self.apply(Change::CreateTable(def)).await?;
        self.note_life(oid, table.life);
        Ok(TAG)
    }

    /// The definition with all its object ids and names, and the sequences it
    /// needs.
    pub(super) fn table_def(
        &mut self,
        schema: &str,
        name: &str,
        parts: Parts,
        options: TableOptions,
    ) -> Result<(TableDef, Vec<SequenceDef>)> {
        let oid = self.db.allocate_oid();
        let mut made = vec![name.to_owned()];
        let mut def = TableDef {
            schema: schema.to_owned(),
            evictable: options.evictable,
            options: options.texts,
            access_method: options.access_method,
            ..TableDef::new(
                oid,
                name.to_owned(),
                Vec::with_capacity(parts.columns.len()),
            )
        };
        let mut sequences = Vec::new();
        for (position, mut part) in parts.columns.into_iter().enumerate() {
            if let Some(sequence) = part.sequence.take() {
                let sequence =
                    self.owned_sequence(&def, &mut part.def, position, &sequence, &mut made)?;
                sequences.push(sequence);
            }
            def.columns.push(part.def);
        }
        // The primary key comes first, whatever the order of the statement.
        for primary in [true, false] {
            for key in parts.keys.iter().filter(|key| key.primary == primary) {
                let kind = if primary {
                    options.primary_key
                } else {
                    IndexKind::BTree
                };
                let index = self.key_index(&mut def, key, kind, &mut made)?;
                def.indexes.push(index);
            }
        }
        for index in &parts.indexes {
            let index = self.plain_index(&def, index, &mut made)?;
            def.indexes.push(index);
        }
        for check in parts.checks {
            let named = named_check(&def, check)?;
            // There are no rows that were not looked at.
            let validated = true;
            def.checks.push(CheckDef { validated, ..named });
        }
        def.partition_key = match &options.partition_key {
            Some(columns) => columns
                .iter()
                .map(|column| {
                    let place = position(&def, column)?;
                    with_key(&def.columns[place])?;
                    Ok(place)
                })
                .collect::<Result<_>>()?,
            None => primary_key(&def).to_vec(),
        };
        Ok((def, sequences))
    }

    /// The sequence of a serial or identity column, and that column's default.
    pub(super) fn owned_sequence(
        &self,
        table: &TableDef,
        column: &mut ColumnDef,
        position: usize,
        options: &SequenceOptions,
        made: &mut Vec<String>,
    ) -> Result<SequenceDef> {
        let catalog = self.catalog();
        let taken = |name: &str| names::is_taken(&catalog, &table.schema, made, name);
        let name = match options.name.as_deref() {
            None => names::choose(&table.name, &column.name, "seq", taken),
            Some([name]) if taken(name) => return Err(exists(name)),
            Some([name]) => names::truncated(name),
            Some([schema, name]) if *schema == table.schema => match taken(name) {
                true => return Err(exists(name)),
                false => names::truncated(name),
            },
            Some(_) => {
                let message = "sequence must be in same schema as table it is linked to";
                return Err(SqlError::new("55000", message));
            }
        };
        made.push(name.clone());
        let oid = self.db.allocate_oid();
        let mut sequence =
            super::sequence::definition(oid, &table.schema, &name, options, column.data_type)?;
        sequence.owned_by = Some((table.oid, position));
        column.sequence = Some(oid);
        column.not_null = true;
        if column.identity.is_none() {
            column.default = Some(super::sequence::next_of(&sequence));
        }
        Ok(sequence)
    }

    /// The index of a PRIMARY KEY or UNIQUE; its columns become NOT NULL for
    /// the former.
    pub(super) fn key_index(
        &self,
        def: &mut TableDef,
        key: &KeyConstraint,
        kind: IndexKind,
        made: &mut Vec<String>,
    ) -> Result<IndexDef> {
        if key.primary && def.indexes.iter().any(|index| index.primary) {
            return Err(second_primary_key(&def.name));
        }
        let what = if key.primary { "primary key" } else { "unique" };
        let columns = key_columns(def, &key.columns, what)?;
        if key.columns.len() + key.include.len() > INDEX_COLUMNS_MAX {
            return Err(too_many_columns());
        }
        let include = key.include.iter().map(|name| in_key(def, name));
        let include = include.collect::<Result<_>>()?;
        if key.primary {
            for column in &columns {
                def.columns[*column].not_null = true;
            }
        }
        let catalog = self.catalog();
        let taken = |name: &str| names::is_taken(&catalog, &def.schema, made, name);
        let name = match &key.name {
            Some(name) if taken(name) => return Err(exists(name)),
            Some(name) if def.has_constraint(name) => return Err(has_constraint(def, name)),
            Some(name) => name.clone(),
            None if key.primary => names::choose(&def.name, "", "pkey", taken),
            None => {
                let all = key.columns.iter().chain(&key.include);
                let joined = names::joined(all.map(String::as_str));
                names::choose(&def.name, &joined, "key", taken)
            }
        };
        made.push(name.clone());
        Ok(IndexDef {
            oid: self.db.allocate_oid(),
            name,
            columns,
            unique: true,
            primary: key.primary,
            constraint: true,
            kind,
            include,
            nulls_equal: key.nulls_equal,
            order: Vec::new(),
        })
    }

    fn plain_index(
        &self,
        def: &TableDef,
        index: &PlainIndex,
        made: &mut Vec<String>,
    ) -> Result<IndexDef> {
        let columns = index.columns.iter().map(|name| position(def, name));
        let catalog = self.catalog();
        let joined = names::joined(index.columns.iter().map(String::as_str));
        let name = names::choose(&def.name, &joined, "idx", |name| {
            names::is_taken(&catalog, &def.schema, made, name)
        });
        made.push(name.clone());
        Ok(IndexDef {
            oid: self.db.allocate_oid(),
            name,
            columns: columns.collect::<Result<_>>()?,
            unique: index.unique,
            primary: false,
            constraint: false,
            kind: index.kind,
            include: Vec::new(),
            nulls_equal: false,
            order: Vec::new(),
        })
    }

    /// Takes the statement apart.
    fn parts(&self, create: &CreateTable, names: TypeNames<'_>) -> Result<Parts> {
        let mut parts = Parts::default();
        for columns in &create.columns {
            let known = parts.columns.len();
            match columns {
                Columns::One(column) => {
                    let relation = create.name.last().map_or("", String::as_str);
                    let part = column_part(column, relation, names, &mut parts)?;
                    parts.columns.push(part);
                }
                Columns::Like(like) => self.like(like, &mut parts)?,
                Columns::Of(..) => {
                    return Err(SqlError::syntax("a column without a type"));
                }
            }
            if parts.columns.len() > COLUMNS_MAX {
                return Err(SqlError::new(
                    "54011",
                    format!("tables can have at most {COLUMNS_MAX} columns"),
                ));
            }
            let (before, new) = parts.columns.split_at(known);
            let mut new = new.iter().map(|part| &part.def.name);
            if let Some(name) = new.find(|name| before.iter().any(|part| part.def.name == **name)) {
                return Err(SqlError::new(
                    "42701",
                    format!("column \"{name}\" specified more than once"),
                ));
            }
        }
        for constraint in &create.constraints {
            parts.add(constraint, None);
        }
        Ok(parts)
    }

    /// Binds the defaults and checks of a table that was made, for their
    /// errors.
    pub(super) fn check_expressions(&self, table: &Arc<Table>) -> Result<()> {
        for column in &table.columns {
            if let Some(text) = column.generation() {
                self.kept(&table.schema, |context| {
                    bind::bind_generated(text, table, &column.name, column.data_type, context)
                })?;
            } else if let (Some(default), None) = (&column.default, column.sequence) {
                self.kept(&table.schema, |context| {
                    bind::bind_default(default, &column.name, column.data_type, context)
                })?;
            }
        }
        for check in &table.checks {
            self.kept(&table.schema, |context| {
                bind::bind_check(&check.expression, table, context)
            })?;
        }
        Ok(())
    }
}

/// The columns of the primary key.
pub(super) fn primary_key(def: &TableDef) -> &[usize] {
    def.indexes
        .iter()
        .find(|index| index.primary)
        .map_or(&[], |index| &index.columns)
}

/// The place of a column.
pub(super) fn position(def: &TableDef, name: &str) -> Result<usize> {
    def.column_named(name)
        .ok_or_else(|| SqlError::undefined_column(name))
}

/// The places of a key's columns.
fn key_columns(def: &TableDef, names: &[String], what: &str) -> Result<Vec<usize>> {
    if names.len() > INDEX_COLUMNS_MAX {
        return Err(too_many_columns());
    }
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let column = in_key(def, name)?;
        with_key(&def.columns[column])?;
        if columns.contains(&column) {
            return Err(SqlError::new(
                "42701",
                format!("column \"{name}\" appears twice in {what} constraint"),
            ));
        }
        columns.push(column);
    }
    Ok(columns)
}

/// The column that a key names.
fn in_key(def: &TableDef, name: &str) -> Result<usize> {
    def.column_named(name).ok_or_else(|| {
        let message = format!("column \"{name}\" named in key does not exist");
        SqlError::new("42703", message)
    })
}

#[cold]
pub(super) fn too_many_columns() -> SqlError {
    let message = format!("cannot use more than {INDEX_COLUMNS_MAX} columns in an index");
    SqlError::new("54011", message)
}

#[cold]
pub(super) fn second_primary_key(table: &str) -> SqlError {
    let message = format!("multiple primary keys for table \"{table}\" are not allowed");
    SqlError::new("42P16", message)
}

/// The error of a second constraint of a name.
#[cold]
pub(super) fn has_constraint(def: &TableDef, name: &str) -> SqlError {
    let message = format!(
        "constraint \"{name}\" for relation \"{}\" already exists",
        def.name
    );
    SqlError::new("42710", message)
}

/// 42P16 for what only temporary tables have.
fn check_life(life: Life, schema: &str) -> Result<()> {
    match life.on_commit.is_none() || is_temporary(schema) {
        true => Ok(()),
        false => Err(SqlError::new(
            "42P16",
            "ON COMMIT can only be used on temporary tables",
        )),
    }
}

impl Parts {
    /// Adds a constraint, of this column if it stands at one.
    pub(super) fn add(&mut self, constraint: &TableConstraint, column: Option<&str>) {
        match constraint {
            TableConstraint::Key {
                name,
                columns,
                include,
                primary,
                nulls_equal,
            } => self.keys.push(KeyConstraint {
                name: name.clone(),
                columns: match column {
                    Some(column) => vec![column.to_owned()],
                    None => columns.clone(),
                },
                include: include.clone(),
                primary: *primary,
                nulls_equal: *nulls_equal,
            }),
            TableConstraint::Check {
                name,
                expression,
                validated,
            } => self.checks.push(CheckConstraint {
                name: name.clone(),
                column: column.map(str::to_owned),
                expression: expression.clone(),
                validated: *validated,
            }),
            TableConstraint::ForeignKey(key) => {
                self.foreign_keys
                    .push(((**key).clone(), column.map(str::to_owned)));
            }
        }
    }
}

/// 0A000 for a column that no index can be over.
pub(super) fn with_key(column: &ColumnDef) -> Result<()> {
    if column.data_type.has_key() {
        return Ok(());
    }
    let message = format!(
        "an index or key over column \"{}\" of type {} is not supported",
        column.name, column.data_type
    );
    Err(SqlError::unsupported(
        message,
        "Keep what you look for in a column of its own, for instance of type text, and index that.",
    ))
}

/// Reads a column; its constraints go to `parts`.
pub(super) fn column_part(
    column: &Column,
    relation: &str,
    names: TypeNames<'_>,
    parts: &mut Parts,
) -> Result<ColumnPart> {
    let name = super::names::truncated(&column.name);
    not_systems(&name)?;
    let declared = column_type(&column.type_text, names)?;
    let data_type = declared.data_type;
    let mut part = ColumnPart {
        def: ColumnDef {
            domain: declared.domain,
            ..ColumnDef::new(&name, data_type)
        },
        sequence: declared.serial.then(SequenceOptions::default),
    };
    let mut nullable = false;
    let of = format!("column \"{name}\" of table \"{relation}\"");
    for constraint in &column.constraints {
        match constraint {
            ColumnConstraint::Null => nullable = true,
            ColumnConstraint::NotNull => part.def.not_null = true,
            ColumnConstraint::Default(text) => {
                if part.def.generated {
                    return Err(two_sources("both default and generation expression", &of));
                }
                if part.def.default.is_some() || part.sequence.is_some() {
                    return Err(two_sources("multiple default values", &of));
                }
                // A domain may have a default that is not NULL.
                let said = part.def.domain.is_some() || !text.eq_ignore_ascii_case("null");
                part.def.default = said.then(|| text.clone());
            }
            ColumnConstraint::Identity { always, options } => {
                if !data_type.is_integer() {
                    return Err(SqlError::new(
                        "22023",
                        "identity column type must be smallint, integer, or bigint",
                    ));
                }
                if part.def.generated {
                    return Err(two_sources("both identity and generation expression", &of));
                }
                if part.sequence.is_some() || part.def.default.is_some() {
                    return Err(two_sources("multiple default values", &of));
                }
                part.def.identity = Some(match always {
                    true => Identity::Always,
                    false => Identity::ByDefault,
                });
                part.sequence = Some(options.clone());
            }
            ColumnConstraint::Generated(text) => {
                let what = match (part.def.generated, part.def.identity) {
                    (true, _) => Some("multiple generation clauses"),
                    (false, Some(_)) => Some("both identity and generation expression"),
                    (false, None) if part.sequence.is_some() || part.def.default.is_some() => {
                        Some("both default and generation expression")
                    }
                    (false, None) => None,
                };
                if let Some(what) = what {
                    return Err(two_sources(what, &of));
                }
                part.def.default = Some(text.clone());
                part.def.generated = true;
            }
            ColumnConstraint::Of(constraint) => parts.add(constraint, Some(&name)),
        }
    }
    if nullable && (part.def.not_null || part.sequence.is_some()) {
        return Err(SqlError::syntax(format!(
            "conflicting NULL/NOT NULL declarations for column \"{name}\""
        )));
    }
    Ok(part)
}

/// 42701 for the name of a system column.
pub(super) fn not_systems(name: &str) -> Result<()> {
    match bind::is_system_column(name) {
        false => Ok(()),
        true => Err(SqlError::new(
            "42701",
            format!("column name \"{name}\" conflicts with a system column name"),
        )),
    }
}

#[cold]
fn two_sources(what: &str, column: &str) -> SqlError {
    SqlError::syntax(format!("{what} specified for {column}"))
}
