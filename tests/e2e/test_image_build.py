"""cloche image build: a Debian as a recipe says, by mmdebstrap in a sandbox; recipes are data files (R27, R67)."""
import json
import os
import shutil
import socket
import subprocess
from urllib.parse import urlsplit

import pytest

from helpers import requirement
from helpers.images import store

pytestmark = requirement("R27", "R67")

NEEDS = ("mmdebstrap", "fakechroot", "fakeroot", "apt-get")
TINY = """about: no more than Python
packages: [python3-minimal]
env: { TINY: "of the recipe" }
workdir: /srv
cmd: [python3, -c, "import os; print(os.environ['TINY'], os.getcwd(), os.path.exists('/etc/debian_version'))"]
"""


def recipe(cloche, text, name="mine", mode=0o644):
    path = cloche.home / ".config/cloche/recipes" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="ascii")
    path.chmod(mode)
    return path


def refused(cloche, code, *words):
    result = cloche("image", "build", *words)
    assert result.code == 125 and f"[{code}]" in result.err, result
    return result.err


def test_those_that_come_along_are_listed_and_shown(cloche):
    listed = cloche("image", "build", "--list", "--json").json["recipes"]
    assert {one["name"] for one in listed} >= {"python", "node", "shell", "browser", "desktop"}
    for one in listed:
        assert one["about"] and one["suite"] and one["packages"], one
        assert cloche("image", "build", "--show", one["name"], "--json").json == {**one, "version": 1}
    shown = cloche("image", "build", "--show", "browser")
    assert shown.ok and "suite: bookworm" in shown.out and " chromium " in shown.out, shown
    assert "browser " in cloche("image", "build", "--list").out


def test_own_ones_are_added_and_replace_others(cloche):
    recipe(cloche, TINY)
    path = recipe(cloche, "about: my own shell\npackages: [dash]\n", "shell")
    listed = {one["name"]: one for one in cloche("image", "build", "--list", "--json").json["recipes"]}
    assert listed["shell"]["packages"] == ["dash"] and listed["shell"]["file"] == str(path)
    assert listed["mine"]["env"] == ["TINY=of the recipe"] and listed["mine"]["workdir"] == "/srv"


def test_what_is_no_recipe_is_refused(cloche):
    assert "did you mean `cloche image build python`" in refused(cloche, "recipe.unknown", "pyhton")
    assert "--list" in refused(cloche, "image.misused")
    path = recipe(cloche, "packages: [\"bash; id\"]\n")
    assert f"{path}:1" in refused(cloche, "recipe.value", "mine")
    recipe(cloche, "packages: [bash]\nhooks: [id]\n")
    assert "about, suite, packages" in refused(cloche, "recipe.key", "mine")
    recipe(cloche, TINY, mode=0o666)
    refused(cloche, "recipe.unsafe", "mine")
    path.unlink()
    path.symlink_to("/etc/passwd")
    refused(cloche, "recipe.unsafe", "--list")


def test_wrong_words(cloche):
    recipe(cloche, TINY)
    refused(cloche, "image.name", "mine", "NAME@x")
    refused(cloche, "image.time", "mine", "--timeout", "0")
    refused(cloche, "image.build.missing" if not all(map(shutil.which, NEEDS)) else "image.name", "mine", "a b")


@pytest.mark.root
def test_without_mmdebstrap_it_says_what_to_install(cloche):
    """In a mount namespace in which the host has none."""
    recipe(cloche, TINY)
    hide = 'mount -t tmpfs none /usr/share/keyrings && exec "$@"'
    result = subprocess.run(["unshare", "--mount", "--", "sh", "-c", hide, "sh", str(cloche.binary), "image", "build", "mine"],
                            env={**os.environ, **cloche.env, "HOME": str(cloche.home)}, capture_output=True, text=True, check=False)
    assert result.returncode == 125 and "[image.build.missing]" in result.stderr and "apt install " in result.stderr, result
    assert not os.listdir(store(cloche) / "tmp")


def mirrors():
    """Flags for the host's mirrors: those that resolve to an address which a name does not open need a rule for it."""
    said = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], capture_output=True, text=True, check=False).stdout
    flags = []
    for url in sorted(set(said.split()) | {"http://deb.debian.org/debian"}):
        at = urlsplit(url)
        if "debian" not in at.hostname:
            continue
        try:
            with socket.create_connection((at.hostname, at.port or 80), 10) as far:
                flags += ["--allow-domain", f"{far.getpeername()[0]}:{at.port or 80}"]
        except OSError as e:
            pytest.skip(f"the mirror {at.hostname} does not answer from here: {e}")
    return flags


def mirror(cloche, line):
    """apt-get that knows one mirror: "URI RELEASE COMPONENT"."""
    program = cloche.home / "bin" / "apt-get"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{line}'\n", encoding="utf-8")
    program.chmod(0o755)
    cloche.env["PATH"] = f"{program.parent}:{os.environ['PATH']}"


@pytest.mark.parametrize("url", ["http://joe:s3cret@mirror.example/debian", "https://s3cret@mirror.example", "ftp://joe:s3cret@mirror.example/debian"])
def test_a_mirrors_password_is_not_for_what_is_built(cloche, has, url):
    has(*NEEDS)
    recipe(cloche, TINY)
    mirror(cloche, f"{url} bookworm main")
    said = refused(cloche, "image.build.mirror-password", "mine")
    assert "s3cret" not in said and not os.listdir(store(cloche) / "tmp"), said


def test_what_is_said_of_a_build_is_made_visible(cloche, has):
    """Programs that a build runs repeat what they were told by strangers; apt keeps from its messages no more than C0 controls."""
    has(*NEEDS)
    recipe(cloche, TINY)
    mirror(cloche, "http://mirror.example/a\u202eb\u009bc bookworm main")
    for words in ((), ("--verbose",)):
        said = refused(cloche, "image.build", "mine", *words)
        assert "mirror.example/a<U+202E>b<U+009B>c" in said and not set(said) & set("\u202e\x9b"), said


def test_a_build_and_a_run(anyone, has):
    has(*NEEDS)
    recipe(anyone, TINY)
    if anyone.person is not None:
        subprocess.run(["chown", "-R", f"{anyone.person.pw_uid}:{anyone.person.pw_gid}", anyone.home / ".config"], check=True)
    result = anyone("image", "build", "mine", "--json", *mirrors(), timeout=3000)
    assert result.ok, result
    said = json.loads(result.out)
    assert said["name"] == "localhost/mine:bookworm" and said["source"] == "recipe mine" and said["env"] == ["TINY=of the recipe"], said
    assert not os.listdir(store(anyone) / "tmp")
    image = f"localhost/mine:bookworm@{said['id']}"
    ran = anyone("run", "--image", image)
    assert ran.out == "of the recipe /srv True\n", ran
    # no file is set-user-ID, none was left without rights, and what dpkg says is whole
    code = ("find / -xdev -type f '(' -perm /6000 -o ! -readable ')' -print 2>/dev/null; test -r /usr/bin/su || echo su; dpkg --audit; "
            "python3 -c 'print(1)'")
    ran = anyone("run", "--image", image, "--", "/bin/sh", "-c", code)
    assert ran.out == "1\n", ran
    # what ran to make it ran in a sandbox: its record has the command, and the mirrors were all it could reach
    log = [json.loads(line) for line in anyone("audit", "query", "--json").out.splitlines()]
    made = [e for e in log if e.get("metadata", {}).get("command") == "mmdebstrap"]
    assert len(made) == 1 and made[0]["metadata"]["view"] == "private" and made[0]["metadata"]["network"] == "allowlist", made
    assert any(e.get("metadata", {}).get("decision") == "allow" and e["sandbox"] == made[0]["sandbox"] for e in log)
