"""A computer-use loop, end to end: a browser on a page in a sandbox's desktop, typed into, clicked, seen to change, and heard (issue 18)."""
import base64

import pytest

from helpers import browser, desktop, requirement
from helpers.desktop import decoded, frequencies, until

pytestmark = [requirement("R48", "R49"), desktop.needed, pytest.mark.slow]

PAGE = b"""<!doctype html><title>form</title><style>body {margin: 0; background: #fff} * {position: absolute; left: 0; width: 400px; height: 60px}</style>
<input id=i style="top: 0"><button id=b style="top: 100px">go</button><script>
b.onclick = () => {
    if (i.value !== "hello agent") return;
    const c = new AudioContext(), o = c.createOscillator();
    o.frequency.value = 440;
    o.connect(c.destination);
    o.start();
    document.documentElement.style.background = "#00ff00";
    document.body.style.background = "#00ff00";
};
</script>"""


def act(daemon, box, **action):
    done = daemon.post(f"/api/sandbox/computer/action?id={box.id}", action)
    assert done.status == 200 and done.json["success"], (action, done)
    return done.json


def corner(daemon, box):
    """What is at the right below on a screenshot."""
    return bytes(decoded(act(daemon, box, action="screenshot"))[2][700][3 * 1000:3 * 1000 + 3])


def test_a_page_is_used(daemon):
    browser.needed()
    box = daemon.create(policy={"limits": {"memory": browser.MEMORY}})
    assert box.put("page.html", PAGE).ok
    assert corner(daemon, box) == b"\0\0\0"
    heard = daemon.post(f"/api/sandbox/audio/record?id={box.id}", {"durationMs": 250})      # there is sound from here on
    assert heard.ok, heard
    begun = box.exec(f"{desktop.INSIDE} setsid {browser.CHROMIUM} --no-sandbox --kiosk --no-first-run --disable-gpu --disable-dev-shm-usage "
                     "--disable-background-networking --disable-component-update --autoplay-policy=no-user-gesture-required --password-store=basic "
                     "--user-data-dir=/tmp/profile file://$PWD/page.html >/dev/null 2>&1 &")
    assert begun["exit_code"] == 0, begun
    assert until(lambda: corner(daemon, box) == b"\xff\xff\xff", 180)
    act(daemon, box, action="left_click", coordinate=[200, 30])
    act(daemon, box, action="type", text="hello agent")
    act(daemon, box, action="left_click", coordinate=[200, 130])
    assert until(lambda: corner(daemon, box) == b"\0\xff\0", 60), corner(daemon, box)
    heard = daemon.post(f"/api/sandbox/audio/record?id={box.id}", {"durationMs": 3000})
    found = frequencies(base64.b64decode(heard.json["data"]), (220, 330, 420, 440, 460, 550, 660, 880))
    assert max(found, key=found.get) == 440 and found[440] > 1e5 and found[440] > 10 * found[420], found
