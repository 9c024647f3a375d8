"""E2B's routes: whose a key is, what is refused of bodies, and that no way around the gate, the limits and the record is among them."""
import base64
import gzip
import json
import struct
from concurrent.futures import ThreadPoolExecutor

import pytest

from helpers import requirement
from helpers.daemon import Daemon, token

pytestmark = requirement("R84", "R12")


def envelope(message, flags=0):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return struct.pack(">BI", flags, len(body)) + body


def messages(body):
    """[(flags, message)] of a stream."""
    found = []
    while body:
        flags, n = struct.unpack(">BI", body[:5])
        assert len(body) >= 5 + n, body
        found.append((flags, json.loads(body[5:5 + n])))
        body = body[5 + n:]
    return found


def error_of(answer):
    """The Connect code of a stream that is nothing but its error."""
    if answer.status in (401, 403):
        return answer.json["code"]
    assert answer.status == 200, answer
    (flags, message), = messages(answer.body)
    assert flags == 2, answer
    return message["error"]["code"]


class Guest:
    """One who speaks to the daemon as E2B's clients do."""

    def __init__(self, daemon, credential):
        self.remote = daemon.remote()
        self.credential = credential
        made = self.api("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 300})
        assert made.status == 201, made
        self.id, self.key = made.json["sandboxID"], made.json["envdAccessToken"]
        assert made.json["trafficAccessToken"] == self.key and self.key.startswith("cloche_key_") and credential not in made.body.decode()

    def api(self, method, path, body=None, **headers):
        return self.remote(method, "/e2b" + path, body, {"X-API-Key": self.credential, **headers})

    def envd(self, method, path, body=None, box=None, key=None, headers=()):
        said = {"E2b-Sandbox-Id": box or self.id, "X-Access-Token": key or self.key, **dict(headers)}
        return self.remote(method, "/e2b" + path, body, {k: v for k, v in said.items() if v != "none"})

    def start(self, words, raw=None, **more):
        body = raw if raw is not None else envelope({"process": {"cmd": words[0], "args": words[1:]}, "stdin": False})
        return self.envd("POST", "/process.Process/Start", body, headers={"Content-Type": "application/connect+json"}, **more)

    def stdout(self, *words):
        return b"".join(base64.b64decode(m["event"].get("data", {}).get("stdout", "")) for f, m in messages(self.start(words).body) if f == 0).decode()


@pytest.fixture
def daemon(cloche):
    made = Daemon(cloche, "--max-lifetime", "3600", tcp=True)
    yield made
    assert made.stop() == 0, made.log


@pytest.fixture
def two(daemon):
    return [Guest(daemon, token(daemon, "agent")["token"]) for _ in range(2)]


CALLS = [("GET", "/health", None), ("GET", "/files?path=f", None), ("POST", "/execute", {"code": "1"}), ("GET", "/contexts", None),
         ("POST", "/process.Process/List", {}), ("POST", "/process.Process/SendSignal", {"process": {"pid": 1}, "signal": "SIGNAL_SIGKILL"}),
         ("POST", "/process.Process/SendInput", {"process": {"pid": 1}, "input": {"stdin": "eA=="}}), ("POST", "/contexts", {}),
         ("POST", "/filesystem.Filesystem/Stat", {"path": "f"}), ("POST", "/filesystem.Filesystem/ListDir", {"path": "."}),
         ("POST", "/filesystem.Filesystem/MakeDir", {"path": "made"}), ("POST", "/filesystem.Filesystem/Remove", {"path": "f"}),
         ("POST", "/filesystem.Filesystem/Move", {"source": "f", "destination": "g"})]


def test_a_key_is_one_sandboxs(daemon, two):
    """The attack is real: the same calls with the victim's own key are answered."""
    victim, attacker = two
    assert victim.envd("POST", "/files?path=f", b"hers", headers={"Content-Type": "application/octet-stream"}).ok
    assert victim.envd("GET", "/files?path=f").body == b"hers" and victim.envd("GET", "/health").status == 204
    for key in (attacker.key, attacker.credential, victim.credential, "none", "cloche_key_" + "0" * 64, victim.key[:-1], victim.key + "0"):
        for method, path, body in CALLS:
            answer = victim.envd(method, path, body, key=key)
            assert answer.status in (401, 502) and b"hers" not in answer.body, (key, path, answer)
        assert error_of(victim.start(["touch", "was-here"], key=key)) in ("unauthenticated", "unavailable")
    # two credentials that differ, one of a key and one in Authorization
    assert victim.envd("GET", "/health", headers={"E2B-Traffic-Access-Token": attacker.key}).status == 401
    for more in ({"Authorization": f"Bearer {victim.credential}"}, {"X-Sandbox-Key": victim.key}, {"X-API-Key": victim.credential}):
        assert victim.envd("GET", "/health", headers=more).status == 401, more
    for more in ({"Authorization": f"Bearer {attacker.credential}"}, {"X-Sandbox-Key": attacker.key}, {"X-API-Key": victim.credential}):
        assert not victim.envd("GET", "/files?path=f", key="none", headers=more).ok, more
    assert victim.envd("GET", "/health", headers={"Authorization": "Basic cm9vdDo="}).status == 204        # a user's name, which opens nothing
    # the other's token on the sandbox, and what belongs to a key where a token is wanted
    for method, path, body in (("GET", f"/sandboxes/{victim.id}", None), ("DELETE", f"/sandboxes/{victim.id}", None),
                               ("POST", f"/v2/sandboxes/{victim.id}/connect", {}), ("POST", f"/sandboxes/{victim.id}/timeout", {"timeout": 5}),
                               ("POST", f"/sandboxes/{victim.id}/pause", {})):
        assert attacker.api(method, path, body).status == 404, path
        if method != "GET":         # as on /v1, a key may look at its own sandbox
            assert victim.api(method, path, body, **{"X-API-Key": victim.key}).status in (401, 403), path
        assert attacker.api(method, path, body, **{"X-API-Key": attacker.key}).status in (401, 403, 404), path
        assert victim.api(method, path, body, **{"Authorization": f"Bearer {victim.credential}"}).status == 401, path
    assert victim.id not in [b["sandboxID"] for b in attacker.api("GET", "/v2/sandboxes").json]
    assert victim.stdout("ls") == "f\n" and victim.envd("GET", "/files?path=f").body == b"hers"


def test_who_connects_takes_nobodys_key_away(daemon, two):
    mine, other = two
    keys = {mine.api("POST", f"/v2/sandboxes/{mine.id}/connect", {}).json["envdAccessToken"] for _ in range(3)}
    assert len(keys) == 1 and mine.key not in keys
    again, = keys
    for key in (mine.key, again):
        assert mine.envd("GET", "/health", key=key).status == 204
        assert other.envd("GET", "/health", key=key).status == 502
    # a new key ends both, and so does the sandbox's end
    assert daemon.post(f"/v1/sandboxes/{mine.id}/key").ok
    for key in (mine.key, again):
        assert mine.envd("GET", "/health", key=key).status == 502
    last = mine.api("POST", f"/v2/sandboxes/{mine.id}/connect", {}).json["envdAccessToken"]
    assert last != again and mine.envd("GET", "/health", key=last).status == 204
    assert mine.api("DELETE", f"/sandboxes/{mine.id}").status == 204
    assert mine.envd("GET", "/health", key=last).status == 502


def test_bodies(two):
    mine, _ = two
    good = envelope({"process": {"cmd": "true"}, "stdin": False})
    for raw in (b"", good[:3], good[:-4], good + b"\0", good + good, struct.pack(">BI", 0, 0xffffffff) + b"{}", b"\x01" + good[1:], b"\x02" + good[1:],
                b"\x80" + good[1:], envelope(gzip.compress(good[5:]), 1), envelope(b"[]"), envelope(b"{"), envelope(b'{"process":{},"process":{}}'),
                envelope({"process": {"cmd": "a\0b"}}), envelope({"process": {"cmd": "true", "args": [1]}}), envelope({"process": {"cmd": ""}}),
                envelope({"process": {"cmd": "true", "envs": {"A=B": "c"}}}), envelope({"process": {"cmd": "true", "cwd": "x" * 5000}}),
                envelope({"process": {"cmd": "true"}, "pty": {"size": {"rows": 0, "cols": 70000}}}), envelope(b"[" * 100000)):
        assert error_of(mine.start([], raw=raw)) in ("invalid_argument",), raw[:60]
    bomb = gzip.compress(b"\0" * 10_000_000)
    for path, kind in (("/files?path=bomb", "application/octet-stream"), ("/execute", "application/json")):
        assert mine.envd("POST", path, bomb, headers={"Content-Type": kind, "Content-Encoding": "gzip"}).status == 415
    assert mine.envd("POST", "/files?path=large", b"x" * (10 * 1024 * 1024 + 1), headers={"Content-Type": "application/octet-stream"}).status == 413
    assert mine.envd("GET", "/files?path=bomb").status == 404


def form(*parts, boundary="X", end=True):
    body = b"".join(b"--" + boundary.encode() + b"\r\n" + head + b"\r\n\r\n" + content + b"\r\n" for head, content in parts)
    return body + (b"--" + boundary.encode() + b"--\r\n" if end else b"")


NAMED = b'Content-Disposition: form-data; name="file"; filename="f"'


def test_forms(two):
    mine, _ = two
    kind = "multipart/form-data; boundary=X"

    def sent(body, path="/files", kind=kind):
        return mine.envd("POST", path, body, headers={"Content-Type": kind})

    assert sent(form((NAMED, b"one"))).json == [{"name": "f", "type": "file", "path": "/workspace/f"}]
    for body, kind_ in ((form((NAMED, b"two"), end=False), kind), (form((NAMED, b"two")) + b"tail", kind), (b"pre" + form((NAMED, b"two")), kind),
                        (form((NAMED + b"; filename=\"g\"", b"two")), kind), (form((NAMED + b"\r\n" + NAMED, b"two")), kind),
                        (form((NAMED + b"\r\nContent-Transfer-Encoding: base64", b"dHdv")), kind), (form((b"A: b", b"two")), kind),
                        (form((NAMED.replace(b"file\"", b"other\"", 1), b"two")), kind), (form((NAMED, b"two")), "multipart/form-data"),
                        (form((NAMED, b"two")), kind + "; boundary=Y"), (form((NAMED, b"two"), boundary="Z"), kind), (form(), kind), (b"", kind),
                        (form(*[(NAMED, b"two")] * 65), kind), (form((NAMED.replace(b'"f"', b'"' + b"f" * 5000 + b'"'), b"two")), kind),
                        (form((b"X: " + b"y" * 20000 + b"\r\n" + NAMED, b"two")), kind)):
        answer = sent(body, kind=kind_)
        assert answer.status == 400, (body[:80], answer)
    assert mine.envd("GET", "/files?path=f").body == b"one"
    # a name says no more about where it goes than a path does
    for name in (b"../../etc/x", b"/etc/x", b"a/../../../x", b"/proc/self/mem"):
        answer = sent(form((NAMED.replace(b'"f"', b'"' + name + b'"'), b"two")))
        assert answer.status in (400, 403, 404), (name, answer)


def test_paths(two):
    mine, _ = two
    assert mine.start(["ln", "-s", "/etc", "out"]).status == 200
    for path in ("/etc/hostname", "../../../etc/hostname", "out/hostname", "/workspace/../etc/hostname", "/home/user/../../etc/hostname", "~/../etc/hostname",
                 "/workspace/out/hostname", "%2fetc%2fhostname", "/proc/1/environ"):
        assert mine.envd("GET", f"/files?path={path}").status in (400, 403, 404), path
        assert not mine.envd("POST", "/filesystem.Filesystem/Stat", {"path": path}).ok, path
        assert not mine.envd("POST", "/filesystem.Filesystem/ListDir", {"path": path}).ok, path
        assert not mine.envd("POST", "/filesystem.Filesystem/Move", {"source": path, "destination": "got"}).ok, path
    assert mine.envd("POST", "/filesystem.Filesystem/Stat", {"path": "a\0b"}).status == 400
    assert mine.envd("POST", "/files?path=-rf", b"x", headers={"Content-Type": "application/octet-stream"}).ok
    assert mine.envd("POST", "/filesystem.Filesystem/Move", {"source": "-rf", "destination": "--help"}).ok      # names, and no options
    assert mine.envd("GET", "/files?path=--help").body == b"x"
    for path in ("/process.Process/../sandboxes", "/process.Process%2fStart", "//health", "/sandboxes/..", "/nothing"):
        assert mine.envd("GET", path).status in (400, 401, 404, 501), path


def test_ceilings_hold(daemon, two):
    mine, _ = two
    assert mine.api("POST", f"/sandboxes/{mine.id}/timeout", {"timeout": 100}).status == 204
    # --max-lifetime is where it ends, as for a new one
    assert mine.api("POST", f"/sandboxes/{mine.id}/timeout", {"timeout": 100000}).status == 204
    assert mine.api("POST", f"/v2/sandboxes/{mine.id}/connect", {"timeout": 3600}).status == 200
    assert daemon.get(f"/v1/sandboxes/{mine.id}").json["max_lifetime"] == 3600
    for timeout in (0, -1, 1.5, "9", 2**40):
        assert mine.api("POST", f"/sandboxes/{mine.id}/timeout", {"timeout": timeout}).status == 400, timeout
    answer = mine.api("POST", "/v2/sandboxes", {"templateID": "base", "network": {"allowOut": ["*"]}})
    assert answer.status in (400, 403), answer
    assert mine.api("POST", "/v2/sandboxes", {"templateID": "no-such"}).status == 404
    for more in ({"mcp": {"a": 1}}, {"iam": {"tokens": {"a": {}}}}, {"volumeMounts": [{"name": "v"}]}, {"autoPause": True},
                 {"network": {"rules": {"a.example": []}}}, {"network": {"denyOut": ["10.0.0.0/8"]}}):
        assert mine.api("POST", "/v2/sandboxes", {"templateID": "base", **more}).status == 501, more
    for metadata in ({"a b": "c"}, {"a": "b\nc=d"}, {"a": 1}, {"e2b-template": "x"}, []):
        assert mine.api("POST", "/v2/sandboxes", {"templateID": "base", "metadata": metadata}).status in (400,), metadata


def test_the_gate_and_the_record(cloche, tmp_path):
    rules = tmp_path / "gate.yaml"
    rules.write_text("gate:\n  rules:\n    - {name: no-touch, tools: [code_execute], risk: CRITICAL, timeout: 1, conditions: [{param: code, contains: touch}]}\n"
                     "    - {name: all, tools: ['*'], risk: LOW, require_approval: false}\n")
    daemon = Daemon(cloche, gate=rules, tcp=True)
    made = token(daemon, "agent")
    mine = Guest(daemon, made["token"])
    assert mine.stdout("echo", "hi") == "hi\n"
    assert error_of(mine.start(["touch", "was-here"])) == "permission_denied"
    assert mine.stdout("ls") == ""
    assert mine.envd("POST", "/files?path=f", b"x", headers={"Content-Type": "application/octet-stream"}).ok
    text = json.dumps(daemon.get("/v1/audit?limit=1000").json["entries"])
    who = sorted({e["metadata"]["by"] for e in json.loads(text) if "by" in e["metadata"]})
    assert f"the key of {mine.id}" in who and [w for w in who if made["id"] in w], who
    assert mine.key not in text and made["token"] not in text
    assert daemon.stop() == 0, daemon.log


def test_a_stream_keeps_nobody_waiting(two):
    """Who reads nothing of an endless stream, and another one's calls."""
    mine, other = two
    connection = mine.remote.connection()
    connection.request("POST", "/e2b/process.Process/Start", envelope({"process": {"cmd": "yes"}, "stdin": False}),
                       {"Content-Type": "application/connect+json", "E2b-Sandbox-Id": mine.id, "X-Access-Token": mine.key})
    assert connection.getresponse().status == 200
    for _ in range(5):
        assert other.stdout("echo", "there") == "there\n"
        assert mine.envd("POST", "/process.Process/List", {}).ok
    connection.close()


def test_a_listing_has_an_end(two):
    """Each folder is an operation of the warden's, and each entry is memory of the process that all callers share."""
    mine, _ = two
    mine.stdout("sh", "-c", "mkdir many full full/a full/b deep; for i in $(seq 300); do mkdir many/$i; done; touch $(seq -f full/a/%g 5100) $(seq -f full/b/%g 4897);"
                "cd deep; for i in $(seq 30); do mkdir d; touch f; cd d; done")

    def listed(path, depth):
        return mine.envd("POST", "/filesystem.Filesystem/ListDir", {"path": path, "depth": depth})

    assert len(listed("many", 1).json["entries"]) == 300 and len(listed("deep", 16).json["entries"]) == 32
    assert len(listed("full", 2).json["entries"]) == 9999
    answer = listed("many", 2)
    assert answer.status == 413 and "files.too-many-entries" in answer.body.decode(), answer
    mine.stdout("touch", "full/b/x", "full/b/y")
    answer = listed("full", 2)
    assert answer.status == 413 and "files.too-many-entries" in answer.body.decode(), answer
    # what is refused is over: the sandbox works on
    assert mine.stdout("echo", "on") == "on\n" and len(listed("full", 1).json["entries"]) == 2


def test_the_usual_context_is_one(two):
    """Calls at once, of which none found a context there, leave one; another sandbox's are others."""
    mine, other = two

    def ran(guest, code):
        return guest.envd("POST", "/execute", {"code": code, "language": "bash"})

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda n: ran(mine, f"echo {n}"), range(4)))
    assert {a.status for a in answers} <= {200, 409} and 200 in [a.status for a in answers], answers       # 409: context.busy
    assert len(mine.envd("GET", "/contexts").json) == 1
    assert ran(mine, "x=mine").ok and ran(other, "x=theirs").ok and b"mine" in ran(mine, "echo $x").body
    # one that has ended is made anew, in its place
    number = mine.envd("GET", "/contexts").json[0]["id"]
    assert mine.envd("DELETE", f"/contexts/{number}").status == 204
    assert b"[]" in ran(mine, "echo [$x]").body and b"theirs" in ran(other, "echo $x").body
    assert [c["id"] for c in mine.envd("GET", "/contexts").json] != [number] and len(mine.envd("GET", "/contexts").json) == 1
    assert ran(mine, "echo one").status == 200 and ran(mine, "echo one").status == 200


def test_a_life_is_not_made_longer_without_being_judged(cloche, tmp_path):
    """A rule about max_lifetime is one about set_timeout and connect too: what they ask for is all of the sandbox's life."""
    rules = tmp_path / "gate.yaml"
    rules.write_text("gate:\n  rules:\n    - {name: long, tools: [sandbox_create], risk: CRITICAL, timeout: 1, conditions: [{param: max_lifetime, range: {min: 1000}}]}\n"
                     "    - {name: all, tools: ['*'], risk: LOW, require_approval: false}\n")
    daemon = Daemon(cloche, gate=rules, tcp=True)
    mine = Guest(daemon, token(daemon, "agent")["token"])

    def lives():
        return daemon.get(f"/v1/sandboxes/{mine.id}").json["max_lifetime"]

    assert mine.api("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 5000}).status == 403
    assert mine.api("POST", f"/sandboxes/{mine.id}/timeout", {"timeout": 5000}).status == 403 and lives() == 300
    assert mine.api("POST", f"/v2/sandboxes/{mine.id}/connect", {"timeout": 5001}).status == 403 and lives() == 300
    assert mine.api("POST", f"/sandboxes/{mine.id}/timeout", {"timeout": 900}).status == 204 and 900 <= lives() < 930
    assert mine.api("POST", f"/sandboxes/{mine.id}/timeout", {"timeout": 10}).status == 204 and lives() < 60
    assert mine.api("POST", f"/sandboxes/{mine.id}/timeout", {"timeout": 200}).status == 204 and lives() < 260
    # who is not judged may
    assert daemon.remote()("POST", f"/e2b/sandboxes/{mine.id}/timeout", {"timeout": 5000}, {"X-API-Key": token(daemon, "operator")["token"]}).status in (204, 401)
    assert daemon.stop() == 0, daemon.log


def test_a_revoked_token_leaves_no_key(daemon, two):
    """An operator is told the second key of an agent's sandbox; it is none when the operator's token is."""
    mine, other = two
    operator = token(daemon, "operator")
    lent = mine.api("POST", f"/v2/sandboxes/{mine.id}/connect", {}, **{"X-API-Key": operator["token"]}).json["envdAccessToken"]
    kept = other.api("POST", f"/v2/sandboxes/{other.id}/connect", {}).json["envdAccessToken"]
    assert mine.envd("GET", "/health", key=lent).status == 204 and other.envd("GET", "/health", key=kept).status == 204
    assert daemon("DELETE", f"/v1/tokens/{operator['id']}").ok
    assert mine.envd("GET", "/health", key=lent).status == 502
    assert mine.envd("GET", "/health").status == 204 and other.envd("GET", "/health", key=kept).status == 204
    assert mine.api("POST", f"/v2/sandboxes/{mine.id}/connect", {}).json["envdAccessToken"] != lent
