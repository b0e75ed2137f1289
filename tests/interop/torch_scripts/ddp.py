"""An ordinary DistributedDataParallel script: nothing in it knows of tprun.

Kills RANK 1 once, at step --kill-at of the first attempt, when asked to; resumes from its checkpoint like any
restartable job. Prints the final loss on rank 0.
"""
import argparse
import os
import signal
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--checkpoint", default="")
    parser.add_argument("--kill-at", type=int, default=-1)
    parser.add_argument("--raise-at", type=int, default=-1)
    args = parser.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    assert rank == int(os.environ["RANK"]) and world == int(os.environ["WORLD_SIZE"])

    torch.manual_seed(7)
    model = DDP(torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    start = 0
    if args.checkpoint and os.path.exists(args.checkpoint):
        state = torch.load(args.checkpoint)
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["step"]

    loss = None
    for step in range(start, args.steps):
        generator = torch.Generator().manual_seed(1000 * step + rank)
        x = torch.randn(8, 16, generator=generator)
        loss = (model(x) - x[:, :4]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if args.checkpoint and rank == 0:
            state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step + 1}
            torch.save(state, args.checkpoint + ".tmp")
            os.replace(args.checkpoint + ".tmp", args.checkpoint)
        if rank == 1 and attempt == 0 and step == args.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if rank == 1 and step == args.raise_at:
            raise ValueError("the data of step %d is broken" % step)

    total = loss.detach().clone()
    dist.all_reduce(total)
    if rank == 0:
        print("final loss %.9f attempt %d world %d" % (total.item() / world, attempt, world), flush=True)
    dist.destroy_process_group()
    # torch 2.15 aborts one good run in several while the interpreter shuts down, under any launcher.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
