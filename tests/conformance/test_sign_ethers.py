"""Transactions that the daemon signs are those that ethers signs, byte for byte."""
import json
import os
import subprocess

from helpers import npm, places, requirement
from helpers.signing import KEY, Signing, signed

pytestmark = requirement("R46")

COUNT = int(os.environ.get("CLOCHE_SIGN_COUNT", "120"))     # at most 10,000: what a policy can allow in a day
SELECTORS = ("11223344", "deadbeef")
ALL = str(2 ** 256 - 1)


def test_random_transactions_are_signed_alike(cloche, tmp_path):
    node, ethers = npm.node(), npm.packages("ethers@6")
    seed = os.environ.get("CLOCHE_SIGN_SEED", "cloche")
    done = subprocess.run([node, places.REPO / "tests/lib/sign_ethers.mjs", ethers, seed, str(COUNT), KEY, ",".join(SELECTORS)],
                          stdout=subprocess.PIPE, check=True, timeout=900)
    signing = Signing(cloche, tmp_path, "--rate-limit", "0", maxTransactionValueWei=ALL, humanConfirmationThresholdWei=ALL, maxFeeWei=ALL,
                      maxTransactionsPerHour=10000, maxTransactionsPerDay=10000, allowedMethodSelectors=[f"0x{s}" for s in SELECTORS])
    lines = done.stdout.splitlines()
    assert len(lines) == COUNT
    for line in lines:
        made = json.loads(line)
        assert signed(signing.agent.post("/api/sandbox/sign", made["request"])) == made["raw"], made
    assert signing.daemon.stop() == 0
