"""cloche image pull: images from registries; what they send is compared with what was asked for."""
import json
import os
import secrets
import signal
import time
from pathlib import Path

import pytest

from helpers import images, requirement
from helpers.images import entry, layer, store
from helpers.registry import OCI_INDEX, OCI_MANIFEST, RealRegistry, Registry, certificate
from helpers.runner import wait_for

pytestmark = requirement("R27", "R41")

LAYERS = [layer(entry("a", b"one")), layer(entry("b", secrets.token_bytes(300_000)))]


def media(one, kind):
    return {**one, "mediaType": kind}


def made(tmp_path, layers=None, **said):
    """A layout, and its manifest."""
    out = images.Layout(tmp_path / "layout")
    cfg = images.config(layers or LAYERS, **said)
    listed = [media(out.blob(one), "application/vnd.oci.image.layer.v1.tar") for one in layers or LAYERS]
    manifest = out.blob({"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": media(out.blob(cfg), "application/vnd.oci.image.config.v1+json"),
                         "layers": listed}, OCI_MANIFEST)
    return out, manifest, listed


def pull(cloche, name, *flags):
    result = cloche("image", "pull", name, *flags, "--json")
    assert result.ok, result
    return json.loads(result.out)


def refused(cloche, name, code, *flags):
    result = cloche("image", "pull", name, *flags)
    assert result.code == 125 and f"[{code}]" in result.err, result
    assert not os.listdir(store(cloche) / "trees") and not os.listdir(store(cloche) / "tmp"), result
    return result


def docker_login(cloche, host):
    (Path(cloche.home) / ".docker").mkdir(exist_ok=True)
    (Path(cloche.home) / ".docker" / "config.json").write_text(json.dumps({"auths": {host: {"auth": "dXNlcjpzZWNyZXQ="}}}))


@pytest.mark.skipif(RealRegistry.PROGRAM is None, reason="docker-registry is not installed: tools/deps check")
def test_a_real_registry(cloche, tmp_path):
    layout, manifest, _ = made(tmp_path, Cmd=["x"])
    foreign = layout.blob({"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": media(layout.blob(images.config(LAYERS, architecture="s390x")),
                           "application/vnd.oci.image.config.v1+json"), "layers": []}, OCI_MANIFEST)
    index = layout.blob({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [
        {**foreign, "platform": {"os": "linux", "architecture": "s390x"}},
        {**manifest, "platform": {"os": "linux", "architecture": images.config([])["architecture"]}}]}, OCI_INDEX)
    with RealRegistry(tmp_path) as registry:
        registry.push("team/tool", layout, {"1": manifest, "multi": index}, [manifest, foreign])
        said = pull(cloche, f"{registry.host}/team/tool:1")
        assert said["name"] == f"{registry.host}/team/tool:1" and said["manifest"] == manifest["digest"] and said["cmd"] == ["x"], said
        several = pull(cloche, f"{registry.host}/team/tool:multi")
        assert several["id"] == said["id"] and several["index"] == index["digest"], several
        pinned = pull(cloche, f"{registry.host}/team/tool@{index['digest']}")
        assert pinned["id"] == said["id"]
        shown = json.loads(cloche("image", "inspect", f"{registry.host}/team/tool@{manifest['digest']}", "--json").out)
        assert (Path(shown["path"]) / "a").read_bytes() == b"one"
        assert os.listdir(store(cloche) / "partial") == [] and os.listdir(store(cloche) / "tmp") == []
        result = cloche("image", "pull", f"{registry.host}/team/tool:none")
        assert result.code == 125 and "[image.unknown]" in result.err, result


@pytest.mark.parametrize("auth", ["basic", "bearer"])
def test_logins_of_dockers_file(cloche, tmp_path, auth):
    layout, manifest, _ = made(tmp_path)
    with Registry(layout, {"x:1": manifest}, auth=auth) as registry:
        refused(cloche, f"{registry.host}/x:1", "image.login")
        docker_login(cloche, registry.host)
        assert pull(cloche, f"{registry.host}/x:1")["name"] == f"{registry.host}/x:1"
        # the login is for the registry; a token only for what it was given for
        with Registry(layout, {}) as elsewhere:
            registry.redirect = f"http://{elsewhere.host}"
            assert cloche("image", "rm", f"{registry.host}/x:1").ok
            pull(cloche, f"{registry.host}/x:1")
            assert elsewhere.asked and not any("Authorization" in headers for _, headers in elsewhere.asked), elsewhere.asked


@pytest.mark.parametrize("realm", ["http://example.invalid/token", "http://127.0.0.1@example.invalid/token", "ftp://127.0.0.1/token", "x"])
def test_where_a_login_goes_to(cloche, tmp_path, realm):
    """Not by plain HTTP to another host, whatever the registry asks for."""
    layout, manifest, _ = made(tmp_path)
    with Registry(layout, {"x:1": manifest}, auth="bearer") as registry:
        docker_login(cloche, registry.host)
        send = registry.send
        registry.send = lambda to, status, body=b"", **headers: send(to, status, body, **{
            name: f'Bearer realm="{realm}"' if name == "WWW_Authenticate" else value for name, value in headers.items()})
        result = refused(cloche, f"{registry.host}/x:1", "image.login")
        assert "neither HTTPS nor this machine" in result.err, result


def test_tls(cloche, tmp_path):
    layout, manifest, _ = made(tmp_path)
    pair = certificate(tmp_path)
    with Registry(layout, {"x:1": manifest}, tls=pair) as registry:
        result = refused(cloche, f"{registry.host}/x:1", "image.registry")
        assert "not trusted" in result.err, result
        assert all(path == "/v2/" for path, _ in registry.asked), registry.asked
        assert pull(cloche, f"{registry.host}/x:1", "--ca", str(pair[0]))["layers"]
    refused_ca = cloche("image", "pull", "x", "--ca", "/nowhere")
    assert refused_ca.code == 125 and "[image.ca]" in refused_ca.err, refused_ca


def test_a_tree_that_is_there_is_not_fetched_again(cloche, tmp_path):
    layout, manifest, layers = made(tmp_path)
    with Registry(layout, {"x:1": manifest, "y:1": manifest}) as registry:
        pull(cloche, f"{registry.host}/x:1")
        registry.asked.clear()
        assert pull(cloche, f"{registry.host}/y:1")["bytes"] > 300_000
        assert not [path for path, _ in registry.asked if path.endswith(layers[1]["digest"])], registry.asked


def test_broken_connections_are_taken_up(cloche, tmp_path):
    layout, manifest, layers = made(tmp_path)
    big = layers[1]["digest"]
    with Registry(layout, {"x:1": manifest}) as registry:
        registry.cuts[big] = [100_000, 100_000]
        assert pull(cloche, f"{registry.host}/x:1")["layers"]
        ranges = [headers.get("Range") for path, headers in registry.asked if path.endswith(big)]
        assert ranges[0] is None and len(ranges) == 3 and ranges[1] != ranges[2], ranges


def test_what_was_fetched_is_there_for_the_next_try(cloche, tmp_path):
    layout, manifest, layers = made(tmp_path)
    big = layers[1]["digest"]
    with Registry(layout, {"x:1": manifest}) as registry:
        registry.cuts[big] = [50_000] + [0] * 20
        refused(cloche, f"{registry.host}/x:1", "image.registry")
        part = store(cloche) / "partial" / "blobs" / "sha256" / (big[7:] + ".part")
        had = part.stat().st_size
        assert 0 < had <= 50_000
        registry.cuts.clear()
        registry.asked.clear()
        assert pull(cloche, f"{registry.host}/x:1")["layers"]
        assert [headers.get("Range") for path, headers in registry.asked if path.endswith(big)] == [f"bytes={had}-"], registry.asked
        assert os.listdir(store(cloche) / "partial") == []


def test_a_killed_pull_leaves_nothing_half_done(cloche, tmp_path):
    layout, manifest, _ = made(tmp_path)
    with Registry(layout, {"x:1": manifest}) as registry:
        gate, blob = [], registry.blob

        def slow(to, ref, data):
            gate.append(ref)
            if len(gate) == 4:
                time.sleep(60)
            blob(to, ref, data)
        registry.blob = slow
        process = cloche.popen("image", "pull", f"{registry.host}/x:1")
        wait_for(lambda: len(gate) >= 4)
        process.send_signal(signal.SIGKILL)
        process.wait()
        registry.blob = blob
        assert json.loads(cloche("image", "ls", "--json").out)["images"] == []
        assert cloche("image", "prune").ok and os.listdir(store(cloche) / "tmp") == [] and os.listdir(store(cloche) / "partial") == []
        assert pull(cloche, f"{registry.host}/x:1")["layers"]


@pytest.mark.parametrize("which", ["manifest", "config", "layer", "pinned"])
def test_a_registry_that_lies(cloche, tmp_path, which):
    layout, manifest, layers = made(tmp_path)
    other = layout.blob({"schemaVersion": 2, "config": layout.blob(images.config(LAYERS[:1])), "layers": layers[:1]})
    blobs = layout.path / "blobs" / "sha256"
    cfg = json.loads((blobs / manifest["digest"][7:]).read_text())["config"]["digest"]
    with Registry(layout, {"x:1": manifest}) as registry:
        name = f"{registry.host}/x:1"
        if which == "manifest":
            name += "@" + manifest["digest"]
            registry.change[manifest["digest"]] = (blobs / other["digest"][7:]).read_bytes()
        elif which == "config":
            registry.change[cfg] = (blobs / cfg[7:]).read_bytes().replace(b"linux", b"Linux")
        elif which == "layer":
            registry.change[layers[0]["digest"]] = layer(entry("a", b"two"))
        else:
            name += "@sha256:" + "0" * 64
        refused(cloche, name, "image.unknown" if which == "pinned" else "image.digest")


def test_too_much(cloche, tmp_path):
    layout, manifest, layers = made(tmp_path)
    with Registry(layout, {"x:1": manifest}) as registry:
        result = refused(cloche, f"{registry.host}/x:1", "image.limit", "--max-size", "100k")
        assert not [path for path, _ in registry.asked if path.endswith(layers[1]["digest"])], result
        registry.change[layers[0]["digest"]] = LAYERS[0] + bytes(1 << 20)
        refused(cloche, f"{registry.host}/x:1", "image.limit")
        registry.change.clear()
        registry.change[manifest["digest"]] = b" " * (5 << 20)
        refused(cloche, f"{registry.host}/x:1", "image.limit")


def test_plain_http_is_for_the_loopback_alone(cloche, tmp_path):
    """Another host is spoken to by HTTPS or not at all, and nobody is led from there to plain HTTP."""
    layout, manifest, _ = made(tmp_path)
    with Registry(layout, {"x:1": manifest}) as registry:
        cloche.env["no_proxy"] = cloche.env["NO_PROXY"] = "*"
        result = refused(cloche, f"127.0.0.1.nip.invalid:{registry.port}/x:1", "image.registry")
        assert "https://" in result.err and not registry.asked, result
        pair = certificate(tmp_path)
        with Registry(layout, {"x:1": manifest}, tls=pair) as secure:
            secure.redirect = f"ftp://{registry.host}"
            refused(cloche, f"{secure.host}/x:1", "image.registry", "--ca", str(pair[0]))
            assert not registry.asked


def test_a_login_of_this_machines_goes_to_no_proxy(cloche, tmp_path):
    """What libcurl takes for the loopback's proxy would have the login in plain text, and another machine's loopback."""
    layout, manifest, _ = made(tmp_path)
    with Registry(layout, {"x:1": manifest}, auth="basic") as registry, Registry(layout, {}) as proxy:
        docker_login(cloche, registry.host)
        for name in "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY":
            cloche.env[name] = f"http://{proxy.host}"
        cloche.env["no_proxy"] = cloche.env["NO_PROXY"] = "example.invalid"
        assert pull(cloche, f"{registry.host}/x:1")["layers"]
        assert not proxy.asked


def test_who_a_registry_leads_to_asks_for_no_login(cloche, tmp_path):
    layout, manifest, _ = made(tmp_path)
    with Registry(layout, {"x:1": manifest}) as registry, Registry(layout, {}, auth="bearer") as elsewhere:
        docker_login(cloche, registry.host)
        registry.redirect = f"http://{elsewhere.host}"
        refused(cloche, f"{registry.host}/x:1", "image.login")
        assert elsewhere.asked and not any("Authorization" in headers for _, headers in elsewhere.asked), elsewhere.asked


def test_a_registry_that_takes_nothing_up(cloche, tmp_path):
    """It answers with all of the layer, whatever was asked for."""
    layout, manifest, layers = made(tmp_path)
    big = layers[1]["digest"]
    with Registry(layout, {"x:1": manifest}) as registry:
        registry.cuts[big] = [100_000]
        blob = registry.blob

        def whole(to, ref, data):
            del to.headers["Range"]
            blob(to, ref, data)
        registry.blob = whole
        assert pull(cloche, f"{registry.host}/x:1")["layers"]


@pytest.mark.parametrize("words, code", [(["pull"], "image.misused"), (["pull", "X"], "image.name"), (["pull", "a", "b"], "image.misused"),
                                         (["pull", "sha256:" + "0" * 64], "image.name"), (["pull", "127.0.0.1:1/x"], "image.registry")])
def test_wrong_usage(cloche, words, code):
    result = cloche("image", *words)
    assert result.code == 125 and f"[{code}]" in result.err, result
