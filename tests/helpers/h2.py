"""A server of HTTP/2 in the far namespace (h2_server.py), and a client for attacks and tests. Debian's python3-h2."""
import functools
import json
import os
import subprocess
from pathlib import Path

import pytest

from helpers.vaulted import BUNDLE, Vaulted

HOST, PORT = "h2.example.org", 9443
PYTHON = "/usr/bin/python3"

# A client whose every frame is in the test's hand. c.ask() opens a stream, c.wait() reads until those have ended.
CLIENT = f"BUNDLE, HOST = {BUNDLE!r}, {HOST!r}" + r"""
import functools, h2.config, h2.connection, h2.events, h2.exceptions, hpack
@functools.cache
def trusting(alpn):     # a bundle of a hundred certificates is read once
    made = ssl.create_default_context(cafile=BUNDLE); made.set_alpn_protocols(list(alpn)); return made
def frame(kind, flags, stream, data=b''):
    return len(data).to_bytes(3, 'big') + bytes([kind, flags]) + stream.to_bytes(4, 'big') + data
class Client:
    def __init__(self, host=HOST, alpn=('h2', 'http/1.1'), sock=None):
        self.s = trusting(tuple(alpn)).wrap_socket(sock or socket.create_connection((host, 443)), server_hostname=host)
        self.s.settimeout(40)
        self.alpn, self.host, self.got, self.goaway, self.over = self.s.selected_alpn_protocol(), host, {}, None, False
        self.c = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding='latin-1',
            validate_outbound_headers=False, normalize_outbound_headers=False, validate_inbound_headers=False))
        self.h = hpack.Encoder()
        self.c.initiate_connection(); self.send()
    def send(self):
        try: self.s.sendall(self.c.data_to_send())
        except OSError: self.over = True
    def raw(self, data):
        try: self.s.sendall(data)
        except OSError: self.over = True
    def head(self, path='/', more=(), method='GET', authority=None):
        return [(':method', method), (':scheme', 'https'), (':authority', authority or self.host), (':path', path), *more]
    def ask(self, path='/', more=(), method='GET', body=None, end=True, authority=None, trailers=None, head=None):
        n = self.c.get_next_available_stream_id()
        self.got[n] = {'status': 0, 'head': {}, 'body': b'', 'trailers': {}, 'reset': None, 'ended': False}
        self.c.send_headers(n, head or self.head(path, more, method, authority), end_stream=end and body is None)
        if body is not None: self.c.send_data(n, body, end_stream=end and not trailers)
        if trailers: self.c.send_headers(n, trailers, end_stream=True)
        self.send(); return n
    def take(self, event):
        kind, g = type(event).__name__, self.got.get(getattr(event, 'stream_id', None))
        if kind == 'ConnectionTerminated': self.goaway = int(event.error_code)
        if g is None: return
        if kind == 'InformationalResponseReceived': g.setdefault('early', []).append(dict(event.headers))
        if kind == 'ResponseReceived': g['head'] = dict(event.headers); g['status'] = int(g['head'][':status'])
        if kind == 'DataReceived':
            g['body'] += event.data
            if event.flow_controlled_length and not self.over:
                self.c.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        if kind == 'TrailersReceived': g['trailers'] = dict(event.headers)
        if kind == 'StreamEnded': g['ended'] = True
        if kind == 'StreamReset': g['reset'] = int(event.error_code)
    def step(self):
        try: data = self.s.recv(65536)
        except TimeoutError: raise
        except OSError: data = b''
        if not data: self.over = True; return
        try:
            for event in self.c.receive_data(data): self.take(event)
        except h2.exceptions.ProtocolError: self.over = True
        self.send()
    def wait(self, *streams, done=None):
        done = done or (lambda: all(self.got[n]['ended'] or self.got[n]['reset'] is not None for n in streams))
        while not done() and not self.over: self.step()
        return [self.got[n] for n in streams]
    def to_end(self):
        while not self.over: self.step()
    def get(self, path='/', more=(), **kw): return self.wait(self.ask(path, more, **kw))[0]
    def brief(self, g): return g['status'] or 'reset %s' % g['reset']
"""


class Far:
    """A server at @host in the far namespace: what it was asked, and what happened to it."""

    def __init__(self, net, command, log, program="h2_server.py", host=HOST, port=PORT):
        self.net, self.log, self.host = net, Path(log), host
        self.log.write_text("", encoding="utf-8")
        self.process = command.start(
            ["nsenter", f"--net=/proc/{os.getpid()}/fd/{net.far}", PYTHON, "-I", Path(__file__).with_name(program),
             str(port), net.root / "site.pem", net.root / "site.key", self.log], cwd="/", stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL)
        assert self.process.stdout.readline() == b"ready\n", f"{program} did not start"
        net.behind[host.encode()] = port

    def lines(self):
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").split("\n")[:-1]]

    def events(self, kind):
        return [e for e in self.lines() if e["event"] == kind]

    @property
    def requests(self):
        return self.events("request")

    def paths(self):
        return [r["path"] for r in self.requests]

    def finish(self):
        self.net.behind.pop(self.host.encode(), None)
        self.process.terminate()
        self.process.wait(60)


def field(request, name):
    return [v for k, v in request["headers"] if k == name]


class H2(Vaulted):
    """Runs whose connections to HOST are opened, because a secret is bound to it."""

    def __init__(self, online, store, far):
        super().__init__(online, store)
        self.far = far

    def client(self, code, allow=(HOST,), **kw):
        return self.python(CLIENT + code, allow=allow, **kw)


@functools.lru_cache(maxsize=None)
def has(modules):
    words = [PYTHON, "-I", "-c", "import " + ", ".join(modules)]
    return subprocess.run(words, check=False, stderr=subprocess.DEVNULL).returncode == 0


def needs(*modules):
    if not has(modules):
        pytest.skip(f"{PYTHON} has not all of {', '.join(modules)}")


def start(online, command, tmp_path):
    needs("h2", "hpack")
    return H2(online, tmp_path, Far(online.net, command, tmp_path / "h2.log"))
