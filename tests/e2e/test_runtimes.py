"""runtimes.d: languages of the user's own, without code, for `cloche code`, `cloche doctor` and MCP (docs/runtimes.md)."""
import os

import pytest

from helpers import requirement
from helpers.daemon import Daemon, answers
from helpers.mcp import Client

pytestmark = requirement("R64", "R69")
PERL = 'command: [perl, -w, "{file}", last]\nextension: pl\nalias: pl\n'
CODE = 'print "$ARGV[0] ", 6 * 7, "\\n";'


@pytest.fixture
def runtimes(cloche):
    """Writes files into the user's runtimes.d."""
    folder = cloche.home / "config/cloche/runtimes.d"
    folder.mkdir(parents=True)
    cloche.env["XDG_CONFIG_HOME"] = str(cloche.home / "config")

    def write(**files):
        for old in folder.iterdir():
            old.unlink()
        for name, text in files.items():
            (folder / f"{name}.yaml").write_text(text)
        return folder
    return write


def test_a_language_without_code(cloche, project, runtimes):
    runtimes(perl=PERL)
    (project / "job.pl").write_text(CODE)
    assert cloche("code", project / "job.pl").out == "last 42\n"
    for name in ("perl", "pl"):
        assert cloche("code", "--language", name, "-", stdin=CODE).out == "last 42\n"
    named = cloche("code", "--language", "perl", "-", stdin="print $0;")
    assert named.out == "/workspace/script.pl", named
    other = cloche("code", "--language", "ruby", "-", stdin=CODE)
    assert other.code == 125 and "not one of python, javascript, shell, perl" in other.err, other


def test_it_is_in_doctors_report_and_not_run_on_the_host(cloche, runtimes):
    mark = cloche.home / "ran"
    program = cloche.home / "program"
    program.write_text(f"#!/bin/sh\ntouch {mark}\necho 1.0\n")
    program.chmod(0o755)
    runtimes(perl=PERL, own=f'command: ["{program}", "{{file}}"]\nextension: x\n', gone='command: [no-such, "{file}"]\nextension: y\n')
    report = cloche("doctor", "--json").json["programs"]
    assert report["perl"]["ok"] and report["perl"]["path"] == "/usr/bin/perl", report
    assert report["own"]["path"] == str(program) and not mark.exists(), report
    assert not report["gone"]["ok"] and report["gone"]["path"] is None, report
    assert "/usr/bin/perl (runtimes.d)" in cloche("doctor").out


REFUSED = {
    "runtime.command": ['command: perl\nextension: pl\n', 'command: [perl]\nextension: pl\n', 'command: ["{file}"]\nextension: pl\n',
                        'command: [perl, "{file}", "{file}"]\nextension: pl\n', 'command: []\nextension: pl\n',
                        'command: [bin/perl, "{file}"]\nextension: pl\n', 'command: [perl, [a], "{file}"]\nextension: pl\n',
                        'command: [perl, "{file}"' + ', x' * 15 + ']\nextension: pl\n',
                        'command: [perl, "{file}"]\nextension: pl\nstdin: [perl, "{file}"]\n'],
    "runtime.extension": ['command: [perl, "{file}"]\nextension: "../x"\n', 'command: [perl, "{file}"]\nextension: ""\n'],
    "runtime.missing": ['command: [perl, "{file}"]\n', 'extension: pl\n'],
    "runtime.key": ['command: [perl, "{file}"]\nextension: pl\nExtension: pl\n', '- a\n'],
    "runtime.taken": ['command: [perl, "{file}"]\nextension: pl\nalias: py\n'],
    "runtime.name": ['command: [perl, "{file}"]\nextension: pl\nalias: "A B"\n'],
    "runtime.not-yet": ['command: [perl, "{file}"]\nextension: pl\nimage: perl:5\n'],
    "policy.registry.unknown": ['command: [perl, "{file}"]\nextension: pl\nregistry: cpan\n'],
    "policy.yaml.syntax": ['command: [perl\n'],
    "policy.file.empty": ['# nothing\n'],
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_is_refused(cloche, runtimes, code):
    for text in REFUSED[code]:
        runtimes(perl=text)
        result = cloche("code", "--language", "perl", "-", stdin=CODE)
        assert result.code == 125 and f"[{code}]" in result.err and "perl.yaml" in result.err, (text, result)
        # what is broken there is nobody's who did not ask for it
    assert cloche("code", "--language", "shell", "-", stdin="echo 1").out == "1\n"
    assert code in cloche("doctor").out and cloche("doctor", "--json").json["runtimes_error"]["code"] == code


def test_whose_files_count(cloche, runtimes):
    folder = runtimes(python=PERL)
    assert "[runtime.taken]" in cloche("code", "--language", "perl", "-", stdin=CODE).err
    runtimes(perl=PERL, other=PERL)
    assert "[runtime.taken]" in cloche("code", "--language", "perl", "-", stdin=CODE).err
    runtimes(**{"Perl 5": PERL})
    assert "[runtime.name]" in cloche("code", "--language", "perl", "-", stdin=CODE).err
    runtimes(perl=PERL)
    os.chmod(folder / "perl.yaml", 0o666)
    assert "[runtime.unsafe]" in cloche("code", "--language", "perl", "-", stdin=CODE).err
    os.chmod(folder / "perl.yaml", 0o644)
    os.chmod(folder, 0o777)
    assert "[runtime.unsafe]" in cloche("code", "--language", "perl", "-", stdin=CODE).err
    os.chmod(folder, 0o755)
    (folder / "notes.txt").write_text("no runtime")
    assert cloche("code", "--language", "perl", "-", stdin=CODE).ok


@requirement("R62")
def test_agents_have_it_and_a_reload_changes_it(cloche, runtimes):
    runtimes(perl=PERL)
    daemon = Daemon(cloche, "--listen", "unix:api", path=cloche.home / "api")
    try:
        client = Client(daemon)
        listed = client.tools()["code_execute"]["inputSchema"]["properties"]["language"]["enum"]
        assert listed == ["python", "javascript", "shell", "perl"]
        assert client.call("code_execute", language="perl", code=CODE)["stdout"] == "last 42\n"
        runtimes(perl=PERL.replace("last", "other"), also='command: [perl, "{file}"]\nstdin: [perl, "-"]\nextension: pl\n')
        assert "was read again" in daemon.reload()
        assert client.call("code_execute", language="perl", code=CODE)["stdout"] == "other 42\n"
        assert client.call("code_execute", language="also", code="print 1;")["stdout"] == "1"
        runtimes(perl="command: perl\n")
        assert "[runtime.command]" in daemon.reload()       # and the former ones stay
        assert client.call("code_execute", language="also", code="print 1;")["stdout"] == "1"
        runtimes()
        assert "was read again" in daemon.reload()
        assert client.call("code_execute", language="perl", code=CODE)["error_type"] == "InvalidArguments"
        # a front that dies is told again
        runtimes(perl=PERL)
        assert "was read again" in daemon.reload()
        for pid in daemon.processes("cloche-front"):
            os.kill(pid, 9)
        assert answers(daemon)
        assert Client(daemon).call("code_execute", language="perl", code=CODE)["stdout"] == "last 42\n"
    finally:
        assert daemon.stop() == 0
