"""cloche image: images are taken in whole, shown, and removed with all that is theirs."""
import gzip
import hashlib
import io
import json
import os
import signal
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from helpers import images, requirement
from helpers.images import entry, folder, layer, link, store
from helpers.podman import IMAGE, Podman, lacks

pytestmark = requirement("R27", "R41")

BASE = layer(folder("etc"), entry("etc/a", b"one"), entry("etc/b", b"two"), folder("opt"), entry("opt/old", b"x"), folder("opt/deep"),
             entry("opt/deep/old", b"x"), link("l", "etc"))
UPPER = layer(entry("etc/.wh.a"), entry("etc/c", b"three"), entry("opt/new", b"y"), entry("opt/.wh..wh..opq"), entry("opt/deep/new", b"z"),
              entry("l/through", b"t"), entry("h", "etc/b", "hard"), entry("run.sh", b"#!", mode=0o500))
OTHER = layer(entry("only", b"o"))
SAYS = {"Env": ["PATH=/bin", "A=b"], "Cmd": ["sh"], "Entrypoint": ["/entry"], "WorkingDir": "/srv", "User": "1000"}


def take(cloche, *words):
    result = cloche("image", "import", *map(str, words), "--json")
    assert result.ok, result
    return json.loads(result.out)


def files(tree):
    return {str(p.relative_to(tree)): p.read_bytes() for p in sorted(Path(tree).rglob("*")) if p.is_file() and not p.is_symlink()}


def nothing_left(cloche):
    """Neither anything under way nor a tree that nobody names."""
    listed = json.loads(cloche("image", "ls", "--json").out)["images"]
    trees = {Path(json.loads(cloche("image", "inspect", one["id"], "--json").out)["path"]).name for one in listed}
    return not os.listdir(store(cloche) / "tmp") and set(os.listdir(store(cloche) / "trees")) == trees


@pytest.fixture
def two(tmp_path):
    return images.layout(tmp_path / "two", [BASE, UPPER], "tools:1", **SAYS)


def test_an_oci_layout_with_whiteouts_and_links(cloche, two):
    said = take(cloche, two.path)
    assert said["name"] == "tools:1" and said["env"] == SAYS["Env"] and said["cmd"] == ["sh"] and said["entrypoint"] == ["/entry"], said
    assert said["workdir"] == "/srv" and said["user"] == "1000" and len(said["layers"]) == 2, said
    shown = json.loads(cloche("image", "inspect", "tools:1", "--json").out)
    assert shown["id"] == said["id"]
    # what this layer brought stays, in whichever order whiteouts stand
    assert files(shown["path"]) == {"etc/b": b"two", "etc/c": b"three", "etc/through": b"t", "h": b"two", "opt/new": b"y", "opt/deep/new": b"z",
                                    "run.sh": b"#!"}
    assert os.path.samefile(Path(shown["path"], "h"), Path(shown["path"], "etc/b")) and os.readlink(Path(shown["path"], "l")) == "etc"
    assert os.stat(Path(shown["path"], "run.sh")).st_mode & 0o777 == 0o700
    assert nothing_left(cloche)


def test_the_same_in_every_form(cloche, two, tmp_path):
    """The id is the configuration's digest, whatever the image came in; its files are there once."""
    ids = {take(cloche, two.path)["id"], take(cloche, two.tar(tmp_path / "two.tar"), "tar:1")["id"]}
    packed = tmp_path / "two.tar.gz"
    packed.write_bytes(gzip.compress((tmp_path / "two.tar").read_bytes()))
    ids.add(take(cloche, packed, "gz:1")["id"])
    save = images.saved(tmp_path / "save.tar", [BASE, UPPER], ["saved:1", "saved:2"], **SAYS)
    said = take(cloche, save)
    assert said["name"] == "saved:1" and said["bytes"] > 0, said
    ids.add(said["id"])
    ids.add(take(cloche, save, "saved:2")["id"])
    assert len(ids) == 1 and len(os.listdir(store(cloche) / "trees")) == 1
    listed = json.loads(cloche("image", "ls", "--json").out)["images"]
    assert len(listed) == 1 and sorted(listed[0]["names"]) == ["gz:1", "saved:1", "saved:2", "tar:1", "tools:1"], listed
    assert "saved:1" in cloche("image", "ls").out


def test_a_tree_of_files(cloche, tmp_path):
    (tmp_path / "tree.tar").write_bytes(layer(folder("./"), folder("./bin"), entry("./bin/sh", b"x", mode=0o4755), entry("./dev/null", kind="char"),
                                              entry("/absolute", b"y")))
    said = take(cloche, tmp_path / "tree.tar", "flat")
    assert said["name"] == "flat:latest" and said["left_out"] == {"devices": 1, "fifos": 0, "setuid": 1} and said["env"] == [], said
    path = Path(json.loads(cloche("image", "inspect", "flat", "--json").out)["path"])
    assert files(path) == {"bin/sh": b"x", "absolute": b"y"} and os.stat(path / "bin/sh").st_mode & 0o7777 == 0o755
    result = cloche("image", "import", str(tmp_path / "tree.tar"), "again")
    assert result.ok and "left out: 1 devices" in result.err and "1 files have lost setuid" in result.err, result


def test_removing(cloche, two, tmp_path):
    take(cloche, two.path)
    take(cloche, two.path, "other:1")
    other = take(cloche, images.layout(tmp_path / "one", [BASE], "single:1").path)
    assert cloche("image", "rm", "tools:1").ok and "other:1" in cloche("image", "ls").out
    assert not cloche("image", "inspect", "tools:1").ok
    assert cloche("image", "rm", "other:1", other["id"]).ok
    assert json.loads(cloche("image", "ls", "--json").out)["images"] == [] and nothing_left(cloche)
    result = cloche("image", "rm", "other:1")
    assert result.code == 125 and "[image.unknown]" in result.err, result
    take(cloche, images.layout(tmp_path / "nameless", [OTHER]).path)
    assert nothing_left(cloche) and "1 images" in cloche("image", "prune").out
    assert json.loads(cloche("image", "ls", "--json").out)["images"] == [] and nothing_left(cloche)


def test_a_name_moves_and_a_digest_does_not(cloche, two, tmp_path):
    first = take(cloche, two.path)
    second = take(cloche, images.layout(tmp_path / "one", [BASE]).path, "tools:1")
    assert json.loads(cloche("image", "inspect", "tools:1", "--json").out)["id"] == second["id"] != first["id"]
    for pinned in (first["id"], "tools:1@" + first["id"], "tools@" + first["manifest"]):
        assert json.loads(cloche("image", "inspect", pinned, "--json").out)["id"] == first["id"], pinned
    result = cloche("image", "inspect", "tools:1@sha256:" + "0" * 64)
    assert result.code == 125 and "[image.unknown]" in result.err, result


def test_platforms(cloche, tmp_path):
    both = images.Layout(tmp_path / "both")
    here, there = both.manifest([BASE]), both.manifest([OTHER], architecture="s390x")
    here["platform"] = {"os": "linux", "architecture": images.config([])["architecture"]}
    there["platform"] = {"os": "linux", "architecture": "s390x"}
    nested = both.blob({"schemaVersion": 2, "manifests": [there, here]})
    both.index(nested)
    said = take(cloche, both.path, "both:1")
    assert said["layers"] == [images.digest(BASE)] and said["index"] == nested["digest"], said
    assert take(cloche, both.path, "both:z", "--platform", "linux/s390x")["architecture"] == "s390x"
    result = cloche("image", "import", str(both.path), "--platform", "linux/arm/v7")
    assert result.code == 125 and "[image.platform]" in result.err, result
    result = cloche("image", "import", str(images.layout(tmp_path / "foreign", [BASE], architecture="s390x").path), "x")
    assert result.code == 125 and "[image.platform]" in result.err, result


def test_several_images_in_one_archive(cloche, tmp_path):
    both = images.Layout(tmp_path / "both")
    manifests = [both.manifest([BASE]), both.manifest([OTHER])]
    for i, manifest in enumerate(manifests):
        manifest["annotations"] = {"org.opencontainers.image.ref.name": f"image:{i}"}
    both.index(*manifests)
    result = cloche("image", "import", str(both.path))
    assert result.code == 125 and "[image.several]" in result.err, result
    assert take(cloche, both.path, "image:1")["layers"] == [images.digest(OTHER)]


@pytest.mark.parametrize("words, code", [
    ([], "image.misused"), (["what"], "image.misused"), (["import"], "image.misused"), (["import", "/nowhere"], "image.source"), (["import", "/dev/null"], "image.source"),
    (["import", __file__, "X"], "image.name"), (["import", __file__, "x@sha256:1"], "image.name"), (["import", __file__, "x"], "image.archive"),
    (["rm"], "image.misused"), (["inspect", "no:thing"], "image.unknown"), (["inspect", "NO"], "image.name"), (["ls", "--platform", "x"], "image.platform"),
    (["ls", "--max-size", "0"], "image.size"), (["ls", "--max-files", "x"], "image.size"), (["ls", "--what"], "cli.unknown-flag")])
def test_wrong_usage(cloche, words, code):
    result = cloche("image", *words)
    assert result.code == 125 and f"[{code}]" in result.err, result


def test_nothing_is_half_done_after_a_kill(cloche, tmp_path):
    """Killed at any moment: the next change of the store finds nothing of it, or all."""
    big = tmp_path / "big.tar"
    big.write_bytes(layer(*(entry(f"f/{i}", b"x" * 4096) for i in range(3000))))
    two_files = images.layout(tmp_path / "small", [BASE], "small:1")
    for delay in (0.02, 0.05, 0.1, 0.2):
        process = subprocess.Popen(cloche.argv("image", "import", str(big), "big"), env=cloche.env, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        take(cloche, two_files.path)
        assert nothing_left(cloche)
        listed = {name for one in json.loads(cloche("image", "ls", "--json").out)["images"] for name in one["names"]}
        if "big:latest" in listed:
            assert len(files(json.loads(cloche("image", "inspect", "big", "--json").out)["path"])) == 3000


@pytest.mark.parametrize("without, code", [
    ("landlock_create_ruleset:EOPNOTSUPP", None), ("chroot:EPERM", None), ("openat2:ENOSYS", "image.openat2"),
    ("landlock_create_ruleset:EOPNOTSUPP,chroot:EPERM", "image.walls")])
def test_with_fewer_walls(cloche, deny, two, without, code):
    """One of two walls around files is enough, none is not; names are resolved by the kernel or not at all."""
    result = cloche.behind(*deny(*without.split(",")))("image", "import", str(two.path))
    if code is None:
        assert result.ok, result
        return
    assert result.code == 125 and f"[{code}]" in result.err, result
    assert os.listdir(store(cloche) / "trees") == [] and os.listdir(store(cloche) / "tmp") == []


def test_a_store_that_others_may_write_to_is_refused(cloche):
    store(cloche).mkdir(parents=True, mode=0o700)
    os.chmod(store(cloche), 0o777)
    result = cloche("image", "ls")
    assert result.code == 125 and "[image.store]" in result.err, result


# --- the way back ----------------------------------------------------------------------------------------------------

def test_what_is_saved_is_the_same_image(cloche, two, tmp_path):
    take(cloche, two.path)
    (tmp_path / "other.tar").write_bytes(layer(entry("only", b"o"), entry("F\u0151 " + "n" * 200, b"name")))
    take(cloche, tmp_path / "other.tar", "other:2")
    saved = tmp_path / "saved.tar"
    result = cloche("image", "save", "--output", str(saved), "tools:1", "other:2", "tools:1")
    assert result.ok and not result.out and saved.stat().st_mode & 0o777 == 0o600, result
    with tarfile.open(saved) as archive:
        names = archive.getnames()
        assert len(names) == len(set(names)) == 5, names       # what is twice is there once
        manifest = json.load(archive.extractfile("manifest.json"))
        assert [one["RepoTags"] for one in manifest] == [["tools:1"], ["other:2"], ["tools:1"]]
        said = json.load(archive.extractfile(manifest[0]["Config"]))
        body = archive.extractfile(manifest[0]["Layers"][0]).read()
    assert said["config"] == SAYS and said["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(body).hexdigest()]
    with tarfile.open(fileobj=io.BytesIO(body)) as inner:
        members = {m.name.removeprefix("./"): m for m in inner.getmembers()}
        assert {(m.uid, m.gid, m.uname, m.gname) for m in members.values()} == {(0, 0, "", "")}
        assert sorted((members["h"].islnk(), members["etc/b"].islnk())) == [False, True] and members["l"].linkname == "etc"
    before = files(json.loads(cloche("image", "inspect", "tools:1", "--json").out)["path"])
    assert cloche("image", "rm", "tools:1", "other:2").ok
    again = take(cloche, saved, "tools:1")
    assert again["env"] == SAYS["Env"] and again["workdir"] == "/srv" and again["user"] == "1000" and again["cmd"] == ["sh"]
    shown = json.loads(cloche("image", "inspect", "tools:1", "--json").out)
    assert files(json.loads(cloche("image", "inspect", take(cloche, saved, "other:2")["id"], "--json").out)["path"]) == {
        "only": b"o", "F\u0151 " + "n" * 200: b"name"}
    assert files(shown["path"]) == before and os.path.samefile(Path(shown["path"], "h"), Path(shown["path"], "etc/b"))
    assert nothing_left(cloche)


def test_nothing_is_saved_over_or_in_half(cloche, two, tmp_path):
    take(cloche, two.path)
    there = tmp_path / "there"
    there.write_text("mine")
    (tmp_path / "link").symlink_to(there)
    for name in ("there", "link"):
        refused = cloche("image", "save", "tools:1", "--output", str(tmp_path / name))
        assert not refused.ok and "[image.save]" in refused.err and there.read_text() == "mine", refused
    unknown = cloche("image", "save", "tools:1", "nobody:1", "--output", str(tmp_path / "new"))
    assert not unknown.ok and "[image.unknown]" in unknown.err and not (tmp_path / "new").exists(), unknown


@pytest.mark.root
def test_podman_loads_it(cloche, tmp_path):
    """Somebody else's reader of such archives."""
    if lacks(False):
        pytest.skip(f"no {lacks(False)}")
    (tmp_path / "root.tar").write_bytes(images.system("echo"))
    take(cloche, tmp_path / "root.tar", IMAGE)
    assert cloche("image", "save", IMAGE, "--output", str(tmp_path / "s.tar")).ok
    podman = Podman()
    try:
        loaded = podman.podman("load", "-i", str(tmp_path / "s.tar"))
        assert IMAGE in loaded.stdout, loaded
        said = podman.run([], ["/bin/echo", "there"])
        assert said.stdout == "there\n", said
    finally:
        podman.end()
