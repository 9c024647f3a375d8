"""Requests that two programs read differently (request smuggling): what is not plainly one request of known length is refused, and nothing that
follows it on the connection is answered."""
import contextlib
import re
import socket
import ssl
import subprocess

import pytest

from helpers import requirement
from helpers.daemon import Daemon

pytestmark = requirement("R61", "R67")

GET, POST, HOST = b"GET /v1/health HTTP/1.1\r\n", b"POST /v1/health HTTP/1.1\r\n", b"Host: localhost\r\n"
NEXT = b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
CHUNKED = GET + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
# what is sent, and the status that answers it; None: the connection ends
BAD = {
    "length and coding": (POST + HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "coding and length": (POST + HOST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400),
    "two lengths": (GET + HOST + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n", 400),
    "two equal lengths": (GET + HOST + b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n", 400),
    "a list of lengths": (GET + HOST + b"Content-Length: 0, 0\r\n\r\n", 400),
    "a sign": (GET + HOST + b"Content-Length: +0\r\n\r\n", 400),
    "hexadecimal": (GET + HOST + b"Content-Length: 0x0\r\n\r\n", 400),
    "a tab": (GET + HOST + b"Content-Length:\t0\r\n\r\n", 400),
    "a blank before the colon": (GET + HOST + b"Content-Length : 0\r\n\r\n", 400),
    "lines that end with LF": (b"GET /v1/health HTTP/1.1\nHost: localhost\n\n", 400),
    "one that does": (GET + HOST + b"X: a\nContent-Length: 5\r\n\r\n", 400),
    "the last one that does": (GET + HOST + b"X: a\r\n\n", 400),
    "CR alone": (GET + HOST + b"X: a\rY: b\r\n\r\n", 400),
    "NUL in a value": (GET + HOST + b"X: a\0b\r\n\r\n", 400),
    "NUL in a name": (GET + HOST + b"X\0: a\r\n\r\n", 400),
    "NUL in a length": (GET + HOST + b"Content-Length: 0\x005\r\n\r\n", 400),
    "a folded line": (GET + HOST + b"X: a\r\n b\r\n\r\n", 400),
    "a blank before the first field": (GET + b" X: y\r\n" + HOST + b"\r\n", 400),
    "a blank before the end": (GET + HOST + b" \r\n\r\n", 400),
    "no colon": (GET + HOST + b"Xyz\r\n\r\n", 400),
    "no name": (GET + HOST + b": x\r\n\r\n", 400),
    "another coding": (POST + HOST + b"Transfer-Encoding: gzip\r\n\r\n", 501),
    "another coding before": (POST + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    "a coding that is nearly one": (POST + HOST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
    "two codings": (POST + HOST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", 501),
    "identity": (POST + HOST + b"Transfer-Encoding: identity\r\nContent-Length: 0\r\n\r\n", 501),
    "a coding in HTTP/1.0": (b"POST /v1/health HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "length as an option": (GET + HOST + b"Connection: content-length\r\nContent-Length: 0\r\n\r\n", 400),
    "two hosts": (GET + HOST + HOST + b"\r\n", 400),
    "no host": (GET + b"\r\n", 400),
    "another version": (b"GET /v1/health HTTP/1.9\r\n" + HOST + b"\r\n", 505),
    "tabs": (b"GET\t/v1/health\tHTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "two blanks": (b"GET  /v1/health HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "no version": (b"GET /v1/health\r\n\r\n", 505),
    "an empty line first": (b"\r\n" + GET + HOST + b"\r\n", 400),
    "a chunk's line that ends with LF": (CHUNKED + b"0\n\r\n", None),
    "the last line that does": (CHUNKED + b"0\r\n\n", None),
    "a chunk of 0x0": (CHUNKED + b"0x0\r\n\r\n", None),
    "an extension": (CHUNKED + b"0;a=b\r\n\r\n", None),
    "a chunk that is longer": (CHUNKED + b"1\r\nabc\r\n0\r\n\r\n", None),
    "a length behind the body": (CHUNKED + b"0\r\nContent-Length: 9\r\n\r\n", None),
    "what would be another protocol": (GET + HOST + b"Connection: upgrade\r\nUpgrade: x\r\n\r\n" + GET + b"X: a\n" + HOST + b"\r\n", 400),
}
GOOD = {
    "plain": GET + HOST + b"\r\n",
    "with a length": GET + HOST + b"Content-Length: 2\r\n\r\n{}",
    "with chunks": CHUNKED + b"1\r\n{\r\n01\r\n}\r\n0\r\nX: y\r\n\r\n",
    "with any Host": GET + b"Host: %2Frun%2Fsocket\r\n\r\n",        # some clients of unix sockets say so
    "with no Host in HTTP/1.0": b"GET /v1/health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "as curl tries HTTP/2": GET + HOST + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n",
}


class Ways:
    def __init__(self, cloche, way):
        self.path = cloche.home / "s"
        flags = ["--listen", f"unix:{self.path}"]
        self.context = None
        if way != "unix":
            flags += ["--listen", "tcp:127.0.0.1:0"]
        if way == "tls":
            cert, key = cloche.home / "c.pem", cloche.home / "k.pem"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out",
                            cert, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
            key.chmod(0o600)
            flags += ["--tls-cert", str(cert), "--tls-key", str(key)]
            self.context = ssl.create_default_context(cafile=str(cert))
        self.daemon = Daemon(cloche, *flags, path=self.path)

    def dial(self):
        if not self.daemon.addresses():
            s = socket.socket(socket.AF_UNIX)
            s.connect(str(self.path))
        else:
            s = socket.create_connection(self.daemon.addresses()[0])
        if self.context is not None:
            s = self.context.wrap_socket(s, server_hostname="localhost")
        s.settimeout(90)
        return s

    def say(self, text, by=None):
        """The statuses of all answers until the connection ends."""
        got = b""
        with contextlib.suppress(ConnectionError, ssl.SSLError), contextlib.closing(self.dial()) as s:
            for at in range(0, len(text), by or len(text)):
                s.sendall(text[at:at + (by or len(text))])
            while piece := s.recv(65536):
                got += piece
        return [int(code) for code in re.findall(rb"HTTP/1\.[01] (\d\d\d) ", got)]


@pytest.fixture(params=["unix", "tcp", "tls"])
def ways(cloche, request):
    made = Ways(cloche, request.param)
    fronts = made.daemon.processes("cloche-front")
    yield made
    assert made.daemon.processes("cloche-front") == fronts and made.daemon.stop() == 0


def test_it_is_refused_and_nothing_follows(ways):
    for name, (text, status) in BAD.items():
        expected = [status] if status else []
        if name == "what would be another protocol":
            expected = [200, 400]
        assert ways.say(text + NEXT) == expected, name
        # behind one that is well, in the same packet, which is answered
        answered = ways.say(GET + HOST + b"\r\n" + text + NEXT)
        assert answered in ([], [200]) if status is None else answered == [200, *expected], (name, answered)


def test_however_it_is_cut(ways):
    for by in (1, 7):
        for name, (text, _) in BAD.items():
            answered = ways.say(text + NEXT, by)
            # the front may have closed before all was sent, and then its answer is lost
            assert set(answered) <= {200, 400, 501, 505} and len(answered) <= 2, (name, answered)
            assert 200 not in answered or name == "what would be another protocol", (name, answered)


def test_what_is_well_goes_through(ways):
    for name, text in GOOD.items():
        if name == "with any Host" and ways.daemon.addresses():
            assert ways.say(text + NEXT) == [403]
            continue
        if name == "with no Host in HTTP/1.0" and ways.daemon.addresses():
            assert ways.say(text + NEXT) == [403]
            continue
        assert ways.say((text * 3) + NEXT) == [200] * 4, name
        assert ways.say((text * 2) + NEXT, 5) == [200] * 3, name


def test_an_encoded_slash_is_none_in_a_route(ways):
    box = ways.daemon.create(name="one")
    assert box.exec("mkdir folder")["exit_code"] == 0 and box.put("folder/f", b"x").ok
    for path in ("/v1%2fhealth", "/v1/sandboxes%2Fone", "/v1/sandboxes/one%2fexec", "/v1%2Fsandboxes/one/files/folder/f", "/v1/sandboxes/one%2ffiles/f"):
        answer = ways.daemon.get(path)
        assert answer.status == 404 and answer.json["code"] == "http.route", (path, answer)
    assert ways.daemon.get("/v1/sandboxes/one/files/folder%2Ff").body == b"x"      # a path in a sandbox is one part of a route
    assert ways.daemon.get("/v1/sandboxes/one/%66iles/folder%2Ff").body == b"x"
