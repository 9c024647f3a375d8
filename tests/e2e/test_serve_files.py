"""Parts of files over HTTP (RFC 9110 §14)."""
import os

import pytest

from helpers import requirement
from helpers.daemon import Daemon
from helpers.runner import wait_for

pytestmark = requirement("R61")
SIZE = 9 << 20      # more than the keeper asks the guest for at once


@pytest.fixture
def box(cloche):
    daemon = Daemon(cloche)
    yield daemon.create()
    assert daemon.stop() == 0, daemon.log


def part(box, name, value, method="GET", **headers):
    return box.daemon(method, box.file(name), headers={"Range": value, **headers})


def test_ranges(box):
    data = os.urandom(SIZE)
    assert box.put("f", data).ok
    for value, first, last in (("bytes=0-0", 0, 0), ("bytes=10-19", 10, 19), ("Bytes=5-", 5, SIZE - 1), ("bytes=-7", SIZE - 7, SIZE - 1),
                               (f"bytes=-{SIZE * 2}", 0, SIZE - 1), (f"bytes={SIZE - 1}-{SIZE * 9}", SIZE - 1, SIZE - 1),
                               (f"bytes={4 << 20}-{(8 << 20) + 5}", 4 << 20, (8 << 20) + 5)):
        answer = part(box, "f", value)
        assert answer.status == 206 and answer.headers["Content-Range"] == f"bytes {first}-{last}/{SIZE}", (value, answer.headers)
        assert answer.headers["Content-Length"] == str(last - first + 1) and answer.body == data[first:last + 1], value
    for value in (f"bytes={SIZE}-", "bytes=-0", f"bytes={SIZE}-{SIZE + 4}"):
        answer = part(box, "f", value)
        assert answer.status == 416 and answer.headers["Content-Range"] == f"bytes */{SIZE}", (value, answer)
        assert answer.json["code"] == "files.range"
    # what is no single range, and what is to hold for an unchanged file only, is answered with the whole
    for value in ("bytes=0-1,4-5", "bytes=5-4", "bytes=x-y", "bytes=-", "lines=1-2", "bytes=18446744073709551616-", "bytes= 1-2"):
        answer = part(box, "f", value)
        assert answer.status == 200 and answer.body == data, value
    assert part(box, "f", "bytes=0-1", **{"If-Range": '"x"'}).status == 200


def test_a_part_that_the_query_names(box):
    assert box.put("f", b"0123456789").ok
    whole = box.daemon.get(box.file("f"))
    assert whole.body == b"0123456789" and whole.headers["Accept-Ranges"] == "bytes"
    for query, body in (("offset=2&length=3", b"234"), ("offset=8", b"89"), ("length=1", b"0"), ("offset=10", b"")):
        assert box.daemon.get(f"{box.file('f')}?{query}").body == body, query
    for query in ("length=0", "offset=-1", "length=x", "offset="):
        answer = box.daemon.get(f"{box.file('f')}?{query}")
        assert answer.status == 400 and answer.json["code"] == "files.request", query
    # the query goes before Range; one that says nothing of it does not
    for query, status, body in (("offset=1", 200, b"123456789"), ("of=1", 206, b"012")):
        answer = box.daemon("GET", f"{box.file('f')}?{query}", headers={"Range": "bytes=0-2"})
        assert (answer.status, answer.body) == (status, body), query


def test_a_part_is_not_written_over_the_whole(box):
    """As curl -C - sends the rest of a file (RFC 9110 §14.5)."""
    assert box.put("f", b"0123456789").ok
    answer = box.daemon("PUT", box.file("f"), b"89", {"Content-Range": "bytes 8-9/10"})
    assert answer.status == 400 and "Content-Range" in answer.json["error"], answer
    assert box.read("f").body == b"0123456789"


@pytest.mark.parametrize("mode", ["standard", "max"])
def test_the_mode_that_is_asked_for(box, mode):
    box = box.daemon.create(policy={"mode": mode})
    for asked in ("755", "600", "777", "640"):
        assert box.daemon("PUT", f"{box.file('f')}?mode={asked}", b"x").ok
        assert box.daemon.get(f"{box.at}/stat/f").json["mode"] == f"0{asked}"
    assert box.put("f", b"y").ok and box.daemon.get(f"{box.at}/stat/f").json["mode"] == "0640"


def test_what_the_caller_can_help_is_no_failure_of_ours(box):
    for path in ("", ".", "?recursive=true"):
        answer = box.daemon("DELETE", box.file("") + path)
        assert answer.status == 409 and answer.json["code"] == "files.busy", answer
    for method, body in (("GET", None), ("PUT", b"x"), ("DELETE", None)):
        answer = box.daemon(method, box.file("n" * 256), body)
        assert answer.status == 400 and answer.json["code"] == "files.name-too-long", answer
    assert box.exec("cp /bin/sleep s; ./s 600 >/dev/null 2>&1 &")["exit_code"] == 0
    assert wait_for(lambda: "s 600" in box.exec("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")["stdout"], 60)
    answer = box.put("s", b"x")
    assert answer.status == 409 and answer.json["code"] == "files.busy", answer
    for path, code in (("a/" * 2050, "files.path"), ("a/" * 5000, "http.uri-too-long")):
        answer = box.daemon.get(box.file(path))
        assert answer.status == 414 and answer.json["code"] == code, answer
    # what counts is the path, not how it is written
    assert box.daemon.get(box.file("") + "%C3%A9/" * 1300).status == 404


def test_what_has_no_parts(box):
    assert box.put("empty", b"").ok
    assert part(box, "empty", "bytes=0-").status == 416
    assert part(box, "absent", "bytes=0-1").status == 404
    assert part(box, "", "bytes=0-1").status == 409
    assert part(box, "..", "bytes=0-1").status == 403


def test_head(box):
    assert box.put("f", b"x" * 12345).ok
    answer = box.daemon("HEAD", box.file("f"))
    assert answer.status == 200 and answer.headers["Content-Length"] == "12345" and answer.body == b"", answer.headers
    assert box.daemon("HEAD", box.file("absent")).status == 404
    assert box.daemon("HEAD", box.file("")).status == 409
    token = box.daemon.token("agent")
    for method in ("HEAD", "GET"):      # another's is not there, whole or in part
        answer = box.daemon(method, box.file("f"), headers={"Authorization": f"Bearer {token}", "Range": "bytes=0-1"})
        assert answer.status == 404 and b"x" not in answer.body[:1], answer
