"""What a person approves under a request's id is what they have seen there: nobody puts something else in its place meanwhile."""
import pytest

from helpers import requirement
from helpers.daemon import Caller, caller, restart
from helpers.signing import ETH, Signing, needs_person, signed

pytestmark = [requirement("R46")]

DEAR = str(ETH // 20)


@pytest.fixture
def s(cloche, tmp_path):
    made = Signing(cloche, tmp_path)
    yield made
    made.daemon.stop()


def gone_with_its_sandbox(s):
    box = s.agent.create()
    needs_person(s.ask(Caller(s.daemon, X_Sandbox_Key=box.record["key"]), requestId="swap", value=DEAR))
    assert box.delete().ok
    return s.agent


def gone_with_its_caller(s):
    other = caller(s.daemon, "agent", name="other")
    needs_person(s.ask(other, requestId="swap", value=DEAR))
    mine = [t for t in s.daemon.get("/v1/tokens").json["tokens"] if t["name"] == "other"]
    assert s.daemon("DELETE", f"/v1/tokens/{mine[0]['id']}").ok
    return s.agent


def gone_by_another_persons_no(s):
    needs_person(s.ask(requestId="swap", value=DEAR))
    assert s.daemon.post(f"/v1/approvals/{s.pending()[0]['approval']}/deny", {}).ok
    return s.agent


def gone_with_the_warden(s):
    needs_person(s.ask(requestId="swap", value=DEAR))
    restart(s.daemon)
    s.wait()
    return s.agent


@pytest.mark.parametrize("how", [gone_with_its_sandbox, gone_with_its_caller, gone_by_another_persons_no, gone_with_the_warden])
def test_an_id_that_somebody_was_asked_about_is_never_something_else(s, how):
    """The person has looked at it, and decides by its id, as the route lets them."""
    who = how(s)
    swapped = s.ask(who, requestId="swap", value=str(ETH // 11), to="0x" + "66" * 20)
    answer = s.approve("swap")
    assert swapped.status == 403 and swapped.json["policyDecision"]["matchedRule"] == "replay_protection", swapped
    # what was asked first may still wait: that alone is signed
    assert "66" * 20 not in answer.json.get("signature", ""), answer
    needs_person(s.ask(who, requestId="another", value=DEAR))
    signed(s.approve("another"))
