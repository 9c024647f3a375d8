"""cloche serve signs transactions for agents, who never see the key: what the signing policy denies is not signed."""
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from helpers import requirement
from helpers.curve import times
from helpers.daemon import Caller, Daemon, caller, is_sanitized, restart, status_of
from helpers.runner import wait_for
from helpers.signing import ADDRESS, APPROVE, ETH, FEES, FIVES, GWEI, KEY, Signing, TRANSFER, body, needs_person, signed

pytestmark = [requirement("R46")]

RICH = {"maxTransactionValueWei": str(2 * ETH), "humanConfirmationThresholdWei": str(2 * ETH)}
# ethers 6, of the key 0x4646...: see also tests/unit/test_sign.c
DYNAMIC = ("0x02f8730109843b9aca008504a817c800825208943535353535353535353535353535353535353535880de0b6b3a764000080c080a04e87ced8b47d801"
           "c979c6baa52bbd78b42c9db2515c9d1f473e06f65d49aaa90a02357671517c59544ebd95012d1988c102292eb570cc840ac9af72bb4c52e5edd")
LEGACY = ("0xf86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76400008025a028ef61340bd939bc2195fe537567866"
          "003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83")


@pytest.fixture
def signing(cloche, tmp_path):
    made = []

    def make(*flags, **policy):
        made.append(Signing(cloche, tmp_path, *flags, **policy))
        return made[-1]
    yield make
    for s in made:
        s.daemon.stop()


def entries(daemon, kind, n):
    """The entries of that kind, when there are so many: they are shown when they are written."""
    def written():
        got = daemon.get(f"/api/audit/feed?limit=1000&type=signing_request_{kind}").json
        return got["entries"] if isinstance(got, dict) else got
    wait_for(lambda: len(written()) >= n)
    return written()


def test_a_request_is_signed_as_ethers_signs_it(signing):
    s = signing(**RICH)
    assert s.agent.get("/api/sandbox/sign/address").json == {"address": ADDRESS}
    one = {"value": str(ETH), "nonce": 9, "gasLimit": "21000"}
    answer = s.ask(**one)
    assert signed(answer) == DYNAMIC, answer
    assert answer.json["policyDecision"] == {"allowed": True, "reason": "All policy checks passed", "requiresHumanConfirmation": False,
                                             "matchedRule": "allowed"} and answer.json["humanConfirmed"] is False, answer
    assert signed(s.ask(**one, gasPrice=str(20 * GWEI), maxFeePerGas=None, maxPriorityFeePerGas=None)) == LEGACY
    zero = [{"address": FIVES, "storageKeys": ["0x" + "00" * 32]}]
    assert signed(s.ask(**{**one, "gasLimit": "21000", "value": "0"}, accessList=[], gasPrice="1", maxFeePerGas=None,
                        maxPriorityFeePerGas=None)).startswith("0x01")
    for bad in (["x"], [{"address": FIVES}], [{**zero[0], "more": 1}], [{"address": FIVES, "storageKeys": ["0x00"]}], [zero]):
        answer = s.ask(accessList=bad)
        assert answer.status == 403 and answer.json["error"].startswith("Signing failed: accessList is not a list of"), answer
    assert "less than the transaction takes" in s.ask(accessList=zero, gasLimit="25299").json["error"]
    signed(s.ask(accessList=zero, gasLimit="25300"))
    key = s.agent.create()
    assert signed(s.ask(Caller(s.daemon, X_Sandbox_Key=key.record["key"]), **one)) == DYNAMIC


def test_the_words_of_a_request_that_is_none(signing):
    s = signing()
    for members, words in [
        ({"requestId": " "}, "Signing payload requires a non-empty string 'requestId'"),
        ({"chainId": -1}, "Signing payload requires an integer 'chainId' >= 0"),
        ({"chainId": "1"}, "Signing payload requires an integer 'chainId' >= 0"),
        ({"to": "0x35"}, "Signing payload requires a hex 'to' address (e.g., 0x followed by 40 hex characters)"),
        ({"value": 1000}, "Signing payload requires a non-empty string 'value'"),
        ({"data": ""}, "Signing payload requires a non-empty string 'data'"),
        ({"nonce": -1}, "'nonce' must be a non-negative integer when provided"),
        ({"createdAt": None}, "Signing payload requires an integer 'createdAt'"),
        ({"gasLimit": 21000}, "Signing payload 'gasLimit' must be a string when provided"),
        ({"gasLimit": " "}, "Signing payload 'gasLimit' cannot be empty when provided"),
    ]:
        answer = s.ask(**members)
        assert (answer.status, answer.json) == (400, {"error": words}), (members, answer)
    for what in ([], "x", 7):
        answer = s.agent.post("/api/sandbox/sign", what)
        assert (answer.status, answer.json) == (400, {"error": "Signing payload must be a JSON object"}), answer
    assert s.agent("POST", "/api/sandbox/sign", b"{").json == {"error": "Invalid JSON in request body"}
    assert s.ask(type=4).status == 400 and s.ask(authorizationList=[]).status == 400 and s.ask(blobVersionedHashes=[]).status == 400
    assert s.ask(accessList={}).status == 400 and s.ask(accessList=["x" * 16384]).status == 400


def test_rules_in_their_order_with_their_words(signing):
    other = "0x" + "36" * 20
    s = signing(allowedChainIds=[1, 5], allowedContracts=[FIVES, other], deniedContracts=[other], allowedMethodSelectors=["0xa9059cbb"],
                maxTransactionsPerHour=2, maxTransactionsPerDay=2)
    assert s.rule(chainId=2) == ("chain_id_allowlist", "Chain 2 not in allowlist")
    assert s.rule(chainId=0)[0] == "chain_id_allowlist"
    assert s.rule(to=other, value="-1") == ("contract_denylist", f"Contract {other} is denylisted")
    third = "0x" + "aB" * 20
    assert s.rule(to=third, value="-1") == ("contract_allowlist", f"Contract {third} not in allowlist")
    assert s.rule(value="-1", data="0x1") == ("value_non_negative", "Transaction value must not be negative")
    for value in ("1.5", "1e3", "0x", "٣", "1_000", "+5", "--5", "9" * 79, " - 5"):
        assert s.rule(value=value) == ("value_parse_error", "Invalid transaction value format"), value
    assert s.rule(value=str(2 ** 256 - 1))[0] == "value_cap"
    assert s.rule(value="100000000000000001") == ("value_cap", "Value 100000000000000001 exceeds max 100000000000000000")
    assert s.rule(gasLimit=str(2 ** 63), data="0x12345678") == ("fee_cap", f"Fee {2 ** 63 * 20 * GWEI} exceeds max 100000000000000000")
    whole = "Calldata must be a complete 4-byte hex selector followed by whole hex bytes"
    for data in ("0x1", "0x1234", "0x1234567", "0x1234567g", "12345678", "0x123456789", "0x12345678zz", "0xa9059c"):
        assert s.rule(data=data) == ("method_selector_format", whole), data
    assert s.rule(data="0x12345678") == ("method_selector_allowlist", "Method selector 0x12345678 not in allowlist")
    assert s.rule(data="0xa9059cbb" + "00" * 40)[0] == "method_selector_format"
    assert s.rule(data="0xa9059cbb" + "ff" * 64)[0] == "method_selector_format"     # no address
    signed(s.ask(data=TRANSFER))        # it is listed: nobody is asked
    signed(s.ask(data="0X"))
    assert s.rule() == ("rate_limit_hourly", "Rate limit: 2/2 per hour")
    assert "rate_limit_hourly" in [e["metadata"]["matchedRule"] for e in entries(s.daemon, "rejected", 29)]


def test_what_cannot_be_signed_counts_nothing(signing):
    s = signing(maxTransactionsPerHour=1)
    for members in ({"gasLimit": None}, {"maxFeePerGas": None}, {"gasLimit": "20999"}, {"gasLimit": "-1"}, {"gasLimit": "1e9"},
                    {"maxPriorityFeePerGas": str(21 * GWEI)}, {"gasPrice": "1"}, {"to": "0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4f"}):
        answer = s.ask(**members)
        assert answer.status == 403 and answer.json["error"].startswith("Signing failed: "), (members, answer)
        assert answer.json["policyDecision"]["matchedRule"] == "allowed", answer
    assert s.ask(gasLimit=None).json["error"] == "Signing failed: the request has no gasLimit, and the signing policy no defaultGasLimit"
    signed(s.ask())
    assert s.rule()[0] == "rate_limit_hourly"


def test_the_policy_fills_in_what_a_request_leaves_out(signing):
    s = signing(defaultGasLimit=21000, defaultMaxFeePerGasWei=str(20 * GWEI), defaultMaxPriorityFeePerGasWei=str(GWEI), **RICH)
    bare = {name: None for name in FEES}
    nine = signed(s.ask(**bare, value=str(ETH), nonce=9))
    assert nine == DYNAMIC
    # the first that was not used, as far as is known, for each chain
    assert signed(s.ask(**bare)).startswith("0x02f86d010a"), "ten"
    assert signed(s.ask(**bare, chainId=5)).startswith("0x02f86d0580"), "none"


def test_a_nonce_is_on_the_disk_before_the_signer_is_asked(signing, has, tmp_path):
    """After a power failure it is used, then, and not signed twice: nothing is written to the state between its last sync and the question."""
    has("strace")
    s = signing(**RICH)
    log, (pid,) = tmp_path / "trace", s.daemon.running("cloche-warden")
    tracer = subprocess.Popen(["strace", "-y", "-x", "-s", "4096", "-e", "trace=pwrite64,fdatasync,fsync,sendmsg,sendto,write", "-o", str(log), "-p", str(pid)],
                              stderr=subprocess.PIPE, text=True)
    if "attached" not in tracer.stderr.readline():
        pytest.skip("strace does not work here")
    signed(s.ask(nonce=5, requestId="disk"))
    tracer.terminate()
    tracer.communicate()
    calls = log.read_text(errors="replace").splitlines()
    question = next(n for n, call in enumerate(calls) if call.startswith("send") and r"\x35" * 20 in call)     # FIVES in its bytes
    on_log = [call.partition("(")[0] for call in calls[:question] if "state.db-wal>" in call]
    assert "pwrite64" in on_log and on_log[-1] in ("fdatasync", "fsync"), on_log


def test_one_agents_nonce_is_not_everybodys(signing):
    """Transactions behind a gap are valid for nobody, and an agent could make one that nobody fills."""
    s = signing(defaultGasLimit=21000, defaultMaxFeePerGasWei=str(20 * GWEI))
    other = caller(s.daemon, "agent")

    def next_is(nonce):
        raw = signed(s.ask(other))
        assert raw[4:6] == "f8" and raw[8:].startswith("01" + nonce), (raw, nonce)
    for far in (2 ** 63 - 1, 2 ** 40, 1025):
        signed(s.ask(nonce=far))
    next_is("80")
    needs_person(s.ask(requestId="far", nonce=2 ** 40, value="20000000000000000"))
    next_is("01")
    needs_person(s.ask(requestId="near", nonce=2, value="20000000000000000"))
    next_is("03")       # what waits keeps its own
    signed(s.approve("far"))
    next_is("86010000000001")       # a person has said so


def test_a_nonce_that_nothing_was_signed_with_is_given_again(signing):
    """A person says no to the first of two: what is signed with the second's nonce would be behind a gap."""
    s = signing(defaultGasLimit=21000, defaultMaxFeePerGasWei=str(20 * GWEI))

    def next_is(nonce, **members):
        raw = signed(s.ask(**members))
        assert raw[8:].startswith("01" + nonce), (raw, nonce)
    for number in range(3):
        needs_person(s.ask(requestId=f"big {number}", value="20000000000000000"))
    next_is("03")
    assert s.reject("big 0").json == {"rejected": True} and s.reject("big 1").json == {"rejected": True}
    restart(s.daemon, "cloche-warden")
    s.wait()
    next_is("80")
    next_is("01")
    # of the third nobody knows any more since the restart
    next_is("02")
    next_is("04")


def test_who_says_nonces_is_believed(signing):
    """One that is further on: those before it, which a person refused, are not given to others any more."""
    s = signing(defaultGasLimit=21000, defaultMaxFeePerGasWei=str(20 * GWEI))
    needs_person(s.ask(requestId="big", value="20000000000000000"))
    s.reject("big")
    signed(s.ask(nonce=9))
    assert signed(s.ask())[8:].startswith("010a")


def test_a_request_is_signed_once(signing):
    s = signing()
    signed(s.ask(requestId="once"))
    replay = ("replay_protection", "Replay detected: request once already processed")
    assert s.rule(requestId="once") == replay
    assert s.rule(requestId=" once ", value="5") == replay
    other = caller(s.daemon, "agent")
    assert s.ask(other, requestId="once").json["policyDecision"]["matchedRule"] == "replay_protection"
    restart(s.daemon)
    s.wait()
    assert s.rule(requestId="once") == replay


def test_a_person_confirms_what_is_above_the_threshold(signing):
    s = signing()
    needs_person(s.ask(requestId="big", value="10000000000000001", nonce=7))
    signed(s.ask(requestId="small", value="10000000000000000"))
    waits, = s.pending()
    assert waits["requestId"] == "big" and waits["chainId"] == 1 and waits["to"] == FIVES and waits["value"] == "10000000000000001", waits
    assert waits["request"] == body(requestId="big", value="10000000000000001", nonce=7), waits
    assert waits["decision"]["requiresHumanConfirmation"] is True and waits["expiresAt"] - waits["createdAt"] == 300000, waits
    assert s.pending(s.agent) == [waits] and s.pending(caller(s.daemon, "agent")) == []
    asked = s.person.get(f"/v1/approvals/{waits['approval']}").json
    assert asked["tool"] == "sign_transaction" and asked["params"]["signingHash"] == waits["signingHash"], asked
    assert asked["params"]["valueWei"] == "10000000000000001" and asked["params"]["from"] == ADDRESS and asked["risk"] == "CRITICAL", asked
    # who asked does not decide, nor another agent
    for who in (s.agent, caller(s.daemon, "agent")):
        assert s.approve("big", who).status == 403 and s.reject("big", who).status == 403
    answer = s.approve("big")
    assert signed(answer) and answer.json["humanConfirmed"] is True, answer
    assert s.pending() == []
    again = s.approve("big")
    assert again.status == 403 and again.json == {
        "success": False, "error": "No pending approval found for this request ID", "humanConfirmed": False,
        "policyDecision": {"allowed": False, "reason": "Approval not found", "requiresHumanConfirmation": False,
                           "matchedRule": "approval_not_found"}}, again
    assert s.rule(requestId="big", value="10000000000000001", nonce=7)[0] == "replay_protection"


def test_who_is_told_by_v1_comes_again(signing):
    s = signing()
    for one in ("approve", "deny"):
        needs_person(s.ask(requestId=one, data=APPROVE, nonce=1))
        waits, = s.pending()
        assert s.person.post(f"/v1/approvals/{waits['approval']}/{one}").status == 200
        assert s.pending() == []
    answer = s.ask(requestId="approve", data=APPROVE, nonce=1)
    assert signed(answer) and answer.json["humanConfirmed"] is True, answer
    assert s.rule(requestId="approve", data=APPROVE, nonce=1)[0] == "replay_protection"
    assert s.rule(requestId="deny", data=APPROVE, nonce=1) == ("human_rejected", "A person rejected it")


def test_an_id_that_a_person_was_asked_about_is_nothing_else(signing):
    """Nor what nobody is asked about, or another caller's: after a no, and over a restart."""
    s = signing()
    replay = ("replay_protection", "Replay detected: request deny already processed")
    needs_person(s.ask(requestId="deny", value="20000000000000000", nonce=1))
    waits, = s.pending()
    assert s.person.post(f"/v1/approvals/{waits['approval']}/deny").status == 200
    for again in range(2):
        for value in ("30000000000000000", "1"):
            assert s.rule(requestId="deny", value=value, nonce=1) == replay, (again, value)
            stranger = s.ask(caller(s.daemon, "agent"), requestId="deny", value=value, nonce=1)
            assert stranger.status == 403 and stranger.json["error"] == replay[1], stranger
        restart(s.daemon)
        s.wait()
    signed(s.ask(requestId="another", value="1", nonce=1))


def test_a_rejection_is_the_end_of_a_request(signing):
    s = signing(requireHumanConfirmation=True)
    needs_person(s.ask(requestId="no"))
    assert s.reject("no").json == {"rejected": True} and s.reject("no").json == {"rejected": False}
    assert s.reject("never").json == {"rejected": False}
    assert s.approve("no").json["policyDecision"]["matchedRule"] == "approval_not_found"
    assert s.rule(requestId="no")[0] == "replay_protection"


def test_the_same_id_with_another_transaction_gets_nothing(signing):
    """The source's hole: who asked again under an id that waited had the new transaction approved."""
    s = signing()
    other = "0x" + "66" * 20
    needs_person(s.ask(requestId="swap", value="20000000000000000", nonce=1))
    replay = ("replay_protection", "Replay detected: request swap already processed")
    for members in ({"to": other}, {"value": "90000000000000000"}, {"nonce": 2}, {"data": APPROVE}, {"value": "5"}, {"chainId": 5}):
        assert s.rule(**{"requestId": "swap", "value": "20000000000000000", "nonce": 1, **members}) == replay, members
    stranger = caller(s.daemon, "agent")
    assert s.ask(stranger, requestId="swap", value="20000000000000000", nonce=1).json["error"] == replay[1]
    needs_person(s.ask(requestId="swap", value="20000000000000000", nonce=1))      # the same: it still waits
    waits, = s.pending()
    raw = signed(s.approve("swap"))
    assert FIVES[2:] in raw and other[2:] not in raw and waits["to"] == FIVES
    # approved by /v1, and then another one comes
    needs_person(s.ask(requestId="late", value="20000000000000000", nonce=3))
    waits, = s.pending()
    assert s.person.post(f"/v1/approvals/{waits['approval']}/approve").status == 200
    assert s.rule(requestId="late", value="20000000000000000", nonce=3, to=other)[0] == "replay_protection"
    assert FIVES[2:] in signed(s.ask(requestId="late", value="20000000000000000", nonce=3))


def test_a_fee_is_money_too(signing):
    """Who makes a block gets it."""
    s = signing()
    signed(s.ask(gasLimit="500000", maxFeePerGas=str(20 * GWEI)))
    needs_person(s.ask(gasLimit="500001", maxFeePerGas=str(20 * GWEI)))
    needs_person(s.ask(gasLimit="21000", gasPrice=str(500 * GWEI), maxFeePerGas=None, maxPriorityFeePerGas=None, value="0"))


def test_what_was_asked_of_one_account_is_not_anothers(signing):
    """The key in the store is another one, and the signer starts anew: a person has seen the first one's address."""
    s = signing(defaultGasLimit=21000)
    for request in ("yes", "no"):
        needs_person(s.ask(requestId=request, value="20000000000000000"))
    needs_person(s.agent.post("/api/sandbox/sign/message", {"requestId": "text", "message": "hello"}))
    assert s.cloche("signer", "rm", "main").ok and s.cloche("signer", "add", "main", stdin="47" * 32 + "\n").ok
    restart(s.daemon, "cloche-signer")
    assert wait_for(lambda: s.daemon.get("/api/sandbox/sign/address").json.get("address", ADDRESS) != ADDRESS)
    for request in ("yes", "text"):
        answer = s.approve(request)
        assert answer.status == 403 and "another account" in answer.json["error"] and "signature" not in answer.json, answer
    assert signed(s.ask())[8:12] == "0180", "nor does it hold a nonce of this one"
    assert s.reject("no").json == {"rejected": True}


def test_a_person_may_say_what_they_have_seen(signing):
    """An id that somebody expects may be another agent's."""
    s = signing(requireHumanConfirmation=True)
    needs_person(s.ask(caller(s.daemon, "agent"), requestId="pay", to="0x" + "66" * 20))
    waits, = s.pending()
    for hash in ("0x" + "00" * 32, waits["signingHash"][:-1], waits["signingHash"][2:]):
        for what in ("approve", "reject"):
            other = s.person.post(f"/api/sandbox/sign/{what}", {"requestId": "pay", "signingHash": hash})
            assert other.status == 403 and "something else" in other.json["error"], other
    assert s.person.post("/api/sandbox/sign/approve", {"requestId": "pay", "signingHash": 5}).status == 400
    signed(s.person.post("/api/sandbox/sign/approve", {"requestId": "pay", "signingHash": waits["signingHash"].upper().replace("X", "x")}))


def test_calls_whose_worth_is_not_in_wei_are_a_persons(signing):
    s = signing()
    word = "00" * 12 + "35" * 20
    for data in (
        APPROVE, "0x095ea7b3" + word + "00" * 32,                       # of nothing: of an NFT it is number 0
        "0xa22cb465" + word + "00" * 31 + "01",                         # setApprovalForAll
        "0xd505accf" + word * 2 + "ff" * 32 + "00" * 32 * 4,            # permit
        "0x87517c45" + word * 2 + "00" * 12 + "ff" * 20 + "00" * 32,    # Permit2's approve
        TRANSFER, "0xac9650d8" + "00" * 64, "0xdeadbeef",               # a transfer; a multicall; a call that nobody knows
    ):
        answer = s.ask(value="0", data=data)
        needs_person(answer)
    waits = s.pending()
    assert waits[-1]["calls"]["warning"] and waits[-1]["calls"]["amount"] == str(2 ** 256 - 1), waits[-1]
    assert waits[-1]["calls"]["party"] == FIVES and waits[0]["calls"] == {"selector": "0xdeadbeef", "call": "not known: it may do anything"}


def test_an_allowance_is_a_persons_even_when_its_selector_is_listed(signing):
    s = signing(allowedMethodSelectors=["0x095ea7b3", "0xdeadbeef"])
    needs_person(s.ask(value="0", data=APPROVE))
    signed(s.ask(value="0", data="0xdeadbeef"))


COW = "c85ef7d79691fe79573b1a7064c19c1a9819ebdbd1faaab1a8ec92344438aaf4"       # keccak("cow"), of EIP-712's example
MAIL = {"types": {"EIP712Domain": [{"name": "name", "type": "string"}, {"name": "version", "type": "string"},
                                   {"name": "chainId", "type": "uint256"}, {"name": "verifyingContract", "type": "address"}],
                  "Person": [{"name": "name", "type": "string"}, {"name": "wallet", "type": "address"}],
                  "Mail": [{"name": "from", "type": "Person"}, {"name": "to", "type": "Person"}, {"name": "contents", "type": "string"}]},
        "primaryType": "Mail",
        "domain": {"name": "Ether Mail", "version": "1", "chainId": 1, "verifyingContract": "0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC"},
        "message": {"from": {"name": "Cow", "wallet": "0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826"},
                    "to": {"name": "Bob", "wallet": "0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB"}, "contents": "Hello, Bob!"}}


def test_messages_and_typed_data_are_always_a_persons(signing):
    s = signing(maxTransactionsPerHour=2, key=COW)
    needs_person(s.agent.post("/api/sandbox/sign/typed-data", {"requestId": "mail", "typedData": MAIL}))
    waits, = s.pending()
    assert waits["request"] == {"requestId": "mail", "typedData": MAIL} and waits["decision"]["requiresHumanConfirmation"], waits
    asked = s.person.get(f"/v1/approvals/{waits['approval']}").json
    assert asked["tool"] == "sign_typed_data" and asked["params"]["typedData"] == MAIL, asked
    assert asked["params"]["signingHash"] == "0xbe609aee343fb3c4b28e1df9e632fca64fcfaede20f02e86244efddf30957bd2", asked
    other = json.loads(json.dumps(MAIL))
    other["message"]["contents"] = "Hello, Eve!"
    for what in ({"typedData": other}, {"typedData": {**MAIL, "primaryType": "Person"}}):
        swapped = s.agent.post("/api/sandbox/sign/typed-data", {"requestId": "mail", **what})
        assert swapped.status == 403 and swapped.json["policyDecision"]["matchedRule"] in ("replay_protection", "typed_data_format"), swapped
    assert s.agent.post("/api/sandbox/sign/message", {"requestId": "mail", "message": "x"}).json["policyDecision"]["matchedRule"] == \
        "replay_protection"
    assert signed(s.approve("mail")) == ("0x4355c47d63924e8a72e509b65029052eb6c299d53a04e167c5775fd466751c9d"
                                         "07299936d304c153f6443dfa05f40ff007d72911b6f72307f996231605b915621c")
    needs_person(s.agent.post("/api/sandbox/sign/message", {"requestId": "hello", "message": "hello"}))
    signed(s.approve("hello"))
    late = s.agent.post("/api/sandbox/sign/message", {"requestId": "third", "message": "hello"})
    assert late.json["policyDecision"]["matchedRule"] == "rate_limit_hourly", late
    assert {e["metadata"]["requestId"] for e in entries(s.daemon, "approved", 2)} == {"mail", "hello"}


def test_a_message_is_signed_as_ethers_signs_it(signing):
    s = signing()
    needs_person(s.agent.post("/api/sandbox/sign/message", {"requestId": "a", "message": "hello"}))
    waits, = s.pending()
    assert waits["request"] == {"requestId": "a", "message": "hello"}, waits
    assert s.person.post(f"/v1/approvals/{waits['approval']}/approve").ok
    answer = s.agent.post("/api/sandbox/sign/message", {"requestId": "a", "message": "hello"})
    assert signed(answer) == ("0xf63c93dc642a4839770b35abf9cb304ac2f1b5463d9a9abd87546feaa0af992e"
                              "659cf087c433e45c45f6135cb819ab1922c6359dbb1b8c8d7a54141de2cd4beb1b"), answer
    assert answer.json["humanConfirmed"] is True, answer


def test_texts_that_nobody_is_asked_about(signing):
    s = signing(allowedChainIds=[5], deniedContracts=["0x" + "66" * 20], allowedContracts=[FIVES, "0x" + "66" * 20])

    def typed(**domain):
        return s.agent.post("/api/sandbox/sign/typed-data", {"requestId": "t", "typedData": {**MAIL, "domain": {**MAIL["domain"], **domain}}})
    for domain, rule in (({}, "chain_id_allowlist"), ({"chainId": 0}, "typed_data_format"), ({"chainId": 5}, "contract_allowlist"), ({"\u00e4" * 40: 1}, "typed_data_format"),
                         ({"chainId": 5, "verifyingContract": "0x" + "66" * 20}, "contract_denylist"), ({"extra": 1}, "typed_data_format")):
        answer = typed(**domain)
        assert answer.status == 403 and answer.json["policyDecision"]["matchedRule"] == rule, (domain, answer)
    needs_person(typed(chainId=5, verifyingContract=FIVES))
    for path, what, words in (("message", {"message": ""}, "a non-empty string 'message'"), ("message", {"message": 5}, "a non-empty string 'message'"),
                              ("message", {"message": "a\0b"}, "Invalid JSON"), ("typed-data", {"typedData": "{}"}, "an object 'typedData'"),
                              ("message", {"message": "x" * 16385}, "larger than 16 KiB"), ("typed-data", {"typedData": {"x": "y" * 16384}}, "larger"),
                              ("message", {"requestId": "", "message": "x"}, "'requestId'")):
        answer = s.agent.post(f"/api/sandbox/sign/{path}", {"requestId": "r", **what})
        assert answer.status == 400 and words in answer.json["error"], (what, answer)


def test_sizes_at_their_limits(signing):
    s = signing(allowedMethodSelectors=["0xdeadbeef"], humanConfirmationThresholdWei=str(ETH // 50))
    most = "0xdeadbeef" + "5a" * (16 * 1024 - 4)
    raw = signed(s.ask(data=most, gasLimit="600000", requestId="x" * 128))
    assert most[2:] in raw
    answer = s.ask(data=most + "5a")
    assert (answer.status, answer.json) == (400, {"error": "Signing payload 'data' is larger than 16 KiB"}), answer
    for members in ({"requestId": "x" * 129}, {"requestId": "a\0b"}, {"value": "9" * 101}, {"to": FIVES + "\0"}, {"nonce": 2 ** 63}, {"chainId": 1.5}):
        assert s.ask(**members).status == 400, members
    needs_person(s.ask(data=most, value="20000000000000001", gasLimit="600000", requestId="much"))      # it can be shown
    assert most[2:] in signed(s.approve("much"))
    assert s.ask(chainId=2 ** 63 - 1, nonce=2 ** 63 - 1).json["error"].startswith("Signing failed: ")
    signed(s.ask(chainId=2 ** 53, nonce=2 ** 63 - 2))


def test_one_caller_cannot_have_everybody_wait(signing):
    s = signing(requireHumanConfirmation=True)
    answers = [s.ask(nonce=n) for n in range(20)]
    assert [a.status for a in answers[:16]] == [403] * 16 and all("too many" in a.json["error"] or "wait" in a.json["error"]
                                                                 for a in answers[16:]), answers[16:]
    needs_person(s.ask(caller(s.daemon, "agent")))
    assert len(s.pending()) == 17


def test_an_agent_that_is_gone_gets_nothing(signing):
    s = signing(requireHumanConfirmation=True)
    made = s.daemon.post("/v1/tokens", {"role": "agent"}).json
    needs_person(s.ask(Caller(s.daemon, Authorization=f"Bearer {made['token']}"), requestId="gone"))
    assert s.daemon("DELETE", f"/v1/tokens/{made['id']}").ok
    assert s.pending() == [] and s.approve("gone").status == 403


def test_limits_hold_when_many_ask_at_once(signing):
    s = signing(maxTransactionsPerHour=3)
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda n: s.ask(requestId=f"race{n % 12}"), range(24)))
    done = [a for a in answers if a.status == 200]
    assert len(done) == 3, answers
    assert len({a.json["signature"] for a in done}) == 3
    rules = {a.json["policyDecision"]["matchedRule"] for a in answers if a.status != 200}
    assert rules <= {"rate_limit_hourly", "replay_protection"}, rules


def test_spending_limits_survive_whoever_is_killed(signing):
    fee = 100000 * 20 * GWEI
    s = signing(maxSpendPerDayWei=str(3 * fee + 2000), maxSpendPerHourWei=str(3 * fee + 2000))
    signed(s.ask())
    for name in ("cloche-warden", "cloche-signer"):
        restart(s.daemon, name)
        s.wait()
    signed(s.ask())
    s.daemon.kill()
    s.daemon.start()
    s.wait()
    assert s.rule() == ("spend_hourly", f"Spending limit: {3 * fee + 3000} of {3 * fee + 2000} per hour")
    signed(s.ask(value="0"))
    assert s.rule(value="0")[0] == "spend_hourly"


def test_limits_are_those_of_the_moment_of_the_signature(signing):
    s = signing(maxTransactionsPerHour=1)
    needs_person(s.ask(requestId="later", value="20000000000000000"))
    signed(s.ask())
    answer = s.approve("later")
    assert answer.status == 403 and answer.json["policyDecision"]["matchedRule"] == "rate_limit_hourly", answer
    refused, = [e["metadata"] for e in entries(s.daemon, "rejected", 1)]
    assert refused["requestId"] == "later" and refused["humanConfirmed"] is True, refused


def test_what_is_on_record(signing):
    s = signing()
    signed(s.ask(requestId="yes", nonce=3))
    s.rule(requestId="no", value="-1")
    needs_person(s.ask(requestId="ask", value="20000000000000000"))
    s.reject("ask")
    got = entries(s.daemon, "submitted", 3) + entries(s.daemon, "approved", 1) + entries(s.daemon, "rejected", 2)
    kinds = [(e["type"], e["severity"], e["metadata"]["requestId"]) for e in got]
    for kind in [("signing_request_submitted", "info", "yes"), ("signing_request_approved", "info", "yes"),
                 ("signing_request_submitted", "info", "no"), ("signing_request_rejected", "warn", "no"),
                 ("signing_request_submitted", "info", "ask"), ("signing_request_rejected", "info", "ask")]:
        assert kinds.count(kind) == 1, (kind, kinds)
    first = next(e for e in got if e["type"] == "signing_request_submitted" and e["metadata"]["requestId"] == "yes")
    assert first["summary"] == f"Sign request yes: chain=1 to={FIVES} value=1000", first
    assert first["metadata"]["allowed"] is True and "trader" in first["metadata"]["who"], first
    assert any(e["summary"] == "Human rejected request ask" for e in got), got
    assert s.cloche("audit", "verify").ok


def test_the_key_is_in_one_process_and_nobody_reads_it(signing, world):
    s = signing("--audit", "required")
    signed(s.ask())
    pid, = s.daemon.running("cloche-signer")
    status = status_of(pid)
    assert status["NoNewPrivs"] == "1" and set(status["CapEff"]) == {"0"}, status
    assert status["Seccomp"] == ("0" if is_sanitized(s.daemon) else "2"), status
    if os.geteuid() == 0:
        assert os.stat(f"/proc/{pid}/mem").st_uid == 0      # not dumpable
        warden = status_of(s.daemon.running("cloche-warden")[0])
        assert status["Uid"].split()[0] not in ("0", warden["Uid"].split()[0]), status
    with open(f"/proc/{pid}/cmdline", "rb") as f:
        assert KEY.encode() not in f.read()
    for folder in (world.root, s.file.parent):
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                held = path.read_bytes()
                assert KEY.encode() not in held and bytes.fromhex(KEY) not in held, path


def test_without_a_signer_there_is_none(cloche, tmp_path, signing):
    daemon = Daemon(cloche)
    for method, path, what in (("POST", "sign", body()), ("POST", "sign", {}), ("POST", "sign/approve", {}), ("GET", "sign/address", None)):
        answer = daemon(method, f"/api/sandbox/{path}", what)
        assert (answer.status, answer.json) == (503, {"error": "Signing service not configured"}), answer
    daemon.stop()
    s = signing()
    restart(s.daemon, "cloche-signer")
    s.wait()
    signed(s.ask())


def test_a_daemon_does_not_begin_with_a_key_or_policy_that_is_none(cloche, tmp_path):
    cloche.env["XDG_DATA_HOME"] = str(tmp_path / "data")
    policy = tmp_path / "policy.json"
    policy.write_text("{}", encoding="utf-8")
    done = cloche("serve", "--signing-key", "main", "--signing-policy", str(policy))
    assert done.code == 125 and 'there is no signing key "main"' in done.err, done
    assert cloche("signer", "add", "main", "--generate").ok
    for flags in (("--signing-key", "main"), ("--signing-policy", str(policy))):
        done = cloche("serve", *flags)
        assert done.code == 125 and "[serve.signing]" in done.err, done
    for text, words in (('{"allowedChainIds": [0]}', "a chain is a number from 1 on"), ('{"allowedContract": []}', "no such member"),
                        ('{"maxTransactionValueWei": "-1"}', "an amount is a text"), ("{", "line 1"), ("[]", "it is no object"),
                        ('{"maxTransactionsPerDay": 10001}', "from 0 to 10000"), ('{"requireHumanConfirmation": 1}', "neither true"),
                        ('{"deniedContracts": ["0x9d8A62f656a8d1615C1294fd71e9CFb3E4855A4f"]}', "checksum")):
        policy.write_text(text, encoding="utf-8")
        done = cloche("serve", "--signing-key", "main", "--signing-policy", str(policy))
        assert done.code == 125 and words in done.err and "[sign.policy]" in done.err, (text, done)


def test_keys_are_kept_listed_and_removed(cloche, tmp_path):
    cloche.env["XDG_DATA_HOME"] = str(tmp_path / "data")
    assert ADDRESS in cloche("signer", "add", "main", stdin=KEY).out
    assert cloche("signer", "add", "x", stdin="0x" + KEY + "\n").ok
    assert cloche("signer", "add", "main", "--generate").code == 125
    made = json.loads(cloche("signer", "add", "made", "--generate", "--json").out)
    listed = json.loads(cloche("signer", "ls", "--json").out)["keys"]
    point = "0x04" + "".join(f"{v:064x}" for v in times(int(KEY, 16)))
    assert listed == [{"name": name, "address": ADDRESS, "publicKey": point} for name in ("main", "x")] + [made], listed
    for bad in ("", "zz" * 32, "00" * 32, "ff" * 32, KEY + "46"):
        done = cloche("signer", "add", "bad", stdin=bad)
        assert done.code == 125 and "sign.key.invalid" in done.err, (bad, done)
    # a key that signs is no secret of a sandbox
    assert json.loads(cloche("secret", "ls", "--json").out)["secrets"] == []
    done = cloche("run", "--allow-domain", "api.github.com", "--secret", "main=github", "--", "true")
    assert not done.ok and "vault.unknown" in done.err, done
    assert cloche("secret", "rm", "main").code == 125 and cloche("signer", "rm", "x").ok
    assert [k["name"] for k in json.loads(cloche("signer", "ls", "--json").out)["keys"]] == ["main", "made"]
    done = cloche("signer", "\x1b]0;x")
    assert done.code == 125 and 'no verb "?]0;x"' in done.err and "\x1b" not in done.err
    done = cloche("signer", "add", "y", KEY)
    assert done.code == 125 and KEY not in done.err, done
    standard = json.loads(cloche("signer", "policy").out)
    assert standard["maxTransactionValueWei"] == "100000000000000000" and standard["maxTransactionsPerDay"] == 50, standard
