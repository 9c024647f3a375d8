"""Where a value is on this host, looked for by a process that does not have it.

The value exists as its bytes XOR 0x5a only, here and in the test: where its beginning is found, which many values have, what
follows is turned likewise and compared. Nobody but who is looked for has it, so every process of the host can be looked
at, the test's own too.

    python3 -I hunt.py pids HEX [not PID...]        {"found": {pid: name}, "looked": n}
    python3 -I hunt.py files HEX ROOT...            {"found": [path], "looked": n}
    python3 -I hunt.py say HEX                      the value, for `cloche secret set --from-command`
"""
import array
import json
import os
import re
import secrets
import string
import subprocess
import sys

TURN = bytes(b ^ 0x5a for b in range(256))
PAGE, PIECE = 4096, 4 << 20
HUGE = 64 << 20         # bytes of a mapping from which on only pages that are there are read
NOTHING = 1 << 36       # and from which on it is a sanitizer's shadow, terabytes of next to nothing


PREFIX = b"tkh_"


def new(prefix=PREFIX):
    """A value of random letters and digits, turned. Its characters are never joined before they are."""
    alphabet = (string.ascii_letters + string.digits).encode().translate(TURN)
    return (prefix.translate(TURN) + bytes(secrets.choice(alphabet) for _ in range(36))).hex()


def ask(*words):
    done = subprocess.run([sys.executable, "-I", __file__, *(str(w) for w in words)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


# --- the rest runs in a process of its own ------------------------------------------------------------------------------

def search(file, at, end, needle):
    tail = b""
    file.seek(at)
    while at < end:
        try:
            got = file.read(min(PIECE, end - at))
        except OSError:         # a guard page, a device's memory
            return False
        if not got:
            return False
        if holds(tail + got, needle):
            return True
        tail = got[-len(needle) + 1:]
        at += len(got)
    return False


def holds(data, needle):
    at = data.find(PREFIX)
    while at >= 0:
        if data[at:at + len(needle)].translate(TURN) == needle:
            return True
        at = data.find(PREFIX, at + 1)
    return False


def present(pid, low, high):
    """Ranges of @low to @high whose pages are in memory or swap (pagemap, Documentation/admin-guide/mm)."""
    try:
        with open(f"/proc/{pid}/pagemap", "rb", 0) as f:
            start = None
            for base in range(low, high, PAGE << 16):
                count = min((high - base) // PAGE, 1 << 16)
                pages = array.array("Q", os.pread(f.fileno(), 8 * count, base // PAGE * 8))
                for i, entry in enumerate(pages):
                    if entry >> 62 and start is None:
                        start = base + i * PAGE
                    elif not entry >> 62 and start is not None:
                        yield start, base + i * PAGE
                        start = None
            if start is not None:
                yield start, high
    except OSError:
        yield low, high


def in_process(pid, needle):
    """Whether it is there; None: it could not be looked at, or has gone."""
    mappings = []
    try:
        with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as f:
            for line in f:
                head = re.match(r"([0-9a-f]+)-([0-9a-f]+) (....) .*?(\[v\w+\])?$", line)
                if head:
                    mappings.append([int(head[1], 16), int(head[2], 16), head[3][0] == "r" and head[4] is None, 0])
                    # of what is mapped from a file unchanged, the file is looked at
                    fields = ("Rss:", "Swap:") if "w" in head[3] or "s" in head[3] else ("Anonymous:", "Swap:")
                elif line.startswith(fields):
                    mappings[-1][3] += int(line.split()[1])
        with open(f"/proc/{pid}/mem", "rb", 0) as mem:
            for low, high, readable, there in mappings:
                if not readable or not there or high - low > NOTHING:
                    continue
                for a, b in present(pid, low, high) if high - low > HUGE else ((low, high),):
                    if search(mem, a, b, needle):
                        return True
        for name in ("environ", "cmdline"):
            with open(f"/proc/{pid}/{name}", "rb") as f:
                if holds(f.read(), needle):
                    return True
    except (OSError, ValueError):
        return None
    return False


def pids(needle, without):
    found, looked = {}, 0
    for pid in [int(p) for p in os.listdir("/proc") if p.isdigit()]:
        if pid == os.getpid() or pid in without:
            continue
        there = in_process(pid, needle)
        looked += there is not None
        if there:
            with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
                found[pid] = f.read().strip()
    return {"found": found, "looked": looked}


def files(needle, roots):
    found, looked, left = [], 0, list(roots)
    while left:         # not os.walk(), which is as deep in itself as the folders are
        try:
            with os.scandir(left.pop()) as entries:
                entries = list(entries)
        except OSError:
            continue
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)
                if not entry.is_file(follow_symlinks=False):
                    continue
                with open(entry.path, "rb", 0) as f:
                    looked += 1
                    if search(f, 0, os.fstat(f.fileno()).st_size, needle):
                        found.append(entry.path)
            except OSError:
                pass
    return {"found": found, "looked": looked}


def main(what, value, *more):
    needle = bytes.fromhex(value)
    if what == "say":
        sys.stdout.buffer.write(needle.translate(TURN))
    elif what == "pids":
        print(json.dumps(pids(needle, {int(p) for p in more[1:]})))
    else:
        print(json.dumps(files(needle, more)))


if __name__ == "__main__":
    main(*sys.argv[1:])
