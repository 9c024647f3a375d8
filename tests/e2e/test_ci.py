"""Named sets of hosts. --preset development: a fixed list. --preset ci: hosts from the CI server's own variables; the sample pipelines of deploy/ci run as they are written."""
import re
from pathlib import Path

import pytest

from helpers import requirement
from helpers.internet import ECHO, SITE4

pytestmark = requirement("R06")
SAMPLES = Path(__file__).resolve().parents[2] / "deploy" / "ci"
GITLAB = {"CI": "true", "GITLAB_CI": "true", "CI_SERVER_URL": "http://ok.example.org:8080",
          "CI_API_V4_URL": "http://ok.example.org:8080/api/v4", "CI_REGISTRY": f"second.example.org:{ECHO}",
          "CI_DEPENDENCY_PROXY_SERVER": "ok.example.org:8443", "CI_SERVER_SHELL_SSH_HOST": "other.example.org",
          "CI_SERVER_SHELL_SSH_PORT": "22", "CI_JOB_TOKEN": "stays-outside"}
GITHUB = {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_SERVER_URL": "https://ok.example.org",
          "GITHUB_API_URL": "http://second.example.org:8080/api", "ACTIONS_RUNTIME_URL": "http://a.example.org/x/",
          "GITHUB_TOKEN": "stays-outside"}
RULES = {"gitlab": ["ok.example.org:8080", "*.ok.example.org:8080", f"second.example.org:{ECHO}", "ok.example.org:8443",
                    "other.example.org:22"],
         "github": ["ok.example.org:443", "second.example.org:8080", "a.example.org:80"]}
JOBS = {"gitlab": GITLAB, "github": GITHUB}


def development(cloche, *flags):
    rows = cloche("policy", "show", "--json", "--preset", "development", *flags).json["network"]["allow"]
    assert {row["from"]["name"] for row in rows if row["value"] != "x.example.org"} == {"--preset development"}, rows
    return [row["value"] for row in rows]


@requirement("R94")
def test_a_named_set_of_hosts_is_shown_whole(cloche):
    hosts = development(cloche)
    assert {"pypi.org", "files.pythonhosted.org", "registry.npmjs.org", "proxy.golang.org", "github.com"} <= set(hosts)
    assert len(set(hosts)) == len(hosts) and not [name for name in hosts if "*" in name or ":" in name]
    assert development(cloche, "--allow-domain", "x.example.org")[0] == "x.example.org"


@requirement("R94")
def test_nobody_has_a_set_that_he_did_not_name(cloche):
    for mode in ("standard", "max"):
        shown = cloche("policy", "show", "--json", "--mode", mode).json["network"]
        assert not shown.get("allow") and shown["mode"]["value"] == "none", shown


@requirement("R94")
def test_a_rule_against_a_host_takes_it_out_of_the_set(cloche):
    for denied, expected in (("github.com", "denied"), ("gitlab.com", "allowed")):
        told = cloche("why", "--json", "--preset", "development", "--deny-domain", denied, "--host", "github.com")
        assert told.json["verdict"] == expected, told
    assert cloche("why", "--json", "--preset", "development", "--host", "gist.github.com").json["verdict"] == "denied"


def test_another_name_is_refused_with_the_known_ones(cloche):
    told = cloche("policy", "show", "--preset", "developer")
    assert told.code == 125 and "ci, development" in told.err and "[policy.preset]" in told.err, told


@pytest.mark.parametrize("server", JOBS)
def test_rules_and_where_they_come_from(cloche, server):
    result = cloche("policy", "show", "--json", "--preset", "ci", env=JOBS[server])
    assert [row["value"] for row in result.json["network"]["allow"]] == RULES[server], result
    origins = [row["from"]["name"] for row in result.json["network"]["allow"]]
    assert all(re.fullmatch(r"--preset ci \([A-Z0-9_]+\)", name) for name in origins), origins


def test_in_settings(cloche, project):
    path = project / "s.yaml"
    path.write_text("preset: ci\nnetwork: {allow: [evil.example.org]}\n", encoding="utf-8")
    result = cloche("policy", "show", "--json", "--settings", path, env=GITHUB)
    assert [row["value"] for row in result.json["network"]["allow"]] == ["evil.example.org", *RULES["github"]], result


def test_a_port_is_that_of_the_scheme_and_addresses_have_no_wildcard(cloche):
    env = {"GITLAB_CI": "true", "CI_SERVER_URL": "https://10.1.2.3/gitlab"}
    result = cloche("policy", "show", "--json", "--preset", "ci", env=env)
    assert [row["value"] for row in result.json["network"]["allow"]] == ["10.1.2.3:443"], result


@pytest.mark.parametrize("env,code", [
    ({}, "missing"),
    ({"CI": "true", "CI_SERVER_URL": "https://ok.example.org"}, "missing"),
    ({**GITLAB, **GITHUB}, "missing"),
    ({"GITLAB_CI": "true"}, "missing"),
    ({**GITLAB, "CI_SERVER_URL": ""}, "missing"),
    ({**GITLAB, "CI_SERVER_URL": "ok.example.org"}, "malformed"),
    ({**GITLAB, "CI_SERVER_URL": "https://*.example.org"}, "malformed"),
    ({**GITLAB, "CI_SERVER_URL": "https://ok.example.org\\@evil.example.org/"}, "malformed"),
    ({**GITLAB, "CI_SERVER_URL": "file:///etc/passwd"}, "malformed"),
    ({**GITLAB, "CI_REGISTRY": "https://ok.example.org"}, "malformed"),
    ({**GITLAB, "CI_REGISTRY": "a b"}, "malformed"),
    ({**GITLAB, "CI_SERVER_SHELL_SSH_PORT": "22x"}, "malformed"),
    ({**GITLAB, "CI_SERVER_SHELL_SSH_PORT": "0"}, "malformed"),
    ({**GITHUB, "GITHUB_API_URL": None}, "missing"),
    ({**GITHUB, "ACTIONS_RUNTIME_URL": "$(evil)"}, "malformed"),
], ids=str)
def test_fails_closed(cloche, env, code):
    result = cloche("run", "--preset", "ci", "--", "/bin/echo", "ran", env=env)
    assert result.code == 125 and result.out == "" and f"[policy.preset.{code}]" in result.err, result


@pytest.mark.parametrize("flags,code", [
    (["--preset", "cd"], "policy.preset"), (["--preset", "ci", "--network", "none"], "policy.network.closed"),
    (["--preset", "ci", "--network", "host"], "policy.network.closed"),
    (["--preset", "ci", "--mode", "off"], "policy.off"),
    (["--preset", "ci", "--mode", "light"], "policy.network.light")], ids=" ".join)
def test_what_it_does_not_go_with(cloche, flags, code):
    result = cloche("run", *flags, "--", "/bin/echo", "ran", env=GITLAB)
    assert result.code == 125 and result.out == "" and f"[{code}" in result.err, result


# --- the samples ------------------------------------------------------------------------------------------------------

def lines_of(server):
    """The job's commands, each of which has to be one line of shell."""
    file, start = {"gitlab": ("gitlab-ci.yml", "    - "), "github": ("github-workflow.yml", "      - run: ")}[server]
    lines = [line[len(start):] for line in (SAMPLES / file).read_text("utf-8").splitlines() if line.startswith(start)]
    assert len(lines) == 3 and all(line.startswith("cloche ") for line in lines), lines
    return lines


AGENT = """set -e; echo "$CI_JOB_TOKEN$GITHUB_TOKEN${CI_SERVER_URL-}${GITHUB_SERVER_URL-}"; echo work > made
for url in %s; do curl -s -o /dev/null -w "%%{http_code} $url\\n" -k $url || echo "none $url"; done"""
REACHABLE = {"gitlab": ["http://ok.example.org:8080/api/v4/projects"],
             "github": ["https://ok.example.org/", "http://second.example.org:8080/api/x", "http://a.example.org/x/y"]}
CLOSED = ["http://evil.example.org/", "http://b.example.org:8080/", "https://second.example.org/"]


@pytest.mark.root
@pytest.mark.parametrize("server", JOBS)
def test_samples(online, project, server):
    urls = REACHABLE[server] + CLOSED
    folder = {"gitlab": "CI_PROJECT_DIR", "github": "GITHUB_WORKSPACE"}[server]
    env = {**JOBS[server], folder: str(project), "AGENT": AGENT % " ".join(urls)}
    env["PATH"] = f"{Path(online.bare.binary).parent}:{online.bare.env['PATH']}"
    online.net.names["other.example.org"] = [("A", SITE4)]
    outs = [online.bare.run([*online.net.words, "/bin/sh", "-ec", line], env=env, cwd=project)
            for line in lines_of(server)]
    assert all(result.ok for result in outs), outs
    assert all(rule in outs[1].out for rule in RULES[server])
    assert "stays-outside" not in outs[2].out and "http" in outs[2].out.splitlines()[0], outs[2]
    answers = {line.split()[1]: line.split()[0] for line in reversed(outs[2].out.splitlines()[1:])}
    assert {u for u in urls if answers[u] == "200"} == set(REACHABLE[server]), outs[2]
    hosts = {u.split("/")[2] for u in REACHABLE[server]}
    assert {r["host"] for r in online.net.requests} == hosts
    assert (project / "made").read_text("utf-8") == "work\n" and (project / "cloche.json").exists()
