//! What is assigned to columns and to parts of them: `SET c = …`, `SET c[1] = …`, `SET c.f = …`,
//! and the same in the list of an INSERT's columns.

use pg_raw_parse::Node;
use pg_raw_parse::nodes::{MultiAssignRef, ResTarget};
use pg_raw_parse::raw::SubLinkType;

use super::Analyzer;
use super::change_view::Through;
use super::resolve::element_type;
use super::scope::{Clause, SYSTEM_COLUMNS};
use crate::casts::Context;
use crate::change::Given;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::tree::{
    Column, Expr, ExprKind, From, Part, Query, Relation, RelationKind, Store, Subquery,
    SubqueryKind, Target,
};
use crate::types::domain::{base, is_domain};
use crate::types::format_type;

/// A table's columns, as the target of a change.
pub(super) struct Assigned<'a> {
    /// The table's name.
    pub(super) table: &'a str,
    /// Its columns.
    pub(super) columns: &'a [Column],
    /// The view, if it is one.
    pub(super) through: Option<&'a Through>,
}

impl Assigned<'_> {
    /// The place of a column that is named.
    pub(super) fn place(&self, target: &ResTarget) -> Result<usize> {
        let name = target.name().unwrap_or_default();
        if let Some(through) = self.through {
            through
                .check(name)
                .map_err(|error| error.at(target.location))?;
        }
        let mut live = self.columns.iter().enumerate();
        let found = live.find(|(_, column)| !column.is_dropped() && *column.name == *name);
        found.map(|(place, _)| place).ok_or_else(|| {
            if SYSTEM_COLUMNS.contains(&name) {
                let message = format!("cannot assign to system column \"{name}\"");
                return QueryError::unsupported(message, "Leave it out: the database knows it.")
                    .at(target.location);
            }
            QueryError::new(
                "42703",
                format!(
                    "column \"{name}\" of relation \"{}\" does not exist",
                    self.table
                ),
            )
            .at(target.location)
        })
    }
}

/// The steps to the part of a column that is named.
pub(super) fn steps_of(target: &ResTarget) -> Vec<Node<'_>> {
    target.indirection().iter().collect()
}

impl Analyzer<'_> {
    /// `SET …`: each column once, with its new value.
    pub(super) fn assignments<'n>(
        &mut self,
        targets: impl Iterator<Item = &'n ResTarget>,
        of: &Assigned<'_>,
    ) -> Result<Vec<(usize, Given)>> {
        let before = std::mem::replace(&mut self.level().clause, Clause::Update);
        let mut assignments: Vec<(usize, Given)> = Vec::new();
        for target in targets {
            let given = self.given(target.val())?;
            let place = of.place(target)?;
            let steps = steps_of(target);
            let known = assignments.iter().position(|(column, _)| *column == place);
            if let (Some(_), true) = (known, steps.is_empty()) {
                return Err(twice(&of.columns[place]));
            }
            let value = match (given, steps.is_empty()) {
                (Given::Default, true) => Given::Default,
                (Given::Default, false) => {
                    return Err(part_default(&steps, target.location));
                }
                (Given::Value(value), _) => {
                    let column = &of.columns[place];
                    let container = match known.map(|at| assignments.remove(at).1) {
                        Some(Given::Value(before)) => {
                            let before = unchecked(before);
                            if !matches!(before.kind, ExprKind::Store(_)) {
                                return Err(twice(column));
                            }
                            before
                        }
                        Some(_) => return Err(twice(column)),
                        None => column_of(place, column),
                    };
                    Given::Value(self.assigned(column, container, &steps, value)?)
                }
            };
            assignments.push((place, value));
        }
        self.level().clause = before;
        Ok(assignments)
    }

    /// What is written for a column.
    pub(super) fn given(&mut self, node: Node<'_>) -> Result<Given> {
        match node {
            Node::SetToDefault(_) => Ok(Given::Default),
            Node::MultiAssignRef(part) => self.given_part(part),
            node => self.expr(node).map(Given::Value),
        }
    }

    /// `(a, b) = …`
    fn given_part(&mut self, part: &MultiAssignRef) -> Result<Given> {
        let count = usize::try_from(part.ncolumns).unwrap_or(0);
        let at = usize::try_from(part.colno - 1).unwrap_or(0);
        let unequal =
            || QueryError::new("42601", "number of columns does not match number of values");
        match part.source() {
            Node::RowExpr(row) => {
                let written: Vec<Node<'_>> = row.args().iter().collect();
                let is_default = |node: &Node<'_>| matches!(node, Node::SetToDefault(_));
                if written.iter().any(is_default) {
                    return match written.len() == count {
                        true => self.given(written[at]),
                        false => Err(unequal().at(row.location)),
                    };
                }
                // A `*` in it stands for several.
                let ExprKind::Row(mut parts) = self.expr(part.source())?.kind else {
                    return Err(unequal().at(row.location));
                };
                match parts.len() == count {
                    true => Ok(Given::Value(parts.swap_remove(at))),
                    false => Err(unequal().at(row.location)),
                }
            }
            Node::SubLink(link) if link.sub_link_type == SubLinkType::EXPR_SUBLINK => {
                let Node::SelectStmt(select) = link.subselect() else {
                    return Err(QueryError::internal("a subquery that is none"));
                };
                let query = self.query(select, None)?;
                if query.columns().len() != count {
                    return Err(unequal().at(link.location));
                }
                Ok(Given::Value(column_of_query(query, at, link.location)))
            }
            _ => Err(QueryError::unsupported(
                "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
                "Write (a, b) = (SELECT ...), or = ROW(...).",
            )),
        }
    }

    /// What a column becomes when `value` is assigned to the part of it that `steps` lead to.
    pub(super) fn assigned(
        &mut self,
        column: &Column,
        container: Expr,
        steps: &[Node<'_>],
        value: Expr,
    ) -> Result<Expr> {
        if super::coerce::returns_set(&value) && self.level().clause == Clause::Update {
            return Err(QueryError::unsupported(
                "set-returning functions are not allowed in UPDATE",
                "Call the function in a subquery or in FROM.",
            )
            .at(value.location));
        }
        if steps.is_empty() {
            return self.as_type(value, column.oid, column.modifier, &|wanted, given| {
                format!(
                    "column \"{}\" is of type {wanted} but expression is of type {given}",
                    column.name
                )
            });
        }
        self.stored(&column.name, container, steps, value)
    }

    /// `container` with the part changed that `steps` lead to.
    fn stored(
        &mut self,
        column: &str,
        container: Expr,
        steps: &[Node<'_>],
        value: Expr,
    ) -> Result<Expr> {
        let (oid, modifier, location) = (container.oid, container.modifier, value.location);
        if is_domain(oid) {
            let below = self.as_base(container).with_modifier(modifier);
            let stored = self.stored(column, below, steps, value)?;
            return self.coerce(stored, oid, -1, Context::Assignment);
        }
        let run = steps
            .iter()
            .take_while(|step| matches!(step, Node::A_Indices(_)))
            .count();
        let (part, value) = match (run, steps[0]) {
            (0, step) => {
                let Some(name) = step.as_str() else {
                    return Err(QueryError::unsupported(
                        "row expansion via \"*\" is not supported here",
                        "Name the fields.",
                    )
                    .at(location));
                };
                let (at, field) = self.field_of(column, &container, name, location)?;
                let value = match steps.len() {
                    1 => self.as_type(value, field.oid, field.modifier, &|wanted, given| {
                        format!("subfield \"{name}\" is of type {wanted} but expression is of type {given}")
                    })?,
                    _ => {
                        let inner = Expr::new(
                            ExprKind::Field(Box::new(container.clone()), at),
                            field.oid,
                            location,
                        );
                        let inner = inner.with_modifier(field.modifier);
                        self.stored(column, inner, &steps[1..], value)?
                    }
                };
                (Part::Field(at), value)
            }
            (run, _) => {
                let subscripted = self.subscripts(container.clone(), &steps[..run])?;
                let ExprKind::Subscript(subscript) = &subscripted.kind else {
                    return Err(QueryError::internal("subscripts that are none"));
                };
                let (bounds, slice) = (subscript.bounds.clone(), subscript.slice);
                let value = match steps.len() > run {
                    true => self.stored(column, subscripted, &steps[run..], value)?,
                    false => {
                        let element = match slice {
                            true => oid,
                            false => element_type(oid).unwrap_or(oid),
                        };
                        self.as_type(value, element, modifier, &|wanted, given| {
                            format!("subscripted assignment to \"{column}\" requires type {wanted} but expression is of type {given}")
                        })?
                    }
                };
                (Part::Elements(bounds, slice), value)
            }
        };
        let store = Store {
            container,
            part,
            value,
        };
        let stored = Expr::new(ExprKind::Store(Box::new(store)), oid, location);
        Ok(stored.with_modifier(modifier))
    }

    fn field_of(
        &mut self,
        column: &str,
        container: &Expr,
        name: &str,
        location: i32,
    ) -> Result<(usize, Column)> {
        let shown = format_type(container.oid, -1);
        let Some(columns) = self.catalog.composite(base(container.oid)) else {
            return Err(QueryError::new(
                "42804",
                format!("cannot assign to field \"{name}\" of column \"{column}\" because its type {shown} is not a composite type"),
            )
            .at(location));
        };
        let mut fields = columns.into_iter().enumerate();
        fields
            .find(|(_, field)| *field.name == *name)
            .ok_or_else(|| {
                QueryError::new(
                    "42703",
                    format!("cannot assign to field \"{name}\" of column \"{column}\" because there is no such column in data type {shown}"),
                )
                .at(location)
            })
    }

    /// A value of this type by assignment; `message` of both types' names says that it is none.
    fn as_type(
        &mut self,
        value: Expr,
        oid: u32,
        modifier: i32,
        message: &dyn Fn(String, String) -> String,
    ) -> Result<Expr> {
        let (source, location) = (value.oid, value.location);
        let coerced = self.coerce_to(value, oid, modifier, Context::Assignment)?;
        coerced.ok_or_else(|| {
            QueryError::new(
                "42804",
                message(format_type(oid, -1), format_type(source, -1)),
            )
            .with_hint("You will need to rewrite or cast the expression.")
            .at(location)
        })
    }
}

/// A value whose parts have been assigned, before a domain is asked about it; any other as it is.
pub(super) fn unchecked(value: Expr) -> Expr {
    fn is_stored(expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Store(_) => true,
            ExprKind::Checked(inner) | ExprKind::Fit(inner, _) => is_stored(inner),
            _ => false,
        }
    }
    if !is_stored(&value) {
        return value;
    }
    match value.kind {
        ExprKind::Checked(inner) | ExprKind::Fit(inner, _) => Expr {
            oid: value.oid,
            ..unchecked(*inner)
        },
        _ => value,
    }
}

/// A column of the changed table, which is relation 0.
fn column_of(place: usize, column: &Column) -> Expr {
    let kind = ExprKind::Column {
        level: 0,
        relation: 0,
        column: place,
    };
    Expr::new(kind, column.oid, -1).with_modifier(column.modifier)
}

/// NULL, as what a part is changed of where a row is new.
pub(super) fn nothing(column: &Column) -> Expr {
    Expr::constant(Datum::Null, column.oid).with_modifier(column.modifier)
}

/// One column of a query's only row, as a value.
fn column_of_query(query: Query, at: usize, location: i32) -> Expr {
    let columns = query.columns();
    let column = &columns[at];
    let (oid, modifier) = (column.oid, column.modifier);
    let kind = ExprKind::Column {
        level: 0,
        relation: 0,
        column: at,
    };
    let target = Target {
        expr: Expr::new(kind, oid, location).with_modifier(modifier),
        name: column.name.clone(),
        hidden: false,
        origin: None,
    };
    // It moves into a query of its own, so what it refers to is one further out.
    let mut query = query;
    query.raise_levels(1, 1);
    let outer = Query {
        relations: vec![Relation {
            kind: RelationKind::Subquery(Box::new(query), false),
            alias: "s".into(),
            columns,
            reader: None,
        }],
        from: vec![From::Relation(0)],
        targets: vec![target],
        ..Query::default()
    };
    let subquery = Subquery {
        kind: SubqueryKind::Scalar,
        query: outer,
        test: None,
    };
    Expr::new(ExprKind::Subquery(Box::new(subquery)), oid, location).with_modifier(modifier)
}

fn twice(column: &Column) -> QueryError {
    QueryError::new(
        "42601",
        format!("multiple assignments to same column \"{}\"", column.name),
    )
}

/// 0A000 for DEFAULT of a part.
pub(super) fn part_default(steps: &[Node<'_>], location: i32) -> QueryError {
    let what = match steps.first() {
        Some(Node::A_Indices(_)) => "an array element",
        _ => "a subfield",
    };
    QueryError::unsupported(
        format!("cannot set {what} to DEFAULT"),
        "Set the whole column to DEFAULT.",
    )
    .at(location)
}
