"""What the second source promises of an agent's work: nothing asks it anything inside, what it commits outlives the run, each run begins with a
fresh disk, and no route is there without somebody who guards it."""
import json
import subprocess

import pytest

from helpers import requirement
from helpers.daemon import Daemon, caller
from helpers.routes import documented, request_of

pytestmark = requirement("R96")

# What a cautious tool would ask about, one after the other; a program that reads its terminal for an answer would find its end.
BOLD = """
set -e
mkdir -p src/deep && echo 'echo ran' > src/deep/tool && chmod 755 src/deep/tool && ./src/deep/tool
rm -rf src && ln -s /etc/passwd link && rm -f link
kill -9 $(sh -c 'sleep 1000 >/dev/null 2>&1 & echo $!')
python3 -c "import os, socket, subprocess; subprocess.run(['chmod', '777', '/tmp'], check=False); socket.create_server(('127.0.0.1', 8080)); print('served')"
printf 'it went through\\n'
"""


def test_nothing_is_asked_inside(cloche):
    done = cloche("run", "--", "sh", "-c", BOLD, stdin=b"")
    assert done.ok and done.out == "ran\nserved\nit went through\n" and "?" not in done.err, done


def test_nothing_is_asked_of_what_runs_inside_a_daemons_sandbox(cloche):
    """The gate judges the call from outside once; what the code then does is the wall's business, and nobody is asked."""
    daemon = Daemon(cloche)
    try:
        box = daemon.create()
        done = box.exec(BOLD)
        assert (done["exit_code"], done["stdout"]) == (0, "ran\nserved\nit went through\n"), done
        assert not daemon.get("/v1/approvals").json["approvals"]
    finally:
        assert daemon.stop() == 0


def git(folder, *words):
    return subprocess.run(["git", "-c", f"safe.directory={folder}", *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def test_committed_work_survives_the_end(cloche, project):
    """And what was not in the project is gone."""
    cloche("run", "--workspace", f"{project}:rw", "--", "git", "init", "-q")
    done = cloche("run", "--workspace", f"{project}:rw", "--", "sh", "-c",
                  "set -e; echo work > file; git add file; git -c user.name=agent -c user.email=agent@example.org commit -qm 'What the agent did'; "
                  "echo left > /tmp/left; echo left > ~/left; git rev-parse HEAD")
    assert done.ok, done
    assert git(project, "log", "--format=%H %an %s") == f"{done.out.strip()} agent What the agent did"
    assert git(project, "show", "HEAD:file") == "work" and git(project, "status", "--porcelain") == ""
    later = cloche("run", "--workspace", f"{project}:rw", "--", "sh", "-c", "git log -1 --format=%s; cat file; ls /tmp/left ~/left 2>&1 | grep -c 'No such'")
    assert later.out == "What the agent did\nwork\n2\n", later


PLACES = "/tmp/x /var/tmp/x ~/x ./x /dev/shm/x /run/x"


def test_every_run_has_a_fresh_disk(cloche):
    first = cloche("run", "--", "sh", "-c", f"n=0; for f in {PLACES}; do echo left 2>/dev/null > $f && n=$((n+1)); done; echo $n")
    assert int(first.out) >= 3, first       # some of them may be written
    for _ in range(2):
        assert cloche("run", "--", "sh", "-c", f"ls -d {PLACES} 2>/dev/null | wc -l").out == "0\n"


def test_every_sandbox_of_the_daemon_has_a_fresh_disk(daemon):
    one = daemon.create(name="one")
    assert int(one.exec(f"n=0; for f in {PLACES}; do echo left 2>/dev/null > $f && n=$((n+1)); done; echo $n")["stdout"]) >= 3
    assert daemon.create(name="two").exec(f"ls -d {PLACES} 2>/dev/null | wc -l")["stdout"] == "0\n"
    assert one.delete().ok and daemon.post(f"{one.at}/recover").ok      # the same id, another life
    assert one.exec(f"ls -d {PLACES} 2>/dev/null | wc -l")["stdout"] == "0\n"


# What is there for whoever comes: that it lives, the page on which a token is typed, and what a capability in the path opens.
OPEN = {"/health", "/ready", "/v1/health", "/desktop", "/desktop/page.js", "/console", "/console/{file}"}      # pages, which are the same for everybody


@pytest.fixture
def stranger(cloche):
    daemon = Daemon(cloche, tcp=True)
    box = daemon.create(name="one")
    yield daemon, box, daemon.remote()
    assert daemon.stop() == 0, daemon.log


def test_an_unguarded_path_is_refused(stranger):
    """Each route of the file wants a credential; what is no route is none, however it is written."""
    daemon, box, remote = stranger
    before, guarded = daemon.get("/v1/sandboxes").json, 0
    for method, path in sorted(documented()):
        at, body = request_of(method, path, box.id)
        answer = remote(method, at, body)
        if path.startswith(("/preview/", "/desktop/ws/")):
            assert answer.status == 404, (method, path, answer)         # by a capability, which this is none
        elif path == "/v1/console/open":
            assert answer.status == 400, (method, path, answer)         # by a ticket, which this is none
        elif path not in OPEN and not path.startswith("/approvals/"):
            assert answer.status in (401, 403), (method, path, answer)
            guarded += 1
    assert guarded > 60
    for path in ("/v1", "/v1/", "/v1/internal", "/v1/sandboxes/../sandboxes", "/v1/sandboxes/one/../../tokens", "//v1/sandboxes", "/V1/sandboxes",
                 "/v1/sandboxes%2fone", "/debug", "/admin", "/.git/config", "/v1/sandboxes/one;/exec", "/api", "/api/sandbox/none"):
        answer = remote("GET", path, None)
        assert 400 <= answer.status < 500, (path, answer)
        with_token = daemon.remote(caller(daemon, "agent").headers["Authorization"].split()[1])("GET", path, None)
        assert 400 <= with_token.status < 500, (path, with_token)
    assert json.dumps(daemon.get("/v1/sandboxes").json["sandboxes"][0]["id"]) == json.dumps(before["sandboxes"][0]["id"])
