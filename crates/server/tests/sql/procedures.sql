-- Procedures of PL/pgSQL. procedures.out is what PostgreSQL 15 answers, recorded as that of basics.sql:
--   psql -X -q -a -h 127.0.0.1 -p PORT -U postgres postgres < procedures.sql > procedures.out 2>&1
set client_min_messages = notice;
\set VERBOSITY terse
create schema pr; set search_path = pr;
create table t (id int);
create procedure nothing() language plpgsql as $$ begin insert into t values (1); end $$;
call nothing();
create procedure ins(a int, b int default 7) language plpgsql as $$ begin insert into t values (a), (b); end $$;
call ins(2);
call ins(3, 4);
call ins(1 + 1, (3 * 3));
call ins('5', null);
select * from t order by id;
create procedure io(in a int, inout b text, out c int, out d int) language plpgsql as $$ begin b := b || a; c := a * 2; end $$;
call io(1, 'x', null, null);
call io(1, 'it''s \n', null, null);
create procedure one(inout n int) language plpgsql as $$ begin n := n + 1; end $$;
call one(41);
\df io
\df one
select proname, prokind, prorettype::regtype, proargtypes, proallargtypes, proargmodes, proargnames from pg_proc where pronamespace = 'pr'::regnamespace order by 1;
select pg_get_function_arguments('io'::regproc), pg_get_function_result('io'::regproc);
select pg_get_functiondef('one'::regproc);
create function f() returns int language plpgsql as $$ begin return 1; end $$;
create or replace function nothing() returns int language plpgsql as $$ begin return 1; end $$;
create or replace procedure f() language plpgsql as $$ begin end $$;
create procedure nothing() language plpgsql as $$ begin end $$;
create or replace procedure nothing() language plpgsql as $$ begin insert into t values (100); end $$;
call nothing();
drop function nothing();
drop procedure f();
drop procedure if exists nosuch();
drop procedure nosuch;
-- transactions
create procedure tx(n int) language plpgsql as $$ begin for i in 1..n loop insert into t values (1000 + i); if i % 2 = 0 then commit; else rollback; end if; end loop; insert into t values (2000); end $$;
call tx(5);
select id from t where id > 1000 order by id;
begin;
call tx(1);
rollback;
begin;
call nothing();
rollback;
select count(*) from t where id = 100;
create procedure inhandler() language plpgsql as $$ begin begin commit; exception when others then raise notice '% %', sqlstate, sqlerrm; end; end $$;
call inhandler();
create procedure fails() language plpgsql as $$ begin insert into t values (3000); commit; insert into t values (3001); raise exception 'after'; end $$;
call fails();
select id from t where id >= 3000 order by id;
create function infn() returns void language plpgsql as $$ begin commit; end $$;
select infn();
do $$ begin insert into t values (4000); end $$;
create procedure nowtx() language plpgsql as $$ declare a timestamptz; begin a := now(); perform pg_sleep(0.01); commit; raise notice '%', now() > a; end $$;
call nowtx();
create function intrg() returns trigger language plpgsql as $$ begin commit; return new; end $$;
create trigger c before insert on t for each row execute function intrg();
insert into t values (5000);
drop trigger c on t;
create procedure noti() language plpgsql as $$ begin raise notice 'hello'; end $$;
call noti();
drop procedure io(int, text);
drop procedure one;
drop routine nothing;
drop procedure ins(int, int);
grant execute on procedure tx(int) to public;
alter procedure tx(int) owner to postgres;
revoke all on all procedures in schema pr from public;
