"""From two idle workers to a thousand on one node."""

import os
import pathlib
import subprocess

from containment_jobs import children_of, name_of, processes_with
from harness import PATIENCE, TPRUN, clean_environment, wait_for


def start(folder, *words):
    return subprocess.Popen([str(TPRUN), *map(str, words)], env=clean_environment(TP_FOLDER=folder), stdin=subprocess.DEVNULL)


def workers_of(agent, count):
    """Waits until the agent has so many workers that have become `sleep`."""
    wait_for(lambda: len(children_of(agent)) == count and name_of(children_of(agent)[-1]) == "sleep", f"{count} workers")


def agent_of(process):
    return wait_for(lambda: next((pid for pid in children_of(process.pid) if name_of(pid) == "tp-agent"), None), "the agent")


def resident_kib(pid):
    """Rss: pages that it shares with others count in full."""
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1])
    raise AssertionError("no Rss line")


def test_guardian_and_agent_with_two_idle_workers_hold_under_15_mb(tmp_path):
    process = start(tmp_path, "--nproc-per-node=2", "--no-python", "sleep", "1000")
    try:
        agent = agent_of(process)
        workers_of(agent, 2)
        guardian_kib, agent_kib = resident_kib(process.pid), resident_kib(agent)
    finally:
        process.terminate()
        process.wait(PATIENCE)
    print(f"\nresident (Rss): guardian {guardian_kib} KiB, agent {agent_kib} KiB")
    assert guardian_kib + agent_kib < 15_000


def test_a_thousand_workers_start_end_and_leave_nothing(tmp_path):
    process = start(tmp_path, "--nproc-per-node=1000", "--no-python", "sleep", "1")
    agent = agent_of(process)
    most_kib = 0
    while process.poll() is None:
        try:
            most_kib = max(most_kib, resident_kib(agent))
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            process.wait(0.05)
        except (OSError, AssertionError, subprocess.TimeoutExpired):
            continue
    print(f"\na thousand workers: agent resident at most {most_kib} KiB (Rss)")
    assert process.returncode == 0
    assert processes_with(f"TP_FOLDER={tmp_path}") == {}
    assert most_kib < 64_000
