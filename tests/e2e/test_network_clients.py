"""The network by name with what other languages' clients read of it: the variables as cloche sets them, nothing else said."""
import shutil
import subprocess
from pathlib import Path

import pytest

from helpers import golang, npm, requirement
from helpers.internet import CA_INSIDE

pytestmark = [requirement("R13", "R14"), pytest.mark.root]
scheme = pytest.mark.parametrize("scheme", ["http", "https"])
PACKAGES = ("axios@1", "undici@6")


def only(scheme_, result):
    assert result.ok and result.out.strip() == "hello ok.example.org /l", (scheme_, result)


NODE = {
    "axios": "require('axios').get(where).then(r => process.stdout.write(r.data))",
    "axios-fetch": "require('axios').get(where, { adapter: 'fetch' }).then(r => process.stdout.write(r.data))",
    "undici": "const u = require('undici'); u.setGlobalDispatcher(new u.EnvHttpProxyAgent());"
              "u.fetch(where).then(r => r.text()).then(t => process.stdout.write(t))",
    "undici-request": "const u = require('undici'); u.setGlobalDispatcher(new u.EnvHttpProxyAgent());"
                      "u.request(where).then(r => r.body.text()).then(t => process.stdout.write(t))",
    "https": "require(where.split(':')[0]).get(where, r => r.on('data', d => process.stdout.write(d)))",
}


@scheme
@pytest.mark.parametrize("client", NODE)
def test_node(online, has, scheme, client):
    has("node")
    modules = npm.packages(*PACKAGES) / "node_modules"
    code = f"const where = '{scheme}://ok.example.org/l'; {NODE[client]}"
    words = ["/usr/bin/env", f"NODE_EXTRA_CA_CERTS={CA_INSIDE}", "NODE_PATH=/mnt/modules", "/usr/bin/node", "-e", code]
    only(scheme, online.run(words, flags=["--bind", f"{modules}:/mnt/modules:ro"]))


GO = """package main
import ("fmt"; "io"; "net/http"; "os")
func main() {
    r, err := http.Get(os.Args[1])
    if err != nil { fmt.Println(err); os.Exit(1) }
    io.Copy(os.Stdout, r.Body)
}
"""


@scheme
def test_go(online, scheme):
    client = online.net.root / "go-client"
    shutil.copy(golang.program(GO), client)         # where the sandbox's user may read it
    words = ["/usr/bin/env", f"SSL_CERT_FILE={CA_INSIDE}", "/mnt/client", f"{scheme}://ok.example.org/l"]
    only(scheme, online.run(words, flags=["--bind", f"{client}:/mnt/client:ro"]))


JAVA = """import java.net.*; import java.net.http.*;
class Client {
    public static void main(String[] a) throws Exception {
        String one = HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(a[0])).build(),
            HttpResponse.BodyHandlers.ofString()).body();
        String other = new String(new URL(a[0]).openStream().readAllBytes());
        System.out.print(one.equals(other) ? one : one + " and " + other);
    }
}
"""


@pytest.fixture(scope="module")
def java_client(tmp_path_factory):
    """(the java, a folder with the class). Java reads no variable of others; the transparent way is for those."""
    java = shutil.which("java")
    compiler = shutil.which("javac")
    if java is None or compiler is None or not Path(java).resolve().is_relative_to("/usr"):
        pytest.skip("no Java is installed in /usr")
    place = tmp_path_factory.mktemp("java")
    place.joinpath("Client.java").write_text(JAVA, encoding="ascii")
    made = subprocess.run([compiler, "-d", place, place / "Client.java"], capture_output=True, check=False)
    assert made.returncode == 0, made.stderr
    return Path(java).resolve(), place


@scheme
def test_java(online, java_client, scheme, command):
    java, place = java_client
    store = place / "trust"
    if not store.exists():
        command([java.parent / "keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", online.net.ca, "-keystore", store,
                 "-storepass", "changeit"])
    # keytool makes PKCS #12, whose certificates are sealed: without the password Java takes the store for an empty one
    words = [java, "-Xmx64m", "-XX:+UseSerialGC", "-Djavax.net.ssl.trustStore=/mnt/client/trust",
             "-Djavax.net.ssl.trustStorePassword=changeit", "-cp", "/mnt/client", "Client", f"{scheme}://ok.example.org/l"]
    only(scheme, online.run(words, flags=["--bind", f"{place}:/mnt/client:ro"]))


@scheme
def test_ruby(online, has, scheme):
    has("ruby")
    code = "require 'net/http'; print Net::HTTP.get(URI(ARGV[0]))"
    words = ["/usr/bin/env", f"SSL_CERT_FILE={CA_INSIDE}", "/usr/bin/ruby", "-e", code, f"{scheme}://ok.example.org/l"]
    only(scheme, online.run(words))
