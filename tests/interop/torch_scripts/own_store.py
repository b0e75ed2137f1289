"""A DistributedDataParallel script that also makes a store of its own beside the process group, as many do: RANK 0 serves
it at MASTER_ADDR, on another port. Trains until the file `done` is there; says where each rank is when it starts."""
import os
import socket
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(sys.argv[1]), world, is_master=rank == 0)
    store.set(f"host/{rank}", socket.gethostname())
    hosts = [store.get(f"host/{other}").decode() for other in range(world)]

    torch.manual_seed(7)
    model = DDP(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    step = 0
    while True:
        optimizer.zero_grad()
        model(torch.randn(4, 8)).pow(2).mean().backward()
        optimizer.step()
        step += 1
        if step == 3:  # it works, everywhere
            with open("worlds", "a") as log:
                log.write(f"{rank} {' '.join(hosts)}\n")
        is_over = torch.tensor([float(step > 3 and os.path.exists("done"))])
        dist.all_reduce(is_over)
        if is_over.item() > 0:
            break
        time.sleep(0.02)
    dist.destroy_process_group()
    # torch 2.15 aborts one good run in several while the interpreter shuts down, under any launcher.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
