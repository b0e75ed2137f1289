"""Where cgroup v2 is delegated, every worker is born into a cgroup of its own, and none of them is left."""

import os
import pathlib
import signal
import subprocess

import pytest
from containment_jobs import name_of, processes_with
from harness import PATIENCE, TPRUN, clean_environment, script, wait_for, wait_for_file


@pytest.fixture
def delegated(tmp_path):
    """A cgroup that is marked as delegated."""
    mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    mount = next((pathlib.Path(fields[1]) for fields in mounts if fields[2] == "cgroup2"), None)
    if mount is None or os.geteuid() != 0:
        pytest.skip("needs root and cgroup v2, to delegate a cgroup")
    folder = mount / f"tp-test-{os.getpid()}-{tmp_path.name}"
    try:
        folder.mkdir()
        os.setxattr(folder, "user.delegate", b"1")
    except OSError as error:
        pytest.skip(f"cannot delegate a cgroup here: {error}")
    if not (folder / "cgroup.kill").exists():
        pytest.skip("this kernel cannot kill by cgroup (needs 5.14)")
    yield folder
    wait_for(lambda: not (folder / "cgroup.procs").read_text(), "the cgroup to be empty")
    folder.rmdir()


def start(folder, cgroup, *words):
    line = 'echo $$ > "$CGROUP/cgroup.procs"; exec "$@"'
    return subprocess.Popen(["sh", "-c", line, "sh", str(TPRUN), *map(str, words)], stdin=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, env=clean_environment(CGROUP=cgroup, OUT=folder))


WORKER = """
setsid -f env -i sleep 1000
grep ^0:: /proc/self/cgroup > "$OUT/cgroup.$LOCAL_RANK"
echo up > "$OUT/up.$LOCAL_RANK"
[ "$ENDS" = 1 ] || exec sleep 1000
"""


def test_each_worker_is_born_into_its_own_and_all_are_removed(tmp_path, delegated):
    worker = script(tmp_path, "worker", "ENDS=1\n" + WORKER)
    process = start(tmp_path, delegated, "--nproc-per-node=2", "--no-python", worker)
    assert process.wait(PATIENCE) == 0
    places = [(tmp_path / f"cgroup.{rank}").read_text().strip() for rank in range(2)]
    assert places[0] != places[1]
    assert all(f"/{delegated.name}/tprun-" in place for place in places)
    assert [entry for entry in delegated.iterdir() if entry.is_dir()] == []
    assert (delegated / "cgroup.procs").read_text() == ""


def test_a_daemon_without_session_or_environment_of_its_worker_goes_with_a_killed_agent_too(tmp_path, delegated):
    worker = script(tmp_path, "worker", WORKER)
    process = start(tmp_path, delegated, "--no-python", worker)
    wait_for_file(tmp_path / "up.0")
    agent = next(pid for pid in processes_with(f"OUT={tmp_path}") if name_of(pid) == "tp-agent")
    os.kill(agent, signal.SIGKILL)
    assert process.wait(PATIENCE) == 70
    assert [entry for entry in delegated.iterdir() if entry.is_dir()] == []
    assert (delegated / "cgroup.procs").read_text() == ""
