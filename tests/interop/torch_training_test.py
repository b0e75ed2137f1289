"""Unmodified PyTorch scripts under tprun: they train, restart, fail with a good report, and leave nothing behind."""
import os
import pathlib
import re
import socket
import subprocess

import pytest

TPRUN = os.path.join(os.environ["TP_BIN_DIR"], "tprun")
SCRIPTS = pathlib.Path(__file__).parent / "torch_scripts"
TORCH_PYTHON = os.environ.get("TP_TORCH_PYTHON", "")
RESTARTS = 20 if os.environ.get("TP_TEST_FULL") else 5

pytestmark = pytest.mark.skipif(not TORCH_PYTHON, reason="TP_TORCH_PYTHON is not set: no PyTorch to run")


def tprun(*words, timeout=300):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PET_", "TPRUN_", "TORCHELASTIC_"))}
    environment["PYTHON_EXEC"] = TORCH_PYTHON
    return subprocess.run([TPRUN, *map(str, words)], env=environment, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)


def shared_memory():
    return set(os.listdir("/dev/shm"))


def final_loss(run):
    assert run.returncode == 0, run.stderr
    return re.search(r"final loss (\S+)", run.stdout).group(1)


@pytest.mark.parametrize("workers", [2, 4])
def test_a_ddp_script_trains(workers):
    run = tprun("--nproc-per-node", workers, SCRIPTS / "ddp.py", "--steps", 4)
    assert run.returncode == 0, run.stderr
    assert f"world {workers}" in run.stdout


def test_a_restart_in_the_middle_gives_the_undisturbed_loss_every_time(tmp_path):
    undisturbed = final_loss(tprun("--nproc-per-node=2", SCRIPTS / "ddp.py"))
    for attempt in range(RESTARTS):
        run = tprun("--nproc-per-node=2", "--max-restarts=1", SCRIPTS / "ddp.py", "--checkpoint",
                    tmp_path / f"run{attempt}.pt", "--kill-at", 5)
        assert final_loss(run) == undisturbed
        assert "attempt 1" in run.stdout


def test_a_script_that_raises_is_named_as_the_cause():
    run = tprun("--nproc-per-node=2", SCRIPTS / "ddp.py", "--raise-at", 2)
    assert run.returncode == 1
    assert re.search(r"tprun: .*failed: rank 1 ", run.stderr)
    assert "ValueError: the data of step 2 is broken" in run.stderr


def test_loaders_processes_and_a_store_of_its_own_work_and_nothing_stays_in_shared_memory():
    before = shared_memory()
    run = tprun("--nproc-per-node=2", SCRIPTS / "loaders.py")
    assert run.returncode == 0, run.stderr
    assert "loaders ok" in run.stdout
    assert shared_memory() <= before


def two_nodes(*words):
    """Two agents on this machine; gives what they print, as one text each."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PET_", "TPRUN_", "TORCHELASTIC_"))}
    environment["PYTHON_EXEC"] = TORCH_PYTHON
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    rendezvous = {
        "c10d": ["--rdzv-backend=c10d", f"--rdzv-id=job{port}", f"--rdzv-endpoint=127.0.0.1:{port}"],
        "static": ["--master-addr=127.0.0.1", f"--master-port={port}"],
    }
    backend, *rest = words
    nodes = [subprocess.Popen([TPRUN, "--nnodes=2", "--nproc-per-node=2", f"--node-rank={index}", *rendezvous[backend],
                               *map(str, rest)], env=environment, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for index in (0, 1)]
    try:
        texts = [node.communicate(timeout=300)[0] for node in nodes]
    finally:
        for node in nodes:
            if node.poll() is None:
                node.terminate()
                node.communicate()
    assert [node.returncode for node in nodes] == [0, 0], texts
    return texts


@pytest.mark.parametrize("backend", ["c10d", "static"])
def test_a_script_trains_over_two_nodes_and_resumes_on_both_when_a_worker_is_killed(tmp_path, backend):
    texts = two_nodes(backend, "--max-restarts=1", SCRIPTS / "ddp.py", "--checkpoint", tmp_path / "run.pt",
                      "--kill-at", 3)
    assert sum("attempt 1 world 4" in text for text in texts) == 1
    assert all("rank 1 on" in text and "restart 1 of 1" in text for text in texts)
