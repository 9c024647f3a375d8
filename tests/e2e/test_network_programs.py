"""Programs that know nothing of a proxy: compiled ones, package managers, databases, over nothing but names."""
import gzip
import os
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest

from helpers import golang, requirement
from helpers.internet import CA_INSIDE, NO_PROXY_VARIABLES, SITE4
from helpers.runner import wait_for

pytestmark = [requirement("R13", "R14"), pytest.mark.root]
URLS = {"http": "http://ok.example.org/x", "https": "https://ok.example.org/x"}
EVIL = "https://evil.example.org/x"

GO = """package main
import ("crypto/tls"; "crypto/x509"; "fmt"; "io"; "net/http"; "os")
func main() {
    client := http.DefaultClient
    if os.Args[1] != "-" {
        pem, _ := os.ReadFile(os.Args[1])
        pool := x509.NewCertPool(); pool.AppendCertsFromPEM(pem)
        client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
    }
    for _, url := range os.Args[2:] {
        answer, err := client.Get(url)
        if err != nil { fmt.Println("error:", err); continue }
        body, _ := io.ReadAll(answer.Body)
        fmt.Println(answer.StatusCode, string(body))
    }
}
"""
JAVA = """import java.io.*; import java.net.*; import java.security.*; import java.security.cert.*;
import javax.net.ssl.*;
public class Fetch {
    public static void main(String[] a) throws Exception {
        if (!a[0].equals("-")) trust(a[0]);
        for (int i = 1; i < a.length; i++) {
            try {
                HttpURLConnection c = (HttpURLConnection) new URL(a[i]).openConnection();
                int status = c.getResponseCode();
                System.out.println(status + " " + new String(c.getInputStream().readAllBytes()));
            } catch (IOException e) { System.out.println("error: " + e); }
        }
    }
    static void trust(String file) throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12"); store.load(null, null);
        store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(
            new FileInputStream(file)));
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS"); context.init(null, trust.getTrustManagers(), null);
        HttpsURLConnection.setDefaultSSLSocketFactory(context.getSocketFactory());
    }
}
"""


@pytest.fixture(scope="session")
def built(internet):
    """built("go") → the words that start the program inside; compiled once."""
    done = {}

    def go():
        shutil.copy(golang.program(GO), internet.root / "fetch")     # where the sandbox's user may read it
        return ["/mnt/fetch"], ["--bind", f"{internet.root}/fetch:/mnt/fetch"]

    def java():
        if not (Path("/usr/bin/javac").exists() and Path("/usr/bin/java").exists()):
            pytest.skip("no Java compiler is installed in /usr")
        (internet.root / "java").mkdir()
        source = internet.root / "java" / "Fetch.java"
        source.write_text(JAVA, encoding="utf-8")
        subprocess.run(["/usr/bin/javac", source], check=True, timeout=600, stdout=subprocess.DEVNULL)
        settings = [w for p in Path("/etc").glob("java-*-openjdk") for w in ("--bind", str(p))]
        return (["/usr/bin/java", "-cp", "/mnt/java", "Fetch"],
                ["--bind", f"{internet.root}/java:/mnt/java", "--memory", "2g", "--timeout", "5m", *settings])

    def build(language):
        if language not in done:
            done[language] = {"go": go, "java": java}[language]()
        return done[language]
    return build


@pytest.mark.parametrize("language", ["go", "java"])
def test_compiled_programs(online, built, language):
    words, flags = built(language)
    straight = ["/usr/bin/env", *NO_PROXY_VARIABLES]
    result = online.run([*straight, *words, CA_INSIDE, *URLS.values(), EVIL], flags=flags, timeout=600)
    lines = [line for line in result.out.splitlines() if line]
    assert lines[:2] == ["200 hello ok.example.org /x"] * 2 and lines[2].startswith("error:"), result
    assert [(r["host"], r["tls"]) for r in online.net.requests] == [("ok.example.org", False), ("ok.example.org", True)]


@pytest.fixture
def opened(online, project):
    """The flags under which TLS to ok.example.org is opened, for /x alone."""
    path = project / "opened.yaml"
    path.write_text("network:\n  allow: [{host: ok.example.org, path: /x}]\n", encoding="utf-8")
    return ["--settings", path, "--extra-ca", online.net.ca]


@pytest.mark.parametrize("language,view", [("go", "private"), ("java", "private"), ("java", "host")])
def test_compiled_programs_trust_what_opens_their_tls(online, built, opened, language, view):
    """With nothing said to them: what their runtime trusts by itself."""
    words, flags = built(language)
    if view == "host":
        words = [w.replace("/mnt/java", f"{online.net.root}/java") for w in words]
        flags = ["--view", "host", *(f for i, f in enumerate(flags) if "--bind" not in flags[max(0, i - 1):i + 1])]
    straight = ["/usr/bin/env", *NO_PROXY_VARIABLES]
    argv = ["run", *opened, "--timeout", "5m", *flags, "--", *straight, *words, "-", URLS["https"], EVIL.replace("evil", "ok")
            .replace("/x", "/y")]
    result = online.cloche(*argv, timeout=600)
    lines = [line for line in result.out.splitlines() if line]
    assert lines[0] == "200 hello ok.example.org /x" and "403" in lines[1], result
    assert [(r["path"], r["tls"]) for r in online.net.requests] == [("/x", True)]


def test_a_java_store_that_is_whole(online, built, opened):
    """Java's own tool reads it, with the customary password, and finds every certificate."""
    _, flags = built("java")
    code = "keytool -list -cacerts -storepass changeit 2>/dev/null; grep -c BEGIN.CERT /etc/ssl/certs/ca-certificates.crt"
    result = online.cloche("run", *opened, *flags, "--", "/bin/sh", "-c", code, timeout=600)
    count = result.out.split()[-1]
    assert result.ok and result.out.count("trustedCertEntry") == int(count) and f"contains {count} entries" in result.out


@pytest.mark.parametrize("rule,lines", [("/x", ["200", "200"]), ("/y", ["403", "error:"])])
def test_a_compiled_program_meets_a_rule_about_paths(online, built, project, rule, lines):
    """Over plain HTTP; the far end never sees what is closed."""
    words, flags = built("go")
    path = project / "s.yaml"
    path.write_text(f"network:\n  allow: [{{host: ok.example.org, port: 80, path: {rule}}}]\n", encoding="utf-8")
    result = online.run(["/usr/bin/env", *NO_PROXY_VARIABLES, *words, CA_INSIDE, URLS["http"]], allow=(),
                        flags=[*flags, "--settings", path])
    assert result.out.startswith(lines[0]), result
    assert len(online.net.requests) == (1 if rule == "/x" else 0)


# --- apt --------------------------------------------------------------------------------------------------------------

@pytest.fixture
def repository(online, has, command):
    """A Debian repository at ok.example.org with one package."""
    has("apt-get", "dpkg-deb")
    tree, public = online.net.root / "deb", online.net.root / "git" / "deb"      # what lies in git/ is served
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "DEBIAN").mkdir(parents=True)
    control = "Package: mine\nVersion: 1.0\nArchitecture: all\nMaintainer: t <t@example.org>\nDescription: x\n"
    (tree / "DEBIAN" / "control").write_text(control, encoding="utf-8")
    public.mkdir(parents=True, exist_ok=True)
    deb = public / "mine.deb"
    command(["dpkg-deb", "--build", "--root-owner-group", tree, deb])
    sha = command(["sha256sum", deb]).out.split()[0]
    index = f"{control}Filename: ./mine.deb\nSize: {deb.stat().st_size}\nSHA256: {sha}\n\n"
    (public / "Packages.gz").write_bytes(gzip.compress(index.encode()))
    return online


APT = """cd /tmp && mkdir -p lists/partial cache/archives/partial && printf '%s\\n' "$1" > sources
apt="apt-get -o Dir::Etc::SourceList=/tmp/sources -o Dir::Etc::SourceParts=/dev/null -o Dir::Etc::Parts=/dev/null
    -o Dir::State::Lists=/tmp/lists -o Dir::Cache=/tmp/cache -o Dir::State::status=/dev/null -o Acquire::Retries=0
    -o Acquire::Languages=none -o APT::Sandbox::User="
touch status; $apt update && $apt -o Dir::State::status=/tmp/status download mine && ls *.deb"""


@pytest.mark.parametrize("transparent", [False, True], ids=["proxy", "transparent"])
def test_apt_get(repository, transparent):
    straight = ["/usr/bin/env", *NO_PROXY_VARIABLES] if transparent else []
    line = "deb [trusted=yes] http://ok.example.org/git/deb ./"
    result = repository.run([*straight, "/bin/sh", "-c", APT, "sh", line])
    assert result.ok and result.out.endswith("mine_1.0_all.deb\n"), result
    result = repository.run([*straight, "/bin/sh", "-c", APT, "sh", line.replace("ok.", "evil.")])
    assert "mine_1.0" not in result.out and {r["host"] for r in repository.net.requests} == {"ok.example.org"}, result


# --- databases --------------------------------------------------------------------------------------------------------

@pytest.fixture
def postgres(online, command):
    """A PostgreSQL server in the far namespace."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs or not (programs[-1] / "initdb").exists() or not (programs[-1] / "psql").exists():
        pytest.skip("PostgreSQL is not installed in /usr/lib/postgresql")
    person = pwd.getpwnam("nobody")
    data = online.net.root / "postgres"
    data.mkdir(mode=0o700)
    os.chown(data, person.pw_uid, person.pw_gid)
    as_nobody = ["setpriv", f"--reuid={person.pw_uid}", f"--regid={person.pw_gid}", "--clear-groups", "--"]
    command([*as_nobody, programs[-1] / "initdb", "-A", "trust", "-U", "tester", "-D", data, "--no-sync"], cwd="/",
            timeout=600)
    with (data / "pg_hba.conf").open("a", encoding="ascii") as f:
        f.write("host all all 0.0.0.0/0 trust\n")
    words = ["nsenter", f"--net=/proc/{os.getpid()}/fd/{online.net.far}", "--", *as_nobody, programs[-1] / "postgres",
             "-D", data, "-h", SITE4, "-k", "", "-F"]
    server = command.start(words, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    near = ["nsenter", f"--net=/proc/{os.getpid()}/fd/{online.net.near}", programs[-1] / "psql", "-h", SITE4, "-U",
            "tester", "-c", "select 1", "postgres"]
    try:
        wait_for(lambda: command(near, check=False).ok, 300)
        yield str(programs[-1] / "psql")
    finally:
        server.terminate()
        server.wait(60)
        shutil.rmtree(data)


def test_psql(online, postgres):
    words = [postgres, "-h", "ok.example.org", "-U", "tester", "-At", "-c", "select 6 * 7", "postgres"]
    result = online.run(words, allow=["ok.example.org:5432"])
    assert result.out == "42\n", result
    result = online.run(words, allow=["ok.example.org"])
    assert result.out == "" and result.code != 0, result
