//! DO blocks, one after the other in one session.

use super::Case;

pub(super) const CASES: &[Case] = &[
    (
        "create table t (id int primary key, v int, s text)",
        &["C CREATE TABLE"],
    ),
    (
        "do $$ declare a int := 1; b numeric := 2.5; begin a := a + b; raise notice 'a is %, b is %, 100%%', a, b; end $$",
        &["N 00000 a is 4, b is 2.5, 100% [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do $$ begin raise notice 'null: %', null::int; raise warning 'careful'; raise info 'told'; raise exception 'no % here', 'way' using errcode = '22012', hint = 'h', detail = 'd'; end $$",
        &["N 00000 null: <NULL> [context PL/pgSQL function inline_code_block line 1 at RAISE]", "N 01000 careful [context PL/pgSQL function inline_code_block line 1 at RAISE]", "N 00000 told [context PL/pgSQL function inline_code_block line 1 at RAISE]", "E 22012 no way here [detail d] [context PL/pgSQL function inline_code_block line 1 at RAISE]"],
    ),
    (
        "do $$ begin for i in 1..3 loop insert into t values (i, i * 10, 'r' || i); end loop; raise notice 'found %', found; for i in reverse 5..1 by 2 loop raise notice 'i %', i; end loop; end $$",
        &["N 00000 found t [context PL/pgSQL function inline_code_block line 1 at RAISE]", "N 00000 i 5 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "N 00000 i 3 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "N 00000 i 1 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do $$ declare r record; n int; begin
for r in select id, v from t order by id loop raise notice '% %', r.id, r.v; end loop;
select count(*) into n from t where v > 10; raise notice 'n %, found %', n, found;
select v into n from t where id = 99; raise notice 'n %, found %', n, found;
update t set v = v + 1 where id < 3; get diagnostics n = row_count; raise notice 'updated % %', n, found;
perform * from t where id = 77; raise notice 'found %', found;
delete from t where id = 3 returning v into n; raise notice 'deleted %', n;
end $$",
        &["N 00000 1 10 [context PL/pgSQL function inline_code_block line 2 at RAISE]", "N 00000 2 20 [context PL/pgSQL function inline_code_block line 2 at RAISE]", "N 00000 3 30 [context PL/pgSQL function inline_code_block line 2 at RAISE]", "N 00000 n 2, found t [context PL/pgSQL function inline_code_block line 3 at RAISE]", "N 00000 n <NULL>, found f [context PL/pgSQL function inline_code_block line 4 at RAISE]", "N 00000 updated 2 t [context PL/pgSQL function inline_code_block line 5 at RAISE]", "N 00000 found f [context PL/pgSQL function inline_code_block line 6 at RAISE]", "N 00000 deleted 30 [context PL/pgSQL function inline_code_block line 7 at RAISE]", "C DO"],
    ),
    (
        "do $$ declare n int; begin select id into strict n from t where id = 99; end $$",
        &["E P0002 query returned no rows [context PL/pgSQL function inline_code_block line 1 at SQL statement]"],
    ),
    (
        "do $$ declare n int; begin select id into strict n from t; end $$",
        &["E P0003 query returned more than one row [context PL/pgSQL function inline_code_block line 1 at SQL statement]"],
    ),
    (
        "do $$ declare n int := 0; begin <<outer>> loop n := n + 1; continue when n = 2; while true loop exit outer when n > 4; exit; end loop; end loop; raise notice 'n %', n; end $$",
        &["N 00000 n 5 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do $$ declare x int := 3; begin case x when 1, 2 then raise notice 'low'; when 3 then raise notice 'three'; else raise notice 'other'; end case; case when x > 5 then null; end case; end $$",
        &["N 00000 three [context PL/pgSQL function inline_code_block line 1 at RAISE]", "E 20000 case not found [context PL/pgSQL function inline_code_block line 1 at CASE]"],
    ),
    (
        "do $$ begin begin insert into t values (50, 1, 'x'); perform 1 / 0; exception when division_by_zero then raise notice 'caught % %', sqlstate, sqlerrm; end; raise notice 'rows %', (select count(*) from t where id = 50); end $$",
        &["N 00000 caught 22012 division by zero [context PL/pgSQL function inline_code_block line 1 at RAISE]", "N 00000 rows 0 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do $$ declare m text; c text; begin begin raise exception 'mine' using errcode = 'U0001', detail = 'more'; exception when others then get stacked diagnostics m = message_text, c = pg_exception_detail; raise notice '% % %', sqlstate, m, c; raise; end; end $$",
        &["N 00000 U0001 mine more [context PL/pgSQL function inline_code_block line 1 at RAISE]", "E U0001 mine [detail more] [context PL/pgSQL function inline_code_block line 1 at RAISE]"],
    ),
    (
        "do $$ begin begin raise unique_violation using message = 'twice'; exception when integrity_constraint_violation then raise notice 'class % %', sqlstate, sqlerrm; end; end $$",
        &["N 00000 class 23505 twice [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do $$ declare id int := 1; n int; begin select t.v into n from t where id = 1; end $$",
        &["E 42702 column reference \"id\" is ambiguous [detail It could refer to either a PL/pgSQL variable or a table column.] [context PL/pgSQL function inline_code_block line 1 at SQL statement]"],
    ),
    (
        "do $$ declare n int; begin select nosuch into n from t; end $$",
        &["E 42703 column \"nosuch\" does not exist [context PL/pgSQL function inline_code_block line 1 at SQL statement]"],
    ),
    (
        "do $$ declare a text; begin execute 'select s from t where id = $1' into a using 1; raise notice 'a %', a; execute 'update t set v = 0'; raise notice 'found %', found; end $$",
        &["N 00000 a r1 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "N 00000 found f [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do $$ declare r t%rowtype; w t.v%type := 7; begin select * into r from t where id = 1; r.v := w * 2; raise notice '% % %', r.id, r.v, r; end $$",
        &["N 00000 1 14 (1,14,r1) [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do $$ declare a int[] := '{1,2,3}'; x int; s int := 0; begin foreach x in array a loop s := s + x; end loop; raise notice 's % %', s, a[2]; end $$",
        &["N 00000 s 6 2 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do $$ declare c cursor for select id from t order by id; n int; begin open c; fetch c into n; raise notice 'n % %', n, found; fetch c into n; fetch c into n; raise notice 'n % %', n, found; close c; for r in c loop raise notice 'r %', r.id; end loop; end $$",
        &["N 00000 n 1 t [context PL/pgSQL function inline_code_block line 1 at RAISE]", "N 00000 n <NULL> f [context PL/pgSQL function inline_code_block line 1 at RAISE]", "N 00000 r 1 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "N 00000 r 2 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do $$ begin select 1; end $$",
        &["E 42601 query has no destination for result data [context PL/pgSQL function inline_code_block line 1 at SQL statement]"],
    ),
    (
        "do $$ declare n int not null := 1; begin n := null; end $$",
        &["E 22004 null value cannot be assigned to variable \"n\" declared NOT NULL [context PL/pgSQL function inline_code_block line 1 at assignment]"],
    ),
    (
        "do $$ declare n int; begin n := 'abc'; end $$",
        &["E 22P02 invalid input syntax for type integer: \"abc\" [context PL/pgSQL function inline_code_block line 1 at assignment]"],
    ),
    (
        "do $$ declare n varchar(3); s text := 'abcd'; begin n := s; end $$",
        &["E 22001 value too long for type character varying(3) [context PL/pgSQL function inline_code_block line 1 at assignment]"],
    ),
    (
        "do $$ declare n smallint; s int := 100000; begin n := s; end $$",
        &["E 22003 smallint out of range [context PL/pgSQL function inline_code_block line 1 at assignment]"],
    ),
    (
        "do $$ begin assert 1 = 2, 'wrong'; end $$",
        &["E P0004 wrong [context PL/pgSQL function inline_code_block line 1 at ASSERT]"],
    ),
    (
        "do $$ begin begin assert false; exception when others then raise notice 'no'; end; end $$",
        &["E P0004 assertion failed [context PL/pgSQL function inline_code_block line 1 at ASSERT]"],
    ),
    (
        "do $$ declare n int := 5; begin <<b>> declare n int := 6; begin raise notice '% %', n, b.n; end; if n = 5 then raise notice 'five'; elsif n = 6 then null; else null; end if; end $$",
        &["N 00000 6 6 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "N 00000 five [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do $$ declare r record; begin raise notice '%', r.x; end $$",
        &["E 55000 record \"r\" is not assigned yet [detail The tuple structure of a not-yet-assigned record is indeterminate.] [context SQL expression \"r.x\"\nPL/pgSQL function inline_code_block line 1 at RAISE]"],
    ),
    (
        "do $$ declare r record; begin select 1 as a into r; raise notice '%', r.b; end $$",
        &["E 42703 record \"r\" has no field \"b\" [context SQL expression \"r.b\"\nPL/pgSQL function inline_code_block line 1 at RAISE]"],
    ),
    (
        "do $$ begin for r in 1..2 loop return; end loop; end $$",
        &["C DO"],
    ),
    (
        "do $$ declare d date := '2020-02-29'; i interval; begin i := '1 year'; raise notice '% %', d + i, extract(year from d); end $$",
        &["N 00000 2021-02-28 00:00:00 2020 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do $$ declare j jsonb := '{\"a\": [1, 2]}'; k text; begin for k in select jsonb_object_keys(j) loop raise notice 'key %', k; end loop; raise notice '%', j->'a'->1; end $$",
        &["N 00000 key a [context PL/pgSQL function inline_code_block line 1 at RAISE]", "N 00000 2 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do $$ declare n int; begin n := (select max(id) from t); raise notice 'max %', n; if exists (select 1 from t where id = n) then raise notice 'there'; end if; end $$",
        &["N 00000 max 2 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "N 00000 there [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do $$ begin execute null; end $$",
        &["E 22004 query string argument of EXECUTE is null [context PL/pgSQL function inline_code_block line 1 at EXECUTE]"],
    ),
    (
        "do $$ declare a int := 1; begin if a then raise notice 'true'; end if; end $$",
        &["N 00000 true [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do $$ begin create temp table tt (a int); insert into tt values (1); raise notice '%', (select count(*) from tt); drop table tt; end $$",
        &["N 00000 1 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do language plpgsql 'begin raise notice ''quoted''; end'",
        &["N 00000 quoted [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do $$ begin raise sqlstate '12345'; end $$",
        &["E 12345 12345 [context PL/pgSQL function inline_code_block line 1 at RAISE]"],
    ),
    (
        "do $$ declare a constant int := 1; begin raise notice '%', a; end $$",
        &["N 00000 1 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do $$ declare s int := 0; begin perform s + 1 / s; end $$",
        &["E 22012 division by zero [context SQL statement \"SELECT s + 1 / s\"\nPL/pgSQL function inline_code_block line 1 at PERFORM]"],
    ),
    (
        "do $$ declare r record; begin for r in execute 'select * from t where id > $1 order by id' using 0 loop raise notice '%', r.s; end loop; end $$",
        &["N 00000 r1 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "N 00000 r2 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do $$ begin raise exception 'gone'; exception when others then insert into t values (60, 0, sqlerrm); end $$",
        &["C DO"],
    ),
    (
        "select s from t where id = 60",
        &["D gone"],
    ),
    (
        "do $$ begin insert into t values (61, 0, 'x'); perform 1 / (id - 61) from t where id = 61; end $$",
        &["E 22012 division by zero [context SQL statement \"SELECT 1 / (id - 61) from t where id = 61\"\nPL/pgSQL function inline_code_block line 1 at PERFORM]"],
    ),
    (
        "select count(*) from t where id = 61",
        &["D 0"],
    ),
    (
        "begin",
        &["C BEGIN"],
    ),
    (
        "do $$ begin insert into t values (62, 0, 'x'); end $$",
        &["C DO"],
    ),
    (
        "rollback",
        &["C ROLLBACK"],
    ),
    (
        "select count(*) from t where id = 62",
        &["D 0"],
    ),
    (
        "do $$ declare a int = 4; b int default a * 2; begin <<l>> for i in a..b loop exit l when i = 6; raise notice 'i %', i; end loop l; end $$",
        &["N 00000 i 4 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "N 00000 i 5 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do $$ declare x int; y text; begin select id, s into x, y from t where id = 1; raise notice '% %', x, y; x := null; if x is null then raise notice 'null'; end if; if x > 1 then raise notice 'no'; else raise notice 'else'; end if; end $$",
        &["N 00000 1 r1 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "N 00000 null [context PL/pgSQL function inline_code_block line 1 at RAISE]", "N 00000 else [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do $$ declare n int; begin for n in 1..3 loop if n = 2 then continue; end if; raise notice '%', n; end loop; raise notice 'outer %', n; end $$",
        &["N 00000 1 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "N 00000 3 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "N 00000 outer <NULL> [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do $$ begin begin begin perform 1/0; exception when unique_violation then raise notice 'wrong'; end; exception when others then raise notice 'outer % %', sqlstate, sqlerrm; end; end $$",
        &["N 00000 outer 22012 division by zero [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do $$ declare v text := 'x'; begin insert into t (id, v) values (70, 3) on conflict (id) do update set v = 4; raise notice '%', v; end $$",
        &["N 00000 x [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
    (
        "do $$ declare w int := 5; begin update t set v = w where t.id = 1; raise notice '%', (select v from t where id = 1); end $$",
        &["N 00000 5 [context PL/pgSQL function inline_code_block line 1 at RAISE]", "C DO"],
    ),
];
