-- Triggers. triggers.out is what PostgreSQL 15 answers, recorded as that of basics.sql:
--   psql -X -q -a -h 127.0.0.1 -p PORT -U postgres postgres < triggers.sql > triggers.out 2>&1
\set VERBOSITY terse
create schema tr;
set search_path = tr;
create table t (id int primary key, v text, n int);
create table log (seq serial, line text);
create function note(s text) returns void language plpgsql as $$ begin insert into log(line) values (s); end $$;
create function trg() returns trigger language plpgsql as $$
begin
  insert into log(line) values (tg_name||' '||tg_when||' '||tg_level||' '||tg_op||' '||tg_table_schema||'.'||tg_table_name||' '||tg_nargs||' '||coalesce(tg_argv[0],'-')||coalesce(tg_argv[1],'-')||' old='||coalesce(old.id::text,'~')||coalesce(old.v,'~')||' new='||coalesce(new.id::text,'~')||coalesce(new.v,'~'));
  if tg_op = 'DELETE' then return old; end if;
  return new;
end $$;
create trigger b_before before insert or update or delete on t for each row execute function trg('x', 2);
create trigger a_after after insert or update or delete on t for each row execute procedure trg();
insert into t values (1,'a',1),(2,'b',2);
update t set v = v||'!' where id = 1;
update t set id = id + 10 where id = 2;
update t set id = id + 10 where id = 1;
delete from t where id = 11 returning *;
select line from log order by seq;
truncate log;
create function up() returns trigger language plpgsql as $$ begin new.v := upper(new.v); new.n := coalesce(new.n,0)+100; return new; end $$;
create function skip() returns trigger language plpgsql as $$ begin if new.n > 1000 then return null; end if; return new; end $$;
create table g (id int primary key, v varchar(5) not null check (v <> 'BAD'), n int, d int generated always as (n*2) stored);
create trigger t1 before insert or update on g for each row execute function up();
create trigger t2 before insert or update of n on g for each row when (new.n > 500) execute function skip();
insert into g values (1,'abc',5),(2,'def',901) returning *;
insert into g values (3,'bad',5);
insert into g values (3,'toolong',5);
insert into g values (3,null,5);
select * from g;
update g set n = 950 where id = 1 returning id, n, d;
update g set v = 'q' returning *;
insert into g values (1,'zz',1) on conflict (id) do update set v = excluded.v || 'x', n = 3 returning *;
insert into g values (1,'zz',1) on conflict (id) do nothing;
insert into g select 10+i, 'r'||i, i from generate_series(1,3) i;
select * from g order by id;
update g set n = x.k from (values (11, 7), (12, 8)) x(i,k) where g.id = x.i returning g.*, x.k;
delete from g using (values (13)) x(i) where g.id = x.i;
merge into g using (values (11,'m'),(99,'n')) s(i,v) on g.id = s.i when matched then update set v = s.v when not matched then insert (id,v,n) values (s.i,s.v,1);
select * from g order by id;
with w as (insert into g values (50,'w',1) returning *) select * from w;
alter table g disable trigger t1;
insert into g values (60,'low',1) returning *;
alter table g enable trigger all;
alter table g disable trigger user;
insert into g values (61,'low',1) returning *;
alter table g enable trigger t1;
alter trigger t1 on g rename to zz;
insert into g values (62,'low',1) returning *;
drop trigger zz on g;
drop trigger zz on g;
drop trigger if exists zz on g;
drop trigger if exists zz on nosuch;
create trigger zz before insert on g for each row execute function nosuch();
create trigger zz before insert on nosuch for each row execute function up();
create function plain() returns int language plpgsql as $$ begin return 1; end $$;
create trigger zz before insert on g for each row execute function plain();
\set VERBOSITY sqlstate
create trigger zz before insert on g for each row when (old.id = 1) execute function up();
create trigger zz before delete on g for each row when (new.id = 1) execute function up();
create trigger zz before insert on g for each row when (new.nope = 1) execute function up();
create trigger zz before insert on g for each row when (id = 1) execute function up();
create trigger zz before insert on g for each row when (new.d = 1) execute function up();
create trigger zz before insert on g for each row when (new.id) execute function up();
create trigger zz before insert on g for each row when (exists (select 1)) execute function up();
create trigger zz before insert on g for each statement when (new.id = 1) execute function up();
\set VERBOSITY terse
create trigger zz before update of nope on g for each row execute function up();
create trigger zz before update of n, n on g for each row execute function up();
create trigger zz before insert on g for each row execute function up();
create trigger zz before insert on g for each row execute function up();
create or replace trigger zz before insert on g for each row execute function skip();
\set VERBOSITY sqlstate
select up();
\set VERBOSITY terse
create function bad(a int) returns trigger language plpgsql as $$ begin return new; end $$;
create function bad() returns trigger language sql as $$ select 1 $$;
create function noret() returns trigger language plpgsql as $$ begin end $$;
create table r (id int);
create trigger x before insert on r for each row execute function noret();
insert into r values (1);
create function shape() returns trigger language plpgsql as $$ declare q record; begin select 1 as a, 2 as b into q; return q; end $$;
drop trigger x on r;
create trigger x before insert on r for each row execute function shape();
insert into r values (1);
create function scal() returns trigger language plpgsql as $$ begin return 5; end $$;
create or replace trigger x before insert on r for each row execute function scal();
insert into r values (1);
create function raise_it() returns trigger language plpgsql as $$ begin raise exception 'no % for %', tg_op, new.id; end $$;
create or replace trigger x before insert on r for each row execute function raise_it();
insert into r values (1);
create function recurse() returns trigger language plpgsql as $$ begin insert into r values (new.id + 1); return new; end $$;
create or replace trigger x after insert on r for each row when (new.id < 5) execute function recurse();
insert into r values (1);
select * from r order by 1;
create function selfmod() returns trigger language plpgsql as $$ begin update r set id = id + 100 where id = old.id; return new; end $$;
create trigger y before update on r for each row execute function selfmod();
\set VERBOSITY sqlstate
update r set id = 7 where id = 1;
\set VERBOSITY terse
create function nother() returns trigger language plpgsql as $$ begin update r set id = id + 100 where id <> old.id and id < 100; return new; end $$;
create or replace trigger y before update on r for each row when (pg_trigger_depth() = 0) execute function nother();
update r set id = 7 where id < 3;
select * from r order by 1;
-- foreign keys, COPY, rows as values
drop table t, log, r, g;
drop function trg();
create table log (seq serial, line text);
create function trg() returns trigger language plpgsql as $$
begin
  insert into log(line) values (tg_name||' '||tg_when||' '||tg_op||' '||coalesce(old::text,'~')||' '||coalesce(new::text,'~'));
  if tg_op = 'DELETE' then return old; end if;
  return new;
end $$;
create table parent (id int primary key, v int);
create table child (id int primary key, p int references parent on delete cascade on update cascade);
create trigger pb before insert or update or delete on parent for each row execute function trg();
create trigger pa after insert or update or delete on parent for each row execute function trg();
create trigger cb before insert or update or delete on child for each row execute function trg();
create trigger ca after insert or update or delete on child for each row execute function trg();
insert into parent values (1,1),(2,2),(3,3);
insert into child values (10,1),(11,1),(12,2);
truncate log;
delete from parent where id = 1;
update parent set id = 20 where id = 2;
select line from log order by seq;
select * from child;
truncate log;
-- a BEFORE trigger that makes the parent
create function mk() returns trigger language plpgsql as $$ begin if not exists (select 1 from parent where id = new.p) then insert into parent values (new.p, 0); end if; return new; end $$;
create trigger c_mk before insert on child for each row execute function mk();
insert into child values (100, 77), (101, 78);
select * from child order by 1;
select * from parent order by 1;
-- self reference of rows in one statement, with a trigger that runs statements
create table tree (id int primary key, up int references tree);
create function cnt() returns trigger language plpgsql as $$ declare n int; begin select count(*) into n from tree; raise notice 'sees %', n; return new; end $$;
create trigger x before insert on tree for each row execute function cnt();
insert into tree values (1,2),(2,3),(3,null);
insert into tree values (4,9);
select * from tree order by 1;
-- set null
create table sn (id int primary key, p int references parent on delete set null);
create trigger sb before update on sn for each row execute function trg();
create trigger sa after update of p on sn for each row execute function trg();
insert into sn values (1, 78);
truncate log;
delete from parent where id = 78;
select line from log order by seq;
-- COPY
create table cp (id int, v text);
create function cpt() returns trigger language plpgsql as $$ begin if new.id = 2 then return null; end if; if new.id = 4 then raise exception 'no four'; end if; new.v := new.v || '!'; return new; end $$;
create trigger a before insert on cp for each row execute function cpt();
create trigger b after insert on cp for each row execute function trg();
truncate log;
copy cp from stdin;
1	a
2	b
3	c
\.
select * from cp order by 1;
select line from log order by seq;
copy cp from stdin;
5	a
4	b
\.
select count(*) from cp;
-- insert select from itself, after trigger that inserts

create table g (id int);
create function again() returns trigger language plpgsql as $$ begin if new.id < 3 then insert into g values (new.id + 1); end if; return null; end $$;
create trigger a after insert on g for each row execute function again();
insert into g values (1),(1);
select * from g order by 1;
insert into g select id + 10 from g;
select count(*) from g;
-- exception handlers
create function tryit() returns void language plpgsql as $$ begin begin insert into cp values (4,'x'); exception when others then raise notice 'caught %', sqlerrm; end; insert into cp values (6,'y'); end $$;
truncate log;
select tryit();
select line from log order by seq;
select * from cp order by 1;
-- row values
delete from parent where id = 77;
create table aud (op text, j jsonb, r text);
create function audit() returns trigger language plpgsql as $$
declare x jsonb;
begin
  x := to_jsonb(new);
  insert into aud values (tg_op, x, new::text);
  if old.* is distinct from new.* then raise notice 'differs'; else raise notice 'same'; end if;
  insert into aud select 'row', null, (select string_agg(q::text, ',') from (select new.*) q);
  return null;
end $$;
create trigger audit after update on parent for each row when (old.* is distinct from new.*) execute function audit();
update parent set v = v;
update parent set v = v + 1 where id = 3;
select * from aud order by op, r;
create function audit2() returns trigger language plpgsql as $$
begin insert into aud values (tg_op, to_jsonb(new), row_to_json(old)::text); return null; end $$;
create trigger audit2 after update on parent for each row execute function audit2();
update parent set v = v + 1 where id = 3;
select * from aud order by op, r;
create table hist (like parent, at text);
create function h() returns trigger language plpgsql as $$ begin insert into hist values (old.*, 'then'); insert into hist select old.*, 'sel'; return old; end $$;
create trigger h before delete on parent for each row execute function h();
delete from parent where id = 3;
select * from hist;
-- search by other statements
do $$ begin insert into parent values (500, 1); update parent set v = 9 where id = 500; end $$;
select * from parent where id = 500;
-- same function, two tables of other shapes
create table s1 (a int, x int); create table s2 (x int, a int);
create function two() returns trigger language plpgsql as $$ begin new.x := new.x + 1; return new; end $$;
create trigger t before insert on s1 for each row execute function two();
create trigger t before insert on s2 for each row execute function two();
insert into s1 values (1, 10); insert into s2 values (10, 1);
select * from s1; select * from s2;
alter table s1 drop column a; alter table s1 add column z text default 'zz';
insert into s1 values (20);
select * from s1 order by x;
-- current of
begin;
declare c cursor for select * from s2 for update;
fetch c;
create function b100() returns trigger language plpgsql as $$ begin new.a := 100; return new; end $$;
create trigger u before update on s2 for each row execute function b100();
update s2 set x = 0 where current of c;
select * from s2;
commit;
-- explain, prepared
prepare p as insert into s2 values ($1, $2) returning *;
execute p(1,2);
execute p(3,4);
alter table s2 disable trigger t;
execute p(3,4);
-- domain and numeric
create domain pos as int check (value > 0);
create table dd (a pos, n numeric(6,2), c char(3), ts timestamptz, arr int[]);
create function ddf() returns trigger language plpgsql as $$ begin new.n := new.n * 1.005; new.c := 'q'; new.arr[2] := 7; new.a := new.a - 1; return new; end $$;
create trigger t before insert on dd for each row execute function ddf();
insert into dd values (2, 10.10, 'abc', '2020-01-01 00:00+00', '{1}') returning a, n, c, arr;
insert into dd values (1, 10.10, 'abc', '2020-01-01 00:00+00', '{1}') returning a, n, c, arr;
-- update of key, conflict
create table k (id int primary key, v text);
create trigger kb before insert or update on k for each row execute function trg();
create trigger ka after insert or update on k for each row execute function trg();
truncate log;
insert into k values (1,'a'),(2,'b') on conflict (id) do update set v = excluded.v||'+' where k.v <> 'zz';
insert into k values (1,'c'),(3,'d') on conflict (id) do update set v = excluded.v||'+';
insert into k values (9,'c'),(9,'d') on conflict (id) do update set v = excluded.v||'+';
insert into k values (1,'c'),(4,'d') on conflict do nothing;
insert into k values (1,'c');
select line from log order by seq;
select * from k order by 1;
-- triggers for statements
reset search_path;
create schema st; set search_path = st;
create function say() returns trigger language plpgsql as $$
begin raise notice '% % % % %', tg_name, tg_when, tg_level, tg_op, tg_table_name; return coalesce(new, old); exception when others then raise notice 'x %', sqlerrm; return null; end $$;
create function say_st() returns trigger language plpgsql as $$
begin raise notice '% % % % %', tg_name, tg_when, tg_level, tg_op, tg_table_name; return null; end $$;
create table t (id int primary key, v int);
create trigger bs before insert or update or delete or truncate on t execute function say_st();
create trigger as_ after insert or update or delete or truncate on t for each statement execute function say_st();
create trigger br before insert or update or delete on t for each row execute function say();
create trigger ar after insert or update or delete on t for each row execute function say();
create trigger us after update of v on t for each statement execute function say_st();
create trigger never after insert on t for each statement when (pg_trigger_depth() > 0) execute function say_st();
insert into t values (1,1),(2,2);
insert into t select 3, 3;
insert into t select i, i from generate_series(4,4) i where false;
update t set v = 0 where id = 1;
update t set id = 10 where id = 1;
update t set v = x.v from (values (2, 7)) x(id, v) where t.id = x.id;
delete from t where id = 99;
delete from t where id = 3;
insert into t values (2,0) on conflict (id) do update set v = 5;
insert into t values (2,0) on conflict do nothing;
merge into t using (values (2,1),(50,1)) s(a,b) on t.id = s.a when matched then delete when not matched then insert values (s.a, s.b);
with d as (delete from t where id = 50 returning *) select count(*) from d;
copy t from stdin;
70	1
71	1
\.
truncate t;
create table p (id int primary key); create table c (id int primary key, p int references p on delete cascade); create table cc (id int, c int references c on delete cascade);
create trigger s1 before delete on c execute function say_st();
create trigger s2 after delete on c execute function say_st();
create trigger r1 before delete on c for each row execute function say();
create trigger r2 after delete on c for each row execute function say();
create trigger s2 after delete on cc execute function say_st();
create trigger r2 after delete on cc for each row execute function say();
create trigger ps after delete on p execute function say_st();
create trigger pr after delete on p for each row execute function say();
insert into p values (1),(2); insert into c values (1,1),(2,1); insert into cc values (1,1),(2,2);
delete from p where id = 1;
create table tree (id int primary key, up int references tree on delete cascade);
create trigger s1 before delete on tree execute function say_st();
create trigger s2 after delete on tree execute function say_st();
create trigger r2 after delete on tree for each row execute function say();
insert into tree values (1,null),(2,1),(3,2);
delete from tree where id = 1;
truncate p;
truncate p cascade;
create trigger tp before truncate on p execute function say_st();
create trigger tc after truncate on c execute function say_st();
create trigger tcc after truncate on cc execute function say_st();
truncate p cascade;
create trigger tr before truncate on p for each row execute function say();
create function no_t() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$;
create trigger no before truncate on c execute function no_t();
insert into p values (1);
truncate p cascade;
select * from p;
begin; create trigger gone after insert on c for each row execute function say(); rollback;
insert into p values (6);
insert into c values (6, 6);
-- catalogs, and what hangs on what
reset search_path;
create schema gd; set search_path=gd,public;
create function tf() returns trigger language plpgsql as $$ begin return new; end $$;
create table tx (id int, v text, "W" int);
create trigger a before update of id, "W" on tx for each row when (old.id is distinct from new.id) execute function tf('a''b', 'c\d', 3);
create trigger b after insert or update or delete or truncate on tx execute function tf();
create trigger c after insert or delete or update on tx for each row when (pg_trigger_depth() = 0) execute function tf();
create trigger d after insert on tx for each row execute function tf();
select tgname, tgtype, tgattr, tgnargs, tgargs, tgenabled, tgqual is null, pg_get_triggerdef(oid) from pg_trigger where not tgisinternal and tgrelid = 'tx'::regclass order by 1;
\d tx
alter table tx disable trigger d;
\d tx
select trigger_schema, trigger_name, event_manipulation, event_object_table, action_order, action_condition, action_statement, action_orientation, action_timing from information_schema.triggers where event_object_schema = 'gd' order by trigger_name, event_manipulation;
select trigger_name, event_object_column from information_schema.triggered_update_columns where event_object_schema = 'gd' order by 1, 2;
select distinct classid::regclass, refclassid::regclass, refobjsubid, deptype from pg_depend where classid = 'pg_trigger'::regclass and objid in (select oid from pg_trigger where tgrelid = 'tx'::regclass) order by 1,2,3;
alter table tx drop column "W";
drop function tf();
\set VERBOSITY sqlstate
alter table tx alter column id type bigint;
alter table tx alter column "W" type bigint;
\set VERBOSITY terse
alter table tx rename id to idd;
insert into tx values (1, 'a', 1);
update tx set idd = 2;
select pg_get_triggerdef(oid) from pg_trigger where not tgisinternal and tgrelid = 'tx'::regclass and tgname = 'a';
alter table tx rename to ty;
update ty set idd = 3;
alter table ty drop column "W" cascade;
select tgname from pg_trigger where tgrelid = 'ty'::regclass order by 1;
drop function tf() cascade;
create table tz (id int);
create trigger a after insert on tz for each row execute function tf();
create function tf() returns trigger language plpgsql as $$ begin return new; end $$;
create trigger a after insert on tz for each row execute function tf();
select relhastriggers from pg_class where relname = 'tz';
create role trigger_maker;
grant usage on schema gd to trigger_maker;
set role trigger_maker;
create trigger mine after insert on tz for each row execute function tf();
reset role;
grant trigger on tz to trigger_maker;
set role trigger_maker;
create trigger mine after insert on tz for each row execute function tf();
\set VERBOSITY sqlstate
alter table tz disable trigger mine;
\set VERBOSITY terse
reset role;
drop table tz;
revoke all on schema gd from trigger_maker;
drop role trigger_maker;
create table gen (a int, b int generated always as (a + 1) stored);
create function gf() returns trigger language plpgsql as $$ begin raise notice '% %', old.b, new.b; return new; end $$;
create trigger g before update of b on gen for each row execute function gf();
create trigger g2 after update of b on gen for each row when (old.b < new.b) execute function gf();
insert into gen values (1);
update gen set a = 5;
-- keys, views, nesting, whole rows
reset search_path;
create schema e5; set search_path = e5;
create table p (id int primary key);
create table t (id int primary key, p int references p, v int, u int unique);
create index on t (v);
create function chg() returns trigger language plpgsql as $$ begin
 if new.v = 1 then new.p := 99; end if;
 if new.v = 2 then new.id := new.id + 1000; end if;
 if new.v = 3 then new.u := 7; end if;
 return new; end $$;
create trigger chg before insert or update on t for each row execute function chg();
insert into p values (1),(2);
insert into t values (1, 1, 0, 1), (2, 1, 0, 2), (3, 2, 0, 7);
update t set v = 1 where id = 1;
update t set v = 2 where id = 1 returning id;
update t set v = 3 where id = 2;
insert into t values (5, 1, 1, 5);
insert into t values (5, 1, 2, 5) returning id;
insert into t values (6, 1, 3, 6);
insert into t values (6, 1, 3, 6) on conflict (u) do update set v = 50 returning *;
select * from t order by id;
delete from p where id = 1;
create view vw as select id, v from t where v < 100;
create function says() returns trigger language plpgsql as $$ begin raise notice '% % %', tg_op, old, new; return coalesce(new, old); end $$;
create trigger says after insert or update or delete on t for each row execute function says();
insert into vw values (20, 4);
update vw set v = 5 where id = 20;
delete from vw where id = 20;
begin;
savepoint a;
insert into t values (30, 1, 4, 30);
rollback to a;
insert into t values (31, 1, 4, 31);
commit;
select id from t where id >= 30 order by id;
-- a trigger that asks about the statement's own rows
create table q (id int primary key, n bigint);
create function seen() returns trigger language plpgsql as $$ begin select count(*) into new.n from q; return new; end $$;
create trigger seen before insert on q for each row execute function seen();
insert into q values (1), (2), (3);
insert into q select id + 10 from q;
select * from q order by id;
create function total() returns trigger language plpgsql as $$ declare s bigint; begin select sum(n) into s from q; raise notice 'total %', s; return null; end $$;
create trigger total after update on q for each statement execute function total();
update q set n = 1;
update q set n = 2 where id in (select id from q where id > 10);
-- nested: audit of audit
create table a1 (x int); create table a2 (x int);
create function to_a1() returns trigger language plpgsql as $$ begin insert into a1 values (new.id); return null; end $$;
create function to_a2() returns trigger language plpgsql as $$ begin insert into a2 values (new.x * 10); raise notice 'depth %', pg_trigger_depth(); return null; end $$;
create trigger z after insert on q for each row execute function to_a1();
create trigger z after insert on a1 for each row execute function to_a2();
insert into q values (50), (51);
select * from a2 order by 1;
select pg_trigger_depth();
-- errors in nested ones are caught, and what they noted is forgotten
create function guarded() returns trigger language plpgsql as $$ begin
 begin insert into a1 values (1); raise exception 'back'; exception when others then raise notice 'caught %', sqlerrm; end; return null; end $$;
create table gg (x int);
create trigger g after insert on gg for each row execute function guarded();
insert into gg values (1), (2);
select count(*) from a1;
-- order by names
create table o (x int);
create function nm() returns trigger language plpgsql as $$ begin raise notice '%', tg_name; return new; end $$;
create trigger b before insert on o for each row execute function nm();
create trigger "B" before insert on o for each row execute function nm();
create trigger a before insert on o for each row execute function nm();
create trigger a2 before insert on o for each row execute function nm();
insert into o values (1);
-- a returned OLD, and a NEW that is assigned as a whole
create function back() returns trigger language plpgsql as $$ begin return old; end $$;
create table bk (id int primary key, v int);
insert into bk values (1, 1);
create trigger b before update on bk for each row execute function back();
update bk set v = 5 returning *;
drop trigger b on bk;
create function whole() returns trigger language plpgsql as $$ declare r bk%rowtype; begin r := new; r.v := 77; new := r; return new; end $$;
create trigger b before update on bk for each row execute function whole();
update bk set v = 5 returning *;
create function into_new() returns trigger language plpgsql as $$ begin select 1, 88 into new.id, new.v; return new; end $$;
create or replace trigger b before update on bk for each row execute function into_new();
update bk set v = 5 returning *;
create function loopy() returns trigger language plpgsql as $$ declare r record; begin for r in select * from bk loop new.v := r.v + 1; end loop; if found then new.v := new.v + 1; end if; return new; end $$;
create or replace trigger b before update on bk for each row execute function loopy();
update bk set v = 5 returning *;
update bk set v = default returning *;
create temp table tt (id int);
create trigger t before insert on tt for each row execute function nm();
insert into tt values (1);
copy (select 1) to stdout;
do $$ begin insert into tt select generate_series(1, 2); end $$;
create table serial_t (id serial, v text default 'd', at int generated always as identity);
create trigger t before insert on serial_t for each row execute function says();
insert into serial_t default values;
insert into serial_t (v) values (default), ('x') returning *;
