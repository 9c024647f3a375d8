"""--json and --report: one object that tells what happened."""
import datetime
import json
import re

import pytest

from helpers import requirement
from helpers.runner import limit_of

FIELDS = {"version", "id", "mode", "engine", "runtime", "boundary", "considered", "exit_code", "signal", "reason", "timed_out", "oom_killed", "started_at",
          "duration_ms", "setup_ms", "peak_memory_bytes", "cpu_ms", "stdout_bytes", "stderr_bytes", "stdout_truncated",
          "stderr_truncated", "denied", "denied_more", "limits", "workspace", "warnings"}


def reported(cloche, *words, **kw):
    return cloche("run", "--json", *words, **kw).json


@requirement("R65", "R20")
def test_every_field_is_there_with_its_type(cloche):
    report = reported(cloche, "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert set(report) == FIELDS | {"stdout", "stderr"}, set(report) ^ (FIELDS | {"stdout", "stderr"})
    assert report["version"] == 1
    assert re.fullmatch(r"[0-9a-f]{32}", report["id"])
    assert (report["mode"], report["engine"]) == ("standard", "native")
    assert (report["exit_code"], report["signal"], report["reason"]) == (3, None, "exited")
    assert report["timed_out"] is False and report["oom_killed"] is False
    assert report["duration_ms"] >= 0 and report["setup_ms"] >= 0 and report["cpu_ms"] >= 0
    assert report["stdout_truncated"] is False and report["stderr_truncated"] is False
    assert report["denied"] == [] and isinstance(report["warnings"], list)
    assert report["workspace"]["kind"] == "tmpfs"
    started = datetime.datetime.fromisoformat(report["started_at"].replace("Z", "+00:00"))
    assert abs((datetime.datetime.now(datetime.timezone.utc) - started).total_seconds()) < 3600


def test_stdout_is_exactly_one_json_object(cloche):
    result = cloche("run", "--json", "--", "sh", "-c", "echo '{}'; echo noise >&2")
    assert result.out.endswith("\n") or result.out.endswith("}")
    assert json.loads(result.out)["stdout"] == "{}\n"
    assert "noise" not in result.err


def test_exit_code_of_cloche_is_still_the_childs(cloche):
    assert cloche("run", "--json", "--", "sh", "-c", "exit 7").code == 7


def test_signal_is_named(cloche):
    result = cloche("run", "--json", "--", "sh", "-c", "kill -TERM $$; sleep 9")
    assert result.code == 143
    report = result.json
    assert (report["exit_code"], report["signal"], report["reason"]) == (None, "SIGTERM", "signaled")


def test_ids_are_unguessable_and_unique(cloche):
    ids = {reported(cloche, "--", "true")["id"] for _ in range(8)}
    assert len(ids) == 8
    assert len({i[:6] for i in ids}) == 8 and len({i[-6:] for i in ids}) == 8


def test_limits_name_who_enforces_them(cloche):
    report = reported(cloche, "--memory", "128m", "--pids", "50", "--nofile", "100", "--", "true")
    assert limit_of(report, "memory")["limit"] == 128 << 20
    assert limit_of(report, "pids")["limit"] == 50
    assert limit_of(report, "nofile")["limit"] == 100
    allowed = {"cgroup v1", "cgroup v2", "supervised", "supervisor", "none", "rlimit", "tmpfs"}
    for name, limit in report["limits"].items():
        assert limit["enforced_by"] in allowed, (name, limit)
        assert limit["limit"] is None or limit["enforced_by"] != "none", f"{name} is claimed and not enforced"


@pytest.mark.ordinary
def test_limits_of_an_ordinary_user_are_honest(cloche):
    """Without a delegated cgroup the report says so, and does not claim one."""
    report = reported(cloche, "--memory", "128m", "--", "true")
    assert limit_of(report, "memory")["enforced_by"] in ("cgroup v2", "supervised"), report["limits"]


def test_peak_memory_is_real(cloche):
    report = reported(cloche, "--", "true")
    small = report["peak_memory_bytes"]
    if limit_of(report, "memory")["enforced_by"] == "supervised":
        assert small is None, "without a cgroup nobody knows the peak"
        return
    large = cloche.sandbox("b = bytearray(100 << 20); b[::4096] = b'x' * len(b[::4096])", flags=["--json"]).json
    assert large["peak_memory_bytes"] >= 100 << 20
    assert small is None or small < 60 << 20


def test_cpu_time_is_real(cloche):
    report = cloche.sandbox("import time\nwhile time.process_time() < 0.3: pass", flags=["--json"]).json
    assert report["cpu_ms"] >= 250


def test_bytes_count_what_was_written_not_what_was_kept(cloche):
    report = cloche("run", "--json", "--output", "1k", "--", "sh", "-c", "head -c 5000 /dev/zero | tr '\\0' x").json
    assert report["stdout_truncated"] is True and report["stderr_truncated"] is False
    assert len(report["stdout"]) == 1024
    assert report["stdout_bytes"] == 5000


def test_report_file_and_stdio_pass(cloche):
    result = cloche("run", "--report", "r.json", "--", "sh", "-c", "echo out; echo err >&2; exit 4")
    assert (result.code, result.out, result.err) == (4, "out\n", "err\n")
    report = json.loads((cloche.cwd / "r.json").read_text())
    assert set(report) == FIELDS
    assert report["exit_code"] == 4
    # Passed through: nobody counted them, and the report does not pretend.
    assert report["stdout_bytes"] is None


def test_report_and_json_together(cloche):
    result = cloche("run", "--json", "--report", "r.json", "--", "echo", "x")
    in_file = json.loads((cloche.cwd / "r.json").read_text())
    assert "stdout" not in in_file and in_file["id"] == result.json["id"]


def test_report_file_that_cannot_be_written_is_refused_before_anything_runs(cloche, project):
    result = cloche("run", "--workspace", project, "--report", "/no/such/dir/r.json", "--", "touch", "ran")
    assert result.code == 125, result
    assert not list(project.iterdir())


def test_report_file_is_not_followed_into_trouble(cloche, world):
    """A report path that is a symlink made by somebody in the workspace is not a way to overwrite files."""
    victim = world.root / "victim"
    victim.write_text("precious", encoding="ascii")
    (cloche.project / "r.json").symlink_to(victim)
    result = cloche("run", "--workspace", cloche.project, "--report", cloche.project / "r.json", "--", "true")
    assert victim.read_text() == "precious" or result.code == 125, result


@requirement("R30")
def test_refusal_is_one_json_object_too(cloche):
    result = cloche("run", "--json", "--memory", "many", "--", "true")
    assert result.code == 125
    report = result.json
    assert report["version"] == 1 and report["reason"] == "refused" and report["exit_code"] == 125
    assert set(report["error"]) >= {"code", "message", "hint"}
    assert "many" in report["error"]["message"]
    assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", report["error"]["code"])


def test_not_found_in_json(cloche):
    result = cloche("run", "--json", "--", "no-such-program")
    assert result.code == 127
    assert result.json["exit_code"] == 127


def test_mode_in_report(cloche):
    for mode in ("light", "standard", "max"):
        assert reported(cloche, "--mode", mode, "--", "true")["mode"] == mode


def test_quiet_hides_our_words_not_the_childs(cloche):
    loud = cloche("run", "--mode", "off", "--", "sh", "-c", "echo child >&2")
    quiet = cloche("run", "--quiet", "--mode", "light", "--", "sh", "-c", "echo child >&2")
    assert "child" in loud.err and len(loud.err) > len("child\n")
    assert quiet.err == "child\n", quiet
