"""What tprun does with signals: who gets them, how often, what grace means, and how tprun itself ends."""

import contextlib
import os
import pty
import select
import signal
import subprocess
import time

import pytest
from containment_jobs import children_of, name_of, processes_with, state_of
from harness import PATIENCE, TPRUN, clean_environment, finish, running, script, wait_for, wait_for_file

# Says that it is up, counts what it gets, and ends when told to.
COUNTING_WORKER = r"""
trap 'echo USR1 >> "$OUT/got.$LOCAL_RANK"' USR1
trap 'echo TERM >> "$OUT/got.$LOCAL_RANK"; exit 0' TERM
echo up > "$OUT/up.$LOCAL_RANK"
while [ ! -e "$OUT/end" ]; do sleep 0.01; done
"""


def agent_of(process):
    """The agent's pid, once it has its name."""
    return wait_for(lambda: next((pid for pid in children_of(process.pid) if name_of(pid) == "tp-agent"), None), "the agent")


@contextlib.contextmanager
def counting_job(folder, *options, workers=2):
    worker = script(folder, "worker", COUNTING_WORKER)
    with running(*options, f"--nproc-per-node={workers}", "--no-python", worker, OUT=folder) as process:
        for rank in range(workers):
            wait_for_file(folder / f"up.{rank}")
        yield process


def got(folder, rank=0):
    with contextlib.suppress(FileNotFoundError):
        return (folder / f"got.{rank}").read_text().split()
    return []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_tprun_ends_by_the_signal_that_stopped_it(tmp_path, number):
    with counting_job(tmp_path) as process:
        process.send_signal(number)
        assert finish(process)[0] == -number


def test_a_stop_leaves_no_core_file(tmp_path):
    worker = script(tmp_path, "worker", 'echo up > "$OUT/up"; exec sleep 1000')
    command = [str(TPRUN), "--no-python", str(worker)]
    shell = 'ulimit -c unlimited; exec "$@"'
    process = subprocess.Popen(["bash", "-c", shell, "bash", *command], env=clean_environment(OUT=tmp_path), cwd=tmp_path,
                               stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for_file(tmp_path / "up")
    process.send_signal(signal.SIGQUIT)
    _, status = os.waitpid(process.pid, 0)
    process.returncode = 0
    assert os.WTERMSIG(status) == signal.SIGQUIT
    assert not os.WCOREDUMP(status)


def test_a_stop_in_the_first_milliseconds_is_honoured_and_leaves_nothing():
    for step in range(24):
        mark = f"TP_MARK=early-{os.getpid()}-{step}"
        process = subprocess.Popen([str(TPRUN), "--nproc-per-node=2", "--no-python", "sleep", "1000"], stdin=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env=clean_environment(TP_MARK=mark.partition("=")[2]))
        end = time.monotonic() + step * 0.0005
        while time.monotonic() < end:
            pass
        process.terminate()
        assert process.wait(PATIENCE) == -signal.SIGTERM
        assert processes_with(mark) == {}


def test_grace_is_honoured_after_a_signal(tmp_path):
    worker = script(tmp_path, "worker", "trap 'sleep 0.3; echo saved > \"$OUT/saved\"; exit 0' TERM\n"
                    'echo up > "$OUT/up"; while :; do sleep 0.01; done')
    with running("--no-python", worker, OUT=tmp_path) as process:
        wait_for_file(tmp_path / "up")
        process.terminate()
        assert finish(process)[0] == -signal.SIGTERM, "zero is never given after a stop signal"
    assert (tmp_path / "saved").exists()


@pytest.mark.parametrize("restarts", [0, 1])
def test_grace_is_honoured_after_a_failure_and_before_a_restart(tmp_path, restarts):
    worker = script(tmp_path, "worker", r"""
saved="$OUT/saved.$TORCHELASTIC_RESTART_COUNT"
if [ "$LOCAL_RANK" = 0 ]; then
  trap 'sleep 0.3; echo saved > "$saved"; exit 0' TERM
  echo up > "$OUT/up.$TORCHELASTIC_RESTART_COUNT"
  while :; do sleep 0.01; done
fi
while [ ! -e "$OUT/up.$TORCHELASTIC_RESTART_COUNT" ]; do sleep 0.01; done
exit 3
""")
    with running("--nproc-per-node=2", f"--max-restarts={restarts}", "--no-python", worker, OUT=tmp_path) as process:
        assert finish(process)[0] == 3
    for attempt in range(restarts + 1):
        assert (tmp_path / f"saved.{attempt}").exists()


def test_a_second_request_after_a_second_forces_the_end(tmp_path):
    worker = script(tmp_path, "worker", "trap '' INT TERM; echo up > \"$OUT/up\"; while :; do sleep 0.01; done")
    with running("--shutdown-timeout=1000", "--no-python", worker, OUT=tmp_path) as process:
        wait_for_file(tmp_path / "up")
        process.send_signal(signal.SIGINT)
        assert process.poll() is None
        time.sleep(1.05)   # what makes it a second request
        process.send_signal(signal.SIGINT)
        assert finish(process, timeout=20)[0] == -signal.SIGINT


def test_the_same_signal_at_guardian_and_agent_is_one_request(tmp_path):
    worker = script(tmp_path, "worker", "trap 'echo TERM >> \"$OUT/got.0\"; sleep 0.3; exit 0' TERM\n"
                    'echo up > "$OUT/up"; while :; do sleep 0.01; done')
    with running("--no-python", worker, OUT=tmp_path) as process:
        agent = agent_of(process)
        wait_for_file(tmp_path / "up")
        os.kill(agent, signal.SIGTERM)
        process.terminate()
        assert finish(process)[0] == -signal.SIGTERM
    assert got(tmp_path) == ["TERM"]


def test_sigusr1_is_passed_to_every_worker_once_and_the_job_goes_on(tmp_path):
    with counting_job(tmp_path) as process:
        process.send_signal(signal.SIGUSR1)
        for rank in range(2):
            wait_for(lambda: got(tmp_path, rank) == ["USR1"], "the notification")
        (tmp_path / "end").touch()
        assert finish(process)[0] == 0
    assert got(tmp_path, 0) == got(tmp_path, 1) == ["USR1"]


def test_sigusr1_to_tpruns_children_reaches_the_workers_as_it_would_under_torchrun(tmp_path):
    with counting_job(tmp_path) as process:
        agent_of(process)
        subprocess.run(["pkill", "-USR1", "-P", str(process.pid)], check=True)
        wait_for(lambda: got(tmp_path) == ["USR1"], "the notification")
        (tmp_path / "end").touch()
        assert finish(process)[0] == 0


def test_sigusr1_to_guardian_and_agent_is_one_notification(tmp_path):
    with counting_job(tmp_path) as process:
        os.kill(agent_of(process), signal.SIGUSR1)
        process.send_signal(signal.SIGUSR1)
        wait_for(lambda: got(tmp_path), "the notification")
        process.terminate()
        finish(process)
    assert got(tmp_path) == ["USR1", "TERM"]


def test_a_listed_sigusr1_stops(tmp_path):
    with counting_job(tmp_path, "--signals-to-handle=SIGTERM,SIGUSR1", "--shutdown-timeout=0") as process:
        process.send_signal(signal.SIGUSR1)
        assert finish(process)[0] == -signal.SIGUSR1


def test_a_signal_that_is_not_listed_ends_tprun_and_still_leaves_nothing(tmp_path):
    with counting_job(tmp_path, "--signals-to-handle=SIGTERM") as process:
        process.send_signal(signal.SIGHUP)
        process.wait(PATIENCE)
        assert process.returncode == -signal.SIGHUP
        wait_for(lambda: not processes_with(f"OUT={tmp_path}"), "everything to be gone")


def test_nohup_is_honoured_by_tprun_and_its_workers(tmp_path):
    worker = script(tmp_path, "worker", COUNTING_WORKER)
    command = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", str(TPRUN), "--no-python", str(worker)]
    process = subprocess.Popen(command, env=clean_environment(OUT=tmp_path), stdin=subprocess.DEVNULL)
    wait_for_file(tmp_path / "up.0")
    worker_pid = next(pid for pid in processes_with(f"OUT={tmp_path}") if name_of(pid) == "worker")
    process.send_signal(signal.SIGHUP)
    os.kill(worker_pid, signal.SIGHUP)
    process.send_signal(signal.SIGUSR1)   # comes after it, so the SIGHUP has had its chance
    wait_for(lambda: got(tmp_path) == ["USR1"], "the notification")
    (tmp_path / "end").touch()
    assert process.wait(PATIENCE) == 0


def test_what_the_step_daemon_sent_to_everybody_is_not_sent_once_more(tmp_path):
    sender = "import os, sys; open('/proc/self/comm', 'w').write('slurmstepd'); " \
             "os.kill(int(sys.argv[1]), int(sys.argv[2])); sys.stdin.read()"
    with counting_job(tmp_path, "--shutdown-timeout=1") as process:
        daemons = [subprocess.Popen(["/usr/bin/python3", "-S", "-E", "-c", sender, str(process.pid), str(int(number))],
                                    stdin=subprocess.PIPE) for number in (signal.SIGUSR1, signal.SIGTERM)]
        assert finish(process)[0] == -signal.SIGTERM
        for daemon in daemons:
            daemon.communicate()
    assert got(tmp_path) == []


def test_a_stopped_agent_is_woken_by_a_stop_signal(tmp_path):
    with counting_job(tmp_path) as process:
        os.kill(agent_of(process), signal.SIGSTOP)
        process.terminate()
        assert finish(process)[0] == -signal.SIGTERM
    assert got(tmp_path) == ["TERM"]


def test_as_pid_1_a_stop_gives_128_and_the_signals_number(tmp_path):
    worker = script(tmp_path, "worker", 'echo up > "$OUT/up"; exec sleep 1000')
    command = ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", 'exec "$@"', "sh", str(TPRUN), "--no-python", str(worker)]
    process = subprocess.Popen(command, env=clean_environment(OUT=tmp_path), stdin=subprocess.DEVNULL)
    wait_for_file(tmp_path / "up")
    first = children_of(process.pid)[0]
    os.kill(first, signal.SIGTERM)
    assert process.wait(PATIENCE) == 128 + signal.SIGTERM


def test_a_killed_agent_is_told_in_one_line_with_an_internal_error(tmp_path):
    with counting_job(tmp_path) as process:
        os.kill(agent_of(process), signal.SIGKILL)
        code, _, err = finish(process)
    assert code == 70
    assert "was killed by SIGKILL" in err and err.count("\n") == 1


def test_ctrl_z_suspends_the_workers_and_fg_resumes_them(tmp_path):
    worker = script(tmp_path, "worker", 'echo $$ > "$OUT/up"; while [ ! -e "$OUT/end" ]; do sleep 0.01; done; echo done > "$OUT/done"')
    shell, terminal = pty.fork()
    if shell == 0:
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], clean_environment(OUT=tmp_path, PS1="$ ", TERM="dumb"))
    try:
        os.write(terminal, f"{TPRUN} --no-python {worker}; echo code=$? > {tmp_path}/code\n".encode())
        worker_pid = int(wait_for_file(tmp_path / "up"))
        os.write(terminal, b"\x1a")
        wait_for(lambda: state_of(worker_pid) == "T", "the worker to be suspended")
        (tmp_path / "end").touch()
        wait_for_file(tmp_path / "code")   # the shell has its prompt back: 148, stopped
        assert (tmp_path / "code").read_text() == f"code={128 + signal.SIGTSTP}\n"
        assert state_of(worker_pid) == "T"
        os.write(terminal, f"fg; echo code=$? > {tmp_path}/last\n".encode())
        assert wait_for_file(tmp_path / "done")
        assert wait_for_file(tmp_path / "last") == "code=0\n"
    finally:
        while select.select([terminal], [], [], 0)[0]:
            os.read(terminal, 65536)
        os.kill(shell, signal.SIGKILL)
        os.waitpid(shell, 0)
        os.close(terminal)


def test_signals_that_nobody_reads_any_more_do_not_hide_how_the_job_ended(tmp_path):
    # srun, slurmstepd and scancel all signal at once. Once tprun exited with 70 then: "its agent exited without a word".
    worker = script(tmp_path, "worker", f"trap '' USR1\ntouch {tmp_path}/up\nexec sleep 1000\n")
    for _ in range(20):
        (tmp_path / "up").unlink(missing_ok=True)
        with running("--no-python", worker) as process:
            wait_for((tmp_path / "up").exists, "the worker to run")
            process.terminate()
            while process.poll() is None:
                process.send_signal(signal.SIGUSR1)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.0002)
            assert finish(process)[0] == -signal.SIGTERM
