"""docs/openapi.yaml is what the daemon answers."""
import json
import re
from pathlib import Path

import pytest

from helpers import requirement
from helpers.daemon import Daemon

pytestmark = requirement("R47", "R61")
REPO = Path(__file__).resolve().parents[2]


def documented():
    """{(METHOD, path): {status, ...}}: the file's own two-space steps are all of YAML that is needed here."""
    routes, path, method = {}, None, None
    for line in (REPO / "docs" / "openapi.yaml").read_text().split("\nsecurity:")[0].splitlines():
        if found := re.match(r"  (/\S+):$", line):
            path = found[1]
        elif found := re.match(r"    (get|put|post|patch|delete):$", line):
            method = found[1].upper()
            routes[method, path] = set()
        elif found := re.match(r'        "(\d{3})":$', line):
            routes[method, path].add(int(found[1]))
    return routes


def in_the_source():
    routes = set()
    for source in (REPO / "src" / "front").rglob("*.c"):
        text = source.read_text()
        routes |= {(m, p) for m, p in re.findall(r'^    \{ "([A-Z]+)", +"(/[^"]+)",', text, flags=re.M)}
    return routes


def test_the_file_names_every_route():
    named = {(m, p.replace("{id}", "{}").replace("{path}", "~")) for m, p in documented()}
    assert named == in_the_source() and len(named) > 35


@pytest.fixture
def daemon(cloche):
    made = Daemon(cloche)
    yield made
    assert made.stop() == 0, made.log


BODIES = {"/v1/sandboxes": {"name": "another"}, "/v1/tokens": {"role": "auditor"}, "/v1/sandboxes/{id}/exec": {"command": "true"}}


def test_every_route_answers_as_the_file_says(daemon):
    box = daemon.create(name="one")
    assert box.put("f", b"x").ok
    # what ends it last; what needs it paused or stopped is refused, which is an answer too
    order = sorted(documented().items(), key=lambda r: (r[0][1] == "/v1/kill", r[0][0] == "DELETE", r[0]))
    for (method, path), statuses in order:
        at = path.replace("{id}", box.id).replace("{path}", "new" if method == "POST" else "f" if "dirs" not in path else "")
        body = BODIES.get(path) if method == "POST" else {} if method == "PATCH" else b"y" if method == "PUT" else None
        answer = daemon(method, at, body)
        assert answer.status in statuses, (method, at, answer, statuses)
        if answer.headers["Content-Type"] == "application/json":
            json.loads(answer.body)
        if path.startswith("/v1") and not answer.ok:
            assert set(answer.json) == {"error", "code", "detail", "request_id"}, (method, at, answer)
