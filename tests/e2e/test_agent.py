"""An agent CLI of the usual kind works unmodified, as root and as an ordinary user."""
import os

import pytest

from helpers import requirement
from helpers.places import REPO

AGENT = REPO / "tests/helpers/agent"


@pytest.fixture
def project_with_git(anyone, has):
    has("git", "node", "python3")
    (anyone.project / "package.json").write_text('{"name":"p","version":"1.0.0"}\n', encoding="ascii")
    owner = anyone.project.stat()
    os.chown(anyone.project / "package.json", owner.st_uid, owner.st_gid)
    for argv in (["git", "init", "-q", "-b", "main"], ["git", "add", "."],
                 ["git", "-c", "user.name=O", "-c", "user.email=o@example.org", "commit", "-qm", "first"]):
        result = anyone.run(argv, cwd=anyone.project)
        assert result.ok, result
    return anyone.project


def assert_session(result):
    assert result.ok, result
    said = result.json
    assert said["repair"] == "passed" and said["failingTest"] != 0
    assert said["git"] == {"diff": True, "head": "Repair add"}
    assert said["shell"] == "42" and said["terminal"] == "terminal ok"
    assert said["streaming"] == {"lines": 3, "code": 3} and said["interrupt"] == "SIGTERM"
    assert said["toolServer"] == 2 and said["preview"] == "<h1>preview</h1>"
    assert said["watch"] == "watched.txt" and said["state"] == 1


def test_the_agent_works_bare(anyone, project_with_git):
    assert_session(anyone.run(["node", AGENT / "agent.js"], cwd=project_with_git))


@requirement("R01", "R11")
def test_the_agent_works_in_standard_mode(anyone, project_with_git):
    result = anyone("run", "--workspace", project_with_git, "--bind", f"{AGENT}:/mnt/agent", "--", "node",
                    "/mnt/agent/agent.js")
    assert_session(result)
    head = anyone.run(["git", "log", "-1", "--format=%s"], cwd=project_with_git)
    assert head.out == "Repair add\n"
    assert "a + b" in (project_with_git / "src/add.js").read_text()
    owner = os.stat(project_with_git).st_uid
    assert {p.stat().st_uid for p in project_with_git.rglob("*") if not p.is_symlink()} == {owner}
    assert not (anyone.home / ".agent").exists(), "its state went to the host's home"


@requirement("R82")
def test_the_agent_works_on_a_copy(cloche, command, has):
    has("git", "node")
    (cloche.project / "package.json").write_text('{"name":"p"}\n', encoding="ascii")
    command(["git", "init", "-q", "-b", "main"], cwd=cloche.project)
    command(["git", "add", "."], cwd=cloche.project)
    command(["git", "-c", "user.name=O", "-c", "user.email=o@example.org", "commit", "-qm", "first"],
            cwd=cloche.project)
    report = cloche("run", "--workspace", f"{cloche.project}:cow", "--bind", f"{AGENT}:/mnt/agent", "--json", "--",
                    "node",
                    "/mnt/agent/agent.js")
    assert report.ok, report
    assert not (cloche.project / "src").exists()
    assert command(["git", "log", "-1", "--format=%s"], cwd=cloche.project).out == "first\n"
    identity = report.json["workspace"]["id"]
    assert "src/add.js" in cloche("diff", identity).out
    assert cloche("discard", identity).ok


@requirement("R40")
def test_the_agent_works_in_light_mode(in_mode, has):
    """Without namespaces the project is at its own path; loopback services are closed with the rest of the network."""
    has("git", "node")
    cloche = in_mode("light")
    for argv in (["sh", "-c", "echo '{}' > package.json"], ["git", "init", "-q", "-b", "main"], ["git", "add", "."],
                 ["git", "-c", "user.name=O", "-c", "user.email=o@example.org", "commit", "-qm", "first"]):
        assert cloche.run(argv, cwd=cloche.project).ok, argv
    result = cloche("run", "--mode", "light", "--workspace", cloche.project, "--bind", AGENT, "--", "node",
                    AGENT / "agent.js")
    said = result.json
    failed = {name for name, value in said.items() if isinstance(value, dict) and "error" in value}
    assert failed <= {"preview"}, result
    assert said["repair"] == "passed" and said["git"]["head"] == "Repair add"
