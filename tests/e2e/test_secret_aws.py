"""Requests to AWS that the real library makes, signed anew on the way: what arrives is verified as the service would."""
import re
import sys

import pytest

from helpers import pypi, requirement
from helpers.aws import ID, KEY, TOKEN, verify
from helpers.vaulted import Vaulted, fields, only_request

pytestmark = [requirement("R13", "R14", "R16"), pytest.mark.root]


@pytest.fixture
def aws(online, tmp_path):
    v = Vaulted(online, tmp_path)
    return v.secret("aws", value=f"{ID}:{KEY}:{TOKEN}", place="sigv4", env="AWS_ACCESS_KEY_ID")


@pytest.fixture(scope="session")
def boto():
    """The library from where this host's pip gets its packages, once for all workers."""
    return pypi.modules("boto3")


def library(aws, boto, code, **kw):
    prelude = """
import os, sys
sys.path.insert(0, '/mnt/boto')
import boto3
from botocore.config import Config
def client(service, **kw):
    return boto3.client(service, region_name='eu-west-1', endpoint_url='https://ok.example.org',
                        config=Config(retries={'total_max_attempts': 1, 'mode': 'standard'}, **kw))
"""
    return aws.run([sys.executable if sys.executable.startswith("/usr/bin") else "/usr/bin/python3", "-I", "-c", prelude + code],
                   flags=["--bind", f"{boto}:/mnt/boto:ro", "--env", "AWS_EC2_METADATA_DISABLED=true"], **kw)


def test_boto3_with_a_body_that_no_header_speaks_of(aws, boto):
    """DynamoDB, SQS, STS: the body's hash is in the signature alone."""
    result = library(aws, boto, """
for call in (lambda: client('dynamodb').put_item(TableName='t', Item={'k': {'S': 'v' * 5000}}),
             lambda: client('sts').get_caller_identity(),
             lambda: client('sqs').send_message(QueueUrl='https://ok.example.org/1/q', MessageBody='m')):
    try: call()
    except Exception as e: print(type(e).__name__)
""")
    seen = aws.net.requests
    assert len(seen) == 3, (result, seen)
    for request in seen:
        assert not fields(request, "x-amz-content-sha256") and request["body"] > 0
        assert fields(request, "x-amz-security-token") == [TOKEN]
        verify(request)
    assert ID not in result.out + result.err


def test_boto3_puts_objects(aws, boto):
    """Its default today: a body in unsigned pieces with a checksum behind it; and one that is hashed."""
    result = library(aws, boto, """
import io
def put(c, key, body):
    try: c.put_object(Bucket='b', Key=key, Body=body)
    except c.exceptions.ClientError: pass       # our server answers, but not in XML
path = {'addressing_style': 'path'}
put(client('s3'), 'k+ ü/x', b'some bytes' * 1000)
put(client('s3', request_checksum_calculation='when_required', s3={'payload_signing_enabled': True, **path}), 'k', b'other bytes')
put(client('s3', request_checksum_calculation='when_required', s3={'payload_signing_enabled': False, **path}), 'k',
    io.BytesIO(b'x' * 100000))
""")
    assert result.ok and len(aws.net.requests) == 3, (result, aws.net.requests)
    kinds = [fields(r, "x-amz-content-sha256")[0] for r in aws.net.requests]
    assert kinds[0] == "STREAMING-UNSIGNED-PAYLOAD-TRAILER" and re.fullmatch("[0-9a-f]{64}", kinds[1]) and \
        kinds[2] == "UNSIGNED-PAYLOAD", kinds
    assert b"some bytes" * 1000 in aws.net.requests[0]["data"] and b"x-amz-checksum-" in aws.net.requests[0]["data"]
    assert aws.net.requests[2]["data"] == b"x" * 65536 and aws.net.requests[2]["body"] == 100000
    for request in aws.net.requests:
        verify(request)


def test_boto3_reads(aws, boto):
    result = library(aws, boto, "print(client('s3').get_object(Bucket='b', Key='k')['Body'].read().decode())")
    assert result.ok and "hello ok.example.org /b/k" in result.out, result
    verify(only_request(aws.net))


# --- by hand: what the library does not do -------------------------------------------------------------------------------

RAW = """
import hashlib
def ask(body, more='', length=None, pieces=None):
    day = time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())
    s = ssl.create_default_context(cafile=CA).wrap_socket(socket.create_connection(('ok.example.org', 443)), server_hostname='ok.example.org')
    head = ('POST /t HTTP/1.1\\r\\nHost: ok.example.org\\r\\nX-Amz-Date: %s\\r\\n%s%s%sAuthorization: AWS4-HMAC-SHA256 '
            'Credential=%s/%s/eu-west-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, Signature=%s\\r\\n\\r\\n')
    frame = 'Transfer-Encoding: chunked\\r\\n' if pieces else 'Content-Length: %d\\r\\n' % (len(body) if length is None else length)
    s.sendall((head % (day, frame, more, CLOSE, os.environ['AWS_ACCESS_KEY_ID'], day[:8], '0' * 64)).encode())
    if pieces:
        for p in pieces: s.sendall(b'%x\\r\\n' % len(p) + p + b'\\r\\n')
        s.sendall(b'0\\r\\n\\r\\n')
    else:
        s.sendall(body)
    print(drain(s, 60).decode('latin-1').replace('\\r\\n', ' | ').split('\\n')[0], flush=True)
"""


@pytest.mark.parametrize("token", [False, True], ids=["of a user", "of a session"])
def test_parts_of_objects(online, tmp_path, token):
    """Without a session token answers are searched for the access key id alone, which costs no ranges."""
    v = Vaulted(online, tmp_path).secret("aws", value=f"{ID}:{KEY}" + f":{TOKEN}" * token, place="sigv4", env="AWS_ACCESS_KEY_ID")
    names = "accept-encoding;host;range;x-amz-date"
    result = v.python(RAW.replace("host;x-amz-date", names) + "ask(b'', 'Range: bytes=0-9\\r\\nAccept-Encoding: gzip\\r\\n')")
    assert " 200 " in result.out, result
    request = only_request(v.net)
    assert fields(request, "range") == ([] if token else ["bytes=0-9"]) and fields(request, "accept-encoding") == ["identity"], request
    verify(request)


def test_bodies_of_unknown_length_and_slow_ones(aws):
    result = aws.python(RAW + """
ask(b'', pieces=[b'abc', b'd' * 70000])
ask(b'')
ask(b'q' * 3000000)
ask(b'{}', 'Expect: 100-continue\\r\\n')
""")
    assert result.out.count(" 200 ") == 4, result
    bodies = [b"abc" + b"d" * 70000, b"", b"q" * 3000000, b"{}"]
    assert [r["body"] for r in aws.net.requests] == [len(b) for b in bodies]
    for request, body in zip(aws.net.requests, bodies):
        verify(request, body)
        assert not fields(request, "expect")


def test_what_is_too_long_to_be_hashed_is_refused(aws):
    result = aws.python(RAW + "ask(b'q' * (5 << 20))")
    assert " 413 " in result.out and not aws.net.requests, result


def test_bodies_that_are_collected_are_bounded(aws):
    """32 at a time: a connection that has got its "continue" is one."""
    result = aws.python(RAW + """
def begin(day=None, close=CLOSE):
    day = day or time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())
    s = ssl.create_default_context(cafile=CA).wrap_socket(socket.create_connection(('ok.example.org', 443)), server_hostname='ok.example.org')
    s.sendall(('POST /t HTTP/1.1\\r\\nHost: ok.example.org\\r\\nX-Amz-Date: %s\\r\\nContent-Length: 9\\r\\nExpect: 100-continue\\r\\n%s'
               'Authorization: AWS4-HMAC-SHA256 Credential=%s/%s/eu-west-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date, '
               'Signature=%s\\r\\n\\r\\n' % (day, close, os.environ['AWS_ACCESS_KEY_ID'], day[:8], '0' * 64)).encode())
    return s, until(s).split(b'\\r\\n')[0].decode()
held = [begin() for _ in range(32)]
print({head for _, head in held}, begin()[1])
held[0][0].close()
held[1][0].sendall(b'123456789'); print(until(held[1][0]).split(b'\\r\\n')[0].decode())
print(begin()[1])
for s, _ in held: s.close()
# who is refused holds none any more, on a connection that is kept
kept = [begin('20200101T000000Z', '')[0] for _ in range(31)]
for s in kept: s.sendall(b'123456789')
heads = [until(s).split(b'\\r\\n') for s in kept]
print({h[0].decode() for h in heads}, any(b'Connection: close' in h for h in heads))
last = [begin() for _ in range(2)]
print({head for _, head in last})
""")
    assert result.out == ("{'HTTP/1.1 100 Continue'} HTTP/1.1 403 Forbidden\nHTTP/1.1 200 OK\nHTTP/1.1 100 Continue\n"
                          "{'HTTP/1.1 403 Forbidden'} False\n{'HTTP/1.1 100 Continue'}\n"), result


@pytest.mark.parametrize("field", ["region", "service", "date", "names"])
def test_what_is_too_long_for_the_vault_costs_a_request(aws, field):
    """The sandbox chooses each of them: the vault goes on."""
    result = aws.python(RAW + f"""
def odd(region='eu-west-1', service='dynamodb', date=None, names='host;x-amz-date', more=''):
    now = time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())
    s = ssl.create_default_context(cafile=CA).wrap_socket(socket.create_connection(('ok.example.org', 443)), server_hostname='ok.example.org')
    s.sendall(('GET /odd HTTP/1.1\\r\\nHost: ok.example.org\\r\\nX-Amz-Date: %s\\r\\n%s%sAuthorization: AWS4-HMAC-SHA256 Credential=%s/%s/%s/%s/'
               'aws4_request, SignedHeaders=%s, Signature=%s\\r\\n\\r\\n' % (date or now, CLOSE, more, os.environ['AWS_ACCESS_KEY_ID'], now[:8],
               region, service, names, '0' * 64)).encode())
    print(drain(s, 60).decode('latin-1').replace('\\r\\n', ' | ').split('\\n')[0], flush=True)
many = sorted(['host', 'x-amz-date'] + ['x-%02d-%s' % (i, 'a' * 40) for i in range(22)])
odd(**{{'region': dict(region='e' * 65), 'service': dict(service='s' * 65), 'date': dict(date='2' * 17),
       'names': dict(names=';'.join(many), more=''.join('%s: 1\\r\\n' % n for n in many[1:-1]))}}[{field!r}])
ask(b'')
""")
    odd, well = result.out.splitlines()
    assert " 403 " in odd and "X-Cloche-Denied: secret-sigv4" in odd and " 200 " in well, result
    verify(only_request(aws.net))


@pytest.mark.parametrize("kind", ["STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
                                  "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", "STREAMING-OTHER"])
def test_bodies_signed_in_pieces_are_refused(aws, kind):
    result = aws.python(RAW + f"ask(b'0;chunk-signature=' + b'0' * 64 + b'\\r\\n\\r\\n', 'X-Amz-Content-Sha256: {kind}\\r\\n')")
    assert " 403 " in result.out and "X-Cloche-Denied: secret-sigv4" in result.out and not aws.net.requests, result


def test_a_secret_in_such_a_body_is_hashed_as_it_goes_out(aws):
    """Another secret's value takes its place in the body first."""
    value = "tk_Inside-9f8E7d6C5b4A39281706"
    aws.secret("BODY", value=value, place="body")
    result = aws.python(RAW + "ask(('k=' + os.environ['BODY']).encode())")
    request = only_request(aws.net)
    assert " 200 " in result.out and request["data"] == f"k={value}".encode(), result
    verify(request)


def test_a_revoked_credential_signs_no_more(aws):
    assert aws.online.bare("secret", "revoke", "aws", env=aws.env).ok
    result = aws.python(RAW + "ask(b'{}')")
    assert result.code == 125 and "[vault.revoked]" in result.err and not aws.net.requests, result
