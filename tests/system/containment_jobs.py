"""Jobs that leave every kind of descendant behind, ways in which a launcher may end, and what is left then.

Shared by the test (tprun) and by the table that sets other launchers beside it (tests/bench/containment_table.py)."""

import contextlib
import dataclasses
import os
import pathlib
import pty
import select
import shutil
import signal
import subprocess
import tempfile
import time
import uuid

from harness import PATIENCE, clean_environment, wait_for

KINDS = ("worker", "child", "grandchild", "setsid grandchild", "double-forked daemon", "ignores SIGTERM", "stopped")

# Each descendant carries its kind in its environment; the worker then waits to be told how to end.
WORKER = r"""#!/bin/sh
KIND='child' sleep 1000 &
sh -c 'KIND="grandchild" sleep 1000 & wait' &
sh -c 'KIND="setsid grandchild" setsid sleep 1000 & wait' &
(KIND='double-forked daemon' setsid sh -c 'sleep 1000 >/dev/null 2>&1 </dev/null &' &)
(trap '' TERM; KIND='ignores SIGTERM' exec sleep 1000) &
KIND='stopped' sh -c 'kill -STOP $$; sleep 1000' &
while [ ! -e "$JOB/end" ]; do sleep 0.02; done
exit "$(cat "$JOB/end")"
"""


@dataclasses.dataclass(frozen=True)
class Launcher:
    name: str
    """As ps and pkill know it."""
    command: tuple
    agent_name: str = ""
    """The second process that keeps watch, where there is one."""
    environment: tuple = ()


def processes_with(mark):
    """{pid: its environment} of the living processes that carry `mark`; zombies have no environment."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                environment = (entry / "environ").read_bytes()
                if mark.encode() in environment:
                    found[int(entry.name)] = environment
    return found


def state_of(pid):
    """R, S, D, T, Z; empty when there is no such process."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def children_of(pid):
    with contextlib.suppress(OSError):
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def name_of(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


class Job:
    """One launcher with two workers and their descendants. Whatever is left at the end is killed by its mark."""

    def __init__(self, launcher, patience=PATIENCE):
        self.launcher = launcher
        self.patience = patience
        """How long the launcher may take to end."""
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tp-containment-"))
        self.mark = f"TP_MARK={uuid.uuid4().hex}"
        worker = self.folder / "worker"
        worker.write_text(WORKER)
        worker.chmod(0o755)
        # Only the launcher and what descends from it carry the mark; a shell around it does not.
        self.command = ["env", self.mark, *launcher.command, str(worker)]
        self.environment = clean_environment(JOB=self.folder, **dict(launcher.environment))
        self.left_in_namespace = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _ in range(50):
            left = processes_with(self.mark)
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            if not left:
                break
            time.sleep(0.02)
        shutil.rmtree(self.folder, ignore_errors=True)

    def kinds(self):
        """The kinds of which a process is alive, each with its number. What has no kind is a worker (or its launcher)."""
        counts = {}
        for environment in processes_with(self.mark).values():
            kind = next((kind for kind in KINDS if f"KIND={kind}".encode() + b"\0" in environment), "worker")
            counts[kind] = counts.get(kind, 0) + 1
        return counts

    def wait_until_populated(self):
        """All kinds of both workers are there, and the stopped ones have stopped."""

        def ready():
            counts = self.kinds()
            if any(counts.get(kind, 0) < 2 for kind in KINDS):
                return False
            stopped = [pid for pid, environment in processes_with(self.mark).items() if b"KIND=stopped\0" in environment]
            return all(state_of(pid) == "T" for pid in stopped)

        wait_for(ready, "both workers to have started their descendants")

    def wait_until_empty(self, patience=20.0):
        """Waits until nothing is left, for at most `patience` seconds. Returns what is."""
        deadline = time.monotonic() + patience
        while self.kinds() and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.kinds()

    def end_workers(self, code):
        ready = self.folder / "end.new"
        ready.write_text(str(code))
        ready.rename(self.folder / "end")

    def launcher_pids(self):
        return [pid for pid in processes_with(self.mark) if name_of(pid) == self.launcher.name]

    def agent_pid(self):
        return next(pid for pid in processes_with(self.mark) if name_of(pid) == self.launcher.agent_name)


@dataclasses.dataclass
class Ending:
    name: str
    run: object
    """Takes a Job; starts the launcher, ends it, and returns once the launcher is gone."""
    cleans_before_it_ends: bool = True
    """False where the launcher is killed outright: what watches over it needs a moment."""
    needs_agent: bool = False


def _start(job, **options):
    process = subprocess.Popen(job.command, env=job.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True, **options)
    job.wait_until_populated()
    return process


def _workers_end(code):
    def run(job):
        process = _start(job)
        job.end_workers(code)
        process.wait(job.patience)

    return run


def _signalled(number):
    def run(job):
        process = _start(job)
        process.send_signal(number)
        process.wait(job.patience)

    return run


def _agent_killed(job):
    process = _start(job)
    os.kill(job.agent_pid(), signal.SIGKILL)
    process.wait(job.patience)


def _agent_stopped_then_guardian_killed(job):
    process = _start(job)
    agent = job.agent_pid()
    os.kill(agent, signal.SIGSTOP)
    wait_for(lambda: state_of(agent) == "T", "the agent to stop")
    process.kill()
    process.wait(job.patience)


class _Shell:
    """An interactive bash on a terminal of its own."""

    def __init__(self, job):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], {**job.environment, "PS1": "$ ", "TERM": "dumb"})

    def type(self, line):
        os.write(self.terminal, line.encode() + b"\n")

    def drain(self):
        """What was printed must be read, or the terminal blocks its writers."""
        while select.select([self.terminal], [], [], 0)[0]:
            try:
                if not os.read(self.terminal, 65536):
                    return
            except OSError:
                return

    def close(self):
        if self.terminal is not None:
            os.close(self.terminal)
            self.terminal = None

    def end(self):
        self.close()
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _quoted(command):
    return " ".join(f"'{word}'" for word in command)


def _job_killed_in_shell(job):
    shell = _Shell(job)
    try:
        shell.type(_quoted(job.command) + " >/dev/null 2>&1 &")
        job.wait_until_populated()
        launchers = job.launcher_pids()
        shell.type("kill -9 %1")
        wait_for(lambda: shell.drain() or not any(state_of(pid) not in ("", "Z") for pid in launchers),
                 "the shell to kill its job")
    finally:
        shell.end()


def _terminal_closed(job):
    shell = _Shell(job)
    try:
        shell.type(_quoted(job.command) + " >/dev/null 2>&1")
        job.wait_until_populated()
        launchers = job.launcher_pids()
        shell.close()
        wait_for(lambda: not any(state_of(pid) not in ("", "Z") for pid in launchers), "the launcher to see its terminal go")
    finally:
        shell.end()


def _killed_by(pkill):
    return lambda job: _killed_in_namespace(job, pkill)


def _killed_in_namespace(job, pkill):
    """In a pid namespace, so that only this launcher has the name."""
    go = job.folder / "go"
    os.mkfifo(go)
    line = (f"{_quoted(job.command)} >/dev/null 2>&1 & read word < '{go}'; {pkill} '{job.launcher.name}' || touch '{job.folder}/missed'; "
            f"wait $!; touch '{job.folder}/killed'; read word < '{go}'")
    process = subprocess.Popen(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", line],
                               env=job.environment, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        job.wait_until_populated()
        go.write_text("now\n")
        wait_for(lambda: any((job.folder / name).exists() for name in ("killed", "missed")), "pkill to be done")
        assert not (job.folder / "missed").exists(), f"{pkill} finds no process {job.launcher.name}"
        job.left_in_namespace = job.wait_until_empty()
    finally:
        process.kill()
        process.wait()


ENDINGS = (
    Ending("normal end", _workers_end(0)),
    Ending("failure", _workers_end(3)),
    Ending("SIGINT", _signalled(signal.SIGINT)),
    Ending("SIGTERM", _signalled(signal.SIGTERM)),
    Ending("SIGHUP", _signalled(signal.SIGHUP)),
    Ending("SIGKILL of the launcher", _signalled(signal.SIGKILL), cleans_before_it_ends=False),
    Ending("SIGKILL of the agent", _agent_killed, needs_agent=True),
    Ending("agent stopped, then launcher killed", _agent_stopped_then_guardian_killed, cleans_before_it_ends=False,
           needs_agent=True),
    Ending("kill -9 %1 in a shell", _job_killed_in_shell, cleans_before_it_ends=False),
    Ending("pkill -9 by name", _killed_by("pkill -9"), cleans_before_it_ends=False),
    Ending("pkill -9 -f by name", _killed_by("pkill -9 -f"), cleans_before_it_ends=False),
    Ending("terminal closed", _terminal_closed),
)


def leftovers(launcher, ending, patience=20.0, end_patience=PATIENCE):
    """Runs one job to its end in this way. Returns {kind: how many are left}: at once where the launcher itself ends
    orderly, else when nothing is left or `patience` seconds have passed. A launcher that does not end within `end_patience`
    seconds raises subprocess.TimeoutExpired."""
    with Job(launcher, end_patience) as job:
        ending.run(job)
        if job.left_in_namespace is not None:
            return job.left_in_namespace
        return job.kinds() if ending.cleans_before_it_ends else job.wait_until_empty(patience)
