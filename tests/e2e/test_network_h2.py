"""HTTP/2 where TLS is opened: real clients, many streams, each decided on by itself; secrets go in and do not come out."""
import hashlib

import pytest

from helpers import requirement
from helpers.h2 import HOST, field, start
from helpers.vaulted import VALUE, denied

pytestmark = [requirement("R13", "R14", "R16"), pytest.mark.root]
way = pytest.mark.parametrize("transparent", [False, True], ids=["proxy", "transparent"])


@pytest.fixture
def h2(online, command, tmp_path):
    made = start(online, command, tmp_path)
    yield made
    made.far.finish()


@pytest.fixture
def opened(h2):
    """A secret for the host makes sure that its TLS is opened."""
    return h2.secret(host=HOST)


# --- clients ----------------------------------------------------------------------------------------------------------

@way
def test_curl(opened, transparent):
    result = opened.sh("curl -sS --max-time 40 -w ' %{http_version}' -H \"Authorization: Bearer $TOK\" "
                       f"https://{HOST}/mirror; echo; echo $TOK", transparent, allow=(HOST,))
    placeholder = result.out.strip().rsplit("\n", 1)[-1]
    assert result.ok and " 2\n" in result.out and VALUE not in result.out, result
    assert f"authorization: Bearer {placeholder}" in result.out
    assert field(opened.far.requests[0], "authorization") == [f"Bearer {VALUE}"]
