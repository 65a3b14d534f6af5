//! A body with the types of its variables, and what its expressions and statements became. All of
//! it holds for one catalog and one set of settings: what is planned looks at that by itself.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use thermocline_engine::{Catalog, Charge};
use thermocline_query::analyze::told_columns;
use thermocline_query::datum::Datum;
use thermocline_query::tree::{Column, Expr};
use thermocline_query::types::domain::base;
use thermocline_query::types::ids;

use super::super::Session;
use super::super::prepared::{PlanSettings, Prepared};
use super::frame::{Frame, Held, Row};
use super::scope::Asked;
use crate::bind::{TypeNames, type_of_text};
use crate::ddl::find_relation;
use crate::error::{Result, SqlError};
use crate::parse::scan::Tokens;
use crate::plpgsql::tree::{Body, Declared};
use crate::plpgsql::{Signature, read};

/// The type of a variable.
#[derive(Debug, Clone)]
pub(super) enum Type {
    Value(u32, i32),
    Row(u32, Option<Arc<[Column]>>),
    Cursor,
}

/// What an expression or a statement of SQL became.
#[derive(Clone)]
pub(super) enum Site {
    /// Computed on the spot.
    Expr(Arc<Simple>),
    /// Run as a statement.
    Statement(Arc<Prepared>),
}

/// An expression that reads nothing.
pub(super) struct Simple {
    pub(super) expr: Expr,
    pub(super) asked: Arc<[Asked]>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) settings: PlanSettings,
}

/// From a type to another with its modifier.
pub(super) type Cast = (u32, u32, i32);

/// See the head of this file.
pub(super) struct Compiled {
    /// As errors name it.
    pub(super) name: String,
    pub(super) body: Body,
    pub(super) types: Vec<Type>,
    pub(super) sites: Mutex<Vec<Option<Site>>>,
    /// The casts that were needed; none is through the text.
    pub(super) casts: Mutex<HashMap<Cast, Option<Arc<Expr>>>>,
    /// It may only read.
    pub(super) reads_only: bool,
    /// The slots of the columns of what it gives.
    pub(super) columns: Vec<usize>,
}

impl Compiled {
    /// Reads a body and looks its types up.
    pub(super) fn new(
        session: &Session,
        name: &str,
        text: &str,
        signature: &Signature,
    ) -> Result<Self> {
        let told = |mut error: SqlError| {
            let here = format!("compilation of PL/pgSQL function \"{name}\"");
            error.context = Some(match error.context.take() {
                None => here,
                Some(inner) => format!("{here}: {inner}"),
            });
            error
        };
        let body = read(text, signature).map_err(told)?;
        let types = types_of(session, &body).map_err(told)?;
        Ok(Self {
            name: name.to_owned(),
            sites: Mutex::new(vec![None; body.sites]),
            body,
            types,
            casts: Mutex::default(),
            reads_only: false,
            columns: Vec::new(),
        })
    }

    /// The variables at first.
    pub(super) fn frame(&self, charge: Charge, bytes: u64, rows_charge: Charge) -> Frame {
        Frame {
            held: (0..self.types.len()).map(|slot| self.empty(slot)).collect(),
            charge,
            bytes,
            returned: None,
            rows: Vec::new(),
            rows_charge,
            row_count: 0,
            caught: Vec::new(),
            at: (0, "during function entry"),
            raises_again: false,
            columns: Arc::from([]),
            gives_rows: false,
            turns: 0,
        }
    }

    /// Where a call is, as the CONTEXT of errors says it.
    pub(super) fn place(&self, frame: &Frame) -> String {
        let name = &self.name;
        match frame.at {
            (0, what) => format!("PL/pgSQL function {name} {what}"),
            (line, what) => format!("PL/pgSQL function {name} line {line} {what}"),
        }
    }

    /// What a variable holds without a value.
    pub(super) fn empty(&self, slot: usize) -> Held {
        match &self.types[slot] {
            Type::Value(oid, modifier) => Held::Value {
                oid: *oid,
                modifier: *modifier,
                value: Datum::Null,
            },
            Type::Row(oid, columns) => Held::Row(Row {
                oid: *oid,
                columns: columns.clone(),
                values: None,
            }),
            Type::Cursor => Held::Cursor(None),
        }
    }
}

fn types_of(session: &Session, body: &Body) -> Result<Vec<Type>> {
    let catalog = session.transaction.catalog(&session.engine.db);
    let search_path = session
        .context
        .settings(|settings| settings.search_path())
        .to_vec();
    let mut types: Vec<Type> = Vec::with_capacity(body.slots.len());
    for slot in &body.slots {
        let of = match &slot.declared {
            Declared::Type(text) => written(text, &catalog, &search_path)?,
            Declared::OfSlot(other) => types[*other].clone(),
            Declared::OfColumn(parts) => of_column(parts, &catalog, &search_path)?,
            Declared::RowOf(text) => row_of(text, &catalog, &search_path)?,
            Declared::Record => Type::Row(0, None),
            Declared::Known(ids::RECORD) => Type::Row(0, None),
            Declared::Known(oid) => known(*oid, -1),
            Declared::Any => Type::Value(0, -1),
            Declared::Cursor(_) => Type::Cursor,
        };
        types.push(of);
    }
    Ok(types)
}

/// A type by its number.
fn known(oid: u32, modifier: i32) -> Type {
    match told_columns(base(oid)) {
        Some(columns) if base(oid) == oid => Type::Row(oid, Some(columns.into())),
        _ => Type::Value(oid, modifier),
    }
}

fn written(text: &str, catalog: &Arc<Catalog>, search_path: &[String]) -> Result<Type> {
    let names = TypeNames {
        catalog,
        search_path,
    };
    match type_of_text(text, names) {
        Ok((oid, modifier)) => Ok(known(oid, modifier)),
        // The rows of a table are a type, too.
        Err(error) if error.sqlstate == "42704" => {
            row_of(text, catalog, search_path).map_err(|_| error)
        }
        Err(error) => Err(error),
    }
}

/// The parts of a name that stands alone in a text.
fn parts_of(text: &str) -> Vec<String> {
    let parts = Tokens::new(text).filter(|token| !token.is_symbol("."));
    parts
        .map(|token| match token.text().strip_prefix('"') {
            Some(quoted) => quoted.trim_end_matches('"').replace("\"\"", "\""),
            None => token.text().to_lowercase(),
        })
        .collect()
}

/// The columns of a table, as its rows have them.
fn columns_of(
    parts: &[String],
    catalog: &Arc<Catalog>,
    search_path: &[String],
) -> Result<Vec<Column>> {
    let shown = parts.join(".");
    let missing = || SqlError::new("42P01", format!("relation \"{shown}\" does not exist"));
    let (schema, name) = find_relation(catalog, search_path, parts).ok_or_else(missing)?;
    let table = catalog.table_by_name(&schema, &name).ok_or_else(|| {
        SqlError::unsupported(
            format!("the type of a row of \"{shown}\", which is no table, is not supported"),
            "Declare the variable as record.",
        )
    })?;
    let live = table.columns.iter().filter(|column| !column.dropped);
    let column = |column: &thermocline_engine::ColumnDef| Column {
        name: Arc::from(column.name.as_str()),
        oid: column.type_oid(),
        modifier: column.type_modifier(),
        origin: None,
    };
    Ok(live.map(column).collect())
}

fn row_of(text: &str, catalog: &Arc<Catalog>, search_path: &[String]) -> Result<Type> {
    let columns = columns_of(&parts_of(text), catalog, search_path)?;
    // Its rows are told by their columns.
    Ok(Type::Row(0, Some(columns.into())))
}

fn of_column(parts: &[String], catalog: &Arc<Catalog>, search_path: &[String]) -> Result<Type> {
    let Some((name, table)) = parts.split_last() else {
        return Err(SqlError::internal("a type of no column"));
    };
    let columns = columns_of(table, catalog, search_path)?;
    let column = columns.iter().find(|column| *column.name == **name);
    let column = column.ok_or_else(|| {
        let table = table.join(".");
        let message = format!("column \"{name}\" of relation \"{table}\" does not exist");
        SqlError::new("42703", message)
    })?;
    Ok(known(column.oid, column.modifier))
}
