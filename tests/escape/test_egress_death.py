"""cloche-egress killed while something passes: what passed is cut, nothing opens, and all of it is said.

A cut must look like one. Where a protocol has lengths its programs notice by themselves; where the end of the connection is
the end of the data (a tunnel, an answer without a length), only an error tells a part from the whole.
"""
import os
import signal
import subprocess

import pytest

from helpers import leaks, requirement
from helpers.internet import DNS4, PRELUDE
from helpers.obedient import kill_egress
from helpers.runner import wait_for
from helpers.scripted import OK, Scripted, read_head

pytestmark = [requirement("R13", "R14", "R28", "R91"), pytest.mark.root]
SIZE = 1 << 40          # of what never ends

# What a client sees of a transfer. `cut` is the only answer that is right when it was cut.
CLIENT = """
import http.client, threading
seen = 0
def end_of(s):
    global seen
    try:
        while d := s.recv(1 << 16): seen += len(d)
        return 'clean'
    except OSError as e: return 'cut'
def end_of_upload(s):
    global seen
    try:
        while True: seen += s.send(bytes(1 << 16))
    except OSError as e: return 'cut'
def through_proxy(version='1.1', how='GET', more=''):
    s = dial(*P, 60)
    s.sendall(f'{how} http://ok.example.org:%(port)d/x HTTP/{version}\\r\\nHost: ok.example.org:%(port)d\\r\\n{more}\\r\\n'.encode())
    return s
def tunnel(): return connect('ok.example.org:%(port)d', seconds=60)[0]
def by_socks(): return socks(3, b'\\x0eok.example.org', port=%(port)d)[0]
def straight(): return dial(socket.gethostbyname('ok.example.org'), %(port)d, 60)
def said(s, what=b'DOWN'): s.sendall(what + b'\\r\\n\\r\\n'); return s
def read_with_http(s):
    global seen
    answer = http.client.HTTPResponse(s); answer.begin()
    try:
        while d := answer.read(1 << 16): seen += len(d)
        return 'cut' if answer.length else 'clean'
    except (OSError, http.client.HTTPException): return 'cut'
def start(f):
    def run(): print(f(), flush=True)
    threading.Thread(target=run).start()
    while seen < 1 << 18: time.sleep(.01)
    print('passing', flush=True)
    sys.stdin.readline()
"""
TRANSFERS = {
    "download, tunnel": "lambda: end_of(said(tunnel()))",
    "download, SOCKS": "lambda: end_of(said(by_socks()))",
    "download, its own port": "lambda: end_of(said(straight()))",
    "upload, tunnel": "lambda: end_of_upload(said(tunnel(), b'UP'))",
    "upload, SOCKS": "lambda: end_of_upload(said(by_socks(), b'UP'))",
    "download, known length": "lambda: read_with_http(through_proxy(more='X-How: length\\r\\n'))",
    "download, chunked": "lambda: read_with_http(through_proxy(more='X-How: chunked\\r\\n'))",
    "download, no length": "lambda: read_with_http(through_proxy(more='X-How: end\\r\\n'))",
    "download, no length, HTTP/1.0": "lambda: end_of(through_proxy('1.0', more='X-How: end\\r\\n'))",
    "download, chunked, HTTP/1.0": "lambda: end_of(through_proxy('1.0', more='X-How: chunked\\r\\n'))",
    "upload, known length": f"lambda: end_of_upload(through_proxy(how='POST', more='Content-Length: {SIZE}\\r\\n'))",
}
AFTER = """
for where in (P, S, ('93.184.216.34', 80), ('10.0.0.5', 80), (socket.gethostbyname('ok.example.org'), %(port)d)):
    try: print(talk(where, get('evil.example.org', 'http://evil.example.org/', CLOSE), 60)[:12])
    except OSError as e: print(errno.errorcode.get(e.errno, type(e).__name__))
print(talk(P, get('ok.example.org', 'http://ok.example.org/again', CLOSE), 60).split(b'\\r\\n')[0].decode(), flush=True)
sys.stdin.readline()
"""


def endless(connection, _, kept):
    """Sends without an end, or takes what is sent; keeps how that ended."""
    head = read_head(connection)
    kept.append(head)
    connection.settimeout(60)
    try:
        if b"UP" in head or b"POST" in head:
            while connection.recv(1 << 16):
                pass
            kept.append(b"cut" if b"POST" in head else b"clean")        # a length says so
            return
        more = {b"length": b"Content-Length: %d\r\n" % SIZE, b"chunked": b"Transfer-Encoding: chunked\r\n", b"end": b""}
        how = next((w for w in more if b"X-How: " + w in head), None)
        if how is not None:
            connection.sendall(b"HTTP/1.1 200 OK\r\n" + more[how] + b"\r\n")
        while True:
            connection.sendall(b"10000\r\n" + bytes(1 << 16) + b"\r\n" if how == b"chunked" else bytes(1 << 16))
    except OSError:
        kept.append(b"cut")


@pytest.mark.parametrize("transfer", TRANSFERS)
def test_a_transfer_is_cut_and_nothing_opens(online, transfer):
    server = Scripted(online.net, endless)
    code = PRELUDE + (CLIENT + f"start({TRANSFERS[transfer]})" + AFTER).replace("%(port)d", str(server.port))
    process = online.popen(["/usr/bin/python3", "-I", "-S", "-c", code], allow=[OK, *server.allow], stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"passing\n", process.stderr.read()
    # what was only sent, and not yet accepted, is the next one's to pass on, and nothing of it is cut
    assert wait_for(lambda: server.seen and server.seen[0])
    kill_egress([])
    end = process.stdout.readline()
    assert end == b"cut\n", "a part looked like the whole" if end else process.stderr.read()
    process.stdin.write(b"\n")
    process.stdin.flush()
    answers = [process.stdout.readline().decode().strip() for _ in range(6)]
    # a new one answers, with the old rules: refused is refused, and what was open is open
    assert answers[5] == "HTTP/1.1 200 OK" and not any("200" in a or "x00" in a for a in answers[:5]), answers
    assert wait_for(lambda: server.seen and server.seen[0][-1:] == [b"cut"], 60), server.seen
    # (1, resolver): the host's kernel tells it that who asked is dead
    reached = online.net.reached() - {(1, DNS4, 0)}
    assert reached <= {(6, "93.184.216.34", 80), (6, "93.184.216.34", server.port)}, reached
    log = online.bare("net", "log", "--json").json
    assert log["alive"] and log["egress_deaths"] == 1, log
    _, err = process.communicate(b"\n", timeout=60)
    assert b"cloche-egress ended (signal 9)" in err and b"started again" in err, err
    log = online.bare("net", "log", "--json").json
    assert log["ended"] and log["egress_deaths"] == 1, log
    assert {d["host"] for d in log["decisions"] if d["verdict"] == "allow"} == {OK}
    assert any(d["host"] == "evil.example.org" for d in log["decisions"] if d["verdict"] == "deny"), log


def test_nothing_passes_while_it_is_down(online):
    """Stopped, then killed: in the time between nobody answers, and the address in the queue is reached by the new one."""
    server = Scripted(online.net, endless)
    process = online.popen(["/usr/bin/python3", "-I", "-S", "-c", PRELUDE + """
print('up', flush=True); sys.stdin.readline()
s = dial(*P, 60); s.sendall(get('evil.example.org', 'http://evil.example.org/', CLOSE))
t = dial(*P, 60); t.sendall(get('ok.example.org', 'http://ok.example.org/waited', CLOSE))
print('said', flush=True); sys.stdin.readline()
print(drain(s, 60)[:12], drain(t, 60)[:15], flush=True)
"""], allow=[OK, *server.allow], stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n", process.stderr.read()
    (pid,) = wait_for(lambda: leaks.named("cloche-egress"))
    os.kill(pid, signal.SIGSTOP)
    process.stdin.write(b"\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"said\n"
    assert not online.net.reached() and not online.net.asked(), "nobody else opens anything"
    os.kill(pid, signal.SIGKILL)
    process.stdin.write(b"\n")
    process.stdin.flush()
    line = process.stdout.readline().decode()
    process.communicate(timeout=60)
    assert "403" in line.split("'")[1] or "Error" in line, line
    assert "200" in line and {r["path"] for r in online.net.requests} == {"/waited"}, (line, online.net.requests)


def test_what_was_said_last_arrives(online):
    """Through a tunnel and a port by name, by a program that ends the moment it has said it; of 20, none is cut."""
    got = []

    def sink(connection):
        data = bytearray()
        while piece := connection.recv(65536):
            data += piece
        got.append(bytes(data))
    online.net.on_ssh = sink
    said = bytes(range(256)) * 1500
    try:
        result = online.python("""
said = bytes(range(256)) * 1500
made = [dial(socket.gethostbyname('ok.example.org'), 22, 60) for _ in range(10)] + [connect('ok.example.org:22', seconds=60)[0] for _ in range(10)]
for s in made: s.sendall(said)
os.kill(os.getpid(), 9)
""", allow=(f"{OK}:22",))
        assert wait_for(lambda: len(got) == 20), (len(got), result)
    finally:
        online.net.on_ssh = None
    assert [len(data) for data in got] == [len(said)] * 20 and set(got) == {said}
