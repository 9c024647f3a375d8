"""The exit code says what happened: the child's, 128+n, 124, 125, 126, 127."""
import pytest

from helpers import requirement


@requirement("R01")
@pytest.mark.parametrize("code", [0, 1, 2, 42, 123, 124, 125, 126, 127, 128, 143, 255])
def test_exit_code_of_the_child_is_ours(cloche, code):
    assert cloche("run", "--", "/bin/sh", "-c", f"exit {code}").code == code


@pytest.mark.parametrize("name,number", [("TERM", 15), ("KILL", 9), ("INT", 2), ("HUP", 1), ("QUIT", 3), ("SEGV", 11),
                                         ("ABRT", 6), ("PIPE", 13), ("USR1", 10), ("ALRM", 14), ("BUS", 7)])
def test_death_by_signal_is_128_and_its_number(cloche, name, number):
    result = cloche("run", "--", "/bin/sh", "-c", f"ulimit -c 0; kill -{name} $$; sleep 60")
    assert result.code == 128 + number, result


def test_realtime_signal(cloche):
    assert cloche("run", "--", "/bin/bash", "-c", "kill -40 $$; sleep 60").code == 128 + 40


def test_command_not_found_is_127(cloche):
    result = cloche("run", "--", "no-such-program-here")
    assert result.code == 127, result
    assert "no-such-program-here" in result.err
    assert not result.out


def test_missing_absolute_path_is_127(cloche):
    result = cloche("run", "--", "/usr/bin/no-such-program-here")
    assert result.code == 127, result
    assert "/usr/bin/no-such-program-here" in result.err


def test_not_executable_is_126(cloche):
    result = cloche("run", "--", "/etc/passwd")
    assert result.code == 126, result
    assert "/etc/passwd" in result.err


def test_directory_is_126(cloche):
    assert cloche("run", "--", "/usr").code == 126


def test_missing_interpreter_is_told(cloche):
    result = cloche("run", "--", "/bin/sh", "-c",
                    "printf '#!/no/such/interpreter\\n' > s; chmod +x s; exec ./s")
    assert result.code in (126, 127), result


def test_script_without_shebang_runs_as_a_shell_would(cloche, project):
    script = project / "plain"
    script.write_text("exit 9\n", encoding="ascii")
    script.chmod(0o755)
    result = cloche("run", "--workspace", project, "--", "./plain")
    # execvp's own behaviour (ENOEXEC → /bin/sh), or the kernel's refusal told as 126.
    assert result.code in (9, 126), result


def test_relative_path_is_looked_up_in_the_working_directory(cloche, project):
    script = project / "tool"
    script.write_text("#!/bin/sh\nexit 7\n", encoding="ascii")
    script.chmod(0o755)
    assert cloche("run", "--workspace", project, "--", "./tool").code == 7


@requirement("R65")
def test_timeout_is_124(cloche):
    assert cloche("run", "--timeout", "300ms", "--grace", "100ms", "--", "sleep", "100").code == 124


def test_refusal_is_125_and_nothing_ran(cloche, project):
    result = cloche("run", "--workspace", project, "--memory", "many", "--", "/bin/sh", "-c", "echo ran > ran")
    assert result.code == 125, result
    assert not list(project.iterdir())


def test_no_command_is_125_and_says_how(cloche):
    result = cloche("run")
    assert result.code == 125, result
    assert "cloche run" in result.err


@pytest.mark.ordinary
def test_exit_codes_as_an_ordinary_user(cloche):
    assert cloche("run", "--", "/bin/sh", "-c", "exit 42").code == 42
    assert cloche("run", "--", "/bin/sh", "-c", "kill -9 $$").code == 137
    assert cloche("run", "--", "nothing-like-it").code == 127
    assert cloche("run", "--", "/etc/passwd").code == 126


def test_exit_of_the_leader_ends_the_sandbox(cloche):
    """Children that stay behind do not keep the sandbox alive."""
    result = cloche("run", "--", "/bin/sh", "-c", "sleep 1000 & exit 5")
    assert result.code == 5


def test_background_child_that_holds_stdout_does_not_hang_us(cloche):
    result = cloche("run", "--", "/bin/sh", "-c", "sleep 1000 & echo done")
    assert result.ok and result.out == "done\n"


def test_background_child_that_holds_stdout_does_not_hang_json(cloche):
    result = cloche("run", "--json", "--", "/bin/sh", "-c", "sleep 1000 & echo done")
    assert result.ok and result.json["stdout"] == "done\n", result
