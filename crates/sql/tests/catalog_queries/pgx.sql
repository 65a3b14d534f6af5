select 'app.orders'::text::regtype::oid
;;
select typtype::text, typbasetype from pg_type where oid={nothing}
