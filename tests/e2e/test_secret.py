"""cloche secret and --secret: kept sealed, named by name, never shown; what a sandbox gets is a placeholder."""
import json
import os
import re
import stat
import subprocess

import pytest

from helpers import memory, requirement

pytestmark = [requirement("R12", "R16")]
VALUE = "ghp_TheRealValue0123456789abcdefGHIJKL"
AWS = "AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"


@pytest.fixture
def vault(anyone):
    """cloche with a store of its own."""
    anyone.env["XDG_DATA_HOME"] = str(anyone.home / "data")
    anyone.store = anyone.home / "data" / "cloche"
    return anyone


def keep(vault, name="token", value=VALUE, words=("--binding", "github")):
    result = vault("secret", "set", name, *words, stdin=value + "\n")
    assert result.ok, result
    return result


def names(vault):
    result = vault("secret", "ls", "--json")
    assert result.ok, result
    return {s["name"]: s for s in result.json["secrets"]}


# --- the store --------------------------------------------------------------------------------------------------------

def test_files_are_closed_to_others_and_hold_no_value(vault):
    keep(vault)
    assert stat.S_IMODE(os.stat(vault.store).st_mode) == 0o700
    for name in os.listdir(vault.store):
        want = 0o644 if name == "ca.pem" else 0o600
        assert stat.S_IMODE(os.stat(vault.store / name).st_mode) == want, name
    assert memory.in_files(vault.home, VALUE.encode()) == []


def test_ls_shows_names_and_bindings_and_where_the_key_is(vault):
    keep(vault)
    keep(vault, "own", "value-of-my-own-service", ("--host", "api.example.org", "--place", "header X-Key"))
    result = vault("secret", "ls")
    assert result.ok and re.search(r"^token +usable +github +GITHUB_TOKEN", result.out, re.M), result
    assert "api.example.org" in result.out and "secrets.key" in result.out and "no keyring is used" in result.out
    listed = names(vault)
    assert listed["token"]["binding"] == "github" and listed["own"]["hosts"] == ["api.example.org"]


def test_no_output_ever_has_the_value(vault):
    runs = [keep(vault), vault("secret", "ls"), vault("secret", "ls", "--json"),
            vault("secret", "set", "token", VALUE), vault("secret", "set", "x", "--value=" + VALUE),
            vault("secret", "set", VALUE[:4] + "/" + VALUE), vault("secret", "set", "x", "--from-env", VALUE + "-"),
            vault("secret", "set", "x", "--host", "a.example", stdin=VALUE), vault("secret", "rotate", "none", stdin=VALUE),
            vault("run", "--secret", "token=" + VALUE + "/", "--", "true"),
            vault("run", "--secret", "token", "--allow-domain", "api.github.com", "--json", "--", "env"),
            vault("policy", "show", "--secret", "token", "--allow-domain", "api.github.com"),
            vault("secret", "revoke", "token"), vault("secret", "rm", "token")]
    for result in runs:
        assert VALUE not in result.out + result.err, result


@pytest.mark.parametrize("source", ["stdin", "env", "file", "command"])
def test_values_come_from_anywhere_but_the_command_line(vault, source, world):
    path = vault.home / "value"
    path.write_text(VALUE + "\n")
    os.chmod(path, 0o644)
    words = {"stdin": [], "env": ["--from-env", "MY_TOKEN"], "file": ["--from-file", str(path)],
             "command": ["--from-command", "--", "cat", str(path)]}[source]
    result = vault("secret", "set", "token", "--binding", "github", *words, env={"MY_TOKEN": VALUE},
                   stdin=VALUE if source == "stdin" else "")
    assert result.ok, result
    seen = vault("run", "--secret", "token", "--allow-domain", "api.github.com", "--", "printenv", "GITHUB_TOKEN")
    assert seen.ok and len(seen.out.strip()) == len(VALUE), seen    # so the line end was not part of it


def test_a_terminal_is_asked_without_echo(vault):
    master, slave = os.openpty()
    process = vault.popen("secret", "set", "token", "--binding", "github", stdin=slave, stdout=slave, stderr=slave,
                          own_terminal=True)
    os.close(slave)
    seen = b""
    while b"(not shown): " not in seen:
        seen += os.read(master, 1)
    os.write(master, VALUE.encode() + b"\n")
    while b"is kept" not in seen:
        seen += os.read(master, 1)
    assert process.wait(60) == 0
    os.close(master)
    assert VALUE.encode() not in seen and "token" in names(vault)


@pytest.mark.parametrize("words", [["--from-env", "NO_SUCH_VARIABLE"], ["--from-file", "/nonexistent"],
                                   ["--from-command", "--", "false"], ["--from-command", "--", "/nonexistent"],
                                   ["--from-env", "HOME", "--from-file", "/etc/hosts"], ["--from-command"]])
def test_a_source_that_fails_keeps_nothing(vault, words):
    result = vault("secret", "set", "token", "--binding", "github", *words)
    assert result.code == 125 and "[vault." in result.err, result
    assert names(vault) == {}


def test_set_refuses_what_cannot_be_a_secret(vault):
    for value, word in (("short", "8 to"), ("with\x1bescape-1234", "printable"), ("-" * 30, "letters and digits"), ("", "8 to")):
        result = vault("secret", "set", "token", "--binding", "github", stdin=value)
        assert result.code == 125 and word in result.err and "[vault.value]" in result.err, result


def test_registries_have_to_be_named(vault):
    result = vault("secret", "set", "token", "--binding", "npm", stdin="npm_abcdefgh12345678")
    assert result.code == 125 and "--host" in result.err, result
    keep(vault, "token", "npm_abcdefgh12345678", ("--binding", "npm", "--host", "registry.example.org"))
    assert names(vault)["token"]["hosts"] == ["registry.example.org"]


def test_import_rotate_and_rm(vault):
    path = vault.home / "dotenv"
    path.write_text("# mine\nexport GITHUB_TOKEN='" + VALUE + "'\n\nOTHER_KEY=\"value-of-another-1\"\n")
    os.chmod(path, 0o644)
    result = vault("secret", "import", path)
    assert result.ok, result
    listed = names(vault)
    assert listed["GITHUB_TOKEN"]["binding"] == "github" and listed["OTHER_KEY"]["state"] == "unbound"
    result = vault("secret", "rotate", "GITHUB_TOKEN", stdin="ghp_another0123456789abcdefGHIJKL")
    assert result.ok and names(vault)["GITHUB_TOKEN"]["binding"] == "github", result
    assert vault("secret", "rotate", "unknown", stdin=VALUE).code == 125
    assert vault("secret", "rm", "GITHUB_TOKEN").ok and "GITHUB_TOKEN" not in names(vault)
    assert vault("secret", "rm", "GITHUB_TOKEN").code == 125
    path.write_text("BEFORE=value-of-another-2\nno equals sign\n")
    result = vault("secret", "import", path)
    assert result.code == 125 and "line 2" in result.err and "the lines before it are already stored" in result.err, result
    assert "BEFORE" in names(vault)


@pytest.mark.parametrize("damage", ["cut", "flip", "zero", "empty"])
def test_a_damaged_store_is_refused_and_left_alone(vault, damage):
    keep(vault)
    path = vault.store / "secrets"
    good = path.read_bytes()
    bad = {"cut": good[:-5], "flip": good[:100] + bytes([good[100] ^ 1]) + good[101:], "zero": bytes(len(good)), "empty": b""}
    path.write_bytes(bad[damage])
    for words in (["ls"], ["rm", "token"], ["set", "more", "--binding", "github"]):
        result = vault("secret", *words, stdin=VALUE)
        assert result.code == 125 and "[vault.store.corrupt]" in result.err and str(path) in result.err, result
    result = vault("run", "--secret", "token", "--allow-domain", "api.github.com", "--", "true")
    assert result.code == 125 and "[vault.store.corrupt]" in result.err, result
    assert path.read_bytes() == bad[damage]
    path.write_bytes(good)
    assert "token" in names(vault)


@pytest.mark.parametrize("name,mode", [("", 0o755), ("secrets", 0o644), ("secrets.key", 0o640)])
def test_a_store_that_others_can_read_is_refused(vault, name, mode):
    keep(vault)
    os.chmod(vault.store / name, mode)
    result = vault("secret", "ls")
    assert result.code == 125 and "[vault.store.mode]" in result.err and "chmod" in result.err, result


@pytest.mark.root
def test_a_store_of_somebody_else_is_refused(cloche):
    cloche.env["XDG_DATA_HOME"] = str(cloche.home)
    (cloche.home / "cloche").mkdir(mode=0o700)
    os.chown(cloche.home / "cloche", 12345, 12345)
    result = cloche("secret", "ls")
    assert result.code == 125 and "[vault.store.owner]" in result.err, result


def test_many_at_once_lose_nothing(vault):
    started = [vault.popen("secret", "set", f"token-{i}", "--binding", "github", "--from-env", "MINE", env={"MINE": VALUE})
               for i in range(12)]
    for process in started:
        out, err = process.communicate(timeout=90)
        assert process.returncode == 0, (out, err)
    assert sorted(names(vault)) == sorted(f"token-{i}" for i in range(12))


@pytest.mark.root
def test_a_full_disk_changes_nothing(cloche):
    """In a mount namespace of its own, on a tmpfs of a few pages."""
    cloche.env["XDG_DATA_HOME"] = "/mnt"
    script = ("set -e; mount -t tmpfs -o size=64k,mode=700 none /mnt; "
              f"printf %s {VALUE} | {cloche.binary} secret set first --binding github; "
              "dd if=/dev/zero of=/mnt/fill bs=4096 2>/dev/null || true; "
              f"if printf %s {VALUE} | {cloche.binary} secret set second --binding github; then exit 9; fi; "
              f"rm /mnt/fill; ls /mnt/cloche; {cloche.binary} secret ls --json >&2")
    result = cloche.run(["/usr/bin/unshare", "-m", "/bin/sh", "-c", script])
    assert result.ok and "No space left" in result.err and "[vault.store.write]" in result.err, result
    assert "secrets.new" not in result.out.split()
    assert '"first"' in result.err and '"second"' not in result.err, result


# --- runs -------------------------------------------------------------------------------------------------------------

def inside(vault, *words, secret="token", allow="api.github.com", flags=()):
    return vault("run", "--secret", secret, "--allow-domain", allow, *flags, "--", *words)


def test_the_sandbox_sees_a_placeholder_new_for_each_run(vault):
    keep(vault)
    seen = set()
    for _ in range(3):
        result = inside(vault, "printenv", "GITHUB_TOKEN")
        text = result.out.strip()
        assert result.ok and text.startswith("ghp_") and len(text) == len(VALUE) and text != VALUE, result
        assert re.sub("[A-Z]", "A", re.sub("[a-z]", "a", re.sub("[0-9]", "0", text))) == \
            re.sub("[A-Z]", "A", re.sub("[a-z]", "a", re.sub("[0-9]", "0", VALUE)))
        seen.add(text)
    assert len(seen) == 3


def test_an_aws_credential_is_three_placeholders(vault):
    keep(vault, "aws", AWS + ":IQoJb3JpZ2luX2VjTOKENTOKEN", ("--binding", "aws"))
    result = inside(vault, "env", secret="aws", allow="s3.eu-west-1.amazonaws.com")
    got = dict(line.split("=", 1) for line in result.out.splitlines() if line.startswith("AWS_") and "BUNDLE" not in line)
    assert set(got) == {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}, result
    assert got["AWS_ACCESS_KEY_ID"].startswith("AKIA") and not set(got.values()) & set(AWS.split(":"))


def test_a_variable_of_the_users_own_choice(vault):
    keep(vault, words=("--binding", "github", "--env", "MY_TOKEN"))
    result = inside(vault, "env")
    assert "MY_TOKEN=ghp_" in result.out and "GITHUB_TOKEN" not in result.out, result
    path = vault.project / "policy.yaml"
    path.write_text("version: 1\nnetwork:\n  allow: [api.github.com]\nsecrets:\n  - {name: token, env: THIRD}\n")
    os.chmod(path, 0o644)
    result = vault("run", "--settings", path, "--", "env")
    assert result.ok and "THIRD=ghp_" in result.out and "MY_TOKEN" not in result.out, result


@pytest.mark.parametrize("secret,allow,flags,code", [
    ("unknown", "api.github.com", (), "vault.unknown"),
    ("token", "example.org", (), "policy.secret.hosts"),
    ("token", "api.github.com:8443", (), "policy.secret.hosts"),
    ("token=aws", "api.github.com", (), "vault.binding.other"),
    ("token=nothing", "api.github.com", (), "vault.binding.unknown"),
    ("-token", "api.github.com", (), "policy.secret.name"),
    ("token=", "api.github.com", (), "policy.secret.name"),
    ("token", "api.github.com", ("--secret", "token"), "policy.secret.twice"),
    ("loose", "api.github.com", (), "vault.unbound"),
])
def test_runs_that_are_refused_say_why(vault, secret, allow, flags, code):
    keep(vault)
    keep(vault, "loose", VALUE, ())
    result = inside(vault, "true", secret=secret, allow=allow, flags=flags)
    assert result.code == 125 and f"[{code}]" in result.err, result


def test_a_secret_needs_a_network_by_name(vault):
    keep(vault)
    for words in ([], ["--network", "host"]):
        result = vault("run", "--secret", "token", *words, "--", "true")
        assert result.code == 125 and "[policy.secret.network]" in result.err and "--allow-domain" in result.err, result


def test_an_unbound_secret_is_bound_by_the_run(vault):
    keep(vault, "loose", VALUE, ())
    result = inside(vault, "printenv", "GITHUB_TOKEN", secret="loose=github")
    assert result.ok and result.out.startswith("ghp_"), result


def test_revoked_and_expired_secrets_are_not_bound(vault):
    keep(vault)
    assert vault("secret", "revoke", "token").ok and names(vault)["token"]["state"] == "revoked"
    result = inside(vault, "true")
    assert result.code == 125 and "[vault.revoked]" in result.err and "rotate" in result.err, result
    assert vault("secret", "rotate", "token", stdin=VALUE).ok
    assert inside(vault, "true").ok
    assert vault("secret", "set", "token", "--expires", "1s", stdin=VALUE).ok
    subprocess.run(["sleep", "2"], check=True)
    assert names(vault)["token"]["state"] == "expired"
    result = inside(vault, "true")
    assert result.code == 125 and "[vault.expired]" in result.err, result


def test_the_policy_says_which_secrets(vault):
    result = vault("policy", "show", "--json", "--secret", "token=github", "--allow-domain", "api.github.com")
    assert result.ok and "token=github" in json.dumps(result.json), result


def test_the_ca_is_made_once_and_anew_when_told(vault):
    first = vault("secret", "ca", "export")
    assert first.ok and first.out.startswith("-----BEGIN CERTIFICATE-----"), first
    assert vault("secret", "ca", "export").out == first.out == (vault.store / "ca.pem").read_text()
    text = subprocess.run(["openssl", "x509", "-noout", "-text"], input=first.out, capture_output=True, text=True,
                          check=True).stdout
    assert "CA:TRUE, pathlen:0" in text and "cloche installation CA" in text and "Certificate Sign" in text
    shown = vault("secret", "ca")
    assert "sha256:" in shown.out and "ca.pem" in shown.out, shown
    assert vault("secret", "ca", "rotate").ok
    assert vault("secret", "ca", "export").out != first.out
