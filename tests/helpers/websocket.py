"""A WebSocket client that says what it is told to, well formed or not, over the daemon's unix socket (RFC 6455)."""
import base64
import hashlib
import json
import os
import re
import socket
import struct

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Closed(Exception):
    """The other end sent a Close frame, or ended the connection (code None)."""

    def __init__(self, code=None):
        super().__init__(code)
        self.code = code


class WebSocket:
    def __init__(self, path, uri, timeout=90, headers=()):
        if isinstance(path, socket.socket):     # connected already
            self.socket = path
            self.socket.settimeout(timeout)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(timeout)
            self.socket.connect(str(path))
        key = base64.b64encode(os.urandom(16))
        lines = [f"GET {uri} HTTP/1.1", "Host: localhost", "Connection: Upgrade", "Upgrade: websocket",
                 "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key.decode()}", *headers]
        self.socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = self.socket.recv(1)
            assert byte, head
            head += byte
        self.status = int(head.split()[1])
        self.head = head.decode()
        if self.status == 101:
            accept = base64.b64encode(hashlib.sha1(key + GUID).digest()).decode()
            assert f"sec-websocket-accept: {accept}".lower() in self.head.lower(), head

    def refusal(self):
        """Of a WebSocket that is none: what the answer says."""
        length = int(re.search(r"(?i)content-length: (\d+)", self.head)[1])
        said = json.loads(self.exactly(length))
        self.close()
        return said

    def raw(self, data):
        self.socket.sendall(data)

    def frame(self, opcode, data=b"", fin=True, masked=True, reserved=0, length=None):
        n = len(data) if length is None else length
        head = bytes([(0x80 if fin else 0) | reserved | opcode])
        mark = 0x80 if masked else 0
        if n < 126:
            head += bytes([mark | n])
        elif n < 65536:
            head += bytes([mark | 126]) + struct.pack(">H", n)
        else:
            head += bytes([mark | 127]) + struct.pack(">Q", n)
        if masked:
            key = os.urandom(4)
            whole = (len(data) + 3) // 4 * key
            data = key + (int.from_bytes(data, "big") ^ int.from_bytes(whole[:len(data)], "big")).to_bytes(len(data), "big")
        self.raw(head + data)

    def say(self, message):
        self.frame(TEXT, json.dumps(message).encode())

    def stdin(self, data):
        self.frame(BINARY, b"\0" + (data if isinstance(data, bytes) else data.encode()))

    def exactly(self, n):
        data = b""
        while len(data) < n:
            more = self.socket.recv(n - len(data))
            if not more:
                raise Closed
            data += more
        return data

    def hear(self):
        """(opcode, bytes) of one frame; none of the daemon's is in pieces, masked, or has a reserved bit."""
        first, second = self.exactly(2)
        assert first & 0xf0 == 0x80 and second & 0x80 == 0, (first, second)
        n = second & 127
        if n > 125:
            n = int.from_bytes(self.exactly(2 if n == 126 else 8), "big")
        data = self.exactly(n)
        if first & 15 == CLOSE:
            raise Closed(int.from_bytes(data[:2], "big"))
        return first & 15, data

    def pings_unread(self, n):
        """Ping so often and read nothing meanwhile; then read: how many were answered before one that came behind them all."""
        self.raw((bytes([0x80 | PING, 0x80 | 125]) + bytes(4) + b"x" * 125) * n)
        answers = 0
        while True:
            if answers % 500 == 0:      # while much waits for us, this one is not answered either
                self.frame(PING, b"last")
            opcode, data = self.hear()
            if data == b"last":
                return answers
            answers += opcode == PONG

    def close(self):
        self.socket.close()


class Command:
    """A command over the daemon's WebSocket."""

    @classmethod
    def begun_by(cls, sandbox, text):
        """With a first message that is said as it is."""
        made = cls.__new__(cls)
        made.listen(sandbox)
        made.ws.frame(TEXT, text)
        return made

    def __init__(self, sandbox, command, **members):
        self.listen(sandbox)
        self.ws.say({"command": command, **members})

    @classmethod
    def over(cls, ws, command, **members):
        made = cls.__new__(cls)
        made.take(ws)
        made.ws.say({"command": command, **members})
        return made

    def listen(self, sandbox):
        self.take(WebSocket(sandbox.daemon.path, f"{sandbox.at}/exec/ws"))

    def take(self, ws):
        self.ws = ws
        assert self.ws.status == 101, self.ws.head
        self.out, self.err, self.messages, self.pongs = b"", b"", [], []

    def step(self):
        """One frame. A text message is returned."""
        opcode, data = self.ws.hear()
        if opcode == BINARY:
            assert data[0] in (1, 2), data
            if data[0] == 1:
                self.out += data[1:]
            else:
                self.err += data[1:]
            return None
        if opcode == PING:
            self.ws.frame(PONG, data)
            return None
        if opcode == PONG:
            self.pongs.append(data)
            return None
        message = json.loads(data)
        self.messages.append(message)
        return message

    def until(self, text, start=0):
        """Read until @text is in what came on channel 1 behind @start; the offset behind it."""
        text = text if isinstance(text, bytes) else text.encode()
        while text not in self.out[start:]:
            self.step()
        return self.out.index(text, start) + len(text)

    def end(self):
        """All of it, to the Close frame: the last text message, which is exit or error."""
        try:
            while True:
                self.step()
        except Closed as closed:
            self.code = closed.code
        self.ws.close()
        return self.messages[-1] if self.messages else None

    def resize(self, rows, cols):
        self.ws.say({"type": "resize", "rows": rows, "cols": cols})

    def signal(self, which):
        self.ws.say({"type": "signal", "signal": which})

    def stdin_end(self):
        self.ws.say({"type": "stdin_end"})
