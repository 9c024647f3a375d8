"""The Python SDK (sdk/python) against a real daemon, and against servers that say what they should not."""
import asyncio
import bz2
import concurrent.futures
import contextlib
import gzip
import inspect
import io
import logging
import lzma
import math
import os
import pickle
import re
import shutil
import socket
import subprocess
import threading
import time
import types

import pytest

from helpers import places, pypi, requirement, sdk
from helpers.daemon import Daemon
from helpers.routes import REPO, documented
from helpers.runner import wait_for
from helpers.shared import own, shared

import cloche as api        # noqa: E402  (helpers.sdk says where it is)
import gen_sdk              # noqa: E402

assert os.path.samefile(os.path.dirname(api.__file__), REPO / "sdk/python/src/cloche")
pytestmark = [requirement("R88"), shared]
MYPY = "mypy==2.4.1"
SDK = REPO / "sdk" / "python"
BINARY = bytes(range(256)) * 4


@pytest.fixture
def client(daemon):
    return api.Client(socket=str(daemon.path))


@pytest.fixture
def box(client):
    with api.Sandbox(client) as made:
        yield made


# --- what there is -------------------------------------------------------------------------------------------------

def test_what_is_generated_is_up_to_date():
    for name, text in gen_sdk.written().items():
        assert (REPO / name).read_text(encoding="utf-8") == text, f"{name}: tools/gen_sdk.py writes it"


def test_every_route_has_a_method():
    """And every method a route: one that is not described does not exist in the generated table."""
    known = {(route.method, route.path) for route in vars(api._api).values() if isinstance(route, api._api.Route)}
    public = {(m, p) for m, p in documented() if gen_sdk.left_out(p) is None}
    assert known - {("HEAD", "/v1/sandboxes/{id}/files/{path}")} == public and len(public) > 70
    for module in ("_async.py", "_sync.py"):
        used = set(re.findall(r"\bapi\.([A-Z]+_[A-Z_0-9]+)", (SDK / "src/cloche" / module).read_text(encoding="utf-8")))
        assert used == {name for name, route in vars(api._api).items() if isinstance(route, api._api.Route)}


def test_what_is_left_out_is_there_and_written_down():
    page = (REPO / "docs" / "sdk.md").read_text(encoding="utf-8")
    paths = {p for _, p in documented()}
    for begin, end, why in gen_sdk.LEFT_OUT:
        assert any(p.startswith(begin) and p.endswith(end) for p in paths), begin
        assert f"`{begin}" in page and why in page, (begin, why)


def test_classes_of_errors_are_of_codes_that_exist():
    source = "".join(p.read_text(encoding="utf-8") for p in (REPO / "src").rglob("*.[ch]"))
    codes = [code for _, _, _, codes, _ in gen_sdk.ERRORS for code in codes]
    assert codes and not [code for code in codes if f'"{code}"' not in source]
    statuses = {status for answers in documented().values() for status in answers if status >= 400}
    assert not statuses - set(api._api.BY_STATUS), statuses - set(api._api.BY_STATUS)


@pytest.mark.parametrize("path,method", [("/v1/sandboxes", "Sandboxes.page"), ("/v1/approvals", "Approvals.page"), ("/v1/audit", "Audit.list"),
                                         ("/v1/audit/size", "Audit.size"), ("/v1/audit/stream", "Audit.stream"), ("/v1/events", "DaemonEvents.list"),
                                         ("/v1/events/stream", "DaemonEvents.stream"), ("/v1/sandboxes/{id}/watch", "Files.watch"),
                                         ("/v1/sandboxes/{id}/exec/{exec_id}/stream", "Command.stream")])
def test_queries_are_those_of_the_description(path, method):
    described = gen_sdk.description()["paths"][path]["get"]["parameters"]
    found = api._sync
    for name in method.split("."):
        found = getattr(found, name)
    assert {p["name"] for p in described if p["in"] == "query"} == set(inspect.signature(found).parameters) - {"self", "timeout"}


def test_both_clients_have_the_same_shape():
    for name, one in vars(api._sync).items():
        if inspect.isclass(one) and one.__module__ == api._sync.__name__:
            other = getattr(api._async, name if name.startswith("_") else f"Async{name}")
            mine, its = ({n for n in vars(c) if not n.startswith("__")} for c in (one, other))
            assert mine == its, name


def test_types_are_strict(tmp_path):
    python = pypi.python_with(MYPY)
    for i, code in enumerate(sdk.examples(SDK / "README.md", "python")):
        (tmp_path / f"example{i}.py").write_text(code, encoding="utf-8")
    (tmp_path / "wrong.py").write_text("import cloche\ncloche.Sandbox(nmae='x')\ncloche.execute('python', 1)\n", encoding="utf-8")

    def check(*what):
        words = [python, "-m", "mypy", "--strict", "--python-version", "3.10", "--cache-dir", tmp_path / "cache", *what]
        return subprocess.run(words, env={**os.environ, "MYPYPATH": str(SDK / "src")}, cwd=tmp_path, capture_output=True, text=True, timeout=300,
                              check=False)
    for what in (["-p", "cloche"], sorted(tmp_path.glob("example*.py"))):
        done = check(*what)
        assert done.returncode == 0, done.stdout + done.stderr
    assert check(tmp_path / "wrong.py").stdout.count("error:") == 2


def test_pip_installs_it(tmp_path):
    shutil.copytree(SDK, tmp_path / "source", ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    done = subprocess.run([*pypi.PIP, "install", *pypi.QUIETLY, "--no-deps", "--target", tmp_path / "there", tmp_path / "source"],
                          capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0 and "setuptools" in done.stderr:
        pytest.skip(f"setuptools cannot be had: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
    there = tmp_path / "there"
    assert (there / "cloche" / "py.typed").exists()
    said = subprocess.run([places.PYTHON, "-I", "-c", f"import sys; sys.path.insert(0, {str(there)!r}); import cloche; print(cloche.__version__)"],
                          capture_output=True, text=True, timeout=60, check=True)
    assert said.stdout == "0.1.0\n"


@own        # which has sandboxes made ahead then
def test_the_examples_of_the_page_run(daemon, tmp_path):
    codes = sdk.examples(SDK / "README.md", "python")
    assert len(codes) >= 5
    for code in codes:
        done = subprocess.run([places.PYTHON, "-X", "dev", "-W", "error", "-c", code], capture_output=True, text=True, timeout=300, check=False,
                              cwd=tmp_path, env={**os.environ, "CLOCHE_SOCKET": str(daemon.path), "PYTHONPATH": str(SDK / "src")})
        assert done.returncode == 0 and not done.stderr, (code, done)
        for says in re.findall(r"# prints: (.*)", code):
            assert says in done.stdout, (code, done.stdout)


# --- what it does --------------------------------------------------------------------------------------------------

def test_a_sandbox_from_its_making_to_its_end(client, daemon):
    with api.Sandbox(client, name="life", labels={"a": "ü"}, policy={"limits": {"memory": "256m"}}) as box:
        assert box.info.state == "ready" and box.info.labels == {"a": "ü"} and box.info.key
        assert [one.id for one in client.sandboxes.list()] == [box.id] and client.sandboxes.get("life").id == box.id
        assert box.run("echo $((6 * 7))").check().stdout == "42\n"
        box.pause()
        with pytest.raises(api.ConflictError) as refused:
            box.run("true")
        assert refused.value.code == "sandbox.paused" and refused.value.status == 409 and refused.value.request_id
        box.resume()
        assert box.usage().id == box.id and [one.id for one in client.usage()] == [box.id]
        assert box.policy.get().policy == {"limits": {"memory": "256m"}}
        with pytest.raises(api.ConflictError, match="revision"):
            box.policy.patch({"limits": {"time": "9s"}}, revision="0" * 32)
        assert box.policy.patch({"limits": {"time": "9s"}}, revision=box.policy.get().revision).policy["limits"]["time"] == "9s"
        key = box.new_key().key
        assert api.Client(socket=str(daemon.path), token=key).sandboxes.get(box.id).run("echo in").stdout == "in\n"
        again = api.Sandbox.connect(box.id, client)
        with again:
            pass
        assert box.refresh().state == "ready"       # whoever only connected does not end it
    assert daemon.state(box.id) == "stopped" and list(client.sandboxes.list()) == []
    box.recover()
    assert box.refresh().state == "ready"
    box.delete()
    box.delete()
    assert daemon.state(box.id) == "stopped"


def test_forks_and_templates(client, box):
    box.files.write("f", "of the first")
    forks = box.fork(2, name="twin")
    assert [one.name for one in forks] == ["twin-1", "twin-2"]
    assert [one.files.read_text("f") for one in forks] == ["of the first"] * 2
    made = box.snapshot("kept")
    assert [t.id for t in client.templates.list()] == [made.id]
    with api.Sandbox(client, template="kept") as other:
        assert other.files.read("f") == b"of the first"
    assert client.templates.delete("kept").id == made.id
    with api.Sandbox(client, volume={"name": "v", "retention": 0}) as durable:
        durable.files.write("stays", b"1")
    assert [v.name for v in client.volumes.list()] == ["v"]
    client.volumes.delete(client.volumes.list()[0].id)
    for one in forks:
        one.delete()


def test_commands(box):
    done = box.run(["sh", "-c", 'echo "$0 $A"; echo e >&2; exit 3', "ü"], env={"A": "x y"}, cwd="/tmp")
    assert (done.exit_code, done.stdout, done.stderr, done.ok) == (3, "ü x y\n", "e\n", False)
    with pytest.raises(api.CommandError) as failed:
        done.check()
    assert failed.value.result is done
    assert box.run("cat", stdin="in\n").stdout == "in\n"
    assert box.run(["printf", r"\377\000"], encoding="base64").stdout_bytes == b"\xff\0"
    late = box.run("sleep 60", timeout_ms=100)
    assert late.timed_out and late.exit_code is None or late.timed_out
    small = box.run("sleep 60", limits={"time": "1s"})
    assert small.limit_reached.code == "limits.reached.time" and small.limit_reached.of == "command"


def test_output_as_it_comes(box):
    with box.stream("echo one; until [ -e go ]; do sleep 0.01; done; cat go; exit 5") as stream:
        assert next(stream) == api.Output("stdout", "one\n")        # the command still runs
        box.files.write("go", "two\n")
        assert [o.data for o in stream if o.stream == "stdout"] == ["two\n"]
        assert stream.result.exit_code == 5
    assert box.stream(["printf", r"\376"], encoding="base64").wait().ok
    with box.stream(["printf", r"\376"], encoding="base64") as stream:
        assert [o.raw for o in stream] == [b"\xfe"]


def test_leaving_a_stream_ends_the_command(box):
    with box.stream("echo begun; sleep 1000") as stream:
        assert next(stream).data == "begun\n"
        assert box.usage().operations == 1
    assert wait_for(lambda: box.usage().operations == 0)


def test_a_thread_ends_what_another_waits_for(box):
    stream = box.stream("echo begun; sleep 1000")
    next(stream)
    ends = threading.Timer(0.05, stream.close)
    ends.start()
    with pytest.raises(api.ConnectionLost):
        next(stream)
    ends.join()
    assert wait_for(lambda: box.usage().operations == 0)


def test_time_is_over(box):
    with pytest.raises(api.TimedOut):
        box.run("sleep 1000", timeout=0.2)
    with pytest.raises(api.TimedOut):
        list(box.stream("while :; do echo x; sleep 0.05; done", timeout=0.5))
    assert wait_for(lambda: box.usage().operations == 0)


def test_in_the_background(box):
    command = box.spawn("while read l; do echo got $l; done; exit 7", stdin=True)
    assert command.info.state == "running" and [c.exec_id for c in box.commands.list()] == [command.id]
    assert command.write("ä\n") == 3 and command.write(b"b\n", end=True) == 2
    assert command.wait().exit_code == 7
    stream = command.stream()
    assert "".join(o.data for o in stream) == "got ä\ngot b\n"
    assert list(command.stream(after=stream.position)) == []        # all of it was there
    sleeper = box.commands.get(box.spawn("sleep 1000").id)
    sleeper.signal("TERM")
    assert sleeper.wait().signal == 15
    ended = box.spawn("sleep 1000").delete()
    assert ended.state == "ended" and ended.signal == 15
    terminal = box.spawn("tty -s && stty size", pty={"rows": 11, "cols": 22})
    assert "11 22" in "".join(o.data for o in terminal.stream())


def test_a_stream_goes_on_where_its_connection_broke(daemon, box):
    command = box.spawn("for i in 1 2 3 4; do echo $i; sleep 0.05; done")
    with sdk.Relay(daemon.path, cuts=2, behind=b"event: stdout") as relay:
        far = api.Client(relay.url, retries=5)
        away = api._sync.Sandbox(far)._is(box.info, False)
        stream = api.Command(away, command.info).stream()
        assert "".join(o.data for o in stream) == "1\n2\n3\n4\n" and relay.made >= 3


def test_a_thread_ends_what_another_reads(box):
    command = box.spawn("sleep 8")
    stream = command.stream()
    ends = threading.Timer(0.05, stream.close)
    ends.start()
    assert list(stream) == [] and command.refresh().state == "running"
    ends.join()
    command.delete()


def test_contexts(box):
    with box.contexts.create("python") as context:
        context.execute("x = 40")
        done = context.execute("print('ü')\nx + 2")
        assert done.stdout == "ü\n" and done.results == [api.Display(main=True, text="42")] and done.error is None and done.ok
        raised = context.execute("1 / 0")
        assert raised.error.name == "ZeroDivisionError" and "line 1" in raised.error.traceback and raised.exit_code == 1
        with context.stream("print('a'); x") as stream:
            assert [type(one) for one in stream] == [api.Output, api.Display] and stream.result.context_state == "idle"
        stream = context.stream("print('on', flush=True)\nwhile True: pass")
        assert next(stream).data == "on\n"
        context.interrupt()
        assert stream.wait().error.name == "KeyboardInterrupt"
        context.restart()
        assert context.execute("x").error.name == "NameError"
        assert [c.context_id for c in box.contexts.list()] == [context.id] and box.contexts.get(context.id).refresh().state == "idle"
    assert box.contexts.list() == []


def test_files(box, tmp_path):
    assert box.files.write("a/ü .txt", "hällo", parents=True) == 6
    assert box.files.read_text("a/ü .txt") == "hällo" and box.files.read("/workspace/a/ü .txt", offset=1, length=2) == "ä".encode()
    assert box.files.write("bin", BINARY, mode=0o700) == 1024 and box.files.read("bin") == BINARY and box.files.stat("bin").mode == "0700"
    assert box.files.write("pieces", iter([b"a", b"", b"b"])) == 2 and box.files.write("open", io.BytesIO(b"xyz")) == 3
    assert box.files.size("open") == 3 and box.files.exists("open") and not box.files.exists("none")
    with pytest.raises(api.ConflictError) as there:
        box.files.write("open", b"", exclusive=True)
    assert there.value.code == "files.exists"
    box.files.mkdir("d/e", parents=True)
    assert sorted((e.name, e.type[0]) for e in box.files.list()) == [("a", "d"), ("bin", "f"), ("d", "d"), ("open", "f"), ("pieces", "f")]
    box.files.delete("d", recursive=True)
    for outside in ("../x", "a/../../x", "/etc/../workspace/open"):
        with pytest.raises(api.DeniedError) as escapes:
            box.files.read(outside)
        assert escapes.value.code == "files.path-escapes"
    with pytest.raises(api.DeniedError):
        box.files.read("/etc/passwd")
    with pytest.raises(api.NoSuchFileError):
        box.files.download("none", tmp_path / "none")
    assert os.listdir(tmp_path) == []


def test_large_files(box, tmp_path):
    data = os.urandom(1 << 20) * 24
    (tmp_path / "large").write_bytes(data)
    assert box.files.upload(tmp_path / "large", "large") == len(data) == box.files.size("large")
    assert box.files.download("large", tmp_path / "back") == len(data) and (tmp_path / "back").read_bytes() == data
    assert b"".join(box.files.chunks("large")) == data == box.files.read("large")
    with pytest.raises(api.AnswerTooLong):
        box.files.read("large", limit=1000)
    with pytest.raises(api.AnswerTooLong):
        box.files.download("large", tmp_path / "back", limit=1 << 20)
    assert (tmp_path / "back").read_bytes() == data and sorted(os.listdir(tmp_path)) == ["back", "large"]
    with pytest.raises(api.ApiError) as full:       # refused before it is through
        box.files.write("too-large", iter([data] * 60))
    assert full.value.code in ("files.no-space", "files.too-large", "sandbox.gone"), full.value


def test_uploads_are_whole(box, tmp_path):
    """Of what has another length than the file behind it, too."""
    data = BINARY * 500
    for opens in (gzip.open, bz2.open, lzma.open, open):
        with opens(tmp_path / "file", "wb") as file:
            file.write(data)
        with opens(tmp_path / "file", "rb") as file:
            file.seek(7)
            assert box.files.write("file", file) == len(data) - 7
        assert box.files.read("file") == data[7:], opens
    with open("/proc/self/status", "rb") as file:
        assert box.files.write("status", file) > 100
    assert box.files.upload(os.devnull, "empty") == 0


def test_changes(box):
    with box.files.watch(recursive=True) as watch:
        assert next(watch).type == "watching"
        box.files.write("w", b"1")
        seen = next(watch)
        assert (seen.type, seen.path, seen.directory) == ("created", "w", False)
        box.run("mv w v")
        moved = next(one for one in watch if one.type == "renamed")
        assert (moved.path, moved.from_) == ("v", "w")


@own        # as above
def test_one_call(client):
    done = client.execute("python", "import sys; print(sys.stdin.read()); open('o', 'wb').write(b'\\xff')", stdin="ü", collect=["*"],
                          files=[{"path": "f.txt", "content": "x"}])
    assert done.stdout == "ü\n" and [(f.path, f.raw) for f in done.files] == [("o", b"\xff")]
    with client.execute_stream("shell", "echo a; echo b > c", collect=["c"]) as stream:
        kinds = [(type(one), getattr(one, "path", None)) for one in stream]
        assert kinds == [(api.Output, None), (api.ResultFile, "c")] and stream.result.ok
    with pytest.raises(api.InvalidError) as refused:
        client.execute("cobol", "")
    assert refused.value.code == "execute.request"


def test_ports_transcript_and_sessions(client, box):
    exposed = box.ports.expose(8000, name="site", ttl=60)
    assert exposed.path.startswith("/preview/") and exposed.path not in repr(exposed)
    assert [(p.id, p.path) for p in box.ports.list()] == [(exposed.id, None)]
    box.ports.delete(exposed.id)
    assert box.ports.list() == [] and box.attach.list() == []
    number = box.transcript.add_message("user", {"ü": 1})
    assert wait_for(lambda: box.transcript.messages().get("messages"))
    assert box.transcript.messages()["messages"][0]["operation"] == number
    box.run("echo kept")
    assert wait_for(lambda: [line["text"] for line in box.transcript.logs()["logs"]] == ["kept\n"])
    assert wait_for(lambda: any(e["event"] == "exec" for e in box.transcript.page()["entries"]))
    ticket = box.attach.create("inspect", seconds=60)
    session = box.attach.open(ticket.ticket)
    assert ticket.ticket not in repr(ticket) and session.token and session.token not in repr(session)
    assert [s.id for s in box.attach.list()] == [session.id] and box.attach.delete(session.id).id == session.id


def test_all_pages_of_a_list(client):
    made = [client.sandboxes.create(name=f"p{i}") for i in range(5)]
    assert [one.id for one in client.sandboxes.list(limit=2)] == [one.id for one in made]
    assert client.kill_all() == 5


def test_the_same_key_makes_one(client):
    first = client.sandboxes.create(idempotency_key="once", name="once")
    assert client.sandboxes.create(idempotency_key="once", name="once").id == first.id
    with pytest.raises(api.InvalidError) as refused:
        client.sandboxes.create(idempotency_key="once", name="other")
    assert refused.value.code == "idempotency.conflict"
    with sdk.Relay(client.target.socket, cuts=1, behind=b"HTTP/1.1 201") as relay:     # the answer is lost, and asked for again
        again = api.Client(relay.url).sandboxes.create(name="lost")
        assert relay.made == 2 and again.info.name == "lost"
        with pytest.raises(api.ConnectionLost):     # a command is not run twice
            relay.made, relay.cuts, relay.behind = 0, 1, b"HTTP/1.1 200"
            again.run("echo x >> ran")
        assert again.files.read("ran") == b"x\n"
        relay.made, relay.cuts = 0, 0
        again.delete()


def test_what_was_made_for_nobody_is_ended(client):
    def states():
        return [one.state for one in client.sandboxes.page(state="all").sandboxes]

    with sdk.Relay(client.target.socket, cuts=1, behind=b"HTTP/1.1 201") as relay:
        far = api.Client(relay.url, retries=0)
        with pytest.raises(api.ConnectionLost):
            far.sandboxes.create(name="lost")
        assert states() == ["stopped"]
        relay.made = 0
        with pytest.raises(api.ConnectionLost):         # the caller has a name for it
            far.sandboxes.create(idempotency_key="mine")
        assert far.sandboxes.create(idempotency_key="mine").info.state == "ready" and states() == ["stopped", "ready"]
        assert client.kill_all() == 1
        relay.hold, relay.made = True, 0
        box = api.Sandbox(far, timeout=1)
        first = box.idempotency_key
        with pytest.raises(api.TimedOut):
            box.start()
        box._timeout = None
        assert states() == ["stopped"] * 3 and box.idempotency_key != first and box.start().info.state == "ready"
        box.delete()
        relay.made = 0
        relay.held.clear()

        async def cancelled():
            task = asyncio.create_task(api.AsyncSandbox.create(api.AsyncClient(relay.url)))
            await asyncio.to_thread(relay.held.wait, 60)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        asyncio.run(cancelled())
        assert states() == ["stopped"] * 5


def test_errors(client, box):
    with pytest.raises(api.SandboxNotFoundError) as none:
        client.sandboxes.get("none")
    error = pickle.loads(pickle.dumps(none.value))
    assert (error.status, error.code) == (404, "sandbox.not-found") and 'no sandbox "none"' in str(error) and error.detail
    with pytest.raises(api.InvalidError) as unknown:
        client.sandboxes.create(policy={"limits": {"memory": "a lot"}})
    assert unknown.value.code.startswith("policy.")
    with pytest.raises(api.ClocheError, match="not made yet"):
        api.Sandbox(client).run("true")
    for name in ("", ".", ".."):
        with pytest.raises(ValueError):
            client.sandboxes.get(name)
    assert client.sandboxes.page(prefix="a/../../b").sandboxes == []
    with pytest.raises(api.ConnectionFailed, match="nobody.sock"):
        api.Client(socket="/nonexistent/nobody.sock").health()
    with pytest.raises(api.ConnectionFailed):
        api.Client("http://127.0.0.1:1").health()


def test_a_hundred_at_once(client, box):
    with api.Sandbox(client) as other, concurrent.futures.ThreadPoolExecutor(100) as pool:
        asked = [pool.submit((box, other)[i % 2].run, ["echo", str(i)]) for i in range(100)]
        assert [one.result().stdout for one in asked] == [f"{i}\n" for i in range(100)]

    async def all_at_once():
        far = api.AsyncClient(socket=client.target.socket)
        async with api.AsyncSandbox(far) as first, api.AsyncSandbox(far) as second:
            done = await asyncio.gather(*((first, second)[i % 2].run(["echo", str(i)]) for i in range(100)))
            return [one.stdout for one in done]
    assert asyncio.run(all_at_once()) == [f"{i}\n" for i in range(100)]


def test_asynchronously(client):
    async def everything():
        far = api.AsyncClient(socket=client.target.socket)
        async with api.AsyncSandbox(far) as box:
            await box.files.write("f", BINARY)
            assert await box.files.read("f") == BINARY
            assert b"".join([piece async for piece in box.files.chunks("f")]) == BINARY

            async def pieces():
                yield b"one"
                yield b"two"
            assert await box.files.write("g", pieces()) == 6
            async with await box.stream("echo a; sleep 0.05; echo b; exit 2") as stream:
                assert [o.data async for o in stream] == ["a\n", "b\n"] and stream.result.exit_code == 2
            command = await box.spawn("cat", stdin=True)
            await command.write("x", end=True)
            assert (await command.wait()).exit_code == 0
            async with await box.contexts.create() as context:
                assert (await context.execute("1 + 1")).results[0].text == "2"
            task = asyncio.create_task(box.run("sleep 1000"))
            while (await box.usage()).operations == 0:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while (await box.usage()).operations:       # its connection ended, and the command with it
                await asyncio.sleep(0.01)
            with pytest.raises(api.TimedOut):
                await box.run("sleep 1000", timeout=0.1)
            return [one.id async for one in far.sandboxes.list()] == [box.id]
    assert asyncio.run(everything()) and list(client.sandboxes.list()) == []


# --- who asks ------------------------------------------------------------------------------------------------------

@own
def test_over_tcp_with_a_token(cloche, caplog, monkeypatch):
    daemon = Daemon(cloche, "--listen", f"unix:{cloche.state}/cloche/serve/api.sock", "--listen", "tcp:127.0.0.1:0")
    url = f"http://127.0.0.1:{daemon.addresses()[0][1]}"
    caplog.set_level(logging.DEBUG)
    with pytest.raises(api.AuthError) as refused:
        api.Client(url, token=sdk.TOKEN).version()
    assert refused.value.code == "auth.unknown" and sdk.TOKEN not in f"{refused.value!r} {refused.value} {refused.value.__dict__}"
    with pytest.raises(api.AuthError) as refused:
        api.Client(url).version()
    assert refused.value.code == "auth.required" and api.Client(url).health()["status"] == "ok"
    owner = api.Client(socket=str(daemon.path))
    made = owner.tokens.create("agent", name="one", expires=3600)
    assert made.token not in repr(made)
    monkeypatch.setenv("CLOCHE_URL", url)
    monkeypatch.setenv("CLOCHE_TOKEN", made.token)
    with api.Sandbox() as box:
        assert box.run("echo mine").stdout == "mine\n" and api.execute("shell", "echo one").stdout == "one\n"
        with pytest.raises(api.DeniedError) as role:
            api.Client().tokens.list()
        assert role.value.code == "auth.role" and made.token not in repr(api.Client()) + str(vars(role.value))
        stream = box.stream("echo begun; sleep 1000")
        assert next(stream).data == "begun\n"
        owner.tokens.delete(made.id)
        with pytest.raises((api.ApiError, api.ConnectionLost)) as ended:
            list(stream)
        assert getattr(ended.value, "code", "auth.ended") == "auth.ended"
        with pytest.raises(api.AuthError):
            box.refresh()
        monkeypatch.delenv("CLOCHE_TOKEN")
        box.client = owner
    assert made.token not in caplog.text
    assert owner.audit.size() > 0 and owner.events.list() and next(owner.events.stream(limit=1, timeout=60)).json()["type"]
    entry = next(owner.audit.stream(after=1, timeout=60)).json()
    assert entry["hash"] and owner.audit.list(limit=1)["entries"][0]["seq"] >= entry["seq"] and "cloche_" in owner.metrics()
    assert owner.ready() == {"status": "ready"} and owner.version()["api"] == ["v1"]
    assert daemon.stop() == 0, daemon.log


@own
def test_approvals(cloche):
    rules = cloche.home / "gate.yaml"
    rules.write_text("rules:\n  - {id: asks, tool: execute_command, risk: HIGH, when: [{param: command, contains: please}]}\n", encoding="utf-8")
    daemon = Daemon(cloche, gate=None)
    owner = api.Client(socket=str(daemon.path))
    agent = api.Client(socket=str(daemon.path), token=owner.tokens.create("agent").token)
    with api.Sandbox(agent) as box, owner.approvals.stream() as asked, concurrent.futures.ThreadPoolExecutor() as pool:
        for decide, ends in ((owner.approvals.approve, "done\n"), (owner.approvals.deny, None)):
            waits = pool.submit(box.run, "rm -rf /workspace/x; echo done")
            pending = next(one for one in asked if one.state == "pending")
            assert owner.approvals.get(pending.id).id == pending.id in [one.id for one in owner.approvals.list(state="pending")]
            assert decide(pending.id, reason="because").state in ("approved", "denied")
            if ends:
                assert waits.result().stdout == ends
            else:
                with pytest.raises(api.ApprovalDeniedError, match="because"):
                    waits.result()
        hasty = api.Client(socket=str(daemon.path), token=agent._token, respond_async=True)
        with pytest.raises(api.ApprovalPending) as wait:
            api.Sandbox.connect(box.id, hasty).run("rm -rf /workspace/y; echo later")
        assert owner.approvals.approve(wait.value.approval, scope="sandbox", expires=60).state == "approved"
        assert api.Sandbox.connect(box.id, hasty).run("rm -rf /workspace/y; echo later").stdout == "later\n"
        assert [g.caller for g in owner.grants.list()] and owner.grants.delete(owner.grants.list()[0].id) is None
    assert daemon.stop() == 0, daemon.log


def test_a_token_is_not_sent_in_clear(monkeypatch):
    for url in ("http://192.0.2.1:7700", "http://example.org", "http://127.attacker.example", "http://127.0.0.1.attacker.example", "http://[::2]"):
        with pytest.raises(ValueError, match="without TLS"):
            api.Client(url, token=sdk.TOKEN)
    for url in ("http://localhost", "http://127.0.0.2", "http://[::1]"):
        assert api.Client(url, token=sdk.TOKEN)
    assert api.Client("https://example.org", token=sdk.TOKEN) and api.Client("http://192.0.2.1", token=sdk.TOKEN, insecure=True)
    for token in ("a\r\nX-Sandbox-Key: b", "ü", "a b"):
        with pytest.raises(ValueError, match="character"):
            api.Client(token=token)
    for url in ("ftp://x", "http://user:secret@x", "http://x/path", "nothing"):
        with pytest.raises(ValueError):
            api.Client(url)
    monkeypatch.setenv("CLOCHE_SOCKET", "unix:/run/x.sock")
    monkeypatch.delenv("CLOCHE_URL", raising=False)
    assert api.Client().target.socket == "/run/x.sock"


def test_the_token_of_the_environment_is_for_the_daemon_of_the_environment(monkeypatch):
    monkeypatch.setenv("CLOCHE_TOKEN", sdk.TOKEN)
    with sdk.Server(sdk.OK + b"Content-Length: 2\r\n\r\n{}") as server:
        api.Client(server.url).version()
        monkeypatch.setenv("CLOCHE_URL", server.url)
        api.Client().version()
        assert [sdk.TOKEN.encode() in heard for heard in server.heard] == [False, True]
    assert not api.Client(socket="/run/x.sock")._token


# --- servers that say what they should not -------------------------------------------------------------------------

def hostile_client(server):
    return api.Client(server.url, token=sdk.TOKEN, retries=0, timeout=2, max_answer=1 << 20)


@pytest.mark.parametrize("case", sdk.HOSTILE)
def test_hostile_answers(case):
    says, expected = sdk.HOSTILE[case]
    with sdk.Server(b"") as elsewhere, sdk.Server(says % elsewhere.port if case == "redirect" else says) as server:
        with pytest.raises(getattr(api, expected)) as refused:
            hostile_client(server).version()
        assert sdk.TOKEN not in f"{refused.value!r}{refused.value}"
        far = api.AsyncClient(server.url, token=sdk.TOKEN, retries=0, timeout=2, max_answer=1 << 20)
        with pytest.raises(getattr(api, expected)):
            asyncio.run(far.version())
        assert len(server.heard) == 2 and not elsewhere.heard      # nowhere else, so nobody else has the key


@pytest.mark.parametrize("case", sdk.HOSTILE_EVENTS)
def test_hostile_events(case):
    says, expected = sdk.HOSTILE_EVENTS[case]
    with sdk.Server(says) as server, pytest.raises(getattr(api, expected)):
        list(hostile_client(server).execute_stream("shell", "true"))


def test_names_of_a_server_are_no_local_paths(tmp_path, monkeypatch):
    """What a sandbox calls its files is only shown."""
    monkeypatch.chdir(tmp_path)
    files = b'{"path":"../../evil","content":"x"},{"path":"/tmp/evil-of-sdk","content_base64":"!"}'
    body = (b'{"exit_code":0,"signal":null,"duration_ms":1,"timed_out":false,"oom_killed":false,"limit_reached":null,"stdout":"","stderr":"",'
            b'"stdout_truncated":false,"stderr_truncated":false,"files":[' + files + b'],"files_truncated":false,"a new member":1}')
    with sdk.Server(sdk.OK + b"Content-Length: %d\r\nContent-Disposition: attachment; filename=../evil\r\n\r\n" % len(body) + body) as server:
        done = hostile_client(server).execute("shell", "true", collect=["*"])
        assert [f.path for f in done.files] == ["../../evil", "/tmp/evil-of-sdk"] and done.files[0].raw == b"x"
        with pytest.raises(api.AnswerError):
            done.files[1].raw
    assert os.listdir(tmp_path) == []


def test_requests_are_asked_again_only_where_that_is_the_same():
    busy = (b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\nContent-Type: application/json\r\nContent-Length: 66\r\n\r\n"
            b'{"error":"busy","code":"http.busy","detail":"","request_id":"0"}  ')
    with sdk.Server(busy) as server:
        client = api.Client(server.url, retries=2)
        with pytest.raises(api.UnavailableError):
            client.version()
        assert len(server.heard) == 3
        with pytest.raises(api.UnavailableError):
            client.execute("shell", "true")
        assert len(server.heard) == 4


# --- connections ---------------------------------------------------------------------------------------------------

def test_a_task_that_is_cancelled_is_cancelled():
    """Also where what it waits for has just come."""
    async def turns(n):
        for _ in range(n):
            await asyncio.sleep(0)

    async def cancelled(task):
        if task.cancel():
            with pytest.raises(asyncio.CancelledError):
                await task
            return 1
        return 0

    async def everything():
        with sdk.Server(lambda: iter([None])) as server:
            at, far = api._plan.target(server.url, None, None), time.monotonic() + 60
            received = opened = 0
            for n in range(4):
                wire = await api._async.AsyncWire.open(at, far)
                task = asyncio.create_task(wire.recv(far))
                await turns(3)
                wire._reader.feed_data(b"x")
                await turns(n)
                received += await cancelled(task)
                wire.close()
            for n in range(30):
                task = asyncio.create_task(api._async.AsyncWire.open(at, far))
                await turns(n)
                opened += await cancelled(task)
            return received, opened
    received, opened = asyncio.run(everything())
    assert received and opened


def test_a_deadline_is_one_for_all_addresses(monkeypatch):
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, contextlib.ExitStack() as full:
        for _ in range(4):      # until nobody more is let in
            one = full.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        row = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", listener.getsockname())
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [row] * 4)
        begun = time.monotonic()
        with pytest.raises(api.TimedOut):
            api.Client("http://several.test", timeout=0.4).version()
        assert time.monotonic() - begun < 1.2


def test_a_timeout_may_be_no_limit():
    with sdk.Server(sdk.OK + b"Content-Length: 2\r\n\r\n{}") as server:
        assert api.Client(server.url, timeout=math.inf).version() == {} == asyncio.run(api.AsyncClient(server.url, timeout=math.inf).version())
        with pytest.raises(ValueError, match="timeout"):
            api.Client(server.url, timeout=math.nan).version()


def test_a_time_of_the_system_is_not_the_callers():
    """ETIMEDOUT: what was asked may have been done."""
    with socket.create_server(("127.0.0.1", 0)) as listener:        # nobody reads
        at = api._plan.target(f"http://127.0.0.1:{listener.getsockname()[1]}", None, None)

        async def asynchronously():
            wire = await api._async.AsyncWire.open(at, None)
            wire._writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 50)
            await wire.send(bytes(1 << 24), None)
        with pytest.raises(api.ConnectionLost):
            asyncio.run(asynchronously())
        wire = api._sync.Wire.open(at, None)
        wire._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 50)
        with pytest.raises(api.ConnectionLost):
            wire.send(bytes(1 << 24), None)
        wire.close()


def test_an_event_whose_lines_come_in_parts():
    events = api._http.Events(100)
    assert [event.data for piece in (b"data: a\r", b"\n", b"\n", b"data: b\n\r", b"\n") for event in events.feed(piece)] == ["a", "b"]


def test_a_stream_that_is_refused_is_closed():
    for case in ("no-json", "no-data", "no-command"):
        with sdk.Server(sdk.HOSTILE_EVENTS[case][0]) as server:
            client = hostile_client(server)
            stream = client.execute_stream("shell", "true")
            with pytest.raises(api.AnswerError):
                next(stream)
            assert stream._answer._wire._sock.fileno() == -1
            box = api.Sandbox(client)._is(types.SimpleNamespace(id="one"), False)
            stream = api.Command(box, types.SimpleNamespace(exec_id="two")).stream()
            sock = stream._stream._answer._wire._sock
            with pytest.raises(api.AnswerError):
                next(stream)
            assert sock.fileno() == -1
