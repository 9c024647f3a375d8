"""Secrets of several lines: a PEM key, a service account's JSON; kept, shown as placeholders, put into bodies and queries."""
import json
import os
import re
import subprocess

import pytest

from helpers import requirement
from helpers.vaulted import Vaulted, only_request

pytestmark = [requirement("R12", "R16")]
LINES = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj",
         "MzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDuictGeurT8jNbvJZHtCSuYEvu", "NMoSfm76oqFvAp8Gy0iz5sxjZmSnXyCdPEovGhLa0VzMaQ8s+CLOyS56YyCFGeJZ"]
PEM = "\n".join(["-----BEGIN PRIVATE KEY-----", *LINES, "-----END PRIVATE KEY-----"])
ACCOUNT = json.dumps({"type": "service_account", "project_id": "demo-42", "private_key_id": "8f2ac01d77e3",
                      "private_key": PEM + "\n", "token_uri": "https://oauth2.example.org/token"}, indent=2)
BODY = ("--host", "api.example.org", "--place", "body", "--env", "KEY")
ALLOW = ("--allow-domain", "api.example.org")


@pytest.fixture
def vault(anyone):
    anyone.env["XDG_DATA_HOME"] = str(anyone.home / "data")
    return anyone


def inside(vault, *more, name="key"):
    result = vault("run", "--secret", name, *ALLOW, *more, "--", "/usr/bin/python3", "-I", "-S", "-c",
                   "import os; print(os.environ['KEY'], end='')")
    assert result.ok, result
    return result.out


def classes(text):
    return re.sub("[A-Z]", "A", re.sub("[a-z]", "a", re.sub("[0-9]", "0", text)))


@pytest.mark.parametrize("source", ["stdin", "file", "command"])
def test_a_key_keeps_its_lines(vault, source):
    path = vault.home / "key.pem"
    path.write_text(PEM + "\n")
    os.chmod(path, 0o644)
    words = {"stdin": [], "file": ["--from-file", str(path)], "command": ["--from-command", "--", "cat", str(path)]}[source]
    result = vault("secret", "set", "key", *BODY, *words, stdin=PEM + "\n" if source == "stdin" else "")
    assert result.ok, result
    seen = inside(vault).split("\n")
    assert [seen[0], seen[-1]] == ["-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"], seen
    assert [classes(x) for x in seen[1:-1]] == [classes(x) for x in LINES] and not set(seen[1:-1]) & set(LINES)
    assert vault("secret", "rotate", "key", stdin=PEM[::-1]).ok


def test_a_service_account_stays_json(vault):
    assert vault("secret", "set", "key", *BODY, stdin=ACCOUNT).ok
    text = inside(vault, "--secret-file", "/run/account.json=key")
    seen, real = json.loads(text), json.loads(ACCOUNT)
    assert len(text) == len(ACCOUNT) and list(seen) == list(real)
    assert seen["type"] == real["type"] and seen["token_uri"] == real["token_uri"]
    assert seen["private_key"].startswith("-----BEGIN PRIVATE KEY-----\n") and seen["private_key_id"] != real["private_key_id"]
    for line in LINES:
        assert line not in text


@pytest.mark.parametrize("place", ["bearer", "basic", "header X-Key", "cookie sid"])
def test_lines_are_refused_for_heads(vault, place):
    result = vault("secret", "set", "key", "--host", "api.example.org", "--place", "body", "--place", place, stdin=PEM)
    assert result.code == 125 and "[vault.value.lines]" in result.err and "--place body" in result.err, result
    assert vault("secret", "set", "key", stdin=PEM).ok      # bound to nothing yet
    result = vault("run", "--secret", "key=github", "--allow-domain", "api.github.com", "--", "true")
    assert result.code == 125 and "[vault.value.lines]" in result.err, result


def test_import_takes_quoted_lines(vault):
    path = vault.home / "dotenv"
    one_line = PEM.replace("\n", "\\n")
    path.write_text(f"# KEY=\"no end\nFIRST='{PEM}'\nexport SECOND=\"{one_line}\"\nTHIRD=\"{PEM}\"\r\nLAST=plain-value-12345\n")
    os.chmod(path, 0o644)
    result = vault("secret", "import", path)
    assert result.ok, result
    listed = {s["name"] for s in vault("secret", "ls", "--json").json["secrets"]}
    assert listed == {"FIRST", "SECOND", "THIRD", "LAST"}
    for name in ("FIRST", "SECOND", "THIRD"):
        result = vault("run", "--secret", f"{name}=github", "--allow-domain", "api.github.com", "--", "true")
        assert "[vault.value.lines]" in result.err, result
    path.write_text(f"GOOD=value-of-good-1\nBAD='{PEM}'x\n")
    result = vault("secret", "import", path)
    assert result.code == 125 and "line 2" in result.err, result


# --- on its way ---------------------------------------------------------------------------------------------------------

@pytest.fixture
def vaulted(online, tmp_path):
    return Vaulted(online, tmp_path)


SEND = """
import json, urllib.request as u, urllib.parse as p
key = os.environ['TOK']
how = sys.argv[1]
body = {'raw': key, 'json': json.dumps({'k': key}), 'form': p.urlencode({'k': key}), 'quoted': p.quote(key, safe='')}.get(how)
target = '/mirror/plain' + ('?k=' + (p.quote(key, safe='') if how == 'query' else p.quote_plus(key)) if body is None else '')
said = u.urlopen(u.Request('https://ok.example.org' + target, data=body and body.encode())).read().decode()
print(json.dumps([said, key]))
"""


@pytest.mark.root
@pytest.mark.parametrize("how", ["raw", "json", "form", "quoted", "query", "query+"])
def test_lines_go_into_bodies_and_queries_and_do_not_come_back(vaulted, how):
    from urllib.parse import parse_qs, unquote
    v = vaulted.secret(place=["body", "query k"], value=PEM)
    result = v.run(["/usr/bin/python3", "-I", "-S", "-c", "import os, sys\n" + SEND, how])
    assert result.ok, result
    said, placeholder = json.loads(result.out)
    request = only_request(v.net)
    data = request["data"].decode()
    got = {"raw": lambda: data, "json": lambda: json.loads(data)["k"], "form": lambda: parse_qs(data)["k"][0],
           "quoted": lambda: unquote(data)}.get(how, lambda: parse_qs(request["path"].split("?")[1])["k"][0])()
    assert got == PEM and placeholder != PEM
    for line in LINES:
        assert line not in said and line.replace("/", "%2F").replace("+", "%2B") not in said, said


@pytest.mark.root
def test_openssl_reads_the_true_key_only(vaulted):
    """What arrives is the key, byte for byte: a program that wants a key takes it."""
    made = subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], capture_output=True,
                          text=True, check=True).stdout.strip()
    v = vaulted.secret(place="body", value=made)
    result = v.sh("printf %s \"$TOK\" | openssl pkey -noout && echo readable; "
                  "printf %s \"$TOK\" | curl -sS --data-binary @- https://ok.example.org/up")
    assert "readable" not in result.out, result
    arrived = only_request(v.net)["data"]
    assert subprocess.run(["openssl", "pkey", "-noout"], input=arrived, check=False).returncode == 0
