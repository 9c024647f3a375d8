"""Packages of PyPI in a virtual environment of their own, made once in a cache of the user's and used from there."""
import os
import subprocess

import pytest

from helpers import kept, places

PIP = [places.PYTHON, "-m", "pip"]
QUIETLY = ["--quiet", "--disable-pip-version-check"]


def python_with(*names):
    """A Python that has @names (with their versions). It has no pip of its own: to install one costs as much as many packages."""
    folder = cached("python", names)
    python = folder / "bin" / "python"
    install(folder, names, [places.PYTHON, "-m", "venv", "--without-pip", folder],
            [*PIP, "--python", python, "install", *QUIETLY, *names])
    return python


def modules(*names):
    """A folder for the path of any Python, with @names."""
    folder = cached("modules", names)
    install(folder, names, [*PIP, "install", *QUIETLY, "--target", folder, *names])
    return folder


def cached(kind, names):
    return kept.root() / (f"{kind}-" + "-".join(n.replace("==", "_") for n in names))


def install(folder, names, *commands):
    # its bytecode lies beside it, for whoever starts it: without, a start compiles some hundred files
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with kept.once(folder) as missing:
        for words in commands if missing else ():
            try:
                done = subprocess.run(words, env=env, capture_output=True, timeout=600, check=False)
            except (OSError, subprocess.TimeoutExpired) as e:
                pytest.skip(f"{words[0]}: {e}")
            if done.returncode != 0:
                pytest.skip(f"{names} cannot be installed: {done.stderr.decode()[-500:]}")
