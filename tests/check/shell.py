"""Running commands: where we are, what they see, their output in a log, and what they cost."""
import collections
import os
import re
import subprocess
import threading
import time

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MESON, NINJA, PYTHON = '/usr/bin/meson', '/usr/bin/ninja', '/usr/bin/python3'
LOGS = os.path.join(REPO, 'build-check-logs')
CORES = os.cpu_count() or 1

Done = collections.namedtuple('Done', 'code out wall cpu')


# What would bend a build or a test: another compiler's words, fewer tests (PYTEST_ADDOPTS), a sanitizer that does not look.
BENDS = re.compile(r'(CC|CFLAGS|LDFLAGS|CPPFLAGS|DESTDIR|MAKEFLAGS|MFLAGS|MAKELEVEL|CLOCHE(?!_TEST_).*|CLOCHE_TEST_(RUN|ELSEWHERE)'
                   r'|(PYTEST|PYTHON|CMOCKA|LD|MESON|ASAN|LSAN|UBSAN|TSAN|MSAN|GLIBC)_?.*)$')


def clean_environment():
    """The caller's environment without BENDS."""
    env = {name: value for name, value in os.environ.items() if not BENDS.match(name)}
    env['PATH'] = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
    env['LC_ALL'] = 'C.UTF-8'
    return env


def run(name, argv, env=None, cwd=REPO, timeout=1800):
    """Run @argv with its output in a log: Done, whose cpu is the processor time of it and of all that it waited for."""
    log = os.path.join(LOGS, re.sub(r'[^\w.-]+', '-', name)[:120] + '.log')
    began, cpu = time.monotonic(), 0.0
    with open(log, 'wb') as out:
        try:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=cwd,
                                       env=env or clean_environment())
        except OSError as e:
            code = 127
            out.write(f'{argv[0]}: {e}\n'.encode())
        else:
            code, cpu = wait(process, timeout)
            if code == TIMED_OUT:
                out.write(f'\nno end after {timeout} s\n'.encode())
    with open(log, encoding='utf-8', errors='replace') as f:
        return Done(code, f.read(), time.monotonic() - began, cpu)


TIMED_OUT = -1


def wait(process, timeout):
    """(exit code or TIMED_OUT, processor time). wait4() tells what it cost, which subprocess does not pass on."""
    late = threading.Event()

    def stop():
        late.set()
        process.kill()
    timer = threading.Timer(timeout, stop)
    timer.start()
    try:
        _, status, used = os.wait4(process.pid, 0)
    finally:
        timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return TIMED_OUT if late.is_set() else process.returncode, used.ru_utime + used.ru_stime


def tail(text, lines=25):
    return '\n'.join(text.rstrip().split('\n')[-lines:])
