"""SRT's settings about files that cloche once could not start with, or kept differently (issue 13, A7 and A8), beside each what
sandbox-runtime 0.0.83 does."""
import json
import os

import pytest

from helpers import requirement

pytestmark = requirement("R01", "R02", "R03")


@pytest.fixture
def srt(anyone):
    """srt({"denyRead": [...]}, "shell line") → Result, in the project."""
    def own(path):
        if anyone.person is not None:
            os.chown(path, anyone.person.pw_uid, anyone.person.pw_gid)
        return path

    def run(rules, line, *words, network=None, text=None, **kw):
        path = anyone.project.parent / "srt-rules.json"
        made = {"network": {"allowedDomains": [], "deniedDomains": [], **(network or {})},
                "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": [], **rules}}
        path.write_text(text(made) if text else json.dumps(made), encoding="utf-8")
        return anyone("srt", *words, "-s", path, "-c", line, cwd=kw.pop("cwd", anyone.project), **kw)
    for folder in ("src", "src/deep", "lib"):
        anyone.project.joinpath(folder).mkdir()
        own(anyone.project / folder)
    for name in ("src/f", "src/deep/g", "lib/h", "top"):
        anyone.project.joinpath(name).write_text("text\n", encoding="ascii")
        own(anyone.project / name)
    anyone.home.joinpath("key").write_text("KEY", encoding="ascii")
    run.own, run.person = own, anyone
    return run


# --- what is closed above what is opened: it starts, and both hold -----------------------------------------------
def test_home_closed_project_open(srt):
    """denyRead ["~"] with the project in it: SRT binds allowed write paths back over the closed folder."""
    project = srt.person.home / "work"
    project.mkdir()
    srt.own(project)
    result = srt({"denyRead": ["~"], "allowWrite": ["~/work"]}, "echo x > made; cat made; cat ~/key; ls ~", cwd=project)
    assert "x\n" in result.out and "KEY" not in result.out and "work" not in result.out, result
    assert (project / "made").read_text(encoding="ascii") == "x\n"


def test_a_closed_home_is_not_opened_by_the_defaults(srt):
    """~/.npm/_logs is writable by default; a denyRead of the home closes it too, as SRT's does."""
    logs = srt.person.home / ".npm" / "_logs"
    logs.mkdir(parents=True)
    logs.joinpath("log").write_text("LOG", encoding="ascii")
    for path in (logs.parent, logs, logs / "log"):
        srt.own(path)
    line = "cat ~/.npm/_logs/log; echo; echo x > ~/.npm/_logs/new"
    assert "LOG" not in srt({"denyRead": ["~"]}, line).out and not (logs / "new").exists()
    assert "LOG" in srt({"denyRead": ["~"], "allowRead": ["~/.npm"]}, line).out and (logs / "new").exists()


def test_everything_above_closed(srt):
    top = "/" + srt.person.project.parts[1]
    result = srt({"denyRead": [top], "allowWrite": ["."]}, f"echo x > made; cat src/f; ls {top}")
    assert result.out == "text\n" and "Permission denied" in result.err, result
    assert (srt.person.project / "made").exists()


def test_the_project_closed_but_for_a_part(srt):
    result = srt({"denyRead": ["."], "allowRead": ["./src"]}, "pwd; cat src/f src/deep/g; cat top; ls; echo x > src/new")
    assert result.out == f"{srt.person.project}\ntext\ntext\n", result
    assert not (srt.person.project / "src/new").exists(), "allowRead opens for reading"
    result = srt({"denyRead": ["."], "allowWrite": ["./src"]}, "cat src/f top; echo x > src/new; echo x > new")
    assert result.out == "text\n" and (srt.person.project / "src/new").exists(), result
    assert not (srt.person.project / "new").exists()


def test_the_working_directory_closed(srt):
    result = srt({"denyRead": ["."]}, "pwd; ls; echo ok", cwd=srt.person.project / "src")
    assert result.out == f"{srt.person.project / 'src'}\nok\n", result
    assert "is closed to the sandbox" in result.err, result


def test_an_opened_link(srt):
    """allowRead of a link opens what it leads to (SRT opens nothing: docs/srt.md)."""
    srt.person.project.joinpath("way").symlink_to("src")
    result = srt({"denyRead": ["."], "allowRead": ["./way"]}, "cat src/f; cat top")
    assert result.out == "text\n", result


# --- what is the sandbox's own -----------------------------------------------------------------------------------
@pytest.mark.parametrize("place", ["/proc", "/dev", "/dev/shm", "/proc/self"])
def test_closing_the_sandboxs_own(srt, place):
    result = srt({"denyRead": [place]}, "cat /proc/self/comm; echo x > /dev/null && echo ok")
    assert result.out == "cat\nok\n", result
    assert "closes nothing" in result.err


@pytest.mark.parametrize("place", ["/dev/null", "/dev/stdout", "/dev/tty", "/proc/self"])
def test_opening_the_sandboxs_own(srt, place):
    assert srt({"allowWrite": [place, "."]}, "echo x > /dev/null; echo ok; touch f").out == "ok\n"
    assert (srt.person.project / "f").exists()


def test_the_whole_host_writable(srt):
    """As an ordinary user it is what that user can write; root's sandbox would own the host, and is refused."""
    result = srt({"allowWrite": ["/"], "denyWrite": ["./lib"]}, "echo x > made; echo x > lib/h; touch /usr/x; echo x > /etc/passwd; echo ok")
    if srt.person.person is None and os.geteuid() == 0:
        assert result.code == 1 and "[policy.write.root]" in result.err, result
        return
    assert "ok\n" in result.out and (srt.person.project / "made").exists(), result
    assert (srt.person.project / "lib/h").read_text(encoding="ascii") == "text\n"


# --- deny wins ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("deny, allow", [(".", "."), (".", "./src"), ("./src", "./src"), ("./src", "./src/deep"), ("./*", "./src"),
                                         ("./src/deep/g", "./src/deep/g")])
def test_a_closed_place_is_not_opened_by_the_same_or_a_longer_name(srt, deny, allow):
    result = srt({"allowWrite": [allow], "denyWrite": [deny]},
                 "for f in src/deep/g src/f; do echo CHANGED > $f; done; touch src/deep/new src/new new; rm -f src/deep/g; true")
    kept = [(srt.person.project / f).read_text(encoding="ascii") for f in ("src/deep/g",)]
    assert kept == ["text\n"] and not (srt.person.project / "src/deep/new").exists(), result


def test_flags_of_one_place(anyone):
    project = anyone.project
    for view in ("host", "private"):
        more = ["--view", "host"] if view == "host" else ["--workspace", project]
        result = anyone("run", *more, "--deny-write", project, "--allow-write", project, "--", "touch", "new", cwd=project)
        assert result.code == 1 and not list(project.iterdir()), (view, result)
    bind = ["--bind", f"{project}:/mnt/p:ro", "--deny-write", project, "--allow-write", project]
    result = anyone("run", *bind, "--", "touch", "/mnt/p/new")
    assert result.code == 1 and not list(project.iterdir()), result


def test_a_protected_name_is_not_opened_by_a_longer_one(srt):
    hooks = srt.person.project / ".git" / "hooks"
    hooks.mkdir(parents=True)
    hooks.joinpath("h").write_text("text\n", encoding="ascii")
    for path in (hooks.parent, hooks, hooks / "h"):
        srt.own(path)
    srt({"allowWrite": [".", ".git/hooks/h"]}, "echo CHANGED > .git/hooks/h; echo x > .git/hooks/i")
    assert hooks.joinpath("h").read_text(encoding="ascii") == "text\n" and len(list(hooks.iterdir())) == 1


def test_the_settings_file_is_not_opened_by_its_own_rule(srt):
    path = srt.person.project.parent / "srt-rules.json"
    srt.own(srt.person.project.parent)
    result = srt({"allowWrite": [".", str(path), str(path.parent)]}, f"echo x > {path}; rm -f {path}; mv {path} {path}.old")
    assert json.loads(path.read_text(encoding="utf-8"))["filesystem"]["denyRead"] == [], result


# --- words -------------------------------------------------------------------------------------------------------
def test_unknown_keys_and_comments_are_passed_over_and_said(srt):
    def text(made):
        made = {"$schema": "https://example.org/x.json", "version": 1, "colour": "blue", **made}
        return "// mine\n" + json.dumps(made, indent=1).replace('"network"', '/* here */ "network"')
    result = srt({"allowWrite": ["."]}, "echo ok", text=text)
    assert result.out == "ok\n", result
    assert all(word in result.err for word in ("$schema", "version", "colour", "comments")), result


def test_a_misspelt_key_is_refused(srt):
    """It may have been meant to close something."""
    result = srt({}, "echo ran", text=lambda made: json.dumps({**made, "filesystem": {**made["filesystem"], "denyRaed": ["~"]}}))
    assert result.code == 1 and "ran" not in result.out and "denyRead" in result.err, result


@pytest.mark.parametrize("env, expected", [({}, "/tmp/claude"), ({"CLAUDE_TMPDIR": "/a"}, "/a"),
                                           ({"CLAUDE_CODE_TMPDIR": "/b", "CLAUDE_TMPDIR": "/a"}, "/b"),
                                           ({"CLAUDE_CODE_TMPDIR": ""}, "/tmp/claude")], ids=range(4))
def test_temporary_folder(srt, env, expected):
    assert srt({}, "echo $TMPDIR", env={"CLAUDE_CODE_TMPDIR": None, "CLAUDE_TMPDIR": None, **env}).out == expected + "\n"


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1:8080", "localhost:3000"])
def test_localhost_in_an_allowlist_is_said(srt, name):
    result = srt({}, "echo ok", network={"allowedDomains": [name]})
    assert result.out == "ok\n" and name in result.err and "sandbox's own" in result.err, result


@pytest.mark.root
def test_ssh_to_an_allowed_host(online):
    """A rule without a port is every port; SSH knows no proxy, and reaches it."""
    settings = online.net.root / "ssh.json"
    settings.write_text(json.dumps({"network": {"allowedDomains": ["ok.example.org"], "deniedDomains": []},
                                    "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []}}), encoding="utf-8")
    code = ("import socket\nfor h in ('ok', 'other'):\n try:\n  s = socket.create_connection((h + '.example.org', 22), 20)\n"
            "  print(s.recv(20))\n except OSError as e: print('no')\n")
    result = online.cloche("srt", "-s", settings, "--", "/usr/bin/python3", "-c", code)
    lines = result.out.splitlines()
    assert "SSH-2.0-far" in lines[0] and lines[1] in ("no", "b''"), result


def test_socket_pairs(srt):
    """Of streams and of sequenced packets; of datagrams where no socket of the host can be named (docs/srt.md)."""
    code = "import socket; [socket.socketpair(socket.AF_UNIX, t) for t in (1, 5)]; print('ok')"
    assert srt({}, f"/usr/bin/python3 -c \"{code}\"").out == "ok\n"
