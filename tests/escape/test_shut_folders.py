"""A folder that nobody may search: what one run closed (chmod), the next must not open again and find without rules.

The start cannot look into such a folder of its own user's, so what rules name in there is not seen. It is closed whole, or read-only.
"""
import os

import pytest

from helpers import requirement

pytestmark = [requirement("R11", "R26"), pytest.mark.ordinary]

# what the second run has, and what it must not do: read a secret, write to what is kept
CASES = {
    "a path": (["--deny-read", "{sub}/secret.key"], "read one"),
    "a path in the host's tree": (["--view", "host", "--allow-write", "{project}", "--deny-read", "{sub}/secret.key"], "read one"),
    "a pattern": (["--deny-read", "**/*.key"], "read"),
    "a pattern that begins there": (["--deny-read", "{sub}/*.key"], "read one"),
    "hard links": (["--deny-hard-links"], "read link"),
    "a kept path": (["--deny-write", "{sub}/keep"], "write"),
    "a kept pattern": (["--deny-write", "**/keep"], "write"),
    "protected names": ([], "name"),
}
READ = "cat sub/secret.key sub/deep/secret.key"
DO = {"read": READ, "read one": "cat sub/secret.key", "read link": "cat sub/link", "write": "echo EVIL >> sub/keep/file",
      "name": "echo EVIL > sub/.vscode/tasks.json; echo EVIL >> sub/deep/.claude/commands/x"}


def prepare(cloche):
    sub = cloche.project / "sub"
    for name in ("keep", ".vscode", "deep/.claude/commands"):
        (sub / name).mkdir(parents=True)
    for name in ("secret.key", "deep/secret.key", "link"):
        (sub / name).write_text("SECRET")
    os.link(sub / "link", cloche.home / "link")
    (sub / "keep" / "file").write_text("kept")
    if cloche.person is not None:
        for at, dirs, files in os.walk(sub):
            for path in [at] + [os.path.join(at, f) for f in files]:
                os.chown(path, cloche.person.pw_uid, cloche.person.pw_gid)
    return sub


def evil(project):
    return [path for path in project.rglob("*") if path.is_file() and "EVIL" in path.read_text()]


@pytest.mark.parametrize("mode", ["000", "400", "111"])
@pytest.mark.parametrize("name", CASES)
def test_what_was_closed_stays_closed(cloche, name, mode):
    sub = prepare(cloche)
    flags, what = CASES[name]
    project = cloche.project
    flags = [f.format(sub=sub, project=project) for f in flags]
    if "--view" not in flags:
        flags = ["--workspace", f"{project}:rw", "--workdir", "/workspace", *flags]
    first = cloche("run", "--workspace", f"{project}:rw", "--", "chmod", mode, "sub", cwd=project)
    assert first.ok, first
    done = cloche("run", *flags, "--", "sh", "-c", f"{DO[what]}; chmod 755 sub; {DO[what]}; mv sub bus; cat bus/secret.key; true",
                  cwd=project)
    os.chmod(sub if sub.exists() else project / "bus", 0o755)
    if what.startswith("read"):
        assert "SECRET" not in done.out, done
    assert not evil(project), done
