//! The columns that names in an expression may mean: those of the relations in
//! scope, laid out one after the other in the row that is evaluated.

use std::sync::Arc;

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};
use thermocline_engine::authority::Privileges;
use thermocline_engine::{Catalog, Table, ViewDef};

use super::view::of_view;
use super::{BindContext, Bindable, Refusal};
use crate::error::SqlError;
use crate::temporary;

/// An identifier as PostgreSQL folds it: lower case unless quoted.
pub(crate) fn folded(ident: &Ident) -> String {
    if ident.quote_style.is_some() {
        ident.value.clone()
    } else {
        ident.value.to_lowercase()
    }
}

/// The folded parts of a possibly qualified name.
pub(crate) fn name_parts(name: &ObjectName) -> Bindable<Vec<String>> {
    name.0
        .iter()
        .map(|part| match part {
            ObjectNamePart::Identifier(ident) => Ok(folded(ident)),
            ObjectNamePart::Function(_) => Err(Refusal::declined("a computed name")),
        })
        .collect()
}

/// Schemas whose relations the analytical side makes up.
fn is_system_name(schema: Option<&str>, name: &str) -> bool {
    match schema {
        Some(schema) => matches!(schema, "pg_catalog" | "information_schema"),
        None => name.starts_with("pg_") || name.starts_with("thermocline_"),
    }
}

/// Looks a table up along the search path, for a statement that needs these privileges on
/// it or on some of its columns.
pub(crate) fn find_table<'a>(
    context: &BindContext<'a>,
    name: &ObjectName,
    needs: Privileges,
) -> Bindable<&'a Arc<Table>> {
    let parts = name_parts(name)?;
    let (schema, relation) = match parts.as_slice() {
        [relation] => (None, relation),
        [schema, relation] | [_, schema, relation] => (Some(schema.as_str()), relation),
        _ => return Err(SqlError::syntax(format!("improper qualified name: {name}")).into()),
    };
    let path = context.search_path;
    match lookup(context.catalog, path, schema, relation) {
        Some(Named::Table(table)) => {
            temporary::not_others(&table.schema, path)?;
            if let Some(actor) = context.actor {
                actor.need_some_column(context.catalog, table, needs)?;
            }
            return Ok(table);
        }
        Some(Named::View(view)) => {
            temporary::not_others(&view.schema, path)?;
            return Err(of_view(context.catalog, view, needs));
        }
        None => {}
    }
    let span = match name.0.first() {
        Some(ObjectNamePart::Identifier(ident)) => ident.span,
        _ => sqlparser::tokenizer::Span::empty(),
    };
    let shown = match schema {
        Some(schema) => format!("{schema}.{relation}"),
        None => relation.clone(),
    };
    let refusal = if is_system_name(schema, relation) {
        Refusal::declined_with("a system catalog", SqlError::undefined_table(&shown))
    } else if schema.is_some_and(|schema| schema == "thermocline") {
        Refusal::declined("a system view")
    } else {
        SqlError::undefined_table(&shown).into()
    };
    Err(refusal.at(context.sql, span))
}

/// What a name in FROM, or that of a target, means.
enum Named<'a> {
    Table(&'a Arc<Table>),
    View(&'a ViewDef),
}

fn lookup<'a>(
    catalog: &'a Catalog,
    search_path: &[String],
    schema: Option<&str>,
    relation: &str,
) -> Option<Named<'a>> {
    let within = |schema: &str| match catalog.table_by_name(schema, relation) {
        Some(table) => Some(Named::Table(table)),
        None => {
            let view = catalog.view_by_name(schema, relation)?;
            Some(Named::View(view))
        }
    };
    match schema {
        Some(schema) => within(temporary::meant(schema, search_path)),
        None => search_path.iter().find_map(|schema| within(schema)),
    }
}

/// One relation in scope.
#[derive(Clone)]
pub(crate) struct Relation {
    /// The name that qualifies its columns.
    pub(crate) alias: String,
    /// Whether the table's own name was replaced by an alias.
    pub(crate) aliased: bool,
    /// The table.
    pub(crate) table: Arc<Table>,
    /// Where its columns begin in the row.
    pub(crate) offset: usize,
    /// Names given to its columns by the alias, and the columns' positions.
    pub(crate) column_aliases: Vec<(usize, String)>,
}

impl Relation {
    pub(crate) fn new(table: &Arc<Table>, alias: Option<String>, offset: usize) -> Self {
        Self {
            aliased: alias.is_some(),
            alias: alias.unwrap_or_else(|| table.name.clone()),
            table: Arc::clone(table),
            offset,
            column_aliases: Vec::new(),
        }
    }

    pub(crate) fn column_name(&self, column: usize) -> &str {
        let mut aliases = self.column_aliases.iter();
        match aliases.find(|(of, _)| *of == column) {
            Some((_, alias)) => alias,
            None => &self.table.columns[column].name,
        }
    }

    fn position(&self, name: &str) -> Option<usize> {
        let mut live = self.table.live_columns();
        live.find(|(column, _)| self.column_name(*column) == name)
            .map(|(column, _)| column)
    }

    fn answers_to(&self, schema: Option<&str>, name: &str) -> bool {
        let table = &self.table.schema;
        let is_own = |schema| schema == temporary::ALIAS && temporary::is_temporary(table);
        self.alias == name
            && schema.is_none_or(|schema| !self.aliased && (table == schema || is_own(schema)))
    }
}

/// A column found in scope.
pub(crate) struct Found<'a> {
    pub(crate) relation: &'a Relation,
    pub(crate) column: usize,
}

/// Finds what `[[schema.]relation.]column` means.
pub(crate) fn find_column<'a>(
    relations: &'a [Relation],
    parts: &[Ident],
    sql: &str,
) -> Bindable<Found<'a>> {
    let folded_parts: Vec<String> = parts.iter().map(folded).collect();
    let names: Vec<&str> = folded_parts.iter().map(String::as_str).collect();
    let at = |refusal: Refusal| match parts.first() {
        Some(first) => refusal.at(sql, first.span),
        None => refusal,
    };
    let (schema, qualifier, name) = match names.as_slice() {
        [name] => (None, None, *name),
        [qualifier, name] => (None, Some(*qualifier), *name),
        [schema, qualifier, name] | [_, schema, qualifier, name] => {
            (Some(*schema), Some(*qualifier), *name)
        }
        _ => return Err(at(SqlError::syntax("improper qualified name").into())),
    };
    if let Some(qualifier) = qualifier {
        let Some(relation) = relations
            .iter()
            .find(|relation| relation.answers_to(schema, qualifier))
        else {
            let error = SqlError::new(
                "42P01",
                format!("missing FROM-clause entry for table \"{qualifier}\""),
            );
            return Err(at(error.into()));
        };
        return match relation.position(name) {
            Some(column) => Ok(Found { relation, column }),
            None if is_system_column(name) => Err(at(Refusal::declined("a system column"))),
            None => Err(at(SqlError::new(
                "42703",
                format!("column {qualifier}.{name} does not exist"),
            )
            .into())),
        };
    }
    let mut found = None;
    for relation in relations {
        if let Some(column) = relation.position(name) {
            if found.is_some() {
                let message = format!("column reference \"{name}\" is ambiguous");
                return Err(at(SqlError::new("42702", message).into()));
            }
            found = Some(Found { relation, column });
        }
    }
    match found {
        Some(found) => Ok(found),
        None if relations.iter().any(|relation| relation.alias == name) => {
            Err(at(Refusal::declined("a whole row as a value")))
        }
        None if is_system_column(name) && !relations.is_empty() => {
            Err(at(Refusal::declined("a system column")))
        }
        None => Err(at(SqlError::undefined_column(name).into())),
    }
}

/// Whether every table has a column of this name in PostgreSQL, so that none can be made.
pub(crate) fn is_system_column(name: &str) -> bool {
    matches!(
        name,
        "ctid" | "xmin" | "xmax" | "cmin" | "cmax" | "tableoid"
    )
}
