"""A PKCS#11 module that means harm has the PIN and its user's files, and nothing that its process gave up before it was loaded."""
import errno
import shutil
import subprocess
from pathlib import Path

import pytest

from helpers import requirement
from helpers.places import is_sanitized

pytestmark = [requirement("R46")]

SOURCE = Path(__file__).parent / "attacks/hostile_module.c"
STAYS = {"thread", "own_limit"}


@pytest.fixture
def module(tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    built = tmp_path / "hostile.so"
    subprocess.run(["cc", "-O1", "-D_GNU_SOURCE", "-shared", "-fPIC", "-pthread", "-o", built, SOURCE], check=True, timeout=60)
    return built


def scope_of_signals():
    """Whether Landlock keeps it out of other processes' memory, where the kernel says so (ABI 6)."""
    import ctypes
    return ctypes.CDLL(None).syscall(444, None, 0, 1) >= 6


def test_what_a_module_cannot_do(cloche, module, tmp_path):
    if is_sanitized(cloche.binary):
        pytest.skip("a sanitized cloche has no filter")
    cloche.env["XDG_DATA_HOME"] = str(tmp_path / "data")
    with subprocess.Popen(["sleep", "60"]) as victim:
        try:
            (cloche.home / "victim").write_text(str(victim.pid), encoding="ascii")
            said = cloche("signer", "add", "main", "--module", str(module), "--token", "t", "--object", "o", stdin="1234\n")
            assert said.code == 125 and "[sign.token.module]" in said.err, said
            assert victim.poll() is None, "it was signalled"
        finally:
            victim.kill()
    became = {name: int(code) for name, code in (line.split() for line in (cloche.home / "said").read_text().splitlines())}
    expected = {name: 0 if name in STAYS else errno.ENOSYS if name == "clone3" else errno.EPERM for name in became}
    if scope_of_signals():
        expected["memory"] = errno.EACCES
    else:
        expected.pop("memory")
        became.pop("memory")
    assert became == expected and len(became) >= 20
