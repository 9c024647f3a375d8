"""The image of the service (deploy/image/Dockerfile, target serve) in a real dockerd, started with what the Helm chart's pod has: an
ordinary user, no capability, no new privilege, a read-only root, namespaces and /proc left alone. Clients come over TLS.

Needs root and dockerd (Debian's docker.io); skips with its reason otherwise. What a cluster adds to it cannot be tried here.
"""
import json
import os
import re
import shutil
import time

import pytest

from helpers import requirement
from helpers.dockerd import started
from helpers.hook import certificate_of

pytestmark = [requirement("R90"), pytest.mark.root]
UID, GID = 10001, 10001
POD = ["--user", f"{UID}:{GID}", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--read-only", "--tmpfs", "/tmp",
       "--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined", "--security-opt", "systempaths=unconfined"]
LOOK = "id -u; grep -E 'CapEff|NoNewPrivs' /proc/self/status; ls /var/lib/cloche-serve/state /etc/cloche/tls 2>&1; ls /proc | grep -c '^[0-9]'"


@pytest.fixture(scope="module")
def dockerd(binary, tmp_path_factory):
    with started() as made:
        made.programs = binary.parent.parent
        made.make_image([binary, *made.programs.glob("*/cloche-*")])
        made.make_ours(tmp_path_factory.mktemp("image") / "context", "serve", "cloche")
        yield made


class Service:
    """A container of the image, whose daemon answers its owner."""

    def __init__(self, dockerd, volume, *words):
        self.dockerd = dockerd
        made = dockerd.docker("run", "-d", "--network", "none", *POD, "-v", f"{volume}:/var/lib/cloche-serve", *words, "cloche")
        assert made.returncode == 0, made
        self.id = made.stdout.strip()
        end = time.monotonic() + 60
        while (asked := self.cloche("ps", "--json")).returncode != 0:
            assert time.monotonic() < end, (asked, dockerd.docker("logs", self.id))
            time.sleep(0.2)

    def cloche(self, *words):
        return self.dockerd.docker("exec", self.id, "cloche", *words)

    def asked(self, command, method, path, body=None, *, token=None, scheme="https", name="localhost", ca=None):
        """(status, answer) of curl in the container's network."""
        pid = self.dockerd.docker("inspect", "-f", "{{.State.Pid}}", self.id).stdout.strip()
        said = command(["nsenter", "-t", pid, "-n", "curl", "-s", "-m", "60", "-X", method, "-w", "\n%{http_code}", "--resolve", f"{name}:7700:127.0.0.1",
                        *(["--cacert", ca] if ca else []), *(["-H", f"Authorization: Bearer {token}"] if token else []),
                        *(["-d", json.dumps(body)] if body is not None else []), f"{scheme}://{name}:7700{path}"], check=False)
        text, _, status = said.out.rpartition("\n")
        return int(status), json.loads(text) if text else None

    def end(self):
        """The exit code of the daemon."""
        self.dockerd.docker("stop", self.id)
        code = self.dockerd.docker("inspect", "-f", "{{.State.ExitCode}}", self.id).stdout.strip()
        self.dockerd.docker("rm", "-f", self.id)
        return code


@pytest.fixture
def service(dockerd, tmp_path):
    """service(*docker's words) → one that runs, on the test's volume; who still runs is ended after the test."""
    volume, made = tmp_path / "state", []
    volume.mkdir()
    os.chown(volume, 0, GID)
    volume.chmod(0o2775)            # as a pod's fsGroup leaves it
    tmp_path.chmod(0o755)

    def start(*words):
        made.append(Service(dockerd, volume, *words))
        return made[-1]
    yield start
    for each in made:
        each.end()


@pytest.fixture
def over_tls(service, tmp_path):
    """The daemon with the settings that the chart writes, and its certificate: (service, certificate)."""
    folder = tmp_path / "tls"
    folder.mkdir()
    cert, key = certificate_of(folder, "DNS:localhost,DNS:cloche")
    shutil.chown(key, 0, GID)
    key.chmod(0o440)                # as a secret's with fsGroup
    settings = tmp_path / "serve.yaml"
    settings.write_text("listen: ['unix:/var/lib/cloche-serve/state/api.sock', 'tcp:0.0.0.0:7700']\nallowed-hosts: [cloche]\n"
                        f"tls-cert: /etc/cloche/tls/{cert.name}\ntls-key: /etc/cloche/tls/{key.name}\n", encoding="utf-8")
    settings.chmod(0o644)
    return service("-v", f"{folder}:/etc/cloche/tls:ro", "-v", f"{settings}:/etc/cloche/serve.yaml:ro"), cert


def test_code_runs_behind_the_whole_wall(over_tls, command):
    """Mode standard without a weaker form; nothing inside is root, has a capability, or sees the service's state and keys."""
    service, ca = over_tls
    token = json.loads(service.cloche("token", "create", "--role", "operator", "--json").stdout)["token"]
    status, made = service.asked(command, "POST", "/v1/sandboxes", {"name": "demo"}, token=token, ca=ca)
    assert status == 201 and made["facts"]["mode"] == "standard" and not re.search("weaker|form", str(made["facts"]["warnings"])), made
    status, said = service.asked(command, "POST", "/v1/sandboxes/demo/exec", {"command": ["/bin/sh", "-c", LOOK]}, token=token, ca=ca)
    assert status == 200 and said["exit_code"] == 0, said
    lines = said["stdout"].splitlines()
    assert lines[0] != "0" and "CapEff:\t0000000000000000" in lines and "NoNewPrivs:\t1" in lines, said
    assert "api.sock" not in said["stdout"] and ".key" not in said["stdout"] and int(lines[-1]) < 6, said


def test_the_network_has_tls_and_credentials(over_tls, command):
    """The chart's probes ask /ready and /health as localhost; whoever has no token, another name or no TLS gets nothing."""
    service, ca = over_tls
    for path in ("/ready", "/health"):
        assert service.asked(command, "GET", path, ca=ca)[0] == 200
    assert service.asked(command, "GET", "/v1/sandboxes", ca=ca, name="cloche")[0] == 401
    assert service.asked(command, "GET", "/v1/sandboxes", scheme="http")[0] == 0
    token = json.loads(service.cloche("token", "create", "--role", "operator", "--json").stdout)["token"]
    assert service.asked(command, "GET", "/v1/sandboxes", token=token, ca=ca, name="cloche")[0] == 200


def test_what_was_done_outlives_the_container(service):
    """The state is the volume: the next container of it knows the tokens of the first."""
    first = service()
    assert first.cloche("token", "create", "--role", "agent", "--name", "kept", "--json").returncode == 0
    assert first.end() == "0"
    assert "kept" in service().cloche("token", "ls").stdout
