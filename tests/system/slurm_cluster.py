"""A real SLURM of a few nodes on this machine, for tests: its own munged, slurmctld and slurmds, in a folder of its own
and on free ports. Nodes are called n1, n2, ... and no resolver knows them, as at the edge of many a cluster.

Needs Debian's slurm-wlm and munge; missing() says what is not there."""

import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile

from harness import clean_environment, wait_for

_DAEMONS = ("munged", "slurmctld", "slurmd")


def _path_of(program):
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def missing():
    """What a cluster needs and this machine lacks; empty when there is one to be had."""
    return [name for name in (*_DAEMONS, "srun", "sbatch", "scontrol", "scancel") if _path_of(name) is None]


def _free_ports(count):
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]


class Cluster:
    def __init__(self, nodes):
        self.nodes = nodes
        # Short: munge's socket has a path that must fit, and nobody else may write on the way to it.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tp-slurm-"))
        self.folder.chmod(0o755)
        self.conf = self.folder / "slurm.conf"
        self._daemons = []

    # ---- commands -------------------------------------------------------------------------------------------------

    def environment(self, **extra):
        return clean_environment(SLURM_CONF=self.conf, **extra)

    def run(self, *words, timeout=120, cwd=None, **environment):
        return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=timeout, cwd=cwd,
                              stdin=subprocess.DEVNULL, env=self.environment(**environment))

    def submit(self, script, *options, cwd=None, **environment):
        """sbatch; returns the job's id."""
        done = self.run("sbatch", "--parsable", *options, script, cwd=cwd, **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def facts(self, job):
        """What scontrol shows of a job, by name."""
        shown = self.run("scontrol", "-o", "show", "job", job).stdout
        return dict(word.split("=", 1) for word in shown.split() if "=" in word)

    def state(self, job):
        return self.facts(job).get("JobState", "")

    def is_idle(self):
        """No job is on any node, nor is one being cleared away."""
        return self.run("sinfo", "-h", "-t", "idle", "-o", "%D").stdout.split() == [str(self.nodes)]

    def wait_for_state(self, job, *states):
        return wait_for(lambda: self.state(job) in states and self.state(job), f"job {job} to be {' or '.join(states)}")

    def wait_for_end(self, job):
        return self.wait_for_state(job, "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")

    # ---- life -----------------------------------------------------------------------------------------------------

    def start(self):
        user = pwd.getpwuid(os.getuid()).pw_name
        controller_port, *node_ports = _free_ports(1 + self.nodes)
        munge = self.folder / "munge"
        munge.mkdir(mode=0o755)
        (munge / "key").write_bytes(os.urandom(1024))
        (munge / "key").chmod(0o400)
        self._start("munged", "--foreground", "--force", f"--key-file={munge}/key", f"--socket={munge}/socket",
                    f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        wait_for((munge / "socket").exists, "munged to listen")
        host = socket.gethostname().split(".")[0]
        nodes = "".join(f"NodeName=n{i} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=8 State=UNKNOWN\n"
                        for i, port in enumerate(node_ports, 1))
        self.conf.write_text(f"""\
ClusterName=tptest
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={munge}/socket
CredType=cred/munge
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool-%n
SlurmdPidFile={self.folder}/slurmd-%n.pid
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmctldLogFile={self.folder}/slurmctld.log
SlurmdLogFile={self.folder}/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
KillWait=15
RequeueExit=75
JobRequeue=1
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0,bf_interval=1,requeue_delay=0
{nodes}PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
""")
        (self.folder / "state").mkdir()
        self._start("slurmctld", "-D", "-f", self.conf)
        for i in range(1, self.nodes + 1):
            (self.folder / f"spool-n{i}").mkdir()
            self._start("slurmd", "-D", "-f", self.conf, "-N", f"n{i}")
        wait_for(self.is_idle, "all nodes to be idle")

    def _start(self, program, *words):
        log = open(self.folder / f"{program}-{len(self._daemons)}.out", "w")
        process = subprocess.Popen([_path_of(program), *map(str, words)], stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log, start_new_session=True, env=clean_environment(SLURM_CONF=self.conf))
        log.close()
        self._daemons.append(process)

    def stop(self):
        if self._daemons:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.run("scancel", "--user", pwd.getpwuid(os.getuid()).pw_name, timeout=10)
                wait_for(lambda: not self.run("squeue", "-h").stdout.strip(), "all jobs to be gone", 30)
        for process in reversed(self._daemons):
            process.send_signal(signal.SIGTERM)
        for process in reversed(self._daemons):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def cluster(nodes):
    """A cluster that is up; nothing of it is left afterwards."""
    one = Cluster(nodes)
    try:
        one.start()
        yield one
    finally:
        one.stop()
