-- What only this database has, and names that pg_dump has to quote or to qualify.
CREATE SCHEMA "Odd Schema";
CREATE TYPE "Odd Schema"."Mood" AS ENUM ('sad', 'it''s ok');
CREATE TABLE "Odd Schema".t ("Id" serial PRIMARY KEY, m "Odd Schema"."Mood" DEFAULT 'sad', ms "Odd Schema"."Mood"[] DEFAULT '{sad}'::"Odd Schema"."Mood"[], n bigint, CHECK (m <> 'it''s ok'::"Odd Schema"."Mood"));
ALTER TABLE "Odd Schema".t ALTER n SET DEFAULT 7;
CREATE SEQUENCE public.numbers AS smallint START 5 INCREMENT -2 MINVALUE -100 MAXVALUE 50 CYCLE;
ALTER TABLE "Odd Schema".t ALTER n SET DEFAULT nextval('public.numbers') + 1;
CREATE TABLE public.measured (at timestamptz NOT NULL, sensor int, value double precision) USING columns;
CREATE TABLE public.hashed (id bigint PRIMARY KEY, "group" int, note text) WITH (primary_key = hash, evictable = false);
CREATE INDEX hashed_group ON public.hashed ("group");
CREATE INDEX hashed_note ON public.hashed USING hash (note);
CREATE UNIQUE INDEX hashed_both ON public.hashed ("group", note);
CREATE VIEW "Odd Schema"."V" AS SELECT "Id" AS "select", m FROM "Odd Schema".t WHERE m = 'sad'::"Odd Schema"."Mood";
CREATE VIEW public.over_views AS SELECT "select" FROM "Odd Schema"."V";
INSERT INTO "Odd Schema".t (m) VALUES ('sad'), (NULL), (DEFAULT);
INSERT INTO public.measured SELECT timestamptz '2024-01-01 00:00:00+00' + i * interval '1 minute', i % 3, i / 7.0 FROM generate_series(1, 200) i;
INSERT INTO public.hashed SELECT i, i % 5, 'note ' || i FROM generate_series(1, 50) i;
