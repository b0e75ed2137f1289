#!/usr/bin/env python3
"""From a worker's death to its replacement's first instruction, on one node: median and worst of N restarts.

    restart_bench.py [--restarts 50] [--workers 2] [--torchrun PATH]

Beside tprun, in the same run: torchrun, if one is given. A worker is a static program (the kernel's view of a start) or,
with --python, /usr/bin/python3.
"""

import argparse
import os
import pathlib
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
int main(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  char line[80];
  int n = snprintf(line, sizeof line, "start %s %s %lld\n", getenv("TORCHELASTIC_RESTART_COUNT"), getenv("RANK"),
                   now.tv_sec * 1000000000LL + now.tv_nsec);
  int log = open(getenv("RESTART_LOG"), O_WRONLY | O_APPEND);
  if (write(log, line, n) != n) return 2;
  int is_last = atoi(getenv("TORCHELASTIC_RESTART_COUNT")) == atoi(getenv("TORCHELASTIC_MAX_RESTARTS"));
  if (atoi(getenv("RANK")) != 0) { if (!is_last) pause(); return 0; }
  struct timespec rest = {0, 50 * 1000 * 1000};
  nanosleep(&rest, NULL);
  if (is_last) return 0;
  clock_gettime(CLOCK_MONOTONIC, &now);
  n = snprintf(line, sizeof line, "death %s 0 %lld\n", getenv("TORCHELASTIC_RESTART_COUNT"),
               now.tv_sec * 1000000000LL + now.tv_nsec);
  if (write(log, line, n) != n) return 2;
  kill(getpid(), SIGKILL);
}
"""


def measure(launcher, workers, restarts, folder):
    log = folder / "log"
    log.write_text("")
    subprocess.run([launcher, f"--nproc-per-node={workers}", f"--max-restarts={restarts}", "--no-python",
                    folder / "worker"], env={**os.environ, "RESTART_LOG": str(log)}, stderr=subprocess.DEVNULL,
                   timeout=600 + restarts, check=False)
    deaths, starts = {}, {}
    for line in log.read_text().splitlines():
        kind, count, _, at = line.split()
        if kind == "death":
            deaths[int(count)] = int(at)
        else:
            starts.setdefault(int(count), []).append(int(at))
    first = [(min(starts[n + 1]) - at) / 1e6 for n, at in deaths.items() if n + 1 in starts]
    last = [(max(starts[n + 1]) - at) / 1e6 for n, at in deaths.items() if n + 1 in starts]
    return first, last


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--restarts", type=int, default=50)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--tprun", default=os.path.join(os.environ.get("TP_BIN_DIR", "build/bin"), "tprun"))
    options.add_argument("--torchrun")
    options = options.parse_args()
    launchers = {"tprun": options.tprun, **({"torchrun": options.torchrun} if options.torchrun else {})}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "worker.c").write_text(SOURCE)
        subprocess.run(["cc", "-O2", "-o", folder / "worker", folder / "worker.c"], check=True)
        print(f"ms from death to start, {options.workers} workers, {options.restarts} restarts, load "
              f"{os.getloadavg()[0]:.1f}")
        print(f"{'':10} {'first worker':>24} {'last worker':>24}")
        for label, launcher in launchers.items():
            begin = time.monotonic()
            first, last = measure(launcher, options.workers, options.restarts, folder)
            if not first:
                print(f"{label:10} no restart was seen")
                continue
            row = "".join(f"   median {statistics.median(x):6.1f} max {max(x):6.1f}" for x in (first, last))
            print(f"{label:10}{row}   ({len(first)} restarts in {time.monotonic() - begin:.1f} s)")


if __name__ == "__main__":
    main()
