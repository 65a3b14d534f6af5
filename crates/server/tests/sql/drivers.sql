-- What drivers ask of types and functions. drivers.out is what PostgreSQL 15 answers, recorded as that of basics.sql:
--   psql -X -q -a -h 127.0.0.1 -p PORT -U postgres postgres < drivers.sql > drivers.out 2>&1
set client_min_messages = warning;
\set VERBOSITY terse
create schema dr; set search_path = dr;
create type mood as enum ('sad', 'ok');
create domain small as int check (value < 10);
create type place as (name text, mood mood);
create table t (id int primary key, mood mood, moods mood[], place place, small small, tags text[]);
-- pgJDBC, of a type that it does not know
select typinput = 'pg_catalog.array_in'::regproc as is_array, typtype, typname from pg_catalog.pg_type
    where typname in ('mood', '_mood', 'place', 'small', 'int4', '_int4', 'text') order by typname;
select typinput, typoutput, typreceive, typsend from pg_type where typname in ('mood', '_mood', 'place', 'small', 'int4', '_text', 'jsonb', 'timestamptz', 'numeric', 't') order by typname;
-- Npgsql's way to arrays
select typ.typname, proc.proname, elem.typname from pg_type typ join pg_proc proc on proc.oid = typ.typreceive
    left join pg_type elem on elem.oid = typ.typelem where typ.typname in ('_mood', '_int4', 'mood', 'place', 'small', 'text') order by typ.typname;
-- Rails, of arrays
select t.typname, t.typinput from pg_type t where t.typinput = 'array_in(cstring,oid,integer)'::regprocedure and t.typname in ('_mood', '_text', 'text') order by 1;
select 'array_in'::regproc, 'int4in'::regproc::oid, 'textout(text)'::regprocedure, 'pg_catalog.record_send'::regproc;
select proname, pronargs, prorettype::regtype, proargtypes from pg_proc where proname in ('array_in', 'textin', 'enum_send') order by 1;
create table indexed (a int primary key, b int, c text);
create index by_b on indexed (b, c); create unique index by_c on indexed (c);
-- Rails, of indexes
select distinct i.relname, d.indisunique, d.indkey, pg_get_indexdef(d.indexrelid), obj_description(i.oid, 'pg_class') as comment, d.indisvalid
    from pg_class t join pg_index d on t.oid = d.indrelid join pg_class i on d.indexrelid = i.oid left join pg_namespace n on n.oid = t.relnamespace
    where i.relkind in ('i', 'I') and d.indisprimary = 'f' and t.relname = 'indexed' and n.nspname = any (current_schemas(false)) order by i.relname;
select indkey, count(*) from pg_index where indrelid = 'indexed'::regclass group by indkey order by indkey;
select distinct v from (values ('1 2'::int2vector), ('1'), ('1 2'), ('2'), ('1 10'), ('')) as t(v) order by v;
drop schema dr cascade;
