"""Several tprun agents on this machine, each playing a node: what the tests of many nodes share."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import time

from harness import PATIENCE, TPRUN, clean_environment, wait_for

FAST_LEASE = "keep_alive_interval=1,keep_alive_max_attempt=2"
"""A node is lost after two seconds of silence."""


def free_port():
    """A port that nobody has now. Whoever binds it next sets SO_REUSEADDR, as all stores do."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Node:
    """One agent with its workers."""

    def __init__(self, words, cwd, log, environment):
        self.log = log
        with open(log, "wb") as out:
            self.process = subprocess.Popen([str(TPRUN), *map(str, words)], stdout=out, stderr=subprocess.STDOUT,
                                            stdin=subprocess.DEVNULL, cwd=cwd, start_new_session=True,
                                            env=clean_environment(**environment))

    @property
    def text(self):
        return self.log.read_text(errors="replace")

    def agent_pid(self):
        """The agent under the guardian."""
        pids = (pathlib_children(self.process.pid))
        return pids[0] if pids else None

    def wait_for_text(self, pattern, timeout=PATIENCE):
        """Waits until the output has what matches `pattern`; returns the match."""
        return wait_for(lambda: re.search(pattern, self.text), f"{pattern!r} in {self.log.name}:\n{self.text}", timeout)

    def end(self, timeout=PATIENCE):
        """Waits for its end; returns the return code."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.log.name} did not end in {timeout} s:\n{self.text}") from None


def pathlib_children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


class Job:
    """A job of several nodes with one rendezvous."""

    def __init__(self, tmp_path, *words, **environment):
        self.tmp_path = tmp_path
        self.words = words
        self.environment = {"LOGLEVEL": "INFO", **environment}
        self.nodes = []

    def start(self, *program, words=(), **environment):
        index = len(self.nodes)
        log = self.tmp_path / f"node{index}.log"
        report = f"--report={self.tmp_path}/report{index}.json"
        node = Node([*self.words, *words, report, *program], self.tmp_path, log, {**self.environment, **environment})
        self.nodes.append(node)
        return node

    def report(self, index):
        return json.loads((self.tmp_path / f"report{index}.json").read_text())

    def ends(self, timeout=PATIENCE):
        return [node.end(timeout) for node in self.nodes]

    def stop(self):
        for node in self.nodes:
            if node.process.poll() is None:
                node.process.send_signal(signal.SIGTERM)
        for node in self.nodes:
            try:
                node.process.wait(15)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(node.process.pid, signal.SIGKILL)
                node.process.kill()
                node.process.wait()


@contextlib.contextmanager
def c10d_job(tmp_path, nnodes, *words, conf="", **environment):
    """Nodes that meet at a free port of this machine; `with c10d_job(tmp_path, 2) as job: job.start("true")`."""
    port = free_port()
    job = Job(tmp_path, f"--nnodes={nnodes}", "--rdzv-backend=c10d", f"--rdzv-id=job{port}",
              f"--rdzv-endpoint=127.0.0.1:{port}", f"--rdzv-conf={FAST_LEASE}{',' if conf else ''}{conf}", *words,
              **environment)
    try:
        yield job
    finally:
        job.stop()


@contextlib.contextmanager
def static_job(tmp_path, nnodes, *words, **environment):
    port = free_port()
    job = Job(tmp_path, f"--nnodes={nnodes}", "--master-addr=127.0.0.1", f"--master-port={port}",
              f"--rdzv-conf={FAST_LEASE}", *words, **environment)
    job.port = port
    try:
        yield job
    finally:
        job.stop()
