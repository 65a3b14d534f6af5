-- Declared partitions. partitions.out is what PostgreSQL 15 answers, recorded as that of basics.sql:
--   psql -X -q -a -h 127.0.0.1 -p PORT -U postgres postgres < partitions.sql > partitions.out 2>&1
create schema pt;
set search_path = pt;

-- Ranges.
create table visit (id int not null, at date not null, what text, primary key (id, at)) partition by range (at);
insert into visit values (1, '2024-01-05', 'none');
create table visit_1 partition of visit for values from ('2024-01-01') to ('2024-02-01');
create table visit_2 partition of visit for values from ('2024-02-01') to ('2024-03-01');
insert into visit values (1, '2024-01-05', 'a'), (2, '2024-02-05', 'b'), (3, '2024-01-31', 'c') returning *;
insert into visit values (4, '2024-03-01', 'd');
insert into visit values (1, '2024-01-05', 'again');
insert into visit values (1, '2024-01-05', 'again') on conflict do nothing;
insert into visit values (1, '2024-01-05', 'again') on conflict (id, at) do update set what = visit.what || excluded.what returning what;
select * from visit order by id;
select * from visit_1 order by id;
select * from visit where at = '2024-02-05';
select what from visit where id = 3 and at = '2024-01-31';
select count(*), min(at), max(what) from visit where at >= '2024-02-01';
select at, count(*) from visit group by at order by at;
select * from visit where at > '2024-05-01';
select v.id, w.id from visit v join visit w on v.at = w.at and v.id = w.id order by 1;
create table visit_rest partition of visit default;
insert into visit values (5, '2030-01-01', 'far');
select * from visit_rest;
create table visit_2030 partition of visit for values from ('2030-01-01') to ('2031-01-01');
\set VERBOSITY terse
create table visit_rest2 partition of visit default;
create table visit_3 partition of visit for values from ('2024-01-15') to ('2024-04-01');
create table visit_4 partition of visit for values from ('2024-05-01') to ('2024-05-01');
create table visit_5 partition of visit for values in ('2024-05-01');
create table visit_6 partition of visit for values from ('2024-05-01', 1) to ('2024-05-02');
create table visit_7 partition of visit for values from (null) to ('2024-05-02');
create table visit_8 partition of what for values from (1) to (2);
create table visit_9 partition of visit_1 for values from (1) to (2);
\set VERBOSITY default

select tableoid::regclass, * from visit order by id;
select tableoid::regclass, count(*) from visit where id > 1 group by 1 order by 2, min(id);
select v.tableoid = 'visit_1'::regclass, w.tableoid::regclass from visit v left join visit_2 w using (id) order by v.id;
select pg_partition_root('visit_1'), pg_partition_root('visit_1_pkey'), pg_partition_root('pg_class');
select * from pg_partition_ancestors('visit_1'::regclass);

-- Changes.
update visit set what = 'B' where id = 2 returning *;
update visit set what = upper(what) where at < '2024-03-01';
select * from visit order by id;
update visit set at = '2024-02-10' where id = 1 returning *;
select * from visit_1 order by id;
select * from visit_2 order by id;
update visit set at = at + 1000 where id = 3;
select * from visit_rest order by id;
update visit_1 set at = '2024-02-10' where id = 1;
insert into visit_1 values (9, '2024-01-09', 'x');
update visit_1 set at = '2024-02-10' where id = 9;
insert into visit_1 values (10, '2024-02-09', 'x');
delete from visit where id = 9 returning what;
delete from visit where what = 'B';
select * from visit order by id;
update visit set what = (select count(*)::text from visit) where id = 1;
update visit v set what = w.what || '!' from visit w where v.id = w.id and w.id = 1 returning v.what;
delete from visit v using visit w where v.id = w.id and w.id = 1;
select count(*) from visit;
truncate visit;
select count(*) from visit;

-- Lists.
create table place (country text, city text) partition by list (country);
create table place_de partition of place for values in ('de', 'at');
create table place_none partition of place for values in (null);
\set VERBOSITY terse
create table place_fr partition of place for values in ('fr', 'at');
\set VERBOSITY default
create table place_fr partition of place for values in ('fr');
insert into place values ('de', 'Bonn'), ('fr', 'Lyon'), (null, 'Atlantis'), ('at', 'Graz');
insert into place values ('it', 'Rome');
select * from place order by city;
select * from place where country = 'at';
select * from place where country in ('fr', 'at') order by 1;
select * from place where country is null;
update place set country = 'fr' where city = 'Bonn';
update place set city = 'Wien' where country = 'at';
select * from place_de;
\set VERBOSITY terse
create table place2 (a int, b int) partition by list (a, b);
create table place2 (a int, b int) partition by list (c);
\set VERBOSITY default

-- Hashes.
create table item (id bigint primary key, v text) partition by hash (id);
create table item_0 partition of item for values with (modulus 2, remainder 0);
create table item_1 partition of item for values with (modulus 4, remainder 1);
\set VERBOSITY terse
create table item_2 partition of item for values with (modulus 3, remainder 1);
create table item_2 partition of item for values with (modulus 4, remainder 4);
create table item_2 partition of item for values with (modulus 4, remainder 2);
create table item_2 partition of item default;
\set VERBOSITY default
create table item_3 partition of item for values with (modulus 4, remainder 3);
insert into item select g, g::text from generate_series(1, 100) g;
select count(*), sum(id) from item;
select * from item where id = 42;
update item set v = 'x' where id in (7, 8, 9);
select count(*) from item where v = 'x';
delete from item where id between 11 and 20;
select count(*) from item;

-- Partitions of partitions.
create table log (y int, m int, t text) partition by range (y);
create table log_2024 partition of log for values from (2024) to (2025) partition by list (m);
create table log_2024_1 partition of log_2024 for values in (1, 2, 3);
create table log_2024_2 partition of log_2024 default;
create table log_2025 partition of log for values from (2025) to (maxvalue);
insert into log values (2024, 2, 'a'), (2024, 7, 'b'), (2026, 1, 'c');
insert into log values (2023, 2, 'a');
insert into log_2024 values (2025, 2, 'a');
select * from log order by t;
select * from log_2024 order by t;
select t from log where y = 2024 and m = 2;
select t from log where y = 2024 order by t;

-- Definitions.
\set VERBOSITY terse
create table ev (a int, b int, c text, unique (b)) partition by range (a);
\set VERBOSITY default
create table ev (a int not null, b int, c text) partition by range (a);
\set VERBOSITY terse
alter table ev add primary key (b);
\set VERBOSITY default
alter table ev add primary key (a, b);
\set VERBOSITY terse
create unique index on ev (c);
\set VERBOSITY default
create index on ev (c);
\set VERBOSITY terse
create table ev_0 partition of ev for values from (-10) to (-5) partition by list (c);
\set VERBOSITY default
create table ev_1 partition of ev for values from (minvalue) to (10);
create table ev_2 (a int not null, b int not null, c text);
insert into ev_2 values (11, 1, 'x'), (30, 1, 'y');
alter table ev attach partition ev_2 for values from (10) to (20);
delete from ev_2 where a = 30;
alter table ev attach partition ev_2 for values from (10) to (20);
alter table ev attach partition ev_2 for values from (20) to (30);
select * from ev;
alter table ev add column d int default 7;
alter table ev_1 add column e int;
alter table ev_1 drop column d;
alter table ev_1 rename column d to e;
alter table ev_1 alter column d type text;
alter table ev rename column d to e;
select * from ev_2;
alter table ev alter column c set not null;
insert into ev values (1, 1, null);
alter table ev_1 alter column c drop not null;
alter table ev add constraint positive check (b > 0);
insert into ev values (1, -1, 'n');
insert into ev_1 values (1, -1, 'n');
alter table ev_1 drop constraint positive;
alter table ev drop constraint positive;
alter table ev drop column a;
alter table ev alter column a type bigint;
alter table ev drop column e;
select * from ev;
drop index ev_1_c_idx;
alter table ev detach partition ev_1;
insert into ev values (1, 1, 'n');
insert into ev_1 values (100, 1, 'n');
alter table ev attach partition ev_1 for values from (0) to (10);
alter table ev attach partition ev_1 default;
select * from ev order by a;
alter table ev detach partition place_de;
alter table place_de attach partition ev_1 default;

-- As psql shows them.
\d visit
\d visit_1
\d+ place_de
\d ev
\d ev_1
\d log_2024
\dP
select relname, relkind, relispartition, pg_get_expr(relpartbound, oid) from pg_class where relname ~ '^log' and relnamespace = 'pt'::regnamespace order by 1;
select inhrelid::regclass, inhparent::regclass from pg_inherits where inhparent::regclass::text !~ '\.' order by inhrelid::regclass::text, inhparent::regclass::text;
select pg_get_partkeydef('item'::regclass);

-- Rights: those on the table count.
create role pt_reader;
grant usage on schema pt to pt_reader;
grant select, insert on visit to pt_reader;
set role pt_reader;
insert into visit values (1, '2024-01-01', 'r');
select * from visit;
select * from visit_1;
update visit set what = '';
reset role;

-- Prepared statements.
prepare one (int, date) as select * from visit where id = $1 and at = $2;
execute one (1, '2024-01-01');
execute one (1, '2024-02-01');
execute one (1, '2034-02-01');
prepare put (int, date, text) as insert into visit values ($1, $2, $3);
execute put (7, '2024-02-07', 'p');
execute put (8, '2034-02-07', 'p');
prepare upd (date) as update visit set what = 'q' where at >= $1;
execute upd ('2024-02-01');
prepare cnt (date, date) as select count(*) from visit where at between $1 and $2;
execute cnt ('2024-01-01', '2024-01-31');
execute cnt ('2024-01-01', '2040-01-31');
select * from visit order by id;
begin;
select * from visit where id = 1 for update;
select * from visit where id = 7 and at = '2024-02-07' for update;
rollback;
merge into visit v using (values (7, date '2024-02-07'), (20, date '2024-01-20')) s (id, at) on v.id = s.id and v.at = s.at
    when matched then delete when not matched then insert values (s.id, s.at, 'm');
select * from visit order by id;
copy visit from stdin;
30	2024-01-30	copied
31	2024-02-28	copied
\.
copy (select * from visit order by id) to stdout;

-- An INSERT comes to a row once, whichever partitions the rows between are of.
create table twice (id int primary key, a int) partition by list (id);
create table twice_odd partition of twice for values in (1, 3);
create table twice_even partition of twice for values in (2, 4);
insert into twice values (1, 1), (2, 2), (1, 3) on conflict (id) do update set a = excluded.a;
insert into twice values (1, 1), (2, 2), (1, 3) on conflict (id) do update set a = excluded.a returning *;
insert into twice values (1, 1), (2, 2), (1, 3) on conflict (id) do nothing returning *;
insert into twice values (3, 3), (2, 4), (1, 5) on conflict (id) do update set a = excluded.a returning *;
select * from twice order by id;
drop table twice;

-- Dropped.
drop table visit_2;
select * from visit order by id;
drop table visit;
select count(*) from pg_class where relname ~ '^visit' and relnamespace = 'pt'::regnamespace;
drop table log, item, place, ev;
drop schema pt cascade;
drop role pt_reader;
