//! More of PL/pgSQL, one after the other in one session.

use super::Case;

pub(super) const CASES: &[Case] = &[
    (
        "create table t (id int primary key, v int, s text)",
        &["C CREATE TABLE"],
    ),
    (
        "create table log (n serial primary key, m text)",
        &["C CREATE TABLE"],
    ),
    (
        "do $$ begin for i in 1..300 loop begin insert into t values (i % 150, i, 'x'); exception when unique_violation then update t set v = v + 1 where id = i % 150; end; end loop; end $$",
        &["C DO"],
    ),
    ("select count(*), sum(v) from t", &["D 150|11475"]),
    (
        "create function q_exec(tab text, lim int) returns setof int language plpgsql as $$ begin return query execute format('select id from %I where id < $1 order by id', tab) using lim; return next -1; end $$",
        &["C CREATE FUNCTION"],
    ),
    (
        "select * from q_exec('t', 3)",
        &["D 0", "D 1", "D 2", "D -1"],
    ),
    (
        "do $$ declare r record; begin for r in insert into log (m) values ('a'), ('b') returning n, m loop raise notice '% %', r.n, r.m; end loop; end $$",
        &[
            "N 00000 1 a [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "N 00000 2 b [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $$ declare r record; begin r := row(1, 'x'::text); raise notice '% %', r.f1, r.f2; for r in select 1 as a union all select 2 order by 1 loop raise notice '%', r.a; end loop; select 'text' as b into r; raise notice '%', r.b; end $$",
        &[
            "N 00000 1 x [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "N 00000 1 [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "N 00000 2 [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "N 00000 text [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $$ declare \"Odd Name\" int := 3; \"select\" int := 4; begin raise notice '% %', \"Odd Name\", \"select\"; end $$",
        &[
            "N 00000 3 4 [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $body$ declare s text := $q$it's$q$; /* a comment ; end */ begin -- another; end
  raise notice '%', s; raise notice 'semi;colon %', 'a;b'; end $body$",
        &[
            "N 00000 it's [context PL/pgSQL function inline_code_block line 2 at RAISE]",
            "N 00000 semi;colon a;b [context PL/pgSQL function inline_code_block line 2 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $$ declare z int := 0; a int := 1 / z; begin null; exception when others then raise notice 'not here'; end $$",
        &[
            "E 22012 division by zero [context PL/pgSQL function inline_code_block line 1 during statement block local variable initialization]",
        ],
    ),
    (
        "do $$ begin begin declare a int := 1 / 0; begin null; end; exception when division_by_zero then raise notice 'here'; end; end $$",
        &[
            "N 00000 here [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $$ begin begin perform 1/0; exception when others then perform 'x'::int; end; end $$",
        &[
            "E 22P02 invalid input syntax for type integer: \"x\" [context PL/pgSQL function inline_code_block line 1 at PERFORM]",
        ],
    ),
    (
        "do $$ declare n int; begin n := null; while n < 5 loop n := 1; end loop; raise notice 'done %', n; if n > 1 or n is null then raise notice 'null'; end if; end $$",
        &[
            "N 00000 done <NULL> [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "N 00000 null [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $$ declare i int := 7; begin for i in 2147483646..2147483647 loop raise notice '%', i; end loop; raise notice 'i %', i; end $$",
        &[
            "N 00000 2147483646 [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "N 00000 2147483647 [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "N 00000 i 7 [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $$ begin for i in 1..null loop null; end loop; end $$",
        &[
            "E 22004 upper bound of FOR loop cannot be null [context PL/pgSQL function inline_code_block line 1 at FOR with integer loop variable]",
        ],
    ),
    (
        "do $$ begin for i in 1..3 by 0 loop null; end loop; end $$",
        &[
            "E 22023 BY value of FOR loop must be greater than zero [context PL/pgSQL function inline_code_block line 1 at FOR with integer loop variable]",
        ],
    ),
    (
        "do $$ declare r record; begin for r in select id from t order by id limit 0 loop null; end loop; raise notice 'found %, %', found, r; end $$",
        &[
            "N 00000 found f, () [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $$ declare c refcursor; r record; begin begin fetch c into r; exception when null_value_not_allowed then raise notice 'null %', sqlstate; end; open c for select id, v from t where id < 3 order by id; loop fetch c into r; exit when not found; raise notice '% ', r.id; end loop; close c; begin fetch c into r; exception when invalid_cursor_name then raise notice 'closed %', sqlstate; end; open c for execute 'select 5 as id'; move c; fetch c into r; raise notice '% %', found, r; end $$",
        &[
            "N 00000 null 22004 [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "N 00000 0  [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "N 00000 1  [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "N 00000 2  [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "N 00000 closed 34000 [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "N 00000 f () [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $$ declare c cursor for select 1; begin open c; open c; end $$",
        &[
            "E 42P03 cursor \"c\" already in use [context PL/pgSQL function inline_code_block line 1 at OPEN]",
        ],
    ),
    (
        "do $$ declare c cursor for select 1; begin close c; end $$",
        &[
            "E 34000 cursor \"c\" does not exist [context PL/pgSQL function inline_code_block line 1 at CLOSE]",
        ],
    ),
    (
        "do $$ declare c cursor for select 1; begin open c; close c; close c; end $$",
        &[
            "E 34000 cursor \"c\" does not exist [context PL/pgSQL function inline_code_block line 1 at CLOSE]",
        ],
    ),
    (
        "create function inner_fail(a int) returns int language plpgsql as $$ begin insert into log (m) values ('inner'); return 10 / a; end $$",
        &["C CREATE FUNCTION"],
    ),
    (
        "create function outer_catch(a int) returns text language plpgsql as $$ declare r int; begin r := inner_fail(a); return 'ok ' || r; exception when division_by_zero then return 'caught'; end $$",
        &["C CREATE FUNCTION"],
    ),
    ("select outer_catch(5), outer_catch(0)", &["D ok 2|caught"]),
    ("select count(*) from log where m = 'inner'", &["D 1"]),
    (
        "do $$ declare x int := 1; begin <<a>> loop <<b>> for i in 1..5 loop continue a when x > 3 and i > 1; x := x + 1; exit a when x > 20; end loop b; end loop a; raise notice 'x %', x; end $$",
        &[
            "N 00000 x 21 [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $$ begin <<blk>> begin raise notice 'in'; exit blk; raise notice 'never'; end; raise notice 'out'; end $$",
        &[
            "N 00000 in [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "N 00000 out [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $$ declare v int; begin select v into v from t where id = 1; end $$",
        &[
            "E 42702 column reference \"v\" is ambiguous [detail It could refer to either a PL/pgSQL variable or a table column.] [context PL/pgSQL function inline_code_block line 1 at SQL statement]",
        ],
    ),
    (
        "do $$ declare total numeric := 0; begin for i in 1..10 loop total := total + i * 0.1; end loop; raise notice '%', total; end $$",
        &[
            "N 00000 5.5 [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $$ declare ts timestamp := '2020-01-31'; begin ts := ts + interval '1 month'; raise notice '%', ts; end $$",
        &[
            "N 00000 2020-02-29 00:00:00 [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $$ declare a text; b text; begin a := 'x'; a := a || 1 || null; raise notice '%', a; b := coalesce(a, 'none'); raise notice '%', b; end $$",
        &[
            "N 00000 <NULL> [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "N 00000 none [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "create function cube(n bigint) returns bigint immutable language plpgsql as $$ begin return n * n * n; end $$",
        &["C CREATE FUNCTION"],
    ),
    (
        "select cube(3), cube(3::smallint), pg_typeof(cube(2))",
        &["D 27|27|bigint"],
    ),
    ("select cube('4')", &["D 64"]),
    ("select cube(null)", &["D NULL"]),
    (
        "create function vals(out a int, out b text) returns setof record language plpgsql as $$ begin for i in 1..2 loop a := i; b := 'b' || i; return next; end loop; end $$",
        &["C CREATE FUNCTION"],
    ),
    ("select * from vals() v where v.a = 2", &["D 2|b2"]),
    (
        "create function tt() returns table (x int) language plpgsql as $$ begin return query select x from (select 1 as x) s; end $$",
        &["C CREATE FUNCTION"],
    ),
    (
        "select * from tt()",
        &[
            "E 42702 column reference \"x\" is ambiguous [detail It could refer to either a PL/pgSQL variable or a table column.] [context PL/pgSQL function tt() line 1 at RETURN QUERY]",
        ],
    ),
    (
        "do $$ declare r t%rowtype; begin r.id := 900; r.s := 'row'; insert into t values (r.id, r.v, r.s); select * into strict r from t where id = 900; raise notice '%', r; if r.v is null then raise notice 'null v'; end if; end $$",
        &[
            "N 00000 (900,,row) [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "N 00000 null v [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $$ declare n int; m int; begin update t set v = 1 where id < 10; get diagnostics n = row_count; delete from t where id = 77777; get diagnostics m = row_count; raise notice '% % %', n, m, found; end $$",
        &[
            "N 00000 10 0 f [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $$ begin raise notice '%', (with w as (select 1 as a) select a + 1 from w); end $$",
        &[
            "N 00000 2 [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $$ declare a int[] := array(select id from t where id < 4 order by id); x int; begin select sum(y) into x from unnest(a) as u(y); raise notice '% %', a, x; if 2 = any(a) then raise notice 'any'; end if; end $$",
        &[
            "N 00000 {0,1,2,3} 6 [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "N 00000 any [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $$ begin raise division_by_zero; end $$",
        &["E 22012 division_by_zero [context PL/pgSQL function inline_code_block line 1 at RAISE]"],
    ),
    (
        "do $$ begin raise exception using message = 'only', errcode = 'unique_violation', constraint = 'c1', table = 't1'; end $$",
        &["E 23505 only [context PL/pgSQL function inline_code_block line 1 at RAISE]"],
    ),
    (
        "do $$ begin raise exception 'a' using errcode = 'nosuch'; end $$",
        &[
            "E 42704 unrecognized exception condition \"nosuch\" [context PL/pgSQL function inline_code_block line 1 at RAISE]",
        ],
    ),
    (
        "do $$ declare x text; begin begin raise exception 'm' using constraint = 'c9', hint = 'hh'; exception when raise_exception then get stacked diagnostics x = constraint_name; raise notice '%', x; get stacked diagnostics x = pg_exception_hint; raise notice '%', x; end; end $$",
        &[
            "N 00000 c9 [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "N 00000 hh [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $$ begin set local datestyle = 'German'; raise notice '%', date '2020-02-01'; end $$",
        &[
            "N 00000 01.02.2020 [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $$ declare b boolean; begin b := 'yes'; raise notice '%', b; b := 1 < 2 and not false; raise notice '%', b; end $$",
        &[
            "N 00000 t [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "N 00000 t [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "do $$ declare x int = 5; y int; begin y := case when x > 3 then x else -x end; raise notice '%', y; y := x % 3; y := -y; raise notice '%', y; end $$",
        &[
            "N 00000 5 [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "N 00000 -2 [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
];
