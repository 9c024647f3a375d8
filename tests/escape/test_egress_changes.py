"""Connections that wait while something changes: rules, an answer of the owner's, the end of the vault."""
import json
import os
import signal

import pytest

from helpers import leaks, requirement
from helpers.internet import ECHO, SITE4
from helpers.obedient import Obedient, kill_egress
from helpers.runner import wait_for

pytestmark = [requirement("R13", "R14", "R28"), pytest.mark.root]
OK = "ok.example.org"

# As expressions for an Obedient: TLS through the proxy and without it, a request in the last one, answered to its end.
TUNNEL = ("[held.append(ssl._create_unverified_context().wrap_socket("
          "connect('ok.example.org:443', seconds=60)[0], server_hostname='ok.example.org')), 'open'][1]")
DIRECT = ("[held.append(ssl._create_unverified_context().wrap_socket("
          "dial(socket.gethostbyname('ok.example.org'), 443, 60), server_hostname='ok.example.org')), 'open'][1]")


def request(path):
    return f"[held[-1].sendall(get('{OK}', '{path}')), drain(held[-1], 30)][1]"


@pytest.fixture
def box_of(online, tmp_path):
    made = []

    def make(**network):
        file = tmp_path / "settings.json"
        file.write_text(json.dumps({"network": network}), encoding="ascii")
        made.append(Obedient(online, allow=(), flags=["--settings", str(file), "--extra-ca", str(online.net.ca)]))
        return made[-1]
    yield make
    for box in made:
        box.finish()


def question(online):
    return wait_for(lambda: online.bare("approvals", "--json").json["questions"], 30)[0]


def change(online, what, rule):
    run = online.bare("net", "ls", "--json").json["runs"][0]["id"]
    return online.bare("net", what, run, rule)


def test_an_answer_that_comes_late_holds_nothing_of_former_rules(online, box_of):
    """The refusal is known before the client asks; meanwhile the rules that it names are gone, and their memory."""
    box = box_of(allow=[{"host": OK, "path": "/**"}], deny=[SITE4])
    assert box.do(DIRECT) == "open"
    for i in range(3):
        assert change(online, "allow", f"other{i}.example.org").ok
    answer = box.do(request("/"))
    assert "403" in answer and f"(rule {SITE4})" in answer, answer


def test_the_answer_says_what_is_wrong_with_the_server(online, tmp_path):
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"network": {"allow": [{"host": OK, "path": "/**"}]}}), encoding="ascii")
    box = Obedient(online, allow=(), flags=["--settings", str(file)])
    assert box.do(TUNNEL) == "open"
    answer = box.do(request("/"))
    assert "502" in answer and "upstream-cert-untrusted: " in answer, answer
    box.finish()


def test_a_yes_to_the_host_is_no_yes_to_a_denied_path(online, box_of):
    box = box_of(allow=["a.example.org"], deny=[{"host": OK, "path": "/secret/**"}], ask=True)
    box.do(f"go('a', lambda: {TUNNEL})")
    assert online.bare("approvals", "approve", question(online)["id"]).ok
    assert box.do("get_of('a')") == "open"
    answer = box.do(request("/secret/x"))
    assert "403" in answer and not online.net.requests, answer


def test_a_question_outlives_a_change_that_does_not_answer_it(online, box_of):
    box = box_of(allow=[{"host": OK, "port": 80, "path": "/v1/**"}], ask=True)
    box.do("go('a', lambda: page('/v2'))")
    asked = question(online)
    assert change(online, "allow", "other.example.org").ok
    assert question(online)["id"] == asked["id"]
    assert online.bare("approvals", "approve", asked["id"]).ok
    assert "hello ok.example.org /v2" in box.do("get_of('a')")


def test_a_port_that_is_open_for_another_host_is_asked_about(online, box_of):
    box = box_of(allow=[f"a.example.org:{ECHO}"], ask=True)
    box.do(f"go('a', lambda: talk((socket.gethostbyname('{OK}'), {ECHO}), b'x', 60))")
    asked = question(online)
    assert (asked["host"], asked["port"]) == (OK, ECHO)
    assert online.bare("approvals", "deny", asked["id"]).ok
    box.do("get_of('a')")
    assert not online.net.reached()
    _, report = box.end()
    assert f"{OK}:{ECHO}" in {d["target"] for d in report["denied"]}, report["denied"]


def test_without_the_vault_nothing_that_needs_it_opens(online, box_of):
    box = box_of(allow=[{"host": OK, "path": "/v1/**"}])
    assert box.do(TUNNEL) == "open" and "hello ok.example.org /v1/a" in box.do(request("/v1/a"))
    killed = []
    kill_egress(killed)
    assert box.do(TUNNEL) == "open" and "hello ok.example.org /v1/b" in box.do(request("/v1/b"))
    for pid in leaks.named("cloche-vault"):
        os.kill(pid, signal.SIGKILL)
    kill_egress(killed)
    assert wait_for(lambda: box.do("code(lambda: dial(*P))") == "ECONNREFUSED", 60)
    assert [r["path"] for r in online.net.requests] == ["/v1/a", "/v1/b"]
