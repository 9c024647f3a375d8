"""Attacks by pages of other sites: what a browser is told of whose answers they may read, and what they may send."""
import pytest

from helpers import requirement
from helpers.daemon import Daemon

pytestmark = requirement("R61")

SITES = ("https://console.example.org", "http://desk.example:3000")
FOREIGN = ["null", "", "*", "https://evil.example", "http://console.example.org", "https://console.example.org:8443",
           "https://console.example.org.evil.example", "https://evilconsole.example.org", "https://console.example.orgx",
           "https://x.console.example.org", "https://console.example.org@evil.example", "https://evil.example/https://console.example.org",
           "https://console.example.org/", "https://console.example.org, https://evil.example", "https://evil.example https://console.example.org",
           "console.example.org", "https://", "https:console.example.org", "file://", "http://desk.example", "http://desk.example:30000",
           "https://desk.example:3000", "https://console.example.org#", "https://console.example.org%2eevil.example"]
PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}


@pytest.fixture
def daemon(cloche):
    path = cloche.home / "s"
    flags = [flag for site in SITES for flag in ("--allowed-origins", site)]
    made = Daemon(cloche, *flags, path=path, tcp=True)
    yield made
    assert made.stop() == 0, made.log


def told(answer):
    """What a browser is told of it: never that a page may use what the browser holds for us."""
    said = {name.lower()[15:]: value for name, value in answer.headers.items() if name.lower().startswith("access-control-")}
    assert "allow-credentials" not in said and said.get("allow-origin") != "*", answer.headers
    return said


def asked(remote, method, path, origin, body=None, **more):
    return remote(method, path, body, {"Origin": origin, **more})


def test_a_page_that_may_ask_reads_its_answers(daemon):
    """As a browser does it: first a question without a credential, then the request; of every kind of answer."""
    far = daemon.remote(daemon.token())
    box = far.create()
    for site in SITES:
        may = asked(daemon.remote(), "OPTIONS", f"{box.at}/exec", site, **PREFLIGHT)
        said = told(may)
        assert may.status == 204 and may.body == b"" and said["allow-origin"] == site and may.headers["Vary"] == "Origin", may.headers
        assert said["allow-methods"].split(", ")[0] == "POST" and int(said["max-age"]) > 0
        assert {"authorization", "content-type", "x-sandbox-key", "if-match", "idempotency-key", "range", "last-event-id",
                "prefer"} <= set(said["allow-headers"].lower().split(", ")), said
        for remote, method, path, body, status in (
                (far, "POST", f"{box.at}/exec", {"command": "echo hello"}, 200), (far, "GET", "/v1/sandboxes", None, 200),
                (daemon.remote(), "GET", "/v1/sandboxes", None, 401), (far, "GET", "/v1/none", None, 404),
                (far, "PUT", "/v1/sandboxes", None, 405), (far, "POST", f"{box.at}/exec", b"{", 400),
                (far, "GET", "/api/sandbox/status", None, 200), (far, "GET", f"{box.at}/policy", None, 200),
                (daemon.remote(), "GET", "/v1/health", None, 200)):
            answer = asked(remote, method, path, site, body)
            said = told(answer)
            assert answer.status == status and said["allow-origin"] == site and answer.headers["Vary"] == "Origin", (path, answer)
            assert {"etag", "location", "x-request-id", "retry-after", "content-range"} <= set(said["expose-headers"].lower().split(", "))
    may = asked(daemon, "OPTIONS", f"{box.at}/files/x", SITES[0], **PREFLIGHT)      # the owner's socket has pages too
    assert may.status == 204 and {"GET", "HEAD", "PUT", "DELETE"} <= set(told(may)["allow-methods"].split(", "))
    assert told(asked(daemon.remote(), "OPTIONS", "/api/sandbox/exec", SITES[0], **PREFLIGHT))["allow-methods"] == "POST"


def test_others_are_told_nothing(daemon):
    box = daemon.create()
    far = daemon.remote(daemon.token())
    for origin in FOREIGN:
        for remote in (far, daemon):
            for method, path, more in (("GET", "/v1/sandboxes", {}), ("POST", f"{box.at}/exec", {}), ("OPTIONS", f"{box.at}/exec", PREFLIGHT),
                                       ("OPTIONS", "/v1/health", PREFLIGHT), ("OPTIONS", "*", PREFLIGHT)):
                answer = asked(remote, method, path, origin, {"command": "touch was-here"} if method == "POST" else None, **more)
                assert answer.status == 403 and told(answer) == {}, (origin, method, path, answer.headers)
    assert box.read("was-here").status == 404
    for headers in ({}, {"Origin": SITES[0]}):      # who is no browser, and a question of which half is there
        answer = far("OPTIONS", f"{box.at}/exec", None, headers if headers else PREFLIGHT)
        assert answer.status == 405 and "allow-methods" not in told(answer), answer.headers
    assert told(far("GET", "/v1/sandboxes")) == {} and far("GET", "/v1/sandboxes").headers["Vary"] == "Origin"
    host, port = daemon.addresses()[0]
    assert told(asked(far, "GET", "/v1/sandboxes", f"http://{host}:{port}")) == {}     # its own page needs no leave
    assert asked(daemon.remote(), "OPTIONS", "/v1/none", SITES[0], **PREFLIGHT).status == 404


def test_what_is_not_the_apis_is_shared_with_nobody(daemon):
    """Pages on which somebody decides are read by no other site's; previews say themselves who may read them."""
    box, remote = daemon.create(), daemon.remote()
    which = "0" * 32
    for method, path, more in (("GET", f"/approvals/{which}", {}), ("GET", "/approvals/style.css", {}), ("POST", f"/approvals/{which}", {}),
                               ("OPTIONS", f"/approvals/{which}", PREFLIGHT), ("PUT", f"/approvals/{which}", {})):
        answer = asked(remote, method, path, SITES[0], **more)
        assert told(answer) == {} and answer.status != 204, (method, path, answer.headers)
    made = daemon.post(f"{box.at}/ports", {"port": 8000})
    assert made.status == 201, made
    for path, headers in ((made.json["path"], {}), ("/", {"Host": made.json["host_url"][7:-1]}), ("/preview/" + "0" * 40 + "/", {})):
        for method in ("GET", "OPTIONS", "TRACE"):
            answer = asked(remote, method, path, SITES[0], **headers, **PREFLIGHT)
            said = {name.lower() for name in answer.headers}
            assert answer.status >= 400 and not any(name.startswith("access-control-") for name in said), (method, path, answer.headers)
