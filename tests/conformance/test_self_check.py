"""The behavioural checks that inspect_ai asks of any sandbox (its self_check), under the same names.

Its interface is read_file, write_file and exec. Over the command line these are runs that share one bound folder:
write_file is `cat > FILE` with the content on stdin, read_file is `cat FILE`, exec is the run itself. Where the
original expects a Python exception, the exit code and the message say the same here.
"""
import json

import pytest

from helpers import requirement

pytestmark = requirement("R61", "R65")
UTF = "✨☽︎✨🌞︎︎✨🚀✨"


class Environment:
    """exec, read_file and write_file over one project folder. @flags: the engine's."""

    def __init__(self, cloche, *flags):
        self.cloche, self.flags = cloche, flags
        self.scratch = cloche.project.parent / "tmpshare"
        self.scratch.mkdir()

    def exec(self, *argv, flags=(), **kw):
        return self.cloche("run", "--workspace", self.cloche.project, "--bind", f"{self.scratch}:/tmp/kept:rw",
                           *self.flags, *flags, "--", *argv, **kw)

    def write_file(self, name, content):
        if isinstance(content, str):
            content = content.encode()
        return self.exec("/bin/sh", "-c", 'mkdir -p -- "$(dirname -- "$1")" && cat > "$1"', "sh", name, stdin=content)

    def read_file(self, name):
        return self.exec("cat", "--", name)


@pytest.fixture
def env(cloche):
    return Environment(cloche)


def roundtrip(env, name, content):
    wrote = env.write_file(name, content)
    assert wrote.ok, wrote
    read = env.read_file(name)
    assert read.ok, read
    return read.out_bytes


def test_read_and_write_file_text(env):
    assert roundtrip(env, "t.file", "great #content\nincluding newlines") == b"great #content\nincluding newlines"


def test_read_and_write_file_binary(env):
    assert roundtrip(env, "b.file", b"\xc3\x28") == b"\xc3\x28"


def test_read_and_write_large_file_binary(env):
    assert roundtrip(env, "large.file", b"\xc3" * 5_000_000) == b"\xc3" * 5_000_000


def test_write_file_text_utf(env):
    assert roundtrip(env, "u.file", UTF).decode() == UTF


def test_read_and_write_file_including_directory_absolute(env):
    assert roundtrip(env, "/tmp/kept/absolute/test.file", "absolutely in a directory") == b"absolutely in a directory"


def test_read_and_write_file_including_directory_relative(env):
    assert roundtrip(env, "relative/test.file", "relatively in a directory") == b"relatively in a directory"


def test_read_file_zero_length(env):
    assert env.exec("touch", "zero.file").ok
    assert env.read_file("zero.file").out_bytes == b""


def test_read_file_not_found(env):
    result = env.read_file("nonexistent")
    assert not result.ok and "nonexistent" in result.err and "No such file" in result.err


def test_read_file_not_allowed(env):
    env.write_file("closed.file", "inaccessible #content")
    assert env.exec("chmod", "a-r", "closed.file").ok
    result = env.read_file("closed.file")
    assert not result.ok and "closed.file" in result.err and "ermission denied" in result.err, result


def test_read_file_is_directory(env):
    result = env.read_file("/etc")
    assert not result.ok and "directory" in result.err


def test_read_file_nonsense_name(env):
    result = env.read_file("https:/en.wikipedia.org/wiki/Bart%C5%82omiej_Kasprzykowski")
    assert not result.ok and "wikipedia" in result.err


def test_read_file_limit(env):
    env.write_file("limited.file", "a" * 2048)
    result = env.exec("cat", "limited.file", flags=["--json", "--output", "1024"])
    assert result.json["stdout_truncated"] is True and result.json["stdout"] == "a" * 1024


@pytest.mark.parametrize("content", ["", b""], ids=["text", "binary"])
def test_write_file_zero_length(env, content):
    assert roundtrip(env, "zero.file", content) == b""


@pytest.mark.parametrize("content", ["to the moon", b"\xc3\x28"], ids=["text", "binary"])
def test_write_file_space(env, content):
    expected = content.encode() if isinstance(content, str) else content
    assert roundtrip(env, "file with space.file", content) == expected


@pytest.mark.parametrize("content", ["dummy", b"\xc3\x28"], ids=["text", "binary"])
def test_write_file_is_directory(env, content):
    env.write_file("/tmp/kept/directory/file", "unused content")
    result = env.write_file("/tmp/kept/directory", content)
    assert not result.ok and "irectory" in result.err


@pytest.mark.parametrize("content", ["this won't stick", b"\xc3\x28"], ids=["text", "binary"])
def test_write_file_without_permissions(env, content):
    env.write_file("fixed.file", "impervious #content")
    assert env.exec("chmod", "a-w", "fixed.file").ok
    result = env.write_file("fixed.file", content)
    assert not result.ok and "fixed.file" in result.err and "ermission denied" in result.err
    assert env.read_file("fixed.file").out == "impervious #content"


@pytest.mark.parametrize("content", ["altered content", b"\xc3\x29"], ids=["text", "binary"])
def test_write_file_exists(env, content):
    env.write_file("exists.file", "mundane content, and longer")
    expected = content.encode() if isinstance(content, str) else content
    assert roundtrip(env, "exists.file", content) == expected


def test_exec_output(env):
    assert env.exec("sh", "-c", "echo foo; echo bar").out == "foo\nbar\n"


def test_exec_stderr(env):
    result = env.exec("sh", "-c", "echo boof; echo baz >&2")
    assert (result.out, result.err) == ("boof\n", "baz\n")


def test_exec_utf8(env):
    assert env.exec("printf", "%s", UTF).out == UTF


@pytest.mark.parametrize("code", [0, 1, 70, 255])
def test_exec_returncode(env, code):
    assert env.exec("sh", "-c", f"exit {code}").code == code


def test_exec_timeout(env):
    result = env.exec("sleep", "100", flags=["--json", "--timeout", "500ms"])
    assert result.code == 124 and result.json["timed_out"] is True


def test_exec_timeout_kills_process(env):
    """What the process would have done after the timeout does not happen."""
    env.exec("sh", "-c", "trap '' TERM; sleep 1; sleep 1; echo late > late.file",
             flags=["--timeout", "300ms", "--grace", "100ms"])
    assert not env.exec("sh", "-c", "sleep 2.5; test -e late.file").ok


def test_exec_timeout_kills_child_processes(env):
    env.exec("sh", "-c", "(trap '' TERM; sleep 1; echo late > late.file) & (setsid sh -c 'sleep 1; echo x > "
                         "late2.file') & "
             "sleep 100", flags=["--timeout", "300ms", "--grace", "100ms"])
    assert env.exec("sh", "-c", "sleep 2; ls").out == ""


def test_exec_timeout_not_raised_on_fast_signal_death(env):
    result = env.exec("sh", "-c", "kill -TERM $$; sleep 9", flags=["--json", "--timeout", "60"])
    assert result.code == 143 and result.json["timed_out"] is False and result.json["reason"] == "signaled"


def test_exec_timeout_not_raised_on_exit_143(env):
    result = env.exec("sh", "-c", "exit 143", flags=["--json", "--timeout", "60"])
    assert result.code == 143 and result.json["timed_out"] is False and result.json["reason"] == "exited"


def test_exec_permission_error(env):
    result = env.exec("/etc/passwd")
    assert result.code == 126 and "ermission denied" in result.err


def test_exec_env_vars(env):
    result = env.exec("sh", "-c", 'echo "$A|$B"', flags=["--env", "A=some value", "--env", "B=$HOME 'x' \"y\""])
    assert result.out == "some value|$HOME 'x' \"y\"\n"


def test_exec_input_text(env):
    assert env.exec("cat", stdin="Hello, world!").out == "Hello, world!"


def test_exec_input_shell_special(env):
    text = "$(id) `id` ; | & > < * ? \\ \" ' \n #end"
    assert env.exec("cat", stdin=text).out == text


def test_exec_input_binary(env):
    assert env.exec("cat", stdin=bytes(range(256))).out_bytes == bytes(range(256))


def test_exec_input_large(env):
    data = b"0123456789abcdef" * 200_000
    assert env.exec("wc", "-c", stdin=data).out.strip() == str(len(data))


def test_exec_input_none_is_end_of_file(env):
    assert env.exec("cat").out == ""


def test_exec_large_command(env):
    word = "x" * 100_000
    assert env.exec("sh", "-c", "printf %s \"$1\" | wc -c", "sh", word).out.strip() == "100000"


def test_exec_as_user(env):
    assert env.exec("whoami").out == "agent\n"
    assert env.exec("id", "-u", flags=["--user", "1500"]).out == "1500\n"


def test_exec_as_nonexistent_user(env):
    result = env.exec("whoami", flags=["--user", "nonexistent"])
    assert result.code == 125 and "nonexistent" in result.err


def test_cwd_unspecified(env):
    env.write_file("unspecified.file", "ls me plz")
    assert "unspecified.file" in env.exec("ls", "-1").out


def test_cwd_custom(env):
    assert "env" in env.exec("ls", flags=["--workdir", "/usr/bin"]).out.split()


def test_cwd_relative(env):
    env.write_file("subdir/relative.file", "ls me plz")
    result = env.exec("ls", flags=["--workdir", "/workspace/subdir"])
    assert "relative.file" in result.out


def test_cwd_absolute(env):
    env.write_file("/tmp/kept/cwd/absolute.file", "ls me plz")
    assert "absolute.file" in env.exec("ls", flags=["--workdir", "/tmp/kept/cwd"]).out


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_exec_output_is_limited(env, stream):
    size = 1024 * 1024 + 1024
    to = " 1>&2" if stream == "stderr" else ""
    result = env.exec("sh", "-c", f"yes | head -c {size}{to}", flags=["--json", "--output", "1m"])
    report = json.loads(result.out)
    assert report[f"{stream}_truncated"] is True
    assert len(report[stream]) == 1024 * 1024
