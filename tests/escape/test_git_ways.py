"""State that git executes, in every way of running: each attack of the other files where only some had been tried, and what becomes such
state when a folder is moved, a part is added, or a disk is full (issue 13, A1; docs/name-guard.md).

One sandbox does all rows (helpers/git_rows.py), so each way costs one.
"""
import json
import sys

import pytest

from escape import test_git_led, test_git_state
from helpers import requirement
from helpers.git_bench import INDEX_PYTHON
from helpers.git_rows import Rows, alone, run_in
from helpers.runner import Runner

pytestmark = [requirement("R91", "R11", "R82"), pytest.mark.usefixtures("needs_git")]

ROWS = {name: row for name, row in {**test_git_state.ATTACKS, **{name: (*row, "") for name, row in test_git_led.ATTACKS.items()}}.items() if not alone(row)}
WAYS = ("host view", "srt", "code", "shell", "cow")
# each writable folder has each protected name as a rule, and a sandbox has room for some sixty folders
PARTS = [dict(list(ROWS.items())[i::3]) for i in range(3)]


@pytest.fixture
def needs_git(has):
    has("git", "perl")


@pytest.mark.parametrize("part", range(len(PARTS)))
def test_the_rows_are_real(cloche, command, part):
    rows = Rows(cloche, command, PARTS[part])
    rows.inside("bare")
    assert set(rows.rows) - set(rows.after()) == set()


@pytest.mark.parametrize("part", range(len(PARTS)))
@pytest.mark.parametrize("way", WAYS)
def test_nothing_runs_on_the_host(cloche, command, way, part):
    """All the projects of a copy-on-write workspace are in one, deeper than what their configurations name is looked for (protect-depth)."""
    rows = Rows(cloche, command, {name: row for name, row in PARTS[part].items() if way != "cow" or name not in test_git_led.ATTACKS})
    done = rows.inside(way)
    assert rows.after() == [], done


# --- what becomes git's state by a move

KINDS = f"""
import ctypes, mmap, os, sys
EVIL = sys.argv[1]
{INDEX_PYTHON}
listed = b'DIRC' + struct.pack('>II', 2, 1) + entry(os.fsencode(EVIL), '0' * 40, b'')
listed += hashlib.sha1(listed).digest()
RUN = EVIL.encode()
CONFIG = b'[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n'
HARM = CONFIG + b'\\tfsmonitor = ' + RUN + b'\\n'
SCRIPT = b'#!/bin/sh\\n' + RUN + b'\\n'
# below a git directory; what git executes, or follows when it writes: text is a link
KINDS = {{
    'config': HARM, 'config.worktree': HARM, 'hooks/post-index-change': SCRIPT, 'hooks/a/b': SCRIPT, 'index': listed,
    'sharedindex.' + '1' * 40: listed, 'MERGE_RR': b'1' * 40 + b'\\t' + RUN + b'\\0',
    'rebase-merge/git-rebase-todo': b'exec ' + RUN + b'\\n', 'rebase-merge/strategy': b'x/../' + RUN + b'\\n', 'rebase-merge/msgnum': b'1\\n$(' + RUN + b')\\n',
    'rebase-merge/end': b'1\\n$(' + RUN + b')\\n', 'rebase-apply/next': b'1\\n$(' + RUN + b')\\n', 'rebase-apply/apply-opt': b"'--exec=" + RUN + b"'\\n",
    'sequencer/todo': b'exec ' + RUN + b'\\n', 'sequencer/opts': b'[options]\\n\\tstrategy = x/../' + RUN + b'\\n', 'BISECT_NAMES': b' $(' + RUN + b')\\n',
    'gitweb/x-lighttpd': SCRIPT, 'gitweb/gitweb_config.perl': SCRIPT, 'pid': RUN + b'\\n', 'remotes/origin': b'URL: ext::' + RUN + b'\\n', 'branches/origin': b'ext::' + RUN + b'\\n',
    'COMMIT_EDITMSG': EVIL, 'FETCH_HEAD': EVIL, 'packed-refs': EVIL, 'logs/HEAD': EVIL, 'refs/heads/x': EVIL, 'reftable/tables.list': EVIL, 'info/exclude': EVIL,
    'worktrees': EVIL, 'rr-cache/x': EVIL, 'gitk.cache': EVIL, 'config.lock': HARM, 'index.lock': listed,
}}
"""
MOVES = KINDS + r"""
libc = ctypes.CDLL(None)
def attempt(f, *words, **more):
    try:
        return f(*words, **more)
    except OSError:
        return None
def make(path):
    attempt(os.makedirs, path, exist_ok=True)
def write(path, data, how='wb'):
    make(os.path.dirname(path))
    if isinstance(data, str):
        return attempt(os.symlink, data, path)
    file = attempt(open, path, how)
    if file is not None:
        with file:
            attempt(file.write, data)
def move(a, b):
    make(os.path.dirname(b))
    attempt(os.rename, a, b)
def exchange(a, b):
    libc.renameat2(-100, a.encode(), -100, b.encode(), 2)
def empty(at, *but):
    for part in ('objects', 'refs/heads'):
        if part not in but: make(at + '/' + part)
    if 'HEAD' not in but: write(at + '/HEAD', b'ref: refs/heads/main\n')
    if 'config' not in but: write(at + '/config', CONFIG)
# Ways to have @data at @kind below a git directory of the row, which is the working directory and has a repository.
def direct(kind, data):
    write('.git/' + kind, data)
def appended(kind, data):
    write('.git/' + kind, data, 'ab')
def renamed(kind, data):
    write('f', data); move('f', '.git/' + kind)
def linked(kind, data):
    make('.git/' + os.path.dirname(kind)); attempt(os.unlink, '.git/' + kind)
    if isinstance(data, str):
        write('f', data); attempt(os.link, 'f', '.git/' + kind, follow_symlinks=False)
    else:
        write('f', b''); attempt(os.link, 'f', '.git/' + kind); write('f', data)
def exchanged(kind, data):
    write('f', data); write('.git/' + kind, b''); exchange('f', '.git/' + kind)
def unnamed(kind, data):
    make('.git/' + os.path.dirname(kind)); attempt(os.unlink, '.git/' + kind)
    fd = attempt(os.open, '.', os.O_TMPFILE | os.O_RDWR, 0o644)
    if fd is not None:
        if not isinstance(data, str):
            os.write(fd, data); libc.linkat(-100, f'/proc/self/fd/{fd}'.encode(), -100, ('.git/' + kind).encode(), 0x400)
        os.close(fd)
def open_before(kind, data):
    write('f', b''); fd = os.open('f', os.O_RDWR)
    move('f', '.git/' + kind)
    if not isinstance(data, str): os.write(fd, data)
    os.close(fd)
def mapped_before(kind, data):
    if isinstance(data, str): return
    write('f', b' ' * len(data))
    with open('f', 'r+b') as file, mmap.mmap(file.fileno(), len(data)) as m:
        move('f', '.git/' + kind)
        m[:] = data
def parent(kind, data):
    write('.git/r/' + os.path.basename(kind), data); move('.git/r', '.git/' + os.path.dirname(kind))
def parent_from_without(kind, data):
    write('r/' + os.path.basename(kind), data); move('r', '.git/' + os.path.dirname(kind))
def parent_from_below(kind, data):
    write('.git/r/q/' + os.path.basename(kind), data); move('.git/r/q', '.git/' + os.path.dirname(kind))
def parent_exchanged(kind, data):
    make('.git/' + os.path.dirname(kind)); write('r/' + os.path.basename(kind), data); exchange('r', '.git/' + os.path.dirname(kind))
def parent_by_descriptor(kind, data):
    make('r'); fd = os.open('r', os.O_RDONLY); move('r', '.git/' + os.path.dirname(kind))
    name, flags = os.path.basename(kind), os.O_WRONLY | os.O_CREAT
    if isinstance(data, str): attempt(os.symlink, data, name, dir_fd=fd)
    else:
        file = attempt(os.open, name, flags, 0o644, dir_fd=fd)
        if file is not None: attempt(os.write, file, data); os.close(file)
    os.close(fd)
def becomes(kind, data):
    empty('g', 'objects'); write('g/' + kind, data); move('.git', 'old'); move('g', '.git'); make('.git/objects')
def becomes_whole(kind, data):
    empty('g', 'objects', *([kind] if kind == 'config' else [])); write('g/' + kind, data); make('o'); move('o', 'g/objects'); move('.git', 'old'); move('g', '.git')
def becomes_by_exchange(kind, data):
    empty('g', 'objects'); write('g/' + kind, data); exchange('g', '.git'); make('.git/objects')
def becomes_by_link(kind, data):
    empty('g', 'objects'); write('g/' + kind, data); move('.git', 'old'); attempt(os.symlink, 'g', '.git'); make('g/objects')
def becomes_from_afar(kind, data):
    empty('a/b/g', 'refs/heads'); write('a/b/g/' + kind, data); move('.git', 'old'); move('a/b/g', 'a/.git'); make('a/.git/refs')
def within_what_becomes(kind, data):
    empty('a/g', 'objects'); write('a/g/' + kind, data); move('a/g', 'a/.git'); move('a', '.git/modules/a'); make('.git/modules/a/.git/objects')
def completed(kind, data):
    empty('b', 'objects'); write('b/' + kind, data); make('b/objects')
def completed_by_rename(kind, data):
    empty('b', 'refs/heads'); write('b/' + kind, data); make('r/heads'); move('r', 'b/refs')
def completed_by_link(kind, data):
    empty('b', 'objects'); make('o'); write('b/' + kind, data); attempt(os.symlink, '../o', 'b/objects')
def completed_by_exchange(kind, data):
    empty('b', 'objects'); make('o'); write('b/objects', b''); write('b/' + kind, data); exchange('o', 'b/objects')
def completed_by_hard_link(kind, data):
    empty('b', 'objects'); make('o'); attempt(os.symlink, 'o', 'l'); write('b/' + kind, data); attempt(os.link, 'l', 'b/objects', follow_symlinks=False)
def shared(kind, data):
    write('b/HEAD', b'ref: refs/heads/main\n'); write('b/' + kind, data); write('b/commondir', b'../.git\n'); write('c', b'../.git\n'); move('c', 'b/commondir')
def in_modules(kind, data):
    write('.git/modules/m/' + kind, data)
def into_modules(kind, data):
    write('m/' + kind, data); move('m', '.git/modules/m')
def modules_from_above(kind, data):
    write('y/m/' + kind, data); move('y', '.git/modules/y')
def modules_as_such(kind, data):
    write('y/m/' + kind, data); move('y', '.git/modules')
def in_a_modules_refs(kind, data):
    empty('.git/modules/m', 'HEAD'); write('.git/modules/m/refs/s/' + kind, data)
def in_a_whole_ones_refs(kind, data):
    empty('.git/modules/m'); write('.git/modules/m/refs/s/' + kind, data)
def in_refs_of_none_to_git(kind, data):
    empty('.git/modules/m'); write('.git/modules/m/HEAD', b'none\n'); write('.git/modules/m/logs/s/' + kind, data)
def into_a_modules_refs(kind, data):
    empty('.git/modules/m', 'HEAD'); write('t/' + kind, data); move('t', '.git/modules/m/refs/s')
def refs_that_become_modules(kind, data):
    empty('.git/modules/m'); write('.git/modules/m/refs/s/' + kind, data); move('.git/modules/m/refs', '.git/modules/n')
def in_a_worktree(kind, data):
    write('w/' + kind, data); move('w', '.git/worktrees/w')
def worktrees_as_such(kind, data):
    write('ws/w/' + kind, data); move('ws', '.git/worktrees')
def by_descriptor(kind, data):
    empty('g', 'objects'); make('g/' + os.path.dirname(kind)); fd = os.open('g/' + os.path.dirname(kind), os.O_RDONLY)
    move('.git', 'old'); move('g', '.git'); make('.git/objects')
    write(f'/proc/self/fd/{fd}/' + os.path.basename(kind), data)
    os.close(fd)
PARENTS = ('parent', 'parent_from_without', 'parent_from_below', 'parent_exchanged', 'parent_by_descriptor')
WAYS = PARENTS + ('direct', 'appended', 'renamed', 'linked', 'exchanged', 'unnamed', 'open_before', 'mapped_before', 'becomes', 'becomes_whole', 'becomes_by_exchange', 'becomes_by_link',
    'becomes_from_afar', 'within_what_becomes', 'completed', 'completed_by_rename', 'completed_by_link', 'completed_by_exchange', 'completed_by_hard_link', 'shared', 'in_modules',
    'into_modules', 'modules_from_above', 'modules_as_such', 'in_a_modules_refs', 'in_a_whole_ones_refs', 'in_refs_of_none_to_git', 'into_a_modules_refs', 'refs_that_become_modules', 'in_a_worktree', 'worktrees_as_such', 'by_descriptor')
for way in WAYS:
    for kind, data in KINDS.items():
        if way in PARENTS and '/' not in kind: continue
        row = way + '/' + kind.replace('/', '+')
        empty(row + '/.git')
        os.chdir(row)
        globals()[way](kind, data)
        os.chdir('../..')
print('all of them')
"""
# The owner's side: which files with EVIL, and links to it, are where git would run or write them. Written by git's rules, not by ours.
FOUND = KINDS + r"""
def place(at):
    there = set(attempt_list(at))
    return os.path.basename(at) == '.git' or {'HEAD', 'objects', 'refs'} <= there or {'HEAD', 'commondir'} <= there
def attempt_list(at):
    try:
        return os.listdir(at)
    except OSError:
        return []
def holds(path):
    if os.path.islink(path):
        return os.readlink(path) == EVIL
    with open(path, 'rb') as file:
        return RUN in file.read()
# what git takes for a repository of a submodule or a worktree, or would once its parts are there: also in what looks like the refs of another, whose HEAD can change
def promised(parts):
    for i, name in enumerate(parts[:-1]):
        if name == '.git' and parts[i + 1] in ('modules', 'worktrees'):
            return len(parts) > i + 2
    return False
found = []
for at, folders, files in os.walk('.'):
    for name in files + [f for f in folders if os.path.islink(os.path.join(at, f))]:
        path = os.path.join(at, name)
        parts = path.split('/')
        for i in range(2, len(parts)):
            above, kind = '/'.join(parts[:i]), '/'.join(parts[i:])
            if kind in KINDS and (place(above) or promised(parts[:i])) and holds(path):
                found.append(path)
print('\n'.join(found))
"""


def rows_of(told):
    return {"/".join(path.split("/")[1:3]) for path in told.split()}


def by_move(rows):
    """For a message: {move: its kinds}."""
    made = {}
    for row in sorted(rows):
        made.setdefault(row.partition("/")[0], []).append(row.partition("/")[2])
    return made


class Moves:
    def __init__(self, cloche, command):
        self.cloche, self.command = cloche, command
        self.tree = cloche.project / "rows"
        assert Runner(cloche.env, cloche.project, cloche.person).run(["mkdir", self.tree]).ok
        self.evil = str(cloche.home / "evil")

    def inside(self, way):
        script = f"cd PLACE; exec /usr/bin/python3 -IS - {self.evil} <<'END'\n{MOVES}\nEND\n"
        if way == "cow":
            done = self.cloche("run", "--workspace", f"{self.tree}:cow", "--", "sh", stdin=script.replace("PLACE", "/workspace"))
            applied = self.cloche("apply", "--json", cwd=self.tree)
            assert applied.code == 2 and "git-runs-it" in json.dumps(applied.json["withheld"]), applied
        elif way == "light":
            done = self.cloche("run", "--mode", "light", "--workspace", f"{self.tree}:rw", "--", "sh", stdin=script.replace("PLACE", str(self.tree)), cwd=self.tree)
        else:
            done = run_in(self.cloche, self.command, way, {"rows": self.tree}, lambda place: script.replace("PLACE", str(place("rows"))))
        assert done.out.endswith("all of them\n"), done
        return done

    def found(self):
        """Rows whose harm is where git would run it."""
        return rows_of(self.command([sys.executable, "-IS", "-c", FOUND, self.evil], cwd=self.tree).out)


def test_the_moves_are_real(cloche, command):
    """All of them but where there is no such way: a link has no descriptor, and a name in place of a folder no parts."""
    moves = Moves(cloche, command)
    moves.inside("bare")
    all_rows = {"/".join(p.relative_to(moves.tree).parts) for p in moves.tree.glob("*/*")}
    missed = all_rows - moves.found()
    assert len(missed) < len(all_rows) / 8, by_move(missed)
    for at in {row.partition("/")[0] for row in all_rows}:
        assert any(row.startswith(at + "/") for row in all_rows - missed), at


@pytest.mark.parametrize("way", ("standard", "light", *WAYS))
def test_no_move_makes_it(in_mode, command, way):
    moves = Moves(in_mode(way), command)
    done = moves.inside(way)
    found = moves.found()
    assert not found, (by_move(found), done)
