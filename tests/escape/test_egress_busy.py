"""Who keeps cloche-egress busy puts off no change of rules: the owner's word is heard between any two connections (R13, R16)."""
import subprocess
import time

import pytest

from helpers import requirement
from helpers.h2 import CLIENT, HOST
from helpers.internet import PRELUDE
from helpers.vaulted import BUNDLE, OK

pytestmark = [requirement("R13", "R16"), pytest.mark.root]

# Header blocks of 128 KiB that unpack to 470 MiB: an entry of the table, named again and again. One costs a third of a second.
BOMBS = """
import threading
def number(n):
    out = b'\\x7f'; n -= 127
    while n >= 128: out += bytes([n % 128 + 128]); n //= 128
    return out + bytes([n])
def bomb():
    c = Client()
    data = c.h.encode(c.head('/bomb')) + b'\\x40\\x06x-bomb' + number(3900) + b'v' * 3900 + b'\\xbe' * 120000
    pieces = [data[i:i + 16384] for i in range(0, len(data), 16384)]
    for n in range(1, 2001, 2):
        c.raw(b''.join(frame(9 if i else 1, (0 if i else 1) | (4 if i == len(pieces) - 1 else 0), n, p) for i, p in enumerate(pieces)))
for _ in range(250): threading.Thread(target=bomb, daemon=True).start()
time.sleep(6)
print('up', flush=True)
sys.stdin.readline()
os._exit(0)
"""


def test_header_bombs_do_not_put_off_a_change_of_rules(opened):
    """250 connections, each with more to do than is ever done. Without care all have their turn before the change."""
    online = opened.online
    process = online.popen(["/usr/bin/python3", "-I", "-c", PRELUDE.replace("/mnt/ca.pem", BUNDLE) + CLIENT + BOMBS], (HOST, OK), opened.flags,
                           env=opened.env, stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"up\n", process.communicate()
    run = online.bare("net", "ls", "--json").json["runs"][0]["id"]
    took = []
    for host in ("one", "two", "three"):
        began = time.monotonic()
        assert online.bare("net", "deny", run, f"{host}.example.org").ok
        took.append(time.monotonic() - began)
    _, err = process.communicate(b"\n")
    assert process.returncode == 0 and sorted(took)[1] < 2, (took, err)
