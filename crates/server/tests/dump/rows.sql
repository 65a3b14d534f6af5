-- Rows of the shop, and who may do what.
GRANT USAGE ON SCHEMA shop TO shop_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA shop TO shop_reader;
GRANT SELECT, INSERT, UPDATE ON shop.orders TO shop_clerk;
GRANT UPDATE (stock) ON shop.products TO shop_clerk WITH GRANT OPTION;
GRANT USAGE ON SEQUENCE shop.invoice_number TO shop_clerk;
INSERT INTO shop.coupons (code) VALUES ('cA'), ('cB');
REVOKE ALL ON FUNCTION shop.total_of(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION shop.total_of(bigint) TO shop_clerk;
ALTER TABLE shop.events OWNER TO shop_clerk;
INSERT INTO auth_user (password, is_superuser, username, first_name, last_name, email, is_staff, is_active, date_joined)
    SELECT 'x', false, 'user' || i, 'First', 'Last', 'u' || i || '@example.org', false, true, timestamptz '2024-01-01 10:00:00+00' + i * interval '1 hour' FROM generate_series(1, 20) i;
INSERT INTO shop.products (name, sku, price, tags, properties, weight, created_at, updated_at)
    SELECT 'Product ' || i, 'SKU' || i, i * 1.25, ARRAY['a', 'b c', NULL, 'd"e'], '{"n": [1, null, "x"]}', i / 3.0, '2024-02-03 04:05:06.789', '2024-02-03 04:05:06.789' FROM generate_series(1, 30) i;
INSERT INTO shop.categories (parent_id, name) VALUES (NULL, 'all'), (1, 'some'), (2, DEFAULT);
INSERT INTO shop.products_categories SELECT id, 1 + id % 3 FROM shop.products;
INSERT INTO shop.customers (user_id, email, born, home, favourite_id) SELECT i, 'c' || i || '@example.org', date '1980-05-06' + i, ROW('Street ' || i, 'O"Town, (north)', NULL)::shop.place, i FROM generate_series(1, 20) i;
INSERT INTO shop.orders (customer_id, state, total, shipped_to, history, note, placed_at) SELECT id, 'sent', 12.5, home, '{cart,paid,sent}', E'tab\tline\nback\\slash', '2024-03-04 05:06:07+00' FROM shop.customers;
UPDATE shop.customers SET last_order_id = (SELECT max(o.id) FROM shop.orders o WHERE o.customer_id = customers.id);
INSERT INTO shop.order_lines SELECT o.id, 1, 1 + o.id % 30, 3, 9.99 FROM shop.orders o;
INSERT INTO shop.events VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'ab', '\x00ff10', '2024-01-01 00:00:00+00', '1 day 02:03:04.5', 1.5, 'z', B'10101010', '10.0.0.1/8'), ('b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'cd', NULL, NULL, NULL, 'NaN', NULL, NULL, NULL);
INSERT INTO shop."Odd Table" ("select", "a ""quoted"" name") VALUES ('\N', ''), (NULL, E'\\.'), (DEFAULT, E'\r\n');
INSERT INTO shop.quotes (id, "what else") VALUES (1, 'It''s'), (2, E'A\tB');
INSERT INTO shop.visits (id, at, page) VALUES (1, '2024-05-05', '/a'), (2, '2023-05-05', '/'), (3, '2022-05-05', '/b'), (4, '2021-05-05', NULL);
INSERT INTO shop.shelves SELECT g, g / 2.0 FROM generate_series(1, 20) g;
