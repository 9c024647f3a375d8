"""The numbered corpus of ways past a network by name (tests/escape/corpus), with the frames counted outside the sandbox.

Nothing here asks the proxy. A packet socket in the namespace of the sandbox's host sees every frame that this host sends,
to another machine or on its own loopback; there may be none for an address that no rule opens, none that carries the
token of a case that is refused, and no question of a name that no rule has. Every category is also run where no wall
stands, in the same places with the same bytes, and the same count must then show the cases that a table says get out.
"""
import json
import shutil
import tempfile
from pathlib import Path

import pytest

from helpers import requirement
from helpers.corpus import Capture, Case, DRIVER, Everywhere, OK, RESOLVED, counts, left, load, numbered, opened, questions, told
from helpers.internet import DNS4, OTHER4, SITE4

pytestmark = [requirement("R12", "R13", "R14", "R44"), pytest.mark.root]
CASES = load()
BY_CATEGORY = {c: [case for case in CASES if case.category == c] for c in dict.fromkeys(case.category for case in CASES)}
NETWORK = [c for c in BY_CATEGORY if c not in ("secrets", "split")]
VALUE = "tk_Live-9f8E7d6C5b4A39281706zQ"
RULES = [OK, "*.bad.example.org", "*.bad.example.org:8123"]
OPEN = {(6, SITE4, 80), (6, SITE4, 443), (6, SITE4, 8123), (17, DNS4, 53)}
# In every sandbox: what is open is open, and its frames are counted.
PLAIN = Case("here", 0, ["EC-0000", "plain", "absolute", OK, "ok", "-", "a plain request to the allowed host"])
category = pytest.mark.parametrize("category", NETWORK)


@pytest.fixture(scope="module")
def net():
    root = Path(tempfile.mkdtemp(prefix="ct-net-", dir="/tmp"))
    root.chmod(0o755)
    try:
        with Everywhere(root, CASES) as made:
            yield made
    finally:
        shutil.rmtree(root)


@pytest.fixture
def tried(net, cloche):
    """tried([(case, way)], flags) → (answers by (id, way), frames that the host sent)"""
    net.forget()
    net.heard.clear()

    def run(attempts, *flags, kind="network", beside=24, **kw):
        for case, way in attempts:
            if case.category == "redirects":
                status, field, value = case.bytes.decode().split(" ", 2)
                open_token, hidden = (t.decode() for t in case.tokens(way))
                net.says["/" + open_token] = (int(status), [(field.rstrip(":"), value.replace("{u}", hidden))])
        capture = Capture(net.near)
        result = cloche.behind(*net.words)("run", "--timeout", "80", *flags, "--", "/usr/bin/python3", "-I", "-S", "-c", DRIVER,
                                           stdin=told(attempts, kind, beside=beside), **kw)
        frames = capture.end()
        assert result.ok, result
        return {(id, way): (hit, text) for id, way, hit, text in json.loads(result.out)}, frames
    return run


def allowed(rules=RULES):
    return [w for rule in rules for w in ("--allow-domain", rule)]


def test_the_tables():
    """As many, of every kind, none twice: what is named in the documentation and counted here."""
    assert len(CASES) >= 400 and len({(c.category, c.sent, *c.ways) for c in CASES}) == len(CASES)
    assert len({c.id for c in CASES}) == len(CASES)
    assert set(BY_CATEGORY) >= {"secrets", "split", "encodings", "embedded", "classes", "hosts", "ports", "proxy", "tunnels",
                                "smuggling", "socks", "tls", "dns", "tunnelling", "rebinding", "mixed", "aliases", "redirects", "relays", "direct"}
    for name, cases in BY_CATEGORY.items():
        assert any(case.bare for case in cases), f"nothing of {name} is shown to be real"


def looked_up(attempts):
    """The names below bad.example.org to which an attempt connects; a Host field alone is nothing to look up."""
    return {f"{case.tokens(way)[0].decode()}.bad.example.org" for case, way in attempts if case is not PLAIN and way != "host"}


def unexpected(net, attempts):
    """What came to a web server and is of no attempt that may arrive there; of TLS, one ClientHello for each that may."""
    may = [case.tokens(way)[0] for case, way in attempts if case.expected != "no"]
    # what another category may say can come late, when that one was told that its connection is over
    late = [case.tokens(way)[0] for cases in BY_CATEGORY.values() for case in cases if case.expected != "no" for way in case.ways]
    strange = [bytes(kept[:200]) for _, kept in net.connections if kept and not any(t in kept.lower() for t in may + late)]
    return strange + (net.hellos if len(net.hellos) > len(may) else [])


@category
@pytest.mark.root
def test_nothing_leaves(net, tried, category):
    cases = BY_CATEGORY[category]
    attempts = [(case, way) for case in [PLAIN, *cases] for way in case.ways]
    answers, frames = tried(attempts, *allowed())
    assert len(answers) == len(attempts)
    sent, tokens = counts(frames), numbered(cases)
    wrong = [f"{n} frames to {to}" for to, n in sent.items() if to not in OPEN]
    assert sent[6, SITE4, 80] > 0 and answers[PLAIN.id, "absolute"][0], "the allowed host is reached, and counted"
    asked, may = questions(frames), sum(case.opens(way) for case, way in attempts)
    names = {n for n in asked if n != OK and not n.endswith(".bad.example.org")}
    wrong += [f"{n} was asked for" for n in names | net.asked() - {OK} if not n.endswith(".bad.example.org")]
    if category in RESOLVED:    # each is refused for what its name leads to
        wrong += [f"{n} was not asked for" for n in looked_up(attempts) - set(asked)]
    # what is refused does not reach the allowed host either, not by an empty connection and not by a question
    if len(opened(frames)) > may or asked[OK] > 2 * may:
        wrong.append(f"{len(opened(frames))} connections and {asked[OK]} questions for {may} attempts that may reach {OK}")
    out = left(frames, tokens)
    heard = b"\0".join([bytes(kept) for _, kept in net.connections] + [data for _, data in net.heard]).lower()
    for token, (case, way) in tokens.items():
        hidden = token == case.tokens(way)[1]
        if (hidden or case.expected == "no") and (out[token] or token in heard):
            wrong.append(f"{case.id} {way} left for {out[token] or 'a server'}: {case.about}")
    wrong += [f"a server got {data}" for data in unexpected(net, attempts)]
    for case, way in attempts:
        hit, text = answers[case.id, way]
        if category == "socks" and not case.opens(way) and text.removeprefix("\5\0").startswith(("\5\0", "\0\x5a")):
            wrong.append(f"{case.id} {way} ({case.about}) was told that it is connected: {text!r}")
        if case.expected == "no" and hit or case.expected == "ok" and not hit:
            wrong.append(f"{case.id} {way} ({case.about}) was {'answered' if hit else 'refused'}: {text!r}")
    assert not wrong, "\n".join(wrong)


@category
@pytest.mark.root
def test_they_are_real(tried, category):
    """The same without rules, by an ordinary proxy and on the host's own network: what the table says gets out does."""
    cases = BY_CATEGORY[category]
    attempts = [(case, way) for case in cases for way in case.bare]
    answers, frames = tried(attempts, "--network", "host")
    out = left(frames, numbered(cases))
    missing = []
    for case in cases:
        for way in case.bare:
            token = case.tokens(way)[case.hides]
            if not out[token]:
                missing.append(f"{case.id} {way} ({case.about}): {answers[case.id, way]}")
    assert not missing, "\n".join(missing)
    if category not in ("proxy", "tunnels", "smuggling", "tls"):    # these reach the allowed host with what is for another
        assert set(counts(frames)) - OPEN, "the same count says so"


@pytest.mark.root
def test_one_rule_more_and_it_is_counted(net, tried):
    """The same sandbox, the same count: a case whose host a rule opens is seen to leave, and its question too."""
    case = next(case for case in BY_CATEGORY["hosts"] if case.sent == "{t}.evil.example.org")
    answers, frames = tried([(case, "absolute"), (case, "tcp")], *allowed([*RULES, "*.evil.example.org"]))
    assert all(hit for hit, _ in answers.values()), answers
    assert counts(frames)[6, OTHER4, 80] > 0
    assert all((6, OTHER4, 80) in left(frames, numbered([case]))[case.tokens(way)[0]] for way in ("absolute", "tcp"))
    assert set(questions(frames)) >= {f"{case.tokens(way)[0].decode()}.evil.example.org" for way in ("absolute", "tcp")}


# --- secrets ------------------------------------------------------------------------------------------------------------

# Who has what: the secret is for OK. The TLS of two others is opened too, for a secret of their own; `a` is only allowed.
HOSTS = (OK, "second.example.org", "third.example.org", "a.example.org")
secrets = pytest.mark.parametrize("category", ["secrets", "split"])


def plain(where):
    """An IPv4 address as a listener for both kinds sees it."""
    return where[0].removeprefix("::ffff:"), where[1]


def by_attempt(kept, tokens):
    """What came over one connection, cut where another attempt follows an answer: egress keeps it for the next client."""
    pieces, before, at = [b""], set(), 0
    for end in [*kept.answered, len(kept)]:
        piece, at = bytes(kept[at:end]), end
        own = {t for t in tokens if t in piece}
        if own and before and not own & before:
            pieces.append(b"")
            before = set()
        pieces[-1] += piece
        before |= own
    return pieces


def at_servers(net, attempts):
    """What each attempt brought to which server: (case, way) → [((address, port), bytes)]."""
    arrived, tokens = {attempt: [] for attempt in attempts}, {a[0].tokens(a[1])[0]: a for a in attempts}
    for where, kept in net.connections:
        for piece in by_attempt(kept, tokens):
            for token, attempt in tokens.items():
                if token in piece:
                    arrived[attempt].append((plain(where), piece))
    return arrived


@requirement("R16")
@pytest.mark.parametrize("beside", [1, 24])     # one by one they follow each other on connections that egress keeps
@secrets
@pytest.mark.root
def test_no_secret_arrives_elsewhere(net, tried, cloche, tmp_path, category, beside):
    attempts = [(case, way) for case in BY_CATEGORY[category] for way in case.ways]
    env, flags = {"XDG_DATA_HOME": str(tmp_path), "CT_VALUE": VALUE}, []
    for name, host, value in (("TOK", OK, VALUE), ("TWO", HOSTS[1], "another-" + VALUE[::-1]), ("THREE", HOSTS[2], "third-" + VALUE[::-1])):
        words = [w for p in ("bearer", "header X-Api-Key", "cookie sid", "query key", "body") for w in ("--place", p)]
        done = cloche("secret", "set", name, "--host", host, *words, "--env", name, "--from-env", "CT_VALUE",
                      env={**env, "CT_VALUE": value})
        assert done.ok, done
        flags += ["--secret", name]
    answers, frames = tried(attempts, *allowed(HOSTS), "--extra-ca", net.ca, *flags, kind="secret", beside=beside, env=env)
    placeholder = answers["secret", ""][1]
    assert len(placeholder) == len(VALUE) and not any(VALUE in text for _, text in answers.values()), "nor did it come back"
    value, placeholder, wrong, missing = VALUE.encode(), placeholder.encode(), [], []
    for where, kept in net.connections:
        if value in kept and plain(where) != (SITE4, 443):
            wrong.append(f"the value arrived at {where}: {bytes(kept[:300])}")
    for (case, way), arrived in at_servers(net, attempts).items():
        told_of = f"{case.id} {way} ({case.about}): {answers[case.id, way]} {arrived}"
        if case.expected == "no" and arrived or case.expected == "ok" and arrived and [value in kept for _, kept in arrived] != [True]:
            wrong.append(told_of)
        if case.expected == "ok" and not arrived:
            missing.append(told_of)
        if case.expected != "ok" and any(value in kept for _, kept in arrived) or \
                case.expected == "whole" and any(placeholder in kept for _, kept in arrived):
            wrong.append(told_of)
    sent = set(counts(frames)) - OPEN - {(6, OTHER4, 443), (6, OTHER4, 80)}
    assert not wrong and not sent and counts(frames)[6, SITE4, 443] > 0, "\n".join([*wrong, str(sent)])
    if missing:     # no verdict on the wall: what should have come did not, as on a machine that had no time for it
        raise TimeoutError("\n".join(missing))


@requirement("R16")
@secrets
@pytest.mark.root
def test_where_the_value_itself_is_inside_it_does(net, tried, category):
    """The same programs with the value in their environment, as everywhere without a vault."""
    attempts = [(case, way) for case in BY_CATEGORY[category] for way in case.bare]
    answers, _ = tried(attempts, "--network", "host", "--env", f"TOK={VALUE}", kind="secret")
    arrived = at_servers(net, attempts)
    missing = [f"{c.id} {way} ({c.about}): {answers[c.id, way]}" for c, way in attempts
               if not any(VALUE.encode()[-6:] in kept for _, kept in arrived[c, way])]     # a chunk may begin within
    assert not missing, "\n".join(missing)
