"""How a job ends: who is blamed for a failure, and what a stop signal does at any moment."""

import json
import os
import random
import signal
import subprocess
import time
import uuid

import pytest

from harness import PYTHON, TPRUN, alive_with, finish, running, script, tprun, wait_for, wait_for_file

WORKERS = "--nproc-per-node=2"


# ---- Who was it? -----------------------------------------------------------------------------------------------------


def test_the_culprit_is_named_though_its_victims_end_first(tmp_path):
    """Rank 2 throws; its peers lose their connections and are gone while it still frees its memory."""
    worker = script(tmp_path, "worker", """
import os, sys, time
if os.environ["RANK"] == "2":
    sys.stderr.write("Traceback (most recent call last):\\n  File \\"a.py\\", line 1\\nValueError: no data\\n")
    sys.stderr.flush()
    open("thrown", "w").close()
    time.sleep(0.5)
else:
    while not os.path.exists("thrown"):
        time.sleep(0.001)
    sys.stderr.write("RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:4711\\n")
sys.exit(1)
""", PYTHON)
    report = tmp_path / "report.json"
    result = tprun("--nproc-per-node=4", f"--report={report}", worker, cwd=tmp_path)
    assert result.returncode == 1
    assert "rank 2" in result.stderr.splitlines()[-1] or "rank 2" in result.stderr.split("failed:")[1].splitlines()[0]
    assert json.loads(report.read_text())["exit_code"] == 1


def test_a_worker_that_fails_while_it_is_stopped_is_not_the_cause(tmp_path):
    worker = script(tmp_path, "worker", """
if [ $RANK = 0 ]; then
  while [ ! -e ready ]; do sleep 0.01; done
  exit 3
fi
trap 'exit 9' TERM
touch ready
while :; do sleep 0.01; done
""")
    result = tprun(WORKERS, worker, cwd=tmp_path)
    assert result.returncode == 3
    assert "rank 0" in result.stderr


def test_a_worker_that_ignores_the_stop_is_killed_after_the_grace_on_failure_too(tmp_path):
    worker = script(tmp_path, "worker", """
if [ $RANK = 0 ]; then
  while [ ! -e ready ]; do sleep 0.01; done
  exit 3
fi
trap '' TERM
touch ready
exec sleep 1000
""")
    begin = time.monotonic()
    result = tprun(WORKERS, "--shutdown-timeout=1", worker, cwd=tmp_path)
    assert result.returncode == 3
    assert 1.0 <= time.monotonic() - begin < 20


def test_a_core_file_is_told(tmp_path):
    crash = script(tmp_path, "crash", "ulimit -c unlimited; kill -SEGV $$")
    result = tprun("--nproc-per-node=1", "--report=report.json", crash, cwd=tmp_path)
    assert result.returncode == 139
    cause = json.loads((tmp_path / "report.json").read_text())["root_cause"]
    if not cause["dumped_core"]:
        assert "core dumped" not in result.stderr
        pytest.skip("no core file is written here (a hard limit of 0, or the kernel's core_pattern)")
    assert "rank 0 died of SIGSEGV (core dumped)" in result.stderr


def test_a_launcher_below_is_quoted_as_a_sentence(tmp_path):
    result = tprun("--nproc-per-node=1", TPRUN, "--nproc-per-node=1", "sh", "-c", "exit 4", cwd=tmp_path)
    assert result.returncode == 4
    assert "failed: rank 0 failed: rank 0 ended with exit code 4 (exit code 4)" in result.stderr


def memory_cgroup():
    """A memory cgroup of 64 MB that a process can be put in, or None with the reason."""
    base = "/sys/fs/cgroup/memory" if os.path.exists("/sys/fs/cgroup/memory") else "/sys/fs/cgroup"
    path = f"{base}/tprun_test_{uuid.uuid4().hex[:8]}"
    limits = {"memory.limit_in_bytes": 64 << 20, "memory.memsw.limit_in_bytes": 64 << 20, "memory.max": 64 << 20,
              "memory.swap.max": 0}
    try:
        os.mkdir(path)
    except OSError as error:
        return None, f"no memory cgroup can be made: {error}"
    done = 0
    for name, value in limits.items():
        try:
            with open(f"{path}/{name}", "w") as file:
                file.write(str(value))
            done += 1
        except OSError:
            pass
    if done == 0:
        os.rmdir(path)
        return None, "the memory of a cgroup cannot be limited here"
    return path, ""


def test_a_worker_that_the_kernel_killed_for_memory_is_reported_as_that(tmp_path):
    cgroup, why = memory_cgroup()
    if cgroup is None:
        pytest.skip(why)
    worker = script(tmp_path, "worker", "import time\nblocks = []\nfor _ in range(200): blocks.append(bytearray(1 << 20))\n",
                    PYTHON)
    try:
        result = subprocess.run(["sh", "-c", f"echo $$ > {cgroup}/cgroup.procs; exec {TPRUN} --nproc-per-node=1 {worker}"],
                                capture_output=True, text=True, timeout=60)
        assert result.returncode == 137
        assert "memory" in result.stderr
    finally:
        wait_for(lambda: not open(f"{cgroup}/cgroup.procs").read().strip(), "the cgroup to be empty")
        os.rmdir(cgroup)


# ---- Being stopped ---------------------------------------------------------------------------------------------------

STUBBORN = """
trap '' INT TERM HUP QUIT
echo $$ > pid.$RANK
while :; do sleep 0.05; done
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_stop_signal_reaches_the_workers_and_tprun_ends_by_it_though_they_end_well(tmp_path, number):
    worker = script(tmp_path, "worker", f"""
import os, signal, sys
def stop(got, _):
    open("got." + os.environ["RANK"], "w").write(str(got))
    sys.exit(0)
signal.signal({int(number)}, stop)
open("ready." + os.environ["RANK"], "w").write("y")
while True:
    signal.pause()
""", PYTHON)
    with running(WORKERS, "--max-restarts=3", worker, cwd=tmp_path) as job:
        for rank in range(2):
            wait_for_file(tmp_path / f"ready.{rank}")
        job.send_signal(number)
        code, _, _ = finish(job)
    assert code == -number
    assert [(tmp_path / f"got.{rank}").read_text() for rank in range(2)] == [str(int(number))] * 2


def test_a_second_request_a_second_later_does_not_wait_for_the_grace(tmp_path):
    worker = script(tmp_path, "worker", STUBBORN)
    with running(WORKERS, "--shutdown-timeout=600", worker, cwd=tmp_path) as job:
        for rank in range(2):
            wait_for_file(tmp_path / f"pid.{rank}")
        job.send_signal(signal.SIGINT)
        time.sleep(1.2)  # a second request is one that comes at least a second after the first
        job.send_signal(signal.SIGINT)
        assert finish(job)[0] == -signal.SIGINT


def test_a_stop_in_the_first_milliseconds_is_never_lost(tmp_path):
    mark = f"TP_TEST_MARK={uuid.uuid4().hex}"
    name, value = mark.split("=")
    draw = random.Random(7)
    for _ in range(25):
        with running(WORKERS, "sleep", "1000", **{name: value}) as job:
            time.sleep(draw.uniform(0, 0.02))  # the moment is what is tested
            job.send_signal(signal.SIGTERM)
            assert finish(job)[0] == -signal.SIGTERM
    assert alive_with(mark) == []


def test_a_stop_while_a_failure_is_being_stopped_ends_by_the_signal_and_not_in_a_restart(tmp_path):
    worker = script(tmp_path, "worker", """
echo $TORCHELASTIC_RESTART_COUNT >> attempts
if [ $RANK = 0 ]; then
  while [ ! -e ready ]; do sleep 0.01; done
  exit 3
fi
trap 'touch stopping' TERM
touch ready
while :; do sleep 0.01; done
""")
    with running(WORKERS, "--max-restarts=3", "--shutdown-timeout=2", worker, cwd=tmp_path) as job:
        wait_for((tmp_path / "stopping").exists, "the stop after the failure")
        job.send_signal(signal.SIGTERM)
        assert finish(job)[0] == -signal.SIGTERM
    assert set((tmp_path / "attempts").read_text().split()) == {"0"}


def test_nothing_is_left_when_tprun_has_ended(tmp_path):
    mark = f"TP_TEST_MARK={uuid.uuid4().hex}"
    name, value = mark.split("=")
    worker = script(tmp_path, "worker", "sleep 1000 & setsid sleep 1000 & exit $RANK")
    assert tprun(WORKERS, worker, **{name: value}).returncode == 1
    assert alive_with(mark) == []


def test_a_hundred_workers_start_and_end(tmp_path):
    result = tprun("--nproc-per-node=100", "sh", "-c", "echo $RANK")
    assert result.returncode == 0, result.stderr
    assert sorted(map(int, result.stdout.split())) == list(range(100))


def test_a_killed_agent_leaves_no_error_folder(tmp_path):
    worker = script(tmp_path, "worker", "echo $TORCHELASTIC_ERROR_FILE $PPID > told; exec sleep 100\n")
    with running(worker, cwd=tmp_path) as job:
        error_file, agent = wait_for_file(tmp_path / "told").split()
        folder = os.path.dirname(error_file)
        assert os.path.isdir(folder)
        os.kill(int(agent), signal.SIGKILL)
        assert finish(job)[0] == 70
    assert not os.path.exists(folder)


def test_an_error_file_of_brackets_or_of_somebody_else_is_not_read(tmp_path):
    (tmp_path / "secret").write_text('{"message": "a stranger\'s text"}')
    brackets = script(tmp_path, "brackets", 'head -c 1000000 /dev/zero | tr "\\0" "[" >$TORCHELASTIC_ERROR_FILE; exit 3\n')
    link = script(tmp_path, "link", "ln -s $PWD/secret $TORCHELASTIC_ERROR_FILE; exit 4\n")
    assert tprun(brackets, cwd=tmp_path).returncode == 3
    result = tprun(link, cwd=tmp_path)
    assert result.returncode == 4
    assert "stranger" not in result.stderr
