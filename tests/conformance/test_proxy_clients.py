"""Other people's clients, with nothing said to them but the variables that cloche sets: what a rule opens they reach, through
the proxy where they read the variables, and what none opens they do not."""
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from helpers import crates, golang, npm, pypi, requirement
from helpers.internet import CA_INSIDE

pytestmark = [requirement("R13", "R14"), pytest.mark.root]
PYTHON = ["/usr/bin/python3", "-c"]
READS = {"http": "http", "https": "connect"}            # how a client comes in that reads the variables
READS_NONE = {"http": "http", "https": "tls"}           # ... and one that reads none: as if there were no wall
TUNNELS = {"http": "connect", "https": "connect"}
SECONDS = 600
HOST, EVIL = "ok.example.org", "evil.example.org"
PORTS = {"http": 80, "https": 443}


def modules():
    return pypi.modules("httpx", "requests", "aiohttp")


def python(code):
    """(the words, the flags) for @code, which finds the URL in U and the CA in C."""
    begin = f"import sys; sys.path.insert(0, '/mnt/modules'); U = sys.argv[1]; C = {CA_INSIDE!r}; import ssl\n"
    return [*PYTHON, begin + code], ["--bind", f"{modules()}:/mnt/modules:ro"]


def node(code):
    if shutil.which("node", path="/usr/bin") is None:
        pytest.skip("node is not installed in /usr")
    found = npm.packages("axios@1", "undici@6") / "node_modules"
    words = ["/usr/bin/env", f"NODE_EXTRA_CA_CERTS={CA_INSIDE}", "NODE_PATH=/mnt/modules", "/usr/bin/node", "-e",
             "const U = process.argv[1], out = t => process.stdout.write(t), no = e => { console.error(e); process.exit(1) };" + code]
    return words, ["--bind", f"{found}:/mnt/modules:ro"]


def node_with_variables(code):
    """Node 24 (22.21) reads the variables where it is told to; cloche does not tell it."""
    words, flags = node(code)
    program = npm.packages("node@24") / "node_modules" / "node" / "bin" / "node"
    words[words.index("/usr/bin/node")] = "/mnt/node"
    return [*words[:1], "NODE_USE_ENV_PROXY=1", *words[1:]], [*flags, "--bind", f"{program}:/mnt/node:ro"]


def program(name, *words):
    path = shutil.which(name, path="/usr/bin:/bin")
    if path is None:
        pytest.skip(f"{name} is not installed in /usr")
    return [path, *words], []


GO = """package main
import ("fmt"; "io"; "net/http"; "os")
func main() {
    r, err := http.Get(os.Args[1])
    if err == nil && r.StatusCode != 200 { err = fmt.Errorf(r.Status) }
    if err != nil { fmt.Println(err); os.Exit(1) }
    io.Copy(os.Stdout, r.Body)
}
"""
JAVA = """import java.net.*; import java.net.http.*;
class Client {
    public static void main(String[] a) throws Exception {
        System.out.print(HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(a[0])).build(),
            HttpResponse.BodyHandlers.ofString()).body());
        System.out.print(new String(new URL(a[0]).openStream().readAllBytes()));
    }
}
"""


def go(net):
    shutil.copy(golang.program(GO), net.root / "go-proxy-client")         # where the sandbox's user may read it
    return ["/usr/bin/env", f"SSL_CERT_FILE={CA_INSIDE}", "/mnt/client"], ["--bind", f"{net.root}/go-proxy-client:/mnt/client:ro"]


def java(net):
    found = shutil.which("java", path="/usr/bin"), shutil.which("javac", path="/usr/bin")
    if None in found:
        pytest.skip("no Java is installed in /usr")
    place = net.root / "java-proxy-client"
    if not place.exists():
        place.mkdir()
        place.joinpath("Client.java").write_text(JAVA, encoding="ascii")
        subprocess.run([found[1], "-d", place, place / "Client.java"], check=True, capture_output=True)
        subprocess.run([Path(found[0]).resolve().parent / "keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", net.ca,
                        "-keystore", place / "trust", "-storepass", "changeit"], check=True, capture_output=True)
    words = [Path(found[0]).resolve(), "-Xmx64m", "-XX:+UseSerialGC", "-Djavax.net.ssl.trustStore=/mnt/client/trust",
             "-Djavax.net.ssl.trustStorePassword=changeit", "-cp", "/mnt/client", "Client"]
    return words, ["--bind", f"{place}:/mnt/client:ro"]


def ruby(_):
    words, flags = program("ruby", "-e", "require 'net/http'; r = Net::HTTP.get_response(URI(ARGV[0])); print r.body; exit r.code == '200'")
    return ["/usr/bin/env", f"SSL_CERT_FILE={CA_INSIDE}", *words], flags


# --- package managers, and git: each with a place of its own at the hosts -------------------------------------------------

def shell(code, **variables):
    """The words for @code, which finds "scheme://host" in $1."""
    return ["/usr/bin/env", *(f"{name}={value}" for name, value in variables.items()), "/bin/sh", "-c", f'U=${{1%/l}}; {code}', "sh"]


def git(net):
    program("git")
    place = net.root / "git" / "clients.git"
    (place / "info").mkdir(parents=True, exist_ok=True)
    (place / "info" / "refs").write_text("0123456789abcdef0123456789abcdef01234567\trefs/heads/main\n", encoding="ascii")
    (place / "HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
    return shell("git ls-remote $U/git/clients.git", GIT_SSL_CAINFO=CA_INSIDE, GIT_TERMINAL_PROMPT="0"), []


def pip(net):
    program("pip3")
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as z:
        for name, text in (("METADATA", "Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n"), ("RECORD", ""),
                           ("WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")):
            z.writestr(f"mine-1.0.dist-info/{name}", text)
    file = "/files/mine-1.0-py3-none-any.whl"
    net.pages[HOST, file] = ("application/octet-stream", data.getvalue())
    net.pages[HOST, "/simple/mine/"] = ("text/html", f'<a href="{file}">{file[7:]}</a>'.encode())
    return shell("host=${U#*//}; case $U in http:*) trust=--trusted-host=$host;; esac; pip3 download --disable-pip-version-check --no-deps "
                 "--no-cache-dir --retries 0 -d $(mktemp -d) $trust --index-url $U/simple/ mine", PIP_CERT=CA_INSIDE), []


def npm_view(net):
    program("npm")
    net.pages[HOST, "/npm/mine"] = ("application/json", json.dumps(
        {"name": "mine", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "mine", "version": "1.0.0"}}}).encode())
    return shell("cd /tmp; npm view --fetch-retries 0 --registry $U/npm/ mine version", npm_config_cafile=CA_INSIDE), []


def cargo(net):
    found = shutil.which("cargo") or shutil.which("cargo", path=os.path.expanduser("~/.cargo/bin"))
    asked = found and subprocess.run([found, "-vV"], capture_output=True, check=False)
    rustc = found and subprocess.run([Path(found).with_name("rustc"), "--print", "sysroot"], capture_output=True, check=False, text=True)
    if not found or asked.returncode != 0 or rustc.returncode != 0:
        pytest.skip("cargo is not installed")
    crates.publish(net.pages, HOST, HOST, "https")
    code = """cd $(mktemp -d) && mkdir src && touch src/lib.rs && export CARGO_HOME=$PWD/home &&
printf '[package]\\nname = "x"\\nversion = "0.1.0"\\n[dependencies]\\nitoa = "1"\\n' > Cargo.toml &&
/mnt/rust/bin/cargo --config 'source.crates-io.replace-with="mine"' --config "source.mine.registry=\\"sparse+$U/index/\\"" fetch"""
    variables = {"CARGO_HTTP_CAINFO": CA_INSIDE, "RUSTC": "/mnt/rust/bin/rustc", "CARGO_NET_RETRY": "0"}
    return shell(code, **variables), ["--bind", f"{rustc.stdout.strip()}:/mnt/rust:ro"]


# what each is started as, and how its requests come in
FETCH = "(r => r.ok ? r.text().then(out) : no(r.status)).catch(no)"
AGENT = "const u = require('undici'); u.setGlobalDispatcher(new u.EnvHttpProxyAgent());"
URLLIB3 = "r = {}.request('GET', U); print(r.data.decode()); sys.exit(r.status != 200)"
CLIENTS = {
    "curl": (lambda _: program("curl", "-sSf", "--cacert", CA_INSIDE), READS),
    "wget": (lambda _: program("wget", "-nv", "-t", "1", "-O", "-", f"--ca-certificate={CA_INSIDE}"), READS),
    "urllib": (lambda _: python("import urllib.request as u; print(u.urlopen(U, context=ssl.create_default_context(cafile=C)).read().decode())"), READS),
    "urllib3": (lambda _: python("import urllib3; " + URLLIB3.format("urllib3.PoolManager(ca_certs=C, retries=0)")), READS_NONE),
    "urllib3-proxy": (lambda _: python("import os, urllib3; " + URLLIB3.format("urllib3.ProxyManager(os.environ['https_proxy'], ca_certs=C, retries=0)")), READS),
    "requests": (lambda _: python("import requests; r = requests.get(U, verify=C); r.raise_for_status(); print(r.text)"), READS),
    "httpx": (lambda _: python("import httpx; r = httpx.Client(verify=ssl.create_default_context(cafile=C)).get(U); r.raise_for_status(); print(r.text)"), READS),
    "aiohttp": (lambda _: python("import asyncio, aiohttp\nasync def go():\n async with aiohttp.ClientSession(trust_env=True, raise_for_status=True) as c:\n"
                                 "  async with c.get(U, ssl=ssl.create_default_context(cafile=C)) as r: print(await r.text())\nasyncio.run(go())"), READS),
    "httpx-async": (lambda _: python("import asyncio, httpx\nasync def go():\n async with httpx.AsyncClient(verify=ssl.create_default_context(cafile=C)) as c:\n"
                                     "  r = await c.get(U); r.raise_for_status(); print(r.text)\nasyncio.run(go())"), READS),
    "fetch": (lambda _: node(f"fetch(U).then{FETCH}"), READS_NONE),
    "fetch-told": (lambda _: node_with_variables(f"fetch(U).then{FETCH}"), TUNNELS),
    "undici": (lambda _: node(f"{AGENT} u.fetch(U).then{FETCH}"), TUNNELS),
    "undici-request": (lambda _: node(f"{AGENT} u.request(U).then(r => r.statusCode == 200 ? r.body.text().then(out) : no(r.statusCode)).catch(no)"), TUNNELS),
    "https": (lambda _: node("require(U.split(':')[0]).get(U, r => r.statusCode == 200 ? r.on('data', out) : no(r.statusCode)).on('error', no)"), READS_NONE),
    "axios-fetch": (lambda _: node("require('axios').get(U, { adapter: 'fetch' }).then(r => out(r.data)).catch(no)"), READS_NONE),
    "axios": (lambda _: node("require('axios').get(U).then(r => out(r.data)).catch(no)"), READS),
    "go": (go, READS),
    "java": (java, READS_NONE),
    "ruby": (ruby, READS),
    "git": (git, READS),
    "pip": (pip, READS),
    "npm": (npm_view, READS),
    "cargo": (cargo, READS),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_client(online, client):
    """Each URL of a host that is open and of one that is not, http and https: what was seen on both sides of the wall."""
    make, came = CLIENTS[client]
    words, flags = make(online.net)
    urls = [f"{scheme}://{host}/l" for host in (HOST, EVIL) for scheme in PORTS]
    code = "".join(f"{shlex.join(map(str, words))} {shlex.quote(url)}; echo \" = $?\"\n" for url in urls)
    result = online.run(["/bin/sh", "-c", code], flags=[*flags, "--timeout", "5m", "--json"], timeout=SECONDS)
    said = result.json
    assert [end != "0" for end in re.findall(r" = (\d+)\n", said["stdout"])] == [False, False, True, True], said
    assert {(r["host"], r["tls"]) for r in online.net.requests} == {(HOST, False), (HOST, True)}, online.net.requests
    assert online.net.asked() == {HOST}, "names that no rule opens are asked nobody for"
    log = online.bare("net", "log", "--json", said["id"]).json["decisions"]
    assert {(d["port"], d["via"]) for d in log if d["verdict"] == "allow" and d["host"] == HOST} >= {(PORTS[s], came[s]) for s in PORTS}, log
    refused = {(d["port"], d["via"]) for d in log if d["verdict"] == "deny"}
    # Ruby looks a name up to see whether no_proxy means it
    assert refused - {(0, "dns")} == ({(PORTS[s], came[s]) for s in PORTS} if came is not READS_NONE else set()), log
    assert all(d["host"] == (EVIL if d["verdict"] == "deny" else HOST) for d in log), log
