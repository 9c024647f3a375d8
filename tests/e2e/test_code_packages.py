"""cloche code --package: installed apart, with the registry and nothing else; the code itself has no network."""
import contextlib
import fcntl
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from helpers import requirement
from helpers.registries import CERTIFICATES, FILES, INDEX, PATIENCE, addresses, publish_npm, publish_wheel
from helpers.runner import wait_for

pytestmark = requirement("R66")
REACH = "import socket\ntry: socket.create_connection(('ok.example.org', 8080), 5); print('reached')\nexcept OSError: print('closed')\n"
# What is done while it is installed; what it could do is in its output.
SCRIPT = """const fs = require('fs');
for (const place of ['/etc/pwned', '/usr/lib/pwned', '/opt/pwned', '/pwned', process.env.OUTSIDE])
    try { fs.writeFileSync(place, 'x'); console.error('could ' + 'write ' + place); } catch (e) { }
require('http').get('http://evil.example.org/', r => { console.error('sta' + 'tus ' + r.statusCode); process.exit(1); })
    .on('error', () => process.exit(1));"""


def left():
    return set(Path("/tmp").glob("cloche-packages-*"))


def nothing_more(before):
    """Other tests' folders come and go."""
    return wait_for(lambda: left() <= before, 120)


@contextlib.contextmanager
def open_locked(folder):
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)
        yield
    finally:
        os.close(fd)


@pytest.fixture
def index(online, has):
    has("npm", "node", "pip3")
    for name in ("six", "mine"):
        publish_wheel(online.net, name)
    publish_npm(online.net, "is-number")
    (online.bare.home / ".npmrc").write_text(f"registry=http://{INDEX}/npm/\n", encoding="utf-8")
    online.cloche.env |= {"PIP_INDEX_URL": f"http://{INDEX}/simple/", "PIP_TRUSTED_HOST": "ok.example.org second.example.org", "PIP_NO_CACHE_DIR": "1"}
    return online


@pytest.mark.root
def test_python(index):
    before = left()
    code = f"import mine; print(mine.answer)\n{REACH}open(mine.__file__, 'a')"
    result = index.cloche("code", "--language", "python", "--timeout", "60s", "--package", "mine==1.0", "-", stdin=code, timeout=PATIENCE)
    assert result.out == "42\nclosed\n" and result.code == 1 and "Read-only file system" in result.err, result
    assert {r["host"] for r in index.net.requests} == {INDEX, FILES} and nothing_more(before)
    absent = index.cloche("code", "--language", "python", "--package", "mine==2.0", "-", stdin="print('ran')", timeout=PATIENCE)
    assert absent.code == 125 and "[cli.package.not-found]" in absent.err and not absent.out, absent
    assert nothing_more(before)


@pytest.mark.root
def test_an_installation_that_reaches_out(index):
    before = left()
    publish_npm(index.net, "mine", scripts={"postinstall": f"node -e {json.dumps(SCRIPT.replace(chr(10), ' '))}"})
    failed = index.cloche("code", "--language", "javascript", "--package", "mine@1.0.0", "-", stdin="console.log('ran')", timeout=PATIENCE)
    assert failed.code == 125 and "[cli.package.failed]" in failed.err and not failed.out, failed
    assert "could write" not in failed.err and "status 200" not in failed.err, failed
    assert "evil.example.org" not in {r["host"] for r in index.net.requests}
    assert "evil.example.org" in index.cloche("audit", "query", "--json").out and nothing_more(before)
    publish_npm(index.net, "mine")
    worked = index.cloche("code", "--language", "javascript", "--timeout", "60s", "--package", "mine", "-",
                          stdin="console.log(require('mine')); import('mine').then(m => console.log(m.default))", timeout=PATIENCE)
    assert worked.out == "42\n42\n" and nothing_more(before), worked


SPEAKS = """process.stderr.write('spoke ' + String.fromCharCode(27) + ']0;owned' + String.fromCharCode(7) + String.fromCharCode(0x202e, 0x9b) + '\\n');
process.exit(1);"""


@pytest.mark.root
def test_an_installation_that_speaks_to_the_terminal(index):
    publish_npm(index.net, "mine", scripts={"postinstall": f"node -e {json.dumps(SPEAKS.replace(chr(10), ' '))}"})
    failed = index.cloche("code", "--language", "javascript", "--package", "mine@1.0.0", "-", stdin="console.log('ran')", timeout=PATIENCE)
    assert failed.code == 125 and "[cli.package.failed]" in failed.err and "spoke" in failed.err, failed
    assert not set(failed.err) & set("\x1b\x07\x9b\u202e") and "owned" in failed.err, failed


LINK = """const fs = require('fs');
fs.rmSync('/workspace/node_modules', {recursive: true, force: true});
fs.symlinkSync('/proc/self/cwd', '/workspace/node_modules');"""


@pytest.mark.root
def test_an_installation_that_leaves_a_link(index):
    """What is shown to the code is what was installed, and no folder of the host's that a link leads to."""
    before = left()
    publish_npm(index.net, "mine", scripts={"postinstall": f"node -e {json.dumps(LINK.replace(chr(10), ' '))}"})
    (Path(index.cloche.cwd) / "private").write_text("of the host")
    told = index.cloche("code", "--language", "javascript", "--timeout", "60s", "--package", "mine@1.0.0", "-",
                        stdin="console.log(require('fs').readdirSync('node_modules').join())", timeout=PATIENCE)
    assert told.code == 125 and "[cli.package.failed]" in told.err and not told.out and nothing_more(before), told


@pytest.mark.root
def test_an_installation_is_behind_the_same_wall(index):
    result = index.cloche("code", "--language", "python", "--timeout", "60s", "--mode", "max", "--package", "mine==1.0", "-",
                          stdin="import mine; print(mine.answer)", timeout=PATIENCE)
    assert result.out == "42\n", result
    modes = {entry.get("metadata", {}).get("mode") for entry in map(json.loads, index.cloche("audit", "query", "--json").out.splitlines())}
    assert modes - {None} == {"max"}, modes


@pytest.mark.root
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_installation_that_is_ended_leaves_nothing(index, number):
    before = left()
    publish_npm(index.net, "mine", scripts={"postinstall": "sleep 600"})
    process = index.cloche.popen("code", "--language", "javascript", "--package", "mine@1.0.0", "-")
    assert wait_for(lambda: any(p.name.startswith("mine") for folder in left() - before for p in folder.glob("ws/node_modules/*")), PATIENCE)
    process.send_signal(number)
    assert process.wait(PATIENCE) == -number and nothing_more(before)


@pytest.mark.root
def test_code_that_is_killed_leaves_no_packages(index):
    before = left()
    process = index.cloche.popen("code", "--language", "python", "--package", "mine==1.0", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdin.write(b"import mine, time\nprint(mine.answer, flush=True)\ntime.sleep(600)\n")
    process.stdin.close()
    assert process.stdout.readline() == b"42\n" and left() - before
    process.kill()
    process.wait(PATIENCE)
    assert nothing_more(before)


# --- taken again ------------------------------------------------------------------------------------------------------

def sets(online):
    return sorted((online.bare.state / "cloche" / "packages").glob("*"))


def python(online, *packages, code="import mine; print(mine.answer)", **more):
    words = [word for name in packages for word in ("--package", name)]
    return online.cloche("code", "--language", "python", "--timeout", "60s", *more.pop("flags", ()), *words, "-", stdin=code, timeout=PATIENCE)


@pytest.mark.root
def test_what_was_installed_is_taken_again(index):
    """With its version, by itself, for a week; without a network, and without a way to change it."""
    before = left()
    assert python(index, "mine==1.0").out == "42\n" and len(sets(index)) == 1
    asked = len(index.net.requests)
    again = python(index, "mine==1.0", code=f"import mine; print(mine.answer)\n{REACH}open(mine.__file__, 'a')")
    assert again.out == "42\nclosed\n" and "Read-only file system" in again.err and len(index.net.requests) == asked, again
    [one] = sets(index)
    assert one.stat().st_mode & 0o7777 == 0o755 and one.parent.stat().st_mode & 0o7777 == 0o700

    def asks(*packages, flags=()):
        had = len(index.net.requests)
        result = python(index, *packages, flags=flags)
        assert result.out == "42\n", result
        return len(index.net.requests) > had
    # what is not just that is installed: without a version it is never kept, else it is a set of its own
    assert asks("mine") and sets(index) == [one]
    assert asks("mine==1.0", "six==1.0") and asks("mine==1.0", flags=("--mode", "max")) and len(sets(index)) == 3
    assert not asks("mine==1.0", "six==1.0") and not asks("mine==1.0")
    # a week old; the one that comes takes its place
    os.utime(one, (one.stat().st_mtime - 8 * 24 * 3600,) * 2)
    half, half_used = (one.parent / f".new-{name}" for name in ("killed", "used"))
    half.mkdir()
    half_used.mkdir()
    with open_locked(half_used):
        assert asks("mine==1.0") and not asks("mine==1.0") and len([s for s in sets(index) if s.name[0] != "."]) == 3
    assert not half.exists() and half_used.exists(), "what a process that was killed left is removed, and nothing that is used"
    # another registry
    index.cloche.env["PIP_EXTRA_INDEX_URL"] = f"http://{INDEX}/simple/"
    assert asks("mine==1.0")
    assert nothing_more(before)


@pytest.mark.root
def test_sets_have_a_ceiling(index):
    """The oldest ones go; those that are in use stay, and are no reason to keep more."""
    assert python(index, "mine==1.0").out == "42\n"
    [one] = sets(index)
    others = [one.parent / f"{i:064x}" for i in range(34)]
    for i, other in enumerate(others):
        other.mkdir()
        os.utime(other, (one.stat().st_mtime - 3600 + i,) * 2)
    with open_locked(others[0]), open_locked(others[1]):
        assert python(index, "mine==1.0", "six==1.0").out == "42\n"
    kept = sets(index)
    assert len(kept) == 32 and others[0] in kept and others[1] in kept and one in kept and others[2] not in kept, kept
    [two] = set(kept) - {one, *others}
    with contextlib.ExitStack() as all_of_them:
        for used in kept:
            all_of_them.enter_context(open_locked(used))
        assert python(index, "six==1.0", code="print(42)").out == "42\n" and sets(index) == kept
    assert two.exists()


@pytest.mark.root
def test_an_installation_poisons_no_other(index):
    """What ran while one thing was installed is not in what is taken again for another. In a folder that both may write to it would be."""
    spoil = "const fs = require('fs'); for (const at of %s) try { fs.mkdirSync(at + '/mine', {recursive: true}); fs.writeFileSync(at + '/mine/index.js', 'module.exports = 666'); } catch (e) { }"
    look, shared = "console.log(require('mine'))", index.bare.home / "shared"
    places = ["/workspace/node_modules", "/workspace/../packages/node_modules", str(index.bare.state / "cloche" / "packages"),
              "/home/agent/.npm", "/home/agent/.cache/cloche/packages", "/tmp"]
    publish_npm(index.net, "mine")
    publish_npm(index.net, "evil", scripts={"postinstall": f"node -e {json.dumps(spoil % json.dumps(places).replace(chr(34), chr(39)))}"})

    def javascript(*packages):
        words = [word for name in packages for word in ("--package", name)]
        result = index.cloche("code", "--language", "javascript", "--timeout", "60s", *words, "-", stdin=look, timeout=PATIENCE)
        assert result.ok, result
        return result.out
    # a folder that one installation after the other may write to
    shared.mkdir()
    shared.chmod(0o777)
    for code in (spoil % "['/shared/node_modules']", "process.chdir('/shared'); console.log(require('/shared/node_modules/mine'))"):
        naive = index.cloche("run", "--bind", f"{shared}:/shared:rw", "--", "node", "-e", code)
        assert naive.ok, naive
    assert naive.out == "666\n", "the attack is real"
    for _ in range(2):
        assert javascript("evil@1.0.0", "mine@1.0.0") in ("666\n", "42\n")
        assert javascript("mine@1.0.0") == "42\n"
    assert len(sets(index)) == 2


@pytest.mark.parametrize("language,name,code", [
    ("python", "x; y", "cli.package.name"), ("python", "--index-url=http://evil.example/", "cli.package.name"), ("python", "../x", "cli.package.name"),
    ("javascript", "user/repo", "cli.package.name"), ("javascript", "mine==1.0", "cli.package.name"), ("shell", "mine", "cli.package.language")])
def test_refused(cloche, language, name, code):
    before = left()
    result = cloche("code", "--language", language, "--package", name, "-", stdin="")
    assert result.code == 125 and f"[{code}]" in result.err and nothing_more(before), result


def really(cloche, language, packages, program, limit, patience):
    """@program, with packages of the real registry."""
    cloche.env |= CERTIFICATES
    flags = [w for a in addresses(cloche, {"python": "pypi", "javascript": "npm"}[language]) for w in ("--allow-domain", a)]
    flags += [w for p in packages for w in ("--package", p)]
    return cloche("code", "--language", language, "--timeout", limit, *flags, "-", stdin=program, timeout=patience)


def test_a_real_one(cloche, has):
    has("pip3")
    result = really(cloche, "python", ("peppercorn==0.6",), "import peppercorn; print(peppercorn.__name__)", "5m", PATIENCE)
    assert result.out == "peppercorn\n", result


FRAME = """import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt, numpy, pandas, requests
frame = pandas.DataFrame({"a": numpy.arange(6), "b": numpy.arange(6) ** 2})
plt.plot(frame.a, frame.b)
plt.savefig("/tmp/plot.png")
print({name: int(sum) for name, sum in frame.sum().items()}, open("/tmp/plot.png", "rb").read(4), requests.Request("GET", "http://h").prepare().url)
"""
TYPES = """const lodash = require("lodash"), typescript = require("typescript");
console.log(lodash.chunk([1, 2, 3], 2).length, typescript.transpileModule("const x: number = 1", {}).outputText.trim());
"""


@pytest.mark.parametrize("language,packages,program,clients,says", [
    ("python", ("requests", "numpy", "pandas", "matplotlib"), FRAME, ("pip3",), "{'a': 15, 'b': 55} b'\\x89PNG' http://h/\n"),
    ("javascript", ("lodash", "typescript@5"), TYPES, ("npm", "node"), "2 var x = 1;\n")], ids=("python", "javascript"))
def test_the_large_ones(cloche, has, language, packages, program, clients, says):
    """Large packages, with what they need, used after they are installed."""
    has(*clients)
    result = really(cloche, language, packages, program, "15m", 1200)
    assert result.out == says, result
