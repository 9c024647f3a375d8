"""No part of an AWS credential comes back in answers: errors of AWS show the access key id, others what they were asked (R16)."""
import base64
import json

import pytest

from helpers import requirement
from helpers.internet import PRELUDE
from helpers.vaulted import OK, Vaulted, denied, fields

pytestmark = [requirement("R16"), pytest.mark.root]
ID, KEY, TOKEN = "AKIA2E4R6T8Y0U2I4O6P", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYZ1LEKEY99", "IQoJb3JpZ2luX2VjEXAMPLEt0kenZ9"

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
