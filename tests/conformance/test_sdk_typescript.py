"""The TypeScript SDK (sdk/typescript), as npm packs it, against a real daemon, and against servers that say what they should not."""
import os
import re
import shutil
import subprocess
import tarfile

import pytest

from helpers import kept, npm, requirement, sdk
from helpers.daemon import Daemon
from helpers.routes import REPO, documented
from helpers.shared import own, shared

import gen_sdk              # noqa: E402  (helpers.sdk says where it is)

pytestmark = [requirement("R88"), shared]
SDK = REPO / "sdk" / "typescript"
COMPILER = ["typescript@5.9.3", "@types/node@20.19.43"]
STRICT = ["--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,esnext.disposable",
          "--types", "node"]


def run(words, cwd, **env):
    return subprocess.run([str(w) for w in words], cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=300, check=False)


def compiler(app):
    return app.parent / "source" / "node_modules" / "typescript" / "bin" / "tsc"


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """A folder with the package as npm packs and installs it, and the programs of this file compiled against its types."""
    modules = npm.packages(*COMPILER) / "node_modules"
    root = tmp_path_factory.getbasetemp() / "sdk-typescript"
    with kept.once(root) as missing:        # for all workers
        if missing:
            make(root, modules)
    return root / "app"


def make(root, modules):
    shutil.copytree(SDK, root / "source", ignore=shutil.ignore_patterns("dist", "node_modules"))
    (root / "source" / "node_modules").symlink_to(modules)
    packed = run(["npm", "pack", "--pack-destination", root], root / "source")
    assert packed.returncode == 0, packed.stdout + packed.stderr
    folder = root / "app"
    (folder / "node_modules").mkdir(parents=True)
    with tarfile.open(root / "cloche-0.1.0.tgz") as tar:
        tar.extractall(root, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(root)
    (root / "package").rename(folder / "node_modules" / "cloche")
    (folder / "node_modules" / "@types").symlink_to(modules / "@types")
    (folder / "package.json").write_text('{"type": "module", "private": true}', encoding="ascii")
    shutil.copy2(REPO / "tests" / "lib" / "sdk_typescript.ts", folder)
    for i, code in enumerate(sdk.examples(SDK / "README.md", "ts")):
        (folder / f"example{i}.ts").write_text(code, encoding="utf-8")
    done = run([npm.node(), compiler(folder), *STRICT, *sorted(p.name for p in folder.glob("*.ts"))], folder)
    assert done.returncode == 0, done.stdout


def node(app, daemon, program, *words, **env):
    done = run([npm.node(), app / program, *words], app, CLOCHE_SOCKET=str(daemon.path) if daemon else "/nonexistent", **env)
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
    return done.stdout


def test_what_npm_packs(app):
    files = {str(p.relative_to(app / "node_modules" / "cloche")) for p in (app / "node_modules" / "cloche").rglob("*") if p.is_file()}
    modules = {p.stem for p in (SDK / "src").glob("*.ts")}
    assert files == {"package.json", "README.md", *(f"dist/{m}{end}" for m in modules for end in (".js", ".d.ts"))}
    assert '"dependencies"' not in (SDK / "package.json").read_text(encoding="utf-8")


def test_types_are_strict(app):
    wrong = 'import { Sandbox, execute } from "cloche";\nawait Sandbox.create({ nmae: "x" });\nawait execute("python", 1);\n'
    (app / "wrong.ts").write_text(wrong, encoding="ascii")
    done = run([npm.node(), compiler(app), *STRICT, "--noEmit", "wrong.ts"], app)
    assert done.stdout.count("error TS") == 2, done.stdout


def test_every_route_has_a_method():
    """What names one that is not described does not compile."""
    text = (SDK / "src" / "api.ts").read_text(encoding="utf-8")
    assert text == gen_sdk.written()["sdk/typescript/src/api.ts"], "tools/gen_sdk.py writes it"
    known = dict(re.findall(r'^  ([A-Z_0-9]+): \{ method: "\w+", path: "([^"]+)" \},$', text, flags=re.M))
    public = {p for _, p in documented() if gen_sdk.left_out(p) is None}
    assert set(known.values()) == public and len(known) > 70
    used = set()
    for source in (SDK / "src").glob("*.ts"):
        used |= set(re.findall(r"\broutes\.([A-Z_0-9]+)", source.read_text(encoding="utf-8")))
    assert used == set(known)


@own        # which has sandboxes made ahead then
def test_the_examples_of_the_page_run(app, daemon):
    codes = sdk.examples(SDK / "README.md", "ts")
    assert len(codes) >= 4
    for i, code in enumerate(codes):
        said = node(app, daemon, f"example{i}.js")
        for says in re.findall(r"// prints: (.*)", code):
            assert says in said, (code, said)


@pytest.mark.parametrize("name", ["life", "commands", "background", "contexts", "files", "many", "errors"])
def test_against_a_daemon(app, daemon, name):
    assert node(app, daemon, "sdk_typescript.js", name) == "passed\n"


@own        # as above
def test_one_call(app, daemon):
    assert node(app, daemon, "sdk_typescript.js", "execute") == "passed\n"


def test_a_stream_goes_on_where_its_connection_broke(app, daemon):
    box = daemon.create()
    command = daemon.post(f"{box.at}/exec", {"command": "for i in 1 2 3 4; do echo $i; sleep 0.05; done", "background": True}).json["exec_id"]
    with sdk.Relay(daemon.path, cuts=3, behind=b"event: stdout") as relay:
        assert node(app, daemon, "sdk_typescript.js", "relay", relay.url, box.id, command) == "passed\n"
        assert relay.made >= 4


def test_what_was_made_for_nobody_is_ended(app, daemon):
    with sdk.Relay(daemon.path, cuts=1, behind=b"HTTP/1.1 201") as lost, sdk.Relay(daemon.path, cuts=1, behind=b"HTTP/1.1 201") as held:
        held.hold = True
        assert node(app, daemon, "sdk_typescript.js", "undone", lost.url, held.url) == "passed\n"


def test_without_a_daemon(app):
    assert node(app, None, "sdk_typescript.js", "local") == "passed\n"


@own
def test_over_tcp_with_a_token(app, cloche):
    daemon = Daemon(cloche, "--listen", f"unix:{cloche.state}/cloche/serve/api.sock", "--listen", "tcp:127.0.0.1:0")
    assert node(app, daemon, "sdk_typescript.js", "tcp", f"http://127.0.0.1:{daemon.addresses()[0][1]}") == "passed\n"
    assert daemon.stop() == 0, daemon.log


@own
def test_approvals(app, cloche):
    daemon = Daemon(cloche, gate=None)
    assert node(app, daemon, "sdk_typescript.js", "approvals") == "passed\n"
    assert daemon.stop() == 0, daemon.log


@pytest.mark.parametrize("case", sdk.HOSTILE)
def test_hostile_answers(app, case):
    says, expected = sdk.HOSTILE[case]
    with sdk.Server(b"") as elsewhere, sdk.Server(says % elsewhere.port if case == "redirect" else says) as server:
        assert node(app, None, "sdk_typescript.js", "hostile", server.url, expected, sdk.TOKEN) == "passed\n"
        assert len(server.heard) == 1 and sdk.TOKEN.encode() in server.heard[0]
        assert not elsewhere.heard      # nobody else has the key


@pytest.mark.parametrize("case", sdk.HOSTILE_EVENTS)
def test_hostile_events(app, case):
    says, expected = sdk.HOSTILE_EVENTS[case]
    with sdk.Server(says) as server:
        assert node(app, None, "sdk_typescript.js", "hostile", server.url, expected, sdk.TOKEN, "events") == "passed\n"
