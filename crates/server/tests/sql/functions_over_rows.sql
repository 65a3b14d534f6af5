-- Functions that are no queries, called for each row.
-- functions_over_rows.out is what PostgreSQL 15 answers, recorded as that of basics.sql.
\set VERBOSITY terse
create table fr (id int primary key, name text, amount numeric(8,2));
insert into fr values (1, 'Ada Lovelace', 10.5), (2, 'Grace Hopper', 20), (3, null, 30), (4, 'Alan Turing', null);
create function slug(t text) returns text language plpgsql as $$
declare s text;
begin
  if t is null then return 'none'; end if;
  s := lower(regexp_replace(t, '[^A-Za-z]+', '-', 'g'));
  return s;
end $$;
create function twice(n numeric) returns numeric language plpgsql strict as $$ begin return n * 2; end $$;
create function is_short(t text) returns boolean language plpgsql as $$ begin return length(t) < 12; end $$;
select id, slug(name) from fr order by id;
select slug(name) as s, id + 1 as next, twice(amount) from fr where id > 1 order by id desc;
select slug(upper(name)) || '!' || id from fr where amount > 5 order by amount;
select id from fr where is_short(name) order by id;
select id, name from fr where is_short(name) and id < 4 order by id limit 1;
select id from fr where id > 0 and slug(name) <> 'none' and not is_short(name) order by id;
select id from fr where slug(name) = 'none' or false order by id;
select id from fr where is_short(name) is not true order by id offset 1;
select slug(slug(name)) from fr order by id limit 2;
select twice(twice(amount)), slug(name) from fr order by id;
select f.id, slug(f.name), g.id from fr f join fr g on g.id = f.id + 1 where twice(g.amount) > 25 order by f.id;
select slug((select name from fr g where g.id = f.id + 1)) from fr f order by id;
select f.*, slug(name) from fr f where id = 2;
select row(f.id, slug(f.name)) from fr f order by id limit 1;
select coalesce(slug(name), 'x'), id from fr order by id limit 1;
select twice(max(amount)) from (select amount from fr) s limit 0;
-- what a function does is seen by the next call
create table counted (n int);
insert into counted values (0);
create function step(by int) returns int language plpgsql as $$
declare r int;
begin
  update counted set n = n + by returning n into r;
  return r;
end $$;
select id, step(id) from fr order by id;
select * from counted;
select step(id) from fr where id < 3 order by id desc;
-- errors end the statement
create function picky(i int) returns int language plpgsql as $$
begin
  if i = 3 then raise exception 'no % please', i using errcode = 'P0042'; end if;
  perform step(1);
  return i;
end $$;
select picky(id) from fr order by id;
select * from counted;
-- statements of SQL
create function noted(i int) returns int language sql as $$
  insert into counted values (i);
  select count(*)::int from counted;
$$;
select id, noted(id) from fr order by id;
-- rows as values
create function pair(i int, out a int, out b text) language plpgsql as $$ begin a := i; b := 'b' || i; end $$;
select id, pair(id) from fr order by id limit 2;
-- prepared, and within bodies
prepare p(int) as select id, slug(name), twice($1) from fr where id = $1 and is_short(name) is not null;
execute p(1);
execute p(2);
deallocate p;
create function all_slugs() returns setof text language plpgsql as $$
declare r record;
begin
  for r in select id, slug(name) as s from fr order by id loop
    return next r.id || r.s;
  end loop;
end $$;
select * from all_slugs();
do $$
declare t text; n int := 2;
begin
  select string_agg(s, ',') into t from (select 1) x cross join lateral (select 'y' as s) y;
  select slug(name) into t from fr where id = n;
  raise notice '%', t;
end $$;
begin;
declare c cursor for select id, slug(name) from fr order by id;
fetch 2 from c;
fetch 1 from c;
close c;
commit;
copy (select id, slug(name) from fr order by id) to stdout;
-- rights and settings of a function's own
create schema fr_app;
create table fr_app.secret (v text);
insert into fr_app.secret values ('hidden');
create function reveal() returns text language plpgsql security definer set search_path = fr_app, pg_temp as $$
begin return (select v from secret) || ' ' || current_setting('search_path'); end $$;
create function reveal_sql() returns text language sql security definer set search_path to 'fr_app' as 'select v from secret';
create role fr_guest;
grant usage on schema fr_app to fr_guest;
set role fr_guest;
select v from fr_app.secret;
select reveal(), reveal_sql();
select current_user;
show search_path;
reset role;
alter function reveal() security invoker;
set role fr_guest;
select reveal();
reset role;
-- nobody makes another's function run with its owner's rights
set role fr_guest;
alter function reveal() security definer;
alter function slug(text) set search_path = fr_app;
comment on function slug(text) is 'mine';
reset role;
create function who() returns text language plpgsql security definer as $$ begin return (select case when current_user = session_user then 'same' else 'other' end); end $$;
create function zone() returns text language sql set timezone = 'Asia/Tokyo' as $$ select to_char('2026-01-01 00:00+00'::timestamptz, 'HH24 OF') $$;
select zone();
alter function zone() set timezone to 'UTC';
select zone();
alter function zone() reset all;
select proconfig, prosecdef from pg_proc where proname in ('zone', 'reveal') order by proname;
alter function reveal() set work_mem to '8MB';
select pg_get_functiondef('reveal()'::regprocedure);
alter function slug(text) immutable strict;
select slug(null), provolatile, proisstrict from pg_proc where proname = 'slug';
alter function nothing(int) stable;
comment on function slug(text) is 'makes slugs';
comment on function slug(text, int) is 'none';
select obj_description('slug(text)'::regprocedure, 'pg_proc');
create function fr_note() returns trigger language plpgsql security definer set search_path = fr_app as $$ begin insert into secret values ('noted ' || new.id); return null; end $$;
create trigger fr_noted after insert on fr for each row execute function fr_note();
comment on trigger fr_noted on fr is 'a trigger';
comment on trigger fr_none on fr is 'none';
select obj_description(oid, 'pg_trigger') from pg_trigger where tgname = 'fr_noted';
grant insert on fr to fr_guest;
set role fr_guest;
insert into fr values (9);
reset role;
select * from fr_app.secret order by v;
-- rights of its own are for one transaction
create procedure ends() language plpgsql security definer as $$ begin commit; end $$;
call ends();
drop procedure ends;
-- hashes, by which applications lock
select hashtext('job'), hashtextextended('job', 7), hashint4(5), hashint8(5), hashname('x');
select pg_try_advisory_xact_lock(hashtext('job'));
select twice(max(n)), count(*) from (values (1), (2)) v(n);
select slug(lower(name)), count(*), slug(max(name)) from fr where id < 3 group by lower(name) order by lower(name);
drop table fr, counted;
drop table fr_app.secret;
drop schema fr_app;
drop function slug, twice, is_short, step, picky, noted, pair, all_slugs, reveal, reveal_sql, who, zone, fr_note;
drop role fr_guest;
