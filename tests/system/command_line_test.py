"""What a user sees of tprun's command line without starting a job: plans, refusals, help, completion, cost."""

import json
import os
import pathlib
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

BIN = pathlib.Path(os.environ.get("TP_BIN_DIR", "build/bin")).resolve()
TPRUN = BIN / "tprun"


def clean_environment(**extra):
    names = ("PET_", "TPRUN_", "TORCHELASTIC_", "TORCH_", "SLURM_", "CUDA_", "HIP_", "ROCR_", "PYTHON_EXEC", "OMP_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    return {**kept, **extra}


def tprun(*words, program=TPRUN, cwd=None, **environment):
    return subprocess.run([str(program), *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=30,
                          env=clean_environment(**environment))


def plan(*words, **options):
    result = tprun("--dry-run", "--json", *words, **options)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def refusal(*words, **options):
    result = tprun(*words, **options)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, "one line, no more"
    return result.stderr.strip()


def test_a_dry_run_is_one_json_object_with_the_plan_and_every_worker():
    made = plan("--nproc-per-node=2", "--max-restarts=3", "--rdzv-id=job7", "true", "a b", "${local_rank}", "kill $$")
    assert {name: made[name] for name in ("min_nodes", "max_nodes", "nproc_per_node", "node_rank", "max_restarts")} == {
        "min_nodes": 1, "max_nodes": 1, "nproc_per_node": 2, "node_rank": 0, "max_restarts": 3}
    assert (made["rdzv_backend"], made["rdzv_endpoint"], made["rdzv_id"]) == ("c10d", "localhost:0", "job7")
    assert [worker["local_rank"] for worker in made["workers"]] == [0, 1]
    assert made["workers"][1]["argv"][1:] == ["a b", "1", "kill $$"]
    assert made["workers"][1]["env"]["RANK"] == "1"
    assert made["workers"][1]["env"]["OMP_NUM_THREADS"] == "1"


def test_a_dry_run_in_words_shows_what_was_chosen_and_why():
    result = tprun("--dry-run", "true")
    assert result.returncode == 0
    assert "an executable file in PATH" in result.stdout
    assert "LOCAL_RANK=0" in result.stdout


def test_wrong_input_is_one_line_that_says_what_would_be_right(tmp_path):
    (tmp_path / "bad.toml").write_text("\nmax-restart = 3\n")
    assert refusal("--nproc-per-node=two", "true") == (
        "tprun: --nproc-per-node=two: not a count; give a number, 'cpu', 'gpu', 'xpu' or 'auto'")
    assert refusal("--nproc-per-nodes=2", "true") == (
        "tprun: --nproc-per-nodes: no such option; did you mean --nproc-per-node?")
    assert refusal("true", PET_MAX_RESTARTS="zz") == (
        "tprun: PET_MAX_RESTARTS=zz: not a count; give a whole number")
    assert refusal("--config=bad.toml", "true", cwd=tmp_path) == (
        "tprun: bad.toml:2: max-restart: no such key; did you mean max-restarts?")
    assert "no program given" in refusal()


def test_a_program_that_an_option_took_for_its_value_is_told_as_that(tmp_path):
    (tmp_path / "hello.py").write_text("")
    taken = "needs a value but hello.py, a program, follows; give"
    assert refusal("--nproc-per-node", "hello.py", cwd=tmp_path) == (
        f"tprun: --nproc-per-node: {taken} --nproc-per-node=N hello.py")
    assert refusal("--max-restarts", "hello.py", "--epochs", "3", cwd=tmp_path) == (
        f"tprun: --max-restarts: {taken} --max-restarts=N hello.py")
    assert refusal("-t", "hello.py", cwd=tmp_path) == f"tprun: --tee: {taken} --tee=MASK hello.py"
    assert refusal("--role", "true") == (
        "tprun: --role: needs a value but true, a program, follows; give --role=NAME true")
    assert refusal("--nproc-per-node", "nobody-has-this") == (
        "tprun: --nproc-per-node=nobody-has-this: not a count; give a number, 'cpu', 'gpu', 'xpu' or 'auto'")
    assert "no program given" in refusal("--nproc-per-node", "4")
    assert "no program given" in refusal("--report", "hello.py", cwd=tmp_path)


def test_a_place_that_cannot_be_written_is_told_before_anything_is_started(tmp_path):
    (tmp_path / "file").write_text("")
    ran = tmp_path / "ran"
    for words, said in ((["--report=nowhere/r.json"], "nowhere/r.json: cannot be written: No such file"),
                        (["--report=/proc/r.json"], "/proc/r.json: cannot be written"),
                        (["--report=."], "cannot be written: Is a directory"),
                        (["--log-dir=file"], "--log-dir=file: is not a folder"),
                        (["--log-dir=file/logs"], "log folder file/logs: Not a directory"),
                        (["--log-dir=/proc/logs"], "log folder /proc/logs: "),
                        (["--log-dir=/proc", "--tee=3"], "log folder /proc: ")):
        assert said in refusal(*words, "touch", ran, cwd=tmp_path)
    assert not ran.exists()
    assert tprun("--report=report.json", "--log-dir=a/b", "true", cwd=tmp_path).returncode == 0
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a", "file", "report.json"]


@pytest.fixture
def nobodys_folder():
    """A folder that everybody may enter and only root may write to, with one below it that nobody else may enter."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        (folder / "closed").mkdir(mode=0o700)
        yield folder


@pytest.mark.parametrize("place", ["--report={}/r.json", "--report={}/closed/r.json", "--log-dir={}", "--log-dir={}/logs",
                                   "--log-dir={}/closed/logs"])
def test_a_folder_without_permission_is_told_before_anything_is_started(nobodys_folder, place):
    if os.geteuid() != 0:
        pytest.skip("needs root, to be somebody else")
    program = nobodys_folder / "tprun"
    shutil.copy(TPRUN, program)
    result = subprocess.run([str(program), place.format(nobodys_folder), "true"], cwd="/", user=65534, group=65534,
                            extra_groups=[], capture_output=True, text=True, env=clean_environment(), timeout=30)
    assert result.returncode == 2, result.stderr
    assert place.format(nobodys_folder).partition("=")[2] in result.stderr and "Permission denied" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_temporary_folder_that_is_missing_is_not_made(tmp_path):
    missing = tmp_path / "missing"
    result = tprun("sh", "-c", "echo $TORCHELASTIC_ERROR_FILE", TMPDIR=str(missing))
    assert result.returncode == 0
    assert result.stdout.startswith(("/dev/shm/", "/tmp/"))
    assert f"log folder {missing}: No such file" in refusal("--tee=3", "true", TMPDIR=str(missing))
    assert not missing.exists()


@pytest.mark.parametrize("limit", [5, 8, 12, 20])
def test_too_few_open_files_are_told_with_the_limit(tmp_path, limit):
    result = subprocess.run(["bash", "-c", f'ulimit -n {limit}; exec "$@"', "bash", str(TPRUN), "--nproc-per-node=20",
                             "--log-dir=logs", "--tee=3", "true"], cwd=tmp_path, capture_output=True, text=True,
                            timeout=30, env=clean_environment())
    assert result.returncode == 70
    assert f"Too many open files; the limit is {limit} (ulimit -Hn)" in result.stderr
    assert "--master-addr" not in result.stderr


def test_a_program_without_a_name_is_shown_in_quotes():
    result = tprun("")
    assert result.returncode == 127
    assert result.stderr == "tprun: '': cannot be run: there is no such program in this folder or in PATH\n"


def test_a_dry_run_of_many_nodes_needs_no_other_node():
    made = plan("--nnodes=2:4", "--rdzv-backend=c10d", "--rdzv-endpoint=n1", "true")
    assert (made["min_nodes"], made["max_nodes"], made["rdzv_endpoint"]) == (2, 4, "n1:29400")


@pytest.mark.parametrize("words, code", [(["./nope"], 127), (["nope-at-all"], 127), (["/etc"], 126),
                                         (["--no-python", "./plain"], 126)])
def test_a_program_that_cannot_be_run_gives_a_shells_exit_code(tmp_path, words, code):
    (tmp_path / "plain").write_text("x")
    result = tprun(*words, cwd=tmp_path)
    assert result.returncode == code
    assert result.stderr.count("\n") == 1
    assert words[-1] in result.stderr


def test_a_program_that_cannot_be_run_is_in_the_report_and_in_the_parents_error_file(tmp_path):
    result = tprun("--report=report.json", "--max-restarts=3", "./nope", cwd=tmp_path,
                   TORCHELASTIC_ERROR_FILE=str(tmp_path / "parent.json"))
    assert result.returncode == 127
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["exit_code"], report["restarts"], report["root_cause"]["startup_failure"]) == (127, 0, True)
    assert "there is no such file" in (tmp_path / "parent.json").read_text()
    (tmp_path / "torchrun").symlink_to(TPRUN)
    assert tprun("./nope", program=tmp_path / "torchrun").returncode == 1


def test_the_python_beside_tprun_runs_scripts_also_through_a_link(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "tprun").symlink_to(TPRUN)
    (folder / "python").symlink_to(sys.executable)
    (tmp_path / "t.py").write_text("")
    made = plan("t.py", "x", cwd=tmp_path, program=folder / "tprun", VIRTUAL_ENV="/nowhere")
    assert made["workers"][0]["argv"] == [str(folder / "python"), "-u", "t.py", "x"]


def test_under_the_name_of_the_legacy_launcher_the_local_rank_is_an_argument(tmp_path):
    (tmp_path / "tplaunch").symlink_to(TPRUN)
    (tmp_path / "t.py").write_text("")
    made = plan("--nproc_per_node=2", "t.py", "a", cwd=tmp_path, program=tmp_path / "tplaunch")
    assert made["workers"][1]["argv"][1:] == ["-u", "t.py", "--local-rank=1", "a"]
    made = plan("--use_env", "t.py", "a", cwd=tmp_path, program=tmp_path / "tplaunch")
    assert made["workers"][0]["argv"][1:] == ["-u", "t.py", "a"]


def test_help_and_version_go_to_stdout():
    for words in (["--help"], ["-h"], ["--version"]):
        result = tprun(*words)
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout.startswith("tprun " if "--version" in words else "Usage: tprun")


def test_output_that_cannot_be_written_is_not_success():
    with open("/dev/full", "w") as full:
        result = subprocess.run([TPRUN, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 70
    assert "standard output" in result.stderr


def complete_in_bash(*words):
    script = (f'source <("{TPRUN}" --print-completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tprun; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    result = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, timeout=30,
                            cwd="/", env=clean_environment())
    assert result.stderr == ""
    return result.stdout.split()


def test_bash_completes_options_before_the_program_and_files_behind_it():
    assert complete_in_bash("tprun", "--rdzv-b") == ["--rdzv-backend"]
    assert "c10d" in complete_in_bash("tprun", "--rdzv-backend", "")
    assert complete_in_bash("tprun", "--rdzv-backend", "=", "c") == ["c10d"]
    assert "static" in complete_in_bash("tprun", "--rdzv_backend", "=")
    assert complete_in_bash("tprun", "--nproc_per_node", "=", "2", "--standalone", "-m", "-r3", "--nno") == ["--nnodes"]
    assert complete_in_bash("tprun", "--log-dir", "/et") == ["/etc"]
    assert complete_in_bash("tprun", "true", "--nno") == []
    assert complete_in_bash("tprun", "true", "/et") == ["/etc"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_sound_in_their_shell(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here")
    script = tmp_path / "script"
    script.write_text(tprun("--print-completion", shell).stdout)
    subprocess.run([shell, "-n", script], check=True, timeout=30)


def test_fish_completes_options_before_the_program_only(tmp_path):
    if shutil.which("fish") is None:
        pytest.skip("fish is not here")
    script = tmp_path / "script"
    script.write_text(tprun("--print-completion", "fish").stdout)

    def complete(line):
        result = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"],
                                capture_output=True, text=True, timeout=30, env=clean_environment(HOME=str(tmp_path)))
        return {entry.split("\t")[0] for entry in result.stdout.split("\n")}

    assert "--rdzv-backend" in complete("tprun --rdzv-b")
    assert "c10d" in complete("tprun --rdzv-backend ")
    assert "--nnodes" not in complete("tprun true --nno")


def test_tcsh_completes_options_their_values_and_files(tmp_path):
    if shutil.which("tcsh") is None:
        pytest.skip("tcsh is not here")
    script = tmp_path / "script"
    script.write_text(tprun("--print-completion", "tcsh").stdout)
    loaded = subprocess.run(["tcsh", "-f", "-c", f"source {script}; complete tprun"], capture_output=True, text=True,
                            timeout=30)
    assert (loaded.returncode, loaded.stderr) == (0, "")
    assert "rdzv-backend" in loaded.stdout

    shell, terminal = pty.fork()
    if shell == 0:
        # Without a terminal that can move its cursor tcsh completes nothing.
        os.execvpe("tcsh", ["tcsh", "-f"], clean_environment(TERM="vt100", HOME=str(tmp_path)))

    def shown_after(typed, expected):
        os.write(terminal, typed)
        shown = b""
        deadline = time.monotonic() + 60
        while expected not in shown:
            assert time.monotonic() < deadline, shown
            if select.select([terminal], [], [], 1)[0]:
                shown += os.read(terminal, 65536)

    try:
        shown_after(f"source {script}; set prompt=ready:\n".encode(), b"\nready:")
        for typed, expected in ((b"tprun --rdzv-b\t", b"--rdzv-backend "), (b"tprun --rdzv-backend=c\t", b"=c10d "),
                                (b"tprun --rdzv-backend \x04", b"tcpstore"), (b"tprun --log-dir /et\t", b"/etc/"),
                                (b"tprun true /et\t", b"/etc/")):
            shown_after(typed, expected)
            os.write(terminal, b"\x15")  # empties the line
    finally:
        os.kill(shell, signal.SIGKILL)
        os.waitpid(shell, 0)
        os.close(terminal)


def test_the_manual_page_is_well_formed():
    if shutil.which("man") is None:
        pytest.skip("man is not here")
    page = pathlib.Path(__file__).parents[2] / "docs/man/tprun.1"
    result = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", page], capture_output=True, text=True, timeout=30,
                            env=clean_environment(MANWIDTH="100", LC_ALL="C.UTF-8"))
    assert result.returncode == 0
    assert result.stderr == ""
    assert "--nproc-per-node" in result.stdout
