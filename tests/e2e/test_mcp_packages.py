"""code_install_package with the real pip and npm, from the registries that this host's clients use."""
import os

import pytest

from helpers import requirement
from helpers.daemon import Daemon
from helpers.mcp import Client
from helpers.registries import CERTIFICATES, addresses

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
        assert not none["success"] and none["error"] == "InstallFailed", none
        assert box.show()["state"] == "ready"
    finally:
        assert daemon.stop() == 0, daemon.log
