#!/usr/bin/env python3
"""TPC-H and TPC-DS through the wire: the answers beside PostgreSQL's and DuckDB's, and the times beside
PostgreSQL's. Called by scripts/tpc.sh, which starts the servers."""

import argparse
import csv
import decimal
import math
import os
import statistics
import time

import duckdb
import psycopg

KEYS = {
    "tpch": {
        "customer": "c_custkey", "lineitem": "l_orderkey, l_linenumber", "nation": "n_nationkey",
        "orders": "o_orderkey", "part": "p_partkey", "partsupp": "ps_partkey, ps_suppkey",
        "region": "r_regionkey", "supplier": "s_suppkey",
    },
    "tpcds": {
        "call_center": "cc_call_center_sk", "catalog_page": "cp_catalog_page_sk",
        "catalog_returns": "cr_item_sk, cr_order_number", "catalog_sales": "cs_item_sk, cs_order_number",
        "customer": "c_customer_sk", "customer_address": "ca_address_sk",
        "customer_demographics": "cd_demo_sk", "date_dim": "d_date_sk",
        "household_demographics": "hd_demo_sk", "income_band": "ib_income_band_sk",
        "inventory": "inv_date_sk, inv_item_sk, inv_warehouse_sk", "item": "i_item_sk",
        "promotion": "p_promo_sk", "reason": "r_reason_sk", "ship_mode": "sm_ship_mode_sk",
        "store": "s_store_sk", "store_returns": "sr_item_sk, sr_ticket_number",
        "store_sales": "ss_item_sk, ss_ticket_number", "time_dim": "t_time_sk",
        "warehouse": "w_warehouse_sk", "web_page": "wp_web_page_sk",
        "web_returns": "wr_item_sk, wr_order_number", "web_sales": "ws_item_sk, ws_order_number",
        "web_site": "web_site_sk",
    },
}
GENERATORS = {"tpch": "dbgen", "tpcds": "dsdgen"}
TYPES = {"VARCHAR": "text", "DOUBLE": "double precision"}


def generate(suite, scale, directory):
    """Writes the tables as CSV; returns their definitions, the queries, and DuckDB's answers."""
    database = duckdb.connect()
    database.execute(f"LOAD {suite}; CALL {GENERATORS[suite]}(sf={scale})")
    os.makedirs(directory, exist_ok=True)
    tables = {}
    for (table,) in database.execute("SHOW TABLES").fetchall():
        columns = database.execute(
            "SELECT column_name, data_type FROM information_schema.columns"
            f" WHERE table_name = '{table}' ORDER BY ordinal_position").fetchall()
        key = {name.strip() for name in KEYS[suite][table].split(",")}
        tables[table] = ", ".join(
            f"{name} {TYPES.get(kind, kind.replace('DECIMAL', 'numeric').lower())}"
            + (" NOT NULL" if name in key else "") for name, kind in columns)
        database.execute(f"COPY {table} TO '{directory}/{table}.csv' (HEADER false, NULLSTR '\\N')")
    queries = database.execute(f"SELECT query_nr, query FROM {suite}_queries() ORDER BY 1").fetchall()
    answers = {number: database.execute(query).fetchall() for number, query in queries}
    return tables, queries, answers


def load(connection, suite, tables, directory, analyze):
    begun = time.perf_counter()
    for table, columns in tables.items():
        connection.execute(f"CREATE TABLE {table} ({columns}, PRIMARY KEY ({KEYS[suite][table]}))")
        with open(f"{directory}/{table}.csv", "rb") as rows, connection.cursor().copy(
                f"COPY {table} FROM STDIN (FORMAT csv, NULL '\\N')") as copy:
            while chunk := rows.read(1 << 18):
                copy.write(chunk)
    if analyze:
        connection.execute("ANALYZE")
    return time.perf_counter() - begun


def number(value):
    """A number as a float of six digits, since the systems' scales differ; else a text."""
    if isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool):
        return "0" if value == 0 else f"{float(value):.6g}"
    return "NULL" if value is None else str(value).rstrip()


def rows_of(rows):
    return sorted([number(value) for value in row] for row in rows)


def close(left, right):
    """Whether two sorted answers are the same, numbers but for the last of six digits."""
    if len(left) != len(right):
        return False

    def same(a, b):
        if a == b:
            return True
        try:
            return math.isclose(float(a), float(b), rel_tol=2e-5)
        except ValueError:
            return False

    return all(len(a) == len(b) and all(map(same, a, b)) for a, b in zip(left, right))


def ask(connection, query):
    """The rows or the error, and the milliseconds."""
    begun = time.perf_counter()
    try:
        rows = connection.execute(query).fetchall()
    except psycopg.Error as error:
        return None, f"{error.sqlstate} {str(error).splitlines()[0]}", (time.perf_counter() - begun) * 1e3
    return rows, None, (time.perf_counter() - begun) * 1e3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--suite", choices=GENERATORS, required=True)
    parser.add_argument("--scale", default="0.1")
    parser.add_argument("--ours", required=True)
    parser.add_argument("--postgresql", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--timeout", type=int, default=60, help="seconds a query may take")
    parser.add_argument("--queries", default="", help="their numbers, else all")
    options = parser.parse_args()

    directory = f"{options.work}/{options.suite}-{options.scale}"
    tables, queries, answers = generate(options.suite, options.scale, directory)
    ours, theirs = (psycopg.connect(url, autocommit=True) for url in (options.ours, options.postgresql))
    for connection, name in ((ours, "Thermocline"), (theirs, "PostgreSQL")):
        seconds = load(connection, options.suite, tables, directory, connection is theirs)
        print(f"{name}: loaded in {seconds:.1f} s", flush=True)
        connection.execute(f"SET statement_timeout = '{options.timeout}s'")

    wanted = {int(number) for number in options.queries.split()}
    print("\n| query | rows | Thermocline ms | PostgreSQL ms | ratio | answer |\n|---:|---:|---:|---:|---:|---|")
    ratios, different, sums = [], 0, [0.0, 0.0]
    for number_, query in queries:
        if wanted and number_ not in wanted:
            continue
        got, error, _ = ask(ours, query)
        oracle, refused, theirs_first = ask(theirs, query)
        slow = refused is not None and refused.startswith("57014")
        times = ([], [])
        for _ in range(options.runs if got is not None else 0):
            times[0].append(ask(ours, query)[2])
            if not slow and refused is None:
                times[1].append(ask(theirs, query)[2])
        times[1] or times[1].append(theirs_first)
        mine, his = (statistics.median(of) if of else math.nan for of in times)
        notes = []
        if got is None:
            notes.append(f"refused: {error}")
        if refused:
            notes.append("PostgreSQL took too long" if slow else f"PostgreSQL: {refused}")
        if got is not None:
            as_duckdb = close(rows_of(got), rows_of(answers[number_]))
            as_postgresql = refused is None and close(rows_of(got), rows_of(oracle))
            if as_postgresql or (slow and as_duckdb):
                notes.append("same" if as_duckdb else "as PostgreSQL, other than DuckDB")
            elif refused is None:
                notes.append("as DuckDB, other than PostgreSQL" if as_duckdb else "DIFFERENT")
        if got is None and refused is None or any("DIFFERENT" in note or "other than P" in note for note in notes):
            different += 1
        if got is not None and refused is None:
            ratios.append(his / mine)
            sums[0] += mine
            sums[1] += his
        print(f"| {number_} | {len(got) if got is not None else ''} | {mine:.0f} | {his:.0f} | {his / mine:.2f}"
              f" | {'; '.join(notes)} |", flush=True)
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"\n{len(ratios)} queries that both answer: {sums[0] / 1e3:.1f} s, PostgreSQL {sums[1] / 1e3:.1f} s;"
              f" geometric mean of the ratios {mean:.2f} (above 1 we are faster); {different} differ")
    raise SystemExit(1 if different else 0)


if __name__ == "__main__":
    main()
