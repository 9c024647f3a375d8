"""Sessions of editors (docs/attach.md): tickets over the API, and OpenSSH's own client by the folder that `cloche attach` makes."""
import os
import shutil

import pytest

from helpers.websocket import BINARY, Closed, WebSocket

# a key of nobody's, in the form that a connection's first message has
PEM = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n"
SSHD = "/usr/sbin/sshd"


def needs(*programs):
    for program in ("ssh", "ssh-keygen", *programs):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    if not os.path.exists(SSHD):
        pytest.skip(f"{SSHD} is not installed")


def ticket(who, box, mode="write", **members):
    made = who.post(f"{box.at}/attach", {"mode": mode, **members})
    assert made.status == 201, made
    return made.json


def opened(who, box, text):
    return who.post(f"{box.at}/attach/open", {"ticket": text})


def session(who, box, mode="write", **members):
    made = opened(who, box, ticket(who, box, mode, **members)["ticket"])
    assert made.status == 201, made
    return made.json


def code(answer):
    return answer.status, answer.json["code"]


def tunnel(daemon, box, one, message, timeout=90):
    """A connection of that session, without OpenSSH's client: what its server says until it ends."""
    ws = WebSocket(daemon.path, f"{box.at}/attach/ws", timeout, headers=[f"Authorization: Bearer {one['token']}"])
    assert ws.status == 101, ws.head
    ws.say(message)
    out = b""
    try:
        while True:
            kind, data = ws.hear()
            out += data[1:] if kind == BINARY and data[:1] == b"\1" else b""
    except Closed:
        ws.close()
    return out


class Editor:
    """A session as a person has it: `cloche attach`, then OpenSSH's programs."""

    def __init__(self, cloche, daemon, box, *flags, env=None):
        self.cloche = cloche
        self.env = {"CLOCHE_SOCKET": str(daemon.path), **(env or {})}
        made = cloche("attach", box.id, "--json", *flags, env=self.env)
        assert made.ok, made
        self.said = made.json
        self.host = self.said["host"]

    def run(self, program, *words, **how):
        return self.cloche.run([program, "-F", self.said["config"], *words], env=self.env, **how)

    def ssh(self, *words, **how):
        return self.run("ssh", "-T", *words[:-1], self.host, words[-1], **how)

    def sftp(self, *lines, check=True):
        """What it says; a line that begins with "-" may fail."""
        done = self.run("sftp", "-q", "-b", "-", self.host, stdin="".join(f"{line}\n" for line in lines).encode())
        assert done.ok or not check, done
        return done


def events(daemon, kind):
    return [e["detail"] for e in daemon.get("/v1/events?limit=1000").json["events"] if e["type"] == kind]
