//! What a query reads, told from its names alone: by it the way of a statement is chosen before
//! it is analysed.

use std::ops::ControlFlow;

use sqlparser::ast::{Query, Select, SetExpr, TableFactor, Visit, Visitor};
use thermocline_engine::Catalog;

use crate::parse::tokens::{fold, fold_parts};
use crate::temporary;

/// What a query reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reads {
    /// No relation.
    Nothing,
    /// Relations of the system, and nothing else.
    Catalogs,
    /// Users' tables, or names that are nothing here.
    Tables,
}

/// What `query` reads; `is_system` tells the relations of the system by schema and name.
pub(crate) fn reads(
    query: &Query,
    catalog: &Catalog,
    search_path: &[String],
    is_system: &dyn Fn(Option<&str>, &str) -> bool,
) -> Reads {
    let mut found = Found {
        catalog,
        search_path,
        is_system,
        ctes: Vec::new(),
        tables: false,
        relations: false,
    };
    // Of most statements the first name says it.
    if query.with.is_none()
        && let SetExpr::Select(select) = &*query.body
        && found.first(select)
    {
        return Reads::Tables;
    }
    let _ = query.visit(&mut found);
    match (found.tables, found.relations) {
        (true, _) => Reads::Tables,
        (false, true) => Reads::Catalogs,
        (false, false) => Reads::Nothing,
    }
}

struct Found<'a> {
    catalog: &'a Catalog,
    search_path: &'a [String],
    is_system: &'a dyn Fn(Option<&str>, &str) -> bool,
    ctes: Vec<String>,
    tables: bool,
    relations: bool,
}

impl Found<'_> {
    /// Whether the first relation of FROM is a user's.
    fn first(&self, select: &Select) -> bool {
        match select.from.first().map(|first| &first.relation) {
            Some(TableFactor::Table {
                name, args: None, ..
            }) => self.is_users(&fold_parts(name)),
            _ => false,
        }
    }

    /// Whether there is a table or a view of this name.
    fn is_there(&self, schema: &str, name: &str) -> bool {
        self.catalog.table_by_name(schema, name).is_some()
            || self.catalog.view_by_name(schema, name).is_some()
    }

    fn is_users(&self, parts: &[String]) -> bool {
        match parts {
            [table] => {
                let mut path = self.search_path.iter();
                let own = temporary::first(self.search_path);
                own.is_some_and(|own| self.is_there(own, table))
                    || !(self.is_system)(Some("pg_catalog"), table)
                        && path.any(|schema| self.is_there(schema, table))
            }
            [schema, table] | [_, schema, table] => {
                self.is_there(temporary::meant(schema, self.search_path), table)
            }
            _ => true,
        }
    }

    fn relation(&mut self, parts: &[String]) {
        if matches!(parts, [name] if self.ctes.contains(name)) {
            return;
        }
        let is_system = !self.is_users(parts)
            && match parts {
                [table] => (self.is_system)(None, table),
                [schema, table] | [_, schema, table] => (self.is_system)(Some(schema), table),
                _ => false,
            };
        if is_system {
            self.relations = true;
        } else {
            self.tables = true;
        }
    }
}

impl Visitor for Found<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if let Some(with) = &query.with {
            let names = with.cte_tables.iter().map(|cte| &cte.alias.name);
            self.ctes.extend(names.map(fold));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table {
            name, args: None, ..
        } = factor
        {
            self.relation(&fold_parts(name));
        }
        match self.tables {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
