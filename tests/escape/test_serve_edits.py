"""Attacks on who looks at the workspace for the transcript (--transcript edits): it is neither led out nor held up."""
import json
import os

import pytest

from helpers import requirement
from helpers.daemon import Daemon
from helpers.runner import wait_for
from helpers.transcripts import edits, ended, of, transcript

pytestmark = requirement("R29", "R45")


@pytest.fixture
def keeps(cloche):
    daemon = Daemon(cloche, "--transcript", "edits")
    yield daemon
    assert daemon.stop() == 0


def test_links_lead_nowhere(keeps, world_file):
    """Of a link the record has where it leads; never what is there, whatever the name was a moment ago."""
    path, content = world_file
    box = keeps.create()
    box.exec(f"ln -s {path} l; mkdir d; ln -s {path.parent} d/up; ln -s /proc/self/root r; ln -s /etc/passwd p")
    edits(keeps, box, 4)
    # a file, a folder and a link take each other's place while it looks
    box.exec(f"""for i in $(seq 300); do
        echo $i > f; ln -sfn {path} g; mv -T g f; rm -rf e; mkdir e; echo x > e/{path.name}; rm -r e; ln -s {path.parent} e; done""")
    found = ended(keeps, box)
    assert content not in json.dumps(found) and "root:x:" not in json.dumps(found)
    links = {e["path"]: e for e in of(found, "edit") if e["change"] == "created" and e["after"]["kind"] == "link"}
    assert str(path) in links["l"]["diff"] and str(path.parent) in links["d/up"]["diff"]


@pytest.fixture
def world_file(project):
    """A file of the host's, of the daemon's own user, in a folder that the sandbox has not."""
    (project / "host").write_text("what-only-the-host-has\n")
    return project / "host", "what-only-the-host-has"


@pytest.mark.parametrize("view", ["host", "private"])
def test_what_is_closed_is_in_no_entry(keeps, project, view):
    """deny-read holds for the transcript, which the sandbox's own callers read: whatever the host does there meanwhile."""
    secret = "TOKEN=what-is-closed"
    for folder in (project, project / "keys", project / "open"):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
    for name in (".env", "keys/old", "keys/gone", "open/f"):
        (project / name).write_text(f"{secret}-before\n")
        (project / name).chmod(0o666)
    box = keeps.create(policy={"view": view, "workspace": f"{project}:rw",
                               "filesystem": {"deny-read": [str(project / ".env"), str(project / "keys")]}})
    assert box.exec("cat .env keys/old || ls keys/*")["stdout"] == ""
    for name in (".env", "keys/old", "keys/new"):
        (project / name).write_text(f"{secret}-and-after\n")
        (project / name).chmod(0o640)
    (project / "keys" / "gone").unlink()
    box.exec("echo 1 > seen; echo 1 > open/f")
    assert {e["path"] for e in edits(keeps, box, 2)} == {"seen", "open/f"}
    (project / ".env").write_text("")
    box.exec("echo 2 > seen")
    edits(keeps, box, 3)
    found = ended(keeps, box)
    assert [e["path"] for e in of(found, "edit")].count("seen") == 2 and len(of(found, "edit")) == 3
    assert f"{secret}-and" not in json.dumps(found)


@pytest.mark.root
def test_what_is_closed_is_in_no_entry_of_other_engines(cloche, project, has):
    """Their folder is looked at from outside, where nothing is closed: not at all, then, and the sandbox says so."""
    has("crun")
    settings = cloche.home / "crun.yaml"
    settings.write_text("engine: oci\nruntime: crun\n", encoding="utf-8")
    project.chmod(0o777)
    (project / ".env").write_text("TOKEN=what-is-closed-before\n")
    daemon = Daemon(cloche, "--transcript", "edits", "--settings", str(settings))
    box = daemon.create(policy={"workspace": f"{project}:rw", "filesystem": {"deny-read": [str(project / ".env")]}})
    assert [w for w in box.record["facts"]["warnings"] if "in no transcript" in w and "closed to this sandbox" in w], box.record
    other = daemon.create(policy={"workspace": f"{project}:rw"})
    assert box.exec("cat .env; echo 1 > seen")["stdout"] == ""
    assert other.exec("echo 2 > seen")["exit_code"] == 0
    (project / ".env").write_text("TOKEN=what-is-closed-after\n")
    assert edits(daemon, other) and not of(ended(daemon, box), "edit")
    assert other.delete().ok and daemon.stop() == 0


@pytest.mark.root
@pytest.mark.parametrize("policy", [{"mode": "light"}, {"view": "host"}, {"view": "private"}])
def test_root_does_not_read_for_it_what_it_cannot(keeps, project, policy):
    """A daemon of root's, and in somebody's folder a file and a folder of root's alone."""
    (project / "shut").mkdir(mode=0o700)
    for name in ("file", "shut/in"):
        (project / name).write_text("what-only-root-reads-before\n")
        (project / name).chmod(0o600 if name == "file" else 0o644)
    os.chown(project, 1000, 1000)
    box = keeps.create(policy={**policy, "workspace": f"{project}:rw"})
    assert box.exec("cat file shut/in; echo 1 > seen; chmod 600 seen")["stdout"] == ""
    for name in ("file", "shut/in"):
        (project / name).write_text("what-only-root-reads-after\n")
    box.exec("echo 2 >> seen")
    assert wait_for(lambda: [e for e in of(transcript(keeps, box.id), "edit") if e["path"] == "seen" and e.get("diff", "").endswith("+2\n")])
    found = ended(keeps, box)
    assert "what-only-root-reads" not in json.dumps(found) and "shut/in" not in {e["path"] for e in of(found, "edit")}
    assert not [e for e in of(found, "edit") if e["path"] == "file" and ("sha256" in e["before"] or "sha256" in e["after"])]


def test_fifos_sockets_and_sparse_files_hold_nobody_up(keeps):
    box = keeps.create()
    box.exec("mkfifo fifo; truncate -s 500M sparse; python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('sock')\"; echo 1 > last")
    found = {e["path"]: e for e in edits(keeps, box, 4)}
    assert found["fifo"]["after"]["kind"] == found["sock"]["after"]["kind"] == "other"
    assert found["sparse"]["after"]["size"] == 500 << 20 and "sha256" not in found["sparse"]["after"] and "diff" not in found["sparse"]
    assert found["last"]["diff"].endswith("+1\n")
    box.exec("while :; do mkfifo x; rm x; echo a > x; rm x; done & sleep 1; kill $!; echo 2 > last")
    assert [e for e in edits(keeps, box, 5) if e["path"] == "last"][-1]["diff"].endswith("+2\n")
    assert box.delete().ok


def test_many_files_are_counted_and_the_commands_are_served(keeps):
    box = keeps.create(policy={"limits": {"time": "5m"}})
    box.exec("python3 -c \"import os\nfor i in range(3000): open(f'f{i}', 'w').write(str(i))\"")
    assert box.exec("echo here")["stdout"] == "here\n"
    found = ended(keeps, box)
    assert len(of(found, "edit")) <= 500 and sum(e["more"] for e in of(found, "edits")) == 2500
    assert [e for e in of(found, "output") if e["text"] == "here\n"]


def test_names_and_texts_cannot_forge_a_line(keeps):
    forged = '{"at":"x","operation":1,"event":"exec","by":"the owner","argv":["forged"]}'
    box = keeps.create()
    box.exec(["python3", "-c", f"""
import os
open('n\\n' + {forged!r}.replace('/', ''), 'w').write('\\n' + {forged!r} + '\\n\\x1b[31m\\xff')
os.mkdir('deep'); os.chdir('deep')
for i in range(60):
    os.mkdir('d' * 200); os.chdir('d' * 200)
open('f', 'w').write('x')
"""])
    edits(keeps, box)
    found = ended(keeps, box)
    assert [e["argv"][0] for e in of(found, "exec")] == ["python3"]
    assert [e for e in of(found, "edit") if "forged" in e["path"]]
    assert [e for e in of(found, "edits") if e["incomplete"]]       # what lies deeper than a path may be long


def test_edits_do_not_push_out_the_rest(keeps):
    """16 MiB of differences, then it is said that there are no more; commands are on record as before."""
    box = keeps.create(policy={"limits": {"time": "5m", "disk": "1g"}})
    for i in range(3):
        box.exec(f"python3 -c \"import os\nfor i in range(400): open(f'f{{i}}', 'w').write(('{i}%d' % i + 'x' * 90 + chr(10)) * 300)\"")
        edits(keeps, box, 400 * (i + 1) if i == 0 else 401)
    box.exec("echo after")
    found = ended(keeps, box)
    assert [e for e in of(found, "edits") if e["over"]] and [e for e in of(found, "output") if e["text"] == "after\n"]
    assert not of(found, "full")
