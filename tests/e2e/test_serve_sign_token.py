"""A key that signs lies in a PKCS#11 token (SoftHSM's): nobody of cloche has it, and the signatures are good ones."""
import json
import os
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from helpers import requirement
from helpers.daemon import Daemon, answers, caller, restart
from helpers.places import is_sanitized
from helpers.runner import wait_for
from helpers.signing import ADDRESS, ETH, KEY, body, signed

pytestmark = [requirement("R46")]

MODULES = ("/usr/lib/softhsm/libsofthsm2.so", "/usr/lib64/softhsm/libsofthsm.so", "/usr/lib64/pkcs11/libsofthsm2.so")
PIN = "pin-4711-of-the-token"
RICH = {"maxTransactionValueWei": str(2 * ETH), "humanConfirmationThresholdWei": str(2 * ETH)}


class Token:
    """SoftHSM's files in the home of @cloche, with the key of EIP-155's example, and one of another curve."""

    def __init__(self, cloche, tmp_path):
        self.cloche = cloche
        self.module = next((m for m in MODULES if os.path.exists(m)), None)
        if self.module is None or shutil.which("softhsm2-util") is None or shutil.which("openssl") is None:
            pytest.skip("SoftHSM (softhsm2) or openssl is not here")
        cloche.env["XDG_DATA_HOME"] = str(tmp_path / "data")
        self.env = {**os.environ, "HOME": str(cloche.home)}
        self.env.pop("SOFTHSM2_CONF", None)
        (cloche.home / "tokens").mkdir()
        (cloche.home / ".config/softhsm2").mkdir(parents=True)
        (cloche.home / ".config/softhsm2/softhsm2.conf").write_text(f"directories.tokendir = {cloche.home}/tokens\nobjectstore.backend = file\n")
        self.util("--init-token", "--free", "--label", "wallets", "--so-pin", "so-pin-of-it", "--pin", PIN)
        for label, curve, key, number in (("main", "secp256k1", KEY, "01"), ("other curve", "prime256v1", "11" * 32, "02")):
            self.put(tmp_path, label, curve, key, number)

    def util(self, *words):
        done = subprocess.run(["softhsm2-util", *words], env=self.env, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done

    def put(self, folder, label, curve, key, number):
        oid = {"secp256k1": "06052b8104000a", "prime256v1": "06082a8648ce3d030107"}[curve]
        private = bytes.fromhex("020101" + "0420" + key)
        curve = bytes.fromhex(oid)
        inner = b"\x30" + bytes([len(private) + len(curve) + 2]) + private + b"\xa0" + bytes([len(curve)]) + curve
        (folder / "key.der").write_bytes(inner)
        subprocess.run(["openssl", "pkcs8", "-topk8", "-nocrypt", "-inform", "DER", "-in", folder / "key.der", "-out", folder / "key.pem"],
                       check=True, capture_output=True, timeout=60)
        self.util("--import", str(folder / "key.pem"), "--token", "wallets", "--label", label, "--id", number, "--pin", PIN)

    def add(self, name="main", module=None, token="wallets", label="main", pin=PIN):
        return self.cloche("signer", "add", name, "--module", module or self.module, "--token", token, "--object", label, stdin=pin + "\n")


@pytest.fixture
def token(cloche, tmp_path):
    return Token(cloche, tmp_path)


def process_of(policy):
    """The process with the module of the signer that has that policy: its pid and /proc/PID/status."""
    found = []
    for one in Path("/proc").iterdir():
        try:
            if one.name.isdigit() and (one / "cmdline").read_bytes() == b"cloche-signer\0token\0":
                status = dict(line.split(":\t", 1) for line in (one / "status").read_text().splitlines() if ":\t" in line)
                if str(policy) in Path(f"/proc/{int(status['PPid'])}/cmdline").read_text():
                    found.append((int(one.name), status))
        except OSError:
            pass
    assert len(found) == 1, found
    return found[0]


def signers_of(policy):
    return [one for one in Path("/proc").iterdir() if one.name.isdigit() and is_signer(one, policy)]


def no_signer_comes(policy):
    """There is none in many looks: between one and the next there is none for a moment."""
    looks = []

    def is_away():
        looks.append(len(signers_of(policy)))
        return len(looks) > 20 and not any(looks[-20:])
    return wait_for(is_away)


def is_signer(process, policy):
    try:
        return (process / "cmdline").read_bytes().startswith(b"cloche-signer\0serve\0") and str(policy) in (process / "cmdline").read_text()
    except OSError:
        return False


def test_a_token_signs(token, tmp_path):
    """With nonces of its own: each signature is another one, and each is the key's, low and of the right parity, or the signer would not have let it out."""
    added = token.add()
    assert added.ok and ADDRESS in added.out and PIN not in added.out + added.err, added
    assert ADDRESS in token.cloche("signer", "ls").out
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(RICH), encoding="utf-8")
    daemon = Daemon(token.cloche, "--signing-key", "main", "--signing-policy", str(policy))
    try:
        agent = caller(daemon, "agent", name="trader")
        assert wait_for(lambda: answers(daemon) and daemon.get("/api/sandbox/sign/address").status == 200)
        assert agent.get("/api/sandbox/sign/address").json == {"address": ADDRESS}
        made = {signed(agent.post("/api/sandbox/sign", body(nonce=9, gasLimit="21000"))) for _ in range(6)}
        assert len(made) == 6 and all(raw.startswith("0x02f8") for raw in made)
        half = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
        assert all(int(raw[-64:], 16) <= half for raw in made if raw[-66:-64] == "a0")
        # the process with the module has the PIN and the module, and the signer neither
        mine, status = process_of(policy)
        assert PIN not in Path(f"/proc/{mine}/cmdline").read_text() and int(status["CapEff"], 16) == 0, status
        assert status["NoNewPrivs"] == "1" and (status["Seccomp"] == "2" or is_sanitized(token.cloche.binary)), status
        if os.geteuid() == 0:
            assert PIN.encode() not in Path(f"/proc/{mine}/environ").read_bytes()
            assert "softhsm" in Path(f"/proc/{mine}/maps").read_text()
            assert "softhsm" not in Path(f"/proc/{int(status['PPid'])}/maps").read_text()
        # it ends: another pair of processes takes over
        os.kill(mine, 9)
        assert wait_for(lambda: agent.post("/api/sandbox/sign", body(nonce=9, gasLimit="21000")).status == 200)
    finally:
        daemon.stop()


@pytest.fixture
def rich(tmp_path):
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(RICH), encoding="utf-8")
    return policy


@pytest.fixture
def trader(token, rich):
    """(daemon, an agent of it): a daemon that signs with the token's key."""
    assert token.add().ok
    daemon = Daemon(token.cloche, "--signing-key", "main", "--signing-policy", str(rich))
    agent = caller(daemon, "agent", name="trader")
    assert wait_for(lambda: answers(daemon) and daemon.get("/api/sandbox/sign/address").status == 200)
    yield daemon, agent
    daemon.stop()


def test_a_wrong_pin_is_tried_once(token, trader, rich):
    """A few wrong ones lock a token: nobody tries it again by themselves, not even for a new warden."""
    daemon, agent = trader
    signed(agent.post("/api/sandbox/sign", body(gasLimit="21000")))
    token.util("--init-token", "--token", "wallets", "--label", "wallets", "--so-pin", "so-pin-of-it", "--pin", "another-pin-by-now")
    os.kill(process_of(rich)[0], 9)
    agent.post("/api/sandbox/sign", body(gasLimit="21000"))
    assert no_signer_comes(rich)
    restart(daemon)
    assert agent.post("/api/sandbox/sign", body(gasLimit="21000")).status == 503 and not signers_of(rich)
    daemon.stop()
    assert daemon.log.count("[sign.token.pin]") == 1 and "nothing is signed until cloche serve is restarted" in daemon.log, daemon.log


def test_another_key_by_the_same_name(token, trader, rich, tmp_path):
    """The token was made anew, with the same names and PIN: whose money would that be?"""
    daemon, agent = trader
    signed(agent.post("/api/sandbox/sign", body(gasLimit="21000")))
    token.util("--init-token", "--token", "wallets", "--label", "wallets", "--so-pin", "so-pin-of-it", "--pin", PIN)
    token.put(tmp_path, "main", "secp256k1", "47" * 32, "01")
    said = token.cloche("signer", "ls")
    assert said.ok and said.out.splitlines()[1].split() == ["main", ADDRESS], "as it is kept"
    for words in (("check", "main"), ("ls", "--check")):
        said = token.cloche("signer", *words)
        assert said.code == 125 and "sign.key.other" in said.out + said.err and ADDRESS in said.err and '"main" in the token "wallets"' in said.err, said
    os.kill(process_of(rich)[0], 9)
    assert "signature" not in agent.post("/api/sandbox/sign", body(gasLimit="21000")).json
    assert no_signer_comes(rich)
    assert agent.post("/api/sandbox/sign", body(gasLimit="21000")).status == 503
    daemon.stop()
    assert daemon.log.count("[sign.key.other]") == 1 and "nothing is signed until cloche serve is restarted" in daemon.log, daemon.log
    assert token.cloche("signer", "rm", "main").ok and token.add("main").ok
    assert ADDRESS not in token.cloche("signer", "ls").out


def test_what_waits_behind_a_token_that_hangs_is_signed(token, trader, rich):
    """Its process is stopped: the one that it has fails after 20 seconds, and counts; the two behind are another process's."""
    daemon, agent = trader

    def ask(name):
        return agent.post("/api/sandbox/sign", body(gasLimit="21000", requestId=name))
    os.kill(process_of(rich)[0], signal.SIGSTOP)
    with ThreadPoolExecutor(3) as pool:
        answers_to = [pool.submit(ask, "0")]
        feed = "/api/audit/feed?limit=100&type=signing_request_submitted"
        assert wait_for(lambda: str(daemon.get(feed).json).count("Sign request ") >= 1)
        answers_to += [pool.submit(ask, name) for name in "12"]
        first, *others = (one.result() for one in answers_to)
    assert first.status == 403 and "did not answer in time" in first.json["error"], first
    assert sorted(signed(one)[8:12] for one in others) == ["0101", "0102"]
    assert ask("0").json["policyDecision"]["matchedRule"] == "replay_protection"


def test_keys_are_listed_without_their_token(token):
    """A login takes its time, and one with a wrong PIN counts."""
    assert token.add().ok
    (token.cloche.home / "tokens").rename(token.cloche.home / "away")
    listed, = json.loads(token.cloche("signer", "ls", "--json").out)["keys"]
    assert listed["address"] == ADDRESS and listed["publicKey"].startswith("0x04") and "check" not in listed, listed
    said = token.cloche("signer", "ls", "--check")
    assert said.code == 125 and said.out.splitlines()[1].split()[:2] == ["main", ADDRESS] and "sign.token." in said.out, said


def test_a_session_that_is_gone(token, trader):
    """The token is away, and comes back: so do signatures, in a session of another process."""
    daemon, agent = trader
    tokens = token.cloche.home / "tokens"
    signed(agent.post("/api/sandbox/sign", body(gasLimit="21000")))
    (one,) = tokens.iterdir()
    keys = [f for f in one.iterdir() if f.suffix == ".object" and f.name != "token.object"]
    aside = token.cloche.home / "aside"
    aside.mkdir()
    for key in keys:
        key.rename(aside / key.name)
    gone = agent.post("/api/sandbox/sign", body(gasLimit="21000", requestId="gone"))
    assert gone.status == 403 and "PKCS#11" in gone.json["error"], gone
    for key in keys:
        (aside / key.name).rename(key)
    assert wait_for(lambda: daemon.get("/api/sandbox/sign/address").status == 200)
    again = signed(agent.post("/api/sandbox/sign", body(gasLimit="21000", requestId="gone")))
    assert again[8:12] == "0101", "what was not signed has used up neither its id nor its nonce"


@pytest.mark.parametrize("wrong, code", [({"pin": "not-the-pin-of-it"}, "sign.token.pin"), ({"token": "none"}, "sign.token.token"),
                                         ({"label": "none"}, "sign.token.object"), ({"label": "other curve"}, "sign.token.object"),
                                         ({"module": "/etc/passwd"}, "sign.token.module"), ({"module": "libsofthsm2.so"}, "sign.token.module"),
                                         ({"module": "/nowhere/x.so"}, "sign.token.module")], ids=lambda v: v if isinstance(v, str) else next(iter(v.values())))
def test_what_is_no_key_in_a_token(token, wrong, code):
    said = token.add(**wrong)
    assert said.code == 125 and f"[{code}]" in said.err and PIN not in said.err, said
    assert token.cloche("signer", "ls").out.count("\n") == 1, "nothing is kept"


def test_a_module_that_others_may_write(token, tmp_path):
    """Whoever may write it would have the PIN, and sign what they like."""
    copy = tmp_path / "module.so"
    shutil.copy(token.module, copy)
    copy.chmod(0o777)
    assert "[sign.token.module]" in token.add(module=str(copy)).err
    copy.chmod(0o755)
    if os.geteuid() == os.stat(copy).st_uid:
        assert token.add(module=str(copy)).ok


def test_a_way_to_the_module_that_is_others(token, tmp_path):
    """Whoever may write in a folder on the way, or has a link there, puts another file where the module was."""
    folder, outer = tmp_path / "outer/folder", tmp_path / "outer"
    folder.mkdir(parents=True)
    shutil.copy(token.module, folder / "module.so")
    (folder / "module.so").chmod(0o755)
    (tmp_path / "link.so").symlink_to("outer/folder/../folder/module.so")
    (tmp_path / "loop.so").symlink_to("loop.so")

    def refused(path):
        said = token.add(module=str(path))
        assert said.code == 125 and "[sign.token.module]" in said.err, said
        return said.err
    for where in (folder, outer):
        where.chmod(0o777)
        assert f'"{where.name}" on the way is for them to write in' in refused(folder / "module.so")
        assert f'"{where.name}"' in refused(tmp_path / "link.so"), "by the link, too"
        where.chmod(0o755)
    refused(tmp_path / "loop.so")
    refused(folder / "module.so/x")
    refused(folder)
    outer.chmod(0o1777)      # where what is ours stays
    if os.geteuid() == 0:
        for one in (folder, folder / "module.so", tmp_path / "link.so"):
            os.chown(one, 4711, 4711, follow_symlinks=False)
            refused(tmp_path / "link.so")
            os.chown(one, 0, 0, follow_symlinks=False)
    assert token.add(module=str(tmp_path / "link.so")).ok


@pytest.mark.parametrize("words", [["--module", "/x.so"], ["--token", "t"], ["--module", "/x", "--token", "t"], ["--generate", "--module", "/x", "--token", "t", "--object", "o"]])
def test_flags_that_belong_together(cloche, words):
    said = cloche("signer", "add", "main", *words, stdin="1234\n")
    assert said.code == 125 and "[sign.flag]" in said.err, said
