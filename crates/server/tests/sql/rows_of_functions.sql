-- What functions give as a row, rows in PL/pgSQL, constraints and defaults in the catalog. rows_of_functions.out is what
-- PostgreSQL 15 answers, recorded as that of basics.sql:
--   psql -X -q -a -h 127.0.0.1 -p PORT -U postgres postgres < rows_of_functions.sql > rows_of_functions.out 2>&1
set client_min_messages = notice;
\set VERBOSITY terse
create schema rf; set search_path = rf;
create function two(a int, s out int, p out int) language plpgsql as $$ begin s := a + 1; p := a * a; end $$;
select two(3);
select (two(4)).p, (two(5)).s;
select * from two(6);
select t.p from two(7) t;
create function strictly(a int, s out int, p out int) strict language plpgsql as $$ begin s := a; p := a; end $$;
select strictly(null), strictly(null) is null;
create function two_sql(a int, s out int, p out int) language sql as 'select a + 1, a * a';
select two_sql(3);
select (two_sql(4)).p;
select g, (two_sql(g)).* from generate_series(1, 2) g;
create function one_table(n int) returns table (val int) language sql as 'select n union all select n + 1';
select * from one_table(1) order by 1;
select val from one_table(1) t order by val;
select t.val + 1 as more from one_table(2) as t order by 1;
select x from one_table(2) as t(x) order by x;
create function one_out(n int, val out text) language sql as $$ select 'v' || n $$;
select * from one_out(1);
select t.val from one_out(2) t;
select one_out(3);
create function one_plpgsql(n int) returns table (val int) language plpgsql as $$ begin return query select n; end $$;
select * from one_plpgsql(1);
select val from one_plpgsql(2) t;
create function no_out(n int) returns int language sql as 'select n';
select * from no_out(1);
select * from no_out(1) t;
select * from upper(one_out(1));
\df one_table
\df one_out
create type state as enum ('new', 'done');
create domain small as int check (value < 10);
create type parts as (x int, e state, d date, n numeric(6, 2), tags text[], s small);
create table kept (id int primary key, p parts);
do $$ declare i parts; begin i := row(1, 'new', '2024-01-01', '7.777', '{x,y}', 3); raise notice '% % %', i, i.n, i.tags[2]; insert into kept values (1, i); end $$;
do $$ declare i parts; begin i := row(1, 'old', null, null, null, null); end $$;
do $$ declare i parts; begin i := row(1, 'new', 'zz', null, null, null); end $$;
do $$ declare i parts; begin i := row(1, 'new', null, null, null, 12); end $$;
do $$ declare i parts := row(2, 'done', null, 1.5, null, '4'); k kept; begin k := row(2, i); insert into kept values (k.*); end $$;
select * from kept order by id;
do $$ declare a small; begin a := null; raise notice '%', a is null; a := '7'; raise notice '%', a; a := 2.4; raise notice '%', a; end $$;
do $$ declare a small; begin a := 11; end $$;
create domain never as int not null;
do $$ declare a never := 1; begin a := null; end $$;
create function as_domain(n int) returns table (a small) language plpgsql as $$ declare v small; begin v := n; return query select v; end $$;
select * from as_domain(3);
create table accounts (id int primary key, bal int);
insert into accounts select g, 10 from generate_series(1, 3) g;
do $$ declare x int; begin update accounts set bal = bal + 1 returning bal into x; end $$;
do $$ declare x int; begin insert into accounts values (4, 1), (5, 2) returning id into x; end $$;
do $$ declare x int; begin delete from accounts where id > 1 returning id into x; end $$;
do $$ declare x int; begin update accounts set bal = 11 where id = 1 returning bal into x; raise notice '%', x; end $$;
do $$ declare x int; begin update accounts set bal = 12 where id = 9 returning bal into x; raise notice '%', x; end $$;
do $$ declare x int; begin update accounts set bal = 12 where id = 9 returning bal into strict x; end $$;
do $$ declare x int; begin execute 'update accounts set bal = bal + 1 returning bal' into x; raise notice '%', x; end $$;
do $$ declare x int; begin select bal into x from accounts order by id; raise notice '%', x; end $$;
select * from accounts order by id;
select 5::bit(4), 5::bit(2), (-1)::bit(8), 44::bit(10), 44::bit(3), cast(-44 as bit(12)), 5::bigint::bit(70), 5::bit;
create table bits (b bit(4), v varbit(5));
insert into bits values (5::bit(4), '101');
select b, v, b::int from bits;
create table checked (a int check (a > 0), b int, c text default 'x', d date default '2024-03-01', e int default '5', f bool default 'true',
    g bigint default '7', h numeric default '1.5', i jsonb default '{}', j text[] default '{}', k interval default '1 day', l int default 3, m uuid,
    check (a < b), check (length(c) > 0), constraint none check (true));
select conname, conkey from pg_constraint where conrelid = 'checked'::regclass order by conname;
select constraint_name, column_name from information_schema.constraint_column_usage where table_name = 'checked' order by 1, 2;
select column_name, column_default from information_schema.columns where table_name = 'checked' and column_default is not null order by ordinal_position;
set client_min_messages = warning; drop schema rf cascade;
