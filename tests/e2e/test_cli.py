"""The command line itself: help, version, and errors that name the value, the rule and the way out."""
import platform
import re
import signal
import struct
import subprocess

import pytest

from helpers import places, requirement

VERBS = ["run", "code", "shell", "policy", "why", "net", "approvals", "diff", "apply", "discard", "doctor", "prove", "srt"]


@pytest.mark.parametrize("words", [["--help"], ["help"], ["-h"]])
def test_help(cloche, words):
    result = cloche(*words)
    assert result.ok and not result.err
    for verb in VERBS:
        assert verb in result.out, verb


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_each_verb(cloche, verb):
    for words in ([verb, "--help"], ["help", verb]):
        result = cloche(*words)
        # srt has its model's own help
        assert result.ok and (f"cloche {verb}" if verb != "srt" else "Usage: srt") in result.out, result


@pytest.mark.parametrize("words", [["version"], ["--version"]])
def test_version(cloche, words):
    result = cloche(*words)
    assert result.ok and re.fullmatch(r"cloche \d+\.\d+\.\d+ \((musl|glibc)\)\n", result.out), result


ET_DYN, PT_GNU_STACK, PT_GNU_RELRO, PF_X, PAGE = 3, 0x6474e551, 0x6474e552, 1, 4096


def segments(program):
    """(type of the ELF file, {segment type: (flags, address, size)}) of a 64-bit program."""
    data = program.read_bytes()
    (kind,), (table,), (count,) = (struct.unpack_from(form, data, at) for form, at in (("<H", 16), ("<Q", 32), ("<H", 56)))
    rows = [struct.unpack_from("<IIQQQQQQ", data, table + 56 * i) for i in range(count)]
    return kind, {row[0]: (row[1], row[3], row[6]) for row in rows}


def test_the_running_program_is_hardened(cloche):
    """Whatever library it is linked with: addresses are random, the stack is not code, relocated data is read-only."""
    if places.is_sanitized(cloche.binary):
        pytest.skip("a sanitized program is linked to a fixed address, to start sooner")
    kind, table = segments(cloche.binary)
    assert kind == ET_DYN and not table[PT_GNU_STACK][0] & PF_X, table
    _, address, size = table[PT_GNU_RELRO]
    running = cloche.popen("run", "--", "/bin/cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        running.stdin.write(b"x")
        running.stdin.flush()
        assert running.stdout.read(1) == b"x"
        with open(f"/proc/{running.pid}/maps", encoding="utf-8") as maps:
            mapped = [line.split() for line in maps]
    finally:
        running.communicate()
    ranges = [(*(int(end, 16) for end in row[0].split("-")), row[1], row[-1]) for row in mapped]
    base = min(begin for begin, _, _, name in ranges if name == str(cloche.binary))
    begin, end = (base + address) // PAGE * PAGE, (base + address + size) // PAGE * PAGE
    inside = [row for row in ranges if row[0] < end and row[1] > begin]
    assert inside and not any("w" in rights for _, _, rights, _ in inside), inside


def test_tables_are_copied_in_one_call(cloche, deny):
    """The one madvise(2) of `cloche version` has the kernel copy them before the C library writes their pointers; where
    it is refused they are copied one by one."""
    plain = cloche("version")
    if "musl" not in plain.out or platform.machine() != "x86_64":
        pytest.skip("the program begins with its C library")
    refused, made = (cloche.behind(*deny(f"madvise:{how}"))("version") for how in ("ENOSYS", "KILL_THREAD"))
    assert refused.ok and refused.out == plain.out, refused
    assert made.code in (-signal.SIGSYS, 128 + signal.SIGSYS) and not made.out, made


def test_nothing_at_all_shows_help_and_fails(cloche):
    result = cloche()
    assert result.code == 125 and "cloche run" in result.out + result.err, result


@pytest.mark.parametrize("verb,near", [("rnu", "run"), ("shel", "shell"), ("polcy", "policy"), ("docter", "doctor")])
def test_unknown_verb_names_the_nearest(cloche, verb, near):
    result = cloche(verb)
    assert result.code == 125 and f"{near}" in result.err and verb in result.err, result


@pytest.mark.parametrize("flag,near", [("--memroy", "--memory"), ("--worksapce", "--workspace"),
                                       ("--time-out", "--timeout"),
                                       ("--evn", "--env"), ("--jsno", "--json"), ("--netwrok", "--network")])
def test_typo_in_a_flag_names_the_nearest(cloche, flag, near):
    result = cloche("run", flag, "1", "--", "true")
    assert result.code == 125 and flag in result.err and near in result.err, result
    assert "[" in result.err


def test_flag_unlike_any_other(cloche):
    result = cloche("run", "--zzzzzzzzzz", "--", "true")
    assert result.code == 125 and "--zzzzzzzzzz" in result.err and "unknown" in result.err


def test_short_flags_are_not_silently_ignored(cloche):
    assert cloche("run", "-m", "1g", "--", "true").code == 125


def test_flag_without_its_value(cloche):
    result = cloche("run", "--memory")
    assert result.code == 125 and "--memory" in result.err, result
    assert cloche("run", "--memory", "--", "true").code == 125


def test_value_for_a_flag_that_takes_none(cloche):
    assert cloche("run", "--json=yes", "--", "true").code == 125


def test_abbreviations_are_refused(cloche):
    """--mem today must not become ambiguous tomorrow."""
    result = cloche("run", "--mem", "1g", "--", "true")
    assert result.code == 125 and "--memory" in result.err, result


def test_errors_go_to_stderr_and_have_three_parts(cloche):
    result = cloche("run", "--memory", "lots", "--", "true")
    assert not result.out
    assert result.err.startswith("cloche: "), result
    assert "lots" in result.err and "[" in result.err and "]" in result.err
    assert len(result.err.strip().splitlines()) >= 2, "a hint on the second line"


def test_no_colours_into_a_pipe(cloche):
    for words in (["--help"], ["run", "--memory", "x", "--", "true"], ["run", "--mode", "off", "--", "true"]):
        result = cloche(*words)
        assert "\x1b" not in result.out + result.err


def test_no_color_variable_on_a_terminal(cloche):
    result = cloche("run", "--memory", "x", "--", "true", pty=True, env={"NO_COLOR": "1"})
    assert "\x1b[" not in result.out, result


@pytest.mark.parametrize("engine", ["nothing", "docker", "kata"])
def test_engines_that_are_not_there(cloche, engine):
    result = cloche("run", "--engine", engine, "--", "true")
    assert result.code == 125 and engine in result.err, result


def test_engine_auto_and_native(cloche):
    for engine in ("auto", "native"):
        assert cloche("run", "--engine", engine, "--json", "--", "true").json["engine"] == "native"


def test_help_into_a_closed_pipe(cloche):
    result = cloche.run(["/bin/sh", "-c", '"$@" | true', "sh", *cloche.argv("--help")])
    assert result.ok, result


@pytest.mark.parametrize("words", [["run", "--json", "--", "true"], ["policy", "show"], ["policy", "show", "--json"],
                                   ["why", "--path", "/etc", "--op", "read"], ["version"], ["help"]], ids=" ".join)
def test_full_stdout_is_an_error(cloche, words):
    with open("/dev/full", "wb") as full:
        process = cloche.start(cloche.argv(*words), stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 125 and err, (process.returncode, err)


def test_terminal_escapes_in_our_messages_are_harmless(cloche):
    """A hostile name in an error message cannot drive the terminal."""
    result = cloche("run", "--workspace", "/no/\x1b]0;owned\x07/x", "--", "true")
    assert result.code == 125 and "\x1b" not in result.err, result
    result = cloche("run", "--", "\x1b[2Jnope")
    assert result.code == 127 and "\x1b" not in result.err, result


@requirement("R30")
def test_doctor_answers(anyone):
    result = anyone("doctor")
    assert result.code in (0, 1), result
    assert "cloche" in result.out and "sandbox" in result.out
    assert isinstance(anyone("doctor", "--json").json, dict)


@pytest.mark.parametrize("words", [
    ("doctor", "--jsn"), ("policy", "check", "--jsn"), ("policy", "show", "--jsn"), ("diff", "--jsn"), ("apply", "--jsn"), ("discard", "--jsn"),
    ("prove", "--jsn"), ("code", "--jsn"), ("shell", "--jsn"), ("net", "log", "--jsn"), ("why", "--jsn")], ids=" ".join)
def test_json_is_heard_behind_what_is_wrong(cloche, words):
    """Whoever asks for JSON reads nothing else, wherever the flag stands."""
    told = cloche(*words, "--json")
    assert told.code == 125 and told.json["reason"] == "refused" and told.json["exit_code"] == 125 and "--jsn" in told.err, told


@pytest.mark.parametrize("said,meant", [
    ("--volume", "--bind"), ("-v", "--bind"), ("--ro-bind", "--bind"), ("--policy=x.yaml", "--settings"), ("-p", "--publish"),
    ("--chdir", "--workdir"), ("--net=none", "--network"), ("--allow-host", "--allow-domain"), ("-e", "--env"), ("-m", "--memory")])
def test_words_of_other_tools_are_known(cloche, said, meant):
    told = cloche("run", said, "x", "--", "true")
    assert told.code == 125 and f"did you mean {meant}?" in told.err and f"  {meant} " in cloche("run", "--help").out, told


def test_json_of_a_command_is_its_own(cloche):
    """With `--` the flags' end is known; without it the words behind a wrong flag may be the command's."""
    assert cloche("run", "--jsn", "--json", "--", "true").json["error"]["code"] == "cli.unknown-flag"
    for words in (["--jsn", "--", "true", "--json"], ["--jsn", "true", "--json"]):
        told = cloche("run", *words)
        assert told.code == 125 and told.out == "", told
