"""The verbs that ask a daemon, in the hands of somebody who makes mistakes: what is said of each, and what to do."""
import pwd

import pytest

from helpers import requirement
from helpers.daemon import token
from helpers.runner import HANG_GUARD, Runner
from helpers.shared import shared

pytestmark = [requirement("R89"), shared]

# that ask at once, with their words
ASK = [["ps"], ["top", "--once"], ["events"], ["events", "--follow"], ["logs", "one"], ["watch", "one"], ["exec", "one", "true"], ["ports", "one"],
       ["attach", "one", "--write"], ["attach", "one", "ls"],
       ["kill", "one"], ["kill", "--all"], ["token", "ls"], ["volume", "ls"], ["approvals", "ls", "--socket"]]
names = [" ".join(words) for words in ASK]


def said(result, code, *parts):
    """A refusal in its form: what is wrong, then what to do about it and a code."""
    assert result.code == 125 and not result.out, result
    first, second = result.err.splitlines()
    assert first.startswith("cloche: ") and second.startswith("        ") and second.endswith(f"[{code}]"), result
    for part in parts:
        assert part in result.err, (part, result)


@pytest.mark.parametrize("words", ASK, ids=names)
def test_without_a_daemon(cloche, words):
    path = cloche.home / "none.sock"
    words = words + [path] if words[-1] == "--socket" else [*words, "--socket", path]
    if words[0] == "exec":
        words = ["exec", "--socket", path, "one", "true"]
    said(cloche(*words), "api.down", f"no cloche serve answers at {path}", "`cloche serve`", "--socket")
    at = words.index("--socket")        # named by the variable it is that one too, or none
    said(cloche(*words[:at], *words[at + 2:], env={"CLOCHE_SOCKET": str(path)}), "api.down", f"no cloche serve answers at {path}")


@pytest.mark.parametrize("words", ASK, ids=names)
def test_with_something_that_is_no_token(daemon, cloche, words):
    words = words + [daemon.path] if words[-1] == "--socket" else words
    for value, code in (("x", "auth.malformed"), ("two words", "api.token"), ("line\n", "api.token"), ("x" * 300, "api.token"),
                        (token(daemon, "operator")["token"][:-1] + "-", None)):
        result = cloche(*words, env={"CLOCHE_TOKEN": value, "CLOCHE_SOCKET": str(daemon.path)})
        assert code or "[auth." in result.err, result
        said(result, code or result.err.split("[")[-1].rstrip("]\n"), "CLOCHE_TOKEN is for what `cloche token create` printed")


@pytest.mark.root
def test_another_users_daemon(daemon, cloche):
    nobody = pwd.getpwnam("nobody")
    other = Runner({**cloche.env, "HOME": "/nonexistent"}, "/", nobody)
    said(other.run([cloche.binary, "ps", "--socket", daemon.path]), "api.down", "Permission denied", "for the user who started it")


def test_what_is_no_socket(cloche):
    for path in ("tcp:127.0.0.1:7700", "http://127.0.0.1:7700"):
        said(cloche("ps", "--socket", path), "api.socket", f"{path} is not a path of a unix socket")
        said(cloche("ps", env={"CLOCHE_SOCKET": path}), "api.socket", f"{path} is not a path of a unix socket")


@pytest.mark.parametrize("words, code, parts", [
    (["token"], "cli.token.verb", ["wants one of create, ls, revoke", "`cloche token --help`"]),
    (["token", "lss"], "cli.token.verb", ["did you mean `cloche token ls`?"]),
    (["token", "revoke"], "cli.token.verb", ["not how `cloche token revoke` is called"]),
    (["ports"], "cli.sandbox", ["which sandbox?", "`cloche ps` lists them"]),
    (["ports", "one", "lst"], "cli.ports.verb", ["did you mean `cloche ports SANDBOX ls`?"]),
    (["volume"], "cli.volume", ["wants one of ls, rm"]),
    (["volume", "list"], "cli.volume", ['"list" is not one of ls, rm']),
    (["approvals", "aprove", "0123"], "cli.approvals.verb", ["did you mean `cloche approvals approve`?"]),
    (["approvals", "--wach"], "cli.unknown-flag", ["did you mean --watch?"]),
    (["approvals", "approve", "0123", "--once", "--always"], "cli.approvals.scope", ["--once and --always"]),
    (["approvals", "approve", "0123", "4567"], "cli.operand", ["one operand too many: 4567"]),
    (["audit"], "cli.audit.verb", ["wants one of tail, query, verify, export"]),
    (["audit", "tial"], "cli.audit.verb", ["did you mean `cloche audit tail`?"]),
    (["audit", "tail", "--limt", "3"], "cli.unknown-flag", ["did you mean --limit?"]),
    (["audit", "tail", "--limit=x"], "cli.audit.limit", ['"x" is not a number']),
    (["audit", "tail", "-q"], "cli.unknown-flag", ["`cloche audit --help`"]),
    (["config", "chek"], "cli.usage", ["did you mean `cloche config check`?"]),
    (["net"], "cli.net.verb", ["wants one of log, ls, allow, deny", "`cloche net --help`"]),
    (["net", "lgo"], "cli.net.verb", ["did you mean `cloche net log`?"]),
    (["net", "allow", "example.org"], "cli.net.verb", ["not how `cloche net allow` is called"]),
    (["net", "log", "--all"], "cli.unknown-flag", ["unknown flag --all"]),
    (["why", "a/path"], "cli.usage", ['not "a/path"', "--path PATH"]),
    (["approvals", "approve", "xyz"], "cli.approvals.id", ['"xyz" is no question\'s id', "`cloche approvals` lists what waits"]),
    (["gate"], "cli.gate.verb", ["wants one of check, why"]),
    (["gate", "chek", "x"], "cli.gate.verb", ['"chek" is not one of check, why']),
    (["gate", "check"], "cli.gate.verb", ["which file?"]),
    (["gate", "check", "a", "b"], "cli.operand", ["one operand too many: b"]),
    (["gate", "why"], "cli.gate.verb", ["which tool?"]),
    (["gate", "why", "--parms", "{}"], "cli.unknown-flag", ["unknown flag --parms"]),
    (["ps", "--al"], "cli.unknown-flag", ["did you mean --all?"]),
    (["ps", "-q"], "cli.unknown-flag", ["`cloche ps --help`"]),
    (["ps", "--all=yes"], "cli.flag-value", ["--all takes no value"]),
    (["kill", "--al"], "cli.unknown-flag", ["did you mean --all?"]),
    (["logs", "one", "two"], "cli.operand", ["one operand too many: two"]),
], ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_words_that_are_not_well(cloche, words, code, parts):
    said(cloche(*words), code, *parts)
    told = cloche(*words, "--json")     # behind what is wrong
    assert told.code == 125 and told.json["error"]["code"] == code and told.json["exit_code"] == 125, told


def test_names_that_nothing_has(daemon, cloche):
    ask = lambda *words: cloche(*words, "--socket", str(daemon.path))
    daemon.create(name="one")
    for words in (["logs", "none"], ["watch", "none"], ["ports", "none"], ["kill", "none"], ["events", "--sandbox", "none"]):
        said(ask(*words), "sandbox.not-found", 'there is no sandbox "none"', "`cloche ps` lists them")
    said(ask("ports", "one", "rm", "0" * 32), "ports.none", "`cloche ports SANDBOX` lists them")
    said(ask("volume", "rm", "x"), "volume.request", "`cloche volume ls` lists them")
    said(ask("volume", "rm", "0" * 32), "volume.not-found", "`cloche volume ls` lists them")
    said(ask("token", "revoke", "x"), "token.request", "`cloche token ls` shows their ids")
    gone = daemon.create(name="gone")
    assert gone.delete().ok
    for words in (["watch", gone.id], ["exec", "--socket", str(daemon.path), gone.id, "true"]):
        said(cloche(*words) if words[0] == "exec" else ask(*words), "sandbox.state", "the sandbox is stopped", "`cloche events --sandbox ID`")


@pytest.mark.parametrize("words", [["watch", "one"], ["watch", "one", "--json"], ["events", "--follow"], ["events", "-f", "--json"], ["logs", "-f", "one"],
                                   ["approvals", "watch"]], ids=" ".join)
def test_it_ends_when_nobody_reads(daemon, words):
    """Where nothing is written for a long time, too: a sandbox that is watched is not idle."""
    daemon.create(name="one").exec("true")
    process = daemon.cloche.popen(*words, "--socket", str(daemon.path))
    if words[0] != "approvals":
        assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(HANG_GUARD) in (0, -13), process.stderr.read()      # or by SIGPIPE, had it just something to say
    assert process.stderr.read() == b""
    process.stderr.close()


@pytest.mark.parametrize("words", [["ps"], ["ps", "--json"], ["events"], ["token", "ls"], ["config", "show"], ["ps", "--help"]], ids=" ".join)
def test_what_cannot_be_written_is_said(daemon, words):
    with open("/dev/full", "wb") as full:
        words = words if words[0] == "config" else [*words, "--socket", str(daemon.path)]
        process = daemon.cloche.popen(*words, stdout=full)
    _, err = process.communicate(timeout=HANG_GUARD)
    assert process.returncode == 125 and b"[cli.output]" in err, (process.returncode, err)


def test_columns_stand_below_each_other(daemon, cloche):
    for name in ("a", "b" * 63):
        daemon.create(name=name)
    head, *lines = cloche("ps", "--socket", str(daemon.path)).out.splitlines()
    assert len(lines) == 2 and {line.index("ready") for line in lines} == {head.index("STATE")}, (head, lines)
    rows = [line.split(None, 1) for line in cloche("config", "show").out.splitlines()]
    assert len({line.index(row[1]) for line, row in zip(cloche("config", "show").out.splitlines(), rows)
                if line.startswith(row[0] + " ") and row[1] != "-"}) == 1
