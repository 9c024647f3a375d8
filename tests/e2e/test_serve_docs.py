"""docs/openapi.yaml is what the daemon answers."""
import json
import re

from helpers import requirement
from helpers.routes import REPO, documented, request_of

pytestmark = requirement("R47", "R61")


def in_the_source():
    routes = set()
    for source in (REPO / "src" / "front").rglob("*.c"):
        text = source.read_text()
        routes |= {(m, p) for m, p in re.findall(r'^    \{ "([A-Z]+)", +"(/[^"]+)",', text, flags=re.M) if m != "HEAD"}      # GET's
    table = (REPO / "src" / "adapters" / "routes.h").read_text()
    adapters = set(re.findall(r'^    R\("([A-Z]+)", +"(/[^"]+)",', table, flags=re.M))
    assert ("POST", "/mcp") in adapters and ("GET", "/api/sandbox/status") in adapters
    return routes | adapters


def test_the_file_names_every_route():
    words = {"{id}": "{}", "{path}": "~", "{exec_id}": "{#}", "{context_id}": "{#}", "{exposed_id}": "{*}", "{session_id}": "{*}", "{token}": "{*}", "{file}": "{*}"}
    named = {(m, re.sub(r"\{\w+\}", lambda found: words[found[0]], p)) for m, p in documented()}
    assert named == in_the_source() and len(named) > 35


def test_generators_of_clients_understand_the_file():
    """They leave out a route one of whose bodies has no schema, a schema of its own for each type, or a boolean without a type."""
    text = (REPO / "docs" / "openapi.yaml").read_text()
    assert not re.findall(r"^ +\w+/[\w.+-]+: *(?:\{\})?$(?!\n +schema)", text, flags=re.M)
    assert not re.findall(r"(?<!type: boolean, )\b(?:enum: \[(?:true|false)\]|const: (?:true|false))", text)


def status_only(daemon, method, at):
    c = daemon.connection()
    c.request(method, at)
    status = c.getresponse().status
    c.close()
    return status


def test_every_route_answers_as_the_file_says(daemon):
    box = daemon.create(name="one")
    assert box.put("f", b"x").ok
    # what ends it last; what needs it paused or stopped is refused, which is an answer too
    order = sorted(documented().items(), key=lambda r: (r[0][1] == "/v1/kill", r[0][0] == "DELETE", r[0]))
    for (method, path), statuses in order:
        at, body = request_of(method, path, box.id)
        if path.endswith("/stream"):        # goes on until the client ends it
            assert status_only(daemon, method, at) in statuses
            continue
        answer = daemon(method, at, body)
        assert answer.status in statuses, (method, at, answer, statuses)
        if answer.headers.get("Content-Type") == "application/json":
            json.loads(answer.body)
        if path.startswith("/v1") and not answer.ok:
            assert set(answer.json) == {"error", "code", "detail", "request_id"}, (method, at, answer)
