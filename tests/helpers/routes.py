"""The daemon's routes as docs/openapi.yaml has them, and a request of each."""
import re
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]

BODIES = {"/v1/sandboxes": {"name": "another"}, "/v1/tokens": {"role": "auditor"}, "/v1/execute": {"language": "shell", "code": "true"}, "/v1/sandboxes/{id}/exec": {"command": "true"},
          "/v1/sandboxes/{id}/exec/{exec_id}/signal": {"signal": "CONT"}, "/v1/sandboxes/{id}/exec/{exec_id}/stdin": b"y",
          "/v1/sandboxes/{id}/exec/{exec_id}/resize": {"rows": 24, "cols": 80},
          "/v1/sandboxes/{id}/contexts": {"language": "python"}, "/v1/sandboxes/{id}/contexts/{context_id}/execute": {"code": "1"},
          "/v1/sandboxes/{id}/ports": {"port": 8000}, "/v1/sandboxes/{id}/snapshot": {"name": "t"}, "/v1/sandboxes/{id}/messages": {"role": "user", "content": "x"},
          "/v1/console/open": {"ticket": "none"}, "/v1/sandboxes/{id}/attach": {"mode": "write"}, "/v1/sandboxes/{id}/attach/open": {"ticket": "none"}}


def documented():
    """{(METHOD, path): {status, ...}}: the file's own two-space steps are all of YAML that is needed here."""
    routes, path, method = {}, None, None
    for line in (REPO / "docs" / "openapi.yaml").read_text().split("\nsecurity:")[0].splitlines():
        if found := re.match(r"  (/\S+):$", line):
            path = found[1]
        elif found := re.match(r"    (get|put|post|patch|delete|options):$", line):
            method = found[1].upper()
            routes[method, path] = set()
        elif found := re.match(r'        "(\d{3})":(?: \{.*\})?$', line):
            routes[method, path].add(int(found[1]))
    return routes


def request_of(method, path, box):
    """(path, body) of a request that the route would take, on the sandbox @box (an id or name)."""
    if path == "/v1/approvals/stream":
        path += "?follow=false"     # otherwise it has no end
    if path.endswith("/watch"):
        path += "?path=nothing-is-here"     # neither has this
    at = path.replace("{id}", box).replace("{exec_id}", "1").replace("{context_id}", "1").replace("{token}", "none").replace("{file}", "main.js").replace("{path}", "version" if "/browser/" in path else "new" if method == "POST" else "f" if "dirs" not in path else "")
    return at, BODIES.get(path) if method == "POST" else {} if method == "PATCH" else b"y" if method == "PUT" else None
