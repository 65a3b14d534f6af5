//! ALTER DEFAULT PRIVILEGES, and what it gives to new objects.

use thermocline_engine::Catalog;
use thermocline_engine::authority::{Authority, DefaultsKind, DefaultsOf, Object, Privileges};

use super::grant::{Edit, change};
use super::{Definition, no_schema};
use crate::error::{Result, SqlError};
use crate::parse::grant::DefaultPrivileges;
use crate::privilege::denied;

/// What errors call the kind.
const fn name_of(kind: DefaultsKind) -> &'static str {
    match kind {
        DefaultsKind::Table => "relation",
        DefaultsKind::Sequence => "sequence",
        DefaultsKind::Function => "function",
        DefaultsKind::Type => "type",
        DefaultsKind::Schema => "schema",
    }
}

impl Definition<'_> {
    pub(super) async fn default_privileges(
        &mut self,
        command: &DefaultPrivileges,
    ) -> Result<&'static str> {
        if command.kind == DefaultsKind::Schema && !command.schemas.is_empty() {
            let message = "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS";
            return Err(SqlError::new("0LP01", message));
        }
        let actor = self.actor()?;
        let mut authority = (**actor.authority()).clone();
        let privileges = wanted(command)?;
        let grantees = command.grantees.iter();
        let grantees: Vec<u32> = grantees
            .map(|name| self.grantee_oid(name))
            .collect::<Result<_>>()?;
        if command.grant && command.option && grantees.contains(&0) {
            return Err(SqlError::new(
                "0LP01",
                "grant options can only be granted to roles",
            ));
        }
        let roles = match command.roles.as_slice() {
            [] => vec![actor.role()],
            names => names
                .iter()
                .map(|name| self.role_oid(name))
                .collect::<Result<_>>()?,
        };
        for role in roles {
            if !authority.is_member(actor.role(), role) {
                let message = format!("must be member of role \"{}\"", authority.role_name(role));
                return Err(SqlError::new("42501", message));
            }
            for schema in self.schemas_of(&authority, role, &command.schemas)? {
                let of = DefaultsOf {
                    role,
                    schema,
                    kind: command.kind,
                };
                let mut grants = authority.default_grants(&of);
                for &grantee in &grantees {
                    let edit = Edit {
                        grant: command.grant,
                        grantee,
                        grantor: role,
                        privileges,
                        option: command.option,
                        cascade: command.cascade,
                    };
                    change(&mut grants, &edit)?;
                }
                authority.set_default_grants(of, grants);
            }
        }
        self.authorize(authority).await?;
        Ok("ALTER DEFAULT PRIVILEGES")
    }

    /// The schemas that are named, in which the role must be able to make something; none is any.
    fn schemas_of(
        &self,
        authority: &Authority,
        role: u32,
        names: &[String],
    ) -> Result<Vec<Option<u32>>> {
        if names.is_empty() {
            return Ok(vec![None]);
        }
        let catalog = self.catalog();
        let found = names.iter().map(|name| {
            let schema = catalog.schema(name).ok_or_else(|| no_schema(name))?;
            let object = Object::Schema(schema.oid);
            match authority
                .privileges(role, &object)
                .contains(Privileges::CREATE)
            {
                true => Ok(Some(schema.oid)),
                false => Err(denied("schema", name)),
            }
        });
        found.collect()
    }
}

fn wanted(command: &DefaultPrivileges) -> Result<Privileges> {
    let all = command.kind.object().all_privileges();
    let Some(names) = &command.privileges else {
        return Ok(all);
    };
    let mut privileges = Privileges::NONE;
    for name in names {
        let named = Privileges::named(name)
            .ok_or_else(|| SqlError::syntax(format!("unrecognized privilege type \"{name}\"")))?;
        if !all.contains(named) {
            let message = format!(
                "invalid privilege type {} for {}",
                name.to_uppercase(),
                name_of(command.kind)
            );
            return Err(SqlError::new("0LP01", message));
        }
        privileges |= named;
    }
    Ok(privileges)
}

/// Makes the role the owner of a new object, with what defaults grant on it.
pub(super) fn owned_by_its_maker(
    authority: &mut Authority,
    catalog: &Catalog,
    object: Object,
    role: u32,
) {
    let schema = super::grant::schema_of(catalog, &object);
    let schema = schema
        .and_then(|name| catalog.schema(&name))
        .map(|of| of.oid);
    let grants = authority.grants_of_new(role, schema, &object);
    let rights = authority.rights_mut(object);
    rights.owner = role;
    if grants.is_some() {
        rights.grants = grants;
    }
}
