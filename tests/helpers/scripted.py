"""Far servers of raw bytes, for what no ordinary server says, and a client that reads answers to their end."""
import itertools

from helpers.internet import in_namespace

OK = "ok.example.org"
ports = itertools.count(9100)


def read_head(connection):
    """The bytes of one head; b"" at the end."""
    got = b""
    while not got.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        if not byte:
            return b""
        got += byte
    return got


def read_exactly(connection, n):
    got = b""
    while len(got) < n:
        piece = connection.recv(n - len(got))
        if not piece:
            break
        got += piece
    return got


class Scripted:
    """A far server of raw bytes: serve(connection, n) talks on its n-th connection. What it is told is kept by it."""

    def __init__(self, net, serve):
        self.port, self.seen = next(ports), []

        def run(connection):
            kept = []
            self.seen.append(kept)
            serve(connection, len(self.seen), kept)
        listener = in_namespace(net.far, lambda: net.listen(self.port))
        net.thread(net.accept, listener, run)

    @property
    def allow(self):
        return [f"{OK}:{self.port}"]

    def url(self, path="/"):
        return f"http://{OK}:{self.port}{path}"


def answers(*replies, close_after=False):
    """Answers every request head with the next of @replies, which are given over again; no request has a body."""
    def serve(connection, _, kept):
        for reply in itertools.cycle(replies):
            head = read_head(connection)
            if not head:
                return
            kept.append(head)
            connection.sendall(reply)
            if close_after:
                return
    return serve


def plain(body=b"hello\n", status=b"200 OK", more=b""):
    return b"HTTP/1.1 " + status + b"\r\n" + more + b"Content-Length: %d\r\n\r\n" % len(body) + body


# A client that reads answers to their end: r = answer(s) is (status, fields, body)
CLIENT = """
def answer(s, method='GET'):
    head = until(s).decode('latin-1').split('\\r\\n')
    fields = {k.strip().lower(): v.strip() for k, _, v in (l.partition(':') for l in head[1:] if l)}
    if not head[0]: return None
    status, body = int(head[0].split()[1]), b''
    if status < 200 or status in (204, 304) or method == 'HEAD': pass
    elif 'chunked' in fields.get('transfer-encoding', ''):
        while size := int(until(s, b'\\r\\n'), 16):
            while size:
                d = s.recv(size); assert d; body += d; size -= len(d)
            assert until(s, b'\\r\\n') == b'\\r\\n'
        while (line := until(s, b'\\r\\n')) != b'\\r\\n': fields['trailer ' + line.decode().split(':')[0]] = line
    elif 'content-length' in fields:
        while len(body) < int(fields['content-length']):
            d = s.recv(int(fields['content-length']) - len(body))
            if not d: break
            body += d
    else: body = drain(s)
    return status, fields, body
def absolute(url, more='', method='GET', version='1.1'):
    return f'{method} {url} HTTP/{version}\\r\\nHost: {url.split("/")[2]}\\r\\n{more}\\r\\n'.encode()
"""
