"""A member that is null is as one that is not there: in every request that has members, by the tables of routes and of tools."""
import itertools
import re

import pytest

from helpers import mcp, requirement
from helpers.attach import ticket
from helpers.daemon import Daemon
from helpers.routes import BODIES, REPO, request_of

pytestmark = requirement("R47", "R61")


@pytest.fixture
def daemon(cloche):
    made = Daemon(cloche, "--max-sandboxes", "40")
    yield made
    assert made.stop() == 0, made.log


def members():
    """{(METHOD, path): [member, ...]} of the bodies that docs/openapi.yaml describes, but of merge patches, where null removes."""
    text = (REPO / "docs" / "openapi.yaml").read_text(encoding="utf-8")
    schemas, found, path, method, is_body = {}, {}, None, None, False
    for part in re.split(r"\n    (?=\w+:\n)", text.split("\n  schemas:")[1]):
        schemas[part.strip().split(":")[0]] = re.findall(r"^        (\w+):", part, flags=re.M)
    for line in text.split("\nsecurity:")[0].splitlines():
        if at := re.match(r"  (/\S+):$", line):
            path = at[1]
        elif at := re.match(r"    (\w+):$", line):
            method, is_body = at[1].upper(), False
        elif re.match(r"      \w+:", line):
            is_body = line == "      requestBody:"
        elif is_body and "form" not in line and (at := re.search(r"#/components/schemas/(\w+)", line)):
            found[method, path] = schemas[at[1]]
        elif is_body and (at := re.match(r" {16}(\w+): \{", line)):
            found.setdefault((method, path), []).append(at[1])
    return {k: v for k, v in found.items() if k[0] != "PATCH" and k[1].startswith("/v1")}


def said(answer):
    return answer.status, None if answer.ok else (answer.json["code"], answer.json["error"])


def bodies(daemon, box):
    """A function (METHOD, path) -> (path, body) of requests that the routes take, one after the other of the same route too."""
    numbers = itertools.count()

    def fresh(method, path):
        at, whole = request_of(method, path, box.id)
        whole = {k: v for k, v in (whole or {}).items() if k != "name"}      # of which there is one
        if path.endswith("/snapshot"):
            whole = {"name": f"t{next(numbers)}"}
        elif path.endswith("/attach/open"):
            whole = {"ticket": ticket(daemon, box)["ticket"]}
        elif path.endswith("/console/open"):
            whole = {"ticket": daemon.post("/v1/console", {}).json["ticket"]}
        return at, whole
    return fresh


def test_every_route_takes_it_for_absent(daemon):
    routes, box = members(), daemon.create(name="one")
    fresh = bodies(daemon, box)
    assert len(routes) >= 11 and sum(map(len, routes.values())) > 40, routes
    for (method, path), names in sorted(routes.items()):
        at, whole = fresh(method, path)
        empty, full = said(daemon(method, at, {})), said(daemon(method, at, whole))
        for name in names:
            assert said(daemon(method, at, {name: None})) == empty, (at, name)
        assert said(daemon(method, at, {**dict.fromkeys(names), **fresh(method, path)[1]})) == full, at
        # there is no command and no context of that number
        assert path not in BODIES or full[0] in (200, 201, 404 if re.search(r"{(exec|context)_id}", path) else 200), (at, full)


def test_also_further_down(daemon):
    box = daemon.create(labels={"a": None, "b": "1"}, recovery={"after": 9, "tries": None}, volume=None)
    assert daemon.get(box.at).json["labels"] == {"b": "1"}
    answer = daemon.post("/v1/execute", {"language": "shell", "code": "cat a; echo ${A-none}", "env": {"A": None}, "limits": {"time": None},
                                         "files": [{"path": "a", "content": "text\n", "content_base64": None}]})
    assert answer.ok and answer.json["stdout"] == "text\nnone\n", answer
    assert daemon.post(f"{box.at}/exec", {"command": [None]}).json["code"] == "exec.request"     # which is no member
    # in a policy it has a meaning of its own
    assert daemon.post("/v1/sandboxes", {"policy": {"env": {"PATH": None}}}).ok


def test_every_tool_takes_it_for_absent(daemon):
    client = mcp.Client(daemon)
    tools = {t["name"]: t["inputSchema"] for t in client("tools/list")["result"]["tools"]}
    wanting = {name: schema for name, schema in tools.items() if schema.get("required")}
    assert len(wanting) > 5
    for name, schema in wanting.items():
        nothing = client.call(name)
        for member in schema["properties"]:
            assert client.call(name, **{member: None}) == nothing, (name, member)
