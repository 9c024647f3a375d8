"""Which tests a run has. A check runs the suites several times (as root, as an ordinary user, sanitized); tests/run.py says
in CLOCHE_TEST_RUN which run this is, and each leaves out what another one has or what tests/check-all.tsv leaves to check-all.

    (nothing), everything   all of them
    self                    the first run of `make check`; what takes turns (below) a quarter of it
    other                   as the other user: the files of tests/check-other.txt, without what the first run tries as an ordinary
                            user itself; what takes turns a quarter of it
    sanitized               a quarter of the files, and of what takes turns in them a quarter
    smoke                   the tests of tests/smoke.txt

Of the quarters each commit has another one (CLOCHE_TEST_TURN, the number of commits). What takes turns: the rows of one test (its
parameters) from three rows on, but for attacks in the first run, and what tests/check-all.tsv says (`turns`, `together`). At least one of
each test, of each pattern of `turns` and of each line `together` is in each run, and what `make quick` has is in each first run. The sanitized run has another quarter of
the files after each commit, and of the rows another one after four: sixteen commits have all.

CLOCHE_TEST_ELSEWHERE names marks whose tests another run has.
"""
import collections
import fnmatch
import functools
import os
import re
import zlib

import pytest

from helpers import places

TESTS = places.REPO / "tests"
QUARTERS = 4
MANY_ROWS = 3           # of one test: from then on they take turns
ATTACKS = "tests/escape/"   # but not theirs in the first run: each row is an attack of its own
Row = collections.namedtuple("Row", "run tests reason")


def needs(item):
    """The names of its marks; a test with that internet needs root."""
    return {m.name for m in item.iter_markers()} | ({"root"} if "internet" in item.fixturenames else set())


def tried_as_ordinary_user(item):
    """Where root tests, it becomes an ordinary user for this one (conftest.py)."""
    return "anyone" in item.fixturenames or item.get_closest_marker("ordinary") is not None


def lines_of(table):
    """Those of a file of tests/, without its remarks."""
    return [line for line in (TESTS / table).read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]


@functools.lru_cache(maxsize=None)
def left_to_check_all():
    """The rows of tests/check-all.tsv."""
    return [Row(*line.split("\t")) for line in lines_of("check-all.tsv")]


def smoke():
    """The lines of tests/smoke.txt; only root has the cases [ordinary] of a test beside [self]."""
    lines = set(lines_of("smoke.txt"))
    return lines if places.IS_ROOT else {line for line in lines if "[ordinary" not in line and "-ordinary]" not in line}


@functools.lru_cache(maxsize=None)
def fits(patterns):
    return re.compile("|".join(map(fnmatch.translate, patterns))).match


def patterns_of(rows):
    return [pattern for row in rows for pattern in row.tests.split(" ")]


def named_by(patterns):
    """Whether one of them fits the test with that id, or its file."""
    fit = fits(tuple(patterns) or ("",))
    return lambda nodeid: fit(nodeid) or fit(nodeid.split("::")[0])


def without_tests(table, items):
    """The patterns of @table that no test fits: one that was renamed would be run, or left out, where nobody meant it."""
    names = {name for item in items for name in (item.nodeid, item.nodeid.split("::")[0])}
    return [pattern for pattern in patterns_of(table) if not any(map(fits((pattern,)), names))]


@functools.lru_cache(maxsize=None)
def quarter(folder, number):
    """The files of @folder in that quarter: each goes to the one that is smallest so far, so that all are of a size."""
    bytes_of = {path: path.stat().st_size for path in folder.glob("test_*.py")}
    size, where = [0] * QUARTERS, {}
    for path in sorted(bytes_of, key=lambda p: (-bytes_of[p], p)):
        where[path] = size.index(min(size))
        size[where[path]] += bytes_of[path]
    return {path for path, its in where.items() if its == number}


@functools.lru_cache(maxsize=None)
def of_the_other_user():
    """Whether a test, or a file, is of those whose result depends on who runs cloche."""
    return named_by(lines_of("check-other.txt"))


def its_turn():
    """The number that this commit has."""
    return int(os.environ["CLOCHE_TEST_TURN"])


def in_turn(family, turn):
    """Those of @family, ids, whose turn it is: each id in one of QUARTERS, whatever its neighbours are; at least one."""
    those = [nodeid for nodeid in family if zlib.crc32(nodeid.encode()) % QUARTERS == turn % QUARTERS]
    return those or sorted(family)[turn % max(1, len(family)):][:1]


def families(items, spared):
    """What takes turns: the tests of each pattern that the table says it of (`turns`), or of a whole line of it (`together`), and the
    rows of each other test that has many; but of none whose id begins with @spared."""
    ids, found = [item.nodeid for item in items], []
    for row in left_to_check_all():
        for patterns in {"turns": [[pattern] for pattern in row.tests.split(" ")], "together": [row.tests.split(" ")]}.get(row.run, []):
            those = named_by(patterns)
            found.append([nodeid for nodeid in ids if those(nodeid)])
            ids = [nodeid for nodeid in ids if not those(nodeid)]
    rows = collections.defaultdict(list)
    for nodeid in ids:
        if not nodeid.startswith(spared):
            rows[nodeid.split("[")[0]].append(nodeid)
    return [*found, *(family for family in rows.values() if len(family) >= MANY_ROWS)]


def whose_turn_it_is(items, turn, spared=()):
    """Of @items, without what waits for another commit."""
    waiting = {nodeid for family in families(items, spared) for nodeid in set(family) - set(in_turn(family, turn))}
    return {item for item in items if item.nodeid not in waiting}


def has_none_of(path):
    """@path is a file of tests, and this run has none of them: it saves the time of reading it."""
    run = os.environ.get("CLOCHE_TEST_RUN")
    if run not in ("other", "sanitized") or not path.match("test_*.py"):
        return False
    path, rows = path.resolve(), [row for row in left_to_check_all() if row.run in (run, "all")]
    name = path.relative_to(places.REPO).as_posix()
    return (named_by(patterns_of(rows))(name) is not None or
            run == "other" and not of_the_other_user()(name) or
            run == "sanitized" and path not in quarter(path.parent, its_turn() % QUARTERS))


def chosen(items):
    elsewhere = set(filter(None, os.environ.get("CLOCHE_TEST_ELSEWHERE", "").split(",")))
    run = os.environ.get("CLOCHE_TEST_RUN") or "everything"
    here = {item for item in items if not needs(item) & elsewhere}
    if run == "everything":
        return here
    named, table = smoke(), left_to_check_all()
    # `make check` looks for the lines of smoke.txt too: a test that was renamed would break the next one's `make quick`
    if run in ("smoke", "self") and (gone := named - {item.nodeid for item in items}):
        pytest.exit(f"tests/smoke.txt names what is not there: {', '.join(sorted(gone))}", 2)
    # as root, who has the cases as an ordinary user too
    if run == "self" and places.IS_ROOT and (gone := without_tests(table, items)):
        pytest.exit(f"tests/check-all.tsv names what is not there: {', '.join(gone)}", 2)
    if run == "smoke":
        return {item for item in here if item.nodeid in named}
    left = named_by(patterns_of(row for row in table if row.run in (run, "all")))
    here = {item for item in here if not left(item.nodeid)}
    if run == "other":
        here = {item for item in here if of_the_other_user()(item.nodeid)}
        if not places.IS_ROOT:
            here = {item for item in here if not tried_as_ordinary_user(item)}
    if run == "sanitized":      # while its files' turn is another one after each commit: else a file would have the same rows each time
        return whose_turn_it_is(here, its_turn() // QUARTERS)
    turn = whose_turn_it_is(here, its_turn(), ATTACKS if run == "self" else ())
    return turn | {item for item in here if run == "self" and item.nodeid in named}
