"""Who sends what is searched for secrets byte by byte does not stop those who search (R16, R91)."""
import pytest

from helpers import requirement
from helpers.vaulted import Vaulted

pytestmark = [requirement("R16", "R91"), pytest.mark.root]

# A body in chunks of a byte, which keeps as much waiting as may be. Meanwhile another request.
FLOOD = """
import threading
def flood(s, chunks):
    try:
        while True: s.sendall(chunks)
    except OSError: pass
begin = b'http://ok.example.org/headers HTTP/1.1\\r\\nHost: ok.example.org\\r\\n'
s = dial(*P)
s.sendall(b'POST ' + begin + b'Transfer-Encoding: chunked\\r\\n\\r\\n')
piece = os.environ['TOK'].encode()[:8] + bytes(40000)
chunks = b''.join(b'1\\r\\n' + bytes([b]) + b'\\r\\n' for b in piece)
threading.Thread(target=flood, args=(s, chunks), daemon=True).start()
time.sleep(1)
for _ in range(2): print(talk(P, b'GET ' + begin + CLOSE.encode() + b'\\r\\n', 40)[:12].decode(), flush=True)
os._exit(0)
"""


def test_a_flood_of_small_chunks_stops_nobody_else(online, tmp_path):
    """A key of 1,700 bytes: what is held back of the body is ten times that, and was searched anew with each byte."""
    vaulted = Vaulted(online, tmp_path).secret(place="body", value="Zk9vQ2z" * 243)
    result = vaulted.python(FLOOD)
    assert result.ok and result.out == "HTTP/1.1 200\nHTTP/1.1 200\n", result
    assert "did not end in time" not in result.err, result
