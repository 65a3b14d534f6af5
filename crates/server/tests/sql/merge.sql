-- MERGE, each kind of action and each refusal. merge.out is what PostgreSQL 15 answers, recorded as that of
-- basics.sql:
--   psql -X -q -a -h 127.0.0.1 -p PORT -U postgres postgres < merge.sql > merge.out 2>&1
create schema m;
set search_path = m;
create table t (id int primary key, v int, note text default 'new', at int generated always as identity);
create table s (id int, d int, note text);
insert into t (id, v) values (1, 10), (2, 20), (3, 30), (4, 40);
insert into s values (1, 1, 'a'), (2, null, 'b'), (3, -30, 'c'), (7, 7, 'd'), (8, null, 'e'), (9, -1, 'f');
-- Every branch.
merge into t using s on t.id = s.id
  when matched and t.v + s.d = 0 then delete
  when matched and s.d is null then do nothing
  when matched then update set v = t.v + s.d, note = s.note || t.note
  when not matched and s.d is null then do nothing
  when not matched and s.d < 0 then insert (id) values (s.id)
  when not matched then insert (id, v, note) values (s.id, s.d, default);
select id, v, note from t order by id;
-- Aliases, a query as the source, the WITH list, DEFAULT in both.
with more as (select id + 100 as id, d from s)
merge into t as target using (select id, sum(d) as d from more group by id) as source on target.id = source.id
  when not matched then insert values (source.id, coalesce(source.d, 0));
merge into t using (values (101, 'x'), (102, 'y')) as w (id, note) on t.id = w.id
  when matched then update set note = default, v = (select max(id) from s);
select id, v, note from t order by id;
merge into t using s on t.id = s.id + 100 when matched then delete;
-- Nothing is evaluated that is not for the row.
merge into t using s on t.id = s.id
  when matched and s.d <> 0 then update set v = 100 / s.d
  when matched then update set v = -1
  when not matched and s.d <> 0 and s.id > 100 then insert (id, v) values (s.id, 1 / (s.id - s.id));
select id, v from t order by id;
-- A row twice.
insert into s values (1, 5, 'again');
merge into t using s on t.id = s.id when matched then update set v = s.d;
merge into t using s on t.id = s.id when matched then delete;
merge into t using s on t.id = s.id when matched and s.d = 5 then update set v = s.d when matched then do nothing;
merge into t using (values (50), (50)) as w (id) on t.id = w.id when not matched then insert (id) values (w.id);
select id, v from t order by id;
-- Identity columns.
merge into t using (values (60)) as w (id) on t.id = w.id when not matched then insert (id, at) values (w.id, 7);
merge into t using (values (60)) as w (id) on t.id = w.id when not matched then insert (id, at) overriding system value values (w.id, 7);
merge into t using (values (61)) as w (id) on t.id = w.id when not matched then insert (id, at) overriding user value values (w.id, 7);
merge into t using (values (61)) as w (id) on t.id = w.id when matched then update set at = 3;
merge into t using (values (61)) as w (id) on t.id = w.id when matched then update set at = default;
select id, at > 7 as later from t where id >= 60 order by id;
-- Without a primary key; a table with itself.
create table k (a int, b text);
insert into k values (1, 'x'), (1, 'y'), (2, 'z'), (null, 'n');
merge into k using (values (1, 'one'), (3, 'three')) as w (a, b) on k.a = w.a
  when matched then update set b = k.b || w.b
  when not matched then insert values (w.a, w.b);
select * from k order by a, b;
merge into k using k as other on k.a = other.a + 1 when matched and k.a = 2 then delete;
merge into k using k as other on k.a = other.a + 2 when matched and other.b = 'xone' then delete;
select * from k order by a, b;
create table defaults (a int default 5, b text default 'd');
merge into defaults using (values (1)) as w (x) on false when not matched then insert default values;
merge into defaults using (values (1)) as w (x) on a = 5 when matched then update set (a, b) = (w.x, 'set');
select * from defaults;
-- Constraints and references are asked.
create table c (id int references t on delete cascade);
insert into c values (1);
merge into t using (values (1)) as w (id) on t.id = w.id when matched then delete;
select count(*) from c;
alter table t add check (v < 1000);
merge into t using (values (2)) as w (id) on t.id = w.id when matched then update set v = 1000;
merge into c using (values (12345)) as w (id) on false when not matched then insert values (w.id);
-- What is refused.
merge into t using s on t.id = s.id when matched then delete when matched then do nothing;
merge into t using s on t.id = s.id when not matched then do nothing when not matched and s.id > 1 then do nothing;
merge into t using s on t.id = s.id when not matched then insert (id) values (t.id);
merge into t using s on t.id = s.id when not matched and t.v > 1 then do nothing;
merge into t using t on t.id = t.id when matched then do nothing;
merge into t using s on t.id = s.id when matched then update set nothing = 1;
merge into t using s on t.id = s.id when matched then update set v = 'x';
\set VERBOSITY sqlstate
merge into t using s on t.id = s.id when not matched then insert (id, v) values (1);
merge into t using s on t.id = s.id when not matched then insert (id) values (1, 2);
\set VERBOSITY default
merge into t using nothing on true when matched then delete;
merge into nothing using s on true when matched then delete;
merge into t using s on t.id = s.id when matched and count(*) > 1 then delete;
create view w as select * from t;
merge into w using s on w.id = s.id when matched then delete;
create role merger;
grant usage on schema m to merger;
grant select on s to merger;
set role merger;
merge into t using s on t.id = s.id when matched then delete;
merge into t using s on t.id = s.id when not matched then do nothing;
reset role;
grant select, insert on t to merger;
set role merger;
merge into t using s on t.id = s.id when matched then update set v = 1;
merge into t using s on t.id = s.id when matched then delete;
merge into t using (select 70 as id) s on t.id = s.id when not matched then insert (id, v) values (s.id, 1);
reset role;
begin read only;
merge into t using s on t.id = s.id when matched then delete;
rollback;
prepare p (int, text) as merge into t using (select $1 as id, $2 as note) q on t.id = q.id
  when matched then update set note = q.note || $2 when not matched then insert (id, note) values ($1, $2);
execute p (80, 'eighty');
execute p (80, 'more');
select id, note from t where id >= 70 order by id;
set client_min_messages = warning;
drop schema m cascade;
drop role merger;
