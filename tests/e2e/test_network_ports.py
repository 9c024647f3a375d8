"""Plain TCP to a port that a rule names: programs that know no proxy connect to it by name."""
import os
import subprocess

import pytest

from helpers import requirement
from helpers.internet import ECHO, NO_PROXY_VARIABLES, OTHER4, SITE4, SITE6
from helpers.runner import wait_for

pytestmark = [requirement("R14"), pytest.mark.root]
RULE = f"ok.example.org:{ECHO}"
TRY = """
def reach(host, port, data=b'\\1ping'):
    try:
        with dial(host, port) as s:
            s.sendall(data); s.shutdown(1); return drain(s)
    except OSError as e: return errno.errorcode.get(e.errno, type(e).__name__).encode()
"""


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
def test_a_name_at_its_port(online, family):
    code = TRY + f"""
where = socket.getaddrinfo('ok.example.org', {ECHO}, socket.{family})[0][4][0]
data = os.urandom(1 << 20)
print(reach(where, {ECHO}), reach(where, {ECHO}, b'\\1' + data) == b'\\1' + data)
"""
    result = online.python(code, allow=[RULE])
    assert result.out == "b'\\x01ping' True\n", result
    assert online.net.reached() == {(6, SITE4, ECHO)}


def test_a_server_that_speaks_first(online):
    result = online.python("s = dial('ok.example.org', 22); print(until(s, b'\\n')); s.sendall(b'SSH-2.0-me\\r\\n')",
                           allow=["ok.example.org:22"])
    assert "SSH-2.0-far" in result.out, result


@requirement("R02")
def test_many_ports_and_their_names(online):
    """A name is open at its own ports only, by whichever listener the connection comes."""
    code = TRY + f"""
for host in ('ok', 'other', 'both'):
    for port in ({ECHO}, 22, 8080): print(host, port, reach(host + '.example.org', port)[:20])
"""
    result = online.python(code, allow=[RULE, "other.example.org:22", "both.example.org"], flags=["--json"])
    lines = dict((tuple(line.split()[:2]), line.split(" ", 2)[2]) for line in result.json["stdout"].splitlines())
    assert lines.pop(("ok", str(ECHO))) == "b'\\x01ping'" and "SSH" in lines.pop(("other", "22")), result
    assert all(v in ("b''", "b'ECONNREFUSED'", "b'<ConnectionResetError>'") for v in lines.values()), result
    assert lines["ok", "8080"] == "b'ECONNREFUSED'", "no rule names that port at all"
    assert online.net.reached() == {(6, SITE4, ECHO), (6, OTHER4, 22)}
    assert f"other.example.org:{ECHO}" in {d["target"] for d in result.json["denied"]}, result.json["denied"]


def test_addresses(online):
    code = TRY + f"for a in ({SITE4!r}, {SITE6!r}, {OTHER4!r}, '10.0.0.5', '172.16.0.9'): print(reach(a, {ECHO}))"
    result = online.python(code, allow=[f"{SITE4}:{ECHO}", f"[{SITE6}]:{ECHO}", f"10.0.0.5:{ECHO}"])
    opened = [line == "b'\\x01ping'" for line in result.out.splitlines()]
    assert opened == [True, True, False, True, False], result


def test_wildcards_and_deny(online):
    code = TRY + f"for h in ('a', 'b', 'deep.a'): print(reach(h + '.example.org', {ECHO}))"
    result = online.python(code, allow=[f"*.example.org:{ECHO}"], flags=["--deny-domain", "b.example.org"])
    assert [line == "b'\\x01ping'" for line in result.out.splitlines()] == [True, False, False], result


@pytest.mark.parametrize("scheme,port", [("http", 8080), ("https", 8443)])
def test_the_web_at_another_port(online, scheme, port):
    result = online.curl(f"{scheme}://ok.example.org:{port}/x", allow=[f"ok.example.org:{port}"], transparent=True)
    assert result.out == f"hello ok.example.org:{port} /x\n", result


def test_a_rule_about_paths_at_another_port(online, project):
    path = project / "rules.json"
    path.write_text('{"network": {"allow": [{"host": "ok.example.org", "port": 8080, "path": "/v1/**"}]}}', "utf-8")
    result = online.curl("-w", "%{http_code}\n", "-o", "/dev/null", "http://ok.example.org:8080/v1/x", "-o",
                         "/dev/null", "http://ok.example.org:8080/v2", allow=(), flags=["--settings", path],
                         transparent=True)
    assert result.out == "200\n403\n" and [r["path"] for r in online.net.requests] == ["/v1/x"], result


def test_other_loopback_ports_stay_the_sandboxs_own(online):
    code = f"""
for port in ({ECHO}, {ECHO} + 1):
    s = socket.socket()
    try: s.bind(('127.0.0.1', port)); print('own')
    except OSError as e: print(errno.errorcode[e.errno])
try: print(drain(dial('127.0.0.1', {ECHO})))
except OSError as e: print('refused')
"""
    result = online.python(code, allow=[RULE])
    assert result.out.splitlines()[:2] == ["EADDRINUSE", "own"] and not online.net.reached(), result
    assert online.net.host_hits == []


def test_too_many_ports(cloche, online):
    allow = [w for i in range(33) for w in ("--allow-domain", f"ok.example.org:{5000 + i}")]
    result = cloche("policy", "show", *allow)
    assert result.code == 125 and "[policy.network.ports]" in result.err and ":5032" in result.err, result
    result = online.run(["/usr/bin/getent", "hosts", "ok.example.org"], allow=(),
                        flags=allow[:64])
    assert result.ok, result


def test_srt_settings(online, project):
    path = project / "srt.json"
    path.write_text('{"network": {"allowedDomains": ["ok.example.org:%d"], "deniedDomains": []}, "filesystem": '
                    '{"denyRead": [], "allowWrite": ["/tmp"], "denyWrite": []}}' % ECHO, "utf-8")
    code = f"exec 3<>/dev/tcp/ok.example.org/{ECHO}; printf x >&3; head -c 1 <&3"
    result = online.cloche("srt", "--settings", path, "-c", f"/bin/bash -c '{code}'")
    assert result.out == "x", result


# --- real servers -----------------------------------------------------------------------------------------------------

@pytest.fixture
def far(online, command):
    """Start a server in the far namespace."""
    started = []

    def start(*argv, **kw):
        words = ["nsenter", f"--net=/proc/{os.getpid()}/fd/{online.net.far}", "--", *argv]
        started.append(command.start(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **kw))
        return started[-1]
    yield start
    for process in started:
        process.terminate()
        process.wait(30)


def test_redis(online, far, has, command):
    has("redis-server", "redis-cli")
    far("redis-server", "--port", "6379", "--bind", "0.0.0.0", "--save", "", "--protected-mode", "no", "--dir",
        str(online.net.root))
    near = ["nsenter", f"--net=/proc/{os.getpid()}/fd/{online.net.near}", "redis-cli", "-h", SITE4, "ping"]
    wait_for(lambda: command(near, check=False).out == "PONG\n", 120)
    words = ["/usr/bin/env", *NO_PROXY_VARIABLES, "/usr/bin/redis-cli", "-h", "ok.example.org"]
    script = f"{' '.join(words)} set key value && {' '.join(words)} get key"
    result = online.run(["/bin/sh", "-c", script], allow=["ok.example.org:6379"])
    assert result.out == "OK\nvalue\n", result
    result = online.run([*words, "get", "key"], allow=["ok.example.org:6380"])
    assert "value" not in result.out, result


@pytest.fixture
def ssh(online, has, command, tmp_path):
    """sshd behind port 22 of the far host, with a git repository; returns the folder that a client inside needs."""
    has("git", "ssh", "ssh-keygen", "/usr/sbin/sshd")
    server, client = tmp_path / "server", tmp_path / "client"
    server.mkdir(mode=0o700)
    client.mkdir(mode=0o755)
    for key in (server / "host", client / "key"):
        command(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key])
    (client / "known_hosts").write_text(f"ok.example.org {(server / 'host.pub').read_text()}", encoding="ascii")
    (server / "keys").write_text((client / "key.pub").read_text(), encoding="ascii")
    (server / "shadow").write_text("root:*:1:0:99999:7:::\n", encoding="ascii")
    (server / "config").write_text(f"HostKey {server}/host\nAuthorizedKeysFile {server}/keys\nStrictModes no\n"
                                   "UsePAM no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n",
                                   encoding="ascii")
    command(["git", "init", "-q", "--bare", server / "repo.git"])
    daemon = ("mount -t tmpfs none /run && mkdir -m 755 /run/sshd && mount --bind \"$0/shadow\" /etc/shadow && "
              "exec /usr/sbin/sshd -i -f \"$0/config\"")

    def serve(connection):
        connection.settimeout(None)
        subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", daemon, str(server)], check=False,
                       stdin=connection, stdout=connection, stderr=subprocess.DEVNULL, timeout=300)
    online.net.on_ssh = serve
    return server, client


@requirement("R13")
def test_git_over_ssh(online, ssh, command):
    """The server proves who it is by its key, under the name; nothing of ours is in between."""
    server, client = ssh
    how = "ssh -F /dev/null -i /mnt/ssh/key -o IdentitiesOnly=yes -o UserKnownHostsFile=/mnt/ssh/known_hosts -o BatchMode=yes"
    script = (f"cd /tmp && export GIT_SSH_COMMAND='{how}' && url=root@ok.example.org:{server}/repo.git && "
              "git clone -q $url one && cd one && git config user.name t && git config user.email t@example.org && "
              "head -c 1000000 /dev/urandom > big && git add big && git commit -qm first && git push -q origin HEAD:main && "
              "git clone -q -b main $url ../two && cmp big ../two/big && git rev-parse HEAD")
    flags = ["--bind", f"{client}:/mnt/ssh"]
    result = online.run(["/bin/sh", "-c", script], allow=["ok.example.org:22"], flags=flags, timeout=300)
    assert result.ok and command(["git", "-C", server / "repo.git", "rev-parse", "main"]).out == result.out, result
    assert online.net.reached() == {(6, SITE4, 22)}
    online.net.forget()
    result = online.run(["/bin/sh", "-c", script], allow=["ok.example.org"], flags=flags, timeout=300)
    assert not result.ok and "refused" in result.err and not online.net.reached(), result
