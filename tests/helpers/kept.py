"""What tests fetch or compile once, in a cache of the user's, and use from there: the other workers of a run wait for it."""
import contextlib
import fcntl
import os
from pathlib import Path


def root():
    return Path(os.environ.get("CLOCHE_TEST_CACHE") or Path.home() / ".cache" / "cloche-tests")


@contextlib.contextmanager
def once(folder):
    """True where @folder is to be filled, by the body; it is whole when that ends without an exception."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)        # another run, or another worker of this one, may be making it
        if (folder / "whole").exists():
            yield False
            return
        folder.mkdir(exist_ok=True)
        yield True
        (folder / "whole").touch()
