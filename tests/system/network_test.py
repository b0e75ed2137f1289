"""Many nodes on a real network that breaks: links are cut, hosts are lost, frozen and added. Whatever happens, no two live
workers ever hold one rank (each holds a lock of its rank's file for as long as it lives), and nothing is left on any host."""

import os
import pathlib
import re
import signal
import time

import pytest

from harness import BIN, script, wait_for
from network_hosts import Network, can_make_hosts

pytestmark = pytest.mark.skipif(not can_make_hosts(), reason="needs root and namespaces, to make hosts of its own")

KEEP_ALIVE = 3.0
CONF = f"keep_alive_interval=1,keep_alive_max_attempt={int(KEEP_ALIVE)},last_call_timeout=1,join_timeout=60"
PORT = 29400

WORKER = """
exec 9>>"$JOB/rank_$RANK.lock"
flock -n 9 || { echo "$RANK on $(hostname)" >"$JOB/conflict"; exit 77; }
echo "$(hostname) $RANK $WORLD_SIZE $GROUP_RANK $TORCHELASTIC_RESTART_COUNT $MASTER_ADDR $MASTER_PORT" >>"$JOB/starts"
while [ ! -e "$JOB/done" ]; do
  [ -e "$JOB/fail_$(hostname)" ] && mv "$JOB/fail_$(hostname)" "$JOB/failed" && exit 7
  sleep 0.05
done
"""


class World:
    """A job over the hosts of a network: one tprun on each, workers that live until told to end."""

    def __init__(self, net, folder, nnodes, endpoint="n1", conf=CONF, nproc=2, extra=()):
        self.net = net
        self.folder = folder
        self.options = [f"--nnodes={nnodes}", f"--nproc-per-node={nproc}", "--rdzv-backend=c10d", "--rdzv-id=job7",
                        f"--rdzv-endpoint={endpoint}", f"--rdzv-conf={conf}", "--max-restarts=3", "--shutdown-timeout=5",
                        *extra]
        self.program = script(folder, "worker", WORKER)
        self.nproc = nproc
        self.jobs = {}

    def start(self, *hosts):
        for host in hosts or self.net.hosts:
            self.jobs[host.name] = host.start(*self.options, self.program, cwd=self.folder, JOB=self.folder,
                                              LOGLEVEL="INFO")
        return self

    def starts(self):
        """Every start of a worker so far: (host, rank, world size, node, restarts, master address, master port)."""
        path = self.folder / "starts"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def wait_for_world(self, hosts, since=0, timeout=60):
        """Waits until a whole world of exactly these hosts has started after the first `since` starts; returns those."""
        names = {host.name for host in hosts}
        size = str(len(names) * self.nproc)

        def whole():
            new = [start for start in self.starts()[since:] if start[2] == size and start[0] in names]
            ranks = {start[1] for start in new}
            return new if len(ranks) == int(size) and {start[0] for start in new} == names else None
        def someone_gave_up():
            return next((name for name in names if not self.jobs[name].is_running()), None)
        try:
            found = wait_for(lambda: whole() or someone_gave_up(), f"a world of {sorted(names)}", timeout)
            assert not isinstance(found, str), f"{found} has ended"
        except AssertionError as why:
            raise AssertionError(f"{why}\n{self.describe()}") from None
        return found

    def describe(self):
        """All that is known, for a test that fails; ends everything."""
        text = "starts:\n" + "\n".join(" ".join(start) for start in self.starts())
        for name, job in self.jobs.items():
            job.send_signal(signal.SIGCONT)
            job.send_signal(signal.SIGTERM)
            text += f"\n{name}: {job.finish()}"
        return text

    def end(self, *hosts, code=0):
        """Lets the workers end, and checks that everything ends well, everywhere."""
        (self.folder / "done").touch()
        for host in hosts or self.net.hosts:
            got, out, err = self.jobs[host.name].finish()
            assert got == code, f"{host.name}: exit code {got}\n{out}{err}"
        self.check()

    def check(self):
        conflict = self.folder / "conflict"
        assert not conflict.exists(), f"two live workers held rank {conflict.read_text()}"
        for host in self.net.hosts:
            if self.jobs.get(host.name) and not self.jobs[host.name].is_running():
                wait_for(lambda here=host: not here.processes(), f"nothing to be left on {host.name}", 10)
                assert not host.has_power or host.shared_memory() == [], host.name


@pytest.fixture(name="net")
def make_network(request):
    with Network(getattr(request, "param", 3)) as net:
        yield net


@pytest.mark.parametrize("net", [2, 4, 8], indirect=True)
def test_a_model_is_trained_across_hosts(net, tmp_path):
    jobs = [host.start(f"--nnodes={len(net.hosts)}", "--nproc-per-node=1", "--rdzv-backend=c10d", "--rdzv-endpoint=n1",
                       BIN / "train", "--steps=20", cwd=tmp_path) for host in net.hosts]
    ends = [job.finish(180) for job in jobs]
    assert [code for code, _, _ in ends] == [0] * len(jobs), ends
    finals = [re.findall(r"final step=20 loss=\S+", out) for _, out, _ in ends]
    assert sum(map(len, finals)) == 1, finals  # rank 0's alone
    for host in net.hosts:
        wait_for(lambda here=host: not here.processes(), f"nothing to be left on {host.name}", 10)


def test_the_master_is_reachable_though_a_host_calls_itself_127_0_1_1(net, tmp_path):
    """n2's own name is 127.0.1.1 in its hosts file, as Debian has it; it hosts the store, and nobody is told of that."""
    world = World(net, tmp_path, nnodes=3, endpoint="n2").start()
    starts = world.wait_for_world(net.hosts)
    assert {start[5] for start in starts} == {"10.77.0.2"}
    assert next(start[0] for start in starts if start[1] == "0") == "n2"
    world.end()


def test_a_failure_on_one_host_restarts_all_and_counts_once(net, tmp_path):
    world = World(net, tmp_path, nnodes=3).start()
    world.wait_for_world(net.hosts)
    (tmp_path / "fail_n3").touch()
    again = world.wait_for_world(net.hosts, since=6)
    assert {start[4] for start in again} == {"1"}
    world.end()


def test_a_host_whose_link_is_cut_is_left_behind_and_comes_back(net, tmp_path):
    world = World(net, tmp_path, nnodes="2:3").start()
    world.wait_for_world(net.hosts)
    net.cut(net.hosts[2])
    world.wait_for_world(net.hosts[:2], since=6)
    seen = len(world.starts())
    net.heal()
    again = world.wait_for_world(net.hosts, since=seen)
    assert {start[4] for start in again} == {"0"}  # a loss costs no restart
    world.end()


def test_a_killed_agent_is_told_of_by_its_guardian_and_the_others_go_on(net, tmp_path):
    world = World(net, tmp_path, nnodes="2:3", conf="keep_alive_interval=100,last_call_timeout=1").start()
    world.wait_for_world(net.hosts)
    os.kill(world.jobs["n3"].agent(), signal.SIGKILL)
    world.wait_for_world(net.hosts[:2], since=6, timeout=30)  # long before its keep-alive of 300 s
    world.end(*net.hosts[:2])


def test_the_workers_of_a_frozen_agent_die_before_others_take_their_ranks(net, tmp_path):
    world = World(net, tmp_path, nnodes="2:3").start()
    world.wait_for_world(net.hosts)
    os.kill(world.jobs["n3"].agent(), signal.SIGSTOP)
    world.wait_for_world(net.hosts, since=6)  # its guardian has started another agent, perhaps after a world of two
    world.end()


def test_a_host_that_loses_its_power_is_replaced_by_one_that_comes_later(net, tmp_path):
    world = World(net, tmp_path, nnodes=3).start()
    world.wait_for_world(net.hosts)
    net.hosts[2].die()
    late = net.add_host()
    world.start(late)
    members = [*net.hosts[:2], late]
    world.wait_for_world(members, since=6)
    world.end(*members)


def test_when_the_stores_host_dies_the_others_meet_at_the_next_endpoint(net, tmp_path):
    world = World(net, tmp_path, nnodes="2:3", endpoint="n1,n2,n3").start()
    world.wait_for_world(net.hosts)
    net.hosts[0].die()
    world.wait_for_world(net.hosts[1:], since=6)
    world.end(*net.hosts[1:])


@pytest.mark.parametrize("net", [5], indirect=True)
def test_of_a_network_in_two_only_the_larger_part_goes_on(net, tmp_path):
    """The store's host is in the smaller part: it must stop, and the larger part meets at the next endpoint."""
    world = World(net, tmp_path, nnodes="2:5", endpoint="n1,n3,n4").start()
    world.wait_for_world(net.hosts)
    smaller, larger = net.hosts[:2], net.hosts[2:]
    net.split(smaller)
    world.wait_for_world(larger, since=10)
    wait_for(lambda: not any("sleep" in pathlib.Path(f"/proc/{pid}/comm").read_text() for host in smaller
                             for pid in host.processes() if os.path.exists(f"/proc/{pid}")),
             "the workers of the smaller part to be gone", 30)
    seen = len(world.starts())
    net.heal()
    world.wait_for_world(net.hosts, since=seen)
    world.end()


@pytest.mark.parametrize("net", [4], indirect=True)
def test_a_late_host_is_taken_in_and_one_too_many_waits_as_a_spare(net, tmp_path):
    world = World(net, tmp_path, nnodes="2:3").start(*net.hosts[:2])
    world.wait_for_world(net.hosts[:2])
    world.start(net.hosts[2])
    world.wait_for_world(net.hosts[:3], since=4)
    seen = len(world.starts())
    world.start(net.hosts[3])
    world.jobs["n3"].send_signal(signal.SIGTERM)  # a clean leave
    world.wait_for_world([*net.hosts[:2], net.hosts[3]], since=seen)
    assert world.jobs["n3"].finish()[0] == -signal.SIGTERM
    world.end(*net.hosts[:2], net.hosts[3])


def test_a_port_held_by_a_stranger_is_named(net, tmp_path):
    holder = net.hosts[0].start("-c", "import socket; s = socket.create_server(('', 29400)); "
                                "open('ready', 'w').close()\nwhile True: s.accept()[0].sendall(b'SSH-2.0-x\\r\\n')",
                                program="/usr/bin/python3", cwd=tmp_path)
    wait_for((tmp_path / "ready").exists, "the stranger to listen")
    job = net.hosts[1].start("--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=n1", "true")
    code, _, err = job.finish()
    assert code == 75
    assert "n1:29400" in err and "not a store" in err
    holder.send_signal(signal.SIGKILL)
