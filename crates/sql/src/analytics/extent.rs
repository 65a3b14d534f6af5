//! How large a query becomes when its names are replaced by what they stand for. A planner puts
//! a WITH query wherever its name stands, and columns where a star stands; where these are in each
//! other the plan doubles with each of them, however short the text.

use std::ops::ControlFlow;

use sqlparser::ast::{ObjectName, Query, Select, SelectItem, TableFactor, Visit, Visitor};

use super::column_name::{folded, last_part};
use crate::bind::{SELECT_LIST_MAX, too_many_columns};
use crate::error::{Result, SqlError};

/// The tables that a plan may read, each as often as it is read.
const TABLES_MAX: u64 = 5_000;

/// Refuses a query whose plan would be too large. `width` says how many columns a table has.
///
/// # Errors
/// 54011 and 54001.
pub(super) fn check(query: &Query, width: &dyn Fn(&ObjectName) -> usize) -> Result<()> {
    let mut extent = Extent {
        width,
        queries: vec![Frame::default()],
        known: Vec::new(),
    };
    match query.visit(&mut extent) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// A query: what it reads, how many columns it gives.
#[derive(Default, Clone, Copy)]
struct Size {
    tables: u64,
    columns: usize,
}

#[derive(Default)]
struct Frame {
    tables: u64,
    /// The widest of its select lists that are complete.
    columns: usize,
    /// Of the select list that is looked at.
    items: usize,
    stars: usize,
    /// The columns of what is in its FROM.
    from: usize,
    /// Names of its WITH that are still to come, last first.
    names: Vec<String>,
    /// The names that were known before it.
    known: usize,
}

impl Frame {
    fn end_select(&mut self) {
        let columns = self.items + self.stars.saturating_mul(self.from);
        self.columns = self.columns.max(columns);
        (self.items, self.stars, self.from) = (0, 0, 0);
    }
}

struct Extent<'a> {
    width: &'a dyn Fn(&ObjectName) -> usize,
    queries: Vec<Frame>,
    /// The WITH queries in reach.
    known: Vec<(String, Size)>,
}

impl Visitor for Extent<'_> {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<SqlError> {
        let tables = query.with.iter().flat_map(|with| &with.cte_tables);
        let mut names: Vec<String> = tables.map(|cte| folded(&cte.alias.name)).collect();
        names.reverse();
        self.queries.push(Frame {
            names,
            known: self.known.len(),
            ..Frame::default()
        });
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<SqlError> {
        if let Some(frame) = self.queries.last_mut() {
            frame.end_select();
            let is_star = |item: &&SelectItem| {
                matches!(
                    item,
                    SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)
                )
            };
            frame.stars = select.projection.iter().filter(is_star).count();
            frame.items = select.projection.len() - frame.stars;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<SqlError> {
        let TableFactor::Table { name, .. } = factor else {
            return ControlFlow::Continue(());
        };
        let plain = if name.0.len() == 1 {
            last_part(name)
        } else {
            None
        };
        let of_with = plain.and_then(|plain| {
            let found = self.known.iter().rev().find(|(name, _)| *name == plain);
            found.map(|(_, size)| *size)
        });
        let size = of_with.unwrap_or_else(|| Size {
            tables: 1,
            columns: (self.width)(name),
        });
        if let Some(frame) = self.queries.last_mut() {
            frame.tables = frame.tables.saturating_add(size.tables);
            frame.from = frame.from.saturating_add(size.columns);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<SqlError> {
        let Some(mut frame) = self.queries.pop() else {
            return ControlFlow::Continue(());
        };
        frame.end_select();
        self.known.truncate(frame.known);
        if frame.columns > SELECT_LIST_MAX {
            return ControlFlow::Break(too_many_columns());
        }
        // What nobody reads costs nothing.
        let is_read = self
            .queries
            .last()
            .is_none_or(|outer| outer.names.is_empty());
        if is_read && frame.tables > TABLES_MAX {
            return ControlFlow::Break(
                SqlError::new("54001", "statement is too complex").with_detail(format!(
                    "With what its WITH names stand for it reads {} tables; it may read \
                     {TABLES_MAX}.",
                    frame.tables
                )),
            );
        }
        let size = Size {
            tables: frame.tables,
            columns: frame.columns,
        };
        if let Some(outer) = self.queries.last_mut() {
            match outer.names.pop() {
                Some(name) => self.known.push((name, size)),
                None => {
                    outer.tables = outer.tables.saturating_add(size.tables);
                    outer.from = outer.from.saturating_add(size.columns);
                }
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::ast::Statement;
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::parser::Parser;

    use super::*;

    fn checked(sql: &str) -> Result<()> {
        let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap();
        let Statement::Query(query) = statements.remove(0) else {
            panic!("not a query");
        };
        check(&query, &|_| 4)
    }

    #[test]
    fn names_and_stars_count_as_often_as_they_stand() {
        let mut with = "x0 as (select a from t)".to_owned();
        let mut stars = "t".to_owned();
        for level in 1..=30 {
            let before = level - 1;
            with += &format!(", x{level} as (select a.a from x{before} a, x{before} b)");
            if level <= 12 {
                stars = format!("(select *, * from {stars}) s");
            }
        }
        assert_eq!(
            checked(&format!("with {with} select 1 from x5")),
            Ok(()),
            "a WITH query that nobody reads costs nothing"
        );
        let error = checked(&format!("with {with} select 1 from x30")).unwrap_err();
        assert_eq!(error.sqlstate, "54001");
        let error = checked(&format!("select * from {stars}")).unwrap_err();
        assert_eq!(error.sqlstate, "54011");
        let items = ["1"; SELECT_LIST_MAX + 1].join(",");
        assert!(checked(&format!("select {items}")).is_err());
        checked("select *, a.*, b.* from t a join t b using (x) where y in (select * from t)")
            .unwrap();
    }
}
