#!/usr/bin/python3
"""How long a launcher takes to start two `true` and to end, beside a shell that does the same.

    start_bench.py [--rounds N] [--torchrun PATH] [--mpiexec PATH] [--mpirun PATH]

Every round runs each command once, so that a busy moment of the machine falls on all alike; torchrun is so slow that
it runs in every tenth round only. tprun is found through TP_BIN_DIR (default build/bin)."""

import argparse
import os
import pathlib
import shutil
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))

from harness import TPRUN, clean_environment  # noqa: E402

FLOOR = "sh -c 'true & true & wait'"


def commands(options):
    true = shutil.which("true")
    found = {
        FLOOR: ["/bin/sh", "-c", f"{true} & {true} & wait"],
        "tprun --nproc-per-node=2 true": [str(TPRUN), "--nproc-per-node=2", "--no-python", true],
    }
    if options.mpiexec:
        found["mpiexec -n 2 true (MPICH)"] = [options.mpiexec, "-n", "2", true]
    if options.mpirun:
        found["mpirun -np 2 true (Open MPI)"] = [options.mpirun, "--oversubscribe", "-np", "2", true]
    if options.torchrun:
        found["torchrun --nproc-per-node=2 true"] = [options.torchrun, "--nproc-per-node=2", "--no-python", true]
    return found


def seconds_of(command, environment):
    quiet = [(os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)]
    begin = time.perf_counter()
    pid = os.posix_spawn(command[0], command, environment, file_actions=quiet)
    _, status = os.waitpid(pid, 0)
    took = time.perf_counter() - begin
    if status != 0:
        raise SystemExit(f"{command[0]} failed with wait status {status}")
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--torchrun", default=shutil.which("torchrun"))
    parser.add_argument("--mpirun", default=shutil.which("mpirun"), help="Open MPI's")
    parser.add_argument("--mpiexec", default=None, help="MPICH's")
    options = parser.parse_args()
    environment = clean_environment(OMPI_ALLOW_RUN_AS_ROOT=1, OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
    chosen = commands(options)
    took = {name: [] for name in chosen}
    for turn in range(options.rounds):
        for name, command in chosen.items():
            if not name.startswith("torchrun") or turn % 10 == 0:
                took[name].append(seconds_of(command, environment))
    floor = statistics.median(took[FLOOR])
    print("| command | median | least | times the shell's |")
    print("| --- | --- | --- | --- |")
    for name, values in took.items():
        median = statistics.median(values)
        print(f"| `{name}` | {median * 1e3:.2f} ms | {min(values) * 1e3:.2f} ms | {median / floor:.1f} |")


if __name__ == "__main__":
    main()
