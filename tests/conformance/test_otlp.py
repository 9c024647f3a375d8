"""Traces and metrics reach a collector that reads them with OpenTelemetry's own package."""
import re
import time

import pytest

from helpers import requirement
from helpers.collector import Collector
from helpers.daemon import Daemon, caller
from helpers.runner import wait_for

pytestmark = requirement("R89")

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
WORK = {"traceparent": f"00-{TRACE}-{PARENT}-01"}


@pytest.fixture
def collector(request):
    made = Collector(200)
    request.addfinalizer(made.close)
    return made


@pytest.fixture
def serve(cloche, collector, request):
    def start(*flags, **more):
        daemon = Daemon(cloche, "--otlp-endpoint", collector.base, *flags, **more)
        request.addfinalizer(lambda: daemon.process.poll() is None and daemon.stop())
        return daemon
    return start


def test_from_request_to_command(serve, collector):
    """One trace: the client's span, the request, what was made or ran for it."""
    began = time.time_ns()
    daemon = serve()
    made = daemon("POST", "/v1/sandboxes", {}, WORK)
    box = made.json["id"]
    assert made.ok and TRACE in made.headers["traceparent"]
    ran = daemon("POST", f"/v1/sandboxes/{box}/exec", {"command": "echo a-word-of-the-command; exit 3"}, WORK)
    assert ran.json["exit_code"] == 3
    assert daemon("DELETE", f"/v1/sandboxes/{box}", headers=WORK).ok
    assert daemon.stop() == 0
    spans = {span.name: span for span in collector.spans() if span.trace == TRACE}
    request, create = spans["POST /v1/sandboxes"], spans["sandbox create"]
    assert request.parent == PARENT and create.parent == request.id and request.id in made.headers["traceparent"]
    post, run = spans["POST /v1/sandboxes/{id}/exec"], spans["sandbox exec"]
    assert post.parent == PARENT and run.parent == post.id and post.id in ran.headers["traceparent"]
    assert spans["sandbox end"].parent == create.id and spans["DELETE /v1/sandboxes/{id}"].parent == PARENT
    assert (request.raw.kind, run.raw.kind) == (2, 1)
    assert post.notes["http.response.status_code"] == 200 and post.notes["http.route"] == "/v1/sandboxes/{id}/exec"
    assert run.notes["process.exit.code"] == 3 and run.notes["cloche.sandbox.id"] == box and run.failed and not post.failed
    for span in spans.values():
        assert began <= span.begin <= span.end <= time.time_ns() and re.fullmatch("[0-9a-f]{16}", span.id), span
    # two processes look at the clock; a busy machine lets one wait
    assert run.begin >= post.begin - 2_000_000 and run.end <= post.end + 10_000_000_000, (run.begin, post.begin, run.end, post.end)
    assert request.resource["service.name"] == "cloche" and request.resource["service.version"]
    # what is run is nobody's business unless it is asked for
    assert b"a-word-of-the-command" not in b"".join(told.body for told in collector.told)


def test_without_a_parent_a_trace_begins_here(serve, collector):
    daemon = serve()
    answer = daemon("GET", "/v1/version")
    version, trace, span, flags = answer.headers["traceparent"].split("-")
    assert daemon.get("/v1/sandboxes").ok       # whoever exports it has heard of it by now
    assert daemon.stop() == 0 and (version, flags) == ("00", "01")
    said = [s for s in collector.spans() if s.trace == trace]
    assert [(s.name, s.id, s.parent) for s in said] == [("GET /v1/version", span, "")]


def test_a_trace_that_is_not_recorded_is_not_told(serve, collector):
    daemon = serve()
    box = daemon("POST", "/v1/sandboxes", {}, {"traceparent": f"00-{TRACE}-{PARENT}-00"}).json["id"]
    daemon("POST", f"/v1/sandboxes/{box}/exec", {"command": "true"}, {"traceparent": f"00-{TRACE}-{PARENT}-00"})
    daemon("GET", "/v1/version")
    assert daemon.stop() == 0 and {s.name for s in collector.spans()} == {"GET /v1/version"}


def test_numbers(serve, collector):
    daemon = serve("--otlp-interval", "1s")
    box = daemon.create()
    box.exec("true")
    assert wait_for(lambda: collector.metrics().get("warden", {}).get("cloche_exec_duration_seconds") is not None and
                    collector.metrics()["warden"]["cloche_exec_duration_seconds"].histogram.data_points[0].count == 1, 60)
    assert wait_for(lambda: "front" in collector.metrics(), 60)
    assert daemon.stop() == 0
    warden, front = collector.metrics()["warden"], collector.metrics()["front"]
    created, = warden["cloche_sandboxes_created"].sum.data_points
    assert created.as_int == 1 and warden["cloche_sandboxes_created"].sum.is_monotonic
    assert warden["cloche_sandboxes_created"].sum.aggregation_temporality == 2 and created.start_time_unix_nano < created.time_unix_nano
    states = {p.attributes[0].value.string_value: p.as_int for p in warden["cloche_sandboxes"].gauge.data_points}
    assert states["ready"] == 1 and states["degraded"] == 0
    ran = warden["cloche_exec_duration_seconds"].histogram.data_points[0]
    assert len(ran.bucket_counts) == len(ran.explicit_bounds) + 1 and sum(ran.bucket_counts) == 1 and 0 < ran.sum < 60
    assert list(ran.explicit_bounds) == sorted(ran.explicit_bounds) and warden["cloche_exec_duration_seconds"].unit == "s"
    assert {p.WhichOneof("value") for p in warden["cloche_process_cpu_seconds"].sum.data_points} == {"as_double"}
    routes = {tuple(a.value.string_value for a in p.attributes): p.as_int for p in front["cloche_http_requests"].sum.data_points}
    assert routes[("POST", "/v1/sandboxes/{id}/exec", "200")] == 1
    assert {p.as_int for p in warden["cloche_otlp_spans_dropped"].sum.data_points} == {0}


def test_what_somebody_decided(serve, collector):
    daemon = serve(gate=None)
    agent = caller(daemon, "agent", name="builder")
    box = agent.create()
    told = agent("POST", f"{box.at}/exec", {"command": "echo the-parameters"}, {**WORK, "Prefer": "respond-async"})
    assert told.status == 202, told
    assert daemon.post(f"/v1/approvals/{told.json['approval']}/deny").ok
    span, = collector.wait_spans("approval")
    assert daemon.stop() == 0
    assert span.trace == TRACE and span.notes["cloche.approval.id"] == told.json["approval"] and span.failed
    assert span.notes["cloche.approval.state"] == "denied" and span.notes["cloche.sandbox.id"] == box.id
    assert b"the-parameters" not in b"".join(t.body for t in collector.told)
