//! From the syntax tree to the typed query tree, by PostgreSQL's rules for
//! names, types, operators and functions. Nothing is executed here but the
//! reading of literals.
//!
//! | file | what it does |
//! |---|---|
//! | `scope` | which names mean what where |
//! | `from`, `from_function`, `view`, `with`, `recursion`, `search_cycle`, `select`, `group`, `order`, `set_operation`, `window` | the clauses of a query |
//! | `expression`, `constant`, `operator`, `call`, `aggregate`, `subquery`, `subscript` | expressions |
//! | `change`, `assign` | INSERT, UPDATE, DELETE; what is assigned to columns and parts of them |
//! | `scalar` | expressions outside of queries |
//! | `resolve` | which function or operator a name and types mean |
//! | `coerce` | casts, written and implied; common types |
//! | `type_name` | names of types |
//! | `create_function`, `sql_function`, `fitting`, `given_arguments` | users' functions: their statements; what bodies say stands in the place of calls |
//! | `variables` | names that mean variables of PL/pgSQL |
//! | `call_before` | calls that are made before a statement |
//! | `column_name` | names of result columns |

mod aggregate;
mod assign;
mod call;
mod call_before;
mod change;
mod change_view;
mod coerce;
mod column_name;
mod constant;
mod create_function;
mod expression;
mod fitting;
mod from;
mod from_function;
mod function_attributes;
mod given_arguments;
mod group;
mod merge;
mod operator;
mod order;
mod recursion;
mod resolve;
mod row_columns;
mod sample;
mod scalar;
mod scope;
mod search_cycle;
mod select;
mod set_operation;
mod sql_function;
mod subquery;
mod subscript;
mod type_name;
mod variables;
mod view;
mod window;
mod with;

use std::sync::Arc;

use pg_raw_parse::Node;

use crate::call::Environment;
use crate::change::Change;
use crate::error::{QueryError, Result};
use crate::tree::{Column, Expr, ExprKind, Query};
use crate::types::ids;
use crate::types::user::columns_of;
pub use call_before::CallBefore;
use call_before::CallsBefore;
pub use change::{AnalyzedStatement, analyze_statement};
pub use change_view::{OF_NO_TABLE, view_obstacle};
pub use create_function::{
    CreateFunction, DropFunction, NamedFunction, create_function, drop_function,
};
pub use function_attributes::{AlterFunction, FunctionSettings, alter_function};
pub(crate) use operator::constant_array;
pub use scalar::{Wanted, analyze_scalar};
use scope::Level;
pub use sql_function::{
    Argument, Language, SqlFunction, check_function, gives_rows, mismatch, wrong_width,
};
pub use type_name::written_type;
pub use variables::{Columns, Conflict, Variable, Variables};

/// What the analyzer asks of the catalog: names become tables here, and rights are looked at.
pub trait Catalog {
    /// The table, view or system relation of this name, `None` if there is none.
    ///
    /// # Errors
    /// 3F000 for a schema that is not there, 42501 without the right to read it.
    fn relation(&self, schema: Option<&str>, name: &str) -> Result<Option<Stored>>;

    /// The table of this name, which a statement changes: whether its rows may be read is not
    /// asked. `None` if there is none.
    ///
    /// # Errors
    /// As [`Catalog::relation`]; 0A000 for what is no table.
    fn changed(&self, schema: Option<&str>, name: &str) -> Result<Option<Stored>> {
        self.relation(schema, name)
    }

    /// Told of every place at which the query names a relation of the catalog.
    fn mentioned(&self, mention: &Mention<'_>) {
        let _ = mention;
    }

    /// The catalog as the query of a view sees it: what the names in it mean.
    ///
    /// # Errors
    /// 54001 where views are nested too deeply.
    fn within(&self, view: u32) -> Result<Box<dyn Catalog + '_>> {
        Err(QueryError::internal(format!("{view} is no view")))
    }

    /// The functions of users that a name may mean.
    fn functions(&self, schema: Option<&str>, name: &str) -> Vec<SqlFunction> {
        let _ = (schema, name);
        Vec::new()
    }

    /// 42501 for a function that may not be called.
    ///
    /// # Errors
    /// As it says.
    fn may_call(&self, function: &SqlFunction) -> Result<()> {
        let _ = function;
        Ok(())
    }

    /// What the names in the bodies of functions mean, where that is not what they mean here.
    fn of_bodies(&self) -> Option<Box<dyn Catalog + '_>> {
        None
    }

    /// Whether an expression may have queries within. Where not, the session calls functions whose bodies are
    /// more than an expression.
    fn takes_queries(&self) -> bool {
        true
    }

    /// Whether calls may be made before the statement.
    fn takes_calls(&self) -> bool {
        false
    }

    /// The variables of the program that the statement stands in.
    fn variables(&self) -> Option<&dyn Variables> {
        None
    }

    /// The number of a type of the user's (a table's row type), `None` if there is none.
    fn user_type(&self, schema: Option<&str>, name: &str) -> Option<u32> {
        let _ = (schema, name);
        None
    }

    /// The columns of a composite type.
    fn composite(&self, oid: u32) -> Option<Vec<Column>> {
        told_columns(oid)
    }
}

/// The columns of a composite type that was told.
#[must_use]
pub fn told_columns(oid: u32) -> Option<Vec<Column>> {
    let columns = columns_of(oid).ok()?;
    let types = columns.types.iter().zip(columns.modifiers.iter());
    let all = columns.names.iter().zip(types);
    let column = |(name, (oid, modifier)): (&Arc<str>, (&u32, &i32))| Column {
        name: Arc::clone(name),
        oid: *oid,
        modifier: *modifier,
        origin: None,
    };
    Some(all.map(column).collect())
}

/// A relation of the catalog.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Its number.
    pub oid: u32,
    /// The name of its schema.
    pub schema: Arc<str>,
    /// Its columns.
    pub columns: Vec<Column>,
    /// The places of its primary key's columns.
    pub primary_key: Vec<usize>,
    /// The number of its row type.
    pub row_type: u32,
    /// The text of its query, if it is a view. Its columns are called as they are here.
    pub view: Option<Arc<str>>,
    /// The role by whose rights it is read, where that is not the session's.
    pub reader: Option<u32>,
    /// Its rows lie in partitions.
    pub is_partitioned: bool,
}

impl Stored {
    /// 0A000 for ONLY with a table that has no rows but those of its partitions.
    fn with_all(&self, range: &pg_raw_parse::nodes::RangeVar) -> Result<()> {
        if range.inh || !self.is_partitioned {
            return Ok(());
        }
        let name = range.relname().unwrap_or_default();
        let message = format!("ONLY with partitioned table \"{name}\" is not supported");
        let error = QueryError::unsupported(message, "It has no rows by itself. Name a partition.");
        Err(error.at(range.location))
    }
}

/// A relation is named.
#[derive(Clone, Copy, Debug)]
pub struct Mention<'a> {
    /// The schema, if it is written.
    pub schema: Option<&'a str>,
    /// The name.
    pub name: &'a str,
    /// At which byte.
    pub at: i32,
    /// Whether an alias follows.
    pub aliased: bool,
}

/// A statement, analysed.
#[derive(Clone, Debug)]
pub struct Analyzed {
    /// The query.
    pub query: Query,
    /// The numbers of its parameters' types.
    pub parameters: Vec<u32>,
}

/// Analyses one statement that reads. `declared` are the parameters' types as far as the client gave any (0 for none).
///
/// # Errors
/// As PostgreSQL's analysis; 0A000 for a statement that is no query, and for what is not done.
pub fn analyze(
    statement: Node<'_>,
    catalog: &dyn Catalog,
    environment: &dyn Environment,
    declared: &[u32],
) -> Result<Analyzed> {
    if let Some(variables) = catalog.variables() {
        variables.begin();
    }
    let mut analyzer = Analyzer {
        catalog,
        environment,
        parameters: declared.to_vec(),
        levels: Vec::new(),
        takes_changes: false,
        named: None,
        variables: catalog.variables(),
        calls: CallsBefore::default(),
        bodies: sql_function::Bodies::default(),
        given: None,
        given_name: None,
        rows_given: Vec::new(),
    };
    let Node::SelectStmt(select) = statement else {
        return Err(QueryError::unsupported(
            "a statement other than SELECT or VALUES is not supported as a query",
            "Send the statement by itself.",
        ));
    };
    let mut query = analyzer.query(select, None)?;
    analyzer.settle_parameters(&mut query)?;
    Ok(Analyzed {
        query,
        parameters: analyzer.parameters,
    })
}

/// The state of one analysis.
struct Analyzer<'a> {
    catalog: &'a dyn Catalog,
    environment: &'a dyn Environment,
    /// The parameters' types; 0 while nothing has settled them.
    parameters: Vec<u32>,
    /// The queries around, from the outermost to the one at hand.
    levels: Vec<Level>,
    /// Whether the statement's WITH may change rows.
    takes_changes: bool,
    /// The function whose body this is.
    named: Option<sql_function::Named>,
    /// The variables of the program around the statement.
    variables: Option<&'a dyn Variables>,
    /// The calls that are made before the statement.
    calls: CallsBefore,
    /// The bodies of functions that this is within.
    bodies: sql_function::Bodies,
    /// What a user's function in FROM gives.
    given: Option<sql_function::Given>,
    /// The name that the column of a function in FROM has, whatever its alias is; of the call at this
    /// place.
    given_name: Option<(i32, Arc<str>)>,
    /// The columns of rows that users' functions give as one value, by the places of their calls.
    rows_given: Vec<(i32, Vec<Column>)>,
}

impl Analyzer<'_> {
    /// The query at hand.
    fn level(&mut self) -> &mut Level {
        self.levels.last_mut().expect("a query is at hand")
    }

    /// Every parameter has a type in the end, wherever it is mentioned.
    fn settle_parameters(&mut self, query: &mut Query) -> Result<()> {
        self.settled()?;
        let parameters = &self.parameters;
        settle(query, parameters);
        Ok(())
    }

    /// 42P18 for a parameter that nothing gave a type.
    fn settled(&self) -> Result<()> {
        for (at, oid) in self.parameters.iter().enumerate() {
            if matches!(*oid, 0 | ids::UNKNOWN) {
                return Err(QueryError::new(
                    "42P18",
                    format!("could not determine data type of parameter ${}", at + 1),
                ));
            }
        }
        Ok(())
    }
}

/// Gives parameters whose type came later than their mention that type.
fn settle(query: &mut Query, parameters: &[u32]) {
    use crate::tree::RelationKind;
    if parameters.is_empty() {
        return;
    }
    for common in &mut query.with {
        settle(&mut common.query, parameters);
        if let Some(change) = &mut common.change {
            settle_change(change, parameters);
        }
    }
    for relation in &mut query.relations {
        if let RelationKind::Subquery(inner, _) = &mut relation.kind {
            settle(inner, parameters);
        }
    }
    query.exprs_mut(&mut |of| settle_expr(of, parameters));
}

fn settle_change(change: &mut Change, parameters: &[u32]) {
    change.queries_mut(&mut |query| settle(query, parameters));
    change.exprs_mut(&mut |expr| settle_expr(expr, parameters));
}

fn settle_expr(of: &mut Expr, parameters: &[u32]) {
    match &mut of.kind {
        ExprKind::Parameter(at) if call_before::is_of_call(*at) => {}
        ExprKind::Parameter(at) => of.oid = parameters[*at],
        ExprKind::Subquery(subquery) => settle(&mut subquery.query, parameters),
        _ => {}
    }
    of.children_mut(&mut |child| settle_expr(child, parameters));
}
