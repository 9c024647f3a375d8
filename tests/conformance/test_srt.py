"""`cloche srt` and a symlink named srt: the argv, settings, messages, exit codes and environment of SRT users."""
import json
import os
import socket
import subprocess

import pytest

from helpers import places, requirement

pytestmark = requirement("R01", "R02", "R03")
REFUSING = "Refusing to run with the built-in defaults"


class Srt:
    """srt("-c", "echo hi") in a project folder, with a settings file when one was written."""

    def __init__(self, cloche, world):
        self.cloche = cloche
        self.link = world.root / "srt"
        self.link.symlink_to(cloche.binary)
        self.home = cloche.home
        self.cwd = cloche.project
        self.by_link = False

    def __call__(self, *words, **kw):
        kw.setdefault("cwd", self.cwd)
        if self.by_link:
            return self.cloche.run([str(self.link), *words], **kw)
        return self.cloche("srt", *words, **kw)

    def settings(self, path=None, network=None, filesystem=None, **more):
        made = {"network": {"allowedDomains": [], "deniedDomains": [], **(network or {})},
                "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": [], **(filesystem or {})}, **more}
        path = path or self.home / ".srt-settings.json"
        path.write_text(json.dumps(made), encoding="utf-8")
        return path


@pytest.fixture(params=["verb", "symlink"])
def entry(request, cloche, world):
    made = Srt(cloche, world)
    made.by_link = request.param == "symlink"
    return made


@pytest.fixture
def srt(cloche, world):
    return Srt(cloche, world)


# argv ----------------------------------------------------------------------------------------------------------
def test_command_words(entry):
    entry.settings()
    assert entry("echo", "a b", "c").out == "a b c\n"
    assert entry("--", "echo", "--x").out == "--x\n"


def test_command_string(entry):
    entry.settings()
    assert entry("-c", "echo $((6*7)) | cat").out == "42\n"


def test_words_are_quoted_not_reparsed(entry):
    entry.settings()
    assert entry("printf", "%s|", "a b", "$HOME", "x;y", "'q'", "").out == "a b|$HOME|x;y|'q'||"


def test_no_command(entry):
    entry.settings()
    result = entry()
    assert result.code == 1 and "No command specified" in result.err, result


@pytest.mark.parametrize("flag", ["-s", "--settings"])
def test_settings_flag(srt, flag, project):
    path = srt.settings(project.parent / "mine.json")
    assert srt(flag, path, "echo", "ok").out == "ok\n"


def test_settings_with_equals_sign(srt, project):
    path = srt.settings(project.parent / "mine.json")
    assert srt(f"--settings={path}", "echo", "ok").out == "ok\n"


@pytest.mark.parametrize("how", [["-d"], ["--debug"], []], ids=["-d", "--debug", "SRT_DEBUG"])
def test_debug(srt, how):
    srt.settings()
    result = srt(*how, "-c", "echo x", env={} if how else {"SRT_DEBUG": "1"})
    assert result.out == "x\n"
    assert "[SandboxDebug]" in result.err, result


def test_debug_says_how_the_command_was_understood(srt):
    srt.settings()
    assert "Command string mode" in srt("-d", "-c", "echo x").err
    assert "Original command" in srt("-d", "echo", "x").err


def test_options_are_taken_wherever_they_stand(srt):
    """As its model's: without "--", a -c among the command's words is srt's own."""
    srt.settings()
    assert srt("ignored", "-c", "echo taken").out == "taken\n"
    assert srt("--", "sh", "-c", "echo $0", "mine").out == "mine\n"


def own_tmp_claude():
    if os.path.exists("/tmp/claude") and os.stat("/tmp/claude").st_uid != os.geteuid():
        pytest.skip("/tmp/claude of this host is somebody else's")


def test_quiet_without_debug(srt):
    own_tmp_claude()
    srt.settings()
    assert srt("echo", "x").err == ""


# settings ------------------------------------------------------------------------------------------------------
def test_missing_default_settings_deny(srt, project):
    """No ~/.srt-settings.json: it runs with the built-in rules, which let nothing be written in the project."""
    result = srt("-c", "echo ran; echo x > f")
    assert "ran" in result.out
    assert not (project / "f").exists(), "the built-in defaults allow no writes"


@pytest.mark.parametrize("text", ["", "   ", "{", "[]", "null", "{}", '{"network": {}}', '"x"',
                                  '{"network": {"allowedDomains": []}, "filesystem": {"denyRead": []}}',
                                  '{"network": {"allowedDomains": "x", "deniedDomains": []}, '
                                  '"filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []}}'],
                         ids=range(10))
def test_present_but_invalid_settings_refuse(srt, text, project):
    for path, words in ((srt.home / ".srt-settings.json", []), (project.parent / "mine.json", None)):
        path.write_text(text, encoding="ascii")
        result = srt(*(["-s", path] if words is None else words), "-c", "echo ran")
        assert result.code == 1 and REFUSING in result.err and "ran" not in result.out, result
        path.unlink()


def test_explicit_missing_settings_refuse(srt):
    result = srt("-s", "/no/such/settings.json", "echo", "ran")
    assert result.code == 1 and REFUSING in result.err and "/no/such/settings.json" in result.err, result


def test_unreadable_default_settings_refuse(srt):
    os.mkdir(srt.home / ".srt-settings.json")
    result = srt("echo", "ran")
    assert result.code == 1 and REFUSING in result.err, result


@pytest.mark.parametrize("domain", ["*", "*.com", "https://x.org", "a::b::c", "x\0y", "", "a b"])
def test_domain_patterns_that_srt_refuses(srt, domain):
    srt.settings(network={"allowedDomains": [domain]})
    result = srt("echo", "ran")
    assert result.code == 1 and REFUSING in result.err, result


RESOLVE = """
import socket, sys
for name in sys.argv[1:]:
    try:
        print(name, socket.getaddrinfo(name, 443, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
    except socket.gaierror:
        print(name, None)
"""


def resolve(srt, *names):
    result = srt("--", "/usr/bin/python3", "-c", RESOLVE, *names)
    assert result.ok, result
    return {name: address.startswith(("198.18.", "198.19."))
            for name, address in (line.split() for line in result.out.splitlines())}


def test_allowed_domains_are_found_and_no_others(srt):
    """SRT's dialect: a star is any depth but not the name itself, and a denied name beats an allowed one."""
    srt.settings(network={"allowedDomains": ["*.example.org", "registry.example:8443"],
                          "deniedDomains": ["bad.example.org"]})
    assert resolve(srt, "a.example.org", "a.b.example.org", "example.org", "evilexample.org", "bad.example.org",
                   "registry.example", "other.example") == {
        "a.example.org": True, "a.b.example.org": True, "example.org": False, "evilexample.org": False,
        "bad.example.org": False, "registry.example": True, "other.example": False}


def test_an_empty_allowlist_finds_nothing(srt):
    srt.settings(network={"allowedDomains": [], "deniedDomains": ["bad.example.org"]})
    assert resolve(srt, "example.org", "bad.example.org") == {"example.org": False, "bad.example.org": False}


def test_proxy_variables_come_with_an_allowlist_and_beat_the_callers(srt):
    names = ("HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "FTP_PROXY", "GRPC_PROXY", "DOCKER_HTTPS_PROXY")
    show = "for n in %s RSYNC_PROXY; do eval echo \\$$n; done" % " ".join(names)
    mine = {"ALL_PROXY": "socks5h://localhost:1", "HTTP_PROXY": "http://localhost:1"}
    srt.settings(network={"allowedDomains": ["example.org"]})
    lines = srt("-c", show, env=mine).out.split()
    assert lines == ["http://198.18.0.1:3128"] * len(names) + ["198.18.0.1:3128"]
    srt.settings()
    assert srt("-c", "echo $ALL_PROXY $RSYNC_PROXY", env=mine).out == "socks5h://localhost:1\n"


def test_allowed_domains_never_open_the_host_itself(srt, bait):
    """Neither by name nor by address, directly or by the proxy that the environment names."""
    srt.settings(network={"allowedDomains": ["example.org", "localhost", "127.0.0.1"]})
    code = f"import socket; s=socket.create_connection(('127.0.0.1', {bait.tcp}), 3); print(s.recv(20))"
    result = srt("--", "/usr/bin/python3", "-c", code)
    assert not result.ok and "host service" not in result.out, result
    for target in ("localhost", "127.0.0.1"):
        code = ("import os, socket, urllib.parse; p = urllib.parse.urlsplit(os.environ['HTTPS_PROXY'])\n"
                "s = socket.create_connection((p.hostname, p.port), 3)\n"
                f"s.sendall(b'CONNECT {target}:{bait.tcp} HTTP/1.1\\r\\nHost: {target}:{bait.tcp}\\r\\n\\r\\n')\n"
                "print(s.makefile('rb').read().decode())")
        result = srt("--", "/usr/bin/python3", "-c", code)
        assert result.out.startswith("HTTP/1.1 403 ") and "host service" not in result.out, result


NOT_YET = [("network", "deniedResolvedAddresses", ["8.8.8.0/24"]), ("network", "ambiguousRequestTarget", "normalize"), ("network", "socksProxyPort", 1080),
           ("network", "mitmProxy", {"socketPath": "/run/p", "domains": ["example.org"]}),
           ("network", "tlsTerminate", {"caCertPath": "/c.pem", "caKeyPath": "/k.pem"}), ("filesystem", "disabled", True),
           ("credentials", "allowPlaintextInject", True),
           ("credentials", "envVars", [{"name": "TOKEN", "mode": "mask", "injectHosts": ["example.org"]}]),
           ("credentials", "files", [{"path": "~/.netrc", "mode": "mask", "extract": "password (.*)"}]),
           ("credentials", "awsPairs", [{"accessKeyIdVar": "A", "secretAccessKeyVar": "B"}])]


@pytest.mark.parametrize("section,key,value", NOT_YET, ids=[key for _, key, _ in NOT_YET])
def test_what_is_refused_says_why_and_what_to_use(srt, section, key, value):
    """With an open network; the table of docs/srt.md has each of them."""
    sections = {"network": {"allowedDomains": ["example.org"]}, "filesystem": {}, "credentials": {}}
    sections[section][key] = value
    srt.settings(**sections)
    result = srt("echo", "ran")
    assert result.code == 1 and REFUSING in result.err and "ran" not in result.out, result
    assert "[policy.srt.not-yet]" in result.err and f"{section}.{key}" in result.err and "; or leave it out" in result.err, result
    page = (places.REPO / "docs/srt.md").read_text(encoding="utf-8")
    assert key in page or f"mode: {value[0]['mode']}" in page


def test_keys_that_look_into_connections_become_those_of_the_policy(srt):
    """As they are shown, so the wall has them: tests/escape/test_egress_look.py attacks it."""
    path = srt.settings(srt.home / "look.json", network={
        "allowedDomains": ["*.example.org"], "stripResponseHeaders": ["Set-Cookie"], "refuseOpaqueTunnels": True, "ambiguousRequestTarget": "refuse",
        "allowPlaintextHeaderSet": True, "tlsTerminate": {"excludeDomains": ["*.pinned.example.org"], "extraCaCertPaths": ["/etc/hosts"], "maxTunnels": 5,
                                                          "handshakeTimeoutMs": 10000}})
    shown = json.loads(srt.cloche("policy", "show", "--settings", path, "--json", cwd=srt.cwd).out)
    assert all(shown["network"][key]["value"] for key in ("open-tls", "refuse-opaque", "refuse-moving-paths")), shown
    assert [[e["value"] for e in shown["network"][key]] for key in ("keep-tls", "strip-headers", "extra-ca")] == [
        ["*.pinned.example.org"], ["Set-Cookie"], ["/etc/hosts"]]
    srt.settings(network={"allowedDomains": [], "tlsTerminate": {"excludeDomains": ["a.example.org"]}, "refuseOpaqueTunnels": True})
    assert srt("echo", "ran").out == "ran\n", "a closed network needs no CA"


@pytest.mark.parametrize("member,value", [("maxTunnels", 0), ("maxTunnels", "x"), ("handshakeTimeoutMs", -1), ("excludeDomains", ["*"]), ("excludeDomain", [])])
def test_members_of_tls_terminate_that_are_none(srt, member, value):
    srt.settings(network={"allowedDomains": ["example.org"], "tlsTerminate": {member: value}})
    result = srt("echo", "ran")
    assert result.code == 1 and REFUSING in result.err and "network.tlsTerminate" in result.err, result


# exit codes ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("script,code", [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -TERM $$; sleep 9", 0),
                                         ("kill -INT $$; sleep 9", 0), ("kill -KILL $$; sleep 9", 1),
                                         ("ulimit -c 0; kill -SEGV $$; sleep 9", 1), ("no-such-command-x", 127)])
def test_exit_codes(entry, script, code):
    entry.settings()
    result = entry("-c", script)
    assert result.code == code, result


def test_sigterm_to_srt_ends_the_command(srt):
    srt.settings()
    process = srt.cloche.start(srt.cloche.argv("srt", "-c", "echo ready; exec sleep 1000"), cwd=str(srt.cwd))
    assert process.stdout.readline() == b"ready\n"
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 0


# file system: the host's own tree, read-only but for allowWrite ---------------------------------------------------
def test_same_paths_and_cwd(srt, project):
    srt.settings()
    (project / "f").write_text("x\n", encoding="ascii")
    assert srt("-c", "pwd -P; cat f").out == f"{project}\nx\n"


def test_write_only_where_allowed(srt, project, world):
    other = world.root / "other"
    other.mkdir(mode=0o777)
    srt.settings()
    result = srt("-c", f"echo y > f; echo y > {other}/f; echo y > {srt.home}/f; echo y > /usr/f")
    assert (project / "f").read_text() == "y\n"
    assert not list(other.iterdir()) and not (srt.home / "f").exists(), result


def test_reading_is_allowed_by_default(srt, world):
    (world.root / "elsewhere").write_text("readable\n", encoding="ascii")
    srt.settings()
    assert srt("cat", world.root / "elsewhere").out == "readable\n"


def test_deny_read(srt, project):
    srt.settings(filesystem={"denyRead": [str(srt.home / ".ssh"), "**/*.secret"]})
    (srt.home / ".ssh").mkdir()
    (srt.home / ".ssh/id").write_text("PRIVATE", encoding="ascii")
    (project / "a.secret").write_text("PRIVATE", encoding="ascii")
    result = srt("-c", "cat ~/.ssh/id; cat a.secret; ls ~/.ssh")
    assert "PRIVATE" not in result.out and "id" not in result.out.split(), result


def test_allow_read_reopens_and_deeper_deny_closes_again(srt):
    base = srt.home / "data"
    for name in ("a", "open/b", "open/closed/c"):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(f"<{name}>", encoding="ascii")
    srt.settings(filesystem={"denyRead": [str(base), str(base / "open/closed")], "allowRead": [str(base / "open")]})
    result = srt("-c", f"cat {base}/a; cat {base}/open/b; cat {base}/open/closed/c")
    assert result.out == "<open/b>", result


def test_deny_write_beats_allow_write(srt, project):
    (project / "fixed").mkdir()
    srt.settings(filesystem={"denyWrite": ["./fixed", "new-name"]})
    result = srt("-c", "echo x > fixed/f; echo x > new-name; mv fixed moved; echo x > free")
    assert (project / "free").exists() and not (project / "fixed/f").exists(), result
    assert not (project / "new-name").exists() and (project / "fixed").is_dir()


def test_the_usual_settings_are_not_made_inside(srt, cloche):
    """Those of another file let the home be written; the next plain `srt` would take what is made there for its owner's."""
    usual = cloche.home / ".srt-settings.json"
    other = srt.settings(cloche.project / "other.json", filesystem={"allowWrite": [str(cloche.home)]})
    result = srt("-s", other, "sh", "-c", f"echo x > {cloche.home}/other && echo '{{}}' > {usual}; mv {cloche.home}/other {usual}", cwd=cloche.home)
    assert result.code != 0 and (cloche.home / "other").exists() and not usual.exists(), result


def test_literal_entries(srt, project):
    (project / "[a]").write_text("bracket", encoding="ascii")
    (project / "a").write_text("plain", encoding="ascii")
    srt.settings(filesystem={"denyRead": [{"path": str(project / "[a]"), "literal": True}]})
    result = srt("-c", "cat a; cat '[a]'")
    assert result.out == "plain", result


@pytest.mark.parametrize("name", [".gitconfig", ".bashrc", ".mcp.json", ".vscode/settings.json", ".idea/x",
                                  ".claude/commands/x", ".claude/agents/x", ".git/hooks/pre-commit", ".git/config"])
@pytest.mark.parametrize("present", [True, False], ids=["present", "absent"])
def test_mandatory_write_denies(srt, project, name, present):
    if present:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("mine", encoding="ascii")
    srt.settings()
    result = srt("-c", f"mkdir -p $(dirname {name}); echo evil > {name}; true")
    assert result.ok
    if present:
        assert (project / name).read_text() == "mine"
    else:
        assert not (project / name).exists(), result


def test_git_config_is_lifted_only_by_its_setting(srt, project):
    (project / ".git/hooks").mkdir(parents=True)
    (project / ".git/config").write_text("mine", encoding="ascii")
    srt.settings(filesystem={"allowGitConfig": True})
    srt("-c", "echo theirs > .git/config; echo evil > .git/hooks/x")
    assert (project / ".git/config").read_text() == "theirs\n"
    assert not (project / ".git/hooks/x").exists()


def test_git_internals_stay_writable(srt, project):
    (project / ".git/objects").mkdir(parents=True)
    (project / ".git/refs").mkdir()
    srt.settings()
    result = srt("-c", "echo x > .git/objects/o && echo x > .git/refs/r && echo x > .git/index && mkdir .claude && "
                       "echo x > .claude/settings.local.json")
    assert result.ok, result


@requirement("R91")
def test_no_ghost_files(srt, project):
    srt.settings()
    srt("-c", "echo hi > f")
    assert sorted(p.name for p in project.iterdir()) == ["f"]


def test_standard_devices_and_tmp_claude_are_writable(srt):
    own_tmp_claude()
    srt.settings()
    existed = os.path.exists("/tmp/claude")
    result = srt("-c", "echo x > /dev/null && echo x > $TMPDIR/f-$$ && rm $TMPDIR/f-$$ && echo $TMPDIR")
    assert result.ok and result.out.startswith("/tmp/claude"), result
    if not existed and os.path.isdir("/tmp/claude") and not os.listdir("/tmp/claude"):
        os.rmdir("/tmp/claude")


# environment, sockets, network ---------------------------------------------------------------------------------
def test_environment_is_inherited(srt):
    srt.settings()
    assert srt("-c", "echo $MINE $HOME", env={"MINE": "yes"}).out == f"yes {srt.home}\n"


def test_denied_variables(srt):
    srt.settings(credentials={"envVars": [{"name": "TOKEN", "mode": "deny"}]})
    assert srt("-c", "echo [$TOKEN]", env={"TOKEN": "hunter2"}).out == "[]\n"


def test_denied_credential_files(srt):
    (srt.home / ".netrc").write_text("hunter2", encoding="ascii")
    srt.settings(credentials={"files": [{"path": "~/.netrc", "mode": "deny"}]})
    assert "hunter2" not in srt("-c", "cat ~/.netrc").out


def test_network_is_closed(srt, bait):
    srt.settings()
    code = f"import socket; s=socket.create_connection(('127.0.0.1', {bait.tcp}), 3); print(s.recv(20))"
    assert not srt("--", "/usr/bin/python3", "-c", code).ok


def test_unix_sockets_are_closed_but_for_the_allowed(srt, bait):
    code = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(20))"
    srt.settings()
    assert not srt("--", "/usr/bin/python3", "-c", code, bait.path).ok
    srt.settings(network={"allowUnixSockets": [bait.path]})
    assert "host service" in srt("--", "/usr/bin/python3", "-c", code, bait.path).out
    srt.settings(network={"allowAllUnixSockets": True})
    assert "host service" in srt("--", "/usr/bin/python3", "-c", code, bait.path).out


def test_processes_of_the_host_are_not_reachable(srt, bait):
    srt.settings()
    result = srt("-c", f"kill -0 {bait.victim.pid}; cat /proc/{bait.victim.pid}/cmdline")
    assert not result.ok and bait.mark not in result.out


# control fd ----------------------------------------------------------------------------------------------------
def test_control_fd(srt):
    """A line that is no configuration changes nothing, and is said."""
    srt.settings()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        number = theirs.fileno()
        process = srt.cloche.start(srt.cloche.argv("srt", "--control-fd", str(number), "-c",
                                   f"readlink /proc/self/fd/{number} || echo none; echo ready; read x; echo $x"),
                                   cwd=str(srt.cwd), pass_fds=[number], stdin=subprocess.PIPE)
        assert process.stdout.readline() in (b"none\n", b"/dev/null\n"), "the channel is not the command's"
        assert process.stdout.readline() == b"ready\n"
        ours.sendall(b"\n{broken\n")
        wanted = f"Invalid config on control fd {number}: ignored, previous config still in force".encode()
        # a warning may come first: whose /tmp/claude it is
        assert any(wanted in line for line in iter(process.stderr.readline, b""))
        process.stdin.write(b"end\n")
        process.stdin.close()
        assert process.stdout.readline() == b"end\n"
        assert process.wait(60) == 0


@pytest.mark.parametrize("value", ["0", "2", "x", "-1", "999999"])
def test_control_fd_malformed(srt, value):
    srt.settings()
    assert srt("--control-fd", value, "echo", "ran").code == 1


@pytest.mark.ordinary
def test_srt_as_an_ordinary_user(srt, project):
    srt.settings()
    result = srt("-c", f"echo x > f; id -u; echo y > {srt.home}/g")
    assert (project / "f").exists() and not (srt.home / "g").exists(), result
    assert os.stat(project / "f").st_uid == os.stat(project).st_uid
