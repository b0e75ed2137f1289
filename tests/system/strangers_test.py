"""Processes that tprun did not start are never touched, even where they fall to it as their parent."""

import os
import signal
import subprocess

from containment_jobs import children_of, name_of, processes_with, state_of
from harness import PATIENCE, TPRUN, clean_environment, script, wait_for, wait_for_file

# Before it becomes tprun this shell has a child, and a grandchild whose parent dies while tprun runs.
BEFORE_EXEC = r"""
STRANGER=child sleep 1000 &
(STRANGER=orphan sleep 1000 & sleep 0.3) &
exec "$@"
"""


class Started:
    """A shell with children of its own that has become tprun."""

    def __init__(self, folder, *words, prefix=(), **options):
        self.mark = f"TP_FOLDER={folder}"
        self.process = subprocess.Popen([*prefix, "sh", "-c", BEFORE_EXEC, "sh", str(TPRUN), *map(str, words)],
                                        env=clean_environment(TP_FOLDER=folder, OUT=folder), stdin=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pid in processes_with(self.mark):
            os.kill(pid, signal.SIGKILL)

    def strangers(self):
        return sorted(pid for pid, environment in processes_with(self.mark).items()
                      if b"STRANGER=" in environment and name_of(pid) == "sleep")

    def others(self):
        return [pid for pid, environment in processes_with(self.mark).items() if b"STRANGER=" not in environment]

    def agent(self):
        return next(pid for pid in processes_with(self.mark) if name_of(pid) == "tp-agent")


def waiting_worker(folder):
    return script(folder, "worker", 'setsid -f sleep 1000; echo up > "$OUT/up"; exec sleep 1000')


def two_strangers(job):
    wait_for(lambda: len(job.strangers()) == 2, "the strangers to be there")
    return job.strangers()


def only_strangers_are_left(job, strangers):
    wait_for(lambda: all(name_of(pid) == "sleep" for pid in job.others()), "the orphan's parent to end")
    assert job.strangers() == strangers
    assert [pid for pid in job.others() if name_of(pid) != "sleep"] == []


def test_children_from_before_an_exec_live_on_after_a_good_end(tmp_path):
    with Started(tmp_path, "--no-python", "true") as job:
        assert job.process.wait(PATIENCE) == 0
        assert len(two_strangers(job)) == 2


def test_children_from_before_an_exec_live_on_after_a_stop(tmp_path):
    with Started(tmp_path, "--no-python", waiting_worker(tmp_path)) as job:
        wait_for_file(tmp_path / "up")
        strangers = two_strangers(job)
        job.process.terminate()
        assert job.process.wait(PATIENCE) == -signal.SIGTERM
        only_strangers_are_left(job, strangers)


def test_children_from_before_an_exec_live_on_when_the_agent_is_killed(tmp_path):
    with Started(tmp_path, "--no-python", waiting_worker(tmp_path)) as job:
        wait_for_file(tmp_path / "up")
        strangers = two_strangers(job)
        os.kill(job.agent(), signal.SIGKILL)
        assert job.process.wait(PATIENCE) == 70
        only_strangers_are_left(job, strangers)


def test_children_from_before_an_exec_live_on_when_tprun_is_killed(tmp_path):
    with Started(tmp_path, "--no-python", waiting_worker(tmp_path)) as job:
        wait_for_file(tmp_path / "up")
        strangers = two_strangers(job)
        job.process.kill()
        job.process.wait(PATIENCE)
        wait_for(lambda: not job.others(), "everything of tprun's to be gone")
        assert job.strangers() == strangers


def test_other_children_of_a_containers_pid_1_live_on_through_restarts(tmp_path):
    worker = script(tmp_path, "worker", r"""
setsid -f sleep 1000
[ "$TORCHELASTIC_RESTART_COUNT" = 2 ] || exit 1
echo up > "$OUT/up"
while [ ! -e "$OUT/end" ]; do sleep 0.01; done
""")
    prefix = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
    with Started(tmp_path, "--max-restarts=2", "--no-python", worker, prefix=prefix) as job:
        strangers = two_strangers(job)
        wait_for_file(tmp_path / "up")
        first = children_of(job.process.pid)[0]
        wait_for(lambda: set(strangers) <= set(children_of(first)), "the orphan to fall to pid 1")
        assert all(state_of(pid) == "S" for pid in strangers)
        (tmp_path / "end").touch()
        assert job.process.wait(PATIENCE) == 0
