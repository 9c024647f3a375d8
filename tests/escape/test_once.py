"""What was approved once is what was asked for: one request, or one connection in which nothing can be read; not another request to the
same host, and nothing of another port or sandbox."""
import pytest

from helpers import requirement
from helpers.daemon import Daemon
from helpers.internet import ECHO
from helpers.obedient import Obedient
from helpers.runner import wait_for

pytestmark = [requirement("R13", "R28", "R39"), pytest.mark.root]

# A connection to the proxy that stays, and what it says: the status and the end of each answer.
SAY = ("(lambda s: (s.sendall(('%s http://ok.example.org%s HTTP/1.1\\r\\nHost: ok.example.org\\r\\nContent-Length: 0\\r\\n%s\\r\\n').encode()), "
       "until(s))[1].split(b'\\r\\n')[0])(%s)")
NEW = "(held.append(dial(*P, 60)), held[-1])[1]"


def say(method, path, where="held[-1]", more=""):
    return SAY % (method, path, more, where)


@pytest.fixture
def asking(online):
    made = []

    def make(*flags, **more):
        made.append(Obedient(online, allow=(), flags=["--ask", *flags], **more))
        return made[-1]
    yield make
    for box in made:
        box.finish()


def questions(online, n=1):
    """What is open, when there are @n of them."""
    found = wait_for(lambda: (q := online.bare("approvals", "--json").json["questions"]) and len(q) == n and q)
    assert found, online.bare("approvals", "--json")
    return found


def seen(online):
    return [(r["method"], r["path"]) for r in online.net.requests]


def approve(online, question, *more):
    assert online.bare("approvals", "approve", question["id"], *more).ok


def deny(online, question):
    assert online.bare("approvals", "deny", question["id"]).ok


@pytest.mark.parametrize("method,path", [("POST", "/"), ("GET", "/other"), ("POST", "/other"), ("GET", "/?x=1"), ("GET", "/")])
def test_another_request_on_the_same_connection_asks_again(online, asking, method, path):
    """... and so does the very same one: once is once."""
    box = asking()
    box.do(f"go('a', lambda: {say('GET', '/', NEW)})")
    first, = questions(online)
    approve(online, first)
    assert "200" in box.do("get_of('a')")
    box.do(f"go('b', lambda: {say(method, path)})")
    second, = questions(online)
    assert second["id"] != first["id"] and (second["method"], second["path"]) == (method, path), second
    deny(online, second)
    assert "403" in box.do("get_of('b')") and seen(online) == [("GET", "/")]


def test_requests_that_wait_together_are_each_a_question(online, asking):
    box = asking()
    wanted = [("GET", "/"), ("POST", "/other"), ("GET", "/?token=x")]
    for i, (method, path) in enumerate(wanted):
        box.do(f"go('{i}', lambda: {say(method, path, NEW)})")
    found = questions(online, 3)
    assert sorted((q["method"], q["path"]) for q in found) == sorted(wanted)
    shown = online.bare("approvals").out
    assert "POST /other" in shown and "GET /?token=x" in shown, shown
    for q in found:
        (approve if q["path"] == "/" else deny)(online, q)
    assert ["200" in box.do(f"get_of('{i}')") for i in range(3)] == [True, False, False]
    assert seen(online) == [("GET", "/")]


def test_for_the_sandbox_is_for_all_of_the_host(online, asking):
    box = asking()
    box.do(f"go('a', lambda: {say('GET', '/', NEW)})")
    approve(online, questions(online)[0], "--sandbox")
    assert "200" in box.do("get_of('a')") and "200" in box.do(say("POST", "/other"))
    assert seen(online) == [("GET", "/"), ("POST", "/other")]


def test_another_port_asks_again(online, asking):
    box = asking()
    box.do(f"go('a', lambda: {say('GET', '/', NEW)})")
    approve(online, questions(online)[0])
    assert "200" in box.do("get_of('a')")
    other = say("GET", "/").replace("//ok.example.org", f"//ok.example.org:{ECHO}").replace("Host: ok.example.org", f"Host: ok.example.org:{ECHO}")
    box.do(f"go('b', lambda: {other})")
    question, = questions(online)
    assert question["port"] == ECHO
    deny(online, question)
    assert "403" in box.do("get_of('b')")


TLS = "(held.append(tls(connect('ok.example.org:443', seconds=60)[0], 'ok.example.org')), held[-1])[1]"


def inner(method, path, where="held[-1]"):
    return say(method, path, where).replace(" http://ok.example.org", " ")


def test_in_tls_that_is_opened_too(online, asking):
    """Where a rule names requests the others are asked about, each by itself."""
    settings = online.net.root / "settings.yaml"
    settings.write_text("network:\n  mode: allowlist\n  ask: true\n  allow:\n    - {host: ok.example.org, path: /read/**}\n"
                        f"  extra-ca: [{online.net.ca}]\n", encoding="utf-8")
    box = asking("--settings", str(settings))
    box.do(f"go('a', lambda: {inner('GET', '/write', TLS)})")
    first, = questions(online)
    assert (first["method"], first["path"], first["reason"]) == ("GET", "/write", "scope-no-rule"), first
    approve(online, first)
    assert "200" in box.do("get_of('a')") and "200" in box.do(inner("GET", "/read/x"))
    box.do(f"go('b', lambda: {inner('POST', '/write')})")
    second, = questions(online)
    assert second["method"] == "POST"
    deny(online, second)
    assert "403" in box.do("get_of('b')") and seen(online) == [("GET", "/write"), ("GET", "/read/x")]


def test_a_request_that_cannot_be_shown_whole_is_refused(online, asking):
    box = asking()
    assert "403" in box.do(say("GET", "/" + "a" * 1024, NEW))
    assert online.bare("approvals", "--json").json["questions"] == [] and not seen(online)
    assert "ask-too-long" in online.bare("net", "log", "--json").out


@pytest.mark.parametrize("field", ["X-HTTP-Method-Override: DELETE", "X-Original-URL: /other"])
def test_a_request_that_means_another_is_not_asked_about(online, asking, field):
    """Its line is all that would be shown."""
    box = asking()
    assert "403" in box.do(say("POST", "/shown", NEW, field + "\\r\\n"))
    assert online.bare("approvals", "--json").json["questions"] == [] and not seen(online)


# --- in the daemon ------------------------------------------------------------------------------------------------------

@pytest.fixture
def daemon(online):
    made = Daemon(online.cloche, path=online.bare.state / "cloche" / "serve" / "api.sock")
    yield made
    assert made.stop() == 0, made.log


HOLD = """import socket, sys
s = socket.create_connection(('198.18.0.1', 3128))
for method, path in zip(sys.argv[1::2], sys.argv[2::2]):
    s.sendall(f'{method} http://ok.example.org{path} HTTP/1.1\\r\\nHost: ok.example.org\\r\\nContent-Length: 0\\r\\n\\r\\n'.encode())
    got = s.recv(65536)
    print(got.split(b'\\r\\n')[0].decode(), flush=True)
"""


def test_in_the_daemons_queue_too(online, daemon):
    """The approval says the request, and neither another one nor another sandbox has anything of it. A grant is for the host."""
    def pending():
        found = wait_for(lambda: daemon.get("/v1/approvals?state=pending").json["approvals"], 60)
        assert found and len(found) == 1, found
        return found[0]
    network = {"mode": "allowlist", "ask": True, "ask-timeout": "10m"}
    box, other = [daemon.create(policy={"network": network}) for _ in range(2)]

    def start(which, *words):
        return daemon.post(f"{which.at}/exec", {"command": ["/usr/bin/python3", "-c", HOLD, *words], "background": True})
    start(box, "GET", "/", "POST", "/other")
    one = pending()
    assert one["params"] == {"host": "ok.example.org", "port": 80, "method": "GET", "path": "/"} and one["sandbox"] == box.id, one
    assert daemon.post(f"/v1/approvals/{one['id']}/approve").ok
    two = pending()
    assert two["params"]["method"] == "POST" and two["digest"] != one["digest"], two
    assert daemon.post(f"/v1/approvals/{two['id']}/deny").ok
    start(other, "GET", "/")
    three = pending()
    assert three["sandbox"] == other.id and three["digest"] != one["digest"], three
    assert seen(online) == [("GET", "/")]
    # for the caller: no more questions, of other requests neither
    assert daemon.post(f"/v1/approvals/{three['id']}/approve", {"scope": "caller", "expires": 600}).ok
    start(other, "GET", "/1", "POST", "/2", "GET", "/3")
    assert wait_for(lambda: ("GET", "/3") in seen(online), 60), seen(online)
