select table_name, column_name, data_type, is_nullable, column_default from information_schema.columns where table_schema = 'app' order by table_name, ordinal_position
;;
select table_schema, table_name, table_type from information_schema.tables where table_schema in ('app', 'public') order by 1, 2
;;
select tc.constraint_name, tc.constraint_type, kcu.column_name from information_schema.table_constraints tc join information_schema.key_column_usage kcu on tc.constraint_name = kcu.constraint_name and tc.table_schema = kcu.table_schema where tc.table_schema = 'app' order by 1, 3
;;
select schemaname, tablename, indexname, indexdef from pg_indexes where schemaname = 'app' order by 2, 3
;;
select tablename from pg_tables where schemaname = 'app' order by 1
;;
select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'app' and c.relkind = 'r'
;;
select c.relname, array_agg(a.attname order by a.attnum) from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 where c.relname in ('orders', 'customers') group by c.relname order by 1
;;
select relkind, count(*) from pg_class where relnamespace = 'app'::regnamespace group by relkind having count(*) > 1 order by relkind
;;
select a.attname, coalesce(pg_get_expr(d.adbin, d.adrelid), 'none') from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum where a.attrelid = 'app.customers'::regclass and a.attnum > 0 order by a.attnum
;;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 5) select sum(i), max(i) from n
;;
select x, y from (values (1, 'a'), (2, 'b')) v(x, y) where exists (select 1 from pg_am where amname = 'btree') order by x desc
;;
select unnest(array[1,2,3]), generate_series(1, 2)
;;
select 'app.orders'::regclass, 'integer'::regtype, 'app'::regnamespace, to_regclass('nosuch')
;;
select relname from pg_class c where exists (select 1 from pg_index i where i.indexrelid = c.oid and i.indisprimary) and relnamespace = 'app'::regnamespace order by 1
