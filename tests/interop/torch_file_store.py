"""Torch's half of two shared FileStores. Arguments: the path that torch begins, then the one that it joins."""
import sys
from datetime import timedelta

import torch.distributed as dist


def open_store(path):
    store = dist.FileStore(path, 2)
    store.set_timeout(timedelta(seconds=60))
    return store


store = open_store(sys.argv[1])
store.set("from torch", "hello")
store.set("kept", "old")
store.set("kept", "new")
store.set("deleted", "1")
store.delete_key("deleted")
store.set("to delete", "1")
store.set("bytes", b"\x00\xff")
assert store.add("counter", 3) == 3
store.compare_set("claimed", "", "by torch")
print("written", flush=True)
assert store.get("from tprun") == b"done"
assert store.get("answer") == b"\x00\xff!"
assert store.add("counter", 0) == 5
assert store.get("claimed") == b"by tprun"
assert not store.check(["to delete"])
store.set("torch has read", "1")
del store
print("closed", flush=True)

sys.stdin.readline()
store = open_store(sys.argv[2])
assert store.get("written by tprun") == b"\x00value"
assert store.add("counter", 1) == 8
store.set("written by torch", "1")
del store
print("closed", flush=True)
