"""tprun in a real SLURM: one world from srun alone, torchrun's job scripts unchanged, scancel, requeue."""
import pathlib
import re

import pytest
import slurm_cluster
from harness import BIN, TPRUN, alive_with, script, wait_for

LACKS = slurm_cluster.missing()
pytestmark = pytest.mark.skipif(bool(LACKS), reason="not installed: " + ", ".join(LACKS))
CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs" / "slurm"
RANKS = 'echo "rank $RANK of $WORLD_SIZE"'
FOUR = [f"rank {rank} of 4" for rank in range(4)]


@pytest.fixture(scope="module")
def slurm():
    with slurm_cluster.cluster(2) as one:
        yield one


def path_with_tprun():
    return f"{BIN}:/usr/bin:/bin:/usr/sbin:/sbin"


def test_srun_makes_one_world_of_its_nodes_with_no_other_flag(slurm):
    done = slurm.run("srun", "-N2", TPRUN, "--nproc-per-node=2", "sh", "-c", RANKS)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")[:-1]) == FOUR
    assert "step 0: node 0 of 2 (n1 n2)" in done.stderr


def test_several_tasks_on_a_node_are_refused_once(slurm):
    done = slurm.run("srun", "-N2", "--ntasks-per-node=2", TPRUN, "true")
    assert done.returncode == 2
    assert done.stderr.count("tprun: ") == 1
    assert "give srun --ntasks-per-node=1" in done.stderr


@pytest.mark.parametrize("options", [
    "--nnodes=2 --rdzv_id=$SLURM_JOB_ID --rdzv_backend=c10d --rdzv_endpoint=$MASTER_ADDR:29512",
    "--nnodes=2 --node_rank=$SLURM_NODEID --master_addr=$MASTER_ADDR --master_port=29513"])
def test_a_job_script_written_for_torchrun_runs_unchanged(slurm, tmp_path, options):
    job = script(tmp_path, "job.sh", f"""\
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
srun bash -c '{TPRUN} --nproc_per_node=2 {options} sh -c "{RANKS.replace('"', chr(92) + '"').replace('$', chr(92) + '$')}"'
""", "/bin/bash")
    number = slurm.submit(job, "-N2", "-o", tmp_path / "out")
    assert slurm.wait_for_end(number) == "COMPLETED", (tmp_path / "out").read_text()
    assert sorted(line for line in (tmp_path / "out").read_text().splitlines() if line.startswith("rank ")) == FOUR


def test_a_batch_script_without_srun_runs_on_one_node_and_says_so(slurm, tmp_path):
    job = script(tmp_path, "job.sh", f"{TPRUN} sh -c '{RANKS}'\n")
    number = slurm.submit(job, "-N2", "-o", tmp_path / "out")
    assert slurm.wait_for_end(number) == "COMPLETED"
    assert "rank 0 of 1" in (tmp_path / "out").read_text()
    assert "has 2 nodes but tprun was started on one" in (tmp_path / "out").read_text()


def test_scancel_leaves_nothing(slurm, tmp_path):
    worker = f"touch {tmp_path}/up.$RANK; exec sleep 1000"
    job = script(tmp_path, "job.sh", f"export MARK=tp-{tmp_path.name}\nsrun {TPRUN} --nproc-per-node=2 sh -c '{worker}'\n")
    number = slurm.submit(job, "-N2", "-o", tmp_path / "out")
    wait_for(lambda: len(list(tmp_path.glob("up.*"))) == 4, "four workers to run")
    slurm.run("scancel", number)
    slurm.wait_for_end(number)
    wait_for(lambda: not alive_with(f"MARK=tp-{tmp_path.name}"), "every process of the job to be gone")


def test_a_requeued_job_goes_on_from_its_checkpoint(slurm, tmp_path):
    number = slurm.submit(CONFIGS / "elastic_requeue.sbatch", "-N2", "-o", tmp_path / "out", "--open-mode=append",
                          cwd=tmp_path, PATH=path_with_tprun(), TRAIN="train --steps 3000 --checkpoint-every 50")
    wait_for(lambda: any(tmp_path.glob("checkpoints/*")), "a checkpoint")
    slurm.run("scontrol", "requeue", number)
    # Once the last process is gone SLURM puts the job back, to wait for two minutes unless it is told not to.
    wait_for(lambda: slurm.facts(number).get("Reason") == "BeginTime", "the job to be back in the queue")
    done = slurm.run("scontrol", "update", f"JobId={number}", "StartTime=now+1")
    assert done.returncode == 0, done.stderr
    wait_for(lambda: "restart 1" in (tmp_path / "out").read_text(), "the second start")
    assert slurm.wait_for_end(number) == "COMPLETED", (tmp_path / "out").read_text()
    again = (tmp_path / "out").read_text().split("restart 1")[1]
    continued = re.search(r"^continue from step (\d+)", again, re.MULTILINE)
    assert continued and int(continued[1]) >= 50, again
    assert "final step=3000" in again
