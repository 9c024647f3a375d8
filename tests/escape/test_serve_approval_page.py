"""Attacks on the page on which somebody decides: by what an agent asks for, by other sites, by other tokens."""
import re

import pytest

from helpers import requirement
from helpers.daemon import Daemon, caller, token
from helpers.page import FORM, Page, get, send

pytestmark = [requirement("R63"), requirement("R68")]

ASYNC = {"Prefer": "respond-async"}


@pytest.fixture
def daemon(cloche):
    d = Daemon(cloche, "--allowed-origins", "https://console.example", path=cloche.home / "s", gate=None, tcp=True)
    yield d
    assert d.stop() == 0, d.log


@pytest.fixture
def agent(daemon):
    return caller(daemon, "agent", name="evil")


@pytest.fixture
def approver(daemon):
    return token(daemon, "approver")["token"]


def asked(agent, command="echo ran", **members):
    told = agent("POST", f"{agent.create().at}/exec", {"command": command, **members}, ASYNC)
    assert told.status == 202, told
    return told.json["approval"]


def pending(daemon, which):
    return daemon.get(f"/v1/approvals/{which}").json["state"] == "pending"


def strict(page):
    """Whatever it says: nothing runs, nothing comes from elsewhere, nobody puts it into a frame, nothing is kept."""
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "base-uri 'none'" in policy, policy
    assert "form-action 'self'" in policy and "unsafe" not in policy and "script" not in policy, policy
    assert page.headers["X-Frame-Options"] == "DENY" and page.headers["X-Content-Type-Options"] == "nosniff", page.headers
    assert page.headers["Cache-Control"] == "no-store" and page.headers["Cross-Origin-Opener-Policy"] == "same-origin", page.headers
    assert "Set-Cookie" not in page.headers and page.headers["Content-Type"] == "text/html; charset=utf-8", page.headers
    assert page.names() <= {"html", "head", "meta", "title", "link", "body", "h1", "h2", "p", "dl", "dt", "dd", "pre", "b", "form", "label",
                            "input", "button"}, page.names()
    for tag, attrs in page.tags:
        assert not any(name.startswith("on") or name == "style" for name in attrs), (tag, attrs)
        assert re.fullmatch(r"/approvals/[0-9a-f]{32}", attrs.get("action", "/approvals/" + "0" * 32)), attrs
    assert not page.open, page.open
    return page


BREAKS = ["</pre><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\"><svg/onload=alert(1)>", "' autofocus onfocus='x",
          "<!--", "<![CDATA[", "</title></head>", "&lt;script&gt;", "&#60;script&#62;", "<form action=https://evil.example>", "]]>", "<b>U+202E</b>"]


@pytest.mark.parametrize("text", BREAKS)
def test_what_an_agent_writes_is_text(daemon, agent, approver, text):
    which = asked(agent, f"echo {text}", env={"X": text, "Y_" + "".join(c for c in text if c.isalnum()): "1"})
    page = strict(send(daemon.remote(), which, token=approver, do="show"))
    assert page.status == 200 and f"echo {text}" in page.pre, page.source
    assert page.marked == [], page.marked


HIDDEN = {"\u202e": "U+202E", "\u2066": "U+2066", "\u200b": "U+200B", "\u200d": "U+200D", "\ufeff": "U+FEFF", "\u00ad": "U+00AD",
          "\u00a0": "U+00A0", "\u3000": "U+3000", "\u2028": "U+2028", "\x1b": "U+001B", "\x07": "U+0007", "\x7f": "U+007F",
          "\u0085": "U+0085", "\r": "U+000D", "\U000e0041": "U+E0041", "\ue000": "U+E000", "\ufe0f": "U+FE0F", "\u3164": "U+3164"}


def test_nothing_hides(daemon, agent, approver):
    """Characters that reorder, or that nobody sees, are named; the rest is as it came."""
    which = asked(agent, "echo äß日本🙂 " + "".join(f"[{c}]" for c in HIDDEN))
    page = strict(send(daemon.remote(), which, token=approver, do="show"))
    assert page.pre[0] == "echo äß日本🙂 " + "".join(f"[{name}]" for name in HIDDEN.values()), page.pre
    assert page.marked == list(HIDDEN.values())
    assert not any(c in page.source for c in HIDDEN if c not in "\r\n")


def test_depth_makes_no_page_of_spaces(daemon, agent, approver):
    """Each level of nested lists would be indented further than the one before it: 1 MB of spaces for 2 KB. Nobody is
    asked about what is no policy, however deep; what is one is shown level by level."""
    deep = []
    for _ in range(800):
        deep = [deep]
    told = agent("POST", "/v1/sandboxes", {"policy": {"x": deep}}, ASYNC)
    assert told.status == 400 and told.json["code"] == "policy.file.too-deep", told
    told = agent("POST", "/v1/sandboxes", {"policy": {"limits": {"memory": "64m"}}}, ASYNC)
    assert told.status == 202, told
    page = strict(send(daemon.remote(), told.json["approval"], token=approver, do="show"))
    assert '{\n  "limits": {\n    "memory": ' in page.pre[-1], page.source
    assert "approve" in [a.get("value") for t, a in page.tags if t == "button"], page.source


def test_a_reason_is_text_too(daemon, agent, approver):
    which = asked(agent)
    digest = send(daemon.remote(), which, token=approver, do="show").fields["digest"]
    page = strict(send(daemon.remote(), which, token=approver, do="deny", digest=digest, reason="</dd><script>\u202e"))
    assert page.status == 200 and "</dd><script>U+202E" in page.text, page.source


def test_without_a_token_it_says_nothing(daemon, agent):
    which, remote = asked(agent, "echo its-secret"), daemon.remote()
    page, none = strict(get(remote, which)), get(remote, "0" * 32)
    assert page.source.replace(which, "0" * 32) == none.source and "its-secret" not in page.source
    for fields in ({}, {"do": "show"}, {"do": "show", "token": ""}, {"do": "show", "token": "cloche_approver_" + "0" * 64},
                   {"do": "show", "token": "x" * 5000}, {"do": "approve", "token": "", "digest": "0" * 64}):
        answer = strict(send(remote, which, **fields))
        other = send(remote, "0" * 32, **fields)
        assert answer.status in (400, 401) and (answer.status, answer.source) == (other.status, other.source), answer.source
        assert "its-secret" not in answer.source
    # nor does the owner's own socket decide for whoever brings no token
    assert send(daemon, which, do="show", token="").status in (400, 401) and pending(daemon, which)


def test_other_tokens_do_not_decide(daemon, agent):
    which, remote = asked(agent), daemon.remote()
    digest = daemon.get(f"/v1/approvals/{which}").json["digest"]
    own = agent.headers["Authorization"][7:]
    box = agent.create()
    key = agent.post(f"{box.at}/key").json["key"]
    gone = token(daemon, "approver")
    assert daemon("DELETE", f"/v1/tokens/{gone['id']}").ok
    for secret, status in ((own, 403), (token(daemon, "agent")["token"], 403), (token(daemon, "auditor")["token"], 403), (key, 403), (gone["token"], 401)):
        for do in ("show", "approve", "deny"):
            page = strict(send(remote, which, token=secret, do=do, digest=digest))
            assert page.status == status and "echo ran" not in page.source, (do, page.source)
    assert pending(daemon, which)
    # a credential in a header is not looked at: what counts is what was typed
    page = send(remote, which, {"Authorization": f"Bearer {token(daemon, 'approver')['token']}"}, token=own, do="approve", digest=digest)
    assert page.status == 403 and pending(daemon, which)


def test_other_sites_decide_nothing(daemon, agent, approver):
    """Not even with the token: and it is what no other site has."""
    which, remote = asked(agent), daemon.remote()
    digest = daemon.get(f"/v1/approvals/{which}").json["digest"]
    host, port = daemon.addresses()[0]
    body = {"token": approver, "do": "approve", "digest": digest}
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "https://console.example"},      # which may ask the API
                    {"Origin": f"https://{host}:{port}"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
                    {"Origin": f"http://{host}:{port}", "Sec-Fetch-Site": "cross-site"}):
        answer = remote("POST", f"/approvals/{which}", "&".join(f"{k}={v}" for k, v in body.items()).encode(), {**FORM, **headers})
        assert answer.status == 403, (headers, answer)
    for kind in ("text/plain", "multipart/form-data; boundary=x", "application/json", ""):
        answer = remote("POST", f"/approvals/{which}", "&".join(f"{k}={v}" for k, v in body.items()).encode(), {"Content-Type": kind})
        assert answer.status == 400, (kind, answer)
    assert remote("GET", f"/approvals/{which}?token={approver}&do=approve&digest={digest}").status == 200
    assert pending(daemon, which)
    assert send(remote, which, {"Origin": f"http://{host}:{port}", "Sec-Fetch-Site": "same-origin"}, **body).status == 200
    assert not pending(daemon, which)


def test_what_was_not_shown_is_not_decided(daemon, agent, approver):
    which, other, remote = asked(agent, "echo mine"), asked(agent, "echo another"), daemon.remote()
    digest = send(remote, other, token=approver, do="show").fields["digest"]
    for do in ("approve", "deny"):
        for wrong in (digest, "", "0" * 64, "0" * 5000):
            page = strict(send(remote, which, token=approver, do=do, digest=wrong))
            assert page.status in (400, 409), page.source
    for fields in ({"scope": "all"}, {"scope": "sandbox", "expires": "-1"}, {"scope": "sandbox", "expires": "1e9"}, {"do": "approve!"}, {"reason": "x" * 600}):
        right = send(remote, which, token=approver, do="show").fields["digest"]
        assert send(remote, which, **{"token": approver, "do": "approve", "digest": right, **fields}).status == 400, fields
    assert pending(daemon, which) and pending(daemon, other)


def test_a_decision_is_not_made_twice(daemon, agent, approver):
    which, remote = asked(agent), daemon.remote()
    digest = send(remote, which, token=approver, do="show").fields["digest"]
    assert send(remote, which, token=approver, do="deny", digest=digest).status == 200
    for do in ("approve", "deny"):
        assert strict(send(remote, which, token=approver, do=do, digest=digest)).status == 409
    assert daemon.get(f"/v1/approvals/{which}").json["state"] == "denied"


def test_paths_that_are_none(daemon):
    remote = daemon.remote()
    for which in ("x", "0" * 31, "0" * 33, "A" * 32, "%3Cscript%3E", "..%2f..%2fetc"):
        for method in ("GET", "POST"):
            answer = remote(method, f"/approvals/{which}", b"do=show" if method == "POST" else None, FORM)
            assert answer.status in (400, 404), (which, answer)
            if answer.headers["Content-Type"].startswith("text/html"):
                assert "script" not in strict(Page(answer)).source
