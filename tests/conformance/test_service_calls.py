"""The lists of system calls of cloche's own processes: what stands there is used, or has its reason in service_calls.tsv.

A part of the suites is the workload; the kernel tells which filters were installed and what was called under them
(tests/helpers/recorder.py). One rule that nothing uses, one exception that is used or is for no rule: each fails.
"""
import functools
import os
import sys
from pathlib import Path

import pytest

from helpers import places, recorder, requirement

pytestmark = requirement("R26", "R61")

PROCESSES = ["launcher", "keeper", "front", "adapter", "warden", "egress", "vault", "scribe", "webhook", "otlp", "signer"]
EXCEPTIONS = Path(__file__).with_name("service_calls.tsv")
PATIENCE = 900      # seconds for all of the workload, which takes one

# A test here is for the calls behind it; without it one of those would be missing.
WORKLOAD = [
    "test_serve_crash.py::test_the_warden_is_killed",
    "test_serve_docs.py::test_every_route_answers_as_the_file_says",
    "test_serve_crash.py::test_everything_is_killed_and_comes_again",
    "../escape/test_serve.py::test_another_user_is_refused",
    "test_serve_config.py",
    "test_serve_doors.py::test_tls",
    "test_serve_doors.py::test_a_new_certificate_counts_from_the_next_connection_on",
    "test_serve_doors.py::test_readiness_is_said_as_systemd_hears_it",
    "test_serve_doors.py::test_several_addresses_and_the_ports_that_were_found",
    "test_serve_live.py::test_over_tcp",
    "test_serve_api.py",
    "test_runtimes.py::test_agents_have_it_and_a_reload_changes_it",
    "test_mcp.py::test_files",
    "test_mcp.py::test_a_large_program",
    "test_serve_ports.py::test_large_bodies_both_ways",
    "test_serve_logs.py::test_a_line_for_each_request",
    "test_serve_audit.py::test_what_is_too_old_goes",
    "test_serve_audit.py::test_a_full_file_is_followed_by_the_next",
    "test_serve_audit.py::test_another_writer_is_waited_for",
    "test_serve_audit.py::test_what_waits_is_written_before_the_end",
    "test_serve_audit.py::test_a_full_disk_stops_what_must_be_recorded",
    "test_serve_transcript.py::test_everything_that_was_done_outlives_the_sandbox",
    "test_serve_pool.py::test_what_waits_is_nobodys",
    "test_serve_transcript.py::test_old_transcripts_go_and_those_of_the_living_stay",
    "test_serve_webhook.py::test_what_is_not_tried_again",
    "test_serve_otlp.py::test_tried_again_when_the_collector_says_so",
    "test_serve_otlp.py::test_what_is_refused_is_not_tried_again",
    "test_serve_network.py",
    "test_serve_policy.py::TestNetwork::test_rules_change",
    "test_serve_limits.py::test_less_memory",
    "test_serve_command_limits.py::test_processes",
    "test_network_names.py::test_socks",
    "test_network_names.py::test_kinds_of_answers",
    "test_network_ask.py::test_a_restart_forgets_the_questions",
    "test_network_tls.py::test_revoking_ends_the_connection",
    "test_network_websocket.py::test_a_placeholder_in_two_fragments",
    "test_secret_end.py::test_a_vault_that_was_stopped_goes_on",
    "test_serve_sign.py::test_a_request_is_signed_as_ethers_signs_it",
    "test_serve_fork.py::test_a_fork_has_its_files",
    "test_attach.py::test_keys_are_keys",
]


def exceptions():
    """{process: {call: (seldom, reason)}}"""
    found = {process: {} for process in PROCESSES}
    for line in EXCEPTIONS.read_text().splitlines():
        if line and not line.startswith("#"):
            call, processes, seen, reason = line.split("\t")
            assert seen in ("never", "may") and reason, line
            for process in processes.split():
                assert call not in found[process], f"{EXCEPTIONS.name}: {call} of {process} stands there twice"
                found[process][call] = (seen, reason)
    return found


@functools.cache
def numbers():
    return recorder.names()


def called(rule):
    number, argument = rule
    return numbers().get(number, str(number)) + ("" if argument is None else f"({argument})")


def list_of(process):
    folder = {"adapter": "adapters"}.get(process, process)
    return f"src/{folder}/{process}_confine.c" if process in ("launcher", "keeper") else f"src/{folder}/confine.c"


def wrong(process, rules, used, excepted):
    """What is to be said of one process's list: lines."""
    where = f"cloche-{process}"
    for call in sorted(rules - used - set(excepted)):
        yield f"{where}: {call} is on its list, and nothing used it: take it off ({list_of(process)}), use it in a test " \
              f"of WORKLOAD, or write down in {EXCEPTIONS.name} why it must stay"
    for call, (seen, _) in sorted(excepted.items()):
        if call not in rules:
            yield f"{where}: {call} has an exception in {EXCEPTIONS.name}, and is not on its list: take the exception away"
        elif seen == "never" and call in used:
            yield f"{where}: {call} has an exception in {EXCEPTIONS.name}, and was used: take the exception away"


def test_what_is_wrong_is_said():
    """The judge itself, with lists of which we know."""
    rules, used = {"read", "write", "socket(2)", "time"}, {"read", "time"}
    assert not list(wrong("front", rules, {*used, "write", "socket(2)"}, {"time": ("may", "")}))
    assert [line.split(" is ")[0] for line in wrong("front", rules, used, {"time": ("may", "")})] == \
        ["cloche-front: socket(2)", "cloche-front: write"]
    said = list(wrong("front", rules, rules, {"read": ("never", ""), "exit": ("may", "")}))
    assert len(said) == 2 and "exit has an exception" in said[0] and "not on its list" in said[0] and "was used" in said[1]


@pytest.mark.root
def test_every_rule_is_used(cloche):
    if b"__asan_init" in cloche.binary.read_bytes():
        pytest.skip("a sanitized build has no filters")
    missing = recorder.why_not()
    if missing:
        pytest.skip(missing)
    excepted, lines = exceptions(), []
    watch = recorder.Recorder([f"cloche-{process}" for process in PROCESSES])
    try:
        # a run of its own: neither a worker of ours (the first one looks after the tables of the whole run) nor a part
        part = ("PYTEST_", "CLOCHE_TEST_RUN", "CLOCHE_TEST_ELSEWHERE")
        env = {name: value for name, value in os.environ.items() if not name.startswith(part)}
        env["CLOCHE"] = str(cloche.binary)
        code, said = watch.run([sys.executable, "-B", "-m", "pytest", "-q", "--tb=short", "--color=no", "-o", "addopts=",
                                "--import-mode=importlib", "-p", "no:cacheprovider",
                                *(f"tests/e2e/{test}" for test in WORKLOAD)], PATIENCE, cwd=places.REPO, env=env)
        rules, used = watch.installed(), watch.used()
    finally:
        watch.close()
    assert code == 0, f"the workload failed:\n{said[-4000:]}"
    for process in PROCESSES:
        name = f"cloche-{process}"
        assert rules.get(name), f"no filter of {name} was seen"
        # where any family of socket(2) may be had, the rule names none
        used[name] = {(n, None) if (n, None) in rules[name] else (n, argument) for n, argument in used[name]}
        # a call that the filter kills never gets so far: who has one was mistaken for another
        assert used[name] <= rules[name], (name, sorted(map(called, used[name] - rules[name])))
        lines += wrong(process, set(map(called, rules[name])), set(map(called, used[name])), excepted[process])
    assert not lines, "\n".join(["", *lines])
