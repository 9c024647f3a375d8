"""A desktop inside a sandbox, from outside: programs that draw, and pictures that are read (docs/desktop.md)."""
import base64
import io
import math
import pathlib
import shlex
import shutil
import struct
import wave
import zlib

import pytest

from helpers.daemon import Sandbox
from helpers.runner import wait_for

TOOLS = ("Xvnc", "openbox", "pulseaudio", "pactl", "xdotool", "wmctrl", "xkbcomp", "xclip", "ffmpeg", "xterm", "which")
MISSING = ", ".join(tool for tool in TOOLS if not shutil.which(tool))
needed = pytest.mark.skipif(bool(MISSING), reason=f"needs {MISSING}, which tools/deps installs")
X_WINDOW = pathlib.Path(__file__).with_name("x_window.py")
INSIDE = "DISPLAY=:77 PULSE_SERVER=unix:/tmp/.cloche-pulse "


def pixels(png):
    """Width, height and rows of (r, g, b): a reader of its own, for eight-bit RGB."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at, packed, width, height = 8, b"", 0, 0
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", body[:10])
            assert (depth, color) == (8, 2)
        packed += body if kind == b"IDAT" else b""
        at += 12 + size
    raw, rows, before = zlib.decompress(packed), [], bytearray(width * 3)
    for y in range(height):
        how, line = raw[y * (width * 3 + 1)], bytearray(raw[y * (width * 3 + 1) + 1:(y + 1) * (width * 3 + 1)])
        for x in range(width * 3) if how else ():
            a, b, c = (line[x - 3] if x >= 3 else 0), before[x], (before[x - 3] if x >= 3 else 0)
            paeth = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            line[x] = (line[x] + (0, a, b, (a + b) // 2, paeth)[how]) & 255
        rows.append(line)
        before = line
    return width, height, rows


def until(asked, seconds=30):
    return wait_for(asked, seconds, every=0.1)      # each time is a request


def begin(desk, command):
    """In the background, as a person would start it."""
    box = Sandbox(desk, desk.get(f"/v1/sandboxes/{desk.get('/api/sandbox/status').json['containerId']}").json)
    assert box.exec(f"{INSIDE} setsid {command} >/dev/null 2>&1 &")["exit_code"] == 0
    return box


def read(box, name):
    return box.exec(f"cat {name}")["stdout"]


def window(desk, colour="0xff0000", place=(300, 300, 200, 100)):
    """A window of one colour; what it is told from now on is in /tmp/events."""
    assert desk.get("/api/sandbox/screen/windows").json == {"windows": []}       # there is a screen
    command = shlex.join(["python3", "-c", X_WINDOW.read_text(), "77", colour, *map(str, place)])
    box = begin(desk, f"sh -c {shlex.quote(f'exec {command} >/tmp/events')}")
    assert until(lambda: "shown" in read(box, "/tmp/events")), read(box, "/tmp/events")
    return box


def events(box):
    return [tuple(int(w) if w.isdecimal() else w for w in line.split()) for line in read(box, "/tmp/events").splitlines()]


def python(code, *args):
    return shlex.join(["python3", "-c", code, *args])


def decoded(answer):
    """The picture in an answer of JSON."""
    return pixels(base64.b64decode(answer["data"]))


def power(samples, hertz, rate):
    """Goertzel's: how much of that frequency is in there."""
    s1 = s2 = 0.0
    c = 2 * math.cos(2 * math.pi * hertz / rate)
    for v in samples:
        s1, s2 = v + c * s1 - s2, s1
    return (s1 * s1 + s2 * s2 - c * s1 * s2) / len(samples) ** 2


def frequencies(sound, hertz):
    """How much of each frequency is in the loudest half second of what was recorded."""
    with wave.open(io.BytesIO(sound)) as w:
        assert (w.getnchannels(), w.getsampwidth(), w.getframerate()) == (2, 2, 44100)
        frames = w.readframes(w.getnframes())
    left = struct.unpack(f"<{len(frames) // 2}h", frames)[::2]
    loudest = max((left[i:i + 22050] for i in range(0, len(left) - 22050, 11025)), key=lambda part: sum(map(abs, part)))
    return {h: power(loudest, h, 44100) for h in hertz}
