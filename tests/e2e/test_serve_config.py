"""cloche serve's configuration: its file, cloche config, and reading it again."""
import json
import os
import re
import select
import signal
import subprocess
import time

import pytest

from helpers import requirement
from helpers.daemon import Daemon, answers, restart
from helpers.runner import wait_for

pytestmark = requirement("R67")


@pytest.fixture
def serve(cloche):
    """serve(text, *flags): a daemon with that configuration; write(text) changes it."""
    made = []

    def start(text, *flags):
        (cloche.home / "serve.yaml").write_text(text)
        made.append(Daemon(cloche, "--config", "serve.yaml", *flags))
        return made[-1]
    yield start
    for daemon in made:
        assert daemon.stop() == 0, daemon.log


SOURCE = """\
max-sandboxes: 3
# what every sandbox begins with
security:
  sandbox:
    enabled: true
    runtime: native
    limits:
      max_memory_mb: 96
      max_execution_time: 7
      max_output_bytes: 1000
    network:
      enabled_by_default: false
"""


def test_the_sources_keys(serve):
    daemon = serve(SOURCE)
    box = daemon.create()
    assert box.exec("yes | head -c 5000")["stdout_truncated"]
    assert daemon.create(policy={"limits": {"output": 10000}}).exec("yes | head -c 5000")["stdout_truncated"] is False


def test_settings_come_after_that_section_and_the_request_after_both(serve, cloche):
    (cloche.home / "base.yaml").write_text("limits:\n  output: 3000\n")
    daemon = serve(SOURCE + "settings: base.yaml\n")
    assert not daemon.create().exec("yes | head -c 2500")["stdout_truncated"]
    assert daemon.create().exec("yes | head -c 3500")["stdout_truncated"]
    assert not daemon.create(policy={"limits": {"output": 4000}}).exec("yes | head -c 3500")["stdout_truncated"]


REFUSED = [
    ("surprise: 1\n", "serve.config.key", ":1:"),
    ("max-sandboxes: 2\nlisten: tcp:localhost:1\n", "serve.listen", ":2:"),
    ("listen:\n  - unix:/x\n  - tcp:127.0.0.1:70000\n", "serve.listen", ":3:"),
    ("listen:\n  - 7\n", "serve.config.type", ":2:"),
    ("listen: {a: b}\n", "serve.config.type", ":1:"),
    ("listen: tcp:0.0.0.0:1\n", "serve.listen.open", "tls-cert"),
    ("rate-limit: many\n", "serve.number", ":1:"),
    ("client-timeout: 0\n", "serve.duration", ":1:"),
    ("idle-timeout: 1.5s\n", "serve.duration", ":1:"),
    ("allowed-hosts: 'a b'\n", "serve.host", ":1:"),
    ("allowed-hosts: http://a.example\n", "serve.host", ":1:"),
    ("allowed-origins: ['https://a.example', '*']\n", "serve.origin", ":1:"),
    ("allowed-origins: a.example\n", "serve.origin", "https://"),
    ("tls-cert: a.pem\n", "serve.tls", "tls-key"),
    ("settings: none.yaml\n", None, "none.yaml"),
    ("- a\n", "serve.config.type", None),
    ("a: 1\na: 2\n", None, ":2:"),
    ("listen: [\n", None, "serve.yaml"),
    ("security:\n  sandbox:\n    enabled: false\n", "serve.mode-off", None),
    ("rate-limit: 5\nsecurity:\n  sandbox:\n    limits:\n      max_memory: 3\n", None, ":5:"),
    ("security:\n  sandbox:\n    languages: {python: {image: 'x:1'}}\n", "policy.languages.not-yet", ":3:"),
    ("security:\n  sandbox:\n    languages: {python: {default_packages: [x]}}\n", "policy.languages.not-yet", ":3:"),
    ("security:\n  sandbox:\n    languages: {cobol: {}}\n", "policy.languages.unknown", ":3:"),
    ("security:\n  sandbox:\n    network: {allowed_registries: {pypi: [a.example.org]}}\n", "policy.network.not-yet", "network.registries"),
    ("gate: off\nsecurity:\n  hitl: {enabled: true}\n", "policy.hitl", ":3: security.hitl.enabled"),
    ("security:\n  hitl: {enabled: false}\n", "policy.hitl", "gate: off"),
    ("security:\n  sandbox:\n    hitl: {auto_approve_low_risk: false}\n", "policy.hitl", "auto-approve"),
    ("{security: {sandbox: {}}, rate-limit: 3}\n", "serve.config.security", ":1:"),
    ("max-sandboxes: 2\ngate:\n  auto-approve: [LOW, CRITICAL]\n", None, "CRITICAL"),
    ("gate:\n  rules:\n    - {name: a, tools: [x], risk: HUGE}\n", "gate.rule", ":3:"),
    ("gate:\n  rules:\n    - {name: a, tools: [x], risk: HIGH, conditions: [{param: p, matches: '('}]}\n", None, ":3:"),
]


def test_a_gate_that_is_off_in_its_file(cloche):
    """People are to be asked, says the policy: then nobody switches that off, wherever it stands."""
    (cloche.home / "gate.yaml").write_text("# nobody\ngate: off\n")
    (cloche.home / "serve.yaml").write_text("gate: gate.yaml\nsecurity:\n  hitl: {enabled: true}\n")
    for words in (("config", "check", "serve.yaml"), ("serve", "--config", "serve.yaml")):
        said = cloche(*words)
        assert said.code == 125 and "[policy.hitl]" in said.err and ":3: security.hitl.enabled" in said.err and "gate.yaml" in said.err, said
    (cloche.home / "own.yaml").write_text("security:\n  hitl: {enabled: true}\n")
    said = cloche("serve", "--config", "own.yaml", "--gate", "gate.yaml")
    assert said.code == 125 and "[policy.hitl]" in said.err, said
    (cloche.home / "gate.yaml").write_text("gate: {defaults: true}\n")
    assert cloche("config", "check", "serve.yaml").ok


@pytest.mark.parametrize("text, code, said", REFUSED, ids=range(len(REFUSED)))
def test_what_check_refuses(cloche, text, code, said):
    (cloche.home / "serve.yaml").write_text(text)
    result = cloche("config", "check", "serve.yaml")
    assert result.code == 125 and (code is None or f"[{code}]" in result.err), result
    assert said is None or said in result.err, result
    told = cloche("config", "check", "--json", "serve.yaml")
    assert told.code == 125 and (code is None or code in told.err + told.out), told
    served = cloche("serve", "--config", "serve.yaml")
    assert served.code == 125 and (code is None or f"[{code}]" in served.err), served
    # the same words, and nothing beside them
    assert served.err == result.err, (served.err, result.err)


ZERO = {"idle-timeout": "never", "max-lifetime": "no limit", "recover-after": "not at all", "audit-retention": "any age",
        "transcript-retention": "any age"}


def test_what_is_hinted_at_is_taken(cloche):
    """What 0 is, for each time; and the examples are no mistakes of their own."""
    path = cloche.home / "serve.yaml"
    help_text = cloche("serve", "--help").out
    times = re.findall(r"^  --(\S+) TIME ", help_text, flags=re.M)
    assert set(ZERO) < set(times), times
    for key in times:
        hint = cloche("serve", f"--{key}", "5x").err.splitlines()[1].split("[")[0].strip()
        examples, _, zero = hint.partition("; 0: ")
        assert zero == ZERO.get(key, ""), (key, hint)
        path.write_text(f"{key}: 0\n")
        assert cloche("config", "check", path).ok == (key in ZERO), key
        for example in examples.split(", "):
            path.write_text(f"{key}: {example}\n")
            assert cloche("config", "check", path).ok, (key, example)
    for words, said in ((("--log-level", "all"), "not one of error, warn, notice, info"), (("--public-url", "x"), "  https://HOST[:PORT]  ["),
                        (("--webhook-url", "x"), "  https://HOST[:PORT]/PATH  ["), (("--max-sandboxs", "2"), "did you mean --max-sandboxes?"),
                        (("word",), "one operand too many: word")):
        refused = cloche("serve", *words)
        assert refused.code == 125 and said in refused.err, (words, refused)
    path.write_text("max-sandboxs: 2\n")
    assert "did you mean max-sandboxes?" in cloche("config", "check", path).err


def test_check_and_show(cloche):
    (cloche.home / "serve.yaml").write_text(
        "listen: [unix:a/s, 'tcp:[::1]:0']\nrate-limit: 7\nidle-timeout: 2h\nallowed-hosts: [a.example, b.example]\n" + SOURCE)
    assert cloche("config", "check", "serve.yaml").ok and json.loads(cloche("config", "check", "--json", "serve.yaml").out)["ok"]
    shown = json.loads(cloche("config", "show", "--json", "--config", "serve.yaml", "--rate-limit", "9", "--listen", "unix:/z").out)
    assert shown["listen"] == ["unix:/z"] and shown["rate-limit"] == "9" and shown["idle-timeout"] == "7200s", shown
    assert shown["allowed-hosts"] == ["a.example", "b.example"] and shown["max-sandboxes"] == "3" and shown["tls-key"] is None
    text = cloche("config", "show", "--config", "serve.yaml").out
    assert f"unix:{cloche.home}/a/s" in text and "tcp:[::1]:0" in text and "b.example" in text, text
    for words in (("config",), ("config", "check"), ("config", "check", "a", "b"), ("config", "other"), ("config", "show", "--x")):
        assert cloche(*words).code == 125, words


# --- reading it again -------------------------------------------------------------------------------------------------

def test_settings_that_name_variables_are_read_again(cloche):
    """Their digest takes a key that is made in the state folder where it is missing: the launcher had no call for that."""
    settings = cloche.home / "settings.yaml"
    settings.write_text("limits: {memory: 512m}\n")
    daemon = Daemon(cloche, "--settings", str(settings))
    settings.write_text("env: {WHICH: later}\n")
    for _ in range(2):
        assert "was read again" in daemon.reload()
    assert daemon.create().exec("echo $WHICH")["stdout"] == "later\n" and daemon.stop() == 0


def test_what_changes_alive(serve, cloche):
    def write(text):
        (cloche.home / "serve.yaml").write_text(text)
    fixed = "listen: [unix:api, tcp:127.0.0.1:0]\n"
    cloche.env["XDG_STATE_HOME"] = str(cloche.home)
    (cloche.home / "serve.yaml").write_text(fixed)
    daemon = Daemon(cloche, "--config", "serve.yaml", path=cloche.home / "api")
    lived = daemon.create(name="lived")
    warden = daemon.processes("cloche-warden")
    origin = {"Origin": "https://new.example"}
    assert daemon("GET", "/v1/health", None, origin).status == 403
    assert daemon.remote()("GET", "/v1/health", None, {"Host": "new.example"}).status == 403
    write(fixed + "max-sandboxes: 2\nidle-timeout: 3h\nallowed-origins: https://new.example\nallowed-hosts: new.example\n"
          "security:\n  sandbox:\n    limits:\n      max_output_bytes: 1000\n")
    assert "was read again" in daemon.reload()
    assert daemon("GET", "/v1/health", None, origin).ok
    assert daemon.remote()("GET", "/v1/health", None, {"Host": "new.example"}).ok
    new = daemon.create()
    assert new.record["idle_timeout"] == 10800 and new.exec("yes | head -c 5000")["stdout_truncated"]
    assert lived.show()["idle_timeout"] == 0 and not lived.exec("yes | head -c 5000")["stdout_truncated"]
    assert daemon.post("/v1/sandboxes", {}).json["code"] == "sandbox.too-many"
    # what is bad changes nothing, be the rest as good as it may
    write(fixed + "max-sandboxes: 9\nallowed-origins: nonsense\n")
    said = daemon.reload()
    assert "[serve.origin]" in said and "configuration stays" in said, said
    assert daemon("GET", "/v1/health", None, origin).ok
    assert daemon.post("/v1/sandboxes", {}).json["code"] == "sandbox.too-many"
    # what cannot change is said, and the rest counts
    write("listen: [unix:other]\nmax-sandboxes: 3\nstate-dir: other-state\n")
    said = daemon.reload()
    assert "listen: it needs a restart" in said and "state-dir: it needs a restart" in said and "was read again" in said, said
    assert daemon("GET", "/v1/health", None, origin).status == 403
    assert daemon.create().exec("true")["exit_code"] == 0 and not (cloche.home / "other").exists()
    assert lived.show()["state"] == "ready" and daemon.processes("cloche-warden") == warden
    assert daemon.stop() == 0, daemon.log


def test_every_key_that_names_a_file_is_read_again(cloche):
    """By a launcher that has given up most system calls; and one that says nothing at all is what it was before."""
    def file(name, text, mode=0o600):
        path = cloche.home / name
        path.write_text(text)
        path.chmod(mode)
        return path
    hook = file("hook.secret", "a-secret-of-the-webhook-0123456789\n")
    gate, settings, ca = file("gate.yaml", "gate: off\n"), file("settings.yaml", "limits:\n  output: 5\n"), file("ca.pem", "")
    plain = f"gate: {gate}\nsettings: {settings}\nsecurity:\n  sandbox:\n    limits:\n      max_memory_mb: 96\n"
    config = file("serve.yaml", plain)
    daemon = Daemon(cloche, "--config", "serve.yaml", gate=None)
    hooked = plain + f"webhook-url: https://hooks.example.org/x\nwebhook-secret: {hook}\nwebhook-ca: {ca}\n"
    for text, said in ((hooked, "webhook-ca: it needs a restart"), ("", "configuration stays"), (plain, "was read again"),
                       ("# nothing\n", "configuration stays")):
        config.write_text(text)
        assert said in (heard := daemon.reload()), (text, heard)
        assert daemon.get("/v1/sandboxes").ok
    assert daemon.create().exec("echo 123456789")["stdout"] == "12345"
    assert daemon.stop() == 0, daemon.log
    # and those that are there from the beginning on
    config.write_text(hooked)
    daemon = Daemon(cloche, "--config", "serve.yaml", gate=None)
    assert "was read again" in daemon.reload()
    ca.unlink()
    assert "configuration stays" in daemon.reload()
    assert daemon.stop() == 0, daemon.log


def test_rules_that_the_gate_refuses_change_nothing_else(cloche):
    """They are read by the warden alone; what came with them does not count either, and the former ones are there to start from."""
    def write(limit, rule):
        (cloche.home / "gate.yaml").write_text(f"gate:\n  rules:\n    - {rule}\n")
        (cloche.home / "serve.yaml").write_text(f"gate: gate.yaml\nmax-sandboxes: {limit}\nallowed-origins: ['https://a{limit}.example.org']\n")
    write(2, "{name: a, tools: [code_execute], risk: HIGH}")
    daemon = Daemon(cloche, "--config", "serve.yaml", gate=None)
    try:
        boxes = [daemon.create(), daemon.create()]
        for rule, code in (("{name: a, tools: [x], risk: HIGH, conditions: [{param: p, contains: ''}]}", "gate.condition"),
                           ("{name: a, tools: [x], risk: HIGH, conditions: [{param: p, matches: '('}]}", "gate.pattern"),
                           ("{name: a}", "gate.rule")):
            write(5, rule)
            said = daemon.reload()
            assert "configuration stays" in said and f"[{code}]" in said and "gate.yaml:3:" in said, said
            assert daemon.post("/v1/sandboxes", {}).json["code"] == "sandbox.too-many"
            assert wait_for(lambda: [daemon("GET", "/v1/health", None, {"Origin": f"https://a{n}.example.org"}).status for n in (2, 5)] == [200, 403])
            # a warden that comes now starts with the former ones
            restart(daemon)
            assert wait_for(lambda: all(daemon.state(b.id) == "ready" for b in boxes))
        write(3, "{name: b, tools: [code_execute], risk: HIGH}")
        assert "was read again" in daemon.reload()
        assert daemon.create().delete().ok
    finally:
        assert daemon.stop() == 0, daemon.log


def test_a_warden_that_ends_while_the_configuration_is_read(cloche):
    """The next one starts with what is known to be good."""
    rules = cloche.home / "gate.yaml"
    rules.write_text("gate: {rules: [{name: a, tools: [code_execute], risk: HIGH}]}\n")
    daemon = Daemon(cloche, gate=rules)
    try:
        box = daemon.create()
        for text in ("gate: {rules: [{name: a}]}\n", "gate: {rules: [{name: b, tools: [code_execute], risk: LOW}]}\n"):
            (warden,) = daemon.processes("cloche-warden")
            os.kill(warden, signal.SIGSTOP)
            rules.write_text(text)
            daemon.process.send_signal(signal.SIGHUP)
            time.sleep(0.3)         # it is told, which nobody can see
            os.kill(warden, signal.SIGKILL)
            assert "configuration stays" in daemon.hear(b"configuration stays", b"was read again")
            assert wait_for(lambda: daemon.processes("cloche-warden") not in ([], [warden])) and answers(daemon)
            assert wait_for(lambda: daemon.state(box.id) == "ready")
        assert "was read again" in daemon.reload()
    finally:
        assert daemon.stop() == 0, daemon.log


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "---\n"])
def test_a_file_that_says_nothing(cloche, text):
    (cloche.home / "serve.yaml").write_text(text)
    (cloche.home / "rules.yaml").write_text(text)
    for words in (("serve", "--config", "serve.yaml"), ("config", "check", "serve.yaml"), ("policy", "check", "serve.yaml"),
                  ("run", "--settings", "serve.yaml", "--", "true")):
        refused = cloche(*words, cwd=cloche.home)
        assert refused.code in (1, 125) and "policy.file.empty" in refused.err + refused.out, (words, refused)


@pytest.mark.parametrize("which", ["serve.yaml", "rules.yaml"])
def test_a_file_that_became_a_fifo(cloche, which):
    """Nobody writes to it: that is said at once, what holds goes on, and the daemon ends when it is told to."""
    for name in ("serve.yaml", "rules.yaml"):
        (cloche.home / name).write_text("gate: off\n" if name == "rules.yaml" else "max-sandboxes: 1\n")
    daemon = Daemon(cloche, "--config", str(cloche.home / "serve.yaml"), gate=cloche.home / "rules.yaml")
    try:
        (cloche.home / which).unlink()
        os.mkfifo(cloche.home / which)
        daemon.process.send_signal(signal.SIGHUP)
        assert select.select([daemon.process.stderr], [], [], 20)[0], "it waits for somebody to write"
        assert f"{which}: Invalid argument" in daemon.hear(b"configuration stays")
        assert daemon.create().exec("echo on")["stdout"] == "on\n" and daemon.post("/v1/sandboxes", {}).status == 429
    finally:
        daemon.process.terminate()
        try:
            daemon.process.wait(20)
        except subprocess.TimeoutExpired:
            daemon.kill()
            raise
    assert daemon.stop() == 0
    refused = cloche("config", "check", str(cloche.home / which)) if which == "serve.yaml" else cloche("serve", "--gate", str(cloche.home / which))
    assert refused.code in (1, 125) and "regular file" in refused.err + refused.out, refused


def test_the_flags_have_the_last_word_then_too(serve, cloche):
    daemon = serve("max-sandboxes: 5\n", "--max-sandboxes", "1")
    daemon.create()
    (cloche.home / "serve.yaml").write_text("max-sandboxes: 7\n")
    assert "was read again" in daemon.reload()
    assert daemon.post("/v1/sandboxes", {}).status == 429


def test_without_a_file_it_is_nothing_to_do(cloche):
    daemon = Daemon(cloche)
    box = daemon.create()
    for _ in range(3):
        assert "was read again" in daemon.reload()
    assert box.exec("echo on")["stdout"] == "on\n"
    assert daemon.stop() == 0


def test_a_warden_that_comes_later_knows_the_new_limits(serve, cloche):
    daemon = serve("max-sandboxes: 5\n")
    (cloche.home / "serve.yaml").write_text("max-sandboxes: 1\n")
    daemon.reload()
    restart(daemon)
    daemon.create()
    assert daemon.post("/v1/sandboxes", {}).status == 429
