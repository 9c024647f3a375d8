"""An interactive shell behaves as on a plain terminal: prompts, job control, window size, full-screen programs."""
import re
import signal
import time

import pexpect
import pytest

from helpers import requirement
from helpers.runner import wait_for

PROMPT = "ready> "
pytestmark = requirement("R01")


def settle():
    """Give a program that was just typed the time to be in the foreground; too short only makes a test fail."""
    time.sleep(0.4)


def spawn(cloche, words, size=(24, 80), **env):
    argv = [*cloche.identity(), *cloche.argv(*words)]
    child = pexpect.spawn(str(argv[0]), [str(a) for a in argv[1:]], env={**cloche.env, **env}, cwd=str(cloche.cwd),
                          timeout=40, dimensions=size, encoding="utf-8")
    child.delaybeforesend = None
    return child


@pytest.fixture
def shell(cloche):
    child = spawn(cloche, ["run", "--workspace", cloche.project, "--", "bash", "--norc", "--noprofile", "-i"])
    prepare(child)
    yield child
    child.close(force=True)


def prepare(child):
    child.expect(r"[$#] ")
    child.sendline(f"PS1='{PROMPT}'; stty -echo; bind 'set enable-bracketed-paste off' 2>/dev/null; echo set-'up'")
    child.expect("set-up")
    child.expect(PROMPT)


def say(child, line):
    """Type one line; what came back up to the next prompt."""
    child.sendline(line)
    child.expect(PROMPT)
    return child.before.replace("\r\n", "\n").strip()


def test_no_complaint_about_job_control(cloche):
    child = spawn(cloche, ["run", "--", "bash", "--norc", "--noprofile", "-i"])
    child.expect(r"[$#] ")
    assert "no job control" not in child.before and "cannot set terminal" not in child.before
    child.sendline("exit 7")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 7


def test_tty_is_a_terminal_of_its_own(shell):
    assert re.fullmatch(r"/dev/pts/\d+", say(shell, "tty"))
    assert say(shell, "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo yes") == "yes"
    assert say(shell, "ps -o tty= -p $$").startswith("pts/")


def test_suspend_background_foreground(shell):
    shell.sendline("sleep 1000")
    settle()
    shell.sendcontrol("z")
    shell.expect("Stopped")
    shell.expect(PROMPT)
    assert "sleep 1000" in say(shell, "jobs")
    assert "sleep 1000 &" in say(shell, "bg")
    assert "Running" in say(shell, "jobs")
    shell.sendline("fg")
    shell.expect("sleep 1000")
    settle()
    shell.sendcontrol("c")
    shell.expect(PROMPT)
    assert say(shell, "echo $?") == "130"
    assert say(shell, "jobs") == ""


def test_ctrl_c_ends_the_command_not_the_shell(shell):
    shell.sendline("sleep 1000")
    settle()
    shell.sendcontrol("c")
    shell.expect(PROMPT)
    assert say(shell, "echo still $((20 + 22))") == "still 42"


def test_ctrl_d_ends_the_shell(shell):
    shell.sendcontrol("d")
    shell.expect(pexpect.EOF)
    shell.close()
    assert shell.exitstatus == 0


def test_ctrl_backslash(shell):
    shell.sendline("ulimit -c 0; sleep 1000")
    settle()
    shell.sendcontrol("\\")
    shell.expect("Quit")
    shell.expect(PROMPT)


def test_window_size_and_its_change(shell):
    assert say(shell, "stty size") == "24 80"
    say(shell, "trap 'echo resized' WINCH")
    shell.setwinsize(50, 132)
    assert wait_for(lambda: "50 132" in say(shell, "stty size"))
    assert "resized" in say(shell, "true") or say(shell, "echo $LINES $COLUMNS").endswith("50 132")


def test_pipelines_and_subshell_jobs(shell):
    assert say(shell, "yes | head -3 | wc -l").split() == ["3"]
    assert say(shell, "sleep 0.2 & wait $!; echo code $?").endswith("code 0")


def test_stop_by_signal_and_kill_of_a_stopped_job(shell):
    said = say(shell, "sleep 50 & kill -STOP %1; sleep 0.3; jobs; kill -KILL %1; wait 2>/dev/null; echo code $?")
    assert "Stopped" in said and "code" in said


def test_line_editing_and_tab_completion(shell):
    say(shell, "touch unmistakable-name")
    shell.send("ls unmist\t")
    settle()
    shell.sendline("")
    shell.expect("unmistakable-name")
    shell.expect(PROMPT)


def test_control_characters_and_utf8_pass(shell):
    assert "é🛎" in say(shell, "echo é🛎")
    assert say(shell, "printf 'a\\033[31mb\\033[0mc' | od -An -tx1").split()[-1] == "63"


def test_much_output(shell):
    shell.sendline("seq 1 20000; echo finis'hed'")
    shell.expect("20000\r\nfinished", timeout=60)
    shell.expect(PROMPT)


def test_paste_of_many_lines(shell):
    for i in range(200):
        shell.sendline(f"v{i}={i}")
    shell.sendline("echo sum $((v0 + v199))")
    shell.expect("sum 199", timeout=60)


def test_terminal_is_restored_afterwards(cloche):
    """A child that leaves the terminal raw does not leave ours raw."""
    outer = pexpect.spawn("/bin/bash", ["--norc", "--noprofile", "-i"], env=cloche.env, cwd=str(cloche.cwd), timeout=40,
                          encoding="utf-8")
    prepare(outer)
    before = say(outer, "stty -g")
    binary = cloche.binary
    say(outer, f"{binary} run -- stty raw -echo; true")
    assert say(outer, "stty -g") == before
    say(outer, f"{binary} run -- sh -c 'stty raw; kill -9 $$'; true")
    assert say(outer, "stty -g") == before
    outer.close(force=True)


def test_cloche_itself_can_be_suspended_from_the_outer_shell(cloche):
    """^Z in a run without its own terminal stops the job; fg continues it."""
    outer = pexpect.spawn("/bin/bash", ["--norc", "--noprofile", "-i"], env=cloche.env, cwd=str(cloche.cwd), timeout=40,
                          encoding="utf-8")
    prepare(outer)
    outer.sendline(f"{cloche.binary} run --no-pty -- sh -c 'sleep 1.5; echo finis''hed'")
    settle()
    outer.sendcontrol("z")
    found = outer.expect(["Stopped", "finished"])
    if found == 0:
        outer.expect(PROMPT)
        outer.sendline("fg")
        outer.expect("finished")
    outer.expect(PROMPT)
    outer.close(force=True)


def test_no_pty_flag_and_pty_flag(cloche):
    child = spawn(cloche, ["run", "--no-pty", "--", "tty"])
    child.expect(pexpect.EOF)
    assert "/dev/pts/" in child.before or "not a tty" in child.before
    child.close()
    # Forced on pipes: the child has a terminal although we have none.
    result = cloche("run", "--pty", "--", "sh", "-c", "tty; [ -t 0 ] && echo terminal")
    assert "/dev/pts/0" in result.out and "terminal" in result.out, result


def test_pty_output_in_json(cloche):
    report = cloche("run", "--pty", "--json", "--", "sh", "-c", "tty; echo err >&2; exit 3").json
    assert report["exit_code"] == 3
    assert "/dev/pts/" in report["stdout"] and "err" in report["stdout"]


@requirement("R01")
def test_shell_verb(cloche):
    child = spawn(cloche, ["shell", "--workspace", cloche.project])
    child.expect(r"[$#>] ")
    child.sendline("pwd; echo $((6*7)) > answer; exit 5")
    child.expect("/workspace")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 5
    assert (cloche.project / "answer").read_text() == "42\n"


def test_shell_verb_without_a_terminal_reads_stdin(cloche):
    result = cloche("shell", stdin="echo from stdin; exit 3\n")
    assert result.code == 3 and "from stdin" in result.out, result


@pytest.mark.ordinary
def test_interactive_as_an_ordinary_user(cloche):
    child = spawn(cloche, ["run", "--", "bash", "--norc", "--noprofile", "-i"])
    prepare(child)
    child.sendline("sleep 1000")
    settle()
    child.sendcontrol("z")
    child.expect("Stopped")
    child.expect(PROMPT)
    say(child, "kill %1")
    child.sendline("exit")
    # bash takes note of a dead job when it likes; to a second "exit" it never says no
    if child.expect([pexpect.EOF, "There are stopped jobs"]) == 1:
        child.sendline("exit")
        child.expect(pexpect.EOF)
    child.close()


def test_full_screen_program(cloche, has):
    has("less")
    child = spawn(cloche, ["run", "--env", "TERM=xterm", "--", "sh", "-c", "seq 1 500 | less"])
    child.expect(":")
    child.send("G")
    child.expect("500")
    child.send("q")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_python_repl(cloche):
    child = spawn(cloche, ["run", "--", "/usr/bin/python3", "-q"])
    child.expect(">>> ")
    child.sendline("6*7")
    child.expect("42")
    child.sendline("exit(9)")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 9


def test_death_of_the_terminal_ends_the_sandbox(shell):
    """The window is closed: SIGHUP."""
    shell.sendline("sleep 77777 & sleep 77777")
    settle()
    shell.kill(signal.SIGHUP)
    shell.close(force=True)


REFUSED = "curl -sS https://nobody.example; curl -sS https://nobody.example; curl -sS http://other.example:8080; " \
          "echo x > .git/hooks/$(printf 'a\\033[2Jb'); exit 3"


def refused(cloche, *flags):
    """What a run on a terminal says behind what its command said."""
    (cloche.project / ".git/hooks").mkdir(parents=True)
    child = spawn(cloche, ["run", *flags, "--allow-domain", "a.example", "--workspace", cloche.project, "--", "sh", "-c", f"echo beg''un; {REFUSED}"],
                  size=(24, 400))
    child.expect("begun")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 3
    return child.before


def test_what_was_refused_is_told_at_the_end(cloche):
    said = refused(cloche)
    lines = said[said.index("cloche: this was refused"):].replace("\r", "").split("\n")
    assert lines[1].startswith("  connect nobody.example:443, 2 times: no rule names") and "--allow-domain nobody.example would" in lines[1], lines
    assert "connect other.example:8080: " in lines[2] and "--allow-domain other.example:8080 would" in lines[2], lines
    # the sandbox chose the name: its escape sequence does not come to the terminal
    assert '"/workspace/.git/hooks/a\\033[2Jb": rule /workspace/.git/hooks' in lines[3] and len(lines) == 5, lines


def test_what_is_bound_and_cannot_be_used_is_told_at_the_end(cloche):
    """A login that was saved in a bound folder, and a file that is bound by itself (issue 18, 10 i and viii)."""
    login, alone = cloche.home / ".codex/auth.json", cloche.home / "alone.json"
    login.parent.mkdir()
    login.write_text("token\n", encoding="ascii")
    alone.write_text("1\n", encoding="ascii")
    flags = ["--workspace", str(cloche.project), "--bind", f"{login.parent}:/home/agent/.codex:rw", "--bind", f"{alone}:/home/agent/alone.json:rw"]
    script = "cd; cat .codex/auth.json; echo 2 > x; mv x alone.json; true"

    def told(*more):
        child = spawn(cloche, ["run", *flags, *more, "--", "sh", "-c", script], size=(24, 400))
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == 0
        return child.before.replace("\r", "")
    said = told()
    assert f"  {login}: --allow-read {login} would open it\n" in said, said
    assert "  rename /home/agent/alone.json: rule bound by itself, so it cannot be replaced: bind its folder\n" in said, said
    said = told("--allow-read", str(login))
    assert "token" in said and "would open it" not in said, said


def test_nothing_is_told_quietly(cloche):
    assert "was refused" not in refused(cloche, "--quiet")


def test_nothing_is_told_without_a_terminal(cloche):
    done = cloche("run", "--allow-domain", "a.example", "--workspace", cloche.project, "--", "curl", "-sS", "https://nobody.example")
    assert done.code != 0 and "was refused" not in done.err, done
