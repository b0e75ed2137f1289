"""Unmodified PyTorch scripts under tprun: they train, restart, fail with a good report, and leave nothing behind."""
import os
import pathlib
import re
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
