"""A server that gives back what the sandbox tells it must not tell the sandbox whether a guess at a secret is right (R16)."""
import base64
import html
import json
import re
import textwrap

import pytest

from helpers import requirement
from helpers.h2 import HOST
from helpers.internet import PRELUDE
from helpers.vaulted import BUNDLE, OK, VALUE, Vaulted, fields

pytestmark = [requirement("R16"), pytest.mark.root]

# Each guess is given back in an answer that goes on; what of it comes at once.
GUESS = """
import threading
def ask(way, guess, got):
    s = ssl.create_default_context(cafile=CA).wrap_socket(socket.create_connection(('ok.example.org', 443)), server_hostname='ok.example.org')
    s.sendall(f'POST /mirror/waits HTTP/1.1\\r\\nHost: ok.example.org\\r\\nAuthorization: Bearer {os.environ["TOK"]}\\r\\n'
              f'Content-Length: {len(guess) + 2}\\r\\n\\r\\nx {guess}'.encode())
    until(s)
    got[way, guess] = drain(s, 2)
guesses, got = json.loads(sys.argv[1]), {}
threads = [threading.Thread(target=ask, args=(way, guess, got)) for way, pair in enumerate(zip(*guesses)) for guess in pair]
for t in threads: t.start()
for t in threads: t.join()
for right, wrong in guesses:
    for way, guess in ((0, right), (1, wrong)): print(len(guess), len(got[way, guess]), b'x ' in got[way, guess])
"""


def another(c):
    """A character of the same class."""
    return chr(ord(c) - 1) if c.isalnum() and c not in "aA0" else "b" if c == "a" else "B" if c == "A" else "1" if c == "0" else c


def base64ed(text, alphabet="ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"):
    bits = "".join(f"{b:08b}" for b in text.encode())
    return "".join(alphabet[int(bits[i:i + 6], 2)] for i in range(0, len(bits) - 5, 6))


def guessed():
    """Beginnings of the value, right and wrong in the last character, plain and in codings."""
    firsts = [VALUE[:n] for n in (9, 12, 16, 20, 24, 28)]
    guesses = [(first, first[:-1] + another(first[-1])) for first in firsts if first[-1].isalnum()]
    guesses += [(base64ed(right), base64ed(wrong)) for right, wrong in guesses[:3]]
    return guesses + [tuple(base64.b64encode(base64ed(g).encode()).decode().rstrip("=") for g in pair) for pair in guesses[:3]]


def test_an_answer_that_goes_on_is_no_oracle(online, tmp_path):
    """The beginning of the value, right and wrong in its last character: as much of both comes at once."""
    vaulted, guesses = Vaulted(online, tmp_path).secret(), guessed()
    result = vaulted.run(["/usr/bin/python3", "-I", "-c", PRELUDE.replace("/mnt/ca.pem", BUNDLE) + GUESS, json.dumps(guesses)])
    lines = result.out.splitlines()
    assert result.ok and len(lines) == 2 * len(guesses) and all(line.endswith("True") for line in lines), result
    assert lines[::2] == lines[1::2], result


# A host that says what it was told before: by which way it is asked does not matter.
ELSEWHERE = {
    "another path": ("https", 443, "GET", "/kept"), "another method": ("https", 443, "HEAD", "/v1/kept"),
    "without TLS": ("http", 80, "GET", "/v1/kept"), "another port": ("https", 8443, "GET", "/v1/kept"),
    "another port without TLS": ("http", 8080, "GET", "/v1/kept"), "a path that is read in two ways": ("https", 443, "GET", "/v1//kept"),
    "a long query": ("https", 443, "GET", "/v1/kept?" + "x" * 9000),
    "the right way": ("https", 443, "GET", "/v1/kept"),
}


@pytest.mark.parametrize("way", ELSEWHERE)
@pytest.mark.parametrize("transparent", [True, False], ids=["direct", "proxy"])
def test_what_a_host_keeps_comes_by_no_way(online, tmp_path, way, transparent):
    """Ports, methods and paths that the binding does not name are the sandbox's to choose."""
    vaulted = Vaulted(online, tmp_path).secret("TOK", "--method", "GET", "--path", "/v1/**")
    scheme, port, method, path = ELSEWHERE[way]
    where = OK if port in (80, 443) else f"{OK}:{port}"
    vaulted.net.says[path] = (200, [("X-Kept", VALUE)])
    vaulted.net.pages[where, path] = ("text/plain", f"kept {VALUE} kept".encode())
    if method == "HEAD":
        del vaulted.net.pages[where, path]
    result = vaulted.sh(f"curl -sS -i {'-I' if method == 'HEAD' else ''} --path-as-is '{scheme}://{where}{path}'", transparent,
                        allow=(OK, f"{OK}:{port}"))
    assert VALUE not in result.out + result.err, result
    assert len(vaulted.net.requests) == 1 and " 200 " in result.out and "ept" in result.out, result


def test_a_path_that_is_too_long_costs_its_request_alone(online, tmp_path):
    """The vault takes 8 KiB of it; the next request has its secret."""
    vaulted = Vaulted(online, tmp_path).secret()
    result = vaulted.sh(f"curl -sS -o /dev/null -w '%{{http_code}} ' https://{OK}/{'x' * 9000}; "
                        f"curl -sS -o /dev/null -w '%{{http_code}}' -H \"Authorization: Bearer $TOK\" https://{OK}/headers")
    assert result.out == "403 200", result
    assert [fields(r, "authorization") for r in vaulted.net.requests] == [[f"Bearer {VALUE}"]], vaulted.net.requests


def spelled_of(value):
    """Ways to write it that a host may have, and that others read back."""
    raw = value.encode()
    coded = base64.b64encode(b"user:" + raw).decode()
    return {
        "percent": "".join(f"%{b:02x}" for b in raw), "partly": value.replace("k", "%6B").replace("x", "%78"), "twice": value.replace("9", "%2539"),
        "json": "".join(f"\\u{b:04x}" for b in raw), "json, partly": value.replace("9", "\\u0039"), "python": value.replace("Q", "\\x51"),
        "html": "".join(f"&#{b};" for b in raw), "html, partly": value.replace("_", "&#x5f;"), "quoted": value.replace("_", "=5F=\r\n"),
        "base64": coded, "lines": "\r\n".join(textwrap.wrap(base64.b64encode(b"x" * 50 + raw).decode(), 76)), "url": base64.urlsafe_b64encode(raw).decode(),
        "offset": base64.b64encode(b"u" + raw).decode(), "hex": raw.hex(), "hex upper": raw.hex(" ").upper(), "pem": base64.encodebytes(raw * 3).decode(),
        "utf-16": value.encode("utf-16-le").decode(), "utf-16 other": value.encode("utf-16-be").decode(), "multipart": f"--x\r\n\r\n{value}\r\n--x--",
    }


def read_back(text):
    """Those of the ways in which it is still there."""
    plain = text.replace("\0", "").replace("=\r\n", "")
    for _ in range(2):
        plain = re.sub(r"(?:%|=|\\x|\\u00)([0-9a-fA-F]{2})", lambda m: chr(int(m[1], 16)), html.unescape(plain))
    yield plain
    compact = re.sub(r"[\s:]", "", text).translate({45: 43, 95: 47})
    for word in re.findall(r"[A-Za-z0-9+/]{8,}", compact):
        for at in range(4):
            part = word[at:]
            part = part[:-1] if len(part) % 4 == 1 else part
            yield base64.b64decode(part + "=" * (-len(part) % 4)).decode("latin-1")
    for word in re.findall(r"(?:[0-9a-fA-F]{2}){8,}", compact):
        yield bytes.fromhex(word).decode("latin-1")


@pytest.mark.parametrize("short", [False, True], ids=["long", "short"])
def test_no_spelling_brings_it_in(online, tmp_path, short):
    """Of a value of 8 bytes too. The server's page has it in each way; nobody can read it back from what came."""
    value = "Kx9vQ2zY" if short else VALUE
    vaulted = Vaulted(online, tmp_path).secret(value=value)
    ways = spelled_of(value)
    for i, text in enumerate(ways.values()):
        vaulted.net.pages[OK, f"/{i}"] = ("text/plain", f"({text})".encode())
    result = vaulted.sh(f"curl -sS --fail 'https://{OK}/[0-{len(ways) - 1}]' --output '/tmp/#1' && cd /tmp && "
                        f"for i in $(seq 0 {len(ways) - 1}); do base64 -w0 $i; echo; done")
    lines = result.out.split()
    assert result.ok and len(lines) == len(ways), result
    for line, way in zip(lines, ways):
        got = base64.b64decode(line).decode()
        assert len(got) == len(f"({ways[way]})") and got[0] == "(" and got[-1] == ")", (way, got)
        assert any(value in back for back in read_back(f"({ways[way]})")), way      # the reader reads
        assert not any(value in back for back in read_back(got)), (way, got)


def beneath(value):
    """Ways that no placeholder can be put into: nothing of them comes."""
    twice = base64.b64encode(base64.b64encode(value.encode())).decode()
    return {"base64 twice": twice, "base64 of UTF-16": base64.b64encode(value.encode("utf-16-le")).decode(), "base32": base64.b32encode(value.encode()).decode(),
            "percent of percent": "".join(f"%25{b:02x}".replace("%", "%25") for b in value.encode()), "numbers": json.dumps(list(value.encode())),
            "JSON in JSON in JSON": "".join(f"\\\\\\\\u{b:04x}" for b in value.encode()), "octal": "".join(f"\\{b:o}" for b in value.encode())}


def test_no_coding_within_another_brings_it_in(online, tmp_path):
    """In an answer's body, and in a field of its head."""
    vaulted = Vaulted(online, tmp_path).secret()
    ways = beneath(VALUE)
    for i, text in enumerate(ways.values()):
        vaulted.net.says[f"/{i}"] = (200, [("X-Kept", text)])
        vaulted.net.pages[OK, f"/{i}"] = ("text/plain", f"({text})".encode())
    result = vaulted.sh(f"curl -sS --fail -i 'https://{OK}/[0-{len(ways) - 1}]'")
    assert result.ok and result.out.count("(") == len(ways), result
    for way, text in ways.items():
        assert not any(text[at:at + len(text) // 2] in result.out for at in (0, len(text) // 2)), (way, result)


# The same where a stream is cut otherwise: messages of a WebSocket, frames of HTTP/2. As many bytes come, whatever is guessed.
FRAMES = """
def exactly(s, n):
    got = b''
    while len(got) < n: got += s.recv(n - len(got))
    return got
def held_ws(guess):
    s = ssl.create_default_context(cafile=CA).wrap_socket(socket.create_connection(('ok.example.org', 443)), server_hostname='ok.example.org')
    s.sendall(b'GET /ws HTTP/1.1\\r\\nHost: ok.example.org\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Version: 13\\r\\n'
              b'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\nAuthorization: Bearer ' + os.environ['TOK'].encode() + b'\\r\\n\\r\\n')
    assert b' 101 ' in until(s)
    s.sendall(bytes([1, 128 | len(guess), 0, 0, 0, 0]) + guess.encode())        # the first fragment, and a ping behind it
    s.sendall(bytes([0x89, 128, 0, 0, 0, 0]))
    n = 0
    while True:
        a, b = exactly(s, 2)
        if a == 0x89: return n
        n += len(exactly(s, b))
def held(way, guess): return held_ws(guess)
for right, wrong in json.loads(sys.argv[1]): print(len(right), held('ws', 'x ' + right), held('ws', 'x ' + wrong))
"""


def test_a_message_that_goes_on_is_no_oracle(online, tmp_path):
    vaulted = Vaulted(online, tmp_path).secret()
    guesses = guessed()
    result = vaulted.run(["/usr/bin/python3", "-I", "-c", PRELUDE.replace("/mnt/ca.pem", BUNDLE) + FRAMES, json.dumps(guesses)])
    lines = [line.split() for line in result.out.splitlines()]
    assert result.ok and len(lines) == len(guesses), result
    assert all(right == wrong != "0" for _, right, wrong in lines), result


def test_a_stream_that_goes_on_is_no_oracle(h2):
    """As DATA of HTTP/2, all guesses at once."""
    guesses = guessed()
    result = h2.secret(host=HOST).client(f"""
c, pairs = Client(), {guesses!r}
streams = [[c.ask('/echo', [('authorization', 'Bearer ' + os.environ['TOK'])], method='POST', body=b'x ' + g.encode(), end=False) for g in pair]
           for pair in pairs]
c.wait(done=lambda: all(c.got[n]['body'] for pair in streams for n in pair))
c.s.settimeout(2)
try:
    while True: c.step()
except TimeoutError: pass
print(json.dumps([[len(c.got[n]['body']) for n in pair] for pair in streams]))
""")
    assert result.ok and len(lengths := json.loads(result.out)) == len(guesses), result
    assert all(right == wrong > 0 for right, wrong in lengths), result
