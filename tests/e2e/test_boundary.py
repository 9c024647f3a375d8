"""--boundary: the engine is taken by what stands between a sandbox and the host's kernel, with the reasons; none weaker stands in."""
import json
import os

import pytest

from helpers import requirement
from helpers.daemon import Daemon
from helpers.served import lend

pytestmark = requirement("R21", "R60")
WORDS = ("process", "kernel", "vm")
ROWS = [("native", None, "process"), ("oci", "runsc", "kernel"), ("oci", "crun", "process"), ("oci", "runc", "process"),
        ("docker", None, "process"), ("microvm", None, "vm")]


def rows(said):
    return [(row["engine"], row["runtime"], row["boundary"]) for row in said["considered"]]


def reasons(said):
    return {row["runtime"] or row["engine"]: row["why"] for row in said["considered"]}


@pytest.fixture
def nothing(cloche, tmp_path):
    """cloche where no engine with a kernel of its own is installed."""
    cloche.env.update(PATH=str(tmp_path), CLOCHE_KERNEL_ROOT=str(tmp_path))
    return cloche


@pytest.fixture
def runsc(cloche):
    cloche.env.update(lend("runsc").env)
    return cloche


def test_without_a_word_it_is_the_first(anyone):
    report = anyone("run", "--json", "--", "true").json
    assert (report["engine"], report["runtime"], report["boundary"]) == ("native", None, "process"), report
    assert rows(report) == ROWS and [row["taken"] for row in report["considered"]] == [True] + 5 * [False], report
    assert reasons(report)["native"].startswith("taken") and reasons(report)["runsc"] == "native comes first", report


def test_no_wall_has_no_boundary(cloche):
    assert cloche("run", "--mode", "off", "--report", "r.json", "--", "true").ok
    report = json.loads((cloche.cwd / "r.json").read_text())
    assert (report["runtime"], report["boundary"], report["considered"]) == (None, None, []), report


@pytest.mark.parametrize("boundary", ("kernel", "vm"))
def test_where_no_engine_has_it_nothing_runs(anyone, tmp_path, boundary):
    anyone.env.update(PATH=str(tmp_path), CLOCHE_KERNEL_ROOT=str(tmp_path))
    result = anyone("run", "--boundary", boundary, "--json", "--", "/bin/touch", str(tmp_path / "ran"))
    error = result.json["error"]
    assert result.code == 125 and error["code"] == "engine.boundary" and error["hint"], result
    assert boundary in error["message"] and "microvm: " in error["message"] and ("oci runsc: " in error["message"]) == (boundary == "kernel"), error
    said = anyone("why", "--engines", "--boundary", boundary, "--json")
    assert said.code == 1 and said.json["status"] == "denied" and said.json["engine"] is None and said.json["code"] == "engine.boundary", said
    assert reasons(said.json)["native"] == f"its boundary is process, and {boundary} is asked for", said
    assert "[oci.r" in reasons(said.json)["runsc"] or boundary == "vm", said


@pytest.mark.parametrize("named", (("--engine", "native"), ("--runtime", "crun"), ("--engine", "oci", "--runtime", "runc"), ("--engine", "docker")))
def test_a_weaker_one_that_is_named_is_refused(cloche, named):
    result = cloche("run", "--boundary", "kernel", *named, "--", "true")
    assert result.code == 125 and "[engine.boundary]" in result.err and "has not the boundary kernel" in result.err, result
    assert "oci runsc, microvm" in result.err, result
    assert cloche("run", "--boundary", "vm", "--runtime", "runsc", "--", "true").code == 125


def test_what_does_not_go_together_is_said_as_ever(cloche):
    for words, code in ((("--engine", "native", "--runtime", "crun"), "policy.runtime.engine"),
                        (("--boundary", "kernel", "--fallback", "no-sandbox"), "policy.boundary.fallback"),
                        (("--boundary", "kernel", "--fallback", "warn"), "policy.boundary.fallback"),
                        (("--boundary", "kernel", "--mode", "light"), "policy.light.asks"),
                        (("--boundary", "process", "--mode", "off"), "policy.off.asks"), (("--boundary", "strong"), "policy.boundary")):
        result = cloche("run", *words, "--", "true")
        assert result.code == 125 and f"[{code}]" in result.err, (words, result)


def test_a_fallback_of_the_settings_is_none_for_a_boundary(nothing):
    settings = nothing.home / "s.yaml"
    settings.write_text("fallback: no-sandbox\n")
    result = nothing("run", "--settings", settings, "--boundary", "kernel", "--", "/bin/true")
    assert result.code == 125 and "[policy.boundary.fallback]" in result.err, result
    assert nothing("run", "--settings", settings, "--boundary", "kernel", "--fallback", "refuse", "--", "/bin/true").code == 125


def test_settings_say_it_too(nothing):
    settings = nothing.home / "s.yaml"
    settings.write_text("boundary: vm\nagent-engines: [microvm, crun]\n")
    shown = nothing("policy", "show", "--settings", settings, "--json").json
    assert shown["boundary"]["value"] == "vm" and [e["value"] for e in shown["agent-engines"]] == ["microvm", "crun"], shown
    result = nothing("run", "--settings", settings, "--", "/bin/true")
    assert result.code == 125 and "[engine.boundary]" in result.err, result
    settings.write_text("agent-engines: [kata]\n")
    result = nothing("run", "--settings", settings, "--", "/bin/true")
    assert result.code == 125 and "[policy.engine.unknown]" in result.err and "microvm" in result.err and "runsc" in result.err, result


def test_why_and_doctor_say_who_it_would_be(anyone):
    said = anyone("why", "--engines", "--json")
    assert said.code == 0 and said.json["status"] == "allowed" and said.json["engine"] == "native" and rows(said.json) == ROWS, said
    text = anyone("why", "--engines").out.splitlines()
    assert len(text) == len(ROWS) and text[0].startswith("native") and "taken" in text[0] and "kernel" in text[1], text
    for words in (("--path", "/etc"), ("--op", "read"), ("--method", "GET")):
        assert anyone("why", "--engines", *words).code == 125, words
    report = anyone("doctor", "--json").json
    assert list(report["boundaries"]) == list(WORDS) and report["boundaries"]["process"]["engine"] == "native", report["boundaries"]
    assert [(e["engine"], e["runtime"], e["boundary"]) for e in report["engines"]] == ROWS
    shown = anyone("doctor").out
    assert "\nBoundaries (--boundary)\n" in shown, shown
    for boundary in WORDS[1:]:
        one = report["boundaries"][boundary]
        assert (one["engine"] is None) == (f"{boundary:7} no engine here" in shown), (one, shown)
        assert all(row["why"] for row in one["considered"]), one


@pytest.mark.root
def test_gvisor_is_taken_for_a_kernel(runsc):
    report = runsc("run", "--boundary", "kernel", "--json", "--", "uname", "-r").json
    assert (report["engine"], report["runtime"], report["boundary"]) == ("oci", "runsc", "kernel"), report
    assert report["exit_code"] == 0 and report["stdout"].strip() != os.uname().release, report
    assert reasons(report)["microvm"] == "oci runsc comes first" and "process" in reasons(report)["native"], report
    named = runsc("run", "--boundary", "kernel", "--engine", "oci", "--json", "--", "true").json
    assert named["runtime"] == "runsc" and reasons(named)["crun"].startswith("its boundary is process"), named
    # what gVisor cannot keep is no reason for less: a machine, or nothing
    said = runsc("why", "--engines", "--boundary", "kernel", "--workspace", runsc.project, "--json").json
    assert "[oci.name-guard]" in reasons(said)["runsc"] and said["engine"] in (None, "microvm"), said


@pytest.mark.root
def test_a_runtime_that_is_there_is_not_stood_in_for(runsc):
    """`--engine oci` means the first that is installed: what that cannot keep is refused, and not tried with the next one."""
    result = runsc("run", "--engine", "oci", "--workspace", runsc.project, "--", "true")
    assert result.code == 125 and "[oci.name-guard]" in result.err, result


@pytest.mark.root
@requirement("R41")
def test_a_sandbox_of_the_daemon_says_it(cloche):
    crun = lend("crun")
    cloche.env.update(crun.env, CLOCHE_KERNEL_ROOT=str(cloche.home))    # where there is none
    daemon = Daemon(cloche)
    facts = daemon.create(policy=crun.settings).record["facts"]
    assert (facts["engine"], facts["runtime"], facts["boundary"]) == ("oci", "crun", "process"), facts
    assert "oci crun (process): taken: it is named" in facts["engine_why"] and "native (process): the engine oci is named" in facts["engine_why"], facts
    facts = daemon.create().record["facts"]
    assert (facts["engine"], facts["boundary"]) == ("native", "process") and "runtime" not in facts, facts
    refused = daemon.post("/v1/sandboxes", {"policy": {"boundary": "vm"}})
    assert refused.status == 501 and refused.json["code"] == "engine.boundary" and "microvm: " in refused.json["error"], refused
    assert daemon.stop() == 0, daemon.log
