"""The suites' own runner, `pytest --workers N` (helpers/workers.py): nothing that did not pass is counted as passed."""
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

from helpers import parts, places

CONFTEST = """
import pytest
from helpers import workers

def pytest_addoption(parser):
    workers.add_option(parser)

@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    return workers.run_tests(session)
"""
TESTS = """
import os, signal, time
import pytest

NUMBER = os.getpid()        # of the process that collected

@pytest.fixture(scope="module")
def kept():
    yield os.getpid()
    print("kept was ended")

@pytest.mark.parametrize("n", range(30))
def test_passes(kept, n):
    assert kept == os.getpid() != NUMBER

def test_fails():
    print("what it said")
    assert 1 == 2

def test_is_skipped():
    pytest.skip("a reason")

def test_dies():
    os.kill(os.getpid(), signal.SIGKILL)

def test_ends_well():
    os._exit(0)

def test_says_goodbye():
    pytest.exit("goodbye")

@pytest.fixture
def broken():
    yield
    assert 3 == 4

def test_breaks_behind(broken):
    pass

@pytest.mark.alone
def test_is_alone():
    pids = open(f"/proc/{os.getppid()}/task/{os.getppid()}/children").read().split() if LISTED else [str(os.getpid())]
    assert pids == [str(os.getpid())]

LISTED = os.path.exists(f"/proc/self/task/{os.getpid()}/children")
"""
BAD = {"test_fails": "1 == 2", "test_dies": "crashed while running", "test_ends_well": "crashed while running",
       "test_says_goodbye": "goodbye", "test_breaks_behind": "3 == 4"}


def run_pytest(folder, *words):
    """(exit code, what it printed, {name of a test: [its outcomes]})"""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = {places.REPO}/tests\nmarkers =\n    alone:\n    slow:\n")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={folder}/out.xml", *words, folder],
                          cwd=folder, capture_output=True, text=True, check=False, timeout=240)
    found = {}
    for case in ElementTree.parse(folder / "out.xml").iter("testcase"):
        found.setdefault(case.get("name"), []).append(
            [(child.tag, (child.get("message") or "") + (child.text or "")) for child in case])
    return done.returncode, done.stdout + done.stderr, found


def test_what_happens_to_tests_is_told(tmp_path):
    (tmp_path / "test_some.py").write_text(TESTS)
    code, out, found = run_pytest(tmp_path, "--workers", "3")
    assert code == 1, out
    for n in range(30):
        assert found.pop(f"test_passes[{n}]") == [[]], out
    assert found.pop("test_is_alone") == [[]], out
    assert found.pop("test_is_skipped")[0][0][0] == "skipped", out
    assert set(found) == set(BAD), out
    for name, said in BAD.items():
        assert said in str(found[name]), (name, found[name])
    assert re.search(r"\b5 failed\b|\b4 failed\b", out), out


def test_a_run_whose_workers_die_ends(tmp_path):
    (tmp_path / "test_some.py").write_text("import os, pytest\n@pytest.mark.parametrize('n', range(100))\ndef test_dies(n):\n    os._exit(0)\n")
    code, out, found = run_pytest(tmp_path, "--workers", "2")
    assert code != 0 and "workers have died" in out, out
    assert len(found) < 20


class Item:
    """What parts.py asks a test for."""
    fixturenames = ()

    def __init__(self, nodeid):
        self.nodeid = nodeid

    def iter_markers(self):
        return ()

    def get_closest_marker(self, _name):
        return None


def test_everything_has_its_turn():
    """In four commits each row comes once or more often; in each at least one of every test, and a test with few rows whole."""
    ids = {f"tests/e2e/test_a.py::test_{n}[row{row}]" for n in range(40) for row in range(n + 1)} | {"tests/e2e/test_a.py::test_single"}
    items = [Item(nodeid) for nodeid in ids]
    had = [{item.nodeid for item in parts.whose_turn_it_is(items, turn)} for turn in range(parts.QUARTERS)]
    assert set().union(*had) == ids
    for those in had:
        assert {nodeid.split("[")[0] for nodeid in those} == {nodeid.split("[")[0] for nodeid in ids}
        assert {nodeid for nodeid in ids if re.search(r"test_(0|1|single)\b", nodeid.split("[")[0])} <= those
        assert len(ids) / 6 < len(those) < len(ids) / 2


def test_a_pattern_of_the_table_takes_turns(monkeypatch):
    monkeypatch.setattr(parts, "left_to_check_all", lambda: [parts.Row("turns", "tests/e2e/test_a.py", "a reason")])
    items = [Item(f"tests/e2e/test_a.py::test_{n}") for n in range(40)] + [Item("tests/e2e/test_b.py::test_0")]
    had = [{item.nodeid for item in parts.whose_turn_it_is(items, turn)} for turn in range(parts.QUARTERS)]
    assert set().union(*had) == {item.nodeid for item in items}
    assert all("tests/e2e/test_b.py::test_0" in those and 1 < len(those) < 30 for those in had)


def test_single_tests_of_a_line_take_turns_together(monkeypatch):
    monkeypatch.setattr(parts, "left_to_check_all", lambda: [parts.Row("together", "tests/e2e/test_a.py::test_1* tests/e2e/test_b.py", "a reason")])
    ids = {f"tests/e2e/test_a.py::test_1{n}" for n in range(8)} | {"tests/e2e/test_b.py::test_0", "tests/e2e/test_b.py::test_2"}
    items = [Item(nodeid) for nodeid in ids]
    had = [{item.nodeid for item in parts.whose_turn_it_is(items, turn)} for turn in range(parts.QUARTERS)]
    assert set().union(*had) == ids
    assert all(0 < len(those) < 8 for those in had), had


def had_in(monkeypatch, run, ids, turn):
    """Of @ids, what that run has at that turn."""
    monkeypatch.setenv("CLOCHE_TEST_RUN", run)
    monkeypatch.setenv("CLOCHE_TEST_TURN", str(turn))
    read = {name for name in {nodeid.split("::")[0] for nodeid in ids} if not parts.has_none_of(places.REPO / name)}
    return {item.nodeid for item in parts.chosen([Item(nodeid) for nodeid in ids if nodeid.split("::")[0] in read])}


def test_sanitized_each_row_has_its_turn_in_sixteen(monkeypatch):
    """The rows' turns are others than those of their files: else three quarters of the rows would never come."""
    ids = {f"tests/e2e/{name}.py::test_x[row{row}]" for name in ("test_cow", "test_exec", "test_limits", "test_signals", "test_stdio")
           for row in range(40)}
    had = [had_in(monkeypatch, "sanitized", ids, turn) for turn in range(parts.QUARTERS ** 2)]
    assert set().union(*had) == ids
    for n in range(0, len(had), parts.QUARTERS):
        those = set().union(*had[n:n + parts.QUARTERS])
        assert {nodeid.split("::")[0] for nodeid in those} == {nodeid.split("::")[0] for nodeid in ids}, "in four each file"
        assert len(ids) / 6 < len(those) < len(ids) / 2


def test_the_other_user_has_the_rows_of_an_attack_in_turn(monkeypatch):
    """Root's run has each of them every time (`self` looks for all names of the tables, so its part is asked for by itself)."""
    ids = {f"tests/escape/test_syscalls.py::test_x[row{row}]" for row in range(40)}
    monkeypatch.setattr(parts.places, "IS_ROOT", True)
    had = [had_in(monkeypatch, "other", ids, turn) for turn in range(parts.QUARTERS)]
    assert set().union(*had) == ids
    assert all(len(ids) / 8 < len(those) < len(ids) / 2 for those in had)
    assert {item.nodeid for item in parts.whose_turn_it_is([Item(nodeid) for nodeid in ids], 0, parts.ATTACKS)} == ids


def test_every_line_of_the_other_users_table_is_of_a_file():
    lines = parts.lines_of("check-other.txt")
    assert lines and all(list(places.REPO.glob(line)) for line in lines)
