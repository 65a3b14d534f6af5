-- Functions and procedures of SQL whose bodies are no single query, and #variable_conflict.
-- sql_bodies.out is what PostgreSQL 15 answers, recorded as that of basics.sql:
--   psql -X -q -a -h 127.0.0.1 -p PORT -U postgres postgres < sql_bodies.sql > sql_bodies.out 2>&1
set client_min_messages = notice;
\set VERBOSITY terse
create schema sb; set search_path = sb;
create table acc (id int primary key, owner text, balance numeric default 0);
insert into acc values (1, 'ann', 100), (2, 'bob', 50);
create function move_money(source int, target int, amount numeric) returns numeric language sql as $$
  update acc set balance = balance - amount where id = source;
  update acc set balance = balance + amount where id = target;
  select balance from acc where id = source;
$$;
select move_money(1, 2, 30);
select * from acc order by id;
create function add_acc(id int, owner text) returns acc language sql as $$
  insert into acc values (add_acc.id, add_acc.owner) returning *;
$$;
select * from add_acc(3, 'cid');
select * from add_acc(4, 'dan');
create function nothing_much(n int) returns void language sql as $$ update acc set balance = balance + n; select 1; $$;
select nothing_much(5);
select * from acc order by id;
create function all_of(lower numeric) returns setof acc language sql as $$
  update acc set balance = balance + 1 where balance < all_of.lower;
  select * from acc where balance >= all_of.lower order by id;
$$;
select * from all_of(60);
create function names_of() returns table (id int, name text) language sql as $$
  delete from acc where id = 4;
  select id, upper(owner) from acc order by 1;
$$;
select * from names_of();
create function pair(out low int, out high bigint) language sql as $$ select 1; select 7::int, 8::int; $$;
select pair();
select * from pair();
create function empty_one() returns int language sql as $$ delete from acc where id = 99; select id from acc where false; $$;
select empty_one();
create function wrong_end() returns int language sql as $$ select 1; delete from acc; $$;
create function dollar(int, text) returns text language sql as $$ insert into acc values ($1, $2); select $2 || $1; $$;
select dollar(9, 'nine');
select owner from acc where id = 9;
create function owner_is(owner text) returns bigint language sql as $$ update acc set balance = 0 where false; select count(*) from acc where owner = owner_is.owner; $$;
select owner_is('bob');
create function conflict_col(owner text) returns bigint language sql as $$ select 1; select count(*) from acc where acc.owner = owner; $$;
select conflict_col('nobody');
create procedure pay(who int, amount numeric) language sql as $$
  update acc set balance = balance + amount where id = who;
  insert into acc values (who + 100, 'copy', amount);
$$;
call pay(1, 11);
select * from acc order by id;
create procedure atomic_pay(who int) language sql begin atomic
  update acc set balance = balance - 1 where id = who;
  delete from acc where id = who + 100;
end;
call atomic_pay(1);
select * from acc order by id;
create function steady() returns int language sql stable as $$ delete from acc where false; select 1; $$;
select steady();
create function strictly(a int) returns int language sql strict as $$ delete from acc where id = 9; select a; $$;
select strictly(null);
select count(*) from acc where id = 9;
select strictly(4);
select count(*) from acc where id = 9;
begin; select move_money(1, 2, 10); rollback;
select * from acc where id < 3 order by id;
create function fails() returns int language sql as $$ update acc set balance = 1; select 1 / 0 from acc limit 1; $$;
select fails();
select * from acc where id < 3 order by id;
create function any_rows() returns setof record language sql as $$ select id, owner from acc where id < 3 order by 1; $$;
select * from any_rows() as r(a int, b text);
create function conflicts(id int) returns text language plpgsql as $$
#variable_conflict use_column
begin
  return (select owner from acc where id = id order by acc.id limit 1);
end $$;
select conflicts(2);
create function conflicts2(id int) returns text language plpgsql as $$
#variable_conflict use_variable
begin
  return (select owner from acc where acc.id = id);
end $$;
select conflicts2(2);
create or replace function move_money(source int, target int, amount numeric) returns numeric language sql as 'select 5.0';
select move_money(1, 2, 30);
select prosrc, l.lanname from pg_proc p join pg_language l on l.oid = prolang where proname in ('pay', 'steady') order by 1;
select f_missing();
create function twice(n int) returns int language sql as $$ insert into acc values (n, 'once'); select (select balance from acc where id = n)::int + n; $$;
create function outer_one(n int) returns int language sql as $$ select twice(n); select twice(n + 1); $$;
select outer_one(50);
select id, owner from acc where id >= 50 order by id;
drop function outer_one(int);
insert into acc values (70, 'given', twice(71));
select id, owner, balance from acc where id >= 70 order by id;
set client_min_messages = warning; drop schema sb cascade;
