"""Uploads whose place is changed under them: nothing outside is reached, and no protected name."""
import os

import pytest

from helpers import places, requirement
from helpers.daemon import UPLOAD_SEEN, Daemon, OthersDaemon, Upload
from helpers.places import loops
from helpers.runner import wait_for

pytestmark = requirement("R61")

# The names of the folder, of the file in it and of whatever is beside it mean something else all the time.
RACER = """
mkdir -p real
while [ ! -e stop ]; do
    mv -T real at; ln -sf {out}/planted at/f; rm -f at/.cloche-*; mv -T at real
    ln -s {out} at; rm -f real/f; rm -f at; ln -s ../../../../../../../../../..{out} at; rm -f at
done
"""


@pytest.fixture
def outside(anyone):
    """A folder of the host's beside the one that is shared."""
    folder = anyone.project.parent / "outside"
    folder.mkdir(exist_ok=True)
    (folder / "f").write_text("theirs")
    os.chmod(folder, 0o777)
    os.chmod(folder / "f", 0o666)
    return folder


@pytest.mark.parametrize("mode", ["light", "standard"])
def test_a_folder_that_is_swapped_under_an_upload(anyone, outside, mode):
    if mode == "light" and anyone.person is None and places.IS_ROOT:
        pytest.skip("root's own folders are not for mode light")
    daemon = (OthersDaemon if anyone.person else Daemon)(anyone)
    box = daemon.create(policy={"mode": mode, "workspace": str(anyone.project)})
    script = RACER.format(out=outside)
    assert box.put("racer", script.encode()).ok
    assert box.exec("sh ./racer >/dev/null 2>&1 &")["exit_code"] == 0
    said = set()
    for i in range(max(300, loops(places.rounds(500, 1500)))):
        said.add(box.put("at/f" if i % 2 == 0 else "real/f", b"x" * (i % 3) * 70000).status)
    assert box.exec("touch stop")["exit_code"] == 0
    assert 200 in said and said <= {200, 403, 404, 409}, said
    assert os.listdir(outside) == ["f"] and (outside / "f").read_text() == "theirs"
    assert daemon.stop() == 0, daemon.log


def test_a_target_that_becomes_a_link(cloche, daemon):
    outside = cloche.project.parent / "outside-too"
    outside.mkdir()
    (outside / "f").write_text("theirs")
    box = daemon.create(policy={"workspace": str(cloche.project)})
    for link in (f"{outside}/f", f"{outside}/new", "../outside-too/f", "/etc/passwd", "other"):
        assert box.exec("rm -f f; echo former > f; echo theirs > other")["exit_code"] == 0
        upload = Upload(box, "f", 2 * UPLOAD_SEEN).send(b"x" * (2 * UPLOAD_SEEN - 1))
        assert wait_for(lambda: box.daemon.get(f"{box.at}/usage").json["usage"][0]["operations"] == 1, 60)
        assert box.exec(f"ln -sf {link} f")["exit_code"] == 0
        assert upload.send(b"x").end() == (403, "files.path-escapes"), link
        assert box.exec("cat other")["stdout"] == "theirs\n"
    assert os.listdir(outside) == ["f"] and (outside / "f").read_text() == "theirs"


@requirement("R11")
def test_a_folder_that_gets_a_protected_name_under_an_upload(cloche, daemon):
    """As `d` it may have a file `hooks`, as `.git` it may not: judged when the name is made."""
    box = daemon.create(policy={"workspace": str(cloche.project)})
    assert box.exec("mkdir d")["exit_code"] == 0
    upload = Upload(box, "d/hooks", 2 * UPLOAD_SEEN).send(b"x" * (2 * UPLOAD_SEEN - 1))
    assert wait_for(lambda: box.daemon.get(f"{box.at}/usage").json["usage"][0]["operations"] == 1, 60)
    assert box.exec("mv d .git")["exit_code"] == 0
    assert upload.send(b"x").end() == (403, "files.denied")
    assert os.listdir(cloche.project / ".git") == []
    assert box.put(".git/hooks/pre-commit", b"x", "?parents=true").status == 403
