"""A viewer of a sandbox's desktop: RFB 3.8 (RFC 6143) over the daemon's WebSocket, well behaved or not (docs/desktop.md)."""
import struct

from helpers.websocket import BINARY, PING, PONG, Closed, WebSocket

HELLO = b"RFB 003.008\n"


def key(sym, down):
    return struct.pack(">BBHI", 4, down, 0, sym if isinstance(sym, int) else ord(sym))


def pointer(x, y, mask=0):
    return struct.pack(">BBHH", 5, mask, x, y)


def text(what, length=None):
    return struct.pack(">BxxxI", 6, (len(what) if length is None else length) & 0xffffffff) + what


def encodings(*numbers):
    return struct.pack(f">BxH{len(numbers)}i", 2, len(numbers), *numbers)


def request(width, height, incremental=0, x=0, y=0):
    return struct.pack(">BBHHHH", 3, incremental, x, y, width, height)


class Viewer:
    def __init__(self, path, uri, headers=(), subprotocol="binary", shared=1):
        self.ws = WebSocket(path, uri, headers=[*headers, *([f"Sec-WebSocket-Protocol: {subprotocol}"] if subprotocol else [])])
        assert self.ws.status == 101, self.ws.head
        self.bytes, self.cut, self.why = b"", [], None
        assert self.take(12) == HELLO
        self.say(HELLO)
        kinds = self.take(self.take(1)[0])
        assert kinds == b"\1", kinds
        self.say(b"\1")
        assert self.take(4) == bytes(4)
        self.say(bytes([shared]))
        self.width, self.height, self.format, size = struct.unpack(">HH16sI", self.take(24))
        self.name = self.take(size)
        self.pixels = bytearray(self.width * self.height * 4)
        self.say(bytes([0, 0, 0, 0, 32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 0, 8, 16, 0, 0, 0]) + encodings(0))

    @classmethod
    def of(cls, daemon, box, mode=None, **more):
        return cls(daemon.path, f"{box.at}/desktop/view" + (f"?mode={mode}" if mode else ""), **more)

    def say(self, data):
        self.ws.frame(BINARY, data)

    def hear(self):
        kind, data = self.ws.hear()
        if kind == PING:
            self.ws.frame(PONG, data)
        elif kind == BINARY:
            self.bytes += data

    def take(self, n):
        while len(self.bytes) < n:
            self.hear()
        out, self.bytes = self.bytes[:n], self.bytes[n:]
        return out

    def message(self):
        """One of the display's: its type."""
        kind = self.take(1)[0]
        if kind == 0:
            for _ in range(struct.unpack(">xH", self.take(3))[0]):
                x, y, width, height, how = struct.unpack(">HHHHi", self.take(12))
                assert how == 0, how
                data = self.take(width * height * 4)
                for row in range(height):
                    at = ((y + row) * self.width + x) * 4
                    self.pixels[at:at + width * 4] = data[row * width * 4:(row + 1) * width * 4]
        elif kind == 3:
            self.cut.append(self.take(struct.unpack(">xxxI", self.take(7))[0]))
        else:
            assert kind == 2, kind
        return kind

    def look(self):
        """All of it, as it is now."""
        self.say(request(self.width, self.height))
        while self.message() != 0:
            pass
        return self

    def at(self, x, y):
        at = (y * self.width + x) * 4
        return tuple(self.pixels[at:at + 3])

    def press(self, sym):
        self.say(key(sym, 1) + key(sym, 0))

    def click(self, x, y, button=1):
        self.say(pointer(x, y) + pointer(x, y, button) + pointer(x, y))

    def ended(self):
        """Read to the end: the code of the Close frame, None where there was none."""
        try:
            while True:
                self.hear()
        except Closed as closed:
            return closed.code
        finally:
            self.ws.close()

    def close(self):
        self.ws.close()
