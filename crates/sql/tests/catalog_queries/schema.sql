create schema app;
create table app.customers (id bigserial primary key, email varchar(50) not null unique, score double precision default 0.5, balance numeric(12,2) default 0, created timestamptz default now(), constraint balance_positive check (balance >= 0));
create table app.orders (id serial primary key, cust bigint not null, d date default current_date, ts timestamp, flag boolean default true, qty smallint, r real, c char(3), note text);
create index orders_cust_idx on app.orders (cust, d);
create table app.ident (id integer generated always as identity primary key, "Mixed Case" text);
create sequence app.tickets start 100 increment 5;
create table pgbench_accounts (aid integer not null primary key, bid integer, abalance integer, filler char(84));
