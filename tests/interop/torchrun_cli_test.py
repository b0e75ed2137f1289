"""The same command line under a living torchrun and under tprun: workers must see the same words and variables.

Needs TP_TORCH_PYTHON, a Python with torch. A start of torchrun takes about two seconds, so cases are few and dense.
"""

import json
import os
import pathlib
import socket
import subprocess

import pytest

TORCH_PYTHON = os.environ.get("TP_TORCH_PYTHON")
BIN = pathlib.Path(os.environ.get("TP_BIN_DIR", "build/bin")).resolve()

pytestmark = pytest.mark.skipif(not TORCH_PYTHON, reason="TP_TORCH_PYTHON names no Python with torch")

# Writes what a worker sees into a file of its own.
SHOW = """
import json, os, sys, uuid
with open(os.path.join(os.environ["SHOW_FOLDER"], uuid.uuid4().hex), "w") as file:
    json.dump({"argv": sys.argv, "executable": sys.executable, "unbuffered": sys.stdout.write_through,
               "env": dict(os.environ)}, file)
"""

# Differ by their nature: addresses, ports, random names, paths.
OWN = {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE", "TPRUN_WORKER", "SHOW_FOLDER",
       "LC_CTYPE"}
# Set by torchrun's own imports, not by its launcher.
IMPORTED = {"KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "_"}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def run(launcher, words, folder, extra):
    shown = folder / ("shown-" + pathlib.Path(launcher[-1]).name)
    shown.mkdir()
    names = ("PET_", "TPRUN_", "TORCHELASTIC_", "PYTHON_EXEC", "OMP_", "CUDA_", "HIP_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    environment.update(SHOW_FOLDER=str(shown), PYTHON_EXEC=TORCH_PYTHON, **extra)
    result = subprocess.run([*launcher, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    workers = [json.loads(file.read_text()) for file in shown.iterdir()]
    return sorted(workers, key=lambda worker: int(worker["env"]["RANK"]))


def differences(ours, theirs):
    """What two workers see differently, as {name: (under tprun, under torchrun)}."""
    ours, theirs = ({**worker.pop("env"), **worker} for worker in (dict(ours), dict(theirs)))
    names = (ours.keys() | theirs.keys()) - OWN - IMPORTED
    return {name: (ours.get(name), theirs.get(name)) for name in names if ours.get(name) != theirs.get(name)}


CASES = {
    "every word behind the program is its own":
        (["--nproc-per-node", "2", "show.py", "--nnodes", "3", "-m", "--help", "@file", "", "-r", "3", "--", "x"], {}),
    "a separator before the program": (["--", "show.py", "--", "--foo", "--"], {}),
    "a separator behind the program": (["show.py", "--", "--foo", "--", "bar"], {}),
    "the local rank in the words":
        (["--nproc_per_node=2", "--role=trainer", "--max_restarts=2", "show.py", "r${local_rank}", "$local_rank",
          "$${local_rank}", "$HOME ${HOME} $", "${local_rank_x}"], {}),
    "a module, short options and an abbreviation":
        (["-m", "--ro", "x", "-r0", "-t", "0", "--nn", "1:1", "show", "a b"], {}),
    "no python": (["--no-python", TORCH_PYTHON or "", "show.py", "--no-python"], {}),
    "defaults from the environment":
        (["show.py"], {"PET_NPROC_PER_NODE": "2", "PET_ROLE": "", "PET_MAX_RESTARTS": "5", "PET_R": "3",
                       "PET_STANDALONE": "0", "OMP_NUM_THREADS": "3", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}),
    "one device for each worker":
        (["--virtual-local-rank", "--nproc-per-node=2", "--signals-to-handle=SIGTERM", "show.py"],
         {"CUDA_VISIBLE_DEVICES": "5, 7"}),
    "a store of the workers' own":
        (["--standalone", "--nproc-per-node=2", "show.py"], {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}),
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "show.py").write_text(SHOW)
    return tmp_path


@pytest.mark.parametrize("name", CASES)
def test_workers_see_the_same_under_torchrun_and_tprun(name, folder):
    words, extra = CASES[name]
    theirs = run([TORCH_PYTHON, "-m", "torch.distributed.run"], words, folder, extra)
    ours = run([str(BIN / "tprun")], words, folder, extra)
    assert len(ours) == len(theirs)
    for our_worker, their_worker in zip(ours, theirs):
        assert differences(our_worker, their_worker) == {}


def test_a_given_address_port_and_run_id_reach_the_workers_as_text(folder):
    words = ["--master-addr=localhost", "--master-port=" + free_port(), "--rdzv-id=job7", "show.py"]
    theirs = run([TORCH_PYTHON, "-m", "torch.distributed.run"], words, folder, {})[0]["env"]
    ours = run([str(BIN / "tprun")], words, folder, {})[0]["env"]
    for variable in ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE"):
        assert ours[variable] == theirs[variable]


def test_the_legacy_launcher_gives_the_same_words(folder):
    (folder / "tplaunch").symlink_to(BIN / "tprun")
    words = ["--nproc-per-node=2", "show.py", "a"]
    theirs = run([TORCH_PYTHON, "-W", "ignore", "-m", "torch.distributed.launch"], words, folder, {})
    ours = run([str(folder / "tplaunch")], words, folder, {})
    assert [worker["argv"] for worker in ours] == [worker["argv"] for worker in theirs]
    assert [worker["argv"][1:] for worker in ours] == [["--local-rank=0", "a"], ["--local-rank=1", "a"]]
