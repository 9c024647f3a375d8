"""Where a byte string is: the memory of a process, files."""
import os
import re


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
            return f.read().strip()
    except OSError:
        return "gone"


def in_memory(pid, needle):
    """Whether @needle is in the memory of @pid; None when that process cannot be read (or has gone)."""
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
            for line in maps:
                low, high, access = re.match(r"([0-9a-f]+)-([0-9a-f]+) (....)", line).groups()
                # a sanitizer's shadow is terabytes of nothing
                if access[0] != "r" or "[v" in line or int(high, 16) - int(low, 16) > 1 << 32:
                    continue
                if search(mem, int(low, 16), int(high, 16), needle):
                    return True
    except (OSError, ValueError):
        return None
    return False


def search(mem, at, end, needle, piece=4 << 20):
    tail = b""
    mem.seek(at)
    while at < end:
        try:
            got = mem.read(min(piece, end - at))
        except OSError:     # a page that cannot be read: a guard page, a device
            return False
        if not got:
            return False
        if needle in tail + got:
            return True
        tail = got[-len(needle) + 1:]
        at += len(got)
    return False


def in_files(root, needle):
    """Files below @root that hold @needle."""
    found = []
    for base, _, names in os.walk(root):
        for name in names:
            path = os.path.join(base, name)
            try:
                if not os.path.islink(path) and os.path.isfile(path):
                    with open(path, "rb") as f:
                        if needle in f.read():
                            found.append(path)
            except OSError:
                pass
    return found
