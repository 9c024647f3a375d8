"""Which tests a run has. A check runs the suites several times (as root, as an ordinary user, sanitized); tests/run.py says
in CLOCHE_TEST_RUN which run this is, and each leaves out what another one has or what tests/check-all.tsv leaves to check-all.

    (nothing), everything   all of them
    self                    the first run of `make check`
    other                   as the other user: not what the first one tries as an ordinary user itself
    sanitized               a quarter of the modules, another one after each commit (CLOCHE_TEST_QUARTER: 0 to 3)
    smoke                   the tests of tests/smoke.txt

CLOCHE_TEST_ELSEWHERE names marks whose tests another run has.
"""
import collections
import fnmatch
import os

import pytest

from helpers import places

TESTS = places.REPO / "tests"
QUARTERS = 4
Row = collections.namedtuple("Row", "run tests reason")


def needs(item):
    """The names of its marks; a test with that internet needs root."""
    return {m.name for m in item.iter_markers()} | ({"root"} if "internet" in item.fixturenames else set())


def tried_as_ordinary_user(item):
    """Where root tests, it becomes an ordinary user for this one (conftest.py)."""
    return "anyone" in item.fixturenames or item.get_closest_marker("ordinary") is not None


def left_to_check_all():
    """The rows of tests/check-all.tsv."""
    lines = (TESTS / "check-all.tsv").read_text(encoding="utf-8").splitlines()
    return [Row(*line.split("\t")) for line in lines if line and not line.startswith("#")]


def smoke():
    """The lines of tests/smoke.txt; only root has the cases [ordinary] of a test beside [self]."""
    lines = {line for line in (TESTS / "smoke.txt").read_text(encoding="utf-8").splitlines() if line and line[0] != "#"}
    return lines if places.IS_ROOT else {line for line in lines if "[ordinary" not in line and "-ordinary]" not in line}


def left(nodeid, rows):
    names = (nodeid, nodeid.split("::")[0])
    return any(fnmatch.fnmatchcase(name, pattern) for row in rows for pattern in row.tests.split(" ") for name in names)


def without_tests(table, items):
    """The patterns of @table that no test fits: one that was renamed would be run, or left out, where nobody meant it."""
    nodeids = [item.nodeid for item in items]
    return [pattern for row in table for pattern in row.tests.split(" ")
            if not any(left(nodeid, [row._replace(tests=pattern)]) for nodeid in nodeids)]


def quarter(items, number):
    """The modules of that quarter: each goes to the one that has fewest tests so far, so that all are of a size."""
    count = collections.Counter(item.nodeid.split("::")[0] for item in items)
    size, where = [0] * QUARTERS, {}
    for module in sorted(count, key=lambda m: (-count[m], m)):
        where[module] = size.index(min(size))
        size[where[module]] += count[module]
    return {item for item in items if where[item.nodeid.split("::")[0]] == number}


def chosen(items):
    elsewhere = set(filter(None, os.environ.get("CLOCHE_TEST_ELSEWHERE", "").split(",")))
    run = os.environ.get("CLOCHE_TEST_RUN") or "everything"
    here = {item for item in items if not needs(item) & elsewhere}
    if run == "everything":
        return here
    named, table = smoke(), left_to_check_all()
    once = os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0"        # of ten workers
    # `make check` looks for the lines of smoke.txt too: a test that was renamed would break the next one's `make quick`
    if (run == "smoke" or once and run == "self") and (gone := named - {item.nodeid for item in items}):
        pytest.exit(f"tests/smoke.txt names what is not there: {', '.join(sorted(gone))}", 2)
    # as root, who has the cases as an ordinary user too
    if once and run == "self" and places.IS_ROOT and (gone := without_tests(table, items)):
        pytest.exit(f"tests/check-all.tsv names what is not there: {', '.join(gone)}", 2)
    if run == "smoke":
        return {item for item in here if item.nodeid in named}
    rows = [row for row in table if row.run in (run, "all")]
    here = {item for item in here if not left(item.nodeid, rows)}
    if run == "sanitized":
        return quarter([item for item in items if item in here], int(os.environ["CLOCHE_TEST_QUARTER"]))
    if run == "other" and not places.IS_ROOT:
        return {item for item in here if not tried_as_ordinary_user(item)}
    return here
