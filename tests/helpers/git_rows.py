"""Many attacks of test_git_state.py's kind at once: each has a project and a home of its own, and one sandbox does them all.

So a way of running that no row has been tried in costs one sandbox. What differs from helpers/git_bench.py: the sandbox writes to all the projects,
and a row cannot be about the owner's own configuration, which all of them share.
"""
import json
import shlex

ENV = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "o", "GIT_AUTHOR_EMAIL": "o@o", "GIT_COMMITTER_NAME": "o", "GIT_COMMITTER_EMAIL": "o@o",
       "GIT_EDITOR": "true", "GIT_TERMINAL_PROMPT": "0"}
INSIDE = "export HOME=/tmp GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@a GIT_EDITOR=true\n"


def alone(row):
    """Whether a row needs the owner's home for itself."""
    return "--global" in row[0] or "$HOME/." in row[0]


def run_in(cloche, command, way, trees, script):
    """A shell script in a sandbox of @way that writes to @trees: {name: folder}, which it finds at @script(name). → Result."""
    host = way in ("bare", "host view", "srt")
    text = script(lambda name: trees[name] if host else f"/r/{name}")
    if way == "bare":
        return command(["sh"], stdin=text, check=False)
    if way == "srt":
        settings = cloche.home / "srt.json"
        settings.write_text(json.dumps({"network": {"allowedDomains": [], "deniedDomains": []},
                                        "filesystem": {"denyRead": [], "allowWrite": [str(t) for t in trees.values()], "denyWrite": []}}))
        return cloche("srt", "--settings", settings, "--", "sh", stdin=text)
    flags = [word for name, tree in trees.items()
             for word in (("--allow-write", tree) if host else ("--bind", f"{tree}:/r/{name}:rw"))]
    if way == "host view":
        return cloche("run", "--view", "host", *flags, "--", "sh", stdin=text)
    empty = cloche.project / "empty"
    empty.mkdir(exist_ok=True)
    words = {"standard": ["run"], "shell": ["shell"], "code": ["code", "--timeout", "5m", "--language", "shell"]}[way]
    end = {"standard": ["--", "sh"], "shell": [], "code": ["-"]}[way]
    return cloche(*words, "--workspace", f"{empty}:ro", *flags, *end, stdin=text)


class Rows:
    """{name: (before, inside, after, where, sub)}"""

    def __init__(self, cloche, command, rows):
        self.cloche, self.command, self.rows = cloche, command, rows
        self.number = {name: f"{i:03d}" for i, name in enumerate(rows)}
        self.host("before", lambda name: f"mkdir -p {self.work(name)} {self.home(name)}; printf '#!/bin/sh\\ntouch {self.home(name)}/ran\\n' > "
                  f"{self.home(name)}/evil; chmod 755 {self.home(name)}/evil; cd {self.work(name)}; set -e; {rows[name][0]}", strict=True)

    def home(self, name):
        return self.cloche.home / self.number[name]

    def work(self, name):
        return self.cloche.project / self.number[name] / "work"

    def host(self, what, script, strict=False):
        """A piece of shell for each row by the owner, in one process."""
        text = "".join(f"( HOME={self.home(name)}; export HOME; {script(name)}\n) < /dev/null > out 2>&1\ntest $? = 0 || {{ echo {shlex.quote(name)}; cat out; }}\n"
                       for name in self.rows)
        done = self.command(["sh"], stdin=text, env=ENV, cwd=self.cloche.home)
        assert not strict or not done.out, f"{what}: {done.out}"

    def inside_script(self, place):
        """What the sandbox does: each row where @place says that its tree is."""
        rows = "".join(f"( cd {place(self.number[name])} || exit; EVIL={self.home(name)}/evil P=$PWD/.p; export EVIL P\nprintf '#!/bin/sh\\ntouch {self.home(name)}/ran\\n' > .p; "
                       f"chmod 755 .p\n{row[1]}\n) < /dev/null > /dev/null 2>&1\n" for name, row in self.rows.items())
        return INSIDE + rows + "echo all of them\n"

    def inside(self, way):
        trees = {self.number[name]: self.work(name) / row[4] for name, row in self.rows.items()}
        if way == "cow":
            sub = {self.number[name]: row[4] for name, row in self.rows.items()}
            done = self.cloche("run", "--workspace", f"{self.cloche.project}:cow", "--", "sh",
                               stdin=self.inside_script(lambda number: f"/workspace/{number}/work/{sub[number]}"))
            self.cloche("apply", cwd=self.cloche.project)
        else:
            done = run_in(self.cloche, self.command, way, trees, self.inside_script)
        assert done.out.endswith("all of them\n"), done
        return done

    def after(self):
        """What the owner runs next. → the rows by which something ran."""
        self.host("after", lambda name: f"cd {self.work(name)}/{self.rows[name][3]} && {{ {self.rows[name][2]}\n}}")
        return [name for name in self.rows if (self.home(name) / "ran").exists()]
