"""policy check, policy show, why: what a policy says before anything runs; and that runs obey it."""
import json

import pytest

from helpers import requirement
from helpers.runner import limit_of


@pytest.fixture
def settings(project):
    def write(text, name="cloche.yaml"):
        path = project / name
        path.write_text(text, encoding="utf-8")
        return path
    return write


# check ---------------------------------------------------------------------------------------------------------
@requirement("R67")
def test_check_accepts_a_good_file(cloche, settings):
    result = cloche("policy", "check", settings("version: 1\nmode: standard\nlimits:\n  memory: 256m\n  pids: 100\n"))
    assert result.ok, result


@requirement("R67")
@pytest.mark.parametrize("text,line,words", [
    ("version: 1\nmode: standrad\n", 2, ["standrad", "standard"]),
    ("version: 1\nlimitz:\n  memory: 1g\n", 2, ["limitz", "limits"]),
    ("version: 1\nlimits:\n  memroy: 1g\n", 3, ["memroy", "memory"]),
    ("version: 1\nlimits:\n  memory: lots\n", 3, ["lots", "memory"]),
    ("version: 1\nmode: max\nmode: light\n", 3, ["mode"]),
    ("version: 1\nlimits:\n  pids: 5\n  pids: 6\n", 4, ["pids"]),
    ("version: 1\nlimits: 5\n", 2, ["limits"]),
    ("version: 1\nmode: [max]\n", 2, ["mode"]),
    ("version: 2\n", 1, ["version"]),
    ("version: 1\nmode: &a max\nother: *a\n", None, []),
    ("version: 1\n  mode: max\n", 2, []),
    ("version: 1\nmode: max\n---\nmode: off\n", None, []),
    ("version: 1\nlimits:\n  pids: !!int 5\n", None, []),
    ("\tversion: 1\n", 1, []),
    ("[]\n", None, []),
    ("just text\n", None, []),
    ("version: 1\nmode: \"max\n", None, []),
], ids=lambda v: repr(v)[:24])
def test_check_refuses_and_names_line_key_and_fix(cloche, settings, text, line, words):
    path = settings(text)
    result = cloche("policy", "check", path)
    assert result.code == 125, result
    assert path.name in result.err
    if line:
        assert f"{path.name}:{line}" in result.err, result
    for word in words:
        assert word in result.err, result
    assert "[policy." in result.err, f"no stable code: {result!r}"


@requirement("R67")
@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "   "])
def test_empty_explicit_file_is_refused_never_replaced_by_defaults(cloche, settings, text):
    path = settings(text)
    assert cloche("policy", "check", path).code == 125
    result = cloche("run", "--settings", path, "--", "true")
    assert result.code == 125 and path.name in result.err, result


def test_missing_unreadable_and_strange_files_are_refused(cloche, project, settings):
    missing = project / "nothing.yaml"
    assert cloche("run", "--settings", missing, "--", "true").code == 125
    assert "nothing.yaml" in cloche("policy", "check", missing).err
    assert cloche("policy", "check", project).code == 125
    big = settings("version: 1\n" + "# " + "x" * 2_000_000 + "\n")
    assert cloche("policy", "check", big).code == 125
    (project / "nul.yaml").write_bytes(b"version: 1\nmode: max\0\n")
    assert cloche("policy", "check", project / "nul.yaml").code == 125
    (project / "latin.yaml").write_bytes(b"version: 1\nhostname: caf\xe9\n")
    assert cloche("policy", "check", project / "latin.yaml").code == 125
    assert cloche("policy", "check", "/dev/null").code == 125


@pytest.mark.parametrize("text", [
    '{"version": 1, "env": {"A" "XYZZY-1234"}}', '{"version": 1, "env": {"A": "x" "XYZZY-1234"}}', '{"version": 1, "env": {"A": XYZZY}}',
    '{"version": 1, "env": {"A": "XYZZY-1234}}', '{"version": 1, "env": {"A": ["XYZZY-1234"]}}',
    '{"version": 1, "network": {"allow": ["a.example.org"], "parent-proxy": {"http": "ftp://u:XYZZY-1234@h:1"}}}',
])
def test_a_refusal_does_not_quote_a_value(cloche, settings, text):
    """It lands in a pipeline's log."""
    for words in (["run", "--settings"], ["policy", "check"]):
        result = cloche(*words, settings(text, "cloche.json"), *(["--", "true"] if words[0] == "run" else []))
        assert result.code == 125 and "XYZZY" not in result.err + result.out, result


def test_settings_that_are_a_fifo_do_not_hang(cloche, project):
    import os
    os.mkfifo(project / "pipe.yaml")
    assert cloche("policy", "check", project / "pipe.yaml", timeout=30).code == 125


def test_duplicate_keys_in_json_are_refused(cloche, settings):
    path = settings('{"version": 1, "mode": "max", "mode": "light"}\n', "p.json")
    result = cloche("policy", "check", path)
    assert result.code == 125 and "mode" in result.err, result


@requirement("R67")
def test_who_relies_on_being_asked_is_warned(cloche, settings):
    """There is no gate here."""
    asks = settings("security:\n  hitl: {enabled: true}\n")
    said = cloche("run", "--settings", asks, "--", "echo", "ran")
    assert said.out == "ran\n" and ":2: security.hitl.enabled" in said.err and "[policy.hitl]" in said.err, said
    quiet = cloche("run", "--quiet", "--settings", asks, "--", "echo", "ran")
    assert quiet.out == "ran\n" and "hitl" not in quiet.err, quiet


def test_json_settings(cloche, settings):
    path = settings('{"version": 1, "mode": "max", "limits": {"memory": "100m"}}\n', "p.json")
    report = cloche("run", "--settings", path, "--json", "--", "true").json
    assert report["mode"] == "max" and limit_of(report, "memory")["limit"] == 100 << 20


def test_check_in_json(cloche, settings):
    good = cloche("policy", "check", "--json", settings("version: 1\nmode: max\n"))
    assert good.ok and isinstance(good.json, dict), good
    bad = cloche("policy", "check", "--json", settings("version: 1\nmode: big\n", "bad.yaml"))
    assert bad.code == 125 and "big" in bad.json["error"]["message"], bad


# show ----------------------------------------------------------------------------------------------------------
@requirement("R30", "R43")
def test_show_tells_where_each_value_came_from(cloche, settings):
    path = settings("version: 1\nlimits:\n  memory: 256m\n")
    result = cloche("policy", "show", "--settings", path, "--pids", "77")
    assert result.ok, result
    lines = {word: line for line in result.out.splitlines() for word in ("memory", "pids", "mode") if word in line}
    assert path.name in lines["memory"] and "3" in lines["memory"], result
    assert "--pids" in lines["pids"] and "77" in lines["pids"], result


def test_show_in_json_round_trips_the_limits(cloche):
    result = cloche("policy", "show", "--json", "--memory", "123m", "--mode", "max")
    assert result.ok, result
    text = json.dumps(result.json)
    assert str(123 << 20) in text and '"max"' in text and "--memory" in text


def test_show_starts_nothing(cloche, project):
    assert cloche("policy", "show", "--workspace", project).ok


def test_flag_beats_file_beats_preset(cloche, settings):
    path = settings("version: 1\nmode: max\nlimits:\n  memory: 100m\n  pids: 20\n")
    report = cloche("run", "--settings", path, "--memory", "200m", "--json", "--", "true").json
    assert limit_of(report, "memory")["limit"] == 200 << 20 and limit_of(report, "pids")["limit"] == 20
    assert limit_of(report, "disk")["limit"] == 256 << 20


# why -----------------------------------------------------------------------------------------------------------
def why(cloche, *words):
    result = cloche("why", "--json", *words)
    return result.json


@requirement("R30")
@pytest.mark.parametrize("op", ["read", "write"])
def test_why_agrees_with_what_happens(cloche, project, world, op):
    """For each place: the verdict of `why` is what a run experiences."""
    (project / "f").write_text("x", encoding="ascii")
    (project / ".git").mkdir()
    (project / ".git/config").write_text("[core]\n", encoding="ascii")
    act = {"read": "cat {} >/dev/null", "write": "sh -c ': >> {}'"}[op]
    for inside in ("/workspace/f", "/workspace/new", "/workspace/.git/config", "/usr/bin/env", "/etc/passwd", "/tmp/x",
                   "/home/agent/x", "/etc/shadow"):
        if op == "read" and inside in ("/workspace/new", "/tmp/x", "/home/agent/x"):
            continue
        said = why(cloche, "--workspace", project, "--path", inside, "--op", op)
        did = cloche("run", "--workspace", project, "--", "bash", "-c", act.format(inside)).ok
        verdict = said.get("verdict") or said.get("status")
        assert (verdict == "allowed") is did, (inside, said, did)


@requirement("R30")
def test_why_names_rule_source_and_flag(cloche, project):
    said = why(cloche, "--workspace", project, "--deny-read", "/workspace/secrets", "--path", "/workspace/secrets/key",
               "--op", "read")
    text = json.dumps(said)
    assert said["verdict"] == "denied"
    assert "/workspace/secrets" in text and "--deny-read" in text, said


@requirement("R30")
def test_why_about_a_host(cloche):
    said = why(cloche, "--host", "example.org:443")
    assert said["verdict"] == "denied" and "network" in json.dumps(said), said


def test_why_in_words(cloche, project):
    result = cloche("why", "--workspace", project, "--path", "/workspace/.git/hooks/pre-commit", "--op", "write")
    assert "denied" in result.out and ".git/hooks" in result.out, result


@pytest.mark.parametrize("words", [[], ["--path"], ["--path", "/x", "--op", "fly"], ["--host", ""],
                                   ["--path", "/x", "--host", "y"], ["--host", "exa mple.org"]])
def test_why_misuse_is_refused(cloche, words):
    assert cloche("why", *words).code == 125


# rules in force ------------------------------------------------------------------------------------------------
@requirement("R03", "R01")
def test_deny_read_and_allow_read(cloche, project):
    for name in ("secrets/key", "secrets/public/cert", "plain"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(name, encoding="ascii")
    result = cloche("run", "--workspace", project, "--deny-read", "/workspace/secrets", "--allow-read",
                    "/workspace/secrets/public", "--", "sh", "-c",
                    "cat plain; cat secrets/key; cat secrets/public/cert; ls secrets")
    assert "plain" in result.out and "secrets/public/cert" in result.out, result
    assert "secrets/key" not in result.out.replace("secrets/key:", ""), result


@requirement("R03")
def test_deny_write_beats_the_writable_workspace(cloche, project):
    (project / "fixed").mkdir()
    (project / "fixed/f").write_text("x", encoding="ascii")
    result = cloche("run", "--workspace", project, "--deny-write", "/workspace/fixed", "--", "sh", "-c",
                    "echo y > fixed/f; echo y > fixed/new; mv fixed moved; rm -rf fixed; echo y > free")
    assert (project / "fixed/f").read_text() == "x" and not (project / "fixed/new").exists(), result
    assert (project / "free").read_text() == "y\n"


@requirement("R03")
def test_deny_read_with_globs(cloche, project):
    for name in ("a.pem", "b.pem", "c.txt", "sub/d.pem"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(f"<{name}>", encoding="ascii")
    result = cloche("run", "--workspace", project, "--deny-read", "/workspace/**/*.pem", "--", "sh", "-c",
                    "cat a.pem b.pem c.txt sub/d.pem")
    assert "<c.txt>" in result.out and "pem>" not in result.out, result


@requirement("R03")
@pytest.mark.parametrize("name", [".gitconfig", ".gitmodules", ".bashrc", ".bash_profile", ".zshrc", ".zprofile",
                                  ".profile",
                                  ".ripgreprc", ".mcp.json", ".vscode/x", ".idea/x", ".claude/commands/x",
                                  ".claude/agents/x", ".git/hooks/x", ".git/config"])
@pytest.mark.parametrize("present", [True, False], ids=["present", "absent"])
def test_protected_names_cannot_be_written(cloche, project, name, present):
    path = project / name
    if present:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine\n", encoding="ascii")
    before = sorted(str(p) for p in project.rglob("*"))
    result = cloche("run", "--workspace", project, "--", "sh", "-c",
                    f"mkdir -p $(dirname {name}); echo evil > {name}; rm -rf {name}; cp /etc/hostname {name}; "
                    f"echo x > t; mv t {name}; ln -s t {name}; ln t {name}; rm -f t; true")
    if present:
        assert path.read_text() == "mine\n", result
        assert sorted(str(p) for p in project.rglob("*") if p.name != "t") == before, result
    else:
        assert not path.exists() and not path.is_symlink(), result


def test_other_names_next_to_protected_ones_stay_writable(cloche, project):
    (project / ".git/objects").mkdir(parents=True)
    (project / ".claude").mkdir()
    result = cloche("run", "--workspace", project, "--", "sh", "-ec",
                    "echo x > .git/objects/f; echo x > .git/index; echo x > .claude/settings.local; echo x > "
                    ".env.example; "
                    "echo x > .gitignore; mkdir .github; echo x > bashrc")
    assert result.ok, result


@requirement("R04")
def test_allowed_unix_socket_by_path(cloche, bait):
    code = f"import socket; s=socket.socket(socket.AF_UNIX); s.connect({bait.path!r}); print(s.recv(20))"
    flags = ["--bind", str(bait.root)]
    assert "host service" not in cloche.sandbox(code, flags=flags).out
    allowed = cloche.sandbox(code, flags=[*flags, "--allow-unix-socket", bait.path])
    assert "host service" in allowed.out, allowed


@requirement("R12")
@pytest.mark.parametrize("flags,code", [
    (["--mode", "light", "--allow-domain", "example.org"], "policy.network.light"),
    (["--mode", "light", "--network", "allowlist"], "policy.network.light"),
    (["--network", "none", "--allow-domain", "example.org"], "policy.network.closed"),
    (["--deny-domain", "example.org"], "policy.network.closed"),
    (["--network", "host", "--allow-domain", "example.org"], "policy.network.both"),
    (["--mode", "off", "--allow-domain", "example.org"], "policy.off.asks"),
])
def test_names_that_could_not_be_kept_are_refused(cloche, flags, code):
    result = cloche("run", *flags, "--", "/bin/echo", "ran")
    assert result.code == 125 and f"[{code}]" in result.err and "ran" not in result.out, result


@requirement("R12")
@pytest.mark.parametrize("mode", ["standard", "max"])
def test_an_allowlist_is_taken_and_the_program_sees_names(cloche, mode):
    """An allowed name gets an address that exists nowhere, another one none; `why` says the same."""
    code = """
import socket
for name in ("a.example.org", "example.org", "bad.example.org", "other.example"):
    try:
        print(name, socket.getaddrinfo(name, 443, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
    except socket.gaierror:
        print(name, None)
"""
    flags = ["--mode", mode, "--allow-domain", "*.example.org", "--deny-domain", "bad.example.org"]
    result = cloche.sandbox(code, flags=flags)
    answers = dict(line.split() for line in result.out.splitlines())
    assert answers.pop("a.example.org").startswith(("198.18.", "198.19.")), result
    assert answers == {"example.org": "None", "bad.example.org": "None", "other.example": "None"}, result
    told = {name: why(cloche, *flags, "--host", f"{name}:443") for name in ("a.example.org", "bad.example.org", "other.example")}
    assert [(t["verdict"], t["reason"], t["rule"]) for t in told.values()] == [
        ("allowed", "allow-domain", "*.example.org"), ("denied", "deny-domain", "bad.example.org"),
        ("denied", "network-no-rule", None)], told


@requirement("R14")
@pytest.mark.parametrize("host,reason", [("localhost:80", "local-name"), ("127.0.0.1:443", "always-blocked"),
                                         ("169.254.169.254", "always-blocked"), ("10.9.9.9:80", "address-no-rule"),
                                         ("metadata.google.internal", "metadata-name"), ("0x7f.1", "address-form")])
def test_why_knows_what_no_rule_opens(cloche, host, reason):
    said = why(cloche, "--allow-domain", "localhost", "--allow-domain", "127.0.0.1", "--allow-domain", "169.254.169.254",
               "--allow-domain", "metadata.google.internal", "--host", host)
    assert said["verdict"] == "denied" and said["reason"] == reason, said

