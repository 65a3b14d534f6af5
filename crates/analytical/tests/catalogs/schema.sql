-- What the catalogs tell of.
create schema app;
create type app.mood as enum ('sad','ok','happy');
create table app.cust (id serial primary key, name text not null, mood app.mood default 'ok', tags int4[]);
create table app.orders (id bigserial primary key, cust int not null references app.cust (id) on delete cascade, qty numeric(6,2) default 1 check (qty > 0), note varchar(20) collate "C", at timestamptz default now(), unique (cust, at));
create index orders_note on app.orders (note desc nulls last, lower(note)) where qty > 1;
create view app.big as select * from app.orders where qty > 10;
comment on table app.orders is 'what is ordered';
comment on column app.orders.qty is 'how much';
