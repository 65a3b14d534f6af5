//! CREATE EXTENSION, and the functions of extensions that are built in.

use crate::fixture::Server;

#[test]
fn what_is_built_in_is_there_and_nothing_else() {
    let server = Server::new();
    let mut client = server.connect();
    for sql in [
        "create extension if not exists plpgsql with schema pg_catalog",
        "create extension if not exists \"uuid-ossp\"",
        "create extension pgcrypto schema public version '1.3' cascade",
        "alter extension pgcrypto update",
        "comment on extension pgcrypto is 'cryptographic functions'",
        "drop extension if exists postgis",
    ] {
        client.tag(sql);
    }
    let told = client.query("create extension if not exists pgcrypto");
    assert!(
        told[0].ends_with("extension \"pgcrypto\" already exists, skipping"),
        "{told:?}"
    );
    for (sql, error) in [
        (
            "create extension plpgsql",
            "42710 extension \"plpgsql\" already exists",
        ),
        (
            "create extension if not exists postgis",
            "0A000 extension \"postgis\" is not available",
        ),
        (
            "comment on extension postgis is 'x'",
            "42704 extension \"postgis\" does not exist",
        ),
        (
            "drop extension postgis, pgcrypto",
            "2BP01 cannot drop extension pgcrypto because it is required by the database system",
        ),
    ] {
        let found = client.error(sql);
        assert!(found.starts_with(error), "{sql}: {found}");
    }
    let rows = client.rows(
        "select e.extname, n.nspname, d.description from pg_extension e \
         join pg_namespace n on n.oid = e.extnamespace \
         left join pg_description d on d.objoid = e.oid and d.classoid = 'pg_extension'::regclass \
         where extname like 'p%sql'",
    );
    assert_eq!(rows, ["plpgsql|pg_catalog|PL/pgSQL procedural language"]);
}

/// By PostgreSQL's own pgcrypto and uuid-ossp.
#[test]
fn their_functions_give_what_postgresqls_give() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id uuid primary key default public.uuid_generate_v4(), v text)");
    client.tag("insert into t (v) values ('a'), ('b')");
    for (sql, wanted) in [
        (
            "select count(distinct id), bool_and(substr(id::text, 15, 1) = '4') from t",
            "2|t",
        ),
        (
            "select uuid_generate_v5(uuid_ns_dns(), 'www.example.com'), \
             uuid_generate_v3(uuid_ns_url(), 'http://example.com/')",
            "2ed6657d-e927-568b-95e1-2665a8aea6a2|773536a8-4b7b-383d-9106-697d4d366254",
        ),
        (
            "select encode(digest('abc', 'SHA-1'), 'hex'), encode(digest('\\x616263'::bytea, 'md5'), 'hex')",
            "a9993e364706816aba3e25717850c26c9cd0d89d|900150983cd24fb0d6963f7d28e17f72",
        ),
        (
            "select encode(hmac('what do ya want for nothing?', 'Jefe', 'sha256'), 'hex')",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            "select length(gen_random_bytes(1024)), gen_random_bytes(16) = gen_random_bytes(16)",
            "1024|f",
        ),
        ("select length(digest(v, 'sha512')) from t group by 1", "64"),
    ] {
        assert_eq!(client.rows(sql), [wanted], "{sql}");
    }
    for (sql, error) in [
        (
            "select digest('a', 'crc32')",
            "22023 Cannot use \"crc32\": No such hash algorithm",
        ),
        ("select gen_random_bytes(0)", "39000 Length not in range"),
        ("select gen_random_bytes(1025)", "39000 Length not in range"),
    ] {
        let found = client.error(sql);
        assert!(found.starts_with(error), "{sql}: {found}");
    }
}
