//! What hangs on a relation that is to be dropped: views that read it, and those that read
//! them. They stand in its way, or go with it.

use std::collections::BTreeSet;
use std::sync::Arc;

use thermocline_engine::ddl::Change;
use thermocline_engine::{Catalog, Database, RunOptions, Table, Transaction, ViewDef};

use super::Definition;
use super::view_query::columns_of_view;
use crate::error::{Result, SqlError};
pub(super) use crate::pg_catalog::quote_ident;

/// A view that reads something that is to be dropped.
pub(super) struct Dependent {
    pub(super) view: Arc<ViewDef>,
    /// What of that it reads.
    on: u32,
}

/// The views that hang on the roots, in the order in which PostgreSQL names them: each before
/// those that read it. `hangs` says whether one that reads a relation hangs on it.
pub(super) fn dependents(
    catalog: &Catalog,
    roots: &[u32],
    hangs: &dyn Fn(&ViewDef, u32) -> bool,
) -> Vec<Dependent> {
    fn visit(
        catalog: &Catalog,
        on: u32,
        hangs: &dyn Fn(&ViewDef, u32) -> bool,
        seen: &mut BTreeSet<u32>,
        found: &mut Vec<Dependent>,
    ) {
        let over: Vec<_> = catalog.views_over(on).cloned().collect();
        for view in over.into_iter().rev() {
            if hangs(&view, on) && seen.insert(view.oid) {
                visit(catalog, view.oid, hangs, seen, found);
                found.push(Dependent { view, on });
            }
        }
    }
    let mut seen: BTreeSet<u32> = roots.iter().copied().collect();
    let mut found = Vec::new();
    for root in roots {
        visit(catalog, *root, hangs, &mut seen, &mut found);
    }
    found.reverse();
    found
}

/// Drops views, those first that read others of them.
pub(super) async fn drop_views(
    db: &Arc<Database>,
    txn: &mut Transaction,
    options: &RunOptions,
    views: &[u32],
) -> Result<()> {
    let mut left: Vec<u32> = views.to_vec();
    while !left.is_empty() {
        let catalog = txn.catalog();
        let free = |oid: &u32| catalog.views_over(*oid).next().is_none();
        let Some(at) = left.iter().rposition(free) else {
            return Err(SqlError::internal("views that read each other"));
        };
        let oid = left.remove(at);
        if catalog.views.contains_key(&oid) {
            db.ddl(txn, options, Change::DropView(oid)).await?;
        } else if catalog.view_of(oid).is_some() {
            db.ddl(txn, options, Change::DropTable(oid)).await?;
        }
    }
    Ok(())
}

impl Definition<'_> {
    /// Drops the views that read the roots, and with them those roots that are views, or refuses to.
    pub(super) async fn drop_dependents(&mut self, roots: &[u32], cascade: bool) -> Result<()> {
        let dependents = dependents(&self.catalog(), roots, &|_, _| true);
        self.drop_found(&dependents, roots, None, cascade).await
    }

    /// Drops the views that read a column of a table, or refuses to.
    pub(super) async fn drop_readers(
        &mut self,
        table: &Table,
        column: usize,
        cascade: bool,
    ) -> Result<()> {
        let readers = self.readers(table, column)?;
        let is_reader = |view: &ViewDef| readers.iter().any(|reader| reader.oid == view.oid);
        let hangs = |view: &ViewDef, on: u32| on != table.oid || is_reader(view);
        let dependents = dependents(&self.catalog(), &[table.oid], &hangs);
        let name = &table.columns[column].name;
        self.drop_found(&dependents, &[table.oid], Some(name), cascade)
            .await
    }

    /// The views whose queries read a column of a table.
    pub(super) fn readers(&self, table: &Table, column: usize) -> Result<Vec<Arc<ViewDef>>> {
        let catalog = self.catalog();
        let mut readers = Vec::new();
        for view in catalog.views_over(table.oid) {
            if columns_of_view(self, view)?.contains(&(table.oid, column)) {
                readers.push(Arc::clone(view));
            }
        }
        Ok(readers)
    }

    /// Drops what hangs on the roots, or on a column of the only one, or refuses to.
    async fn drop_found(
        &mut self,
        dependents: &[Dependent],
        roots: &[u32],
        column: Option<&str>,
        cascade: bool,
    ) -> Result<()> {
        let catalog = self.catalog();
        if dependents.is_empty() {
            return Ok(());
        }
        let described = |oid: u32| match column {
            Some(column) if roots.contains(&oid) => {
                let table = self.described(&catalog, oid);
                format!("column {} of {table}", quote_ident(column))
            }
            _ => self.described(&catalog, oid),
        };
        if !cascade {
            let message = match roots {
                [root] => format!(
                    "cannot drop {} because other objects depend on it",
                    described(*root)
                ),
                _ => "cannot drop desired object(s) because other objects depend on them".into(),
            };
            let lines = dependents.iter().map(|dependent| {
                let (view, on) = (described(dependent.view.oid), described(dependent.on));
                format!("{view} depends on {on}")
            });
            return Err(SqlError::new("2BP01", message)
                .with_detail(lines.collect::<Vec<_>>().join("\n"))
                .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        let lines: Vec<String> = dependents
            .iter()
            .map(|dependent| format!("drop cascades to {}", described(dependent.view.oid)))
            .collect();
        let notice = match lines.as_slice() {
            [line] => SqlError::new("00000", line.as_str()),
            lines => SqlError::new(
                "00000",
                format!("drop cascades to {} other objects", lines.len()),
            )
            .with_detail(lines.join("\n")),
        };
        self.notices.push(notice);
        // A root may be a view over one that hangs on another root.
        let views = roots.iter().filter(|oid| catalog.view_of(**oid).is_some());
        let hanging = dependents.iter().map(|one| one.view.oid);
        let order: Vec<u32> = views.copied().chain(hanging).collect();
        self.drop_views(&order).await
    }

    /// Drops views, those first that read others of them. Who owns one owns what hangs on it:
    /// only rights on what was named are asked for.
    pub(super) async fn drop_views(&mut self, views: &[u32]) -> Result<()> {
        drop_views(self.db, self.txn, self.options, views).await
    }

    /// A relation as PostgreSQL describes it: `view v`, with its schema where that is needed.
    pub(super) fn described(&self, catalog: &Catalog, oid: u32) -> String {
        let (kind, schema, name) = match (catalog.table(oid), catalog.views.get(&oid)) {
            (Some(table), _) => (table.kind(), &table.schema, &table.name),
            (None, Some(view)) => ("view", &view.schema, &view.name),
            (None, None) => return format!("relation {oid}"),
        };
        let found = self.find_relation(std::slice::from_ref(name));
        let visible = found.is_some_and(|(first, _)| first == *schema);
        match visible {
            true => format!("{kind} {}", quote_ident(name)),
            false => format!("{kind} {}.{}", quote_ident(schema), quote_ident(name)),
        }
    }
}
