"""Requests that wait for somebody's decision."""
import threading

from helpers.runner import wait_for

ASYNC = {"Prefer": "respond-async"}


class Asking:
    """A request on a thread of its own, which waits for somebody's decision."""

    def __init__(self, who, method, path, body=None, headers=None):
        self.answer = None
        self.thread = threading.Thread(target=self.run, args=(who, method, path, body, headers), daemon=True)
        self.thread.start()

    def run(self, *args):
        who, *rest = args
        self.answer = who(*rest)

    def wait(self):
        self.thread.join(120)
        assert self.answer is not None, "no answer"
        return self.answer


def pending(who):
    answer = who.get("/v1/approvals?state=pending")
    assert answer.status == 200, answer
    return answer.json["approvals"]


def one_pending(who):
    wait_for(lambda: len(pending(who)) == 1)
    return pending(who)[0]
