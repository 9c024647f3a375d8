"""A server has the key that signs (cloche-remote asks it): what it says is checked, and a server that lies gets nothing out."""
import http.server
import json
import os
import random
import ssl
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from helpers import requirement
from helpers.curve import N, make, times
from helpers.daemon import Daemon, answers, caller
from helpers.runner import wait_for
from helpers.signing import ADDRESS, APPROVE, ETH, KEY, body, needs_person, signed

pytestmark = [requirement("R46")]

OTHER = "0x5a17650BE84F28Ed583e93E6ed0C99b1D1FC1b34"      # of the key that is one more than KEY
BEARER = "bearer-4711-of-the-caller"
RICH = {"maxTransactionValueWei": str(2 * ETH), "humanConfirmationThresholdWei": str(2 * ETH)}


class Server:
    """Signs what cloche-remote asks for, with nonces of its own and any s; .how says what it does otherwise."""

    def __init__(self, context=None):
        outer = self
        self.how, self.key, self.asked = "well", int(KEY, 16), []
        self.hung, self.goes_on, self.after = threading.Event(), threading.Event(), None

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append((self.path, self.headers["Authorization"], asked))
                status, said = outer.answer(asked) if self.headers["Authorization"] == f"Bearer {BEARER}" else (401, {})
                if status is None:
                    return
                text = said if isinstance(said, bytes) else json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass
        self.handler, self.context, self.port = Handler, context, 0
        self.open()
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.port}/sign"

    def open(self):
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), self.handler)
        self.port = self.http.server_port
        if self.context is not None:
            self.http.socket = self.context.wrap_socket(self.http.socket, server_side=True)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()

    def answer(self, asked):
        if asked == {"ask": "public-key"}:
            return 200, {"publicKey": "0x04" + "".join(f"{v:064x}" for v in times(self.key))}
        if self.how in ("403", "500"):
            return int(self.how), {}
        if self.how == "hangs up":
            return None, {}
        if self.how == "hangs":
            self.hung.set()
            self.goes_on.wait(60)
            return (None if self.after is None else int(self.after)), {}
        if self.how == "garbage":
            return 200, b"\x00{"
        if self.how == "short":
            return 200, {"signature": "0x1234"}
        z = int(asked["digest"], 16)
        if self.how == "another digest":
            z ^= 1
        r, s, _ = make(z, self.key + (self.how == "another key"), random.randrange(1, N))
        s = s if self.how != "high" else max(s, N - s)
        return 200, {"signature": f"0x{r:064x}{s:064x}"}


@pytest.fixture
def server():
    made = Server()
    yield made
    made.goes_on.set()
    made.close()


@pytest.fixture
def kept(cloche, tmp_path):
    """kept(server): the key of @server's is added."""
    cloche.env["XDG_DATA_HOME"] = str(tmp_path / "data")
    return lambda url, *words, bearer=BEARER: cloche("signer", "add", "main", "--url", url, *words, stdin=bearer + "\n")


def test_a_server_signs(cloche, kept, server, tmp_path):
    """Also with the high form of s, which leaves as the low one; what is not of that digest and key does not leave."""
    added = kept(server.url)
    assert added.ok and ADDRESS in added.out and BEARER not in added.out + added.err, added
    assert ADDRESS in cloche("signer", "ls").out
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(RICH), encoding="utf-8")
    daemon = Daemon(cloche, "--signing-key", "main", "--signing-policy", str(policy))
    try:
        agent = caller(daemon, "agent", name="trader")
        assert wait_for(lambda: answers(daemon) and daemon.get("/api/sandbox/sign/address").status == 200)

        def ask():
            return agent.post("/api/sandbox/sign", body(nonce=9, gasLimit="21000"))
        server.how = "high"
        assert all(int(signed(ask())[-64:], 16) <= N // 2 for _ in range(3))
        for server.how in ("another digest", "another key", "short", "garbage", "500"):
            answer = ask()
            assert answer.status == 403 and "signature" not in answer.json, (server.how, answer)
        server.how = "well"
        assert wait_for(lambda: ask().status == 200)
        assert {path for path, _, _ in server.asked} == {"/sign"}
        # 32 bytes and no more: nothing of the transaction
        assert {tuple(sorted(a)) for _, _, a in server.asked} == {("ask",), ("ask", "digest")}
        assert all(len(a["digest"]) == 66 for _, _, a in server.asked if "digest" in a)
    finally:
        daemon.stop()


def test_what_was_not_signed_does_not_count(cloche, kept, server, tmp_path):
    assert kept(server.url).ok
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({**RICH, "maxTransactionsPerHour": 2}), encoding="utf-8")
    daemon = Daemon(cloche, "--signing-key", "main", "--signing-policy", str(policy))
    try:
        agent = caller(daemon, "agent", name="trader")
        assert wait_for(lambda: answers(daemon) and daemon.get("/api/sandbox/sign/address").status == 200)
        server.how = "403"
        again = body(gasLimit="21000")
        assert all(agent.post("/api/sandbox/sign", again).status == 403 for _ in range(3)), "nor is its id used up"
        server.close()
        assert "Connection refused" in agent.post("/api/sandbox/sign", body(gasLimit="21000")).json["error"]
        server.open()
        server.how = "well"
        # nor is a nonce: the first one, 0, is in this
        assert signed(agent.post("/api/sandbox/sign", again))[8:12] == "0180"
    finally:
        daemon.stop()


@pytest.mark.parametrize("how", ["500", "hangs up", "short", "another digest"])
def test_what_was_perhaps_signed_counts(cloche, kept, server, tmp_path, how):
    """The server had the digest, and did not say that it refuses: nobody knows what it made of it."""
    assert kept(server.url).ok
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({**RICH, "maxTransactionsPerHour": 2}), encoding="utf-8")
    daemon = Daemon(cloche, "--signing-key", "main", "--signing-policy", str(policy))
    try:
        agent = caller(daemon, "agent", name="trader")
        assert wait_for(lambda: answers(daemon) and daemon.get("/api/sandbox/sign/address").status == 200)
        server.how = how
        assert "Signing failed: " in agent.post("/api/sandbox/sign", body(gasLimit="21000", requestId="first")).json["error"]
        server.how = "well"
        assert agent.post("/api/sandbox/sign", body(gasLimit="21000", requestId="first")).json["policyDecision"]["matchedRule"] == "replay_protection"
        assert signed(agent.post("/api/sandbox/sign", body(gasLimit="21000")))[8:12] == "0101", "its nonce is used"
        assert agent.post("/api/sandbox/sign", body(gasLimit="21000")).json["policyDecision"]["matchedRule"] == "rate_limit_hourly"
    finally:
        daemon.stop()


def process_of(policy):
    """cloche-remote of the signer that has that policy."""
    for one in Path("/proc").iterdir():
        try:
            if one.name.isdigit() and (one / "cmdline").read_bytes() == b"cloche-remote\0":
                parent = next(line.split()[1] for line in (one / "status").read_text().splitlines() if line.startswith("PPid:"))
                if str(policy) in Path(f"/proc/{parent}/cmdline").read_text():
                    return int(one.name)
        except OSError:
            pass
    raise AssertionError("no cloche-remote")


@pytest.fixture
def trader(cloche, kept, server, tmp_path):
    """(daemon, an agent of it, its policy): a daemon that signs with the server's key."""
    assert kept(server.url).ok
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({**RICH, "maxTransactionsPerHour": 4}), encoding="utf-8")
    daemon = Daemon(cloche, "--signing-key", "main", "--signing-policy", str(policy))
    agent = caller(daemon, "agent", name="trader")
    assert wait_for(lambda: answers(daemon) and daemon.get("/api/sandbox/sign/address").status == 200)
    yield daemon, agent, policy
    server.goes_on.set()
    daemon.stop()


def while_one_hangs(daemon, agent, server):
    """Three requests, of which the server has the first one, and keeps it: their answers, when they come."""
    def ask(name):
        return agent.post("/api/sandbox/sign", body(gasLimit="21000", requestId=name))
    server.how = "hangs"
    pool = ThreadPoolExecutor(3)
    answers_to = [pool.submit(ask, "first")]
    assert server.hung.wait(30)
    answers_to += [pool.submit(ask, name) for name in ("second", "third")]
    # what is on record is asked for next, before this is answered
    feed = "/api/audit/feed?limit=100&type=signing_request_submitted"
    assert wait_for(lambda: str(daemon.get(feed).json).count("Sign request ") >= 3)
    assert agent.get("/api/sandbox/sign/address").status == 200
    server.how = "well"
    return answers_to


def later_ones_are_signed(agent, answers_to):
    """And the first one counts, for nobody knows whether it is: one of four is left in the hour."""
    first, *others = (one.result(60) for one in answers_to)
    assert first.status == 403 and "Signing failed" in first.json["error"], first
    assert sorted(signed(one)[8:12] for one in others) == ["0101", "0102"]
    again = agent.post("/api/sandbox/sign", body(gasLimit="21000", requestId="first"))
    assert again.json["policyDecision"]["matchedRule"] == "replay_protection", again
    assert signed(agent.post("/api/sandbox/sign", body(gasLimit="21000")))[8:12] == "0103"
    assert agent.post("/api/sandbox/sign", body(gasLimit="21000")).json["policyDecision"]["matchedRule"] == "rate_limit_hourly"


def test_what_waits_behind_a_signer_that_ends_is_the_next_ones(trader, server):
    """The process that asks the server is killed while it waits for an answer: the two behind know nothing of it."""
    daemon, agent, policy = trader
    waits = while_one_hangs(daemon, agent, server)
    os.kill(process_of(policy), 9)
    assert wait_for(lambda: agent.get("/api/sandbox/sign/address").status == 200)
    later_ones_are_signed(agent, waits)


def test_what_waits_behind_a_server_that_hangs_is_signed(trader, server):
    """Its time is over after 15 seconds."""
    daemon, agent, _ = trader
    later_ones_are_signed(agent, while_one_hangs(daemon, agent, server))


def test_a_nonce_that_is_refused_moves_nobody_on(server, trader):
    """An agent says one far ahead, and the server refuses: the next of another is where it was, and a free one below is still there."""
    daemon, agent, _ = trader
    other = caller(daemon, "agent")

    def ask(who=other, **members):
        return who.post("/api/sandbox/sign", body(**members))
    assert signed(ask())[8:12] == "0180"
    needs_person(ask(requestId="no", data=APPROVE))
    assert signed(ask())[8:12] == "0102"
    assert caller(daemon, "approver").post("/api/sandbox/sign/reject", {"requestId": "no"}).json == {"rejected": True}
    held = [threading.Thread(target=ask, args=(agent,), kwargs={"nonce": nonce}) for nonce in (900, 902)]
    server.how = "hangs"
    for number, one in enumerate(held, 4):
        one.start()
        feed = "/api/audit/feed?limit=100&type=signing_request_submitted"
        assert server.hung.wait(30) and wait_for(lambda n=number: str(daemon.get(feed).json).count("Sign request ") >= n)
    assert agent.get("/api/sandbox/sign/address").status == 200
    server.after, server.how = "403", "403"
    server.goes_on.set()
    for one in held:
        one.join(60)
    assert ask(agent, nonce=901).status == 403
    server.how = "well"
    assert [signed(ask())[8:12] for _ in range(2)] == ["0101", "0103"]


def test_a_turn_that_does_not_come(cloche, kept, server, tmp_path):
    """Each has 15 seconds of the server's; whoever has waited for a minute is refused, and nothing is used up."""
    assert kept(server.url).ok
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(RICH), encoding="utf-8")
    daemon = Daemon(cloche, "--signing-key", "main", "--signing-policy", str(policy))
    try:
        agent = caller(daemon, "agent", name="trader")
        assert wait_for(lambda: answers(daemon) and daemon.get("/api/sandbox/sign/address").status == 200)

        def ask(name):
            return agent.post("/api/sandbox/sign", body(gasLimit="21000", requestId=name))
        server.how = "hangs"
        with ThreadPoolExecutor(6) as pool:
            made = dict(zip("abcdef", pool.map(ask, "abcdef")))
        assert all(one.status == 403 for one in made.values()), made
        late = [name for name, one in made.items() if "away or busy" in one.json["error"]]
        assert late and len(made) - len(late) >= 3, made
        server.goes_on.set()
        server.how = "well"
        assert sorted(signed(ask(name))[8:12] for name in late) == [f"01{number:02x}" for number in range(6 - len(late), 6)]
        assert ask(next(name for name in made if name not in late)).json["policyDecision"]["matchedRule"] == "replay_protection"
    finally:
        server.goes_on.set()
        daemon.stop()


def test_a_full_queue_uses_no_confirmation_up(cloche, kept, server, tmp_path):
    """64 wait while the server hangs: a person's yes, said before or now, is still there when there is room."""
    assert kept(server.url).ok
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({**RICH, "maxTransactionsPerHour": 100, "maxTransactionsPerDay": 100}), encoding="utf-8")
    daemon = Daemon(cloche, "--signing-key", "main", "--signing-policy", str(policy))
    pool = ThreadPoolExecutor(64)
    try:
        assert wait_for(lambda: answers(daemon) and daemon.get("/api/sandbox/sign/address").status == 200)
        agent, person = caller(daemon, "agent"), caller(daemon, "approver")

        def ask(name, **members):
            return agent.post("/api/sandbox/sign", body(requestId=name, **members))
        for name in ("said", "now"):
            needs_person(ask(name, data=APPROVE, nonce=900 + len(name)))
        said = next(p["approval"] for p in person.get("/api/sandbox/sign/pending").json["pending"] if p["requestId"] == "said")
        assert person.post(f"/v1/approvals/{said}/approve").ok
        server.how = "hangs"
        waits = [pool.submit(ask, f"{number}") for number in range(64)]
        assert server.hung.wait(30)
        feed = "/api/audit/feed?limit=1000&type=signing_request_submitted"
        assert wait_for(lambda: str(daemon.get(feed).json).count("Sign request ") >= 66)
        assert agent.get("/api/sandbox/sign/address").status == 200
        for answer in (ask("said", data=APPROVE, nonce=904), person.post("/api/sandbox/sign/approve", {"requestId": "now"})):
            assert "wait for the signer already" in answer.json["error"], answer
        server.how, server.after = "well", "403"
        server.goes_on.set()
        assert sorted(one.result(60).status for one in waits) == [200] * 63 + [403]
        signed(ask("said", data=APPROVE, nonce=904))
        signed(person.post("/api/sandbox/sign/approve", {"requestId": "now"}))
    finally:
        server.goes_on.set()
        pool.shutdown()
        daemon.stop()


def test_a_server_that_has_another_key_by_now(cloche, kept, server):
    assert kept(server.url).ok
    server.key += 1
    asked = len(server.asked)
    assert ADDRESS in cloche("signer", "ls").out and len(server.asked) == asked, "nobody is asked"
    said = cloche("signer", "check", "main")
    assert said.code == 125 and "[sign.key.other]" in said.err and ADDRESS in said.err and OTHER in said.err and "cloche signer rm" in said.err, said
    said = cloche("signer", "ls", "--check")
    assert said.code == 125 and "[sign.check]" in said.err and OTHER in said.err, said
    assert said.out.splitlines()[1].split() == ["main", ADDRESS, "sign.key.other"], said
    policy = cloche.home / "policy.json"
    policy.write_text(json.dumps(RICH), encoding="utf-8")
    asked = len(server.asked)
    said = cloche("serve", "--signing-key", "main", "--signing-policy", str(policy))
    assert said.code == 125 and said.err.count("[sign.key.other]") == 1, said
    assert len(server.asked) == asked + 1, "once: a token would have counted two tries of its PIN"
    server.key -= 1
    listed, = json.loads(cloche("signer", "ls", "--check", "--json").out)["keys"]
    assert listed == {"name": "main", "address": ADDRESS, "publicKey": server.answer({"ask": "public-key"})[1]["publicKey"], "check": "ok"}


def test_a_person_knows_which_key_it_is(cloche, kept, server):
    """Whoever answers to a name when the key is added is not believed more than a person who says its address."""
    assert not kept(server.url, "--address", "0x9d8a62f656a8d1615c1294fd71e9cfb3e4855a4").ok, "no address"
    assert not kept(server.url, "--address", ADDRESS.replace("A", "a", 1)).ok, "nor is one with a wrong checksum"
    said = kept(server.url, "--address", OTHER)
    assert said.code == 125 and "[sign.key.other]" in said.err and ADDRESS in said.err and OTHER in said.err, said
    for flags in ((), ("--generate",)):
        said = cloche("signer", "add", "main", "--address", OTHER, *flags, stdin=KEY + "\n")
        assert said.code == 125 and ("[sign.flag]" if flags else "[sign.key.other]") in said.err and KEY not in said.err, said
    assert cloche("signer", "ls").out.count("\n") == 1, "nothing is kept"
    assert kept(server.url, "--address", ADDRESS.lower()).ok


def test_what_is_no_server_that_signs(cloche, kept, server):
    for url, bearer, code in ((server.url, "wrong-4711", "sign.remote.answer"), ("http://127.0.0.1:1/", BEARER, "sign.remote.answer"),
                              ("http://192.0.2.1/", BEARER, "sign.remote.url"), ("ftp://x/", BEARER, "sign.remote.url"),
                              (server.url, "two words", "sign.remote.bearer")):
        said = kept(url, bearer=bearer)
        assert said.code == 125 and f"[{code}]" in said.err and bearer not in said.err, said
    assert cloche("signer", "ls").out.count("\n") == 1
    assert "[sign.flag]" in cloche("signer", "add", "main", "--ca", "/x", stdin="x\n").err


def test_over_tls(cloche, kept, tmp_path):
    """Its certificate has to be one that is trusted."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", tmp_path / "k.pem", "-out",
                    tmp_path / "c.pem", "-days", "2", "-subj", "/CN=signer", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "c.pem", tmp_path / "k.pem")
    server = Server(context)
    os.chmod(tmp_path / "c.pem", 0o644)
    assert "[sign.remote.answer]" in kept(server.url).err and not server.asked
    assert kept(server.url, "--ca", str(tmp_path / "c.pem")).ok and server.asked
    server.close()
