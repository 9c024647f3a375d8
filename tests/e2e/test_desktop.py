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
from helpers.desktop import begin, events, pixels, read, until, window

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
    answer = desk.post("/api/sandbox/computer/keypress", {"keys": "a exec touch run-by-keys"})
    assert answer.status == 500 and answer.json["error"].startswith("Keypress failed: "), answer
    answer = desk.post("/api/sandbox/computer/keypress", {"keys": "b, sleep"})
    assert answer.status == 500, answer
    assert desk.post("/api/sandbox/computer/keypress", {"keys": "ctrl+shift+c, Return"}).ok
    assert box.read("run-by-keys").status == 404
    assert [e[1] for e in events(box) if e[0] == "key"] == [38, 56, 37, 50, 54, 36]


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


def power(samples, hertz, rate):
    """Goertzel's: how much of that frequency is in there."""
    s1 = s2 = 0.0
    c = 2 * math.cos(2 * math.pi * hertz / rate)
    for v in samples:
        s1, s2 = v + c * s1 - s2, s1
    return (s1 * s1 + s2 * s2 - c * s1 * s2) / len(samples) ** 2


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
    with wave.open(io.BytesIO(base64.b64decode(heard.json["data"]))) as w:
        assert (w.getnchannels(), w.getsampwidth(), w.getframerate()) == (2, 2, 44100)
        frames = w.readframes(w.getnframes())
    left = struct.unpack(f"<{len(frames) // 2}h", frames)[::2]
    loudest = max((left[i:i + 22050] for i in range(0, len(left) - 22050, 11025)), key=lambda part: sum(map(abs, part)))
    found = {h: power(loudest, h, 44100) for h in (220, 330, 420, 440, 460, 550, 660, 880)}
    assert max(found, key=found.get) == 440 and found[440] > 1e5 and found[440] > 10 * found[420], found
