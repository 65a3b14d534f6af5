//! Changes of views that show rows of one table as they are: they are changes of the table, of
//! those rows that the view shows. Which views these are PostgreSQL says
//! ("automatically updatable views"), but here a view of a view is none.

use std::sync::Arc;

use super::Analyzer;
use super::Stored;
use super::change::Changed;
use super::scope::Item;
use crate::change::Via;
use crate::error::{QueryError, Result};
use crate::tree::{Column, Distinctness, Expr, ExprKind, From, Query, Relation, RelationKind};

/// What is done with a view's rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Insert,
    Update,
    Delete,
}

/// A view in place of a table.
pub(super) struct Through {
    verb: Verb,
    name: String,
    /// The table's columns that the view shows, in its order.
    pub(super) order: Vec<usize>,
    /// The view's columns that are none of the table.
    computed: Vec<Arc<str>>,
    /// Which rows it shows.
    filter: Option<Expr>,
    number: u32,
}

impl Through {
    /// 0A000 for a column that is none of the table.
    pub(super) fn check(&self, column: &str) -> Result<()> {
        if self.computed.iter().all(|name| **name != *column) {
            return Ok(());
        }
        let verb = match self.verb {
            Verb::Insert => "insert into",
            Verb::Update | Verb::Delete => "update",
        };
        let message = format!(
            "cannot {verb} column \"{column}\" of view \"{}\"",
            self.name
        );
        Err(
            QueryError::unsupported(message, "Change the table of the view.").with_detail(
                "View columns that are not columns of their base relation are not updatable.",
            ),
        )
    }

    /// The rows that the view shows, of those with `filter`.
    pub(super) fn rows(&self, filter: Option<Expr>) -> Option<Expr> {
        match (self.filter.clone(), filter) {
            (Some(own), Some(filter)) => {
                let (oid, location) = (own.oid, filter.location);
                Some(Expr::new(ExprKind::And(vec![own, filter]), oid, location))
            }
            (own, filter) => own.or(filter),
        }
    }

    /// Of a statement that reads what the view shows, or does not.
    pub(super) fn via(&self, reads: bool) -> Via {
        Via {
            view: self.number,
            reads,
            shows: self.filter.clone(),
        }
    }

    /// Says that ON CONFLICT is not done.
    pub(super) fn no_conflict(&self) -> QueryError {
        QueryError::unsupported(
            format!("ON CONFLICT with view \"{}\" is not supported", self.name),
            "Insert into its table.",
        )
    }

    /// For an INSERT without a list of columns, which gives a value to each.
    ///
    /// # Errors
    /// 0A000 where a column is none of the table.
    pub(super) fn check_all(&self) -> Result<()> {
        match self.computed.first() {
            Some(column) => self.check(column),
            None => Ok(()),
        }
    }
}

/// Why a view of anything but a table or a view takes no changes.
pub const OF_NO_TABLE: &str =
    "Views that do not select from a single table or view are not automatically updatable.";

/// Why a view of the query takes no changes, in PostgreSQL's words.
#[must_use]
pub fn view_obstacle(query: &Query) -> Option<&'static str> {
    let any = |is: &dyn Fn(&ExprKind) -> bool| {
        let mut targets = query.targets.iter();
        targets.any(|target| target.expr.any(&mut |expr| is(&expr.kind)))
    };
    let is_grouped = |by: bool| {
        let group = query.group.as_ref();
        group.is_some_and(|group| (group.sets.len() != 1 || !group.exprs.is_empty()) == by)
    };
    if query.distinct != Distinctness::All {
        return Some("Views containing DISTINCT are not automatically updatable.");
    }
    if query.set_operation.is_some() {
        return Some(
            "Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.",
        );
    }
    if is_grouped(true) {
        return Some("Views containing GROUP BY are not automatically updatable.");
    }
    if query.having.is_some() {
        return Some("Views containing HAVING are not automatically updatable.");
    }
    if !query.with.is_empty() {
        return Some("Views containing WITH are not automatically updatable.");
    }
    if query.limit.is_some() || query.offset.is_some() {
        return Some("Views containing LIMIT or OFFSET are not automatically updatable.");
    }
    if query.group.is_some() || any(&|kind| matches!(kind, ExprKind::Aggregate(_))) {
        return Some("Views that return aggregate functions are not automatically updatable.");
    }
    if any(&|kind| matches!(kind, ExprKind::Window(_))) {
        return Some("Views that return window functions are not automatically updatable.");
    }
    if query.has_set_targets {
        return Some("Views that return set-returning functions are not automatically updatable.");
    }
    let single = match query.from.as_slice() {
        [From::Relation(place)] => query.relations.get(*place),
        _ => None,
    };
    let is_stored = |kind: &RelationKind, columns: &[Column]| match kind {
        RelationKind::Table(_) => true,
        // A view's columns are its own, a subquery's are nobody's.
        RelationKind::Subquery(inner, _) => {
            columns.iter().all(|column| column.origin.is_some())
                && inner
                    .columns()
                    .iter()
                    .zip(columns)
                    .any(|(a, b)| a.origin != b.origin)
        }
        _ => false,
    };
    if !single.is_some_and(|relation| is_stored(&relation.kind, &relation.columns)) {
        return Some(OF_NO_TABLE);
    }
    None
}

impl Analyzer<'_> {
    /// A view as what is changed.
    pub(super) fn changed_view(
        &mut self,
        stored: &Stored,
        text: &str,
        (name, alias): (&str, Option<&str>),
        verb: Verb,
    ) -> Result<(Changed, Item)> {
        let mut query = self.view(stored, text)?;
        if let Some(detail) = view_obstacle(&query) {
            let what = match verb {
                Verb::Insert => "insert into",
                Verb::Update => "update",
                Verb::Delete => "delete from",
            };
            let message = format!("cannot {what} view \"{name}\"");
            return Err(QueryError::new("55000", message)
                .with_detail(detail)
                .with_hint("Change its tables."));
        }
        let shown = query.relations.remove(0);
        let RelationKind::Table(table) = shown.kind else {
            let message =
                format!("changes of view \"{name}\", which shows a view, are not supported");
            return Err(QueryError::unsupported(
                message,
                "Change the view that it shows.",
            ));
        };
        let mut columns: Vec<_> = shown.columns.clone();
        columns.iter_mut().for_each(|column| column.oid = 0);
        let mut through = Through {
            verb,
            name: name.to_owned(),
            order: Vec::new(),
            computed: Vec::new(),
            filter: query.filter.take(),
            number: stored.oid,
        };
        let targets = query.targets.into_iter().filter(|target| !target.hidden);
        let mut visible = Vec::new();
        for (column, target) in stored.columns.iter().zip(targets) {
            let place = match target.expr.kind {
                ExprKind::Column {
                    level: 0,
                    relation: 0,
                    column,
                } if shown.columns.get(column).is_some_and(|of| !of.is_dropped()) => Some(column),
                _ => None,
            };
            match place.filter(|place| !through.order.contains(place)) {
                Some(place) => {
                    columns[place] = shown.columns[place].clone();
                    columns[place].name = Arc::clone(&column.name);
                    through.order.push(place);
                }
                None => through.computed.push(Arc::clone(&column.name)),
            }
            visible.push((Arc::clone(&column.name), target.expr));
        }
        let relation = Relation {
            alias: Arc::from(alias.unwrap_or(name)),
            ..shown
        };
        let schema = alias.is_none().then(|| Arc::clone(&stored.schema));
        let (place, item) = self.add_relation(relation, schema);
        if place != 0 {
            return Err(QueryError::internal("a view is not what is changed first"));
        }
        let item = Item {
            relation: None,
            columns: visible,
            ..item
        };
        let changed = Changed {
            table,
            columns,
            name: name.to_owned(),
            through: Some(through),
        };
        Ok((changed, item))
    }
}
