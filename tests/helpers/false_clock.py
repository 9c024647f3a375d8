"""A host whose clock is set, forward and back, for the processes of one cloche only: no test sets the host's."""
import shlex
import shutil
import struct

import pytest

from helpers import places

HOUR = 3600 * 1000
DAY = 24 * HOUR


class FalseClock:
    """What @cloche starts from now on has a clock of its own; clock.set(HOUR) puts it an hour ahead, at once and for processes that live."""

    def __init__(self, cloche, folder):
        module = places.find_beside(cloche.binary, "tests/lib/false_clock.so")
        if module is None:
            pytest.skip("false_clock.so is not built")
        if places.is_sanitized(cloche.binary):
            pytest.skip("a sanitizer's own library has to be the first that is loaded")
        etc = folder / "etc"
        etc.mkdir(parents=True)
        own = folder / "false_clock.so"
        shutil.copy2(module, own)
        self.file = folder / "false-clock"
        self.file.write_bytes(bytes(8))
        for at in (folder, *folder.parents):
            at.chmod(at.stat().st_mode | 0o111)
        (etc / "ld.so.preload").write_text(f"{own}\n", encoding="utf-8")
        # in a mount namespace of its own, so that nobody else's programs load it; what is mounted on single files there stays to be seen
        at = shlex.quote(str(etc))
        script = f"cp /etc/hosts /etc/resolv.conf /etc/nsswitch.conf {at}; mount -t overlay none -o lowerdir={at}:/etc /etc && exec \"$@\""
        cloche.before = [*cloche.before, "unshare", "-m", "sh", "-c", script, "sh"]

    def set(self, ahead_ms):
        with open(self.file, "r+b") as f:       # the same file: it is mapped
            f.write(struct.pack("<q", ahead_ms))
