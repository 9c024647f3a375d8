"""Rules about a port, methods and paths of a host: in settings, in `policy` and `why`, and as runs obey them."""
import json

import pytest

from helpers import requirement
from helpers.internet import SITE4

pytestmark = requirement("R02", "R13", "R14")
API = {"host": "api.example.org", "port": 80, "methods": ["GET", "HEAD"], "path": "/v1/**"}


@pytest.fixture
def settings(project):
    def write(allow, deny=(), name="rules.json"):
        path = project / name
        path.write_text(json.dumps({"network": {"allow": list(allow), "deny": list(deny)}}), encoding="utf-8")
        return path
    return write


# --- settings -------------------------------------------------------------------------------------------------------

def test_yaml_and_json_say_the_same(cloche, project, settings):
    yaml = project / "rules.yaml"
    yaml.write_text("network:\n  allow:\n    - ok.example.org\n"
                    "    - {host: api.example.org, port: 80, methods: [GET, HEAD], path: '/v1/**'}\n", encoding="utf-8")
    shown = [cloche("policy", "show", "--json", "--settings", path).json["network"]["allow"]
             for path in (yaml, settings(["ok.example.org", API]))]
    for rows in shown:
        assert [r["value"] for r in rows] == ["ok.example.org", "api.example.org:80"]
        assert rows[1]["methods"] == ["GET", "HEAD"] and rows[1]["path"] == "/v1/**" and "path" not in rows[0]
    text = cloche("policy", "show", "--settings", yaml)
    assert "api.example.org:80 GET,HEAD /v1/**" in text.out and "rules.yaml:4" in text.out, text


@pytest.mark.parametrize("rule,code,words", [
    ({"methods": ["GET"]}, "policy.rule.host", ["network.allow[1]"]),
    ({"host": "*.com"}, "policy.host.too-wide", ["network.allow[1].host", "*.com"]),
    ({"host": "a.example.org:80", "port": 80}, "policy.host.port", ["network.allow[1].port"]),
    ({"host": "a.example.org", "port": 0}, "policy.host.port", ["network.allow[1].port"]),
    ({"host": "a.example.org", "port": 70000}, "policy.host.port", ["70000"]),
    ({"host": "a.example.org", "port": "80"}, "policy.type", ["network.allow[1].port"]),
    ({"host": "a.example.org", "methods": "GET"}, "policy.type", ["network.allow[1].methods"]),
    ({"host": "a.example.org", "methods": []}, "policy.rule.methods", ["network.allow[1].methods"]),
    ({"host": "a.example.org", "methods": ["get"]}, "policy.rule.methods", ["network.allow[1].methods[0]", "get"]),
    ({"host": "a.example.org", "methods": ["CONNECT"]}, "policy.rule.methods", ["CONNECT"]),
    ({"host": "a.example.org", "methods": ["GET"] * 17}, "policy.rule.methods", ["17"]),
    ({"host": "a.example.org", "path": "v1"}, "policy.rule.path", ["network.allow[1].path", "v1"]),
    ({"host": "a.example.org", "path": "/v1?x=1"}, "policy.rule.path", ["query"]),
    ({"host": "a.example.org", "path": "/v1/../x"}, "policy.rule.path", ["/v1/../x"]),
    ({"host": "a.example.org", "path": "/%2e%2e/x"}, "policy.rule.path", []),
    ({"host": "a.example.org", "path": "/["}, "policy.rule.path", []),
    ({"host": "a.example.org", "paths": ["/v1"]}, "policy.unknown-key", ["paths", "path"]),
    ({"host": "2001:db8::1", "port": 80}, "policy.host.colons", ["brackets"]),
    (7, "policy.type", ["network.allow[1]"]),
], ids=lambda v: json.dumps(v)[:40])
def test_what_is_no_rule_is_refused_with_line_and_key(cloche, project, rule, code, words):
    path = project / "bad.json"
    path.write_text('{"network": {"allow": [\n"ok.example.org",\n' + json.dumps(rule) + "]}}", encoding="utf-8")
    result = cloche("policy", "check", path)
    assert result.code == 125 and f"[{code}]" in result.err and "bad.json:3" in result.err, result
    assert all(word in result.err for word in words), result


def test_srt_settings_have_no_such_rules(cloche, project):
    path = project / "srt.json"
    path.write_text(json.dumps({"network": {"allowedDomains": [API], "deniedDomains": []},
                                "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []}}), encoding="utf-8")
    assert cloche("policy", "check", path).code == 125


@pytest.mark.parametrize("words,allowed,reason", [
    (["--host", "api.example.org:80"], True, "allow-domain"),
    (["--host", "api.example.org:80", "--method", "GET", "--url-path", "/v1/x"], True, "allow-domain"),
    (["--host", "api.example.org:80", "--url-path", "/v1"], True, "allow-domain"),
    (["--host", "api.example.org:80", "--method", "POST", "--url-path", "/v1/x"], False, "scope-no-rule"),
    (["--host", "api.example.org:80", "--method", "GET"], False, "scope-no-rule"),
    (["--host", "api.example.org:80", "--url-path", "/v1/%2e%2e/x"], False, "path-ambiguous"),
    (["--host", "api.example.org:443", "--url-path", "/v1/x"], False, "port-no-rule"),
    (["--host", "api.example.org:80", "--url-path", "/v1/secret/x"], False, "deny-domain"),
], ids=lambda v: "-".join(v) if isinstance(v, list) else str(v))
def test_why(cloche, settings, words, allowed, reason):
    path = settings([API], [{"host": "*.example.org", "path": "/v1/secret/**"}])
    result = cloche("why", *words, "--settings", path, "--json")
    assert (result.code, result.json["reason"]) == (0 if allowed else 1, reason), result
    if reason == "deny-domain":
        assert result.json["rule"] == "*.example.org /v1/secret/**" and result.json["source"]["line"] == 1


def test_why_says_that_requests_are_looked_at(cloche, settings):
    assert "--url-path" in cloche("why", "--host", "api.example.org:80", "--settings", settings([API])).out
    result = cloche("why", "--path", "/etc", "--method", "GET")
    assert result.code == 125 and "[cli.usage]" in result.err, result


# --- runs -----------------------------------------------------------------------------------------------------------

CASES = [
    ("GET", "/v1/items", 200), ("HEAD", "/v1", 200), ("GET", "/v1/?q=/../x", 200), ("POST", "/v1/items", 403),
    ("GET", "/v2", 403), ("GET", "/", 403), ("PUT", "/open/x", 200), ("GET", "/open/x", 403),
    ("GET", "/v1/secret", 403), ("GET", "/v1/secret/deep/x", 403), ("GET", "/v1/secrets", 200),
]


@pytest.mark.root
@pytest.mark.parametrize("transparent", [False, True], ids=["proxy", "transparent"])
@pytest.mark.parametrize("turned", [False, True], ids=["in-order", "turned"])
def test_requests(online, settings, transparent, turned):
    """Several rules for one host, in any order; deny beats them all."""
    online.net.names["api.example.org"] = [("A", SITE4)]
    allow = [API, {"host": "*.example.org", "methods": ["PUT"], "path": "/open/*"}]
    deny = [{"host": "api.example.org", "path": "/v1/secret/**"}, {"host": "api.example.org", "methods": ["DELETE"]}]
    path = settings(allow[::-1] if turned else allow, deny[::-1] if turned else deny)
    words = [w for method, target, _ in CASES
             for w in ("--next", "-sS", "--max-time", "40", "-o", "/dev/null", "-w", "%{http_code}\\n",
                       *(["-I"] if method == "HEAD" else ["-X", method]), f"http://api.example.org{target}")]
    result = online.curl(*words[1:], allow=(), flags=["--settings", path, "--json"], transparent=transparent)
    codes = [int(line) for line in result.json["stdout"].split()]
    assert codes == [code for _, _, code in CASES], result
    assert [(r["method"], r["path"]) for r in online.net.requests] == \
        [(method, target) for method, target, code in CASES if code == 200]
    rules = {d["rule"] for d in result.json["denied"] if d["target"] == "api.example.org:80"}
    assert rules == {"scope-no-rule", "api.example.org /v1/secret/**"}, result.json["denied"]


@pytest.mark.root
def test_a_rule_without_scope_opens_what_a_scoped_one_does_not(online, settings):
    path = settings([{"host": "ok.example.org", "path": "/v1/**"}, "ok.example.org"])
    result = online.curl("https://ok.example.org/a", "http://ok.example.org/b/../c", "--path-as-is", allow=(),
                         flags=["--settings", path])
    assert result.ok and len(online.net.requests) == 2, result
