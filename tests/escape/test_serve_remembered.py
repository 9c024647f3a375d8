"""cloche serve: what its front remembers of credentials and default sandboxes is forgotten before anybody is told that it is over."""
import http.client
import os
import signal
import threading
import time

import pytest

from helpers import requirement
from helpers.daemon import Answer, Caller, Daemon, token
from helpers.runner import wait_for

pytestmark = requirement("R23", "R47")

# answered without a question to the warden when the caller is known
UNASKED = ("/api/sandbox/status", "/api/sandbox/platform")


@pytest.fixture
def daemon(cloche):
    made = Daemon(cloche, "--rate-limit", "0", path=cloche.state / "api.sock", tcp=True)
    yield made
    assert made.stop() == 0, made.log


class Kept:
    """One connection over TCP that is kept."""

    def __init__(self, daemon):
        self.connection = daemon.remote().connection()

    def __call__(self, secret, path, method="GET"):
        self.connection.request(method, path, headers={"Authorization": f"Bearer {secret}"} if secret else {})
        return Answer(self.connection.getresponse())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()


def remember(kept, secret):
    for path in UNASKED * 2:
        answer = kept(secret, path)
        assert answer.status == 200, answer


def test_the_request_after_the_answer_to_a_revocation_is_refused(daemon):
    """Beside others that keep both fronts at work, so that messages wait in queues."""
    operator = token(daemon, "operator")["token"]
    stop = threading.Event()
    failures = []

    def neighbour():
        with Kept(daemon) as kept:
            while not stop.is_set():
                for path in (*UNASKED, "/v1/tokens", "/v1/events?limit=1000"):
                    answer = kept(operator, path)
                    if answer.status != 200:
                        failures.append(answer)
                        return

    neighbours = [threading.Thread(target=neighbour) for _ in range(3)]
    for one in neighbours:
        one.start()
    try:
        owner = daemon.connection()
        with Kept(daemon) as first, Kept(daemon) as second:
            for _ in range(40):
                made = token(daemon, "agent")
                remember(first, made["token"])
                remember(second, made["token"])
                owner.request("DELETE", f"/v1/tokens/{made['id']}")
                assert Answer(owner.getresponse()).status == 200
                for kept, path in ((first, UNASKED[0]), (second, UNASKED[1]), (first, UNASKED[1]), (second, UNASKED[0])):
                    answer = kept(made["token"], path)
                    assert answer.status == 401 and answer.headers["WWW-Authenticate"].startswith("Bearer"), (path, answer)
        owner.close()
    finally:
        stop.set()
        for one in neighbours:
            one.join()
    assert not failures, failures[0]


def test_a_hammer_is_stopped_by_the_revocation(daemon):
    """Whoever begins to ask after the answer to it is refused, however many ask how often."""
    for path in UNASKED:
        made = token(daemon, "agent")
        told = threading.Event()
        seen = [[] for _ in range(4)]

        def hammer(into, secret, path, told):
            with Kept(daemon) as kept:
                while True:
                    after = told.is_set()
                    into.append((after, kept(secret, path).status))
                    if after:
                        return

        threads = [threading.Thread(target=hammer, args=(into, made["token"], path, told)) for into in seen]
        for one in threads:
            one.start()
        assert wait_for(lambda seen=seen: all(len(into) > 5 for into in seen)), seen
        assert daemon("DELETE", f"/v1/tokens/{made['id']}").status == 200
        told.set()
        for one in threads:
            one.join()
        for into in seen:
            assert into[0] == (False, 200) and into[-1] == (True, 401), into[-3:]
            assert {status for _, status in into} <= {200, 401}


def test_keys_end_with_what_ends_them(daemon):
    agent = token(daemon, "agent")
    holder = Caller(daemon, Authorization=f"Bearer {agent['token']}")
    for how in ("replaced", "forgotten", "its token"):
        box = holder.create(name="k")
        key = box.record["key"]
        with Kept(daemon) as kept:
            for _ in range(3):
                assert kept(key, "/api/sandbox/platform").ok and kept(key, "/api/sandbox/status").json["containerId"] == box.id
            if how == "replaced":
                new = daemon.post(f"{box.at}/key").json["key"]
            elif how == "forgotten":
                assert box.delete().json["state"] == "stopped"
                assert kept(key, "/api/sandbox/platform").ok        # it may know what became of it
                assert kept(key, "/api/sandbox/status").json["state"] == "stopped"
                assert daemon("DELETE", box.at).ok
            else:
                assert daemon("DELETE", f"/v1/tokens/{agent['id']}").ok
            for path in UNASKED:
                answer = kept(key, path)
                assert answer.status == 401, (how, path, answer)
            if how == "replaced":
                assert kept(new, "/api/sandbox/status").json["containerId"] == box.id
                assert box.delete().ok


def test_what_is_over_is_not_remembered_longer(daemon):
    made = token(daemon, "agent", expires=1)
    with Kept(daemon) as kept:
        for path in UNASKED:
            while True:
                late = time.time() * 1000 >= made["expires_ms"]
                answer = kept(made["token"], path)
                if not answer.ok:
                    break
                assert not late, answer
            assert answer.status == 401, answer


def test_who_is_refused_is_asked_about_each_time(daemon):
    def refused():
        lines = daemon.get("/metrics").body.decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("cloche_credentials_refused_total"))
    wrong = "cloche_agent_" + "0" * 64
    before = refused()
    with Kept(daemon) as kept:
        for _ in range(5):
            assert kept(wrong, "/api/sandbox/status").status == 401
    assert refused() == before + 5


def test_each_caller_has_its_own_on_one_connection(daemon):
    one, other = (token(daemon, "agent")["token"] for _ in range(2))
    auditor = token(daemon, "auditor")["token"]
    box = daemon.create(name="keyed")
    started = Caller(daemon, Authorization=f"Bearer {one}").post("/api/sandbox/start").json
    with Kept(daemon) as kept:
        for _ in range(20):
            assert kept(one, UNASKED[0]).json == started
            assert kept(other, UNASKED[0]).json["state"] == "uninitialized"
            assert kept(box.record["key"], UNASKED[0]).json["containerId"] == box.id
            assert kept(auditor, UNASKED[0]).json["state"] == "uninitialized"
            assert kept(auditor, "/api/sandbox/start", "POST").status in (403, 500)
            assert kept(None, UNASKED[0]).status == 401
            assert kept(one[:-1] + ("0" if one[-1] != "0" else "1"), UNASKED[0]).status == 401
            assert daemon.get(UNASKED[0]).json["state"] == "uninitialized"      # the owner's


def test_a_default_sandbox_is_told_as_it_is_after_each_answer(daemon):
    agent = token(daemon, "agent")["token"]
    caller = Caller(daemon, Authorization=f"Bearer {agent}")
    with Kept(daemon) as kept:
        for _ in range(2):
            for asker, status in ((caller, lambda: kept(agent, UNASKED[0]).json), (daemon, lambda: daemon.get(UNASKED[0]).json)):
                status()
                started = asker.post("/api/sandbox/start")
                assert started.ok and status() == status() == started.json, started
                assert asker.post("/api/sandbox/stop").json["state"] == "stopped"
                assert status()["state"] == status()["state"] == "stopped"
        assert caller.post("/api/sandbox/start").ok and kept(agent, UNASKED[0]).json["running"]
        assert daemon.post("/v1/kill").ok
        assert not kept(agent, UNASKED[0]).json["running"]


def test_a_new_warden_is_believed_and_no_former_one(daemon):
    made = token(daemon, "agent")
    with Kept(daemon) as kept:
        remember(kept, made["token"])
    for name in ("cloche-warden", "cloche-front"):
        before = daemon.processes(name)
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        assert wait_for(lambda name=name, before=before: daemon.processes(name) and not set(before) & set(daemon.processes(name)))

        def ready():
            try:
                return daemon.remote().get("/ready").ok and daemon.get("/ready").ok
            except (OSError, http.client.HTTPException, ValueError):
                return False
        assert wait_for(ready)
        with Kept(daemon) as kept:
            remember(kept, made["token"])
    assert daemon("DELETE", f"/v1/tokens/{made['id']}").ok
    with Kept(daemon) as kept:
        assert [kept(made["token"], path).status for path in UNASKED] == [401, 401]
        assert kept(made["token"], "/v1/sandboxes").json["code"] == "auth.unknown"
