"""Runs with secrets, on the near host of an Internet (internet.py): what their servers saw, and what the sandbox did."""
import json
import os
import subprocess

from helpers.internet import BUNDLE, NO_PROXY_VARIABLES, PRELUDE

OK = "ok.example.org"
VALUE = "tk_Live-9f8E7d6C5b4A39281706zQ"


class Vaulted:
    """Runs with secrets: v.secret("TOK", ...), then v.curl(...), v.python(...)."""

    def __init__(self, online, store):
        self.online, self.net = online, online.net
        self.env = {**os.environ, "XDG_DATA_HOME": str(store), "CT_VALUE": VALUE}
        self.flags = ["--extra-ca", str(self.net.ca)]

    def secret(self, name="TOK", *words, value=VALUE, host=OK, place="bearer", env=None):
        places = [w for p in ([place] if isinstance(place, str) else place) for w in ("--place", p)]
        return self.keep(name, *places, "--env", env or name, *words, value=value, host=host)

    def adds(self, name="TOK", *words, add="Authorization: Bearer {}", value=VALUE, host=OK):
        """A secret that nothing inside has to know of."""
        return self.keep(name, "--add", add, *words, value=value, host=host)

    def keep(self, name, *words, value, host):
        done = self.online.bare("secret", "set", name, "--host", host, "--from-env", "CT_VALUE", *words,
                                env={**self.env, "CT_VALUE": value})
        assert done.ok, done
        self.flags += ["--secret", name]
        return self

    def run(self, argv, allow=(OK,), flags=(), **kw):
        return self.online.run(argv, allow, [*self.flags, *flags], env=self.env, **kw)

    def sh(self, script, transparent=False, **kw):
        straight = ["/usr/bin/env", *NO_PROXY_VARIABLES] if transparent else []
        return self.run([*straight, "/bin/sh", "-c", script], **kw)

    def python(self, code, **kw):
        return self.run(["/usr/bin/python3", "-I", "-c", PRELUDE.replace("/mnt/ca.pem", BUNDLE) + code], **kw)

    def popen(self, code, allow=(OK,)):
        """Python that is talked to on its stdin."""
        code = PRELUDE.replace("/mnt/ca.pem", BUNDLE) + code
        return self.online.popen(["/usr/bin/python3", "-I", "-c", code], allow, self.flags, env=self.env,
                                 stdin=subprocess.PIPE)


def only_request(net):
    assert len(net.requests) == 1, net.requests
    return net.requests[0]


def fields(request, name):
    return [v for k, v in request["headers"] if k == name]


def denied(tmp_path):
    return json.loads((tmp_path / "report.json").read_text())["denied"]
