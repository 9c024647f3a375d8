"""Sandboxes whose system is an image: cloche run --image, image: in a policy."""
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from helpers import images, places, requirement
from helpers.daemon import Daemon
from helpers.images import entry, folder, layer, link
from helpers.runner import wait_for

pytestmark = requirement("R21", "R27", "R41")

PROGRAMS = ("sh", "cat", "ls", "id", "mkdir", "rm", "touch", "env", "sleep", "readlink", "stat")
BASE = images.system(*PROGRAMS)
FILES = layer(folder("etc"), entry("etc/passwd", b"root:x:0:0::/root:/bin/sh\napp:x:1234:1235::/srv/app:/bin/sh\n"), entry("etc/os-release", b"ID=mine\n"),
              folder("srv/app"), entry("srv/app/data", b"from the image"), folder("usr/share"), entry("usr/share/a", b"a"), folder("empty"),
              entry("entry", b"#!/bin/sh\necho entry: \"$@\"\n", mode=0o755), folder("home/other"), entry("home/other/f", b"h"), folder("var/lib"),
              entry("var/lib/v", b"v"), entry("etc/resolv.conf", b"nameserver 10.9.8.7\n"), folder("root", 0o700), entry("root/.profile", b"p", mode=0o600))
ENGINES = ["native"] + (["oci"] if places.IS_ROOT and (shutil.which("crun") or shutil.which("runc")) else [])


def take(cloche, tmp_path, layers, name="sys:1", **said):
    made = images.layout(tmp_path / f"image-{len(list(tmp_path.iterdir()))}", layers, **said)
    result = cloche("image", "import", str(made.path), name, "--json")
    assert result.ok, result
    return json.loads(result.out)["id"]


def tree_of(cloche, name="sys:1"):
    return Path(json.loads(cloche("image", "inspect", name, "--json").out)["path"])


def listing(tree):
    return {str(p.relative_to(tree)): (p.lstat().st_mode, p.lstat().st_ino, p.lstat().st_mtime_ns) for p in sorted(tree.rglob("*"))}


@pytest.fixture
def system(cloche, tmp_path):
    return take(cloche, tmp_path, [BASE, FILES])


def run(cloche, script, *flags, name="sys:1", **kw):
    return cloche("run", "--image", name, *flags, "--", "sh", "-c", script, **kw)


@pytest.mark.parametrize("engine", ENGINES)
def test_its_files_are_the_system(cloche, system, engine):
    before = listing(tree_of(cloche))
    result = run(cloche, "cat /etc/os-release /srv/app/data /var/lib/v /home/other/f /root/.profile; ls /usr; id -u; "
                 "echo new > /usr/share/a; rm /srv/app/data; mkdir /usr/made /opt/x; cat /usr/share/a; ls /srv/app /usr; touch /tmp/t ~/t /empty/t; "
                 "ls /usr/bin/python3 /sbin", "--engine", engine)
    assert "ID=mine\nfrom the imagevhpshare\n1000\nnew\n/srv/app:\n\n/usr:\nmade\nshare\n" in result.out, result
    # nothing of the host's is there, and what is written goes with the sandbox
    assert "python3" in result.err and "/sbin" in result.err and "/opt/x" in result.err, result
    assert listing(tree_of(cloche)) == before
    assert run(cloche, "cat /usr/share/a /srv/app/data", "--engine", engine).out == "afrom the image"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_read_only_root(cloche, system, engine):
    result = run(cloche, "cat /usr/share/a; touch /usr/x; touch /etc/x; touch /srv/x; touch /tmp/x && echo tmp", "--mode", "max", "--engine", engine)
    assert result.out == "atmp\n" and result.err.count("Read-only file system") == 3, result


def test_what_must_be_ours_is(cloche, system):
    """Name service and users; a line for the sandbox's user where the image has none."""
    result = run(cloche, "cat /etc/resolv.conf /etc/passwd /etc/hostname; id -un || true")
    assert "10.9.8.7" not in result.out and "the network is closed" in result.out, result
    assert "app:x:1234:1235" in result.out and "agent:x:1000:1000" in result.out and "cloche\n" in result.out, result
    assert cloche("run", "--image", "sys:1", "--hostname", "h", "--", "cat", "/etc/hostname").out == "h\n"


def test_environment_user_folder_and_entry_point(cloche, tmp_path):
    says = {"Env": ["PATH=/bin", "GREETING=hello", "HOME=/srv"], "User": "app", "WorkingDir": "/srv/app", "Entrypoint": ["/entry"], "Cmd": ["from", "cmd"]}
    take(cloche, tmp_path, [BASE, FILES], **says)
    assert cloche("run", "--image", "sys:1").out == "entry: from cmd\n"
    assert cloche("run", "--image", "sys:1", "--", "mine").out == "entry: mine\n"
    bare = ("run", "--image", "sys:1", "--no-entrypoint")
    result = cloche(*bare, "--", "sh", "-c", "id -u; id -g; id -un; pwd; echo $GREETING $PATH $HOME")
    assert result.out == "1234\n1235\napp\n/srv/app\nhello /bin /srv\n", result
    # what the policy says has the last word
    result = cloche(*bare, "--user", "77", "--workdir", "/tmp", "--env", "GREETING=bye", "--", "sh", "-c", "id -u; pwd; echo $GREETING")
    assert result.out == "77\n/tmp\nbye\n", result
    take(cloche, tmp_path, [BASE, FILES], "root:1", User="root", WorkingDir="/nowhere")
    assert run(cloche, "id -u; pwd", name="root:1").out == "1000\n/workspace\n"
    take(cloche, tmp_path, [BASE], "who:1", User="nobody-knows")
    result = run(cloche, "true", name="who:1")
    assert result.code == 125 and "[image.user]" in result.err, result
    result = cloche("run", "--image", "root:1")
    assert result.code == 125 and "[cli.no-command]" in result.err, result
    assert cloche("shell", "--image", "root:1", "--no-pty", stdin=b"echo in $0\n").out == "in /bin/sh\n"


def test_which_image_it_is_stands_in_the_policy(cloche, tmp_path):
    first = take(cloche, tmp_path, [BASE, FILES])
    pinned = "sys:1@" + first
    assert pinned in cloche("policy", "show", "--image", "sys:1").out
    second = take(cloche, tmp_path, [BASE, layer(entry("etc/os-release", b"ID=other\n"))])
    assert run(cloche, "cat /etc/os-release").out == "ID=other\n"
    assert run(cloche, "cat /etc/os-release", name=pinned).out == run(cloche, "cat /etc/os-release", name=first).out == "ID=mine\n"
    assert "sys:1@" + second in cloche("policy", "show", "--image", "sys:1").out
    for name, code in (("no:1", "image.unknown"), ("sys:1@sha256:" + "0" * 64, "image.unknown"), ("NO", "policy.image")):
        result = run(cloche, "true", name=name)
        assert result.code == 125 and f"[{code}]" in result.err, result
    settings = tmp_path / "policy.yaml"
    settings.write_text(f"image: {pinned}\n")
    assert cloche("run", "--settings", str(settings), "--", "cat", "/etc/os-release").out == "ID=mine\n"


def test_one_that_is_removed_while_it_runs(cloche, system):
    store = images.store(cloche)
    box = cloche.popen("run", "--image", "sys:1", "--", "sh", "-c", "echo there; cat; cat /srv/app/data", stdin=subprocess.PIPE)
    assert box.stdout.readline() == b"there\n"
    result = cloche("image", "rm", "sys:1")
    assert result.ok and "a sandbox has its files" in result.err, result
    assert run(cloche, "true").code == 125
    out, _ = box.communicate(b"")
    assert out == b"from the image", out
    assert len(os.listdir(store / "trees")) == 1
    assert cloche("image", "prune").ok and wait_for(lambda: cloche("image", "prune").ok and os.listdir(store / "trees") == [])


def test_binds_in_it(cloche, system, tmp_path):
    (tmp_path / "bound").write_text("bound")
    result = cloche("run", "--image", "sys:1", "--bind", f"{tmp_path / 'bound'}:/usr/share/deep/er/b", "--workspace", str(tmp_path), "--", "sh", "-c",
                    "cat /usr/share/deep/er/b /workspace/bound")
    assert result.out == "boundbound", result
    assert not (tree_of(cloche) / "usr/share/deep").exists()


def test_the_daemons_sandboxes(cloche, tmp_path):
    """The fingerprint has the image: a name that means another one now makes a fresh sandbox."""
    first = take(cloche, tmp_path, [BASE, FILES])
    settings = tmp_path / "policy.yaml"
    settings.write_text("image: sys:1\n")
    daemon = Daemon(cloche, "--settings", str(settings))
    try:
        def ask():
            return daemon.post("/v1/sandboxes", {"workspace_key": "w", "reattach": True})
        box = ask()
        assert box.status == 201, box
        done = daemon.post(f"/v1/sandboxes/{box.json['id']}/exec", {"command": ["cat", "/etc/os-release"]})
        assert done.json["stdout"] == "ID=mine\n", done
        assert ask().json["reattached"] is True
        assert take(cloche, tmp_path, [BASE, layer(entry("etc/os-release", b"ID=other\n"))]) != first
        again = ask()
        assert again.status == 201 and again.json["replaced"]["differs"], again
        assert "image" in again.json["replaced"]["differs"] or "profile" in again.json["replaced"]["differs"], again
        done = daemon.post(f"/v1/sandboxes/{again.json['id']}/exec", {"command": ["cat", "/etc/os-release"]})
        assert done.json["stdout"] == "ID=other\n", done
    finally:
        daemon.stop()


# --- images whose top is a trap: what cloche mounts and makes is not led away --------------------------------------------

SYSTEM = ("dev", "proc", "sys", "etc", "tmp", "run", "home", "var", "workspace")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("target", ["/", "/proc/self/root", "../../../../../../{outside}", "{outside}", "/proc/1/root{outside}", "nowhere", None])
def test_links_in_place_of_the_systems_folders(cloche, tmp_path, engine, target):
    """/dev, /proc, /sys, /etc, /tmp, /run, /home, /var and /workspace as links (or files): nothing outside is written, and ours are real."""
    outside = tmp_path / "outside"
    for name in ("null", "etc", "self", "agent", "tmp"):
        (outside / name).mkdir(parents=True)
    text = target.format(outside=str(outside).lstrip("/") if target.startswith("..") else outside) if target else None
    trap = layer(*(link(name, text) if text else entry(name, b"a file") for name in SYSTEM))
    before = listing(outside)
    take(cloche, tmp_path, [BASE, trap])
    result = run(cloche, "for f in dev proc sys etc tmp run home var workspace; do readlink /$f; done; stat -c %t:%T /dev/null; stat -f -c %T /proc; "
                 "cat /etc/hostname; touch /tmp/a /home/agent/b /workspace/c && echo wrote; stat -c %F /etc/passwd", "--engine", engine)
    assert result.out == "1:3\nproc\ncloche\nwrote\nregular file\n", result
    assert listing(outside) == before


def test_links_below_the_systems_folders(cloche, tmp_path):
    """What cloche puts into /etc, /var and /home is its own where the image has links and folders of those names."""
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o777)
    (outside / "passwd").write_text("outside")
    trap = layer(folder("etc"), *(link(f"etc/{name}", str(outside / "passwd")) for name in ("passwd", "group", "hosts", "hostname")),
                 folder("etc/resolv.conf"), entry("etc/nsswitch.conf", b"x"), folder("var"), link("var/tmp", str(outside)), folder("home"),
                 link("home/agent", str(outside)), link("usr", "../../../.."))
    take(cloche, tmp_path, [BASE, trap])
    result = run(cloche, "cat /etc/hostname /etc/resolv.conf; stat -c %F /etc/passwd /etc/resolv.conf /var/tmp /home/agent; touch ~/x /var/tmp/x; ls -A ~")
    assert result.out == "cloche\n# the network is closed\nregular file\nregular file\ndirectory\ndirectory\nx\n", result
    assert os.listdir(outside) == ["passwd"] and (outside / "passwd").read_text() == "outside"


def test_too_many_at_its_top(cloche, tmp_path):
    take(cloche, tmp_path, [layer(*(folder(f"d{i}") for i in range(200)))])
    result = run(cloche, "true")
    assert result.code == 125 and "[image.top]" in result.err, result
