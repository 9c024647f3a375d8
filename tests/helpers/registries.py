"""Package registries as they are, asked from here: what a sandbox is allowed so that a client inside reaches them."""
import socket

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
