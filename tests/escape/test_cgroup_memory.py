"""A memory limit that a cgroup keeps: what is no file of the sandbox's counts for it, whoever in the kernel holds it.

The kernel counts files in memory and memory as one, so the cgroup itself is as wide as the memory and the disk together: whatever is no
file must be found above the memory limit though the disk would leave room for it.
"""
import pytest

from helpers import requirement
from helpers.hoard import hoard
from helpers.runner import limit_of

pytestmark = [requirement("R65", "R26"), pytest.mark.root]
LIMIT = ["--memory", "100m", "--disk", "2g"]
WHAT = ["memfd", "memfd in flight", "sysv", "shared", "tcp", "udp", "stream", "datagrams", "packets", "whose sender is gone",
        "of one byte each, whose sender is gone"]


@pytest.fixture
def by_cgroup(cloche):
    report = cloche("run", "--json", *LIMIT, "--", "true")
    assert report.ok, report
    if not limit_of(report.json, "memory")["enforced_by"].startswith("cgroup"):
        pytest.skip("no cgroup for memory here")


@pytest.mark.parametrize("what", WHAT)
def test_what_is_no_file_counts(cloche, by_cgroup, what):
    del by_cgroup
    result = cloche.sandbox(hoard(what), flags=[*LIMIT, "--json"])
    refused = result.json["exit_code"] == 3 and "refused" in result.json["stdout"]
    assert refused or result.json["reason"] == "memory", result
    assert "has it" not in result.json["stdout"], result


@pytest.mark.parametrize("what", ["shared", "tcp", "stream"])
def test_in_the_host_view_too(cloche, by_cgroup, what):
    del by_cgroup
    result = cloche.sandbox(hoard(what), flags=[*LIMIT[:2], "--view", "host", "--json"])
    assert "has it" not in result.json["stdout"], result


@pytest.mark.parametrize("flags", [LIMIT, [*LIMIT[:2], "--view", "host"]], ids=["private", "host"])
def test_files_count_for_the_disk(cloche, by_cgroup, flags):
    """Also mapped, and when they have no name any more."""
    del by_cgroup
    code = ("import mmap, os, time\n"
            "f = open('/dev/shm/x', 'w+b'); os.unlink('/dev/shm/x'); f.truncate(200 << 20)\n"
            "m = mmap.mmap(f.fileno(), 200 << 20)\n"
            "for at in range(0, 200 << 20, 4096): m[at] = 1\n"
            "g = open('/dev/shm/y', 'wb')\n"
            "for i in range(200): g.write(b'x' * (1 << 20))\n"
            "g.flush(); s = mmap.mmap(-1, 30 << 20); s.write(b'x' * (30 << 20)); time.sleep(0.3); print('lives')\n")
    result = cloche.sandbox(code, flags=flags)
    assert result.out == "lives\n", result
