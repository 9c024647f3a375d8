"""A server that gives back what the sandbox tells it must not tell the sandbox whether a guess at a secret is right (R16)."""
import json

import pytest

from helpers import requirement
from helpers.internet import PRELUDE
from helpers.vaulted import BUNDLE, VALUE, Vaulted

pytestmark = [requirement("R16"), pytest.mark.root]

# Each guess is given back in an answer that goes on; what of it comes at once.
GUESS = """
import threading
def ask(way, guess, got):
    s = ssl.create_default_context(cafile=CA).wrap_socket(socket.create_connection(('ok.example.org', 443)), server_hostname='ok.example.org')
    s.sendall(f'POST /mirror/waits HTTP/1.1\\r\\nHost: ok.example.org\\r\\nAuthorization: Bearer {os.environ["TOK"]}\\r\\n'
              f'Content-Length: {len(guess) + 2}\\r\\n\\r\\nx={guess}'.encode())
    until(s)
    got[way, guess] = drain(s, 2)
guesses, got = json.loads(sys.argv[1]), {}
threads = [threading.Thread(target=ask, args=(way, guess, got)) for way, pair in enumerate(zip(*guesses)) for guess in pair]
for t in threads: t.start()
for t in threads: t.join()
for right, wrong in guesses:
    for way, guess in ((0, right), (1, wrong)): print(len(guess), len(got[way, guess]), b'x=' in got[way, guess])
"""


def another(c):
    """A character of the same class."""
    return chr(ord(c) - 1) if c.isalnum() and c not in "aA0" else "b" if c == "a" else "B" if c == "A" else "1" if c == "0" else c


def base64ed(text, alphabet="ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"):
    bits = "".join(f"{b:08b}" for b in text.encode())
    return "".join(alphabet[int(bits[i:i + 6], 2)] for i in range(0, len(bits) - 5, 6))


def test_an_answer_that_goes_on_is_no_oracle(online, tmp_path):
    """The beginning of the value, right and wrong in its last character: as much of both comes at once."""
    vaulted = Vaulted(online, tmp_path).secret()
    firsts = [VALUE[:n] for n in (9, 12, 16, 20, 24, 28)]
    guesses = [(first, first[:-1] + another(first[-1])) for first in firsts if first[-1].isalnum()]
    guesses += [(base64ed(right), base64ed(wrong)) for right, wrong in guesses[:3]]
    result = vaulted.run(["/usr/bin/python3", "-I", "-c", PRELUDE.replace("/mnt/ca.pem", BUNDLE) + GUESS, json.dumps(guesses)])
    lines = result.out.splitlines()
    assert result.ok and len(lines) == 2 * len(guesses) and all(line.endswith("True") for line in lines), result
    assert lines[::2] == lines[1::2], result
