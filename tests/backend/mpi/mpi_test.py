"""The mpi backend under the real mpirun, and its refusal under tprun."""
import os
import subprocess

import pytest

BIN = os.environ["TP_BIN_DIR"]
RANK = os.path.join(os.environ["TP_TESTS_BIN_DIR"], "mpi_rank")


def run(*words, timeout=240, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMIX_"))}
    return subprocess.run(words, timeout=timeout, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**clean, "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **environment})


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_every_operation_works_under_mpirun(size):
    done = run("mpirun", "--oversubscribe", "-n", str(size), RANK)
    assert done.returncode == 0, done.stdout
    assert "all is well on the mpi backend" in done.stdout


def test_under_tprun_the_program_is_told_what_to_type():
    done = run(os.path.join(BIN, "tprun"), "--nproc-per-node=2", RANK)
    assert done.returncode != 0
    assert "type: mpirun -n 2 ./program" in done.stdout, done.stdout


def test_alone_it_is_a_world_of_one():
    done = run(RANK)
    assert done.returncode == 0 and "all is well" in done.stdout, done.stdout


def test_the_documented_capability_table_is_what_the_command_prints():
    text = open(os.path.join(os.path.dirname(__file__), "../../../docs/runtime.md")).read()
    assert run(os.path.join(BIN, "tpbackends")).stdout in text
