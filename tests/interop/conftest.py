"""Where the tests find torch. Says in one line when there is none, so that CTest can call the tests skipped."""
import os
import subprocess

import pytest


def find_torch():
    python = os.environ.get("TP_TORCH_PYTHON", "")
    if not python:
        return None, "TP_TORCH_PYTHON is not set; scripts/torch.sh prints a python that has torch"
    probe = [python, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"]
    try:
        if subprocess.run(probe, timeout=60).returncode == 0:
            return python, ""
    except OSError as error:
        return None, f"TP_TORCH_PYTHON={python}: {error}"
    return None, f"TP_TORCH_PYTHON={python} has no torch"


TORCH_PYTHON, WHY_NOT = find_torch()


@pytest.fixture(scope="session")
def torch_python():
    if TORCH_PYTHON is None:
        pytest.skip(WHY_NOT)
    return TORCH_PYTHON


def pytest_terminal_summary(terminalreporter):
    if TORCH_PYTHON is None:
        terminalreporter.write_line(f"skipped for want of torch: {WHY_NOT}")
