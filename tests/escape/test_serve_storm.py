"""Any process of cloche serve killed or stopped, a full disk, a lock that somebody holds, at moments that a seed draws, under load: the daemon answers
or ends within seconds, nothing is left behind, and nothing of the audit record is lost.

CLOCHE_TEST_STORM is how many moments there are (1000 is what the project holds itself to), CLOCHE_TEST_SEED which ones.
"""
import json
import os
import time

import pytest

from helpers import places, requirement
from helpers.collector import Collector
from helpers.storm import Storm

pytestmark = [requirement("R17", "R22", "R42", "R46", "R61", "R89"), pytest.mark.heavy]


@pytest.mark.slow
def test_any_trouble_at_any_moment(cloche, world):
    moments = int(os.environ.get("CLOCHE_TEST_STORM", "0")) or places.loops(25)
    seed = int(os.environ.get("CLOCHE_TEST_SEED", "0")) or time.time_ns()
    first = int(os.environ.get("CLOCHE_TEST_STORM_FIRST", "0"))
    print("seed", seed)
    hook = Collector()
    secret = cloche.home / "hook.secret"
    secret.write_text("a-secret-of-the-webhook-0123456789")
    secret.chmod(0o600)
    config = cloche.home / "serve.yaml"
    config.write_text(f"webhook-url: {hook.url}\nwebhook-secret: {secret}\notlp-endpoint: {hook.base}\n")
    policy = cloche.home / "signing.json"
    policy.write_text('{"maxTransactionsPerHour": 10000, "maxTransactionsPerDay": 10000}')
    storm = Storm(cloche, world, seed, ("--config", str(config), "--signing-key", "main", "--signing-policy", str(policy)))
    for n in range(first, first + moments):
        storm.moment(n)
    storm.finish()
    print(json.dumps({"moments": moments, "deeds": storm.done, "hit": storm.hit, "daemons": storm.ends, "slowest": storm.slowest,
                      "acknowledged": [len(c.done) for c in storm.clients],
                      "runs": [c.runs for c in storm.clients]}))
    assert not world.watch.remains(), world.watch.remains()
    hook.close()
