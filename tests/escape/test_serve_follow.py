"""Who follows the daemon's streams: no longer than the credential is good, and not without end."""
import http.client

import pytest

from helpers import requirement
from helpers.daemon import caller, token
from helpers.runner import wait_for
from helpers.shared import shared

pytestmark = [requirement("R63"), shared]

STREAMS = {"/v1/approvals/stream": "approver", "/v1/events/stream": "auditor", "/v1/audit/stream": "auditor"}


class Following:
    def __init__(self, daemon, path, secret):
        self.connection = daemon.connection()
        self.connection.request("GET", path, headers={"Authorization": f"Bearer {secret}"})
        self.response = self.connection.getresponse()
        self.status = self.response.status

    def rest(self):
        """What comes until the daemon ends it; a socket's own limit of time is the guard."""
        got = b""
        try:
            while piece := self.response.read1(65536):
                got += piece
        except http.client.IncompleteRead as e:      # it ends as something that was cut off
            got += e.partial
        finally:
            self.connection.close()
        return got

    def close(self):
        self.connection.close()


@pytest.mark.parametrize("path", sorted(STREAMS))
def test_a_revoked_credential_follows_no_more(daemon, path):
    made, other = token(daemon, STREAMS[path]), token(daemon, STREAMS[path])
    followers = [Following(daemon, path, made["token"]) for _ in range(2)]
    stays = Following(daemon, path, other["token"])
    assert [f.status for f in [*followers, stays]] == [200] * 3
    assert daemon("DELETE", f"/v1/tokens/{made['id']}").ok
    for f in followers:
        f.rest()
    assert Following(daemon, path, made["token"]).status == 401
    # it is told what comes, and those whose time was over are not
    box = caller(daemon, "agent").create()
    if path != "/v1/approvals/stream":
        got = b""
        while box.id.encode() not in got:
            piece = stays.response.read1(65536)
            assert piece, got
            got += piece
    stays.close()


@pytest.mark.parametrize("path", sorted(STREAMS))
def test_a_credential_that_is_over_follows_no_more(daemon, path):
    """Nothing happens meanwhile that there would be something to tell about."""
    made = token(daemon, STREAMS[path], expires=3)
    following = Following(daemon, path, made["token"])
    assert following.status in (200, 401)       # a machine may need longer than that
    following.rest()
    assert wait_for(lambda: daemon("GET", "/v1/approvals", headers={"Authorization": f"Bearer {made['token']}"}).status == 401, 60)


@pytest.mark.parametrize("path", sorted(STREAMS))
def test_one_credential_takes_not_all_places(daemon, path):
    made, other = token(daemon, STREAMS[path]), token(daemon, STREAMS[path])
    followers = [Following(daemon, path, made["token"]) for _ in range(8)]
    assert [f.status for f in followers] == [200] * 8
    refused = daemon("GET", path, headers={"Authorization": f"Bearer {made['token']}"})
    assert refused.status == 429 and "limit is 8" in refused.json["error"], refused
    theirs = Following(daemon, path, other["token"])
    assert theirs.status == 200
    followers.pop().close()

    def again():
        f = Following(daemon, path, made["token"])
        f.close()
        return f.status == 200
    assert wait_for(again, 60), "a place that was left stays taken"
    for f in [*followers, theirs]:
        f.close()
