#!/usr/bin/env python3
"""Many agents on one machine, from the first start to the last end, with workers that are `true`.

    agents_bench.py [--agents 2,8,32] [--rounds 3] [--torchrun PATH] [--torchrun-agents 2,8]

Beside tprun, in the same run: torchrun, if one is given (it needs seconds for each agent). Memory is what all processes of
the launcher held at most together, by Pss, so that shared pages are counted once; it is sampled in a run of its own.
"""

import argparse
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import threading
import time


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def memory_of(group):
    total = 0
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if group in (entry / "environ").read_bytes():
                    rollup = (entry / "smaps_rollup").read_text()
                    total += int(rollup.split("Pss:")[1].split()[0])
            except (OSError, IndexError):
                pass
    return total / 1024


def run(launcher, agents, worker=("true",), watch=False):
    """Seconds from the first start to the last end, and the most memory seen in MB."""
    mark = f"AGENTS_BENCH={os.getpid()}_{time.monotonic_ns()}"
    name, value = mark.split("=")
    command = [launcher, f"--nnodes={agents}", "--nproc-per-node=1", "--rdzv-backend=c10d",
               f"--rdzv-endpoint=localhost:{free_port()}", f"--rdzv-id={value}", "--rdzv-conf=join_timeout=600", "--no-python",
               *worker]
    environment = {**os.environ, name: value, "OMP_NUM_THREADS": "1"}
    most, done = [0.0], threading.Event()

    def look():
        while not done.wait(0.2):
            most[0] = max(most[0], memory_of(mark.encode()))
    if watch:
        watcher = threading.Thread(target=look)
        watcher.start()
    began = time.monotonic()
    processes = [subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE) for _ in range(agents)]
    ends = [(process.communicate()[1], process.returncode) for process in processes]
    took = time.monotonic() - began
    if watch:
        done.set()
        watcher.join()
    bad = [end for end in ends if end[1] != 0]
    if bad:
        sys.exit(f"{launcher}: {len(bad)} of {agents} agents failed: {bad[0][0].decode()[-500:]}")
    return took, most[0]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--agents", default="2,8,32")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--tprun", default=os.path.join(os.environ.get("TP_BIN_DIR", "build/bin"), "tprun"))
    options.add_argument("--torchrun")
    options.add_argument("--torchrun-agents", default="2,8,32")
    options = options.parse_args()
    print(f"{'launcher':10} {'agents':>6} {'median s':>9} {'least s':>8} {'most MB together':>17}   load {os.getloadavg()[0]:.1f}")
    plan = [("tprun", options.tprun, int(n)) for n in options.agents.split(",")]
    if options.torchrun:
        plan += [("torchrun", options.torchrun, int(n)) for n in options.torchrun_agents.split(",")]
    for label, launcher, agents in plan:
        rounds = options.rounds if label == "tprun" else 1
        times = [run(launcher, agents)[0] for _ in range(rounds)]
        memory = run(launcher, agents, ("sleep", "3"), watch=True)[1] if label == "tprun" else 0
        print(f"{label:10} {agents:6} {statistics.median(times):9.3f} {min(times):8.3f} "
              f"{f'{memory:17.1f}' if memory else '                -'}", flush=True)


if __name__ == "__main__":
    main()
