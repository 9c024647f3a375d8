"""What `cloche why` says about rules, and what they do: thousands of random rule sets over real trees, in every view and mode, by
really reading and writing (issue 13, A7). One sandbox a set tries every path of its trees; the same paths are asked about.

A set that fails is repeated by its number: CLOCHE_TEST_RULES=VIEW:NUMBER. `make check-all` tries more than ten thousand of them
(CLOCHE_TEST_RULE_SETS=1450), and so does CLOCHE_TEST_LOOPS=29.
"""
import json
import os
import shutil

import pytest

from helpers import requirement
from helpers.places import loops, rounds
from helpers.rule_sets import PROBE, VIEWS, RuleSet

pytestmark = requirement("R03", "R11", "R26")

SETS = int(os.environ.get("CLOCHE_TEST_RULE_SETS", rounds(20, 51)))     # of each view, for each user; make check-all: 1450
CHUNKS = 3
# said when a rule set cannot be kept; the same word for both, or one that `why` does not ask the machine about
ONLY_A_RUN_KNOWS = ("wall.light.deny-inside", "wall.light.root-folder", "wall.bind.destination", "wall.root.too-many",
                    "wall.idmap.too-many", "wall.bind.open")


def code_of(text):
    at = text.rfind("[")
    return text[at + 1:text.find("]", at)] if at >= 0 else ""


def answers(person, rules, op, asked):
    words = ["why", "--settings", rules.settings, "--path", "-", "--op", op, "--json"]
    result = person(*words, stdin="".join(path + "\n" for _, path in asked), cwd=rules.project)
    lines = [json.loads(line) for line in result.out.splitlines()]
    if result.code == 125:
        return result, lines[-1].get("code") or lines[-1].get("error", {}).get("code")
    assert len(lines) == len(asked), result
    return result, lines


def listable(path, said):
    """Light mode has no folder of its own to put in the place of one in which something is closed: it is not listed."""
    return not any(other != path and other.startswith(path.rstrip("/") + "/") and line["verdict"] == "denied"
                   for other, line in said.items())


def compare(person, rules):
    """(how many answers were compared, [what differs])."""
    asked = rules.questions()
    reading, read = answers(person, rules, "read", asked)
    run = person("run", "--settings", rules.settings, "--", "/usr/bin/python3", "-ISc", PROBE, cwd=rules.project,
                 stdin="".join(f"{kind} {path}\n" for kind, path in asked))
    if run.code == 125:
        code = code_of(run.err)
        if reading.code == 125:
            assert code == read, f"why refuses otherwise: {read}, {run!r}"
        else:
            assert code in ONLY_A_RUN_KNOWS, f"why says nothing of it: {run!r}"
        return 0, []
    assert reading.code in (0, 1), f"why refuses what runs: {reading!r} {run!r}"
    assert run.code == 0, run
    _, write = answers(person, rules, "write", asked)
    said = {path: line for (_, path), line in zip(asked, read)}
    wrong, compared = [], 0
    for (kind, path), r, w, done in zip(asked, read, write, run.out.splitlines()):
        for op, line, real in (("read", r, done.split()[0]), ("write", w, done.split()[1])):
            if real == "-" or not rules.shows(line["inside"] or "", path) or (
                    op == "read" and kind == "d" and rules.view == "light" and not listable(line["inside"], said)):
                continue
            compared += 1
            if (line["verdict"] == "allowed") != (real == "1"):
                wrong.append(f"{op} {path}: why says {line['verdict']} ({line['reason']}, {line['rule']}), in truth "
                             f"{'it can' if real == '1' else 'it cannot'}")
    return compared, wrong


def one_set(person, seed, view, where):
    base = where / f"s{seed}"

    def own(path):
        if person.person is not None:
            os.chown(path, person.person.pw_uid, person.person.pw_gid, follow_symlinks=False)
    rules = RuleSet(seed, view, base)
    rules.build(own)
    compared, wrong = compare(person, rules)
    said = ""
    if wrong:
        said = "\n".join([f"CLOCHE_TEST_RULES={view}:{seed}", *wrong[:10],
                          json.dumps(json.loads(rules.settings.read_text(encoding="utf-8")), indent=1),
                          *(f"{link} -> {os.readlink(link)}" for link in rules.links)])
    shutil.rmtree(base)
    rules.settings.unlink()
    return compared > 0, said


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_rules_do_what_why_says(anyone, world, view, chunk):
    if view == "light" and os.geteuid() == 0 and anyone.person is None:
        pytest.skip("light mode as root refuses what is root's; as an ordinary user it is tried")
    each = loops(SETS) // CHUNKS
    wanted = os.environ.get("CLOCHE_TEST_RULES", "")
    if wanted and wanted.split(":")[0] != view:
        pytest.skip("another set is wanted")
    if wanted and chunk > 0:
        pytest.skip("one is wanted")
    seeds = [int(wanted.split(":")[1])] if wanted else range(chunk * each, (chunk + 1) * each)
    done = [one_set(anyone, seed, view, anyone.project.parent) for seed in seeds]
    wrong = [said for _, said in done if said]
    assert not wrong, f"{len(wrong)} of {len(done)} differ\n" + "\n".join(wrong[:5])
    ran = sum(held for held, _ in done)
    assert wanted or ran * (10 if view == "light" else 3) >= len(seeds), f"of {len(seeds)} sets only {ran} could be held: it proves little"
