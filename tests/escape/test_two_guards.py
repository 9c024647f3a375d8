"""Two sandboxes that may write to one project, each with a name guard of its own: what one guard has judged the other changes before it
is done (issue 13, A1). One sandbox puts what git or an agent would obey where nothing obeys it, the other makes that such a place."""
import pytest

from helpers import places, requirement

pytestmark = requirement("R82", "R12")

ROUNDS, SECONDS = places.rounds((2500, 4), (10000, 20))
EVIL = '[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = "touch marker; false"\n'
COMMON = f"EVIL, ROUNDS, SECONDS = {EVIL!r}, {ROUNDS}, {SECONDS}\n" + """
import ctypes, os, shutil, sys, time
LIBC = ctypes.CDLL(None)
def attempt(f, *words, **more):
    try: return f(*words, **more)
    except OSError: return None
def put(path, text):
    with open(path, 'w') as f: f.write(text)
def exchange(a, b):
    if LIBC.renameat2(-100, a.encode(), -100, b.encode(), 2) != 0: raise OSError('exchange')
TOP = os.getcwd()
def within(folder, f, *words):
    os.chdir(folder)
    try: f(*words)
    finally: os.chdir(TOP)
def evil(path):
    return attempt(lambda: open(path).read()) == EVIL
def whole(at):
    return all(os.path.lexists(f'{at}/{name}') for name in ('objects', 'refs'))
def hold_of(folder, known, path):
    # what comes there under a name that is not known, and becomes path
    for _ in range(300):
        for name in set(os.listdir(folder)) - set(known):
            fd = attempt(os.open, f'{folder}/{name}', os.O_WRONLY)
            if fd is None: continue
            for _ in range(300):
                if attempt(lambda: os.path.samestat(os.fstat(fd), os.stat(path))):
                    os.ftruncate(fd, 0); os.pwrite(fd, EVIL.encode(), 0)
                    return
            os.close(fd)
def lasting(condition):
    # not what is undone a moment later
    for _ in range(100):
        if not condition(): return False
        time.sleep(0.001)
    return True
def race(act, won, undo, me, other):
    # both begin together, and go on until each has had its rounds: one whose every call fails has many more
    put(f'ready-{me}', '')
    late = time.time() + 60
    while not os.path.exists(f'ready-{other}') and time.time() < late:
        time.sleep(0.001)
    end, n = time.time() + SECONDS, 0
    while time.time() < end and not os.path.exists('won') and (n < ROUNDS or not os.path.exists(f'done-{other}')):
        attempt(act)
        n += 1
        if attempt(won) and lasting(lambda: attempt(won)):
            put('won', '')
            break
        if n == ROUNDS:
            put(f'done-{me}', '')
        if not os.path.exists('won'):
            attempt(undo)
    put(f'done-{me}', '')
    print(n)
"""
# what is there, what one sandbox does, what the other does, and when they have won
COMPLETE = ("os.mkdir('x/refs')", "os.rmdir('x/refs')")
PLACE = "os.makedirs('x/objects')"
RACES = {
    "a configuration": (PLACE, ("put('x/config', EVIL)", "os.unlink('x/config')"), COMPLETE, "whole('x') and evil('x/config')"),
    "a configuration, renamed": (PLACE, ("put('c', EVIL); os.rename('c', 'x/config')", "os.unlink('x/config')"), COMPLETE,
                                 "whole('x') and evil('x/config')"),
    "a configuration, linked": (PLACE + "; put('c', EVIL)", ("os.link('c', 'x/config')", "os.unlink('x/config')"), COMPLETE,
                                "whole('x') and evil('x/config')"),
    "a configuration that is there": (PLACE + "; put('x/config', '')", ("put('x/config', EVIL)", "os.truncate('x/config', 0)"), COMPLETE,
                                      "whole('x') and evil('x/config')"),
    "a configuration with another name": (PLACE + "; put('x/config', '')", ("os.link('x/config', 'x/other')", "os.unlink('x/other')"), COMPLETE,
                                          "whole('x') and os.path.exists('x/other') and os.path.samefile('x/config', 'x/other')"),
    "a link as configuration": (PLACE + "; put('c', EVIL)", ("os.symlink('../c', 'x/config')", "os.unlink('x/config')"), COMPLETE,
                                "whole('x') and os.path.islink('x/config')"),
    "a hook": (PLACE + "; os.mkdir('x/hooks')", ("put('x/hooks/post-checkout', EVIL)", "os.unlink('x/hooks/post-checkout')"), COMPLETE,
               "whole('x') and os.path.exists('x/hooks/post-checkout')"),
    "hooks": (PLACE + "; os.makedirs('n/hooks')", ("put('n/hooks/post-checkout', EVIL); os.rename('n/hooks', 'x/hooks')",
                                                   "os.rename('x/hooks', 'n/hooks')"), COMPLETE, "whole('x') and os.path.exists('x/hooks/post-checkout')"),
    "hooks that are moved": ("os.makedirs('x/objects'); os.mkdir('x/refs'); os.makedirs('n/hooks')",
                             ("fd = os.open('n/hooks', os.O_PATH); put(f'/proc/self/fd/{fd}/post-checkout', EVIL); os.close(fd)",
                              "os.unlink('n/hooks/post-checkout')"),
                             ("os.rename('n/hooks', 'x/hooks')", "os.rename('x/hooks', 'n/hooks')"), "os.path.exists('x/hooks/post-checkout')"),
    "hooks that the maker works in": ("os.makedirs('x/objects'); os.mkdir('x/refs'); os.mkdir('n')",
                                      ("within('n', put, 'post-checkout', EVIL)", "os.unlink('n/post-checkout')"),
                                      ("os.rename('n', 'x/hooks')", "os.rename('x/hooks', 'n')"), "os.path.exists('x/hooks/post-checkout')"),
    "a judged copy that has not got its name": ("os.makedirs('x/objects'); os.mkdir('x/refs')", ("put('c', ''); os.rename('c', 'x/config')", "os.unlink('x/config')"),
                                                ("hold_of('x', ['objects', 'refs', 'config'], 'x/config')", ""), "evil('x/config')"),
    "a judged .git that has not got its name": ("os.makedirs('x')", ("put('c', 'gitdir: ../.git\\n'); os.rename('c', 'x/.git')", "os.unlink('x/.git')"),
                                                ("hold_of('x', ['.git'], 'x/.git')", ""), "evil('x/.git')"),
    "two parts": ("os.mkdir('x'); put('x/config', EVIL)", ("os.mkdir('x/objects')", "os.rmdir('x/objects')"), COMPLETE, "whole('x') and evil('x/config')"),
    "commands of an agent": ("os.mkdir('d')", ("os.mkdir('d/commands')", "os.rmdir('d/commands')"),
                             ("os.rename('d', '.claude')", "os.rename('.claude', 'd')"), "os.path.isdir('.claude/commands')"),
    "a link in the place of a file": ("os.makedirs('x/objects'); os.mkdir('x/refs'); put('victim', '')",
                                      ("os.symlink('../victim', 's'); os.rename('s', 'f')", "put('g', ''); os.rename('g', 'f')"),
                                      ("os.rename('f', 'x/ORIG_HEAD')", "os.unlink('x/ORIG_HEAD')"), "os.path.islink('x/ORIG_HEAD')"),
    "a link where nothing was": ("os.makedirs('x/objects'); os.mkdir('x/refs'); put('victim', '')", ("os.symlink('../victim', 'f')", "os.unlink('f')"),
                                 ("os.rename('f', 'x/ORIG_HEAD')", "os.unlink('x/ORIG_HEAD')"), "os.path.islink('x/ORIG_HEAD')"),
    "a link that is exchanged": ("os.makedirs('x/objects'); os.mkdir('x/refs'); put('victim', ''); put('x/ORIG_HEAD', '')",
                                 ("os.symlink('../victim', 's'); os.rename('s', 'f')", "put('g', ''); os.rename('g', 'f')"),
                                 ("exchange('f', 'x/ORIG_HEAD')", "os.unlink('x/ORIG_HEAD'); put('x/ORIG_HEAD', '')"), "os.path.islink('x/ORIG_HEAD')"),
    "settings of an agent": ("os.mkdir('d')", ("put('d/settings.json', EVIL)", "os.unlink('d/settings.json')"),
                             ("os.rename('d', '.claude')", "os.rename('.claude', 'd')"), "os.path.exists('.claude/settings.json')"),
}


@pytest.mark.parametrize("what", RACES)
def test_what_one_judged_is_not_changed_by_the_other(cloche, command, what):
    before, one, other, won = RACES[what]
    flags = ["--workspace", cloche.project]
    assert cloche.sandbox(COMMON + before, flags=flags, cwd=cloche.project).ok
    code = [f"{COMMON}\ndef act(): {act}\ndef undo(): {undo or None}\nrace(act, lambda: {won}, undo, {me}, {1 - me})"
            for me, (act, undo) in enumerate((one, other))]
    ends = [cloche.popen("run", *flags, "--", "python3", "-IS", "-c", text, cwd=cloche.project) for text in code]
    said = [end.communicate(timeout=90) for end in ends]
    assert all(end.returncode == 0 for end in ends), said
    # what they saw may have been taken back since
    left = command(["python3", "-IS", "-c", f"{COMMON}\nprint(bool(attempt(lambda: {won})))"], cwd=cloche.project)
    assert left.out == "False\n", (left, said)
    assert (cloche.project / "won").exists() or all(int(out) > 0 for out, _ in said), said
