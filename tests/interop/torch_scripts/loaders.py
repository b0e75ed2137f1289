"""DataLoader workers, torch.multiprocessing, and a TCPStore of the script's own on another port."""
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((256,), float(index * index))


def child(index, queue, received):
    queue.put(torch.ones(1024) * index)
    received.wait()  # a tensor's memory is the sender's until the receiver has mapped it


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()

    loader = DataLoader(Squares(), batch_size=8, num_workers=2)
    assert sum(float(batch[:, 0].sum()) for batch in loader) == sum(i * i for i in range(64))

    context = mp.get_context("spawn")
    queue, received = context.Queue(), context.Event()
    process = context.Process(target=child, args=(rank, queue, received))
    process.start()
    assert float(queue.get()[0]) == rank
    received.set()
    process.join()
    assert process.exitcode == 0

    port = [None]
    if rank == 0:
        with socket.socket() as free:
            free.bind((os.environ["MASTER_ADDR"], 0))
            port = [free.getsockname()[1]]
    dist.broadcast_object_list(port)
    store = dist.TCPStore(os.environ["MASTER_ADDR"], port[0], world, is_master=rank == 0)
    store.set("from%d" % rank, str(rank))
    assert sum(int(store.get("from%d" % r)) for r in range(world)) == world * (world - 1) // 2
    dist.barrier()
    if rank == 0:
        print("loaders ok", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
