"""Where the owner's git goes by itself: `git status` and its like open no connection to where a sandbox says, from which data would leave, or come, past its network wall.

Issue 18, 10 (v); docs/name-guard.md.
"""
import socket
import threading

import pytest

from helpers import requirement
from helpers.git_bench import REPO

pytestmark = [requirement("R91", "R11"), pytest.mark.usefixtures("needs_git")]

LOOKS = "git status; git status -sb; git diff; git log -p -1; git submodule status; cd sub 2> /dev/null && git log -p -1"
# A commit without its tree: git fetches what a partial clone has not.
MISSING = (REPO.replace("git init -q -b main .; ", "git config core.repositoryformatversion 1; ") +
           "T=$(git rev-parse HEAD^{tree}); rm -f .git/objects/$(echo $T | cut -c1-2)/$(echo $T | cut -c3-); ")
PROMISES = {
    "promisor": "git config remote.x.url URL; git config remote.x.promisor true",
    "the extension": "git config remote.x.url URL; git config extensions.partialClone x",
    "by hand": "printf '[extensions]\\n\\tpartialClone = x\\n[remote \"x\"]\\n\\turl = URL\\n' > c; cat .git/config >> c; mv c .git/config",
}


@pytest.fixture
def needs_git(has):
    has("git")


class Server:
    """Counts who comes."""

    def __init__(self):
        self.came = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d/secret" % self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        try:
            while True:
                with self.socket.accept()[0] as client:
                    self.came.append(client.recv(200))
        except OSError:
            pass

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


@pytest.fixture
def server():
    s = Server()
    yield s
    s.close()


def lazily_fetched(this, server, promise, where):
    begin = "git init -q -b main .; " if where == "." else "mkdir sub; cd sub; git init -q -b main .; "
    end = "" if where == "." else "cd ..; git -c core.bare=false update-index --add --cacheinfo 160000,$(git -C sub rev-parse HEAD),sub; "
    if where != ".":
        this.host(REPO)
    this.inside(begin + MISSING + PROMISES[promise].replace("URL", server.url) + "; " + end)
    this.host(LOOKS, check=False)
    return server.came


@pytest.mark.parametrize("where", (".", "sub"))
@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("way", ("standard", "light"))
def test_a_look_fetches_nothing(bench, server, way, promise, where):
    """What a partial clone has not is fetched by whoever looks: the owner's `git status`, with what the URL says."""
    assert lazily_fetched(bench(way), server, promise, where) == []


@pytest.mark.parametrize("where", (".", "sub"))
@pytest.mark.parametrize("promise", PROMISES)
def test_these_attacks_are_real(bench, server, promise, where):
    assert lazily_fetched(bench("bare"), server, promise, where) != []
