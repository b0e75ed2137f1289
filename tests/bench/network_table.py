#!/usr/bin/env python3
"""What becomes of a job when its network breaks, and how long that takes: a table, each row on fresh hosts of namespaces.

    network_table.py [--keep-alive 3]

Time runs from the event to the start of the last worker of the next world. Ranks are watched by a lock that each worker holds
for as long as it lives; after the end of each row nothing may be left on any host. Needs root, and pytest for the hosts'
harness in tests/system.
"""

import argparse
import contextlib
import os
import pathlib
import signal
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "system"))
from network_hosts import Network  # noqa: E402
from network_test import World  # noqa: E402


class Row:
    def __init__(self, count, keep_alive, nnodes, **options):
        self.net = Network(count)
        self.folder = tempfile.TemporaryDirectory()
        conf = f"keep_alive_interval={keep_alive / 3},keep_alive_max_attempt=3,last_call_timeout=1,join_timeout=120"
        self.world = World(self.net, pathlib.Path(self.folder.name), nnodes, conf=conf, **options)
        self.hosts = self.net.hosts

    def begin(self, hosts=None):
        hosts = hosts or self.hosts
        self.world.start(*hosts).wait_for_world(hosts)

    def seconds_to(self, hosts, event):
        seen, began = len(self.world.starts()), time.monotonic()
        event()
        self.world.wait_for_world(hosts, since=seen, timeout=120)
        return time.monotonic() - began

    def end(self, hosts):
        self.world.end(*hosts)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.net.close()
        self.folder.cleanup()


def rows(keep):
    with Row(3, keep, "3") as row:
        row.begin()
        took = row.seconds_to(row.hosts, (pathlib.Path(row.folder.name) / "fail_n3").touch)
        row.end(row.hosts)
        yield "a worker fails", "all three start again, one restart", took
    with Row(3, keep, "2:3") as row:
        row.begin()
        took = row.seconds_to(row.hosts[:2], lambda: row.world.jobs["n3"].send_signal(signal.SIGTERM))
        row.end(row.hosts[:2])
        yield "SIGTERM to one tprun", "the other two go on", took
    with Row(3, keep, "2:3") as row:
        row.begin()
        took = row.seconds_to(row.hosts[:2], lambda: os.kill(row.world.jobs["n3"].agent(), signal.SIGKILL))
        row.end(row.hosts[:2])
        yield "SIGKILL of an agent", "the other two go on", took
    with Row(3, keep, "2:3") as row:
        row.begin()
        took = row.seconds_to(row.hosts, lambda: os.kill(row.world.jobs["n3"].agent(), signal.SIGSTOP))
        row.end(row.hosts)
        yield "an agent is frozen", "its guardian starts another; all three again", took
    with Row(3, keep, "2:3") as row:
        row.begin()
        took = row.seconds_to(row.hosts[:2], lambda: row.net.cut(row.hosts[2]))
        yield "a link is cut", "the other two go on", took
        took = row.seconds_to(row.hosts, row.net.heal)
        row.end(row.hosts)
        yield "the link is healed", "all three again", took
    with Row(3, keep, "2:3") as row:
        row.begin()
        took = row.seconds_to(row.hosts[:2], row.hosts[2].die)
        row.end(row.hosts[:2])
        yield "a host loses its power", "the other two go on", took
    with Row(3, keep, "2:3", endpoint="n1,n2,n3") as row:
        row.begin()
        took = row.seconds_to(row.hosts[1:], row.hosts[0].die)
        row.end(row.hosts[1:])
        yield "the store's host loses its power", "the other two meet at the next endpoint", took
    with Row(5, keep, "2:5", endpoint="n1,n3,n4") as row:
        row.begin()
        took = row.seconds_to(row.hosts[2:], lambda: row.net.split(row.hosts[:2]))
        yield "the network splits, the store's host on the smaller side", "the three of five go on", took
        took = row.seconds_to(row.hosts, row.net.heal)
        row.end(row.hosts)
        yield "the network is healed", "all five again", took
    with Row(4, keep, "2:3") as row:
        row.begin(row.hosts[:2])
        took = row.seconds_to(row.hosts[:3], lambda: row.world.start(row.hosts[2]))
        yield "a third host comes", "all three, no restart spent", took
        row.world.start(row.hosts[3])
        row.world.jobs["n4"].agent()
        members = [*row.hosts[:2], row.hosts[3]]
        took = row.seconds_to(members, lambda: row.world.jobs["n3"].send_signal(signal.SIGTERM))
        row.end(members)
        yield "a member leaves while a spare waits", "the spare takes its place", took


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--keep-alive", type=float, default=3)
    keep = options.parse_args().keep_alive
    print(f"keep-alive {keep:g} s, load {os.getloadavg()[0]:.1f}")
    print("| what happens | what becomes of it | seconds |\n| --- | --- | --- |")
    with contextlib.suppress(BrokenPipeError):
        for event, outcome, took in rows(keep):
            print(f"| {event} | {outcome} | {took:.2f} |", flush=True)


if __name__ == "__main__":
    main()
