"""Runs attacks one by one: a fresh server in a memory cgroup, the resident size sampled every
10 ms, and one client that reads by key all the while."""

import argparse
import multiprocessing
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import changes  # noqa: E402, F401
import values  # noqa: E402, F401
from attacks import ATTACKS  # noqa: E402
from wire import Client, Gone, Refused  # noqa: E402

PAGE = os.sysconf("SC_PAGE_SIZE")
MB = 1 << 20
LATENCY_MAX_MS = 100.0


class Group:
    """A memory cgroup, version 1 or 2."""

    def __init__(self, name, limit):
        one = "/sys/fs/cgroup/memory"
        self.path = f"{one if os.path.isdir(one) else '/sys/fs/cgroup'}/{name}"
        self.first = os.path.isdir(one)
        os.mkdir(self.path)
        self._write("memory.limit_in_bytes" if self.first else "memory.max", limit)

    def _write(self, file, value):
        with open(f"{self.path}/{file}", "w", encoding="ascii") as out:
            out.write(str(value))

    def enter(self):
        self._write("cgroup.procs", os.getpid())

    def remove(self):
        for _ in range(50):
            try:
                os.rmdir(self.path)
                return
            except OSError:
                time.sleep(0.1)


def sample(pid, stop, most, limit=float("inf")):
    """The most that the process has resident; what it is of is told where it goes beyond the limit."""
    begin = time.time()
    while not stop.is_set():
        try:
            with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
                resident = int(statm.read().split()[1]) * PAGE
            if resident > max(most.value, limit):
                with open(f"/proc/{pid}/status", encoding="ascii") as status:
                    parts = " ".join(line.strip() for line in status if line.startswith(("Rss", "Threads")))
                print(f"  {resident / MB:.1f} MB after {time.time() - begin:.1f} s: {' '.join(parts.split())}", file=sys.stderr)
            most.value = max(most.value, resident)
        except OSError:
            return
        time.sleep(0.01)


def behave(port, stop, latencies):
    """The client that does nothing wrong: its latencies in milliseconds."""
    try:
        client = Client(port, timeout=120)
        while not stop.is_set():
            begin = time.perf_counter()
            client.ask("select v from well_behaved where id = 7")
            latencies.append((time.perf_counter() - begin) * 1000)
            time.sleep(0.005)
    except (OSError, Gone, Refused) as error:
        latencies.append(float("inf"))
        print(f"  the well-behaved client: {error!r}", file=sys.stderr)


def start(arguments, limit, directory, group):
    command = [arguments.program, "serve", "-D", directory, "-p", str(arguments.port), "--memory-limit", str(limit), "--max-connections", "4000"]
    command += arguments.server_arguments.split()
    log = open(f"{directory}.log", "wb")
    server = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=group.enter)
    for _ in range(600):
        try:
            client = Client(arguments.port)
            break
        except (OSError, Gone, Refused):
            if server.poll() is not None:
                sys.exit(f"the server ended: see {directory}.log")
            time.sleep(0.1)
    client.ask("create table well_behaved (id int primary key, v text)")
    client.ask("insert into well_behaved select g, 'value' from generate_series(1, 1000) g")
    client.close()
    return server


def run_attack(function, port, limit, said):
    try:
        said.put(function(port, limit) or "")
    except (OSError, Gone, Refused) as error:
        said.put(f"ended by {error!r}"[:120])


def trial(arguments, name, limit):
    directory = f"{arguments.work}/{name}-{limit // MB}"
    group = Group(f"thermocline-attack-{os.getpid()}-{name}", limit * 11 // 10)
    server = start(arguments, limit, directory, group)
    stop, most, said = multiprocessing.Event(), multiprocessing.Value("Q", 0), multiprocessing.Queue()
    manager = multiprocessing.Manager()
    latencies = manager.list()
    beside = [multiprocessing.Process(target=sample, args=(server.pid, stop, most)), multiprocessing.Process(target=behave, args=(arguments.port, stop, latencies))]
    for process in beside:
        process.start()
    attacker = multiprocessing.Process(target=run_attack, args=(ATTACKS[name], arguments.port, limit, said))
    attacker.start()
    attacker.join(timeout=arguments.seconds)
    late = attacker.is_alive()
    if late:
        attacker.kill()
    time.sleep(0.5)
    alive = server.poll() is None
    stop.set()
    for process in beside:
        process.join(timeout=5)
        process.kill()
    seen = sorted(latencies)
    p99 = seen[len(seen) * 99 // 100] if seen else float("inf")
    what = "cut off after %d s" % arguments.seconds if late else said.get() if not said.empty() else ""
    if alive:
        server.terminate()
        try:
            server.wait(timeout=60)
        except subprocess.TimeoutExpired:
            what += "; DOES NOT STOP"
            alive = False
            server.kill()
    server.wait()
    group.remove()
    shutil.rmtree(directory, ignore_errors=True)
    held = alive and most.value <= limit and p99 <= LATENCY_MAX_MS
    print(
        f"| {name} | {limit // MB} | {'alive' if alive else 'DEAD'} | {most.value / MB:.1f} |"
        f" {p99:.1f} | {seen[-1] if seen else float('inf'):.0f} | {'yes' if held else 'NO'} | {what} |",
        flush=True,
    )
    return held


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--program")
    parser.add_argument("--work")
    parser.add_argument("--port", type=int)
    parser.add_argument("--limits-mb", type=int, nargs="+")
    parser.add_argument("--attacks", nargs="+", default=["all"])
    parser.add_argument("--seconds", type=int, default=90)
    parser.add_argument("--server-arguments", default="")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(ATTACKS))
        return 0
    names = list(ATTACKS) if arguments.attacks == ["all"] else arguments.attacks
    print("| attack | limit, MB | server | most resident, MB | p99 of another client, ms | its longest, ms | held | answers |")
    print("|---|---:|---|---:|---:|---:|---|---|", flush=True)
    failed = sum(not trial(arguments, name, limit * MB) for limit in arguments.limits_mb for name in names)
    print(f"\n{failed} of {len(names) * len(arguments.limits_mb)} did not hold")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
