"""A daemon that signs: its key, its policy, and requests to it."""
import itertools
import json

from helpers.daemon import Daemon, answers, caller
from helpers.runner import wait_for

KEY = "46" * 32                                                 # of the values that EIP-155 has as its example
ADDRESS = "0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4F"
FIVES = "0x" + "35" * 20
ETH = 10 ** 18
GWEI = 10 ** 9
FEES = {"gasLimit": "100000", "maxFeePerGas": str(20 * GWEI), "maxPriorityFeePerGas": str(GWEI)}
APPROVE = "0x095ea7b3" + "00" * 12 + "35" * 20 + "ff" * 32      # without limit
TRANSFER = "0xa9059cbb" + "00" * 12 + "35" * 20 + "00" * 31 + "01"

_numbers = itertools.count()


def body(**members):
    """A request that the standard policy signs, but for @members; None takes one away."""
    made = {"requestId": f"r{next(_numbers)}", "chainId": 1, "to": FIVES, "value": "1000", "data": "0x", "createdAt": 1718000000000,
            **FEES, **members}
    return {name: value for name, value in made.items() if value is not None}


class Signing:
    """s.ask(value="1"), as an agent; s.person decides."""

    def __init__(self, cloche, tmp_path, *flags, key=KEY, **policy):
        self.cloche = cloche
        cloche.env["XDG_DATA_HOME"] = str(tmp_path / "data")
        self.file = tmp_path / "policy.json"
        self.policy(**policy)
        added = cloche("signer", "add", "main", stdin=key + "\n")
        assert added.ok, added
        self.daemon = Daemon(cloche, "--signing-key", "main", "--signing-policy", str(self.file), *flags)
        self.agent = caller(self.daemon, "agent", name="trader")
        self.person = caller(self.daemon, "approver")

        self.wait()

    def wait(self):
        """Until there is a signer, whatever became of the one before it."""
        assert wait_for(lambda: answers(self.daemon) and self.daemon.get("/api/sandbox/sign/address").status == 200)

    def policy(self, **members):
        self.file.write_text(json.dumps(members), encoding="utf-8")

    def ask(self, who=None, **members):
        return (who or self.agent).post("/api/sandbox/sign", body(**members))

    def rule(self, **members):
        """Of a request that is refused: the rule and its words."""
        answer = self.ask(**members)
        said = answer.json
        assert answer.status == 403 and said["success"] is False and "signature" not in said, answer
        assert said["policyDecision"]["allowed"] is False and said["error"] == said["policyDecision"]["reason"], answer
        return said["policyDecision"]["matchedRule"], said["error"]

    def approve(self, request, who=None):
        return (who or self.person).post("/api/sandbox/sign/approve", {"requestId": request})

    def reject(self, request, who=None):
        return (who or self.person).post("/api/sandbox/sign/reject", {"requestId": request})

    def pending(self, who=None):
        answer = (who or self.person).get("/api/sandbox/sign/pending")
        assert answer.status == 200, answer
        return answer.json["pending"]


def signed(answer):
    """The transaction as it is sent."""
    assert answer.status == 200 and answer.json["success"] is True, answer
    return answer.json["signature"]


def needs_person(answer):
    said = answer.json
    assert answer.status == 403 and said["success"] is False and said["humanConfirmed"] is False, answer
    assert said["error"] == "Human confirmation required. Use approve endpoint.", answer
    assert said["policyDecision"] == {"allowed": True, "reason": "All policy checks passed", "requiresHumanConfirmation": True,
                                      "matchedRule": "allowed"}, answer
