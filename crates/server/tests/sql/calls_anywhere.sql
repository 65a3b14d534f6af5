-- Functions that are no queries, called wherever an expression may stand.
-- calls_anywhere.out is what PostgreSQL 15 answers, recorded as that of basics.sql.
\set VERBOSITY terse
create table t (id int primary key, x int, y text);
insert into t select i, i * 10, 'r' || i from generate_series(1, 5) i;
create table log (n int, what text);
create function f(a int) returns int language plpgsql as $$ begin return a + 1; end $$;
create function noted(a int, w text) returns int language plpgsql as $$
begin
  insert into log values (a, w);
  return (select count(*) from log);
end $$;
create function label() returns text language plpgsql as $$ begin return 'label-' || (select count(*) from log); end $$;
create function rows_of(a int) returns setof int language plpgsql as $$ begin return next a; return next a + 1; end $$;
create function pairs_of(a int) returns table (k int, v text) language plpgsql as $$
begin
  for i in 1..a loop k := i; v := 'v' || i; return next; end loop;
end $$;
create function of_t(a int) returns setof t language plpgsql as $$ begin return query select * from t where t.id >= a order by 1; end $$;
create function around(a int, out lo int, out hi int) language plpgsql as $$ begin lo := a - 1; hi := a + 1; end $$;
create function fails(a int) returns int language plpgsql as $$ begin if a = 30 then raise exception 'not %', a using errcode = 'P0030'; end if; return a; end $$;
-- the list, conditions, order, groups
select id from t order by f(-x) limit 2;
select f(x) as fx from t order by fx desc limit 2;
select f(x % 20) as g, count(*) from t group by f(x % 20) order by 1;
select f(x) from t group by y;
select f(x), y from t group by x, y order by x;
select y from t group by y having f(max(x)) > 30 order by 1;
select sum(f(x)), max(f(id)) from t;
select sum(x) filter (where f(id) > 3) from t;
select f(sum(x)::int) from t;
select count(*) from t where f(x) > 21;
select distinct f(x / 20) from t order by 1;
select id, sum(f(x)) over (order by id) from t order by id;
select id, f(row_number() over (order by id desc)::int) from t order by id;
select case when id = 1 then f(x) when id = 2 then -f(x) else 0 end from t order by id;
select case id when 3 then fails(x) else 0 end from t where id < 3 order by id;
select coalesce(nullif(y, 'r1'), label()) from t order by id limit 2;
select id from t where id < 3 or f(x) > 50 order by id;
select id from t where x = f(29) order by id;
-- subqueries, WITH, joins, set operations
select * from (select id, f(x) from t where id < 3) s order by 1;
select (select f(3));
select id, (select f(t.x) + max(u.id) from t u) from t order by id limit 2;
select id from t where x in (select f(9) union all select f(19)) order by id;
select id from t where exists (select 1 from t u where u.id = t.id and f(u.x) > 31) order by id;
with w as (select id, f(x) as fx from t) select sum(fx) from w where id > 2;
with recursive r(n) as (select 1 union all select f(n) from r where n < 5) select sum(n) from r;
select a.id, b.id from t a join t b on f(a.id) = b.id order by 1;
select a.id, b.id from t a left join t b on b.id = f(a.id) and f(b.x) > 40 order by 1;
select f(1) union select f(x) from t where id < 3 order by 1;
select id from t where id = any (array[f(1), f(2)]) order by id;
select array(select f(id) from t order by id);
values (f(1)), (f(2));
-- rows
select t.id, r from t, rows_of(t.id) r where t.id < 3 order by 1, 2;
select t.id, p.* from t cross join lateral pairs_of(t.id) p where t.id in (2, 3) order by 1, 2;
select t.id, p.v from t left join lateral pairs_of(t.id - 1) p on true where t.id < 3 order by 1, 2;
select t.id, b.* from t, around(t.id) b where t.id < 3 order by 1;
select t.id, (around(t.id)).hi from t where t.id < 3 order by 1;
select t.id, o.id, o.y from t, of_t(t.id + 2) o order by 1, 2;
select id, rows_of(id) from t where id < 3 order by 1, 2;
select * from rows_of(1) a join rows_of(2) b on a = b;
select * from rows_of(f(1)) with ordinality;
select count(*) from pairs_of(3) p, t;
-- what a call does is seen by the next one, in the order of the rows
select id, noted(id, 'list') from t order by id desc;
select id, noted(id, 'list') from t order by id limit 2;
select n, what from log order by what, n;
delete from log;
-- changes
update t set x = f(x) where id = 1;
update t set x = f(x), y = label() where id > 3;
update t set x = noted(x, 'update') + x where f(x) < 30 and id = 2;
select * from t order by id;
select count(*) from log;
delete from t where f(id) = 6;
insert into t select f(id) + 100, x, y from t where id < 3;
insert into t(id, x) values (f(200), f(f(1))) returning id, f(x);
insert into t(id, x) values (300, (select f(max(id)) from t));
insert into t(id, x) values (1, 1) on conflict (id) do update set x = f(excluded.x) + f(t.x) returning *;
update t set x = x + 1 where id = 300 returning f(x), y;
delete from t where id > 250 returning f(id);
update t set x = s.v from (select id, f(x) as v from t) s where s.id = t.id and t.id < 3;
merge into t using (select f(1) as id) s on t.id = s.id when matched then update set y = label();
select * from t order by id;
-- a failure leaves nothing behind
select id, noted(id, 'lost'), fails(id * 10) from t order by id;
update t set x = fails(30) + noted(1, 'lost');
insert into t select id + 1000, noted(id, 'lost') + fails(id * 10) from t;
select count(*) from log where what = 'lost';
-- defaults and checks
create table d (id text default label(), k int check (f(k) > 2), s text default upper(label()));
insert into d (k) values (5);
insert into d (k) values (6), (7);
insert into d (k) select id + 10 from t where id < 3;
insert into d (k) values (0);
update d set k = 1 where k = 5;
update d set k = 8 where k = 5;
insert into d values (default, 9, 'x');
copy d (k) from stdin;
20
21
\.
copy d (k) from stdin;
30
-5
\.
select k, id, s from d order by k;
alter table d add column z int;
alter table d alter column z set default f(1);
insert into d (k) values (40);
select z from d where k = 40;
select column_default from information_schema.columns where table_name = 'd' and column_name = 's';
-- views
create view v as select id, f(x) as fx, label() as l from t where f(id) > 2;
select id, fx from v order by id limit 2;
select pg_get_viewdef('v'::regclass) like '%f(%';
create function add_sql(a int) returns int language sql as 'select a + 100';
create function max_sql() returns int language sql as 'select max(id) from t';
create view w as select id, add_sql(x) as ax, max_sql() as mx from t;
select * from w where id < 3 order by id;
create view vv as select v.id, w.ax from v join w using (id);
select * from vv order by id limit 2;
create materialized view mv as select id, f(x) as fx from t;
select * from mv order by id limit 2;
update t set x = 0 where id = 1;
refresh materialized view mv;
select * from mv order by id limit 1;
create table made as select id, f(x) as fx from t where id < 3;
select * from made order by id;
drop function f(int);
drop function add_sql(int);
drop view vv;
drop function max_sql() cascade;
select count(*) from pg_views where viewname in ('v', 'w', 'vv');
-- functions of SQL that call themselves
create function fact(n int) returns bigint language sql as 'select case when n <= 1 then 1::bigint else n * fact(n - 1) end';
select fact(5), fact(10);
create function sql_rows(a int) returns setof int language sql as 'select generate_series(1, a)';
select id, sql_rows(id) from t where id < 3 order by 1, 2;
select max_of.m from (select max(id) as m from t) max_of where fact(max_of.m % 5) > 0;
-- cursors, COPY, prepared statements
begin;
declare c cursor for select id, f(x) from t order by id;
fetch 2 from c;
fetch 1 from c;
commit;
copy (select f(id) from t order by id limit 2) to stdout;
prepare p(int) as select id, f(x) + $1 from t where id = $1;
execute p(1);
execute p(2);
-- within bodies
create function within(a int) returns text language plpgsql as $$
declare s text := ''; r record; n int;
begin
  for r in select id, f(x) as fx from t where f(id) > 2 order by f(id) loop
    s := s || r.id || '=' || r.fx || ' ';
  end loop;
  select sum(f(id)) into n from t where id < 4;
  if exists (select 1 from t where f(id) = a) then s := s || '!'; end if;
  update t set y = f(id)::text where id < f(a);
  return s || n;
end $$;
select within(3);
select id, y from t where id < 4 order by id;
select within(id) from t where id = 2;
-- triggers
create function tr() returns trigger language plpgsql as $$ begin new.x := f(new.x); return new; end $$;
create trigger tr before insert or update on t for each row when (f(new.id) > 1) execute function tr();
insert into t select f(id) + 400, f(x) from t where id < 3;
update t set x = f(x) where f(id) between 400 and 500;
select id, x from t where id > 400 order by id;
-- conflicts of many rows, each with calls
create table c (id int primary key, v int);
insert into c select i, i from generate_series(1, 40) i;
insert into c select i, i * 2 from generate_series(1, 60) i on conflict (id) do update set v = f(excluded.v);
select count(*), sum(v) from c;
insert into c values (1, 5), (2, 6), (100, 1) on conflict (id) do update set v = f(excluded.v) + f(c.v) returning *;
insert into c values (1, 5), (1, 6) on conflict (id) do update set v = f(excluded.v);
drop table c;
drop function of_t(int);
drop table t, log, d, made cascade;
-- any number of arguments
create function joined(sep text, variadic parts text[]) returns text language sql as $$ select array_to_string(parts, sep) $$;
select joined('-', 'a'), joined('-', 'a', 'b', 'c'), joined('+', variadic array['x', 'y']);
select joined('-');
create function largest(variadic of int[]) returns int language plpgsql as $$ begin return (select max(i) from unnest(of) i); end $$;
select largest(1, 7, 3), largest(variadic array[]::int[]);
create function firsts(variadic anyarray) returns anyelement language sql as 'select $1[1]';
select firsts(1, 2), firsts('a'::text, 'b');
select a, largest(a, 2) from generate_series(1, 3) a order by 1;
create function wrong(variadic int) returns int language sql as 'select 1';
create function wrong(variadic int[], int) returns int language sql as 'select 1';
select proname, provariadic::regtype, proargmodes from pg_proc where proname in ('joined', 'largest', 'firsts') order by 1;
select pg_get_function_arguments('joined'::regproc);
drop function joined(text, text[]);
drop function largest, firsts;
