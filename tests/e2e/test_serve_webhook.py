"""A server is told of approvals: by cloche-webhook, which nobody waits for."""
import json
import os
import signal
import socket
import time

import pytest

from helpers import requirement
from helpers.daemon import Daemon, caller
from helpers.hook import Hook, certificate_of
from helpers.runner import wait_for

pytestmark = [requirement("R63"), requirement("R68")]

ASYNC = {"Prefer": "respond-async"}
SECRET = b"a-secret-of-the-webhook-0123456789"


@pytest.fixture
def serve(cloche, request):
    """A daemon that tells @hook; secret and more flags."""
    def start(url, *flags, secret=SECRET):
        file = cloche.home / "hook.secret"
        file.write_bytes(secret + b"\n")
        file.chmod(0o600)
        daemon = Daemon(cloche, "--webhook-url", url, "--webhook-secret", str(file), *flags, gate=None)
        request.addfinalizer(lambda: daemon.process.poll() is None and daemon.stop())
        return daemon
    return start


@pytest.fixture
def hooks(request):
    def make(*answers, **more):
        hook = Hook(*answers, **more)
        request.addfinalizer(hook.close)
        return hook
    return make


def ask(daemon, agent=None, command="echo the-parameters", box=None):
    agent = agent or caller(daemon, "agent", name="builder")
    box = box or agent.create()
    told = agent("POST", f"{box.at}/exec", {"command": command}, ASYNC)
    assert told.status == 202, told
    return told.json["approval"]


def test_what_is_told(serve, hooks):
    hook = hooks()
    daemon = serve(hook.url, "--public-url", "https://cloche.example:8443")
    which = ask(daemon)
    first = hook.heard()[0]
    assert first.path == "/hook?of=cloche" and first.headers["Host"] == f"127.0.0.1:{hook.port}", first.headers
    assert first.headers["Content-Type"] == "application/json" and first.headers["Cloche-Event"] == "approval.requested", first.headers
    assert first.headers["Cloche-Delivery"] == f"{which}.requested" and first.signed_by(SECRET), first.headers
    kept = daemon.get(f"/v1/approvals/{which}").json
    said = first.json["approval"]
    assert first.json["event"] == "approval.requested" and first.json["version"] == 1, first.json
    for name in ("id", "risk", "tool", "sandbox", "rule", "digest", "caller", "caller_name", "created_ms", "expires_ms"):
        assert said[name] == kept[name], (name, said, kept)
    assert said["state"] == "pending" and said["url"] == f"https://cloche.example:8443/approvals/{which}", said
    assert b"the-parameters" not in first.body and "params" not in said
    assert daemon.post(f"/v1/approvals/{which}/approve", {"reason": "fine"}).ok
    second = hook.heard(2)[1]
    assert second.headers["Cloche-Event"] == "approval.decided" and second.signed_by(SECRET), second.headers
    assert (second.json["approval"]["state"], second.json["approval"]["decided_by"], second.json["approval"]["reason"]) == ("approved", "owner", "fine")
    which = ask(daemon, command="echo another")
    assert daemon.post(f"/v1/approvals/{which}/deny", {"reason": "no"}).ok
    assert [t.json["approval"]["state"] for t in hook.heard(4)] == ["pending", "approved", "pending", "denied"]


def test_tried_again_in_order(serve, hooks):
    hook = hooks(500, 503, 204)
    daemon = serve(hook.url)
    which = ask(daemon)
    assert daemon.post(f"/v1/approvals/{which}/deny").ok
    told = hook.heard(4)
    # the answer to the first is awaited before the next one goes
    assert [t.headers["Cloche-Event"] for t in told] == ["approval.requested"] * 3 + ["approval.decided"], told
    assert len({t.body for t in told[:3]}) == 1 and all(t.signed_by(SECRET) for t in told)
    assert told[0].json["approval"]["url"] is None      # nobody said where people reach it


def test_what_is_not_tried_again(serve, hooks):
    other = hooks()
    hook = hooks(404, (302, {"Location": other.url}, b""), 204)
    daemon = serve(hook.url)
    which = ask(daemon)
    hook.heard(1)
    assert daemon.post(f"/v1/approvals/{which}/deny").ok
    hook.heard(2)
    ask(daemon, command="echo third")
    told = hook.heard(3)
    assert [t.headers["Cloche-Delivery"].split(".")[1] for t in told] == ["requested", "decided", "requested"], told
    assert not other.told, "a redirect was followed"
    assert daemon.stop() == 0 and "the server answered 404" in daemon.log and "the server answered 302" in daemon.log, daemon.log
    assert "/hook" not in daemon.log and SECRET.decode() not in daemon.log


def test_tls(serve, hooks, cloche):
    cert, key = certificate_of(cloche.home)
    hook = hooks(certificate=(cert, key))
    daemon = serve(hook.url, "--webhook-ca", str(cert))
    which = ask(daemon)
    assert hook.heard()[0].json["approval"]["id"] == which


@pytest.mark.parametrize("why", ["unknown", "name"])
def test_a_server_that_is_another_one_is_told_nothing(serve, hooks, cloche, why):
    cert, key = certificate_of(cloche.home, "IP:127.0.0.1" if why == "unknown" else "DNS:other.example")
    hook = hooks(certificate=(cert, key))
    daemon = serve(hook.url, *(["--webhook-ca", str(cert)] if why == "name" else []))
    which = ask(daemon)
    # it fails five times over half a minute and more: that a decision is made meanwhile is what matters
    assert daemon.post(f"/v1/approvals/{which}/deny").ok
    assert daemon.stop() == 0 and not hook.told


def test_nobody_waits_for_a_server_that_says_nothing(serve):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        daemon = serve(f"http://127.0.0.1:{silent.getsockname()[1]}/", "--webhook-timeout", "1s")
        agent = caller(daemon, "agent")
        box = agent.create()
        for i in range(40):
            which = ask(daemon, agent, f"echo {i}", box)
            assert daemon.post(f"/v1/approvals/{which}/deny").ok
        assert daemon.stop() == 0
    assert "too many wait" in daemon.log, daemon.log


def test_an_answer_that_is_read_late_is_followed_by_the_usual_pause(serve):
    """It came in time; the time of its try is over when it is read, and that begins no other one."""
    with socket.create_server(("127.0.0.1", 0)) as busy:
        busy.settimeout(60)
        daemon = serve(f"http://127.0.0.1:{busy.getsockname()[1]}/", "--webhook-timeout", "1s")
        ask(daemon)
        with busy.accept()[0] as first:
            assert first.recv(100000).startswith(b"POST ")
            teller = daemon.only("cloche-webhook")
            os.kill(teller, signal.SIGSTOP)
            first.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
            time.sleep(1.3)
            goes_on = time.monotonic()
            os.kill(teller, signal.SIGCONT)
            busy.accept()[0].close()
            assert time.monotonic() - goes_on > 0.8
        assert daemon.stop() == 0


def test_nobody_listens(serve):
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    daemon = serve(f"http://127.0.0.1:{port}/")
    which = ask(daemon)
    assert daemon.post(f"/v1/approvals/{which}/approve").ok and daemon.stop() == 0


@pytest.mark.parametrize("name", ["cloche-webhook", "cloche-warden"])
def test_it_comes_again(serve, hooks, name):
    hook = hooks()
    daemon = serve(hook.url)
    former = daemon.running("cloche-webhook")
    assert len(former) == 1
    os.kill(daemon.processes(name)[0], signal.SIGKILL)

    def told():
        """One that was asked for while there was no such process is told nobody."""
        try:
            daemon.post(f"/v1/approvals/{ask(daemon, command='echo ' + os.urandom(4).hex())}/deny")
        except (OSError, AssertionError, KeyError, json.JSONDecodeError):
            return False
        return len(hook.told) > 0
    assert wait_for(told, 120), "nobody was told after it died"
    assert wait_for(lambda: daemon.processes("cloche-webhook") and daemon.processes("cloche-webhook") != former, 60)


@pytest.mark.parametrize("after", ["another secret", "no webhook"])
def test_a_new_configuration_does_not_change_how_it_signs(cloche, hooks, request, after):
    hook, secret, config = hooks(), cloche.home / "hook.secret", cloche.home / "serve.yaml"
    secret.write_bytes(SECRET + b"\n")
    secret.chmod(0o600)
    config.write_text(f"webhook-url: {hook.url}\nwebhook-secret: {secret}\n")
    daemon = Daemon(cloche, "--config", str(config), gate=None)
    request.addfinalizer(lambda: daemon.process.poll() is None and daemon.stop())
    if after == "no webhook":
        config.write_text("rate-limit: 1000\n")
    else:
        secret.write_bytes(b"another-secret-of-the-webhook-0123456789\n")
    assert "was read again" in daemon.reload()
    former = daemon.running("cloche-webhook")
    os.kill(former[0], signal.SIGKILL)
    assert wait_for(lambda: daemon.processes("cloche-webhook") and daemon.processes("cloche-webhook") != former, 60)

    def told():
        daemon.post(f"/v1/approvals/{ask(daemon, command='echo ' + os.urandom(4).hex())}/deny")
        return len(hook.told) > 0
    assert wait_for(told, 120), "nobody was told after it died"
    assert all(t.signed_by(SECRET) for t in hook.heard()), hook.told


def test_its_configuration(cloche):
    secret = cloche.home / "secret"
    secret.write_text("x" * 32)
    secret.chmod(0o600)

    def check(text):
        (cloche.home / "serve.yaml").write_text(text)
        return cloche("config", "check", "serve.yaml")
    good = f"webhook-url: https://hooks.example.org/x?y=1\nwebhook-secret: {secret}\nwebhook-timeout: 5s\npublic-url: https://cloche.example.org\n"
    assert check(good).ok
    for text in ("webhook-url: http://hooks.example.org/\n", "webhook-url: ftp://hooks.example.org/\n", "webhook-url: https://a:b@hooks.example.org/\n",
                 "webhook-url: 'https://hooks.example.org/#x'\n", "webhook-url: 'https://hooks.example.org/\\x20'\n", "webhook-url: https://\n",
                 "webhook-url: https://hooks.example.org:70000/\n", "public-url: https://cloche.example.org/x\n"):
        assert "[serve.url]" in check(text).err, text
    for text in (f"webhook-secret: {secret}\n", "webhook-url: https://a.example/\nwebhook-secret: /none\n", "webhook-url: https://a.example/\nwebhook-ca: /none\n"):
        assert "[serve.webhook]" in check(text).err, text
    secret.chmod(0o644)
    assert "[serve.webhook.mode]" in check(good).err
    secret.chmod(0o600)
    secret.write_text("short\n")
    assert "[serve.webhook]" in check(good).err
