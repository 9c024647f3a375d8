"""A sandbox that begins with another one's files stands behind the same walls as one that begins with none."""
from helpers import probed, requirement
from helpers.daemon import Sandbox
from helpers.shared import shared

pytestmark = [requirement("R83", "R30"), shared]


def fork(box, **members):
    answer = box.daemon.post(f"{box.at}/fork", members or None)
    assert answer.status == 201, answer
    return [Sandbox(box.daemon, one) for one in answer.json["sandboxes"]]


def output(box, word, more):
    said = box.exec(["/tmp/probe", word, "--private", *more], timeout_ms=300_000)
    assert said["stdout"], said
    return said["stdout"]


def test_what_prove_looks_at_is_the_same(daemon, cloche):
    """The program that `cloche prove` runs inside finds what it finds in a sandbox that was made with nothing in it."""
    source, cold = daemon.create(), daemon.create()
    for box in (source, cold):
        assert box.put("probe", probed.program(cloche)).ok
        assert box.exec("mv probe /tmp/probe; chmod 755 /tmp/probe; echo x > ~/f; mkdir d; echo y > d/f")["exit_code"] == 0
    [forked] = fork(source)
    assert daemon.post(f"{source.at}/snapshot", {"name": "t"}).status == 201
    started = daemon.create(template="t")
    for word, *more in probed.PROBES:
        expected = probed.finds(output(cold, word, more))
        for one in (forked, started):
            assert probed.finds(output(one, word, more)) == expected, (word, one.record["template"])
