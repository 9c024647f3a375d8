"""cloche serve --transcript edits: what commands do to files is on record, with diffs, and outlives the sandbox."""
import hashlib
import os
import signal

import pytest

from helpers import requirement
from helpers.daemon import Daemon
from helpers.runner import wait_for
from helpers.transcripts import edits, ended, file_of, fragments, of, transcript, words_of

pytestmark = requirement("R29", "R45")


@pytest.fixture
def keeps(cloche):
    daemon = Daemon(cloche, "--transcript", "edits")
    yield daemon
    assert daemon.stop() == 0


def test_created_modified_removed_with_their_operation(keeps):
    box = keeps.create()
    box.exec("mkdir src; printf 'x = 1\\ny = 2\\n' > src/a.py; ln -s src/a.py link; printf 'a\\0b' > raw")
    made = {e["path"]: e for e in edits(keeps, box, 3)}
    assert set(made) == {"src/a.py", "link", "raw"} and {e["change"] for e in made.values()} == {"created"}
    assert made["src/a.py"]["diff"] == "@@ -0,0 +1,2 @@\n+x = 1\n+y = 2\n" and made["src/a.py"]["compared"] == "whole"
    assert made["src/a.py"]["after"]["sha256"] == hashlib.sha256(b"x = 1\ny = 2\n").hexdigest() and "before" not in made["src/a.py"]
    assert made["link"]["after"]["kind"] == "link" and "src/a.py" in made["link"]["diff"]
    assert made["raw"]["compared"] == "binary" and made["raw"]["after"]["size"] == 3 and "diff" not in made["raw"]
    box.exec("sed -i s/1/3/ src/a.py")
    changed = edits(keeps, box, 4)[3]
    assert changed["change"] == "modified" and changed["diff"] == "@@ -1,2 +1,2 @@\n-x = 1\n+x = 3\n y = 2\n"
    assert changed["before"]["sha256"] == made["src/a.py"]["after"]["sha256"]
    box.exec("chmod 755 src/a.py")
    mode = edits(keeps, box, 5)[4]
    assert mode["before"]["mode"] == "0644" and mode["after"]["mode"] == "0755" and "diff" not in mode
    box.exec("rm -r src")
    gone = edits(keeps, box, 6)[5]
    assert gone["change"] == "removed" and gone["path"] == "src/a.py" and gone["diff"].endswith("-x = 3\n-y = 2\n")
    operations = [e["operation"] for e in of(transcript(keeps, box.id), "exec")]
    assert [made["raw"]["operation"], changed["operation"], mode["operation"], gone["operation"]] == operations
    # reading changes nothing, and nothing is said of it
    box.exec("cat raw >/dev/null")
    box.read("raw")
    assert len(of(ended(keeps, box), "edit")) == 6


def test_what_is_written_from_outside_and_in_the_background(keeps):
    box = keeps.create()
    box.put("f", b"one\n")
    assert edits(keeps, box)[0]["diff"] == "@@ -0,0 +1,1 @@\n+one\n"
    keeps.post(f"{box.at}/exec", {"command": ["sh", "-c", "(sleep 0.3; echo late > late) >/dev/null 2>&1 &"]})
    assert wait_for(lambda: box.read("late").status == 200)
    found = of(ended(keeps, box), "edit")
    late = [e for e in found if e["path"] == "late"]
    assert len(late) == 1 and late[0]["diff"] == "@@ -0,0 +1,1 @@\n+late\n", found


def test_a_bound_project_and_the_same_size_in_one_moment(keeps, project):
    (project / "kept").write_text("old\n")
    project.chmod(0o777)
    (project / "kept").chmod(0o666)
    box = keeps.create(policy={"workspace": f"{project}:rw"})
    for i in range(5):
        box.exec(f"echo {i}{i}{i} > kept")
        assert edits(keeps, box, i + 1)[i]["diff"].endswith(f"+{i}{i}{i}\n")
    assert not [e for e in ended(keeps, box) if e["event"] == "edits"]


def test_no_value_is_in_a_diff(keeps, cloche):
    """Also of several lines, and of a command's own variables, later and in what is removed."""
    value, lines, own = "s3cr3t-v4lue?01/23+456789", "first-line-of-it\nsecond-line-of-it", "of-this-command-only-1"
    box = keeps.create(policy={"env": {"TOKEN": value, "PEM": lines}})
    box.exec('echo "a $TOKEN b" > t; printf "%s\\n" "$PEM" > p; echo $MINE > m', env={"MINE": own})
    edits(keeps, box, 3)
    box.exec("echo changed >> t; echo changed >> p; rm m")
    edits(keeps, box, 6)
    assert ended(keeps, box)
    record = file_of(cloche, box).read_text()
    for secret in (value, own, *lines.split("\n")):
        assert secret not in record.replace("\\n", "\n") and fragments(secret, record) < 12, (secret, record)
    assert record.count("[variable TOKEN]") >= 2 and "[variable MINE]" in record and "[variable PEM]" in record


def test_no_digest_tells_of_a_value(keeps):
    """A file with a short secret and nothing else has no digest to guess it by, as a text, with NUL bytes, or as a link."""
    box = keeps.create(policy={"env": {"PIN": "73914406"}})
    box.exec('printf $PIN > text; printf "$PIN\\0" > raw; ln -s $PIN link; printf $MINE > own; printf plain > plain', env={"MINE": "90217735"})
    made = {e["path"]: e for e in edits(keeps, box, 5)}
    assert {name for name, e in made.items() if "sha256" in e["after"]} == {"plain"}
    assert made["raw"]["compared"] == "binary" and made["text"]["diff"].startswith("@@ -0,0 +1,1 @@\n+[variable PIN]")
    box.exec("for f in text raw own plain; do echo more > $f; done; rm link")
    later = {e["path"]: e for e in edits(keeps, box, 10)[5:]}
    assert {name for name, e in later.items() if "sha256" in e["before"]} == {"plain"}
    assert {name for name, e in later.items() if "sha256" in e.get("after", {})} == {"text", "raw", "own", "plain"}
    assert box.delete().ok


def test_the_looker_that_is_killed_is_said_and_nothing_else_ends(keeps):
    box = keeps.create()
    box.exec("echo 1 > f")
    edits(keeps, box)
    looker, = [p for k in keeps.processes("cloche-keeper") if box.id in words_of(k) for p in lookers(k)]
    os.kill(looker, signal.SIGKILL)
    assert wait_for(lambda: [e for e in of(transcript(keeps, box.id), "edits") if e["over"]])
    assert box.exec("echo 2 > f; cat f")["stdout"] == "2\n"
    assert box.delete().ok


def lookers(keeper):
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            with open(f"/proc/{pid}/stat") as f:
                name, _, rest = f.read().partition(" (")[2].rpartition(") ")
        except OSError:
            continue
        if name == "cloche-edits" and int(rest.split()[1]) == keeper:
            found.append(pid)
    return found


@pytest.mark.parametrize("mode", ["light", "max"])
def test_other_modes(keeps, project, mode):
    if os.geteuid() == 0:       # in light mode whose folder it is runs the commands
        os.chown(project, 1000, 1000)
    box = keeps.create(policy={"mode": mode, **({"workspace": f"{project}:rw"} if mode == "light" else {})})
    box.exec("echo 1 > new")
    assert edits(keeps, box)[0]["diff"] == "@@ -0,0 +1,1 @@\n+1\n"
    assert box.delete().ok


def test_full_has_none(daemon):
    box = daemon.create()
    box.exec("echo 1 > f")
    assert box.delete().ok
    assert not [e for e in transcript(daemon, box.id) if e["event"] in ("edit", "edits")]
