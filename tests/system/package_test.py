"""The .deb holds what a user needs, and nothing of a build folder or of Gloo in tprun."""
import os
import pathlib
import re
import subprocess

BUILD = pathlib.Path(os.environ["TP_BIN_DIR"]).parent


def output(*words, **options):
    return subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          **options).stdout


def test_the_deb_carries_programs_library_manual_and_completion(tmp_path):
    output("cpack", "-G", "DEB", "--config", str(BUILD / "CPackConfig.cmake"), "-B", str(tmp_path), cwd=tmp_path)
    (package,) = tmp_path.glob("*.deb")
    files = output("dpkg-deb", "-c", str(package))
    for wanted in ("usr/bin/tprun", "usr/bin/tpstore", "usr/bin/tplaunch",
                   "libtensorplay_distributed.so", "TensorPlayDistributedConfig.cmake", "man1/tprun.1",
                   "bash-completion/completions/tprun", "doc/tprun/configs/tprun.toml"):
        assert wanted in files, wanted
    root = tmp_path / "root"
    output("dpkg-deb", "-x", str(package), str(root))
    assert re.match(r"tprun \d", output(str(root / "usr/bin/tprun"), "--version"))
    subprocess.run([str(root / "usr/bin/tprun"), "--nproc-per-node=2", "true"], check=True)


def test_tprun_loads_nothing_but_the_c_library():
    needed = re.findall(r"NEEDED\s+(\S+)", output("objdump", "-p", str(BUILD / "bin/tprun")))
    assert set(needed) <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}, needed
