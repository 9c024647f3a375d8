"""A collector that is told what the daemon did, by cloche-otlp, which nobody waits for. What it reads: conformance/test_otlp.py."""
import os
import signal
import socket
import time

import pytest

from helpers import requirement
from helpers.collector import Collector
from helpers.daemon import Daemon, is_sanitized, status_of
from helpers.hook import certificate_of
from helpers.runner import wait_for

pytestmark = requirement("R89")


def only_traces(collector):
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.base, "OTEL_METRICS_EXPORTER": "none"}


@pytest.fixture
def serve(cloche, request):
    """@flags, after those of the collector at @where; @variables in its environment."""
    def start(where, *flags, variables=None, **more):
        for name in [n for n in cloche.env if n.startswith("OTEL_")]:
            del cloche.env[name]
        cloche.env.update({"OTEL_BSP_SCHEDULE_DELAY": "100", **(variables or {})})
        daemon = Daemon(cloche, *(("--otlp-endpoint", where) if where else ()), *flags, **more)
        request.addfinalizer(lambda: daemon.process.poll() is None and daemon.stop())
        return daemon
    return start


@pytest.fixture
def collectors(request):
    def make(*answers, **more):
        made = Collector(*answers, **more)
        request.addfinalizer(made.close)
        return made
    return make


def traces(collector, n=1):
    assert wait_for(lambda: len(collector.posts("/v1/traces")) >= n, 60), collector.told
    return collector.posts("/v1/traces")


def test_nobody_is_told_unless_it_is_asked_for(serve):
    daemon = serve(None)
    daemon.create().exec("true")
    assert not daemon.processes("cloche-otlp")
    assert daemon("GET", "/v1/version").headers["traceparent"].endswith("-00")


def test_commands_only_where_asked_for(serve, collectors, cloche):
    collector = collectors(200)
    daemon = serve(collector.base, "--otlp-commands", "on")
    secret = "a-value-that-nobody-may-see-0123456789"
    (cloche.home / "value").write_text(secret)
    box = daemon.create(policy={"env": {"SERVICE_PASSWORD": secret}})
    box.exec(f"echo the-words {secret}")
    assert daemon.stop() == 0
    said = b"".join(told.body for told in collector.told)
    assert b"the-words" in said and b"process.command_line" in said and secret.encode() not in said


def test_it_has_an_own_user_and_few_rights(serve, collectors):
    daemon = serve(collectors(200).base)
    if is_sanitized(daemon):
        pytest.skip("a sanitized build has no filters")
    pid, = daemon.running("cloche-otlp")
    assert wait_for(lambda: status_of(pid)["Seccomp"].strip() == "2", 60)
    state = status_of(pid)
    assert int(state["CapEff"], 16) == 0 and state["NoNewPrivs"].strip() == "1"
    if os.getuid() == 0:
        assert state["Uid"].split()[1] not in ("0", status_of(daemon.processes("cloche-warden")[0])["Uid"].split()[1])


def test_headers_and_tls(serve, collectors, cloche):
    cert, key = certificate_of(cloche.home)
    collector = collectors(200, certificate=(cert, key))
    headers = cloche.home / "headers"
    headers.write_text("# of the collector\nAuthorization: Bearer of-the-collector\nX-Tenant: one\n")
    headers.chmod(0o600)
    daemon = serve(collector.base, "--otlp-headers", str(headers), "--otlp-ca", str(cert))
    daemon("GET", "/v1/version")
    told = traces(collector)[0]
    assert told.headers["Authorization"] == "Bearer of-the-collector" and told.headers["X-Tenant"] == "one", told.headers
    for pid in [daemon.process.pid, *daemon.processes("cloche-otlp")]:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            assert b"of-the-collector" not in f.read()
    assert daemon.stop() == 0 and "of-the-collector" not in daemon.log


def test_another_server_is_told_nothing(serve, collectors, cloche):
    cert, key = certificate_of(cloche.home, "DNS:other.example")
    collector = collectors(200, certificate=(cert, key))
    daemon = serve(collector.base, "--otlp-ca", str(cert))
    daemon("GET", "/v1/version")
    assert daemon.stop() == 0 and not collector.told


def test_variables_of_opentelemetry(serve, collectors):
    collector = collectors(200)
    daemon = serve(None, variables={
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.base + "/", "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b,x-other=c",
        "OTEL_SERVICE_NAME": "agents", "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=t%C3%A9st,service.name=not-this",
        "OTEL_METRIC_EXPORT_INTERVAL": "1000", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"})
    daemon("GET", "/v1/version")
    told = traces(collector)[0]
    assert (told.headers["x-key"], told.headers["x-other"]) == ("a b", "c")
    assert b"agents" in told.body and "tést".encode() in told.body and b"not-this" not in told.body
    assert wait_for(lambda: collector.posts("/v1/metrics"), 60)


@pytest.mark.parametrize("which", ["traces", "metrics"])
def test_one_signal_has_a_place_of_its_own(serve, collectors, which):
    one, other = collectors(200), collectors(200)
    daemon = serve(None, variables={"OTEL_EXPORTER_OTLP_ENDPOINT": other.base, "OTEL_METRIC_EXPORT_INTERVAL": "1000",
                                    f"OTEL_EXPORTER_OTLP_{which.upper()}_ENDPOINT": one.base + "/mine",
                                    f"OTEL_{'METRICS' if which == 'traces' else 'TRACES'}_EXPORTER": "none"})
    daemon("GET", "/v1/version")
    assert wait_for(lambda: one.posts("/mine"), 60)
    assert daemon.stop() == 0 and not other.told and {told.path for told in one.told} == {"/mine"}


@pytest.mark.parametrize("variables", [
    {"OTEL_SDK_DISABLED": "true"}, {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector.example:4318"},
    {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "nonsense"},
])
def test_variables_that_mean_something_else(serve, collectors, variables):
    """They are other programs' too: the daemon starts, and says what does not count."""
    daemon = serve(None, variables={"OTEL_EXPORTER_OTLP_ENDPOINT": collectors(200).base, **variables})
    assert not daemon.processes("cloche-otlp") and daemon("GET", "/v1/version").ok
    assert daemon.stop() == 0
    assert ("does not count" in daemon.log) == ("OTEL_SDK_DISABLED" not in variables and "OTEL_TRACES_EXPORTER" not in variables), daemon.log


@pytest.mark.parametrize("path", ["/none/at/all.pem", "hook.pem"])
def test_a_certificate_that_cannot_be_read_does_not_count(serve, collectors, cloche, path):
    certificate_of(cloche.home)
    collector = collectors(200)
    daemon = serve(None, variables={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.base, "OTEL_EXPORTER_OTLP_CERTIFICATE": path})
    daemon("GET", "/v1/version")
    traces(collector)
    assert daemon.stop() == 0 and "OTEL_EXPORTER_OTLP_CERTIFICATE is no absolute path" in daemon.log


def works(daemon, times=20):
    """It answers, makes and runs as if nobody was told; the longest that one took."""
    longest = 0.0
    box = daemon.create()
    for _ in range(times):
        began = time.monotonic()
        assert box.exec("true")["exit_code"] == 0
        longest = max(longest, time.monotonic() - began)
    return longest


@pytest.mark.parametrize("how", ["down", "silent", "garbage", "hangs up", "endless"])
def test_a_collector_that_is_none(serve, how):
    """Down, hung, or speaking nonsense: nothing waits for it, not even the end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if how == "down":
            server.close()
        daemon = serve(f"http://127.0.0.1:{port}", "--otlp-timeout", "2s", "--otlp-interval", "1s")
        assert works(daemon) < 10
        if how not in ("down", "silent"):
            server.settimeout(60)
            for _ in range(2):
                with server.accept()[0] as client:
                    client.settimeout(60)
                    client.recv(65536)
                    try:
                        client.sendall({"garbage": b"\x16\x03\x01 no http\r\n\r\n", "hangs up": b"HTTP/1.1 ",
                                        "endless": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 4000}[how])
                    except OSError:
                        pass
        assert works(daemon) < 10
        began = time.monotonic()
        assert daemon.stop() == 0 and time.monotonic() - began < 30


def test_tried_again_when_the_collector_says_so(serve, collectors):
    collector = collectors((503, {"Retry-After": "2"}, b""), (429, {}, b""), 200)
    daemon = serve(None, variables=only_traces(collector))
    daemon("GET", "/v1/version")
    first, second, third = traces(collector, 3)[:3]
    assert first.body == second.body == third.body and second.at - first.at > 1.8


@pytest.mark.parametrize("status", [400, 404, 500, 302])
def test_what_is_refused_is_not_tried_again(serve, collectors, status):
    other = collectors(200)
    collector = collectors((status, {"Location": other.base}, b""), 200)
    daemon = serve(None, variables=only_traces(collector))
    daemon("GET", "/v1/version")
    first = traces(collector)[0]
    daemon("GET", "/v1/version")
    assert daemon.stop() == 0 and not other.told
    assert f"the collector answered {status}" in daemon.log
    assert [told.body for told in collector.told].count(first.body) == 1


def test_what_the_collector_did_not_take_is_counted(serve, collectors):
    """partial_success: { rejected_spans: 1 }"""
    collector = collectors((200, {}, b"\x0a\x02\x08\x01"))
    daemon = serve(collector.base, "--otlp-interval", "1s")
    daemon("GET", "/v1/version")
    traces(collector)
    assert wait_for(lambda: any(b"refused" in t.body for t in collector.posts("/v1/metrics")), 60)
    assert daemon.stop() == 0 and "the collector refused them" in daemon.log


def test_spans_that_find_no_room_are_dropped_and_counted(serve):
    """2,048 wait, and a socket's worth while the exporter stands still."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        daemon = serve(f"http://127.0.0.1:{silent.getsockname()[1]}", "--otlp-timeout", "300s", "--otlp-interval", "1h", "--rate-limit", "0")
        connection = daemon.connection()
        for _ in range(5200):
            connection.request("GET", "/health")
            assert connection.getresponse().read() is not None
        connection.close()
        assert daemon.stop() == 0
    assert "too many wait" in daemon.log, daemon.log


def test_one_that_stands_still_holds_nobody_up(serve, collectors):
    collector = collectors(200)
    daemon = serve(collector.base)
    pid, = daemon.running("cloche-otlp")
    os.kill(pid, signal.SIGSTOP)
    connection = daemon.connection()
    for _ in range(1500):
        connection.request("GET", "/health")
        assert connection.getresponse().read() is not None
    connection.close()
    assert works(daemon, 3) < 10
    os.kill(pid, signal.SIGCONT)
    traces(collector)
    # what was lost meanwhile is known with the next span that gets through
    daemon("GET", "/v1/version")
    assert daemon.stop() == 0 and "too many wait" in daemon.log, daemon.log


@pytest.mark.parametrize("name", ["cloche-otlp", "cloche-warden", "cloche-front"])
def test_it_goes_on(serve, collectors, name):
    collector = collectors(200)
    daemon = serve(collector.base)
    former = daemon.running(name)[0]
    os.kill(former, signal.SIGKILL)
    assert wait_for(lambda: daemon.processes(name) and daemon.processes(name) != [former], 60)

    def told():
        try:
            box = daemon.create()
            box.exec("true")
        except (OSError, AssertionError, KeyError, ValueError):
            return False
        return any(b"sandbox exec" in t.body and b"POST /v1/sandboxes" in t.body for t in collector.posts("/v1/traces"))
    assert wait_for(told, 120), "nobody was told after it died"


def test_its_configuration(cloche):
    headers = cloche.home / "headers"
    headers.write_text("X-Key: x\n")
    headers.chmod(0o600)

    def check(text):
        (cloche.home / "serve.yaml").write_text(text)
        return cloche("config", "check", "serve.yaml")
    good = f"otlp-endpoint: https://otel.example.org\notlp-headers: {headers}\notlp-interval: 30s\notlp-timeout: 5s\notlp-commands: 'on'\n"
    assert check(good).ok, check(good)
    for url in ("http://otel.example.org:4318", "otel.example.org", "https://otel.example.org/x?y=z", "https://a:b@otel.example.org"):
        assert "[serve.url]" in check(f"otlp-endpoint: '{url}'\n").err, url
    for text in (f"otlp-headers: {headers}\n", "otlp-endpoint: https://a.example\notlp-headers: /none\n", "otlp-endpoint: https://a.example\notlp-ca: /none\n"):
        assert "[serve.otlp]" in check(text).err, text
    headers.chmod(0o644)
    assert "[serve.otlp.mode]" in check(good).err
