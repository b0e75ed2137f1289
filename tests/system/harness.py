"""What system tests share: running tprun, its workers, waiting for an event with a deadline. No sleeps to be on the safe
side: a test waits for what it needs and fails when it does not come."""

import contextlib
import os
import pathlib
import signal
import stat
import subprocess
import time

BIN = pathlib.Path(os.environ.get("TP_BIN_DIR", "build/bin")).resolve()
TESTS_BIN = pathlib.Path(os.environ.get("TP_TESTS_BIN_DIR", BIN.parent / "tests-bin")).resolve()
TPRUN = BIN / "tprun"
TPSTORE = BIN / "tpstore"
PYTHON = "/usr/bin/python3"
PATIENCE = 60.0
"""Seconds until a test gives up on an event. Long, since the machine may be busy; nothing waits for it to pass."""

_FOREIGN = ("PET_", "TPRUN_", "TORCHELASTIC_", "TORCH_", "TP_", "SLURM_", "CUDA_", "HIP_", "ROCR_", "PYTHON_EXEC",
            "OMP_", "LOGLEVEL", "RANK", "WORLD_SIZE", "MASTER_")


def clean_environment(**extra):
    """This process's environment without anything that would change what tprun does."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    return {**kept, **{name: str(value) for name, value in extra.items()}}


def tprun(*words, program=TPRUN, cwd=None, timeout=PATIENCE, **environment):
    """Runs tprun to its end. A negative return code is the signal that ended it."""
    return subprocess.run([str(program), *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=timeout,
                          stdin=subprocess.DEVNULL, env=clean_environment(**environment))


@contextlib.contextmanager
def running(*words, program=TPRUN, cwd=None, **environment):
    """tprun at work, in a process group of its own; whatever the test leaves of it is ended."""
    process = subprocess.Popen([str(program), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               stdin=subprocess.DEVNULL, text=True, cwd=cwd, start_new_session=True,
                               env=clean_environment(**environment))
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def finish(process, timeout=PATIENCE):
    """Waits for a process of running(); returns (return code, stdout, stderr)."""
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err


def wait_for(condition, what, timeout=PATIENCE):
    """Waits until `condition()` is true and returns its value."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited {timeout:.0f} s in vain: {what}"
        time.sleep(0.002)


def wait_for_file(path, timeout=PATIENCE):
    """Waits until the file is there with something in it, and returns its text."""
    path = pathlib.Path(path)
    return wait_for(lambda: path.exists() and path.read_text(), f"{path.name} to be written", timeout)


def script(folder, name, text, interpreter="/bin/sh"):
    """An executable script; sh unless something else is named."""
    path = pathlib.Path(folder) / name
    path.write_text(f"#!{interpreter}\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def alive_with(mark):
    """Pids of living processes whose environment holds `mark` (zombies have none)."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found
