"""Training under tprun: what a killed worker costs (time, and nothing else), and who is named when one fails."""

import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

from harness import BIN, TESTS_BIN, TPSTORE, clean_environment, finish, running, tprun, wait_for

TRAIN = BIN / "train"
FAILING_WORKER = TESTS_BIN / "failing_worker"
SHORT = ("--steps=600", "--print-every=10", "--checkpoint-every=20", "--hidden=32", "--batch-size=8")
CULPRIT_ROUNDS = int(os.environ.get("TP_CULPRIT_ROUNDS", "20"))
"""100 in the full run: the culprit is named each time, or the test fails."""


def final_line(output):
    lines = re.findall(r"^final step=\d+ loss=[\d.]+$", output, re.MULTILINE)
    assert len(lines) == 1, output
    return lines[0]


def workers_of(mark):
    """Pids of this run's workers by rank, from their environments."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if mark.encode() in environment and words[0].endswith(b"train"):
            rank = next(value for value in environment if value.startswith(b"RANK="))
            found[int(rank[5:])] = int(entry.name)
    return found


def leftovers():
    return set(pathlib.Path("/tmp").glob(f"train-{os.getuid()}-*"))


@pytest.fixture(scope="module")
def undisturbed():
    result = tprun("--nproc-per-node=4", TRAIN, *SHORT)
    assert result.returncode == 0, result.stderr
    return final_line(result.stdout)


def test_training_learns_and_says_so(undisturbed):
    result = tprun("--nproc-per-node=4", TRAIN, *SHORT)
    losses = [float(loss) for loss in re.findall(r"^step \d+ loss ([\d.]+) tokens/s \d+$", result.stdout, re.MULTILINE)]
    assert len(losses) == 60
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])
    assert final_line(result.stdout) == undisturbed


def test_ranks_together_learn_what_one_process_learns_with_their_whole_batch(undisturbed):
    alone = tprun("--nproc-per-node=1", TRAIN, *SHORT[:-1], "--batch-size=32")
    together = float(undisturbed.split("loss=")[1])
    assert float(final_line(alone.stdout).split("loss=")[1]) == pytest.approx(together, rel=1e-3)


@pytest.mark.parametrize("victim", [0, 3])
def test_a_worker_killed_in_the_middle_costs_no_digit_of_the_final_loss(undisturbed, tmp_path, victim):
    mark = f"TRAIN_TEST_MARK={tmp_path}"
    name, value = mark.split("=", 1)
    before = leftovers()
    with running("--nproc-per-node=4", "--max-restarts=3", TRAIN, *SHORT, **{name: value}) as process:
        read = [process.stdout.readline()]
        workers = workers_of(mark)  # Looked for early: the second half of the steps takes no longer than a look.
        while not any(line.startswith("step 150 ") for line in read):
            read.append(process.stdout.readline())
            assert read[-1], process.stderr.read()
        os.kill(workers[victim], signal.SIGKILL)
        code, out, err = finish(process)
    assert code == 0, err
    output = "".join(read) + out
    assert final_line(output) == undisturbed
    continued = re.findall(r"^continue from step (\d+)$", output, re.MULTILINE)
    assert len(continued) == 1 and int(continued[0]) >= 140
    assert leftovers() <= before


def test_a_run_goes_on_from_the_checkpoints_of_an_earlier_one(undisturbed, tmp_path):
    words = ("--nproc-per-node=4", TRAIN, *SHORT, f"--checkpoint-dir={tmp_path}/ck")
    first = tprun(*words, "--steps=140")
    assert first.returncode == 0, first.stderr
    second = tprun(*words)
    assert "continue from step 140" in second.stdout
    assert final_line(second.stdout) == undisturbed


def test_a_run_without_checkpoints_does_not_go_on_from_a_stranger(undisturbed):
    for _ in range(2):
        result = tprun("--nproc-per-node=2", "--max-restarts=3", TRAIN, *SHORT)
        assert "continue" not in result.stdout


def test_another_model_is_not_mixed_with_old_checkpoints(tmp_path):
    words = ("--nproc-per-node=2", TRAIN, "--steps=20", f"--checkpoint-dir={tmp_path}/ck")
    assert tprun(*words, "--hidden=32").returncode == 0
    result = tprun(*words, "--hidden=16")
    assert result.returncode == 1
    assert "hidden=32, not 16" in result.stderr


def failure_report(tmp_path, *words):
    report = tmp_path / "report.json"
    result = tprun("--nproc-per-node=4", f"--report={report}", *words)
    return result, json.loads(report.read_text())


def test_the_culprit_is_named_every_time_though_its_victims_die_first(tmp_path):
    for attempt in range(CULPRIT_ROUNDS):
        culprit = attempt % 4
        result, report = failure_report(tmp_path, FAILING_WORKER, f"collective:{culprit}")
        cause = report["root_cause"]
        assert cause["rank"] == culprit, (attempt, result.stderr)
        assert "the culprit throws" in result.stderr


def test_a_crash_is_reported_with_its_native_stack(tmp_path):
    result = tprun("--nproc-per-node=1", FAILING_WORKER, "segv")
    assert result.returncode == 128 + signal.SIGSEGV
    assert "SIGSEGV" in result.stderr and "run(" in result.stderr


def test_a_rank_that_never_comes_is_named_by_all_others(tmp_path):
    with running("serve", "--port=0", program=TPSTORE) as server:
        # The line says where it listens.
        port = re.search(r":(\d+)", server.stdout.readline() or server.stderr.readline()).group(1)
        ranks = [subprocess.Popen([str(FAILING_WORKER), "join:1500"], stderr=subprocess.PIPE, text=True,
                                  env=clean_environment(RANK=rank, WORLD_SIZE=4, MASTER_ADDR="127.0.0.1",
                                                        MASTER_PORT=port, TORCHELASTIC_USE_AGENT_STORE="True"))
                 for rank in (0, 1, 3)]
        for process in ranks:
            _, err = process.communicate(timeout=60)
            assert process.returncode == 1
            assert "rank 2 never came" in err
