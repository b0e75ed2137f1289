"""What the README shows is run: each ```sh block, with the built programs in PATH, in an empty folder."""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SET_UP = ("scripts/quickstart.sh", "scripts/test.sh")  # run by whoever runs this test; too long to run inside it


def blocks(language):
    text = (ROOT / "README.md").read_text()
    return re.findall(r"^```" + language + r"\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


SHELL = [block for block in blocks("sh") if not any(script in block for script in SET_UP)]


def test_the_two_set_up_commands_exist_and_are_shown():
    shown = "".join(blocks("sh"))
    for script in SET_UP:
        assert script in shown
        assert os.access(ROOT / script, os.X_OK)


@pytest.mark.parametrize("block", SHELL, ids=range(len(SHELL)))
def test_a_shell_block_runs(block, tmp_path):
    if "torch" in block and not os.environ.get("TP_TORCH_PYTHON"):
        pytest.skip("TP_TORCH_PYTHON is not set: no PyTorch to run")
    environment = dict(os.environ, PATH=os.environ["TP_BIN_DIR"] + ":" + os.environ["PATH"])
    environment["PYTHON_EXEC"] = os.environ.get("TP_TORCH_PYTHON") or "/usr/bin/python3"
    for source in (ROOT / "tests/interop/torch_scripts").glob("*.py"):
        (tmp_path / source.name).symlink_to(source)
    run = subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=tmp_path, env=environment, text=True,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    assert run.returncode == 0, run.stdout


def test_the_program_shown_is_the_one_the_consumer_test_builds():
    assert (ROOT / "tests/consumer/main.cpp").read_text() in blocks("cpp")


def test_every_link_leads_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
