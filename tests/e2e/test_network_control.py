"""The network by name while it is open: cloche-egress dies and comes back."""
import json
import shutil
import subprocess

import pytest

from helpers import leaks, requirement
from helpers.obedient import Obedient, kill_egress
from helpers.runner import wait_for

pytestmark = [requirement("R13", "R14"), pytest.mark.root]

@requirement("R91")
def test_egress_that_dies_is_started_again(online):
    box, killed = Obedient(online), []
    fake = box.do("socket.gethostbyname('ok.example.org')").strip("'\"")
    assert box.do("tunnel()") == "b'one'"
    kill_egress(killed)
    # what was open is gone, what comes next waits for the new one and passes; an address keeps its name
    assert box.do("broken()") == "True"
    assert "hello ok.example.org /again" in box.do("page('/again')")
    assert box.do(f"direct({fake!r})") == "b'HTTP/1.1 200 OK'"
    assert box.do("socket.gethostbyname('ok.example.org')").strip("'\"") == fake
    err, report = box.end()
    assert "cloche-egress ended (signal 9)" in err and "started again" in err, err
    assert report["network"]["egress_deaths"] == 1, report
    assert any("cloche-egress ended" in w for w in report["warnings"]), report
    # rules came back as they were: nothing but the two names that were allowed was asked for or reached
    assert online.net.asked() == {"ok.example.org"}


@requirement("R91")
def test_denied_stays_denied_over_a_restart(online):
    box, killed = Obedient(online), []
    for _ in range(2):
        kill_egress(killed)
        assert "403" in box.do("talk(P, get('evil.example.org', 'http://evil.example.org/'))")
    _, report = box.end()
    assert not online.net.asked() and not online.net.reached()
    assert {d["target"] for d in report["denied"]} >= {"evil.example.org:80"}, report


@requirement("R91")
def test_a_crash_loop_ends_in_closed(online):
    box, killed = Obedient(online), []
    for _ in range(5):
        kill_egress(killed)
    for where in ("P", "S", "('93.184.216.34', 80)", "('93.184.216.34', 443)", "('93.184.216.34', 53)"):
        # the listeners close when the last death is known; until then a connection waits and is then reset
        assert wait_for(lambda where=where: box.do(f"code(lambda: dial(*{where}))") == "ECONNREFUSED"), where
    err, report = box.end()
    assert "5 times within a minute: the network stays closed" in err, err
    assert report["network"]["egress_deaths"] == 5, report
    assert not leaks.named("cloche-egress")


@requirement("R91")
def test_kill_9_of_cloche_while_egress_is_down(online):
    """Its listeners go with it: nobody is left who would answer."""
    box = Obedient(online, report=False)
    kill_egress([])
    box.process.kill()
    box.process.communicate()

    def gone():
        leaks.reap_adopted(set())
        return not leaks.named("cloche-egress")
    assert wait_for(gone), leaks.descendants()


def test_denials_of_the_last_moment_are_in_the_report(online):
    """More than one read of the log brings, said by a command that ends at once."""
    code = """
held = []
for i in range(100):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(question('last%d.example.org' % i), ('8.8.8.8', 53))
    s = dial(*P); s.sendall(get('tunnel%d.example.org' % i, 'http://tunnel%d.example.org/' % i)); held.append(s)
os._exit(0)
"""
    result = online.python(code, flags=["--json"])
    report = result.json
    count = sum(d["count"] for d in report["denied"]) + report["denied_more"]
    assert result.ok and count == 200, (count, report["denied"][-3:], result.err)


def test_refused_in_the_words_of_srt(online):
    settings = online.net.root / "srt.json"
    settings.write_text(json.dumps({"network": {"allowedDomains": ["ok.example.org"], "deniedDomains": []},
                                    "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []}}))
    result = online.cloche("srt", "-s", settings, "--", "curl", "-sSi", "http://evil.example.org/", "http://ok.example.org/x")
    assert result.ok, result
    head, body = result.out.replace("\r", "").split("\n\n", 1)
    assert head.startswith("HTTP/1.1 403 Forbidden\n"), result
    assert "\nX-Proxy-Error: blocked-by-allowlist\n" in head and "\nContent-Type: text/plain\n" in head, head
    assert body.startswith("Connection blocked by network allowlistHTTP/1.1 200 OK"), body


# --- the log ----------------------------------------------------------------------------------------------------------

def log_of(online, run=()):
    result = online.bare("net", "log", "--json", *run)
    assert result.ok, result
    return result.json


def entry(log, **want):
    found = [d for d in log["decisions"] if all(d.get(k) == v for k, v in want.items())]
    assert len(found) == 1, (want, log)
    return found[0]


@requirement("R28")
def test_log_after_the_end(online):
    urls = ["http://ok.example.org/1", "http://ok.example.org/2", "https://ok.example.org/", "http://evil.example.org/"]
    report = online.curl(*urls, flags=["--json"]).json
    log = log_of(online, [report["id"][:9]])
    assert log["id"] == report["id"] and log["ended"] and not log["alive"], log
    assert entry(log, verdict="allow", host="ok.example.org", port=80, method="GET")["count"] == 2
    assert entry(log, verdict="allow", host="ok.example.org", port=443, via="connect")["rule"] == "ok.example.org"
    denied = entry(log, verdict="deny", host="evil.example.org", port=80)
    assert denied["reason"] == "network-no-rule" and denied["first"] <= denied["last"]
    text = online.bare("net", "log")
    assert text.ok and "evil.example.org:80" in text.out and "network-no-rule" in text.out, text
    assert report["id"] in online.bare("net", "ls").out
    assert {r["id"]: r["alive"] for r in online.bare("net", "ls", "--json").json["runs"]} == {report["id"]: False}


@requirement("R28")
def test_log_of_what_was_allowed_and_failed(online):
    """Nobody is led to think that an allowed connection was one."""
    report = online.curl("http://ok.example.org:9/", "http://no-such-name.example.org/", flags=["--json", "--allow-domain", "no-such-name.example.org", "--allow-domain", "ok.example.org:9"]).json
    log = log_of(online, [report["id"]])
    for host, port in (("ok.example.org", 9), ("no-such-name.example.org", 80)):
        entry(log, verdict="allow", host=host, port=port)
        failed = entry(log, verdict="failed", host=host, port=port)
        assert failed["reason"] == "unreachable" and failed["count"] == 1 and failed["detail"], failed
    text = online.bare("net", "log").out
    assert "failed" in text and f"unreachable {entry(log, verdict='failed', port=80)['detail']}" in text, text
    assert report["denied"] == [], report


@requirement("R28")
@pytest.mark.parametrize("rule", ["127.0.0.1:9999", "localhost:3000", "[::1]:80", "169.254.169.254", "0.0.0.0:80"])
def test_a_rule_that_can_never_open_anything(cloche, rule):
    """Refused where somebody expects something of it; in a settings file, which may be another program's too, a warning."""
    result = cloche("run", "--allow-domain", rule, "--", "true")
    assert not result.ok and "[policy.host.never]" in result.err and rule in result.err, result
    settings = cloche.home / "never.yaml"
    settings.write_text(f'version: 1\nnetwork:\n  allow: ["{rule}"]\n', encoding="ascii")
    result = cloche("run", "--settings", settings, "--", "true")
    assert result.ok and f'the rule "{rule}" opens nothing' in result.err, result


@requirement("R28")
def test_log_of_a_run_that_goes_on(online):
    box = Obedient(online)
    box.do("page()")
    log = log_of(online)
    assert log["alive"] and entry(log, verdict="allow", host="ok.example.org", port=80)["count"] == 1, log
    box.do("page()")
    # what is repeated is counted, and told now and then
    assert wait_for(lambda: entry(log_of(online), verdict="allow", host="ok.example.org", port=80)["count"] == 2)
    box.process.kill()
    box.process.communicate()
    # what was written stays; nobody answers
    log = log_of(online)
    assert not log["alive"] and not log["ended"] and "killed" in online.bare("net", "log").out


def test_the_log_is_bounded(online):
    code = """
for i in range(1500):
    try: ask('n%d.example.org' % i)
    except OSError: pass
"""
    report = online.python(code, flags=["--json"]).json
    log = log_of(online, [report["id"]])
    assert len(log["decisions"]) == 1024 and log["more"] == 1500 - 1024, (len(log["decisions"]), log["more"])


def test_a_log_that_cannot_be_kept_stops_nothing(online):
    (online.bare.state / "cloche").write_text("a file in the place of the folder")
    result = online.curl("http://ok.example.org/x", flags=["--json"])
    report = result.json
    assert "hello" in report["stdout"] and len([w for w in report["warnings"] if "not kept" in w]) == 1, report
    assert online.bare("net", "log").code == 125


def test_errors_of_the_log(online):
    for words, code in ((["log"], "cli.net.run"), (["log", "abc"], "cli.net.run"), (["what"], "cli.net.verb"),
                        (["log", "--what"], "cli.unknown-flag"), ([], "cli.net.verb")):
        result = online.bare("net", *words)
        assert result.code == 125 and code in result.err, result


def test_a_host_that_is_none_is_logged_however_long(online):
    code = """
for n in (300, 3000, 30000):
    talk(P, b'GET http://' + b'%' * n + b'/ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')
    talk(P, b'CONNECT ' + b'a' * n + b':443 HTTP/1.1\\r\\nHost: ' + b'a' * n + b':443\\r\\n\\r\\n')
"""
    assert online.python(code).ok
    log = log_of(online)
    assert sum(d["count"] for d in log["decisions"] if d["verdict"] == "deny") == 6, log


# --- rules that change ------------------------------------------------------------------------------------------------

# In the place of cloche-egress: says nothing about the first change, as if its word had been lost.
FORGETFUL = """#!/usr/bin/python3
import json, socket
control, number = socket.socket(fileno=3), 0
while message := control.recv(65536):
    if message[0] == 8:         # EGRESS_CHANGE (egress/control.h)
        number += 1
    if message[0] == 7 and number > 0:          # EGRESS_GO
        with open(%r, 'a') as f: print(number, file=f)
    if message[0] == 7 and number > 1:
        control.send(json.dumps(%s).encode())
"""


@pytest.mark.parametrize("ok", [True, False])
def test_an_answer_that_is_lost_is_nobody_elses(cloche, world, ok):
    seen, program = world.root / "seen", world.root / "egress" / "cloche-egress"
    word = "{'event': 'rules', 'id': number, **(%r)}" % ({"ok": True, "closed": 7} if ok else {"ok": False, "error": "no"})
    program.parent.mkdir()
    program.write_text(FORGETFUL % (str(seen), word), encoding="utf-8")
    program.chmod(0o755)
    (world.root / "cli").mkdir()
    cloche.binary = shutil.copy2(cloche.binary, world.root / "cli" / "cloche")
    run = cloche.popen("run", "--allow-domain", "ok.example.org", "--", "/bin/cat", stdin=subprocess.PIPE)
    (ident,) = wait_for(lambda: [r["id"] for r in cloche("net", "ls", "--json").json["runs"] if r["alive"]])
    first = cloche.popen("net", "allow", "--json", ident, "a.example.org")
    assert wait_for(lambda: seen.exists() and seen.read_text() == "1\n")
    second = cloche("net", "allow", "--json", ident, "b.example.org")
    out, err = first.communicate(timeout=60)
    run.communicate(timeout=60)
    if ok:
        assert second.json == {"ok": True, "closed": 7} and json.loads(out) == {"ok": True, "closed": 0}, (second, out)
    else:
        assert second.code == 125 and "net.rules" in second.out + second.err, second
        assert first.returncode == 125 and b"net.lost" in out + err, (out, err)
