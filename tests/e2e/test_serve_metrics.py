"""The daemon's numbers: Prometheus's text format, its readers, and what they count."""
import json
import os
import pytest
import re
import shutil
import signal
import time

from helpers import requirement
from helpers.daemon import Caller, caller, kill_one, restart, token
from helpers.runner import wait_for
from helpers.websocket import Command

pytestmark = requirement("R89")

SAMPLE = re.compile(r'^([a-z_:][a-z0-9_:]*)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? ([0-9.+eInf-]+)$')


def parse(text, open_metrics=False):
    """{(name, (label, value)...): number}: strict about what the format says, see the comments."""
    families, current, samples, closed = {}, None, {}, set()
    lines = text.split("\n")
    assert lines.pop() == "", "the last line ends too"
    if open_metrics:
        assert lines.pop() == "# EOF"
    for line in lines:
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            assert name not in families, f"{name} is in two places"
            closed.add(current)
            current, families[name] = name, None
            assert len(line.split(" ", 3)[3]) > 5
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == current and families[name] is None and kind in ("gauge", "counter", "histogram")
            families[name] = kind
        else:
            found = SAMPLE.match(line)
            assert found, line
            name, labels, value = found[1], found[2] or "", float(found[3])
            kind = families[current]
            if kind == "histogram":
                assert name in (current + "_bucket", current + "_sum", current + "_count"), line
            elif kind == "counter":
                assert name == current + ("_total" if open_metrics else "") and name.endswith("_total"), line
            else:
                assert name == current and not name.endswith("_total"), line
            key = (name, *re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', labels))
            assert key not in samples, f"twice: {line}"
            samples[key] = value
    assert all(families.values())
    return samples


def scrape(daemon):
    answer = daemon.get("/metrics")
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8", answer
    return parse(answer.body.decode())


def test_what_happens_is_counted(daemon):
    before = scrape(daemon)
    assert before["cloche_sandboxes", ("state", "ready")] == 0 and before["cloche_sandboxes_created_total",] == 0
    box = daemon.create(name="one")
    assert box.exec("cat; exit 3", stdin="12345")["stdout"] == "12345"
    assert box.exec("kill -9 $$")["signal"] == 9
    assert box.exec("sleep 60", timeout_ms=50)["timed_out"]
    assert box.put("f", b"x" * 1000).ok and len(box.read("f").body) == 1000 and box.read("none").status == 404
    assert daemon.post("/v1/sandboxes", {"policy": {"mode": "off"}}).status == 400
    assert daemon.post("/v1/sandboxes/nobody/exec", {"command": "true"}).status == 404
    # how an operation ended its keeper says, when the client has its answer already
    assert wait_for(lambda: scrape(daemon)["cloche_exec_duration_seconds_count",] == 3, 60)
    now = scrape(daemon)
    assert now["cloche_sandboxes", ("state", "ready")] == 1 and now["cloche_sandboxes_created_total",] == 1
    assert now["cloche_sandbox_create_duration_seconds_count",] == 1
    assert now["cloche_sandbox_create_failures_total", ("code", "serve.mode-off")] == 1
    ops = {(k[1][1], k[2][1]): v for k, v in now.items() if k[0] == "cloche_operations_total"}
    assert ops == {("exec", "nonzero"): 1, ("exec", "signaled"): 1, ("exec", "timed_out"): 1, ("exec", "refused"): 1,
                   ("write", "ok"): 1, ("read", "ok"): 1, ("read", "failed"): 1}, ops
    assert now["cloche_exec_duration_seconds_count",] == 3
    assert 0.05 <= now["cloche_exec_duration_seconds_sum",]
    assert now["cloche_operation_bytes_total", ("direction", "in")] >= 1005
    assert now["cloche_operation_bytes_total", ("direction", "out")] >= 1005
    requests = {tuple(v for _, v in k[1:]): n for k, n in now.items() if k[0] == "cloche_http_requests_total"}
    assert requests["POST", "/v1/sandboxes/{id}/exec", "200"] == 3 and requests["POST", "/v1/sandboxes/{id}/exec", "404"] == 1
    assert sum(n for (method, route, _), n in requests.items() if (method, route) == ("PUT", "/v1/sandboxes/{id}/files/{path}")) == 1
    assert now["cloche_http_connections",] >= 1 and now["cloche_http_connections_accepted_total",] >= 10
    for process in ("front", "warden", "launcher", "keepers"):
        assert now["cloche_process_resident_memory_bytes", ("process", process)] > 100_000, process
    for process in ("front", "warden", "launcher"):
        assert ("cloche_process_cpu_seconds_total", ("process", process)) in now


def test_bytes_of_a_websocket_are_counted(daemon):
    """When it is over, as those of other answers."""
    box = daemon.create()
    before = scrape(daemon)
    command = Command(box, "head -c 100000; head -c 200000 /dev/zero")
    command.ws.stdin(b"x" * 100_000)
    assert command.end()["exit_code"] == 0 and len(command.out) == 300_000

    def more(direction):
        return scrape(daemon)["cloche_http_body_bytes_total", ("direction", direction)] - before["cloche_http_body_bytes_total", ("direction", direction)]
    assert wait_for(lambda: more("in") >= 100_000, 60), more("in")
    assert 300_000 <= more("out")


def test_buckets_add_up(daemon):
    box = daemon.create()
    for _ in range(3):
        box.exec("true")
    assert wait_for(lambda: scrape(daemon)["cloche_exec_duration_seconds_count",] == 3, 60)
    now = scrape(daemon)
    buckets = [(k[-1][1], v) for k, v in now.items() if k[0] == "cloche_exec_duration_seconds_bucket"]
    bounds = [float(b.replace("+Inf", "inf")) for b, _ in buckets]
    assert bounds == sorted(set(bounds)) and bounds[-1] == float("inf")
    counts = [v for _, v in buckets]
    assert counts == sorted(counts) and counts[-1] == now["cloche_exec_duration_seconds_count",] == 3


def test_no_stranger_makes_a_label(daemon):
    """The number of time series does not grow with what is asked for, nor does a secret of a path get into one."""
    def series():
        return {k for k in scrape(daemon) if not any("metrics" in v for _, v in k[1:])}
    def ask(i):
        daemon.get(f"/secret-{i}")
        daemon(f"BREW{i}", "/v1/health")
        daemon.get(f"/v1/sandboxes/none-{i}")
        daemon.get(f"/v1/sandboxes/none-{i}/files/secret-{i}?secret=1")
        daemon.post("/v1/sandboxes", {"policy": {f"secret-{i}": 1}})

    ask(0)
    first = series()
    for i in range(1, 20):
        ask(i)
    text = daemon.get("/metrics").body.decode()
    assert "secret" not in text and "none-" not in text and "BREW" not in text
    assert series() == first


def test_openmetrics(daemon):
    daemon.create()
    answer = daemon("GET", "/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert parse(answer.body.decode(), open_metrics=True)["cloche_sandboxes_created_total",] == 1


def test_other_readers_read_it(daemon):
    """The parser of Prometheus's own client library, where it is installed."""
    parser = pytest.importorskip("prometheus_client.parser")
    open_parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    daemon.create().exec("true")
    families = list(parser.text_string_to_metric_families(daemon.get("/metrics").body.decode()))
    assert {"cloche_sandboxes", "cloche_operations", "cloche_exec_duration_seconds"} <= {f.name for f in families}
    text = daemon("GET", "/metrics", headers={"Accept": "application/openmetrics-text"}).body.decode()
    assert {f.name for f in open_parser.text_string_to_metric_families(text)} >= {"cloche_sandboxes_created"}


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool (Debian: prometheus) is not installed")
def test_promtool_finds_nothing(daemon, cloche):
    promtool = shutil.which("promtool")
    daemon.create().exec("true")
    done = cloche.run([promtool, "check", "metrics"], stdin=daemon.get("/metrics").body)
    assert done.ok and not done.err, done


def test_deaths_and_restarts_are_counted(daemon):
    daemon.create(name="dies")
    kill_one(daemon, "cloche-keeper")
    assert wait_for(lambda: scrape(daemon)["cloche_keeper_deaths_total",] == 1, 60)
    restart(daemon, "cloche-front")
    now = scrape(daemon)
    assert now["cloche_process_restarts_total", ("process", "front")] == 1
    assert now["cloche_process_restarts_total", ("process", "warden")] == 0
    restart(daemon)
    assert scrape(daemon)["cloche_process_restarts_total", ("process", "warden")] == 1


# --- health -----------------------------------------------------------------------------------------------------------

def test_health_and_readiness(daemon):
    assert daemon.get("/health").json == {"status": "ok"}
    assert wait_for(lambda: daemon.get("/ready").status == 200, 60)
    assert daemon.get("/ready").json == {"status": "ready"}
    version = daemon.get("/v1/version").json
    assert version["name"] == "cloche" and re.match(r"\d+\.\d+", version["version"]) and version["api"] == ["v1"]


# --- usage ------------------------------------------------------------------------------------------------------------

@requirement("R17")
def test_usage(daemon):
    assert daemon.get("/v1/usage").json == {"usage": []}
    box, other = daemon.create(name="a"), daemon.create(name="b")
    runs = box.stream("i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; echo up; sleep 600")
    assert next(runs) == ("stdout", {"data": "up\n"})
    usage = {u["id"]: u for u in daemon.get("/v1/usage").json["usage"]}
    assert set(usage) == {box.id, other.id}
    busy = usage[box.id]
    assert busy["running"] == ["/bin/sh"] and busy["operations"] == 1 and busy["processes"] >= 2, busy
    assert busy["memory_bytes"] > 10_000 and busy["cpu_us"] > 0, busy
    assert usage[other.id]["running"] == [] and usage[other.id]["operations"] == 0
    assert [u["id"] for u in daemon.get("/v1/sandboxes/a/usage").json["usage"]] == [box.id]
    assert daemon.get("/v1/sandboxes/nobody/usage").status == 404
    other.delete()
    assert daemon.get(f"{other.at}/usage").json == {"usage": []}
    runs.close()


@requirement("R17")
def test_usage_with_a_keeper_that_does_not_answer(daemon):
    box, other = daemon.create(name="a"), daemon.create(name="b")
    daemon.get("/v1/usage")
    keepers = daemon.processes("cloche-keeper")
    for keeper in keepers:
        os.kill(keeper, signal.SIGSTOP)
    try:
        usage = daemon.get("/v1/usage").json["usage"]       # as it was last
        assert {u["id"] for u in usage} == {box.id, other.id}
        assert daemon.get("/metrics").status == 200
        began = time.monotonic()
        assert all(daemon.get("/v1/usage").ok for _ in range(5))        # those who are late are waited for once
        assert time.monotonic() - began < 4
    finally:
        for keeper in keepers:
            os.kill(keeper, signal.SIGCONT)
    assert box.exec("echo on")["stdout"] == "on\n"


# --- events as they happen --------------------------------------------------------------------------------------------

class Ended(Exception):
    """The last event of a stream that was ended for its reader: the code."""


class Events:
    def __init__(self, daemon, query="", headers=None):
        self.c = daemon.connection()
        self.c.request("GET", "/v1/events/stream" + query, headers={**getattr(daemon, "headers", {}), **(headers or {})})
        self.response = self.c.getresponse()
        assert self.response.status == 200 and self.response.getheader("Content-Type") == "text/event-stream"

    def __iter__(self):
        return self

    def __next__(self):
        got = {}
        while line := self.response.readline().decode():
            if line == "\n":
                if "data" in got:
                    data = json.loads(got["data"])
                    if got["event"] == "error":
                        raise Ended(data["code"])
                    assert got["id"] == str(data["number"]) and got["event"] == data["type"]
                    return data
                got = {}
            elif not line.startswith(":"):
                key, value = line.rstrip("\n").split(": ", 1)
                got[key] = value
        raise StopIteration

    def until(self, type):
        while (event := next(self))["type"] != type:
            pass
        return event

    def close(self):
        self.c.close()


def test_events_are_followed(daemon):
    first = daemon.create(name="first")
    all_of_them, later = Events(daemon), Events(daemon, f"?limit=1000&sandbox={first.id}")
    assert next(later)["type"] == "container_start"
    named = Events(daemon, "?limit=1000&sandbox=first")         # by its name as by its id
    assert next(named)["sandbox"] == first.id
    second = daemon.create(name="second")
    assert all_of_them.until("container_start")["sandbox"] == second.id
    second.exec("true")
    assert all_of_them.until("exec")["detail"].startswith("/bin/sh")
    first.exec(["true"])
    event = later.until("exec")
    assert event["sandbox"] == first.id and event["detail"] == "true"
    assert named.until("exec") == event
    named.close()
    all_of_them.close()
    by_name, by_id = (daemon.get(f"/v1/events?sandbox={which}").json["events"] for which in ("first", first.id))
    assert by_name == by_id and {e["sandbox"] for e in by_name} == {first.id}
    # where it broke off it goes on
    again = Events(daemon, headers={"Last-Event-ID": str(event["number"] - 1)})
    assert next(again) == event
    first.delete()
    assert later.until("container_stop")["sandbox"] == first.id
    for query in ("?limit=1001", "?limit=x", "?sandbox=a/b", "?after=-1", "?after=%zz"):
        assert daemon.get("/v1/events/stream" + query).status == 400, query
    for path in ("/v1/events", "/v1/events/stream"):
        none = daemon.get(f"{path}?sandbox=none")
        assert none.status == 404 and none.json["code"] == "sandbox.not-found", none
    assert daemon("DELETE", first.at).ok        # its record too: what is said of it stays, by its id
    assert daemon.get(f"/v1/events?sandbox={first.id}").json["events"]
    later.close()
    again.close()


@requirement("R12", "R23")
def test_followers_see_what_is_theirs(daemon):
    agent, auditor, approver = (caller(daemon, role) for role in ("agent", "auditor", "approver"))
    own = token(daemon, "agent", name="short")
    short = Caller(daemon, Authorization=f"Bearer {own['token']}")
    mine, all_of_them, ends = Events(agent), Events(auditor), Events(short)
    assert approver.get("/v1/events/stream").json["code"] == "auth.role"
    anothers = daemon.create(name="anothers")
    box = agent.create(name="mine")
    assert next(mine)["sandbox"] == box.id
    assert all_of_them.until("container_start")["sandbox"] == anothers.id
    # a token that was revoked is told no more, not even of what its own sandboxes do
    left = short.create(name="left")
    assert ends.until("container_start")["sandbox"] == left.id
    assert daemon("DELETE", f"/v1/tokens/{own['id']}").ok
    left.daemon = daemon
    assert left.delete().ok
    told = []
    with pytest.raises(Ended, match=r"^auth\.ended$"):
        told.extend(ends)
    assert not [e for e in told if e["type"] == "container_stop"]
    for which in (anothers.id, "anothers"):
        assert agent.get(f"/v1/events/stream?sandbox={which}").status == agent.get(f"/v1/events?sandbox={which}").status == 404
    box.exec("true")
    assert mine.until("exec")["sandbox"] == box.id
    anothers.exec("true")
    assert all_of_them.until("exec")["sandbox"] == box.id
    for events in (mine, all_of_them):
        events.close()


def test_followers_are_bounded(daemon):
    """One that leaves makes room; what they are is counted where they follow, not where they connect."""
    followers = [Events(daemon) for _ in range(64)]
    refused = daemon.get("/v1/events/stream")
    assert refused.status == 429 and refused.json["code"] == "events.too-many", refused
    for follower in followers:
        follower.close()

    def room():
        c = daemon.connection()
        c.request("GET", "/v1/events/stream")
        status = c.getresponse().status
        c.close()
        return status == 200
    assert wait_for(room, 60)
