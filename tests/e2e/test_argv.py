"""argv reaches the child byte for byte."""
import json

import pytest

from helpers import requirement
from helpers.places import PYTHON

ECHO = "import os,sys,json; print(json.dumps([os.fsencode(a).hex() for a in sys.argv[1:]]))"


def echoed(cloche, *args, flags=()):
    result = cloche("run", *flags, "--", PYTHON, "-I", "-S", "-c", ECHO, *args)
    assert result.ok, result
    return [bytes.fromhex(word) for word in json.loads(result.out)]


@requirement("R01")
@pytest.mark.parametrize("words", [
    [""], ["", "", ""], ["a b", " lead", "trail "], ["line\nbreak", "\ttab", "\r\n"], ["*", "?", "[a-z]", "~", "$HOME"],
    ["`id`", "$(id)", "a;b", "a|b", "a&b", "a>b", "'", '"', "\\"], ["--", "-", "--help", "--memory", "1"],
    ["ünïcödé", "日本語", "🛎"], ["{}", "%s%n", "%", "=", "A=B"], ["-e", "-n", "-c"],
], ids=lambda w: repr(w)[:30])
def test_words_arrive_as_written(cloche, words):
    assert echoed(cloche, *words) == [w.encode() for w in words]


def test_bytes_that_are_not_utf8(cloche):
    assert echoed(cloche, b"\xff\xfe\x80", b"caf\xe9") == [b"\xff\xfe\x80", b"caf\xe9"]


def test_every_byte_but_nul(cloche):
    word = bytes(range(1, 256))
    assert echoed(cloche, word) == [word]


def test_one_huge_word(cloche):
    word = b"x" * 130_000           # the kernel's limit for one string is 128 KiB
    assert echoed(cloche, word) == [word]


def test_many_words(cloche):
    words = [b"w%d" % i for i in range(20_000)]
    assert echoed(cloche, *words) == words


def test_a_megabyte_of_words(cloche):
    words = [b"y" * 100_000] * 12
    assert echoed(cloche, *words) == words


def test_flags_after_the_command_are_the_commands(cloche):
    result = cloche("run", "echo", "--memory", "nonsense")
    assert result.ok and result.out == "--memory nonsense\n", result


def test_second_dash_dash_belongs_to_the_command(cloche):
    result = cloche("run", "--", "echo", "--", "x")
    assert result.out == "-- x\n", result


def test_argv0_is_the_word_that_was_given(cloche):
    assert cloche("run", "--", "sh", "-c", "echo $0").out == "sh\n"


def test_command_is_found_in_path_inside(cloche):
    assert cloche("run", "--", "true").ok


def test_flag_value_with_equals_sign(cloche):
    assert cloche("run", "--hostname=thathost", "--", "hostname").out == "thathost\n"
