"""A web server that speaks HTTP/2 and nothing else: h2_server.py PORT CERTIFICATE KEY LOG. Debian's python3-h2.

Run as a program, for the library is the system's Python's. LOG gets a line of JSON for each request and each event that
a test wants to know of. One thread for each connection.
"""
import gzip
import hashlib
import json
import socket
import ssl
import sys
import threading

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
import hpack

LOCK = threading.Lock()


def payload(size):
    return hashlib.shake_128(str(size).encode()).digest(size)


def frame(kind, flags, stream, data):
    return len(data).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + data


class Connection:
    def __init__(self, sock, log):
        self.sock, self.log = sock, log
        config = h2.config.H2Configuration(client_side=False, header_encoding="latin-1", validate_inbound_headers=False,
                                           validate_outbound_headers=False, normalize_outbound_headers=False)
        self.h2 = h2.connection.H2Connection(config)
        self.requests = {}      # stream: [headers, body, trailers]
        self.waiting = {}       # stream: [bytes, end, trailers]

    def say(self, **what):
        with LOCK, open(self.log, "a", encoding="utf-8") as f:
            f.write(json.dumps({"connection": id(self), **what}) + "\n")

    def run(self):
        self.h2.local_settings = h2.settings.Settings(client=False, initial_values={
            h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 200,
            h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 65535})
        self.h2.initiate_connection()
        self.sock.sendall(self.h2.data_to_send())
        self.say(event="open")
        while data := self.sock.recv(65536):
            try:
                events = self.h2.receive_data(data)
            except h2.exceptions.ProtocolError as e:
                self.say(event="protocol-error", what=repr(e))
                self.sock.sendall(self.h2.data_to_send())
                return
            for event in events:
                self.handle(event)
            self.flush()
            self.sock.sendall(self.h2.data_to_send())
        self.say(event="closed")

    # --- requests

    def handle(self, event):
        stream = getattr(event, "stream_id", None)
        if isinstance(event, h2.events.RequestReceived):
            self.requests[stream] = [event.headers, bytearray(), []]
            self.begin(stream, dict(event.headers))
        elif isinstance(event, h2.events.TrailersReceived):
            self.requests[stream][2] = event.headers
        elif isinstance(event, h2.events.DataReceived):
            self.data(stream, event)
        elif isinstance(event, h2.events.StreamEnded):
            self.end(stream)
        elif isinstance(event, h2.events.StreamReset):
            self.say(event="reset", path=self.path(stream), code=int(event.error_code))
            self.waiting.pop(stream, None)
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.say(event="goaway", code=int(event.error_code))

    def path(self, stream):
        return dict(self.requests.get(stream, [[]])[0]).get(":path", "")

    def begin(self, stream, headers):
        path = headers.get(":path", "")
        if path.startswith("/echo"):
            self.h2.send_headers(stream, [(":status", "200"), ("x-way", "both")])
        elif path.startswith("/early-answer"):
            self.h2.send_headers(stream, [(":status", "200")])
            self.put(stream, b"enough\n", True)

    def data(self, stream, event):
        self.requests[stream][1] += event.data[:max(0, (1 << 20) - len(self.requests[stream][1]))]
        path = self.path(stream)
        if path.startswith("/sum"):
            self.requests[stream].append(event.data)
        if path.startswith("/stuck"):
            return              # no window comes back
        self.h2.acknowledge_received_data(event.flow_controlled_length, stream)
        if path.startswith("/echo"):
            self.put(stream, event.data, False)

    def end(self, stream):
        headers, body, trailers = self.requests[stream][:3]
        said = dict(headers)
        path = said.get(":path", "")
        self.say(event="request", headers=headers, body=bytes(body[:65536]).decode("latin-1"), size=len(body),
                 trailers=trailers, path=path)
        text = "".join(f"{k}: {v}\n" for k, v in headers).encode("latin-1") + bytes(body)
        token = said.get("authorization", "none").split()[-1]
        if path.startswith("/echo"):
            self.put(stream, b"", True, [("x-sum", hashlib.sha256(body).hexdigest())])
        elif path.startswith("/sum"):
            data = b"".join(self.requests[stream][3:])
            self.answer(stream, f"{len(data)} {hashlib.sha256(data).hexdigest()}\n".encode())
        elif path.startswith("/mirror"):
            self.answer(stream, text, [("x-echo", f"is {token}!")])
        elif path.startswith("/gzip"):
            self.answer(stream, gzip.compress(text), [("content-encoding", "gzip")])
        elif path.startswith("/typed"):         # one message of gRPC that ends within the token, and no gRPC
            data = f"it is {token}!".encode()
            head = bytes([0]) + (6 + len(token) // 2).to_bytes(4, "big")
            self.answer(stream, head + data, [("content-type", "application/grpc")])
        elif path.startswith("/bytes/"):
            self.answer(stream, payload(int(path.split("/")[2])))
        elif path.startswith("/trailers"):
            self.h2.send_headers(stream, [(":status", "200"), ("content-type", "application/grpc")])
            self.put(stream, b"body of it\n", True, [("grpc-status", "0"), ("grpc-message", f"for {token}")])
        elif path.startswith("/only-trailers"):
            self.h2.send_headers(stream, [(":status", "200"), ("grpc-status", "5"), ("grpc-message", token)],
                                 end_stream=True)
        elif path.startswith("/early-hints"):
            self.h2.send_headers(stream, [(":status", "103"), ("link", f"<{token}>")])
            self.answer(stream, b"after hints\n")
        elif path.startswith("/reset/"):
            self.h2.reset_stream(stream, int(path.split("/")[2]))
        elif path.startswith("/goaway"):
            self.answer(stream, b"the last\n")
            self.flush()
            self.h2.close_connection(0, last_stream_id=stream)
        elif path.startswith("/cut"):
            self.sock.close()
        elif path.startswith("/bad/"):
            self.bad(stream, path[5:], token)
        elif not path.startswith(("/hang", "/stuck", "/early-answer")):
            self.answer(stream, f"hello {said.get(':authority')} {path}\n".encode())

    def answer(self, stream, body, more=()):
        self.h2.send_headers(stream, [(":status", "200"), ("content-length", str(len(body))), *more],
                             end_stream=not body)
        if body:
            self.put(stream, body, True)

    def bad(self, stream, how, token):
        """What no server should answer."""
        block = hpack.Encoder().encode
        heads = {
            "crlf": [(":status", "200"), ("x-a", "b\r\nx-evil: yes")],
            "nul": [(":status", "200"), ("x-a", "b\0c")],
            "upper": [(":status", "200"), ("X-Upper", "yes")],
            "connection": [(":status", "200"), ("connection", "close")],
            "coding": [(":status", "200"), ("transfer-encoding", "chunked")],
            "status": [(":status", "2000")],
            "switch": [(":status", "101")],
            "twice": [(":status", "200"), (":status", "404")],
            "none": [("x-a", "b")],
            "large": [(":status", "200"), *((f"x-{i}", "v" * 4000) for i in range(40))],
            "short": [(":status", "200"), ("content-length", "9")],
            "lengths": [(":status", "200"), ("content-length", "5"), ("content-length", "6")],
            "encoding": [(":status", "200"), ("content-encoding", "br"), ("x-t", token)],
        }
        self.sock.sendall(self.h2.data_to_send())
        if how == "data":
            self.sock.sendall(frame(0, 1, stream, b"no head"))
        elif how == "push":
            self.sock.sendall(frame(5, 4, stream, (2).to_bytes(4, "big") + block([(":method", "GET")])))
        elif how == "ping":
            for _ in range(5000):
                self.sock.sendall(frame(6, 0, 0, bytes(8)))
        elif how in FLOODS:
            head = block([(":status", "200" if how != "interim" else "103")])
            if how in ("empty", "again"):
                self.sock.sendall(frame(1, 4, stream, head))
            one = {"settings": frame(4, 0, 0, b""), "sizes": frame(4, 0, 0, b"\0\1\xff\xff\xff\xff\0\4\x7f\xff\xff\xff"),
                   "resets": frame(3, 0, stream, bytes(4)), "windows": frame(8, 0, 0, b"\0\0\0\1"), "empty": frame(0, 0, stream, b""),
                   "interim": frame(1, 4, stream, head), "again": frame(1, 4, stream, head), "priorities": frame(2, 0, stream, bytes(5)), "unknown": frame(0x42, 0, 0, b"x"),
                   "goaways": frame(7, 0, 0, (0x7fffffff).to_bytes(4, "big") + bytes(4)), "acks": frame(4, 1, 0, b"")}[how]
            for _ in range(50):
                self.sock.sendall(one * 400)
        elif how == "endless":
            self.sock.sendall(frame(1, 0, stream, b""))
            for _ in range(200):
                self.sock.sendall(frame(9, 0, stream, bytes([0]) + b"\1a\1b"))
        else:
            # an entry of the table of 3,900 bytes, and a byte for each of its 115,000 uses
            bomb = block([(":status", "200")]) + b"\x40\2xa\x7f\xbd\x1d" + b"v" * 3900 + b"\xbe" * 115000
            head = bomb if how == "bomb" else block(heads[how])
            pieces = [head[i:i + 16000] for i in range(0, len(head), 16000)]
            for i, piece in enumerate(pieces):
                self.sock.sendall(frame(9 if i else 1, 4 if i == len(pieces) - 1 else 0, stream, piece))
            self.sock.sendall(frame(0, 1, stream, b"hello"))

    # --- bodies, at the pace of the client's windows

    def put(self, stream, data, end, trailers=()):
        waiting = self.waiting.setdefault(stream, [bytearray(), False, ()])
        waiting[0] += data
        waiting[1], waiting[2] = end, trailers

    def flush(self):
        for stream, (data, end, trailers) in list(self.waiting.items()):
            try:
                self.flush_one(stream, data, end, trailers)
            except h2.exceptions.StreamClosedError:
                self.waiting.pop(stream, None)

    def flush_one(self, stream, data, end, trailers):
        while data:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size, len(data))
            if room <= 0:
                return
            self.h2.send_data(stream, bytes(data[:room]), end_stream=end and not trailers and room == len(data))
            del data[:room]
            if not data and end and not trailers:
                self.waiting.pop(stream)
                return
        if not end:
            return
        if trailers:
            self.h2.send_headers(stream, trailers, end_stream=True)
        else:
            self.h2.end_stream(stream)
        self.waiting.pop(stream)


# 20,000 frames, each of a kind that is allowed
FLOODS = ("settings", "sizes", "resets", "windows", "empty", "interim", "again", "priorities", "unknown", "goaways", "acks")


def serve(sock, context, log):
    try:
        sock.settimeout(60)
        sock = context.wrap_socket(sock, server_side=True)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        Connection(sock, log).run()
    except OSError:
        pass
    finally:
        sock.close()


def main():
    port, certificate, key, log = sys.argv[1:5]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["h2"])
    listener = socket.create_server(("127.0.0.1", int(port)), backlog=512)
    print("ready", flush=True)
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=serve, args=(sock, context, log), daemon=True).start()


if __name__ == "__main__":
    main()
