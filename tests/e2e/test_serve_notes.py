"""What a daemon notes of each sandbox, for the next one (leavings): the file of a note is used again, and says nothing then."""
import os

import pytest

from helpers import requirement
from helpers.runner import wait_for

pytestmark = [requirement("R61", "R81"), pytest.mark.skipif(os.geteuid() != 0, reason="a sandbox without cgroups has no note")]


@pytest.fixture
def notes(daemon):
    return daemon.path.parent / "leavings"


def spares(notes):
    return notes.with_name("leavings-spare")


def files(folder):
    return {path.name: path.stat().st_ino for path in folder.iterdir() if path.is_file()}


def spare(notes):
    assert wait_for(lambda: not files(notes), 60), files(notes)
    return set(files(spares(notes)).values())


def test_the_file_of_one_that_ended_is_the_next_ones(daemon, notes):
    box = daemon.create()
    inode = files(notes).get(box.id)
    if inode is None:
        pytest.skip("no cgroup can be made here")
    said = (notes / box.id).read_text()
    assert box.id in said and said.startswith("of ") and files(spares(notes)) == {}
    assert box.delete().ok and spare(notes) == {inode}
    assert not any(path.read_bytes() for path in (spares(notes)).iterdir())
    after = daemon.create()
    assert files(notes) == {after.id: inode} and not files(spares(notes))
    now = (notes / after.id).read_text()
    assert after.id in now and box.id not in now and now == said.replace(box.id, after.id)


def test_as_many_as_there_are_have_notes_of_their_own(daemon, notes):
    for _ in range(2):
        boxes = [daemon.create() for _ in range(5)]
        if not files(notes):
            pytest.skip("no cgroup can be made here")
        assert set(files(notes)) == {b.id for b in boxes} and len(set(files(notes).values())) == 5
        assert all(b.id in (notes / b.id).read_text() for b in boxes)
        assert all(b.delete().ok for b in boxes)
        assert 1 <= len(spare(notes)) <= 5


def test_without_a_place_for_them_there_are_notes_all_the_same(daemon, notes):
    (spares(notes)).rmdir()
    for _ in range(2):
        box = daemon.create()
        assert box.id in files(notes) and box.delete().ok
        assert wait_for(lambda: not files(notes), 60), files(notes)


def test_a_file_that_a_snapshot_has_too_is_not_used_again(daemon, notes):
    first, second = daemon.create(), daemon.create()
    inode = files(notes)[first.id]
    os.link(notes / first.id, daemon.path.parent / "snapshot")
    said = (notes / first.id).read_bytes()
    assert first.delete().ok and second.delete().ok and inode not in spare(notes)
    assert (daemon.path.parent / "snapshot").read_bytes() == said
    kept, = spares(notes).iterdir()
    os.link(kept, daemon.path.parent / "another")
    after = daemon.create()
    assert after.id in (notes / after.id).read_text() and not (daemon.path.parent / "another").read_bytes()
