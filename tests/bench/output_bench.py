"""How fast workers' lines get to file and console through tprun, beside `worker | tee file`.

    TP_BIN_DIR=build/bin python3 tests/bench/output_bench.py [LINES_PER_WORKER [ROUNDS]]

Eight workers write 80-byte lines, one write(2) each. The console is a file, as in a batch job. Every row is the best of
the rounds, which are run in turn so that a busy machine is busy for all."""

import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(os.environ.get("TP_BIN_DIR", "build/bin")).resolve()
TESTS_BIN = BIN.parent / "tests-bin"
WORKERS = 8
LINES = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5


def shell_cases(folder):
    writer = TESTS_BIN / "line_writer"
    all_of = " ".join(str(i) for i in range(WORKERS))
    tprun = f"{BIN}/tprun --nproc-per-node={WORKERS} --log-dir={folder}/logs"
    return {
        "one worker | tee file": f"{writer} {WORKERS * LINES} | tee {folder}/f > {folder}/c",
        f"{WORKERS} workers | one tee":
            f"(for i in {all_of}; do {writer} {LINES} & done; wait) | tee {folder}/f > {folder}/c",
        f"{WORKERS} x (worker | tee file)":
            f"for i in {all_of}; do ({writer} {LINES} | tee {folder}/f$i) & done > {folder}/c; wait",
        f"tprun --tee 1, {WORKERS} workers": f"{tprun} --tee=1 {writer} {LINES} > {folder}/c",
        f"tprun --redirects 1, {WORKERS} workers": f"{tprun} --redirects=1 {writer} {LINES} > {folder}/c",
        f"tprun, stderr passed on, {WORKERS} workers":
            f"{BIN}/tprun --nproc-per-node={WORKERS} {writer} {LINES} 80 2 2> {folder}/c",
    }


def measure(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(["bash", "-c", command], check=True)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    best = {}
    for _ in range(ROUNDS):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="output_bench"))
        try:
            for name, command in shell_cases(folder).items():
                wall, cpu = measure(command)
                old = best.get(name, (float("inf"), float("inf")))
                best[name] = (min(wall, old[0]), min(cpu, old[1]))
                shutil.rmtree(folder / "logs", ignore_errors=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    total = WORKERS * LINES
    first = next(iter(best.values()))[0]
    print(f"{WORKERS} workers, {LINES} lines of 80 bytes each, best of {ROUNDS}\n")
    print("| what | thousand lines/s | beside the first | CPU us/line |")
    print("| --- | --- | --- | --- |")
    for name, (wall, cpu) in best.items():
        shown = name.replace("|", "\\|")
        print(f"| {shown} | {total / wall / 1000:.0f} | {first / wall:.2f} | {cpu / total * 1e6:.2f} |")


if __name__ == "__main__":
    main()
