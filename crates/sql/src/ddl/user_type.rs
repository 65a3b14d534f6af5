//! CREATE, ALTER and DROP TYPE.

use std::sync::Arc;

use pg_raw_parse::Node;
use thermocline_engine::authority::Object;
use thermocline_engine::ddl::Change;
use thermocline_engine::{Catalog, ColumnDef, TypeDef, TypeKind};
use thermocline_query::types::user::{self, Class};
use thermocline_values::types::DataType;

use super::attribute::{attributes_of, few_enough, is_new, live, no_attribute};
use super::dependents::quote_ident;
use super::hanging::{Hanging, of_view};
use super::index::indexes_over;
use super::{Definition, mentioned, names, no_schema};
use crate::error::{Result, SqlError};
use crate::parse::user_type::{AlterType, Neighbour, TypeCommand};
use crate::privilege::not_owner;
use crate::temporary::{is_temporary, meant, path_within};

/// The most bytes of a label, as in PostgreSQL.
const LABEL_BYTES_MAX: usize = 63;
/// How far apart the places of labels are at first: as many can be put between two of them as this
/// can be halved.
const APART: u64 = 1 << 40;

/// The type of the user's of this name.
pub(crate) fn find_type<'c>(
    catalog: &'c Catalog,
    search_path: &[String],
    schema: Option<&str>,
    name: &str,
) -> Option<&'c Arc<TypeDef>> {
    if catalog.types.is_empty() {
        return None;
    }
    match schema {
        Some(schema) => catalog.type_by_name(meant(schema, search_path), name),
        None => {
            let mut path = search_path.iter();
            path.find_map(|schema| catalog.type_by_name(schema, name))
        }
    }
}

/// The number of a user's type by its name; `_x` is that of the arrays of `x`.
pub(crate) fn type_named(
    catalog: &Catalog,
    search_path: &[String],
    schema: Option<&str>,
    name: &str,
) -> Option<u32> {
    let find = |name: &str| find_type(catalog, search_path, schema, name);
    if let Some(def) = find(name) {
        return Some(def.oid);
    }
    let element = find(name.strip_prefix('_')?)?;
    Some(element.array())
}

impl Definition<'_> {
    pub(super) async fn type_command(&mut self, command: &TypeCommand) -> Result<&'static str> {
        match command {
            TypeCommand::CreateEnum { name, labels } => {
                self.create_enum(name, labels).await?;
                Ok("CREATE TYPE")
            }
            TypeCommand::CreateComposite { name, attributes } => {
                let mut defs = Vec::with_capacity(attributes.len());
                for attribute in attributes {
                    let def = self.attribute(attribute)?;
                    is_new(&def.name, &defs)?;
                    defs.push(def);
                }
                few_enough(&defs)?;
                let kind = TypeKind::Composite(defs);
                self.create_type(name, Class::Composite, kind).await?;
                Ok("CREATE TYPE")
            }
            TypeCommand::Alter { name, change } => {
                self.alter_type(name, change).await?;
                Ok("ALTER TYPE")
            }
            TypeCommand::Drop {
                names,
                if_exists,
                cascade,
            } => {
                for name in names {
                    self.drop_type(name, *if_exists, *cascade).await?;
                }
                Ok("DROP TYPE")
            }
        }
    }

    async fn create_enum(&mut self, name: &[String], labels: &[String]) -> Result<()> {
        let mut places: Vec<(u64, String)> = Vec::with_capacity(labels.len());
        for (at, label) in labels.iter().enumerate() {
            fits(label)?;
            if places.iter().any(|(_, known)| known == label) {
                let constraint = "pg_enum_typid_label_index";
                return Err(SqlError::new(
                    "23505",
                    format!("duplicate key value violates unique constraint \"{constraint}\""),
                )
                .with_detail(format!("The label \"{label}\" is given twice.")));
            }
            places.push(((at as u64 + 1).saturating_mul(APART), label.clone()));
        }
        self.create_type(name, Class::Enum, TypeKind::Enum(places))
            .await
    }

    pub(super) async fn create_type(
        &mut self,
        name: &[String],
        class: Class,
        kind: TypeKind,
    ) -> Result<()> {
        let (schema, name) = self.new_name(name, false).await?;
        if is_temporary(&schema) {
            return Err(SqlError::unsupported(
                "types in temporary schemas are not supported",
                "Use a schema that is not temporary.",
            ));
        }
        self.free_type_name(&schema, &name)?;
        let catalog = self.catalog();
        let oid = loop {
            let oid = class.number(rand::random());
            if catalog.type_of(oid).is_none() && user::by_oid(oid).is_none() {
                break oid;
            }
        };
        let def = TypeDef::new(oid, schema, name, kind);
        self.apply(Change::CreateType(def)).await
    }

    /// 42710 where a type or a row of a relation is called so.
    pub(super) fn free_type_name(&self, schema: &str, name: &str) -> Result<()> {
        let catalog = self.catalog();
        let taken = catalog.type_by_name(schema, name).is_some()
            || catalog.table_by_name(schema, name).is_some()
            || catalog.view_by_name(schema, name).is_some();
        match taken {
            false => Ok(()),
            true => Err(SqlError::new(
                "42710",
                format!("type \"{name}\" already exists"),
            )),
        }
    }

    pub(super) fn find_type(&self, name: &[String]) -> Result<Arc<TypeDef>> {
        let catalog = self.catalog();
        let (schema, last) = match name {
            [name] => (None, name),
            [schema, name] | [_, schema, name] => (Some(schema.as_str()), name),
            _ => return Err(SqlError::syntax("improper qualified name")),
        };
        if schema.is_some_and(|schema| {
            let known = matches!(schema, "pg_catalog" | "information_schema");
            !known && catalog.schema(meant(schema, self.search_path)).is_none()
        }) {
            return Err(no_schema(schema.unwrap_or_default()));
        }
        match find_type(&catalog, self.search_path, schema, last) {
            Some(def) => Ok(Arc::clone(def)),
            None => Err(SqlError::new(
                "42704",
                format!("type \"{}\" does not exist", name.join(".")),
            )),
        }
    }

    /// A type as messages name it: with its schema where that is needed.
    fn shown_type(&self, def: &TypeDef) -> String {
        let catalog = self.catalog();
        let found = find_type(&catalog, self.search_path, None, &def.name);
        match found.is_some_and(|found| found.oid == def.oid) {
            true => quote_ident(&def.name),
            false => format!("{}.{}", quote_ident(&def.schema), quote_ident(&def.name)),
        }
    }

    async fn alter_type(&mut self, name: &[String], change: &AlterType) -> Result<()> {
        let old = self.find_type(name)?;
        if !self.actor()?.owns(&Object::Type(old.oid)) {
            return Err(not_owner("type", &old.name));
        }
        let mut def = (*old).clone();
        match change {
            AlterType::AddValue {
                label,
                if_not_exists,
                place,
            } => {
                fits(label)?;
                let labels = labels_of(&mut def)?;
                if labels.iter().any(|(_, known)| known == label) {
                    let message = format!("enum label \"{label}\" already exists");
                    if *if_not_exists {
                        self.notice("42710", format!("{message}, skipping"));
                        return Ok(());
                    }
                    return Err(SqlError::new("42710", message));
                }
                add_label(labels, label, place.as_ref())?;
            }
            AlterType::RenameValue { from, to } => {
                fits(to)?;
                let labels = labels_of(&mut def)?;
                let at = labels.iter().position(|(_, label)| label == from);
                let at = at.ok_or_else(|| no_label(from))?;
                if labels.iter().any(|(_, label)| label == to) {
                    let message = format!("enum label \"{to}\" already exists");
                    return Err(SqlError::new("42710", message));
                }
                labels[at].1.clone_from(to);
                self.label_is_kept_by_none(&def, from)?;
            }
            AlterType::Attributes(changes) => {
                for change in changes {
                    self.alter_attribute(&mut def, change)?;
                }
            }
            AlterType::RenameAttribute { from, to } => {
                let to = names::truncated(to);
                let name = def.name.clone();
                let attributes = attributes_of(&mut def)?;
                let at = live(attributes, from).ok_or_else(|| no_attribute(from, &name))?;
                is_new(&to, attributes)?;
                attributes[at].name = to;
            }
            AlterType::Rename(name) => return self.rename_type(&old, name).await,
            AlterType::Schema(schema) => return self.move_type(&old, schema).await,
        }
        self.apply(Change::AlterType(def)).await
    }

    pub(super) async fn rename_type(&mut self, old: &TypeDef, name: &str) -> Result<()> {
        let name = names::truncated(name);
        self.free_type_name(&old.schema, &name)?;
        self.is_named_by_none(old)?;
        let mut def = old.clone();
        def.name = name;
        self.apply(Change::AlterType(def)).await
    }

    /// Puts a type into another schema.
    pub(super) async fn move_type(&mut self, old: &TypeDef, schema: &str) -> Result<()> {
        let schema = meant(schema, self.search_path);
        if self.catalog().schema(schema).is_none() {
            return Err(no_schema(schema));
        }
        if schema == old.schema {
            return Ok(());
        }
        if is_temporary(schema) {
            return Err(SqlError::unsupported(
                "cannot move objects into or out of temporary schemas",
                "Create the object anew in the other schema.",
            ));
        }
        if self.free_type_name(schema, &old.name).is_err() {
            let message = format!(
                "type \"{}\" already exists in schema \"{schema}\"",
                old.name
            );
            return Err(SqlError::new("42710", message));
        }
        self.is_named_by_none(old)?;
        let mut def = old.clone();
        schema.clone_into(&mut def.schema);
        self.apply(Change::AlterType(def)).await
    }

    /// Defaults and checks are kept as texts: 0A000 where one of them names the type.
    fn is_named_by_none(&self, def: &TypeDef) -> Result<()> {
        let hanging = self.hanging_on(def)?;
        let named = hanging.iter().find_map(|one| match one {
            Hanging::Default(table, column) => Some((table, "the default of column", {
                &table.columns[*column].name
            })),
            Hanging::Generated(table, column) => {
                let name = &table.columns[*column].name;
                Some((table, "the generated column", name))
            }
            Hanging::Check(table, check) => Some((table, "the check", &table.checks[*check].name)),
            Hanging::Index(table, at) => Some((table, "the index", &table.indexes[*at].name)),
            Hanging::Column(..)
            | Hanging::Attribute(..)
            | Hanging::View(..)
            | Hanging::Domain(_) => None,
        });
        match named {
            None => Ok(()),
            Some((table, what, name)) => Err(SqlError::unsupported(
                format!(
                    "cannot rename type {} because {what} \"{name}\" of table \"{}\" names it",
                    def.name, table.name
                ),
                "Drop that, rename the type, and set it again.",
            )),
        }
    }

    pub(super) async fn drop_type(
        &mut self,
        name: &[String],
        if_exists: bool,
        cascade: bool,
    ) -> Result<()> {
        let def = match self.find_type(name) {
            Ok(def) => def,
            Err(error) if if_exists && matches!(error.sqlstate, "42704" | "3F000") => {
                self.notice("00000", format!("{}, skipping", error.message));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.drop_type_def(&def, cascade).await
    }

    pub(super) async fn drop_type_def(&mut self, def: &Arc<TypeDef>, cascade: bool) -> Result<()> {
        let change = Change::DropType(def.oid);
        super::rights::check(&change, &self.actor()?, &self.catalog())?;
        // Nothing more is made of it from here on.
        self.db.lock_type(self.txn, self.options, def.oid).await?;
        let hanging = self.hanging_on(def)?;
        let shown = format!("type {}", self.shown_type(def));
        self.drop_hanging(&shown, &hanging, cascade).await?;
        self.apply(change).await
    }

    /// What hangs on a type.
    fn hanging_on(&self, def: &TypeDef) -> Result<Vec<Hanging>> {
        let catalog = self.catalog();
        let mut hanging = Vec::new();
        // A materialized view goes as a whole, as views do.
        let tables = catalog.tables.values();
        for table in tables.filter(|table| !table.is_materialized()) {
            let names_it = |text: &str| {
                let path = path_within(&table.schema, self.search_path);
                Ok::<_, SqlError>(types_in(text, &catalog, &path)?.contains(&def.oid))
            };
            for (at, column) in table.live_columns() {
                let of = match (column.domain, column.data_type) {
                    (Some(domain), _) => domain,
                    (None, DataType::Other { oid, .. }) => oid,
                    _ => 0,
                };
                if of == def.oid || of == def.array() {
                    hanging.push(Hanging::Column(Arc::clone(table), at, of != def.oid));
                } else if let Some(default) = &column.default
                    && names_it(default)?
                {
                    let table = Arc::clone(table);
                    hanging.push(match column.generated {
                        true => Hanging::Generated(table, at),
                        false => Hanging::Default(table, at),
                    });
                }
            }
            for (at, check) in table.checks.iter().enumerate() {
                if names_it(&check.expression)? {
                    hanging.push(Hanging::Check(Arc::clone(table), at));
                }
            }
            // With a column that goes its indexes go, too.
            let mut with_columns = Vec::new();
            for one in &hanging {
                if let Hanging::Column(of, at, _) = one
                    && of.oid == table.oid
                {
                    with_columns.extend(indexes_over(table, *at)?);
                }
            }
            for (at, index) in table.indexes.iter().enumerate() {
                if with_columns.contains(&index.oid) {
                    continue;
                }
                let mut computed = index.columns.iter().map(|column| &table.columns[*column]);
                let hangs = |column: &ColumnDef| match (column.computed(), column.data_type) {
                    (None, _) => Ok(false),
                    (_, DataType::Other { oid, .. }) if oid == def.oid => Ok(true),
                    (Some(text), _) => names_it(text),
                };
                if computed.try_fold(false, |any, column| {
                    Ok::<_, SqlError>(any || hangs(column)?)
                })? {
                    hanging.push(Hanging::Index(Arc::clone(table), at));
                }
            }
        }
        for composite in catalog.types.values() {
            let attributes = match &composite.kind {
                TypeKind::Composite(attributes) => attributes,
                TypeKind::Domain(domain) => {
                    if domain.below == def.oid || domain.below == def.array() {
                        hanging.push(Hanging::Domain(Arc::clone(composite)));
                    }
                    continue;
                }
                TypeKind::Enum(_) => continue,
            };
            for (at, attribute) in attributes.iter().enumerate() {
                let of = attribute.type_oid;
                if !attribute.dropped && (of == def.oid || of == def.array()) {
                    hanging.push(Hanging::Attribute(Arc::clone(composite), at));
                }
            }
        }
        for view in catalog.all_views() {
            let of_it = |oid: u32| oid == def.oid || oid == def.array();
            if view.columns.iter().any(|column| of_it(column.type_oid))
                || view.types.iter().any(|named| of_it(named.oid))
            {
                hanging.push(of_view(view, &catalog));
            }
        }
        Ok(hanging)
    }
}

/// The users' types that an expression that is kept as text names.
pub(super) fn types_in(text: &str, catalog: &Catalog, path: &[String]) -> Result<Vec<u32>> {
    if catalog.types.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    mentioned::in_expression(text, &mut |node| {
        let Node::TypeName(name) = node else {
            return;
        };
        let parts = name.names().iter().filter_map(|part| part.sval());
        let parts: Vec<&str> = parts.collect();
        let def = match parts.as_slice() {
            [name] => find_type(catalog, path, None, name),
            [schema, name] => find_type(catalog, path, Some(schema), name),
            _ => None,
        };
        found.extend(def.map(|def| def.oid));
    })?;
    Ok(found)
}

/// The labels of an enum.
fn labels_of(def: &mut TypeDef) -> Result<&mut Vec<(u64, String)>> {
    match &mut def.kind {
        TypeKind::Enum(labels) => Ok(labels),
        TypeKind::Composite(_) | TypeKind::Domain(_) => Err(SqlError::new(
            "42809",
            format!("{} is not an enum", def.name),
        )),
    }
}

/// 42602 for a label that is too long.
fn fits(label: &str) -> Result<()> {
    if label.len() <= LABEL_BYTES_MAX {
        return Ok(());
    }
    Err(
        SqlError::new("42602", format!("invalid enum label \"{label}\""))
            .with_detail(format!("Labels must be {LABEL_BYTES_MAX} bytes or less.")),
    )
}

#[cold]
fn no_label(label: &str) -> SqlError {
    SqlError::new(
        "22023",
        format!("\"{label}\" is not an existing enum label"),
    )
}

/// Puts a label among the others.
fn add_label(
    labels: &mut Vec<(u64, String)>,
    label: &str,
    place: Option<&Neighbour>,
) -> Result<()> {
    let at = match place {
        None => labels.len(),
        Some(neighbour) => {
            let mut known = labels.iter();
            let at = known.position(|(_, label)| *label == neighbour.label);
            let at = at.ok_or_else(|| no_label(&neighbour.label))?;
            at + usize::from(!neighbour.before)
        }
    };
    let before = match at.checked_sub(1) {
        Some(before) => labels[before].0,
        None => 0,
    };
    let place = match labels.get(at) {
        Some((behind, _)) => before + (behind - before) / 2,
        None => before.saturating_add(APART),
    };
    if place == before {
        return Err(SqlError::new(
            "54000",
            format!("there is no room for another label beside \"{label}\""),
        )
        .with_hint("Too many labels were put in the same place; make a new type."));
    }
    labels.insert(at, (place, label.to_owned()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn neighbour(before: bool, label: &str) -> Neighbour {
        Neighbour {
            before,
            label: label.to_owned(),
        }
    }

    #[test]
    fn labels_go_between_others_and_keep_their_order() {
        let mut labels = Vec::new();
        add_label(&mut labels, "b", None).unwrap();
        add_label(&mut labels, "d", None).unwrap();
        add_label(&mut labels, "a", Some(&neighbour(true, "b"))).unwrap();
        add_label(&mut labels, "c", Some(&neighbour(false, "b"))).unwrap();
        let shown: Vec<&str> = labels.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(shown, ["a", "b", "c", "d"]);
        assert!(labels.is_sorted_by(|a, b| a.0 < b.0));
        let unknown = add_label(&mut labels, "e", Some(&neighbour(true, "z"))).unwrap_err();
        assert_eq!(unknown.message, "\"z\" is not an existing enum label");
    }

    #[test]
    fn where_there_is_no_room_is_said() {
        let mut labels = Vec::new();
        add_label(&mut labels, "last", None).unwrap();
        let mut count = 0;
        let refused = loop {
            let label = format!("l{count}");
            if let Err(error) = add_label(&mut labels, &label, Some(&neighbour(true, "last"))) {
                break error;
            }
            count += 1;
        };
        assert_eq!((refused.sqlstate, count), ("54000", 40));
        assert!(labels.is_sorted_by(|a, b| a.0 < b.0));
    }
}
