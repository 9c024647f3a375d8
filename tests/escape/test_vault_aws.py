"""No part of an AWS credential comes back in answers: errors of AWS show the access key id, others what they were asked (R16)."""
import base64
import json

import pytest

from helpers import requirement
from helpers.aws import ID, KEY, TOKEN, verify
from helpers.internet import PRELUDE
from helpers.vaulted import OK, Vaulted, denied, fields

pytestmark = [requirement("R16"), pytest.mark.root]

# A request for each path, signed with a placeholder and anew outside. What comes back, as it came.
ASK = """
def ask(path):
    day = time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())
    token = os.environ.get('AWS_SESSION_TOKEN')
    more = f'x-amz-security-token: {token}\\r\\n' if token else ''
    s = tls(dial('ok.example.org', 443), 'ok.example.org')
    s.sendall(get('ok.example.org', path, f'x-amz-date: {day}\\r\\nAuthorization: AWS4-HMAC-SHA256 Credential={os.environ["AWS_ACCESS_KEY_ID"]}/'
                  f'{day[:8]}/eu-west-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature={"0" * 64}\\r\\n' + more + CLOSE))
    return drain(s, 20).decode('latin-1')
print(json.dumps([ask(path) for path in json.loads(sys.argv[1])]))
"""
MIRRORS = ["/mirror/plain", "/mirror/header", "/mirror/percent", "/mirror/base64?0", "/mirror/base64?1", "/mirror/base64?2", "/mirror/chunks",
           "/mirror/bytes", "/mirror/early", "/mirror/trailer"]
ERROR = f"<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>{ID}</AWSAccessKeyId></Error>"


def spellings(part):
    coded = (base64.b64encode(bytes(n) + part.encode())[(n + 2) // 3 * 4:].decode().rstrip("=")[:-1] for n in range(3))
    return [part, part.encode().hex(), *coded]


@pytest.mark.parametrize("more", [(), (TOKEN,)], ids=["of a user", "of a session"])
def test_no_answer_brings_it_in(online, tmp_path, more):
    vaulted = Vaulted(online, tmp_path).secret("aws", value=":".join((ID, KEY, *more)), place="sigv4", env="AWS_ACCESS_KEY_ID")
    vaulted.net.pages[OK, "/error"] = ("application/xml", ERROR.encode())
    vaulted.net.says["/denied"] = (403, [("X-Key", ID)])
    paths = [*MIRRORS, "/error", "/denied"]
    result = vaulted.run(["/usr/bin/python3", "-I", "-S", "-c", PRELUDE + ASK, json.dumps(paths)], flags=["--report", str(tmp_path / "report.json")])
    assert result.ok, result
    answers = dict(zip(paths, json.loads(result.out)))
    # the server was asked each time, with the real one
    assert [f"Credential={ID}/" in fields(r, "authorization")[0] for r in vaulted.net.requests] == [True] * len(paths), vaulted.net.requests
    assert all(" 200 " in answers[path] for path in paths[:-1]) and "<AWSAccessKeyId>AKIA" in answers["/error"], answers
    found = {path: s for path, text in answers.items() for part in (ID, KEY, *more) for s in spellings(part) if s in text}
    assert not found, found
    assert not denied(tmp_path), denied(tmp_path)


# --- what the sandbox chooses of a request that is signed for it ------------------------------------------------------------

# {name: (target, fields behind the usual ones, Authorization or None for the usual one, body)}. PH, TOK: the placeholders; DAY: now.
WELL = "AWS4-HMAC-SHA256 Credential=PH/DAY8/eu-west-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature=" + "0" * 64
CHOSEN = {
    "as usual": ("/a?b=c", "", None),
    "with the token": ("/a", "x-amz-security-token: TOK", WELL.replace("x-amz-date,", "x-amz-date;x-amz-security-token,")),
    "behind another": ("/a", "Authorization: Bearer x", None),
    "before another": ("/a", "Authorization: " + WELL, "Bearer x"),
    "twice": ("/a", "Authorization: " + WELL, None),
    "a URL that is signed": ("/a?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=PH%2FDAY8%2Feu-west-1%2Fs3%2Faws4_request&X-Amz-Date=DAY&X-Amz-Expires=604800"
                             "&X-Amz-SignedHeaders=host&X-Amz-Signature=00", "", "none"),
    "a URL beside it": ("/a?X-Amz-Credential=PH%2FDAY8%2Feu-west-1%2Fs3%2Faws4_request&X-Amz-Signature=00", "", None),
    "the token in the URL": ("/a?X-Amz-Security-Token=TOK", "", None),
    "the token in another field": ("/a", "x-mine: TOK", None),
    "the token twice": ("/a", "x-amz-security-token: TOK\r\nx-amz-security-token: TOK", None),
    "the token beside another": ("/a", "x-amz-security-token: TOK\r\nx-amz-security-token: mine", None),
    "the id in another field": ("/a", "x-mine: PH", None),
    "the id in the path": ("/PH", "", None),
    "the id's spelling": ("/a", "", WELL.replace("PH/", "PHx/")),
    "without a host": ("/a", "", WELL.replace("host;", "")),
    "the host twice": ("/a", "", WELL.replace("host;", "host;host;")),
    "the host in capitals": ("/a", "", WELL.replace("host;", "Host;")),
    "a field that is not there": ("/a", "", WELL.replace("x-amz-date", "x-amz-date;x-none")),
    "another algorithm": ("/a", "", WELL.replace("SHA256 ", "SHA256-PAYLOAD ")),
    "of a region set": ("/a", "x-amz-region-set: *", WELL.replace("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256")),
    "another scope": ("/a", "", WELL.replace("aws4_request", "aws4_request2")),
    "a scope of more": ("/a", "", WELL.replace("/s3/", "/s3/x/")),
    "another service": ("/a", "", WELL.replace("/s3/", "/iam/")),
    "another day in the scope": ("/a", "", WELL.replace("DAY8", "20200101")),
    "long ago": ("/a", "x-amz-date: 20200101T000000Z", None),
    "far away": ("/a", "x-amz-date: 21200101T000000Z", None),
    "no date": ("/a", "x-amz-date: x", None),
    "dates": ("/a", "x-amz-date: DAY\r\nx-amz-date: 20200101T000000Z", WELL),
    "hashes": ("/a", "x-amz-content-sha256: " + "ab" * 32 + "\r\nx-amz-content-sha256: UNSIGNED-PAYLOAD", None),
    "dots": ("/b/../a", "", None), "dots of another service": ("/b/../a", "", WELL.replace("/s3/", "/iam/")),
    "slashes": ("//a//b", "", WELL.replace("/s3/", "/iam/")), "encoded": ("/a%2f%2e%2e%2fb%0a?x=%0a&x&=y&%41=+", "", None),
    "fields of one name": ("/a", "x-amz-meta-a: 1\r\nx-amz-meta-a:  2   3", WELL.replace("x-amz-date", "x-amz-date;x-amz-meta-a")),
    "a body of another hash": ("/a", "x-amz-content-sha256: " + "ab" * 32, WELL.replace("x-amz-date", "x-amz-content-sha256;x-amz-date")),
}
REFUSED = {"a URL that is signed", "behind another", "long ago", "far away", "no date", "without a host", "the host twice", "another algorithm", "another scope",
           "dates", "hashes"}
CHOOSE = """
day = time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())
def fill(text): return text.replace('DAY8', day[:8]).replace('DAY', day).replace('PH', os.environ['AWS_ACCESS_KEY_ID']).replace('TOK', os.environ['AWS_SESSION_TOKEN'])
def ask(n, target, more, authorization):
    head = [f'GET {target} HTTP/1.1', 'Host: ok.example.org', f'x-case: {n}', *([] if 'x-amz-date:' in more else ['x-amz-date: DAY']), *([more] if more else []),
            *([] if authorization == 'none' else ['Authorization: ' + (authorization or WELL)]), 'Connection: close', '', '']
    s = tls(dial('ok.example.org', 443), 'ok.example.org'); s.sendall(fill('\\r\\n'.join(head)).encode())
    return drain(s, 20).decode('latin-1')
print(json.dumps([ask(n, *case) for n, case in enumerate(CASES)]))
"""


def test_what_it_chooses_of_a_signature(online, tmp_path):
    """What arrives is what was signed, for that host, and no part of the credential stands anywhere else."""
    vaulted = Vaulted(online, tmp_path).secret("aws", value=f"{ID}:{KEY}:{TOKEN}", place="sigv4", env="AWS_ACCESS_KEY_ID")
    cases = list(CHOSEN.values())
    result = vaulted.run(["/usr/bin/python3", "-I", "-S", "-c", PRELUDE + f"WELL, CASES = {WELL!r}, {cases!r}" + CHOOSE])
    assert result.ok, result
    for text in json.loads(result.out):
        assert not any(part in text for part in (ID, KEY, TOKEN)), text
    came = {list(CHOSEN)[int(fields(r, "x-case")[0])]: r for r in vaulted.net.requests}
    for name, request in came.items():
        if any(ID in value for _, value in request["headers"]):
            verify(request)
            assert fields(request, "host") == [OK] and len(fields(request, "authorization")) == 1, (name, request)
        others = [value for field, value in request["headers"] if field not in ("authorization", "x-amz-security-token")]
        assert not any(part in text for text in (request["path"], *others) for part in (ID, TOKEN)), (name, request)
    assert {"as usual", "with the token", "another service", "dots", "encoded", "fields of one name"} <= set(came), (sorted(came), result)
    assert not set(came) & REFUSED, sorted(set(came) & REFUSED)
