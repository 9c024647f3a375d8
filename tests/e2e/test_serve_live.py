"""Commands that a client steers while they run: WebSocket, live stdin, terminals, signals."""
import socket
import ssl
import subprocess

import pytest

from helpers import leaks, places, requirement
from helpers.daemon import Daemon
from helpers.runner import wait_for
from helpers.shared import shared
from helpers.websocket import Command, WebSocket

pytestmark = [requirement("R61", "R65"), shared]


def test_output_and_exit(box):
    c = Command(box, ["/bin/sh", "-c", "echo out; echo err >&2; exit 7"])
    end = c.end()
    assert (c.out, c.err, c.code) == (b"out\n", b"err\n", 1000)
    assert end["type"] == "exit" and end["exit_code"] == 7 and end["signal"] is None, end
    assert c.messages[0]["type"] == "started"


def test_stdin_as_it_is_typed(box):
    c = Command(box, "while read -r line; do echo \"got $line\"; done; echo over")
    c.ws.stdin("one\n")
    at = c.until("got one\n")
    c.ws.stdin("two\nthr")
    at = c.until("got two\n", at)
    c.ws.stdin("ee\n")
    c.until("got three\n", at)
    c.stdin_end()
    assert c.end()["exit_code"] == 0 and c.out.endswith(b"over\n")


def test_much_of_everything(box):
    """More than all buffers on the way hold, both ways, and nothing is lost."""
    data = bytes(range(256)) * 8192
    c = Command(box, "cat", timeout_ms=80000)
    sent, total = 0, len(data)
    # what cat prints has to be read for it to read on
    while len(c.out) < min(total, 1048576):     # the policy's limit of output
        while sent < total and sent - len(c.out) < 131072:
            c.ws.stdin(data[sent:sent + 32768])
            sent += 32768
        c.step()
    c.stdin_end()
    end = c.end()
    assert end["exit_code"] == 0 and end["stdout_truncated"] and c.out == data[:1048576], (end, len(c.out))


def test_a_message_in_pieces(box):
    c = Command(box, "cat")
    c.ws.frame(2, b"", fin=False)
    c.ws.frame(0, b"\0he", fin=False)
    c.ws.frame(9, b"ping between")
    c.ws.frame(0, b"llo\n")
    c.until("hello\n")
    c.stdin_end()
    assert c.end()["exit_code"] == 0 and c.pongs == [b"ping between"]


def test_signals(box):
    c = Command(box, ["/bin/bash", "-c", "trap 'echo usr1' USR1; trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done"])
    at = c.until("ready\n")
    c.signal("USR1")
    c.until("usr1\n", at)
    c.signal("SIGTERM")
    assert c.end()["exit_code"] == 9
    c = Command(box, "sleep 1000")
    c.signal(9)
    end = c.end()
    assert end["signal"] == 9 and end["exit_code"] is None, end


def test_a_terminal(box):
    """A shell as a person has it: prompt, size, Ctrl-C as a byte and as a signal, end of input."""
    c = Command(box, ["/bin/bash", "--norc", "--noprofile", "-i"], pty={"rows": 30, "cols": 90}, env={"PS1": "> "}, timeout_ms=80000)
    at = c.until("> ")
    c.ws.stdin("tty; stty size; echo $TERM\n")
    at = c.until("xterm-256color\r\n", at)
    assert b"/dev/pts/" in c.out and b"30 90" in c.out, c.out
    c.resize(40, 100)
    c.ws.stdin("stty size\n")
    at = c.until("40 100\r\n", at)
    # what is typed is echoed too: only what runs says "begun"
    c.ws.stdin("sh -c 'echo be\"\"gun; exec sleep 1000'\n")
    at = c.until("begun\r\n", at)
    c.ws.stdin("\x03")
    at = c.until("^C", at)
    at = c.until("> ", at)
    c.ws.stdin("sh -c 'echo be\"\"gun; exec cat'\n")
    at = c.until("begun\r\n", at)
    c.ws.stdin("live?\n")
    at = c.until("live?\r\nlive?\r\n", at)
    c.signal("INT")
    at = c.until("> ", at)
    c.ws.stdin("exit 5\n")
    end = c.end()
    assert end["exit_code"] == 5 and c.err == b"", end


def test_a_window_that_changes_is_told(box):
    code = """
import os, signal
signal.signal(signal.SIGWINCH, lambda *a: os.write(1, b"size %d %d\\n" % os.get_terminal_size(0)))
os.write(1, b"ready\\n")
while line := os.read(0, 100): os.write(1, line.strip()[::-1] + b"\\n")
"""
    c = Command(box, [places.PYTHON, "-I", "-S", "-c", code], pty={"rows": 24, "cols": 80})
    at = c.until("ready\r\n")
    c.resize(50, 132)
    at = c.until("size 132 50\r\n", at)
    c.ws.stdin("abc\n")
    at = c.until("cba\r\n", at)
    c.stdin_end()
    assert c.end()["exit_code"] == 0


def test_a_client_that_goes_takes_its_command_along(box):
    for pty in (False, {"rows": 24, "cols": 80}):
        c = Command(box, ["/bin/bash", "-c", "trap '' HUP TERM INT; echo ready; sleep 4321 & wait; sleep 4322"], pty=pty)
        c.until("ready")
        c.ws.close()
        assert wait_for(lambda: box.exec("grep -l '^bash' /proc/[0-9]*/comm | grep -v self; true")["stdout"] == "")
    assert box.exec("true")["exit_code"] == 0


def test_no_such_command(box):
    c = Command(box, ["no-such-thing"])
    assert c.end()["exit_code"] == 127 and b"no-such-thing" in c.err


@pytest.mark.parametrize("start", [b"", b"[]", b"{", b"{}", b'{"command": []}', b'{"command": "true", "stdin": "x"}',
                                   b'{"command": "true", "pty": true}', b'{"command": "true", "pty": {"rows": 0, "cols": 1}}',
                                   b'{"command": "true", "pty": {"rows": 5000, "cols": 1}}', b"\xff\xfe", b'{"command": "\\u0000"}'])
def test_malformed_starts_run_nothing(box, start):
    c = Command.begun_by(box, start)
    end = c.end()
    assert end["type"] == "error" and end["code"] in ("http.json", "exec.request") and c.code == 1008, end


def test_what_is_no_websocket(daemon, box):
    answer = daemon.get(f"{box.at}/exec/ws")
    assert answer.status == 426 and answer.headers["Sec-WebSocket-Version"] == "13", answer
    assert answer.json["code"] == "http.websocket"
    for headers in ({"Upgrade": "websocket", "Connection": "upgrade", "Sec-WebSocket-Version": "12"},
                    {"Upgrade": "websocket", "Connection": "upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "x"}):
        answer = daemon("GET", f"{box.at}/exec/ws", headers=headers)
        assert answer.status in (400, 426) and answer.json["code"] == "http.websocket", answer
    assert WebSocket(daemon.path, "/v1/sandboxes/none/exec/ws").status == 404
    box.delete()
    assert WebSocket(daemon.path, f"{box.at}/exec/ws").status == 409


CLIENT = r"""
import asyncio, json, sys
import websockets

async def main():
    async with websockets.unix_connect(sys.argv[1], "ws://localhost" + sys.argv[2]) as ws:
        await ws.send(json.dumps({"command": "read -r line; echo got $line; exit 3"}))
        assert json.loads(await ws.recv())["type"] == "started"
        await ws.ping()
        await ws.send(b"\0hello\n")
        out = b""
        async for message in ws:
            if isinstance(message, bytes):
                assert message[0] == 1
                out += message[1:]
            else:
                end = json.loads(message)
        print(out, end["type"], end["exit_code"], ws.close_code)

asyncio.run(main())
"""


def test_with_a_librarys_client(cloche, daemon, box):
    result = cloche.run([places.PYTHON, "-c", CLIENT, str(daemon.path), f"{box.at}/exec/ws"])
    assert result.ok and result.out == "b'got hello\\n' exit 3 1000\n", result


@pytest.mark.parametrize("tls", [False, True])
def test_over_tcp(cloche, tls):
    """With a token, in the clear and under TLS, where the library passes the bytes on."""
    flags, context = [], None
    if tls:
        cert, key = cloche.home / "c.pem", cloche.home / "c.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key,
                        "-out", cert, "-days", "2", "-subj", "/CN=box", "-addext", "subjectAltName=IP:127.0.0.1"],
                       check=True, capture_output=True)
        key.chmod(0o600)
        flags = ["--tls-cert", str(cert), "--tls-key", str(key)]
        context = ssl.create_default_context(cafile=str(cert))
    daemon = Daemon(cloche, *flags, path=cloche.home / "s", tcp=True)
    box = daemon.create()

    def connect(*headers):
        s = socket.create_connection(daemon.addresses()[0])
        return WebSocket(context.wrap_socket(s, server_hostname="127.0.0.1") if tls else s, f"{box.at}/exec/ws", headers=headers)
    assert connect().status == 401
    data = bytes(range(256)) * 1024
    c = Command.over(connect(f"Authorization: Bearer {daemon.token()}"), "head -c 262144; exit 6")
    for at in range(0, len(data), 16384):
        c.ws.stdin(data[at:at + 16384])
    assert c.end()["exit_code"] == 6 and c.out == data
    assert daemon.stop() == 0, daemon.log


def test_the_daemon_stops_under_a_live_command(cloche):
    daemon = Daemon(cloche)
    c = Command(daemon.create(), "echo ready; sleep 1000")
    c.until("ready\n")
    assert daemon.stop() == 0, daemon.log
    c.end()
    assert not leaks.descendants(daemon.process.pid)
