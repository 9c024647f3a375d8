"""Packages of PyPI in a virtual environment of their own, made once in a cache of the user's and used from there."""
import fcntl
import os
import subprocess
from pathlib import Path

import pytest

from helpers import places


def python_with(*names):
    """A Python that has @names (with their versions)."""
    folder = cached("python", names)
    python = folder / "bin" / "python"
    install(folder, names, [places.PYTHON, "-m", "venv", folder], [python, "-m", "pip", "install", "--quiet", *names])
    return python


def modules(*names):
    """A folder for the path of any Python, with @names."""
    folder = cached("modules", names)
    install(folder, names, [places.PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", folder, *names])
    return folder


def cached(kind, names):
    root = Path(os.environ.get("CLOCHE_TEST_CACHE") or Path.home() / ".cache" / "cloche-tests")
    root.mkdir(parents=True, exist_ok=True)
    return root / (f"{kind}-" + "-".join(n.replace("==", "_") for n in names))


def install(folder, names, *commands):
    with open(f"{folder}.lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)        # another run may be making it
        if (folder / "whole").exists():
            return
        for words in commands:
            try:
                done = subprocess.run(words, capture_output=True, timeout=600, check=False)
            except (OSError, subprocess.TimeoutExpired) as e:
                pytest.skip(f"{words[0]}: {e}")
            if done.returncode != 0:
                pytest.skip(f"{names} cannot be installed: {done.stderr.decode()[-500:]}")
        (folder / "whole").touch()
