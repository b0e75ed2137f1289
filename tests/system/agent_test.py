"""The agent as its user sees it: what workers are given, what a failure costs, which exit code tprun has."""

import json
import re
import socket
import struct

import pytest

from harness import PYTHON, TPRUN, TPSTORE, finish, running, script, tprun, wait_for, wait_for_file

WORKERS = "--nproc-per-node=2"


# ---- What a worker is given ------------------------------------------------------------------------------------------


def environments(folder, count):
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(count)]


def test_every_worker_gets_its_ranks_its_store_and_its_attempt(tmp_path):
    dump = script(tmp_path, "dump", "import json, os\nopen(os.environ['RANK'] + '.json', 'w').write("
                  "json.dumps(dict(os.environ)))\n", PYTHON)
    result = tprun("--nproc-per-node=3", "--max-restarts=2", "--rdzv-id=job7", "--role=trainer", dump, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    for rank, env in enumerate(environments(tmp_path, 3)):
        expected = {
            "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3",
            "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1", "ROLE_RANK": str(rank), "ROLE_WORLD_SIZE": "3",
            "ROLE_NAME": "trainer", "MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_RESTART_COUNT": "0",
            "TORCHELASTIC_MAX_RESTARTS": "2", "TORCHELASTIC_RUN_ID": "job7", "TORCHELASTIC_USE_AGENT_STORE": "True",
            "OMP_NUM_THREADS": "1", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
        }
        assert {name: env.get(name) for name in expected} == expected
        assert 0 < int(env["MASTER_PORT"]) < 65536
        assert "TORCHELASTIC_ERROR_FILE" in env


def test_a_given_master_port_is_the_workers_store(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    result = tprun("--nproc-per-node=1", f"--master-port={port}", "sh", "-c",
                   f"{TPSTORE} set k v --endpoint 127.0.0.1:$MASTER_PORT && echo $MASTER_PORT")
    assert result.returncode == 0, result.stderr
    assert str(port) in result.stdout


def test_a_port_that_somebody_else_holds_is_one_line_and_worth_a_retry():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        result = tprun(WORKERS, f"--master-port={port}", "true")
    assert result.returncode == 75
    assert result.stderr.count("\n") == 1
    assert str(port) in result.stderr and "in use" in result.stderr


def test_without_a_shared_store_rank_0_can_listen_on_the_port_that_was_kept_for_it(tmp_path):
    host = script(tmp_path, "host", """
import os, socket
assert os.environ["TORCHELASTIC_USE_AGENT_STORE"] == "False"
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", int(os.environ["MASTER_PORT"])))
s.listen()
c = socket.create_connection(("127.0.0.1", int(os.environ["MASTER_PORT"])))
a, _ = s.accept()
c.send(b"x")
assert a.recv(1) == b"x"
""", PYTHON)
    result = tprun("--nproc-per-node=1", "--max-restarts=0", host, TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1)
    assert result.returncode == 0, result.stderr


# ---- Restarts --------------------------------------------------------------------------------------------------------


def test_a_failure_restarts_all_workers_with_the_next_restart_count(tmp_path):
    worker = script(tmp_path, "worker", """
echo "$RANK" >> attempt_$TORCHELASTIC_RESTART_COUNT
[ $TORCHELASTIC_RESTART_COUNT = 2 ] && exit 0
[ $RANK = 1 ] || exec sleep 1000
until [ $(wc -l < attempt_$TORCHELASTIC_RESTART_COUNT) = 2 ]; do sleep 0.01; done
exit 5
""")
    result = tprun(WORKERS, "--max-restarts=3", worker, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    for attempt in range(3):
        assert sorted((tmp_path / f"attempt_{attempt}").read_text().split()) == ["0", "1"]
    assert not (tmp_path / "attempt_3").exists()
    assert "restart 1 of 3" in result.stderr and "restart 2 of 3" in result.stderr


def test_the_restart_line_says_what_went_wrong_and_names_no_host_where_there_is_one(tmp_path):
    result = tprun("--nproc-per-node=1", "--max-restarts=1", "--no-python", PYTHON, "-c", "raise ValueError('no data')")
    assert ("\ntprun: rank 0 failed with ValueError: no data (exit code 1): restarting all workers (restart 1 of 1)\n"
            in result.stderr)


def test_when_no_restart_is_left_the_root_causes_code_is_tpruns(tmp_path):
    result = tprun(WORKERS, "--max-restarts=1", "sh", "-c", "echo $TORCHELASTIC_RESTART_COUNT; [ $RANK = 0 ] && exit 5; "
                   "exec sleep 1000")
    assert result.returncode == 5
    assert sorted(set(result.stdout.split())) == ["0", "1"]


def test_the_old_workers_are_gone_before_the_new_ones_start(tmp_path):
    worker = script(tmp_path, "worker", """
import os, signal, sys, time
count, rank = os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["RANK"]
if count == "1":
    alive = []
    for name in ("0.0", "0.1"):
        try:
            pid = int(open(name).read())
            os.kill(pid, 0)
            alive.append(pid)
        except ProcessLookupError:
            pass
    sys.exit(9 if alive else 0)
open(f"{count}.{rank}.part", "w").write(str(os.getpid()))
os.rename(f"{count}.{rank}.part", f"{count}.{rank}")
signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.3), os._exit(0)))
while not (os.path.exists("0.0") and os.path.exists("0.1")):
    time.sleep(0.001)
if rank == "1":
    sys.exit(3)
signal.pause()
""", PYTHON)
    result = tprun(WORKERS, "--max-restarts=1", worker, cwd=tmp_path)
    assert result.returncode == 0, result.stderr


def test_each_round_begins_with_an_empty_store(tmp_path):
    worker = script(tmp_path, "worker", f"""
at="--endpoint $MASTER_ADDR:$MASTER_PORT --timeout 5"
if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then
  {TPSTORE} set stale yes $at || exit 8
  {TPSTORE} check stale $at || exit 8
  exit 1
fi
{TPSTORE} check stale $at && exit 9
{TPSTORE} set fresh yes $at
""")
    result = tprun("--nproc-per-node=1", "--max-restarts=1", worker)
    assert result.returncode == 0, result.stderr


def test_a_connection_of_an_old_round_is_closed_before_the_new_one_begins(tmp_path):
    worker = script(tmp_path, "worker", """
if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then
  echo $MASTER_PORT > port.part; mv port.part port
  while [ ! -e go ]; do sleep 0.01; done
  exit 1
fi
touch again
while [ ! -e done ]; do sleep 0.01; done
""")
    with running("--nproc-per-node=1", "--max-restarts=1", worker, cwd=tmp_path) as job:
        port = int(wait_for_file(tmp_path / "port"))
        with socket.create_connection(("127.0.0.1", port)) as old:
            old.settimeout(60)
            key, value = b"/late", b"x"
            hello = struct.pack("<BI", 0, 0x3C85F7CE)
            old.sendall(hello + struct.pack("<BQ", 1, len(key)) + key + struct.pack("<Q", len(value)) + value)
            (tmp_path / "go").touch()
            wait_for((tmp_path / "again").exists, "the second attempt")
            try:
                assert old.recv(1) == b""
            except ConnectionResetError:
                pass
        (tmp_path / "done").touch()
        assert finish(job)[0] == 0


def test_the_time_a_restart_took_is_told_when_asked_for_and_stands_in_the_report(tmp_path):
    report = tmp_path / "report.json"
    worker = script(tmp_path, "worker", f"""
[ $TORCHELASTIC_RESTART_COUNT = 0 ] && exit 1
{TPSTORE} set k v --endpoint $MASTER_ADDR:$MASTER_PORT
""")
    result = tprun("--nproc-per-node=1", "--max-restarts=1", f"--report={report}", worker, LOGLEVEL="INFO")
    assert result.returncode == 0, result.stderr
    assert re.search(r"restart 1: [0-9.]+ ms from the first end to the last start \(stopping", result.stderr)
    first, second = json.loads(report.read_text())["attempts"]
    assert first["restart"] is None
    assert set(second["restart"]) == {"stopping_ms", "rendezvous_ms", "spawning_ms", "first_store_use_ms"}
    assert all(value >= 0 for value in second["restart"].values())


# ---- Exit codes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command, code", [
    ("exit 0", 0), ("exit 1", 1), ("exit 7", 7), ("exit 255", 255), ("kill -SEGV $$", 139), ("kill -KILL $$", 137),
    ("kill -TERM $$", 143), ("kill -ABRT $$", 134),
])
def test_tprun_ends_with_its_workers_own_code_or_128_and_the_signal(tmp_path, command, code):
    assert tprun(WORKERS, script(tmp_path, "worker", command)).returncode == code


def test_under_the_name_torchrun_any_failure_of_a_worker_is_1(tmp_path):
    front = tmp_path / "torchrun"
    front.symlink_to(TPRUN)
    assert tprun(WORKERS, "--no-python", "sh", "-c", "exit 7", program=front).returncode == 1
    assert tprun(WORKERS, "--no-python", script(tmp_path, "crash", "kill -SEGV $$"), program=front).returncode == 1
    assert tprun(WORKERS, "--no-python", "true", program=front).returncode == 0


def test_a_program_whose_interpreter_is_missing_is_reported_at_once_and_never_restarted(tmp_path):
    broken = script(tmp_path, "broken", "", "/no/such/interpreter")
    result = tprun(WORKERS, "--max-restarts=5", broken)
    assert result.returncode == 126
    assert "/no/such/interpreter" in result.stderr or "interpreter" in result.stderr
    assert "restart 1" not in result.stderr


def test_a_file_that_is_no_program_is_126(tmp_path):
    data = tmp_path / "data"
    data.write_bytes(b"\x00\x01 no program")
    data.chmod(0o755)
    result = tprun(WORKERS, "--no-python", "--max-restarts=5", data)
    assert result.returncode == 126


def test_a_missing_program_is_127():
    assert tprun(WORKERS, "--max-restarts=5", "no-such-program-anywhere").returncode == 127


def test_one_worker_that_ends_well_early_does_not_end_the_others(tmp_path):
    worker = script(tmp_path, "worker", """
if [ $RANK = 0 ]; then touch first; exit 0; fi
while [ ! -e first ]; do sleep 0.01; done
sleep 0.2
touch second
""")
    result = tprun(WORKERS, worker, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "second").exists()


def test_restarts_that_make_no_progress_end_with_a_code_of_their_own_before_the_budget_does(tmp_path):
    result = tprun("--nproc-per-node=1", "--max-restarts=50", "--no-progress-limit=2", "sh", "-c",
                   "echo attempt; exit 7")
    assert result.returncode == 93, result.stderr
    assert result.stdout.count("attempt") == 3  # the first one is no restart
    assert "exit code 93 (no progress; rank 0's own is 7)" in result.stderr
    progress = tprun("--nproc-per-node=1", "--max-restarts=3", "--no-progress-limit=2:0", "sh", "-c", "exit 7")
    assert progress.returncode == 7, progress.stderr
