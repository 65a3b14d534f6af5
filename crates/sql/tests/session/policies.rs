//! What a table says of its policy: WITH, ALTER TABLE … SET and RESET, the view, and eviction that
//! is asked for.

use std::sync::Arc;

use thermocline_device::SimulatedDevice;

use crate::fixture::Server;

const IN_FORCE: &str = "select relname, base, said, identification, merge, retrieval, read_unit, \
                        merge_unit, timing, block_bytes from thermocline_policies order by 1";

#[test]
fn a_table_says_its_policy_and_takes_it_back() {
    let device = Arc::new(SimulatedDevice::new());
    let server = Server::on(&device);
    let mut client = server.connect();
    client.tag("create table plain (id int primary key)");
    client.tag(
        "create table t (id int primary key, v text) with (identification = alru, \
         alru_sample = 0.5, merge = 'top(5%)', retrieval = sync, block_size = '64kB')",
    );
    client.tag("create table p (id int) with (policy = generic, merge_unit = block)");
    client.tag("create table off (id int) with (evictable = false)");
    let in_force = |said: &str, rest: &str| {
        [
            "off|server||off|warm|restart|sectors|tuple|threshold|1048576".to_owned(),
            "p|generic|merge_unit|alru|always|restart|block|block|threshold|1048576".to_owned(),
            "plain|server||temperature|warm|restart|sectors|tuple|threshold|1048576".to_owned(),
            format!("t|server|{said}|{rest}"),
        ]
    };
    let expected = in_force(
        "identification, alru_sample, retrieval, merge, block_size",
        "alru|top(5%)|sync|sectors|tuple|threshold|65536",
    );
    assert_eq!(client.rows(IN_FORCE), expected);
    drop(client);
    // It is a part of the definition.
    server.crash(&device);
    let server = Server::on(&device);
    let mut client = server.connect();
    assert_eq!(client.rows(IN_FORCE), expected);
    client.tag("alter table t reset (identification, alru_sample), set (timing = manual)");
    client.tag("alter table if exists only t reset (merge, retrieval)");
    let expected = in_force(
        "timing, block_size",
        "temperature|warm|restart|sectors|tuple|manual|65536",
    );
    assert_eq!(client.rows(IN_FORCE), expected);
    assert_eq!(
        client.rows("select reloptions from pg_class where relname = 't'"),
        ["{block_size=64kB,timing=manual}"]
    );
    client.tag("alter table off reset (evictable)");
    assert_eq!(
        client.rows("select identification from thermocline_policies where relname = 'off'"),
        ["temperature"]
    );
    let before = client.rows(IN_FORCE);
    for (sql, sqlstate) in [
        ("alter table t set (alru_sample = 0)", "22023 "),
        ("alter table t set (alru_sample = 2)", "22023 "),
        ("alter table t set (offline_sample = 0)", "22023 "),
        ("alter table t set (offline_sample = 1.1)", "22023 "),
        ("alter table t set (merge = 'top(0%)')", "22023 "),
        ("alter table t set (block_size = 0)", "22023 "),
        ("alter table t set (block_size = '32MB')", "22023 "),
        ("alter table t set (identification = nonsense)", "22023 "),
        ("create table e (x int) with (policy = best)", "22023 "),
        ("alter table t reset (primary_key)", "0A000 "),
        ("alter table nothing reset (merge)", "42P01 "),
    ] {
        assert!(client.error(sql).starts_with(sqlstate), "{sql}");
    }
    assert_eq!(client.rows(IN_FORCE), before, "nothing was changed");
}

#[test]
fn rows_leave_when_somebody_says_so() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create table t (id int primary key, v text) with (retrieval = sync)");
    client.tag("insert into t select i, repeat('x', 500) from generate_series(1, 200) i");
    let left = client.rows("call thermocline.evict('public.t', 1000000000)");
    assert_eq!(left.len(), 1);
    assert!(left[0].starts_with("200|"), "{left:?}");
    assert_eq!(client.rows("select length(v) from t where id = 7"), ["500"]);
    let counts = "select rows_evicted, rows_fetched, sync_reads, restarts \
                  from thermocline_policies where relname = 't'";
    assert_eq!(client.rows(counts), ["200|1|1|0"]);
    client.tag("alter table t set (evictable = false)");
    client.tag("create role somebody");
    for (sql, sqlstate) in [
        ("call thermocline.evict('t', 1)", "55000 "),
        ("call thermocline.evict('t', 0)", "22023 "),
        ("call thermocline.evict('nothing', 1)", "42P01 "),
        ("call thermocline.evict('t')", "42883 "),
        ("begin; call thermocline.evict('t', 1)", "0A000 "),
    ] {
        let told = client.error(sql);
        assert!(told.starts_with(sqlstate), "{sql}: {told}");
    }
    client.tag("rollback; set role somebody");
    let told = client.error("call thermocline.evict('t', 1)");
    assert!(told.starts_with("42501 "), "{told}");
}

#[test]
fn rows_on_memory_are_used_where_they_lie() {
    let server = Server::new();
    let mut client = server.connect();
    client.tag("create tablespace near location '' with (device = nvram, access = byte)");
    client.tag("create tablespace far location '' with (device = ssd)");
    client.tag("create table t (id int primary key, v text) tablespace near");
    client.tag("insert into t select i, repeat('x', 500) from generate_series(1, 200) i");
    client.rows("call thermocline.evict('t', 1000000000)");
    assert_eq!(client.rows("select length(v) from t where id = 7"), ["500"]);
    assert_eq!(
        client.rows("select sum(length(v)) from t where id between 11 and 30"),
        ["10000"]
    );
    client.tag("update t set v = 'short' where id = 8");
    let counts = "select access, rows_evicted, byte_reads > 1, sync_reads, restarts \
                  from thermocline_policies where relname = 't'";
    assert_eq!(client.rows(counts), ["byte|200|t|0|0"]);
    client.tag("alter table t set (access = byte)");
    for sql in [
        "alter table t set tablespace far",
        "create table u (id int) with (access = byte)",
        "create table u (id int) with (access = byte) tablespace far",
        "alter table t set (access = bit)",
        "create tablespace other location '' with (device = hdd, access = byte)",
        "alter tablespace far set (access = byte)",
        "alter tablespace near set (device = hdd)",
    ] {
        let told = client.error(sql);
        assert!(told.starts_with("22023 "), "{sql}: {told}");
    }
    client.tag("alter tablespace near reset (access)");
    client.tag("alter table t reset (access)");
    client.tag("alter tablespace near set (device = hdd)");
}
