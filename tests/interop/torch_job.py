"""Two ranks of a Gloo job on a launcher's store at 127.0.0.1:PORT: init, a collective, a new group, the end."""
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist


def run(rank):
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[1],
                      TORCHELASTIC_USE_AGENT_STORE="True", TORCHELASTIC_RESTART_COUNT="0")
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    value = torch.full((2,), float(rank + 1))
    dist.all_reduce(value)
    assert value.tolist() == [3.0, 3.0]
    gathered = [None, None]
    dist.all_gather_object(gathered, {"rank": rank}, group=dist.new_group([0, 1]))
    assert [entry["rank"] for entry in gathered] == [0, 1]
    dist.barrier()
    os._exit(0)


child = os.fork()
if child == 0:
    run(1)
other = os.fork()
if other == 0:
    run(0)
assert os.waitpid(child, 0)[1] == 0 and os.waitpid(other, 0)[1] == 0
print("ok")
