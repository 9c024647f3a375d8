"""Symbolic links and renamed folders around protected places: what a hostile review got through, and does not any more."""
import os

import pytest

from helpers import requirement

pytestmark = requirement("R03", "R11", "R91")


@pytest.fixture
def home(cloche, project):
    """A home whose credential places are links into a folder of dotfiles, with a link beside them."""
    base = project.parent / "linked-home"
    (base / "dot/ssh").mkdir(parents=True)
    (base / "dot/ssh/id_rsa").write_text("PRIVATE KEY")
    (base / ".ssh").symlink_to("dot/ssh")
    (base / "beside").symlink_to(".ssh")
    os.chmod(base, 0o755)
    return base


WAYS = [".ssh/id_rsa", "dot/ssh/id_rsa", "beside/id_rsa"]


@pytest.mark.parametrize("way", WAYS)
def test_credentials_behind_a_link_in_a_bound_home(cloche, home, way):
    assert "PRIVATE" in (home / way).read_text()
    result = cloche("run", "--bind", f"{home}:/data", "--", "cat", f"/data/{way}", env={"HOME": str(home)})
    assert not result.ok and "PRIVATE" not in result.out, result


@pytest.mark.parametrize("view", [["--mode", "light"], ["--view", "host"]], ids=["light", "host view"])
@pytest.mark.parametrize("way", WAYS)
def test_credentials_behind_a_link_in_the_hosts_tree(cloche, home, way, view):
    result = cloche("run", *view, "--", "cat", str(home / way), env={"HOME": str(home)})
    assert not result.ok and "PRIVATE" not in result.out, result


def test_a_folder_above_a_nested_hook_cannot_be_swapped(cloche, project):
    hooks = project / "sub/.git/hooks"
    hooks.mkdir(parents=True)
    (hooks / "pre-commit").write_text("original")
    cloche("run", "--workspace", project, "--", "sh", "-c",
           "cd sub; mv .git g && cp -r g .git && echo PLANTED > .git/hooks/pre-commit")
    assert (hooks / "pre-commit").read_text() == "original"


def test_a_folder_above_a_denied_write_cannot_be_swapped(cloche, project):
    (project / "a/b").mkdir(parents=True)
    cloche("run", "--workspace", project, "--deny-write", project / "a/b", "--", "sh", "-c",
           "mv a a2 && mkdir -p a/b && echo PLANTED > a/b/k")
    assert list((project / "a/b").iterdir()) == []


def test_a_repository_behind_a_link_is_protected(cloche, project):
    real = project / "gd/hooks"
    real.mkdir(parents=True)
    (real / "pre-commit").write_text("original")
    (project / "gd/config").write_text("[core]")
    (project / ".git").symlink_to("gd")
    cloche("run", "--workspace", project, "--", "sh", "-c",
           "echo P > .git/hooks/pre-commit; echo P >> gd/config; echo P > gd/hooks/new; echo P > .git/hooks/new")
    assert (real / "pre-commit").read_text() == "original" and (project / "gd/config").read_text() == "[core]"
    assert [p.name for p in real.iterdir()] == ["pre-commit"]


def test_a_folder_as_stdin_is_refused(cloche, project):
    fd = os.open(project, os.O_RDONLY)
    try:
        result = cloche("run", "--", "ls", stdin=fd)
    finally:
        os.close(fd)
    assert result.code == 125 and "cli.stdio.kind" in result.err, result


def test_a_file_as_stdin_stays_as_it_is(cloche, project):
    path = project / "in"
    path.write_text("data")
    os.chmod(path, 0o644)
    with open(path, "rb") as stdin:
        result = cloche("run", "--", "sh", "-c", "chmod 777 /dev/fd/0; cat", stdin=stdin.fileno())
    assert result.out == "data" and path.stat().st_mode & 0o777 == 0o644, result


def test_the_file_that_names_a_repository_is_protected(cloche, project):
    (project / ".git").write_text("gitdir: /somewhere/else\n")
    cloche("run", "--workspace", project, "--", "sh", "-c", "echo 'gitdir: ./evil' > .git; rm -f .git; mkdir .git")
    assert (project / ".git").read_text() == "gitdir: /somewhere/else\n"
