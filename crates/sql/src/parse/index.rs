//! CREATE INDEX. Expressions are kept as their texts, which mean the same wherever they are read.

use pg_raw_parse::Node;
use pg_raw_parse::nodes::{IndexElem, IndexStmt, SortByDir, SortByNulls};
use thermocline_engine::catalog::KeyOrder;
use thermocline_query::parse::written;

use super::node;
use super::statement::{Ddl, Statement};
use crate::error::{Result, SqlError};

/// CREATE INDEX.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateIndex {
    /// Its name.
    pub name: Option<String>,
    /// An existing one is left alone.
    pub if_not_exists: bool,
    /// Its table.
    pub table: Vec<String>,
    /// What its keys are made of.
    pub keys: Vec<IndexKey>,
    /// INCLUDE
    pub include: Vec<String>,
    /// WHERE, as its text.
    pub predicate: Option<String>,
    /// UNIQUE
    pub unique: bool,
    /// NULLS NOT DISTINCT
    pub nulls_equal: bool,
    /// CONCURRENTLY: outside of transactions only.
    pub concurrently: bool,
    /// USING method
    pub access_method: Option<String>,
    /// How the parts of the key are ordered; empty where all are as by default.
    pub order: Vec<KeyOrder>,
    /// ON ONLY: not on the partitions of the table.
    pub only: bool,
}

impl CreateIndex {
    /// Whether something is computed for it of each row.
    #[must_use]
    pub fn computes(&self) -> bool {
        let mut keys = self.keys.iter();
        self.predicate.is_some() || keys.any(|key| matches!(key, IndexKey::Expression(_)))
    }
}

/// A part of an index's keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexKey {
    /// A column's value.
    Column(String),
    /// An expression, as its text: in parentheses unless it is written like a call.
    Expression(String),
}

#[cold]
fn refused(message: &str, hint: &'static str) -> SqlError {
    SqlError::unsupported(message.to_owned(), hint)
}

pub(super) fn create_index(statement: &IndexStmt) -> Result<Statement> {
    if statement.table_space().is_some() {
        return Err(refused(
            "TABLESPACE is not supported",
            "Leave the clause out.",
        ));
    }
    let elements: Vec<&IndexElem> = statement.index_params().iter().collect();
    let keys = elements.iter().map(|element| index_key(element));
    let include = statement.index_including_params().iter();
    let include = include.filter_map(|node| match node {
        Node::IndexElem(element) => Some(included(element)),
        _ => None,
    });
    let predicate = match statement.where_clause() {
        Node::None => None,
        condition => Some(written::expression(condition)?),
    };
    Ok(Statement::Ddl(Ddl::CreateIndex(Box::new(CreateIndex {
        name: statement.idxname().map(str::to_owned),
        if_not_exists: statement.if_not_exists,
        table: node::relation(statement.relation()),
        keys: keys.collect::<Result<_>>()?,
        include: include.collect::<Result<_>>()?,
        predicate,
        unique: statement.unique,
        nulls_equal: statement.nulls_not_distinct,
        concurrently: statement.concurrent,
        access_method: statement.access_method().map(str::to_owned),
        order: order_of(&elements),
        only: statement.relation().is_some_and(|relation| !relation.inh),
    }))))
}

fn index_key(element: &IndexElem) -> Result<IndexKey> {
    let collation = node::strings(element.collation());
    let is_plain = |name: &String| matches!(name.as_str(), "C" | "POSIX" | "default");
    if collation.last().is_some_and(|name| !is_plain(name)) {
        return Err(refused(
            "collations of an index are not supported",
            "Strings compare by their bytes: use the collation \"C\".",
        ));
    }
    let class = node::strings(element.opclass());
    if let Some(class) = class.last().filter(|class| !class.ends_with("_ops")) {
        let message = format!("operator class \"{class}\" does not exist");
        return Err(SqlError::new("42704", message));
    }
    if let Some(name) = element.name() {
        return Ok(IndexKey::Column(name.to_owned()));
    }
    let expression = element.expr();
    let text = written::expression(expression)?;
    Ok(IndexKey::Expression(match is_call(expression) {
        true => text,
        false => format!("({text})"),
    }))
}

/// Whether it is written like a call of a function, and needs no parentheses.
fn is_call(expression: Node<'_>) -> bool {
    matches!(
        expression,
        Node::FuncCall(_) | Node::CoalesceExpr(_) | Node::MinMaxExpr(_)
    )
}

fn included(element: &IndexElem) -> Result<String> {
    let Some(name) = element.name() else {
        return Err(refused(
            "expressions are not supported in included columns",
            "Name columns, or leave the clause out.",
        ));
    };
    let is_plain = element.ordering == SortByDir::SORTBY_DEFAULT
        && element.nulls_ordering == SortByNulls::SORTBY_NULLS_DEFAULT;
    match is_plain {
        true => Ok(name.to_owned()),
        false => Err(SqlError::new(
            "42P17",
            "including column does not support ASC/DESC options",
        )),
    }
}

/// How the parts of a key are ordered; empty where all are as by default.
fn order_of(elements: &[&IndexElem]) -> Vec<KeyOrder> {
    let order = elements.iter().map(|element| {
        let descending = element.ordering == SortByDir::SORTBY_DESC;
        let nulls_first = match element.nulls_ordering {
            SortByNulls::SORTBY_NULLS_FIRST => true,
            SortByNulls::SORTBY_NULLS_LAST => false,
            _ => descending,
        };
        KeyOrder {
            descending,
            nulls_first,
        }
    });
    let order: Vec<KeyOrder> = order.collect();
    match order.iter().all(|part| *part == KeyOrder::DEFAULT) {
        true => Vec::new(),
        false => order,
    }
}
