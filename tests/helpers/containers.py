"""What is run in a container of each kind, and what is said of it: the matrix of Docker's and Podman's containers."""
import re

from helpers.dockerd import SHADOW

INSIDE = """cat /etc/shadow; echo processes $(ls -d /proc/[0-9]* | grep -c .); read x < f; echo got $x; echo w > made; echo uid $(id -u);
grep -E '^(Uid|CapEff|NoNewPrivs)' /proc/self/status"""

# For each place and run: a line with its name, what it said (both streams), and its status.
RUNS = {"rw": "--workspace .:rw", "ro": "--workspace .:ro", "host": "--view host --allow-write .", "light": "--mode light",
        "light-rw": "--mode light --workspace .:rw"}


def script_of(uid):
    lines = [f"ln -s /vol/{uid} /tmp/volume"]
    for place in ("overlay", "volume"):
        for name, flags in RUNS.items():
            lines.append(f"cd -P /tmp/{place}; rm -f made; echo hello > f; echo '@@{place} {name}'; "
                         f"timeout 60 $C run {flags} -- /bin/sh -c \"$INSIDE\" 2>&1; echo status $?; "
                         "[ -e made ] && echo made $(stat -c %u made)")
    return "\n".join(lines)


def parts(out):
    return {tuple(head.split()): text for head, text in
            (chunk.split("\n", 1) for chunk in out.split("@@")[1:])}


def check_walls(text):
    """Whatever the form: no capability, nothing to gain, and no file of root's."""
    assert re.search(r"CapEff:\t0{16}", text) and "NoNewPrivs:\t1" in text, text
    assert SHADOW.strip() not in text and int(re.search(r"^processes (\d+)$", text, re.M).group(1)) <= 6, text      # the container has four more


def forms_of(text):
    """The weaker forms that a run says that it is."""
    return set(re.findall(r'weaker form "(\w+)"', text))
