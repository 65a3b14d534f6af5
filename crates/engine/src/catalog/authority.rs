//! Who may do what: roles, their memberships, owners and granted privileges.
//!
//! A part of the catalog: immutable, logged and checkpointed with it, changed by
//! DDL. PostgreSQL's rules: a superuser may do all, an owner all with its
//! own, and others what was granted to them, to a role whose privileges they inherit, or to
//! PUBLIC. An object without an entry is the first superuser's, with default privileges.
//! Nothing here is asked while rows are read: a statement is checked when it is bound.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign, Not};

use imbl::OrdMap;
use serde::{Deserialize, Serialize};

use super::objects_by_number::{apply_entries, changed_entries, retain};

/// The role that every database has, a superuser; PostgreSQL's number for it.
pub const FIRST_ROLE_OID: u32 = 10;
/// Its name, unless it was renamed.
pub const FIRST_ROLE_NAME: &str = "postgres";
/// The roles that every database has beside it, which own nothing and can't log in, with
/// PostgreSQL's numbers: members of them may look at what others do, or stop it.
pub const PREDEFINED_ROLES: [(u32, &str); 3] = [
    (READ_ALL_STATS_OID, "pg_read_all_stats"),
    (MONITOR_OID, "pg_monitor"),
    (SIGNAL_BACKEND_OID, "pg_signal_backend"),
];
/// `pg_read_all_stats`
pub const READ_ALL_STATS_OID: u32 = 3375;
/// `pg_signal_backend`
pub const SIGNAL_BACKEND_OID: u32 = 4200;
/// `pg_monitor`, a member of `pg_read_all_stats`.
const MONITOR_OID: u32 = 3373;
/// Stands for everybody where a grantee is wanted.
pub const PUBLIC: u32 = 0;
/// The object id of schema `public`, as in PostgreSQL.
pub const PUBLIC_SCHEMA_OID: u32 = 2200;

/// A set of privileges, in PostgreSQL's bits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Privileges(pub u16);

impl Privileges {
    /// None.
    pub const NONE: Self = Self(0);
    /// INSERT
    pub const INSERT: Self = Self(1);
    /// SELECT
    pub const SELECT: Self = Self(1 << 1);
    /// UPDATE
    pub const UPDATE: Self = Self(1 << 2);
    /// DELETE
    pub const DELETE: Self = Self(1 << 3);
    /// TRUNCATE
    pub const TRUNCATE: Self = Self(1 << 4);
    /// REFERENCES
    pub const REFERENCES: Self = Self(1 << 5);
    /// TRIGGER
    pub const TRIGGER: Self = Self(1 << 6);
    /// EXECUTE
    pub const EXECUTE: Self = Self(1 << 7);
    /// USAGE
    pub const USAGE: Self = Self(1 << 8);
    /// CREATE
    pub const CREATE: Self = Self(1 << 9);
    /// TEMPORARY
    pub const TEMPORARY: Self = Self(1 << 10);
    /// CONNECT
    pub const CONNECT: Self = Self(1 << 11);

    /// With the letters of `relacl`, in the order in which it writes them.
    pub const LETTERS: [(char, &'static str, Self); 12] = [
        ('a', "INSERT", Self::INSERT),
        ('r', "SELECT", Self::SELECT),
        ('w', "UPDATE", Self::UPDATE),
        ('d', "DELETE", Self::DELETE),
        ('D', "TRUNCATE", Self::TRUNCATE),
        ('x', "REFERENCES", Self::REFERENCES),
        ('t', "TRIGGER", Self::TRIGGER),
        ('X', "EXECUTE", Self::EXECUTE),
        ('U', "USAGE", Self::USAGE),
        ('C', "CREATE", Self::CREATE),
        ('T', "TEMPORARY", Self::TEMPORARY),
        ('c', "CONNECT", Self::CONNECT),
    ];

    /// Whether all of `others` are in it.
    #[must_use]
    pub const fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The privilege of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("temp") {
            return Some(Self::TEMPORARY);
        }
        let found = Self::LETTERS
            .iter()
            .find(|(_, other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, _, privilege)| *privilege)
    }

    /// The names of those in it.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::LETTERS
            .into_iter()
            .filter(move |(_, _, one)| self.contains(*one))
            .map(|(_, name, _)| name)
    }
}

impl BitOr for Privileges {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Privileges {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitAnd for Privileges {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Not for Privileges {
    type Output = Self;
    fn not(self) -> Self {
        Self(!self.0)
    }
}

/// A role, which may be a user or a group.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct RoleDef {
    /// Object id.
    pub oid: u32,
    /// Name.
    pub name: String,
    /// It may do everything.
    pub superuser: bool,
    /// It has the privileges of the roles it is a member of without SET ROLE.
    pub inherit: bool,
    /// It may make, change and drop roles that are no superusers.
    pub create_role: bool,
    /// Kept for the catalogs: there is one database.
    pub create_database: bool,
    /// It may connect.
    pub login: bool,
    /// Kept for the catalogs.
    pub replication: bool,
    /// Kept for the catalogs.
    pub bypass_row_security: bool,
    /// Sessions at a time; -1 for no limit.
    pub connection_limit: i32,
    /// When its password stops to hold, in microseconds since 2000-01-01 UTC.
    pub valid_until_us: Option<i64>,
    /// What proves its password (a SCRAM-SHA-256 verifier), never the password itself.
    pub verifier: Option<String>,
}

// The verifier is nobody's business, least of all a log's.
impl fmt::Debug for RoleDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoleDef")
            .field("oid", &self.oid)
            .field("name", &self.name)
            .field("superuser", &self.superuser)
            .field("login", &self.login)
            .finish_non_exhaustive()
    }
}

impl RoleDef {
    /// A role that may do nothing, as CREATE ROLE without options makes it.
    #[must_use]
    pub fn new(oid: u32, name: &str) -> Self {
        Self {
            oid,
            name: name.to_owned(),
            superuser: false,
            inherit: true,
            create_role: false,
            create_database: false,
            login: false,
            replication: false,
            bypass_row_security: false,
            connection_limit: -1,
            valid_until_us: None,
            verifier: None,
        }
    }

    /// The superuser that a new database has.
    #[must_use]
    pub fn first() -> Self {
        Self {
            superuser: true,
            create_role: true,
            create_database: true,
            login: true,
            replication: true,
            bypass_row_security: true,
            ..Self::new(FIRST_ROLE_OID, FIRST_ROLE_NAME)
        }
    }
}

/// A role is a member of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Membership {
    /// The group.
    pub role: u32,
    /// Who is in it.
    pub member: u32,
    /// WITH ADMIN OPTION: the member may grant the membership.
    pub admin: bool,
    /// Who granted it.
    pub grantor: u32,
}

/// What privileges are for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Object {
    /// A table or a view, by object id.
    Table(u32),
    /// A sequence, by object id.
    Sequence(u32),
    /// A schema, by object id.
    Schema(u32),
    /// A type, by number.
    Type(u32),
    /// A function of a user's, by object id.
    Function(u32),
    /// A procedure, by name.
    Procedure(String),
    /// The database.
    Database,
}

impl Object {
    /// What can be granted on it.
    #[must_use]
    pub fn all_privileges(&self) -> Privileges {
        use Privileges as P;
        match self {
            Self::Table(_) => {
                P::SELECT
                    | P::INSERT
                    | P::UPDATE
                    | P::DELETE
                    | P::TRUNCATE
                    | P::REFERENCES
                    | P::TRIGGER
            }
            Self::Sequence(_) => P::SELECT | P::UPDATE | P::USAGE,
            Self::Schema(_) => P::USAGE | P::CREATE,
            Self::Type(_) => P::USAGE,
            Self::Function(_) | Self::Procedure(_) => P::EXECUTE,
            Self::Database => P::CREATE | P::TEMPORARY | P::CONNECT,
        }
    }

    /// What everybody may do with one that nothing was granted on.
    #[must_use]
    pub fn public_privileges(&self) -> Privileges {
        match self {
            Self::Schema(PUBLIC_SCHEMA_OID) => Privileges::USAGE,
            Self::Type(_) => Privileges::USAGE,
            Self::Function(_) | Self::Procedure(_) => Privileges::EXECUTE,
            Self::Database => Privileges::CONNECT | Privileges::TEMPORARY,
            _ => Privileges::NONE,
        }
    }
}

impl Object {
    /// The grants on an object of which nothing was said.
    pub(crate) fn built_in_grants(&self, owner: u32) -> Vec<Grant> {
        let grant = |grantee: u32, privileges: Privileges| Grant {
            grantee,
            grantor: owner,
            privileges,
            grantable: Privileges::NONE,
        };
        let public = self.public_privileges();
        let public = (!public.is_empty()).then(|| grant(PUBLIC, public));
        let own = grant(owner, self.all_privileges());
        public.into_iter().chain([own]).collect()
    }
}

/// What one role was granted by another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Grant {
    /// Who may; [`PUBLIC`] for everybody.
    pub grantee: u32,
    /// Who said so.
    pub grantor: u32,
    /// What.
    pub privileges: Privileges,
    /// What of it the grantee may grant to others.
    pub grantable: Privileges,
}

/// An object's owner and what was granted on it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Rights {
    /// The owner's role.
    pub owner: u32,
    /// None: the default, all for the owner and [`Object::public_privileges`].
    pub grants: Option<Vec<Grant>>,
    /// Of single columns, by position.
    pub columns: BTreeMap<usize, Vec<Grant>>,
}

impl Default for Rights {
    fn default() -> Self {
        Self {
            owner: FIRST_ROLE_OID,
            grants: None,
            columns: BTreeMap::new(),
        }
    }
}

/// The sessions that settings are for: those of a role or of all (0), in the database or in any.
/// The order is theirs at the start of a session, where the last one holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct SettingsOf {
    /// The role; 0 for all.
    pub role: u32,
    /// In this database, which is the only one; said by ALTER DATABASE and IN DATABASE.
    pub in_database: bool,
}

/// The kinds of objects that have defaults.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum DefaultsKind {
    /// Tables and views.
    Table,
    /// Sequences.
    Sequence,
    /// Functions and procedures.
    Function,
    /// Types and domains.
    Type,
    /// Schemas.
    Schema,
}

/// Which new objects defaults are for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct DefaultsOf {
    /// Who makes them.
    pub role: u32,
    /// The object id of the schema that they are made in; None: any.
    pub schema: Option<u32>,
    /// Their kind.
    pub kind: DefaultsKind,
}

/// Settings by their names in lower case.
pub type SessionSettings = BTreeMap<String, String>;

/// Roles and rights. See the head of this file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(from = "AuthorityImage", into = "AuthorityImage")]
pub struct Authority {
    /// All roles, by object id.
    pub roles: BTreeMap<u32, RoleDef>,
    /// Who is a member of what.
    pub memberships: Vec<Membership>,
    /// What sessions begin with (ALTER ROLE … SET, ALTER DATABASE … SET).
    pub settings: BTreeMap<SettingsOf, SessionSettings>,
    /// What new objects are granted by themselves (ALTER DEFAULT PRIVILEGES).
    pub defaults: BTreeMap<DefaultsOf, Vec<Grant>>,
    objects: OrdMap<Object, Rights>,
}

/// How it is logged and checkpointed.
#[derive(Serialize, Deserialize)]
struct AuthorityImage {
    roles: Vec<RoleDef>,
    memberships: Vec<Membership>,
    objects: Vec<(Object, Rights)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    settings: Vec<(SettingsOf, SessionSettings)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    defaults: Vec<(DefaultsOf, Vec<Grant>)>,
}

impl From<AuthorityImage> for Authority {
    fn from(image: AuthorityImage) -> Self {
        Self {
            roles: image.roles.into_iter().map(|r| (r.oid, r)).collect(),
            memberships: image.memberships,
            settings: image.settings.into_iter().collect(),
            defaults: image.defaults.into_iter().collect(),
            objects: image.objects.into_iter().collect(),
        }
        .with_predefined_roles()
    }
}

impl From<Authority> for AuthorityImage {
    fn from(authority: Authority) -> Self {
        Self {
            roles: authority.roles.into_values().collect(),
            memberships: authority.memberships,
            objects: authority.objects.into_iter().collect(),
            settings: authority.settings.into_iter().collect(),
            defaults: authority.defaults.into_iter().collect(),
        }
    }
}

/// What a commit has changed of roles and rights, as it is logged.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AuthorityChange {
    /// All but the rights on objects, where that has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    beside_objects: Option<Authority>,
    /// Rights that were recorded or changed, and objects of which none are recorded any more.
    objects: Vec<(Object, Option<Rights>)>,
}

impl AuthorityChange {
    pub fn between(old: &Authority, new: &Authority) -> Self {
        let beside = |authority: &Authority| Authority {
            objects: OrdMap::new(),
            ..authority.clone()
        };
        let (before, after) = (beside(old), beside(new));
        AuthorityChange {
            beside_objects: (before != after).then_some(after),
            objects: changed_entries(&old.objects, &new.objects),
        }
    }

    pub fn apply(self, to: &mut Authority) {
        if let Some(beside) = self.beside_objects {
            let objects = std::mem::take(&mut to.objects);
            *to = Authority { objects, ..beside };
        }
        apply_entries(&mut to.objects, self.objects);
    }
}

impl Default for Authority {
    /// Of a new database, and of one that was made before there were roles.
    fn default() -> Self {
        Self {
            roles: BTreeMap::from([(FIRST_ROLE_OID, RoleDef::first())]),
            memberships: Vec::new(),
            settings: BTreeMap::new(),
            defaults: BTreeMap::new(),
            objects: OrdMap::new(),
        }
        .with_predefined_roles()
    }
}

impl Authority {
    /// A database that was made before there were these has them, too.
    fn with_predefined_roles(mut self) -> Self {
        for (oid, name) in PREDEFINED_ROLES {
            self.roles
                .entry(oid)
                .or_insert_with(|| RoleDef::new(oid, name));
        }
        let membership = Membership {
            role: READ_ALL_STATS_OID,
            member: MONITOR_OID,
            admin: false,
            grantor: FIRST_ROLE_OID,
        };
        let is_there =
            |there: &Membership| there.role == membership.role && there.member == membership.member;
        if !self.memberships.iter().any(is_there) {
            self.memberships.push(membership);
        }
        self
    }

    /// Whether a role is one that the database needs.
    #[must_use]
    pub fn is_predefined(role: u32) -> bool {
        PREDEFINED_ROLES.iter().any(|(oid, _)| *oid == role)
    }

    /// What a session of a role begins with, the weakest first: of all roles, of the database, of
    /// the role, of the role in the database.
    pub fn settings_for(&self, role: u32) -> impl Iterator<Item = (&String, &String)> {
        let of = self.settings.iter();
        let of = of.filter(move |(of, _)| of.role == 0 || of.role == role);
        of.flat_map(|(_, values)| values)
    }

    /// The role of this name.
    #[must_use]
    pub fn role_by_name(&self, name: &str) -> Option<&RoleDef> {
        self.roles.values().find(|role| role.name == name)
    }

    /// The name of a role; its number when it is gone.
    #[must_use]
    pub fn role_name(&self, oid: u32) -> String {
        match self.roles.get(&oid) {
            Some(role) => role.name.clone(),
            None => oid.to_string(),
        }
    }

    /// Whether a role may do everything.
    #[must_use]
    pub fn is_superuser(&self, role: u32) -> bool {
        self.roles.get(&role).is_some_and(|role| role.superuser)
    }

    /// `role` and all roles that it is a member of; with `inherited` only those whose
    /// privileges it has without SET ROLE.
    #[must_use]
    pub fn roles_of(&self, role: u32, inherited: bool) -> BTreeSet<u32> {
        let mut found = BTreeSet::from([role]);
        let mut waiting = vec![role];
        while let Some(member) = waiting.pop() {
            if inherited && !self.roles.get(&member).is_some_and(|role| role.inherit) {
                continue;
            }
            for membership in self.memberships.iter().filter(|m| m.member == member) {
                if found.insert(membership.role) {
                    waiting.push(membership.role);
                }
            }
        }
        found
    }

    /// Whether `role` may become `other` by SET ROLE.
    #[must_use]
    pub fn is_member(&self, role: u32, other: u32) -> bool {
        self.is_superuser(role) || self.roles_of(role, false).contains(&other)
    }

    /// Whether `role` has all that `other` has, without SET ROLE.
    #[must_use]
    pub fn has_privileges_of(&self, role: u32, other: u32) -> bool {
        self.is_superuser(role) || self.roles_of(role, true).contains(&other)
    }

    /// Whether `role` may grant membership in `group`.
    #[must_use]
    pub fn administers(&self, role: u32, group: u32) -> bool {
        let mine = self.roles_of(role, true);
        self.is_superuser(role)
            || self
                .memberships
                .iter()
                .any(|m| m.role == group && m.admin && mine.contains(&m.member))
    }

    /// The owner of an object.
    #[must_use]
    pub fn owner(&self, object: &Object) -> u32 {
        self.objects
            .get(object)
            .map_or(FIRST_ROLE_OID, |rights| rights.owner)
    }

    /// Whether `role` owns an object, itself or through a role whose privileges it has.
    #[must_use]
    pub fn owns(&self, role: u32, object: &Object) -> bool {
        self.has_privileges_of(role, self.owner(object))
    }

    /// What is recorded of an object, if anything.
    #[must_use]
    pub fn rights(&self, object: &Object) -> Option<&Rights> {
        self.objects.get(object)
    }

    /// To change what is recorded of an object.
    pub fn rights_mut(&mut self, object: Object) -> &mut Rights {
        self.objects.entry(object).or_default()
    }

    /// All objects of which something is recorded.
    pub fn objects(&self) -> impl Iterator<Item = (&Object, &Rights)> {
        self.objects.iter()
    }

    /// The grants on an object, its default ones if none were made.
    #[must_use]
    pub fn grants(&self, object: &Object) -> Vec<Grant> {
        let rights = self.objects.get(object);
        if let Some(grants) = rights.and_then(|rights| rights.grants.as_ref()) {
            return grants.clone();
        }
        object.built_in_grants(self.owner(object))
    }

    /// What `role` may do with the whole of an object.
    #[must_use]
    pub fn privileges(&self, role: u32, object: &Object) -> Privileges {
        if self.is_superuser(role) {
            return object.all_privileges();
        }
        let mine = self.roles_of(role, true);
        sum(&self.grants(object), &mine)
    }

    /// What `role` may do with one column of a table, the table's grants included.
    #[must_use]
    pub fn column_privileges(&self, role: u32, table: u32, column: usize) -> Privileges {
        let object = Object::Table(table);
        let whole = self.privileges(role, &object);
        let grants = self
            .objects
            .get(&object)
            .and_then(|rights| rights.columns.get(&column));
        match grants {
            Some(grants) => whole | sum(grants, &self.roles_of(role, true)),
            None => whole,
        }
    }

    /// What `role` may do with some column of a table.
    #[must_use]
    pub fn some_column_privileges(&self, role: u32, table: u32) -> Privileges {
        let object = Object::Table(table);
        let mut privileges = self.privileges(role, &object);
        if let Some(rights) = self.objects.get(&object) {
            let mine = self.roles_of(role, true);
            for grants in rights.columns.values() {
                privileges |= sum(grants, &mine);
            }
        }
        privileges
    }

    /// What `role` may grant on an object: all for its owner.
    #[must_use]
    pub fn grantable(&self, role: u32, object: &Object) -> Privileges {
        if self.owns(role, object) {
            return object.all_privileges();
        }
        let mine = self.roles_of(role, true);
        let mut grantable = Privileges::NONE;
        for grant in self.grants(object) {
            if mine.contains(&grant.grantee) {
                grantable |= grant.grantable;
            }
        }
        grantable
    }

    /// Without the rights of objects that are gone.
    pub(crate) fn keep_objects(&mut self, is_kept: impl Fn(&Object) -> bool) {
        retain(&mut self.objects, |object, _| is_kept(object));
        self.defaults.retain(|of, _| {
            of.schema
                .is_none_or(|schema| is_kept(&Object::Schema(schema)))
        });
    }
}

/// What grants give to somebody who is all of these roles.
fn sum(grants: &[Grant], roles: &BTreeSet<u32>) -> Privileges {
    let mut privileges = Privileges::NONE;
    for grant in grants {
        if grant.grantee == PUBLIC || roles.contains(&grant.grantee) {
            privileges |= grant.privileges;
        }
    }
    privileges
}

#[cfg(test)]
mod tests;
