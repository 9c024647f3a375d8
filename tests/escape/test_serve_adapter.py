"""An adapter that was taken over: it speaks for its visitors while they are there, and the front takes nothing else from it."""
import http.client

import pytest

from helpers import requirement
from helpers.daemon import Daemon, other_adapter, token

pytestmark = requirement("R61", "R85")


@pytest.fixture
def daemon(cloche, world):
    """One whose adapter does what a query says (tests/lib/bad_adapter.c)."""
    with other_adapter(cloche, world, "bad_adapter"):
        made = Daemon(cloche)
        yield made
        assert made.stop() == 0, made.log


REFUSED = ("token", "stop-all", "who", "connect", "no-message", "many-questions", "no-type", "two-answers", "no-header")


@pytest.mark.parametrize("deed", REFUSED)
def test_what_it_may_not_ask_or_say(daemon, deed):
    """Its visit ends, and nothing else does: not the front, not another client's request."""
    front, box = daemon.processes("cloche-front"), daemon.create(name="victim")
    tokens = len(daemon.get("/v1/tokens").json["tokens"])
    try:
        answer = daemon.get(f"/api/sandbox/status?{deed}")
        assert answer.status == 503 and "not there" in answer.json["error"], answer
        assert "Set-Cookie" not in str(answer.headers)
    except http.client.HTTPException as e:      # an answer that had begun is cut off
        assert deed == "two-answers", e
    assert daemon.processes("cloche-front") == front and box.exec("echo on")["stdout"] == "on\n"
    assert len(daemon.get("/v1/tokens").json["tokens"]) == tokens and box.show()["state"] == "ready"


def test_it_asks_as_who_is_there(daemon):
    """What an agent does not reach, an adapter does not reach for it; the owner's own request does."""
    daemon.create(name="victim")
    agent = token(daemon, "agent")["token"]
    headers = {"Authorization": f"Bearer {agent}"}
    assert daemon("GET", "/api/sandbox/status?others", headers=headers).json == {"heard": "no"}
    assert daemon.get("/api/sandbox/status?others").json == {"heard": "box"}
