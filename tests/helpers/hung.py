"""A process that stands still, whatever it is sent."""
import ctypes
import os
import threading

import pytest

from helpers import places

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
PTRACE_ATTACH, PTRACE_DETACH, WALL = 16, 17, 0x40000000

holds = pytest.mark.skipif(not places.IS_ROOT, reason="only root may trace who lets nobody trace it (prctl(2), PR_SET_DUMPABLE)")


class Hung:
    """That process stands still, whatever it is sent but SIGKILL: held by ptrace(2), which one thread does all of."""

    def __init__(self, pid):
        self.pid, self.over, self.held = pid, threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        assert self.held.wait(60) and self.works

    def run(self):
        self.works = LIBC.ptrace(PTRACE_ATTACH, self.pid, None, None) == 0 and os.waitpid(self.pid, WALL)[0] == self.pid
        self.held.set()
        while self.works and not self.over.wait(0.01):
            try:
                found, status = os.waitpid(self.pid, WALL | os.WNOHANG)
            except ChildProcessError:       # reaped by who looks for leaks
                return
            if found and not os.WIFSTOPPED(status):
                return          # its parent hears of it now
        LIBC.ptrace(PTRACE_DETACH, self.pid, None, None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
