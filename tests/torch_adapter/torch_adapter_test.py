"""libtorch modules under DistributedDataParallel. Skipped, with the reason, where there was no libtorch to build with."""

import pathlib
import re
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from harness import TESTS_BIN, tprun  # noqa: E402

TRAIN = TESTS_BIN / "torch_train"

pytestmark = pytest.mark.skipif(
    not TRAIN.exists(),
    reason="torch_train was not built: no libtorch (set TP_TORCH_PYTHON or -DTP_LIBTORCH_DIR and configure again)")


def final_loss(*words, ranks):
    result = tprun(f"--nproc-per-node={ranks}", TRAIN, *words)
    assert result.returncode == 0, result.stderr
    return float(re.search(r"^final loss=([\d.]+)$", result.stdout, re.MULTILINE).group(1))


@pytest.fixture(scope="module")
def alone():
    return final_loss("plain", 64, ranks=1)


def test_two_ranks_learn_what_one_process_learns_with_both_batches(alone):
    assert final_loss("plain", 32, ranks=2) == pytest.approx(alone, rel=1e-3)


def test_accumulated_gradients_are_reduced_once(alone):
    assert final_loss("accumulate", 32, ranks=2) == pytest.approx(alone, rel=1e-3)


def test_a_layer_that_one_rank_alone_uses_is_trained_on_all():
    assert final_loss("unused", 32, ranks=2) > 0


def test_a_gloo_that_is_torchs_own_is_refused_instead_of_called():
    libraries = subprocess.run(["ldd", str(TRAIN)], capture_output=True, text=True, check=True).stdout
    torch_cpu = re.search(r"=> (\S*libtorch_cpu\S*)", libraries).group(1)
    result = tprun("--nproc-per-node=1", "env", f"LD_PRELOAD={torch_cpu}", TRAIN)
    assert result.returncode == 1
    assert "link libgloo before libtorch" in result.stderr
