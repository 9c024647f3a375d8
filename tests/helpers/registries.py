"""Package registries as they are, asked from here: what a sandbox is allowed so that a client inside reaches them. And small
ones of the tests' own internet."""
import base64
import hashlib
import io
import json
import socket
import tarfile
import zipfile

import pytest

PATIENCE = 600         # clients start slowly on a busy machine
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
# What this host's clients need to trust, in the sandbox too: some networks have a CA of their own.
CERTIFICATES = {"PIP_CERT": BUNDLE, "NODE_EXTRA_CA_CERTS": BUNDLE}


def allowed(cloche, *flags, **kw):
    """{host: origin} of what is open, and the whole policy."""
    result = cloche("policy", "show", "--json", *flags, timeout=PATIENCE, **kw)
    assert result.ok, result
    return {row["value"]: row["from"]["name"] for row in result.json["network"]["allow"]}, result


def addresses(cloche, registry):
    """Those of the registry's hosts, or skip. Some hosts resolve it to an address that a name does not open (a mirror in a
    private or special range): a rule that is that address does."""
    hosts, shown = allowed(cloche, "--allow-registry", registry)
    found = set()
    for host in hosts:
        name, port = host.rsplit(":", 1)
        try:
            found |= {a[4][0] for a in socket.getaddrinfo(name, int(port), type=socket.SOCK_STREAM)}
            socket.create_connection((name, int(port)), 10).close()
        except OSError as e:
            pytest.skip(f"the registry's host does not answer from here: {e}")
    if "where its files lie" in shown.err:
        pytest.skip(f"the registry does not answer from here: {shown.err}")
    return sorted(f"[{a}]" if ":" in a else a for a in found)


# --- own ones ---------------------------------------------------------------------------------------------------------

INDEX, FILES = "ok.example.org:8080", "second.example.org:8080"


def wheel(name):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as z:
        info = f"{name}-1.0.dist-info"
        z.writestr(f"{name}.py", "answer = 42\n")
        z.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        z.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(f"{info}/RECORD", "")
    return data.getvalue()


def archive(name, **more):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as t:
        for file, text in (("package.json", json.dumps({"name": name, "version": "1.0.0", "main": "index.js", **more})),
                           ("index.js", "module.exports = 42\n")):
            entry = tarfile.TarInfo(f"package/{file}")
            entry.size, entry.mode = len(text), 0o644
            t.addfile(entry, io.BytesIO(text.encode()))
    return data.getvalue()


def publish_wheel(net, name):
    """An index at one host, whose files lie at another. The archive's hash, as pip writes it."""
    file, body = f"/files/{name}-1.0-py3-none-any.whl", wheel(name)
    net.pages[FILES, file] = ("application/octet-stream", body)
    net.pages[INDEX, f"/simple/{name}/"] = (
        "text/html", f'<html><body><a href="http://{FILES}{file}">{file[7:]}</a></body></html>'.encode())
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def publish_npm(net, name, **more):
    """The same of npm."""
    file, body = f"/files/{name}-1.0.0.tgz", archive(name, **more)
    found = f"sha512-{base64.b64encode(hashlib.sha512(body).digest()).decode()}"
    net.pages[FILES, file] = ("application/octet-stream", body)
    version = {"name": name, "version": "1.0.0", "dist": {
        "tarball": f"http://{FILES}{file}", "shasum": hashlib.sha1(body).hexdigest(), "integrity": found}, **more}
    if "scripts" in more:
        version["hasInstallScript"] = True
    net.pages[INDEX, f"/npm/{name}"] = ("application/json", json.dumps(
        {"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}).encode())
    return found
