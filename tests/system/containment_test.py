"""After tprun has ended, in whatever way, nothing that descends from it is left."""

import concurrent.futures

import pytest
from containment_jobs import ENDINGS, KINDS, Launcher, leftovers
from harness import TPRUN

TPRUN_JOB = Launcher("tprun", (str(TPRUN), "--nproc-per-node=2", "--shutdown-timeout=1", "--no-python"), "tp-agent")


@pytest.fixture(scope="module")
def left():
    """{ending: its leftovers}. The endings are independent of each other, so they run side by side."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        runs = {ending.name: pool.submit(leftovers, TPRUN_JOB, ending) for ending in ENDINGS}
        return runs


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", [ending.name for ending in ENDINGS])
def test_nothing_is_left(left, ending, kind):
    assert left[ending].result().get(kind, 0) == 0
