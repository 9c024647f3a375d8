"""A sandbox that begins with another one's files stands behind the same walls as one that begins with none, and has these files alone:
whether they are copied, or, where there are many, lie below its own folders."""
import json
import os
import stat

import pytest

from helpers import probed, requirement
from helpers.daemon import Sandbox
from helpers.runner import wait_for
from helpers.shared import own, shared

pytestmark = [requirement("R83", "R30"), shared]


def fork(box, **members):
    answer = box.daemon.post(f"{box.at}/fork", members or None)
    assert answer.status == 201, answer
    return [Sandbox(box.daemon, one) for one in answer.json["sandboxes"]]


def output(box, word, more):
    said = box.exec(["/tmp/probe", word, "--private", *more], timeout_ms=300_000)
    assert said["stdout"], said
    return said["stdout"]


def sh(box, text):
    done = box.exec(text)
    assert done["exit_code"] == 0, done
    return done["stdout"]


LARGE = "head -c 2M /dev/urandom > ~/large; "     # so that it lies below


def template_of(box, name="t"):
    made = box.daemon.post(f"{box.at}/snapshot", {"name": name})
    assert made.status == 201, made
    return made.json


def folder(cloche, template):
    return cloche.state / "cloche" / "serve" / "volumes" / template["id"]


def lies_below(box):
    return "overlay" in sh(box, "grep ' /workspace ' /proc/self/mountinfo || true")


def without_layers(found):
    """What the probe found, but for the overlays that its folders are."""
    if "mounts" in found:
        layers = [m for m in found["mounts"] if m["point"] in ("/home/agent", "/tmp", "/workspace")]
        assert len(layers) == 3 and all(m["type"] == "overlay" and m["nosuid"] and m["nodev"] for m in layers), layers
        found["mounts"] = [m for m in found["mounts"] if m not in layers]
        found["root"]["ino"] = 1        # it is a folder of the tmpfs, beside those that overlays work in
    return found


def test_what_prove_looks_at_is_the_same(daemon, cloche):
    """The program that `cloche prove` runs inside finds what it finds in a sandbox that was made with nothing in it."""
    source, cold = daemon.create(), daemon.create()
    for box in (source, cold):
        assert box.put("probe", probed.program(cloche)).ok
        assert box.exec("mv probe /tmp/probe; chmod 755 /tmp/probe; echo x > ~/f; mkdir d; echo y > d/f")["exit_code"] == 0
    [forked] = fork(source)
    sh(source, LARGE)
    template_of(source)
    started = daemon.create(template="t")
    below = lies_below(started)
    assert not lies_below(forked)
    for word, *more in probed.PROBES:
        expected = probed.finds(output(cold, word, more))
        assert probed.finds(output(forked, word, more)) == expected, word
        found = probed.finds(output(started, word, more))
        assert (without_layers(found) if below else found) == expected, word


PLANTS = r"""
import ctypes, json, os, sys
done = []
def tries(name, f, *a):
    try: f(*a)
    except (OSError, AttributeError): return
    done.append(name)
os.makedirs("d/sub", exist_ok=True)
for name in ("d/empty", "d/sub/f", "d/full"):
    with open(name, "w") as f: f.write("" if name.endswith("empty") else "x")
tries("mknod", os.mknod, "d/gone", 0o20000, 0)
tries("link", lambda: os.rename("d/gone", "d/full"))
for kind in ("user", "trusted"):
    for where, mark, value in (("d", "opaque", b"x"), ("d/sub", "opaque", b"y"), ("d/empty", "whiteout", b"y"), ("d/full", "metacopy", b""),
                               ("d/sub", "redirect", b"/../../../../etc"), ("d/full", "redirect", b"/../home/large"), ("d/sub", "origin", b"y")):
        tries(mark, os.setxattr, where, f"{kind}.overlay.{mark}", value)
        tries(mark, os.setxattr, where, f"{kind}.overlay.overlay.{mark}", value)
print(json.dumps(done))
"""
SEES = "cd d && find . -type f | sort | tr '\\n' ' ' && cat full sub/f"


def plants(box):
    assert box.put("plants.py", PLANTS.encode()).ok
    return json.loads(sh(box, "python3 plants.py"))


def entries(top):
    for at, names, files in os.walk(top):
        for name in (*names, *files):
            yield os.path.join(at, name)


def marks_of(top):
    """Whiteouts and marks of overlays below a folder."""
    return [p for p in entries(top) if stat.S_ISCHR(os.lstat(p).st_mode) or
            [x for x in os.listxattr(p, follow_symlinks=False) if "overlay" in x]]


def test_marks_of_overlays_that_were_planted(daemon, cloche):
    """Neither do they come into a template, nor hide or reveal anything of it; put there by hand, they do."""
    box = daemon.create()
    plants(box)
    sh(box, LARGE + "test -c d/full && rm d/full; echo -n x > d/full; test -e d/gone && rm d/gone || true")
    template = template_of(box)
    at = folder(cloche, template)
    assert marks_of(at) == []
    one = daemon.create(template="t")
    whole = "./empty ./full ./sub/f xx"
    assert sh(one, SEES) == whole
    # in the one that has them below, marks would be read
    plants(one)
    sh(one, "test -c d/full && rm d/full; echo -n x > d/full; test -e d/gone && rm d/gone || true")
    again = template_of(one, "again")
    assert marks_of(folder(cloche, again)) == []
    for name in ("t", "again"):
        assert sh(daemon.create(template=name), SEES) == whole
    if not lies_below(one):
        pytest.skip("overlays in a user namespace are not to be had here: it is copied")
    # the attack is real: what is in the folder below is believed
    os.unlink(at / "workspace" / "d" / "full")
    os.mknod(at / "workspace" / "d" / "full", 0o20000, 0)
    assert daemon.create(template="t").exec("cat d/full")["exit_code"] != 0


def test_siblings_and_parents_see_no_later_write(daemon):
    box = daemon.create()
    sh(box, LARGE + "mkdir d e; echo same > f; echo same > d/f; echo same > e/f; echo same > ~/h; ln f g")
    one, other = fork(box, count=2)
    sh(one, "echo mine > f; rm -r d; mkdir d; echo mine > d/new; echo more >> e/f; rm ~/h; chmod 700 e; echo x > /tmp/x; mv g k")
    sh(box, "echo the source > f; rm -r e")
    look = "cat f d/f e/f ~/h g; ls d e /tmp; stat -c %a e"
    assert sh(other, look) == "same\nsame\nsame\nsame\nsame\n/tmp:\n\nd:\nf\n\ne:\nf\n755\n"
    [two] = fork(one)       # of what is below and what is above
    for each in (one, two):
        assert sh(each, "cat f d/* e/f k; ls d; ls ~/h g 2>&1 | wc -l; stat -c %a e") == "mine\nmine\nsame\nmore\nsame\nnew\n2\n700\n"
    assert one.delete().ok and box.delete().ok and sh(other, "cat f; sha256sum ~/large") == sh(two, "echo same; sha256sum ~/large")


@own
def test_what_a_template_has_in_the_place_of_a_secret(daemon, cloche):
    """A link, a file or a folder where a placeholder is to be: neither is it written elsewhere, nor read from there."""
    value = "ghp_" + "TheRealValue0123456789" + "abcdefGHIJKL"
    assert cloche("secret", "set", "token", "--binding", "github", stdin=value).ok
    text = cloche.home / "t.in"
    text.write_text("is ${token}", encoding="utf-8")
    policy = {"secrets": ["token"], "network": {"mode": "allowlist", "allow": ["api.github.com"]},
              "secret-files": [{"path": "/home/agent/.config/t", "template": str(text)}]}
    for i, plant in enumerate(("ln -s /workspace ~/.config", "echo mine > ~/.config", "mkdir -p ~/.config/t", "mkdir ~/.config; echo mine > ~/.config/t",
                               "mkdir ~/.config; ln -s /workspace/t ~/.config/t")):
        box = daemon.create()
        sh(box, LARGE + plant)
        template_of(box, f"t{i}")
        one = daemon.create(template=f"t{i}", policy=policy)
        said = sh(one, "cat ~/.config/t; ls -A /workspace; stat -c %a ~/.config/t; test -s ~/large")
        assert said.startswith("is ghp_") and said.endswith("400\n") and said.count("\n") == 1, (plant, said)
        assert one.delete().ok and box.delete().ok


def test_it_goes_with_the_last_that_has_it_below(daemon, cloche):
    box = daemon.create()
    sh(box, LARGE + "echo x > f")
    template = template_of(box)
    one, other = daemon.create(template="t"), daemon.create(template="t")
    assert daemon("DELETE", "/v1/templates/t").status == 200 and daemon.get("/v1/templates").json["templates"] == []
    assert daemon.post("/v1/sandboxes", {"template": "t"}).json["code"] == "template.not-found"
    assert one.delete().ok
    assert sh(other, "cat f; wc -c < ~/large") == f"x\n{2 << 20}\n" and folder(cloche, template).exists()
    assert other.delete().ok
    assert wait_for(lambda: not folder(cloche, template).exists(), 60)


@own
def test_kill_9_leaves_none_that_nobody_has(daemon, cloche):
    box = daemon.create()
    sh(box, LARGE + "echo x > f")
    template, [one] = template_of(box), fork(box)
    assert sh(one, "cat f") == "x\n" and daemon("DELETE", "/v1/templates/t").ok
    daemon.kill()
    daemon.start()
    assert wait_for(lambda: not folder(cloche, template).exists(), 60)
    assert daemon("DELETE", f"/v1/sandboxes/{one.id}").ok       # what is recovered begins with it again
    assert wait_for(lambda: os.listdir(folder(cloche, template).parent) == [], 60)


@requirement("R65")
def test_the_size_of_what_lies_below(daemon):
    """It is compared with the limit, and what is written counts against that."""
    box = daemon.create(policy={"limits": {"disk": "32m"}})
    sh(box, "head -c 20M /dev/zero > large")
    assert daemon.post(f"{box.at}/snapshot", {"name": "t"}).status == 201
    one = daemon.create(template="t")
    if lies_below(one):
        assert one.exec("head -c 40M /dev/zero > more")["exit_code"] != 0
        assert one.exec("rm more; echo x >> large; head -c 20M /dev/zero > more")["exit_code"] != 0, "a file that is changed is written"
    small = daemon.post("/v1/sandboxes", {"template": "t", "policy": {"limits": {"disk": "8m"}}})
    assert small.status == 507 and small.json["code"] == "template.full", small
