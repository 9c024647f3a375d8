"""--secret-file: placeholders in files that exist inside, in memory, for one run; and nowhere on the host."""
import os
import re

import pytest

from helpers import memory, requirement

pytestmark = [requirement("R12", "R16")]
VALUE = "ghp_" + "TheRealValue0123456789" + "abcdefGHIJKL"
HOST = ("--allow-domain", "api.github.com")


@pytest.fixture
def vault(anyone):
    anyone.env["XDG_DATA_HOME"] = str(anyone.home / "data")
    result = anyone("secret", "set", "token", "--binding", "github", stdin=VALUE)
    assert result.ok, result
    return anyone


def run(vault, files, script, *flags):
    words = [w for f in files for w in ("--secret-file", f)]
    return vault("run", "--secret", "token", *HOST, *words, *flags, "--", "/bin/sh", "-c", script)


def shared(vault, name, text):
    path = vault.project / name
    path.write_text(text)
    os.chmod(path, 0o644)
    return path


@pytest.mark.parametrize("path,inside", [("/run/secrets/gh", None), ("~/.config/gh/token", "/home/agent/.config/gh/token"),
                                         ("/tmp/t", None), ("/workspace/.env", None), ("/secrets/deep/er/t", None),
                                         ("/etc/pip.conf", None)])
def test_a_file_holds_the_placeholder(vault, path, inside):
    where = inside or path
    result = run(vault, [f"{path}=token"], f"stat -c '%a %u %g %F' {where}; id -u; cat {where}; echo; echo $GITHUB_TOKEN;"
                 f"stat -f -c %T {where}")
    lines = result.out.split("\n")
    assert result.ok and lines[0] == "400 1000 1000 regular file" and lines[1] == "1000", result
    assert lines[2] == lines[3] and re.fullmatch("ghp_[A-Za-z0-9]{34}", lines[2]) and lines[2] != VALUE
    assert lines[4] == "tmpfs", result


def test_a_template(vault):
    path = shared(vault, "netrc.in", "machine api.github.com login me password ${token}\n# $${literal} ${GITHUB_TOKEN}\n")
    result = run(vault, [f"~/.netrc=@{path}"], "cat ~/.netrc; echo $GITHUB_TOKEN")
    lines = result.out.split("\n")
    assert result.ok and lines[0] == "machine api.github.com login me password " + lines[2], result
    assert lines[1] == "# ${literal} " + lines[2] and VALUE not in result.out


def test_in_a_settings_file(vault):
    shared(vault, "t.in", "${token}!")
    path = shared(vault, "policy.yaml", "version: 1\nnetwork:\n  allow: [api.github.com]\nsecrets: [token]\nsecret-files:\n"
                  "  - /run/a=token\n  - {path: ~/b, text: \"x=${token}\\n\"}\n"
                  f"  - {{path: /run/c, template: {vault.project}/t.in}}\n")
    result = vault("run", "--settings", path, "--", "/bin/sh", "-c", "cat /run/a ~/b /run/c; echo; echo $GITHUB_TOKEN")
    placeholder = result.out.strip().rsplit("\n", 1)[-1]
    assert result.ok and result.out == f"{placeholder}x={placeholder}\n{placeholder}!\n{placeholder}\n", result
    shown = vault("policy", "show", "--settings", path)
    assert shown.ok and "/home/agent/b" in shown.out and "/run/c" in shown.out, shown


def test_the_parts_of_an_aws_credential(vault):
    assert vault("secret", "set", "aws", "--binding", "aws", stdin="AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI7MDENGbPxRfiCYEXAMPLEKEY").ok
    path = shared(vault, "credentials", "[default]\naws_access_key_id=${AWS_ACCESS_KEY_ID}\naws_secret_access_key=${AWS_SECRET_ACCESS_KEY}\n")
    words = ("run", "--secret", "aws", "--allow-domain", "s3.eu-west-1.amazonaws.com", "--secret-file")
    result = vault(*words, f"~/.aws/credentials=@{path}", "--", "/bin/sh", "-c",
                   "cat ~/.aws/credentials; echo $AWS_ACCESS_KEY_ID; echo $AWS_SECRET_ACCESS_KEY")
    lines = result.out.split("\n")
    assert result.ok and lines[1:3] == [f"aws_access_key_id={lines[3]}", f"aws_secret_access_key={lines[4]}"], result
    whole = vault(*words, "/run/aws=aws", "--", "true")     # which of the two?
    assert whole.code == 125 and "[policy.secret-file.unknown]" in whole.err, whole


def test_each_run_has_its_own_and_the_host_has_none(vault):
    seen = set()
    before = {os.path.join(b, n) for b, _, names in os.walk(vault.project) for n in names}
    for _ in range(2):
        result = run(vault, ["/run/secrets/gh=token", "~/.netrc=token"], "cat /run/secrets/gh", "--workspace",
                     f"{vault.project}:rw")
        assert result.ok, result
        seen.add(result.out)
    assert len(seen) == 2
    assert {os.path.join(b, n) for b, _, names in os.walk(vault.project) for n in names} == before
    for placeholder in seen:
        for root in (vault.home, vault.project, vault.tmp, vault.state):
            assert memory.in_files(root, placeholder.encode()) == [], root
    assert not os.path.exists("/run/secrets/gh")


@pytest.mark.parametrize("flags", [["--read-only-root"], ["--mode", "max"], ["--mode", "max", "--user", "4321:4321"]])
def test_where_the_root_is_read_only(vault, flags):
    result = run(vault, ["/run/secrets/gh=token", "~/.netrc=token"], "cat /run/secrets/gh; echo; cat ~/.netrc; echo; "
                 "stat -c '%a %u' ~/.netrc; id -u; rm -f /run/secrets/gh 2>/dev/null || echo kept", *flags)
    lines = result.out.split("\n")
    assert result.ok and lines[0] == lines[1] and len(lines[0]) == len(VALUE), result
    assert lines[2] == f"400 {lines[3]}" and lines[4] == "kept", result


# --- places where it cannot be ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("path,code,word", [
    ("relative", "path", "absolute"), ("", "path", "absolute"), ("/run/x/", "path", "absolute"), ("~", "path", "absolute"),
    ("/usr/lib/x", "place", "read-only"), ("/etc/passwd", "place", "read-only"), ("/bin/x", "place", "read-only"),
    ("/proc/self/x", "place", "kernel"), ("/dev/null", "place", "kernel"), ("/tmp", "place", "folder"), ("/", "path", "absolute"),
    ("/workspace", "place", "folder"), ("/run/../usr/x", "place", "read-only"), ("/home/agent", "place", "folder")])
def test_impossible_paths(vault, path, code, word):
    result = run(vault, [f"{path}=token"], "true")
    assert result.code == 125 and f"[policy.secret-file.{code}]" in result.err and word in result.err, result


def test_the_shells_home_is_not_the_one_inside(vault):
    result = run(vault, [f"{vault.home}/.npmrc=token"], "true")
    assert result.code == 125 and "[policy.secret-file.place]" in result.err and "quoted" in result.err, result


@pytest.mark.parametrize("kind", ["rw", "ro", "cow"])
@pytest.mark.parametrize("name", ["new", "there", "link", "linked/new"])
def test_never_in_a_folder_of_the_host(vault, kind, name):
    """Neither made there, nor over what is there, nor through its links; by either of its names."""
    shared(vault, "there", "mine\n")
    (vault.project / "link").symlink_to(vault.home / "target")
    (vault.project / "linked").symlink_to(vault.home)
    for path in (f"/workspace/{name}", f"{vault.project}/{name}"):
        result = run(vault, [f"{path}=token"], "true", "--workspace", f"{vault.project}:{kind}")
        assert result.code == 125 and "[policy.secret-file.place]" in result.err, result
    assert (vault.project / "there").read_text() == "mine\n" and not (vault.project / "new").exists()
    assert not (vault.home / "target").exists() and not (vault.home / "new").exists()


def test_neither_in_nor_around_a_bind(vault):
    bind = f"{vault.project}:/run/secrets/more:ro"
    for path in ("/run/secrets/more/x", "/run/secrets/more", "/run/secrets"):
        result = run(vault, [f"{path}=token"], "true", "--bind", bind)
        assert result.code == 125 and "[policy.secret-file.place]" in result.err, result
    assert run(vault, ["/run/secrets/beside=token"], "cat /run/secrets/beside", "--bind", bind).ok


@pytest.mark.parametrize("flags,code", [(["--view", "host"], "view"), (["--secret-file", "/run/a=token"], "twice"),
                                        (["--secret-file", "/run/a/b=token"], "twice")])
def test_other_things_that_cannot_be(vault, flags, code):
    result = run(vault, ["/run/a=token"], "true", *flags)
    assert result.code == 125 and f"[policy.secret-file.{code}]" in result.err, result


def test_a_file_needs_a_secret_of_the_run(vault):
    result = vault("run", *HOST, "--secret-file", "/run/a=token", "--", "true")
    assert result.code == 125 and "[policy.secret-file.unknown]" in result.err and "--secret" in result.err, result
    result = run(vault, ["/run/a=other"], "true")
    assert result.code == 125 and "[policy.secret-file.unknown]" in result.err and "${other}" in result.err, result


@pytest.mark.parametrize("text,code", [("no name in it", "plain"), ("a ${token", "text"), ("${}", "text"),
                                       ("${token}${nobody}", "unknown"), ("${token}" + "x" * 70000, "template"), (None, "template")])
def test_templates_that_cannot_be(vault, text, code):
    path = vault.project / "none" if text is None else shared(vault, "t.in", text)
    result = run(vault, [f"/run/a=@{path}"], "true")
    assert result.code == 125 and f"[policy.secret-file.{code}]" in result.err, result


def test_what_is_no_name_is_not_repeated(vault):
    """It may be the value, given in the name's place."""
    for words in (["/run/a=" + VALUE * 3], [VALUE]):
        result = run(vault, words, "true")
        assert result.code == 125 and "[policy.secret-file." in result.err, result
    assert VALUE * 3 not in result.err


# --- the digest of the policy -------------------------------------------------------------------------------------------

def digest(vault, *flags, home=None):
    env = {"XDG_STATE_HOME": str(home)} if home else None
    result = vault("policy", "show", "--json", "--secret", "token", *HOST, *flags, env=env)
    assert result.ok, result
    return result.json["digest"]


@requirement("R45")
def test_the_digest_counts_what_the_files_hold(vault):
    """A name, a text, and what a template holds now, each in its own way; equal ones are equal."""
    def settings(text):
        return "--settings", shared(vault, "d.yaml", "version: 1\nsecret-files:\n  - {path: /run/a, text: \"%s\"}\n" % text)
    first, second = shared(vault, "first.in", "a ${token}"), shared(vault, "second.in", "a ${token}")
    seen = [digest(vault), digest(vault, "--secret-file", "/run/a=token"), digest(vault, "--secret-file", "/run/a=GITHUB_TOKEN"),
            digest(vault, *settings("x ${token}")), digest(vault, *settings("y ${token}")),
            digest(vault, "--secret-file", f"/run/a=@{first}"), digest(vault, "--secret-file", f"/run/a=@{second}")]
    assert digest(vault, "--secret-file", f"/run/a=@{first}") == seen[5]
    first.write_text("b ${token}")
    seen += [digest(vault, "--secret-file", f"/run/a=@{first}")]
    assert len(set(seen)) == len(seen), seen
    assert digest(vault, *settings("x ${token}")) == seen[3] and digest(vault, "--secret-file", "/run/a=token") == seen[1]


@requirement("R45")
@pytest.mark.parametrize("text", ["env: {A: \"%s\"}", "network: {parent-proxy: {http: \"http://u:%s@proxy.example:3128\"}}"])
def test_the_digest_counts_other_values(vault, text):
    def of(value):
        return digest(vault, "--settings", shared(vault, "v.yaml", f"version: 1\n{text % value}\n"))
    assert of("1234") == of("1234") != of("1235")


@requirement("R12", "R45")
def test_a_value_cannot_be_tried_against_the_digest(vault):
    """Whoever knows everything but the value has no key: the same policy has another digest elsewhere. What hides nothing has the
    same one everywhere, and needs no key."""
    elsewhere = vault.home / "elsewhere"
    flags = ["--env", "PIN=1234"]
    assert digest(vault, "--secret-file", "/run/a=token") == digest(vault, "--secret-file", "/run/a=token", home=elsewhere)
    assert not (elsewhere / "cloche").exists()
    assert digest(vault, *flags) != digest(vault, *flags, home=elsewhere)
    key = elsewhere / "cloche" / "digest.key"
    assert key.stat().st_mode & 0o777 == 0o600 and key.stat().st_size == 32 and os.listdir(key.parent) == ["digest.key"]
    assert digest(vault, *flags, home=elsewhere) == digest(vault, *flags, home=elsewhere)


@requirement("R45")
def test_without_a_place_for_the_key_no_two_are_equal(vault):
    nowhere = vault.home / "file"
    nowhere.write_text("")
    assert digest(vault, "--env", "A=b", home=nowhere) != digest(vault, "--env", "A=b", home=nowhere)
    (vault.home / "open" / "cloche").mkdir(parents=True, mode=0o755)
    planted = vault.home / "open" / "cloche" / "digest.key"
    planted.write_bytes(b"k" * 32)      # 0644: others know it
    planted.chmod(0o644)
    assert digest(vault, "--env", "A=b", home=vault.home / "open") != digest(vault, "--env", "A=b", home=vault.home / "open")
