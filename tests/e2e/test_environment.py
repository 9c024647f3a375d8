"""What a process finds inside: environment, directories, identity, names."""
import json
import os

import pytest

from helpers import requirement

ENV = "import os,json; print(json.dumps(dict(os.environ)))"


def environment(cloche, *flags, **kw):
    result = cloche.sandbox(ENV, flags=flags, **kw)
    assert result.ok, result
    return json.loads(result.out)


@requirement("R16", "R26")
def test_environment_is_cleared(cloche):
    inside = environment(cloche, env={"AWS_SECRET_ACCESS_KEY": "hunter2", "LD_PRELOAD_X": "x", "FOO": "bar"})
    assert "hunter2" not in json.dumps(inside)
    assert "FOO" not in inside
    assert set(inside) <= {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR",
                           "PWD", "COLORTERM", "NO_COLOR", "HOSTNAME", "CLOCHE", "CLOCHE_SANDBOX", "CLOCHE_ID",
                           "CLOCHE_MODE", "TZ", "SHLVL", "_", "OLDPWD", "XDG_RUNTIME_DIR"}, inside


def test_environment_has_the_necessary(cloche):
    inside = environment(cloche)
    assert inside["HOME"] == "/home/agent"
    assert "/usr/bin" in inside["PATH"].split(":")
    assert inside["USER"] == "agent"


def test_env_flag_sets(cloche):
    assert environment(cloche, "--env", "A=1", "--env", "B=x=y z")["B"] == "x=y z"


def test_env_flag_passes_the_callers_value(cloche):
    assert environment(cloche, "--env", "PASSED", env={"PASSED": "me"})["PASSED"] == "me"


def test_env_flag_of_an_unset_name_sets_nothing(cloche):
    assert "NOT_THERE" not in environment(cloche, "--env", "NOT_THERE")


def test_env_flag_empty_value(cloche):
    assert environment(cloche, "--env", "EMPTY=")["EMPTY"] == ""


def test_env_flag_last_one_wins(cloche):
    assert environment(cloche, "--env", "A=1", "--env", "A=2")["A"] == "2"


@pytest.mark.parametrize("word", ["=x", "", "A B=c"])
def test_env_flag_malformed_is_refused(cloche, word):
    assert cloche("run", "--env", word, "--", "true").code == 125


def test_env_flag_newline_and_unicode(cloche):
    assert environment(cloche, "--env", "N=a\nb", "--env", "U=ü🛎")["N"] == "a\nb"


def test_loader_variables_do_not_reach_cloche_into_the_sandbox(cloche):
    inside = environment(cloche, env={"LD_LIBRARY_PATH": "/nowhere", "PYTHONSTARTUP": "/x", "NODE_OPTIONS": "--x",
                                      "BASH_ENV": "/x"})
    assert not {"LD_LIBRARY_PATH", "PYTHONSTARTUP", "NODE_OPTIONS", "BASH_ENV"} & set(inside)


def test_working_directory_is_the_workspace(cloche):
    assert cloche("run", "--", "pwd", "-P").out == "/workspace\n"


def test_workdir_flag(cloche):
    assert cloche("run", "--workdir", "/usr/lib", "--", "pwd", "-P").out == "/usr/lib\n"


def test_workdir_that_is_missing_is_told(cloche):
    result = cloche("run", "--workdir", "/no/such/place", "--", "true")
    assert result.code == 125, result
    assert "/no/such/place" in result.err


def test_workdir_that_is_a_file_is_told(cloche):
    result = cloche("run", "--workdir", "/etc/passwd", "--", "true")
    assert result.code == 125, result


def test_workdir_relative_is_inside_the_workspace(cloche, project):
    (project / "sub").mkdir()
    result = cloche("run", "--workspace", project, "--workdir", "sub", "--", "pwd", "-P")
    if result.code == 125:
        assert "sub" in result.err and "absolute" in result.err, result      # a clear rule is as good
    else:
        assert result.out == "/workspace/sub\n", result


def test_home_exists_and_is_ours(cloche):
    code = "import os; s=os.stat(os.environ['HOME']); print(s.st_uid==os.getuid(), oct(s.st_mode & 0o777)); " \
           "open(os.environ['HOME']+'/f','w').write('x')"
    result = cloche.sandbox(code)
    assert result.ok and result.out.startswith("True "), result


@requirement("R26")
def test_identity(anyone):
    result = anyone("run", "--", "id")
    assert "uid=1000(agent) gid=1000(agent)" in result.out, result
    assert "0(root)" not in result.out


def test_user_flag(cloche):
    result = cloche("run", "--user", "1234:1235", "--", "sh", "-c", "id -u; id -g")
    assert result.out.split() == ["1234", "1235"], result


@pytest.mark.parametrize("user", ["0", "0:0", "1000:0", "root", "-1", "4294967295", "1000x", "1000:"])
def test_user_flag_never_root_nor_nonsense(cloche, user):
    result = cloche("run", "--user", user, "--", "id")
    assert result.code == 125, result
    assert "uid=" not in result.out


def test_every_id_of_the_process_is_the_users(cloche):
    code = "import os; print(os.getresuid(), os.getresgid(), [g for g in os.getgroups() if g not in (1000, 65534)])"
    assert cloche.sandbox(code).out == "(1000, 1000, 1000) (1000, 1000, 1000) []\n"


@pytest.mark.root
@requirement("R26")
def test_root_on_the_host_is_nobody_special_inside(cloche, project):
    """A file that only root may read stays closed, though root started the sandbox."""
    secret = project / "secret"
    secret.write_text("x", encoding="ascii")
    secret.chmod(0o600)
    os.chown(secret, 0, 0)
    result = cloche("run", "--bind", f"{secret}:/mnt/secret", "--", "id", "-u")
    assert result.out.strip() == "1000", result
    host_uid = cloche.sandbox("print(open('/proc/self/uid_map').read())").out.split()
    assert host_uid[1] != "0", "the sandbox's user is root on the host"


def test_hostname(cloche):
    assert cloche("run", "--hostname", "glass", "--", "hostname").out == "glass\n"
    default = cloche("run", "--", "hostname").out.strip()
    assert default and default != os.uname().nodename


@pytest.mark.parametrize("name", ["", "a b", "a/b", "x" * 65, "-a", "a\nb"])
def test_hostname_malformed_is_refused(cloche, name):
    assert cloche("run", "--hostname", name, "--", "true").code == 125


def test_agent_is_in_the_password_file(cloche):
    code = "import pwd,os; p=pwd.getpwuid(os.getuid()); print(p.pw_name, p.pw_dir, p.pw_shell)"
    assert cloche.sandbox(code).out == "agent /home/agent /bin/bash\n" or \
        cloche.sandbox(code).out.startswith("agent /home/agent /bin/")


def test_names_of_other_people_are_not_shown(cloche):
    """The password file inside is ours: the host's accounts are not listed with their homes."""
    result = cloche("run", "--", "cat", "/etc/passwd")
    homes = [line.split(":")[5] for line in result.out.splitlines()]
    assert not [h for h in homes if h.startswith("/home/") and h != "/home/agent"], result


def test_signals_start_at_their_defaults(cloche):
    """An ignored SIGPIPE or a blocked SIGTERM of the caller does not reach the child."""
    code = "print([l for l in open('/proc/self/status') if l.startswith(('SigBlk','SigIgn'))])"
    for before in ("import signal,os,sys; signal.signal(signal.SIGPIPE, signal.SIG_IGN); "
                   "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1}); "
                   "signal.signal(signal.SIGTERM, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])",):
        result = cloche.run(["/usr/bin/python3", "-I", "-S", "-c", before, *cloche.argv("run", "--", "/bin/sh", "-c",
                             "grep -E 'SigBlk|SigIgn' /proc/self/status")])
        assert result.ok, result
        masks = {line.split(":")[0]: int(line.split()[1], 16) for line in result.out.splitlines()}
        assert masks["SigBlk"] == 0, result
        assert masks["SigIgn"] == 0, result
    assert cloche.sandbox(code).ok


def test_umask(cloche):
    assert cloche("run", "--", "sh", "-c", "umask").out.strip() in ("0022", "022")


def test_clock_and_locale_work(cloche):
    result = cloche("run", "--", "sh", "-c", "date +%Y; locale 2>/dev/null | head -1")
    assert int(result.out.split()[0]) >= 2024


def test_standard_directories(cloche):
    result = cloche("run", "--", "sh", "-c",
                    "for d in /tmp /var/tmp /home/agent /workspace /dev/shm; do touch $d/f || exit 1; done; "
                    "for d in / /usr /etc /opt /bin /lib; do touch $d/f 2>/dev/null && echo $d is writable; done; true")
    assert result.ok, result
    assert "/usr is" not in result.out and "/etc is" not in result.out and "/bin is" not in result.out, result
    assert "/lib is" not in result.out and "/opt is" not in result.out, result


def test_read_only_root_flag(cloche):
    result = cloche("run", "--read-only-root", "--", "sh", "-c", "touch /f 2>&1; touch /tmp/f && echo tmp")
    assert "Read-only" in result.out or "denied" in result.out, result
    assert result.out.endswith("tmp\n"), result


def test_devices_are_the_minimal_set(cloche):
    result = cloche("run", "--", "ls", "/dev")
    assert set(result.out.split()) <= {"null", "zero", "full", "random", "urandom", "tty", "pts", "ptmx", "shm", "fd",
                                       "stdin", "stdout", "stderr", "console"}, result
    code = ("import os,stat\nfor n,mm in dict(null=(1,3),zero=(1,5),full=(1,7),random=(1,8),urandom=(1,9)).items():\n"
            " s=os.stat('/dev/'+n); assert stat.S_ISCHR(s.st_mode) and (os.major(s.st_rdev),os.minor(s.st_rdev))==mm, "
            "n\n"
            "open('/dev/null','w').write('x'); assert open('/dev/zero','rb').read(3)==b'\\0'*3; "
            "open('/dev/urandom','rb').read(8)")
    result = cloche.sandbox(code)
    assert result.ok, result


def test_shared_memory_and_semaphores_work(cloche):
    code = ("import multiprocessing as m, multiprocessing.shared_memory as s\n"
            "def f(q): q.put(42)\n"
            "q=m.Queue(); p=m.Process(target=f,args=(q,)); p.start(); print(q.get()); p.join()\n"
            "x=s.SharedMemory(create=True,size=4096); x.buf[0]=1; x.close(); x.unlink()")
    result = cloche.sandbox(code)
    assert result.ok and result.out == "42\n", result


def test_proc_is_usable(cloche):
    result = cloche("run", "--", "sh", "-c", "ps -e -o pid,comm && cat /proc/meminfo /proc/cpuinfo > /dev/null && "
                                             "nproc")
    assert result.ok, result
