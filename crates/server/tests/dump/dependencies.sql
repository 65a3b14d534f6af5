WITH named (class, object, part, name) AS (
    SELECT 'pg_class'::regclass::oid, c.oid, 0, c.relkind::text || ' ' || c.relname
        FROM pg_class c WHERE c.relnamespace = 'shop'::regnamespace AND c.relkind <> 't'
    UNION ALL
    SELECT 'pg_class'::regclass::oid, a.attrelid, a.attnum, c.relname || '.' || a.attname
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = 'shop'::regnamespace AND a.attnum > 0
    UNION ALL
    SELECT 'pg_type'::regclass::oid, t.oid, 0, 'type ' || t.typname
        FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
        WHERE t.typnamespace = 'shop'::regnamespace
            AND (c.relkind IN ('r', 'c') OR t.typtype IN ('e', 'd') OR t.typname IN ('_state', '_quantity'))
    UNION ALL
    SELECT 'pg_constraint'::regclass::oid, o.oid, 0, 'constraint ' || o.conname
        FROM pg_constraint o WHERE o.connamespace = 'shop'::regnamespace
    UNION ALL
    SELECT 'pg_attrdef'::regclass::oid, d.oid, 0, 'default of ' || c.relname || '.' || a.attname
        FROM pg_attrdef d JOIN pg_class c ON c.oid = d.adrelid
        JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
        WHERE c.relnamespace = 'shop'::regnamespace
    UNION ALL
    SELECT 'pg_rewrite'::regclass::oid, r.oid, 0, 'rule of ' || c.relname
        FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
        WHERE c.relnamespace = 'shop'::regnamespace
    UNION ALL
    SELECT 'pg_proc'::regclass::oid, p.oid, 0, 'function ' || p.proname
        FROM pg_proc p WHERE p.pronamespace = 'shop'::regnamespace
    UNION ALL
    SELECT 'pg_namespace'::regclass::oid, n.oid, 0, 'schema ' || n.nspname
        FROM pg_namespace n WHERE n.nspname = 'shop'
)
SELECT DISTINCT of.name, d.deptype, needs.name
    FROM pg_depend d
    JOIN named of ON of.class = d.classid AND of.object = d.objid AND of.part = d.objsubid
    JOIN named needs ON needs.class = d.refclassid AND needs.object = d.refobjid AND needs.part = d.refobjsubid
    ORDER BY 1, 2, 3
