"""The console in a browser: a person decides, sees what lives, types; and what strangers wrote stays text (docs/console.md)."""
import base64
import json
import os

import pytest

from helpers import browser, places, requirement
from helpers.approvals import Asking
from helpers.daemon import Daemon, caller
from helpers.runner import wait_for

pytestmark = [requirement("R87"), pytest.mark.slow]

IMG, BIDI = "<img src=x onerror=window.taken=1>", "a\u202eb"
NET = "network:\n  allow: [example.org]\n"


FIRST_LOOK = """new Promise((done) => {
    const look = () => { const b = document.querySelector('dialog button.approve'); b ? done(b.disabled) : setTimeout(look, 5); };
    document.querySelector('.card button').click();
    look();
})"""


# what waits has a number of more digits than JavaScript keeps
ROUNDED = r"""(() => {
    const real = window.fetch;
    window.fetch = async (path, ...more) => {
        const said = await real(path, ...more);
        return /^\/v1\/approvals\/[0-9a-f]+$/.test(path) ? new Response((await said.text()).replace(/"params": ?{/, '$&"n":9007199254740993,')) : said;
    };
})()"""


class Console:
    """The page, and a person at it."""

    def __init__(self, own):
        self.own = own

    def open(self, url):
        self.own.blank()
        self.own.go(url)
        self.until("document.querySelector('#nav a') !== null")

    def run(self, code):
        return self.own.run(code)

    def until(self, code, seconds=60):
        assert wait_for(lambda: self.run(code), seconds), (code, self.text())

    def text(self):
        return self.run("document.body.innerText")

    def view(self, name):
        self.run(f"location.hash = '#{name}'")
        self.until(f"document.querySelector('#nav a[aria-current]').hash === '#{name.split('/')[0]}'")

    def press(self, label, within="document"):
        """A button by its words, as a person would: what is not to be seen or is not to be pressed is none."""
        found = f"[...({within}?.querySelectorAll('button') ?? [])].find((b) => b.textContent === {json.dumps(label)} && !b.disabled && b.offsetParent !== null)"
        self.until(f"{found} !== undefined")
        self.run(f"{found}.click()")

    def key(self, key, code, text=""):
        for kind in ("keyDown", "keyUp"):
            self.own("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **({"text": text} if text and kind == "keyDown" else {}))

    def type(self, text):
        self.own("Input.insertText", text=text)

    def shoot(self, name):
        """For people who change the page: CLOCHE_SHOTS is a folder."""
        if "CLOCHE_SHOTS" in os.environ:
            said = self.own("Page.captureScreenshot", format="png")
            with open(f"{os.environ['CLOCHE_SHOTS']}/{name}.png", "wb") as f:
                f.write(base64.b64decode(said["data"]))

    def size(self, width, height, scheme="light", mobile=False):
        self.own("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.own("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])


@pytest.fixture
def page(tmp_path):
    browser.needed()
    with browser.Own(tmp_path) as own:
        yield Console(own)


@pytest.fixture
def daemon(cloche, tmp_path):
    settings = tmp_path / "settings.yaml"
    settings.write_text(NET + "with: [curl]\n")
    made = Daemon(cloche, "--settings", str(settings), gate=None, tcp=True)
    yield made
    assert made.stop() == 0, made.log


def url(daemon, **body):
    said = daemon.post("/v1/console", body)
    assert said.status == 201, said
    return said.json["url"]


def refused(daemon, host):
    """A sandbox `third` whose program asked for that host, which is on record."""
    said = daemon.create(name="third").exec(f"curl -sm 5 http://{host}; echo $?")
    assert wait_for(lambda: host in json.dumps(daemon.get("/v1/audit?type=policy_decision").json), 20), (said, daemon.get("/v1/audit?limit=1000").json["entries"][-6:])


def test_a_person_sees_decides_and_types(daemon, page):
    page.size(1200, 800)
    agent = caller(daemon, "agent", name="builder")
    box = agent.create(name="work")
    page.open(url(daemon))
    assert page.run("location.hash") == "" and page.run("sessionStorage.length") == 1 and page.run("document.cookie") == ""
    # what lives, as it comes and goes
    page.until("document.querySelector('.boxes')?.innerText.includes('work')")
    other = daemon.create(name="second")
    page.until("document.querySelector('.boxes').innerText.includes('second')")
    page.until("/[0-9.]+ (KiB|MiB)/.test(document.querySelector('.boxes .memory').innerText)")
    page.shoot("sandboxes")
    row = "[...document.querySelectorAll('.boxes tr')].find((r) => r.innerText.includes('second'))"
    page.press("Pause", row)
    assert wait_for(lambda: other.show()["paused"])
    page.press("Resume", row)
    assert wait_for(lambda: not other.show()["paused"])
    page.press("End", row)
    page.shoot("confirm")
    page.press("Cancel", "document.querySelector('dialog')")
    page.until("document.querySelector('dialog') === null")
    assert other.show()["state"] == "ready"
    page.press("End", row)
    page.press("End it", "document.querySelector('dialog')")
    page.until("!document.querySelector('.boxes').innerText.includes('second')")
    # what waits: what is approved is what was shown
    asking = Asking(agent, "POST", f"{box.at}/exec", {"command": "echo approved by a person"})
    page.until("document.querySelector('.badge').textContent === '1'")
    assert page.run("document.title") == "(1) cloche console"
    page.view("approvals")
    page.until("document.querySelector('.card')?.innerText.includes('wants to run shell')")
    page.shoot("approvals")
    # for a moment it cannot be approved: no click that was meant for something else does it
    assert page.run(FIRST_LOOK) is True
    page.until("document.querySelector('dialog')?.innerText.includes('echo approved by a person')")
    page.shoot("review")
    page.press("Approve", "document.querySelector('dialog')")
    assert asking.wait().json["stdout"] == "approved by a person\n"
    page.until("document.querySelector('dialog') === null && document.querySelector('.past').innerText.includes('approved')")
    asking = Asking(agent, "POST", f"{box.at}/exec", {"command": "touch no"})
    page.press("Review…")
    page.press("Deny", "document.querySelector('dialog')")
    assert asking.wait().json["code"] == "gate.denied"
    # the record, and where it connects to
    page.view("audit")
    page.until("document.querySelector('.entries').innerText.includes('create')")
    refused(daemon, "refused.example.net")
    page.until("document.querySelector('.entries').innerText.includes('refused.example.net')")
    page.shoot("audit")
    page.run("(() => { const i = document.querySelector('input[type=search]'); i.value = 'refused.example'; i.dispatchEvent(new Event('input')); })()")
    page.until("[...document.querySelectorAll('.entries .entry')].filter((n) => !n.hidden).every((n) => n.textContent.includes('refused.example'))")
    page.view("egress")
    page.until("document.querySelector('.hosts')?.innerText.includes('refused.example.net') && document.querySelector('.hosts').innerText.includes('third')")
    page.shoot("egress")
    # a terminal, by its keys
    page.view("terminal/" + box.id)
    page.until(f"document.querySelector('select').value === '{box.id}'")
    page.press("Start")
    page.until("document.querySelector('.screen').innerText.includes('$ ') || document.querySelector('.screen').innerText.includes('# ')")
    page.type("printf 'h\\303\\251 \\033[31mred\\033[0m \\033]52;c;aGk=\\007 \\342\\200\\256x'; echo 6 times 7 is $((6*7))")
    page.key("Enter", 13, "\r")
    page.until("document.querySelector('.screen').innerText.includes('hé red  U+202Ex6 times 7 is 42')")
    assert page.run("document.querySelector('.screen .f1').textContent") == "red"
    page.shoot("terminal")
    page.type("sleep 100")
    page.key("Enter", 13, "\r")
    page.press("Ctrl-C")
    page.until(r"/\^C[^]*[$#]$/.test(document.querySelector('.screen').innerText.trimEnd())")    # what is typed before the prompt may be dropped
    # the command's words for the console's, in the colour of their ground; and a sequence without an end does not swallow those
    page.type("printf '[it ended with 0]\\n\\033[30;40m\\033]0;'; exit 3")
    page.key("Enter", 13, "\r")
    page.until("document.querySelector('.screen .note')?.innerText === 'it ended with 3'")
    assert page.run("document.querySelectorAll('.note').length === 1 && document.querySelector('.note .line, .note [class^=f], .line .note') === null")
    # what comes too fast is left away, which is said where it is missing, once between two lines
    page.run("document.querySelector('input[placeholder=\"/bin/sh -i\"]').value = 'yes | head -n 700000; echo end'")
    page.press("Start")
    page.until("[...document.querySelectorAll('.note')].pop()?.innerText === 'it ended with 0'", 150)
    lines, notes, end = page.run("[document.querySelectorAll('.screen > .line').length, [...document.querySelectorAll('.note')].map((n) => n.innerText), document.querySelector('.screen').innerText.slice(-60)]")
    assert lines <= 2001 and len(notes) <= lines + 1 and "y\nend\n" in end.replace("\n\n", "\n"), (lines, notes, end)
    assert page.run("[...document.querySelectorAll('.note + .note')].length") <= 1
    page.size(390, 800, "dark", mobile=True)
    for name in ("sandboxes", "approvals", "audit", "egress", "terminal"):
        page.view(name)
        page.until("document.querySelector('h1') !== null")
        page.until({"sandboxes": "document.querySelector('.boxes td') !== null", "egress": "document.querySelector('.hosts td') !== null", "audit": "document.querySelector('.entry') !== null"}.get(name, "true"))
        assert page.run("document.documentElement.scrollWidth <= window.innerWidth"), name
        page.shoot(f"{name}-phone")
    # and it is over when the person says so
    page.press("Sign out")
    page.until("document.querySelector('.door') !== null")
    assert page.run("sessionStorage.length") == 0
    assert wait_for(lambda: not [t for t in daemon.get("/v1/tokens").json["tokens"] if t["name"] == "console"])
    page.size(1200, 800, "dark")
    page.shoot("door")


# contrasts of WCAG 2, as the page computes the colours, of each pair that a command can ask for: [the least, its classes]
CONTRASTS = r"""(() => {
    const look = (node) => getComputedStyle(node), numbers = (c) => c.match(/[0-9.]+/g).map(Number);
    const light = (c) => numbers(c).slice(0, 3).map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const screen = document.body.appendChild(document.createElement('div')), line = screen.appendChild(document.createElement('div')), all = [];
    screen.className = 'screen';
    line.className = 'line';
    for (let f = -1; f < 16; f++)
        for (let k = -1; k < 16; k++) {
            const span = line.appendChild(document.createElement('span'));
            span.className = `${f < 0 ? '' : `f${f}`} ${k < 0 ? '' : `k${k}`}`.trim();
            const ground = numbers(look(span).backgroundColor)[3] === 0 ? look(screen).backgroundColor : look(span).backgroundColor;
            const [a, b] = [light(look(span).color), light(ground)];
            all.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), span.className]);
        }
    screen.remove();
    return [all.length, all.sort((a, b) => a[0] - b[0])[0]];
})()"""


def test_no_colours_hide_what_a_command_writes(page):
    page.own.blank()
    style = (places.REPO / "console" / "style.css").read_text("utf-8")
    page.run(f"document.head.appendChild(document.createElement('style')).textContent = {json.dumps(style)}")
    for scheme in ("light", "dark"):
        page.size(1200, 800, scheme)
        n, (least, classes) = page.run(CONTRASTS)
        assert n == 17 * 17 and least >= 3, (scheme, least, classes)


def test_what_strangers_wrote_stays_text(daemon, page):
    """In an approval, the record, a command's output; and in what no daemon would say: names of 10 MB."""
    agent = caller(daemon, "agent", name="builder")
    box = agent.create(name="work", labels={"k": IMG[:60]})
    page.own("Page.addScriptToEvaluateOnNewDocument", source="window.violations = 0; document.addEventListener('securitypolicyviolation', () => window.violations++)")
    page.open(url(daemon))
    asking = Asking(agent, "POST", f"{box.at}/exec", {"command": [IMG, BIDI, "x" * 20000, "\u200b\u2066"]})
    page.view("approvals")
    page.press("Review…")
    page.until("document.querySelector('dialog')?.innerText.includes('<img src=x onerror') && document.querySelector('dialog').innerText.includes('U+202E')")
    shown = page.run("document.querySelector('dialog').textContent")
    assert BIDI not in shown and "x" * 20000 in shown       # it is approved as a whole, so it is shown as a whole
    page.press("Deny", "document.querySelector('dialog')")
    asking.wait()
    # a number that the page would round is not approved there, whatever its digest
    page.until("document.querySelector('dialog') === null")
    page.run(ROUNDED)
    asking = Asking(agent, "POST", f"{box.at}/exec", {"command": "true"})
    page.press("Review…")
    page.until("document.querySelector('dialog')?.innerText.includes('rounded')")
    page.run("new Promise((done) => setTimeout(done, 1200))")       # longer than the button is off for everything
    assert page.run("document.querySelector('dialog button.approve').disabled")
    page.press("Deny", "document.querySelector('dialog')")
    assert asking.wait().json["code"] == "gate.denied"
    refused(daemon, "img.example.net")
    page.view("audit")
    page.until("document.querySelector('.entries').innerText.includes('img.example.net')")
    # a daemon that is somebody else's, or has a fault
    hostile = {"sandboxes": [{"id": f"{i:032x}", "name": IMG + BIDI, "state": IMG, "paused": False, "owner": IMG, "labels": {IMG: IMG}, "created_ms": 0,
                              "started_ms": 0, "facts": {"engine": IMG, "boundary": BIDI}, "idle_timeout": 0, "max_lifetime": 0, "detail": IMG} for i in range(300)], "next": None}
    entry = {"seq": 1, "timestamp": IMG, "type": IMG, "severity": IMG, "summary": IMG + BIDI, "sandbox": IMG, "metadata": {"host": IMG, "path": BIDI, "by": "y"}}
    page.own("Page.addScriptToEvaluateOnNewDocument", source=f"""
        const real = window.fetch, say = (o) => new Response(JSON.stringify(o), {{ status: 200 }});
        const boxes = {json.dumps(hostile)}, entries = {{ entries: [{json.dumps(entry)}] }};
        boxes.sandboxes[0].name = "n".repeat(10 << 20);
        entries.entries[0].metadata.by = "y".repeat(10 << 20);
        window.fetch = async (path, ...more) => path.startsWith("/v1/sandboxes?") ? say(boxes) : path === "/v1/usage" ? say({{ usage: [{{ id: boxes.sandboxes[1].id, memory_bytes: "{IMG}", cpu_us: null, running: [boxes.sandboxes[1].name] }}] }})
            : path.startsWith("/v1/audit?") ? say(entries) : real(path, ...more);""")
    page.open(url(daemon))
    page.view("sandboxes")
    page.until("document.querySelectorAll('.boxes tbody tr').length === 100")
    assert page.run("document.querySelector('.boxes').textContent.length") < 200000
    more = "document.querySelector('.boxes button.more')"
    before = page.run(f"{more}.textContent")
    page.run(f"{more}.click()")
    assert before == "… 10,485,720 more characters" and page.run(f"{more}.textContent") == "… 10,420,184 more characters"
    page.press("Details", "document.querySelectorAll('.boxes tbody tr')[1]")
    page.until("document.querySelector('dialog')?.innerText.includes('<img')")
    page.run("document.querySelector('dialog').close()")
    page.view("audit")
    page.until("document.querySelector('.entries .entry') !== null")
    page.view("egress")
    page.until("document.querySelector('main select') !== null")
    for tag in ("img", "svg", "iframe", "object", "script:not([src='/console/main.js'])"):
        assert page.run(f"document.querySelectorAll(\"{tag}\").length") == 0, tag
    assert page.run("window.taken") is None and page.run("window.violations") == 0
    # and where a script of ours would make HTML of it, the browser does not
    assert page.run("(() => { try { document.body.innerHTML = '<b>x</b>'; return 'made'; } catch (e) { return e.name; } })()") == "TypeError"


def test_who_may_less_sees_less(daemon, page):
    agent = caller(daemon, "agent")
    box = agent.create(name="work")
    page.open(url(daemon, role="auditor"))
    page.until("document.querySelector('.boxes tbody tr') !== null")
    assert page.run("[...document.querySelectorAll('#nav a')].map((a) => a.hash)") == ["#sandboxes", "#approvals", "#audit", "#egress"]
    assert page.run("[...document.querySelectorAll('.boxes button')].map((b) => b.textContent)") == ["Details"]
    asking = Asking(agent, "POST", f"{box.at}/exec", {"command": "true"})
    page.view("approvals")
    page.press("Look…")
    page.until("document.querySelector('dialog')?.innerText.includes('decides nothing')")
    assert page.run("document.querySelectorAll('dialog .danger, dialog .approve').length") == 0
    page.open(url(daemon, role="approver"))
    assert page.run("[...document.querySelectorAll('#nav a')].map((a) => a.hash)") == ["#approvals"]
    page.press("Review…")
    page.press("Deny", "document.querySelector('dialog')")
    asking.wait()
    # a ticket that was used, and a token that is no person's
    used = url(daemon)
    page.open(used)
    page.run("sessionStorage.clear()")
    page.own.blank()
    page.own.go(used)
    page.until("document.getElementById('say').textContent === 'the ticket was used already' && document.querySelector('.door') !== null")
    agents = agent.headers["Authorization"].split()[1]
    page.run(f"document.querySelector('.door input').value = '{agents}'; document.querySelector('.door').requestSubmit()")
    page.until("document.getElementById('say').textContent.includes('no token of an operator')")
    page.run(f"document.querySelector('.door input').value = '{daemon.token('approver')}'; document.querySelector('.door').requestSubmit()")
    page.until("document.querySelector('#nav a') !== null")


def test_a_ticket_is_taken_by_a_page_that_is_open(daemon, page):
    """Nothing is loaded for an address that differs behind its "#": the page itself has to look."""
    key = "JSON.parse(sessionStorage.getItem('cloche.session'))?.id"

    def paste(address):
        page.run(f"location.href = {json.dumps(address)}")

    page.open(url(daemon))
    page.run("window.same = true")
    page.view("audit")
    first, used = page.run(key), url(daemon, role="auditor")
    paste(used)
    page.until(f"![undefined, '{first}'].includes({key}) && [...document.querySelectorAll('#nav a')].every((a) => a.hash !== '#terminal')")
    assert page.run("location.hash") == "#audit" and page.run("document.querySelectorAll('h1').length") == 1
    assert wait_for(lambda: first not in [t["id"] for t in daemon.get("/v1/tokens").json["tokens"]])
    # one that opens nothing ends nothing
    second = page.run(key)
    paste(used)
    page.until("document.getElementById('say').textContent === 'the ticket was used already'")
    paste(used[:-1])
    page.until("location.hash === '#audit' && document.getElementById('say').textContent !== 'the ticket was used already'")
    assert page.run(key) == second and page.run("document.querySelector('.entries') !== null")
    # and where the session is over
    assert daemon("DELETE", f"/v1/tokens/{second}").ok
    page.until("document.querySelector('.door') !== null && document.getElementById('say').textContent.startsWith('Your session is over')")
    paste(url(daemon))
    page.until("document.querySelector('#nav a') !== null && document.querySelector('.door') === null")
    assert page.run("window.same") and page.run("location.hash") == ""
