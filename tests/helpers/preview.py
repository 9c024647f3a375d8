"""Servers in sandboxes, and clients that reach them by the address of their preview."""
import base64
import hashlib
import json
import os
import socket

from helpers.daemon import HANG_GUARD
from helpers.runner import wait_for

# Says what its path asks for: /echo what came, /say/FILE the bytes of that file and then the end, /hold/FILE the same
# and then nothing more, /sse events as long as somebody listens, /ws echoes what comes after a handshake; /late waits
# for a file `go`; /mirror sends a body back while it comes.
SERVER = r'''
import base64, hashlib, json, os, socket, sys, threading, time

def head_of(c):
    data = b""
    while b"\r\n\r\n" not in data:
        more = c.recv(65536)
        if not more:
            return None, data
        data += more
    head, rest = data.split(b"\r\n\r\n", 1)
    return head, rest

def pieces(c, head, rest):
    """The body, piece by piece."""
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    if fields.get(b"transfer-encoding") == b"chunked":
        while True:
            while b"\r\n" not in rest:
                more = c.recv(65536)
                if not more:
                    return
                rest += more
            size, rest = rest.split(b"\r\n", 1)
            size = int(size, 16)
            while len(rest) < size + 2:
                more = c.recv(65536)
                if not more:
                    return
                rest += more
            if size == 0:
                return
            yield rest[:size]
            rest = rest[size + 2:]
    left = int(fields.get(b"content-length", b"0"))
    while left > 0:
        if not rest:
            rest = c.recv(65536)
            if not rest:
                return
        yield rest[:left]
        left -= len(rest)
        rest = b""

def answer(c, status, body, *fields):
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields, "", ""]
    c.sendall("\r\n".join(lines).encode() + body)

def handle(c):
    head, rest = head_of(c)
    if head is None:
        open("odd", "ab").write(rest + b"\n")
        return
    open("seen", "ab").write(head + b"\r\n\r\n")
    path = head.split(b" ")[1].decode().split("?")[0]
    if path.startswith("/say/") or path.startswith("/hold/"):
        c.sendall(open(path.split("/")[2], "rb").read())
        if path.startswith("/hold/"):
            c.recv(1)
            open("hold-ended", "a").write("x")
    elif path == "/sse":
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        n = 0
        while True:
            c.sendall(b"data: %d\n\n" % n)
            n += 1
            time.sleep(0.05)
    elif path == "/ws":
        key = [line.split(b": ", 1)[1] for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key")][0]
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        c.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept +
                  b"\r\nSec-WebSocket-Protocol: chat\r\n\r\n" + b"hello")
        while True:
            more = c.recv(65536)
            if not more:
                open("ws-ended", "w").close()
                return
            c.sendall(more)
    elif path == "/late":
        while not os.path.exists("go"):
            time.sleep(0.02)
        answer(c, "200 OK", b"late")
    elif path == "/deaf":
        while not os.path.exists("go"):
            time.sleep(0.02)
        body = b"".join(pieces(c, head, rest))
        answer(c, "200 OK", hashlib.sha256(body).hexdigest().encode())
    elif path == "/mirror":
        c.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in pieces(c, head, rest):
            c.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
        c.sendall(b"0\r\n\r\n")
    elif path == "/much":
        n = int(head.split(b" ")[1].split(b"?")[1])
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % n)
        block = bytes(range(256)) * 256
        sent = 0
        while sent < n:
            c.sendall(block[:n - sent])
            sent += min(len(block), n - sent)
            open("sent", "w").write(str(sent))
    else:
        h, n = hashlib.sha256(), 0
        for piece in pieces(c, head, rest):
            h.update(piece)
            n += len(piece)
        answer(c, "200 OK", json.dumps({"head": head.decode("latin-1"), "n": n, "sha256": h.hexdigest()}).encode(),
               "Content-Type: application/json")

def run(c):
    try:
        handle(c)
    except OSError as e:
        pass
    finally:
        c.close()

six = len(sys.argv) > 2
s = socket.socket(socket.AF_INET6 if six else socket.AF_INET)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("::1" if six else "127.0.0.1", int(sys.argv[1])))
s.listen(64)
open("ready-" + sys.argv[1], "w").close()
while True:
    c, _ = s.accept()
    threading.Thread(target=run, args=(c,), daemon=True).start()
'''


def serve(box, port=8000, six=False, code=SERVER):
    """That server, running in the sandbox; when it listens."""
    assert box.put("server.py", code.encode()).ok
    done = box.exec(f"setsid python3 server.py {port} {'six' if six else ''} >log 2>&1 </dev/null &")
    assert done["exit_code"] == 0, done
    wait_for(lambda: box.read(f"ready-{port}").ok, 60)


def expose(box, port=8000, **members):
    made = box.daemon.post(f"{box.at}/ports", {"port": port, **members})
    assert made.status == 201, made
    return made.json


def read_head(sock):
    """The head of an answer, byte by byte, so that nothing behind it is taken: its status line, and its fields in lower case."""
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        byte = sock.recv(1)
        if not byte:
            raise EOFError(data)
        data += byte
    lines = data[:-4].decode("latin-1").split("\r\n")
    return lines[0], [(n.lower(), v) for n, v in (line.split(": ", 1) for line in lines[1:] if ": " in line)]


def read_exactly(sock, n):
    data = b""
    while len(data) < n:
        more = sock.recv(min(65536, n - len(data)))
        if not more:
            raise EOFError(data)
        data += more
    return data


def raw(daemon):
    """A connection to the daemon that says what it is told."""
    c = daemon.connection()
    c.connect()
    c.sock.settimeout(HANG_GUARD)
    return c.sock


def handshake(path, *fields):
    key = base64.b64encode(os.urandom(16))
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
             f"Sec-WebSocket-Key: {key.decode()}", *fields, "", ""]
    return "\r\n".join(lines).encode()


def echo(answer):
    """What /echo says that came: the request line, and the fields in lower case."""
    assert answer.status == 200, answer
    lines = json.loads(answer.body)["head"].split("\r\n")
    return lines[0], {n.lower(): v for n, v in (line.split(": ", 1) for line in lines[1:])}


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def end_of(sock):
    """What comes until the connection is over, however that is."""
    data = b""
    while True:
        try:
            more = sock.recv(65536)
        except (ConnectionResetError, socket.timeout):
            return data
        if not more:
            return data
        data += more
