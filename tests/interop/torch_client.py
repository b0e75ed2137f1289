"""Every operation of torch's TCPStore client on the server at 127.0.0.1:PORT, which must be fresh.

Prints "ok NAME" for each check that passed; an exception ends it. Runs with torch 2.4 and later: operations that this
torch has not are named in a line "absent NAME".
"""
import os
import sys
import threading
import time
from datetime import timedelta

import torch.distributed as dist

HOST, PORT = "127.0.0.1", int(sys.argv[1])
SECOND = timedelta(seconds=1)


def connect(timeout=10, **more):
    return dist.TCPStore(HOST, PORT, timeout=timedelta(seconds=timeout), **more)


def second_connection(store):
    return store.clone() if hasattr(store, "clone") else connect()


def raises(kind, words, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except kind as error:
        assert words in str(error), f"{words!r} is not in {error}"
        return
    raise AssertionError(f"{call} did not raise")


def started(call, *args):
    """Runs the call in a thread and returns a function that gives its result."""
    box = []
    thread = threading.Thread(target=lambda: box.append(call(*args)))
    thread.start()

    def result():
        thread.join(20)
        assert box, f"{call} {args} did not return"
        return box[0]

    return result


def settle(store):
    """What this store sent without being answered has arrived."""
    store.check([])


def keys_and_values():
    a = connect()
    b = second_connection(a)
    a.set("k", "v")
    assert b.get("k") == b"v"
    a.set("bytes", b"\x00\xff\n/")
    assert b.get("bytes") == b"\x00\xff\n/"
    a.set("empty", "")
    assert b.get("empty") == b""
    assert a.add("n", 5) == 5
    assert b.add("n", -7) == -2
    assert a.get("n") == b"-2"
    assert a.compare_set("c", "wrong", "x") == b"wrong"
    assert not b.check(["c"])
    assert a.compare_set("c", "", "x") == b"x"
    assert b.compare_set("c", "y", "z") == b"x"
    assert b.compare_set("c", "x", "z") == b"z"
    assert a.check(["k", "n"]) and not a.check(["k", "absent"]) and a.check([])
    assert a.num_keys() == 5
    assert b.delete_key("k") and not b.delete_key("k")
    assert a.num_keys() == 4
    a.append("log", "one ")
    settle(a)
    b.append("log", b"two")
    assert b.get("log") == b"one two"
    a.multi_set(["m1", "m2"], ["1", b"2"])
    assert a.multi_get(["m2", "m1", "m2"]) == [b"2", b"1", b"2"]
    a.wait(["m1", "m2", "m1"])


def timeouts_and_cancelling():
    store = connect()
    for _ in range(3):
        raises(dist.DistStoreError, "wait timeout after 50ms" if version() >= (2, 5) else "Timeout",
               store.wait, ["nobody sets this"], timedelta(milliseconds=50))
    store.set_timeout(timedelta(milliseconds=50))
    raises(dist.DistStoreError, "imeout", store.get, "nobody sets this")
    store.set_timeout(timedelta(seconds=10))
    assert store.add("still usable", 1) == 1


def waiters_are_released():
    waiting = connect()
    acting = second_connection(waiting)
    for name, act in [("set", lambda key: acting.set(key, "7")), ("add", lambda key: acting.add(key, 7)),
                      ("compare_set", lambda key: acting.compare_set(key, "", "7")),
                      ("append", lambda key: acting.append(key, "7")),
                      ("multi_set", lambda key: acting.multi_set([key], ["7"]))]:
        result = started(waiting.get, "by " + name)
        act("by " + name)
        assert result() == b"7", name


def sizes():
    store = connect()
    large = b"v" * (8 << 20)
    store.set("k" * 8000, large)
    assert second_connection(store).get("k" * 8000) == large
    store.append("k" * 8000, large)
    assert len(store.get("k" * 8000)) == 2 * len(large)
    keys = [f"many {i}" for i in range(5000)]
    store.multi_set(keys, ["x"] * len(keys))
    assert store.multi_get(keys) == [b"x"] * len(keys)
    store.wait(keys)


def bad_add_ends_the_connection():
    store = connect()
    store.set("word", "abc")
    raises(RuntimeError, "", store.add, "word", 1)
    raises(RuntimeError, "", store.num_keys)
    assert connect().get("word") == b"abc"


def prefixes():
    store = connect()
    inner = dist.PrefixStore("a", store)
    dist.PrefixStore("b/", inner).set("k", "v")
    assert store.get("a/b//k") == b"v"
    assert inner.get("b//k") == b"v"


def worker_count():
    """The master counts and waits through a server that is not its own: as under a launcher."""
    before = connect().num_keys()
    stores = [connect(world_size=3, is_master=False) for _ in range(3)]
    assert stores[0].num_keys() == before + 1


def queues():
    a = connect()
    b = second_connection(a)
    assert a.queue_len("q") == 0
    raises(dist.QueueEmptyError, "empty", a.queue_pop, "q", block=False)
    a.queue_push("q", "first")
    settle(a)
    b.queue_push("q", b"\x00")
    settle(b)
    assert a.queue_len("q") == 2
    assert a.queue_pop("q") == b"first" and b.queue_pop("q") == b"\x00"
    result = started(a.queue_pop, "later")
    b.queue_push("later", "v")
    assert result() == b"v"
    a.set_timeout(timedelta(milliseconds=50))
    raises(dist.DistStoreError, "wait timeout", a.queue_pop, "never")
    assert a.queue_len("never") == 0


def list_keys():
    store = connect()
    keys = store.list_keys()
    assert "log" in keys and "init/" not in keys and len(set(keys)) == len(keys)
    assert sorted(dist.PrefixStore("a", store).list_keys()) == ["b//k"]


def barrier():
    a = connect()
    b = second_connection(a)
    result = started(lambda: (a.barrier("gate", 2, timedelta(seconds=10)), True)[1])
    b.barrier("gate", 2, timedelta(seconds=10))
    assert result()
    raises(dist.DistStoreError, "barrier timeout", a.barrier, "closed gate", 2, timedelta(milliseconds=50))
    assert a.add("closed gate", 0) == 1


def version():
    import torch
    return tuple(int(part) for part in torch.__version__.split(".")[:2])


def main():
    needs = {queues: "queue_push", list_keys: "list_keys", barrier: "barrier"}
    for check in [keys_and_values, timeouts_and_cancelling, waiters_are_released, sizes, bad_add_ends_the_connection,
                  prefixes, worker_count, queues, list_keys, barrier]:
        if not hasattr(dist.TCPStore, needs.get(check, "set")):
            print("absent", check.__name__, flush=True)
            continue
        start = time.monotonic()
        check()
        print(f"ok {check.__name__} {time.monotonic() - start:.2f}s", flush=True)


main()
os._exit(0)  # the interpreter's own end takes a second
