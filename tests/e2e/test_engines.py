"""What is no wall works on any engine: the tests of commands, streams, files, time-outs, output and exit codes, once more on
an engine of the tests' own that has no walls at all (tests/engine/plain), and a daemon on it."""
import shutil
import tempfile
import types
from pathlib import Path

import pytest

from e2e import test_argv, test_exit_codes, test_limits, test_signals, test_stdio
from helpers import leaks, places
from helpers.runner import wait_for

# What needs a wall: a root, disk or cgroup of the sandbox's own, a count of processes that the kernel keeps.
WALLS = {"test_flag_value_with_equals_sign", "test_memory_in_tmpfs_counts_or_is_limited_by_disk", "test_pids_limit",
         "test_pids_limit_of_a_root_that_keeps_its_uid", "test_threads_count_as_pids", "test_cpu_share_is_enforced_by_the_cgroup",
         "test_disk_limit_in_every_writable_place", "test_disk_limit_of_all_places_together", "test_inodes_are_limited",
         "test_a_limit_without_a_cgroup_is_said_in_words", "test_the_limit_of_core_files_stays"}
# What is decided before there is an engine.
BEFORE = {"test_timeout_malformed_is_refused", "test_values_that_are_refused", "test_values_that_are_understood",
          "test_refusal_is_125_and_nothing_ran", "test_no_command_is_125_and_says_how"}


def on_plain(function):
    """The same test in this module, and so on the engine of its fixtures. It proves nothing about a wall."""
    made = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)
    made.__doc__ = function.__doc__
    made.pytestmark = [mark for mark in getattr(function, "pytestmark", []) if mark.name != "requirement"]
    return made


for module in (test_argv, test_exit_codes, test_limits, test_signals, test_stdio):
    for name, value in list(vars(module).items()):
        if name.startswith("test_") and name not in WALLS | BEFORE and isinstance(value, types.FunctionType):
            assert name not in globals(), name
            globals()[name] = on_plain(value)


@pytest.fixture(scope="module")
def binary():
    """cloche with that engine, which is the first there, where it finds cloche's other programs."""
    usual = places.find_cloche()
    built = places.find_beside(usual, "tests/engine/cloche")
    if built is None:
        pytest.skip("tests/engine/cloche is not built")
    place = Path(tempfile.mkdtemp(prefix="ct-engine-", dir="/tmp"))
    try:
        place.chmod(0o755)
        (place / "cli").mkdir()
        shutil.copy2(built, place / "cli/cloche")
        for program in usual.parents[1].glob("*/cloche-*"):
            if program.is_file():
                (place / program.parent.name).mkdir(exist_ok=True)
                (place / program.parent.name / program.name).symlink_to(program)
        yield place / "cli/cloche"
    finally:
        shutil.rmtree(place)


def test_it_is_the_engine_that_runs(cloche):
    """The walls are not there, or all of the above would be about another engine."""
    report = cloche("run", "--json", "--memory", "64m", "--", "readlink", "/proc/self/ns/pid", "/proc/self/ns/mnt").json
    assert report["engine"] == "plain" and report["limits"]["memory_bytes"]["enforced_by"] == "supervised", report
    assert report["stdout"].splitlines() == [str(Path(f"/proc/self/ns/{name}").readlink()) for name in ("pid", "mnt")]
    report = cloche("run", "--json", "--engine", "native", "--", "readlink", "/proc/self/ns/pid").json
    assert report["engine"] == "native" and report["stdout"].strip() != str(Path("/proc/self/ns/pid").readlink()), report


def test_engines_are_named(cloche):
    answer = cloche("run", "--engine", "magic", "--", "true")
    assert answer.code == 125 and "use one of: auto, plain, native " in answer.err, answer
    assert cloche("policy", "show", "--engine", "plain", "--json").json["engine"]["value"] == "plain"
    doctor = cloche("doctor", "--json").json
    assert doctor["engine"] == "plain" and list(doctor["features"]) == ["process"] and doctor["host"]["kernel"], doctor
    assert {promise["state"] for promise in doctor["promises"].values()} == {"not-enforced"}
    text = cloche("doctor").out
    assert "\nnothing else\n" in text and "a process" in text and "Namespaces" not in text, text


def test_why_takes_the_rules_as_they_are_written(cloche, project):
    answer = cloche("why", "--json", "--workspace", project, "--deny-read", project / "shut", "--path", project / "shut/key",
                    "--op", "read")
    assert answer.json["verdict"] == "denied" and "--deny-read" in answer.out, answer


def test_a_daemon_on_it(daemon):
    box = daemon.create(name="one", policy={"limits": {"memory": "256m"}})
    facts = box.show()["facts"]
    assert facts["engine"] == "plain" and facts["pause_by"] == "signals" and facts["ports"] == "none", facts
    assert daemon.get("/api/sandbox/platform").json["recommended"] == "plain"
    assert box.put("b.txt", b"what was put").ok and box.exec("cat b.txt")["stdout"] == "what was put"
    assert box.exec("echo made > made; exit 3")["exit_code"] == 3 and box.read("made").body == b"made\n"
    assert box.exec("sleep 1000", timeout_ms=300)["timed_out"]
    running = box.stream("echo there; sleep 77777")
    assert next(running) == ("stdout", {"data": "there\n"}) and wait_for(lambda: daemon.processes("sleep"))
    assert daemon.post(f"{box.at}/pause").json["paused"]
    stopped = lambda: {leaks.parents()[pid][1] for pid in daemon.processes("sleep")}
    assert wait_for(lambda: stopped() == {"T"}), stopped()
    assert not daemon.post(f"{box.at}/resume").json["paused"] and box.exec("echo on")["stdout"] == "on\n"
    usage, = daemon.get(f"{box.at}/usage").json["usage"]
    assert usage["processes"] >= 2 and usage["memory_bytes"] > 0, usage
    refused = daemon("PATCH", f"{box.at}/policy", {"limits": {"memory": "128m"}})
    assert refused.status == 409 and refused.json["code"] == "limits.no-cgroup" and "plain" in refused.json["error"], refused
    assert box.delete().ok and wait_for(lambda: not daemon.processes("sleep"))
    running.close()
