"""A registry of images on this machine's loopback, in threads of the test: what it says, and how it fails, is the test's; and a real one."""
import base64
import http.server
import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse
import urllib.request

from helpers import images

OCI_MANIFEST, OCI_INDEX = "application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json"


class Registry:
    """Serves the blobs of an images.Layout; @tags {"name:tag": descriptor}. @auth: None, "basic", "bearer"."""

    def __init__(self, layout, tags, auth=None, tls=None, address="127.0.0.1"):
        self.layout, self.tags, self.auth, self.login = layout, tags, auth, base64.b64encode(b"user:secret").decode()
        self.asked, self.change, self.cuts, self.redirect = [], {}, {}, None
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_GET(self):
                outer.asked.append((self.path, dict(self.headers)))
                outer.answer(self)
            do_HEAD = do_GET

        self.server = http.server.ThreadingHTTPServer((address, 0), Handler)
        self.server.daemon_threads = True
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.host = f"{address}:{self.port}"
        self.scheme = "https" if tls else "http"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.server.shutdown()
        self.server.server_close()

    def send(self, to, status, body=b"", **headers):
        to.send_response(status)
        for name, value in headers.items():
            to.send_header(name.replace("_", "-"), value)
        to.send_header("Content-Length", str(len(body)))
        to.end_headers()
        to.wfile.write(body)

    def allowed(self, to):
        said = to.headers.get("Authorization", "")
        if self.auth is None or (self.auth == "basic" and said == "Basic " + self.login) or (self.auth == "bearer" and said == "Bearer t0ken"):
            return True
        ask = 'Basic realm="here"' if self.auth == "basic" else \
            f'Bearer realm="{self.scheme}://{self.host}/token",service="me, myself",scope="repository:x:pull"'
        self.send(to, 401, b"{}", WWW_Authenticate=ask)
        return False

    def answer(self, to):
        path = urllib.parse.urlsplit(to.path)
        if path.path == "/token":
            ok = to.headers.get("Authorization") == "Basic " + self.login and urllib.parse.parse_qs(path.query) == {
                "service": ["me, myself"], "scope": ["repository:x:pull"]}
            return self.send(to, 200 if ok else 401, json.dumps({"token": "t0ken"}).encode() if ok else b"{}")
        if not self.allowed(to):
            return None
        words = path.path.split("/")
        what, ref = words[-2], words[-1]
        name = "/".join(words[2:-2])
        if what == "manifests" and not ref.startswith("sha256:"):
            if f"{name}:{ref}" not in self.tags:
                return self.send(to, 404, b"{}")
            ref = self.tags[f"{name}:{ref}"]["digest"]
        if what == "blobs" and self.redirect:
            return self.send(to, 307, Location=f"{self.redirect}{path.path}")
        file = self.layout.path / "blobs" / "sha256" / ref[7:]
        if not file.exists():
            return self.send(to, 404, b"{}")
        return self.blob(to, ref, self.change.get(ref, file.read_bytes()))

    def blob(self, to, ref, data):
        first = int(to.headers.get("Range", "bytes=0-")[6:].split("-")[0])
        to.send_response(206 if first else 200)
        if first:
            to.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        to.send_header("Content-Length", str(len(data) - first))
        to.end_headers()
        cut = self.cuts.get(ref, [])
        end = cut.pop(0) if cut else len(data)
        to.wfile.write(data[first:first + end])
        if end < len(data) - first:
            to.wfile.flush()
            to.connection.shutdown(socket.SHUT_RDWR)
            to.close_connection = True


def certificate(folder):
    """(certificate, key) for 127.0.0.1, which is its own CA."""
    made = folder / "cert.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(made[1]), "-out",
                    str(made[0]), "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    return made


class RealRegistry:
    """Debian's docker-registry, with files of its own."""
    PROGRAM = shutil.which("docker-registry")

    def __init__(self, folder):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.host = "127.0.0.1:%d" % s.getsockname()[1]
        (folder / "registry.yml").write_text(json.dumps({
            "version": "0.1", "log": {"level": "error"}, "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
            "http": {"addr": self.host}}))
        self.process = subprocess.Popen([self.PROGRAM, "serve", str(folder / "registry.yml")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                return self.call("GET", "/v2/") and None
            except OSError:
                time.sleep(0.05)
        raise AssertionError("docker-registry does not start")

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.process.terminate()
        self.process.wait()

    def call(self, method, path, data=None, **headers):
        url = path if path.startswith("http") else f"http://{self.host}{path}"
        return urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=60)

    def push(self, name, layout, tags, manifests):
        """All blobs of @layout, then @manifests (descriptors with mediaType), then @tags {tag: descriptor}."""
        documents = {one["digest"] for one in [*manifests, *tags.values()]}
        for file in (layout.path / "blobs" / "sha256").iterdir():
            data = file.read_bytes()
            if images.digest(data) not in documents:
                at = self.call("POST", f"/v2/{name}/blobs/uploads/").headers["Location"]
                self.call("PUT", at + ("&" if "?" in at else "?") + "digest=" + images.digest(data), data, **{"Content-Type": "application/octet-stream"})
        for ref, one in [*((m["digest"], m) for m in manifests), *tags.items()]:
            data = (layout.path / "blobs" / "sha256" / one["digest"][7:]).read_bytes()
            self.call("PUT", f"/v2/{name}/manifests/{ref}", data, **{"Content-Type": one["mediaType"]})
