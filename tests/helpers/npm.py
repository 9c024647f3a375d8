"""Programs that are published on npm, installed once into a cache of the user's and used from there."""
import fcntl
import os
import subprocess
from pathlib import Path

import pytest

NODE = "node@22"


def packages(*names):
    """The folder in which node_modules holds @names (with their versions) and a node that runs them."""
    root = Path(os.environ.get("CLOCHE_TEST_CACHE") or Path.home() / ".cache" / "cloche-tests")
    folder = root / "-".join(n.strip("@").replace("/", "_") for n in (NODE, *names))
    folder.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)        # another run, or another worker of this one, may be making it
        install(folder, names)
    return folder


def install(folder, names):
    if not (folder / "whole").exists():
        (folder / "package.json").write_text('{"private": true}', encoding="ascii")
        try:
            done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", NODE, *names], cwd=folder, timeout=600,
                                  capture_output=True, check=False)
        except (OSError, subprocess.TimeoutExpired) as e:
            pytest.skip(f"npm: {e}")
        if done.returncode != 0 or not node(folder).exists():
            pytest.skip(f"npm cannot install {names}: {done.stderr.decode()[-500:]}")
        (folder / "whole").touch()


def node(folder):
    return folder / "node_modules" / "node" / "bin" / "node"
