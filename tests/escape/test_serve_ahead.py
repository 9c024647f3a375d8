"""What is made before a sandbox is asked for, a network among it, is one sandbox's, and never the next one's."""
import os

import pytest

from helpers import requirement
from helpers.runner import wait_for

pytestmark = [requirement("R9", "R61", "R81"), pytest.mark.skipif(os.geteuid() != 0, reason="only root makes networks ahead")]

TALK = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); [s.sendto(b'x' * 1000, ('127.0.0.1', 9)) for _ in range(50)]"
NET = "readlink /proc/self/ns/net"


def said(box, command):
    done = box.exec(command)
    assert done["exit_code"] == 0, done
    return done["stdout"].strip()


def packets(box):
    """Of `lo`, which is all there is."""
    lines = said(box, "cat /proc/net/dev").splitlines()[2:]
    assert len(lines) == 1 and lines[0].split()[0] == "lo:", lines
    return int(lines[0].split()[2])


def vacant(daemon):
    assert wait_for(lambda: len(daemon.processes("cloche-vacant")) == 2, 60)
    return daemon.processes("cloche-vacant")


def network_of(pid):
    return os.readlink(f"/proc/{pid}/ns/net")


def test_a_network_is_nobody_elses_and_has_no_past(daemon):
    vacant(daemon)
    host, used = network_of("self"), []
    for _ in range(4):
        box = daemon.create()
        assert said(box, NET) not in (host, *used), used
        used.append(said(box, NET))
        assert packets(box) == 0
        said(box, f'python3 -c "{TALK}"')
        assert packets(box) >= 50
    assert len(set(used)) == len(used)


def test_the_network_of_one_that_ended_is_not_given_again(daemon):
    for _ in range(4):
        vacant(daemon)
        box = daemon.create()
        assert packets(box) == 0
        said(box, f'python3 -c "{TALK}"')
        assert box.delete().ok


def test_who_makes_it_ahead_is_not_in_it(daemon):
    host = network_of("self")

    def outside():
        found = vacant(daemon)
        try:
            return {network_of(pid) for pid in found} == {host} and found
        except FileNotFoundError:
            return False
    before = wait_for(outside)      # a child of theirs, which is in it, has their name for a moment
    assert before
    box = daemon.create()
    keeper = daemon.only("cloche-keeper")
    assert keeper in before and network_of(keeper) == host and said(box, NET) != host
    # nothing of it is open in the sandbox, or with the keeper
    assert not [fd for fd in os.listdir(f"/proc/{keeper}/fd") if "net:[" in os.readlink(f"/proc/{keeper}/fd/{fd}")]
    guest = daemon.only("cloche-guest")
    assert not [fd for fd in os.listdir(f"/proc/{guest}/fd") if os.readlink(f"/proc/{guest}/fd/{fd}").startswith(("net:[", "/memfd:"))]


def test_nothing_inside_owns_it(daemon):
    vacant(daemon)
    box = daemon.create()
    for change in ("ip link set lo down", "ip addr add 10.0.0.1/8 dev lo", "unshare -Urn true"):
        assert box.exec(f"PATH=$PATH:/usr/sbin:/sbin {change}")["exit_code"] != 0, change
    assert box.exec("echo 1 > /proc/sys/net/ipv4/ip_forward")["exit_code"] != 0
