"""Packages of PyPI in a virtual environment of their own, made once in a cache of the user's and used from there."""
import fcntl
import os
import subprocess
from pathlib import Path

import pytest

from helpers import places


def python_with(*names):
    """A Python that has @names (with their versions)."""
    root = Path(os.environ.get("CLOCHE_TEST_CACHE") or Path.home() / ".cache" / "cloche-tests")
    folder = root / ("python-" + "-".join(n.replace("==", "_") for n in names))
    python = folder / "bin" / "python"
    root.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)        # another run may be making it
        install(folder, python, names)
    return python


def install(folder, python, names):
    if not (folder / "whole").exists():
        for words in ([places.PYTHON, "-m", "venv", folder], [python, "-m", "pip", "install", "--quiet", *names]):
            try:
                done = subprocess.run(words, capture_output=True, timeout=600, check=False)
            except (OSError, subprocess.TimeoutExpired) as e:
                pytest.skip(f"{words[0]}: {e}")
            if done.returncode != 0:
                pytest.skip(f"{names} cannot be installed: {done.stderr.decode()[-500:]}")
        (folder / "whole").touch()
