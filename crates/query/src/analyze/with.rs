//! WITH: queries that have a name, recursive ones among them.

use std::sync::Arc;

use pg_raw_parse::Node;
use pg_raw_parse::nodes::{CommonTableExpr, WithClause};
use pg_raw_parse::raw::CTEMaterialize;

use super::Analyzer;
use super::recursion::ordered;
use super::scope::Level;
use crate::error::{QueryError, Result};
use crate::tree::{Column, CommonTable, Query};

impl Analyzer<'_> {
    pub(super) fn with_clause(&mut self, with: &WithClause) -> Result<()> {
        let mut names: Vec<&str> = Vec::new();
        for common in with.ctes().iter() {
            let name = common.ctename().unwrap_or_default();
            if names.contains(&name) {
                return Err(QueryError::new(
                    "42712",
                    format!("WITH query name \"{name}\" specified more than once"),
                )
                .at(common.location));
            }
            names.push(name);
        }
        for (common, recursive) in ordered(with)? {
            self.common_table(common, common.ctename().unwrap_or_default(), recursive)?;
        }
        Ok(())
    }

    fn common_table(
        &mut self,
        common: &CommonTableExpr,
        name: &str,
        recursive: bool,
    ) -> Result<()> {
        let select = match common.ctequery() {
            Node::SelectStmt(select) => select,
            statement => return self.changing_table(common, statement, name),
        };
        let extended = common.search_clause().is_some() || common.cycle_clause().is_some();
        if extended && !recursive {
            return Err(QueryError::new("42601", "WITH query is not recursive").at(common.location));
        }
        let place = self.level().with.len();
        let aliases: Vec<&str> = common
            .aliascolnames()
            .iter()
            .filter_map(Node::as_str)
            .collect();
        if recursive {
            // Its columns are known when its first side is.
            let nothing = CommonTable::new(Arc::from(name), Query::default(), Vec::new());
            self.level().with.push(CommonTable {
                recursive: true,
                ..nothing
            });
        }
        let aliases_owned: Vec<String> = aliases.iter().map(|alias| (*alias).to_owned()).collect();
        let mut query = self.query(select, recursive.then_some((place, &aliases_owned)))?;
        let mut columns =
            self.common_columns(query.columns(), &aliases_owned, name, common.location)?;
        let materialized = match common.ctematerialized {
            CTEMaterialize::CTEMaterializeAlways => Some(true),
            CTEMaterialize::CTEMaterializeNever => Some(false),
            _ => None,
        };
        if recursive {
            let declared = &self.level().with[place].columns;
            for (at, (before, after)) in declared.iter().zip(&columns).enumerate() {
                if (before.oid, before.modifier) != (after.oid, after.modifier) {
                    return Err(QueryError::new(
                        "42804",
                        format!(
                            "recursive query \"{name}\" column {} has type {} in non-recursive term but type {} overall",
                            at + 1,
                            crate::types::format_type(before.oid, before.modifier),
                            crate::types::format_type(after.oid, after.modifier),
                        ),
                    )
                    .with_hint("Cast the output of the non-recursive term to the correct type."));
                }
            }
            if extended {
                let added = self.search_and_cycle(&mut query, &columns, common, place)?;
                columns.extend(added);
            }
            let own = &mut self.level().with[place];
            own.columns = columns;
            own.query = query;
            own.materialized = materialized;
            return Ok(());
        }
        self.level().with.push(CommonTable {
            materialized,
            ..CommonTable::new(Arc::from(name), query, columns)
        });
        Ok(())
    }

    /// A change of rows in the list. It is a statement of its own, whose WITH has the queries
    /// before it, too.
    fn changing_table(
        &mut self,
        common: &CommonTableExpr,
        statement: Node<'_>,
        name: &str,
    ) -> Result<()> {
        if matches!(statement, Node::MergeStmt(_)) {
            return Err(QueryError::unsupported(
                "MERGE not supported in WITH query",
                "Make the MERGE a statement of its own.",
            )
            .at(common.location));
        }
        let refused = match () {
            () if self.levels.len() > 1 => {
                Some("WITH clause containing a data-modifying statement must be at the top level")
            }
            () if !self.takes_changes => Some("a data-modifying statement in WITH is not allowed"),
            () => None,
        };
        if let Some(message) = refused {
            return Err(QueryError::unsupported(
                message,
                "Make the change in the WITH list at the top of the statement.",
            )
            .at(common.location));
        }
        let with = self.level().with.clone();
        let so_far = with.len();
        self.levels.push(Level {
            with,
            ..Level::default()
        });
        let change = self.change(statement);
        self.levels.pop();
        let mut change = change?;
        let known = change.with_mut();
        for (own, common) in self.level().with.iter_mut().zip(&mut known[..so_far]) {
            own.by_changes += common.references - own.references;
        }
        let aliases: Vec<String> = common
            .aliascolnames()
            .iter()
            .filter_map(Node::as_str)
            .map(str::to_owned)
            .collect();
        let columns = change.columns().unwrap_or_default();
        let columns = self.common_columns(columns, &aliases, name, common.location)?;
        self.level().with.push(CommonTable {
            change: Some(Box::new(change)),
            ..CommonTable::new(Arc::from(name), Query::default(), columns)
        });
        Ok(())
    }

    /// The columns of a named query under the names that it gives them.
    fn common_columns(
        &self,
        mut columns: Vec<Column>,
        aliases: &[String],
        name: &str,
        location: i32,
    ) -> Result<Vec<Column>> {
        if aliases.len() > columns.len() {
            return Err(QueryError::new(
                "42P10",
                format!(
                    "WITH query \"{name}\" has {} columns available but {} columns specified",
                    columns.len(),
                    aliases.len()
                ),
            )
            .at(location));
        }
        for (column, alias) in columns.iter_mut().zip(aliases) {
            column.name = Arc::from(alias.as_str());
        }
        Ok(columns)
    }

    /// Tells the recursive query at `place` of the level before this one its columns.
    pub(super) fn settle_recursive(
        &mut self,
        place: usize,
        columns: Vec<Column>,
        aliases: &[String],
    ) -> Result<()> {
        let owner = self.levels.len() - 2;
        let name = Arc::clone(&self.levels[owner].with[place].name);
        let columns = self.common_columns(columns, aliases, &name, -1)?;
        self.levels[owner].with[place].columns = columns;
        Ok(())
    }

    /// The named query that a name means: how many queries further out, and its place.
    pub(super) fn common(&self, name: &str) -> Option<(usize, usize)> {
        for up in 0..self.levels.len() {
            let level = &self.levels[self.levels.len() - 1 - up];
            if let Some(place) = level.with.iter().rposition(|common| *common.name == *name) {
                return Some((up, place));
            }
        }
        None
    }

    pub(super) fn common_at(&mut self, up: usize, place: usize) -> &mut CommonTable {
        let at = self.levels.len() - 1 - up;
        &mut self.levels[at].with[place]
    }
}
