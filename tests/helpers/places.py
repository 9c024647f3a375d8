"""Where the programs under test are, and who may run them."""
import functools
import os
import pwd
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
PYTHON = "/usr/bin/python3"     # the system's: it is visible inside a private root, a pyenv shim is not
NODE = "/usr/bin/node"
IS_ROOT = os.geteuid() == 0

# Heavy loops multiply their count by this: 0.1 for a quick look, 10 for a night.
LOOPS = float(os.environ.get("CLOCHE_TEST_LOOPS", "1"))


def loops(count):
    return max(3, int(count * LOOPS))


def rounds(few, many):
    """How often something that is drawn or raced is tried: @few times in the runs of `make check`, @many times elsewhere
    (by hand, in check-all)."""
    return many if os.environ.get("CLOCHE_TEST_RUN", "everything") == "everything" else few


def find_cloche():
    """$CLOCHE, or the newest build*/src/cli/cloche of this tree."""
    named = os.environ.get("CLOCHE")
    if named:
        return Path(named).resolve()
    built = sorted(REPO.glob("build*/src/cli/cloche"), key=lambda p: p.stat().st_mtime)
    return built[-1] if built else None


def find_beside(cloche, relative):
    """A file of the same build directory as @cloche (tests/lib/deny, ...), or None."""
    path = cloche.parents[2] / relative
    return path if path.exists() else None


@functools.lru_cache(maxsize=None)
def is_sanitized(program):
    """It was compiled with AddressSanitizer: its memory says nothing, and it has no filter of system calls."""
    return b"__asan_init" in Path(program).read_bytes()


def build_folder(cloche):
    """The build folder from which @cloche can be installed by us, or None. The runner tests a copy of the programs and
    names the folder in CLOCHE_BUILD."""
    folder = Path(os.environ.get("CLOCHE_BUILD") or cloche.resolve().parents[2])
    well = (folder / "build.ninja").exists() and os.access(folder / "meson-logs", os.W_OK)
    return folder if well else None


def ordinary_user():
    """Somebody without privileges: ourselves, or (as root) a person's account, else nobody."""
    if not IS_ROOT:
        return pwd.getpwuid(os.geteuid())
    named = os.environ.get("CLOCHE_TEST_USER")
    if named:
        return pwd.getpwnam(named)
    people = [p for p in pwd.getpwall() if 1000 <= p.pw_uid < 60000]
    return min(people, key=lambda p: p.pw_uid) if people else pwd.getpwnam("nobody")
