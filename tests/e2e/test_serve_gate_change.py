"""cloche serve: what was approved, and what waits to be, ends with the rules, the policy and the settings that it was asked under."""
import pytest

from helpers import requirement
from helpers.approvals import ASYNC, Asking, one_pending, pending
from helpers.daemon import Daemon, caller, restart
from helpers.runner import wait_for

pytestmark = [requirement("R63"), requirement("R68")]

RULE = "{name: mine, tools: [code_execute], risk: HIGH, conditions: [{param: code, contains: '%s'}]}"
READS = "{name: reads, tools: [file_read], risk: HIGH}"


class Gated:
    def __init__(self, cloche, tmp_path):
        self.rules, self.security = tmp_path / "gate.yaml", tmp_path / "more.yaml"
        self.security.write_text("limits: {time: 50s}\n")
        self.write(RULE % "echo", READS)
        self.daemon = Daemon(cloche, "--settings", str(self.security), gate=self.rules)
        self.agent = caller(self.daemon, "agent")
        self.box = self.agent.create()

    def write(self, *rules):
        self.rules.write_text("gate:\n  rules:\n" + "".join(f"    - {r}\n" for r in rules))

    def reload(self):
        assert "was read again" in self.daemon.reload()

    def ask(self, command, box=None):
        return self.agent("POST", f"{(box or self.box).at}/exec", {"command": command}, ASYNC)

    def approve(self, asked, **how):
        assert asked.status == 202, asked
        return self.daemon.post(asked.json["url"] + "/approve", how)

    def state(self, asked):
        return self.daemon.get(asked.json["url"]).json

    def events(self, kind):
        return [e["detail"] for e in self.daemon.get("/v1/events?limit=1000").json["events"] if e["type"] == kind]

    def grants(self):
        return self.daemon.get("/v1/grants").json["grants"]

    def change_policy(self, box=None):
        changed = self.daemon("PATCH", f"{(box or self.box).at}/policy", {"limits": {"time": "40s"}})
        assert changed.status == 200, changed


@pytest.fixture
def gated(cloche, tmp_path):
    w = Gated(cloche, tmp_path)
    yield w
    w.daemon.stop()


def ends(gated, change, why):
    """All three: one that waits, one that was approved and not used, a grant for longer."""
    standing, ready, waits = gated.ask("echo 1"), gated.ask("echo 2"), gated.ask("echo 3")
    waiter = Asking(gated.agent, "POST", f"{gated.box.at}/exec", {"command": "echo 4"})
    assert wait_for(lambda: len(pending(gated.daemon)) == 4)
    assert gated.approve(standing, scope="sandbox").ok and gated.approve(ready).ok
    assert len(gated.grants()) == 1 and len(pending(gated.daemon)) == 2
    change()
    told = waiter.wait()
    assert told.status == 403 and told.json["code"] == "gate.denied" and why in told.json["error"], told
    for asked in (waits, ready):
        assert gated.state(asked)["state"] == "denied" and why in gated.state(asked)["reason"], gated.state(asked)
        assert gated.state(asked)["decided_by"] is None
    assert gated.grants() == [] and gated.events("gate_revoked")
    late = gated.approve(waits)
    assert late.status == 409 and late.json["code"] == "gate.decided", late
    # all of it is asked about anew, and can be
    for command in ("echo 1", "echo 2", "echo 3"):
        again = gated.ask(command)
        assert again.status == 202, again
        assert gated.approve(again).ok
        assert gated.ask(command).status == 200


def test_a_change_of_the_policy_ends_them(gated):
    ends(gated, gated.change_policy, "the sandbox's policy was changed")


def test_a_change_of_the_rules_ends_them(gated):
    def change():
        gated.write(RULE % "ech", READS)
        gated.reload()
    ends(gated, change, "the gate's rules were changed")


def test_a_change_for_the_next_life_ends_them(gated):
    standing, ready = gated.ask("echo 1"), gated.ask("echo 2")
    assert gated.approve(standing, scope="sandbox").ok and gated.approve(ready).ok
    assert gated.box.delete().ok
    gated.change_policy()
    assert gated.grants() == [] and gated.state(ready)["state"] == "denied"
    assert gated.daemon.post(f"{gated.box.at}/recover").status == 200
    assert gated.ask("echo 2").status == 202


def test_one_that_is_refused_or_changes_nothing_ends_nothing(gated):
    ready, waits = gated.ask("echo 2"), gated.ask("echo 3")
    assert gated.approve(gated.ask("echo 1"), scope="sandbox").ok and gated.approve(ready).ok
    assert gated.daemon("PATCH", f"{gated.box.at}/policy", {"mode": "max"}).status == 409
    assert gated.daemon("PATCH", f"{gated.box.at}/policy", {}).status == 200
    gated.write("{name: odd, tools: 1}")
    assert "configuration stays" in gated.daemon.reload()
    gated.write("{name: other, tools: [file_delete], risk: LOW}", RULE % "echo", READS)
    gated.reload()
    assert gated.approve(waits).ok
    for command in ("echo 1", "echo 2", "echo 3", "echo 4"):
        assert gated.ask(command).status == 200, command


def test_a_callers_grant_does_not_count_where_the_policy_was_changed(gated):
    other = gated.agent.create()
    assert gated.approve(gated.ask("echo 1"), scope="caller", expires=3600).ok
    assert gated.ask("echo 2").status == 200 and gated.ask("echo 3", other).status == 200
    gated.change_policy()
    assert len(gated.grants()) == 1
    assert gated.ask("echo 2").status == 202 and gated.ask("echo 3", other).status == 200
    restart(gated.daemon)
    assert wait_for(lambda: gated.daemon.state(gated.box.id) == "ready" and gated.daemon.state(other.id) == "ready")
    assert gated.ask("echo 5").status == 202 and gated.ask("echo 6", other).status == 200
    # a grant of after the change does
    assert gated.approve(gated.ask("echo 7"), scope="caller", expires=3600).ok
    assert gated.ask("echo 8").status == 200


@pytest.mark.parametrize("how", ["reload", "restart"])
def test_other_settings_end_what_is_for_all_sandboxes(gated, how):
    """Who approved for sandboxes that are to come, did so for what they would get then."""
    other = gated.agent.create()
    assert gated.approve(gated.ask("echo 1"), scope="sandbox").ok
    assert gated.approve(gated.ask("echo 1", other), scope="caller", expires=3600).ok
    gated.security.write_text("limits: {time: 45s}\n")
    if how == "reload":
        gated.reload()
        assert [g["sandbox"] for g in gated.grants()] == [gated.box.id]     # which keeps its policy
    else:
        gated.daemon.stop()
        gated.daemon.start()
        assert not [g for g in gated.grants() if not g["sandbox"]]
    assert any("the daemon's settings was changed" in e for e in gated.events("gate_revoked"))


@pytest.mark.parametrize("changed", ["the rule", "its name", None])
def test_what_was_approved_before_a_restart_under_other_rules_is_void(gated, changed):
    ready = gated.ask("echo 1")
    assert gated.approve(ready).ok
    gated.daemon.stop()
    if changed:
        gated.write(RULE % "ech" if changed == "the rule" else (RULE % "echo").replace("mine", "other"), READS)
    gated.daemon.start()
    assert gated.state(ready)["state"] == ("denied" if changed else "approved")


def test_the_same_file_again_ends_nothing(gated):
    assert gated.approve(gated.ask("echo 1"), scope="caller", expires=3600).ok
    gated.reload()
    assert len(gated.grants()) == 1 and gated.ask("echo 2").status == 200


def test_who_waits_for_the_change_itself_gets_it(cloche, tmp_path):
    """A change of the policy that was asked about: its own approval does not end under it."""
    rules = tmp_path / "gate.yaml"
    rules.write_text("gate:\n  apply-to: all\n  rules:\n    - {name: p, tools: [sandbox_policy], risk: HIGH}\n"
                     "    - {name: rest, tools: ['*'], risk: LOW, require_approval: false}\n")
    daemon = Daemon(cloche, gate=rules)
    try:
        operator, approver = caller(daemon, "operator"), caller(daemon, "approver")
        for living in (True, False):
            box = operator.create()
            assert living or operator("DELETE", box.at).ok
            asking = Asking(operator, "PATCH", f"{box.at}/policy", {"limits": {"time": "40s"}})
            assert approver.post(f"/v1/approvals/{one_pending(approver)['id']}/approve").ok
            assert asking.wait().status == 200, asking.answer
            assert box.daemon.get(f"{box.at}/policy").json["policy"] == {"limits": {"time": "40s"}}
    finally:
        daemon.stop()
