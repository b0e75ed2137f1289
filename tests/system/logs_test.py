"""What workers write: where it goes, that nothing of it is lost, and what the failure report quotes."""

import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

import pytest

from harness import PATIENCE, PYTHON, TESTS_BIN, TPRUN, clean_environment, script, tprun

LINE_WRITER = TESTS_BIN / "line_writer"


@pytest.fixture
def folder(tmp_path):
    """A folder for logs beside one for temporary files, so that what is left in either is seen."""
    (tmp_path / "tmp").mkdir()
    return tmp_path


def run(folder, *words, **environment):
    return tprun(*words, cwd=folder, TMPDIR=folder / "tmp", **environment)


def attempt(folder, number=0):
    """The folder of one attempt below --log-dir logs; there must be one run."""
    (only,) = (folder / "logs").iterdir()
    return only / f"attempt_{number}"


def lines_of(text):
    return sorted(text.splitlines())


class Terminal:
    """A terminal with tprun on it."""

    def __init__(self, *words, cwd, columns=100, **environment):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.shown = ""
        self.process = subprocess.Popen([str(TPRUN), *map(str, words)], stdin=slave, stdout=slave, stderr=slave, cwd=cwd,
                                        env=clean_environment(TERM="xterm", **environment), start_new_session=True)
        os.close(slave)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)

    def read_until(self, pattern):
        """Reads until `pattern` (None: the end) is in what was shown."""
        deadline = time.monotonic() + PATIENCE
        while pattern is None or not re.search(pattern, self.shown):
            assert time.monotonic() < deadline, f"{pattern!r} did not come: {self.shown!r}"
            if not select.select([self.master], [], [], 1)[0]:
                continue
            try:
                self.shown += os.read(self.master, 65536).decode(errors="replace")
            except OSError:
                assert pattern is None, f"the end came before {pattern!r}: {self.shown!r}"
                break
        return self.shown

    def type(self, text):
        os.write(self.master, text.encode())

    def finish(self):
        self.read_until(None)
        return self.process.wait(PATIENCE)


def test_a_job_that_ends_well_says_nothing_and_leaves_nothing(folder):
    done = run(folder, "--nproc-per-node=2", "true")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list((folder / "tmp").iterdir()) == []
    assert [entry.name for entry in folder.iterdir()] == ["tmp"]


def test_tee_prefixes_the_console_and_keeps_the_files_as_they_were(folder):
    job = script(folder, "job.sh", "echo out $LOCAL_RANK; printf 'no newline' >&2\n")
    done = run(folder, "--nproc-per-node=2", "--log-dir=logs", "--tee=3", job)
    assert done.returncode == 0
    assert lines_of(done.stdout) == ["[default0]:out 0", "[default1]:out 1"]
    assert lines_of(done.stderr) == ["[default0]:no newline", "[default1]:no newline"]
    assert (attempt(folder) / "1" / "stdout.log").read_text() == "out 1\n"
    assert (attempt(folder) / "1" / "stderr.log").read_text() == "no newline"


def test_redirects_by_rank_go_to_files_only(folder):
    job = script(folder, "job.sh", "echo out $LOCAL_RANK\n")
    done = run(folder, "--nproc-per-node=12", "--log-dir=logs", "--redirects=0:1,11:1", "--rdzv-id=job7", job)
    assert lines_of(done.stdout) == sorted(f"out {rank}" for rank in range(1, 11))
    assert (attempt(folder) / "11" / "stdout.log").read_text() == "out 11\n"
    assert not (attempt(folder) / "11" / "stderr.log").exists()


def test_redirection_without_a_log_folder_says_once_where_the_files_are(folder):
    done = run(folder, "--nproc-per-node=2", "--redirects=3", "sh", "-c", "echo $LOCAL_RANK")
    (said,) = done.stderr.splitlines()
    assert said.startswith("tprun: logs are in ")
    path = said.rpartition(" in ")[2]
    assert path.startswith(str(folder / "tmp"))
    with open(f"{path}/attempt_0/1/stdout.log") as log:
        assert log.read() == "1\n"


def test_the_prefix_template_is_followed(folder):
    done = run(folder, "--log-dir=logs", "--tee=1", "--role=trainer",
               "--log-line-prefix-template=${role_name}/${rank}/${local_rank}/${hostname}/${x}> ", "echo", "hi")
    host = os.uname().nodename.split(".")[0]
    assert done.stdout == f"trainer/0/0/{host}/${{x}}> hi\n"


def test_only_filtered_ranks_are_shown(folder):
    job = script(folder, "job.sh", "echo out $LOCAL_RANK; echo err $LOCAL_RANK >&2\n")
    done = run(folder, "--nproc-per-node=3", "--log-dir=logs", "--tee=0:1,1:1", "--local-ranks-filter=1", job)
    assert done.stdout == "[default1]:out 1\n"
    assert done.stderr == "err 1\n"
    assert (attempt(folder) / "0" / "stdout.log").read_text() == "out 0\n"


def test_lines_that_match_are_copied_to_the_side_file(folder):
    job = script(folder, "job.sh", "echo loss $LOCAL_RANK; echo other; echo a,b >&2\n")
    run(folder, "--nproc-per-node=2", "--log-dir=logs", "--tee=3", "--duplicate-stdout-filters=loss",
        "--duplicate-stderr-filters=a,,b", job)
    text = (attempt(folder) / "filtered_stdout.log").read_text()
    assert lines_of(text) == ["[default0]:loss 0", "[default1]:loss 1"]
    assert lines_of((attempt(folder) / "filtered_stderr.log").read_text()) == ["[default0]:a,b", "[default1]:a,b"]


def test_the_log_folder_dev_null_keeps_nothing(folder):
    done = run(folder, "--log-dir=/dev/null", "--tee=3", "sh", "-c", "echo out; echo [$TORCHELASTIC_ERROR_FILE]")
    assert done.stdout == "out\n[]\n"
    assert list((folder / "tmp").iterdir()) == []


def test_no_line_is_lost_when_a_worker_is_killed(folder):
    job = script(folder, "job.sh", f"{LINE_WRITER} 30000; kill -9 $$\n")
    done = run(folder, "--nproc-per-node=2", "--log-dir=logs", "--tee=1", job)
    assert done.returncode == 137
    for rank in (0, 1):
        kept = (attempt(folder) / str(rank) / "stdout.log").read_bytes()
        shown = [line for line in done.stdout.splitlines() if line.startswith(f"[default{rank}]:")]
        assert len(shown) == len(kept.splitlines())
    # The one that was killed first had written everything before it died.
    assert max(len((attempt(folder) / str(rank) / "stdout.log").read_bytes()) for rank in (0, 1)) == 30000 * 80


def test_lines_of_many_workers_stay_whole(folder):
    done = run(folder, "--nproc-per-node=8", "--log-dir=logs", "--tee=1", LINE_WRITER, 5000)
    lines = done.stdout.splitlines()
    assert len(lines) == 40000
    whole = re.compile(r"\[default[0-7]\]:\d+\.+$")
    assert all(whole.match(line) and len(line) == len("[default0]:") + 79 for line in lines)
    for rank in range(8):
        assert (attempt(folder) / str(rank) / "stdout.log").stat().st_size == 5000 * 80


def test_binary_and_lines_of_megabytes_survive(folder):
    job = script(folder, "job.py", "import sys\nsys.stdout.buffer.write(bytes(range(256)) * 4096 + b'x' * 3000000)\n",
                 PYTHON)
    done = subprocess.run([str(TPRUN), "--no-python", "--log-dir=logs", "--tee=1", str(job)], capture_output=True,
                          cwd=folder, env=clean_environment(TMPDIR=folder / "tmp"), timeout=PATIENCE)
    written = bytes(range(256)) * 4096 + b"x" * 3000000
    assert (attempt(folder) / "0" / "stdout.log").read_bytes() == written
    expected = b"".join(b"[default0]:" + line + b"\n" for line in written.split(b"\n"))
    assert done.stdout == expected


def test_a_progress_bar_in_a_log_is_its_last_refresh(folder):
    done = run(folder, "--log-dir=logs", "--tee=2", "sh", "-c", r"printf '\r 0%%\r 50%%\r100%%\n' >&2")
    assert done.stderr == "[default0]:100%\n"
    assert (attempt(folder) / "0" / "stderr.log").read_bytes() == b"\r 0%\r 50%\r100%\n"


@pytest.mark.parametrize("how", ["full", "closed", "no reader"])
def test_a_console_that_takes_nothing_costs_no_more_than_a_line(folder, how):
    words = [str(TPRUN), "--log-dir=logs", "--tee=1", str(LINE_WRITER), "20000"]
    environment = clean_environment(TMPDIR=folder / "tmp")
    if how == "full":
        with open("/dev/full", "wb") as full:
            done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, cwd=folder, env=environment,
                                  timeout=PATIENCE, text=True)
    elif how == "closed":
        done = subprocess.run(["sh", "-c", '"$0" "$@" >&-', *words], stderr=subprocess.PIPE, cwd=folder,
                              env=environment, timeout=PATIENCE, text=True)
    else:
        read_end, write_end = os.pipe()
        os.close(read_end)
        done = subprocess.run(words, stdout=write_end, stderr=subprocess.PIPE, cwd=folder, env=environment,
                              timeout=PATIENCE, text=True)
        os.close(write_end)
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == (0 if how == "closed" else 1), done.stderr
    assert (attempt(folder) / "0" / "stdout.log").stat().st_size == 20000 * 80


DETAILS = "i=0; while [ $i -lt 40 ]; do echo detail $i >&2; i=$((i+1)); done\n"


def test_stderr_without_redirection_is_shown_and_the_report_does_not_repeat_what_stands_above_it(folder):
    job = script(folder, "job.sh", "[ $RANK = 1 ] || exec cat < /dev/zero > /dev/null\n" + DETAILS + "exit 7\n")
    done = run(folder, "--nproc-per-node=2", "--report=report.json", job)
    assert done.returncode == 7
    shown, _, report = done.stderr.partition("tprun: ")
    assert shown == "".join(f"detail {i}\n" for i in range(40))
    assert "rank 1 ended with exit code 7" in report
    assert "rank 1's last lines on stderr are above" in report and "detail" not in report
    assert "exit code 7 (rank 1's)" in report
    assert json.loads((folder / "report.json").read_text())["root_cause"]["last_lines"][-1] == "detail 39"
    assert list((folder / "tmp").iterdir()) == []


def test_last_lines_that_others_have_buried_are_quoted_in_the_report(folder):
    # The culprit ends only when its lines are on the console: those of the other must come after them.
    noise = "yes 'a victim speaks of its lost connection' | head -n 100 >&2"
    job = script(folder, "job.sh", f"if [ $RANK = 0 ]; then trap \"{noise}; exit 1\" TERM; touch ready\n"
                 "while :; do sleep 0.01; done; fi\n"
                 "while [ ! -e ready ]; do sleep 0.01; done\n" + DETAILS +
                 "while ! grep -q 'detail 39' console; do sleep 0.01; done; exit 7\n")
    with open(folder / "console", "w", encoding="utf-8") as console:
        done = subprocess.run([TPRUN, "--nproc-per-node=2", job], stdin=subprocess.DEVNULL, stderr=console, cwd=folder,
                              env=clean_environment(TMPDIR=folder / "tmp"), timeout=PATIENCE, check=False)
    assert done.returncode == 7
    report = (folder / "console").read_text().partition("tprun: ")[2]
    assert "    | detail 39\n" in report and "    | detail 20\n" in report and "    | detail 19\n" not in report


def test_a_log_folder_that_was_chosen_is_named_when_asked_for_and_in_the_failure_report(folder):
    done = run(folder, "--log-dir=logs", "sh", "-c", "exit 3", LOGLEVEL="INFO")
    (made,) = (folder / "logs").iterdir()
    assert f"tprun: logs are in logs/{made.name}\n" in done.stderr
    assert f"\n  logs: logs/{made.name}\n" in done.stderr
    assert run(folder, "--log-dir=logs", "true").stderr == ""


@pytest.fixture
def small_disk(folder):
    """A file system of 256 KiB."""
    place = folder / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], capture_output=True,
                             text=True)
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_costs_what_does_not_fit_and_one_line_and_the_job_goes_on(folder, small_disk):
    done = run(folder, f"--log-dir={small_disk}", "--tee=1", LINE_WRITER, 20000)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 20000, "the console has everything"
    (said,) = done.stderr.splitlines()
    assert "stdout.log: No space left on device; what does not fit is lost from the log files, the job goes on" in said
    (log,) = small_disk.glob("*/attempt_0/0/stdout.log")
    assert 0 < log.stat().st_size <= 256 << 10


def test_a_disk_that_was_full_before_is_told_once_for_all_workers(folder, small_disk):
    with open(small_disk / "ballast", "wb", buffering=0) as ballast:
        with pytest.raises(OSError):
            while True:
                ballast.write(bytes(4096))
    done = run(folder, f"--log-dir={small_disk}", "--tee=3", "--nproc-per-node=4", "sh", "-c", "echo out; echo err >&2")
    assert done.returncode == 0
    assert done.stderr.count("No space left on device") == 1
    assert len(done.stdout.splitlines()) == 4


def test_an_error_file_is_told_whatever_state_it_is_in(folder):
    message = {"message": {"message": "ValueError: no data", "extraInfo": {"py_callstack": "x", "timestamp": "1"}}}
    for text, expected in ((json.dumps(message), "failed with ValueError: no data"),
                           (json.dumps(message)[:45], "failed with ValueError: no data"),
                           ('{"message": 5}', "failed: 5 (exit code 3)"),
                           ('{"message": "\\u0000a\\u001b[31mb c\\u0007"}', "failed: ab c (exit code 3)"),
                           ('{"message": "\\"no data here\\""}', "failed: no data here (exit code 3)"),
                           ("", "ended with exit code 3"), ("{", "ended with exit code 3"),
                           ('{"x": [1]}', "ended with exit code 3")):
        job = script(folder, "job.sh", f"printf '%s' '{text}' > $TORCHELASTIC_ERROR_FILE; exit 3\n")
        done = run(folder, job)
        assert done.returncode == 3
        assert expected in done.stderr, (text, done.stderr)


def test_the_launcher_above_finds_an_error_file_too(folder):
    reply = folder / "reply.json"
    done = run(folder, "sh", "-c", "exit 3", TORCHELASTIC_ERROR_FILE=reply)
    assert done.returncode == 3
    assert json.loads(reply.read_text())["message"]["errorCode"] == 3


def test_the_report_file_tells_the_story(folder):
    job = script(folder, "job.sh", "[ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 5\n")
    done = run(folder, "--nproc-per-node=2", "--max-restarts=2", "--report=report.json", job)
    assert done.returncode == 0
    report = json.loads((folder / "report.json").read_text())
    assert report["outcome"] == "succeeded" and report["exit_code"] == 0 and report["restarts"] == 1
    first, second = report["attempts"]
    assert {failure["exit_code"] for failure in first["failures"] if not failure["stopped_by_tprun"]} == {5}
    assert [worker["exit_code"] for worker in second["workers"]] == [0, 0]
    assert first["ended_at"] <= second["started_at"]

    job = script(folder, "job.sh", "kill -SEGV $$\n")
    done = run(folder, "--report=report.json", job)
    report = json.loads((folder / "report.json").read_text())
    assert report["outcome"] == "failed" and report["exit_code"] == 139 == done.returncode
    assert report["exit_code_from"] == "rank 0's" and report["root_cause"]["signal"] == "SIGSEGV"
    assert sorted(entry.name for entry in folder.iterdir()) == ["job.sh", "report.json", "tmp"]


def test_earlier_attempts_are_kept_and_a_hundred_restarts_leak_no_descriptor(folder):
    job = script(folder, "job.sh", "ls /proc/$PPID/fd | wc -l >> fds; [ $TORCHELASTIC_RESTART_COUNT = 100 ]\n")
    done = run(folder, "--log-dir=logs", "--tee=3", "--max-restarts=100", job)
    assert done.returncode == 0, done.stderr
    counts = [int(line) for line in (folder / "fds").read_text().split()]
    assert len(counts) == 101
    # A worker may count before tprun has closed the ends that are the worker's; a leak would add up.
    assert max(counts[-20:]) < min(counts[:20]) + 40
    assert (attempt(folder, 0) / "0" / "stdout.log").exists() and (attempt(folder, 100) / "0" / "stdout.log").exists()


def test_a_single_worker_has_tpruns_terminal(folder):
    ask = "import sys; print([s.isatty() for s in (sys.stdin, sys.stdout, sys.stderr)]); print('got', input('say: '))"
    with Terminal("--no-python", PYTHON, "-c", ask, cwd=folder) as terminal:
        terminal.read_until("say: ")
        terminal.type("hello\n")
        terminal.read_until("got hello")
        assert terminal.finish() == 0
        assert "[True, True, True]" in terminal.shown


def test_several_workers_keep_the_terminal_too(folder):
    # One write each: two processes share the terminal, and print() may write word by word.
    ask = "import os; os.write(1, (' '.join(str(os.isatty(fd)) for fd in range(3)) + '\\n').encode())"
    with Terminal("--nproc-per-node=2", "--no-python", PYTHON, "-c", ask, cwd=folder) as terminal:
        assert terminal.finish() == 0
        assert lines_of(terminal.shown) == ["False True True", "True True True"]


def test_a_prompt_is_seen_though_the_stream_is_teed(folder):
    ask = "print('got', input('say: '))"
    with Terminal("--log-dir=logs", "--tee=3", "--no-python", PYTHON, "-u", "-c", ask, cwd=folder) as terminal:
        terminal.read_until(r"\[default0\]:say: ")
        terminal.type("hello\n")
        terminal.read_until("got hello")
        assert terminal.finish() == 0


def test_a_progress_bar_on_a_terminal_stays_below_the_others_lines(folder):
    job = script(folder, "job.py", "import os, sys, time\n"
                 "if os.environ['RANK'] == '0':\n"
                 "    sys.stderr.write('\\r 10%'); sys.stderr.flush(); open('bar', 'w').close()\n"
                 "    while not os.path.exists('seen'): time.sleep(0.01)\n"
                 "    sys.stderr.write('\\r100%\\n')\n"
                 "else:\n"
                 "    while not os.path.exists('shown'): time.sleep(0.01)\n"
                 "    print('a line of rank 1', flush=True)\n", PYTHON)
    with Terminal("--nproc-per-node=2", "--no-python", "--log-dir=logs", "--tee=3", job, cwd=folder) as terminal:
        terminal.read_until(r"\[default0\]: 10%")
        (folder / "shown").touch()
        # Only what has been shown is over: what two workers wrote just now may be read in any order.
        terminal.read_until(r"rank 1\r\n\[default0\]: 10%")
        (folder / "seen").touch()
        assert terminal.finish() == 0
    assert "\r\x1b[K[default1]:a line of rank 1\r\n[default0]: 10%" in terminal.shown
    assert terminal.shown.endswith("\r\x1b[K[default0]:100%\r\n")


@pytest.mark.parametrize("mode, expected", [(None, ["", "in"]), ("none", ["", ""]), ("0", ["", "in"])])
def test_stdin_goes_to_rank_0_or_to_nobody(folder, mode, expected):
    words = [str(TPRUN), "--nproc-per-node=2", "--redirects=1", "--log-dir=logs"]
    words += [f"--stdin={mode}"] if mode else []
    subprocess.run([*words, "cat"], input="in", text=True, cwd=folder, env=clean_environment(), timeout=PATIENCE)
    assert sorted((attempt(folder) / str(rank) / "stdout.log").read_text() for rank in (0, 1)) == expected
