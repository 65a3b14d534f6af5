#!/usr/bin/env python3
"""Does what the pages for newcomers say, and compares what they print.

    scripts/pages.py [PROGRAM]        (default: target/debug/thermocline)
    scripts/pages.py --readme         the README's first command as it stands, which builds

| page | what is done |
|---|---|
| README.md | with `--readme`: its first command; what it prints; the query of hot and cold rows |
| docs/start.md | every block, with `kill -9` and the start behind it |
| docs/guides/backup.md, restore.md | a backup of a running and of a stopped server, a generation, both restored |
| docs/guides/embed.md | the programs in Rust, which `cargo test` has built (`examples/embed.rs`, `embed_transaction.rs`) |
| docs/guides/connect.md, isolation.md | the programs in Python, where `psycopg` is installed |
| docs/guides/access.md, isolation.md, load.md, memory.md, monitor.md, policy.md, tablespaces.md; docs/reference/sql.md; docs/explain/columns.md | every statement of SQL |

Figures of an output may differ where the page says so; everything else must be as it is printed.
Needs `psql`.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/debug/thermocline").resolve()
START_SECONDS_MAX = 60
STATEMENT_SECONDS_MAX = 300


def blocks(page):
    """The code blocks of a page: language, text, and the prose behind it."""
    text = (ROOT / page).read_text()
    parts = re.split(r"^```([\w,]*)\n(.*?)^```$", text, flags=re.M | re.S)
    return [
        (parts[at], parts[at + 1], parts[at + 2]) for at in range(1, len(parts), 3)
    ]


def fail(page, why, *shown):
    print(f"{page}: {why}")
    for text in shown:
        print(text if text.endswith("\n") else text + "\n", end="----\n")
    sys.exit(1)


def plain(text):
    """Lines without blanks at their ends, without empty lines."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def shape(text):
    """The same without figures and without the width that they give to a column."""
    return [re.sub(r"[-+ ]+", " ", re.sub(r"\d+", "0", line)).strip() for line in plain(text)]


class Server:
    """A server on a port of its own."""

    def __init__(self, directory):
        self.directory = directory
        self.process = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    def start(self, arguments):
        command = [str(PROGRAM), "-p", str(self.port), *arguments]
        log = open(self.directory / "server.log", "w")
        self.process = subprocess.Popen(command, cwd=self.directory, stdout=log, stderr=log)
        until = time.time() + START_SECONDS_MAX
        while time.time() < until and self.process.poll() is None:
            # The last line of what it prints.
            if "  connect " in self.said():
                return self.said()
            time.sleep(0.05)
        fail(arguments, "the server does not start", self.said())

    def said(self):
        return (self.directory / "server.log").read_text()

    def sql(self, text):
        connect = f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"
        done = subprocess.run(
            ["psql", "-X", "-v", "ON_ERROR_STOP=1", connect],
            input=text,
            capture_output=True,
            text=True,
            timeout=STATEMENT_SECONDS_MAX,
        )
        if done.returncode:
            fail("a statement", "is refused", text, done.stderr)
        return done.stdout

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(60)


def shell(line, directory):
    done = subprocess.run(line, shell=True, cwd=directory, capture_output=True, text=True, timeout=300)
    if done.returncode:
        fail(line, f"ends with {done.returncode}", done.stdout, done.stderr)
    return done.stdout


def tutorial(directory):
    page = "docs/start.md"
    server = Server(directory)
    printed = None
    done = 0
    for language, text, behind in blocks(page):
        start = re.search(r"cargo run --release -- (.*)", text)
        done += 1
        if start:
            if server.process:
                server.process.wait(10)
            printed = server.start(start.group(1).split())
        elif text.startswith("thermocline "):
            words = lambda lines: [line.split()[0] for line in plain(lines)]
            if words(text) != words(printed):
                fail(page, "the server prints something else", text, printed)
        elif language == "sql":
            printed = server.sql(text)
        elif text.startswith("kill "):
            shell(text, directory)
        elif text.startswith("rm "):
            server.stop()
            shell(text, directory)
        elif text.startswith("psql "):
            pass
        else:
            may_differ = "figures will differ" in behind.split("\n## ")[0]
            same = shape(text) == shape(printed) if may_differ else plain(text) == plain(printed)
            if not same:
                fail(page, "a statement prints something else", text, printed)
    print(f"{page}: {done} blocks")


def backup_and_restore(directory):
    pages = ["docs/guides/backup.md", "docs/guides/restore.md"]
    for name in ["srv", "backup", "archive"]:
        (directory / name).mkdir()
    server = Server(directory)
    done = 0

    def here(text):
        text = re.sub(r"(?<![\w.])/(srv|backup|archive)\b", rf"{directory}/\1", text)
        return text.replace("\\\n", " ")

    def commands(page):
        for language, text, _ in blocks(page):
            lines = [here(text)] if language == "sql" else here(text).splitlines()
            for line in lines:
                if line.strip():
                    yield language, line

    for language, line in commands(pages[0]):
        done += 1
        words = line.split()
        if language == "sql":
            server.sql(line)
        elif words[:2] == ["thermocline", "-D"]:
            server.stop()
            first = server.process is None
            server.start(words[1:])
            if first:
                server.sql("CREATE TABLE kept (id int PRIMARY KEY); INSERT INTO kept SELECT generate_series(1, 1000)")
        elif words[:3] == ["thermocline", "backup", "-D"]:
            server.stop()
            shell(str(PROGRAM) + line[len("thermocline"):], directory)
        elif words[:2] == ["thermocline", "backup"]:
            place = "" if "--list" in words else f" -p {server.port}"
            listed = shell(str(PROGRAM) + line[len("thermocline"):] + place, directory)
            if "--list" in words and not listed.strip():
                fail(pages[0], "no generation is listed", line)
        else:
            fail(pages[0], "nobody knows how to do this", line)
    # What comes behind the last backup is in the log alone.
    server.sql("INSERT INTO kept SELECT generate_series(1001, 1010)")
    server.stop()
    for language, line in commands(pages[1]):
        done += 1
        words = line.split()
        if words[1] == "restore":
            shutil.rmtree(directory / "srv/new", ignore_errors=True)
            now = datetime.now(timezone.utc).isoformat(sep=" ")
            line = re.sub(r"'\d{4}-.*?'", f"'{now}'", line)
            shell(str(PROGRAM) + line[len("thermocline"):], directory)
            wanted = 1010 if "--to-time" in words else 1000
            if "--to-time" in words:
                server.start(["-D", str(directory / "srv/new")])
        else:
            server.start(words[1:])
        if server.process.poll() is None:
            found = server.sql("SELECT count(*) FROM kept")
            if str(wanted) not in found.split():
                fail(pages[1], f"{wanted} rows are expected", line, found)
            server.stop()
    print(f"{', '.join(pages)}: {done} commands")


def embed(directory):
    page = "docs/guides/embed.md"
    built = PROGRAM.parent / "examples/embed"
    if not built.exists():
        print(f"{page}: skipped, {built} is not there: cargo build --example embed")
        return
    text, behind = [(text, behind) for language, text, behind in blocks(page) if language == "rust,no_run"][0]
    source = (ROOT / "crates/thermocline/examples/embed.rs").read_text()
    if plain(source)[2:] != plain(text):
        fail(page, "examples/embed.rs is another program", text, source)
    # The second run finds what the first has left.
    for _ in range(2):
        printed = shell(str(built), directory).strip()
        promised = re.search(r"It prints `(.*?)`", behind).group(1)
        if printed != promised:
            fail(page, "the program prints something else", promised, printed)
    parts = [(text, behind) for language, text, behind in blocks(page) if language == "rust,ignore"]
    source = (ROOT / "crates/thermocline/examples/embed_transaction.rs").read_text()
    lines = [line.strip() for line in plain(source)]
    for text, _ in parts:
        wanted = [line.strip() for line in plain(text)]
        if not any(lines[at : at + len(wanted)] == wanted for at in range(len(lines))):
            fail(page, "examples/embed_transaction.rs has other lines", text, source)
    printed = shell(str(built) + "_transaction", directory).strip()
    promised = re.search(r"It prints `(.*?)`", parts[-1][1]).group(1)
    if printed != promised:
        fail(page, "the transaction prints something else", promised, printed)
    print(f"{page}: the program, twice; the transaction and the prepared statement")


def python(directory):
    pages = ["docs/guides/connect.md", "docs/guides/isolation.md"]
    try:
        import psycopg  # noqa: F401
    except ImportError:
        print(f"{', '.join(pages)}: the programs in Python are skipped, psycopg is not installed")
        return
    server = Server(directory)
    server.start(["-D", "data", "--memory-limit", "256MB"])
    for page in pages:
        programs = [(text, behind) for language, text, behind in blocks(page) if language == "python"]
        for text, behind in programs:
            text = text.replace("port=5433", f"port={server.port}")
            done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
            promised = re.search(r"It prints `(.*?)`", behind).group(1)
            if done.returncode or promised != done.stdout.strip():
                fail(page, "the program in Python does something else", text, done.stdout, done.stderr)
        print(f"{page}: {len(programs)} programs in Python")
    server.stop()


# Pages whose statements are done.
PAGES_OF_SQL = [
    "docs/guides/access.md",
    "docs/guides/isolation.md",
    "docs/guides/load.md",
    "docs/guides/memory.md",
    "docs/guides/monitor.md",
    "docs/guides/tablespaces.md",
    "docs/reference/sql.md",
    "docs/explain/columns.md",
    "docs/guides/policy.md",
]
# The tables that they take for granted.
TABLES = {
    "archive": "id int, body text",
    "event": "id int, body text",
    "job": "id int, state text",
    "orders": "id int PRIMARY KEY, total numeric, customer int",
    "visit": "id int PRIMARY KEY",
}


def statements(directory):
    server = Server(directory)
    server.start(["-D", "data", "--memory-limit", "256MB"])
    mounts = ["nvme", "pmem"]
    for mount in mounts:
        (directory / mount).mkdir()
    for page in PAGES_OF_SQL:
        texts = [text for language, text, _ in blocks(page) if language == "sql"]
        for number, text in enumerate(texts):
            # Blocks use the same names, so each has a schema.
            schema = f"{Path(page).stem}_{number}"
            for mount in mounts:
                text = text.replace(f"/mnt/{mount}", str(directory / mount))
            # The session of that number may be this one.
            text = re.sub(r"_backend\(7\b", "_backend(1000000", text)
            tables = [
                f"CREATE TABLE {name} ({columns});"
                for name, columns in TABLES.items()
                if re.search(rf"\b{name}\b", text) and f"CREATE TABLE {name} " not in text
            ]
            server.sql(f"CREATE SCHEMA {schema}; SET search_path = {schema};" + "".join(tables) + text)
        print(f"{page}: {len(texts)} blocks of SQL")
    server.stop()


def readme(directory):
    """The first command as it stands, from the sources' root; its data and port are elsewhere."""
    page = "README.md"
    found = [text for _, text, _ in blocks(page)]
    command, banner, look = found[0].strip(), found[2], plain(found[3])[-1]
    server = Server(directory)
    environment = {
        **os.environ,
        "THERMOCLINE_DATA_DIR": str(directory / "data"),
        "THERMOCLINE_PORT": str(server.port),
    }
    log = open(directory / "server.log", "w")
    print(f"{page}: {command}", flush=True)
    # In a group of its own: the shell, cargo and the program end together.
    running = subprocess.Popen(
        command, shell=True, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
    )
    printed = ""
    while "  connect " not in printed and running.poll() is None:
        time.sleep(1)
        printed = (directory / "server.log").read_text()
    if running.poll() is not None:
        fail(page, "the first command ends", printed[-3000:])
    words = lambda lines: [line.split()[0] for line in plain(lines)]
    served = words("thermocline " + printed.split("\nthermocline ")[-1])
    if words(banner) != served[: len(words(banner))]:
        fail(page, "the server prints something else", banner, printed[-3000:])
    names = re.search(r"'(SELECT .*?)'", look).group(1)
    shown = server.sql(names + ";")
    if words(found[4])[0] not in shown:
        fail(page, "the query prints something else", found[4], shown)
    os.killpg(running.pid, signal.SIGINT)
    running.wait(60)
    print(f"{page}: done")


def main():
    if sys.argv[1:] != ["--readme"] and not PROGRAM.exists():
        sys.exit(f"{PROGRAM} is not there: cargo build --bin thermocline")
    if not shutil.which("psql"):
        print("psql is not installed: the pages are not tried")
        return
    tasks = [tutorial, backup_and_restore, embed, python, statements]
    if sys.argv[1:] == ["--readme"]:
        tasks = [readme]
    for task in tasks:
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as directory:
            task(Path(directory))


main()
