"""cloche code: a piece of Python, JavaScript or shell from a file or stdin, with the source's limits."""
import pytest

from helpers import requirement
from helpers.runner import limit_of

HELLO = {"python": "import sys; print('hello', sys.version_info[0], __file__)",
         "javascript": "console.log('hello', process.version.split('.')[0], __filename)",
         "shell": "echo hello $BASH_VERSINFO $0"}
NAME = {"python": "/workspace/script.py", "javascript": "/workspace/script.js", "shell": "/workspace/script.sh"}


@requirement("R64")
@pytest.mark.parametrize("language", HELLO)
def test_from_stdin(anyone, language):
    result = anyone("code", "--language", language, "-", stdin=HELLO[language])
    assert result.ok and result.out.startswith("hello "), result
    assert result.out.strip().endswith(NAME[language])


@requirement("R64")
@pytest.mark.parametrize("language", HELLO)
def test_from_a_file(cloche, project, language):
    path = project / "thing with space"
    path.write_text(HELLO[language], encoding="utf-8")
    result = cloche("code", "--language", language, path)
    assert result.ok and result.out.startswith("hello "), result


@requirement("R64")
def test_versions(cloche):
    """Python 3.11+, Node 20+, Bash 5.2+: as far as this host's own are."""
    assert "Python 3" in cloche("code", "--language", "shell", "-", stdin="python3 --version").out
    assert cloche("code", "--language", "javascript", "-", stdin="console.log(typeof fetch)").out == "function\n"
    assert int(cloche("code", "--language", "shell", "-", stdin="echo ${BASH_VERSINFO[0]}").out) >= 5


@requirement("R65")
def test_limits_are_the_sources(cloche):
    report = cloche("code", "--language", "python", "--json", "-", stdin="print(1)").json
    for name, value in {"memory": 512 << 20, "cpu": 500, "pids": 256, "disk": 1024 << 20, "time": 30000,
                        "output": 1 << 20,
                        "nofile": 1024}.items():
        assert limit_of(report, name)["limit"] == value, name
    assert report["stdout"] == "1\n"


@requirement("R65")
def test_limits_can_be_overridden(cloche):
    result = cloche("code", "--language", "python", "--timeout", "300ms", "--grace", "100ms", "-",
                    stdin="import time; time.sleep(1000)")
    assert result.code == 124
    report = cloche("code", "--language", "python", "--memory", "64m", "--json", "-",
                    stdin="b = bytearray(b'x' * (200 << 20))")
    assert report.json["reason"] == "memory", report


@requirement("R65")
def test_output_is_cut_at_one_mebibyte(cloche):
    result = cloche("code", "--language", "shell", "-", stdin="yes | head -c 3000000")
    assert result.ok and len(result.out_bytes) == 1 << 20
    assert "output" in result.err


@pytest.mark.parametrize("language,code", [("python", "raise SystemExit(7)"), ("javascript", "process.exit(7)"),
                                           ("shell", "exit 7")])
def test_exit_code(cloche, language, code):
    assert cloche("code", "--language", language, "-", stdin=code).code == 7


@requirement("R98")
@pytest.mark.parametrize("language,code,word", [("python", "1/0", "ZeroDivisionError"),
                                                ("javascript", "null.x", "TypeError"),
                                                ("shell", "set -e; no-such-command", "no-such-command")])
def test_errors_name_the_script(cloche, language, code, word):
    result = cloche("code", "--language", language, "-", stdin=code)
    assert not result.ok and word in result.err and "script" in result.err, result


def test_script_sees_no_stdin_of_ours_when_it_came_that_way(cloche):
    assert cloche("code", "--language", "python", "-", stdin="import sys; print(repr(sys.stdin.read()))").out == "''\n"


def test_script_from_a_file_has_our_stdin(cloche, project):
    (project / "s.py").write_text("import sys; print(sys.stdin.read())", encoding="ascii")
    assert cloche("code", "--language", "python", project / "s.py", stdin="typed").out == "typed\n"


@pytest.mark.parametrize("code", ["", "\n", "# only a comment\n"])
def test_empty_code(cloche, code):
    result = cloche("code", "--language", "python", "-", stdin=code)
    assert result.code in (0, 125) and not result.out, result


def test_code_is_bytes(cloche):
    code = "print('é🛎', len(b'" + "x" * 200_000 + "'))\r\n"
    assert cloche("code", "--language", "python", "-", stdin=code).out == "é🛎 200000\n"


@pytest.mark.parametrize("language", ["ruby", "", "Python3", "c"])
def test_unknown_language_is_refused(cloche, language):
    result = cloche("code", "--language", language, "-", stdin="1")
    assert result.code == 125
    assert "python" in result.err and "javascript" in result.err and "shell" in result.err, result


@requirement("R64")
@pytest.mark.parametrize("ending,code", [("py", "print(6 * 7)"), ("js", "console.log(6 * 7)"), ("sh", "echo $((6 * 7))")])
def test_the_ending_of_a_file_says_its_language(cloche, project, ending, code):
    (project / f"job.{ending}").write_text(code, encoding="utf-8")
    assert cloche("code", project / f"job.{ending}").out == "42\n"


def test_what_is_said_counts_more_than_the_ending(cloche, project):
    (project / "job.py").write_text("echo $((6 * 7))", encoding="utf-8")
    assert cloche("code", "--language", "shell", project / "job.py").out == "42\n"


@pytest.mark.parametrize("name", ["job", "job.txt", ".py", "py", "job.py/none", "job."])
def test_an_ending_that_says_nothing_is_refused(cloche, project, name):
    result = cloche("code", project / name)
    assert result.code == 125 and "[cli.language]" in result.err and "--language" in result.err, result


def test_missing_language_file_or_argument(cloche, project):
    assert cloche("code", "-", stdin="1").code == 125
    assert cloche("code", "--language", "python").code == 125
    result = cloche("code", "--language", "python", project / "nothing.py")
    assert result.code == 125 and "nothing.py" in result.err
    assert cloche("code", "--language", "python", project).code == 125


def test_json_report_of_code(cloche):
    report = cloche("code", "--language", "javascript", "--json", "-",
                    stdin="console.error('e'); console.log('o')").json
    assert (report["stdout"], report["stderr"], report["exit_code"]) == ("o\n", "e\n", 0)


@requirement("R66")
def test_code_is_air_gapped(cloche, bait):
    code = f"import socket; s = socket.create_connection(('127.0.0.1', {bait.tcp}), 5); print(s.recv(20))"
    result = cloche("code", "--language", "python", "-", stdin=code)
    assert not result.ok and "host service" not in result.out


def test_modes_for_code(cloche):
    for mode in ("standard", "max"):
        assert cloche("code", "--mode", mode, "--language", "python", "-", stdin="print(6*7)").out == "42\n", mode


@pytest.mark.parametrize("words, code, parts", [
    (["-"], "cli.language", ["which language?", "python, javascript, shell"]),
    (["--language", "pyton", "-"], "cli.language", ['--language "pyton" is not one of']),
    (["--language", "python", "no-such.py"], "cli.code.read", ["no-such.py: No such file", "a path on the host"]),
])
def test_what_is_wrong_is_said_with_the_way_out(cloche, words, code, parts):
    told = cloche("code", "--json", *words)
    error = told.json["error"]
    assert told.code == 125 and error["code"] == code and error["hint"], told
    assert all(part in error["message"] + error["hint"] for part in parts), told


def test_light_mode_says_why_it_cannot(cloche):
    """Without a private /workspace there is no /workspace/script.py: a refusal that says so."""
    result = cloche("code", "--mode", "light", "--language", "python", "-", stdin="print(6*7)")
    assert result.out == "42\n" or (result.code == 125 and "mode standard" in result.err), result


@requirement("R69")
def test_script_in_a_bound_workspace_leaves_no_script_behind(cloche, project):
    (project / "script.py").write_text("mine", encoding="ascii")
    result = cloche("code", "--language", "python", "--workspace", project, "-", stdin="open('made','w').write('x')")
    assert (project / "script.py").read_text() == "mine", "a file of the project was overwritten"
    if result.code == 125:
        return          # a rule that forbids the combination is as good, when it says so
    assert result.ok, result
    assert sorted(p.name for p in project.iterdir()) == ["made", "script.py"]
