"""--allow-registry: the hosts that the installed clients are set up for, and no others; real installs through it."""
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from helpers import crates, requirement
from helpers.registries import CERTIFICATES, FILES, INDEX, PATIENCE, addresses, allowed, archive, publish_npm, publish_wheel, wheel
from helpers.runner import wait_for

pytestmark = requirement("R66")


@pytest.fixture
def has_clients(has):
    has("npm", "node", "pip3")


def kept_names(bare):
    """The names of what is kept, of who has asked."""
    return [p.name for p in (bare.state / "cloche" / "registries").iterdir() if p.suffix != ".lock"]


# --- an own registry --------------------------------------------------------------------------------------------------

@pytest.fixture
def pypi(online, has_clients):
    """An index at one host, whose files lie at another."""
    for name in ("six", "mine"):
        publish_wheel(online.net, name)
    online.cloche.env |= {"PIP_INDEX_URL": f"http://user:hunter2@{INDEX}/simple/", "PIP_TRUSTED_HOST": "ok.example.org",
                          "PIP_NO_CACHE_DIR": "1"}
    return online


@pytest.fixture
def npm(online, has_clients):
    for name in ("is-number", "mine"):
        publish_npm(online.net, name)
    (online.bare.home / ".npmrc").write_text(f"registry=http://{INDEX}/npm/\n", encoding="utf-8")
    return online


@pytest.mark.root
def test_pip_installs_from_a_private_index(pypi):
    hosts, shown = allowed(pypi.cloche, "--allow-registry", "pypi")
    assert hosts == {INDEX: "--allow-registry pypi", FILES: "--allow-registry pypi"}, shown
    assert "hunter2" not in shown.out
    pypi.net.requests.clear()
    code = ("env | grep PIP_; pip3 install --disable-pip-version-check --target /tmp/t "
            "--trusted-host ok.example.org --trusted-host second.example.org mine && "
            "PYTHONPATH=/tmp/t python3 -c 'import mine; print(mine.answer)'")
    result = pypi.run(["/bin/sh", "-c", code], allow=(), flags=["--allow-registry", "pypi", "--timeout", "5m"],
                      timeout=PATIENCE)
    assert result.ok and result.out.endswith("42\n") and "hunter2" not in result.out, result
    assert {r["host"] for r in pypi.net.requests} == {INDEX, FILES}


@pytest.mark.root
def test_npm_installs_from_a_private_registry(npm):
    hosts, shown = allowed(npm.cloche, "--allow-registry", "npm")
    assert set(hosts) == {INDEX, FILES}, shown
    code = "cd /tmp && npm install --no-audit mine && node -p 'require(\"mine\")'"
    result = npm.run(["/bin/sh", "-c", code], allow=(), flags=["--allow-registry", "npm", "--timeout", "5m"],
                     timeout=PATIENCE)
    assert result.ok and result.out.endswith("42\n"), result


@pytest.mark.root
@pytest.mark.parametrize("client", ["pip", "npm"])
def test_certificates_and_trusted_hosts_come_along(online, has_clients, client):
    """An own CA, as the client on the host is set up for it; nothing more is said inside."""
    place = "ok.example.org:8443"
    if client == "pip":
        for name in ("six", "mine"):
            file = f"/files/{name}-1.0-py3-none-any.whl"
            online.net.pages[place, file] = ("application/octet-stream", wheel(name))
            online.net.pages[place, f"/simple/{name}/"] = ("text/html", f'<html><body><a href="{file}">{file[7:]}</a></body></html>'.encode())
        online.cloche.env |= {"PIP_INDEX_URL": f"https://{place}/simple/", "PIP_CERT": str(online.net.ca), "PIP_TRUSTED_HOST": "a.example.org b.example.org",
                              "PIP_NO_CACHE_DIR": "1"}
        code = "env | grep PIP_TRUSTED_HOST; pip3 install --disable-pip-version-check --target /tmp/t mine && PYTHONPATH=/tmp/t python3 -c 'import mine; print(mine.answer)'"
    else:
        for name in ("is-number", "mine"):
            body = archive(name)
            online.net.pages[place, f"/files/{name}-1.0.0.tgz"] = ("application/octet-stream", body)
            version = {"name": name, "version": "1.0.0",
                       "dist": {"tarball": f"https://{place}/files/{name}-1.0.0.tgz", "shasum": hashlib.sha1(body).hexdigest()}}
            online.net.pages[place, f"/npm/{name}"] = ("application/json", json.dumps(
                {"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}).encode())
        (online.bare.home / ".npmrc").write_text(f"registry=https://{place}/npm/\ncafile={online.net.ca}\n", encoding="utf-8")
        code = "cd /tmp && npm install --no-audit mine && node -p 'require(\"mine\")'"
    flags = ["--allow-registry", "pypi" if client == "pip" else client, "--timeout", "5m"]
    result = online.run(["/bin/sh", "-c", code], allow=(), flags=flags, timeout=PATIENCE)
    assert result.ok and result.out.endswith("42\n"), result
    assert client == "npm" or "PIP_TRUSTED_HOST=a.example.org b.example.org" in result.out, result


@pytest.mark.root
def test_certificates_that_the_sandbox_can_write_are_refused(online, has_clients, project):
    """Else it would say whom its next run trusts, cloche-egress included."""
    (project / "ca.pem").write_bytes(online.net.ca.read_bytes())
    env = {"PIP_INDEX_URL": f"http://{INDEX}/simple/", "PIP_CERT": str(project / "ca.pem")}
    result = online.cloche("policy", "show", "--allow-registry", "pypi", "--workspace", str(project), env=env, timeout=PATIENCE)
    assert result.code == 125 and "[policy.registry.config]" in result.err and "ca.pem" in result.err, result


@pytest.mark.root
def test_a_registry_within_is_said_to_be_one(npm):
    """Its name leads to an address that names never open: why, and what would, is said before it fails."""
    npm.net.names["inner.example.org"] = [("A", "10.0.0.5")]
    for host, path in list(npm.net.pages):
        npm.net.pages["inner.example.org:8080", path] = npm.net.pages[host, path]
    (npm.bare.home / ".npmrc").write_text("registry=http://inner.example.org:8080/npm/\n", encoding="utf-8")
    for _ in range(2):
        _, shown = allowed(npm.cloche, "--allow-registry", "npm")
        assert "inner.example.org:8080 leads to 10.0.0.5" in shown.err and "--allow-domain '10.0.0.5:8080'" in shown.err, shown


@pytest.mark.root
def test_scopes_have_registries_of_their_own(npm):
    (npm.bare.home / ".npmrc").write_text(f"registry=http://{INDEX}/npm/\n@acme:registry=https://npm.acme.example/x/\n"
                                            "//npm.acme.example/x/:_authToken=hidden\n", encoding="utf-8")
    hosts, shown = allowed(npm.cloche, "--allow-registry", "npm")
    assert set(hosts) == {INDEX, FILES, "npm.acme.example:443"} and "hidden" not in shown.out, shown


@pytest.mark.root
def test_settings_name_registries(npm, project):
    path = project / "s.yaml"
    path.write_text("network:\n  registries: [npm]\n", encoding="utf-8")
    hosts, shown = allowed(npm.cloche, "--settings", path)
    assert set(hosts) == {INDEX, FILES}, shown
    assert {row["from"]["line"] for row in shown.json["network"]["allow"]} == {2}
    assert npm.cloche("policy", "check", path).ok


@pytest.mark.root
def test_where_files_lie_is_not_known(npm):
    """The index does not have the package that is asked about: its own host is open, and a warning says the rest."""
    npm.net.pages.clear()
    hosts, shown = allowed(npm.cloche, "--allow-registry", "npm")
    assert set(hosts) == {INDEX} and "npm view is-number" in shown.err and INDEX in shown.err, shown


@requirement("R02")
@pytest.mark.root
@pytest.mark.parametrize("where", ["cwd", "path", "userconfig", "lifecycle", "pip"])
def test_a_project_does_not_choose_the_registry(npm, project, where):
    """What the agent can write has no say: configuration in the project, clients in the project."""
    evil = "http://evil.example.org:8080/npm/"
    (project / "package.json").write_text("{}", encoding="utf-8")
    (project / ".npmrc").write_text(f"registry={evil}\n", encoding="utf-8")
    (project / "pip.conf").write_text(f"[global]\nindex-url = {evil}\n", encoding="utf-8")
    (project / "bin").mkdir()
    for name in ("npm", "node", "env", "python3"):      # and what npm itself is started with
        fake = project / "bin" / name
        fake.write_text(f"#!/bin/sh\necho ran > {project}/ran\necho '{{\"registry\": \"{evil}\"}}'\n", encoding="utf-8")
        fake.chmod(0o755)
    env = {"path": {"PATH": f"{project}/bin:bin:.:/usr/bin:/bin"},
           "userconfig": {"NPM_CONFIG_USERCONFIG": str(project / ".npmrc")},
           "lifecycle": {"npm_lifecycle_event": "agent", "npm_config_registry": evil},
           "pip": {"PIP_CONFIG_FILE": str(project / "pip.conf")}}.get(where, {})
    flags = ["--workspace", str(project), "--allow-registry", "pypi" if where == "pip" else "npm"]
    result = npm.cloche("policy", "show", "--json", *flags, env=env, cwd=project, timeout=PATIENCE)
    if where in ("userconfig", "pip"):
        assert result.code == 125 and "[policy.registry.config]" in result.err and str(project) in result.err, result
    else:
        assert {row["value"] for row in result.json["network"]["allow"]} == {INDEX, FILES}, result
    assert not (project / "ran").exists()


@requirement("R02", "R44")
@pytest.mark.root
def test_an_index_does_not_open_addresses(npm):
    """A rule that is an address opens also what no name opens, so an index may not name one."""
    packument = json.loads(npm.net.pages[INDEX, "/npm/is-number"][1])
    packument["versions"]["1.0.0"]["dist"]["tarball"] = "http://10.0.0.5/x.tgz"
    npm.net.pages[INDEX, "/npm/is-number"] = ("application/json", json.dumps(packument).encode())
    hosts, shown = allowed(npm.cloche, "--allow-registry", "npm")
    assert set(hosts) == {INDEX} and "warning" in shown.err, shown


def test_a_home_that_is_open_inside(cloche):
    result = cloche("policy", "show", "--allow-registry", "npm", "--workspace", f"{cloche.home}:rw")
    assert result.code == 125 and "[policy.registry.config]" in result.err, result


@pytest.mark.parametrize("flags,code", [
    (["--allow-registry", "nuget"], "policy.registry.unknown"),
    (["--allow-registry", "npm", "--network", "none"], "policy.network.closed"),
    (["--allow-registry", "npm", "--network", "host"], "policy.network.both"),
    (["--allow-registry", "npm", "--mode", "light"], "policy.network.light"),
], ids=" ".join)
def test_refused(cloche, flags, code):
    result = cloche("policy", "show", *flags)
    assert result.code == 125 and f"[{code}]" in result.err, result


def test_no_client(cloche):
    result = cloche("policy", "show", "--allow-registry", "npm", env={"PATH": "/nowhere"})
    assert result.code == 125 and "[cli.client]" in result.err and "npm" in result.err, result


def test_a_client_that_answers_nonsense(cloche, has):
    has("npm")
    result = cloche("policy", "show", "--allow-registry", "npm", env={"NPM_CONFIG_REGISTRY": "file:///opt/packages"})
    assert result.code == 125 and "[policy.registry.answer]" in result.err, result


# --- clients that have to be asked for something ----------------------------------------------------------------------

@pytest.fixture
def cargo(online):
    """cargo, set up for a registry of ours in place of the usual one."""
    program = shutil.which("cargo")
    if program is None:
        pytest.skip("cargo is not installed")
    rustup = os.environ.get("RUSTUP_HOME", os.path.join(os.path.expanduser("~"), ".rustup"))
    online.cloche.env |= {"PATH": f"{online.cloche.env['PATH']}:{os.path.dirname(program)}", "RUSTUP_HOME": rustup}
    crates.publish(online.net.pages, INDEX, FILES, "http")
    config = online.bare.home / ".cargo" / "config.toml"
    config.parent.mkdir()
    config.write_text(f'[source.crates-io]\nreplace-with = "mine"\n[source.mine]\n'
                      f'registry = "sparse+http://{INDEX}/index/"\n', encoding="utf-8")
    return online


@pytest.mark.root
def test_cargo(cargo):
    hosts, shown = allowed(cargo.cloche, "--allow-registry", "cargo")
    assert set(hosts) == {INDEX, FILES} and not shown.err, shown
    assert kept_names(cargo.bare) in ([], ["cargo.json"])
    assert not list((cargo.bare.home / ".cargo").glob("registry")), "asked with a store of its own"
    del cargo.net.pages[INDEX, "/index/config.json"]
    (cargo.bare.home / ".cargo" / "config.toml").write_text(
        (cargo.bare.home / ".cargo" / "config.toml").read_text() + "# changed\n")
    result = cargo.cloche("policy", "show", "--allow-registry", "cargo", timeout=PATIENCE)
    assert result.ok and "got no answer" in result.err and FILES not in result.out, result


@pytest.fixture
def maven(online, has):
    has("mvn")
    settings = online.bare.home / ".m2" / "settings.xml"
    settings.parent.mkdir()
    def repository(kind, name):
        return f"<{kind}><id>{name}</id><url>https://{name}.example.org/m2</url></{kind}>"
    settings.write_text(f"<settings><mirrors><mirror><id>mine</id><mirrorOf>central</mirrorOf><url>http://{INDEX}/m2</url>"
                        "</mirror></mirrors><profiles><profile><id>p</id><activation><activeByDefault>true</activeByDefault>"
                        f"</activation><repositories>{repository('repository', 'a')}</repositories><pluginRepositories>"
                        f"{repository('pluginRepository', 'b')}</pluginRepositories></profile></profiles></settings>\n",
                        encoding="utf-8")
    online.cloche.env["MAVEN_OPTS"] = f"-Duser.home={online.bare.home}"
    return online


@requirement("R02")
@pytest.mark.root
def test_maven(maven, project):
    """Its mirror and its repositories; not what a folder .mvn beside, or above, says."""
    (project / ".mvn").mkdir()
    (project / ".mvn" / "jvm.config").write_text(f"-XX:OnOutOfMemoryError=x -Duser.home={project}\n")
    (maven.bare.state / ".mvn").mkdir()
    (maven.bare.state / ".mvn" / "maven.config").write_text("--no-such-option\n")
    hosts, shown = allowed(maven.cloche, "--allow-registry", "maven", cwd=project)
    assert set(hosts) == {INDEX, "a.example.org:443", "b.example.org:443"}, shown
    # cloche itself asks where they lie, to warn of inner addresses
    assert not maven.net.connections and maven.net.asked() <= {host.rsplit(":", 1)[0] for host in hosts}, "maven has run"
    result = maven.cloche("policy", "show", "--allow-registry", "maven", "--bind",
                          f"{maven.bare.home}/.m2:/mnt/m2:rw", timeout=PATIENCE)
    assert result.code == 125 and "[policy.registry.config]" in result.err, result


@requirement("R02")
@pytest.mark.parametrize("registry,client", [("cargo", "cargo"), ("maven", "mvn")])
def test_a_client_that_says_nothing(cloche, world, registry, client):
    folder = world.root / "bin"
    folder.mkdir()
    (folder / client).write_text("#!/bin/sh\necho no\n", encoding="utf-8")
    (folder / client).chmod(0o755)
    result = cloche("policy", "show", "--allow-registry", registry, env={"PATH": f"{folder}:{cloche.env['PATH']}"})
    assert result.code == 125 and "[policy.registry.answer]" in result.err, result
    assert not kept_names(cloche)
    result = cloche("policy", "show", "--allow-registry", registry, "--bind", f"{cloche.state}:/mnt/state:rw",
                    env={"PATH": f"{folder}:{cloche.env['PATH']}"})
    assert result.code == 125 and "[policy.registry.config]" in result.err, result


# --- what was said before ---------------------------------------------------------------------------------------------

class Kept:
    """npm behind a script that counts, and its answer kept."""

    def __init__(self, npm, world):
        self.npm, self.log, folder = npm, world.root / "asked", world.root / "bin"
        folder.mkdir()
        self.client = folder / "npm"
        # Whether it is asked counts here, dozens of times: what npm really says it says once to each question.
        self.client.write_text(f"""#!/bin/sh
echo asked >> {self.log}
said={self.log}-$(printf '%s|' "$@" | cksum | tr ' ' -)
[ -s "$said" ] || {shutil.which('npm')} "$@" > "$said" || {{ rm "$said"; exit 1; }}
exec cat "$said"
""", encoding="utf-8")
        self.client.chmod(0o755)
        npm.cloche.env["PATH"] = f"{folder}:{npm.cloche.env['PATH']}"
        self.entry = npm.bare.state / "cloche" / "registries" / "npm.json"
        self.settle()

    def settle(self):
        """Files that have only just changed are not relied upon."""
        wait_for(lambda: all("(asked " in name for name in self.hosts()[0].values()), 300, every=0.15)

    def hosts(self, *flags, **kw):
        return allowed(self.npm.cloche, "--allow-registry", "npm", *flags, **kw)

    def asked(self):
        return len(self.log.read_text().splitlines())

    def plant(self):
        answer = json.loads(self.entry.read_text())
        answer["answer"]["hosts"].append("evil.example.org:8080")
        self.entry.write_text(json.dumps(answer))


@pytest.fixture
def kept(npm, world):
    return Kept(npm, world)


@pytest.mark.root
def test_an_answer_is_kept(kept):
    before = kept.asked()
    hosts, shown = kept.hosts()
    assert set(hosts) == {INDEX, FILES} and kept.asked() == before, shown
    assert re.fullmatch(r"--allow-registry npm \(asked \d{4}-\d\d-\d\dT[\d:]{8}Z\)", hosts[FILES]), hosts
    why = kept.npm.cloche("why", "--json", "--allow-registry", "npm", "--host", FILES)
    assert why.ok and why.json["source"]["name"] == hosts[FILES] and kept.asked() == before, why
    result = kept.npm.run(["/bin/sh", "-c", "echo $npm_config_registry"], allow=(), flags=["--allow-registry", "npm"])
    assert result.out == f"http://{INDEX}/npm/\n" and kept.asked() == before, result
    assert stat.S_IMODE(kept.entry.stat().st_mode) == 0o600 and stat.S_IMODE(kept.entry.parent.stat().st_mode) == 0o700


def edited(kept):
    rc = kept.npm.bare.home / ".npmrc"
    rc.write_text(rc.read_text() + "@acme:registry=https://npm.acme.example/\n", encoding="utf-8")


def too_old(kept):
    entry = json.loads(kept.entry.read_text())
    entry["answer"]["at"] -= 3600
    kept.entry.write_text(json.dumps(entry))


def linked(kept):
    kept.entry.rename(kept.entry.parent / "real")
    kept.entry.symlink_to("real")


def copied(kept):
    rc = kept.npm.bare.home / ".npmrc"
    shutil.copy2(rc, rc.parent / "x")
    (rc.parent / "x").replace(rc)


CIRCUMSTANCES = {
    "edited": edited, "too old": too_old, "copied": copied,
    "client": lambda k: k.client.write_text(k.client.read_text() + "#\n"),
    "variable": lambda k: k.npm.cloche.env.update(npm_config_loglevel="error"),
    "path": lambda k: k.npm.cloche.env.update(PATH=k.npm.cloche.env["PATH"] + ":/opt"),
}
DOUBTS = {
    "damaged": lambda k: k.entry.write_text("{"),
    "link": linked,
    "group may write": lambda k: k.entry.chmod(0o620),
    "others may read": lambda k: k.entry.chmod(0o604),
    "owner": lambda k: os.chown(k.entry, 65534, 65534),
    "hard link": lambda k: os.link(k.entry, k.entry.parent / "other"),
    "folder's mode": lambda k: k.entry.parent.chmod(0o770),
    "folder's owner": lambda k: (k.entry.parent.chmod(0o700), os.chown(k.entry.parent, 65534, 65534)),
}


@requirement("R02")
@pytest.mark.root
@pytest.mark.parametrize("changes", [CIRCUMSTANCES, DOUBTS], ids=["circumstances", "doubts"])
def test_an_answer_that_may_not_be_so_any_more_is_asked_anew(kept, changes):
    """Each with a host more in what was kept, which is open while nothing speaks against it."""
    for what, change in changes.items():
        if "folder" not in what:
            kept.settle()
            kept.plant()
            assert "evil.example.org:8080" in kept.hosts()[0], what
        before = kept.asked()
        change(kept)
        hosts, shown = kept.hosts()
        assert {INDEX, FILES} <= set(hosts) and "evil.example.org:8080" not in hosts, (what, shown)
        assert kept.asked() > before and not any("(asked" in name for name in hosts.values()), (what, shown)
        if "folder" in what:
            kept.plant()


@requirement("R02")
@pytest.mark.root
def test_what_is_kept_is_not_for_a_run_that_may_write_it(kept, project):
    """A configuration, or the state folder, that is open inside."""
    kept.plant()
    rc = kept.npm.bare.home / ".npmrc"
    result = kept.npm.cloche("policy", "show", "--allow-registry", "npm", "--bind", f"{rc}:/mnt/rc:rw", timeout=PATIENCE)
    assert result.code == 125 and "[policy.registry.config]" in result.err, result
    hosts, shown = kept.hosts("--bind", f"{kept.npm.bare.state}:/mnt/state:rw")
    assert "evil.example.org:8080" not in hosts, shown


@requirement("R16")
@pytest.mark.root
def test_no_password_is_kept(pypi):
    """Where a variable holds one nothing is kept; of one in a file no more than the host."""
    entry = pypi.bare.state / "cloche" / "registries" / "pypi.json"
    assert "(asked" not in str(allowed(pypi.cloche, "--allow-registry", "pypi")[0]) and not entry.exists()
    url = pypi.cloche.env.pop("PIP_INDEX_URL")
    conf = pypi.bare.home / ".config" / "pip" / "pip.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text(f"[global]\nindex-url = {url}\n", encoding="utf-8")
    wait_for(lambda: "(asked " in str(allowed(pypi.cloche, "--allow-registry", "pypi")[0]), 300)
    hosts, _ = allowed(pypi.cloche, "--allow-registry", "pypi")
    assert set(hosts) == {INDEX, FILES} and "hunter2" in url and "hunter2" not in entry.read_text()


# --- real ones --------------------------------------------------------------------------------------------------------

def real(cloche, registry):
    """The flags for a run with a real registry, or skip."""
    return ["--allow-registry", registry, *(w for a in addresses(cloche, registry) for w in ("--allow-domain", a))]


@pytest.fixture
def certificates(cloche):
    cloche.env |= CERTIFICATES
    return [word for item in CERTIFICATES.items() for word in ("--env", "=".join(item))]


def test_real_pip_install(cloche, has, certificates):
    has("pip3")
    flags = real(cloche, "pypi")
    code = ("python3 -m venv /tmp/v && /tmp/v/bin/pip install six && "
            "/tmp/v/bin/python -c 'import six; print(six.__name__)'")
    result = cloche("run", *flags, *certificates, "--", "/bin/sh", "-c", code, timeout=PATIENCE)
    assert result.ok and result.out.endswith("six\n"), result


def test_real_npm_install(cloche, has, certificates):
    has("npm", "node")
    flags = real(cloche, "npm")
    code = "cd /tmp && npm install is-number && node -p 'require(\"is-number\")(7)'"
    result = cloche("run", *flags, *certificates, "--", "/bin/sh", "-c", code, timeout=PATIENCE)
    assert result.ok and result.out.endswith("true\n"), result


def test_real_apt_update(cloche, has):
    has("apt-get")
    if not subprocess.run(["/usr/bin/apt-get", "indextargets"], capture_output=True, check=False).stdout:
        pytest.skip("this host has no package sources")
    flags = real(cloche, "debian")
    apt = ("mkdir -p /tmp/l/partial /tmp/c/partial && apt-get -o Dir::State::lists=/tmp/l -o Dir::Cache=/tmp/c "
           "-o APT::Sandbox::User= update")
    result = cloche("run", *flags, "--bind", "/etc/apt:/etc/apt", "--", "/bin/sh", "-c", f"{apt} && ls /tmp/l",
                    timeout=PATIENCE)
    assert result.ok and "Release" in result.out, result


def test_real_cargo_fetch(cloche, has):
    program, home = shutil.which("cargo"), os.path.expanduser("~")
    rustup = os.environ.get("RUSTUP_HOME", f"{home}/.rustup")
    chains = [p for p in Path(rustup, "toolchains").glob("*") if (p / "bin" / "cargo").exists()]
    if program is None or not chains:
        pytest.skip("cargo is not installed by rustup")
    cloche.env |= {"PATH": f"{cloche.env['PATH']}:{os.path.dirname(program)}", "RUSTUP_HOME": rustup}
    flags = real(cloche, "cargo")
    code = ("mkdir -p /tmp/p/src && cd /tmp/p && touch src/lib.rs && export CARGO_HOME=/tmp/home && "
            "printf '[package]\\nname = \"p\"\\nversion = \"0.1.0\"\\n[dependencies]\\nitoa = \"1\"\\n' > Cargo.toml && "
            "PATH=/mnt/rust/bin:$PATH cargo fetch && ls /tmp/home/registry/src/*")
    result = cloche("run", *flags, "--bind", f"{chains[0]}:/mnt/rust", "--", "/bin/sh", "-c", code, timeout=PATIENCE)
    assert result.ok and "itoa-1" in result.out, result


def test_real_maven_parent(cloche, has):
    """A project whose parent lies in the repository: the smallest thing that Maven fetches."""
    has("mvn", "java")
    flags = real(cloche, "maven")
    pom = ("<project><modelVersion>4.0.0</modelVersion><parent><groupId>org.apache</groupId><artifactId>apache</artifactId>"
           "<version>18</version><relativePath/></parent><artifactId>p</artifactId><packaging>pom</packaging></project>")
    settings = [w for p in ("/etc/maven", *map(str, Path("/etc").glob("java-*-openjdk"))) if os.path.exists(p)
                for w in ("--bind", p)]
    code = f"mkdir /tmp/p && cd /tmp/p && echo '{pom}' > pom.xml && mvn -B -Dmaven.repo.local=/tmp/m2 validate"
    result = cloche("run", *flags, *settings, "--memory", "2g", "--timeout", "8m", "--", "/bin/sh", "-c", code,
                    timeout=PATIENCE)
    assert result.ok and "BUILD SUCCESS" in result.out, result
