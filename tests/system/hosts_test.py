"""tprun --hosts over a real sshd on loopback: its own port, keys and configuration."""
import shutil
import socket
import subprocess
import tempfile
import pathlib

import pytest
from harness import TPRUN, alive_with, clean_environment, finish, running, tprun, wait_for

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin:/sbin")
pytestmark = pytest.mark.skipif(SSHD is None, reason="openssh-server is not installed")


@pytest.fixture(scope="module")
def ssh():
    """The command that reaches the hosts a, b, c and d, which are all this machine; nobody listens on `dead`."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tp-sshd-"))
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    (folder / "sshd_config").write_text(f"""\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
MaxStartups 100
""")
    (folder / "ssh_config").write_text(f"""\
Host dead
  Port 1
Host *
  HostName 127.0.0.1
  Port {port}
  IdentityFile {folder}/user
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known
  StrictHostKeyChecking accept-new
  LogLevel ERROR
""")
    pathlib.Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen([SSHD, "-D", "-f", folder / "sshd_config"], stderr=subprocess.DEVNULL)
    command = f"ssh -F {folder}/ssh_config"
    try:
        wait_for(lambda: subprocess.run([*command.split(), "-o", "BatchMode=yes", "a", "true"],
                                        capture_output=True).returncode == 0, "sshd to let us in")
        yield command
    finally:
        server.terminate()
        server.wait(20)
        shutil.rmtree(folder)


def test_hosts_form_one_world_and_their_output_comes_back(ssh):
    done = tprun("--hosts=a:2,b:2", f"--ssh-command={ssh}", "sh", "-c", 'echo "rank $RANK of $WORLD_SIZE $GREETING"',
                 GREETING="hello")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} of 4 hello" for rank in range(4)]


def test_the_exit_code_is_that_of_the_worker_that_failed(ssh):
    done = tprun("--hosts=a,b", f"--ssh-command={ssh}", "sh", "-c", "test $RANK = 1 && exit 7; exec sleep 1000")
    assert done.returncode == 7, done.stderr


def test_a_host_that_cannot_be_reached_is_named(ssh):
    done = tprun("--hosts=a,dead", f"--ssh-command={ssh}", "true")
    assert done.returncode == 75
    assert "tprun: dead: ssh: connect to host 127.0.0.1 port 1: Connection refused" in done.stderr


@pytest.mark.parametrize("how", ["terminate", "kill"])
def test_nothing_is_left_when_the_first_one_stops(ssh, tmp_path, how):
    mark = f"tp-{tmp_path.name}"
    worker = f"touch {tmp_path}/up.$RANK; exec sleep 1000"
    with running("--hosts=a,b,c", f"--ssh-command={ssh}", "sh", "-c", worker, MARK=mark) as process:
        wait_for(lambda: len(list(tmp_path.glob("up.*"))) == 3, "three workers to run")
        getattr(process, how)()
        code, _, _ = finish(process)
        assert code == (-15 if how == "terminate" else -9)
        wait_for(lambda: not alive_with(f"MARK={mark}"), "everything on all hosts to be gone")
