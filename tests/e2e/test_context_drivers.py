"""The programs that run a context's code, by themselves: what they say and hear, step by step (src/keeper/keeper_context.c)."""
import os
import shutil
import signal
import subprocess

import pytest

from helpers import requirement
from helpers.places import REPO

pytestmark = requirement("R65")


class Node:
    """The keeper's side of a pipe to the driver of JavaScript."""

    def __init__(self):
        source = (REPO / "src/keeper/context_node.js").read_text()
        self.process = subprocess.Popen(["sh", "-c", 'exec 3<&0 4>&1 5>&2 </dev/null; exec node -e "$0"', source], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
        self.came, self.mark = b"", b""

    def say(self, *words):
        self.process.stdin.write(b"".join(word + b"\0" for word in words))

    def call(self, code):
        self.mark = os.urandom(16).hex().encode()
        self.say(self.mark, code.encode())

    def frame(self):
        """The next one: its letter, and what is in it."""
        while True:
            at = self.came.find(b"\1" + self.mark)
            head = self.came[at + 33:at + 38]
            if at >= 0 and len(head) == 5 and len(self.came) >= at + 38 + int(head[1:], 16):
                end = at + 38 + int(head[1:], 16)
                got, self.came = (head[:1], self.came[at + 38:end]), self.came[end:]
                return got
            more = os.read(self.process.stdout.fileno(), 65536)
            assert more, ("it is gone", self.process.wait(10))
            self.came += more

    def end(self):
        """The code of the call's end; what came before it."""
        said = []
        while (frame := self.frame())[0] != b"E":
            said.append(frame)
            if frame[0] == b"S":
                self.say(b"S" + frame[1] + b"0")
        return int(frame[1]), said


@pytest.fixture
def node():
    if shutil.which("node") is None:
        pytest.skip("there is no node")
    node = Node()
    yield node
    node.process.kill()
    node.process.wait()


def test_a_signal_that_comes_as_the_script_ends_is_waited_for(node):
    """Sent, and not yet there when the driver asks: it is for this call, and for no other."""
    for code in ("await new Promise(() => {})", "41"):
        node.call(code)
        assert node.frame() == (b"B", b"")
        while (asked := node.frame())[0] != b"S":
            assert asked[0] == b"L"
        node.say(b"S" + asked[1] + b"1")        # told before it comes
        node.process.send_signal(signal.SIGINT)
        code, said = node.end()
        assert (code, said[-1][1][:20]) == (130, b"name 11\nInterruptedv"), said
        for _ in range(3):
            node.call("40 + 2")
            code, said = node.end()
            assert (code, [what for kind, what in said if kind == b"L"]) == (0, [b"main 1\n1text 2\n42"]), said


def test_a_signal_before_the_answer_asks_anew(node):
    """The first answer is lost, or late: it is none to the second question."""
    for late in (False, True):
        node.call("1")
        while (asked := node.frame())[0] != b"S":
            pass
        node.process.send_signal(signal.SIGINT)
        again = node.frame()
        assert (again[0], asked[1] != again[1]) == (b"S", True), again
        if late:
            node.say(b"S" + asked[1] + b"1")
        node.say(b"S" + again[1] + b"1")
        assert node.end()[0] == 130
        node.call("2")
        assert node.end()[0] == 0


def test_a_word_interrupts_the_call_that_it_names(node):
    node.call("await new Promise(() => {})")
    first = node.mark
    while (asked := node.frame())[0] != b"S":
        pass
    node.say(b"S" + asked[1] + b"0", b"I" + b"0" * 32, b"I" + first)
    assert node.end()[0] == 130
    node.call("globalThis.settle = null; await new Promise((done) => { settle = done; setTimeout(done, 100) }); 7")
    node.say(b"I" + first)
    assert node.end()[0] == 0
    node.say(b"I" + node.mark, b"I" + first, b"S10")        # between two calls
    node.call("3")
    assert node.end()[0] == 0
