"""/approvals/ID: somebody looks at what waits, and decides, in a browser."""
import pytest

from helpers import requirement
from helpers.daemon import Daemon, caller, token
from helpers.page import get, send
from helpers.runner import wait_for

pytestmark = [requirement("R63"), requirement("R68")]

ASYNC = {"Prefer": "respond-async"}


@pytest.fixture
def daemon(cloche):
    d = Daemon(cloche, path=cloche.home / "s", gate=None, tcp=True)
    yield d
    assert d.stop() == 0, d.log


class Asked:
    """An agent's command that waits, and somebody who may decide."""

    def __init__(self, daemon, command="echo ran > f"):
        self.agent = caller(daemon, "agent")
        self.box = self.agent.create()
        self.body = {"command": command}
        told = self.agent("POST", f"{self.box.at}/exec", self.body, ASYNC)
        assert told.status == 202, told
        self.id = told.json["approval"]
        self.secret = token(daemon, "approver", name="someone")["token"]
        self.browser = daemon.remote()

    def show(self):
        page = send(self.browser, self.id, token=self.secret, do="show")
        assert page.status == 200, page.source
        return page

    def decide(self, what, **fields):
        return send(self.browser, self.id, **{"token": self.secret, "do": what, "digest": self.show().fields["digest"], **fields})

    def again(self):
        return self.agent("POST", f"{self.box.at}/exec", self.body, ASYNC)


def test_looked_at_and_approved(daemon):
    asked = Asked(daemon)
    form = get(asked.browser, asked.id)
    assert form.status == 200 and "echo ran" not in form.source and form.fields == {}, form.source
    page = asked.show()
    assert page.fields["digest"] == daemon.get(f"/v1/approvals/{asked.id}").json["digest"]
    assert "echo ran > f" in page.pre and asked.box.id in page.text and "HIGH" in page.text and "code_execute" in page.text, page.text
    assert "Time left" in page.text and "agent" in page.text and asked.secret not in page.source
    done = asked.decide("approve", reason="looks fine", scope="once")
    assert done.status == 200 and "approved" in done.text and "looks fine" in done.text and "button" not in done.names(), done.text
    kept = daemon.get(f"/v1/approvals/{asked.id}").json
    assert kept["state"] == "approved" and kept["decided_by"].startswith("approver:") and kept["reason"] == "looks fine", kept
    assert asked.again().status == 200
    # once
    assert send(asked.browser, asked.id, token=asked.secret, do="approve", digest=kept["digest"]).status == 409


def test_denied(daemon):
    asked = Asked(daemon)
    assert asked.decide("deny", reason="nö", scope="once", expires="").status == 200
    answer = asked.again()
    assert answer.status == 403 and "nö" in answer.json["error"], answer


def test_for_longer(daemon):
    asked = Asked(daemon, "echo x")
    assert asked.decide("approve", scope="caller").status == 400        # without an end
    assert daemon.get(f"/v1/approvals/{asked.id}").json["state"] == "pending"
    assert asked.decide("approve", scope="sandbox", expires="3600").status == 200
    grants = daemon.get("/v1/grants").json["grants"]
    assert len(grants) == 1 and grants[0]["sandbox"] == asked.box.id and grants[0]["expires_ms"], grants
    asked.body = {"command": "echo another"}
    assert asked.again().status == 200


def test_parameters_as_they_are(daemon):
    asked = Asked(daemon, "cat <<'E'\n\tä & <b>\nE\n")
    assert any("cat <<'E'\n\tä & <b>\nE\n" == p for p in asked.show().pre)
    plain = asked.agent("POST", f"{asked.box.at}/exec", {"command": "true", "env": {"A": "1"}}, ASYNC).json["approval"]
    page = send(asked.browser, plain, token=asked.secret, do="show")
    assert any("A=1" in p for p in page.pre), page.pre


def test_over_the_owners_socket_too(daemon):
    asked = Asked(daemon)
    asked.browser = daemon
    assert "Waits" in asked.show().text and asked.decide("deny").status == 200
    assert wait_for(lambda: daemon.get(f"/v1/approvals/{asked.id}").json["state"] == "denied")


def test_the_style_is_its_own(daemon):
    answer = daemon.remote()("GET", "/approvals/style.css")
    assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/css") and b"url(" not in answer.body, answer
    form = get(daemon.remote(), "0" * 32)
    assert [a["href"] for t, a in form.tags if t == "link"] == ["/approvals/style.css"]
