//! What hangs on a type or a function, and goes with it: columns, defaults, checks, indexes, views.

use std::sync::Arc;

use thermocline_engine::ddl::Change;
use thermocline_engine::{Catalog, ColumnDef, FunctionDef, Table, TypeDef, TypeKind, ViewDef};

use super::Definition;
use super::attribute::attributes_of;
use super::dependents::quote_ident;
use super::named::calls;
use crate::error::{Result, SqlError};

/// What hangs on a type or a function.
pub(super) enum Hanging {
    /// The flag: it is of arrays of the type.
    Column(Arc<Table>, usize, bool),
    Default(Arc<Table>, usize),
    /// A column that is computed by it, of another type.
    Generated(Arc<Table>, usize),
    Check(Arc<Table>, usize),
    /// An index that computes something with it.
    Index(Arc<Table>, usize),
    Attribute(Arc<TypeDef>, usize),
    View(u32, String),
    /// A domain that is made of it.
    Domain(Arc<TypeDef>),
}

impl Definition<'_> {
    /// Drops what hangs on something that is to be dropped, which messages call `shown`.
    ///
    /// # Errors
    /// 2BP01 where there is such a thing, without CASCADE.
    pub(super) async fn drop_hanging(
        &mut self,
        shown: &str,
        hanging: &[Hanging],
        cascade: bool,
    ) -> Result<()> {
        if !hanging.is_empty() && !cascade {
            let lines = hanging.iter();
            let lines = lines.map(|one| {
                let of_arrays = matches!(one, Hanging::Column(_, _, true));
                let brackets = if of_arrays { "[]" } else { "" };
                format!("{} depends on {shown}{brackets}", described(one))
            });
            return Err(SqlError::new(
                "2BP01",
                format!("cannot drop {shown} because other objects depend on it"),
            )
            .with_detail(lines.collect::<Vec<_>>().join("\n"))
            .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        let lines: Vec<String> = hanging
            .iter()
            .map(|one| format!("drop cascades to {}", described(one)))
            .collect();
        match lines.as_slice() {
            [] => {}
            [line] => self.notice("00000", line.clone()),
            lines => {
                let message = format!("drop cascades to {} other objects", lines.len());
                let notice = SqlError::new("00000", message).with_detail(lines.join("\n"));
                self.notices.push(notice);
            }
        }
        // Views first, which may read the columns; then what a column that goes takes with it.
        let views = hanging.iter().filter_map(|one| match one {
            Hanging::View(oid, _) => Some(*oid),
            _ => None,
        });
        let views: Vec<u32> = views.collect();
        self.drop_together(&views, true).await?;
        for one in hanging {
            match one {
                Hanging::Default(table, column) => {
                    let mut altered = self.current(table.oid)?.def.clone();
                    altered.columns[*column].default = None;
                    self.apply(Change::AlterTable(altered)).await?;
                }
                Hanging::Index(table, at) => {
                    self.drop_index(table.oid, table.indexes[*at].oid).await?;
                }
                Hanging::Check(table, check) => {
                    let name = &table.checks[*check].name;
                    let mut altered = self.current(table.oid)?.def.clone();
                    altered.checks.retain(|check| check.name != *name);
                    self.apply(Change::AlterTable(altered)).await?;
                }
                Hanging::Attribute(composite, attribute) => {
                    let catalog = self.catalog();
                    let altered = catalog.types.get(&composite.oid);
                    let mut altered =
                        altered.map_or_else(|| (**composite).clone(), |def| (**def).clone());
                    attributes_of(&mut altered)?[*attribute].dropped = true;
                    self.apply(Change::AlterType(altered)).await?;
                }
                Hanging::Column(..)
                | Hanging::Generated(..)
                | Hanging::View(..)
                | Hanging::Domain(_) => {}
            }
        }
        for one in hanging {
            let Hanging::Domain(domain) = one else {
                continue;
            };
            // What hangs on it is among these, too.
            if let Some(domain) = self.catalog().types.get(&domain.oid) {
                let domain = Arc::clone(domain);
                Box::pin(self.drop_type_def(&domain, true)).await?;
            }
        }
        for one in hanging {
            if let Hanging::Column(table, column, _) | Hanging::Generated(table, column) = one {
                let name = &table.columns[*column].name;
                let table = self.current(table.oid)?;
                self.drop_column(&table, name, true, true).await?;
            }
        }
        Ok(())
    }

    /// 0A000 where a default or a condition that is kept as text calls the function.
    pub(super) fn is_kept_by_none(&self, def: &FunctionDef) -> Result<()> {
        let hanging = self.hanging_on_function(def)?;
        let mut texts = hanging
            .iter()
            .filter(|one| !matches!(one, Hanging::View(..)));
        match texts.next() {
            None => Ok(()),
            Some(one) => Err(SqlError::unsupported(
                format!(
                    "cannot rename or move function {} because {} calls it",
                    def.name,
                    described(one)
                ),
                "Drop that, move the function, and set it again.",
            )),
        }
    }

    /// What calls a function, and is kept.
    pub(super) fn hanging_on_function(&self, def: &FunctionDef) -> Result<Vec<Hanging>> {
        let catalog = self.catalog();
        let mut hanging = Vec::new();
        let tables = catalog.tables.values();
        for table in tables.filter(|table| !table.is_materialized()) {
            for (at, column) in table.live_columns() {
                if let Some(default) = &column.default
                    && calls(default, def)?
                {
                    let table = Arc::clone(table);
                    hanging.push(match column.generated {
                        true => Hanging::Generated(table, at),
                        false => Hanging::Default(table, at),
                    });
                }
            }
            for (at, check) in table.checks.iter().enumerate() {
                if calls(&check.expression, def)? {
                    hanging.push(Hanging::Check(Arc::clone(table), at));
                }
            }
            for (at, index) in table.indexes.iter().enumerate() {
                let columns = index.columns.iter().map(|column| &table.columns[*column]);
                let mut computed = columns.filter_map(ColumnDef::computed);
                if computed.try_fold(false, |any, text| {
                    Ok::<_, SqlError>(any || calls(text, def)?)
                })? {
                    hanging.push(Hanging::Index(Arc::clone(table), at));
                }
            }
        }
        let calls_it = |view: &&Arc<ViewDef>| view.functions.iter().any(|of| of.oid == def.oid);
        hanging.extend(
            catalog
                .all_views()
                .filter(calls_it)
                .map(|view| of_view(view, &catalog)),
        );
        Ok(hanging)
    }
}

/// A view as something that hangs.
pub(super) fn of_view(view: &ViewDef, catalog: &Catalog) -> Hanging {
    let kind = match catalog.views.contains_key(&view.oid) {
        true => "view",
        false => "materialized view",
    };
    Hanging::View(view.oid, format!("{kind} {}", quote_ident(&view.name)))
}

fn described(one: &Hanging) -> String {
    match one {
        Hanging::Column(table, column, _) | Hanging::Generated(table, column) => format!(
            "column {} of table {}",
            quote_ident(&table.columns[*column].name),
            quote_ident(&table.name)
        ),
        Hanging::Default(table, column) => format!(
            "default value for column {} of table {}",
            quote_ident(&table.columns[*column].name),
            quote_ident(&table.name)
        ),
        Hanging::Index(table, at) => format!("index {}", quote_ident(&table.indexes[*at].name)),
        Hanging::Check(table, check) => format!(
            "constraint {} on table {}",
            quote_ident(&table.checks[*check].name),
            quote_ident(&table.name)
        ),
        Hanging::Attribute(composite, attribute) => {
            let attributes = match &composite.kind {
                TypeKind::Composite(attributes) => attributes.as_slice(),
                TypeKind::Enum(_) | TypeKind::Domain(_) => &[],
            };
            let name = attributes.get(*attribute).map_or("", |one| &one.name);
            format!(
                "column {} of composite type {}",
                quote_ident(name),
                quote_ident(&composite.name)
            )
        }
        Hanging::View(_, described) => described.clone(),
        Hanging::Domain(domain) => format!("type {}", quote_ident(&domain.name)),
    }
}
