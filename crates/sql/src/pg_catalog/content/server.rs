//! What there is one of in a server: the database, the role, settings, access
//! methods, languages, collations.

use thermocline_engine::authority::{DefaultsKind, DefaultsOf, Grant, SessionSettings, SettingsOf};
use thermocline_engine::catalog::AccessMethod;
use thermocline_engine::tablespace::MEASURED;
use thermocline_query::functions::extension::{EXTENSIONS, Extension};
use thermocline_query::types::datetime::{unix_of, zone};
use thermocline_values::value::Value;

use super::Filler;
use super::functions::PLPGSQL;
use crate::pg_catalog::datum::Datum;
use crate::pg_catalog::oids;
use crate::pg_catalog::relations::Relation;
use crate::pg_catalog::session::{SystemSession, acl_items};

pub(super) fn access_methods(relation: &Relation) -> Vec<Vec<Datum>> {
    let filler = Filler::new(relation, &["oid", "amname", "amtype"]);
    [
        (oids::HEAP, AccessMethod::Memory.name(), "t"),
        (oids::COLUMNS, AccessMethod::Columns.name(), "t"),
        (oids::BTREE, "btree", "i"),
        (oids::HASH, "hash", "i"),
    ]
    .into_iter()
    .map(|(oid, name, kind)| filler.row([Datum::oid(oid), Datum::text(name), Datum::text(kind)]))
    .collect()
}

pub(super) fn extensions(relation: &Relation) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &["oid", "extname", "extowner", "extnamespace", "extversion"],
    );
    let row = |extension: &Extension| {
        filler.row([
            Datum::oid(extension.oid),
            Datum::text(extension.name),
            Datum::oid(oids::OWNER),
            Datum::oid(oids::PG_CATALOG),
            Datum::text(extension.version),
        ])
    };
    EXTENSIONS.iter().map(row).collect()
}

pub(super) fn available_extensions(relation: &Relation) -> Vec<Vec<Datum>> {
    let columns = ["name", "default_version", "installed_version", "comment"];
    let filler = Filler::new(relation, &columns);
    let row = |extension: &Extension| {
        filler.row([
            Datum::text(extension.name),
            Datum::text(extension.version),
            Datum::text(extension.version),
            Datum::text(extension.comment),
        ])
    };
    EXTENSIONS.iter().map(row).collect()
}

pub(super) fn databases(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "oid",
            "datname",
            "datdba",
            "encoding",
            "datlocprovider",
            "datallowconn",
            "datconnlimit",
            "dattablespace",
            "datcollate",
            "datctype",
        ],
    );
    vec![filler.row([
        Datum::oid(oids::DATABASE),
        Datum::text(&session.facts.database),
        Datum::oid(oids::OWNER),
        Datum::Int(6),
        Datum::text("c"),
        Datum::Bool(true),
        Datum::Int(-1),
        Datum::oid(oids::DEFAULT_TABLESPACE),
        Datum::text("C"),
        Datum::text("C"),
    ])]
}

pub(super) fn roles(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "oid",
            "rolname",
            "rolsuper",
            "rolinherit",
            "rolcreaterole",
            "rolcreatedb",
            "rolcanlogin",
            "rolreplication",
            "rolconnlimit",
            "rolbypassrls",
            "rolvaliduntil",
        ],
    );
    let roles = session.catalog.authority.roles.values();
    // pg_authid has none.
    let settings = relation.column("rolconfig");
    roles
        .map(|role| {
            let until = role.valid_until_us;
            let mut row = filler.row([
                Datum::oid(role.oid),
                Datum::text(&role.name),
                Datum::Bool(role.superuser),
                Datum::Bool(role.inherit),
                Datum::Bool(role.create_role),
                Datum::Bool(role.create_database),
                Datum::Bool(role.login),
                Datum::Bool(role.replication),
                Datum::Int(i64::from(role.connection_limit)),
                Datum::Bool(role.bypass_row_security),
                until.map_or(Datum::Null, |until| {
                    Datum::Scalar(Value::TimestampTz(until))
                }),
            ]);
            if let Some(slot) = settings.and_then(|place| row.get_mut(place)) {
                *slot = settings_of(session, role.oid);
            }
            row
        })
        .collect()
}

/// What sessions of a role begin with, in any database; NULL for nothing.
fn settings_of(session: &SystemSession, role: u32) -> Datum {
    let of = SettingsOf {
        role,
        in_database: false,
    };
    let settings = session.catalog.authority.settings.get(&of);
    settings.map_or(Datum::Null, shown_settings)
}

fn shown_settings(settings: &SessionSettings) -> Datum {
    let shown = |(name, value)| Datum::text(format!("{name}={value}"));
    Datum::array(settings.iter().map(shown))
}

pub(super) fn session_settings(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(relation, &["setdatabase", "setrole", "setconfig"]);
    let settings = session.catalog.authority.settings.iter();
    let row = |(of, settings): (&SettingsOf, &SessionSettings)| {
        filler.row([
            Datum::oid(if of.in_database { oids::DATABASE } else { 0 }),
            Datum::oid(of.role),
            shown_settings(settings),
        ])
    };
    settings.map(row).collect()
}

pub(super) fn default_privileges(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let columns = [
        "oid",
        "defaclrole",
        "defaclnamespace",
        "defaclobjtype",
        "defaclacl",
    ];
    let filler = Filler::new(relation, &columns);
    let authority = &session.catalog.authority;
    let row = |(oid, (of, grants)): (u32, (&DefaultsOf, &Vec<Grant>))| {
        let kind = match of.kind {
            DefaultsKind::Table => "r",
            DefaultsKind::Sequence => "S",
            DefaultsKind::Function => "f",
            DefaultsKind::Type => "T",
            DefaultsKind::Schema => "n",
        };
        filler.row([
            Datum::oid(oid),
            Datum::oid(of.role),
            Datum::oid(of.schema.unwrap_or(0)),
            Datum::text(kind),
            acl_items(authority, grants),
        ])
    };
    // They have no numbers of their own.
    (1..).zip(&authority.defaults).map(row).collect()
}

/// Who is a member of what.
pub(super) fn memberships(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(relation, &["roleid", "member", "grantor", "admin_option"]);
    let memberships = session.catalog.authority.memberships.iter();
    memberships
        .map(|membership| {
            filler.row([
                Datum::oid(membership.role),
                Datum::oid(membership.member),
                Datum::oid(membership.grantor),
                Datum::Bool(membership.admin),
            ])
        })
        .collect()
}

pub(super) fn users(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "usename",
            "usesysid",
            "usecreatedb",
            "usesuper",
            "useconfig",
        ],
    );
    let roles = session.catalog.authority.roles.values();
    roles
        .filter(|role| role.login)
        .map(|role| {
            filler.row([
                Datum::text(&role.name),
                Datum::oid(role.oid),
                Datum::Bool(role.create_database),
                Datum::Bool(role.superuser),
                settings_of(session, role.oid),
            ])
        })
        .collect()
}

pub(super) fn languages(relation: &Relation) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &["oid", "lanname", "lanowner", "lanispl", "lanpltrusted"],
    );
    [
        (12, "internal", false),
        (13, "c", false),
        (14, "sql", true),
        (PLPGSQL, "plpgsql", true),
    ]
    .into_iter()
    .map(|(oid, name, trusted)| {
        filler.row([
            Datum::oid(oid),
            Datum::text(name),
            Datum::oid(oids::OWNER),
            Datum::Bool(oid == PLPGSQL),
            Datum::Bool(trusted),
        ])
    })
    .collect()
}

pub(super) fn collations(relation: &Relation) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "oid",
            "collname",
            "collnamespace",
            "collowner",
            "collprovider",
            "collisdeterministic",
            "collencoding",
            "collcollate",
            "collctype",
        ],
    );
    [
        (oids::DEFAULT_COLLATION, "default", "d", None),
        (950, "C", "c", Some("C")),
        (951, "POSIX", "c", Some("POSIX")),
    ]
    .into_iter()
    .map(|(oid, name, provider, locale)| {
        let locale = locale.map_or(Datum::Null, Datum::text);
        filler.row([
            Datum::oid(oid),
            Datum::text(name),
            Datum::oid(oids::PG_CATALOG),
            Datum::oid(oids::OWNER),
            Datum::text(provider),
            Datum::Bool(true),
            Datum::Int(-1),
            locale.clone(),
            locale,
        ])
    })
    .collect()
}

pub(super) fn tablespaces(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(relation, &["oid", "spcname", "spcowner", "spcoptions"]);
    let built_in = [
        (oids::DEFAULT_TABLESPACE, "pg_default"),
        (1664, "pg_global"),
    ];
    let built_in = built_in.map(|(oid, name)| (oid, name, Datum::Null));
    let made = session.catalog.tablespaces.values().map(|def| {
        // What was measured is no option that somebody gave.
        let options = def.options.iter().filter(|(name, _)| *name != MEASURED);
        let options = options.map(|(name, value)| Datum::text(format!("{name}={value}")));
        let options: Vec<Datum> = options.collect();
        let options = match options.is_empty() {
            true => Datum::Null,
            false => Datum::array(options),
        };
        (def.oid, def.name.as_str(), options)
    });
    let all = built_in.into_iter().chain(made);
    all.map(|(oid, name, options)| {
        filler.row([
            Datum::oid(oid),
            Datum::text(name),
            Datum::oid(oids::OWNER),
            options,
        ])
    })
    .collect()
}

pub(super) fn settings(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(
        relation,
        &[
            "name",
            "setting",
            "category",
            "short_desc",
            "context",
            "vartype",
            "source",
        ],
    );
    let settings = session.facts.settings.iter();
    settings
        .flat_map(|settings| settings.all())
        .map(|(name, value, description)| {
            filler.row([
                Datum::text(&name),
                Datum::text(&value),
                Datum::text("Thermocline"),
                Datum::text(description),
                Datum::text("user"),
                Datum::text(match value.as_str() {
                    "on" | "off" => "bool",
                    number if number.parse::<i64>().is_ok() => "integer",
                    _ => "string",
                }),
                Datum::text("session"),
            ])
        })
        .collect()
}

pub(super) fn time_zones(relation: &Relation, session: &SystemSession) -> Vec<Vec<Datum>> {
    let filler = Filler::new(relation, &["name", "abbrev", "utc_offset", "is_dst"]);
    let now = unix_of(session.facts.now_us);
    let row = |name: String| {
        let found = zone::named(&name)?;
        let (abbreviation, summer) = zone::abbreviation_at(&found, now);
        let east = zone::east_at(&found, now);
        let (sign, distance) = (if east < 0 { "-" } else { "" }, east.unsigned_abs());
        let (hours, minutes, seconds) = (distance / 3600, distance / 60 % 60, distance % 60);
        Some(filler.row([
            Datum::text(name),
            Datum::text(abbreviation),
            Datum::text(format!("{sign}{hours:02}:{minutes:02}:{seconds:02}")),
            Datum::Bool(summer),
        ]))
    };
    zone::names().filter_map(row).collect()
}
