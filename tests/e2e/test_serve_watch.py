"""What changes in a workspace, told as events: GET /v1/sandboxes/{id}/watch."""
import json
import os
import select
import signal
import time
from urllib.parse import quote

import pytest

from helpers import places, requirement
from helpers.daemon import UPLOAD_SEEN, Upload, caller
from helpers.runner import HANG_GUARD, wait_for
from helpers.shared import own, shared

pytestmark = [requirement("R61"), shared]

PYTHON = [places.PYTHON, "-I", "-S", "-c"]


class Watch:
    """The events of a watch. @seen is all of them so far: (event, path) and of a rename (event, path, from)."""

    def __init__(self, box, path=".", recursive=True, ready=True):
        self.connection = box.daemon.connection()
        self.connection.request("GET", f"{box.at}/watch?path={quote(path, safe='')}&recursive={str(recursive).lower()}",
                                headers=box.daemon.credential())
        self.response = self.connection.getresponse()
        self.status = self.response.status
        self.seen, self.data, self.comments, self.patience = [], [], 0, float("inf")
        if ready:
            assert self.status == 200, self.response.read()
            assert self.response.getheader("Content-Type") == "text/event-stream"
            self.until("watching")

    def step(self):
        """(event, data), or None at the end."""
        fields = {}
        while (line := self.response.readline()) not in (b"\n", b""):
            name, value = line.decode().rstrip("\n").split(":", 1)
            fields[name] = value.strip()
            self.comments += name == ""
        if "event" not in fields:       # a comment: it comes for ever where nothing happens
            assert time.monotonic() < self.patience, self.seen[-50:]
            return None if line == b"" else self.step()
        data = json.loads(fields["data"])
        entry = (fields["event"], data.get("path", data.get("code")))
        self.seen.append(entry + ((data["from"],) if "from" in data else ()))
        self.data.append(data)
        return fields["event"], data

    def until(self, *wanted):
        """The data of the event that begins with these."""
        self.patience = time.monotonic() + HANG_GUARD
        while True:
            step = self.step()
            assert step, self.seen[-50:]
            if self.seen[-1][:len(wanted)] == wanted:
                return step[1]

    def rest(self):
        while self.step():
            pass
        self.close()
        return self.seen[-1]

    def close(self):
        self.connection.close()


def refused(box, path=".", recursive=True):
    watch = Watch(box, path, recursive, ready=False)
    assert watch.status != 200, "it was granted, and has no end"
    answer = json.loads(watch.response.read())
    watch.close()
    return watch.status, answer["code"], answer["error"]


def guest_fds(box):
    """Descriptors of the sandbox's guest that are of inotify: of all guests that are the test's."""
    found = 0
    for pid in box.daemon.processes("cloche-guest"):
        try:
            found += sum("inotify" in os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            continue
    return found


def test_what_happens_to_files(box):
    watch = Watch(box)
    assert watch.data[0]["path"] == "."
    # one step at a time with directories: one that is renamed while its watch is being made is told as an overflow
    box.exec("echo 1 > a; echo 2 >> a; mv a b; rm b; rmdir x 2>/dev/null; mkdir d")
    watch.until("created", "d")
    box.exec("mv d e")
    watch.until("renamed", "e", "d")
    box.exec("touch e/f; rm -r e")
    watch.until("deleted", "e")
    told = watch.seen
    assert ("created", "a") in told and ("modified", "a") in told and ("renamed", "b", "a") in told and ("deleted", "b") in told, told
    assert ("created", "d") in told and ("renamed", "e", "d") in told and ("created", "e/f") in told and ("deleted", "e/f") in told, told
    order = [told.index(e) for e in (("created", "a"), ("renamed", "b", "a"), ("deleted", "b"), ("renamed", "e", "d"), ("created", "e/f"))]
    assert order == sorted(order), told
    directories = {e[:2]: d["directory"] for e, d in zip(told, watch.data) if "directory" in d}
    assert not directories["created", "a"] and directories["created", "d"] and directories["renamed", "e"] and directories["deleted", "e"]
    assert box.put("of-the-api", b"x").ok
    watch.until("created", "of-the-api")
    watch.close()


@pytest.mark.parametrize("copy", [False, True], ids=["own", "cow"])
def test_an_upload_is_told_once(cloche, daemon, copy):
    """When it is there, under its own name; of one that breaks off there is nothing to tell."""
    (cloche.project / "f").write_text("former")
    box = daemon.create(**({"policy": {"workspace": f"{cloche.project}:cow"}} if copy else {}))
    assert copy or box.put("f", b"former").ok
    watch = Watch(box)
    assert box.put("f", b"x" * 300000).ok and box.put("new", b"y" * 300000).ok and box.put("new", b"z").ok
    upload = Upload(box, "new", 2 * UPLOAD_SEEN).send(b"x" * (UPLOAD_SEEN + 1))
    assert wait_for(lambda: box.daemon.get(f"{box.at}/usage").json["usage"][0]["operations"] == 2)
    upload.break_off()
    assert wait_for(lambda: box.daemon.get(f"{box.at}/usage").json["usage"][0]["operations"] == 1)
    assert box.exec("mkdir end")["exit_code"] == 0
    watch.until("created", "end")
    assert watch.seen == [("watching", "."), ("modified", "f"), ("created", "new"), ("modified", "new"), ("created", "end")], watch.seen
    watch.close()


def test_a_directory_below_and_only_that(box):
    box.exec("mkdir -p src/deep other")
    one, all_of_it = Watch(box, "src", recursive=False), Watch(box, "/workspace//./src/", recursive=True)
    assert one.data[0]["path"] == "src" and all_of_it.data[0]["path"] == "src"
    box.exec("touch other/no src/deep/yes src/yes")
    one.until("created", "src/yes")
    all_of_it.until("created", "src/yes")
    assert not [e for e in one.seen if "deep" in e[1] or "other" in e[1]], one.seen
    assert ("created", "src/deep/yes") in all_of_it.seen and not [e for e in all_of_it.seen if "other" in e[1]], all_of_it.seen
    one.close()
    all_of_it.close()


def test_directories_that_appear_are_watched_from_the_beginning(box):
    """What was made in them before they were, and all that comes later; deep ones, many, moved in from elsewhere."""
    watch = Watch(box)
    box.exec("mkdir -p a/b/c; touch a/b/c/f")
    watch.until("created", "a/b/c/f")
    box.exec("echo x >> a/b/c/f; mkdir -p m; for i in $(seq 200); do mkdir -p m/$i/n; touch m/$i/n/f; done; touch last")
    watch.until("created", "last")
    box.exec("touch a/b/c/g m/200/n/g; touch later")
    watch.until("created", "later")
    told = set(watch.seen)
    assert ("modified", "a/b/c/f") in told and ("created", "a/b/c/g") in told and ("created", "m/200/n/g") in told
    for i in range(1, 201):
        assert ("created", f"m/{i}/n/f") in told or ("overflow", ".") in told, i
    # from where nobody watches to here, and back: what is there then is told no more
    box.exec("mkdir -p /tmp/out/side; touch /tmp/out/side/f; mv /tmp/out in 2>/dev/null || cp -r /tmp/out in")
    watch.until("created", "in/side/f")
    watch.close()


def test_renamed_directories_have_their_new_names(box):
    box.exec("mkdir -p a/b/c other")        # both watched when the names change: into one that is not yet it is no rename
    watch = Watch(box)
    box.exec("mv a z; touch z/b/c/f; mv z/b other/b; touch other/b/c/g; mkdir z/b; touch z/b/new")
    watch.until("created", "z/b/new")
    told = watch.seen
    assert ("renamed", "z", "a") in told and ("created", "z/b/c/f") in told, told
    assert ("renamed", "other/b", "z/b") in told and ("created", "other/b/c/g") in told, told
    watch.close()


EXCHANGE = """
import ctypes, os
os.chdir('/workspace')
assert ctypes.CDLL(None).renameat2(-100, b'a', -100, b'b', 2) == 0
"""


def test_directories_that_change_places_are_both_watched(box):
    box.exec("mkdir -p a/of_a b/of_b")
    watch = Watch(box)
    said = box.exec(["python3", "-c", EXCHANGE])
    assert said["exit_code"] == 0, said
    watch.until("overflow")         # from here on it is as if it were watched anew
    box.exec("touch a/of_b/one b/of_a/two a/three b/four")
    watch.until("created", "b/four")
    assert {("created", "a/of_b/one"), ("created", "b/of_a/two"), ("created", "a/three")} <= set(watch.seen), watch.seen
    watch.close()


def test_two_watchers_and_one_that_goes(box):
    one, two = Watch(box), Watch(box)
    assert box.put("f", b"1").ok
    one.until("created", "f")
    two.until("created", "f")
    one.close()
    assert box.put("g", b"1").ok
    two.until("created", "g")
    two.close()
    # nothing of them is left, as their places are free again
    for _ in range(40):
        Watch(box).close()
    assert wait_for(lambda: box.daemon.get(f"{box.at}/usage").json["usage"][0]["operations"] == 0, 60)
    if places.IS_ROOT:
        assert wait_for(lambda: guest_fds(box) == 0, 60)


def test_so_many_and_no_more(box):
    watches = [Watch(box, recursive=False) for _ in range(16)]
    status, code, words = refused(box)
    assert (status, code) == (429, "watch.too-many") and "16" in words, (status, code, words)
    assert box.exec("echo still")["stdout"] == "still\n" and box.daemon.get(f"{box.at}/dirs/").ok
    watches.pop().close()
    assert wait_for(lambda: refused_or_closed(box), 60)
    for watch in watches:
        watch.close()


def refused_or_closed(box):
    watch = Watch(box, ready=False)
    watch.close()
    return watch.status == 200


def test_a_tree_that_is_too_large(box):
    box.exec("mkdir many; cd many; seq 4096 | xargs mkdir", timeout_ms=60000)
    status, code, words = refused(box)
    assert (status, code) == (429, "watch.too-many-directories") and "4096" in words, (status, code, words)
    box.exec("rmdir many/1 many/2")     # the workspace, and many itself, count too
    watch = Watch(box)
    box.exec("mkdir last; sleep 0.1; touch last/f")
    # one more than there may be: it ends, and says so
    assert watch.rest() == ("error", "watch.too-many-directories"), watch.seen[-5:]
    flat = Watch(box, recursive=False)
    flat.close()


def test_what_cannot_be_watched(box):
    box.exec("mkdir -p d/e; touch file; ln -s /etc out; ln -s d in; ln -s ../../.. up")
    for path in ("../etc", "/etc", "d/../..", "out", "up"):
        assert refused(box, path)[1:] == ("files.path-escapes", "Path escapes workspace."), path
    assert refused(box, "nowhere")[:2] == (404, "files.not-found")
    assert refused(box, "file")[1] == "files.not-a-directory"
    bad = box.daemon.get(f"{box.at}/watch?recursive=maybe")
    assert bad.status == 400 and bad.json["code"] == "files.request", bad
    # a link that stays below leads there; those in the tree lead nowhere
    watch = Watch(box, "in")
    box.exec("touch d/e/f; touch /tmp/x; touch done; touch d/done")
    watch.until("created", "in/done")
    assert ("created", "in/e/f") in watch.seen and len([e for e in watch.seen if e[0] == "created"]) == 2, watch.seen
    watch.close()
    whole = Watch(box)
    box.exec("ln -s / d/e/root; ln -s /etc more; mv d/e/f d/e/g; touch done2")
    whole.until("created", "done2")
    assert ("created", "d/e/root") in whole.seen and ("renamed", "d/e/g", "d/e/f") in whole.seen
    assert not [d for d in whole.data if d.get("path") in ("more", "d/e/root") and d["directory"]], whole.data
    whole.close()


def test_names_of_any_bytes(box):
    watch = Watch(box)
    script = ("import os\nfor n in (b'new\\nline', b'data: x\\n\\nevent: deleted\\ndata: {}', b'\\xff\\xfe', b'q\"\\\\', b'\\x01\\x1b[2J', b'...', b'-rf', b'n' * 255):\n"
              "    os.close(os.open(b'/workspace/' + n, os.O_CREAT))\nos.mkdir(b'/workspace/d\\n\\xe2\\x82')\n"
              "os.close(os.open(b'/workspace/d\\n\\xe2\\x82/f', os.O_CREAT))\nopen('/workspace/end', 'w')")
    assert box.exec(PYTHON + [script])["exit_code"] == 0
    watch.until("created", "end")
    names = {e[1] for e in watch.seen if e[0] == "created"}
    assert {"new\nline", "data: x\n\nevent: deleted\ndata: {}", "\ufffd\ufffd", 'q"\\', "\x01\x1b[2J", "...", "-rf", "n" * 255,
            "d\n\ufffd\ufffd", "d\n\ufffd\ufffd/f", "end"} <= names, names
    assert {e[0] for e in watch.seen} <= {"watching", "created", "modified"}, watch.seen
    listed = {e["name"] for e in box.daemon.get(f"{box.at}/dirs/").json["entries"]}
    assert {n for n in names if "/" not in n} == listed
    watch.close()


def test_a_directory_that_may_not_be_read_is_told(box):
    box.exec("mkdir -p open shut/below; chmod 0 shut")
    if box.exec("ls shut")["exit_code"] == 0:
        pytest.skip("the sandbox's user reads everything")
    watch = Watch(box)
    assert ("unwatched", "shut") in watch.seen
    box.exec("mkdir later; chmod 0 later; touch open/f")
    watch.until("created", "open/f")
    watch.close()
    box.exec("chmod 755 shut later")


@own
def test_who_does_not_read_is_told_to_look_again(box):
    """More than waits anywhere: nothing else is held up meanwhile, and what is missing is told."""
    watch = Watch(box)
    script = ("import os\nfor r in range(6):\n  for i in range(6000):\n    n = '/workspace/' + 'n' * 150 + str(i)\n"
              "    os.close(os.open(n, os.O_CREAT)); os.unlink(n)\nopen('/workspace/end', 'w')")
    assert box.exec(PYTHON + [script], timeout_ms=120000)["exit_code"] == 0
    assert box.exec("echo on")["stdout"] == "on\n" and box.put("g", b"x").ok
    other = Watch(box)
    assert box.put("h", b"x").ok
    other.until("created", "h")
    other.close()
    watch.until("overflow", ".")
    assert len(watch.seen) < 72000
    # and from there on it is complete again
    box.exec("mkdir -p after/it; touch after/it/f")
    watch.until("created", "after/it/f")
    watch.close()


def test_it_ends_with_what_it_watches(box):
    box.exec("mkdir -p a/b c")
    removed, moved, above = Watch(box, "a"), Watch(box, "c"), Watch(box, "a/b")
    box.exec("mv c d")
    assert moved.rest() == ("error", "watch.gone")
    box.exec("mv a e; touch e/b/f")
    assert above.rest() == ("error", "watch.gone") and removed.rest() == ("error", "watch.gone")
    box.exec("mkdir -p a")
    removed = Watch(box, "a")
    box.exec("rmdir a")
    assert removed.rest() == ("error", "watch.gone")


def test_it_ends_with_the_sandbox(box):
    watch = Watch(box)
    assert box.delete().ok
    assert watch.rest() == ("error", "sandbox.gone")


def test_a_pause_changes_nothing(box):
    watch = Watch(box)
    at = box.at
    assert box.put("before", b"x").ok
    assert box.daemon.post(f"{at}/pause").ok
    status, code, _ = refused(box)
    assert (status, code) == (409, "sandbox.paused") or code == "sandbox.paused", (status, code)
    assert box.daemon.post(f"{at}/resume").ok
    assert box.put("after", b"x").ok
    watch.until("created", "after")
    assert ("created", "before") in watch.seen
    watch.close()


@pytest.mark.skipif(places.IS_ROOT, reason="root's own folders are not for mode light")
def test_where_nothing_is_between(cloche, daemon):
    """Mode light, and a workspace of the host's: the host's own changes are seen as well."""
    box = daemon.create(policy={"mode": "light", "workspace": str(cloche.project)})
    watch = Watch(box)
    box.exec("mkdir -p made/here; touch made/here/f")
    watch.until("created", "made/here/f")
    (cloche.project / "made" / "by-the-host").write_text("x")
    watch.until("created", "made/by-the-host")
    (cloche.project / "out").symlink_to("/etc")
    assert refused(box, "out")[1] == "files.path-escapes"
    watch.close()
    below = Watch(box, str(cloche.project / "made"), recursive=False)
    assert below.data[0]["path"] == "made"
    below.close()


@own
@pytest.mark.skipif(not places.IS_ROOT, reason="it would use up what the user has outside too")
def test_the_machines_limit_is_told(box):
    """The sandbox itself uses up what its user may have."""
    script = ("import ctypes, sys\nc = ctypes.CDLL(None)\nwhile c.inotify_init() >= 0: pass\nprint('full', flush=True)\nsys.stdin.read()")
    begun = box.daemon.post(f"{box.at}/exec", {"command": PYTHON + [script], "background": True, "stdin": True})
    assert begun.status == 202, begun
    at = f"{box.at}/exec/{begun.json['exec_id']}"
    assert wait_for(lambda: box.daemon.get(at).json["stdout_bytes"] == 5, 60)
    answer = refused(box)
    assert answer[:2] == (429, "watch.system-limit"), answer
    assert box.daemon("DELETE", at).ok
    assert wait_for(lambda: refused_or_closed(box), 60)


def test_a_silent_one_says_that_it_is_there(box):
    watch = Watch(box, recursive=False)
    begun = time.monotonic()
    assert watch.response.readline() == b":\n" and watch.response.readline() == b"\n"
    assert time.monotonic() - begun > 5
    watch.close()


class Shown:
    """`cloche watch` of a box, line by line."""

    def __init__(self, box, *words):
        # whoever runs the tests may ignore SIGINT, as a shell does for what it starts in the background
        self.process = box.daemon.cloche.popen("watch", "--socket", str(box.daemon.path), *words,
                                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.lines = []

    def until(self, wanted):
        while True:
            line = self.process.stdout.readline().decode()
            assert line.endswith("\n"), (self.lines, line, self.process.communicate())
            self.lines.append(line[:-1])
            if self.lines[-1] == wanted:
                return self.lines

    def end(self, number=None):
        """(exit code, the rest of stdout, stderr)"""
        if number is not None:
            self.process.send_signal(number)
        rest, err = self.process.communicate(timeout=HANG_GUARD)
        return self.process.returncode, rest.decode(), err.decode()


@requirement("R89")
def test_on_the_command_line(box):
    box.exec("mkdir -p d/e a/of_a b/of_b")
    every, flat, programs = Shown(box, box.id, "--recursive"), Shown(box, box.id, "d"), Shown(box, "--json", box.id, "--", "d/e")
    every.until("watching   .")
    flat.until("watching   d")
    programs.until('{"path":"d/e","event":"watching"}')
    # what is told below a path is told while the path leads there: the rename waits for it
    box.exec("touch d/e/f")
    programs.until('{"path":"d/e/f","directory":false,"event":"created"}')
    box.exec("mv d/e d/g; mkdir \"$(printf 'd/x\\033[2J')\"; ln -s / d/link; touch d/end; rm d/end")
    said = every.until("deleted    d/end")
    assert "created    d/e/f" in said and "renamed    d/e/ -> d/g/" in said and 'created    "d/x\\033[2J/"' in said, said
    assert "created    d/link" in said
    said = flat.until("deleted    d/end")
    assert "renamed    d/e/ -> d/g/" in said and "created    d/e/f" not in said, said
    code, rest, err = programs.end()
    *told, last = [json.loads(line) for line in rest.splitlines()]
    assert not [event for event in told if "f" != event["path"][-1]], told
    assert code == 125 and last["error"]["code"] == "watch.gone" and "[watch.gone]" in err, (code, last, err)
    # what was missed
    assert box.exec(["python3", "-c", EXCHANGE])["exit_code"] == 0
    every.until("overflow   .  (something was missed: look at everything again)")
    # each ends as such a program does, with nothing that is half
    assert every.end(signal.SIGINT) == (-signal.SIGINT, "", "") and flat.end(signal.SIGTERM) == (-signal.SIGTERM, "", "")
    assert wait_for(lambda: box.daemon.get(f"{box.at}/usage").json["usage"][0]["operations"] == 0, 60)


@own
@requirement("R89")
def test_the_command_ends_with_the_sandbox_or_the_daemon(cloche, daemon):
    one, two = daemon.create(name="one"), daemon.create(name="two")
    shown, programs, other = Shown(one, "one"), Shown(one, "one", "--json"), Shown(two, "two")
    for watch in (shown, other):
        watch.until("watching   .")
    programs.until('{"path":".","event":"watching"}')
    assert one.delete().ok
    code, rest, err = shown.end()
    assert (code, rest) == (125, "") and err.startswith("cloche: the sandbox ended\n") and "[sandbox.gone]" in err, err
    code, rest, err = programs.end()
    assert code == 125 and json.loads(rest)["error"]["code"] == "sandbox.gone", (code, rest, err)
    events = daemon.cloche.popen("events", "--follow", "--limit", "0", "--socket", str(daemon.path))
    assert wait_for(lambda: two.exec("true")["exit_code"] == 0 and select.select([events.stdout], [], [], 0)[0])
    daemon.stop()
    _, err = events.communicate(timeout=HANG_GUARD)
    assert events.returncode == 125 and err.startswith(b"cloche: the daemon ended the stream\n") and b"[api.cut]" in err, err
    code, rest, err = other.end()
    assert (code, rest) == (125, "") and ("[api.cut]" in err or "[sandbox.gone]" in err), (code, rest, err)


@requirement("R89")
def test_what_the_command_refuses(daemon):
    agent = caller(daemon, "agent")
    agent.create(name="mine")
    daemon.create(name="owners").exec("touch file")
    watch = lambda *words, **kw: daemon.cloche("watch", *words, "--socket", str(daemon.path), **kw)
    for words, code in (((), "cli.sandbox"), (("",), "cli.sandbox"), (("nobody",), "sandbox.not-found"), (("owners", "a", "b"), "cli.operand"),
                        (("owners", "nowhere"), "files.not-found"), (("owners", "file"), "files.not-a-directory"),
                        (("owners", "../.."), "files.path-escapes"), (("owners", "/" * 9000), "cli.watch.path"),
                        (("owners", "--recursive=yes"), "cli.flag-value"), (("owners", "--recursiv"), "cli.unknown-flag")):
        said = watch(*words)
        assert said.code == 125 and f"[{code}]" in said.err and not said.out, (words, said)
    assert "did you mean --recursive?" in watch("owners", "--recursiv").err
    # where --json is behind what was wrong
    assert watch("owners", "--recursiv", "--json").json["error"]["code"] == "cli.unknown-flag"
    bearer = {"CLOCHE_TOKEN": agent.headers["Authorization"].split()[1]}
    assert "[sandbox.not-found]" in watch("owners", env=bearer).err
