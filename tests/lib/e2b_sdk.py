"""E2B's own client library, driven for test_e2b_sdk.py: what each call answers, a line of JSON each. Everything about where it goes is in the environment."""
import json
import traceback

from e2b import (CommandExitException, FileNotFoundException, PtySize, Sandbox as Plain, SandboxException, SandboxNotFoundException, SandboxQuery,
                 TimeoutException)
from e2b_code_interpreter import Sandbox


def said(name, value):
    print(json.dumps([name, value]), flush=True)


def raised(kind, call):
    try:
        call()
    except kind as e:
        return [type(e).__name__, str(e)[:300]]
    return None


def commands(box):
    done = box.commands.run("echo out; echo err >&2")
    said("run", [done.stdout, done.stderr, done.exit_code])
    heard = []
    box.commands.run("echo a; echo b >&2", on_stdout=lambda text: heard.append(["out", text]), on_stderr=lambda text: heard.append(["err", text]))
    said("callbacks", sorted(heard))
    said("env and cwd", box.commands.run("echo $WORD; pwd", envs={"WORD": "a b"}, cwd="/").stdout)
    try:
        box.commands.run("echo no >&2; exit 7")
    except CommandExitException as e:
        said("exit", [e.exit_code, e.stderr])
    said("signal", raised(CommandExitException, lambda: box.commands.run("kill -9 $$")))
    said("timeout", raised(TimeoutException, lambda: box.commands.run("sleep 60", timeout=1)))
    said("large", len(box.commands.run("head -c 3000000 /dev/zero | tr '\\0' x").stdout))
    handle = box.commands.run("read word; echo got $word; cat", background=True, stdin=True)
    said("listed", handle.pid in [p.pid for p in box.commands.list()])
    box.commands.send_stdin(handle.pid, "hello\n")
    box.commands.send_stdin(handle.pid, "more\n")
    box.commands.close_stdin(handle.pid)
    said("background", handle.wait().stdout)
    handle = box.commands.run("echo first; sleep 60", background=True)
    again = box.commands.connect(handle.pid)
    said("killed", [again.kill(), box.commands.kill(handle.pid), box.commands.kill(999999)])
    said("ended", raised(CommandExitException, again.wait))
    seen = []
    terminal = box.pty.create(size=PtySize(rows=24, cols=80))
    box.pty.resize(terminal.pid, PtySize(rows=40, cols=100))
    box.pty.send_stdin(terminal.pid, b"stty size; exit\n")
    terminal.wait(on_pty=seen.append)
    said("terminal", b"40 100" in b"".join(seen))


def files(box):
    info = box.files.write("a/b.txt", "hällo")
    said("write", [info.name, info.path])
    said("read", [box.files.read("a/b.txt"), bytes(box.files.read("/home/user/a/b.txt", format="bytes")).decode(), b"".join(box.files.read("a/b.txt", format="stream")).decode()])
    box.files.write("raw", b"\x00\xff" * 50000)
    said("bytes", bytes(box.files.read("raw", format="bytes")) == b"\x00\xff" * 50000)
    box.files.write("empty", "")
    said("empty", box.files.read("empty"))
    box.files.write_files([{"path": "m/1", "data": "one"}, {"path": "m/2 \"q\"", "data": b"two"}])
    said("several", [box.files.read("m/1"), box.files.read("m/2 \"q\"")])
    box.files.write("octets", b"--x\r\n", use_octet_stream=True)
    said("octets", box.files.read("octets"))
    said("list", sorted([e.name, e.type.value, e.path, e.size] for e in box.files.list("m")))
    said("deep", sorted(e.path for e in box.files.list("/workspace", depth=2) if "/m" in e.path or "/a" in e.path))
    said("exists", [box.files.exists("m/1"), box.files.exists("m/none")])
    said("make_dir", [box.files.make_dir("new/dir"), box.files.make_dir("new/dir")])
    info = box.files.get_info("m/1")
    said("get_info", [info.name, info.type.value, info.size, info.path, info.permissions])
    said("rename", [box.files.rename("m/1", "other/one").path, box.files.exists("m/1"), box.files.read("other/one")])
    box.files.remove("other")
    said("remove", box.files.exists("other"))
    said("no file", [raised(FileNotFoundException, lambda: box.files.read("none")), raised(FileNotFoundException, lambda: box.files.get_info("none")),
                     raised(FileNotFoundException, lambda: box.files.rename("none", "x")), raised(FileNotFoundException, lambda: box.files.remove("none"))])
    said("outside", raised(Exception, lambda: box.files.read("/etc/hostname")))
    said("metadata", raised(Exception, lambda: box.files.write("x", "y", metadata={"a": "b"})))
    said("watch", raised(SandboxException, lambda: box.files.watch_dir(".")))
    said("gzip", raised(SandboxException, lambda: box.files.write("x", "y" * 1000, gzip=True)))


def code(box):
    ran = box.run_code("x = 6\nprint('hi')\nx * 7")
    said("code", [ran.text, ran.logs.stdout, ran.error is None, ran.results[0].is_main_result])
    said("kept", box.run_code("x + 1").text)
    ran = box.run_code("1/0")
    said("error", [ran.error.name, ran.error.value, "ZeroDivisionError" in ran.error.traceback])
    heard = []
    box.run_code("import sys\nprint('a')\nprint('b', file=sys.stderr)", on_stdout=lambda m: heard.append(m.line), on_stderr=lambda m: heard.append(m.line))
    said("streamed", sorted(heard))
    context = box.create_code_context()
    said("own", [box.run_code("x", context=context).error.name, context.language])
    said("contexts", context.id in [c.id for c in box.list_code_contexts()])
    box.run_code("y = 1", context=context)
    box.restart_code_context(context)
    said("restarted", box.run_code("y", context=context).error.name)
    box.remove_code_context(context)
    said("removed", context.id in [c.id for c in box.list_code_contexts()])
    said("gone", raised(Exception, lambda: box.run_code("1", context=context)))
    said("bash", box.run_code("echo $((40 + 2))", language="bash").logs.stdout)
    said("no language", raised(Exception, lambda: box.run_code("1", language="cobol")))


def lives(box):
    said("is_running", box.is_running())
    info = box.get_info()
    said("info", [info.sandbox_id == box.sandbox_id, info.metadata, info.state.value, info.template_id])
    before = info.end_at
    box.set_timeout(3000)
    said("set_timeout", round((box.get_info().end_at - before).total_seconds()) > 2000)
    pages = Sandbox.list(query=SandboxQuery(metadata={"who": "sdk"}), limit=1)
    found = []
    while pages.has_next:
        found += [b.sandbox_id for b in pages.next_items()]
    said("list sandboxes", found == [box.sandbox_id])
    other = Sandbox.connect(box.sandbox_id)
    said("connect", [other.commands.run("echo other").stdout, box.commands.run("echo still").stdout, other.run_code("x").text])
    said("pause", [box.pause(), box.get_info().state.value, box.is_running()])
    said("resume", [Sandbox.connect(box.sandbox_id).commands.run("echo awake").stdout, box.is_running()])
    said("snapshots", raised(SandboxException, box.create_snapshot))
    said("metrics", raised(SandboxException, box.get_metrics))
    said("unknown", raised(SandboxNotFoundException, lambda: Sandbox.connect("0" * 32)))
    said("no template", raised(Exception, lambda: Plain.create("no-such-template")))
    said("not offered", raised(Exception, lambda: Plain.create(mcp={"exa": {}})))
    said("kill", [box.kill(), box.kill(), box.is_running()])
    said("killed sandbox", raised(Exception, lambda: box.commands.run("true")))


def main():
    box = Sandbox.create(timeout=600, metadata={"who": "sdk"}, envs={"FROM_CREATE": "yes"}, allow_internet_access=False)
    said("created", box.sandbox_id)
    for part in (commands, files, code, lives):
        try:
            said("envs", box.commands.run("echo $FROM_CREATE").stdout)
            part(box)
        except Exception:       # pylint: disable=broad-exception-caught
            said(f"failed {part.__name__}", traceback.format_exc()[-2000:])


main()
