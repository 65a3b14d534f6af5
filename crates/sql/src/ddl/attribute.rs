//! The columns of composite types: their making, and ALTER TYPE … ATTRIBUTE. A column that goes
//! keeps its place in the values that tables have.

use crate::typed::held;
use thermocline_engine::{AttributeDef, Catalog, TypeDef, TypeKind};
use thermocline_query::types;

use super::{Definition, names};
use crate::bind::type_of_text;
use crate::error::{Result, SqlError};
use crate::parse::user_type::{AlterAttribute, Attribute};

/// The most columns of a composite type that there ever may be.
const ATTRIBUTES_MAX: usize = 1600;

impl Definition<'_> {
    /// A column of a composite type that is to be.
    pub(super) fn attribute(&self, attribute: &Attribute) -> Result<AttributeDef> {
        let catalog = self.catalog();
        let (type_oid, modifier) = type_of_text(&attribute.type_text, self.type_names(&catalog))?;
        let element = types::element_of(type_oid).unwrap_or(type_oid);
        let pseudo = types::by_oid(element).is_none_or(|row| row.category == b'P');
        if pseudo || held(type_oid, modifier).is_none() {
            let shown = types::format_type(type_oid, -1);
            let name = &attribute.name;
            return Err(match pseudo {
                true => SqlError::new(
                    "42P16",
                    format!("column \"{name}\" has pseudo-type {shown}"),
                ),
                false => SqlError::unsupported(
                    format!("columns of type {shown} are not supported"),
                    "Store the value as text, and cast it where it is used.",
                ),
            });
        }
        Ok(AttributeDef {
            name: names::truncated(&attribute.name),
            type_oid,
            modifier,
            dropped: false,
        })
    }

    pub(super) fn alter_attribute(
        &mut self,
        def: &mut TypeDef,
        change: &AlterAttribute,
    ) -> Result<()> {
        let (oid, name) = (def.oid, def.name.clone());
        match change {
            AlterAttribute::Add(attribute) => {
                let new = self.attribute(attribute)?;
                self.is_not_within(oid, &name, new.type_oid)?;
                let attributes = attributes_of(def)?;
                is_new(&new.name, attributes)?;
                attributes.push(new);
                few_enough(attributes)
            }
            AlterAttribute::Type(attribute) => {
                let new = self.attribute(attribute)?;
                self.is_not_within(oid, &name, new.type_oid)?;
                // Tables would hold values of another type.
                if let Some(user) = self.user_of(oid) {
                    return Err(SqlError::unsupported(
                        format!("cannot alter type \"{name}\" because {user} uses it"),
                        "Make a new type, and give it to the column with ALTER TABLE ... ALTER COLUMN ... TYPE ... USING.",
                    ));
                }
                let attributes = attributes_of(def)?;
                let at = live(attributes, &new.name);
                let at = at.ok_or_else(|| no_attribute(&new.name, &name))?;
                attributes[at] = new;
                Ok(())
            }
            AlterAttribute::Drop {
                name: attribute,
                if_exists,
            } => {
                let catalog = self.catalog();
                let mut types = catalog.types.values();
                let asked = types.any(|other| {
                    matches!(&other.kind, TypeKind::Domain(domain)
                        if !domain.checks.is_empty() && is_within(&catalog, oid, domain.below))
                });
                let attributes = attributes_of(def)?;
                match live(attributes, attribute) {
                    Some(_) if asked => Err(SqlError::unsupported(
                        format!(
                            "cannot drop column {attribute} of composite type {name} because a domain is made of it"
                        ),
                        "Drop the domain, or its conditions, first.",
                    )),
                    Some(at) => {
                        attributes[at].dropped = true;
                        Ok(())
                    }
                    None if *if_exists => {
                        let missing = no_attribute(attribute, &name);
                        self.notice("00000", format!("{}, skipping", missing.message));
                        Ok(())
                    }
                    None => Err(no_attribute(attribute, &name)),
                }
            }
        }
    }

    /// A column that is of the type, or of one that has it in it.
    fn user_of(&self, oid: u32) -> Option<String> {
        let catalog = self.catalog();
        let has = |of: u32| is_within(&catalog, oid, of);
        for table in catalog.tables.values() {
            for (_, column) in table.live_columns() {
                if has(column.type_oid()) {
                    return Some(format!("column \"{}.{}\"", table.name, column.name));
                }
            }
        }
        let mut types = catalog.types.values();
        let user = types.find(|def| match &def.kind {
            TypeKind::Domain(domain) => has(domain.below),
            TypeKind::Enum(_) | TypeKind::Composite(_) => {
                def.attributes().any(|one| has(one.type_oid))
            }
        })?;
        Some(format!("type \"{}\"", user.name))
    }

    /// 42P16 where a type would be a column of its own.
    fn is_not_within(&self, oid: u32, name: &str, attribute: u32) -> Result<()> {
        match is_within(&self.catalog(), oid, attribute) {
            false => Ok(()),
            true => Err(SqlError::new(
                "42P16",
                format!("composite type {name} cannot be made a member of itself"),
            )),
        }
    }
}

/// The columns of a composite type.
pub(super) fn attributes_of(def: &mut TypeDef) -> Result<&mut Vec<AttributeDef>> {
    match &mut def.kind {
        TypeKind::Composite(attributes) => Ok(attributes),
        TypeKind::Enum(_) | TypeKind::Domain(_) => Err(SqlError::new(
            "42809",
            format!("\"{}\" is not a composite type", def.name),
        )),
    }
}

/// The place of the column of this name.
pub(super) fn live(attributes: &[AttributeDef], name: &str) -> Option<usize> {
    let is_it = |one: &AttributeDef| !one.dropped && one.name == name;
    attributes.iter().position(is_it)
}

#[cold]
pub(super) fn no_attribute(name: &str, of: &str) -> SqlError {
    SqlError::new(
        "42703",
        format!("column \"{name}\" of relation \"{of}\" does not exist"),
    )
}

/// 42701 where there is a column of this name.
pub(super) fn is_new(name: &str, attributes: &[AttributeDef]) -> Result<()> {
    match live(attributes, name) {
        None => Ok(()),
        Some(_) => Err(SqlError::new(
            "42701",
            format!("column \"{name}\" specified more than once"),
        )),
    }
}

pub(super) fn few_enough(attributes: &[AttributeDef]) -> Result<()> {
    match attributes.len() <= ATTRIBUTES_MAX {
        true => Ok(()),
        false => Err(SqlError::new(
            "54011",
            format!("tables can have at most {ATTRIBUTES_MAX} columns"),
        )),
    }
}

/// Whether a type is another, or that of its elements, or is within it as a column.
fn is_within(catalog: &Catalog, oid: u32, of: u32) -> bool {
    let mut next = vec![of];
    let mut seen = Vec::new();
    while let Some(of) = next.pop() {
        let Some(def) = catalog.type_of(of) else {
            continue;
        };
        if def.oid == oid {
            return true;
        }
        if !seen.contains(&def.oid) {
            seen.push(def.oid);
            next.extend(def.attributes().map(|attribute| attribute.type_oid));
            if let TypeKind::Domain(domain) = &def.kind {
                next.push(domain.below);
            }
        }
    }
    false
}
