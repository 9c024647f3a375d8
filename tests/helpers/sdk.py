"""What the tests of the SDKs share: a server that says what it should not, a connection that breaks, and what the description says."""
import re
import socket
import sys
import threading
import time

from helpers.routes import REPO

sys.path.insert(0, str(REPO / "tools"))
sys.path.insert(0, str(REPO / "sdk" / "python" / "src"))

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKS = b"Transfer-Encoding: chunked\r\n\r\n"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + CHUNKS
TOKEN = "cloche_operator_" + "5" * 64


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def endless(first, piece):
    """So much that whoever keeps all of it fails; an end, for a test that fails."""
    yield first
    for _ in range(4096):
        yield piece


def drip(first):
    yield first
    for _ in range(1200):
        time.sleep(0.05)
        yield chunk(b" ")


# name: (what the server says, what the client is to make of it). The client takes 1 MiB, and waits 2 s.
HOSTILE = {
    "no-http": (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "AnswerError"),
    "nothing": (b"", "ConnectionLost"),
    "half-a-head": (OK, "ConnectionLost"),
    "head-without-end": (lambda: endless(OK + b"X: ", b"x" * 65536), "AnswerTooLong"),
    "fields-without-end": (lambda: endless(OK, b"X-A: b\r\n" * 8192), "AnswerTooLong"),
    "interim-without-end": (lambda: endless(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 16), "AnswerError"),
    "folded-field": (OK + b"X: a\r\n b\r\nContent-Length: 2\r\n\r\n{}", "AnswerError"),
    "two-lengths": (OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", "AnswerError"),
    "length-and-chunks": (OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "AnswerError"),
    "length-no-number": (OK + b"Content-Length: +2\r\n\r\n{}", "AnswerError"),
    "large-length": (OK + b"Content-Length: 999999999999\r\n\r\n{}", "AnswerTooLong"),
    "neither-length-nor-chunks": (OK + b"\r\n{}", "AnswerError"),      # whoever cuts it makes another answer of it
    "chunks-without-end": (lambda: endless(OK + CHUNKS, chunk(b"x" * 65536)), "AnswerTooLong"),
    "chunk-of-no-number": (OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n", "AnswerError"),
    "body-cut": (OK + b"Content-Length: 20\r\n\r\n{", "ConnectionLost"),
    "chunks-cut": (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{", "ConnectionLost"),
    "compressed": (OK + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", "AnswerError"),
    "no-json": (OK + b"Content-Length: 2\r\n\r\n{]", "AnswerError"),
    "deep-json": (OK + b"Content-Length: 200000\r\n\r\n" + b"[" * 200000, "AnswerError"),
    "wrong-type": (OK + b"Content-Length: 4\r\n\r\nnull", "AnswerError"),
    "redirect": (b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:%d/\r\nContent-Length: 0\r\n\r\n", "AnswerError"),
    "silence": (lambda: iter([None]), "TimedOut"),
    "drip": (lambda: drip(OK + CHUNKS), "TimedOut"),
    "error-of-no-form": (b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nnope\n", "NotFoundError"),
    "error-without-end": (lambda: endless(b"HTTP/1.1 500 Oops\r\n\r\n", b"x" * 65536), "AnswerTooLong"),
}
# the same for a stream of events of a command
HOSTILE_EVENTS = {
    "event-without-end": (lambda: endless(EVENTS + chunk(b"event: stdout\ndata: "), chunk(b"x" * 65536)), "AnswerTooLong"),
    "data-without-end": (lambda: endless(EVENTS, chunk(b"data: x\n" * 8192)), "AnswerTooLong"),
    "no-json": (EVENTS + chunk(b"event: stdout\ndata: {]\n\n"), "AnswerError"),
    "no-data": (EVENTS + chunk(b"event: stdout\ndata: {}\n\n"), "AnswerError"),
    "no-command": (EVENTS + chunk(b"event: stranger\ndata: {}\n\n"), "AnswerError"),
    "cut": (EVENTS + chunk(b"event: stdout\ndata: {\"data\":\"x\"}\n\n"), "ConnectionLost"),
    "ended-early": (EVENTS + chunk(b"event: stdout\ndata: {\"data\":\"x\"}\n\n") + b"0\r\n\r\n", "ConnectionLost"),
    "no-events": (OK + b"Content-Length: 2\r\n\r\n{}", "AnswerError"),
    "ended": (EVENTS + chunk(b'event: error\ndata: {"error":"the sandbox ended","code":"sandbox.gone","detail":"","request_id":"1"}\n\n'), "SandboxGoneError"),
}


class Listener(threading.Thread):
    """Calls serve() with each client of @listener, from here to the end of `with`."""

    def __init__(self, listener):
        super().__init__(daemon=True)
        self.listener = listener
        self.start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.serve(client)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.listener.shutdown(socket.SHUT_RDWR)     # wakes who accepts
        self.listener.close()


class Server(Listener):
    """A server at 127.0.0.1, or the unix socket @path, that says @says to each client, whatever it is asked; `heard` has what it was asked."""

    def __init__(self, says, path=None):
        self.says, self.heard = says, []
        if path is None:
            listener = socket.create_server(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
            self.url = f"http://127.0.0.1:{self.port}"
        else:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(path))
            listener.listen()
        super().__init__(listener)

    def serve(self, client):
        threading.Thread(target=self.answer, args=(client,), daemon=True).start()

    def answer(self, client):
        with client:
            client.settimeout(30)
            try:
                self.heard.append(client.recv(65536))
                for piece in self.says() if callable(self.says) else [self.says]:
                    if piece is None:       # until the client goes
                        client.recv(1)
                    else:
                        client.sendall(piece)
                client.shutdown(socket.SHUT_WR)
                while client.recv(65536):   # a close with unread bytes would be a reset, which takes the answer with it
                    pass
            except OSError:
                pass


class Relay(Listener):
    """A port that is the daemon's socket. The first @cuts answers break off where the bytes @behind come; or, with `hold`,
    they stop there, and `held` is set."""

    def __init__(self, path, cuts, behind):
        self.path, self.cuts, self.behind = str(path), cuts, behind
        listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.made = 0
        self.hold, self.held = False, threading.Event()
        super().__init__(listener)

    def serve(self, client):
        self.made += 1
        server = socket.socket(socket.AF_UNIX)
        server.connect(self.path)
        threading.Thread(target=self.pump, args=(client, server, False), daemon=True).start()
        threading.Thread(target=self.pump, args=(server, client, self.made <= self.cuts), daemon=True).start()

    def pump(self, source, sink, cut):
        said = b""
        try:
            while data := source.recv(65536):
                said += data if cut else b""
                if cut and self.behind in said and self.hold:
                    self.held.set()
                    return
                if cut and self.behind in said:
                    sink.shutdown(socket.SHUT_RDWR)
                    source.shutdown(socket.SHUT_RDWR)
                    return
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def examples(page, language):
    """The pieces of code of a page, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.M | re.S)
