"""tpstore as an operator uses it: every command on a store of its own, exit codes, formats, mistakes."""
import contextlib
import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

TPSTORE = Path(os.environ["TP_BIN_DIR"]) / "tpstore"


@contextlib.contextmanager
def serving():
    process = subprocess.Popen([TPSTORE, "serve", "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line.startswith("tpstore: serving at 127.0.0.1:")
        yield process, line.split()[-1]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="module")
def endpoint():
    with serving() as (_, address):
        yield address


@pytest.fixture
def tpstore(endpoint):
    def call(*words, stdin=b"", environment=None):
        done = subprocess.run([TPSTORE, "--endpoint", endpoint, *words], input=stdin, capture_output=True, timeout=30,
                              env={**os.environ, **(environment or {})})
        return done.returncode, done.stdout, done.stderr.decode()
    return call


def test_a_value_goes_in_and_comes_out_as_it_was(tpstore):
    assert tpstore("set", "k", "value") == (0, b"", "")
    assert tpstore("get", "k") == (0, b"value\n", "")
    assert tpstore("set", "bytes", "-", stdin=b"\x00\xff\n")[0] == 0
    assert tpstore("get", "bytes", "--output", "raw")[1] == b"\x00\xff\n"
    assert tpstore("get", "bytes")[1] == b"\\x00\\xff\\x0a\n"
    assert json.loads(tpstore("get", "bytes", "--json")[1]) == {"base64": "AP8K"}
    assert tpstore("append", "k", "!")[0] == 0
    assert json.loads(tpstore("multi-get", "k", "bytes", "--json")[1]) == {"k": "value!", "bytes": {"base64": "AP8K"}}
    assert tpstore("multi-set", "m1", "1", "m2", "2")[0] == 0
    assert tpstore("multi-get", "m2", "m1")[1] == b"2\n1\n"


def test_counters_and_comparisons(tpstore):
    assert tpstore("add", "n")[1] == b"1\n"
    assert tpstore("add", "n", "-5")[1] == b"-4\n"
    assert tpstore("compare-set", "lock", "", "me") == (0, b"me\n", "")
    assert tpstore("compare-set", "lock", "", "you")[:2] == (1, b"me\n")
    tpstore("set", "word", "abc")
    code, _, complaint = tpstore("add", "word")
    assert code == 4 and "add of /word" in complaint and "the value is not a number" in complaint


def test_what_is_absent_is_exit_code_1_and_what_does_not_come_is_3(tpstore, endpoint):
    assert tpstore("get", "absent") == (1, b"", f"tpstore: no such key: absent at {endpoint}\n")
    assert tpstore("check", "absent")[0] == 1
    assert tpstore("delete", "absent")[0] == 1
    assert tpstore("queue-pop", "absent")[0] == 1
    tpstore("set", "here", "1")
    code, _, complaint = tpstore("wait", "here", "absent", "--timeout", "1")
    assert code == 3 and complaint == f"tpstore: {endpoint}: wait timeout after 1000ms: absent did not come\n"
    assert tpstore("get", "absent", "--wait", "-t", "1")[0] == 3
    assert tpstore("queue-pop", "absent", "--wait", "-t", "1")[0] == 3
    code, _, complaint = tpstore("barrier", "gate", "2", "-t", "1")
    assert code == 3 and "1 of 2 arrived at gate" in complaint


def test_a_wait_ends_when_the_key_comes(tpstore, endpoint):
    waiter = subprocess.Popen([TPSTORE, "-e", endpoint, "get", "later", "--wait"], stdout=subprocess.PIPE)
    assert tpstore("set", "later", "now")[0] == 0
    assert waiter.communicate(timeout=20)[0] == b"now\n" and waiter.returncode == 0


def test_queues(tpstore):
    assert tpstore("queue-push", "q", "first")[0] == 0
    assert tpstore("queue-push", "q", "-", stdin=b"second")[0] == 0
    assert tpstore("queue-len", "q")[1] == b"2\n"
    assert tpstore("queue-pop", "q")[1] == b"first\n"
    assert tpstore("queue-pop", "q", "--wait")[1] == b"second\n"


def test_list_and_dump_show_everything_and_who_has_joined():
    with serving() as (_, address):
        def call(*words):
            return subprocess.run([TPSTORE, "-e", address, *words], capture_output=True, text=True, timeout=30).stdout

        assert call("list") == "no keys\n"
        call("set", "run/name", "a\nb")
        call("add", "init/", "3", "--raw")
        assert call("list").splitlines() == [
            "key          bytes  value",
            "run/name         3  a\\nb",
            "init/            1  3  (hidden: reach it with --raw)",
            "",
            "3 stores have joined (init/)",
        ]
        assert call("list", "run", "-o", "raw") == "/run/name\n"
        dump = json.loads(call("dump"))
        assert dump["endpoint"] == address
        assert dump["keys"] == [{"key": "run/name", "hidden": False, "size": 3, "value": "a\nb"},
                                {"key": "init/", "hidden": True, "size": 1, "value": "3"}]
        assert call("num-keys") == "2\n"


def test_the_endpoint_may_come_from_the_environment(endpoint):
    host, port = endpoint.split(":")
    done = subprocess.run([TPSTORE, "ping"], capture_output=True, text=True, timeout=30,
                          env={**os.environ, "MASTER_ADDR": host, "MASTER_PORT": port})
    assert done.returncode == 0 and "a tprun server answered after" in done.stdout


@pytest.mark.parametrize("words, complaint", [
    (["get", "k"], "which store? say --endpoint HOST:PORT, or set MASTER_ADDR and MASTER_PORT"),
    (["lits"], "lits: no such command; did you mean list?"),
    (["get", "k", "-e", "n1"], "--endpoint=n1: names no port; say HOST:PORT"),
    (["add", "k", "five", "-e", "127.0.0.1:1"], "add: five: not an integer of 64 bits"),
])
def test_a_mistake_is_one_line_and_exit_code_2(words, complaint):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MASTER_")}
    done = subprocess.run([TPSTORE, *words], capture_output=True, text=True, timeout=30, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"tpstore: {complaint}\n")


def test_nobody_there_and_somebody_else_there_are_exit_code_4():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = "127.0.0.1:%d" % silent.getsockname()[1]
        done = subprocess.run([TPSTORE, "ping", "-e", address, "-t", "0.3"], capture_output=True, text=True, timeout=30)
        assert done.returncode == 4 and address in done.stderr and done.stderr.count("\n") == 1
    done = subprocess.run([TPSTORE, "ping", "-e", address, "-t", "0.3"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 4 and done.stderr.count("\n") == 1


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_serve_ends_well_when_stopped(stop):
    with serving() as (process, _):
        process.send_signal(stop)
        assert process.wait(20) == 0


def test_a_port_that_is_taken_is_told(endpoint):
    done = subprocess.run([TPSTORE, "serve", "--port", endpoint.split(":")[1]], capture_output=True, text=True,
                          timeout=30)
    assert done.returncode == 4 and "Address already in use" in done.stderr


def test_help_teaches_every_command():
    done = subprocess.run([TPSTORE, "--help"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0
    for command in ["serve", "ping", "list", "dump", "num-keys", "get", "multi-get", "check", "wait", "set",
                    "multi-set", "add", "append", "compare-set", "delete", "queue-push", "queue-pop", "queue-len",
                    "barrier"]:
        assert f"\n  {command}" in done.stdout
    assert "Exit codes" in done.stdout and "Examples" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 120
