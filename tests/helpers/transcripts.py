"""The transcript of a sandbox of the daemon, as tests read it."""
from helpers.runner import wait_for


def transcript(daemon, which):
    """All of it, page by page."""
    found, offset = [], 0
    while True:
        page = daemon.get(f"/v1/sandboxes/{which}/transcript?offset={offset}")
        assert page.status == 200, page
        if not page.json["entries"]:
            assert page.json["next"] == offset
            return found
        assert page.json["next"] > offset
        found, offset = found + page.json["entries"], page.json["next"]


def of(found, event):
    return [e for e in found if e["event"] == event]


def file_of(cloche, box):
    return cloche.state / "cloche" / "serve" / "transcripts" / f"{box.id}.jsonl"


def fragments(value, text):
    """The longest beginning of the value that is in the text: a part of it would be as bad."""
    n = len(value)
    while n > 0 and value[:n].lower() not in text.lower():
        n -= 1
    return n


def ended(daemon, box):
    """All that was said of it, its last look too."""
    assert box.delete().ok
    assert wait_for(lambda: daemon.get(box.at).status == 404 or daemon.state(box.id) == "stopped")
    assert wait_for(lambda: not [p for p in daemon.processes("cloche-keeper") if box.id in words_of(p)])
    return transcript(daemon, box.id)


def words_of(pid):
    try:
        return open(f"/proc/{pid}/cmdline").read().split("\0")
    except OSError:
        return []


def edits(daemon, box, count=1):
    """At least so many; the look is after the answer."""
    return wait_for(lambda: found if len(found := of(transcript(daemon, box.id), "edit")) >= count else None)
