"""Programs that are published on npm, installed once into a cache of the user's and used from there."""
import os
import subprocess
from pathlib import Path

import pytest

NODE = "node@22"


def packages(*names):
    """The folder in which node_modules holds @names (with their versions) and a node that runs them."""
    root = Path(os.environ.get("CLOCHE_TEST_CACHE") or Path.home() / ".cache" / "cloche-tests")
    folder = root / "-".join(n.strip("@").replace("/", "_") for n in (NODE, *names))
    if not (folder / "whole").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}', encoding="ascii")
        try:
            done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", NODE, *names], cwd=folder, timeout=600,
                                  capture_output=True, check=False)
        except (OSError, subprocess.TimeoutExpired) as e:
            pytest.skip(f"npm: {e}")
        if done.returncode != 0 or not node(folder).exists():
            pytest.skip(f"npm cannot install {names}: {done.stderr.decode()[-500:]}")
        (folder / "whole").touch()
    return folder


def node(folder):
    return folder / "node_modules" / "node" / "bin" / "node"
