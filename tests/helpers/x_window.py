"""Runs inside a sandbox: a window of one colour, in X's own words, which writes what it is told, one line each.

x_window.py DISPLAY COLOUR X Y WIDTH HEIGHT >EVENTS: no library and no window manager has a part in it.
"""
import socket
import struct
import sys

NAMES = {2: "key", 3: "key-up", 4: "press", 5: "release", 6: "move", 12: "shown"}
KEYS, BUTTONS, MOTION, EXPOSURE = 1 | 2, 4 | 8, 64, 0x8000


def read(sock, n):
    got = b""
    while len(got) < n:
        more = sock.recv(n - len(got))
        if not more:
            sys.exit("the display is gone")
        got += more
    return got


def connect(display):
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(f"/tmp/.X11-unix/X{display}")
    sock.sendall(struct.pack("<BxHHHHxx", ord("l"), 11, 0, 0, 0))
    told, size = struct.unpack("<B5xH", read(sock, 8))
    rest = read(sock, size * 4)
    assert told == 1, rest
    base, vendor, formats = struct.unpack("<4xI8xH3xB", rest[:22])[:3]
    return sock, base, struct.unpack_from("<I", rest, 32 + (vendor + 3) // 4 * 4 + formats * 8)[0]


def main():
    display, colour, x, y, width, height = (int(a, 0) for a in sys.argv[1:])
    sock, window, root = connect(display)
    back, own_place, events = 0x2, 0x200, 0x800
    sock.sendall(struct.pack("<BBHIIhhHHHHIIIII", 1, 0, 11, window, root, x, y, width, height, 0, 1, 0,
                             back | own_place | events, colour, 1, KEYS | BUTTONS | MOTION | EXPOSURE))
    sock.sendall(struct.pack("<BxHI", 8, 2, window))
    while True:
        event = read(sock, 32)
        kind, detail, at_x, at_y, state = struct.unpack("<BB18xhh4xH2x", event)[:5] if event[0] else (0, event[1], 0, 0, 0)
        if kind & 127 == 12:        # it is there: keys go to it from now on
            sock.sendall(struct.pack("<BBHII", 42, 0, 3, window, 0))
        print(NAMES.get(kind & 127, kind), detail, at_x, at_y, state, flush=True)


main()
