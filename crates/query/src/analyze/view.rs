//! Views: what stands in FROM for a name is the view's query. It sees nothing of the statement
//! around it, and its names mean what they meant when the view was made.

use pg_raw_parse::Node;

use super::call_before::CallsBefore;
use super::{Analyzer, Stored};
use crate::call::{Environment, Settings};
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::parse::parse;
use crate::tree::Query;

/// The surroundings of a text that is kept: its literals say the same in all sessions.
struct Kept<'a> {
    environment: &'a dyn Environment,
    settings: Settings,
}

impl Environment for Kept<'_> {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn transaction_time(&self) -> i64 {
        self.environment.transaction_time()
    }

    fn statement_time(&self) -> i64 {
        self.environment.statement_time()
    }

    fn room(&self, bytes: usize) -> Result<()> {
        self.environment.room(bytes)
    }

    fn check_interrupted(&self) -> Result<()> {
        self.environment.check_interrupted()
    }

    fn call(&self, name: &str, arguments: &[Datum]) -> Result<Datum> {
        self.environment.call(name, arguments)
    }
}

impl Analyzer<'_> {
    /// The query of a view. Its text is not the statement's: errors have no place there.
    pub(super) fn view(&self, view: &Stored, text: &str) -> Result<Query> {
        self.query_of_view(view, text).map_err(|mut error| {
            error.location = None;
            error
        })
    }

    fn query_of_view(&self, view: &Stored, text: &str) -> Result<Query> {
        let catalog = self.catalog.within(view.oid)?;
        let parsed = parse(text)?;
        let Some(Node::SelectStmt(select)) = parsed.statements().stmts().next() else {
            return Err(QueryError::internal("a view without a query"));
        };
        let kept = Kept {
            environment: self.environment,
            settings: Settings::default(),
        };
        let mut analyzer = Analyzer {
            catalog: &*catalog,
            environment: &kept,
            parameters: Vec::new(),
            levels: Vec::new(),
            takes_changes: false,
            named: None,
            variables: None,
            calls: CallsBefore::default(),
            bodies: self.bodies.clone(),
            given: None,
            given_name: None,
            rows_given: Vec::new(),
        };
        let query = analyzer.query(select, None)?;
        let given = query.columns();
        // Columns that it was given since whoever reads it here was made are not seen.
        let same = given.len() >= view.columns.len()
            && given.iter().zip(&view.columns).all(|(a, b)| a.oid == b.oid)
            && analyzer.parameters.is_empty();
        match same {
            true => Ok(query),
            false => Err(QueryError::unsupported(
                "a view gives columns of other types than at its creation",
                "Create the view anew.",
            )),
        }
    }
}
