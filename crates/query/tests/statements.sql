-- One statement a line; none reads a table.
select 1
select 1 + 1 as two, 'a' || 'b', 1.5 * 2, 2 / 3, 2.0 / 3
select case when 1 < 2 then 1 else 0.5 end
select array[1,2,3], array[[1,2],[3,4]], '{1,2}'::int[], array[]::text[]
select (array[1,2,3])[2], (array[1,2,3])[2:], (array[[1,2],[3,4]])[2][1]
select row(1,'a',null), (1,2) = (1,2), (1,2) < (1,3), row(1,null) is null
select 1 in (1,2,3), 'a' in ('b','c'), null in (1), 1 not in (2, null)
select 1 = any(array[1,2]), 1 <> all('{2,3}'), 5 > any(array[6,7])
select coalesce(null, 1, 2), nullif(1, 1), nullif('a', 'b'), greatest(1, 2.5, 2), least('a', 'b')
select 1 between 0 and 2, 1 not between symmetric 2 and 0
select date '2024-02-29' + 1, '2024-01-01'::timestamp - interval '1 day', age('2024-01-01'::timestamp, '2000-02-03')
select extract(year from date '2024-05-06'), date_part('month', timestamp '2024-05-06'), date_trunc('week', date '2024-05-06')
select now() is not null, current_date is not null, localtimestamp(0) is not null
select '{"a": [1, 2]}'::jsonb -> 'a' -> 1, '{"a": 1}'::json ->> 'a', ('{"a": {"b": 1}}'::jsonb)['a']['b']
select upper('abc'), substring('hello' from 2 for 3), position('l' in 'hello'), trim(both 'x' from 'xax'), overlay('abcdef' placing 'X' from 2 for 1)
select 'abc' like 'a%', 'abc' similar to '(a|b)%', 'abc' ~ '^a', 'ABC' ilike 'a_c', 'x' not like 'y'
select format('%s %I %L', 'a', 'b c', 'd''e'), concat(1, null, 'x'), concat_ws(',', 1, 2), md5('a')
select round(2.5), round(2.567, 2), trunc(-1.5), ceil(1.2), floor(-1.2), sqrt(2.0), power(2, 10), 7 % 3, -7 / 2, mod(7, -3)
select 1::bigint + 1, 1::smallint + 1::smallint, 1::real + 1, 1::float8 / 3, 1e10, 12345678901, 1.10
select 32767::smallint + 1::smallint
select 2147483647 + 1
select 1 / 0
select 'a' + 1
select nosuch(1)
select abs('x')
select length(1)
select 1 + 'x'
select x
select 'abc'::varchar(2), 'abc'::char(5) || 'x', 'abc'::char(2) = 'ab'
select 123.456::numeric(5,1), 99999::numeric(3,0)
select 1 is distinct from null, null is distinct from null, 1 is not distinct from 1
select true and null, false and null, true or null, not null::boolean
select (null::int) is null, true is not unknown, false is true
select pg_typeof(1), pg_typeof('a'), pg_typeof(array[1.5])
select '1 year 2 mons'::interval, interval '1' day, '04:05'::time, '04:05+02'::timetz
select '192.168.1.1/24'::inet, host('10.0.0.1'::inet), '08:00:2b:01:02:03'::macaddr
select b'101', '101'::bit(5), x'1F', b'101' | b'010'
select '\xdeadbeef'::bytea, encode('abc', 'hex'), decode('616263', 'hex')
select to_char(1234.5, '9,999.99'), to_char(timestamp '2024-05-06 07:08:09', 'YYYY-MM-DD HH24:MI:SS'), to_date('2024-05-06', 'YYYY-MM-DD')
select 'now'::text::char(1), cast('12' as int), int4 '7', float8 '1.5'
select int4(5.7), text(12), numeric '1.50', date('2024-01-01')
select string_to_array('a,b', ','), array_to_string(array[1,2], '-'), array_length(array[1,2,3], 1), cardinality(array[1,2])
select array[1,2] || 3, 0 || array[1], array[1] || array[2], array_append(array[1], 2), 1 = all(array[1,1])
select jsonb_build_object('a', 1, 'b', array[1,2]), to_jsonb('x'::text), json_build_array(1, 'a', null)
select make_interval(days => 10), make_date(2024, 1, 2), make_timestamp(2024, 1, 2, 3, 4, 5.5)
select variadic array[1]
select greatest(1, 'x')
select case 1 when 1 then 'one' when 2 then 'two' end, case when null then 1 end
select 'a' collate "C", 'b' collate "nosuch"
select 'infinity'::float8, 'NaN'::numeric, '-Infinity'::numeric, 'infinity'::timestamp, 'epoch'::timestamptz
select 1.0 = 1.00, 1 = 1.0, '1' = 1, 1::real = 1.0::float8, 0.1::real = 0.1
select oid '1', 1::oid, '1'::oid = 1, 5::regtype
select current_date - current_date, current_timestamp - current_timestamp
select '2024-05-06 07:08:09+02'::timestamptz at time zone 'UTC', timestamp '2024-05-06 07:08:09' at time zone 'America/New_York'
select (row(1,2)).f1
select ('{1,2}'::int[])[1], '{1,2}'[1]
select substring('foobar' from 'o.b'), regexp_replace('abc', 'b', 'X'), regexp_match('abc', 'b(c)'), split_part('a,b', ',', 2)
select 10 & 6, 10 | 6, 10 # 6, ~10, 1 << 4, 16 >> 2, @ -5, |/ 25.0, 5 !
select 'a' < 'b', 'a' || 1, 1 || 'a', 'x' = 'x '::char(3)
select * from nosuch
select 1 order by 2
select row_number()
select generate_series(1, 3) + nosuch
select 1 as a group by a having true
select interval '1 day' * 2, interval '1 day' / 2, 2 * interval '1 hour', interval '1 mon' > interval '29 days'
select uuid '00000000-0000-0000-0000-000000000001' < '00000000-0000-0000-0000-000000000002'
select quote_ident('a b'), quote_literal('a'), quote_nullable(null), chr(65), ascii('A'), repeat('ab', 3), reverse('abc'), lpad('a', 3, 'x'), initcap('hello world')
select width_bucket(5, 0, 10, 5), gcd(12, 18), lcm(4, 6), factorial(5), sign(-2.5), degrees(pi()), ln(2.0), log(100.0), exp(1.0)
select num_nulls(1, null), num_nonnulls(1, null), starts_with('abc', 'ab'), left('abc', 2), right('abc', -1)
select num_nulls(variadic array[1, null]), num_nonnulls(variadic array[1, null, 2]), num_nulls(variadic '{}'::text[]), num_nonnulls(variadic null::int[])
select num_nulls(variadic 1)
select 1 order by 1 fetch first null rows with ties
select concat(variadic 10)
select concat_ws(',', variadic 10)
select format('%s', variadic 10)
select json_build_array(variadic 10)
select jsonb_build_object(variadic 'a'::text)
select json_build_object(variadic null)
select concat_ws('-', variadic array[1, null, 2]), concat(variadic null::text[])
select rank(x) within group (order by x) from generate_series(1, 5) x
select percentile_cont(0.5 + x) within group (order by x) from (values (0.1)) t (x)
select int4range(1, 5), int4range(1, 5, '[]'), int8range(null, 3), numrange(1.5, 2.50, '(]'), daterange('2020-01-01', '2020-02-01'), tsrange('2020-01-01', '2020-02-01 10:00'), tstzrange('2020-01-01', null)
select int4range('[1,5]'), '[1,5]'::int4range, int4range '(,3)', cast('empty' as numrange), '{"[1,2]",empty}'::int4range[]
select '[1,5)'::int4range::text, '[1,5)'::text::int4range, int4range(1, 5)::varchar(3)
select int4range(1, 5) @> 3, 3 <@ int4range(1, 5), int4range(1, 5) @> '[2,3)', '[2,3)' <@ int4range(1, 5), int4range(1, 5) @> null
select numrange(1, 5) @> 3, numrange(1, 5) @> 3.0
select int8range(1, 5) @> 3
select int8range(1, 5) @> 3::bigint, int8range(1, 5) && '[5,6)', int8range(1, 5) -|- '[5,6)', int8range(1, 5) << '[5,6)', int8range(1, 5) &> '[5,6)'
select daterange('2020-01-01', '2020-02-01') @> '2020-01-05'::date
select daterange('2020-01-01', '2020-02-01') @> '2020-01-05'
select tsrange('2020-01-01', '2020-02-01') @> date '2020-01-05'
select int4range(1, 5) @> int8range(1, 5)
select int4range(1, 5) = int8range(1, 5)
select int4range(1, 5) = '[1,4]', int4range(1, 5) <> '[1,4]', int4range(1, 5) < '[1,4)', int4range(1, 5) >= 'empty', 'empty' = int4range(1, 1)
select int4range(1, 5) + '[5,9)', int4range(1, 5) * '[3,9)', int4range(1, 5) - '[3,9)'
select int4range(1, 5) + 1
select lower(int4range(1, 5)), upper(numrange(1, 5.50)), lower('ABC'), upper('abc'::varchar), lower(null), upper(tsrange('2020-01-01', 'infinity'))
select isempty(int4range(1, 1)), lower_inc(int4range(1, 5)), upper_inc(numrange(1, 5, '[]')), lower_inf(int4range(null, 5)), upper_inf(daterange('2020-01-01', 'infinity'))
select isempty(1)
select isempty(null::int4range), lower(null::int4range), int4range(1, 2) + null
select 5 <@ null
select 5 <@ '[1,2)'
select range_merge(int4range(1, 2), int4range(5, 6)), range_merge(int4range(1, 2), '[7,8)'), pg_typeof(range_merge(daterange(null, null), 'empty'))
select range_merge(int4range(1, 2), int8range(5, 6))
select pg_typeof(int4range(1, 2) * '[1,2)'), pg_typeof(lower(numrange(1, 2))), pg_typeof(array[int4range(1, 2)]), pg_typeof('{empty}'::tstzrange[])
select array[int4range(1, 2), '[5,6]', null], int4range(1, 2) = any(array[int4range(1, 2), '[5,6]']), int4range(1, 2) in ('[5,6]', '[1,1]'), array[int4range(1, 2)] @> array['[1,1]'::int4range]
select (array[int4range(1, 2), '[5,6]'])[2], array_append('{}'::int4range[], '[1,2]'), array_position(array[int4range(1, 2), '[5,6]'], '[5,6]')
select row(int4range(1, 2), 'x'), row(int4range(1, 2), 1) = row('[1,1]'::int4range, 1), row(int4range(1, 2), 1) < row('[1,3]'::int4range, 0)
select to_jsonb(int4range(1, 2)), to_json(array[numrange(1, 2)]), row_to_json(row(int4range(1, 2)))
select pg_column_size(int4range(1, 2)), pg_column_size(numrange(1.5, null)), pg_column_size(int8range(1, 2)), pg_column_size('empty'::tsrange), pg_column_size(daterange(null, '2020-01-01'))
select int4range(1, 5, '[[')
select int4range(1, 5, null)
select int4range(5, 1)
select '[5,1)'::int4range
select '[1,x)'::int4range
select '[1,2'::int4range
select int4range(1, 2147483647, '[]')
select int4range(1)
select int4range(1, 'x')
select int4range(1.5, 2)
select numrange(1, 2) - numrange(0.5, 1.5), numrange(1, 2) - numrange(1.2, 1.5)
select coalesce(null, int4range(1, 2)), nullif(int4range(1, 2), '[1,2)'), case when true then 'empty' else int4range(1, 2) end, greatest(int4range(1, 2), '[1,3)'), least(int4range(1, 2), 'empty')
select int4range(1, 2) || 'x', concat(int4range(1, 2), 1), format('%s', int4range(1, 2))
select int4range(1, 2) between 'empty' and '[2,3)', int4range(1, 2) is distinct from '[1,2)', int4range(1, 2) is null
select max(int4range(1, 2))
select int4range_canonical('[1,5]'), pg_typeof(range_send(int4range(1, 2))), range_send(numrange(1, null)), range_cmp(int4range(1, 2), 'empty')
select int4range(1, 2)::int8range
select int4range(1, 2)::numrange
select int4range(1, 2)::text::numrange, '[1,2)'::char(5)::int4range
