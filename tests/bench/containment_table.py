#!/usr/bin/python3
"""What each launcher leaves behind, for every way in which it may end: the table of docs/containment.md.

    containment_table.py [--torchrun PATH] [--mpiexec PATH] [--mpirun PATH]

Launchers that are not given and not in PATH are left out. tprun is found through TP_BIN_DIR (default build/bin).
Takes some minutes, most of them torchrun's start."""

import argparse
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "system"))

from containment_jobs import ENDINGS, KINDS, Launcher, leftovers  # noqa: E402
from harness import TPRUN  # noqa: E402

END_PATIENCE = 30
ROOT_MPI = (("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"))


def launchers(options):
    found = [Launcher("tprun", (str(TPRUN), "--nproc-per-node=2", "--shutdown-timeout=2", "--no-python"), "tp-agent")]
    if options.torchrun:
        found.append(Launcher("torchrun", (options.torchrun, "--nproc-per-node=2", "--shutdown-timeout=2", "--no-python")))
    if options.mpirun:
        found.append(Launcher("mpirun", (options.mpirun, "--oversubscribe", "-np", "2"), environment=ROOT_MPI))
    if options.mpiexec:
        found.append(Launcher("mpiexec", (options.mpiexec, "-n", "2")))
    return found


def cell(left):
    """0, or what is left of the two workers' descendants."""
    if not left:
        return "0"
    kinds = ", ".join(kind for kind in KINDS if kind in left)
    return f"**{sum(left.values())}**: {kinds}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torchrun", default=shutil.which("torchrun"))
    parser.add_argument("--mpirun", default=shutil.which("mpirun"), help="Open MPI's")
    parser.add_argument("--mpiexec", default=None, help="MPICH's")
    chosen = launchers(parser.parse_args())
    print("| ending | " + " | ".join(launcher.name for launcher in chosen) + " |")
    print("| --- |" + " --- |" * len(chosen), flush=True)
    for ending in ENDINGS:
        cells = []
        for launcher in chosen:
            if ending.needs_agent and not launcher.agent_name:
                cells.append("-")
                continue
            try:
                cells.append(cell(leftovers(launcher, ending, patience=5, end_patience=END_PATIENCE)))
            except subprocess.TimeoutExpired:
                cells.append(f"**does not end** ({END_PATIENCE} s)")
            except (AssertionError, OSError) as error:
                cells.append(f"{error}")
        print(f"| {ending.name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
