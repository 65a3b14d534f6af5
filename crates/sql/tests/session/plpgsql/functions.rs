//! Functions of PL/pgSQL, one after the other in one session.

use super::Case;

pub(super) const CASES: &[Case] = &[
    (
        "create table t (id int primary key, v int, s text)",
        &["C CREATE TABLE"],
    ),
    (
        "insert into t select n, n * 10, 'r' || n from generate_series(1, 5) n",
        &["C INSERT 0 5"],
    ),
    (
        "create function add(a int, b int default 7) returns int language plpgsql as $$ begin return a + b; end $$",
        &["C CREATE FUNCTION"],
    ),
    (
        "select add(1, 2), add(1), add(b => 1, a => 10), add(add(1, 1), add(2, 2)) + 1 as x",
        &["D 3|8|11|7"],
    ),
    (
        "create function sum_v(upto int) returns bigint language plpgsql as $$ declare r record; n bigint := 0; begin for r in select * from t where id <= upto loop n := n + r.v; end loop; return n; end $$",
        &["C CREATE FUNCTION"],
    ),
    ("select sum_v(3)", &["D 60"]),
    (
        "create function noret(a int) returns int language plpgsql as $$ begin if a > 1 then return a; end if; end $$",
        &["C CREATE FUNCTION"],
    ),
    ("select noret(2)", &["D 2"]),
    (
        "select noret(1)",
        &[
            "E 2F005 control reached end of function without RETURN [context PL/pgSQL function noret(integer)]",
        ],
    ),
    (
        "create function fact(n int) returns numeric language plpgsql as $$ begin if n <= 1 then return 1; end if; return n * fact(n - 1); end $$",
        &["C CREATE FUNCTION"],
    ),
    ("select fact(20)", &["D 2432902008176640000"]),
    (
        "create function nothing(a text) returns void language plpgsql as $$ begin insert into t values (100, 0, a); raise notice 'put %', a; end $$",
        &["C CREATE FUNCTION"],
    ),
    (
        "select nothing('x') is null",
        &[
            "N 00000 put x [context PL/pgSQL function nothing(text) line 1 at RAISE]",
            "D f",
        ],
    ),
    ("select s from t where id = 100", &["D x"]),
    (
        "create function two(a int, out b int, out c text) language plpgsql as $$ begin b := a * 2; c := 'c' || a; end $$",
        &["C CREATE FUNCTION"],
    ),
    ("select * from two(4)", &["D 8|c4"]),
    ("select c, b + 1 from two(5) as q", &["D c5|11"]),
    (
        "create function one(a int, out b int) language plpgsql as $$ begin b := a * 3; end $$",
        &["C CREATE FUNCTION"],
    ),
    ("select one(4)", &["D 12"]),
    (
        "create function io(inout a int) language plpgsql as $$ begin a := a + 1; end $$",
        &["C CREATE FUNCTION"],
    ),
    ("select io(4)", &["D 5"]),
    (
        "create function upto(n int) returns setof int language plpgsql as $$ begin for i in 1..n loop return next i * i; end loop; return; end $$",
        &["C CREATE FUNCTION"],
    ),
    ("select * from upto(4)", &["D 1", "D 4", "D 9", "D 16"]),
    ("select sum(upto) from upto(4)", &["D 30"]),
    (
        "select x from upto(3) as q(x) where x > 1 order by x desc",
        &["D 9", "D 4"],
    ),
    (
        "create function rows_of(n int) returns table (id int, name text) language plpgsql as $$ begin return query select t.id, t.s from t where t.id <= n order by t.id; id := -1; name := 'last'; return next; end $$",
        &["C CREATE FUNCTION"],
    ),
    (
        "select * from rows_of(2)",
        &["D 1|r1", "D 2|r2", "D -1|last"],
    ),
    (
        "select id, length(name) from rows_of(1) r",
        &["D 1|2", "D -1|4"],
    ),
    (
        "create function bad_rows() returns table (id int, name text) language plpgsql as $$ begin return query select 1; end $$",
        &["C CREATE FUNCTION"],
    ),
    (
        "select * from bad_rows()",
        &[
            "E 42804 structure of query does not match function result type [detail Number of returned columns (1) does not match expected column count (2).] [context SQL statement \"select 1\"\nPL/pgSQL function bad_rows() line 1 at RETURN QUERY]",
        ],
    ),
    (
        "create function bad_type() returns table (id int) language plpgsql as $$ begin return query select 1::bigint; end $$",
        &["C CREATE FUNCTION"],
    ),
    (
        "select * from bad_type()",
        &[
            "E 42804 structure of query does not match function result type [detail Returned type bigint does not match expected type integer in column 1.] [context SQL statement \"select 1::bigint\"\nPL/pgSQL function bad_type() line 1 at RETURN QUERY]",
        ],
    ),
    (
        "create function anyrow(n int) returns setof record language plpgsql as $$ declare r record; begin for r in select t.id, t.s from t where t.id <= n order by t.id loop return next r; end loop; end $$",
        &["C CREATE FUNCTION"],
    ),
    (
        "select * from anyrow(2) as (a int, b text)",
        &["D 1|r1", "D 2|r2"],
    ),
    (
        "select b from anyrow(2) as q(a int, b text) where a = 2",
        &["D r2"],
    ),
    (
        "create function strict_one(a int) returns int strict language plpgsql as $$ begin raise notice 'called'; return a; end $$",
        &["C CREATE FUNCTION"],
    ),
    ("select strict_one(null)", &["D NULL"]),
    (
        "select strict_one(1)",
        &[
            "N 00000 called [context PL/pgSQL function strict_one(integer) line 1 at RAISE]",
            "D 1",
        ],
    ),
    (
        "create function deep(n int) returns int language plpgsql as $$ begin
  if n = 0 then
    return 1 / n;
  end if;
  perform deep(n - 1);
  return 0;
end $$",
        &["C CREATE FUNCTION"],
    ),
    (
        "select deep(2)",
        &[
            "E 22012 division by zero [context PL/pgSQL function deep(integer) line 3 at RETURN\nSQL statement \"SELECT deep(n - 1)\"\nPL/pgSQL function deep(integer) line 5 at PERFORM\nSQL statement \"SELECT deep(n - 1)\"\nPL/pgSQL function deep(integer) line 5 at PERFORM]",
        ],
    ),
    (
        "create function catches(a int) returns text language plpgsql as $$ declare r text; begin
  begin
    insert into t values (a, 0, 'new');
    return 'put';
  exception when unique_violation then
    get stacked diagnostics r = constraint_name;
    return 'there ' || sqlstate || ' ' || r;
  end;
end $$",
        &["C CREATE FUNCTION"],
    ),
    (
        "select catches(1), catches(200)",
        &["D there 23505 t_pkey|put"],
    ),
    ("select count(*) from t where id = 200", &["D 1"]),
    (
        "create function ambiguous(id int) returns int language plpgsql as $$ begin return (select v from t where t.id = id); end $$",
        &["C CREATE FUNCTION"],
    ),
    (
        "select ambiguous(1)",
        &[
            "E 42702 column reference \"id\" is ambiguous [detail It could refer to either a PL/pgSQL variable or a table column.] [context PL/pgSQL function ambiguous(integer) line 1 at RETURN]",
        ],
    ),
    (
        "create function qualified(id int) returns int language plpgsql as $$ begin return (select v from t where t.id = qualified.id); end $$",
        &["C CREATE FUNCTION"],
    ),
    ("select qualified(2)", &["D 20"]),
    (
        "create function positional(int, int) returns int language plpgsql as $$ declare x alias for $1; begin return x * $2; end $$",
        &["C CREATE FUNCTION"],
    ),
    ("select positional(3, 4)", &["D 12"]),
    (
        "create function stable_write() returns int stable language plpgsql as $$ begin insert into t values (300, 0, ''); return 1; end $$",
        &["C CREATE FUNCTION"],
    ),
    (
        "select stable_write()",
        &[
            "E 0A000 INSERT is not allowed in a non-volatile function [context SQL statement \"insert into t values (300, 0, '')\"\nPL/pgSQL function stable_write() line 1 at SQL statement]",
        ],
    ),
    (
        "create function row_out(wanted int) returns t language plpgsql as $$ declare r t; begin select * into r from t where t.id = wanted; return r; end $$",
        &["C CREATE FUNCTION"],
    ),
    ("select * from row_out(3)", &["D 3|30|r3"]),
    ("select v from row_out(2)", &["D 20"]),
    (
        "insert into t values (400, add(1, 1), 'ins'), (401, add(2, 2), 'ins2')",
        &["C INSERT 0 2"],
    ),
    (
        "select id, v from t where id >= 400 order by id",
        &["D 400|2", "D 401|4"],
    ),
    (
        "create function uses() returns int language plpgsql as $$ declare a int; begin a := add(1, 2); if add(a, 1) = 4 then a := a + 100; end if; perform nothing_here(a); return a; end $$",
        &["C CREATE FUNCTION"],
    ),
    (
        "select uses()",
        &[
            "E 42883 function nothing_here(integer) does not exist [context PL/pgSQL function uses() line 1 at PERFORM]",
        ],
    ),
    (
        "create function nothing_here(a int) returns void language plpgsql as $$ begin update t set v = a where id = 5; end $$",
        &["C CREATE FUNCTION"],
    ),
    ("select uses()", &["D 103"]),
    ("select v from t where id = 5", &["D 103"]),
    (
        "create or replace function add(a int, b int default 7) returns int language plpgsql as $$ begin return a - b; end $$",
        &["C CREATE FUNCTION"],
    ),
    ("select add(1, 2)", &["D -1"]),
    (
        "create or replace function add(a int, b int default 7) returns bigint language plpgsql as $$ begin return a - b; end $$",
        &["E 42P13 cannot change return type of existing function"],
    ),
    (
        "create function missing_type() returns int language plpgsql as $$ declare a nosuch; begin return 1; end $$",
        &["E 42704 type \"nosuch\" does not exist"],
    ),
    (
        "create function set_ret() returns setof int language plpgsql as $$ begin return 1; end $$",
        &["E 42804 RETURN cannot have a parameter in function returning set"],
    ),
    (
        "create function void_ret() returns void language plpgsql as $$ begin return 1; end $$",
        &["E 42804 RETURN cannot have a parameter in function returning void"],
    ),
    (
        "create function noset() returns int language plpgsql as $$ begin return next 1; end $$",
        &["E 42804 cannot use RETURN NEXT in a non-SETOF function"],
    ),
    (
        "select pg_get_function_result('two'::regproc), pg_get_function_arguments('two'::regproc)",
        &["D record|a integer, OUT b integer, OUT c text"],
    ),
    (
        "select proname, lanname from pg_proc p join pg_language l on l.oid = p.prolang where proname in ('upto', 'two') order by 1",
        &["D two|plpgsql", "D upto|plpgsql"],
    ),
    (
        "select nosuch_fn(1)",
        &["E 42883 function nosuch_fn(integer) does not exist"],
    ),
    ("prepare p(int) as select add($1, 1), $1", &["C PREPARE"]),
    ("execute p(5)", &["D 4|5"]),
    ("drop function add(int, int)", &["C DROP FUNCTION"]),
    (
        "execute p(5)",
        &["E 42883 function add(integer, integer) does not exist"],
    ),
    (
        "create function cast_ret(a text) returns int language plpgsql as $$ begin return a; end $$",
        &["C CREATE FUNCTION"],
    ),
    ("select cast_ret('12')", &["D 12"]),
    (
        "select cast_ret('x')",
        &[
            "E 22P02 invalid input syntax for type integer: \"x\" [context PL/pgSQL function cast_ret(text) while casting return value to function's return type]",
        ],
    ),
    (
        "create function arr(n int) returns int[] language plpgsql as $$ declare a int[] := '{}'; begin for i in 1..n loop a := a || i; end loop; return a; end $$",
        &["C CREATE FUNCTION"],
    ),
    ("select arr(3), (arr(4))[2]", &["D {1,2,3}|2"]),
    (
        "create function bool_fn(a int) returns boolean language plpgsql as $$ begin return a > 2; end $$",
        &["C CREATE FUNCTION"],
    ),
    (
        "select bool_fn(3), not bool_fn(3), case when bool_fn(1) then 'a' else 'b' end",
        &["D t|f|b"],
    ),
    (
        "do $$ begin if bool_fn(5) then raise notice 'yes'; end if; while not bool_fn(3) loop null; end loop; end $$",
        &[
            "N 00000 yes [context PL/pgSQL function inline_code_block line 1 at RAISE]",
            "C DO",
        ],
    ),
    (
        "create function dt(a timestamptz, b numeric(10,2)) returns text language plpgsql as $$ begin return to_char(a, 'YYYY') || b; end $$",
        &["C CREATE FUNCTION"],
    ),
    (
        "select dt('2020-01-01 00:00:00+00', 3.456)",
        &["D 20203.456"],
    ),
];
