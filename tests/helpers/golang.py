"""Go programs of the tests. Go compiles its whole library for the first of them, half a minute of work for the processor: they share
one cache of the compiler, and no two are compiled at once."""
import hashlib
import os
import shutil
import subprocess

import pytest

from helpers import kept

# Nobody asks how fast these programs are: no inlining, no debug information, a collector that is in no hurry.
FASTER = {"GOGC": "400", "GOFLAGS": ""}
WORDS = ["-gcflags=all=-l -c=1 -dwarf=false", "-ldflags=-s -w"]


def program(source):
    """@source, compiled."""
    compiler = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin:/usr/bin")
    if compiler is None:
        pytest.skip("no Go compiler is installed")
    version = subprocess.run([compiler, "version"], capture_output=True, check=True).stdout
    name = hashlib.sha256(version + source.encode()).hexdigest()[:16]
    made = kept.root() / "go" / name
    with kept.once(kept.root() / "go-compiler") as _:       # the lock that all of them take
        if not made.exists():
            made.parent.mkdir(exist_ok=True)
            place = kept.root() / "go-compiler"
            text = place / f"{name}.go"
            text.write_text(source, encoding="utf-8")
            env = {**os.environ, **FASTER, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GO111MODULE": "off",
                   "GOCACHE": str(place / "cache")}
            subprocess.run([compiler, "build", *WORDS, "-o", place / name, text], check=True, env=env, timeout=600, cwd=place,
                           stdout=subprocess.DEVNULL)
            (place / name).rename(made)
    return made
