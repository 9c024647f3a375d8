"""The numbered corpus of ways past a network by name (tests/escape/corpus), and what it takes to try and to count them.

A case is a line of a table. What it says is sent by corpus_driver.py inside; what comes of it is counted here, in the
frames that the host itself sends: a packet socket in its namespace sees all of them, to other machines and on its own
loopback. The control stands beside it: a proxy that has no rules, at the place where cloche's is inside a sandbox.
"""
import collections
import json
import os
import re
import socket
import struct
import subprocess
import threading
from pathlib import Path

from helpers.internet import DNS4, HOST4, HOST6, Internet, OTHER4, SITE4, SITE6, in_namespace

TABLES = Path(__file__).resolve().parents[1] / "escape" / "corpus"
DRIVER = (Path(__file__).parent / "corpus_driver.py").read_text(encoding="utf-8")
OK = "ok.example.org"
RESOLVED = ("classes", "mixed", "aliases", "rebinding")       # of these @sent is what their name leads to
PROXY_AT = "198.18.0.1"
OTHER6 = "2606:2800:220:1::35"
ETH_P_ALL, SOL_PACKET, PACKET_STATISTICS, SO_RCVBUFFORCE, IP_FREEBIND, IPV6_FREEBIND = 3, 263, 6, 33, 15, 78
# Beside the web's ports, what a service might listen on; the far machine has every address there is.
PORTS = (21, 22, 23, 25, 53, 110, 143, 389, 445, 853, 993, 1080, 1433, 2375, 3000, 3128, 3306, 5000, 5432, 6379, 8000, 8123,
         9100, 9200, 11211, 27017)


# Dialects that open a tunnel to the allowed host before they say what is refused.
IN_TUNNELS = {"tunnel-host", "tunnel-sni", "inside", "inside-socks", "ahead", "ahead-host", "tls-tunnel", "tls-ahead", "tls-socks"}
SOCKS_TO_OK = b"\5\1\0\3\x0eok.example.org\0\x50"


class Case:
    """One line: @ways are dialects, @expected is `no` (nothing of it leaves), `ok` (it arrives at the allowed host, and
    what hides in it nowhere), `part` (what comes before the trick may arrive there) or `whole` (secrets.tsv); @bare are the ways by which it does get out where no rule stands."""

    def __init__(self, table, line, fields):
        assert len(fields) == 7, f"{table}:{line}: seven columns, not {len(fields)}"
        self.table, self.line = table, line
        self.id, self.category, ways, self.sent, self.expected, bare, self.about = fields
        self.ways = ways.split(" ")
        self.bare = self.ways if bare == "all" else [] if bare == "-" else bare.split(" ")
        where = f"{table}:{line}: {self.id}"
        assert re.fullmatch(r"EC-\d{4}", self.id), where
        assert self.expected in ("no", "ok", "part", "whole"), where
        assert set(self.bare) <= set(self.ways) and len(set(self.ways)) == len(self.ways), where
        self.bytes, self.port = unescape(self.sent), 80
        if m := re.fullmatch(rb"(.*)@@(\d+)", self.bytes, re.S):
            self.bytes, self.port = m[1], int(m[2])

    def tokens(self, way):
        """By which an attempt is known in what leaves: what is said openly, what hides in it."""
        token = re.sub(r"\W", "", f"{self.id}{way}".lower())
        return (token + "z").encode(), (token + "y").encode()

    def opens(self, way):
        """May this make a connection to the allowed host? What is refused only where a tunnel is open before the trick."""
        return self.expected != "no" or way in IN_TUNNELS or SOCKS_TO_OK in self.bytes

    @property
    def hides(self):
        """There is a part that never may arrive, beside one that may."""
        return b"{u}" in self.bytes or "twice" in self.ways or "curl" in self.ways


def unescape(text):
    r"""\r \n \t \0 \\ \xHH, and \uHHHH as UTF-8."""
    out = bytearray()
    for m in re.finditer(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|([rnt0\\]))|([^\\]+)|(\\)", text):
        byte, point, short, plain, bad = m.groups()
        assert bad is None, f"a lone backslash in {text!r}"
        if byte:
            out.append(int(byte, 16))
        elif point:
            out += chr(int(point, 16)).encode()
        elif short:
            out += {"r": b"\r", "n": b"\n", "t": b"\t", "0": b"\0", "\\": b"\\"}[short]
        else:
            out += plain.encode()
    return bytes(out)


def load():
    """Every case of every table, in the order of their numbers."""
    cases = []
    for table in sorted(TABLES.glob("*.tsv")):
        for number, line in enumerate(table.read_text(encoding="utf-8").split("\n"), 1):
            if line and not line.startswith("#"):
                cases.append(Case(table.name, number, line.split("\t")))
    return sorted(cases, key=lambda c: c.id)


# --- what leaves ------------------------------------------------------------------------------------------------------

Frame = collections.namedtuple("Frame", "protocol source to port data")


def parse(frame, ethertype):
    """What an IP packet or a question for a neighbour says of itself; None for what is neither."""
    if ethertype == 0x0806 and len(frame) >= 28:
        return Frame("arp", socket.inet_ntoa(frame[14:18]), socket.inet_ntoa(frame[24:28]), 0, b"")
    if ethertype == 0x0800 and len(frame) >= 20:
        protocol, start = frame[9], (frame[0] & 15) * 4
        source, to = (socket.inet_ntoa(frame[i:i + 4]) for i in (12, 16))
    elif ethertype == 0x86dd and len(frame) >= 40:
        protocol, start = frame[6], 40
        source, to = (socket.inet_ntop(socket.AF_INET6, frame[i:i + 16]) for i in (8, 24))
    else:
        return Frame(f"ethertype {ethertype:#x}", "", "", 0, frame)
    port = struct.unpack_from(">H", frame, start + 2)[0] if protocol in (6, 17) and len(frame) >= start + 4 else 0
    return Frame(protocol, source, to, port, frame[start:])


class Capture:
    """Every frame that the namespace @fd sends from now on, to others and to itself, with none left out."""

    def __init__(self, fd):
        self.sock = in_namespace(fd, lambda: socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL)))
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 256 << 20)
        self.sock.settimeout(150)       # longer than a run may last; it only ends a hang
        self.fd, self.frames = fd, []
        self.mark(b"begin")
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def mark(self, word):
        """A frame of our own: what sees this one sees the others."""
        with in_namespace(self.fd, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as s:
            s.sendto(b"capture " + word, (SITE4, 9))

    def read(self):
        while not self.frames or self.frames[-1].data[8:] != b"capture end":
            frame, address = self.sock.recvfrom(65536)
            if address[2] == socket.PACKET_OUTGOING:
                self.frames.append(parse(frame, address[1]))

    def end(self):
        """The frames between the two marks; fails where one was lost."""
        self.mark(b"end")
        self.thread.join()
        seen, lost = struct.unpack("II", self.sock.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        self.sock.close()
        marks = [f.data[8:] for f in self.frames if f.data[8:16] == b"capture "]
        assert lost == 0 and marks == [b"capture begin", b"capture end"], f"{lost} of {seen} frames were not seen: {marks}"
        return [f for f in self.frames if f.data[8:16] != b"capture "]


def own_noise(frame):
    """What the kernel says by itself: finding neighbours of its own cable, listening to multicast."""
    if frame.protocol == "arp":
        return frame.to in (SITE4, OTHER4, DNS4)
    if frame.protocol == 1:     # an answer came when nobody waited for it any more
        return frame.data[:1] == b"\3" and frame.to in (SITE4, DNS4)
    if frame.protocol == 58 and frame.data:
        target = socket.inet_ntop(socket.AF_INET6, frame.data[8:24]) if len(frame.data) >= 24 else ""
        return frame.data[0] in (133, 143) or frame.data[0] in (135, 136) and \
            (target == SITE6 or target == HOST6 or target.startswith("fe80:"))
    return frame.protocol == 0 and frame.to.startswith("ff02:")      # a multicast report behind its hop-by-hop header


def questions(frames):
    """The names that were asked for, whoever was asked, and how often."""
    names = collections.Counter()
    for frame in frames:
        if frame.protocol == 17 and frame.port == 53 and len(frame.data) > 20:
            at, labels, data = 12, [], frame.data[8:]
            while at < len(data) and data[at]:
                labels.append(data[at + 1:at + 1 + data[at]])
                at += 1 + data[at]
            names[b".".join(labels).decode("latin-1").lower()] += 1
    return names


# --- where everything answers -----------------------------------------------------------------------------------------

class Names(dict):
    """What the name server knows: the allowed hosts, for the others an address at which somebody answers."""

    def __init__(self, cases):
        super().__init__()
        self.answers, self.asked = {}, collections.Counter()
        for case in cases:
            if case.category in RESOLVED:
                for way in case.ways:
                    self.answers[case.tokens(way)[0].decode()] = case.bytes.decode()

    def get(self, name, default=None):
        label = name.split(".")[0]
        if label in self.answers and name.endswith(".bad.example.org"):
            turns = self.answers[label].split(" > ")
            self.asked[name] += 1       # A and AAAA are one lookup
            words = turns[min((self.asked[name] - 1) // 2, len(turns) - 1)].split(" ")
            return list(zip(words[::2], words[1::2]))
        if name in (OK, "second.example.org"):
            return [("A", SITE4)]
        return [("A", OTHER4)]


class Everywhere(Internet):
    """An Internet in which the far machine has every address that the near one has not, and answers on many ports; and
    the near one, beside its own services, has a proxy without rules at PROXY_AT."""

    patience = 20       # every case asks once, and a name's second answer is another

    def __init__(self, root, cases):
        super().__init__(root)
        self.cases, self.heard = cases, []

    def cable(self):
        super().cable()
        # every address is the far machine's own but the near one's, which is looked up first
        self.ip(self.far, f"addr add {OTHER6}/64 dev far nodad", "route del ::/0 dev far",
                f"rule add pref 5 to {HOST4} table main", "rule add pref 10 table local", "rule del pref 0",
                "route add local default dev lo table local")
        self.ip6(self.far, "rule add pref 40000 table 100", "route add local default dev lo table 100")
        self.ip(self.near, f"addr add {PROXY_AT}/32 dev lo", "route del ::/0 dev near")
        self.ip6(self.near, f"route add default via {SITE6} dev near src {HOST6}")

    def ip6(self, fd, *lines):
        for line in lines:
            subprocess.run(["nsenter", f"--net=/proc/{os.getpid()}/fd/{fd}", "ip", "-6", *line.split()], check=True)

    def default_names(self):
        self.names = Names(self.cases)

    def far_servers(self):
        super().far_servers()
        self.services(set(PORTS) - {22, 853})
        self.resolvers("8.8.8.8", "1.1.1.1", "10.0.0.5", "2001:4860:4860::8888")

    def near_servers(self):
        super().near_servers()
        self.services(set(PORTS) - {self.host_port, 3128, 1080})
        for port, serve in ((3128, self.open_proxy), (1080, self.open_socks)):
            self.thread(self.accept, self.listen(port, PROXY_AT), serve)
            for address in ("127.0.0.1", "::1", HOST4, HOST6):
                self.thread(self.accept, self.listen(port, address), self.host_service)

        self.resolvers("127.0.0.53", PROXY_AT)

    def resolvers(self, *addresses):
        """More name servers, which know the same."""
        for address in addresses:
            six = ":" in address
            udp = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM)
            udp.setsockopt(*((socket.IPPROTO_IPV6, IPV6_FREEBIND) if six else (socket.IPPROTO_IP, IP_FREEBIND)), 1)
            udp.bind((address, 53))
            self.sockets.append(udp)
            self.thread(self.name_server, udp)

    def services(self, ports):
        for port in ports:
            self.thread(self.accept, self.listen(port), self.host_service)

    def host_service(self, connection):
        """Takes what is said and answers; what it was is kept."""
        data = connection.recv(65536)
        self.heard.append((connection.getsockname()[:2], data))
        if data:
            connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nSERVED\n")

    # --- the control: what a proxy does that asks nothing

    def pipe(self, a, b):
        def one(x, y):
            try:
                while data := x.recv(65536):
                    y.sendall(data)
                y.shutdown(socket.SHUT_WR)
            except OSError:
                pass
        other = threading.Thread(target=one, args=(b, a), daemon=True)
        other.start()
        one(a, b)
        other.join(30)

    def resolve(self, host):
        """As libc reads a string, else as this internet's name server says."""
        host = host.split(b"\0")[0].strip(b"[]").decode("latin-1")
        if re.fullmatch(r"[0-9a-fA-FxX.:%]+", host):
            try:
                return in_namespace(self.near, lambda: socket.getaddrinfo(host, 80, flags=socket.AI_NUMERICHOST)[0][4][0])
            except (OSError, UnicodeError):
                pass
        if host.rstrip(".").endswith("localhost"):
            return "127.0.0.1"
        for kind, value in self.names.get(host.lower().rstrip(".")) or ():
            if kind in ("A", "AAAA"):
                return value
        raise OSError("no such name")

    def dial_near(self, host, port):
        address = self.resolve(host)
        if address == PROXY_AT:
            raise OSError("itself")

        def go():
            s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
            s.settimeout(20)
            s.connect((address, port))
            return s
        return in_namespace(self.near, go)

    def open_proxy(self, connection):
        head = b""
        while not re.search(rb"\r?\n\r?\n", head) and (piece := connection.recv(4096)):
            head += piece
        if head[:1] in (b"\4", b"\5"):
            return
        line, _, tail = head.lstrip(b"\r\n").partition(b"\n")
        words = line.rstrip(b"\r").split(None, 2)
        target = words[1] if len(words) > 1 else b""
        if words[:1] == [b"CONNECT"]:
            target = target.split(b"//")[-1].lstrip(b"/").split(b"/")[0]
            host, port = self.authority_of(target, 443)
            with self.dial_near(host, port) as s:
                connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                s.sendall(re.split(rb"\r?\n\r?\n", head, maxsplit=1)[1])
                self.pipe(connection, s)
            return
        rest = re.sub(rb"^[a-zA-Z0-9+.-]+:/+", b"", target)
        authority, path = re.match(rb"([^/?#]*)(.*)", rest, re.S).groups()
        authority = authority or re.search(rb"(?im)^host:[ \t]*([^\r\n]*)", tail + b"\nHost: \n")[1]
        host, port = self.authority_of(authority, 80)
        with self.dial_near(host, port) as s:
            s.sendall(words[0] + b" " + (path or b"/") + b" " + (words[2:] or [b"HTTP/1.1"])[0] + b"\r\n" + tail)
            self.pipe(connection, s)

    @staticmethod
    def authority_of(authority, usual):
        authority = authority.split(b"@")[-1]
        m = re.fullmatch(rb"(\[[^\]]*\]|[^:]*|.*:.*:.*?)(?::\+?0*(\d*))?", authority, re.S)
        return (m[1], int(m[2] or usual)) if m else (authority, usual)

    def open_socks(self, connection):
        version = connection.recv(1)
        if version == b"\4":
            command, port, address = struct.unpack(">BH4s", connection.recv(7))
            words = connection.recv(600).split(b"\0")
            name = words[1] if address[:3] == b"\0\0\0" and len(words) > 1 else socket.inet_ntoa(address).encode()
            yes = b"\0\x5a" + bytes(6)
        else:
            connection.recv(connection.recv(1)[0])
            connection.sendall(b"\5\0")
            _, command, _, kind = connection.recv(4)
            if kind == 3:
                name = connection.recv(connection.recv(1)[0])
            else:
                name = socket.inet_ntop(*((socket.AF_INET, connection.recv(4)) if kind == 1 else
                                          (socket.AF_INET6, connection.recv(16)))).encode()
            port, yes = struct.unpack(">H", connection.recv(2))[0], b"\5\0\0\1" + bytes(6)
        with self.dial_near(name, port) as s:
            connection.sendall(yes)
            self.pipe(connection, s)


def told(attempts, kind="network", **more):
    """The driver's standard input for @attempts, pairs of a case and a way."""
    listed = []
    for case, way in attempts:
        sent = b"%s.bad.example.org" % case.tokens(way)[0] if case.category in RESOLVED else case.bytes
        listed.append([case.id, way, sent.decode("latin-1"), case.port])
    return json.dumps({"kind": kind, "cases": listed, **more}).encode()


def numbered(cases):
    """(case, way) by token, both tokens of each."""
    return {token: (case, way) for case in cases for way in case.ways for token in case.tokens(way)}


def left(frames, tokens):
    """The tokens that are in frames for other machines or services: token → {(protocol, address, port)}."""
    found, pattern = collections.defaultdict(set), re.compile(rb"ec\d{4}[a-z0-9]*?[zy](?![a-z0-9])", re.I)
    for frame in [*frames, *streams(frames)]:
        if PROXY_AT in (frame.source, frame.to):
            continue        # what is said to the control's proxy, which stands for the one inside
        for token in pattern.findall(frame.data):
            case, _ = tokens.get(token.lower(), (None, None))
            asking = (frame.protocol, frame.port) == (17, 53)       # of RESOLVED the name is allowed, and may be asked for
            if case is not None and not (asking and case.category in RESOLVED):
                found[token.lower()].add((frame.protocol, frame.to, frame.port))
    return found


def opened(frames):
    """The TCP connections that somebody began: {(address, port, source port)}."""
    return {(f.to, f.port, f.data[:2]) for f in frames if f.protocol == 6 and len(f.data) >= 20 and f.data[13] & 0x12 == 2}


def streams(frames):
    """What each TCP connection carried, as a frame: what is sent in small pieces is in one of these."""
    pieces = collections.defaultdict(list)
    for f in frames:
        if f.protocol == 6 and len(f.data) >= 20 and (data := f.data[(f.data[12] >> 4) * 4:]):
            pieces[f.source, f.data[:2], f.to, f.port].append((struct.unpack_from(">I", f.data, 4)[0], data))
    joined = []
    for (source, _, to, port), sent in pieces.items():
        # by sequence number: what was sent once more is there once, and in its place
        some, whole = sent[0][0], bytearray()
        ordered = sorted(((number - some + (1 << 31)) % (1 << 32), data) for number, data in sent)
        for at, data in ordered:
            whole += data[max(0, len(whole) + ordered[0][0] - at):]
        joined.append(Frame(6, source, to, port, bytes(whole)))
    return joined


def counts(frames):
    return collections.Counter((f.protocol, f.to, f.port) for f in frames if not own_noise(f))
