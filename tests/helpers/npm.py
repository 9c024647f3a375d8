"""Programs that are published on npm, installed once into a cache of the user's and used from there."""
import subprocess

import pytest

from helpers import kept

NODE = "node@22"        # large: one for all


def packages(*names, scripts=()):
    """The folder in which node_modules holds @names (with their versions); the scripts of @scripts run when they are installed."""
    folder = kept.root() / "-".join(n.strip("@").replace("/", "_") for n in names)
    with kept.once(folder) as missing:
        if missing:
            install(folder, names, scripts)
    return folder


def install(folder, names, scripts=()):
    (folder / "package.json").write_text('{"private": true}', encoding="ascii")
    if scripts:         # what newer versions of npm run of them
        (folder / ".npmrc").write_text(f"allow-scripts={','.join(scripts)}\n", encoding="ascii")
    try:
        done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", *names], cwd=folder, timeout=600, capture_output=True,
                              check=False)
    except (OSError, subprocess.TimeoutExpired) as e:
        pytest.skip(f"npm: {e}")
    if done.returncode != 0 or not (folder / "node_modules").exists():
        pytest.skip(f"npm cannot install {names}: {done.stderr.decode()[-500:]}")


def node():
    """A node that is new enough for them."""
    program = packages(NODE) / "node_modules" / "node" / "bin" / "node"
    assert program.exists(), program
    return program
