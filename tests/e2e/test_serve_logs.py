"""What the daemon says on stderr, and the traces that requests are part of."""
import json
import re
import socket

import pytest

from helpers import requirement
from helpers.daemon import Daemon, caller
from helpers.runner import wait_for

pytestmark = requirement("R89")
ID, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{ID}-{SPAN}-01"


@pytest.fixture
def serve(cloche):
    made = []

    def start(*flags):
        made.append(Daemon(cloche, *flags))
        return made[-1]
    yield start
    for daemon in made:
        daemon.stop()


def lines_of(daemon):
    """But for what the gate says at the start."""
    assert daemon.stop() == 0, daemon.log
    return [line for line in daemon.log.splitlines() if "the gate " not in line]


def wait_for_line(daemon, *words):
    """A request's line is written when its last byte is sent, which its client may see first."""
    for word in words:
        if word.encode() not in daemon.heard:
            daemon.hear(word.encode())


def requests_of(daemon):
    entries = []
    for line in lines_of(daemon):
        try:
            entries.append(json.loads(line))
        except ValueError:
            pytest.fail(f"not JSON: {line!r}")
    return [entry for entry in entries if entry["message"] == "request"]


def test_a_line_for_each_request(serve):
    daemon = serve("--log-format", "json", "--log-level", "info")
    box = daemon.create(name="one")
    first = daemon.post(f"{box.at}/exec", {"command": "echo hello", "env": {"A": "value-of-a-variable"}})
    second = daemon.get(f"{box.at}/files/secret-file?token=secret-token")
    third = daemon.get("/secret-path")
    agent = caller(daemon, "agent")
    assert agent.get("/v1/sandboxes").ok
    wait_for_line(daemon, *(a.headers["X-Request-Id"] for a in (first, second, third)), '"role":"agent"')
    entries = {e["request_id"]: e for e in requests_of(daemon)}
    one = entries[first.headers["X-Request-Id"]]
    assert set(one) == {"time", "level", "process", "message", "request_id", "trace_id", "method", "route", "role", "status",
                        "duration_us", "bytes_in", "bytes_out"}, one
    assert re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$", one["time"]) and one["level"] == "info"
    assert (one["method"], one["route"], one["status"], one["role"]) == ("POST", "/v1/sandboxes/{id}/exec", 200, "owner")
    assert one["bytes_in"] > 20 and one["bytes_out"] == len(first.body) and one["duration_us"] > 0
    assert re.match("[0-9a-f]{32}$", one["trace_id"]) and one["trace_id"] in first.headers["traceparent"]
    two = entries[second.headers["X-Request-Id"]]
    assert two["route"] == "/v1/sandboxes/{id}/files/{path}" and two["status"] == 404
    assert entries[third.headers["X-Request-Id"]]["route"] == "unmatched"
    assert [e["role"] for e in entries.values()].count("agent") == 1
    # nothing that a client said
    for word in ("secret", "hello", "value-of", box.id, "Bearer", "cloche_agent"):
        assert word not in daemon.log, word


def test_text_is_one_line_each(serve):
    daemon = serve("--log-level", "info")
    assert daemon.get("/v1/version").ok
    wait_for_line(daemon, "route=/v1/version")
    lines = lines_of(daemon)
    assert lines[0].startswith("cloche: serving on unix:")
    found = [line for line in lines if "/v1/version" in line]
    assert len(found) == 1 and found[0].startswith("cloche-front: request request_id="), lines
    assert " method=GET route=/v1/version role=owner status=200 " in found[0]


def test_what_is_not_wanted_is_not_said(serve):
    quiet = serve()
    assert quiet.get("/v1/version").ok
    assert len(lines_of(quiet)) == 1, quiet.log


def test_every_process_speaks_json(serve, cloche):
    import os
    daemon = serve("--log-format", "json")
    [front] = daemon.processes("cloche-front")
    os.kill(front, 9)
    assert wait_for(lambda: daemon.processes("cloche-front") not in ([], [front]), 60)
    entries = [json.loads(line) for line in lines_of(daemon)]
    assert [e["level"] for e in entries[:2]] == ["notice", "warn"], entries
    assert "cloche-front ended" in entries[1]["message"] and {e["process"] for e in entries} == {"cloche"}


def test_nobody_waits_for_a_log(serve):
    """Its stderr is a pipe that nobody empties until the end: requests are answered all the same, lines are counted."""
    daemon = serve("--log-format", "json", "--log-level", "info")
    c = daemon.connection()
    for _ in range(1000):
        c.request("GET", "/health")
        assert c.getresponse().read()
    c.close()
    text = daemon.get("/metrics").body.decode()
    dropped = int(re.search(r'cloche_log_lines_dropped_total\{process="front"\} (\d+)', text)[1])
    lines = [json.loads(line) for line in lines_of(daemon)]     # and those that are there are whole
    assert dropped > 0 and len(lines) < 1000, (dropped, len(lines))


@pytest.mark.parametrize("flags, code", [
    (("--log-format", "xml"), "serve.word"), (("--log-level", "all"), "serve.word"), (("--log-level", ""), "serve.word"),
])
def test_settings_that_are_none(cloche, flags, code):
    refused = cloche("serve", *flags)
    assert refused.code == 125 and f"[{code}]" in refused.err, refused


def test_settings_from_the_file(serve, cloche, tmp_path):
    config = tmp_path / "serve.yaml"
    config.write_text("log-format: json\nlog-level: info\n")
    daemon = serve("--config", str(config))
    assert daemon.get("/health").ok
    wait_for_line(daemon, '"route":"/health"')
    assert [e["route"] for e in requests_of(daemon)] == ["/health"]


# --- traces -----------------------------------------------------------------------------------------------------------

def test_a_trace_goes_on(serve):
    daemon = serve()
    given = daemon("GET", "/v1/version", headers={"traceparent": PARENT}).headers["traceparent"]
    version, trace, span, flags = given.split("-")
    assert (version, trace, flags) == ("00", ID, "01") and re.match("[0-9a-f]{16}$", span) and span != SPAN
    for malformed in (PARENT.upper(), PARENT + "-x", PARENT[:-1], f"00-{'0' * 32}-{SPAN}-01", "00", "", f"ff{PARENT[2:]}"):
        new = daemon("GET", "/v1/version", headers={"traceparent": malformed}).headers["traceparent"]
        assert re.match("00-[0-9a-f]{32}-[0-9a-f]{16}-00$", new) and ID not in new, (malformed, new)
    assert ID in daemon("GET", "/v1/version", headers={"Traceparent": f" \t{PARENT}\t "}).headers["traceparent"]
    # two of them, be they the same, are none
    twice = "".join(f"traceparent: {parent}\r\n" for parent in (PARENT, PARENT))
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(daemon.path))
        s.sendall(f"GET /v1/version HTTP/1.1\r\nHost: localhost\r\n{twice}Connection: close\r\n\r\n".encode())
        said = b"".join(iter(lambda: s.recv(65536), b""))
    assert said.startswith(b"HTTP/1.1 200") and b"traceparent: 00-" in said.lower() and ID.encode() not in said, said
    each = {daemon.get("/v1/version").headers["traceparent"] for _ in range(50)}
    assert len({t.split("-")[1] for t in each}) == 50 and len({t.split("-")[2] for t in each}) == 50


def test_a_command_is_told_its_trace(serve):
    daemon = serve()
    box = daemon.create()

    def told(**members):
        answer = daemon("POST", f"{box.at}/exec", {"command": "echo $TRACEPARENT", **members}, {"traceparent": PARENT})
        return answer.json["stdout"].strip(), answer.headers["traceparent"]
    inside, outside = told()
    assert inside == outside and inside.split("-")[1] == ID
    assert told(env={"TRACEPARENT": "its-own"})[0] == "its-own"
    assert box.exec("echo ${TRACEPARENT-none}")["stdout"] == "none\n"      # only where the client has one


@requirement("R45")
def test_the_record_has_the_trace(serve):
    daemon = serve()
    box = daemon.create()
    daemon("POST", f"{box.at}/exec", {"command": "true"}, {"traceparent": PARENT})
    box.exec("true")

    def entries():
        got = daemon.get(f"/v1/audit?sandbox={box.id}&limit=1000").json["entries"]
        return [e for e in got if (e.get("metadata") or {}).get("capability") == "exec"]
    assert wait_for(lambda: len(entries()) == 4, 60), entries()
    traces = {}
    for e in entries():
        traces.setdefault(e["metadata"]["operation"], []).append(e["traceId"])
    assert sorted(map(len, traces.values())) == [2, 2], traces      # the question, and how it ended
    first, second = [traces[k] for k in sorted(traces)]
    assert first == [ID, ID] and second[0] == second[1] and re.match("[0-9a-f]{32}$", second[0]) and second[0] != ID
