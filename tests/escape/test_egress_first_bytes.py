"""Attacks that name another host behind the first bytes: requests that do not look like one, a second ClientHello (R13, R14)."""
import os
import socket
import struct
import subprocess
import threading

import pytest

from helpers import requirement
from helpers.internet import ECHO, in_namespace
from helpers.runner import wait_for

pytestmark = [requirement("R02", "R13", "R14"), pytest.mark.root]
OK, OTHER = "ok.example.org", "other.example.org"
PORT = 8080

# Beginnings of a request that some server takes. {} is the rest of the line's blanks and words.
LINES = [b"A_B /x HTTP/1.1", b"get /x HTTP/1.1", b"G3T /x HTTP/1.1", b"!#$%&'*+.^_`|~ /x HTTP/1.1", b"A" * 21 + b" /x HTTP/1.1",
         b"-GET /x HTTP/1.1", b"GET\t/x HTTP/1.1", b" GET /x HTTP/1.1", b"\tGET /x HTTP/1.1", b"GET\v/x\fHTTP/1.1",
         b"GET\x1c/x\x1dHTTP/1.1", b"GET\xa0/x\x85HTTP/1.1", b"GET\r/x HTTP/1.1", b"GET\t/x\1y HTTP/1.1", b"GET\t/x http/1.1",
         b"GET\t/x HTTP/1.1 \t", b"GET\t/x HTTP/1.1" + b" " * 70, b"get /x HTTP/1.1" + b"\t" * 9000, b"GET\t/x HTTP/1." + b"0" * 60 + b"1",
         b"\x0bGET /x HTTP/1.0", b"GET\t/" + b"x" * 20000 + b" HTTP/1.1"]
OPEN = """
def straight(): return socket.create_connection(('ok.example.org', %(port)d), 10)
def tunnel(): return connect('ok.example.org:%(port)d')[0]
def by_socks(): return socks(3, b'\\x0eok.example.org', port=%(port)d)[0]
def say(s, *pieces):
    try:
        for p in pieces: s.sendall(p); time.sleep(0.05 if len(pieces) > 1 else 0)
        return drain(s, 2)
    except OSError as e: return repr(e).encode()
"""
SAY = OPEN + """
import threading
rest = b'\\r\\nHost: other.example.org\\r\\nConnection: close\\r\\n\\r\\n'
def attack(way, line):
    say(way(), line + rest)
    say(way(), *(line[i:i + len(line) // 7 + 1] for i in range(0, len(line), len(line) // 7 + 1)), rest)
    at = line.lower().rindex(b'http')
    say(way(), line[:at + 2], line[at + 2:], rest)
    say(way(), line, rest)
    say(way(), b'\\t\\r\\n', line + rest)
threads = [threading.Thread(target=attack, args=(way, line)) for way in (straight, tunnel, by_socks) for line in %(lines)r]
for t in threads: t.start()
for t in threads: t.join()
print('done')
"""


def test_a_request_that_does_not_look_like_one(online):
    """To a port that a rule opens for one name: another one in the Host of a request that only some servers take."""
    result = online.python(SAY % {"port": PORT, "lines": LINES}, allow=[f"{OK}:{PORT}"])
    assert result.ok and result.out.endswith("done\n"), result
    online.net.settle()
    heard = [bytes(kept) for _, kept in online.net.connections]
    assert not any(OTHER.encode() in kept for kept in heard), [k[:60] for k in heard if OTHER.encode() in k]
    assert OTHER not in {r["host"] for r in online.net.requests}, online.net.requests


def test_such_requests_are_real_without_the_wall(online):
    result = online.host_python(SAY.replace("(straight, tunnel, by_socks)", "(straight,)") % {"port": PORT, "lines": LINES})
    assert result.out.endswith("done\n"), result
    assert OTHER in {r["host"] for r in online.net.requests}, result
    # Python's server knows GET alone of these methods, and its blanks
    assert len([r for r in online.net.requests if r["host"] == OTHER]) >= 5 * 8, len(online.net.requests)


@pytest.mark.parametrize("way", ["straight", "tunnel", "by_socks"])
def test_they_pass_with_the_right_name(online, way):
    code = OPEN % {"port": PORT} + f"""
for line in (b'get /x HTTP/1.1', b'A_B /x HTTP/1.1', b'GET /x HTTP/1.1'):
    print(say({way}(), line + b'\\r\\nHost: ok.example.org:{PORT}\\r\\nConnection: close\\r\\n\\r\\n')[:12])
"""
    result = online.python(code, allow=[f"{OK}:{PORT}"])
    assert result.out == "b'HTTP/1.1 501'\nb'HTTP/1.1 501'\nb'HTTP/1.1 200'\n", result


@pytest.mark.parametrize("way", ["straight", "tunnel", "by_socks"])
def test_other_protocols_pass_as_they_come(online, way):
    """Half a line as well, to which the server answers before there is more."""
    code = OPEN % {"port": ECHO} + f"""
def both(*pieces):
    s = {way}(); s.settimeout(10); got = []
    for p in pieces:
        s.sendall(p); back = b''
        while len(back) < len(p): back += s.recv(len(p) - len(back))
        got.append(back == p)
    s.shutdown(1); got.append(s.recv(1) == b''); return all(got)
print(both(b'ping'), both(b'p', b'o', b'ng\\n', b'x'), both(b'set key 0 0 5\\r\\nhello\\r\\n'), both(b'SSH-2.0-x y\\r\\n', bytes(9)),
      both(b'{{"said": "GET / HTTP/1.1"}}\\n', b'{{}}\\n'), both(b'0032git-upload-pack /x\\0host=y\\0'), both(b'\\0\\0\\0\\x08\\4\\xd2\\x16/'),
      both(b'http/1 htt is', b' a word HTTP/1.1 within\\r\\n'), both(b'q' * 200000, b'\\n'), both(b'GET\\t/ HTTP/1.1?\\n'))
"""
    result = online.python(code, allow=[f"{OK}:{ECHO}"])
    assert result.out == " ".join(["True"] * 10) + "\n", result


# --- a second ClientHello -------------------------------------------------------------------------------------------------

RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")


def retry(size=16384):
    """A HelloRetryRequest for x25519, in records of @size bytes, and a dummy behind it."""
    body = b"\3\3" + RETRY + b"\x20" + b"s" * 32 + b"\x13\1\0" + struct.pack(">H", 12) + b"\0\x2b\0\2\3\4" + b"\0\x33\0\2\0\x1d"
    message = b"\2" + struct.pack(">I", len(body))[1:] + body
    return b"".join(b"\x16\3\3" + struct.pack(">H", len(message[i:i + size])) + message[i:i + size]
                    for i in range(0, len(message), size)) + b"\x14\3\3\0\1\1"


@pytest.fixture
def retrying(online):
    """A server at the far end that asks each client for a second ClientHello, and keeps what it heard first of each, and what it
    hears from then on."""
    first, heard, listener = [], [], in_namespace(online.net.far, lambda: socket.create_server(("127.0.0.1", 0)))
    answer = [retry()]

    def serve(connection):
        with connection:
            connection.settimeout(20)
            try:
                first.append(connection.recv(65536))
                kept = bytearray()
                heard.append(kept)          # before the answer: who is cut meanwhile has been heard too
                for i in range(0, len(answer[0]), 30):
                    connection.sendall(answer[0][i:i + 30])
                while data := connection.recv(65536):
                    kept += data
            except OSError:
                pass

    def run():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()
    threading.Thread(target=run, daemon=True).start()
    online.net.behind[OK.encode()] = listener.getsockname()[1]
    online.first, online.heard, online.answer = first, heard, answer
    yield online
    online.net.behind.clear()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


HELLO = """
def ext(kind, data): return struct.pack('>HH', kind, len(data)) + data
def hello(name, share=b'', early=False, size=16384):
    sni = b'\\0' + struct.pack('>H', len(name)) + name
    e = ext(0, struct.pack('>H', len(sni)) + sni) + ext(10, b'\\0\\4\\0\\x1d\\0\\x17') + ext(13, b'\\0\\4\\4\\3\\x08\\4') + \\
        ext(43, b'\\2\\3\\4') + ext(51, struct.pack('>H', len(share)) + share) + (ext(42, b'') if early else b'')
    body = b'\\3\\3' + bytes(32) + b'\\x20' + b's' * 32 + b'\\0\\2\\x13\\1\\1\\0' + struct.pack('>H', len(e)) + e
    m = b'\\1' + struct.pack('>I', len(body))[1:] + body
    return b''.join(b'\\x16\\3\\3' + struct.pack('>H', len(m[i:i + size])) + m[i:i + size] for i in range(0, len(m), size))
share = b'\\0\\x1d\\0\\x20' + bytes(range(32))
dummy, data = b'\\x14\\3\\3\\0\\1\\1', b'\\x17\\3\\3\\0\\x05early'
def dialled(): return socket.create_connection(('ok.example.org', 443), 10)
def tunnel(): return connect('ok.example.org:443')[0]
def by_socks(): return socks(3, b'\\x0eok.example.org', port=443)[0]
def talk2(way, second, first=hello(b'ok.example.org'), ahead=False, wait=1):
    s = way()
    try:
        s.sendall(first + (second if ahead else b''))
        got = b''
        while len(got) < 80 and (more := s.recv(65536)): got += more
        for p in [] if ahead else second if isinstance(second, list) else [second]: s.sendall(p); time.sleep(0.1)
        return drain(s, wait)
    except OSError as e: return repr(e).encode()
"""


@pytest.mark.parametrize("size", [16384, 20])
@pytest.mark.parametrize("way", ["dialled", "tunnel", "by_socks"])
def test_a_second_hello_names_the_same_host(retrying, way, size):
    """As it is, behind a dummy, behind early data, in pieces, in many records, and before it was asked for."""
    retrying.answer[0] = retry(size)
    code = HELLO + f"""
evil, early = hello(b'other.example.org', share), hello(b'ok.example.org', early=True)
talk2({way}, evil)
talk2({way}, dummy + evil)
talk2({way}, dummy + data + dummy + evil)
talk2({way}, data * 3 + evil, early)
talk2({way}, [evil[i:i + 9] for i in range(0, len(evil), 9)])
talk2({way}, hello(b'other.example.org', share, size=7))
for second in (evil, dummy + evil, data + evil): talk2({way}, second, ahead=True)
print('done')
"""
    result = retrying.python(code, allow=[OK])
    assert result.ok and result.out.endswith("done\n"), result
    assert wait_for(lambda: len(retrying.heard) >= 9, 10), retrying.heard
    assert not any(b"other" in bytes(kept) for kept in retrying.first + retrying.heard), (retrying.first, retrying.heard)


def test_the_second_hello_is_real_without_the_wall(retrying):
    code = HELLO + "talk2(dialled, dummy + hello(b'other.example.org', share)); print('done')"
    result = retrying.host_python(code)
    assert result.out.endswith("done\n") and any(b"other" in bytes(kept) for kept in retrying.heard), (result, retrying.heard)


@pytest.mark.parametrize("way", ["dialled", "tunnel", "by_socks"])
def test_one_that_does_passes_with_all_that_follows(retrying, way):
    code = HELLO + f"""
same = hello(b'ok.example.org', share)
for second in (same, dummy + same, data + dummy + same): talk2({way}, second + data * 2)
talk2({way}, [(same + data)[i:i + 9] for i in range(0, len(same + data), 9)], wait=4)      # what is held ends with the sandbox
print(same.hex())
"""
    result = retrying.python(code, allow=[OK])
    same, data, dummy = bytes.fromhex(result.out.strip()), b"\x17\3\3\0\5early", b"\x14\3\3\0\1\1"
    wanted = [same + data * 2, dummy + same + data * 2, data + dummy + same + data * 2, same + data]
    assert wait_for(lambda: [bytes(kept) for kept in retrying.heard] == wanted, 10), (result, retrying.heard)


def test_openssl_asks_for_one_and_gets_it(online):
    """A real client whose first key share a real server does not take."""
    net = online.net
    server = subprocess.Popen(["nsenter", f"--net=/proc/{os.getpid()}/fd/{net.far}", "openssl", "s_server", "-quiet", "-www", "-accept",
                               "9443", "-cert", net.root / "site.pem", "-key", net.root / "site.key", "-groups", "P-384"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[net.far])
    try:
        code = f"""
import subprocess
print(subprocess.run(['/usr/bin/openssl', 's_client', '-connect', '{OK}:9443', '-servername', '{OK}', '-groups', 'X25519:P-384', '-msg',
                      '-CAfile', CA, '-ign_eof'], input=b'GET / HTTP/1.0\\r\\n\\r\\n', capture_output=True, timeout=120).stdout.decode())
"""
        assert wait_for(lambda: online.host(["/usr/bin/openssl", "s_client", "-connect", f"{OK}:9443"], stdin="").ok)
        result = online.python(code, allow=[f"{OK}:9443"])
    finally:
        server.kill()
        server.wait()
    assert result.out.count(", ClientHello") == 2 and "HTTP/1.0 200" in result.out, result
