//! Functions in FROM: what rows they give, under which names.

use std::sync::Arc;

use pg_raw_parse::Node;
use pg_raw_parse::nodes::{Alias, ColumnDef, RangeFunction};

use super::coerce::{is_composite, row_of};
use super::from::renamed;
use super::row_columns::columns_given;
use super::scope::{Clause, Item};
use super::sql_function::{Given, not_at_the_top};
use super::{Analyzer, column_name};
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::functions::{self, POPULATING};
use crate::tree::{Column, Expr, ExprKind, From, Relation, RelationKind};
use crate::types::domain::base;
use crate::types::{format_type, ids};

/// The column of WITH ORDINALITY.
fn ordinality() -> Column {
    Column {
        name: Arc::from("ordinality"),
        oid: ids::INT8,
        modifier: -1,
        origin: None,
    }
}

impl Analyzer<'_> {
    pub(super) fn functions(&mut self, range: &RangeFunction) -> Result<(From, Vec<Item>)> {
        let clause = std::mem::replace(&mut self.level().clause, Clause::FromFunction);
        let members = self.function_members(range);
        self.level().clause = clause;
        let members = members?;
        let alias = range.alias();
        let given = self.given.take();
        let named = self.given_name.take().map(|(_, name)| name);
        if let Some(Given::Rows(query)) = given {
            return self.set_in_from(*query, members, range, named);
        }
        if let Some(Given::Before) = given {
            return self.before_in_from(members, range, named);
        }
        let shown = alias
            .and_then(Alias::aliasname)
            .map(str::to_owned)
            .or_else(|| members.first().map(|member| member.1.clone()))
            .unwrap_or_default();
        let only = members.len() == 1;
        let mut columns = Vec::new();
        let mut calls = Vec::new();
        for (expr, name, mut own) in members {
            if own.is_empty() {
                // A function of one value: its column is called as the alias, or as the function.
                let column = match (only, alias.and_then(Alias::aliasname)) {
                    (true, Some(alias)) => alias.to_owned(),
                    _ => name,
                };
                own.push(Column {
                    name: Arc::from(column),
                    oid: expr.oid,
                    modifier: expr.modifier,
                    origin: None,
                });
            }
            calls.push((expr, own.len()));
            columns.append(&mut own);
        }
        if range.ordinality {
            columns.push(ordinality());
        }
        let relation = Relation {
            kind: RelationKind::Functions {
                calls,
                ordinality: range.ordinality,
            },
            alias: Arc::from(shown.as_str()),
            columns: renamed(columns, alias, &shown)?,
            reader: None,
        };
        let (place, item) = self.add_relation(relation, None);
        Ok((From::Relation(place), vec![item]))
    }

    /// The rows of a user's function.
    fn set_in_from(
        &mut self,
        query: crate::tree::Query,
        members: Vec<(Expr, String, Vec<Column>)>,
        range: &RangeFunction,
        named: Option<Arc<str>>,
    ) -> Result<(From, Vec<Item>)> {
        let [(expr, name, _)] = members.as_slice() else {
            return Err(QueryError::unsupported(
                "ROWS FROM with functions of SQL that give rows is not supported",
                "Call each function in a FROM item of its own.",
            ));
        };
        if range.ordinality {
            return Err(QueryError::unsupported(
                "WITH ORDINALITY of a function of SQL is not supported",
                "Number the rows with row_number().",
            )
            .at(expr.location));
        }
        let alias = range.alias();
        let shown = alias.and_then(Alias::aliasname).unwrap_or(name);
        let mut columns = query.columns();
        match (columns.as_mut_slice(), named, alias) {
            ([only], Some(name), _) => only.name = name,
            ([only], None, Some(_)) => only.name = Arc::from(shown),
            _ => {}
        }
        let relation = Relation {
            kind: RelationKind::Subquery(Box::new(query), true),
            alias: Arc::from(shown),
            columns: renamed(columns, alias, shown)?,
            reader: None,
        };
        let (place, item) = self.add_relation(relation, None);
        Ok((From::Relation(place), vec![item]))
    }

    /// The rows of a call that is made before the statement.
    fn before_in_from(
        &mut self,
        members: Vec<(Expr, String, Vec<Column>)>,
        range: &RangeFunction,
        named: Option<Arc<str>>,
    ) -> Result<(From, Vec<Item>)> {
        let mut members = members.into_iter();
        let (Some((_, name, defined)), None) = (members.next(), members.next()) else {
            return Err(QueryError::unsupported(
                "ROWS FROM with functions of PL/pgSQL is not supported",
                "Call each function in a statement of its own.",
            ));
        };
        let alias = range.alias();
        let shown = alias.and_then(Alias::aliasname).unwrap_or(&name);
        let column = named.as_deref().unwrap_or(shown);
        let (calls, mut columns) = self.rows_before(defined, column)?;
        if range.ordinality {
            columns.push(ordinality());
        }
        let relation = Relation {
            kind: RelationKind::Functions {
                calls,
                ordinality: range.ordinality,
            },
            alias: Arc::from(shown),
            columns: renamed(columns, alias, shown)?,
            reader: None,
        };
        let (place, item) = self.add_relation(relation, None);
        Ok((From::Relation(place), vec![item]))
    }

    /// The columns of a column definition list.
    fn defined(&self, definitions: &[&ColumnDef]) -> Result<Vec<Column>> {
        let mut columns = Vec::with_capacity(definitions.len());
        for definition in definitions {
            let Some(type_name) = definition.type_name() else {
                continue;
            };
            let (oid, modifier) = self.type_of(type_name)?;
            columns.push(Column {
                name: Arc::from(definition.colname().unwrap_or_default()),
                oid,
                modifier,
                origin: None,
            });
        }
        Ok(columns)
    }

    /// Each function, its name, and its columns if it gives rows of several.
    fn function_members(
        &mut self,
        range: &RangeFunction,
    ) -> Result<Vec<(Expr, String, Vec<Column>)>> {
        let mut members = Vec::new();
        for pair in range.functions().iter() {
            let Some(pair) = pair.as_node_list() else {
                return Err(QueryError::internal("a function in FROM is a pair"));
            };
            let node = pair.get(0).unwrap_or(Node::None);
            let mut definitions = Vec::new();
            let listed = pair.get(1).and_then(|node| node.as_node_list());
            for definition in listed.into_iter().flat_map(|list| list.iter()) {
                if let Node::ColumnDef(definition) = definition {
                    definitions.push(definition);
                }
            }
            definitions.extend(range.coldeflist().iter());
            // `unnest(a, b)` is `ROWS FROM (unnest(a), unnest(b))`.
            if let Node::FuncCall(call) = node
                && call.args().len() > 1
                && definitions.is_empty()
                && call.funcname().iter().filter_map(Node::as_str).next_back() == Some("unnest")
                && !call.func_variadic
            {
                for argument in call.args().iter() {
                    let argument = self.expr(argument)?;
                    let location = call.location;
                    let expr = self.call_named("unnest", vec![argument], location)?;
                    members.push((expr, "unnest".to_owned(), Vec::new()));
                }
                continue;
            }
            self.level().from_call = match node {
                Node::FuncCall(call) => call.location,
                _ => -1,
            };
            let expr = self.expr(node)?;
            let mut expr = self.decide_unknown(expr)?;
            let name = column_name::of_function(node);
            // Not of a call among its arguments.
            let is_it = |at: i32| matches!(node, Node::FuncCall(call) if call.location == at);
            self.given_name.take_if(|(at, _)| !is_it(*at));
            if let Some(Given::Before) = self.given {
                if !matches!(expr.kind, ExprKind::Constant(Datum::Null)) {
                    return Err(not_at_the_top(expr.location));
                }
                let defined = self.defined(&definitions)?;
                members.push((expr, name, defined));
                continue;
            }
            if matches!(self.given, Some(Given::Rows(_))) {
                if !matches!(expr.kind, ExprKind::Constant(Datum::Null)) {
                    return Err(not_at_the_top(expr.location));
                }
                members.push((expr, name, Vec::new()));
                continue;
            }
            let named = self.given_name.take().map(|(_, name)| name);
            let of_arguments = match self.given.take() {
                Some(Given::Columns(columns)) if matches!(node, Node::FuncCall(_)) => columns,
                _ => Vec::new(),
            };
            let mut columns = Vec::new();
            if !definitions.is_empty() {
                if expr.oid != ids::RECORD {
                    return Err(QueryError::new(
                        "42601",
                        "a column definition list is only allowed for functions returning \"record\"",
                    )
                    .at(expr.location));
                }
                if !of_arguments.is_empty() {
                    return Err(QueryError::new(
                        "42601",
                        "a column definition list is redundant for a function with OUT parameters",
                    )
                    .at(expr.location));
                }
                columns = self.defined(&definitions)?;
                populating(&mut expr, &columns)?;
            } else if let ExprKind::Call(call) = &expr.kind
                && !call.function.columns.is_empty()
            {
                columns.extend(columns_given(call));
            } else if expr.oid == ids::RECORD && !of_arguments.is_empty() {
                columns = of_arguments;
            } else if is_composite(expr.oid) && expr.oid != ids::RECORD {
                columns = self.catalog.composite(base(expr.oid)).unwrap_or_default();
            } else if expr.oid == ids::RECORD {
                return Err(QueryError::new(
                    "42601",
                    "a column definition list is required for functions returning \"record\"",
                )
                .at(expr.location));
            }
            if let (Some(name), true) = (named, columns.is_empty()) {
                columns.push(Column {
                    name,
                    oid: expr.oid,
                    modifier: expr.modifier,
                    origin: None,
                });
            }
            members.push((expr, name, columns));
        }
        Ok(members)
    }
}

/// A call that makes rows of any columns becomes one that fills a row of these; one that fills a
/// row is given a row of these.
fn populating(expr: &mut Expr, columns: &[Column]) -> Result<()> {
    let ExprKind::Call(call) = &mut expr.kind else {
        return Ok(());
    };
    let base = row_of(columns, vec![Datum::Null; columns.len()]);
    let base = Expr::constant(Datum::Record(base.into()), ids::RECORD);
    if POPULATING
        .iter()
        .any(|(_, fills)| *fills == call.function.oid)
    {
        match call.arguments.first_mut() {
            Some(row) if matches!(row.kind, ExprKind::Constant(Datum::Null)) => *row = base,
            Some(row) => is_row_of(row, columns)?,
            None => {}
        }
        return Ok(());
    }
    let of = POPULATING
        .iter()
        .find(|(made, _)| *made == call.function.oid);
    let Some(fills) = of.and_then(|(_, fills)| functions::by_oid(*fills)) else {
        return Ok(());
    };
    call.function = fills;
    call.arguments.insert(0, base);
    if fills.arguments.len() > call.arguments.len() {
        call.arguments
            .push(Expr::constant(Datum::Bool(false), ids::BOOL));
    }
    call.types = call.arguments.iter().map(|argument| argument.oid).collect();
    Ok(())
}

/// 42804 where a row that is written out has other columns than these.
fn is_row_of(row: &Expr, columns: &[Column]) -> Result<()> {
    let ExprKind::Row(parts) = &row.kind else {
        return Ok(());
    };
    let (given, wanted) = (parts.len(), columns.len());
    let detail = if given != wanted {
        let s = if given == 1 { "" } else { "s" };
        format!("Returned row contains {given} attribute{s}, but query expects {wanted}.")
    } else {
        let mut both = parts.iter().zip(columns).enumerate();
        let Some((at, (part, column))) = both.find(|(_, (part, column))| part.oid != column.oid)
        else {
            return Ok(());
        };
        format!(
            "Returned type {} at ordinal position {}, but query expects {}.",
            format_type(part.oid, -1),
            at + 1,
            format_type(column.oid, -1)
        )
    };
    let message = "function return row and query-specified return row do not match";
    Err(QueryError::new("42804", message).with_detail(detail))
}
