-- What the recorded clients found.
create schema app;
create type app.mood as enum ('sad', 'ok', 'happy');
create table app.customers (id bigserial primary key, email varchar(100) not null unique,
    score double precision, balance numeric(12, 2) default 0 check (balance >= 0), m app.mood, tags text[], doc jsonb,
    created timestamptz default now());
create table app.orders (id serial primary key, cust bigint references app.customers on delete cascade,
    d date, t time, ts timestamp, flag boolean, qty smallint default 1, r real, c char(3));
create index orders_cust_idx on app.orders (cust);
insert into app.customers (email, balance, m, tags)
    select 'u' || i || '@x', i * 10, 'ok', array['a', 'b'] from generate_series(1, 20) i;
insert into app.orders (cust, qty, d) select i, i % 3 + 1, date '2026-01-01' + i from generate_series(1, 11) i;
create view app.v as select id, email from app.customers;
create function app.addone(a int) returns int language sql immutable as 'select a + 1';
create table pgbench_branches (bid int not null primary key, bbalance int, filler char(88));
create table pgbench_tellers (tid int not null primary key, bid int, tbalance int, filler char(84));
create table pgbench_accounts (aid int not null primary key, bid int, abalance int, filler char(84));
create table pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
