"""cloche's own folders: no sandbox is given them, by whichever name, and who has a folder around them finds them closed."""
import pytest

from helpers import requirement
from helpers.daemon import Daemon

pytestmark = requirement("R20", "R42", "R45")

READ = "cat {0}/serve/key {0}/audit/audit.jsonl; echo x > {0}/serve/key; ls {0}/serve"


@pytest.fixture
def own(cloche):
    """The state folder of `cloche run`, with something in it."""
    folder = cloche.state / "cloche"
    for path in (folder, folder / "serve", folder / "audit"):
        path.mkdir(exist_ok=True, mode=0o700)
    (folder / "serve" / "key").write_text("the key\n")
    return folder


def refused(cloche, *flags):
    result = cloche("run", *flags, "--", "true")
    assert result.code == 125 and "[policy.own-folder]" in result.err, result


@pytest.mark.parametrize("below", ["", "/serve", "/serve/key"])
def test_it_is_not_given(cloche, own, below, tmp_path):
    place = f"{own}{below}"
    (tmp_path / "link").symlink_to(place)
    if below != "/serve/key":
        refused(cloche, "--bind", f"{place}:/x:rw")
        refused(cloche, "--bind", f"{place}:/x")
        refused(cloche, "--workspace", f"{place}:rw")
        refused(cloche, "--workspace", f"{place}:cow")
        refused(cloche, "--bind", f"{tmp_path}/link:/x")
    refused(cloche, "--view", "host", "--allow-read", place)
    refused(cloche, "--view", "host", "--allow-write", place)
    refused(cloche, "--allow-unix-socket", f"{own}/serve/api.sock")


@pytest.mark.parametrize("flags", [["--workspace", "{}:rw"], ["--bind", "{}:{}:rw"], ["--view", "host"], ["--view", "host", "--allow-write", "{}"],
                                   ["--mode", "light"]], ids=" ".join)
def test_it_is_closed_in_what_is_around_it(cloche, own, flags):
    around = str(own.parent)
    flags = [flag.replace("{}", around) for flag in flags]
    inside = "/workspace/cloche" if flags[0] == "--workspace" else str(own)
    result = cloche("run", *flags, "--", "sh", "-c", READ.format(inside))
    assert "the key" not in result.out and "key" not in result.out and '"time"' not in result.out, result
    assert (own / "serve" / "key").read_text() == "the key\n"


def test_a_daemons_own_state_folder(cloche):
    place = cloche.cwd / "around"
    place.mkdir()
    daemon = Daemon(cloche, "--state-dir", str(place / "state"), path=place / "state" / "api.sock")
    for policy in ({"binds": [f"{place}/state:/x"]}, {"workspace": f"{place}/state:rw"}, {"binds": [f"{place}/state/volumes:/x:rw"]}):
        answer = daemon.post("/v1/sandboxes", {"policy": policy})
        assert answer.status == 400 and answer.json["code"] == "policy.own-folder", answer
    box = daemon.create(policy={"workspace": f"{place}:rw"})
    said = box.exec("ls -a state; cat state/state.db; echo x > state/state.db; echo on > beside")
    assert "state.db" not in said["stdout"] and "SQLite" not in said["stdout"], said
    assert (place / "beside").read_text() == "on\n"
    volume = daemon.create(volume={"name": "v"})
    assert volume.exec("echo on > f; cat f")["stdout"] == "on\n"
    assert daemon.stop() == 0
