"""libcloche (include/cloche/cloche.h) against a real daemon, and against servers that say what they should not."""
import contextlib
import os
import re
import socket
import subprocess
import threading
import time

import pytest

from helpers import places, requirement, sdk
from helpers.routes import REPO
from helpers.shared import own, shared

pytestmark = [requirement("R88"), shared]
HEADER = REPO / "include" / "cloche" / "cloche.h"
CODES = {"ConnectionLost": "api.cut", "TimedOut": "api.time", "AnswerError": "api.answer", "AnswerTooLong": "api.answer", "NotFoundError": "api.status"}
# what a reader of bytes does not look into; a stream's events are the caller's to read
NOT_READ = {"compressed", "no-json", "deep-json", "wrong-type"}
# the status says it before the rest comes; what breaks off for any reason is cut
OTHERWISE = {"redirect": "api.status", "error-without-end": "api.status", "large-length": "api.cut", "chunk-of-no-number": "api.cut"}


@pytest.fixture
def program(binary):
    path = places.find_beside(binary, "tests/lib/sdk_c")
    if path is None:
        pytest.skip("libcloche is not built: this build checks memory, or has no tests")
    return path


def run(program, socket, *words):
    return subprocess.run([str(program), *words], env={**os.environ, "CLOCHE_SOCKET": str(socket)}, capture_output=True, text=True, timeout=240,
                          check=False)


def test_against_a_daemon(program, daemon):
    done = run(program, daemon.path, "all")
    assert (done.returncode, done.stdout, done.stderr) == (0, "passed\n", ""), done


@own        # which has sandboxes made ahead then
def test_the_example_of_the_page_runs(program, daemon, binary, has, tmp_path):
    has("cc")
    (code,) = sdk.examples(REPO / "docs" / "sdk.md", "c")
    (tmp_path / "prog.c").write_text(code, encoding="ascii")
    folder = places.find_beside(binary, "src/library")
    words = ["cc", "-Wall", "-Wextra", "-Werror", "-I", REPO / "include", "prog.c", "-L", folder, f"-Wl,-rpath,{folder}", "-lcloche", "-o", "prog"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    done = run(tmp_path / "prog", daemon.path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", ""), done


def test_only_what_the_header_declares_is_there(program, binary):
    library = places.find_beside(binary, "src/library/libcloche.so.0")
    names = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    there = set(re.findall(r" [A-Z] (\w+)@@CLOCHE_0$", names, flags=re.M))
    assert len(names.splitlines()) == len(there) + 1, names       # and the version itself
    assert there == set(re.findall(r"^(?!typedef)(?:[\w ]+[ *])(cloche_\w+)\(", HEADER.read_text(encoding="utf-8"), flags=re.M)) and len(there) == 13


@pytest.mark.parametrize("language,compiler", [("c", "cc"), ("c++", "clang++")])
def test_the_header_is_alone(has, language, compiler, tmp_path):
    has(compiler)
    done = subprocess.run([compiler, "-x", language, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-"],
                          input=HEADER.read_text(encoding="utf-8"), capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("case", [name for name in sdk.HOSTILE if name not in NOT_READ])
def test_hostile_answers(program, case, world):
    says, expected = sdk.HOSTILE[case]
    path = world.root / "hostile.sock"
    with sdk.Server(says % 1 if case == "redirect" else says, path):
        done = run(program, path, "bytes")
    code = OTHERWISE.get(case) or CODES[expected]
    assert done.returncode == 0 and done.stdout == code + "\n", done


@pytest.mark.parametrize("case", ["event-without-end", "data-without-end"])
def test_hostile_events(program, case, world):
    path = world.root / "hostile.sock"
    with sdk.Server(sdk.HOSTILE_EVENTS[case][0], path):
        done = run(program, path, "events")
    assert done.returncode == 0 and done.stdout in ("api.answer\n", "api.time\n"), done       # after 32 MiB, or 2 s


def test_a_server_that_takes_slowly_what_is_sent(program, world):
    """Some of it again and again: each part is in time, the whole is not."""
    path = world.root / "hostile.sock"

    def serve(listener):
        client, _ = listener.accept()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with client:
            until = time.monotonic() + 20
            while time.monotonic() < until and client.recv(32768):
                time.sleep(0.2)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        began = time.monotonic()
        done = run(program, path, "sends")
    assert done.returncode == 0 and done.stdout == "api.time\n", done
    assert 1 <= time.monotonic() - began < 6


def test_a_server_that_takes_no_connection(program, world):
    path = world.root / "hostile.sock"
    with socket.socket(socket.AF_UNIX) as listener, contextlib.ExitStack() as stack:
        listener.bind(str(path))
        listener.listen(0)
        for _ in range(10):         # as many as wait there
            first = stack.enter_context(socket.socket(socket.AF_UNIX))
            first.setblocking(False)
            if first.connect_ex(str(path)) != 0:
                break
        else:
            pytest.fail("ten connections wait where none may")
        done = run(program, path, "sends")
    assert done.returncode == 0 and done.stdout == "api.time\n", done
