"""State that git runs, put into a shared folder through the files interface of `cloche serve` (issue 13, A1): the same rule as for
programs inside, with the real git on the host afterwards."""
import os

import pytest

from helpers import requirement
from helpers.daemon import Daemon, OthersDaemon
from helpers.git_bench import INDEX_PYTHON, REPO

pytestmark = requirement("R61")

HEAD = b"ref: refs/heads/main\n"


@pytest.fixture
def shared(cloche, command, has, daemon):
    """(put, box): a sandbox with a repository as its workspace, and PUT that makes what is above."""
    has("git")
    (cloche.project / "file").write_text("1\n")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "1"]):
        command(["git", *words], cwd=cloche.project)
    box = daemon.create(policy={"workspace": str(cloche.project)})
    return lambda path, data: box.put(path, data, "?parents=true"), box


def harm(world):
    return f'[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = "touch {world.root}/marker; false"\n'.encode()


def works_on(command, project):
    for at, directories, _ in os.walk(project):
        directories[:] = [d for d in directories if d != "objects"]
        command(["git", "status"], cwd=at, check=False)


@pytest.mark.parametrize("order", ["config last", "config first"])
@pytest.mark.parametrize("at", ["x", "deep/er/x.git", ".git/modules/refs/m"])
def test_a_repository_piece_by_piece(cloche, command, world, shared, at, order):
    put, _ = shared
    parts = {f"{at}/HEAD": HEAD, f"{at}/objects/a": b"", f"{at}/refs/a": b""}
    parts = {**parts, f"{at}/config": harm(world)} if order == "config last" else {f"{at}/config": harm(world), **parts}
    said = {path: put(path, data).status for path, data in parts.items()}
    works_on(command, cloche.project)
    assert not (world.root / "marker").exists(), said
    assert 403 in said.values(), said


def test_what_a_rebase_goes_on_with(cloche, command, world, shared):
    put, _ = shared
    head = (cloche.project / ".git/refs/heads").glob("*")
    branch = next(head)
    for name, data in {"head-name": f"refs/heads/{branch.name}\n", "onto": branch.read_text(), "orig-head": branch.read_text(),
                       "interactive": "", "done": "", "msgnum": "0\n", "end": "1\n"}.items():
        assert put(f".git/rebase-merge/{name}", data.encode()).ok
    assert put(".git/rebase-merge/git-rebase-todo", f"exec touch {world.root}/marker\n".encode()).status == 403
    command(["git", "rebase", "--continue"], cwd=cloche.project, check=False, env={"GIT_EDITOR": "true"})
    assert not (world.root / "marker").exists()


def test_what_a_checkout_writes_and_a_commit_copies(cloche, command, world, shared):
    put, _ = shared
    (world.root / "secret").write_text("evil-to-touch")
    told = command(["python3", "-IS", "-c", f"{INDEX_PYTHON}\nprint(index('file', {str(world.root / 'marker')!r}).hex())"], cwd=cloche.project)
    assert put(".git/index", bytes.fromhex(told.out)).status == 403
    put(".git/rr-cache/" + "1" * 40 + "/preimage", b"x")
    put(".git/MERGE_RR", f"{'1' * 40}\t{world.root}/secret\0".encode())
    for words in (["checkout", "."], ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "--allow-empty", "-m", "2"]):
        command(["git", *words], cwd=cloche.project)
    assert not (world.root / "marker").exists()
    assert not list((cloche.project / ".git/rr-cache").glob("*/postimage"))


def test_the_repository_stays(cloche, command, shared):
    put, box = shared
    box.daemon("DELETE", box.file(".git/HEAD"))
    assert (cloche.project / ".git/HEAD").is_file()
    assert command(["git", "log", "--oneline"], cwd=cloche.project).ok


def test_other_files_as_ever(cloche, shared):
    """Also such as are called like git's, where they are none."""
    put, _ = shared
    for path in ("config", "src/config", "hooks/pre-commit", "src/HEAD", "refs/x", ".gitignore"):
        assert put(path, b"x").ok and (cloche.project / path).read_bytes() == b"x", path


@pytest.mark.parametrize("mode", ["light", "standard"])
def test_head_at_the_top(in_mode, command, has, mode):
    """It stays a HEAD: without one git looks for another repository, in the folder itself or above it."""
    has("git")
    cloche = in_mode(mode)
    command(["git", "init", "-q", "-b", "main"], cwd=cloche.project)
    daemon = (OthersDaemon if cloche.person else Daemon)(cloche)
    box = daemon.create(policy={"mode": mode, "workspace": str(cloche.project)})
    head = cloche.project / ".git/HEAD"
    for query in ("", "?mode=600", "?exclusive=true"):
        for path in (".git/HEAD", "./.git//HEAD"):
            assert box.put(path, b"nothing", query).status in (403, 409)
    assert not box.daemon("DELETE", box.file(".git/HEAD")).ok
    assert head.read_bytes() == HEAD
    box.put(".git/HEAD", b"ref: refs/heads/other\n")
    assert head.read_bytes() in (HEAD, b"ref: refs/heads/other\n")
    assert daemon.stop() == 0, daemon.log


@pytest.mark.parametrize("path", [".git/HEAD", ".git?recursive=true", ".git/refs?recursive=true", ".git/objects?recursive=true"])
def test_a_repository_that_came_meanwhile_stays_one(cloche, command, has, world, daemon, path):
    """The owner makes one, and has a bare one checked out at its top (test_git_head.py)."""
    has("git")
    box = daemon.create(policy={"workspace": str(cloche.project)})
    script = REPO + "mkdir objects refs; touch objects/k refs/k; printf %s \"$HARM\" > config; echo 'ref: refs/heads/main' > HEAD; git add HEAD config objects refs; git commit -qm bare"
    env = {"HARM": harm(world).decode(), "GIT_CONFIG_NOSYSTEM": "1"}
    env.update({f"GIT_{who}_{what}": "o@o" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")})
    assert command(["sh", "-ec", script], cwd=cloche.project, env=env).ok
    answer = daemon("DELETE", f"{box.at}/files/{path}")
    assert (answer.status, answer.json["code"]) == (409, "files.busy"), answer
    command(["git", "status"], cwd=cloche.project, check=False)
    assert not (world.root / "marker").exists()
