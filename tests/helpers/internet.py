"""A small internet of our own: what a sandbox reaches, and what it tries to reach, is seen from the far end.

Two network namespaces without names: the *near* one is the host for the cloche under test, the *far* one holds servers
at public and at forbidden addresses. The servers are threads of the test process; their sockets were made in the far
namespace, where a socket stays. A packet socket there writes down all that arrives, so a test can say what did not.
Nothing outlives the process: namespaces go with their last descriptor. Needs root.
"""
import base64
import contextlib
import ctypes
import gzip
import hashlib
import http.server
import io
import os
import selectors
import socket
import ssl
import struct
import subprocess
import threading
import time
import uuid
import zlib
from pathlib import Path
from urllib.parse import quote

CLONE_NEWNET = 0x40000000
HOST4, SITE4, OTHER4, DNS4 = "93.184.216.1", "93.184.216.34", "93.184.216.35", "93.184.216.53"
HOST6, SITE6 = "2606:2800:220:1::1", "2606:2800:220:1::34"
# Servers stand at these too: without the wall the near host reaches every one of them.
FORBIDDEN4 = ("10.0.0.5", "172.16.0.9", "192.168.7.7", "100.64.0.5", "169.254.169.254", "169.254.170.2",
              "168.63.129.16", "100.100.100.200", "192.0.2.5", "198.51.100.5", "203.0.113.5", "192.0.0.192")
FORBIDDEN6 = ("fd00:ec2::254", "fd12::5", "64:ff9b::a00:5", "2002:a00:5::1", "fec0::5")
HTTP, HTTPS, ECHO, DOT, CROWD = 80, 443, 7777, 853, 7778
LIBC = ctypes.CDLL(None, use_errno=True)
KEPT = 65536        # bytes of a request's body
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"


def in_namespace(fd, work):
    """Call @work in a thread whose network namespace is @fd's (None: a new one), and return what it returns."""
    box = {}

    def run():
        try:
            r = LIBC.unshare(CLONE_NEWNET) if fd is None else LIBC.setns(fd, CLONE_NEWNET)
            if r != 0:
                raise OSError(ctypes.get_errno(), "network namespace")
            box["value"] = work()
        except BaseException as e:      # noqa: B902 -- handed to the caller
            box["error"] = e
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if "error" in box:
        raise box["error"]
    return box["value"]


def new_namespace():
    def hold():
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    return in_namespace(None, hold)


def payload(size):
    """The same bytes every time, which no compression shortens."""
    return hashlib.shake_128(str(size).encode()).digest(size)


class Kept(bytearray):
    """What came over a connection, and how much of it there was when each answer was given."""

    def __init__(self):
        super().__init__()
        self.answered = []


class Tap(io.RawIOBase):
    """Reads a connection and keeps what was read."""

    def __init__(self, sock, kept):
        self.sock, self.kept = sock, kept

    def readable(self):
        return True

    def readinto(self, into):
        n = self.sock.recv_into(into)
        if len(self.kept) < 1 << 20:
            self.kept += into[:n]
        return n


class Site(http.server.BaseHTTPRequestHandler):
    """Any name's web server. /bytes/N, /mebibytes/N, /headers, /git/..., POST and PUT answer with the body's checksum."""
    protocol_version = "HTTP/1.1"
    timeout = 30

    def setup(self):
        super().setup()
        self.kept = Kept()
        self.server.net.open.append(self.connection)
        self.rfile = io.BufferedReader(Tap(self.connection, self.kept))
        self.server.net.connections.append((self.connection.getsockname()[:2], self.kept))

    def handle_one_request(self):
        super().handle_one_request()
        self.kept.answered.append(len(self.kept))

    def log_message(self, *_):
        pass

    def note(self, body=0, data=b""):
        self.server.net.requests.append({
            "tls": self.server.tls, "method": self.command, "path": self.path, "host": self.headers.get("Host"),
            "headers": [(k.lower(), v) for k, v in self.headers.items()], "body": body, "data": bytes(data),
            "sni": getattr(self.connection, "sni", None), "to": self.connection.getsockname()[0]})

    def reply(self, body, status=200, more=()):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in more:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def repeat(self, piece, times):
        self.send_response(200)
        self.send_header("Content-Length", str(len(piece) * times))
        self.end_headers()
        for _ in range(times):
            self.wfile.write(piece)

    def mirror(self, body=b""):
        """/mirror/HOW: what was asked, given back in all the ways in which a server may say it."""
        how = self.path.split("?")[0].split("/")[2]
        said = f"{self.requestline}\n{self.headers}".encode() + body
        token = self.headers.get("Authorization", "none").split()[-1]
        more, status, reason = [], 200, None
        if how in ("gzip", "lying"):
            said, more = gzip.compress(said), [("Content-Encoding", "gzip" if how == "gzip" else "br")]
        elif how == "deflate":
            said, more = zlib.compress(said), [("Content-Encoding", "deflate")]
        elif how == "base64":
            said = base64.b64encode(b"x" * int(self.path.split("?")[1]) + said)
        elif how == "percent":
            said = quote(said).encode()
        elif how == "header":
            more = [("X-Echo", f"is {token}!"), ("X-Echo", "other"), ("Set-Cookie", f"t={token}")]
        elif how == "reason":
            reason = token
        elif how == "part":
            status = 206
        elif how == "delta":            # RFC 3229
            said, status, more = gzip.compress(said), 226, [("IM", "gzip")]
        elif how == "connect":          # messages of the Connect protocol, each compressed by itself
            said = gzip.compress(said)
            said, more = b"\1" + len(said).to_bytes(4, "big") + said, [("Connect-Content-Encoding", "gzip")]
        elif how == "early":
            self.wfile.write(f"HTTP/1.1 103 Early Hints\r\nLink: <{token}>\r\n\r\n".encode())
        if how == "waits":              # the body, but not its end
            self.send_response(status)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"%x\r\n" % len(body) + body + b"\r\n")
            self.wfile.flush()
            self.rfile.read(1)
            self.close_connection = True
        elif how in ("chunks", "bytes", "trailer"):
            self.send_response(status)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            step = 1 if how == "bytes" else 5
            for at in range(0, len(said), step):
                piece = said[at:at + step]
                self.wfile.write(b"%x\r\n" % len(piece) + piece + b"\r\n")
                self.wfile.flush()
            self.wfile.write(b"0\r\n" + (f"X-Token: {token}\r\n".encode() if how == "trailer" else b"") + b"\r\n")
        else:
            self.send_response(status, reason)
            self.send_header("Content-Length", str(len(said)))
            for name, value in more:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said)

    def websocket(self):
        """Every frame back to who sent it, without its mask, until one says close (RFC 6455). /ws/HOW: otherwise."""
        how = self.path.split("?")[0].partition("/ws/")[2]
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        if how == "deflate" or "Sec-WebSocket-Extensions" in self.headers:
            self.send_header("Sec-WebSocket-Extensions", "permessage-deflate")
        self.end_headers()
        self.close_connection = True
        while len(head := self.rfile.read(2)) == 2:
            wide = {126: 2, 127: 8}.get(head[1] & 127, 0)
            length = self.rfile.read(wide)
            size = int.from_bytes(length, "big") if wide else head[1] & 127
            mask, data = self.rfile.read(4), self.rfile.read(size)
            data = bytes(b ^ mask[i & 3] for i, b in enumerate(data))
            self.server.net.frames.append((head[0], head[1] >> 7, data))
            said = bytes([head[0], head[1] & 127]) + length + data
            if how == "bytes":          # each by itself
                for b in said:
                    self.wfile.write(bytes([b]))
                continue
            if how == "split":          # fragments of a byte, with a control frame between any two
                said = b"".join(bytes([(2 if i == 0 else 0) | (128 if i == len(data) - 1 else 0), 1, b, 0x89, 1, b])
                                for i, b in enumerate(data))
            elif how == "ping":
                said = bytes([0x89, len(data)]) + data
            elif how == "close":
                said = bytes([0x88, len(data) + 2, 3, 232]) + data
            elif how == "masked":
                said = bytes([0x81, 128 | len(data), 0, 0, 0, 0]) + data
            elif how == "reserved":
                said = bytes([0xc1, len(data)]) + data
            self.wfile.write(said)
            if head[0] & 15 == 8:
                return

    def do_GET(self):
        self.note()
        if self.path.startswith("/ws") and self.headers.get("Upgrade") == "websocket":
            self.websocket()
        elif (self.headers.get("Host"), self.path) in self.server.net.pages:
            kind, body = self.server.net.pages[self.headers.get("Host"), self.path]
            self.reply(body, more=[("Content-Type", kind)])
        elif self.path in self.server.net.says:
            self.reply(b"", *self.server.net.says[self.path])
        elif self.path.startswith("/mirror/"):
            self.mirror()
        elif self.path.startswith("/bytes/"):
            self.reply(payload(int(self.path[7:])))
        elif self.path.startswith("/mebibytes/"):
            self.repeat(payload(1 << 20), int(self.path[11:]))
        elif self.path.startswith("/git/"):
            file = (self.server.net.root / self.path.split("?")[0][1:]).resolve()
            inside = file.is_relative_to(self.server.net.root / "git") and file.is_file()
            self.reply(file.read_bytes() if inside else b"none\n", 200 if inside else 404)
        elif self.path == "/headers":
            self.reply(str(self.headers).encode())
        elif self.path == "/redirect":
            self.reply(b"", 302, [("Location", "http://evil.example.org/stolen")])
        else:
            self.reply(f"hello {self.headers.get('Host')} {self.path}\n".encode(), more=[("X-Site", "yes")])

    do_HEAD = do_GET

    def do_POST(self):
        count, total, data = 0, hashlib.sha256(), bytearray()
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline(), 16):
                count += self.take(size, total, data)
                self.rfile.readline()
            self.rfile.readline()
        else:
            count = self.take(int(self.headers.get("Content-Length", 0)), total, data)
        self.note(count, data)
        if self.path.startswith("/mirror/"):
            self.mirror(bytes(data))
            return
        if self.server.net.model is not None and (said := self.server.net.model(self.path, bytes(data))) is not None:
            self.reply(said[1], more=[("Content-Type", said[0])])
            return
        self.reply(f"{count} {total.hexdigest()}\n".encode())

    def take(self, size, total, data):
        """@size bytes of the body into the checksum, the first of them kept; how many there were."""
        left = size
        while left > 0 and (piece := self.rfile.read(min(left, 1 << 20))):
            total.update(piece)
            data += piece[:max(0, KEPT - len(data))]
            left -= len(piece)
        return size - left

    do_PUT = do_PATCH = do_DELETE = do_POST


class Web(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
    request_queue_size = 512
    daemon_threads = True
    tls = False

    def __init__(self, net, listener, context=None):
        super().__init__(("::", 0), Site, bind_and_activate=False)
        self.socket.close()
        self.socket, self.net, self.context, self.tls = listener, net, context, context is not None

    def finish_request(self, request, client_address):
        if self.tls:        # in the connection's own thread: a slow handshake holds nobody up
            request.settimeout(30)
            first = request.recv(4096, socket.MSG_PEEK)
            if first:
                self.net.hellos.append(first)
            for name, port in self.net.behind.items():
                if name in first:
                    self.net.pass_on(request, port)
                    request.close()
                    return
            request = self.context.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)
        if self.tls:
            with contextlib.suppress(OSError):
                request.unwrap()
            request.close()

    def handle_error(self, request, client_address):
        pass                # a client that went away is what many tests are about


class Sniffer:
    """Every IP packet that reached the far namespace: (protocol, destination, port)."""

    def __init__(self, raw, stopping):
        self.raw, self.stopping, self.packets = raw, stopping, []

    def run(self):
        while not self.stopping.is_set():
            try:
                frame, address = self.raw.recvfrom(256)
            except TimeoutError:
                continue
            except OSError:
                return
            if address[2] == 4:         # PACKET_OUTGOING: our servers' answers
                continue
            self.note(frame, address[1])

    def note(self, frame, ethertype):
        if ethertype == 0x0800 and len(frame) >= 20:
            protocol, start = frame[9], (frame[0] & 15) * 4
            destination = socket.inet_ntop(socket.AF_INET, frame[16:20])
        elif ethertype == 0x86dd and len(frame) >= 40:
            protocol, start = frame[6], 40
            destination = socket.inet_ntop(socket.AF_INET6, frame[24:40])
            if protocol == 58 and len(frame) > 40 and 133 <= frame[40] <= 137:
                return                  # neighbours finding each other
            if protocol in (0, 58) and destination.startswith("ff02:"):
                return                  # multicast listener reports of the near kernel itself
        else:
            return
        port = struct.unpack_from(">H", frame, start + 2)[0] if protocol in (6, 17) and len(frame) >= start + 4 else 0
        self.packets.append((protocol, destination, port))


class Internet:
    """Use as a context manager; `words` in front of a command start it in the near namespace."""
    patience = 1        # seconds that the host's resolver waits for an answer

    def __init__(self, root):
        self.root = Path(root)
        self.stopping = threading.Event()
        self.requests, self.connections, self.queries, self.echoed, self.frames = [], [], [], [], []
        self.open = []          # the sockets of the web servers' connections
        self.hellos, self.host_hits = [], []
        self.names, self.ttl = {}, 0
        self.on_ssh = None      # called with each connection to port 22; a line of greeting otherwise
        self.pages = {}         # (Host, path): (Content-Type, body)
        self.behind = {}        # name as a ClientHello has it: port of a server on the far loopback that gets the bytes
        self.says = {}          # path: (status, [(field, value)])
        self.model = None       # what a POST is answered with: (path, body) -> (Content-Type, body), or None
        self.threads, self.sockets, self.fds, self.webs = [], [], [], []

    # --- the wires

    def __enter__(self):
        self.near, self.far = new_namespace(), new_namespace()
        self.fds = [self.near, self.far]
        self.few_certificates()     # first: cloche keeps nothing of files that changed just before it looked
        self.cable()
        self.certificates()
        resolv = self.root / "resolv.conf"
        resolv.write_text(f"nameserver {DNS4}\noptions timeout:{self.patience} attempts:1\n", encoding="ascii")
        self.words = ["/usr/bin/nsenter", f"--net=/proc/{os.getpid()}/fd/{self.near}", "--", "/usr/bin/unshare", "-m",
                      "--propagation", "private", "--", "/bin/sh", "-ec",
                      f"mount --bind '{resolv}' /etc/resolv.conf; mount --bind '{self.root}/bundle' {BUNDLE}; exec \"$@\"", "sh"]
        self.default_names()
        in_namespace(self.far, self.far_servers)
        in_namespace(self.near, self.near_servers)
        return self

    def few_certificates(self):
        """Of the host's 140 that the near host trusts: whoever opens TLS there reads each of them, for 60 ms of a processor together.

        The last is among them: a network's own CA stands there, and some hosts append it again where it is missing."""
        end = "-----END CERTIFICATE-----\n"
        *all_of_them, _ = Path(BUNDLE).read_text(encoding="ascii").split(end)
        (self.root / "bundle").write_text("".join(one + end for one in (*all_of_them[:3], all_of_them[-1])), encoding="ascii")

    def ip(self, fd, *lines):
        batch = "\n".join(lines) + "\n"
        done = subprocess.run(["nsenter", f"--net=/proc/{os.getpid()}/fd/{fd}", "ip", "-batch", "-"],
                              input=batch.encode(), check=False, capture_output=True)
        assert done.returncode == 0, (lines, done.stderr)

    def cable(self):
        self.ip(self.near, f"link add near type veth peer name far netns /proc/{os.getpid()}/fd/{self.far}")
        self.ip(self.far, "link set far up",
                *[f"addr add {a}/24 dev far" for a in (SITE4, OTHER4, DNS4)],
                *[f"addr add {a}/32 dev far" for a in FORBIDDEN4],
                *[f"addr add {a}/64 dev far nodad" for a in (SITE6, *FORBIDDEN6)],
                "route add ::/0 dev far")
        self.ip(self.near, "link set near up", f"addr add {HOST4}/24 dev near", f"addr add {HOST6}/64 dev near nodad",
                f"route add default dev near src {HOST4}", f"route add ::/0 dev near src {HOST6}")

    def certificates(self):
        """A CA, and one certificate of it for all that the tests call a host."""
        def openssl(*words):
            subprocess.run(["openssl", *words], cwd=self.root, check=True, capture_output=True)
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test CA",
                "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
        openssl("req", *key, "-keyout", "site.key", "-out", "site.csr", "-subj", "/CN=example.org")
        (self.root / "san").write_text("subjectAltName=DNS:example.org,DNS:*.example.org,DNS:*.sub.example.org,"
                                       f"IP:{SITE4},IP:{SITE6}\n", encoding="ascii")
        openssl("x509", "-req", "-in", "site.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out",
                "site.pem", "-days", "2", "-extfile", "san")
        self.ca = self.root / "ca.pem"
        self.ca.chmod(0o644)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.root / "site.pem", self.root / "site.key")

        self.odd_certificates(openssl, key)

        def keep_name(sock, name, _):
            sock.sni = name
            if name in self.odd:
                sock.context = self.odd[name]
        self.context.sni_callback = keep_name

    def odd_certificates(self, openssl, key):
        """Servers that nobody should believe, by name."""
        (self.root / "odd").write_text("subjectAltName=DNS:else.example.net\n", encoding="ascii")
        signed = ("x509", "-req", "-in", "site.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
        openssl(*signed, "-out", "wrong.pem", "-days", "2", "-extfile", "odd")
        openssl(*signed, "-out", "expired.pem", "-days", "-1", "-extfile", "san")
        openssl("req", "-x509", *key, "-keyout", "self.key", "-out", "self.pem", "-days", "2", "-subj",
                "/CN=self.example.org", "-addext", "subjectAltName=DNS:self.example.org")
        self.odd = {}
        for name in ("wrong", "expired", "self"):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.root / f"{name}.pem",
                                    self.root / ("self.key" if name == "self" else "site.key"))
            self.odd[f"{name}.example.org"] = context

    # --- the servers

    def thread(self, target, *args):
        thread = threading.Thread(target=target, args=args, daemon=True)
        thread.start()
        self.threads.append(thread)

    def listen(self, port, address="::"):
        listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if ":" in address:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind((address, port))
        listener.listen(512)
        self.sockets.append(listener)
        return listener

    def far_servers(self):
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        raw.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)      # SO_RCVBUFFORCE
        raw.settimeout(0.2)
        self.sockets.append(raw)
        self.sniffer = Sniffer(raw, self.stopping)
        self.thread(self.sniffer.run)
        for port, context in ((HTTP, None), (8080, None), (HTTPS, self.context), (8443, self.context)):
            web = Web(self, self.listen(port), context)
            self.webs.append(web)
            self.thread(web.serve_forever, 0.05)
        self.thread(self.accept, self.listen(ECHO), self.echo)
        self.thread(self.accept, self.listen(22), self.banner)
        self.thread(self.crowd, self.listen(CROWD))
        for address in (DNS4, OTHER4):          # the answer has to come from there; the host asks the first one
            udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            udp.bind((address, 53))
            self.sockets.append(udp)
            self.thread(self.name_server, udp)

    def near_servers(self):
        """What the host itself offers: its loopback, its outer address, an abstract socket."""
        self.host_port = 8123
        for address in ("127.0.0.1", HOST4, "::1", HOST6):
            self.thread(self.accept, self.listen(self.host_port, address), self.host_service)
            self.thread(self.accept, self.listen(HTTP, address), self.host_service)
            self.thread(self.accept, self.listen(HTTPS, address), self.host_service)
        self.abstract = f"ct-net-{uuid.uuid4().hex}"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind("\0" + self.abstract)
        listener.listen(9)
        self.sockets.append(listener)
        self.thread(self.accept, listener, self.host_service)

    def accept(self, listener, serve):
        while not self.stopping.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.guarded, args=(serve, connection), daemon=True).start()

    def guarded(self, serve, connection):
        with connection, contextlib.suppress(OSError):
            connection.settimeout(30)
            serve(connection)

    def echo(self, connection):
        kept = bytearray()
        self.echoed.append(kept)
        while data := connection.recv(65536):
            kept += data
            connection.sendall(data)

    def crowd(self, listener):
        """Thousands of connections in one thread: what comes back is what was sent, in small pieces."""
        selector = selectors.DefaultSelector()
        listener.setblocking(False)
        selector.register(listener, selectors.EVENT_READ)
        while not self.stopping.is_set():
            for key, _ in selector.select(0.2):
                try:
                    if key.fileobj is listener:
                        new, _ = listener.accept()
                        new.setblocking(False)
                        selector.register(new, selectors.EVENT_READ)
                    elif not (data := key.fileobj.recv(4096)) or key.fileobj.send(data) != len(data):
                        raise OSError
                except BlockingIOError:
                    pass
                except OSError:
                    if key.fileobj is listener:
                        return
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
        for key in list(selector.get_map().values()):
            key.fileobj.close()
        selector.close()

    def pass_on(self, connection, port):
        """Every byte to a program of its own, and back."""
        other = in_namespace(self.far, lambda: socket.create_connection(("127.0.0.1", port)))

        def one_way(source, sink):
            with contextlib.suppress(OSError):
                while data := source.recv(65536):
                    sink.sendall(data)
            with contextlib.suppress(OSError):
                sink.shutdown(socket.SHUT_WR)
        with other:
            for sock in (connection, other):
                sock.settimeout(None)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            back = threading.Thread(target=one_way, args=(other, connection), daemon=True)
            back.start()
            one_way(connection, other)
            back.join()

    def banner(self, connection):
        if self.on_ssh is not None:
            self.on_ssh(connection)
            return
        self.echoed.append(bytearray(b"22"))
        connection.sendall(b"SSH-2.0-far\r\n")
        connection.recv(100)

    def host_service(self, connection):
        self.host_hits.append(connection.getsockname())
        connection.sendall(b"host service\n")

    # --- names

    def default_names(self):
        for name in ("ok", "evil", "a", "b", "deep.a", "denied", "slow", "second", "wrong", "expired", "self",
                     "h2", "grpc", "model"):
            self.names[f"{name}.example.org"] = [("A", SITE4)]
        self.names["example.org"] = [("A", SITE4)]
        self.names["six.example.org"] = [("AAAA", SITE6)]
        self.names["both.example.org"] = [("A", SITE4), ("AAAA", SITE6)]
        self.names["other.example.org"] = [("A", OTHER4)]
        self.names["many.example.org"] = [("A", OTHER4), ("A", SITE4)]
        self.names["half.example.org"] = [("A", "93.184.216.99"), ("A", SITE4)]     # .99 is nobody
        self.names["alias.example.org"] = [("CNAME", "ok.example.org"), ("A", SITE4)]

    def name_server(self, udp):
        while not self.stopping.is_set():
            try:
                query, source = udp.recvfrom(4096)
            except OSError:
                return
            with contextlib.suppress(IndexError, struct.error, OSError, ValueError):
                udp.sendto(self.answer(query), source)

    def answer(self, query):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]])
            at += 1 + query[at]
        kind = {1: "A", 28: "AAAA", 5: "CNAME", 65: "HTTPS", 16: "TXT"}.get(struct.unpack_from(">H", query, at + 1)[0])
        name = b".".join(labels).decode("latin-1").lower()
        self.queries.append((name, kind))
        records = self.names.get(name)
        known, out, owner, count = records is not None, b"", b"\xc0\x0c", 0
        for rtype, value in (records() if callable(records) else records) or ():
            if rtype == "CNAME":
                data = b"".join(bytes([len(x)]) + x.encode() for x in value.split(".")) + b"\0"
            elif rtype == kind:
                data = socket.inet_pton(socket.AF_INET if kind == "A" else socket.AF_INET6, value)
            else:
                continue
            code = {"A": 1, "AAAA": 28, "CNAME": 5}[rtype]
            out += owner + struct.pack(">HHIH", code, 1, self.ttl, len(data)) + data
            owner = data if rtype == "CNAME" else owner
            count += 1
        head = query[:2] + (b"\x81\x80" if known else b"\x81\x83") + struct.pack(">HHHH", 1, count, 0, 0)
        return head + query[12:at + 5] + out

    # --- what was seen

    def forget(self):
        """Between tests: names as in the beginning, nothing seen."""
        self.settle()
        self.ttl = 0
        for seen in (self.requests, self.connections, self.open, self.queries, self.echoed, self.hellos, self.host_hits,
                     self.frames, self.sniffer.packets):
            seen.clear()
        self.names.clear()
        self.pages.clear()
        self.on_ssh = None
        self.says.clear()
        self.model = None
        self.default_names()

    @staticmethod
    def settle():
        time.sleep(0.05)        # what is on the wire arrives

    def reached(self):
        """Where anything but the resolver's queries went, as {(protocol, address, port)}."""
        self.settle()
        return {p for p in list(self.sniffer.packets) if p != (17, DNS4, 53)}

    def asked(self):
        self.settle()
        return {name for name, _ in list(self.queries)}

    def __exit__(self, *_):
        self.stopping.set()
        for web in self.webs:
            web.shutdown()
        for sock in self.sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for thread in self.threads:
            thread.join(5)
        for fd in self.fds:
            os.close(fd)


CA_INSIDE = "/mnt/ca.pem"
NO_PROXY_VARIABLES = [w for n in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
                      for w in ("-u", n)]

# What attacks and clients written in Python share. P and S are the proxy's ports.
PRELUDE = """
import errno, json, os, socket, ssl, struct, sys, time
P, S, CA, CLOSE = ('198.18.0.1', 3128), ('198.18.0.1', 1080), '/mnt/ca.pem', 'Connection: close\\r\\n'
def family(host): return socket.AF_INET6 if ':' in host else socket.AF_INET
def dial(host, port, seconds=5):
    s = socket.socket(family(host)); s.settimeout(seconds); s.connect((host, port)); return s
def drain(s, seconds=3):
    s.settimeout(seconds); got = b''
    try:
        while d := s.recv(65536): got += d
    except OSError as e: got += b'' if got else b'<%s>' % type(e).__name__.encode()
    return got
def talk(where, data, seconds=3):
    with dial(*where) as s:
        s.sendall(data); return drain(s, seconds)
def until(s, end=b'\\r\\n\\r\\n'):
    got = b''
    while end not in got:
        d = s.recv(1)       # what follows the end is the next reader's
        if not d: break
        got += d
    return got
def connect(target, host=None, seconds=5):
    s = dial(*P, seconds); s.sendall(f'CONNECT {target} HTTP/1.1\\r\\nHost: {host or target}\\r\\n\\r\\n'.encode())
    return s, until(s)
def question(name, kind=1, ident=0x1234):
    labels = name if isinstance(name, bytes) else \\
        b''.join(bytes([len(x)]) + x for x in name.encode().split(b'.')) + b'\\0'
    return struct.pack('>HHHHHH', ident, 0x100, 1, 0, 0, 0) + labels + struct.pack('>HH', kind, 1)
def ask(name, kind=1, server='8.8.8.8', seconds=3):
    with socket.socket(family(server), socket.SOCK_DGRAM) as s:
        s.settimeout(seconds); s.sendto(question(name, kind), (server, 53)); return s.recv(4096)
def summary(answer): return answer[3] & 15, struct.unpack_from('>H', answer, 6)[0]
def socks(kind, body, command=1, greeting=b'\\5\\1\\0', port=80, where=S):
    s = dial(*where); s.sendall(greeting); first = s.recv(2)
    if first != b'\\5\\0': return s, first
    s.sendall(bytes([5, command, 0, kind]) + body + struct.pack('>H', port)); return s, s.recv(64)
def tls(s, name, check=False):
    c = ssl.create_default_context(cafile=CA) if check else ssl._create_unverified_context()
    return c.wrap_socket(s, server_hostname=name)
def get(host, path='/', more=''): return f'GET {path} HTTP/1.1\\r\\nHost: {host}\\r\\n{more}\\r\\n'.encode()
"""


class Online:
    """cloche on the near host of an Internet: online.python(code, allow=[...]) and online.curl(...)."""

    def __init__(self, net, cloche):
        self.net = net
        self.cloche = cloche.behind(*net.words)
        self.bare = cloche

    def flags(self, allow, more=()):
        return [*(w for host in allow for w in ("--allow-domain", host)), "--bind", f"{self.net.ca}:{CA_INSIDE}",
                "--timeout", "60", *more]

    def run(self, argv, allow=("ok.example.org",), flags=(), **kw):
        return self.cloche("run", *self.flags(allow, flags), "--", *argv, **kw)

    def popen(self, argv, allow=("ok.example.org",), flags=(), **kw):
        return self.cloche.popen("run", *self.flags(allow, flags), "--", *argv, **kw)

    def python(self, code, allow=("ok.example.org",), flags=(), **kw):
        return self.run(["/usr/bin/python3", "-I", "-S", "-c", PRELUDE + code], allow, flags, **kw)

    def curl(self, *words, allow=("ok.example.org",), flags=(), transparent=False, **kw):
        straight = ["/usr/bin/env", *NO_PROXY_VARIABLES] if transparent else []
        return self.run([*straight, "/usr/bin/curl", "-sS", "--max-time", "40", "--cacert", CA_INSIDE, *words], allow,
                        flags, **kw)

    def host(self, argv, **kw):
        """The same command on the near host, without the wall."""
        return self.bare.run([*self.net.words, *argv], **kw)

    def host_python(self, code, **kw):
        prelude = PRELUDE.replace("/mnt/ca.pem", str(self.net.ca))
        return self.host(["/usr/bin/python3", "-I", "-S", "-c", prelude + code], **kw)
