"""A memory limit without a cgroup: what the kernel holds for a sandbox counts, not only what its processes map.

An ordinary user's, on a host that delegates no cgroup. Where one is delegated, it keeps the limit and counts all of it.
"""
import json

import pytest

from helpers import requirement
from helpers.hoard import ATTACKS, FULL, hoard
from helpers.runner import limit_of

pytestmark = [requirement("R30"), pytest.mark.ordinary]
LIMIT = ["--memory", "100m"]


@pytest.fixture
def supervised(cloche):
    """The limit is the guest's and the supervisor's to keep."""
    report = cloche("run", "--json", *LIMIT, "--", "true")
    assert report.ok, report
    if limit_of(report.json, "memory")["enforced_by"] != "supervised":
        pytest.skip("this user's memory is limited by a cgroup")
    return report.json


@pytest.mark.parametrize("what", ATTACKS)
def test_what_the_kernel_holds_counts(cloche, supervised, what):
    del supervised
    result = cloche.sandbox(hoard(what), flags=[*LIMIT, "--json"])
    refused = result.json["exit_code"] == 3 and "refused" in result.json["stdout"]
    assert refused or result.json["reason"] == "memory", result
    assert "has it" not in result.json["stdout"], result


def test_files_in_memory_count_in_the_host_view(cloche, supervised):
    """There the root is the host's disk, and /dev/shm is memory all the same."""
    del supervised
    code = ("import os, select\nf = open('/dev/shm/x', 'wb')\n"
            f"for i in range({FULL} >> 20): f.write(b'x' * (1 << 20)); f.flush()\n"
            "print('has it', flush=True); select.select([], [], [], 5)\n")
    result = cloche.sandbox(code, flags=[*LIMIT, "--view", "host", "--json"])
    assert result.json["reason"] == "memory" and "has it" not in result.json["stdout"], result


def test_light_mode_sees_a_process_without_its_first_thread(cloche, supervised):
    del supervised
    result = cloche.sandbox(hoard("first thread gone"), flags=[*LIMIT, "--mode", "light", "--json"])
    assert result.json["reason"] == "memory" and "has it" not in result.json["stdout"], result


def test_it_is_said_that_it_is_watched_and_not_enforced(cloche, supervised):
    assert any("memory" in text and "cgroup" in text for text in supervised["warnings"]), supervised
    silent = cloche("run", "--json", "--", "true").json
    assert not any("memory" in text for text in silent["warnings"]), "nobody asked for a limit"


def test_a_limit_that_cannot_be_counted_is_refused(cloche, supervised, deny):
    """Without the kernel's word on sockets nobody knows what they hold."""
    del supervised
    behind = cloche.behind(*deny("socket:arg0==16=EPERM"))
    refused = behind("run", *LIMIT, "--", "true")
    assert refused.code == 125 and "wall.memory.unsupported" in refused.err, refused
    warned = behind("run", *LIMIT, "--fallback", "warn", "--json", "--", "echo", "ran").json
    assert warned["stdout"] == "ran\n" and any("memory" in text for text in warned["warnings"]), warned
    assert behind("run", "--", "echo", "ran").out == "ran\n", "a preset's is not refused"


def test_ordinary_work_with_sockets_and_shared_memory_goes_on(cloche, supervised):
    del supervised
    code = ("import multiprocessing, socket, mmap\n"
            "pairs = [socket.socketpair() for i in range(200)]\n"
            "[a.send(b'x' * 1000) for a, b in pairs]\n"
            "m = mmap.mmap(-1, 20 << 20); m.write(b'x' * (20 << 20))\n"
            "with multiprocessing.get_context('fork').Pool(3) as p: print(sum(p.map(abs, range(100))))\n")
    result = cloche.sandbox(code, flags=LIMIT)
    assert result.out == "4950\n", result


def test_the_check_says_that_a_cpu_limit_will_be_refused(cloche):
    settings, config = cloche.project / "s.yaml", cloche.project / "serve.yaml"
    settings.write_text("limits: {max_cpu_cores: 1}\n", encoding="ascii")
    config.write_text("security: {sandbox: {limits: {max_cpu_cores: 1}}}\n", encoding="ascii")
    started = cloche("run", "--settings", settings, "--", "true")
    for words in (["policy", "check", settings], ["config", "check", config]):
        said = cloche(*words)
        assert said.ok and ("wall.cpu.unsupported" in said.err) == (started.code == 125), (said, started)
    checked = json.loads(cloche("policy", "check", "--json", settings).out)
    assert bool(checked.get("refused_here")) == (started.code == 125), checked
