"""What cannot be looked at is not known to be harmless: without a descriptor, or a disk's answer, nothing is started.

A search that skips what it cannot open leaves files that exist unprotected, and says nothing.
"""
import os
import shutil

import pytest

from helpers import requirement

pytestmark = requirement("R23")

LIMITS = range(18, 72, 3)


def owned(anyone, path):
    if anyone.person:
        shutil.chown(path, anyone.person.pw_uid, anyone.person.pw_gid)
    return path


def folder(anyone, *names):
    """Folders of one name each, one in the other."""
    at = anyone.project
    for name in names:
        at = at / name
        at.mkdir(exist_ok=True)
        owned(anyone, at)
    return at


def put(anyone, path, text):
    path.write_text(text, encoding="ascii")
    return owned(anyone, path)


def limited(anyone, n, *words):
    return anyone.run(["/bin/sh", "-c", f'ulimit -n {n}; exec "$@"', "sh",
                       *anyone.argv("run", "--workspace", anyone.project, *words)])


def refused(result):
    return result.code == 125 and "[wall." in result.err


def test_a_denied_file_is_found_with_few_descriptors(anyone):
    """The attack: 40 folders deep the search had no descriptor left, and took that for nothing there."""
    key = put(anyone, folder(anyone, *["d"] * 40) / "x.key", "the key")
    relative = os.path.relpath(key, anyone.project)
    results = [limited(anyone, n, "--deny-read", f"{anyone.project}/**/*.key", "--", "cat", relative) for n in LIMITS]
    assert not [result for result in results if "the key" in result.out]
    assert any("wall.expand.unseen" in result.err for result in results)
    assert not refused(results[-1]), results[-1]


def test_a_hard_link_is_found_with_few_descriptors(anyone):
    outside = put(anyone, anyone.home / "outside", "the key")
    link = folder(anyone, *["d"] * 24) / "link"
    os.link(outside, link)
    relative = os.path.relpath(link, anyone.project)
    results = [limited(anyone, n, "--deny-hard-links", "--", "cat", relative) for n in LIMITS]
    assert not [result for result in results if "the key" in result.out]
    assert any("wall.expand.unseen" in result.err for result in results)
    assert not refused(results[-1]), results[-1]


@pytest.mark.parametrize("mode", ["standard", "light"])
@pytest.mark.parametrize("why", ["EIO", "ENOMEM"])
def test_a_folder_that_cannot_be_listed_is_not_taken_for_empty(anyone, deny, mode, why):
    place = put(anyone, folder(anyone, "a", "b") / ".envrc", "mine\n")
    if mode == "light" and not anyone.person and os.geteuid() == 0:
        os.chown(anyone.project, 65534, 65534)
    result = anyone.behind(*deny(f"getdents64:{why}"))("run", "--mode", mode, "--workspace", anyone.project, "--", "/bin/sh",
                                                       "-c", "echo attack >> a/b/.envrc", cwd=anyone.project)
    assert result.code == 125 and "[wall." in result.err, result
    assert place.read_text(encoding="ascii") == "mine\n"
