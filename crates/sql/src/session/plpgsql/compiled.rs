//! A body with the types of its variables, and what its expressions and statements became. All of
//! it holds for one catalog and one set of settings: what is planned looks at that by itself.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use thermocline_engine::{Catalog, Charge};
use thermocline_query::datum::Datum;
use thermocline_query::tree::Expr;

use super::super::Session;
use super::super::prepared::{PlanSettings, Prepared};
use super::frame::{Frame, Held, Row};
use super::scope::Asked;
use super::within::Within;
use crate::error::{Result, SqlError};
use crate::plpgsql::tree::Body;
use crate::plpgsql::{Signature, Type, read, types_of};

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
    /// It gives rows with RETURN NEXT and RETURN QUERY.
    pub(super) returns_set: bool,
    /// RETURN has no value.
    pub(super) returns_nothing: bool,
    /// Its body is statements of SQL, and it gives a value of this type.
    pub(super) of_statements: Option<u32>,
    /// It is a trigger's: who has called it takes what RETURN has given as it is.
    pub(super) of_trigger: bool,
    /// The rights and settings that it runs with, where they are its own.
    pub(super) within: Option<Within>,
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
            let here = match signature.of_statements {
                Some(_) => format!("SQL function \"{}\" during startup", alone(name)),
                None => format!("compilation of PL/pgSQL function \"{name}\""),
            };
            error.context = Some(match error.context.take() {
                None => here,
                Some(inner) => format!("{here}: {inner}"),
            });
            error
        };
        let body = read(text, signature).map_err(told)?;
        let catalog = session.transaction.catalog(&session.engine.db);
        let search_path = session.context.settings(|settings| settings.search_path());
        let types = types_of(&body, &catalog, &search_path).map_err(told)?;
        Ok(Self {
            name: name.to_owned(),
            sites: Mutex::new(vec![None; body.sites]),
            body,
            types,
            casts: Mutex::default(),
            reads_only: false,
            within: None,
            returns_set: signature.returns_set,
            returns_nothing: signature.returns_nothing,
            of_statements: signature.of_statements,
            of_trigger: signature.of_trigger,
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
        if self.of_statements.is_some() {
            let name = alone(name);
            return match frame.at {
                (0, _) => format!("SQL function \"{name}\" during startup"),
                (number, _) => format!("SQL function \"{name}\" statement {number}"),
            };
        }
        match frame.at {
            (0, "") => format!("PL/pgSQL function {name}"),
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
            Type::Cursor => Held::Cursor(None, false),
        }
    }
}

/// The name of a function without the types of its arguments.
fn alone(name: &str) -> &str {
    name.split_once('(').map_or(name, |(name, _)| name)
}
