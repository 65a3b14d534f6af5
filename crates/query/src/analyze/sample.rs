//! TABLESAMPLE: a query over the table, within the one at hand, that keeps each row by chance.

use std::sync::Arc;

use pg_raw_parse::Node;
use pg_raw_parse::nodes::RangeTableSample;

use super::Analyzer;
use super::scope::{Clause, FIRST_USER_OID, Item, Level};
use crate::error::{QueryError, Result};
use crate::functions;
use crate::functions::sample::{BY_GROUPS, BY_ROWS};
use crate::tree::{Expr, ExprKind, From, FunctionCall, Query, Relation, RelationKind, Target};
use crate::types::ids;

/// The methods, and what decides about a row.
const METHODS: [(&str, u32); 2] = [("bernoulli", BY_ROWS), ("system", BY_GROUPS)];

/// `random()`
const RANDOM: u32 = 1598;

impl Analyzer<'_> {
    pub(super) fn sampled(&mut self, sample: &RangeTableSample) -> Result<(From, Vec<Item>)> {
        let Node::RangeVar(range) = sample.relation() else {
            return Err(of_a_table().at(sample.location));
        };
        let written: Vec<&str> = sample.method().iter().filter_map(Node::as_str).collect();
        let method = METHODS
            .iter()
            .find(|(name, _)| written.last() == Some(name));
        let Some((method, function)) = method else {
            let message = format!("tablesample method {} does not exist", written.join("."));
            return Err(QueryError::new("42704", message).at(sample.location));
        };
        let arguments = sample.args();
        if arguments.len() != 1 {
            let message = format!(
                "tablesample method {method} requires 1 argument, not {}",
                arguments.len()
            );
            return Err(QueryError::new("2202H", message).at(sample.location));
        }
        self.levels.push(Level::default());
        let within = self.rows_sampled(sample, range, *function);
        self.levels.pop();
        let (query, alias) = within?;
        let relation = Relation {
            columns: query.columns(),
            kind: RelationKind::Subquery(Box::new(query), true),
            alias,
            reader: None,
        };
        let (place, item) = self.add_relation(relation, None);
        Ok((From::Relation(place), vec![item]))
    }

    /// The query of the rows that are kept, and what the table is called.
    fn rows_sampled(
        &mut self,
        sample: &RangeTableSample,
        range: &pg_raw_parse::nodes::RangeVar,
        function: u32,
    ) -> Result<(Query, Arc<str>)> {
        self.level().clause = Clause::FromFunction;
        let percent = sample.args().iter().next().unwrap_or(Node::None);
        let percent = self.expr(percent)?;
        let percent = self.coerce_to_specific(percent, ids::FLOAT4, "TABLESAMPLE")?;
        let seed = match sample.repeatable() {
            // A seed for each row is chance itself.
            Node::None => call(RANDOM, Vec::new())?,
            seed => {
                let seed = self.expr(seed)?;
                self.coerce_to_specific(seed, ids::FLOAT8, "REPEATABLE")?
            }
        };
        let (from, items) = self.table(range)?;
        let (From::Relation(place), Some(item)) = (&from, items.into_iter().next()) else {
            return Err(of_a_table().at(sample.location));
        };
        let of = &mut self.level().relations[*place];
        match of.kind {
            RelationKind::Table(oid) if oid >= FIRST_USER_OID => {}
            RelationKind::Table(_) => {
                return Err(QueryError::unsupported(
                    "TABLESAMPLE of a system catalog is not supported",
                    "Read all of it: it is small.",
                )
                .at(range.location));
            }
            _ => return Err(of_a_table().at(range.location)),
        }
        let number = ExprKind::Column {
            level: 0,
            relation: *place,
            column: of.number_rows(),
        };
        let alias = Arc::clone(&of.alias);
        let number = Expr::new(number, ids::INT8, -1);
        let filter = call(function, vec![number, percent, seed])?;
        let target = |(name, expr)| Target {
            expr,
            name,
            hidden: false,
            origin: None,
        };
        let query = Query {
            relations: std::mem::take(&mut self.level().relations),
            from: vec![from],
            filter: Some(filter),
            targets: item.columns.into_iter().map(target).collect(),
            ..Query::default()
        };
        Ok((query, alias))
    }
}

fn of_a_table() -> QueryError {
    let message = "TABLESAMPLE clause can only be applied to tables and materialized views";
    QueryError::new("42809", message)
}

/// The call of a function by its number.
fn call(oid: u32, arguments: Vec<Expr>) -> Result<Expr> {
    let function = functions::by_oid(oid)
        .ok_or_else(|| QueryError::internal("a function that is not there"))?;
    let call = FunctionCall {
        function,
        operator: None,
        types: function.arguments.into(),
        arguments,
    };
    Ok(Expr::new(
        ExprKind::Call(Box::new(call)),
        function.result,
        -1,
    ))
}
