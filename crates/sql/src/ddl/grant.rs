//! GRANT, REVOKE and ALTER … OWNER TO. Who grants is the owner, or a role with the grant option
//! for what it has. What hangs on a revoked grant option goes with CASCADE, and stands in the
//! way without it.

use std::sync::Arc;

use thermocline_engine::authority::{Authority, Grant, Object, Privileges};
use thermocline_engine::{Catalog, FunctionDef};

use super::{Definition, no_schema};
use crate::bind::type_of_text;
use crate::error::{Result, SqlError};
use crate::parse::grant::{GrantCommand, Owned, Targets};
use crate::privilege::{Actor, denied, not_owner};

/// An object of a GRANT, with its kind and its name for messages.
struct Target {
    object: Object,
    kind: &'static str,
    name: String,
}

/// One change of one list of grants.
pub(super) struct Edit {
    pub(super) grant: bool,
    pub(super) grantee: u32,
    pub(super) grantor: u32,
    pub(super) privileges: Privileges,
    pub(super) option: bool,
    pub(super) cascade: bool,
}

impl Definition<'_> {
    pub(super) async fn grant(&mut self, command: &GrantCommand) -> Result<&'static str> {
        let actor = self.actor()?;
        let mut authority = (**actor.authority()).clone();
        let grantees = command
            .grantees
            .iter()
            .map(|name| self.grantee_oid(name))
            .collect::<Result<Vec<u32>>>()?;
        if command.grant && command.option && grantees.contains(&0) {
            return Err(SqlError::new(
                "0LP01",
                "grant options can only be granted to roles",
            ));
        }
        for target in self.targets(&command.targets)? {
            self.grant_on(&mut authority, &actor, &target, command, &grantees)?;
        }
        self.authorize(authority).await?;
        Ok(if command.grant { "GRANT" } else { "REVOKE" })
    }

    fn grant_on(
        &mut self,
        authority: &mut Authority,
        actor: &Actor,
        target: &Target,
        command: &GrantCommand,
        grantees: &[u32],
    ) -> Result<()> {
        let all = target.object.all_privileges();
        let mut whole = Privileges::NONE;
        let mut columns: Vec<(usize, Privileges)> = Vec::new();
        match &command.privileges {
            None => whole = all,
            Some(wanted) => {
                for (name, names) in wanted {
                    let privilege = match name.as_str() {
                        "all" => {
                            Privileges::SELECT
                                | Privileges::INSERT
                                | Privileges::UPDATE
                                | Privileges::REFERENCES
                        }
                        name => Privileges::named(name).ok_or_else(|| {
                            SqlError::syntax(format!("unrecognized privilege type \"{name}\""))
                        })?,
                    };
                    if !all.contains(privilege) {
                        return Err(SqlError::new(
                            "0LP01",
                            format!(
                                "invalid privilege type {} for {}",
                                name.to_uppercase(),
                                target.kind
                            ),
                        ));
                    }
                    if names.is_empty() {
                        whole |= privilege;
                    }
                    for column in names {
                        columns.push((self.column_of(target, column)?, privilege));
                    }
                }
            }
        }
        let grantable = authority.grantable(actor.role(), &target.object);
        let asked = columns.iter().fold(whole, |sum, (_, one)| sum | *one);
        if (grantable & asked).is_empty() {
            return Err(denied(target.kind, &target.name));
        }
        if !grantable.contains(asked) {
            let (sqlstate, what) = match command.grant {
                true => ("01007", "not all privileges were granted"),
                false => ("01006", "not all privileges could be revoked"),
            };
            self.notice(sqlstate, format!("{what} for \"{}\"", target.name));
        }
        // The owner's privileges are its own, whoever of its roles grants them.
        let grantor = match authority.owns(actor.role(), &target.object) {
            true => authority.owner(&target.object),
            false => actor.role(),
        };
        let edit = |grantee: u32, privileges: Privileges| Edit {
            grant: command.grant,
            grantee,
            grantor,
            privileges: privileges & grantable,
            option: command.option,
            cascade: command.cascade,
        };
        for &grantee in grantees {
            if !whole.is_empty() {
                let mut grants = authority.grants(&target.object);
                change(&mut grants, &edit(grantee, whole))?;
                authority.rights_mut(target.object.clone()).grants = Some(grants);
                if !command.grant {
                    // What is revoked of the table is revoked of its columns.
                    let rights = authority.rights_mut(target.object.clone());
                    for grants in rights.columns.values_mut() {
                        change(grants, &edit(grantee, whole))?;
                    }
                    rights.columns.retain(|_, grants| !grants.is_empty());
                }
            }
            for (column, privileges) in &columns {
                let rights = authority.rights_mut(target.object.clone());
                let grants = rights.columns.entry(*column).or_default();
                change(grants, &edit(grantee, *privileges))?;
                rights.columns.retain(|_, grants| !grants.is_empty());
            }
        }
        Ok(())
    }

    fn column_of(&self, target: &Target, name: &str) -> Result<usize> {
        if target.kind == "view" {
            return Err(SqlError::unsupported(
                "privileges on columns of views are not supported",
                "Grant them on the whole view.",
            ));
        }
        let Object::Table(oid) = target.object else {
            return Err(SqlError::new(
                "0LP01",
                format!("column privileges are not for a {}", target.kind),
            ));
        };
        let catalog = self.catalog();
        let found = catalog
            .table(oid)
            .and_then(|table| table.column_named(name));
        found.ok_or_else(|| {
            let message = format!(
                "column \"{name}\" of relation \"{}\" does not exist",
                target.name
            );
            SqlError::new("42703", message)
        })
    }

    fn targets(&self, targets: &Targets) -> Result<Vec<Target>> {
        let catalog = self.catalog();
        let mut found = Vec::new();
        match targets {
            Targets::Tables(names) => {
                for name in names {
                    found.push(self.relation_target(name, false)?);
                }
            }
            Targets::Sequences(names) => {
                for name in names {
                    found.push(self.relation_target(name, true)?);
                }
            }
            Targets::Schemas(names) => {
                for name in names {
                    found.push(self.schema_target(name)?);
                }
            }
            Targets::Procedures(names) => {
                for (name, types) in names {
                    found.push(self.procedure_target(name, types.as_deref())?);
                }
            }
            Targets::Functions(functions) => {
                for (name, types) in functions {
                    found.push(self.function_target(name, types.as_deref())?);
                }
            }
            Targets::AllFunctions(schemas, kind) => {
                for schema in schemas {
                    self.schema_target(schema)?;
                    let functions = catalog.functions.values();
                    let is_meant =
                        |f: &&Arc<FunctionDef>| f.schema == *schema && f.is_of_kind(*kind);
                    found.extend(functions.filter(is_meant).map(|f| Target {
                        object: Object::Function(f.oid),
                        kind: "function",
                        name: f.name.clone(),
                    }));
                }
            }
            Targets::Database(names) => {
                for name in names {
                    if name != crate::session::DATABASE_NAME {
                        return Err(SqlError::new(
                            "3D000",
                            format!("database \"{name}\" does not exist"),
                        ));
                    }
                    found.push(Target {
                        object: Object::Database,
                        kind: "database",
                        name: name.clone(),
                    });
                }
            }
            Targets::AllTables(schemas) => {
                for schema in schemas {
                    self.schema_target(schema)?;
                    let tables = catalog.tables.values();
                    found.extend(tables.filter(|t| t.schema == *schema).map(|t| Target {
                        object: Object::Table(t.oid),
                        kind: t.kind(),
                        name: t.name.clone(),
                    }));
                    let views = catalog.views.values();
                    found.extend(views.filter(|v| v.schema == *schema).map(|v| Target {
                        object: Object::Table(v.oid),
                        kind: "view",
                        name: v.name.clone(),
                    }));
                }
            }
            Targets::AllSequences(schemas) => {
                for schema in schemas {
                    self.schema_target(schema)?;
                    let sequences = catalog.sequences.values();
                    found.extend(sequences.filter(|s| s.schema == *schema).map(|s| Target {
                        object: Object::Sequence(s.oid),
                        kind: "sequence",
                        name: s.name.clone(),
                    }));
                }
            }
        }
        Ok(found)
    }

    fn relation_target(&self, parts: &[String], sequence: bool) -> Result<Target> {
        let catalog = self.catalog();
        let (schema, name) = self
            .find_relation(parts)
            .ok_or_else(|| SqlError::undefined_table(&parts.join(".")))?;
        if let Some(found) = catalog.sequence_by_name(&schema, &name) {
            return Ok(Target {
                object: Object::Sequence(found.oid),
                kind: "sequence",
                name,
            });
        }
        if let (Some(view), false) = (catalog.view_by_name(&schema, &name), sequence) {
            return Ok(Target {
                object: Object::Table(view.oid),
                kind: "view",
                name,
            });
        }
        match catalog.table_by_name(&schema, &name) {
            Some(table) if !sequence => Ok(Target {
                object: Object::Table(table.oid),
                kind: table.kind(),
                name,
            }),
            Some(_) => Err(SqlError::new(
                "42809",
                format!("\"{name}\" is not a sequence"),
            )),
            None if sequence => Err(SqlError::new(
                "42809",
                format!("\"{name}\" is not a sequence"),
            )),
            None => Err(SqlError::new("42809", format!("\"{name}\" is an index"))),
        }
    }

    fn schema_target(&self, name: &str) -> Result<Target> {
        let catalog = self.catalog();
        let schema = catalog.schema(name).ok_or_else(|| no_schema(name))?;
        Ok(Target {
            object: Object::Schema(schema.oid),
            kind: "schema",
            name: name.to_owned(),
        })
    }

    fn procedure_target(&self, parts: &[String], types: Option<&[String]>) -> Result<Target> {
        let name = parts.last().map_or("", String::as_str);
        if self.db.procedures().get(name).is_none() {
            let types = self.types_named(types)?;
            let found = self.found_routine(&(parts.to_vec(), types), 'p');
            let found = found
                .map_err(|_| SqlError::new("42883", format!("procedure {name} does not exist")))?;
            return Ok(Target {
                object: Object::Function(found.oid),
                kind: "procedure",
                name: found.name.clone(),
            });
        }
        Ok(Target {
            object: Object::Procedure(name.to_owned()),
            kind: "procedure",
            name: name.to_owned(),
        })
    }

    pub(super) fn types_named(&self, types: Option<&[String]>) -> Result<Option<Vec<u32>>> {
        let catalog = self.catalog();
        let type_of = |text: &String| {
            let known = type_of_text(text, self.type_names(&catalog));
            known.map(|(oid, _)| oid)
        };
        let types = types.map(|types| types.iter().map(type_of).collect::<Result<_>>());
        types.transpose()
    }

    /// A function, or a procedure of this name where there is no function.
    fn function_target(&self, name: &[String], types: Option<&[String]>) -> Result<Target> {
        match self.found_function(&(name.to_vec(), self.types_named(types)?)) {
            Ok(def) => Ok(Target {
                object: Object::Function(def.oid),
                kind: "function",
                name: def.name.clone(),
            }),
            Err(error) => self.procedure_target(name, types).map_err(|_| error),
        }
    }

    pub(super) async fn change_owner(&mut self, owned: &Owned, role: &str) -> Result<&'static str> {
        let (target, tag) = match owned {
            Owned::Table(name) => (self.relation_target(name, false)?, "ALTER TABLE"),
            Owned::View(name) => match self.relation_target(name, false)? {
                target if target.kind == "view" => (target, "ALTER VIEW"),
                Target { name, .. } => {
                    let message = format!("\"{name}\" is not a view");
                    return Err(SqlError::new("42809", message));
                }
            },
            Owned::Sequence(name) => (self.relation_target(name, true)?, "ALTER SEQUENCE"),
            Owned::Schema(name) => (self.schema_target(name)?, "ALTER SCHEMA"),
            Owned::Type(name) => {
                let def = self.find_type(name)?;
                let target = Target {
                    object: Object::Type(def.oid),
                    kind: "type",
                    name: def.name.clone(),
                };
                (target, "ALTER TYPE")
            }
            Owned::Procedure(name, types) => (
                self.procedure_target(name, types.as_deref())?,
                "ALTER PROCEDURE",
            ),
            Owned::Function(name, types) => (
                self.function_target(name, types.as_deref())?,
                "ALTER FUNCTION",
            ),
        };
        let actor = self.actor()?;
        let new = self.role_oid(role)?;
        let mut authority = (**actor.authority()).clone();
        let old = authority.owner(&target.object);
        if new == old {
            return Ok(tag);
        }
        if !actor.owns(&target.object) {
            return Err(not_owner(target.kind, &target.name));
        }
        if !authority.is_member(actor.role(), new) {
            return Err(SqlError::new(
                "42501",
                format!("must be member of role \"{}\"", authority.role_name(new)),
            ));
        }
        self.may_own(&actor, &authority, &target, new)?;
        own(&mut authority, target.object.clone(), old, new);
        if let Object::Table(oid) = target.object {
            // The sequences of its columns go with it.
            let catalog = self.catalog();
            for sequence in catalog.sequences.values() {
                if sequence.owned_by.is_some_and(|(table, _)| table == oid) {
                    own(&mut authority, Object::Sequence(sequence.oid), old, new);
                }
            }
        }
        self.authorize(authority).await?;
        Ok(tag)
    }

    /// The new owner must be able to make such a thing there, unless a superuser says so.
    fn may_own(
        &self,
        actor: &Actor,
        authority: &Authority,
        target: &Target,
        new: u32,
    ) -> Result<()> {
        if actor.is_superuser() {
            return Ok(());
        }
        let catalog = self.catalog();
        if matches!(
            target.object,
            Object::Schema(_) | Object::Procedure(_) | Object::Database
        ) {
            return match authority
                .privileges(new, &Object::Database)
                .contains(Privileges::CREATE)
            {
                true => Ok(()),
                false => Err(denied("database", crate::session::DATABASE_NAME)),
            };
        }
        let schema = schema_of(&catalog, &target.object);
        let schema = schema.unwrap_or_default();
        let there = catalog.schema(&schema).is_some_and(|def| {
            authority
                .privileges(new, &Object::Schema(def.oid))
                .contains(Privileges::CREATE)
        });
        match there {
            true => Ok(()),
            false => Err(denied("schema", &schema)),
        }
    }
}

/// The schema that an object is in, if it is in one.
pub(super) fn schema_of(catalog: &Catalog, object: &Object) -> Option<String> {
    match object {
        Object::Table(oid) => {
            let view = || catalog.views.get(oid).map(|view| view.schema.clone());
            let table = catalog.table(*oid).map(|table| table.schema.clone());
            table.or_else(view)
        }
        Object::Sequence(oid) => catalog.sequences.get(oid).map(|s| s.schema.clone()),
        Object::Type(oid) => catalog.types.get(oid).map(|def| def.schema.clone()),
        Object::Function(oid) => catalog.functions.get(oid).map(|def| def.schema.clone()),
        Object::Schema(_) | Object::Procedure(_) | Object::Database => None,
    }
}

/// Makes `new` the owner; what the old one had by its own grants, the new one has.
pub(super) fn own(authority: &mut Authority, object: Object, old: u32, new: u32) {
    let rights = authority.rights_mut(object);
    rights.owner = new;
    for grants in rights.grants.iter_mut().chain(rights.columns.values_mut()) {
        for grant in grants.iter_mut() {
            if grant.grantee == old {
                grant.grantee = new;
            }
            if grant.grantor == old {
                grant.grantor = new;
            }
        }
    }
}

pub(super) fn change(grants: &mut Vec<Grant>, edit: &Edit) -> Result<()> {
    let at = grants
        .iter()
        .position(|grant| grant.grantee == edit.grantee && grant.grantor == edit.grantor);
    if edit.grant {
        let at = at.unwrap_or_else(|| {
            grants.push(Grant {
                grantee: edit.grantee,
                grantor: edit.grantor,
                privileges: Privileges::NONE,
                grantable: Privileges::NONE,
            });
            grants.len() - 1
        });
        grants[at].privileges |= edit.privileges;
        if edit.option {
            grants[at].grantable |= edit.privileges;
        }
        return Ok(());
    }
    let Some(at) = at else {
        return Ok(());
    };
    let lost = grants[at].grantable & edit.privileges;
    grants[at].grantable = grants[at].grantable & !edit.privileges;
    if !edit.option {
        grants[at].privileges = grants[at].privileges & !edit.privileges;
    }
    grants.retain(|grant| !grant.privileges.is_empty());
    if lost.is_empty() || edit.grantee == edit.grantor {
        return Ok(());
    }
    // What the grantee gave on, unless it still may by another's grant.
    let mut still = Privileges::NONE;
    for grant in grants.iter().filter(|grant| grant.grantee == edit.grantee) {
        still |= grant.grantable;
    }
    let gone = lost & !still;
    let dependents: Vec<u32> = grants
        .iter()
        .filter(|grant| grant.grantor == edit.grantee && !(grant.privileges & gone).is_empty())
        .map(|grant| grant.grantee)
        .collect();
    if !dependents.is_empty() && !edit.cascade {
        return Err(SqlError::new("2BP01", "dependent privileges exist")
            .with_hint("Use CASCADE to revoke them too."));
    }
    for grantee in dependents {
        let next = Edit {
            grant: false,
            grantee,
            grantor: edit.grantee,
            privileges: gone,
            option: false,
            cascade: true,
        };
        change(grants, &next)?;
    }
    Ok(())
}
