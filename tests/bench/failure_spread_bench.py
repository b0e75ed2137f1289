#!/usr/bin/env python3
"""From a worker's failure on one node to the stop signal on the others: N agents on this machine, one worker each.

    failure_spread_bench.py [--agents 4] [--rounds 20] [--torchrun PATH] [--patience 60]

Each worker writes down when it is told to stop (SIGTERM). Beside tprun, in the same run: torchrun, if one is given. A round
whose agents are not told ends by the bench's patience.
"""

import argparse
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import tempfile
import time

SOURCE = r"""
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static int log_file;
static void note(const char *what) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  char line[80];
  int n = snprintf(line, sizeof line, "%s %s %lld\n", what, getenv("RANK"), now.tv_sec * 1000000000LL + now.tv_nsec);
  if (write(log_file, line, n) != n) _exit(2);
}
static void stop(int signal) { note("stop"); _exit(128 + signal); }
int main(void) {
  signal(SIGTERM, stop);
  log_file = open(getenv("SPREAD_LOG"), O_WRONLY | O_APPEND);
  note("start");
  if (atoi(getenv("RANK")) != atoi(getenv("WORLD_SIZE")) - 1) for (;;) pause();
  while (access(getenv("SPREAD_GO"), F_OK) != 0) usleep(1000);
  note("fail");
  _exit(7);
}
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def measure(launcher, agents, folder, patience):
    """Milliseconds from the failure to each stop; agents that were never told are missing."""
    log, go = folder / "log", folder / "go"
    log.write_text("")
    go.unlink(missing_ok=True)
    command = [launcher, f"--nnodes={agents}", "--nproc-per-node=1", "--rdzv-backend=c10d",
               f"--rdzv-endpoint=localhost:{free_port()}", "--rdzv-id=spread", "--no-python", folder / "worker"]
    environment = {**os.environ, "SPREAD_LOG": str(log), "SPREAD_GO": str(go)}
    processes = [subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, start_new_session=True) for _ in range(agents)]
    while log.read_text().count("start") < agents:
        time.sleep(0.01)
    go.touch()
    limit = time.monotonic() + patience
    while any(process.poll() is None for process in processes) and time.monotonic() < limit:
        time.sleep(0.01)
    lines = [line.split() for line in log.read_text().splitlines()]
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
    for process in processes:
        process.wait()
    failed = next(int(at) for what, _, at in lines if what == "fail")
    return [(int(at) - failed) / 1e6 for what, _, at in lines if what == "stop"]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--agents", type=int, default=4)
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--patience", type=float, default=60)
    options.add_argument("--tprun", default=os.path.join(os.environ.get("TP_BIN_DIR", "build/bin"), "tprun"))
    options.add_argument("--torchrun")
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "worker.c").write_text(SOURCE)
        subprocess.run(["cc", "-O2", "-o", folder / "worker", folder / "worker.c"], check=True)
        print(f"ms from a failure to the stop signal elsewhere, {options.agents} agents, load {os.getloadavg()[0]:.1f}")
        print(f"{'':10} {'rounds':>6} {'told':>12} {'median':>8} {'most':>8}")
        for label, launcher, rounds in (("tprun", options.tprun, options.rounds), ("torchrun", options.torchrun, 1)):
            if not launcher:
                continue
            times = []
            for _ in range(rounds):
                times += measure(launcher, options.agents, folder, options.patience)
            told = f"{len(times)} of {rounds * (options.agents - 1)}"
            print(f"{label:10} {rounds:6} {told:>12} "
                  f"{f'{statistics.median(times):8.2f} {max(times):8.2f}' if times else f'none in {options.patience:.0f} s'}")


if __name__ == "__main__":
    main()
