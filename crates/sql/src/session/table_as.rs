//! CREATE TABLE AS and SELECT INTO: the table is made, and the query's rows are stored in it as
//! those of an INSERT … SELECT are, in one transaction.

use crate::parse::statement::ColumnOf;
use crate::plan::Reason;
use std::sync::Arc;
use thermocline_query::types::domain::is_domain;

use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use super::lookup::Place;
use super::run::counted;
use super::{Client, Session};
use crate::bind::{self, BindContext, Bound};
use crate::ddl::{CreationPlace, find_relation, truncated_name};
use crate::error::{Result, SqlError};
use crate::messages;
use crate::output::{OutputColumn, RowWriter};
use crate::parse::statement::{Ddl, TableOf};
use crate::parse::table_as::TableAs;

impl Session {
    /// Runs it and answers.
    pub(super) async fn table_as(&mut self, create: &TableAs, client: &mut Client) -> Result<()> {
        const TAG: &str = "CREATE TABLE AS";
        self.check_writable(TAG)?;
        let own = self.begin_own();
        let stored = self.make_table_as(create, client).await?;
        if own {
            self.end_implicit().await?;
        }
        match stored {
            Some(stored) => {
                self.rows_processed = stored;
                counted(client, b"SELECT ", stored);
            }
            None => messages::command_complete(&mut client.out, TAG),
        }
        Ok(())
    }

    /// The query whose rows the table gets, and the values of its parameters.
    async fn query_of_table(&mut self, create: &TableAs) -> Result<(Bound, Vec<Value>)> {
        let Some((name, arguments)) = &create.execute else {
            let place = Place {
                text: &create.query,
                declared: &[],
            };
            let bound = self.lookup().analytical(place, Reason::NewTable);
            let bound = bound.map_err(|error| error.moved(create.before))?;
            return Ok((bound, Vec::new()));
        };
        let (prepared, _, parameters) = self.given_arguments(name, arguments).await?;
        let place = Place {
            text: &prepared.text,
            declared: &prepared.declared,
        };
        let bound = crate::stack::with_room(prepared.depth, || {
            self.lookup().analytical(place, Reason::NewTable)
        });
        Ok((bound?, parameters))
    }

    /// The rows stored; None where there were none to store.
    async fn make_table_as(
        &mut self,
        create: &TableAs,
        client: &mut Client,
    ) -> Result<Option<u64>> {
        let db = Arc::clone(&self.engine.db);
        self.context.take_temporary_schema();
        let (search_path, creation_path) = self
            .context
            .settings(|settings| (settings.search_path(), settings.creation_path()));
        // The query sees nothing of the table.
        let catalog = self.transaction.catalog(&db);
        let place = CreationPlace {
            catalog: &catalog,
            search_path: &search_path,
            creation_path: &creation_path,
        };
        let (schema, name) = place.of(&create.name, create.life.temporary)?;
        let name = vec![schema, name];
        let mut definition = TableOf {
            life: create.life,
            name: name.clone(),
            if_not_exists: create.if_not_exists,
            columns: Vec::new(),
        };
        if find_relation(&catalog, &search_path, &name).is_some() {
            // It is refused, or left alone.
            self.define(&Ddl::TableOf(definition), client).await?;
            return Ok(None);
        }
        let (bound, parameters) = self.query_of_table(create).await?;
        let Some(typed) = bound.plan.typed().cloned() else {
            return Err(SqlError::internal("an analytical query without its tree"));
        };
        if typed.parameters.len() != parameters.len() {
            return Err(SqlError::new("42P02", "there is no parameter $1"));
        }
        let columns = bound.columns.unwrap_or_default();
        definition.columns = table_columns(&columns, &create.columns)?;
        let columns = typed.query.columns();
        for (column, of) in definition.columns.iter_mut().zip(&columns) {
            column.domain = Some(of.oid).filter(|oid| is_domain(*oid));
        }
        let types = definition.columns.iter().map(|column| column.data_type);
        let types: Vec<DataType> = types.collect();
        self.define(&Ddl::TableOf(definition), client).await?;
        if !create.with_data {
            return Ok(None);
        }
        let made = self.transaction.catalog(&db);
        let table = find_relation(&made, &search_path, &name)
            .and_then(|(schema, name)| made.table_by_name(&schema, &name))
            .cloned()
            .ok_or_else(|| SqlError::internal("the table that was made is not there"))?;
        let actor = self.context.actor()?;
        let places: Vec<usize> = (0..types.len()).collect();
        let target = {
            let styles = self.context.styles();
            let context = BindContext {
                actor: Some(&actor),
                ..BindContext::new(&made, &search_path).styled(&styles)
            };
            bind::insert_target(&table, &places, &context)?
        };
        let mut stream = self.start_analytical(&typed, &catalog, &parameters).await?;
        let mut rows = RowWriter::kept();
        let stored = self.store_stream(&mut stream, &target, &types, &[], &mut rows);
        stored.await.map(Some)
    }
}

/// The columns of a table for a query's columns, the first under the names that are given.
fn table_columns(columns: &[OutputColumn], given: &[String]) -> Result<Vec<ColumnOf>> {
    if given.len() > columns.len() {
        return Err(SqlError::syntax("too many column names were specified"));
    }
    if columns.is_empty() {
        return Err(SqlError::unsupported(
            "a table of a query without columns is not supported",
            "Name at least one column.",
        ));
    }
    let mut named: Vec<ColumnOf> = Vec::with_capacity(columns.len());
    for (at, column) in columns.iter().enumerate() {
        let name = truncated_name(given.get(at).unwrap_or(&column.name));
        if named.iter().any(|other| other.name == name) {
            let message = format!("column \"{name}\" specified more than once");
            return Err(SqlError::new("42701", message));
        }
        let of = DataType::from_oid(column.type_oid, column.type_modifier);
        let of = of
            .filter(|of| !matches!(of, DataType::Char(0)))
            .ok_or_else(|| {
                let of =
                    thermocline_query::types::format_type(column.type_oid, column.type_modifier);
                SqlError::unsupported(
                    format!("column \"{name}\" of type {of} is not supported"),
                    "Cast it in the query, for example to text.",
                )
            })?;
        named.push(ColumnOf {
            name,
            data_type: of,
            domain: None,
        });
    }
    Ok(named)
}
