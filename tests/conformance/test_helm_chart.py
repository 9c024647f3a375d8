"""deploy/helm/cloche as helm renders it: what a cluster would be given. helm is a Go program, built once into the tests' cache."""
import json
import os
import shutil
import subprocess

import pytest
import yaml

from helpers import kept, places, requirement
from helpers.hook import certificate_of

pytestmark = requirement("R90")
CHART = places.REPO / "deploy/helm/cloche"
HELM = "helm.sh/helm/v3/cmd/helm@v3.16.4"
NAMED = ("--set", "tls.secretName=cloche-tls")
KUBERNETES = ("--kube-version", "1.33")


@pytest.fixture(scope="module")
def helm(tmp_path_factory):
    """helm(*words) → what it did."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin:/usr/bin")
    if go is None:
        pytest.skip("no Go compiler is installed: helm is built from its source")
    folder = kept.root() / "helm-3.16.4"
    with kept.once(folder) as fill:
        if fill:
            subprocess.run([go, "install", HELM], check=True, capture_output=True, timeout=900,
                           env={**os.environ, "GOBIN": str(folder), "CGO_ENABLED": "0", "GOFLAGS": ""})
    home = tmp_path_factory.mktemp("helm")
    return lambda *words: subprocess.run([folder / "helm", *words], capture_output=True, text=True, check=False, timeout=60,
                                         env={"PATH": "/usr/bin:/bin", "HOME": str(home)})


@pytest.fixture(scope="module")
def render(helm):
    def objects(*words):
        said = helm("template", "demo", CHART, *KUBERNETES, *NAMED, *words)
        assert said.returncode == 0, said
        return {made["kind"]: made for made in yaml.safe_load_all(said.stdout) if made}
    return objects


def test_it_is_clean(helm):
    said = helm("lint", "--strict", CHART, *NAMED, *KUBERNETES)
    assert said.returncode == 0, said


def test_without_a_certificate_there_is_no_chart(helm):
    said = helm("template", "demo", CHART, *KUBERNETES)
    assert said.returncode != 0 and "tls.secretName" in said.stderr, said


def test_the_pod_is_the_one_that_the_image_is_tested_with(render):
    """An ordinary user without capabilities, filter and covered /proc: tests/conformance/test_service_image.py starts it that way."""
    pod = render()["StatefulSet"]["spec"]["template"]["spec"]
    main = pod["containers"][0]
    assert main["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
                                       "seccompProfile": {"type": "Unconfined"}, "appArmorProfile": {"type": "Unconfined"},
                                       "procMount": "Unmasked"}
    assert pod["securityContext"]["runAsUser"] == 10001 and pod["securityContext"]["runAsNonRoot"] and pod["hostUsers"] is False
    assert pod["automountServiceAccountToken"] is False
    places_of = {mount["mountPath"] for mount in main["volumeMounts"]}
    assert places_of == {"/var/lib/cloche-serve", "/etc/cloche/serve.yaml", "/etc/cloche/tls", "/tmp"}


def test_its_settings_are_valid(render, cloche, tmp_path):
    """`cloche config check` takes what the chart writes, with the user's keys over it, once the certificate is somewhere."""
    text = render("--set", "settings.max-sandboxes=7", "--set", "allowedHosts={agents.example.org}")["ConfigMap"]["data"]["serve.yaml"]
    said = yaml.safe_load(text)
    assert said["max-sandboxes"] == 7 and "agents.example.org" in said["allowed-hosts"] and "demo.default.svc" in said["allowed-hosts"], said
    cert, key = certificate_of(tmp_path, "DNS:localhost")
    said.update({"tls-cert": str(cert), "tls-key": str(key), "listen": [f"unix:{tmp_path}/api.sock", "tcp:0.0.0.0:7700"]})
    (tmp_path / "serve.yaml").write_text(json.dumps(said), encoding="utf-8")
    assert cloche("config", "check", tmp_path / "serve.yaml").ok


def test_other_settings_are_another_pod(render):
    one, other = (render(*words)["StatefulSet"]["spec"]["template"]["metadata"]["annotations"] for words in ((), ("--set", "settings.max-sandboxes=8")))
    assert one != other
