"""A credential of AWS, and whether a request that arrived bears its signature."""
import hashlib
import hmac
import posixpath
import re
from urllib.parse import quote, unquote

ID, KEY, TOKEN = "AKIA2E4R6T8Y0U2I4O6P", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYZ1LEKEY99", "IQoJb3JpZ2luX2VjEXAMPLEt0kenZ9"


def again(text):
    return quote(unquote(text), safe="-_.~")


def verify(request, body=None):
    """The signature of @request is the one that KEY gives: "Create a signed AWS API request", IAM User Guide."""
    sent = {}
    for name, value in request["headers"]:
        sent[name] = sent[name] + "," + value if name in sent else value
    claim = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})",
                         sent["authorization"])
    ident, scope, names, signature = claim.groups()
    day, region, service, _ = scope.split("/")
    path, _, query = request["path"].partition("?")
    payload = sent.get("x-amz-content-sha256") or hashlib.sha256(body if body is not None else request["data"]).hexdigest()
    query = "&".join("=".join(p) for p in sorted((again(p.partition("=")[0]), again(p.partition("=")[2]))
                                                 for p in query.split("&") if p))
    normal = "/" + posixpath.normpath(path).lstrip("/") + ("/" if path.endswith("/") and path.strip("/") else "")
    fixed = path if service == "s3" else quote(normal, safe="/-_.~")
    canonical = "\n".join([request["method"], fixed, query,
                           *(f"{n}:{' '.join(sent[n].split())}" for n in names.split(";")), "", names, payload])
    text = "\n".join(["AWS4-HMAC-SHA256", sent["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + KEY).encode()
    for part in (day, region, service, "aws4_request", text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    assert ident == ID and key.hex() == signature, (canonical, sent)
