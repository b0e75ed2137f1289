"""Our stores and torch's, each as the other's peer: operation by operation, on the wire and in a file."""
import contextlib
import os
import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BIN = Path(os.environ["TP_BIN_DIR"])
TESTS_BIN = Path(os.environ["TP_TESTS_BIN_DIR"])


@contextlib.contextmanager
def running(command, **environment):
    """A process whose stdout is read line by line; ends with the block."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env={**os.environ, **environment})
    try:
        yield process
    finally:
        process.stdin.close()
        process.terminate()
        process.wait(20)
        process.stdout.close()


@contextlib.contextmanager
def our_server():
    with running([BIN / "tpstore", "serve", "--port", "0"]) as process:
        yield process.stdout.readline().rsplit(":", 1)[1].strip()


@pytest.fixture(scope="module")
def torch_ports(torch_python):
    """The ports of a torch server with libuv and of one without."""
    with running([torch_python, HERE / "torch_server.py"]) as process:
        yield process.stdout.readline().split()


def run(command, seconds=120, **environment):
    done = subprocess.run([str(word) for word in command], timeout=seconds, text=True, capture_output=True,
                          env={**os.environ, **environment})
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def driver(tags, **environment):
    return run([TESTS_BIN / "store_interop_driver", tags], **environment)


def test_every_operation_of_torchs_client_works_on_our_server(torch_python):
    with our_server() as port:
        output = run([torch_python, HERE / "torch_client.py", port])
    print(output)
    assert output.count("ok ") >= 7 and "absent keys" not in output


def test_a_gloo_job_of_torch_runs_on_our_server_as_its_launchers_store(torch_python):
    with our_server() as port:
        assert run([torch_python, HERE / "torch_job.py", port]).strip() == "ok"
        listing = run([BIN / "tpstore", "list", "-e", f"127.0.0.1:{port}"])
    assert "2 stores have joined (init/)" in listing
    assert "group default_pg/0: Gloo addresses of ranks 0 1\n" in listing
    assert re.search(r"default_pg/0//cpu//0/1 +[0-9]+  Gloo's address [0-9.]+:[0-9]+", listing), listing


def test_our_client_works_on_torchs_server(torch_ports):
    driver("[server],[queues]", TP_PORT=torch_ports[0])


def test_our_client_works_on_torchs_server_without_libuv(torch_ports):
    driver("[server],[no_queues]", TP_PORT=torch_ports[1], TP_LEGACY="1")


def test_our_client_works_on_our_server_by_the_same_checks():
    with our_server() as port:
        driver("[server],[queues]", TP_PORT=port)


def test_the_operators_tool_looks_into_torchs_store(torch_ports):
    tpstore = [BIN / "tpstore", "-e", f"127.0.0.1:{torch_ports[0]}"]
    assert "a torch server answered" in run(tpstore + ["ping"])
    run(tpstore + ["set", "tool", "value"])
    assert run(tpstore + ["get", "tool"]) == "value\n"
    assert run(tpstore + ["add", "tool's counter", "3"]) == "3\n"
    assert re.search("^tool +5  value$", run(tpstore + ["list", "tool"]), re.MULTILINE)


def test_files_are_shared_whoever_began_them_and_removed_by_the_last(torch_python, tmp_path):
    torchs, ours = tmp_path / "begun by torch", tmp_path / "begun by us"
    with running([torch_python, HERE / "torch_file_store.py", torchs, ours]) as torch:
        assert torch.stdout.readline() == "written\n"
        driver("[file]", TP_FILE=str(torchs))
        assert torch.stdout.readline() == "closed\n"
        assert not torchs.exists()

        with running([TESTS_BIN / "store_interop_driver", "[file_first]"], TP_FILE=str(ours)) as driving:
            while not ours.exists() or b"written by tprun" not in ours.read_bytes():
                assert driving.poll() is None
            torch.stdin.write("go\n")
            torch.stdin.flush()
            assert torch.stdout.readline() == "closed\n"
            output = driving.stdout.read()
            assert driving.wait(20) == 0, output
        assert not ours.exists()
