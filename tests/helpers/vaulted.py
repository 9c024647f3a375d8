"""Runs with secrets, and what their tests ask of the far end."""
import json
import os

from helpers.internet import NO_PROXY_VARIABLES, PRELUDE

OK = "ok.example.org"
VALUE = "tk_Live-9f8E7d6C5b4A39281706zQ"
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"


class Vaulted:
    """Runs with secrets: v.secret("TOK", ...), then v.curl(...), v.python(...)."""

    def __init__(self, online, store):
        self.online, self.net = online, online.net
        self.env = {**os.environ, "XDG_DATA_HOME": str(store), "CT_VALUE": VALUE}
        self.flags = ["--extra-ca", str(self.net.ca)]

    def secret(self, name="TOK", *words, value=VALUE, host=OK, place="bearer", env=None):
        variable, env = env or name, {**self.env, "CT_VALUE": value}
        places = [w for p in ([place] if isinstance(place, str) else place) for w in ("--place", p)]
        done = self.online.bare("secret", "set", name, "--host", host, *places, "--env", variable, "--from-env", "CT_VALUE",
                                *words, env=env)
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


def only_request(net):
    assert len(net.requests) == 1, net.requests
    return net.requests[0]


def fields(request, name):
    return [v for k, v in request["headers"] if k == name]


def denied(tmp_path):
    return json.loads((tmp_path / "report.json").read_text())["denied"]
