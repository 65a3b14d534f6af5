//! ALTER ROLE … SET and ALTER DATABASE … SET: what sessions begin with.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::{Connection, Server};

fn shown(client: &mut Connection, name: &str) -> String {
    client.rows(&format!("show {name}")).concat()
}

#[test]
fn sessions_begin_with_what_was_set_and_the_closest_holds() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut admin = server.connect();
    for sql in [
        "alter role all set work_mem = '1MB'",
        "alter database postgres set work_mem = '2MB'",
        "alter database postgres set search_path = app, public",
        "alter role postgres set work_mem to '3MB'",
        "alter role postgres set statement_timeout = '9s'",
        "alter role postgres set app.tenant = 'seven'",
        "alter role current_user in database postgres set work_mem = '6MB'",
        "alter role postgres set log_min_duration_statement = 100",
    ] {
        let tag = admin.tag(sql);
        assert_eq!(
            tag,
            sql[..sql.find(" ").unwrap() + 5]
                .to_uppercase()
                .replace("DATA", "DATABASE"),
            "{sql}"
        );
    }
    assert_ne!(
        shown(&mut admin, "work_mem"),
        "6MB",
        "it holds from the start on"
    );
    let begin = |client: &mut Connection| {
        let names = ["work_mem", "search_path", "statement_timeout", "app.tenant"];
        names.map(|name| shown(client, name)).join("|")
    };
    let mut later = server.connect();
    assert_eq!(begin(&mut later), "6MB|app, public|9s|seven");
    assert_eq!(shown(&mut later, "log_min_duration_statement"), "100ms");
    // RESET comes back to it; what the client says itself goes before.
    later.tag("set work_mem = '64kB'");
    later.tag("reset work_mem");
    assert_eq!(shown(&mut later, "work_mem"), "6MB");
    let mut own = server.connect_with(&[("work_mem", "5MB")]);
    assert_eq!(shown(&mut own, "work_mem"), "5MB");

    let catalog = "select r.rolname, d.datname, s.setconfig from pg_db_role_setting s \
                   left join pg_roles r on r.oid = setrole \
                   left join pg_database d on d.oid = setdatabase order by setdatabase, setrole";
    assert_eq!(
        admin.rows(catalog),
        [
            "NULL|NULL|{work_mem=1MB}",
            "postgres|NULL|{app.tenant=seven,log_min_duration_statement=100ms,statement_timeout=9s,work_mem=3MB}",
            "NULL|postgres|{\"search_path=app, public\",work_mem=2MB}",
            "postgres|postgres|{work_mem=6MB}",
        ]
    );
    // They are in the log.
    drop((later, own, admin));
    server.crash(&device);
    let server = Server::on(&device);
    let mut again = server.connect();
    assert_eq!(begin(&mut again), "6MB|app, public|9s|seven");
    again.tag("alter role postgres in database postgres reset work_mem");
    assert_eq!(shown(&mut server.connect(), "work_mem"), "3MB");
    again.tag("alter role postgres reset all");
    assert_eq!(shown(&mut server.connect(), "work_mem"), "2MB");
    again.tag("alter database postgres set work_mem to default");
    assert_eq!(shown(&mut server.connect(), "work_mem"), "1MB");
}

#[test]
fn who_may_not_and_what_cannot_be_is_refused() {
    let server = Server::new();
    let mut admin = server.connect();
    admin.tag("create role maker createrole; create role clerk; create role boss superuser");
    for (role, sql, error) in [
        ("clerk", "alter role clerk set work_mem = '1MB'", ""),
        (
            "clerk",
            "alter role maker set work_mem = '1MB'",
            "42501 permission denied to create or change role",
        ),
        ("maker", "alter role clerk set work_mem = '1MB'", ""),
        (
            "maker",
            "alter role boss set work_mem = '1MB'",
            "42501 must be superuser to alter superusers",
        ),
        (
            "maker",
            "alter role all set work_mem = '1MB'",
            "42501 must be superuser to alter settings globally",
        ),
        (
            "maker",
            "alter database postgres set work_mem = '1MB'",
            "42501 must be owner of database postgres",
        ),
        (
            "maker",
            "alter role maker set log_min_duration_statement = 1",
            "42501 permission denied to set parameter \"log_min_duration_statement\"",
        ),
        (
            "boss",
            "alter role clerk set work_mem = 'much'",
            "22023 invalid value for parameter \"work_mem\": \"much\"",
        ),
        (
            "boss",
            "alter role clerk set nothing = 1",
            "42704 unrecognized configuration parameter \"nothing\"",
        ),
        (
            "boss",
            "alter role nobody set work_mem = '1MB'",
            "42704 role \"nobody\" does not exist",
        ),
        (
            "boss",
            "alter database other set work_mem = '1MB'",
            "3D000 database \"other\" does not exist",
        ),
    ] {
        admin.tag(&format!("set role {role}"));
        match error {
            "" => assert_eq!(admin.tag(sql), "ALTER ROLE", "{sql}"),
            error => {
                let found = admin.error(sql);
                assert!(found.starts_with(error), "{sql}: {found}");
            }
        }
        admin.tag("reset role");
    }
    // What a superuser said of a role its own RESET does not take back.
    admin.tag("alter role clerk set log_min_duration_statement = 100; set role clerk");
    let reset = admin.error("alter role clerk reset log_min_duration_statement");
    assert!(reset.starts_with("42501 permission denied"), "{reset}");
    admin.tag("alter role clerk reset all; reset role");
    let kept = "select setconfig from pg_db_role_setting";
    assert_eq!(admin.rows(kept), ["{log_min_duration_statement=100ms}"]);
    let count = "select count(*) from pg_db_role_setting";
    assert_eq!(admin.rows(count), ["1"]);
    admin.tag("drop role clerk");
    assert_eq!(admin.rows(count), ["0"]);
}
