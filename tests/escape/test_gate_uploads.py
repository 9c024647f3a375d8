"""What a file is to hold is judged with the request that writes it, and an approval is for those bytes and no others."""
import hashlib

import pytest

from helpers import requirement
from helpers.approvals import ASYNC, Asking, one_pending, pending
from helpers.daemon import Daemon, caller
from helpers.runner import wait_for

pytestmark = [requirement("R63"), requirement("R68")]

SEEN = 1 << 20      # so much of a body is looked at before the request is judged
PROGRAMS = {"script": b"#!/bin/sh\ntouch /tmp/x\n", "elf": b"\x7fELF\x02\x01\x01\0", "pe": b"MZ\x90\0", "wasm": b"\0asm\1\0\0\0",
            "class": b"\xca\xfe\xba\xbe\0\0", "jar": b"PK\3\4\x0a\0"}


@pytest.fixture
def lenient(cloche):
    """Text is written unasked, programs are not."""
    rules = cloche.cwd / "gate.yaml"
    rules.write_text("gate:\n  auto-approve: [LOW, MEDIUM]\n", encoding="ascii")
    daemon = Daemon(cloche, gate=rules)
    yield daemon
    daemon.stop()


@pytest.fixture
def strict(cloche):
    daemon = Daemon(cloche, gate=None)
    yield daemon
    daemon.stop()


def pieces(data, size):
    return (data[i:i + size] for i in range(0, len(data), size))


def put(who, box, name, data, headers=ASYNC):
    return who("PUT", f"{box.at}/files/{name}", data, headers)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_asked_about_whatever_its_name(lenient, name):
    agent, approver = caller(lenient, "agent"), caller(lenient, "approver")
    box = agent.create()
    assert put(agent, box, "notes.txt", b"plain words, and #! behind them\n").status == 200
    for data in (PROGRAMS[name], PROGRAMS[name] + b"x" * 2 * SEEN):
        headers = {} if len(data) > SEEN else ASYNC
        asking = Asking(agent, "PUT", f"{box.at}/files/notes.txt", data, headers)
        asked = one_pending(approver)
        assert asked["tool"] == "code_write_file" and asked["risk"] == "HIGH" and asked["params"]["program"] is True, asked
        assert approver.post(f"/v1/approvals/{asked['id']}/deny").status == 200
        assert asking.wait().status in (202, 403), asking.answer
    assert lenient.get(f"{box.at}/files/notes.txt").body == b"plain words, and #! behind them\n"


def test_it_is_seen_however_slowly_it_comes(lenient):
    agent, approver = caller(lenient, "agent"), caller(lenient, "approver")
    box = agent.create()
    asking = Asking(agent, "PUT", f"{box.at}/files/f", pieces(PROGRAMS["script"], 1))
    asked = one_pending(approver)
    assert asked["params"]["content_start"] == PROGRAMS["script"].decode(), asked
    assert approver.post(f"/v1/approvals/{asked['id']}/approve").status == 200
    assert asking.wait().status == 200 and lenient.get(f"{box.at}/files/f").body == PROGRAMS["script"]


def test_an_approval_is_for_these_bytes(strict):
    agent, approver = caller(strict, "agent"), caller(strict, "approver")
    box = agent.create()
    text = b"only words\n"
    first = put(agent, box, "f", text)
    assert first.status == 202, first
    asked = one_pending(approver)
    assert asked["params"]["content_sha256"] == hashlib.sha256(text).hexdigest() and asked["params"]["content_bytes"] == len(text), asked
    assert asked["params"]["content_start"] == text.decode() and asked["params"]["content_unseen"] is False, asked
    assert approver.post(f"/v1/approvals/{asked['id']}/approve").status == 200
    for other in (PROGRAMS["script"], b"only wordz\n", text + b"\n", b""):
        answer = put(agent, box, "f", other)
        assert answer.status == 202 and answer.json["approval"] != asked["id"], answer
    assert strict.get(f"{box.at}/files/f").status == 404
    assert put(agent, box, "f", text).status == 200
    assert strict.get(f"{box.at}/files/f").body == text
    assert put(agent, box, "f", text).status == 202, "once"


def test_what_nobody_saw_the_end_of_is_for_its_own_request(strict):
    agent, approver = caller(strict, "agent"), caller(strict, "approver")
    box = agent.create()
    data = b"words " * (SEEN // 2)
    refused = put(agent, box, "f", data)
    assert refused.status == 413 and refused.json["code"] == "gate.too-large", refused
    asking = Asking(agent, "PUT", f"{box.at}/files/f", data)
    asked = one_pending(approver)
    assert asked["params"]["content_unseen"] is True and asked["risk"] == "HIGH" and "content_sha256" not in asked["params"], asked
    assert approver.post(f"/v1/approvals/{asked['id']}/approve").status == 200
    assert asking.wait().status == 200 and strict.get(f"{box.at}/files/f").body == data
    again = Asking(agent, "PUT", f"{box.at}/files/f", data)
    assert wait_for(lambda: pending(approver)) and one_pending(approver)["digest"] != asked["digest"]
    assert approver.post(f"/v1/approvals/{one_pending(approver)['id']}/deny").status == 200
    assert again.wait().status == 403


@pytest.mark.parametrize("size", [0, 1, SEEN - 1, SEEN, SEEN + 1, 3 * SEEN + 5])
@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_nothing_of_it_is_lost(strict, size, chunked):
    box = strict.create()
    data = hashlib.shake_128(str(size).encode()).digest(size)
    answer = put(strict, box, "f", pieces(data, 40000) if chunked else data, {})
    assert answer.status == 200 and answer.json["size"] == size, answer
    assert strict.get(f"{box.at}/files/f").body == data
