"""Headers that the proxy adds: with nothing inside, every request to a bound host has its credential (R13, R16)."""
import base64
import json
import os
import re

import pytest

from helpers import requirement
from helpers.h2 import HOST, field
from helpers.vaulted import OK, VALUE, Vaulted, denied, fields, only_request

pytestmark = [requirement("R13", "R16"), pytest.mark.root]
BEARER = "Authorization: Bearer {}"
USE = "curl -sS -i https://ok.example.org/headers; env"


@pytest.fixture
def vaulted(online, tmp_path):
    return Vaulted(online, tmp_path)


@pytest.mark.parametrize("transparent", [False, True], ids=["proxy", "transparent"])
def test_nothing_is_inside_and_the_server_has_it(vaulted, transparent):
    result = vaulted.adds().sh(USE, transparent)
    assert fields(only_request(vaulted.net), "authorization") == [f"Bearer {VALUE}"], result
    assert "TOK" not in result.out and VALUE not in result.out, result
    assert re.search(r"Authorization: Bearer [a-z]{2}_[A-Z]", result.out)       # the server's echo, as a placeholder


@pytest.mark.parametrize("add,want", [("X-Api-Key: {}", ("x-api-key", VALUE)), ("Cookie: sid={}; v=1", ("cookie", f"sid={VALUE}; v=1")),
                                      ("authorization: Token token={}", ("authorization", f"Token token={VALUE}"))])
def test_the_header_and_its_text_are_the_users(vaulted, add, want):
    result = vaulted.adds(add=add).sh("curl -sS -b mine=1 -H 'X-Api-Key: mine' -H 'Authorization: mine' https://ok.example.org/headers")
    assert fields(only_request(vaulted.net), want[0]) == [want[1]] and VALUE not in result.out, result


def test_basic_is_encoded_and_not_echoed(vaulted):
    result = vaulted.adds(add="Authorization: Basic x-access-token:{}").sh(
        "curl -sS https://ok.example.org/headers; curl -sS https://ok.example.org/headers | sed -n 's/.*Basic //p' | base64 -d")
    want = "Basic " + base64.b64encode(b"x-access-token:" + VALUE.encode()).decode()
    assert [fields(r, "authorization") for r in vaulted.net.requests] == [[want], [want]], result
    assert want not in result.out and VALUE not in result.out and re.search("x-access-token:[a-z]{2}_[A-Z]", result.out), result


def test_posts_and_http2_have_it_too(h2):
    h2.adds(host=HOST)
    result = h2.sh(f"curl -sS -w ' %{{http_version}}' -d x=1 https://{HOST}/a; curl -sS -H 'authorization: mine' https://{HOST}/b",
                   allow=(HOST,))
    assert " 2" in result.out, result
    assert [field(r, "authorization") for r in h2.far.requests] == [[f"Bearer {VALUE}"]] * 2, result


def test_a_websocket_handshake_has_it(vaulted):
    result = vaulted.adds().python("""
s = tls(socket.create_connection(('ok.example.org', 443)), 'ok.example.org')
s.sendall(b'GET /ws HTTP/1.1\\r\\nHost: ok.example.org\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade, authorization\\r\\n'
          b'authorization: mine\\r\\nSec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\\r\\n\\r\\n')
print(until(s).decode().split()[1])""")
    assert result.out == "101\n", result
    assert fields(only_request(vaulted.net), "authorization") == [f"Bearer {VALUE}"]


def test_a_variable_is_there_when_it_is_asked_for(vaulted):
    """Some tools do not start without one; what they send is replaced all the same."""
    result = vaulted.adds("TOK", "--env", "API_KEY").sh("curl -sS -o /dev/null -H \"Authorization: Bearer $API_KEY\" https://ok.example.org/; "
                                                        "echo $API_KEY")
    assert re.match("[a-z]{2}_[A-Z]", result.out) and VALUE not in result.out, result
    assert fields(only_request(vaulted.net), "authorization") == [f"Bearer {VALUE}"]


def test_other_requests_go_out_as_they_came(vaulted):
    """Other hosts, plain HTTP, methods and paths that the binding does not name."""
    vaulted.adds("TOK", "--method", "GET", "--path", "/v1/**")
    result = vaulted.sh("for u in http://ok.example.org/v1/plain https://ok.example.org/v2 https://second.example.org/v1/x; do "
                        "curl -sS -H 'Authorization: Bearer mine' $u; done; curl -sS -d x https://ok.example.org/v1/post; "
                        "curl -sS https://ok.example.org/v1/yes", allow=(OK, "second.example.org"))
    got = {(r["host"], r["path"]): fields(r, "authorization") for r in vaulted.net.requests}
    assert got == {(OK, "/v1/plain"): ["Bearer mine"], (OK, "/v2"): ["Bearer mine"], ("second.example.org", "/v1/x"): ["Bearer mine"],
                   (OK, "/v1/post"): [], (OK, "/v1/yes"): [f"Bearer {VALUE}"]}, result


def test_an_ended_secret_is_not_left_out(vaulted):
    """The request is refused, not sent with what the client says instead."""
    process = vaulted.adds().popen("""
for line in sys.stdin:
    try:
        s = tls(socket.create_connection(('ok.example.org', 443)), 'ok.example.org')
        s.sendall(get('ok.example.org', '/headers', 'Authorization: mine\\r\\n' + CLOSE))
        print((drain(s, 30).split() + [b'cut', b'cut'])[1].decode(), flush=True)
    except OSError:
        print('cut', flush=True)""")
    process.stdin.write(b"go\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"200\n"
    assert vaulted.online.bare("secret", "revoke", "TOK", env=vaulted.env).ok
    for _ in range(20):
        process.stdin.write(b"go\n")
        process.stdin.flush()
        said = process.stdout.readline()
        if said not in (b"200\n", b"cut\n"):   # what is under way when the secret ends, ends with it
            break
    process.stdin.close()
    process.wait(60)
    assert said == b"403\n"
    assert {tuple(fields(r, "authorization")) for r in vaulted.net.requests} == {(f"Bearer {VALUE}",)}


def test_two_that_want_the_same_header_of_a_request_are_refused(vaulted, tmp_path):
    vaulted.adds("ONE").adds("TWO", add="authorization: Token {}", value=VALUE[::-1])
    result = vaulted.sh("curl -sS -o /dev/null -w '%{http_code}' https://ok.example.org/", flags=["--report", tmp_path / "report.json"])
    assert result.out == "403" and not vaulted.net.requests, result
    assert "secret-place" in {d["rule"] for d in denied(tmp_path)}


# --- where it is said ---------------------------------------------------------------------------------------------------

def test_a_run_or_its_settings_may_ask_for_what_the_binding_names(vaulted, tmp_path):
    vaulted.secret(env="TOK", place="bearer")
    vaulted.flags = vaulted.flags[:2]
    settings = tmp_path / "policy.json"
    for words in (["--secret", f"TOK,add={BEARER}"],
                  ["--settings", settings]):
        settings.write_text(json.dumps({"version": 1, "secrets": [{"name": "TOK", "add": BEARER}]}))
        os.chmod(settings, 0o644)
        result = vaulted.sh(USE, flags=words)
        assert fields(only_request(vaulted.net), "authorization") == [f"Bearer {VALUE}"], result
        assert "TOK=" not in result.out and VALUE not in result.out, result
        vaulted.net.forget()


@pytest.mark.parametrize("secret,code", [
    ("TOK,add=X-Other: {}", "vault.binding.add-other"),         # a run does not widen where it may go
    ("TOK,add=User-Agent: {}", "vault.binding.add-other"),
    ("TOK,add=Authorization: Bearer", "policy.secret.add"),
    ("TOK,add=", "policy.secret.add"),
    ("TOK,add=Authorization: {}{}", "vault.binding.add"),
    ("TOK,add=Host: {}", "vault.binding.add"),
])
def test_other_headers_are_refused(vaulted, secret, code):
    vaulted.secret()
    vaulted.flags = vaulted.flags[:2]
    result = vaulted.sh("true", flags=["--secret", secret])
    assert result.code == 125 and f"[{code}]" in result.err, result


def test_what_a_policy_says_counts_in_its_digest(vaulted):
    shown = [vaulted.online.bare("policy", "show", "--json", "--allow-domain", OK, "--secret", s).json
             for s in ("TOK", f"TOK,add={BEARER}", "TOK,add=Authorization: Token {}")]
    assert len({s["digest"] for s in shown}) == 3 and BEARER in json.dumps(shown[1]), shown


def test_ls_says_what_is_added(vaulted):
    vaulted.adds()
    listed = vaulted.online.bare("secret", "ls", "--json", env=vaulted.env).json["secrets"]
    assert [(s["add"], s["env"]) for s in listed] == [(BEARER, None)]


def test_trace_is_not_for_a_secret_that_is_added(vaulted):
    result = vaulted.online.bare("secret", "set", "TOK", "--host", OK, "--add", BEARER, "--method", "TRACE", "--from-env", "CT_VALUE",
                                 env=vaulted.env)
    assert result.code == 125 and "[vault.binding.trace]" in result.err, result
