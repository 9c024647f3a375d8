"""TLS that is opened: secrets go in and do not come out, bad servers are told of, and nothing else is touched."""
import base64
import json
import os
import re
import signal
import socket
import subprocess

import pytest

from helpers import leaks, memory, ocsf, requirement
from helpers.internet import NO_PROXY_VARIABLES, PRELUDE
from helpers.vaulted import BUNDLE, OK, VALUE, Vaulted, denied, fields, only_request

pytestmark = [requirement("R13", "R14", "R16", "R50"), pytest.mark.root]
way = pytest.mark.parametrize("transparent", [False, True], ids=["proxy", "transparent"])


@pytest.fixture
def vaulted(online, tmp_path):
    return Vaulted(online, tmp_path)


# --- clients: the value arrives, the sandbox has only its placeholder ---------------------------------------------------

CURL = "curl -sS --max-time 40 -H \"Authorization: Bearer $TOK\" https://ok.example.org/mirror/plain; echo; echo $TOK"


@way
def test_curl(vaulted, transparent):
    result = vaulted.secret().sh(CURL, transparent)
    placeholder = result.out.strip().rsplit("\n", 1)[-1]
    assert result.ok and len(placeholder) == len(VALUE) and placeholder != VALUE, result
    assert fields(only_request(vaulted.net), "authorization") == [f"Bearer {VALUE}"]
    assert VALUE not in result.out and f"Authorization: Bearer {placeholder}" in result.out


def test_python_urllib(vaulted):
    result = vaulted.secret().python("""
import urllib.request as u
r = u.Request('https://ok.example.org/x', headers={'Authorization': 'token ' + os.environ['TOK']})
print(u.urlopen(r).read().decode())""")
    assert result.ok and "hello ok.example.org /x" in result.out, result
    assert fields(only_request(vaulted.net), "authorization") == [f"token {VALUE}"]


def test_python_default_trust(vaulted):
    """The library's own idea of what to trust, by the variables."""
    result = vaulted.secret().run(["/usr/bin/python3", "-c", """
import urllib.request as u
print(u.urlopen('https://ok.example.org/y').read().decode())"""])
    assert result.ok and "hello ok.example.org /y" in result.out, result


def test_node_fetch(vaulted, has):
    has("node")
    result = vaulted.secret().run(["/usr/bin/node", "-e", """
fetch('https://ok.example.org/n', {headers: {authorization: 'Bearer ' + process.env.TOK}})
  .then(r => r.text()).then(t => console.log(t), e => console.log(e))"""])
    assert result.ok and "hello ok.example.org /n" in result.out, result
    assert fields(only_request(vaulted.net), "authorization") == [f"Bearer {VALUE}"]


def test_wget_reads_the_systems_bundle(vaulted, has):
    has("wget")
    result = vaulted.secret().sh("wget -nv -O - --header \"Authorization: Bearer $TOK\" https://ok.example.org/w")
    assert result.ok and result.out == "hello ok.example.org /w\n", result
    assert fields(only_request(vaulted.net), "authorization") == [f"Bearer {VALUE}"]


def test_git_with_basic(vaulted, has):
    has("git")
    result = vaulted.secret(place="basic").sh("git ls-remote https://user:$TOK@ok.example.org/git/none.git")
    assert not result.ok
    want = "Basic " + base64.b64encode(f"user:{VALUE}".encode()).decode()
    # git asks without credentials first; curl adds them when it is told to
    assert vaulted.net.requests and all(f in ([], [want]) for f in
                                        (fields(r, "authorization") for r in vaulted.net.requests))


def test_host_view(vaulted):
    v = vaulted.secret()
    result = v.online.cloche("run", "--view", "host", "--allow-domain", OK, *v.flags, "--", "/bin/sh", "-c", CURL,
                             env=v.env)
    assert result.ok and VALUE not in result.out, result
    assert fields(only_request(vaulted.net), "authorization") == [f"Bearer {VALUE}"]


@way
def test_many_requests_on_a_connection(vaulted, transparent):
    urls = " ".join(f"https://ok.example.org/r{i}" for i in range(20))
    result = vaulted.secret().sh(f"curl -sS -v -H \"Authorization: Bearer $TOK\" {urls}", transparent)
    assert result.ok and result.err.count("SSL connection using") == 1, result
    assert [r["path"] for r in vaulted.net.requests] == [f"/r{i}" for i in range(20)]
    assert all(fields(r, "authorization") == [f"Bearer {VALUE}"] for r in vaulted.net.requests)


def test_big_bodies_pass(vaulted):
    result = vaulted.secret(place="body").python("""
import hashlib, urllib.request as u
body = b'0123456789abcdef' * (1 << 18)
r = u.urlopen(u.Request('https://ok.example.org/up', data=body, method='POST'))
print(r.read().decode().split()[1] == hashlib.sha256(body).hexdigest())
r = u.urlopen('https://ok.example.org/bytes/3000000')
print(hashlib.sha256(r.read()).hexdigest() == hashlib.sha256(hashlib.shake_128(b'3000000').digest(3000000)).hexdigest())
""")
    assert result.ok and result.out == "True\nTrue\n", result


# --- what is not opened --------------------------------------------------------------------------------------------------

def test_other_hosts_are_not_opened(vaulted):
    result = vaulted.secret().sh("curl -sS -v https://a.example.org/x 2>&1", allow=(OK, "a.example.org"))
    assert result.ok and "issuer: CN=test CA" in result.out, result


def test_no_secret_no_ca(online):
    result = online.run(["/bin/sh", "-c", "echo $SSL_CERT_FILE; cmp -s /etc/ssl/certs/ca-certificates.crt /dev/null; echo $?"])
    assert result.out == "\n1\n"


def test_extra_ca_alone_is_for_programs_inside(online):
    """No secret: TLS is not opened, and the far CA is trusted without another word."""
    words = ["/usr/bin/curl", "-sS", "-v", "https://ok.example.org/e"]
    result = online.run(words, flags=["--extra-ca", str(online.net.ca)])
    assert result.ok and result.out == "hello ok.example.org /e\n" and "issuer: CN=test CA" in result.err, result
    assert not online.run(words).ok


def test_extra_ca_that_is_none(online, tmp_path):
    (tmp_path / "empty.pem").write_text("")
    result = online.run(["/bin/true"], flags=["--extra-ca", str(tmp_path / "empty.pem")])
    assert not result.ok and "engine.trust" in result.err, result


@pytest.mark.parametrize("bundle,code", [
    (None, "engine.trust"), ("", "engine.trust"), ("nonsense\n", "egress.trust"),
    ("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", "egress.trust"),
], ids=["none", "empty", "nonsense", "broken"])
def test_a_host_without_certificates(vaulted, tmp_path, bundle, code):
    """Nothing could be checked, so the run is refused before its command starts, and says what is missing."""
    vaulted.secret()
    (tmp_path / "bundle").write_text(bundle or "", encoding="ascii")
    hide = f"mount --bind {tmp_path}/bundle {os.path.realpath(BUNDLE)}" if bundle is not None else \
        "for d in /etc/ssl /etc/pki; do test ! -d $d || mount -t tmpfs none $d || exit 1; done"
    vaulted.online.cloche = vaulted.online.bare.behind(*vaulted.net.words, "unshare", "--mount", "sh", "-c",
                                                       f'{hide} && exec "$@"', "sh")
    result = vaulted.sh("echo ran")
    assert result.code == 125 and not result.out and f"[{code}]" in result.err, result
    assert "again" not in result.err and (bundle == "" or "package ca-certificates" in result.err), result


def test_a_file_that_holds_no_certificate(vaulted, tmp_path):
    (tmp_path / "text.pem").write_text("not one\n", encoding="ascii")
    result = vaulted.secret().run(["/bin/echo", "ran"], flags=["--extra-ca", str(tmp_path / "text.pem")])
    assert result.code == 125 and not result.out and "[egress.trust]" in result.err, result
    assert str(tmp_path / "text.pem") in result.err, result


# --- places --------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("place,words,where", [
    ("header X-Api-Key", '-H "X-Api-Key: $TOK"', lambda r: fields(r, "x-api-key") == [VALUE]),
    ("query key", '"https://ok.example.org/p?a=1&key=$TOK"', lambda r: r["path"] == f"/p?a=1&key={VALUE}"),
    ("cookie sid", '-H "Cookie: a=b; sid=$TOK"', lambda r: fields(r, "cookie") == [f"a=b; sid={VALUE}"]),
    ("basic", '-u "$TOK:x"', lambda r: fields(r, "authorization") ==
     ["Basic " + base64.b64encode(f"{VALUE}:x".encode()).decode()]),
    ("body", "-d \"{\\\"k\\\": \\\"$TOK\\\"}\"", lambda r: r["data"] == f'{{"k": "{VALUE}"}}'.encode()),
    ("body", "-H 'Transfer-Encoding: chunked' -d \"k=$TOK\"", lambda r: r["data"] == f"k={VALUE}".encode()),
])
def test_places(vaulted, place, words, where):
    url = "" if "https:" in words else "https://ok.example.org/p"
    result = vaulted.secret(place=place).sh(f"curl -sS {words} {url}")
    assert result.ok and where(only_request(vaulted.net)), (result, vaulted.net.requests)


def test_elsewhere_the_placeholder_stays(vaulted):
    result = vaulted.secret(place="header X-Api-Key").sh(
        'curl -sS -H "X-Other: $TOK" -H "Authorization: Bearer $TOK" "https://ok.example.org/?q=$TOK" -d "$TOK"; echo $TOK')
    placeholder, request = result.out.strip().rsplit("\n", 1)[-1], only_request(vaulted.net)
    assert VALUE not in str(request) and fields(request, "x-other") == [placeholder], (result, request)


def test_a_body_in_small_writes(vaulted):
    """The placeholder cut by every boundary: writes, TLS records, chunks."""
    result = vaulted.secret(place="body").python("""
t = os.environ['TOK']
c = ssl.create_default_context(cafile=CA).wrap_socket(socket.create_connection(('ok.example.org', 443)),
                                                      server_hostname='ok.example.org')
body = ('a' * 7 + t + t[:-1] + t + 'z').encode()
c.sendall(b'POST /x HTTP/1.1\\r\\nHost: ok.example.org\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(body))
for b in body: c.sendall(bytes([b]))
print(c.recv(1) == b'H')
""")
    request = only_request(vaulted.net)
    assert result.ok, result
    data = request["data"].decode()
    assert data[:7] == "a" * 7 and data[7:7 + len(VALUE)] == VALUE and data.endswith(VALUE + "z"), data
    assert data.count(VALUE) == 2


def test_pieces_that_no_server_puts_together(vaulted):
    """A placeholder over two parts of a form, two lines of a header, a folded one, an extension of a chunk, a trailer: none of it becomes the value, wherever
    else in the same message that is put in."""
    result = vaulted.secret(place=["body", "header X-Api-Key"]).python("""
t = os.environ['TOK'].encode()
a, b = t[:9], t[9:]
form = (b'--x\\r\\nContent-Disposition: form-data; name="a"\\r\\n\\r\\n' + a + b'\\r\\n--x\\r\\nContent-Disposition: form-data; name="b"\\r\\n\\r\\n' + b
        + b'\\r\\n--x\\r\\n\\r\\n' + t + b'\\r\\n--x--\\r\\n')
piece = lambda p, more=b'': b'%x%s\\r\\n' % (len(p), more) + p + b'\\r\\n'
sized = lambda head, body: head + b'Content-Length: %d\\r\\n\\r\\n' % len(body) + body
coded = lambda head, *rest: head + b'Transfer-Encoding: chunked\\r\\n\\r\\n' + b''.join(rest)
tries = {
    'form': sized(b'Content-Type: multipart/form-data; boundary=x\\r\\n', form),
    'lines': sized(b'X-Api-Key: ' + a + b'\\r\\nX-Api-Key: ' + b + b'\\r\\n', b''),
    'twice': sized(b'X-Api-Key: ' + t + b'\\r\\nX-Api-Key: ' + t + b'\\r\\n', b''),
    'folded': sized(b'X-Api-Key: ' + a + b'\\r\\n ' + b + b'\\r\\n', b''),
    'named': sized(b'Connection: X-Api-Key\\r\\nX-Api-Key: ' + t + b'\\r\\n', b''),
    'name': sized(t + b': X-Api-Key\\r\\n', b''),
    'extension': coded(b'', piece(b'hello', b';x=' + t), b'0;y=' + t + b'\\r\\n\\r\\n'),
    'trailer': coded(b'Trailer: X-Api-Key\\r\\n', piece(b'hello'), b'0\\r\\nX-Api-Key: ' + t + b'\\r\\nX-Other: ' + t + b'\\r\\n\\r\\n'),
    'chunks': coded(b'', piece(a), piece(b), b'0\\r\\n\\r\\n'),
}
for how, rest in tries.items():
    c = ssl.create_default_context(cafile=CA).wrap_socket(socket.create_connection(('ok.example.org', 443)), server_hostname='ok.example.org')
    c.sendall(b'POST /' + how.encode() + b' HTTP/1.1\\r\\nHost: ok.example.org\\r\\n' + rest)
    print(how, c.recv(12)[9:].decode(), flush=True)
print(os.environ['TOK'])
""")
    said = dict(line.split() for line in result.out.splitlines()[:-1])
    assert {how for how, status in said.items() if status != "200"} == {"folded", "extension"}, result
    came = {r["path"][1:]: ([v for k, v in r["headers"] if k == "x-api-key"], r["data"].decode().count(VALUE)) for r in vaulted.net.requests}
    whole, placeholder = came.pop("form"), result.out.split()[-1]
    assert whole == ([], 1), vaulted.net.requests           # of the part that has it whole
    assert came == {"lines": ([placeholder[:9], placeholder[9:]], 0), "twice": ([VALUE, VALUE], 0), "named": ([], 0), "name": ([], 0), "trailer": ([], 0),
                    "chunks": ([], 1)}, vaulted.net.requests
    assert str(vaulted.net.requests).count(VALUE) == 4, vaulted.net.requests


# --- answers ---------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("how", ["plain", "gzip", "deflate", "chunks", "bytes", "header", "trailer", "early",
                                 "base64/?0", "base64/?1", "base64/?2", "percent"])
def test_an_echo_is_scrubbed(vaulted, how):
    script = f'curl -sS -i --raw -H "Authorization: Bearer $TOK" "https://ok.example.org/mirror/{how}"; echo; echo $TOK'
    result = vaulted.secret().sh(script)
    assert result.ok and fields(only_request(vaulted.net), "authorization") == [f"Bearer {VALUE}"], result
    assert VALUE not in result.out
    # without the sizes of chunks, and as what base64 it may be
    assert VALUE not in "".join(line for line in result.out.replace("\r\n", "\n").split("\n") if len(line) > 2)
    for line in result.out.split():
        whole = line[:len(line) // 4 * 4]
        assert not re.fullmatch("[A-Za-z0-9+/=]+", whole) or VALUE[2:-2].encode() not in base64.b64decode(whole)
    assert fields(only_request(vaulted.net), "accept-encoding") == ["identity"]
    if how in ("plain", "gzip", "deflate", "header"):
        placeholder = result.out.strip().rsplit("\n", 1)[-1]
        assert result.out.count(placeholder) >= 2, result


def test_a_type_does_not_say_where_the_search_ends(vaulted):
    """An answer that is called gRPC, whose one message would end within the value."""
    body = bytes([0]) + (6 + len(VALUE) // 2).to_bytes(4, "big") + f"it is {VALUE}!".encode()
    vaulted.net.pages[OK, "/typed"] = "application/grpc", body
    result = vaulted.secret().sh("curl -sS https://ok.example.org/typed | tail -c +6; echo; echo $TOK")
    said, placeholder, _ = result.out.split("\n")
    assert said == f"it is {placeholder}!" and VALUE not in result.out, result


def test_base64_of_basic_is_scrubbed(vaulted):
    """What a server gives back of Basic credentials does not say the value when it is decoded."""
    result = vaulted.secret(place="basic").sh('curl -sS -u "user:$TOK" https://ok.example.org/mirror/plain; echo; echo $TOK')
    coded = [line for line in result.out.split("\n") if line.startswith("Authorization: Basic")][0].split()[-1]
    placeholder = result.out.strip().rsplit("\n", 1)[-1]
    assert VALUE[2:-2].encode() not in base64.b64decode(coded), result
    assert placeholder[2:-2].encode() in base64.b64decode(coded), result


@pytest.mark.parametrize("how,reason", [("lying", "answer-encoding"), ("part", "answer-partial"), ("reason", "secret-in-answer"),
                                        ("delta", "answer-encoding"), ("connect", "answer-encoding")])
def test_what_cannot_be_searched_is_refused(vaulted, how, reason):
    result = vaulted.secret().sh(
        'curl -sS -i -r 3-9 -H "A-IM: gzip" -H "Connect-Accept-Encoding: gzip" -H "Grpc-Accept-Encoding: gzip" --tr-encoding '
        f'-H "Authorization: Bearer $TOK" https://ok.example.org/mirror/{how} --output - | base64 -w0')
    said = base64.b64decode(result.out).decode("latin-1")
    assert "502 Bad Gateway" in said and f"X-Cloche-Denied: {reason}" in said, said
    assert VALUE not in said
    for name in ("range", "a-im", "connect-accept-encoding", "grpc-accept-encoding", "te"):
        assert not fields(only_request(vaulted.net), name), name


# --- wrong hosts -----------------------------------------------------------------------------------------------------------

WRONG = {"header": '-H "X-Any: $TOK"', "bearer": '-H "Authorization: Bearer $TOK"', "basic": '-u "x:$TOK"',
         "query": '"{url}/?k=$TOK"', "path": '"{url}/$TOK"', "body": '-d "k=$TOK"',
         "json": "-d \"{{\\\"k\\\": \\\"$TOK\\\"}}\"",
         "chunked": "-H 'Transfer-Encoding: chunked' -d \"k=$TOK\""}


@pytest.mark.parametrize("url", ["https://second.example.org", "http://second.example.org"])
@pytest.mark.parametrize("where", WRONG)
def test_a_placeholder_on_its_way_to_a_wrong_host(vaulted, tmp_path, where, url):
    words = WRONG[where].format(url=url)
    words = words if url in words else f"{words} {url}/"
    # another secret makes sure that the second host is looked into
    vaulted.secret().secret("OTHER", host="second.example.org", value="another-secret-0123456789")
    result = vaulted.sh(f"curl -sS -i --max-time 20 {words}; echo $TOK", allow=(OK, "second.example.org"),
                        flags=["--report", str(tmp_path / "report.json")])
    placeholder = result.out.strip().rsplit("\n", 1)[-1]
    assert placeholder not in str(vaulted.net.requests), vaulted.net.requests
    assert all(placeholder.encode() not in kept for _, kept in vaulted.net.connections)
    assert any(d["target"].startswith("second.example.org:") and d["rule"] == "secret-wrong-host"
               for d in denied(tmp_path)), (result, denied(tmp_path))


def test_never_on_plain_http(vaulted):
    result = vaulted.secret().sh('curl -sS -i -H "Authorization: Bearer $TOK" http://ok.example.org/; echo $TOK')
    assert "403 Forbidden" in result.out and "X-Cloche-Denied: secret-wrong-host" in result.out, result
    assert not vaulted.net.requests


def test_another_host_in_a_later_request(vaulted):
    result = vaulted.secret().python("""
t = os.environ['TOK']
c = ssl.create_default_context(cafile=CA).wrap_socket(socket.create_connection(('ok.example.org', 443)),
                                                      server_hostname='ok.example.org')
def ask(host):
    c.sendall(b'GET / HTTP/1.1\\r\\nHost: %s\\r\\nAuthorization: Bearer %s\\r\\n\\r\\n' % (host.encode(), t.encode()))
    head = b''
    while not head.endswith(b'\\r\\n\\r\\n'): head += c.recv(1)
    n = int([l.split(b':')[1] for l in head.split(b'\\r\\n') if l.lower().startswith(b'content-length')][0])
    while n: n -= len(c.recv(n))
    return head.split(b'\\r\\n')[0].decode()
print(ask('ok.example.org')); print(ask('second.example.org')); print(ask('evil.example.org')); print(ask('ok.example.org'))
""", allow=(OK, "second.example.org"))
    lines = result.out.split("\n")
    assert "200" in lines[0] and "403" in lines[1] and "403" in lines[2] and "200" in lines[3], result
    assert {r["host"] for r in vaulted.net.requests} == {OK}


def test_smuggling_inside_tls(vaulted):
    result = vaulted.secret().python("""
def raw(data):
    c = ssl.create_default_context(cafile=CA).wrap_socket(socket.create_connection(('ok.example.org', 443)),
                                                          server_hostname='ok.example.org')
    c.sendall(data)
    return drain(c).split(b'\\r\\n')[0].decode()
h = 'POST / HTTP/1.1\\r\\nHost: ok.example.org\\r\\n'
for more in ('Content-Length: 5\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\nGET /smuggled HTTP/1.1\\r\\n\\r\\n',
             'Content-Length: 5\\r\\nContent-Length: 6\\r\\n\\r\\nhello!', 'Transfer-Encoding : chunked\\r\\n\\r\\n0\\r\\n\\r\\n',
             'Host: evil.example.org\\r\\n\\r\\n', 'X: a\\nTransfer-Encoding: chunked\\r\\n\\r\\n'):
    print(raw((h + more).encode()))
""")
    assert result.out.count("400 Bad Request") == 5, result
    assert not vaulted.net.requests


# --- AWS -----------------------------------------------------------------------------------------------------------------

AWS_ID, AWS_KEY, AWS_TOKEN = "AKIA2E4R6T8Y0U2I4O6P", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYZ1LEKEY99", "IQoJb3JpZ2luX2VjEXAMPLEt0kenZ9"
SIGN = """
import hashlib, hmac, time
def sign(ident, key, method, target, headers, payload, day, region='eu-west-1', service='s3'):
    names = ';'.join(sorted(headers))
    path, _, query = target.partition('?')
    canonical = '\\n'.join([method, path, query, *('%s:%s' % (k, headers[k]) for k in sorted(headers)), '', names, payload])
    scope = '%s/%s/%s/aws4_request' % (day[:8], region, service)
    text = '\\n'.join(['AWS4-HMAC-SHA256', day, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    k = ('AWS4' + key).encode()
    for part in (day[:8], region, service, 'aws4_request', text): k = hmac.new(k, part.encode(), hashlib.sha256).digest()
    return 'AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s' % (ident, scope, names, k.hex())
"""


@pytest.mark.parametrize("token", [False, True])
@pytest.mark.parametrize("body", [b"", b"some bytes"])
def test_an_aws_request_is_signed_anew(vaulted, body, token):
    value = f"{AWS_ID}:{AWS_KEY}" + (f":{AWS_TOKEN}" if token else "")
    vaulted.secret("aws", "--service", "s3", value=value, place="sigv4", env="AWS_ACCESS_KEY_ID")
    result = vaulted.python(SIGN + f"""
body, e = {body!r}, os.environ
h = {{'host': 'ok.example.org', 'x-amz-date': time.strftime('%Y%m%dT%H%M%SZ', time.gmtime()),
     'x-amz-content-sha256': hashlib.sha256(body).hexdigest(), 'range': 'bytes=0-3'}}
if {token}: h['x-amz-security-token'] = e['AWS_SESSION_TOKEN']
h['authorization'] = sign(e['AWS_ACCESS_KEY_ID'], e['AWS_SECRET_ACCESS_KEY'], 'PUT', '/b/k?a=1', h,
                          h['x-amz-content-sha256'], h['x-amz-date'])
import urllib.request as u
print(u.urlopen(u.Request('https://ok.example.org/b/k?a=1', method='PUT', data=body, headers=h)).status)
print(e['AWS_ACCESS_KEY_ID'])""")
    assert result.ok and result.out.startswith("200\n"), result
    request, scope = only_request(vaulted.net), {}
    exec(SIGN, scope)       # noqa: S102 -- the same function, out here with the true key
    sent = dict(request["headers"])
    names = re.search("SignedHeaders=([^,]*)", sent["authorization"]).group(1).split(";")
    want = scope["sign"](AWS_ID, AWS_KEY, "PUT", "/b/k?a=1", {n: sent[n] for n in names}, sent["x-amz-content-sha256"],
                         sent["x-amz-date"])
    assert sent["authorization"] == want and ("range" in names) != token, sent
    assert not token or sent["x-amz-security-token"] == AWS_TOKEN
    assert AWS_ID not in result.out


# --- the end of a secret ------------------------------------------------------------------------------------------------

@way
def test_revoking_ends_the_connection(vaulted, transparent):
    v = vaulted.secret()
    straight = ["/usr/bin/env", *NO_PROXY_VARIABLES] if transparent else []
    process = v.online.popen([*straight, "/usr/bin/python3", "-I", "-S", "-c", PRELUDE.replace("/mnt/ca.pem", BUNDLE) + """
c = ssl.create_default_context(cafile=CA).wrap_socket(socket.create_connection(('ok.example.org', 443)),
                                                      server_hostname='ok.example.org')
ask = 'GET /r HTTP/1.1\\r\\nHost: ok.example.org\\r\\nAuthorization: Bearer %s\\r\\n\\r\\n' % os.environ['TOK']
c.sendall(ask.encode())
got = b''
while not got.endswith(b'/r\\n'): got += c.recv(1)
print('held', flush=True)
c.settimeout(50)
try: print('ended', c.recv(1) == b'', flush=True)
except OSError as e: print('ended', not isinstance(e, TimeoutError), flush=True)
"""], flags=v.flags, env=v.env, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    assert v.online.bare("secret", "revoke", "TOK", env=v.env).ok
    assert process.stdout.readline() == "ended True\n"
    process.communicate()
    assert len(v.net.requests) == 1


# --- bad servers, bad clients ----------------------------------------------------------------------------------------------

@way
@pytest.mark.parametrize("name,reason", [("wrong", "upstream-cert-name"), ("expired", "upstream-cert-expired"),
                                         ("self", "upstream-cert-untrusted")])
def test_a_server_that_is_not_who_it_should_be(vaulted, tmp_path, name, reason, transparent):
    host = f"{name}.example.org"
    result = vaulted.secret(host=host).sh(f'curl -sS -i -H "Authorization: Bearer $TOK" https://{host}/', transparent,
                                          allow=(host,), flags=["--report", str(tmp_path / "report.json")])
    assert "502 Bad Gateway" in result.out and f"X-Cloche-Denied: {reason}" in result.out, result
    assert not vaulted.net.requests
    assert {"target": f"{host}:443", "rule": reason}.items() <= denied(tmp_path)[0].items()


def test_an_untrusted_ca(vaulted):
    v = vaulted.secret()
    v.flags = v.flags[2:]           # without --extra-ca
    result = vaulted.sh("curl -sS -i https://ok.example.org/")
    assert "X-Cloche-Denied: upstream-cert-untrusted" in result.out, result


@way
def test_a_client_that_pins(vaulted, tmp_path, transparent):
    result = vaulted.secret().sh("curl -sS --pinnedpubkey 'sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=' "
                                 "https://ok.example.org/; echo $?", transparent,
                                 flags=["--report", str(tmp_path / "report.json")])
    assert result.out == "90\n", result
    assert any(d["rule"] == "tls-client-refused" for d in denied(tmp_path)), denied(tmp_path)
    assert not vaulted.net.requests


def test_a_client_that_does_not_trust_the_ca(vaulted, tmp_path):
    result = vaulted.secret().sh("curl -sS --cacert /mnt/ca.pem https://ok.example.org/; echo $?",
                                 flags=["--report", str(tmp_path / "report.json")])
    assert result.out == "60\n", result
    assert any(d["rule"] == "tls-client-refused" for d in denied(tmp_path)), denied(tmp_path)


def test_an_unreachable_server_is_said_inside_tls(vaulted):
    vaulted.net.names["gone.example.org"] = [("A", "93.184.216.99")]
    result = vaulted.secret(host="gone.example.org").sh("curl -sS -i https://gone.example.org/", True,
                                                        allow=("gone.example.org",))
    assert "HTTP/1.1 502" in result.out and "X-Cloche-Denied: unreachable" in result.out, result


def test_websocket_passes(vaulted):
    result = vaulted.secret().python("""
c = ssl.create_default_context(cafile=CA).wrap_socket(socket.create_connection(('ok.example.org', 443)),
                                                      server_hostname='ok.example.org')
c.sendall(('GET /ws HTTP/1.1\\r\\nHost: ok.example.org\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n'
           'Authorization: Bearer %s\\r\\nSec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\\r\\n\\r\\n'
           % os.environ['TOK']).encode())
head = b''
while not head.endswith(b'\\r\\n\\r\\n'): head += c.recv(1)
print(head.split(b'\\r\\n')[0].decode())
c.sendall(b'\\x81\\x85\\0\\0\\0\\0hello'); print(c.recv(7)[2:].decode())
""")
    assert result.out == "HTTP/1.1 101 Switching Protocols\nhello\n", result
    assert fields(only_request(vaulted.net), "authorization") == [f"Bearer {VALUE}"]


def test_a_server_that_closes_while_the_vault_is_asked(vaulted):
    """A request that goes out once only takes another connection, however late the kept one is found to have ended."""
    vaulted.secret()
    process = vaulted.popen("""
s, first = connect('ok.example.org:443')
c = tls(s, 'ok.example.org')
plain = dial(*P)
def other():        # answered by the same process, so what was sent before is read
    plain.sendall(b'GET http://a.example.org/x HTTP/1.1\\r\\nHost: a.example.org\\r\\n\\r\\n')
    assert b'200' in until(plain) and until(plain, b'\\n')
def request(body):
    c.sendall(b'POST /up HTTP/1.1\\r\\nHost: ok.example.org\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(body) + body)
def answer():
    head = until(c)
    return head.split(b'\\r\\n')[0].decode() + ' ' + until(c, b'\\n').decode().split()[0]
request(b'one'); print(answer(), flush=True)
sys.stdin.readline(); request(b'three'); other(); print('asked', flush=True)
sys.stdin.readline(); other(); print('closed', flush=True)
print(answer())
""", allow=(OK, "a.example.org"))
    say = lambda: (process.stdin.write(b"\n"), process.stdin.flush())     # noqa: E731
    assert process.stdout.readline() == b"HTTP/1.1 200 OK 3\n", process.stderr.read()
    (vault,) = [pid for pid in leaks.descendants(process.pid) if memory.name_of(pid) == "cloche-vault"]
    os.kill(vault, signal.SIGSTOP)
    try:
        say()
        assert process.stdout.readline() == b"asked\n", process.stderr.read()
        vaulted.net.open[0].shutdown(socket.SHUT_RDWR)
        say()
        assert process.stdout.readline() == b"closed\n", process.stderr.read()
    finally:
        os.kill(vault, signal.SIGCONT)
    out, err = process.communicate(timeout=60)
    assert out == b"HTTP/1.1 200 OK 5\n", (out, err)
    assert [r["body"] for r in vaulted.net.requests if r["tls"]] == [3, 5]


@requirement("R45")
def test_the_audit_record_knows_secrets_by_name_only(vaulted, cloche):
    wrong = CURL.replace("https://ok.example.org", "http://second.example.org")
    result = vaulted.secret().sh(f"{CURL}; {wrong}", allow=(OK, "second.example.org"))
    placeholder = result.out.split()[-1]
    assert len(placeholder) >= 8 and VALUE not in result.out, result
    lines = [json.loads(line) for line in cloche("audit", "query", "--json").out.splitlines()]
    used, = [e for e in lines if e["type"] == "secret_token_replacement_outbound"]
    assert (used["metadata"]["secret"], used["metadata"]["host"], used["severity"]) == ("TOK", OK, "info")
    refused, = [e for e in lines if e["severity"] == "critical"]
    assert (refused["metadata"]["secret"], refused["metadata"]["host"]) == ("TOK", "second.example.org"), refused
    assert (refused["metadata"]["reason"], refused["metadata"]["decision"]) == ("secret-wrong-host", "deny")
    text = (cloche.state / "cloche" / "audit" / "audit.jsonl").read_text()
    assert VALUE not in text and placeholder not in text
    assert lines[0]["metadata"]["secrets"] == "TOK"


@requirement("R45")
@pytest.mark.parametrize("path, kept_out", [("/", 0), ("/mirror/plain", 3), ("/mirror/gzip", 3), ("/mirror/header", 3), ("/mirror/base64/?0", 3)])
def test_the_audit_record_knows_what_was_kept_out_of_answers(vaulted, cloche, path, kept_out):
    """By name, once for each connection, however many answers came on it; equal ones are counted."""
    get = f'curl -sS --max-time 40 -H "Authorization: Bearer $TOK" "https://{OK}{path}" "https://{OK}{path}"'
    result = vaulted.secret().sh(f"{get}; {get}; {get}; echo; echo $TOK")
    placeholder = result.out.split()[-1]
    found = [json.loads(line) for line in cloche("audit", "query", "--json", "--type", "secret_sanitization_inbound").out.splitlines()]
    assert sum(e["metadata"]["count"] for e in found) == kept_out and len(found) <= 2, found
    for e in found:
        assert (e["metadata"]["secret"], e["metadata"]["host"], e["metadata"]["port"], e["severity"]) == ("TOK", OK, 443, "info"), e
    text = (cloche.state / "cloche" / "audit" / "audit.jsonl").read_text()
    assert VALUE not in text and placeholder not in text and VALUE not in result.out
    assert cloche("audit", "verify").ok
    for line in cloche("audit", "export", "--format", "ocsf").out.splitlines():
        ocsf.check(json.loads(line))
