"""Jobs of many nodes: they find each other, fail together, and end together."""

import os
import re
import signal
import time

import pytest

from harness import PYTHON, alive_with, script, wait_for
from nodes import c10d_job, static_job

PER_NODE = "--nproc-per-node=2"
SHOW = "echo rank $RANK of $WORLD_SIZE group $GROUP_RANK local $LOCAL_RANK at $MASTER_ADDR:$MASTER_PORT"


def ranks_of(nodes):
    """The ranks that the nodes' workers have shown, each once."""
    return sorted(int(rank) for node in nodes for rank in re.findall(r"rank (\d+) of", node.text))


def test_static_nodes_meet_at_the_port_that_was_given_and_have_the_ranks_that_were_given(tmp_path):
    with static_job(tmp_path, 3, PER_NODE) as job:
        for rank in (2, 0, 1):
            job.start("sh", "-c", SHOW, words=[f"--node-rank={rank}"])
        assert job.ends() == [0, 0, 0]
        assert ranks_of(job.nodes) == list(range(6))
        for node, rank in zip(job.nodes, (2, 0, 1)):
            assert f"group {rank} local 1 at 127.0.0.1:{job.port}" in node.text


def test_c10d_nodes_meet_and_have_ranks_of_their_own(tmp_path):
    with c10d_job(tmp_path, 4, PER_NODE) as job:
        for _ in range(4):
            job.start("sh", "-c", SHOW)
        assert job.ends() == [0, 0, 0, 0]
        assert ranks_of(job.nodes) == list(range(8))
        assert len({re.search(r" at (\S+)", node.text).group(1) for node in job.nodes}) == 1


def test_nodes_may_have_different_numbers_of_workers(tmp_path):
    with c10d_job(tmp_path, 2) as job:
        job.start("sh", "-c", SHOW, words=["--nproc-per-node=1"])
        job.start("sh", "-c", SHOW, words=["--nproc-per-node=3"])
        assert job.ends() == [0, 0]
        assert ranks_of(job.nodes) == [0, 1, 2, 3]


def test_a_range_of_nodes_starts_with_those_that_came_when_the_last_call_is_over(tmp_path):
    with c10d_job(tmp_path, "1:4", conf="last_call_timeout=1") as job:
        job.start("sh", "-c", SHOW)
        job.start("sh", "-c", SHOW)
        assert job.ends() == [0, 0]
        assert ranks_of(job.nodes) == [0, 1]


def test_workers_meet_in_the_store_of_rank_0s_agent(tmp_path):
    worker = ("[ $RANK = 0 ] && {bin}/tpstore set k hello --endpoint $MASTER_ADDR:$MASTER_PORT; "
              "{bin}/tpstore wait k --endpoint $MASTER_ADDR:$MASTER_PORT && {bin}/tpstore get k --endpoint $MASTER_ADDR:$MASTER_PORT").format(bin=os.environ["TP_BIN_DIR"])
    with c10d_job(tmp_path, 2, PER_NODE) as job:
        job.start("sh", "-c", worker)
        job.start("sh", "-c", worker)
        assert job.ends() == [0, 0]
        assert sum(node.text.count("hello") for node in job.nodes) == 4


def test_a_failure_on_one_node_stops_all_and_every_node_names_the_same_cause(tmp_path):
    worker = script(tmp_path, "worker", """
import os, sys, time
if os.environ["RANK"] == "3":
    time.sleep(0.2)
    print("ValueError: no data", file=sys.stderr)
    sys.exit(9)
time.sleep(1000)
""", PYTHON)
    with c10d_job(tmp_path, 2, PER_NODE) as job:
        job.start(worker)
        job.start(worker)
        assert job.ends() == [9, 9]
        first, second = (re.search(r"failed: (.*)", node.text).group(1) for node in job.nodes)
        assert first == second and first.startswith("rank 3 on ")
        assert all("ValueError: no data" in node.text for node in job.nodes)
        assert job.report(0)["root_cause"] == job.report(1)["root_cause"]
        assert len(job.report(0)["failures"]) == 4


def test_all_nodes_restart_together_and_the_restart_is_counted_once(tmp_path):
    worker = script(tmp_path, "worker", """
echo rank $RANK of $WORLD_SIZE
touch seen.$TORCHELASTIC_RESTART_COUNT.$RANK
for rank in 0 1 2 3; do while [ ! -e seen.$TORCHELASTIC_RESTART_COUNT.$rank ]; do sleep 0.01; done; done
[ $TORCHELASTIC_RESTART_COUNT = 2 ] && exit 0
[ $RANK = $TORCHELASTIC_RESTART_COUNT ] && exit 1
sleep 1000
""")
    with c10d_job(tmp_path, 2, PER_NODE, "--max-restarts=2") as job:
        job.start(worker)
        job.start(worker)
        assert job.ends() == [0, 0]
        assert [job.report(index)["restarts"] for index in (0, 1)] == [2, 2]
        assert job.report(0)["attempts"][1]["restart"]["rendezvous_ms"] > 0


def test_nobody_waits_when_all_is_done(tmp_path):
    """The last worker's end is the end of all, and nobody finds the store gone."""
    with c10d_job(tmp_path, 3) as job:
        for _ in range(3):
            job.start("sh", "-c", "sleep 0.$RANK; date +%s.%N > ended.$RANK")
        assert job.ends() == [0, 0, 0]
        assert all("store" not in node.text.replace("means this host alone", "") for node in job.nodes), job.nodes[0].text


def test_ctrl_c_while_waiting_returns_at_once(tmp_path):
    with c10d_job(tmp_path, 2) as job:
        host = job.start("true")
        host.wait_for_text("1 of 2 nodes are here")
        begin = time.monotonic()
        host.process.send_signal(signal.SIGINT)
        assert host.end() == -signal.SIGINT
        assert time.monotonic() - begin < 5


def test_who_waits_in_vain_says_who_is_there_and_ends_with_75(tmp_path):
    with c10d_job(tmp_path, 3, conf="join_timeout=2") as job:
        job.start("true")
        job.start("true")
        assert job.ends() == [75, 75]
        for node in job.nodes:
            assert re.search(r"waited 2 s at 127\.0\.0\.1:\d+: 2 of 3 nodes are here", node.text), node.text


def test_a_node_that_never_finds_the_store_says_what_it_met_and_ends_with_75(tmp_path):
    with static_job(tmp_path, 2) as job:
        node = job.start("true", words=["--node-rank=1", "--rdzv-conf=join_timeout=1"])
        assert node.end() == 75
        assert re.search(rf"waited 1(\.\d)? s.*127\.0\.0\.1:{job.port}", node.text), node.text


def test_a_stop_signal_to_one_node_is_a_clean_leave_and_the_others_go_on(tmp_path):
    worker = script(tmp_path, "worker", """
echo rank $RANK of $WORLD_SIZE attempt $TORCHELASTIC_RESTART_COUNT
trap 'exit 0' TERM
[ $WORLD_SIZE = 1 ] && exit 0
while :; do sleep 0.02; done
""")
    with c10d_job(tmp_path, "1:2", conf="last_call_timeout=60") as job:
        host = job.start(worker)
        host.wait_for_text("nodes are here")
        member = job.start(worker)
        for node in job.nodes:
            node.wait_for_text("of 2 attempt 0")
        member.process.send_signal(signal.SIGTERM)
        assert member.end() == -signal.SIGTERM
        assert host.end() == 0
        assert "rank 0 of 1 attempt 0" in host.text


FOREVER = "echo rank $RANK of $WORLD_SIZE attempt $TORCHELASTIC_RESTART_COUNT pid $$; [ -e done ] && exit 0; exec sleep 1000"


def test_when_an_agent_is_killed_the_others_go_on_with_fewer_and_nothing_of_it_stays(tmp_path):
    mark = f"MARK_{os.getpid()}_{time.monotonic_ns()}"
    with c10d_job(tmp_path, "1:2", conf="last_call_timeout=60", **{mark: 1}) as job:
        host = job.start("sh", "-c", FOREVER)
        host.wait_for_text("nodes are here")
        member = job.start("sh", "-c", FOREVER)
        for node in job.nodes:
            node.wait_for_text("of 2 attempt 0")
        (tmp_path / "done").touch()  # before there is a next round, whose worker looks for it once
        os.kill(member.agent_pid(), signal.SIGKILL)
        assert member.end() == 70
        host.wait_for_text("rank 0 of 1 attempt 0")
        assert host.end() == 0
        wait_for(lambda: not alive_with(mark), "every process of the job to end")


LONE_HOLDER = """
exec 9> holder_of_rank_$RANK
flock -n 9 || echo TWO WORKERS HOLD RANK $RANK
echo rank $RANK of $WORLD_SIZE attempt $TORCHELASTIC_RESTART_COUNT
[ -e done ] && exit 0
while :; do sleep 0.05; done
"""
"""A worker that tells when another live one has its rank."""


@pytest.mark.parametrize("frozen", ["host", "member"])
def test_a_frozen_agents_workers_are_gone_before_the_others_start_again_and_it_rejoins(tmp_path, frozen):
    worker = script(tmp_path, "worker", LONE_HOLDER)
    with c10d_job(tmp_path, "2:2") as job:
        host = job.start(worker)
        host.wait_for_text("nodes are here")
        member = job.start(worker)
        for node in job.nodes:
            node.wait_for_text("of 2 attempt 0")
        victim = host if frozen == "host" else member
        os.kill(victim.agent_pid(), signal.SIGSTOP)
        victim.wait_for_text("was frozen until its lease was over")
        (tmp_path / "done").touch()
        assert job.ends() == [0, 0]
        for node in job.nodes:
            assert node.text.count("of 2 attempt 0") == 2, node.text
            assert "TWO WORKERS" not in node.text


def test_a_late_node_below_the_maximum_is_taken_in_for_free_and_one_beyond_it_waits(tmp_path):
    with c10d_job(tmp_path, "1:2", conf="last_call_timeout=1") as job:
        job.start("sh", "-c", FOREVER).wait_for_text("rank 0 of 1 attempt 0")
        job.start("sh", "-c", FOREVER)
        for node in job.nodes:
            node.wait_for_text("of 2 attempt 0")
        spare = job.start("sh", "-c", FOREVER)
        spare.wait_for_text("waiting: the world is full")
        # The spare takes over when a member is lost.
        os.kill(job.nodes[1].agent_pid(), signal.SIGKILL)
        assert job.nodes[1].end() == 70
        spare.wait_for_text("of 2 attempt 0")
