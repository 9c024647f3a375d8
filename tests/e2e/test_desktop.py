"""A desktop and sound inside a sandbox: seen, typed into, clicked, heard (docs/desktop.md)."""
import base64
import io
import math
import struct
import subprocess
import threading
import wave

import pytest

from helpers import desktop, requirement
from helpers.desktop import INSIDE, begin, events, frequencies, pixels, read, until, window
from helpers.mcp import Client

pytestmark = [requirement("R48"), desktop.needed]


@pytest.fixture
def desk(daemon):
    assert daemon.post("/api/sandbox/start").ok
    return daemon


def test_capabilities_are_true(desk):
    said = desk.get("/api/sandbox/capabilities").json
    assert {n for n, c in said.items() if c["available"]} == {"screenshot", "audioRecord", "audioPlay", "computerUse", "windowList", "shell"}
    assert said["computerUse"]["tool"] == "xdotool" and said["screenshot"]["tool"] == "ffmpeg", said


def test_seen_and_clicked(desk):
    whole = desk.get("/api/sandbox/screen/screenshot")
    assert whole.status == 200 and whole.headers["Content-Type"] == "image/png", whole
    width, height, empty = pixels(whole.body)
    assert (width, height) == (1280, 800) and not any(empty[310][900:1200])
    assert desk.get("/api/sandbox/screen/windows").json == {"windows": []}
    box = window(desk)
    assert desk.post("/api/sandbox/computer/click", {"x": 310, "y": 320}).json == {"success": True, "x": 310, "y": 320, "button": "left"}
    assert desk.post("/api/sandbox/computer/click", {"x": 499, "y": 399, "button": "right"}).ok
    until(lambda: len([e for e in events(box) if e[0] == "release"]) >= 2, 10)
    pressed = [e[:4] for e in events(box) if e[0] in ("press", "release")]
    assert pressed == [("press", 1, 310, 320), ("release", 1, 310, 320), ("press", 3, 499, 399), ("release", 3, 499, 399)]
    part = desk.post("/api/sandbox/screen/screenshot", {"x": 298, "y": 299, "width": 4, "height": 3}).json
    assert (part["format"], part["encoding"], part["width"], part["height"]) == ("png", "base64", 4, 3), part
    black, red = b"\0\0\0", b"\xff\0\0"
    assert list(map(bytes, pixels(base64.b64decode(part["data"]))[2])) == [black * 4, black * 2 + red * 2, black * 2 + red * 2]


def test_typed(desk):
    """Each character that has no key, once and more, in an order in which their keys would be given away again."""
    assert desk.get("/api/sandbox/screen/windows").json == {"windows": []}       # it is there before the window is
    box = begin(desk, "xterm -u8 -geometry 60x20+100+100 -T Terminal -e sh -c 'cat >/tmp/typed'")
    windows = until(lambda: desk.get("/api/sandbox/screen/windows").json["windows"])
    assert windows[0]["title"] == "Terminal" and windows[0]["app"] == "xterm.XTerm" and windows[0]["id"].startswith("0x"), windows
    text = "Zażółć -- $(id) 漢 \U0001f600 " + "".join(map(chr, range(0x4e00, 0x4e00 + 195))) + " żółw 漢"
    typed = desk.post("/api/sandbox/computer/type", {"text": text})
    assert typed.json == {"success": True, "length": len(text) + 1}, typed
    assert desk.post("/api/sandbox/computer/keypress", {"keys": "Return ctrl+d"}).json == {"success": True, "keys": "Return ctrl+d"}
    assert until(lambda: read(box, "/tmp/typed")) == text + "\n"


def test_keys_are_keys_and_no_commands(desk):
    """xdotool has commands among its words, "exec" among them."""
    box = window(desk)
    answer = desk.post("/api/sandbox/computer/keypress", {"keys": "a exec touch run_by_keys"})
    assert answer.status == 500 and answer.json["error"].startswith("Keypress failed: "), answer
    answer = desk.post("/api/sandbox/computer/keypress", {"keys": "b, sleep"})
    assert answer.status == 500, answer
    assert desk.post("/api/sandbox/computer/keypress", {"keys": "ctrl+shift+c, Return"}).ok
    assert box.read("run_by_keys").status == 404
    until(lambda: len([e for e in events(box) if e[0] == "key"]) >= 6, 10)
    assert [e[1] for e in events(box) if e[0] == "key"] == [38, 56, 37, 50, 54, 36]


ACTIONS = [     # what is sent, and what the window is told: moves are left out
    ({"action": "left_click", "coordinate": [310, 320]}, [("press", 1, 310, 320, 0), ("release", 1, 310, 320, 256)]),
    ({"action": "left_click", "text": "shift"}, [("key", 50), ("press", 1, 310, 320, 1), ("release", 1, 310, 320, 257), ("key-up", 50)]),
    ({"action": "double_click", "coordinate": [311, 320]}, [("press", 1, 311), ("release", 1, 311)] * 2),
    ({"action": "triple_click", "coordinate": [312, 320]}, [("press", 1, 312), ("release", 1, 312)] * 3),
    ({"action": "middle_click", "coordinate": [313, 320]}, [("press", 2, 313), ("release", 2, 313)]),
    ({"action": "left_mouse_down"}, [("press", 1, 313)]),
    ({"action": "left_mouse_up", "coordinate": [320, 330]}, [("release", 1, 320)]),
    ({"action": "left_click_drag", "start_coordinate": [330, 330], "coordinate": [400, 390]}, [("press", 1, 330, 330), ("release", 1, 400, 390)]),
    ({"action": "scroll", "coordinate": [350, 350], "scroll_direction": "down", "scroll_amount": 2}, [("press", 5, 350), ("release", 5, 350)] * 2),
    ({"action": "key", "text": "ctrl+s"}, [("key", 37), ("key", 39, 350, 350, 4), ("key-up", 37), ("key-up", 39)]),
    ({"action": "key", "text": "Down", "repeat": 2}, [("key", 116), ("key-up", 116)] * 2),
    ({"action": "hold_key", "text": "a", "duration": 0.2}, [("key", 38), ("key-up", 38)]),
    ({"action": "wait", "duration": 0.1}, []),
    ({"type": "click", "x": 360, "y": 360, "button": "right"}, [("press", 3, 360, 360), ("release", 3, 360, 360)]),
    ({"type": "click", "x": 360, "y": 361, "button": "wheel", "keys": []}, [("press", 2, 360, 361), ("release", 2, 360, 361)]),
    ({"type": "double_click", "x": 361, "y": 360, "keys": ["CTRL"]}, [("key", 37), *[("press", 1, 361, 360, 4), ("release", 1, 361, 360, 260)] * 2, ("key-up", 37)]),
    ({"type": "drag", "path": [{"x": 370, "y": 370}, {"x": 380, "y": 380}, {"x": 390, "y": 370}]}, [("press", 1, 370, 370), ("release", 1, 390, 370)]),
    ({"type": "scroll", "x": 390, "y": 370, "scroll_x": -30, "scroll_y": -150}, [*[("press", 4), ("release", 4)] * 2, ("press", 6), ("release", 6)]),
    ({"type": "keypress", "keys": ["CTRL", "SHIFT", "C"]}, [("key", 37), ("key", 50), ("key", 54), ("key-up", 50), ("key-up", 37), ("key-up", 54)]),
    ({"type": "keypress", "keys": ["/"]}, [("key", 61), ("key-up", 61)]),
    ({"type": "type", "text": "hi"}, [("key", 43), ("key-up", 43), ("key", 31), ("key-up", 31)]),
    ({"type": "move", "x": 305, "y": 306}, []),
]


def called(client, **args):
    return client("tools/call", {"name": "computer", "arguments": args})["result"]


def told_of(box, before):
    return [e for e in events(box)[before:] if e[0] in ("press", "release", "key", "key-up")]


@pytest.mark.parametrize("way", ["route", "tool"])
def test_agents_have_words_for_it(desk, way):
    """The actions of Anthropic's and OpenAI's computer use, by the route and by MCP's tool."""
    box = window(desk)
    client = Client(desk)

    def do(action):
        if way == "route":
            answer = desk.post("/api/sandbox/computer/action", action)
            assert answer.status == 200 and answer.json["success"] and answer.json["action"] == next(iter(action.values())), (action, answer)
            return answer.json
        result = called(client, sandbox_id=box.id, **action)
        assert not result["isError"] and result["structuredContent"]["success"], (action, result)
        return result["structuredContent"]
    for action, expected in ACTIONS:
        before = len(events(box))
        do(action)
        until(lambda: len(told_of(box, before)) >= len(expected), 5)
        told = told_of(box, before)
        assert [t[:len(e)] for t, e in zip(told, expected)] == expected and len(told) == len(expected), (action, told)
    where = do({"action": "cursor_position"})
    assert (where["x"], where["y"]) == (305, 306)
    do({"action": "clipboard_set", "text": "Zażółć\n<&>"})
    assert do({"action": "clipboard_get"})["text"] == "Zażółć\n<&>"


def test_more_than_a_command_may_say(desk):
    """Noise, and sound of more seconds than limits.output has room for: by a file, of which nothing stays."""
    box = window(desk)
    assert box.exec(f"{INSIDE} ffmpeg -v error -f lavfi -i nullsrc=1280x800,geq=random\\(1\\)*255:128:128 -frames:v 1 -pix_fmt rgb24 /tmp/noise.png")["exit_code"] == 0
    begin(desk, "ffplay -v error -left 0 -top 0 -noborder -loop 0 /tmp/noise.png")
    noise = until(lambda: len((shot := desk.get("/api/sandbox/screen/screenshot")).body) > 1 << 20 and shot, 120)
    assert noise and noise.headers["Content-Type"] == "image/png" and pixels(noise.body)[:2] == (1280, 800)
    heard = desk.post("/api/sandbox/audio/record", {"durationMs": 9000})
    with wave.open(io.BytesIO(base64.b64decode(heard.json["data"]))) as w:
        assert (1 << 20) / 4 < w.getnframes() <= 9 * 44100
    assert ".cloche-said" not in box.exec("ls -A /tmp")["stdout"]


def test_a_tool_shows_pictures(desk):
    box, client = window(desk), Client(desk)
    shot = called(client, sandbox_id=box.id, action="screenshot")
    text, image = shot["content"]
    assert (shot["structuredContent"]["width"], shot["structuredContent"]["height"]) == (1280, 800) and text["type"] == "text"
    assert (image["type"], image["mimeType"]) == ("image", "image/png")
    assert pixels(base64.b64decode(image["data"]))[:2] == (1280, 800)
    zoom = called(client, sandbox_id=box.id, action="zoom", region=[299, 299, 301, 301])["content"][1]
    assert bytes(pixels(base64.b64decode(zoom["data"]))[2][1]) == b"\0\0\0\xff\0\0"


WRONG = [({}, "there is no such action"), ({"action": "fly"}, "there is no such action"), ({"action": 1}, "there is no such action"),
         ({"action": "left_click", "type": "screenshot"}, "one name"),
         ({"action": "left_click", "coordinate": [1]}, "a position is"), ({"action": "left_click", "coordinate": [1, -1]}, "a position is"),
         ({"action": "mouse_move"}, "a position is"), ({"type": "move", "x": 1}, "a position is"), ({"type": "move", "x": 1, "y": 16385}, "a position is"),
         ({"type": "click", "x": 1, "y": 1, "button": "any"}, "button is"), ({"type": "drag", "path": [{"x": 1, "y": 1}]}, "path is"),
         ({"action": "scroll", "scroll_direction": "in"}, "scroll_direction is"), ({"action": "scroll"}, "scroll_direction is"),
         ({"action": "key", "text": "a;b"}, "keys are named"), ({"action": "key", "text": "$(id)"}, "keys are named"), ({"action": "key"}, "keys are named"),
         ({"type": "keypress", "keys": ["a b"]}, "keys are named"), ({"type": "keypress", "keys": []}, "keys are named"),
         ({"action": "left_click", "text": "ctrl shift"}, "keys are named"), ({"action": "wait", "duration": 301}, "duration is"),
         ({"action": "wait", "duration": -1}, "duration is"), ({"action": "type", "text": ""}, "text is"), ({"action": "type", "text": "x" * 4097}, "text has"),
         ({"action": "zoom", "region": [2, 2, 1, 3]}, "region has"), ({"action": "key", "text": "a", "repeat": 101}, "repeat is")]


def test_wrong_actions_are_said(desk):
    for action, said in WRONG:
        answer = desk.post("/api/sandbox/computer/action", action)
        assert answer.status == 400 and said in answer.json["error"], (action, answer)
    assert desk.post("/api/sandbox/computer/action", []).json["error"] == "Action payload must be a JSON object"
    nothing = desk.post("/api/sandbox/computer/action", {"action": "key", "text": "exec"})
    assert nothing.status == 500 and nothing.json["error"].startswith("Action failed: "), nothing


def test_what_cannot_be_done_says_so(desk):
    for path, body, error in [
            ("screen/screenshot", {"x": -1, "y": 0, "width": 1, "height": 1}, "Screenshot failed: the region is not on the screen"),
            ("computer/click", {"x": -1, "y": 0}, "Click failed: x and y are not on the screen"),
            ("computer/keypress", {"keys": "nosuchkey"}, "Keypress failed: there is no such key"),
            ("audio/play", {"data": "?"}, "Audio playback failed: data is not base64")]:
        answer = desk.post(f"/api/sandbox/{path}", body)
        assert answer.status == 500 and answer.json["error"].startswith(error), answer
    outside = desk.post("/api/sandbox/screen/screenshot", {"x": 2000, "y": 0, "width": 9, "height": 9})
    assert outside.status == 500 and outside.json["error"].startswith("Screenshot failed: "), outside


def tone(hertz, seconds, rate=44100):
    out = io.BytesIO()
    with wave.open(out, "wb") as w:
        w.setnchannels(1)
        w.setsampwidth(2)
        w.setframerate(rate)
        w.writeframes(b"".join(struct.pack("<h", int(20000 * math.sin(2 * math.pi * hertz * i / rate)))
                               for i in range(int(seconds * rate))))
    return out.getvalue()


@pytest.mark.parametrize("form", ["wav", "mp3", "ogg", "flac", "m4a"])
def test_a_tone_is_heard_again(desk, tmp_path, form):
    source = tmp_path / "t.wav"
    source.write_bytes(tone(440, 6))
    subprocess.run(["ffmpeg", "-v", "error", "-i", source, tmp_path / f"out.{form}"], check=True)
    data = base64.b64encode((tmp_path / f"out.{form}").read_bytes()).decode()
    assert desk.post("/api/sandbox/audio/record", {"durationMs": 250}).ok        # it is there
    said = []
    player = threading.Thread(target=lambda: said.append(desk.post("/api/sandbox/audio/play", {"data": data, "format": form})))
    player.start()
    heard = desk.post("/api/sandbox/audio/record", {"durationMs": 4500})
    player.join()
    assert said[0].json == {"success": True}, said
    assert heard.json["format"] == "wav" and heard.json["durationMs"] == 4500, heard.json.get("error")
    found = frequencies(base64.b64decode(heard.json["data"]), (220, 330, 420, 440, 460, 550, 660, 880))
    assert max(found, key=found.get) == 440 and found[440] > 1e5 and found[440] > 10 * found[420], found
