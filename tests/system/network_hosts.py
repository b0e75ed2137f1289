"""Hosts on one machine, for tests of what crosses a network: each is a set of namespaces (network, names, mounts,
processes) with a link of its own to a switch. Links can be cut, the network can be split in two and healed, a host can
be frozen or lost. Needs root; nothing outlives close(), and nothing of it is seen from outside.

    with Network(3) as net:
        first = net.hosts[0].start("tprun", ...)
        net.cut(net.hosts[2])
"""

import contextlib
import os
import pathlib
import signal
import subprocess
import tempfile
import time

from harness import PATIENCE, TPRUN, clean_environment, wait_for


def can_make_hosts():
    """Whether this process may make namespaces and links."""
    if os.geteuid() != 0:
        return False
    probe = subprocess.run(["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--mount-proc", "ip", "link", "add",
                            "probe", "type", "bridge"], capture_output=True)
    return probe.returncode == 0


def _run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.stderr.strip()}"
    return done.stdout


def _children(pid):
    with contextlib.suppress(OSError):
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


class Job:
    """A program on a host. `pid` is its own pid as this process sees it, so that it can be sent signals."""

    def __init__(self, host, process):
        self.host = host
        self.process = process
        found = wait_for(lambda: _children(process.pid) or process.poll() is not None, "the program to be started")
        self.pid = found[0] if isinstance(found, list) else None

    def send_signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def agent(self):
        """Pid of the agent under this tprun."""
        return wait_for(lambda: next((pid for pid in _descendants(self.pid) if _name(pid) == "tp-agent"), None),
                        "the agent to be there")

    def is_running(self):
        return self.process.poll() is None

    def finish(self, timeout=PATIENCE):
        """Waits for the end; returns (exit code as the shell on the host sees it, stdout, stderr)."""
        out, err = self.process.communicate(timeout=timeout)
        return self.process.returncode, out, err


def _descendants(pid):
    found = []
    for child in _children(pid):
        found += [child, *_descendants(child)]
    return found


def _name(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


class Host:
    def __init__(self, network, name, address, hosts_text):
        self.network = network
        self.name = name
        self.address = address
        hosts_file = pathlib.Path(network.folder.name) / f"hosts_{name}"
        hosts_file.write_text(hosts_text)
        setup = (f"hostname {name} && mount --make-rprivate / && mount --bind {hosts_file} /etc/hosts && "
                 "mount -t tmpfs none /dev/shm && "
                 "ip link set lo up && echo ready && exec cat")  # which ends, and all with it, when we do
        self._unshare = subprocess.Popen(
            ["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", setup],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        assert self._unshare.stdout.readline() == "ready\n"
        self.first_process = _children(self._unshare.pid)[0]
        self._process_space = os.readlink(f"/proc/{self.first_process}/ns/pid")
        self.jobs = []
        self.has_power = True

    def start(self, *words, program=TPRUN, cwd=None, **environment):
        """tprun (or another program) on this host."""
        process = subprocess.Popen(
            ["nsenter", "-t", str(self.first_process), "-n", "-u", "-m", "-p", f"--wd={cwd or '/'}", str(program),
             *map(str, words)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=clean_environment(**environment), start_new_session=True)
        job = Job(self, process)
        self.jobs.append(job)
        return job

    def run(self, *words):
        """A command on this host, to its end; returns its output."""
        return _run("nsenter", "-t", self.first_process, "-n", "-u", "-m", "-p", *words)

    def processes(self):
        """Pids of everything that lives here but the first process; zombies do not."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == self.first_process:
                continue
            with contextlib.suppress(OSError):
                is_zombie = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
                if not is_zombie and os.readlink(entry / "ns/pid") == self._process_space:
                    found.append(int(entry.name))
        return found

    def shared_memory(self):
        """Names of what lies in this host's /dev/shm, which goes with it."""
        return os.listdir(f"/proc/{self.first_process}/root/dev/shm")

    def freeze(self):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def thaw(self):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def die(self):
        """Everything on it is gone at once, as when the power fails: no connection is closed towards the others."""
        self.network.cut(self)
        self.has_power = False
        os.kill(self.first_process, signal.SIGKILL)
        self._unshare.wait(PATIENCE)

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.first_process, signal.SIGKILL)
        self._unshare.wait(PATIENCE)
        self._unshare.stdin.close()
        self._unshare.stdout.close()
        for job in self.jobs:
            job.process.wait(PATIENCE)
            job.process.stdout.close()
            job.process.stderr.close()


class Network:
    """`count` hosts n1, n2, ... at 10.77.0.1, ... (and fd77::1, ...), all on one switch. On `loopback_named` (a host's
    number, from 1) the own name stands for 127.0.1.1, as Debian writes it."""

    def __init__(self, count, loopback_named=2):
        self.folder = tempfile.TemporaryDirectory(prefix="tprun-hosts-")
        self._switch = subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link set lo up && ip link add main type bridge && "
                                         "ip link add other type bridge && ip link set main up && ip link set other up && "
                                         "echo ready && exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        assert self._switch.stdout.readline() == "ready\n"
        self.hosts = []
        for number in range(1, count + 1):
            self.add_host(loopback_named, count=max(count, 9))

    def add_host(self, loopback_named=None, count=9):
        """One more host on the main switch."""
        number = len(self.hosts) + 1
        lines = ["127.0.0.1 localhost"]
        if number == loopback_named:
            lines.append(f"127.0.1.1 n{number}")
        lines += [f"10.77.0.{n} n{n}" for n in range(1, count + 1) if n != number or n != loopback_named]
        host = Host(self, f"n{number}", f"10.77.0.{number}", "\n".join(lines) + "\n")
        self.hosts.append(host)
        _run("ip", "link", "add", "eth0", "netns", host.first_process, "type", "veth", "peer", "name", host.name, "netns",
             self._switch.pid)
        self._on_switch("link", "set", host.name, "master", "main", "up")
        for words in (("addr", "add", f"10.77.0.{number}/24", "dev", "eth0"),
                      ("addr", "add", f"fd77::{number}/64", "dev", "eth0", "nodad"), ("link", "set", "eth0", "up")):
            host.run("ip", *words)
        return host

    def _on_switch(self, *words):
        _run("nsenter", "-t", self._switch.pid, "-n", "ip", *words)

    def cut(self, host):
        """The host's link is dead; nobody is told."""
        self._on_switch("link", "set", host.name, "nomaster")

    def split(self, others):
        """The network in two: `others` on one side, the rest on the other."""
        for host in others:
            self._on_switch("link", "set", host.name, "master", "other")

    def heal(self):
        for host in self.hosts:
            self._on_switch("link", "set", host.name, "master", "main")

    def delay(self, host, milliseconds):
        """Everything towards the host arrives this much later."""
        _run("nsenter", "-t", self._switch.pid, "-n", "tc", "qdisc", "replace", "dev", host.name, "root", "netem", "delay",
             f"{milliseconds}ms")

    def close(self):
        for host in self.hosts:
            host.close()
        self._switch.kill()
        self._switch.wait(PATIENCE)
        self._switch.stdin.close()
        self._switch.stdout.close()
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
