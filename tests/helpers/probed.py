"""What the program that `cloche prove` runs inside finds, without what no two sandboxes have alike: so that two can be compared."""
import json
import os
import re

import pytest

from helpers import places

# the program's words, each with what it is told of the host
PROBES = (("posture", "--walk-s", "250"), ("attacks", "--host-pid", str(os.getpid()), "--host-name", os.uname().nodename, "--scratch", "/workspace", "--host-file", "/etc/shadow",
                        "--unix-path", "/run/x", "--unix-abstract", "x", "--tcp-port", "22"), ("network",), ("limits", "--scratch", "/workspace"))


def program(cloche):
    """The bytes of the program."""
    path = places.find_beside(cloche.binary, "src/probe/cloche-probe")
    if path is None:
        pytest.skip("cloche-probe is not built")
    return path.read_bytes()


def finds(text):
    """What it found, by its output, without ids, numbers of processes and file systems, and names of temporary files."""
    found = json.loads(re.sub(r"cloche-[0-9a-f]{32}|cloche-probe-\w{6}|\w+:\[\d+\]", "", text))
    for name in ("uid_map", "gid_map"):
        found.pop(name, None)
    found.get("root", {}).pop("dev", None)
    for each in (found, *found.get("threads", ()), *found.get("processes", ()), *found.get("mounts", ())):
        for name in ("pid", "tid", "device"):       # the number is whose turn it was
            each.pop(name, None)
    return found
