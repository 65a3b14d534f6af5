//! ALTER … SET SCHEMA: relations and functions move to another schema. A table takes its indexes,
//! constraints and sequences along. What is kept as a text and names them says where they are now.

use std::sync::Arc;

use thermocline_engine::authority::{Object, Privileges};
use thermocline_engine::ddl::Change;
use thermocline_engine::{Catalog, FunctionDef, SequenceDef, Table, ViewDef};
use thermocline_query::types::format_type;

use super::sequence::regclass;
use super::{Definition, no_schema};
use crate::error::{Result, SqlError};
use crate::parse::schema::{Moved, MovedRelation, SetSchema};
use crate::privilege::not_owner;
use crate::temporary::{is_temporary, meant, not_others};

impl Definition<'_> {
    pub(super) async fn set_schema(&mut self, of: &SetSchema) -> Result<&'static str> {
        match &of.moved {
            Moved::Relation(kind, name) => {
                self.move_relation(*kind, name, of).await?;
                Ok(match kind {
                    MovedRelation::Table => "ALTER TABLE",
                    MovedRelation::View => "ALTER VIEW",
                    MovedRelation::Materialized => "ALTER MATERIALIZED VIEW",
                    MovedRelation::Sequence => "ALTER SEQUENCE",
                })
            }
            Moved::Routine(kind, (name, types)) => {
                let types = self.types_named(types.as_deref())?;
                let def = self.found_routine(&(name.clone(), types), *kind)?;
                self.move_function(&def, &of.schema).await?;
                Ok(match kind {
                    'p' => "ALTER PROCEDURE",
                    'r' => "ALTER ROUTINE",
                    _ => "ALTER FUNCTION",
                })
            }
        }
    }

    async fn move_relation(
        &mut self,
        kind: MovedRelation,
        name: &[String],
        of: &SetSchema,
    ) -> Result<()> {
        let Some((schema, relation)) = self.find_relation(name) else {
            let error = SqlError::undefined_table(&name.join("."));
            if of.if_exists {
                self.notice("42P01", format!("{}, skipping", error.message));
                return Ok(());
            }
            return Err(error);
        };
        not_others(&schema, self.search_path)?;
        let catalog = self.catalog();
        let is_not = |what: &str| {
            let message = format!("\"{relation}\" is not a {what}");
            Err(SqlError::new("42809", message))
        };
        if let Some(table) = catalog.table_by_name(&schema, &relation) {
            return match kind {
                MovedRelation::Table => self.move_table(table, &of.schema).await,
                MovedRelation::Materialized if table.is_materialized() => {
                    self.move_table(table, &of.schema).await
                }
                MovedRelation::Materialized => is_not("materialized view"),
                MovedRelation::View => is_not("view"),
                MovedRelation::Sequence => is_not("sequence"),
            };
        }
        if let Some(view) = catalog.view_by_name(&schema, &relation) {
            return match kind {
                MovedRelation::Sequence => is_not("sequence"),
                MovedRelation::Materialized => is_not("materialized view"),
                MovedRelation::Table | MovedRelation::View => {
                    self.move_view(view, &of.schema).await
                }
            };
        }
        if let Some(sequence) = catalog.sequence_by_name(&schema, &relation) {
            return match kind {
                MovedRelation::View => is_not("view"),
                MovedRelation::Materialized => is_not("materialized view"),
                MovedRelation::Table | MovedRelation::Sequence => {
                    self.move_sequence(sequence, &of.schema).await
                }
            };
        }
        let message = format!("cannot change schema of index \"{relation}\"");
        Err(SqlError::new("42809", message).with_hint("Change the schema of the table instead."))
    }

    /// The schema that an object of this one is to be in; None: it is there.
    fn new_home<'s>(&'s self, schema: &'s str, old: &str) -> Result<Option<&'s str>> {
        let schema = meant(schema, self.search_path);
        let catalog = self.catalog();
        if catalog.schema(schema).is_none() {
            return Err(match schema {
                "pg_catalog" | "information_schema" => {
                    SqlError::new("42501", format!("permission denied for schema {schema}"))
                }
                _ => no_schema(schema),
            });
        }
        let needs = Privileges::CREATE | Privileges::USAGE;
        self.actor()?.need_schema(&catalog, schema, needs)?;
        if schema == old {
            return Ok(None);
        }
        match is_temporary(schema) || is_temporary(old) {
            false => Ok(Some(schema)),
            true => Err(SqlError::unsupported(
                "cannot move objects into or out of temporary schemas",
                "Create the object anew in the other schema.",
            )),
        }
    }

    async fn move_table(&mut self, table: &Arc<Table>, schema: &str) -> Result<()> {
        if !self.actor()?.owns(&Object::Table(table.oid)) {
            return Err(not_owner(table.kind(), &table.name));
        }
        let Some(schema) = self.new_home(schema, &table.schema)?.map(str::to_owned) else {
            return Ok(());
        };
        let catalog = self.catalog();
        let sequences = catalog.sequences.values();
        let is_own = |def: &&Arc<SequenceDef>| {
            let owner = def.owned_by.map(|(table, _)| table);
            owner == Some(table.oid)
        };
        let sequences: Vec<SequenceDef> = sequences
            .filter(is_own)
            .map(|def| (**def).clone())
            .collect();
        is_free_row_name(&catalog, &schema, &table.name)?;
        let indexes = table.indexes.iter().map(|index| &index.name);
        for name in indexes.chain(sequences.iter().map(|def| &def.name)) {
            is_free(&catalog, &schema, name)?;
        }
        let mut def = table.def.clone();
        def.schema.clone_from(&schema);
        self.apply(Change::AlterTable(def)).await?;
        for sequence in sequences {
            self.put_sequence_into(&sequence, &schema).await?;
        }
        Ok(())
    }

    /// Puts a view into another schema.
    pub(super) async fn move_view(&mut self, view: &ViewDef, schema: &str) -> Result<()> {
        if !self.actor()?.owns(&Object::Table(view.oid)) {
            return Err(not_owner("view", &view.name));
        }
        let Some(schema) = self.new_home(schema, &view.schema)?.map(str::to_owned) else {
            return Ok(());
        };
        is_free_row_name(&self.catalog(), &schema, &view.name)?;
        let mut def = view.clone();
        def.schema = schema;
        self.apply(Change::ReplaceView(def)).await
    }

    async fn move_sequence(&mut self, sequence: &SequenceDef, schema: &str) -> Result<()> {
        if !self.actor()?.owns(&Object::Sequence(sequence.oid)) {
            return Err(not_owner("sequence", &sequence.name));
        }
        let catalog = self.catalog();
        if let Some((table, _)) = sequence.owned_by {
            let table = catalog.table(table).map_or("", |table| &table.name);
            return Err(SqlError::unsupported(
                "cannot move an owned sequence into another schema",
                "Move its table, or take it away from that with OWNED BY NONE.",
            )
            .with_detail(format!(
                "Sequence \"{}\" is linked to table \"{table}\".",
                sequence.name
            )));
        }
        let Some(schema) = self.new_home(schema, &sequence.schema)?.map(str::to_owned) else {
            return Ok(());
        };
        is_free(&catalog, &schema, &sequence.name)?;
        self.put_sequence_into(sequence, &schema).await
    }

    /// Who may move a table needs no right on its sequences, nor on the defaults that name them.
    async fn put_sequence_into(&mut self, sequence: &SequenceDef, schema: &str) -> Result<()> {
        let mut def = sequence.clone();
        schema.clone_into(&mut def.schema);
        let renamed = [sequence, &def].map(regclass);
        let change = Change::AlterSequence(def);
        self.db.ddl(self.txn, self.options, change).await?;
        self.rename_in_defaults(&renamed).await
    }

    /// Views keep which functions they call, defaults and conditions their names.
    async fn move_function(&mut self, function: &FunctionDef, schema: &str) -> Result<()> {
        let kind = match function.procedure {
            Some(_) => "procedure",
            None => "function",
        };
        if !self.actor()?.owns(&Object::Function(function.oid)) {
            return Err(not_owner(kind, &function.name));
        }
        let Some(schema) = self.new_home(schema, &function.schema)?.map(str::to_owned) else {
            return Ok(());
        };
        let catalog = self.catalog();
        let mut named = catalog.functions_named(&schema, &function.name);
        if named.any(|other| other.types().eq(function.types())) {
            let types: Vec<String> = function.types().map(|oid| format_type(oid, -1)).collect();
            let (name, types) = (&function.name, types.join(", "));
            let message = format!("{kind} {name}({types}) already exists in schema \"{schema}\"");
            return Err(SqlError::new("42723", message));
        }
        self.is_kept_by_none(function)?;
        let mut def = function.clone();
        def.schema.clone_from(&schema);
        self.apply(Change::ReplaceFunction(def)).await
    }
}

/// 42P07 where a relation of the schema has the name.
fn is_free(catalog: &Catalog, schema: &str, name: &str) -> Result<()> {
    match catalog.relation_exists(schema, name) {
        false => Ok(()),
        true => {
            let message = format!("relation \"{name}\" already exists in schema \"{schema}\"");
            Err(SqlError::new("42P07", message))
        }
    }
}

/// The same, and 42710 where a type has it: that of the rows gets it, too.
fn is_free_row_name(catalog: &Catalog, schema: &str, name: &str) -> Result<()> {
    is_free(catalog, schema, name)?;
    match catalog.type_by_name(schema, name) {
        None => Ok(()),
        Some(_) => {
            let message = format!("type \"{name}\" already exists in schema \"{schema}\"");
            Err(SqlError::new("42710", message))
        }
    }
}
