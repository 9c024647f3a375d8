"""stdin, stdout and stderr: bytes, separation, order, ends."""
import base64
import hashlib
import os
import subprocess

import pytest

from helpers import requirement
from helpers.places import PYTHON

HASH = "import sys,hashlib; d=sys.stdin.buffer.read(); print(len(d), hashlib.sha256(d).hexdigest())"


def noise(size):
    return hashlib.shake_256(b"noise").digest(size)


@requirement("R01")
@pytest.mark.parametrize("flags", [[], ["--json"], ["--report", "report.json"]], ids=["plain", "json", "report"])
def test_ten_megabytes_of_binary_stdin(cloche, flags):
    data = noise(10_000_000)
    result = cloche.sandbox(HASH, flags=flags, stdin=data)
    assert result.ok, result
    said = result.json["stdout"] if "--json" in flags else result.out
    assert said == f"{len(data)} {hashlib.sha256(data).hexdigest()}\n"


def test_ten_megabytes_of_binary_stdout(cloche):
    data = noise(10_000_000)
    result = cloche("run", "--", "cat", stdin=data)
    assert result.ok and result.out_bytes == data


def test_both_directions_at_once(cloche):
    """More than any pipe holds, both ways, without a reader on the other side for a while."""
    data = noise(5_000_000)
    result = cloche("run", "--output", "0", "--json", "--", "cat", stdin=data)
    assert result.ok, result
    assert base64.b64decode(result.json["stdout_base64"]) == data


def test_streams_are_separate(cloche):
    result = cloche("run", "--", "sh", "-c", "echo out; echo err >&2")
    assert (result.out, result.err) == ("out\n", "err\n")


def test_streams_are_separate_in_json(cloche):
    report = cloche("run", "--json", "--", "sh", "-c", "echo out; echo err >&2").json
    assert (report["stdout"], report["stderr"]) == ("out\n", "err\n")
    assert (report["stdout_bytes"], report["stderr_bytes"]) == (4, 4)


def test_closed_stdin_reads_as_end(cloche):
    assert cloche("run", "--", "cat").out == ""


def test_stdin_from_a_file(cloche, project):
    """The bytes arrive; the file itself does not (it could be opened again with more rights)."""
    path = project / "input"
    path.write_bytes(b"0123456789")
    with open(path, "rb") as f:
        result = cloche.sandbox("import os,sys; print(sys.stdin.read(), os.readlink('/proc/self/fd/0').split(':')[0])",
                                stdin=f)
    assert result.out == "0123456789 pipe\n", result


def test_stdout_to_a_file(cloche, project):
    """Appended, as a shell's >> does; and the file itself is not handed in."""
    path = project / "output"
    path.write_bytes(b"before\n")
    with open(path, "ab") as f:
        process = cloche.start(cloche.argv("run", "--", "sh", "-c", "echo during; readlink /proc/self/fd/1"), stdout=f)
        assert process.wait(60) == 0
    assert path.read_text().startswith("before\nduring\npipe:"), path.read_text()


def test_stdin_dev_null(cloche):
    with open(os.devnull, "rb") as f:
        assert cloche("run", "--", "cat", stdin=f).out == ""


def test_child_that_never_reads_stdin(cloche):
    for flags in ([], ["--json"]):
        assert cloche("run", *flags, "--", "true", stdin=noise(3_000_000)).ok


def test_reader_that_goes_away(cloche):
    """cloche run -- yes | head -1"""
    process = cloche.popen("run", "--", "yes")
    assert process.stdout.readline() == b"y\n"
    process.stdout.close()
    assert process.wait(60) in (141, 1), process.returncode


def test_closed_descriptors_of_ours(cloche):
    """cloche <&- >&- 2>&-: the child gets /dev/null, never one of our own files."""
    script = 'exec "$@" <&- 2>&-'
    result = cloche.run(["/bin/sh", "-c", script, "sh", *cloche.argv("run", "--", PYTHON, "-I", "-S", "-c",
                         "import os; print([os.readlink(f'/proc/self/fd/{n}') for n in (0, 2)])")])
    assert result.ok, result
    assert result.out in ("['/dev/null', '/dev/null']\n",), result


def test_output_is_not_held_back(cloche):
    """What the child wrote arrives while it is still running."""
    process = cloche.popen("run", "--", "sh", "-c", "echo first; read x; echo second $x", stdin=subprocess.PIPE)
    assert process.stdout.readline() == b"first\n"
    process.stdin.write(b"word\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"second word\n"
    assert process.wait(60) == 0


def test_nul_bytes_and_invalid_utf8_in_json(cloche):
    report = cloche("run", "--json", "--", "printf", r"a\000b\377").json
    assert "stdout" not in report or report["stdout"] is None
    assert base64.b64decode(report["stdout_base64"]) == b"a\0b\xff"
    assert report["stderr"] == ""


def test_control_characters_in_json_are_escaped(cloche):
    report = cloche("run", "--json", "--", "printf", r"\001\t\033[31m\"\\").json
    assert report["stdout"] == "\x01\t\x1b[31m\"\\"


def test_utf8_cut_in_the_middle_is_still_one_json_object(cloche):
    """The cut falls inside a character: base64, or the character is left out; never broken JSON."""
    report = cloche("run", "--json", "--output", "1001", "--", PYTHON, "-c", "print('é' * 1000)").json
    assert report["stdout_truncated"] is True
    kept = base64.b64decode(report["stdout_base64"]) if "stdout_base64" in report else report["stdout"].encode()
    assert ("é" * 1000).encode().startswith(kept) or kept == ("é" * 1000).encode()[:1001]


@pytest.mark.ordinary
def test_stdio_as_an_ordinary_user(cloche):
    data = noise(1_000_000)
    assert cloche("run", "--", "cat", stdin=data).out_bytes == data
