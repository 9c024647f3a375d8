"""A server that is told of approvals."""
import hashlib
import hmac
import http.server
import json
import ssl
import subprocess
import threading
import time

from helpers.runner import wait_for


class Hook:
    """Keeps what it is told. @answer: a status for each request in turn (the last one for all further ones), or (status, headers)."""

    def __init__(self, *answers, certificate=None, secret=b""):
        self.answers, self.secret, self.told, self.lock = list(answers) or [204], secret, [], threading.Lock()
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):      # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with hook.lock:
                    answer = hook.answers.pop(0) if len(hook.answers) > 1 else hook.answers[0]
                    hook.told.append(Told(self.path, dict(self.headers), body))
                status, headers, text = answer if isinstance(answer, tuple) else (answer, {}, b"")
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(text))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)

            def do_GET(self):       # pylint: disable=invalid-name
                with hook.lock:
                    hook.told.append(Told("GET " + self.path, dict(self.headers), b"{}"))
                self.send_error(404)

            def log_message(self, *_):      # pylint: disable=arguments-differ
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):     # a client that hangs up in its handshake is what some tests are about
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.scheme = "http" if certificate is None else "https"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.port}/hook?of=cloche"

    def heard(self, n=1):
        """The first @n, when there are so many."""
        assert wait_for(lambda: len(self.told) >= n, 120), f"{len(self.told)} of {n}"
        return self.told[:n]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Told:
    def __init__(self, path, headers, body):
        self.path, self.headers, self.body, self.at = path, headers, body, time.time()

    @property
    def json(self):
        return json.loads(self.body)

    def signed_by(self, secret):
        """As docs/gate.md says it."""
        stamp, signature = [part.split("=", 1)[1] for part in self.headers["Cloche-Signature"].split(",")]
        wanted = hmac.new(secret, stamp.encode() + b"." + self.body, hashlib.sha256).hexdigest()
        return hmac.compare_digest(wanted, signature) and abs(self.at - int(stamp)) < 600


def certificate_of(folder, name="IP:127.0.0.1"):
    """A certificate for @name that is its own CA: (certificate, key)."""
    cert, key = folder / "hook.pem", folder / "hook.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(key),
                    "-out", str(cert), "-days", "2", "-subj", "/CN=hook", "-addext", f"subjectAltName={name}"], check=True, capture_output=True)
    cert.chmod(0o644)
    return cert, key
