//! The privilege views of `information_schema`: grants as they are recorded, or the default
//! ones, to and by roles whose privileges the reader has, and to PUBLIC.

use std::collections::BTreeSet;

use thermocline_engine::authority::{FIRST_ROLE_OID, Grant, Object, PUBLIC, Privileges};

use super::Filler;
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::relations::{RELATIONS, Relation};
use crate::pg_catalog::session::{HIDDEN, SystemSession};

/// What can be granted on single columns.
const OF_COLUMNS: Privileges = Privileges(
    Privileges::SELECT.0 | Privileges::INSERT.0 | Privileges::UPDATE.0 | Privileges::REFERENCES.0,
);

/// Grants of which the reader may know, with the owner of what they are on.
struct Shown<'a> {
    session: &'a SystemSession,
    /// The reader's roles; `None`: all, for a superuser.
    roles: Option<BTreeSet<u32>>,
    /// `role_table_grants` and the like leave PUBLIC out.
    with_public: bool,
}

impl<'a> Shown<'a> {
    fn new(session: &'a SystemSession, with_public: bool) -> Self {
        let actor = &session.facts.actor;
        let roles = || actor.authority().roles_of(actor.role(), true);
        Self {
            session,
            roles: (!actor.is_superuser()).then(roles),
            with_public,
        }
    }

    fn is_shown(&self, grant: &Grant) -> bool {
        let mine = |role: u32| {
            self.roles
                .as_ref()
                .is_none_or(|roles| roles.contains(&role))
        };
        match grant.grantee == PUBLIC {
            true => self.with_public,
            false => mine(grant.grantee) || mine(grant.grantor),
        }
    }

    /// Grantor, grantee, privilege and whether it may be granted on, of those in `of`.
    fn each(
        &self,
        grants: &[Grant],
        owner: u32,
        of: Privileges,
        mut each: impl FnMut([Datum; 4], &'static str),
    ) {
        let authority = &self.session.catalog.authority;
        for grant in grants.iter().filter(|grant| self.is_shown(grant)) {
            for name in (grant.privileges & of).names() {
                let privilege = Privileges::named(name).unwrap_or(Privileges::NONE);
                let grantee = match grant.grantee {
                    PUBLIC => "PUBLIC".to_owned(),
                    role => authority.role_name(role),
                };
                let owns = grant.grantee != PUBLIC
                    && authority.roles_of(grant.grantee, true).contains(&owner);
                let grantable = grant.grantable.contains(privilege) || owns;
                let row = [
                    Datum::text(authority.role_name(grant.grantor)),
                    Datum::text(grantee),
                    Datum::text(name),
                    Datum::text(if grantable { "YES" } else { "NO" }),
                ];
                each(row, name);
            }
        }
    }
}

/// `table_privileges`, and `role_table_grants` without PUBLIC.
pub(super) fn of_tables(
    relation: &Relation,
    session: &SystemSession,
    with_public: bool,
) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "grantor",
            "grantee",
            "table_catalog",
            "table_schema",
            "table_name",
            "privilege_type",
            "is_grantable",
            "with_hierarchy",
        ],
    );
    let shown = Shown::new(session, with_public);
    let authority = &session.catalog.authority;
    let mut rows = Vec::new();
    let mut add = |schema: &str, name: &str, grants: &[Grant], owner: u32, all: Privileges| {
        shown.each(grants, owner, all, |row, privilege| {
            let [grantor, grantee, privilege_type, is_grantable] = row;
            let hierarchy = if privilege == "SELECT" { "YES" } else { "NO" };
            rows.push(filler.row([
                grantor,
                grantee,
                Datum::text(&session.facts.database),
                Datum::text(schema),
                Datum::text(name),
                privilege_type,
                is_grantable,
                Datum::text(hierarchy),
            ]));
        });
    };
    let tables = session.catalog.tables.values();
    for table in tables.filter(|table| !table.is_materialized()) {
        let object = Object::Table(table.oid);
        let (grants, owner) = (authority.grants(&object), authority.owner(&object));
        let all = object.all_privileges();
        add(&table.schema, &table.name, &grants, owner, all);
    }
    for view in session.catalog.views.values() {
        let object = Object::Table(view.oid);
        let (grants, owner) = (authority.grants(&object), authority.owner(&object));
        let all = object.all_privileges();
        add(&view.schema, &view.name, &grants, owner, all);
    }
    let readable = Grant {
        grantee: PUBLIC,
        grantor: FIRST_ROLE_OID,
        privileges: Privileges::SELECT,
        grantable: Privileges::NONE,
    };
    for system in RELATIONS.iter().filter(|r| !HIDDEN.contains(&r.name)) {
        let (grants, all) = ([readable], Privileges::SELECT);
        add(system.schema, system.name, &grants, FIRST_ROLE_OID, all);
    }
    rows
}

/// `column_privileges`, and `role_column_grants` without PUBLIC: what is granted on a table is
/// granted on its columns. Columns of the catalogs are left out.
pub(super) fn of_columns(
    relation: &Relation,
    session: &SystemSession,
    with_public: bool,
) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "grantor",
            "grantee",
            "table_catalog",
            "table_schema",
            "table_name",
            "column_name",
            "privilege_type",
            "is_grantable",
        ],
    );
    let shown = Shown::new(session, with_public);
    let authority = &session.catalog.authority;
    let mut rows = Vec::new();
    let tables = session.catalog.tables.values();
    for table in tables.filter(|table| !table.is_materialized()) {
        let object = Object::Table(table.oid);
        let (whole, owner) = (authority.grants(&object), authority.owner(&object));
        let rights = authority.rights(&object);
        for (place, column) in table.live_columns() {
            let own = rights.and_then(|rights| rights.columns.get(&place));
            let grants = merged(&whole, own.map_or(&[], Vec::as_slice));
            shown.each(&grants, owner, OF_COLUMNS, |row, _| {
                let [grantor, grantee, privilege_type, is_grantable] = row;
                rows.push(filler.row([
                    grantor,
                    grantee,
                    Datum::text(&session.facts.database),
                    Datum::text(&table.schema),
                    Datum::text(&table.name),
                    Datum::text(&column.name),
                    privilege_type,
                    is_grantable,
                ]));
            });
        }
    }
    rows
}

/// The grants of two lists, those of one role to another as one.
fn merged(whole: &[Grant], own: &[Grant]) -> Vec<Grant> {
    let mut grants = whole.to_vec();
    for grant in own {
        let same =
            |there: &&mut Grant| there.grantee == grant.grantee && there.grantor == grant.grantor;
        match grants.iter_mut().find(same) {
            Some(there) => {
                there.privileges |= grant.privileges;
                there.grantable |= grant.grantable;
            }
            None => grants.push(*grant),
        }
    }
    grants
}

/// `usage_privileges`, and `role_usage_grants` without PUBLIC: of sequences.
pub(super) fn of_usage(
    relation: &Relation,
    session: &SystemSession,
    with_public: bool,
) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "grantor",
            "grantee",
            "object_catalog",
            "object_schema",
            "object_name",
            "object_type",
            "privilege_type",
            "is_grantable",
        ],
    );
    let shown = Shown::new(session, with_public);
    let authority = &session.catalog.authority;
    let mut rows = Vec::new();
    for sequence in session.catalog.sequences.values() {
        let object = Object::Sequence(sequence.oid);
        let (grants, owner) = (authority.grants(&object), authority.owner(&object));
        shown.each(&grants, owner, Privileges::USAGE, |row, _| {
            let [grantor, grantee, privilege_type, is_grantable] = row;
            rows.push(filler.row([
                grantor,
                grantee,
                Datum::text(&session.facts.database),
                Datum::text(&sequence.schema),
                Datum::text(&sequence.name),
                Datum::text("SEQUENCE"),
                privilege_type,
                is_grantable,
            ]));
        });
    }
    rows
}
