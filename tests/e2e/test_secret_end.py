"""The end of a secret while it is in use: what used it ends too, and a vault that does not answer holds nobody up."""
import os
import re
import signal
import subprocess

import pytest

from helpers import leaks, memory, requirement
from helpers.internet import NO_PROXY_VARIABLES, PRELUDE
from helpers.runner import wait_for
from helpers.vaulted import BUNDLE, OK, VALUE, Vaulted

pytestmark = [requirement("R12", "R14", "R16"), pytest.mark.root]
way = pytest.mark.parametrize("transparent", [False, True], ids=["proxy", "transparent"])

# Two connections, one with the secret and one without; then what becomes of both, and of a new request.
HOLD = """
import threading
def open_one(more):
    c = ssl.create_default_context(cafile=CA).wrap_socket(socket.create_connection(('ok.example.org', 443)),
                                                          server_hostname='ok.example.org')
    c.sendall(get('ok.example.org', '/r', more))
    got = b''
    while not got.endswith(b'/r\\n'):
        d = c.recv(1)
        if not d: sys.exit('it ended too early')
        got += d
    return c
header = 'Authorization: Bearer %s\\r\\n' % os.environ['TOK']
held, other = open_one(header), open_one('')
print('held', flush=True)
held.settimeout(100)
try: print('ended', held.recv(1) == b'', flush=True)
except OSError as e: print('ended', not isinstance(e, TimeoutError), flush=True)
c = ssl.create_default_context(cafile=CA).wrap_socket(socket.create_connection(('ok.example.org', 443)),
                                                      server_hostname='ok.example.org')
c.sendall(get('ok.example.org', '/after', header + CLOSE))
print(drain(c, 60).decode().replace('\\r\\n', ' | '), flush=True)
"""


@pytest.fixture
def vaulted(online, tmp_path):
    return Vaulted(online, tmp_path)


def started(v, code, transparent=False, **kw):
    straight = ["/usr/bin/env", *NO_PROXY_VARIABLES] if transparent else []
    prelude = PRELUDE.replace("/mnt/ca.pem", BUNDLE)
    return v.online.popen([*straight, "/usr/bin/python3", "-I", "-S", "-c", prelude + code], flags=v.flags, env=v.env,
                          stdout=subprocess.PIPE, text=True, **kw)


def secret(v, *words, value=None):
    return v.online.bare("secret", *words, env={**v.env, "CT_VALUE": value or v.env["CT_VALUE"]})


NEW = "tk_Next-1a2B3c4D5e6F70819203yX"
ENDS = {"revoke": ["revoke", "TOK"], "rm": ["rm", "TOK"], "rotate": ["rotate", "TOK", "--from-env", "CT_VALUE"],
        "set": ["set", "TOK", "--from-env", "CT_VALUE"]}


@way
@pytest.mark.parametrize("how", ENDS)
def test_the_end_of_a_secret_ends_its_connections(vaulted, how, transparent):
    v = vaulted.secret()
    process = started(v, HOLD, transparent)
    assert process.stdout.readline() == "held\n"
    result = secret(v, *ENDS[how], value=NEW)
    assert result.ok, result
    assert process.stdout.readline() == "ended True\n"
    said = process.stdout.readline()
    assert " 403 " in said and "X-Cloche-Denied: secret-revoked" in said, said
    process.communicate()
    assert [r["path"] for r in v.net.requests] == ["/r", "/r"]


# What the host kept of it: asked for before and after, on connections that live and on new ones, without the secret.
KEPT = """
def open_one():
    return ssl.create_default_context(cafile=CA).wrap_socket(socket.create_connection(('ok.example.org', 443)),
                                                             server_hostname='ok.example.org')
def ask(c, path, more=''):
    c.sendall(get('ok.example.org', path, more))
    got = until(c)
    size = int((got.lower().partition(b'content-length: ')[2].split() or [0])[0])
    while len(got.partition(b'\\r\\n\\r\\n')[2]) < size:
        d = c.recv(size)
        if not d: raise OSError('it ended')
        got += d
    return got.decode()
open_one().sendall(get('ok.example.org', '/used', 'Authorization: Bearer %s\\r\\n' % os.environ['TOK']))
idle, first = open_one(), open_one()
print(repr(ask(first, '/kept')), flush=True)
sys.stdin.readline()
for round in range(600):
    try: said = ask(open_one(), '/asks', 'Authorization: Bearer %s\\r\\n' % os.environ['TOK'])
    except OSError: continue
    if ' 403 ' in said: break
    time.sleep(.1)
print(said.split('\\r\\n')[0], repr(ask(idle, '/kept')), repr(ask(open_one(), '/kept')), flush=True)
"""


@pytest.mark.parametrize("how", [*ENDS, "expires"])
def test_what_a_host_keeps_is_searched_for_after_the_end(vaulted, how):
    """Its use has ended; what it opens may not have, and the sandbox lives on."""
    v = vaulted.secret()
    v.net.pages[OK, "/kept"] = ("text/plain", f"kept {VALUE} kept".encode())
    for seconds in (8, 60, 300):
        if how == "expires":
            assert secret(v, "set", "TOK", "--from-env", "CT_VALUE", "--expires", f"{seconds}s").ok
        process = started(v, KEPT, stdin=subprocess.PIPE, stderr=subprocess.STDOUT)
        before = process.stdout.readline()
        if before.count("kept") == 2:
            break
        process.communicate()       # the machine took longer to get there
    if how != "expires":
        result = secret(v, *ENDS[how], value=NEW)
        assert result.ok, result
    after = process.communicate("\n")[0]
    assert " 403 " in after and after.count("kept") == 4, (before, after)
    assert VALUE not in before + after, (before, after)


def test_a_replaced_value_is_kept_where_that_is_asked_for(vaulted):
    v = vaulted.secret()
    process = started(v, """
import urllib.request as u
def ask(path):
    r = u.Request('https://ok.example.org' + path, headers={'Authorization': 'Bearer ' + os.environ['TOK']})
    print(u.urlopen(r).status, flush=True)
ask('/before'); sys.stdin.readline(); ask('/after')
""", stdin=subprocess.PIPE)
    assert process.stdout.readline() == "200\n"
    assert secret(v, "rotate", "TOK", "--from-env", "CT_VALUE", "--keep", value=NEW).ok
    assert process.communicate("\n")[0] == "200\n"
    assert all(("authorization", f"Bearer {v.env['CT_VALUE']}") in r["headers"] for r in v.net.requests)


@way
def test_a_secret_that_expires_ends_its_connections(vaulted, transparent):
    """Its time is up while it is in use; on a machine that takes longer to get there, with more of it."""
    v = vaulted.secret()
    for seconds in (10, 60, 300):
        assert secret(v, "set", "TOK", "--from-env", "CT_VALUE", "--expires", f"{seconds}s").ok
        v.net.requests.clear()
        process = started(v, HOLD, transparent)
        first = process.stdout.readline()
        if first == "held\n":
            break
        process.communicate()
    assert first == "held\n", first
    assert process.stdout.readline() == "ended True\n"
    said = process.stdout.readline()
    assert " 403 " in said and "X-Cloche-Denied: secret-expired" in said, said
    process.communicate()
    assert [r["path"] for r in v.net.requests] == ["/r", "/r"]


def test_other_secrets_go_on(vaulted):
    v = vaulted.secret().secret("OTHER", host="second.example.org", value="another-secret-0123456789")
    process = v.online.popen(["/usr/bin/python3", "-I", "-S", "-c", PRELUDE.replace("/mnt/ca.pem", BUNDLE) + """
def open_one(host, name):
    c = ssl.create_default_context(cafile=CA).wrap_socket(socket.create_connection((host, 443)), server_hostname=host)
    return c, get(host, '/r', 'Authorization: Bearer %s\\r\\n' % os.environ[name])
def ask(c, r):
    c.sendall(r)
    got = b''
    while not got.endswith(b'/r\\n'):
        d = c.recv(1)
        if not d: return 'ended'
        got += d
    return 'answered'
a, b = open_one('ok.example.org', 'TOK'), open_one('second.example.org', 'OTHER')
print(ask(*a), ask(*b), flush=True)
a[0].settimeout(60)
print(a[0].recv(1), ask(*b), flush=True)
"""], allow=(OK, "second.example.org"), flags=v.flags, env=v.env, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "answered answered\n"
    assert secret(v, "revoke", "TOK").ok
    assert process.stdout.readline() == "b'' answered\n"
    process.communicate()


# --- a vault that hangs -------------------------------------------------------------------------------------------------

def vault_of(process):
    pids = [p for p in leaks.descendants(process.pid) if memory.name_of(p) == "cloche-vault"]
    assert len(pids) == 1, pids
    return pids[0]


def test_a_vault_that_hangs_is_not_waited_for(vaulted, tmp_path):
    v = vaulted.secret()
    v.flags += ["--report", str(tmp_path / "report.json")]
    process = started(v, """
def ask(path, body=b''):
    c = ssl.create_default_context(cafile=CA).wrap_socket(socket.create_connection(('ok.example.org', 443)),
                                                          server_hostname='ok.example.org')
    head = 'POST %s HTTP/1.1\\r\\nHost: ok.example.org\\r\\nContent-Length: %d\\r\\nAuthorization: Bearer %s\\r\\n%s\\r\\n'
    c.sendall((head % (path, len(body), os.environ['TOK'], CLOSE)).encode() + body)
    print(drain(c, 100).decode('latin-1').replace('\\r\\n', ' | ').split('\\n')[0], flush=True)
ask('/one'); sys.stdin.readline(); ask('/two', b'x' * 300000); sys.stdin.readline(); ask('/three')
""", stdin=subprocess.PIPE)
    assert " 200 " in process.stdout.readline()
    pid = vault_of(process)
    os.kill(pid, signal.SIGSTOP)
    try:
        process.stdin.write("\n")
        process.stdin.flush()
        said = process.stdout.readline()
        assert re.match("HTTP/1.1 503 Service Unavailable", said) and "X-Cloche-Denied: vault-slow" in said, said
    finally:
        os.kill(pid, signal.SIGCONT)
    out, _ = process.communicate("\n")      # the late answer is for nobody; the vault is of use again
    assert " 200 " in out, out
    assert [r["path"] for r in v.net.requests] == ["/one", "/three"]
    assert '"vault-slow"' in (tmp_path / "report.json").read_text()


def test_a_stopped_vault_does_not_stop_the_run(vaulted):
    v = vaulted.secret()
    process = started(v, "print('here', flush=True); sys.stdin.readline()", stdin=subprocess.PIPE)
    assert process.stdout.readline() == "here\n"
    pid = vault_of(process)
    os.kill(pid, signal.SIGSTOP)
    process.communicate("\n")
    assert process.returncode == 0 and wait_for(lambda: not os.path.exists(f"/proc/{pid}"))


def test_a_vault_that_was_stopped_goes_on(vaulted):
    """As by a terminal or a debugger: the kernel takes up again what it waited in."""
    v = vaulted.secret()
    code = "print('here', flush=True); sys.stdin.readline(); print(urllib.request.urlopen(" \
           f"urllib.request.Request('https://{OK}/r', headers={{'Authorization': 'Bearer ' + os.environ['TOK']}})).status)"
    process = started(v, "import urllib.request\n" + code, stdin=subprocess.PIPE)
    assert process.stdout.readline() == "here\n"
    pid = vault_of(process)
    os.kill(pid, signal.SIGSTOP)
    assert wait_for(lambda: leaks.parents()[pid][1] == "T")
    os.kill(pid, signal.SIGCONT)
    out, _ = process.communicate("\n")
    assert (process.returncode, out) == (0, "200\n"), out
