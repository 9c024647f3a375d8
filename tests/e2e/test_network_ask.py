"""Ask instead of refuse, and rules that change while a run goes on."""
import json
import os
import shlex
import subprocess

import pytest

from helpers import requirement
from helpers.internet import ECHO, SITE4
from helpers.obedient import OBEY, Obedient, kill_egress
from helpers.runner import wait_for

pytestmark = [requirement("R13", "R28", "R92"), pytest.mark.root]


def questions(online, n=1):
    """The questions that are open, when there are @n of them."""
    def look():
        found = online.bare("approvals", "--json").json["questions"]
        return [found] if len(found) == n else None
    found = wait_for(look)
    assert found, online.bare("approvals", "--json")
    return found[0]


def decide(online, what, *more):
    question = questions(online)[0]
    result = online.bare("approvals", what, question["id"], *more)
    assert result.ok, result
    return question


def entries(online, **want):
    log = online.bare("net", "log", "--json").json
    return [d for d in log["decisions"] if all(d.get(k) == v for k, v in want.items())]


@pytest.fixture
def obedient(online):
    made = []

    def make(**more):
        made.append(Obedient(online, **more))
        return made[-1]
    yield make
    for box in made:
        box.finish()


@pytest.fixture
def asking(obedient):
    return obedient(allow=(), flags=["--ask"])


def test_approved_once(online, asking):
    assert asking.do("go('a', lambda: page('/once'))") == "started"
    question = questions(online)[0]
    assert (question["host"], question["port"], question["reason"], question["method"]) == (
        "ok.example.org", 80, "network-no-rule", "GET"), question
    assert not online.net.reached() and not online.net.asked(), "nothing is done before the answer"
    assert "ok.example.org:80" in online.bare("approvals").out
    assert "ok.example.org:80" in online.bare("approvals", "show", question["id"]).out
    assert online.bare("approvals", "approve", question["id"]).ok
    assert "hello ok.example.org /once" in asking.do("get_of('a')")
    # the next one asks again
    asking.do("go('b', lambda: page('/twice'))")
    decide(online, "deny")
    assert "403" not in asking.do("get_of('b')") and [r["path"] for r in online.net.requests] == ["/once"]
    assert [(d["reason"], d["by"]) for d in entries(online, verdict="allow")] == [("asked", f"uid {os.getuid()}")]
    assert [(d["reason"], d["by"]) for d in entries(online, verdict="deny")] == [("ask-denied", f"uid {os.getuid()}")]
    err, report = asking.end()
    assert err.count("cloche approvals") == 1, err
    assert {d["target"]: d["rule"] for d in report["denied"]} == {"ok.example.org:80": "ask-denied"}


WAYS = {
    "http": "page()",
    "connect": "connect('ok.example.org:443', seconds=60)[1]",
    "socks": "socks(3, b'\\x0eok.example.org', port=443)",
    "tls": "tls(dial(socket.gethostbyname('ok.example.org'), 443, 60), 'ok.example.org').version()",
    "direct": "talk((socket.gethostbyname('ok.example.org'), 80), get('ok.example.org'), 60)",
    "literal": f"talk(P, get('{SITE4}', 'http://{SITE4}/'), 60)",
}


@pytest.mark.parametrize("way", sorted(WAYS))
def test_every_way_can_be_asked_about(online, asking, way):
    asking.do(f"go('a', lambda: {WAYS[way]})")
    decide(online, "approve")
    said = asking.do("get_of('a')")
    good = {"http": "hello", "connect": "200", "socks": "\\x05\\x00", "tls": "TLSv1", "direct": "hello", "literal": "hello"}
    assert good[way] in said, said
    assert online.net.reached()


def test_approved_for_the_sandbox(online, asking):
    asking.do("go('a', lambda: tunnel())")
    decide(online, "approve", "--sandbox")
    assert asking.do("get_of('a')") == "b'one'"
    assert asking.do("tunnel()") == "b'one'", "not asked again"
    asking.do("go('b', lambda: page())")        # another port is another question
    question = decide(online, "deny", "--sandbox")
    assert question["port"] == 80
    asking.do("get_of('b')")
    assert "network-no-rule" not in asking.do("page()") and "deny-domain" in asking.do("page()")
    assert entries(online, verdict="allow", rule=f"ok.example.org:{ECHO}")


def test_equal_questions_are_one(online, asking):
    for name in "abcdef":
        asking.do(f"go({name!r}, lambda: page('/x'))")
    decide(online, "approve")
    # those that had come by then passed with one answer; a late one asks anew
    for name in "abcdef":
        wait_for(lambda name=name: asking.do(f"later['thread {name}'].is_alive()") == "False" or
                 [online.bare("approvals", "approve", q["id"]) for q in
                  online.bare("approvals", "--json").json["questions"]] is None)
        assert "hello ok.example.org /x" in asking.do(f"get_of({name!r})")


def test_nobody_answers(online, obedient):
    box = obedient(allow=(), flags=["--ask", "--ask-timeout", "1s"])
    said = box.do("talk(P, get('ok.example.org', 'http://ok.example.org/'), 60)")
    assert "403" in said and "ask-timeout" in said and not online.net.reached(), said
    assert online.bare("approvals", "--json").json["questions"] == []


def test_rules_decide_without_asking(online, obedient):
    box = obedient(allow=("a.example.org",), flags=["--ask", "--deny-domain", "evil.example.org"])
    assert "hello" in box.do("page('/', 'a.example.org')")
    assert "deny-domain" in box.do("page('/', 'evil.example.org')")
    for never in ("localhost", "127.0.0.1", "169.254.169.254", "metadata.google.internal"):
        assert "403" in box.do(f"talk(P, get({never!r}, 'http://{never}/'), 60)")
    assert online.bare("approvals", "--json").json["questions"] == []


def test_a_private_address_that_was_approved_by_itself(online, asking):
    online.net.names["inner.example.org"] = [("A", "10.0.0.5")]
    asking.do("go('a', lambda: page('/', '10.0.0.5'))")
    decide(online, "approve")
    assert "hello" in asking.do("get_of('a')")
    asking.do("go('b', lambda: page('/', 'inner.example.org'))")    # by a name it stays closed
    decide(online, "approve")
    assert "address-no-rule" in asking.do("get_of('b')")


def test_whoever_gave_up_is_not_connected(online, asking):
    asking.do("go('a', lambda: talk(P, get('ok.example.org', 'http://ok.example.org/late'), .3))")
    question = questions(online)[0]
    asking.do("get_of('a')")
    assert online.bare("approvals", "approve", question["id"]).ok
    assert "hello" not in asking.do("get_of('a')")
    asking.do("go('b', lambda: page('/now'))")
    decide(online, "approve")
    asking.do("get_of('b')")
    assert [r["path"] for r in online.net.requests] == ["/now"]


def test_watch_says_each_once(online, asking):
    watch = online.bare.popen("approvals", "watch", "--json")
    asking.do("go('a', lambda: page())")
    said = json.loads(watch.stdout.readline())
    assert said["host"] == "ok.example.org" and questions(online)[0]["id"] == said["id"]
    decide(online, "approve")
    asking.do("get_of('a')")
    asking.do("go('b', lambda: tunnel())")
    assert json.loads(watch.stdout.readline())["port"] == ECHO
    decide(online, "deny")
    watch.terminate()
    watch.communicate()


SETTINGS = {
    "yaml": ("network:\n  # asked for\n  allow:\n    - a.example.org   # first\n  ask: true\n",
             "network:\n  # asked for\n  allow:\n    - a.example.org   # first\n    - \"ok.example.org:80\"\n  ask: true\n"),
    "json": ('{"network": {"ask": true,\n\t"allow": [ "a.example.org" ]}}',
             '{"network": {"ask": true,\n\t"allow": [ "a.example.org", "ok.example.org:80" ]}}'),
}


@pytest.mark.parametrize("kind", sorted(SETTINGS))
def test_always_is_written_down(online, obedient, kind):
    before, after = SETTINGS[kind]
    settings = online.net.root / f"settings.{kind}"
    settings.write_text(before, encoding="utf-8")
    settings.chmod(0o640)
    box = obedient(allow=(), flags=["--settings", str(settings)])
    box.do("go('a', lambda: page())")
    decide(online, "approve", "--always")
    assert "hello" in box.do("get_of('a')") and "hello" in box.do("page()")
    assert settings.read_text(encoding="utf-8") == after and settings.stat().st_mode & 0o777 == 0o640
    assert not list(settings.parent.glob("settings*cloche-*"))
    box.end()
    again = obedient(allow=(), flags=["--settings", str(settings)])
    assert "hello" in again.do("page()")


@pytest.mark.parametrize("kind", ["none", "word", "writable"])
def test_always_that_has_no_place(online, obedient, kind):
    flags = ["--ask"]
    if kind == "writable":      # the sandbox could put its own file in the place of ours
        settings = online.bare.project / "settings.yaml"
        settings.write_text("network: {allow: [], ask: true}\n", encoding="utf-8")
        flags += ["--settings", str(settings), "--workspace", str(online.bare.project)]
    if kind == "word":
        settings = online.net.root / "settings.yaml"
        settings.write_text("network: allowlist\n", encoding="utf-8")
        flags += ["--settings", str(settings)]
    box = obedient(allow=(), flags=flags)
    box.do("go('a', lambda: page())")
    question = questions(online)[0]
    result = online.bare("approvals", "approve", question["id"], "--always")
    assert result.code == 125 and "policy.append" in result.err, result
    assert questions(online)[0]["id"] == question["id"], "it waits on"
    decide(online, "approve")
    assert "hello" in box.do("get_of('a')")


def test_what_the_rules_of_a_host_left_out_is_approved_once_only(online, obedient):
    settings = online.net.root / "settings.yaml"
    before = "network:\n  mode: allowlist\n  ask: true\n  allow:\n    - {host: ok.example.org, path: /read/**}\n"
    settings.write_text(before, encoding="utf-8")
    box = obedient(allow=(), flags=["--settings", str(settings)])
    assert "hello" in box.do("page('/read/x')")
    box.do("go('a', lambda: page('/write'))")
    question = questions(online)[0]
    assert question["reason"] == "scope-no-rule", question
    for scope in ("--sandbox", "--always"):
        result = online.bare("approvals", "approve", question["id"], scope)
        assert result.code == 125 and "net.scope" in result.err and "--once" in result.err, result
    assert settings.read_text(encoding="utf-8") == before and questions(online)[0]["id"] == question["id"], "it waits on"
    decide(online, "approve")
    assert "hello" in box.do("get_of('a')")
    box.do("go('b', lambda: page('/write'))")
    decide(online, "deny", "--sandbox")
    assert "hello" not in box.do("get_of('b')")


def test_errors(online, asking):
    asking.do("go('a', lambda: page())")
    question = questions(online)[0]
    for words, code in ((["approve", "abc"], "cli.approvals.id"), (["approve", question["id"] + "9"], "net.question"),
                        (["deny", question["id"], "--always"], "net.always"), (["what"], "cli.approvals.verb"),
                        (["approve", question["id"], "--once", "--sandbox"], "cli.approvals.scope"),
                        (["show", question["id"] + "9"], "cli.approvals.gone")):
        result = online.bare("approvals", *words)
        assert result.code == 125 and code in result.err, result
    decide(online, "deny")
    assert "ask-denied" in asking.do("get_of('a')")


@pytest.mark.parametrize("flags,code", [
    (["--ask", "--network", "none"], "policy.network.ask"), (["--ask", "--network", "host"], "policy.network.ask"),
    (["--ask", "--mode", "light"], "policy.network.light"), (["--ask-timeout", "0s"], "policy.network.ask"),
    (["--ask-timeout", "2h"], "policy.network.ask")])
def test_asking_that_cannot_be(online, flags, code):
    result = online.bare("run", *flags, "--", "true")
    assert result.code == 125 and code in result.err, result


def test_a_restart_forgets_the_questions(online, asking):
    asking.do("go('a', lambda: page())")
    questions(online)
    kill_egress([])
    asking.do("get_of('a')")
    questions(online, 0)
    asking.do("go('b', lambda: page())")
    decide(online, "approve", "--sandbox")
    assert "hello" in asking.do("get_of('b')")


# --- rules that change -------------------------------------------------------------------------------------------------

def change(online, *words, code=0):
    run = online.bare("net", "ls", "--json").json["runs"][0]["id"]
    result = online.bare("net", words[0], run[:8], *words[1:], "--json")
    assert result.code == code, result
    return result


def test_allow_and_deny_a_running_sandbox(online, obedient):
    box = obedient(allow=("a.example.org",))
    assert "network-no-rule" in box.do("page()")
    change(online, "allow", "ok.example.org")
    assert "hello" in box.do("page()")
    change(online, "allow", f"ok.example.org:{ECHO}")
    assert box.do("tunnel()") == "b'one'"
    said = change(online, "deny", "ok.example.org").json
    assert said["ok"] and said["closed"] == 1, said
    assert box.do("broken()") == "True" and "deny-domain" in box.do("page()")
    assert "hello" in box.do("page('/', 'a.example.org')")


def test_deny_leaves_others_alone(online, obedient):
    box = obedient(allow=(f"ok.example.org:{ECHO}", "a.example.org"))
    assert box.do("tunnel()") == "b'one'"
    assert change(online, "deny", "a.example.org").json["closed"] == 0
    assert box.do("broken()") == "False"


def test_a_denied_address_closes_what_was_dialled_there(online, obedient):
    box = obedient()
    assert box.do("tunnel()") == "b'one'"
    assert change(online, "deny", SITE4).json["closed"] == 1
    assert box.do("broken()") == "True"


@pytest.mark.parametrize("rule", ["*.com", "http://a.example.org/", "a b", "", "10.0.0.0/8", "**"])
def test_a_rule_that_is_none_changes_nothing(online, obedient, rule):
    box = obedient()
    result = change(online, "allow", rule, code=125)
    assert "policy." in result.out + result.err, result
    assert "hello" in box.do("page()") and "network-no-rule" in box.do("page('/', 'a.example.org')")


def test_changes_outlive_a_restart(online, obedient):
    box = obedient()
    change(online, "allow", "a.example.org")
    change(online, "deny", "ok.example.org")
    kill_egress([])
    assert "hello" in box.do("page('/', 'a.example.org')") and "deny-domain" in box.do("page()")


def test_a_run_that_has_ended_takes_no_rule(online):
    assert online.curl("http://ok.example.org/").ok
    run = online.bare("net", "ls", "--json").json["runs"][0]["id"]
    result = online.bare("net", "allow", run, "a.example.org")
    assert result.code == 125 and "cli.net.run" in result.err, result


# --- SRT's control descriptor ------------------------------------------------------------------------------------------

def srt_line(allowed, denied=(), **network):
    return json.dumps({"network": {"allowedDomains": list(allowed), "deniedDomains": list(denied), **network},
                       "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []}}).encode() + b"\n"


LOOP = ("while read -r host; do if curl -s -o /dev/null --max-time 30 -f http://$host/; then echo yes; else echo no; fi; "
        "done")


def test_srt_control_fd(online):
    settings = online.net.root / "srt.json"
    settings.write_bytes(srt_line([]))
    theirs, ours = os.pipe()
    with os.fdopen(ours, "wb", 0) as control:
        process = online.cloche.popen("srt", "-s", settings, "--control-fd", str(theirs), "-c", LOOP,
                                      stdin=subprocess.PIPE, pass_fds=[theirs])
        os.close(theirs)

        def reaches(host):
            process.stdin.write(host.encode() + b"\n")
            process.stdin.flush()
            return process.stdout.readline() == b"yes\n"
        assert not reaches("ok.example.org")
        control.write(srt_line(["ok.example.org"])[:20])
        assert not reaches("ok.example.org"), "half a line is none"
        control.write(srt_line(["ok.example.org"])[20:] + b"\n  \n")
        assert wait_for(lambda: reaches("ok.example.org")), process.stderr
        assert not reaches("evil.example.org")
        control.write(b"{\"network\": }\n")
        control.write(srt_line(["*.example.org"], ["ok.example.org"]))
        assert wait_for(lambda: reaches("evil.example.org")) and not reaches("ok.example.org")
    assert reaches("evil.example.org"), "its end ends nothing"
    _, err = process.communicate(timeout=30)
    assert f"Invalid config on control fd {theirs}: ignored, previous config still in force\n" in err.decode(), err


@pytest.fixture
def controlled(online):
    """controlled(settings, line): a box behind SRT's settings, which then gets that line; and its end of the channel."""
    boxes = []

    def make(**settings):
        file = online.net.root / "srt.json"
        file.write_bytes(srt_line(**settings))
        theirs, ours = os.pipe()
        control = os.fdopen(ours, "wb", 0)
        box = Obedient(online, process=online.cloche.popen(
            "srt", "-s", file, "--control-fd", str(theirs), "-c", shlex.join(["/usr/bin/python3", "-I", "-S", "-c", OBEY]),
            stdin=subprocess.PIPE, pass_fds=[theirs]))
        os.close(theirs)
        boxes.append((box, control))
        return box, control
    yield make
    for box, control in boxes:
        control.close()
        box.finish()


def test_what_is_looked_into_stays_as_the_settings_say(online, controlled):
    """A line is about hosts: it takes nothing away of the rest, also not from the cloche-egress that is started after it."""
    box, control = controlled(allowed=[], ambiguousRequestTarget="refuse")
    control.write(srt_line(["ok.example.org"]))
    assert wait_for(lambda: "hello" in box.do("page()"))
    moving = "talk(P, get('ok.example.org', 'http://ok.example.org/a/../b'), 60)[:12].decode()"
    assert box.do(moving) == "HTTP/1.1 400"
    kill_egress([])
    assert "hello" in box.do("page()") and box.do(moving) == "HTTP/1.1 400"


def test_a_host_that_is_not_kept_closed_any_more(online, controlled):
    """Its connections, in which nothing was looked into, end; those of a host that stays so go on."""
    kept = {"tlsTerminate": {"excludeDomains": ["ok.example.org"]}}
    box, control = controlled(allowed=["ok.example.org"], **kept)
    assert box.do("tunnel()") == "b'one'"
    control.write(srt_line(["ok.example.org", "a.example.org"], **kept))
    assert wait_for(lambda: "hello" in box.do("page('/', 'a.example.org')"))
    assert box.do("broken()") == "False"
    assert box.do("tunnel()") == "b'one'"
    control.write(srt_line(["ok.example.org", "b.example.org"]))
    assert wait_for(lambda: "hello" in box.do("page('/', 'b.example.org')"))
    assert box.do("broken()") == "True"


def test_srt_control_fd_that_is_not_there(online):
    result = online.bare("srt", "--control-fd", "77", "-c", "true")
    assert result.code == 1 and "not an open descriptor" in result.err, result
