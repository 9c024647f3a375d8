"""Files over HTTP: parts of them (RFC 9110 §14), and that they are written as a whole."""
import os

import pytest

from helpers import places, requirement
from helpers.daemon import UPLOAD_SEEN, Caller, Daemon, OthersDaemon, Sandbox, Upload, kill_one, token
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
    for query, body in (("offset=2&length=3", b"234"), ("offset=8", b"89"), ("length=1", b"0"), ("offset=10", b""),
                        (f"offset={2**63 - 1}", b""), (f"offset={2**63 - 1}&length={2**63 - 1}", b""), (f"offset=9&length={2**63 - 1}", b"9")):
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
    # two names: it is written in place
    assert box.exec("cp /bin/sleep s; ln s t; ./s 600 >/dev/null 2>&1 &")["exit_code"] == 0
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


# --- whole, or not at all ---------------------------------------------------------------------------------------------

def operations(box):
    return [use["operations"] for use in box.daemon.get("/v1/usage").json["usage"] if use["id"] == box.id][0]


def inode(box, name):
    return box.exec(f"stat -c %i {name}")["stdout"]


def left(box):
    """What is in the workspace, but for what was there."""
    return [name for name in box.exec("ls -A")["stdout"].split() if name not in ("f", "stop", "by-host")]


WORKSPACES = {
    "own": lambda project: {},
    "max": lambda project: {"policy": {"mode": "max"}},
    "volume": lambda project: {"volume": {"name": "v"}},
    "bound": lambda project: {"policy": {"workspace": str(project)}},
    "cow": lambda project: {"policy": {"workspace": f"{project}:cow"}},
    "light": lambda project: {"policy": {"mode": "light", "workspace": str(project)}},
}


@pytest.fixture(params=WORKSPACES)
def somewhere(request, anyone):
    """A sandbox with each kind of workspace, ours and an ordinary user's; where there is one of the host's, `f` is in it."""
    if request.param == "light" and anyone.person is None and places.IS_ROOT:
        pytest.skip("root's own folders are not for mode light")
    daemon = (OthersDaemon if anyone.person else Daemon)(anyone)
    (anyone.project / "f").write_bytes(b"former")
    os.chown(anyone.project / "f", os.stat(anyone.project).st_uid, os.stat(anyone.project).st_gid)
    box = daemon.create(**WORKSPACES[request.param](anyone.project))
    box.kind = request.param
    if box.read("f").status == 404:
        assert box.put("f", b"former").ok
    assert box.exec("chmod 640 f")["exit_code"] == 0
    yield box
    assert daemon.stop() == 0, daemon.log


def test_a_file_is_replaced_by_a_whole_one(somewhere, anyone):
    """Whoever reads meanwhile sees the former or the new one."""
    box, before = somewhere, inode(somewhere, "f")
    texts = [bytes([c]) * 300000 for c in b"abcd"]
    assert box.put("f", texts[0]).ok and inode(box, "f") != before
    assert box.exec("while [ ! -e stop ]; do cksum < f; done > seen 2>&1 & while [ ! -s seen ]; do sleep 0.01; done")["exit_code"] == 0
    for _ in range(places.rounds(3, 10)):
        for text in texts:
            assert box.put("f", text).ok and box.read("f").body == text
    assert box.exec("touch stop")["exit_code"] == 0
    wanted = set(box.exec("for c in a b c d; do head -c 300000 /dev/zero | tr '\\0' $c | cksum; done")["stdout"].splitlines())
    assert len(wanted) == 4
    seen = set(box.exec("cat seen")["stdout"].splitlines())
    assert seen and seen <= wanted, seen - wanted
    assert box.daemon.get(f"{box.at}/stat/f").json["mode"] == "0640"
    assert left(box) == ["seen"]
    if box.kind in ("bound", "light"):
        there = anyone.project / "f"
        assert there.read_bytes() == texts[-1] and there.stat().st_uid == anyone.project.stat().st_uid


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
@pytest.mark.parametrize("kind", [kind for kind in WORKSPACES if kind != "light" or not places.IS_ROOT])
def test_what_breaks_off_changes_nothing(cloche, daemon, kind, chunked):
    (cloche.project / "f").write_bytes(b"former")
    box = daemon.create(**WORKSPACES[kind](cloche.project))
    assert kind in ("bound", "cow", "light") or box.put("f", b"former").ok
    before = box.exec("stat -c '%i %a %Y %s' f")["stdout"]
    total = 3 * UPLOAD_SEEN
    for name in ("f", "new"):
        for sent in (0, 1, UPLOAD_SEEN + 1, total - 1):
            upload = Upload(box, name, total, chunked=chunked).send(b"x" * sent)
            assert sent < UPLOAD_SEEN or wait_for(lambda: operations(box) == 1, 10), sent
            assert box.read("f").body == b"former" and left(box) == []
            upload.break_off()
            assert wait_for(lambda: operations(box) == 0)
            assert box.exec("stat -c '%i %a %Y %s' f")["stdout"] == before and left(box) == [], (name, sent)
    assert Upload(box, "f", total, chunked=chunked).send(b"x" * total).end()[0] == 200
    assert box.read("f").body == b"x" * total


def test_a_sandbox_that_dies_leaves_nothing(cloche, daemon):
    (cloche.project / "f").write_bytes(b"former")
    box = daemon.create(policy={"workspace": str(cloche.project)})
    uploads = [Upload(box, name, 3 * UPLOAD_SEEN).send(b"x" * 2 * UPLOAD_SEEN) for name in ("f", "new")]
    assert wait_for(lambda: operations(box) == 2)
    kill_one(daemon, "cloche-guest")
    assert wait_for(lambda: box.show()["state"] not in ("ready", "busy"))
    for upload in uploads:
        upload.break_off()
    assert os.listdir(cloche.project) == ["f"] and (cloche.project / "f").read_bytes() == b"former"


def test_a_credential_that_ends_leaves_nothing(daemon):
    made = token(daemon, "agent")
    box = Caller(daemon, Authorization=f"Bearer {made['token']}").create()
    assert box.put("f", b"former").ok
    upload = Upload(box, "f", 3 * UPLOAD_SEEN).send(b"x" * 2 * UPLOAD_SEEN)
    assert wait_for(lambda: operations(Sandbox(daemon, box.record)) == 1)
    assert daemon("DELETE", f"/v1/tokens/{made['id']}").ok
    assert upload.send(b"x" * UPLOAD_SEEN).status() == (401, "auth.ended")
    assert daemon.get(box.file("f")).body == b"former"


def test_where_there_is_no_room(daemon):
    box = daemon.create(policy={"limits": {"disk": "8m"}})
    assert box.put("f", b"former").ok
    for name in ("f", "new"):
        answer = box.put(name, b"x" * (16 << 20))
        assert answer.status == 507 or answer.json["code"] == "files.no-space", answer
        assert box.read("f").body == b"former" and left(box) == []
    assert box.put("f", b"x" * (4 << 20)).ok and box.put("g", b"x" * (2 << 20)).ok     # what was written is free again


def test_two_uploads_at_once(box):
    half, total = 2 * UPLOAD_SEEN, 4 * UPLOAD_SEEN
    assert box.put("f", b"former").ok
    one, two = (Upload(box, "f", total).send(c * half) for c in (b"1", b"2"))
    one.send(b"1" * half)
    assert one.end()[0] == 200 and box.read("f").body == b"1" * total
    two.send(b"2" * half)
    assert two.end()[0] == 200 and box.read("f").body == b"2" * total
    one, two = (Upload(box, "new", total, "?exclusive=true").send(c * half) for c in (b"1", b"2"))
    two.send(b"2" * half)
    assert two.end()[0] == 200
    one.send(b"1" * half)
    assert one.end() == (409, "files.exists") and box.read("new").body == b"2" * total
    assert left(box) == ["new"]


def test_what_is_written_in_place(cloche, daemon):
    """A second name goes on being of the same file, and a mount is one; what may not be written stays."""
    for name in ("f", "protected", "closed/open", "closed/shut"):
        (cloche.project / name).parent.mkdir(exist_ok=True)
        (cloche.project / name).write_bytes(b"former")
    box = daemon.create(policy={"workspace": str(cloche.project), "filesystem": {
        "deny-write": [str(cloche.project / "closed"), str(cloche.project / "protected")], "allow-write": [str(cloche.project / "closed" / "open")]}})
    assert box.exec("ln f g; ln -s f link; printf former > ro; chmod 400 ro")["exit_code"] == 0
    assert box.put("g", b"new").ok and box.read("f").body == b"new"
    assert box.exec("rm g")["exit_code"] == 0
    assert box.put("link", b"newer").ok and box.read("f").body == b"newer"
    assert box.exec("readlink link")["stdout"] == "f\n"
    for name in ("ro", "protected", "closed/shut", "closed/open", "closed/new"):
        answer = box.put(name, b"x")
        assert answer.status == 403 and answer.json["code"] in ("files.denied", "files.read-only"), (name, answer)
        assert name == "closed/new" or box.read(name).body == b"former"
    assert sorted(os.listdir(cloche.project)) == ["closed", "f", "link", "protected", "ro"]


def test_a_program_that_runs_is_replaced(box):
    assert box.exec("cp /bin/sleep s; ./s 600 >/dev/null 2>&1 &")["exit_code"] == 0
    assert wait_for(lambda: "s 600" in box.exec("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")["stdout"], 60)
    assert box.put("s", b"#!/bin/sh\necho new\n").ok
    assert box.exec("./s")["stdout"] == "new\n"
    assert "s 600" in box.exec("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")["stdout"]


def test_what_is_refused_says_the_way_out(box):
    daemon = box.daemon
    assert daemon("PUT", f"/v1/sandboxes/{box.id}/files/a/b?parents=true", b"x").ok
    for method, path, code, way in (("GET", "files/a", "files.is-a-directory", "dirs/PATH"), ("DELETE", "files/a", "files.not-empty", "recursive=true"),
                                    ("PUT", "files/c/d", "files.not-found", "parents=true"), ("GET", "dirs/a/b", "files.not-a-directory", "stat/PATH")):
        said = daemon(method, f"/v1/sandboxes/{box.id}/{path}", b"x" if method == "PUT" else None)
        assert said.json["code"] == code and way in said.json["detail"], said
    # what a client makes of `files=` is no file
    form = b'--b\r\nContent-Disposition: form-data; name="file"; filename="m"\r\n\r\nx\r\n--b--\r\n'
    said = daemon("PUT", f"/v1/sandboxes/{box.id}/files/m", form, {"Content-Type": "multipart/form-data; boundary=b"})
    assert (said.status, said.json["code"]) == (415, "http.media-type") and "curl -T" in said.json["detail"], said
    assert daemon.get(f"/v1/sandboxes/{box.id}/stat/m").status == 404
