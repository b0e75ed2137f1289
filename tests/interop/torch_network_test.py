"""An unmodified PyTorch script over hosts of namespaces: with RANK 0 on the store's host and elsewhere, and with a host that
dies and is replaced."""
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "system"))
from harness import wait_for  # noqa: E402
from network_hosts import Network, can_make_hosts  # noqa: E402

TORCH_PYTHON = os.environ.get("TP_TORCH_PYTHON", "")
SCRIPT = pathlib.Path(__file__).parent / "torch_scripts" / "own_store.py"

pytestmark = [pytest.mark.skipif(not TORCH_PYTHON, reason="TP_TORCH_PYTHON is not set: no PyTorch to run"),
              pytest.mark.skipif(not can_make_hosts(), reason="needs root and namespaces, to make hosts of its own")]


@pytest.mark.parametrize("first", ["n1", "n2"])
def test_a_script_with_a_store_of_its_own_trains_and_goes_on_with_a_replacement(tmp_path, first):
    """n1 hosts the rendezvous; RANK 0 is on `first`, by the node ranks given."""
    conf = "keep_alive_interval=1,keep_alive_max_attempt=3,join_timeout=120"
    with Network(2) as net:
        def start(host, node_rank):
            return host.start("--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d", "--rdzv-endpoint=n1",
                              "--rdzv-id=job7", f"--rdzv-conf={conf}", f"--node-rank={node_rank}", SCRIPT, "29777",
                              cwd=tmp_path, PYTHON_EXEC=TORCH_PYTHON)

        def wait_for_world(*hosts, since):
            """All ranks of a world of these hosts, in this order, have trained for some steps."""
            wanted = {f"{rank} {' '.join(hosts)}" for rank in range(len(hosts))}

            def is_there():
                log = tmp_path / "worlds"
                return wanted <= set(log.read_text().splitlines()[since:]) if log.exists() else False
            wait_for(is_there, f"a world of {hosts}", 120)

        order = ["n1", "n2"] if first == "n1" else ["n2", "n1"]
        jobs = {host.name: start(host, order.index(host.name)) for host in net.hosts}
        wait_for_world(*order, since=0)
        net.hosts[1].die()
        late = net.add_host()
        jobs["n3"] = start(late, order.index("n2"))
        wait_for_world(*["n3" if name == "n2" else name for name in order], since=2)
        (tmp_path / "done").touch()
        for name in ("n1", "n3"):
            code, out, err = jobs[name].finish()
            assert code == 0, f"{name}: {out}{err}"
        for host in (net.hosts[0], late):
            wait_for(lambda here=host: not here.processes(), f"nothing to be left on {host.name}", 20)
