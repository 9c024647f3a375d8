"""cloche serve: tokens with roles, keys of sandboxes."""
import json
import re
import sqlite3
import time

import pytest

from helpers import requirement
from helpers.daemon import Caller, Daemon, Sandbox, caller, token
from helpers.shared import own, shared

pytestmark = [requirement("R23", "R47"), shared]


def test_a_token_is_shown_once_and_only_its_hash_is_kept(daemon):
    made = token(daemon, "agent", name="builder")
    assert re.fullmatch("cloche_agent_[0-9a-f]{64}", made["token"]) and re.fullmatch("[0-9a-f]{32}", made["id"]), made
    assert made["role"] == "agent" and made["name"] == "builder" and made["expires_ms"] is None, made
    listed = daemon.get("/v1/tokens").json["tokens"]
    assert [(t["id"], t["role"], t["name"]) for t in listed] == [(made["id"], "agent", "builder")], listed
    assert "token" not in listed[0]
    key = daemon.post("/v1/sandboxes", {"name": "k"}).json["key"]
    assert daemon.get("/v1/sandboxes/k").json.get("key") is None
    assert Caller(daemon, Authorization=f"Bearer {made['token']}").get("/v1/sandboxes").ok
    folder = daemon.cloche.state / "cloche" / "serve"
    for file in folder.iterdir():
        if file.is_file():
            kept = file.read_bytes()
            assert made["token"][-64:].encode() not in kept and key[-64:].encode() not in kept, file
            assert bytes.fromhex(made["token"][-64:]) not in kept and bytes.fromhex(key[-64:]) not in kept, file


@pytest.mark.parametrize("body", [{}, {"role": "key"}, {"role": "nobody"}, {"role": "root"}, {"role": 1}, {"role": "agent", "x": 1},
                                  {"role": "agent", "name": "a b"}, {"role": "agent", "name": ""}, [], {"role": "agent", "expires": -1},
                                  {"role": "agent", "expires": "1h"}, {"role": "agent", "expires": 10 ** 12}])
def test_what_is_no_token_is_refused(daemon, body):
    answer = daemon.post("/v1/tokens", body)
    assert answer.status == 400 and answer.json["code"] == "token.request", answer
    assert daemon.get("/v1/tokens").json["tokens"] == []


def test_revoked_and_expired_tokens_open_nothing(daemon):
    made = token(daemon, "operator")
    operator = Caller(daemon, Authorization=f"Bearer {made['token']}")
    assert operator.get("/v1/sandboxes").ok
    box = operator.create(name="mine")
    assert box.record["owner"] == made["id"]
    assert daemon("DELETE", f"/v1/tokens/{made['id']}").json["id"] == made["id"]
    for method, path in (("GET", "/v1/sandboxes"), ("GET", "/api/sandbox/platform"), ("POST", "/v1/kill"), ("DELETE", box.at)):
        answer = operator(method, path)
        assert answer.status == 401 and answer.headers["WWW-Authenticate"].startswith("Bearer"), (method, path, answer)
    assert operator.get("/v1/sandboxes").json["code"] == "auth.unknown"
    assert daemon("DELETE", f"/v1/tokens/{made['id']}").status == 404
    assert daemon.state(box.id) == "ready"      # it stays, for those who reach it
    short = Caller(daemon, Authorization="Bearer " + token(daemon, "agent", expires=1)["token"])
    while (answer := short.get("/v1/sandboxes")).ok:
        time.sleep(0.02)        # a credential has so many requests a second
    assert answer.status == 401 and answer.json["code"] in ("auth.expired", "auth.ended"), answer     # the second: amid this request
    assert short.get("/v1/sandboxes").json["code"] == "auth.expired"
    token(daemon, "agent")      # which forgets those that are over
    assert [t["role"] for t in daemon.get("/v1/tokens").json["tokens"]] == ["agent"]
    assert short.get("/v1/sandboxes").json["code"] == "auth.unknown"


@pytest.mark.parametrize("headers", [
    {"Authorization": "Basic Y2xvY2hl"}, {"Authorization": "Bearer"}, {"Authorization": "Bearer "}, {"Authorization": ""},
    {"Authorization": "Bearer {token}x"}, {"Authorization": "Bearer {token} "  "y"}, {"Authorization": "Token {token}"},
    {"Authorization": "Bearer {upper}"}, {"Authorization": "Bearer cloche_owner_" + "0" * 64}, {"Authorization": "Bearer " + "a" * 9000},
    {"X-Sandbox-Key": ""}, {"X-Sandbox-Key": "{token}"}, {"X-Sandbox-Key": "x", "Authorization": "Bearer {token}"},
    {"X-Sandbox-Key": "{key}", "Authorization": "Bearer {token}"}, {"Authorization": "Bearer {cut}"},
])
def test_a_malformed_credential_is_not_none(daemon, headers):
    """On the owner's own socket too: who brings one that is no good is not the owner instead."""
    made = token(daemon, "operator")["token"]
    key = daemon.post("/v1/sandboxes", {"name": "k"}).json["key"]
    sent = {k: v.format(token=made, key=key, upper=made.upper(), cut=made[:-1]) for k, v in headers.items()}
    for method, path in (("GET", "/v1/sandboxes"), ("POST", "/v1/kill"), ("PUT", "/v1/sandboxes/k/files/f")):
        answer = Caller(daemon, **sent)(method, path, b"{}" if method != "GET" else None)
        assert answer.status == 401 and answer.json["code"] == "auth.malformed", (method, path, answer)
    assert daemon.state("k") == "ready" and daemon.get("/v1/sandboxes/k/files/f").status == 404


def test_blanks_around_a_credential_are_none_of_it(daemon):
    """RFC 9110, 5.5 and 11.4."""
    secret, box = token(daemon, "operator")["token"], daemon.post("/v1/sandboxes", {}).json
    for headers in ({"Authorization": f"Bearer {secret} "}, {"Authorization": f"Bearer {secret} \t \t"}, {"Authorization": f"bEARER   {secret}  "},
                    {"X-Sandbox-Key": box["key"] + "  "}, {"X-Sandbox-Key": f" {box['key']}\t"}):
        answer = daemon("GET", f"/v1/sandboxes/{box['id']}", headers=headers)
        assert answer.status == 200 and answer.json["id"] == box["id"], (headers, answer)


def test_a_key_is_of_one_sandbox(daemon):
    one, other = daemon.create(name="one"), daemon.create(name="other")
    key = one.record["key"]
    assert re.fullmatch("cloche_key_[0-9a-f]{64}", key) and other.record["key"] != key
    for holder in (Caller(daemon, X_Sandbox_Key=key), Caller(daemon, Authorization=f"bearer {key}")):
        mine, others = Sandbox(holder, one.record), Sandbox(holder, other.record)
        assert mine.exec("echo in")["stdout"] == "in\n" and mine.put("f", b"x").ok and mine.read("f").body == b"x"
        assert mine.show()["id"] == one.id and holder.get("/v1/sandboxes/one").json["id"] == one.id
        assert holder.get(f"{one.at}/stat/f").ok and holder.get(f"{one.at}/dirs/").ok
        # the routes that name none mean its own
        assert holder.get("/api/sandbox/status").json["containerId"] == one.id
        assert holder.post("/api/sandbox/exec", {"command": "echo api"}).json["stdout"] == "api\n"
        for answer in (holder.get(other.at), others.put("f", b"x"), others.read("f"), holder.post(f"{other.at}/exec", {"command": "id"})):
            assert answer.status == 404, answer
        for method, path in (("GET", "/v1/sandboxes"), ("POST", "/v1/sandboxes"), ("DELETE", one.at), ("POST", f"{one.at}/pause"),
                             ("POST", f"{one.at}/key"), ("POST", "/v1/kill"), ("GET", "/v1/events"), ("GET", "/v1/tokens")):
            answer = holder(method, path, {} if method == "POST" else None)
            assert answer.status == 403 and answer.json["code"] == "auth.role", (method, path, answer)
    assert other.read("f").status == 404


def test_a_key_is_replaced_at_once_and_outlives_recovery(daemon):
    box = daemon.create(name="one")
    old = Caller(daemon, X_Sandbox_Key=box.record["key"])
    assert old.get(box.at).ok
    made = daemon.post(f"{box.at}/key")
    assert made.status == 200 and made.json["id"] == box.id, made
    assert old.get(box.at).json["code"] == "auth.unknown"
    new = Caller(daemon, X_Sandbox_Key=made.json["key"])
    assert new.post(f"{box.at}/exec", {"command": "true"}).ok
    assert box.delete().json["state"] == "stopped"
    assert new.get(box.at).json["state"] == "stopped"       # it may know what became of it
    assert daemon.post(f"{box.at}/key").json["code"] == "sandbox.state"
    assert daemon.post(f"{box.at}/recover").ok
    assert new.post(f"{box.at}/exec", {"command": "true"}).ok
    box.delete()
    box.delete()
    assert new.get(box.at).json["code"] == "auth.unknown"


def test_a_record_of_before_there_were_owners_is_the_owners(cloche):
    """state.db as its first version had it."""
    folder = cloche.state / "cloche" / "serve"
    folder.mkdir(parents=True, mode=0o700)
    (cloche.state / "cloche").chmod(0o700)
    with sqlite3.connect(folder / "state.db") as db:
        db.executescript("""
            CREATE TABLE sandbox (id TEXT PRIMARY KEY, name TEXT NOT NULL, state TEXT NOT NULL, flags INTEGER NOT NULL, created INTEGER
            NOT NULL, started INTEGER NOT NULL, ended INTEGER NOT NULL, used INTEGER NOT NULL, idle INTEGER NOT NULL, life INTEGER NOT
            NULL, labels TEXT NOT NULL, policy TEXT NOT NULL, facts TEXT NOT NULL, detail TEXT NOT NULL) WITHOUT ROWID;
            CREATE INDEX by_name ON sandbox (name) WHERE state <> 'stopped';
            CREATE TABLE event (number INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, id TEXT NOT NULL, type TEXT NOT NULL,
            detail TEXT NOT NULL);
            CREATE INDEX of_sandbox ON event (id);
            PRAGMA user_version = 1;""")
        db.execute("INSERT INTO sandbox VALUES (?, 'old', 'stopped', 0, 1000, 1001, 1002, 1001, 0, 0, '', '', '', 'ended')", ("1" * 32,))
    db.close()
    for _ in range(2):
        daemon = Daemon(cloche)
        assert daemon.get("/v1/sandboxes/" + "1" * 32).json["owner"] is None
        assert caller(daemon, "agent").get("/v1/sandboxes/" + "1" * 32).status == 404
        assert Caller(daemon, X_Sandbox_Key="cloche_key_" + "0" * 64).get("/v1/sandboxes").status == 401
        assert daemon.stop() == 0, daemon.log
    with sqlite3.connect(folder / "state.db") as db:
        db.execute("PRAGMA user_version = 1000")
    db.close()
    late = cloche("serve")
    assert late.code == 125 and "serve.state.version" in late.err, late


@own
def test_credentials_outlive_the_processes(daemon):
    made = token(daemon, "agent")
    agent = Caller(daemon, Authorization=f"Bearer {made['token']}")
    box = agent.create(name="one")
    holder = Caller(daemon, X_Sandbox_Key=box.record["key"])
    assert daemon.stop() == 0, daemon.log
    daemon.start()
    assert agent.get(box.at).json["state"] == "stopped" and holder.get(box.at).json["state"] == "stopped"
    assert [b["id"] for b in agent.get("/v1/sandboxes?state=all").json["sandboxes"]] == [box.id]
    assert caller(daemon, "agent").get(box.at).status == 404


def test_health_wants_no_credential_and_looks_at_none(daemon):
    assert Caller(daemon, Authorization="Bearer x").get("/v1/health").json["status"] == "ok"


@own
def test_refusals_are_on_record_and_bounded(daemon):
    stranger = Caller(daemon, Authorization="Bearer cloche_agent_" + "0" * 64)
    for _ in range(60):
        assert stranger.get("/v1/sandboxes").status == 401
    agent = caller(daemon, "agent", name="curious")
    assert agent.get("/v1/tokens").status == 403
    refused = [e for e in daemon.get("/v1/events?limit=1000").json["events"] if e["type"] == "auth_refused"]
    assert 20 <= len(refused) <= 45, refused        # the minute may have ended on the way
    assert all("0" * 64 not in e["detail"] for e in refused)


@own
def test_who_asks_for_what_is_anothers_is_on_record(daemon):
    agent, box = caller(daemon, "agent", name="curious"), daemon.create(name="theirs")
    holder = Caller(daemon, X_Sandbox_Key=daemon.create(name="own").record["key"])
    own = daemon.get("/v1/sandboxes/own").json["id"]
    for who in (agent, holder):
        assert who.get(box.at).status == 404 and who.get("/v1/sandboxes/" + "0" * 32).status == 404
        assert who.post(f"{box.at}/exec", {"command": "id"}).status == 404
        assert who.get("/v1/sandboxes/theirs").status == 404        # a name, which says nothing
    details = [e["detail"] for e in daemon.get("/v1/events?limit=1000").json["events"] if e["type"] == "auth_refused"]
    assert len(details) == 4 and all(d.endswith(f": asked for {box.id}") for d in details), details
    assert sum("curious" in d for d in details) == 2 and sum(f"the key of {own}" in d for d in details) == 2, details


def verb(daemon, *words, **env):
    return daemon.cloche("token", *words, **({"env": env} if env else {}))


def test_the_verbs(daemon):
    made = verb(daemon, "create", "--role", "agent", "--name=ci", "--expires", "12h")
    assert made.ok and re.fullmatch("cloche_agent_[0-9a-f]{64}\n", made.out) and "shown once" in made.err, made
    assert Caller(daemon, Authorization=f"Bearer {made.out.strip()}").get("/v1/sandboxes").ok
    listed = json.loads(verb(daemon, "ls", "--json").out)
    (one,), version = listed["tokens"], listed["version"]
    assert version == 1 and (one["role"], one["name"]) == ("agent", "ci") and one["expires_ms"] - one["created_ms"] == 12 * 3600 * 1000, listed
    shown = verb(daemon, "ls").out.splitlines()
    assert shown[0].split() == ["ID", "ROLE", "CREATED", "EXPIRES", "NAME"] and shown[1].split()[0] == one["id"], shown
    assert one["id"] in made.err
    as_json = json.loads(verb(daemon, "create", "--role", "auditor", "--json").out)
    assert as_json["role"] == "auditor" and as_json["token"].startswith("cloche_auditor_") and as_json["expires_ms"] is None, as_json
    assert verb(daemon, "revoke", one["id"]).ok
    gone = verb(daemon, "revoke", one["id"])
    assert gone.code == 125 and "token.not-found" in gone.err, gone
    assert [t["role"] for t in json.loads(verb(daemon, "ls", "--json").out)["tokens"]] == ["auditor"]


@pytest.mark.parametrize("words, code", [
    (["create"], "cli.token.role"), (["create", "--role", "key"], "cli.token.role"), (["create", "--role", "root"], "cli.token.role"),
    (["create", "--role", "agent", "--expires", "soon"], "cli.token.expires"), (["create", "--role", "agent", "--name", "a b"], "token.request"),
    (["create", "--role"], "cli.flag-value"), (["revoke"], "cli.token.verb"), (["revoke", "x"], "token.request"), (["ls", "--role", "agent"], "cli.token.verb"),
    (["ls", "--what"], "cli.unknown-flag"), ([], "cli.token.verb"), (["ls", "--socket", "/nowhere/at/all"], "api.down"),
    (["revoke", "../sandboxes/x"], "http.route"),
])
def test_what_the_verbs_refuse(daemon, words, code):
    refused = verb(daemon, *words)
    assert refused.code == 125 and f"[{code}]" in refused.err and not refused.out, refused


def test_a_verb_with_a_token_has_its_role(daemon):
    agent, operator = token(daemon, "agent")["token"], token(daemon, "operator")["token"]
    refused = verb(daemon, "ls", CLOCHE_TOKEN=agent)
    assert refused.code == 125 and "[auth.role]" in refused.err, refused
    assert verb(daemon, "ls", CLOCHE_TOKEN=operator).ok
    assert "[auth.malformed]" in verb(daemon, "ls", CLOCHE_TOKEN="x").err
    assert "[api.token]" in verb(daemon, "ls", CLOCHE_TOKEN="x\r\nHost: y").err
    assert verb(daemon, "ls", CLOCHE_SOCKET=str(daemon.path)).ok
