//! Roles: CREATE, ALTER and DROP, and who is a member of whom. A superuser may do all of it; a
//! role with CREATEROLE what touches no superuser; everybody its own password.

use thermocline_engine::authority::{
    Authority, FIRST_ROLE_OID, Grant, Membership, PUBLIC, Privileges, RoleDef,
};
use thermocline_engine::ddl::Change;
use thermocline_values::types::DataType;
use thermocline_values::value::Value;

use super::{Definition, names};
use crate::error::{Result, SqlError};
use crate::parse::role::{RoleCommand, RoleOptions};
use crate::password::{Secret, verifier_text};
use crate::privilege::{Actor, no_role};

impl Definition<'_> {
    pub(super) async fn role_command(&mut self, command: &RoleCommand) -> Result<&'static str> {
        match command {
            RoleCommand::Create { name, options } => self.create_role(name, options).await?,
            RoleCommand::Alter { name, options } => self.alter_role(name, options).await?,
            RoleCommand::Rename { name, to } => self.rename_role(name, to).await?,
            RoleCommand::Drop { names, if_exists } => self.drop_roles(names, *if_exists).await?,
            RoleCommand::Settings {
                role,
                database,
                change,
            } => {
                let of = self.settings_of(role.as_deref(), database.as_deref())?;
                self.change_settings(of, change).await?;
            }
            RoleCommand::Members {
                roles,
                members,
                grant,
                admin,
            } => self.members(roles, members, *grant, *admin).await?,
        }
        Ok(command.tag())
    }

    pub(super) async fn authorize(&mut self, authority: Authority) -> Result<()> {
        self.apply(Change::Authorize(Box::new(authority))).await
    }

    /// The role of this name; CURRENT_USER and SESSION_USER are roles, too.
    pub(super) fn role_oid(&self, name: &str) -> Result<u32> {
        let actor = self.actor()?;
        let name = match name {
            "current_user" | "current_role" => actor.name(),
            "session_user" => self.session_user,
            name => name,
        };
        let found = actor.authority().role_by_name(name);
        found.map(|role| role.oid).ok_or_else(|| no_role(name))
    }

    /// As [`Self::role_oid`], or everybody.
    pub(super) fn grantee_oid(&self, name: &str) -> Result<u32> {
        match name {
            "public" => Ok(PUBLIC),
            name => self.role_oid(name),
        }
    }

    async fn create_role(&mut self, name: &str, options: &RoleOptions) -> Result<()> {
        let actor = self.actor()?;
        let mut authority = (**actor.authority()).clone();
        may_make_roles(&actor)?;
        if options.superuser == Some(true) || options.replication == Some(true) {
            actor.need_superuser("create superusers")?;
        }
        let name = new_role_name(name, &authority)?;
        let oid = self.db.allocate_oid();
        let mut role = RoleDef::new(oid, &name);
        self.take_options(&mut role, options)?;
        authority.roles.insert(oid, role);
        let grantor = actor.role();
        let add = |authority: &mut Authority, role: u32, member: u32, admin: bool| {
            authority.memberships.push(Membership {
                role,
                member,
                admin,
                grantor,
            });
        };
        for group in &options.in_roles {
            let group_name = group;
            let group = self.role_oid(group)?;
            may_admit(&actor, group)?;
            if Authority::is_predefined(group) && !authority.administers(actor.role(), group) {
                return Err(may_not_admit(group_name));
            }
            add(&mut authority, group, oid, false);
        }
        for (members, admin) in [(&options.members, false), (&options.admins, true)] {
            for member in members {
                let member = self.role_oid(member)?;
                add(&mut authority, oid, member, admin);
            }
        }
        self.authorize(authority).await
    }

    async fn alter_role(&mut self, name: &str, options: &RoleOptions) -> Result<()> {
        let actor = self.actor()?;
        let oid = self.role_oid(name)?;
        let mut authority = (**actor.authority()).clone();
        not_predefined(oid, name)?;
        let Some(role) = authority.roles.get_mut(&oid) else {
            return Err(no_role(name));
        };
        if role.superuser || options.superuser.is_some() || options.replication.is_some() {
            let own_password = oid == actor.role() && is_password_only(options);
            if !own_password {
                actor.need_superuser("alter superuser roles or change superuser attribute")?;
            }
        } else if !(oid == actor.role() && is_password_only(options)) {
            may_make_roles(&actor)?;
        }
        if oid == FIRST_ROLE_OID && options.superuser == Some(false) {
            return Err(SqlError::unsupported(
                "permission denied to alter role",
                "Leave SUPERUSER of this role as it is.",
            )
            .with_detail("The bootstrap superuser must have the SUPERUSER attribute."));
        }
        self.take_options(role, options)?;
        self.authorize(authority).await
    }

    fn take_options(&mut self, role: &mut RoleDef, options: &RoleOptions) -> Result<()> {
        for (slot, given) in [
            (&mut role.superuser, options.superuser),
            (&mut role.inherit, options.inherit),
            (&mut role.create_role, options.create_role),
            (&mut role.create_database, options.create_database),
            (&mut role.login, options.login),
            (&mut role.replication, options.replication),
            (&mut role.bypass_row_security, options.bypass_row_security),
        ] {
            *slot = given.unwrap_or(*slot);
        }
        if let Some(limit) = options.connection_limit {
            role.connection_limit = limit;
        }
        if let Some(until) = &options.valid_until {
            role.valid_until_us = match until.trim() {
                "infinity" => None,
                until => match self
                    .styles
                    .read(&DataType::TimestampTz, until, Some(self.now_us))?
                {
                    Value::TimestampTz(until_us) => Some(until_us),
                    _ => None,
                },
            };
        }
        match &options.password {
            None => {}
            Some(None) => role.verifier = None,
            Some(Some(Secret(password))) => {
                if is_md5(password) {
                    return Err(SqlError::unsupported(
                        "MD5 passwords are not supported",
                        "Give the password itself, or a SCRAM-SHA-256 verifier.",
                    ));
                }
                role.verifier = verifier_text(password);
                if role.verifier.is_none() {
                    self.notice(
                        "00000",
                        "empty string is not a valid password, clearing password".to_owned(),
                    );
                }
            }
        }
        Ok(())
    }

    async fn rename_role(&mut self, name: &str, to: &str) -> Result<()> {
        let actor = self.actor()?;
        let oid = self.role_oid(name)?;
        let mut authority = (**actor.authority()).clone();
        may_make_roles(&actor)?;
        not_predefined(oid, name)?;
        if authority.is_superuser(oid) {
            actor.need_superuser("rename superusers")?;
        }
        if self.session_user == name {
            return Err(SqlError::unsupported(
                "session user cannot be renamed",
                "Connect as another superuser to rename it.",
            ));
        }
        if actor.role() == oid {
            return Err(SqlError::unsupported(
                "current user cannot be renamed",
                "Use RESET ROLE, or connect as another superuser, to rename it.",
            ));
        }
        let to = new_role_name(to, &authority)?;
        if let Some(role) = authority.roles.get_mut(&oid) {
            role.name = to;
        }
        self.authorize(authority).await
    }

    async fn drop_roles(&mut self, roles: &[String], if_exists: bool) -> Result<()> {
        let actor = self.actor()?;
        may_make_roles(&actor)?;
        let mut authority = (**actor.authority()).clone();
        for name in roles {
            let oid = match self.role_oid(name) {
                Ok(oid) => oid,
                Err(_) if if_exists => {
                    self.notice("00000", format!("role \"{name}\" does not exist, skipping"));
                    continue;
                }
                Err(error) => return Err(error),
            };
            if oid == actor.role() {
                return Err(SqlError::new("55006", "current user cannot be dropped"));
            }
            if self.role_oid(self.session_user).ok() == Some(oid) {
                return Err(SqlError::new("55006", "session user cannot be dropped"));
            }
            if oid == FIRST_ROLE_OID || Authority::is_predefined(oid) {
                return Err(SqlError::new(
                    "2BP01",
                    format!(
                        "cannot drop role {name} because it is required by the database system"
                    ),
                ));
            }
            if authority.is_superuser(oid) {
                actor.need_superuser("drop superusers")?;
            }
            if let Some(what) = uses(&authority, oid) {
                return Err(SqlError::new(
                    "2BP01",
                    format!("role \"{name}\" cannot be dropped because some objects depend on it"),
                )
                .with_detail(what)
                .with_hint("Change the owners and revoke the privileges first."));
            }
            authority.roles.remove(&oid);
            authority.settings.retain(|of, _| of.role != oid);
            authority
                .memberships
                .retain(|m| m.role != oid && m.member != oid);
        }
        self.authorize(authority).await
    }

    async fn members(
        &mut self,
        roles: &[String],
        members: &[String],
        grant: bool,
        admin: bool,
    ) -> Result<()> {
        let actor = self.actor()?;
        let mut authority = (**actor.authority()).clone();
        for role_name in roles {
            let role = self.role_oid(role_name)?;
            may_admit(&actor, role)?;
            if Authority::is_predefined(role) && !authority.administers(actor.role(), role) {
                // CREATEROLE is not enough: whoever has it would see all.
                return Err(may_not_admit(role_name));
            }
            for member_name in members {
                let member = self.role_oid(member_name)?;
                let known = authority
                    .memberships
                    .iter()
                    .position(|m| m.role == role && m.member == member);
                match (grant, known) {
                    (true, Some(at)) if authority.memberships[at].admin || !admin => {
                        self.notice(
                            "00000",
                            format!(
                                "role \"{member_name}\" is already a member of role \"{role_name}\""
                            ),
                        );
                    }
                    (true, Some(at)) => authority.memberships[at].admin = true,
                    (true, None) => {
                        if authority.roles_of(role, false).contains(&member) {
                            return Err(SqlError::new(
                                "0LP01",
                                format!(
                                    "role \"{role_name}\" is a member of role \"{member_name}\""
                                ),
                            ));
                        }
                        authority.memberships.push(Membership {
                            role,
                            member,
                            admin,
                            grantor: actor.role(),
                        });
                    }
                    (false, Some(at)) if admin => authority.memberships[at].admin = false,
                    (false, Some(at)) => {
                        authority.memberships.remove(at);
                    }
                    (false, None) => self.notice(
                        "01000",
                        format!("role \"{member_name}\" is not a member of role \"{role_name}\""),
                    ),
                }
            }
        }
        self.authorize(authority).await
    }
}

pub(super) fn may_make_roles(actor: &Actor) -> Result<()> {
    let role = actor.authority().roles.get(&actor.role());
    match actor.is_superuser() || role.is_some_and(|role| role.create_role) {
        true => Ok(()),
        false => Err(SqlError::new(
            "42501",
            "permission denied to create or change role",
        )),
    }
}

/// Whether the actor may make others members of a role.
fn may_admit(actor: &Actor, group: u32) -> Result<()> {
    let authority = actor.authority();
    if authority.is_superuser(group) {
        return actor.need_superuser("grant a superuser's role");
    }
    match authority.administers(actor.role(), group) || may_make_roles(actor).is_ok() {
        true => Ok(()),
        false => Err(SqlError::new(
            "42501",
            format!(
                "must have admin option on role \"{}\"",
                authority.role_name(group)
            ),
        )),
    }
}

fn is_password_only(options: &RoleOptions) -> bool {
    let RoleOptions {
        superuser: None,
        inherit: None,
        create_role: None,
        create_database: None,
        login: None,
        replication: None,
        bypass_row_security: None,
        connection_limit: None,
        valid_until: None,
        password: Some(_),
        in_roles,
        members,
        admins,
    } = options
    else {
        return false;
    };
    in_roles.is_empty() && members.is_empty() && admins.is_empty()
}

fn is_md5(password: &str) -> bool {
    password.len() == 35
        && password
            .strip_prefix("md5")
            .is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// 42939 for a role that the database needs as it is.
pub(super) fn not_predefined(oid: u32, name: &str) -> Result<()> {
    match Authority::is_predefined(oid) {
        true => Err(
            SqlError::new("42939", format!("role name \"{name}\" is reserved"))
                .with_detail("Cannot alter reserved roles."),
        ),
        false => Ok(()),
    }
}

fn may_not_admit(role: &str) -> SqlError {
    SqlError::new(
        "42501",
        format!("must have admin option on role \"{role}\""),
    )
}

fn new_role_name(name: &str, authority: &Authority) -> Result<String> {
    const RESERVED: [&str; 5] = [
        "public",
        "none",
        "current_user",
        "current_role",
        "session_user",
    ];
    if RESERVED.contains(&name) || name.starts_with("pg_") || name.is_empty() {
        return Err(SqlError::new(
            "42939",
            format!("role name \"{name}\" is reserved"),
        ));
    }
    let name = names::truncated(name);
    match authority.role_by_name(&name) {
        Some(_) => Err(SqlError::new(
            "42710",
            format!("role \"{name}\" already exists"),
        )),
        None => Ok(name),
    }
}

/// What stands in the way of dropping a role, if anything.
fn uses(authority: &Authority, role: u32) -> Option<String> {
    for (of, grants) in &authority.defaults {
        let named = |grant: &Grant| grant.grantee == role;
        if of.role == role || grants.iter().any(named) {
            return Some(format!("Default privileges of {:?} name it.", of.kind));
        }
    }
    for (object, rights) in authority.objects() {
        if rights.owner == role {
            return Some(format!("It owns {object:?}."));
        }
        let grants = rights.grants.iter().chain(rights.columns.values());
        for grant in grants.flatten() {
            if grant.privileges != Privileges::NONE
                && (grant.grantee == role || grant.grantor == role)
            {
                return Some(format!("It has or gave privileges for {object:?}."));
            }
        }
    }
    None
}
