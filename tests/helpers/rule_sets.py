"""Random trees and random rules over them, for tests that hold what is said of rules against what they do.

A set is made from one number, so a failure is repeated by it. Names are few and nested, so that rules meet: one above, at and
below the other, by name, by pattern and through links.
"""
import json
import os
import random

NAMES = "abc"
VIEWS = ("private", "host", "light", "srt")
PROBE_NEW = ".probe"

# Inside: what can really be read and written. One line a path: read, write (0 or 1). A folder is read by listing it, and written by
# making something in it; a file is written by appending to it.
PROBE = r"""
import os, sys
def attempt(fn):
    try: fn()
    except OSError: return 0
    return 1
def read(path):
    if os.path.isdir(path): os.listdir(path)
    else:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK); os.read(fd, 1); os.close(fd)
def append(path):
    fd = os.open(path, os.O_WRONLY | os.O_APPEND); os.write(fd, b'x'); os.close(fd)
def make(path):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL); os.write(fd, b'x'); os.close(fd); os.unlink(path)
for line in sys.stdin.read().splitlines():
    kind, path = line.split(' ', 1)
    print(attempt(lambda: read(path)) if kind != 'n' else '-',
          attempt(lambda: append(path)) if kind == 'f' else attempt(lambda: make(path)) if kind == 'n' else '-')
"""


class RuleSet:
    """Number @seed for @view below the folder @base, which is to be empty and not yet there."""

    def __init__(self, seed, view, base):
        self.seed, self.view = seed, view
        self.random = random.Random(f"{view}-{seed}")
        self.base = base
        self.project = base / "project"
        self.other = base / "other"
        self.files, self.folders, self.links = [], [], []

    # --- the tree ------------------------------------------------------------------------------------------------
    def build(self, own):
        for root in (self.project, self.other):
            root.mkdir(parents=True)
            self._fill(root, 3)
        for _ in range(self.random.randrange(4)):
            self._link()
        for path in (self.base, *self.folders, self.project, self.other, *self.files, *self.links):
            own(path)
        self.settings = self.base.parent / f"{self.base.name}.json"
        self.settings.write_text(json.dumps(self._rules()), encoding="utf-8")
        own(self.settings)

    def _fill(self, folder, depth):
        for name in ("f", "g.key"):
            if self.random.random() < 0.6:
                path = folder / name
                path.write_text("x", encoding="ascii")
                self.files.append(path)
        if depth == 0:
            return
        for name in NAMES:
            if self.random.random() < (0.75 if depth == 3 else 0.45):
                path = folder / name
                path.mkdir()
                self.folders.append(path)
                self._fill(path, depth - 1)

    def _link(self):
        places = [f for f in self.folders if self.project in f.parents] + [self.project]
        targets = [*self.folders, *self.files]
        if not targets:
            return
        link = self.random.choice(places) / f"l{len(self.links)}"
        target = self.random.choice(targets)
        link.symlink_to(target if self.random.random() < 0.3 else os.path.relpath(target, link.parent))
        self.links.append(link)

    # --- the rules -----------------------------------------------------------------------------------------------
    def _path(self, links=True):
        """A path as somebody would write it in a rule."""
        choice = self.random.random()
        nodes = [*self.folders, *self.files, self.project, *(self.links if links else ())]
        path = self.random.choice(nodes)
        if choice < 0.10:
            path = path / "absent" if path.is_dir() else path
        elif choice < 0.30:
            folder = self.random.choice([*self.folders, self.project])
            path = folder / self.random.choice(["*", "**/*.key", "**/f", "[ab]", "a/*", "*/g.key"])
        if self.project in path.parents and self.random.random() < 0.5:
            return "./" + os.path.relpath(path, self.project)
        return str(path)

    def _paths(self, most, **kw):
        return [self._path(**kw) for _ in range(self.random.randrange(most + 1))]

    def _rules(self):
        r = self.random
        private = self.view == "private"
        lists = {"deny-read": self._paths(3), "allow-read": self._paths(2), "deny-write": self._paths(2),
                 "allow-write": [] if private else [p for p in self._paths(3) if not (self.view == "light" and "*" in p)]}
        if private:             # what is not shown needs no rule: /tmp inside is the sandbox's own
            inside = [os.path.relpath(f, self.project) for f in self.folders if self.project in f.parents]
            lists["allow-read"] = ["./" + p for p in r.sample(inside, min(len(inside), r.randrange(3)))]
        if self.view == "srt":
            return {"network": {"allowedDomains": [], "deniedDomains": []},
                    "filesystem": {"denyRead": lists["deny-read"], "allowRead": lists["allow-read"],
                                   "allowWrite": lists["allow-write"] or ["."], "denyWrite": lists["deny-write"]}}
        rules = {"version": 1, "mode": "light" if self.view == "light" else "standard",
                 "filesystem": {k: v for k, v in lists.items() if v}}
        if self.view == "host":
            rules["view"] = "host"
        if r.random() < 0.3:
            rules["filesystem"]["protect"] = [r.choice(["b", "c/f", "g.key", "a/b"])]
        if private or r.random() < 0.7:
            kinds = ["rw", "rw", "ro", "cow"] if private else ["rw", "rw", "ro"]
            rules["workspace"] = {"dir": str(self.project), "kind": r.choice(kinds)}
        self.binds = []
        for i in range(r.randrange(3)):
            source = r.choice([*self.folders, self.other])
            access = r.choice(["ro", "rw"])
            bind = {"source": str(source), "access": access}
            if private:
                below = [f for f in self.folders if f.parent == self.project]
                dest = f"/mnt/d{i}" if r.random() < 0.6 or not below else f"/workspace/{r.choice(below).name}"
                if dest in [b["dest"] for b in self.binds if "dest" in b]:
                    continue
                bind["dest"] = dest
            elif str(source) in [b["source"] for b in self.binds]:
                continue
            self.binds.append(bind)
        if self.binds:
            rules["binds"] = self.binds
        return rules

    def shows(self, inside, asked):
        """Whether something is there: a link leads to where nothing may be as the sandbox sees it, in its own memory for one."""
        if inside == asked:
            return True
        trees = [(len(name), name, host) for name, host in self._names() if (inside + "/").startswith(name + "/")]
        if not trees:
            return self.view != "private" and os.path.lexists(inside)
        _, name, host = max(trees)
        there = str(host) + inside[len(name):]
        return os.path.lexists(os.path.dirname(there) if inside.endswith((PROBE_NEW, "/absent")) else there)

    # --- what is asked -------------------------------------------------------------------------------------------
    def _names(self):
        """(what the sandbox calls a tree, where it is on the host)."""
        if self.view != "private":
            return [(str(self.project), self.project), (str(self.other), self.other)]
        return [("/workspace", self.project), *((b["dest"], b["source"]) for b in self.binds)]

    def questions(self):
        """[(kind, path inside)]: f a file, d a folder, n a name that is not there."""
        asked = {}
        for inside, host in self._names():
            for path in [*self.folders, *self.files, *self.links, type(self.base)(host)]:
                if path != type(path)(host) and type(path)(host) not in path.parents:
                    continue
                rest = os.path.relpath(path, host)
                name = inside if rest == "." else f"{inside}/{rest}"
                if any(dest != inside and (name + "/").startswith(dest + "/") and (dest + "/").startswith(inside + "/")
                       for dest, _ in self._names()):
                    continue        # another folder lies over it
                asked[name] = "d" if path.is_dir() else "f"
                if path.is_dir():
                    asked[f"{name}/{PROBE_NEW}"] = "n"
                    if self.random.random() < 0.2:
                        asked[f"{name}/absent"] = "n"
        return sorted((kind, path) for path, kind in asked.items())
