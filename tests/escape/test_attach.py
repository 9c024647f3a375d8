"""An editor that inspects cannot change a byte, run a program or reach another process, whatever it asks for and whatever its server is;
and one that writes has no more than the sandbox (docs/attach.md)."""
import os
import shutil
import struct
import subprocess

import pytest

from helpers import places, requirement
from helpers.attach import PEM, Editor, needs, session, tunnel
from helpers.runner import wait_for

pytestmark = requirement("R25")

# everything that a session could change, as the sandbox itself sees it
STATE = """cd /workspace && find . -printf '%p %y %m %U %s %T@ %C@ %l\\n' | sort; cat f d/g; ls -A /tmp /dev/shm ~; ls /dev/mqueue 2>&1; ipcs -a | grep -c 0x
           cat "/proc/$(cat victim)/limits" | grep 'file size'; cut -d' ' -f18,19 "/proc/$(cat victim)/stat"; wc -c < heard"""
PREPARE = """cd /workspace && mkdir d e && echo content > f && echo more > d/g && chmod 640 f && cp /bin/true prog && mkfifo p && echo secret > ~/secret && : > heard
             setsid sleep 600 >/dev/null 2>&1 & echo $! > victim
             setsid sh -c 'exec 3<>p; exec cat <&3 > heard' >/dev/null 2>&1 &
             setsid python3 -c "
import socket, time
s = socket.socket(socket.AF_UNIX); s.bind('s'); s.listen(9)
while True:
    s.accept(); open('heard', 'a').write('connected')
" >/dev/null 2>&1 &
             for i in $(seq 600); do [ -S s ] && exit 0; sleep 0.1; done; exit 1"""


def program(cloche):
    found = places.find_beside(cloche.binary, "tests/lib/look_attack")
    if found is None or places.is_sanitized(str(cloche.binary)):
        pytest.skip("tests/lib/look_attack is not built, or not static")
    here = cloche.home / "look_attack"
    shutil.copy(found, here)
    here.chmod(0o755)
    return here


def workspace(cloche, kind):
    return {} if kind == "tmpfs" else {"workspace": f"{cloche.project}:{kind}"}


def prepared(daemon, policy):
    box = daemon.create(name="one", policy=policy)
    made = box.exec(PREPARE)
    assert made["exit_code"] == 0, made
    return box


def said(box):
    done = box.exec(STATE)
    assert done["exit_code"] == 0, done
    return done["stdout"]


@pytest.mark.parametrize("kind", ["tmpfs", "rw", "cow"])
def test_inspecting_changes_nothing_by_any_call(cloche, daemon, kind):
    """A program in the place of the server makes every call that changes something, in a session that inspects; then as a command of the
    sandbox, where they do."""
    needs()
    box = prepared(daemon, {**workspace(cloche, kind), "binds": [f"{program(cloche)}:/usr/sbin/sshd"]})
    before = said(box)
    for _ in range(2):
        out = tunnel(daemon, box, session(daemon, box, "inspect"), {"host_key": PEM, "user_key": "ssh-ed25519 AAAA"}).decode()
        lines = dict(line.split(" ", 1) for line in out.splitlines() if " " in line)
        assert lines["read"] == "content" and out.endswith("over\n") and len(lines) > 75, out
        assert [name for name, what in lines.items() if what == "ok"] == [], out
        assert said(box) == before
    bare = box.exec("/usr/sbin/sshd")["stdout"]
    worked = [line for line in bare.splitlines() if line.endswith(" ok")]
    assert len(worked) > 50 and said(box) != before, bare


@pytest.mark.parametrize("kind", ["tmpfs", "rw", "cow"])
def test_inspecting_changes_nothing_by_ssh(cloche, daemon, kind):
    needs("sftp", "scp")
    box = prepared(daemon, workspace(cloche, kind))
    before = said(box)
    editor = Editor(cloche, daemon, box, "--inspect")
    here = cloche.home / "here"
    here.write_text("new")
    asked = ["put {0} new", "put {0} f", "reput {0} f", "rm f", "mkdir z", "rmdir e", "rename f k", "ln f k", "ln -s f k", "chmod 777 f", "chgrp 0 f", "chown 0 f",
             "put -p {0} d/g", "cd d", "rm g", "put {0} /tmp/x", "put {0} /dev/shm/x", "get /home/agent/secret", "ls /home/agent", "get /proc/self/environ", "ls /proc",
             "get /proc/1/environ", "put {0} p", "put {0} /dev/null"]
    for line in asked:
        done = editor.sftp(line.format(here), check=False)
        assert not done.ok or line in ("cd d", "put {0} /dev/null"), (line, done)
    for words in (["id"], ["touch f; echo x > f"], ["internal-sftp"], ["/usr/lib/openssh/sftp-server"], ["cat > f"]):
        done = editor.ssh(*words, stdin=b"x")
        assert not done.ok and "sftp connections only" in done.out + done.err, (words, done)
    for done in (editor.run("ssh", "-tt", editor.host, pty=True), editor.run("ssh", "-s", editor.host, "netconf"),
                 editor.run("scp", "-O", str(here), f"{editor.host}:f"), editor.run("scp", str(here), f"{editor.host}:f"),
                 editor.run("ssh", "-o", "ClearAllForwardings=no", "-W", "127.0.0.1:1", editor.host),
                 editor.run("ssh", "-o", "ClearAllForwardings=no", "-o", "ExitOnForwardFailure=yes", "-N", "-R", "0:127.0.0.1:1", editor.host),
                 cloche.run([shutil.which("rsync") or "false", "-e", f"ssh -F {editor.said['config']}", str(here), f"{editor.host}:f"], env=editor.env)):
        assert not done.ok, done
    assert said(box) == before
    # and it does look
    editor.sftp(f"get f {cloche.home}/got", "ls -l d", "cd d", f"get g {cloche.home}/got2")
    assert (cloche.home / "got").read_text() == "content\n" and (cloche.home / "got2").read_text() == "more\n"
    assert editor.run("scp", f"{editor.host}:f", f"{cloche.home}/got3").ok
    assert said(box) == before


def test_what_is_denied_is_denied_to_an_editor(cloche, daemon):
    """The same wall: what the policy hides is hidden, and a protected name of the project stays, whichever way somebody comes."""
    needs("sftp")
    hooks = cloche.project / ".git" / "hooks"
    hooks.mkdir(parents=True)
    (cloche.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (cloche.project / "hidden").write_text("s3cr3t")
    outside = cloche.home / "outside"
    outside.write_text("host")
    box = daemon.create(name="one", policy={"workspace": f"{cloche.project}:rw", "filesystem": {"deny-read": [f"{cloche.project}/hidden"]}})
    for mode in ("--write", "--inspect"):
        editor = Editor(cloche, daemon, box, mode)
        for line in ("get hidden", f"get {outside}", f"put {outside} .git/hooks/pre-commit", "symlink /bin/sh .git/hooks/post-commit"):
            assert not editor.sftp(line, check=False).ok, (mode, line)
    editor = Editor(cloche, daemon, box, "--write")
    done = editor.ssh("cat hidden; echo x > .git/hooks/pre-commit; echo y > .bashrc; echo fine > new")
    assert "s3cr3t" not in done.out and (cloche.project / "new").read_text() == "fine\n", done
    assert os.listdir(hooks) == [] and not (cloche.project / ".bashrc").exists()


def test_an_inspector_ends_with_its_session(cloche, daemon):
    """Also a server that waits, for somebody to write into a pipe that it was asked to open: nothing of it stays."""
    needs()
    box = daemon.create(name="one")
    assert box.exec("mkfifo p")["exit_code"] == 0
    editor = Editor(cloche, daemon, box, "--inspect", "--for", "12s")
    process = cloche.start(["ssh", "-F", editor.said["config"], "-s", editor.host, "sftp"], env=editor.env, stdin=subprocess.PIPE)
    process.stdin.write(struct.pack(">IBI", 5, 1, 3) + struct.pack(">IBII1sII", 18, 3, 1, 1, b"p", 1, 0))       # INIT; OPEN p for reading
    process.stdin.flush()
    assert process.stdout.read(9)[4:] == b"\2\0\0\0\3"
    assert "sshd" in box.exec("cat /proc/[0-9]*/comm")["stdout"]
    assert process.wait(120) != 0
    process.communicate()
    wait_for(lambda: "sshd" not in box.exec("cat /proc/[0-9]*/comm")["stdout"], 60)


def test_without_landlock_it_is_refused(cloche, daemon):
    """Never done with less."""
    needs()
    box = daemon.create(name="one", policy={"mode": "max"})
    done = Editor(cloche, daemon, box, "--inspect").ssh("true")
    assert done.code == 255 and "[attach.inspect]" in done.err and "Landlock" in done.err, done
