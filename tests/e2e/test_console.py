"""The console of cloche serve: its files, its tickets and who may have them (docs/console.md)."""
import json
import re
import shutil
import subprocess
import time

import pytest

from helpers import places, requirement
from helpers.approvals import ASYNC
from helpers.daemon import Caller, Daemon, caller, restart
from helpers.runner import wait_for

pytestmark = requirement("R87")

CONSOLE = places.REPO / "console"
FILES = sorted(p.name for p in CONSOLE.iterdir())
HEADERS = {"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
           "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"}
NEVER = "cloche_console_" + "0" * 64        # no ticket of any daemon's
POLICY = {"default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "connect-src": "'self'", "frame-ancestors": "'none'", "base-uri": "'none'",
          "form-action": "'none'", "require-trusted-types-for": "'script'", "trusted-types": "'none'"}


@pytest.fixture
def daemon(cloche):
    made = Daemon(cloche, tcp=True)
    yield made
    assert made.stop() == 0, made.log


def ticket(who, **body):
    said = who.post("/v1/console", body)
    assert said.status == 201, said
    return said.json["ticket"]


def opened(daemon, text, headers=None):
    return daemon.remote()("POST", "/v1/console/open", {"ticket": text}, headers)


def refused(daemon, text):
    said = opened(daemon, text)
    assert said.status == 403, said
    return said.json["code"]


def session(daemon, **body):
    said = opened(daemon, ticket(daemon, **body))
    assert said.status == 201, said
    return daemon.remote(said.json["token"]), said.json


# --- the page ------------------------------------------------------------------------------------------------------------------


def test_the_page_is_files_of_ours_and_nothing_else(daemon):
    """All of it is what is in console/, under headers that let nothing else in; whoever asks, and without a credential."""
    remote = daemon.remote()
    types = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
    for name in FILES:
        at = "/console" if name == "index.html" else f"/console/{name}"
        said = remote("GET", at)
        assert said.status == 200 and said.body == (CONSOLE / name).read_bytes(), (name, said.status)
        assert said.headers["Content-Type"] == types[name.rsplit(".")[-1]], name
        assert {k: said.headers[k] for k in HEADERS} == HEADERS, name
        assert dict(part.strip().split(" ", 1) for part in said.headers["Content-Security-Policy"].split(";")) == POLICY, name
        assert "Set-Cookie" not in said.headers and not [h for h in said.headers if h.lower().startswith("access-control")], name
    for name in ("none.js", "index.html", "..%2fopenapi.yaml", "main.js/", "", "main.js%00"):
        assert remote("GET", f"/console/{name}").status in (400, 404), name
    for method in ("POST", "PUT", "DELETE"):
        assert remote(method, "/console").status == 405


def test_the_files_need_nothing_else():
    """No address outside of this server, no script or style within the HTML, no HTML from text, and each import is there."""
    for name in FILES:
        text = (CONSOLE / name).read_text("utf-8")
        assert not re.search(r"(?:https?|wss?)://", text), name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|createContextualFragment|DOMParser|setHTML|localStorage|document\.cookie", text), name
        for found in re.findall(r'from "\./([^"]+)"', text):
            assert found in FILES, (name, found)
    page = (CONSOLE / "index.html").read_text("utf-8")
    assert not re.search(r"<script(?![^>]* src=)|<style|style=|\bon[a-z]+=", page)
    assert set(re.findall(r'(?:src|href)="([^"]+)"', page)) == {"/console/style.css", "/console/main.js"}


# --- tickets -------------------------------------------------------------------------------------------------------------------


def test_a_ticket_opens_one_session_once(daemon):
    said = daemon.post("/v1/console")
    assert said.status == 201 and said.json["role"] == "operator", said
    assert re.fullmatch(r"cloche_console_[0-9a-f]{64}", said.json["ticket"])
    host, port = daemon.addresses()[0]
    assert said.json["url"] == f"http://{host}:{port}{said.json['path']}" and said.json["path"] == f"/console#ticket={said.json['ticket']}", said
    assert 0 < said.json["expires_ms"] - time.time() * 1000 <= 120000
    assert daemon.remote(said.json["ticket"]).get("/v1/sandboxes").status == 401       # it is no credential
    first = opened(daemon, said.json["ticket"])
    assert first.status == 201 and first.json["role"] == "operator" and first.json["name"] == "console", first
    assert 0 < first.json["expires_ms"] - time.time() * 1000 <= 8 * 3600000
    assert refused(daemon, said.json["ticket"]) == "console.used"
    # a session is a token: it is in their list, and ends as they do
    person = daemon.remote(first.json["token"])
    assert person.get("/v1/sandboxes").ok
    assert [t["name"] for t in daemon.get("/v1/tokens").json["tokens"]] == ["console"]
    assert daemon("DELETE", f"/v1/tokens/{first.json['id']}").ok
    assert person.get("/v1/sandboxes").json["code"] == "auth.unknown"
    assert refused(daemon, said.json["ticket"]) == "console.used"
    events = [(e["type"], e["detail"]) for e in daemon.get("/v1/events?limit=1000").json["events"]]
    assert ("console_ticket", "operator, by the owner") in events
    assert any(kind == "token_created" and detail.endswith("console, by the owner, by a ticket") for kind, detail in events), events
    assert any(kind == "auth_refused" and "console.used" in detail for kind, detail in events), events
    assert said.json["ticket"] not in json.dumps(events) and first.json["token"] not in json.dumps(events)


def test_a_ticket_is_good_for_a_while_in_this_daemon(daemon, tmp_path):
    said = daemon.post("/v1/console", {"within": 1})
    assert wait_for(lambda: time.time() * 1000 > said.json["expires_ms"], 10)
    assert refused(daemon, said.json["ticket"]) == "console.late"
    mine = ticket(daemon)
    other = Daemon(daemon.cloche, "--state-dir", str(tmp_path / "other"), path=tmp_path / "o", tcp=True)
    try:
        theirs = ticket(other)
        assert refused(daemon, theirs) == "console.ticket" and refused(other, mine) == "console.ticket"
        assert opened(other, theirs).status == 201
    finally:
        assert other.stop() == 0, other.log
    assert refused(daemon, mine[:-1] + ("0" if mine[-1] != "0" else "1")) == "console.ticket"
    restart(daemon)
    assert refused(daemon, mine) == "console.ticket"


def test_what_is_asked_for_must_be_well(daemon):
    for body in ({"role": "agent"}, {"role": "key"}, {"role": "attach"}, {"role": 1}, {"role": ""}, {"seconds": 0}, {"seconds": 86401}, {"seconds": "1"}, {"within": 0},
                 {"within": 601}, {"more": 1}, [], "x"):
        said = daemon.post("/v1/console", body)
        assert (said.status, said.json["code"]) in ((400, "console.request"), (400, "http.json")), (body, said)
    remote = daemon.remote()
    for body in (None, {}, {"ticket": 1}, {"ticket": "x" * 97}, {"ticket": NEVER, "role": "operator"}, {"ticket": "a\0b"}, [], {"ticket": ""},
                 {"ticket": NEVER[:-1]}, {"ticket": NEVER + "0"}, {"ticket": NEVER.upper()}, {"ticket": "cloche_operator_" + "0" * 64}):
        assert remote("POST", "/v1/console/open", body).status == 400, body
    assert refused(daemon, NEVER) == "console.ticket"


def test_so_many_tickets_wait_and_no_more(daemon):
    for _ in range(64):
        ticket(daemon)
    said = daemon.post("/v1/console")
    assert (said.status, said.json["code"]) == (429, "console.busy"), said


# --- who -----------------------------------------------------------------------------------------------------------------------


def test_only_who_may_make_tokens_may_make_a_ticket(daemon):
    box = daemon.create()
    people = {role: caller(daemon, role) for role in ("operator", "agent", "approver", "auditor")}
    people["key"] = Caller(daemon, X_Sandbox_Key=box.record["key"])
    for role, who in people.items():
        said = who.post("/v1/console", {"role": "auditor"})
        assert (said.status, said.json.get("code")) == ((201, None) if role == "operator" else (403, "auth.role")), (role, said)
    assert daemon.remote()("POST", "/v1/console", {}).status == 401


def test_a_session_may_what_its_role_may(daemon):
    box = daemon.create()
    approver, _ = session(daemon, role="approver")
    auditor, _ = session(daemon, role="auditor")
    operator, _ = session(daemon)
    assert approver.get("/v1/sandboxes").status == 403 and approver.get("/v1/approvals").ok
    assert auditor.get("/v1/sandboxes").ok and auditor.get("/v1/audit").ok
    for who in (approver, auditor):
        assert who.post(f"{box.at}/pause").json["code"] == "auth.role"
        assert who.post(f"{box.at}/exec", {"command": "true"}).json["code"] == "auth.role"
        assert who.post("/v1/console").json["code"] == "auth.role"
    assert auditor.post(f"/v1/approvals/{'0' * 32}/approve").json["code"] == "auth.role"
    assert operator.post(f"{box.at}/pause").ok and operator.post(f"{box.at}/resume").ok


def test_it_ends_with_who_it_is(daemon):
    made = daemon.post("/v1/tokens", {"role": "operator", "expires": 600}).json
    operator = Caller(daemon, Authorization=f"Bearer {made['token']}")
    first = opened(daemon, ticket(operator))
    assert first.status == 201 and first.json["expires_ms"] <= made["expires_ms"], first
    late = ticket(operator)
    assert daemon("DELETE", f"/v1/tokens/{made['id']}").ok
    assert refused(daemon, late) == "console.person"


def test_an_operator_that_is_judged_asks_for_a_ticket(cloche, tmp_path):
    """It is a credential, as the one of POST /v1/tokens (test_serve_gate.py)."""
    rules = tmp_path / "gate.yaml"
    rules.write_text("gate:\n  apply-to: all\n")
    d = Daemon(cloche, gate=rules)
    operator, other = caller(d, "operator", name="one"), caller(d, "operator", name="other")
    told = operator("POST", "/v1/console", {}, ASYNC)
    assert (told.status, told.json["risk"], told.json["rule"]) == (202, "CRITICAL", "credential"), told
    asked = other.get(told.json["url"]).json
    assert asked["tool"] == "token_create" and asked["params"] == {"role": "operator", "name": "console", "expires": 28800}, asked
    assert operator.post(told.json["url"] + "/approve").json["code"] == "gate.own"
    assert other.post(told.json["url"] + "/approve", {"digest": asked["digest"]}).ok
    assert operator("POST", "/v1/console", {}, ASYNC).status == 201
    assert d.stop() == 0, d.log


def test_an_agent_is_nobody_here(daemon):
    """Its token does nothing at the routes that the page speaks but what it does anyway; what it asked for is not its to approve."""
    gated = Daemon(daemon.cloche, "--state-dir", str(daemon.cloche.home / "gated"), "--listen", f"unix:{daemon.cloche.home / 'g'}", path=daemon.cloche.home / "g", gate=None)
    try:
        agent = caller(gated, "agent")
        box = agent.create()
        told = agent("POST", f"{box.at}/exec", {"command": "true"}, ASYNC)
        asked = gated.get(told.json["url"]).json
        for who in (agent, Caller(gated, X_Sandbox_Key=box.record["key"])):
            for body in ({}, {"digest": asked["digest"]}):
                said = who.post(told.json["url"] + "/approve", body)
                assert (said.status, said.json["code"]) == (403, "auth.role"), said
            assert who.post("/v1/console").status == 403
            assert who.get("/v1/approvals/stream").status in (403, 404)
        assert gated.get(told.json["url"]).json["state"] == "pending"
    finally:
        assert gated.stop() == 0, gated.log


def test_another_sites_page_opens_nothing(cloche, tmp_path):
    config = tmp_path / "serve.yaml"
    config.write_text("allowed-origins: [https://friend.example.org]\n")
    daemon = Daemon(cloche, "--config", str(config), tcp=True)
    host, port = daemon.addresses()[0]
    mine = ticket(daemon)
    for headers, code in (({"Origin": "https://evil.example.org"}, "http.origin"), ({"Origin": "null"}, "http.origin"), ({"Origin": "https://friend.example.org"}, "http.origin"),
                          ({"Sec-Fetch-Site": "cross-site"}, "http.origin"), ({"Sec-Fetch-Site": "same-site"}, "http.origin"), ({"Host": "evil.example.org"}, "http.host")):
        said = opened(daemon, mine, headers)
        assert (said.status, said.json["code"]) == (403, code), (headers, said)
        assert not [h for h in said.headers if h.lower().startswith("access-control-allow-origin")], (headers, said.headers)
    said = opened(daemon, mine, {"Origin": f"http://{host}:{port}", "Sec-Fetch-Site": "same-origin"})
    assert said.status == 201, said
    # nor does its page ask in the name of who is here: there is no cookie to send
    assert "Set-Cookie" not in said.headers
    assert daemon.stop() == 0, daemon.log


# --- the verb ------------------------------------------------------------------------------------------------------------------


def test_the_verb_prints_an_address_that_is_good_once(cloche, daemon):
    env = {"CLOCHE_SOCKET": str(daemon.path)}
    done = cloche("console", env=env)
    host, port = daemon.addresses()[0]
    found = re.fullmatch(rf"http://{host}:{port}/console#ticket=(cloche_console_[0-9a-f]{{64}})\n", done.out)
    assert done.code == 0 and found and "good once" in done.err, done
    assert opened(daemon, found[1]).json["role"] == "operator"
    said = json.loads(cloche("console", "--role", "approver", "--for", "10m", "--json", env=env).out)
    made = opened(daemon, said["ticket"]).json
    assert made["role"] == "approver" and made["expires_ms"] - made["created_ms"] == 600000, made
    for words in (["--role", "agent"], ["--for", "25h"], ["more"]):
        wrong = cloche("console", *words, env=env)
        assert wrong.code == 125 and wrong.out == "", wrong


def test_where_there_is_a_screen_a_browser_is_given_it(cloche, daemon):
    """By a file that nobody else reads: a command's words are everybody's."""
    programs, seen = cloche.home / "programs", cloche.home / "seen"
    programs.mkdir()
    seen.mkdir()
    opener = programs / "xdg-open"
    opener.write_text(f'#!/bin/sh\nprintf %s "$*" > {seen}/words; stat -c %a "$1" > {seen}/mode; cat "$1" > {seen}/page\n')
    opener.chmod(0o755)
    env = {"CLOCHE_SOCKET": str(daemon.path), "PATH": f"{programs}:/usr/bin:/bin", "DISPLAY": ":0"}
    for words, more, pty in ((["--no-open"], {}, True), ([], {"DISPLAY": None}, True), ([], {}, False), (["--json"], {}, True)):
        assert cloche("console", *words, env={**env, **more}, pty=pty).code == 0 and not list(seen.iterdir()), (words, more)
    for _ in range(2):
        done = cloche("console", env=env, pty=True)
        found = re.search(r"http://\S+/console#ticket=(cloche_console_[0-9a-f]{64})", done.out)
        assert done.code == 0 and "given to your browser" in done.out, done
        assert found[1] not in (seen / "words").read_text() and (seen / "mode").read_text() == "600\n"
        assert (seen / "page").read_text().count(f'url={found[0]}"') == 1
    opener.unlink()
    done = cloche("console", env=env, pty=True)
    assert done.code == 0 and "given to" not in done.out and "#ticket=" in done.out, done


def test_without_a_tcp_address_there_is_no_page_to_open(cloche):
    daemon = Daemon(cloche)
    done = cloche("console", env={"CLOCHE_SOCKET": str(daemon.path)})
    assert done.code == 0 and re.fullmatch(r"/console#ticket=\S+\n", done.out) and "no browser reaches it" in done.err, done
    assert daemon.stop() == 0, daemon.log


# --- what strangers wrote -------------------------------------------------------------------------------------------------------

node = pytest.mark.skipif(shutil.which("node") is None, reason="no node")


@pytest.fixture
def js(tmp_path):
    """Runs a module's text beside the console's modules: what it prints, read as JSON."""
    for name in FILES:
        shutil.copy(CONSOLE / name, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')

    def run(text):
        (tmp_path / "test.js").write_text(text, "utf-8")
        done = subprocess.run(["node", tmp_path / "test.js"], capture_output=True, check=False, timeout=120, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    return run


def test_what_is_not_seen_is_what_the_program_calls_so():
    ranges = [re.findall(r"[{\[] ?0x([0-9a-f]+), 0x([0-9a-f]+) ?[}\]]", (places.REPO / name).read_text()) for name in ("src/base/unseen.c", "console/text.js")]
    assert ranges[0] == ranges[1] and len(ranges[0]) > 30


@node
def test_what_is_not_seen_is_named(js):
    said = js(r"""
        import { cut, pieces } from "./text.js";
        const flat = (t, lines) => pieces(t, 0, t.length, lines).map((p) => p.odd ? `{${p.text}}` : p.text).join("");
        console.log(JSON.stringify([flat("a\u202eb\u200bc\ud800d\n\t", false), flat("a\nb\tc\u0000", true), flat("<img src=x onerror=alert(1)>", false),
            flat("na\u00efve \ud83d\ude00", false), cut("ab\ud83d\ude00", 3), cut("abc", 3)]));""")
    assert said == ["a{U+202E}b{U+200B}c{U+D800}d{U+000A}{U+0009}", "a\nb\tc{U+0000}", "<img src=x onerror=alert(1)>", "na\u00efve \U0001f600", 2, 3]


LINES = r"""
    import { Lines } from "./lines.js";
    const show = (l) => [...l.done, l.current()].map((runs) => runs.map((r) => r.style === "" ? r.text : `<${r.style}:${r.text}>`).join(""));
    const fed = (...texts) => { const l = new Lines(); for (const t of texts) l.feed(typeof t === "string" ? new TextEncoder().encode(t) : t); return l; };
"""


@node
def test_a_line_terminal_shows_lines_and_colours(js):
    assert js(LINES + r"""
        console.log(JSON.stringify([show(fed("one\r\ntwo\n")), show(fed("abc\rX\b\bYZ")), show(fed("\x1b[1;31mred\x1b[0m plain \x1b[92;44mx\x1b[m")), show(fed("a\tb")),
            show(fed(new Uint8Array([0xc3]), new Uint8Array([0xa9, 0xff]))), show(fed("\x1b[38;5;200mx\x1b[38;2;1;2;3my"))]));""") == [
        ["one", "two", ""], ["YZc"], ["<f1 bold:red> plain <f10 k4:x>"], ["a       b"], ["\u00e9\ufffd"], ["xy"]]


@node
@pytest.mark.parametrize("what", ["\x1b]0;title\x07", "\x1b]52;c;aGk=\x1b\\", "\x1b]8;;file:///etc/passwd\x1b\\", "\x1bP$q\x1b\\", "\x1b[2J", "\x1b[H", "\x1b[6n", "\x1b[?1049h", "\x1b[200~", "\x1bc", "\x1b(0",
                                  "\x1b[" + "1" * 500 + "m", "\x1b_x\x1b\\", "\x1b^x\x07", "\x07", "\x1b\x1b[31\x1b[m"], ids=repr)
def test_a_line_terminal_drops_all_other_sequences(js, what):
    assert js(LINES + f"console.log(JSON.stringify(show(fed('a' + {json.dumps(what)} + 'b'))));") == ["ab"]


@node
def test_a_line_terminal_keeps_only_so_much(js):
    """10 MB without a newline, as many lines, a sequence without an end, and what is not seen."""
    said = js(LINES + r"""
        const long = fed("x".repeat(10 << 20)), many = fed("y\n".repeat(200000)), open = fed("\x1b]0;" + "z".repeat(70000) + "seen"), odd = fed("a\u202eb\u009b31mc");
        console.log(JSON.stringify([long.count, long.done.length, many.done.length, many.dropped, show(open).join("").endsWith("seen"), show(odd)]));""")
    assert said[0] <= 402048 and said[1] < 300 and said[2] == 2000 and said[3] == 198000 and said[4], said
    assert said[5] == ["a<odd:U+202E>b<odd:U+009B>31mc"]


@node
@pytest.mark.parametrize("before", ["a\x1b]0;", "a\x1b[31", "a\x1b[31;40m", "a\x1bPq", "a\r"], ids=repr)
def test_a_line_terminal_begins_anew_behind_a_note(js, before):
    assert js(LINES + f"const l = fed({json.dumps(before)}); l.cut(); l.cut(); l.feed(new TextEncoder().encode('b')); console.log(JSON.stringify(show(l)));") == ["a", "b"]


@node
def test_what_is_not_seen_has_no_colour_of_the_commands(js):
    assert js(LINES + r"console.log(JSON.stringify(show(fed('\x1b[31;41ma\u202eb'))));") == ["<f1 k1:a><odd:U+202E><f1 k1:b>"]


@node
def test_decisions_about_hosts_have_a_ceiling(js):
    said = js(r"""
        import { Decisions } from "./egress.js";
        const d = new Decisions(), one = (host, decision, count) => d.take({ type: "policy_decision", sandbox: "b", timestamp: "t", metadata: { host, port: 443, decision, count } });
        for (let i = 0; i < 5000; i++) one(`h${i}`, "deny", 1);
        one("h0", "allow", 3); one("h1", "deny", "many"); one("h2", "deny", -5); one("__proto__", "deny", 1);
        d.take({ type: "policy_decision", metadata: {} }); d.take({ type: "policy_decision" });
        console.log(JSON.stringify([d.rows.size, d.left, d.some("", "h0", "allow")[0], d.some("", "", "deny").length, ({}).host === undefined]));""")
    assert said[:2] == [1000, 4004] and said[2]["allowed"] == 3 and said[2]["denied"] == 0 and said[3] == 999 and said[4]


@node
def test_a_sandbox_that_asks_for_many_hosts_hides_no_others(js):
    said = js(r"""
        import { Decisions, fair } from "./egress.js";
        const d = new Decisions(), one = (sandbox, host) => d.take({ type: "policy_decision", sandbox, timestamp: "t", metadata: { host, port: 443, decision: "deny" } });
        const flood = (from) => { for (let i = from; i < from + 3000; i++) one("loud", `h${i}`); };
        one("early", "was.example");
        flood(0);
        for (let i = 0; i < 30; i++) one(`quiet${i}`, "is.example");
        flood(3000);
        const all = d.some("", "", ""), seen = fair(all, 200);
        const many = Array.from({ length: 300 }, (_, i) => ({ box: `b${i}` }));
        console.log(JSON.stringify([d.rows.size, d.left, d.some("early", "", "").length, all.filter((r) => r.box.startsWith("quiet")).length, d.some("loud", "", "")[0].host,
            seen.length, seen.filter((r) => r.box !== "loud").length, seen[0].host, fair(many, 200).length, fair([], 200).length, d.sizes.size]));""")
    assert said == [1000, 5031, 1, 30, "h5999", 200, 31, "h5999", 200, 0, 32]


@node
def test_a_number_that_the_page_would_round_is_known(js):
    said = js(r"""
        import { exact } from "./text.js";
        console.log(JSON.stringify(["9007199254740993", "[{\"a\": [-9007199254740993]}]", "9223372036854775807", "1e300", "1e999", "9007199254740992",
            "9007199254740991", "0.1", "-3", "null", "{\"a\": [\"9007199254740993\", true]}"].map((t) => exact(JSON.parse(t)))));""")
    assert said == [False] * 6 + [True] * 5
