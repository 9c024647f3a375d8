"""tools/checksrc.py finds what it says it finds: each row is a bad file, and the one rule that must name it."""
import os
import subprocess
import textwrap

import pytest

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'checksrc.py')

GOOD = '''\
/* base/good.c: a file that breaks no rule; "strcpy(a, b)" in a comment is text */
#include "base/err.h"

static int
good(int fd)
{
    const char *text = "strcpy(a, b); TODO; goto";

    return text[0] + fd;
}
'''


PICTURE = '# Rooms\n\n```arrows\nbase:\nmatch:\npolicy:\nwall:\nengine:\ncli:\n```\n'
ENTERED = PICTURE.replace('cli:', 'cli: engine')


def run(root, picture=PICTURE):
    if any(root.iterdir()):
        seed(root, 'docs/architecture.md', picture)
    done = subprocess.run(['/usr/bin/python3', TOOL, str(root)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def seed(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def body(lines):
    return '/* base/x.c: seeded */\nint\nf(int a)\n{\n' + ''.join(f'    {line}\n' for line in lines) + '}\n'


def test_a_good_file_has_no_finding(tmp_path):
    seed(tmp_path, 'src/base/good.c', GOOD)
    code, out = run(tmp_path)
    assert code == 0, out
    assert '1 files, 0 findings' in out


def test_an_empty_tree_is_not_a_pass(tmp_path):
    assert run(tmp_path)[0] == 1


BAD = [
    ('banned', 'src/base/x.c', body(['strcpy(a, b);'])),
    ('banned', 'src/base/x.c', body(['return system("ls");'])),
    ('banned', 'src/base/x.c', body(['return atoi(s) + 1;'])),
    ('banned', 'src/base/x.c', body(['x = strtoul(s, &end, 10);'])),
    ('banned', 'src/base/x.c', body(['signal(SIGINT, f);'])),
    ('banned', 'src/base/x.c', body(['t = gmtime(&now);'])),
    ('banned', 'tests/unit/x.c', body(['p = popen("ls", "r");'])),
    ('banned', 'src/base/x.c', body(['n = sprintf (out, "%d", 1);'])),
    ('cloexec', 'src/base/x.c', body(['fd = open(path, O_RDONLY);'])),
    ('cloexec', 'src/base/x.c', body(['fd = openat(dir, path,', '            O_RDONLY | O_NOFOLLOW);'])),
    ('cloexec', 'src/base/x.c', body(['fd = socket(AF_UNIX, SOCK_STREAM, 0);'])),
    ('cloexec', 'src/base/x.c', body(['f = fopen(path, "r");'])),
    ('cloexec', 'src/base/x.c', body(['return pipe2(p, 0);'])),
    ('tab', 'src/base/x.c', body(['\treturn 0;'])),
    ('line-length', 'src/base/x.c', body(['x = "' + 'y' * 120 + '";'])),
    ('trailing-blank', 'src/base/x.c', body(['return 0;  '])),
    ('newline', 'src/base/x.c', '/* base/x.c: seeded */'),
    ('file-length', 'src/base/x.c', '/* base/x.c: seeded */\n' + 'extern int a;\n' * 601),
    ('function-length', 'src/base/x.c', body(['a++;'] * 81)),
    ('line-length', 'tests/unit/x.c', body(['x = "' + 'y' * 150 + '";'])),
    ('function-length', 'tests/unit/x.c', body(['a++;'] * 121)),
    ('opening', 'src/base/x.c', '#include <stdio.h>\n'),
    ('guard', 'src/base/x.h', '/* base/x.h: seeded */\n#ifndef X_H\n#define X_H\n#endif\n'),
    ('guard', 'src/base/x.h', '/* base/x.h: seeded */\n#pragma once\n'),
    ('cloexec', 'src/base/x.c', body(['fd = open(path, O_RDWR);  /* checksrc: no O_CLOEXEC */'])),
    ('typedef', 'src/base/x.c', '/* base/x.c: seeded */\ntypedef struct thing thing_t;\n'),
    ('typedef', 'src/base/x.c', '/* base/x.c: seeded */\ntypedef struct { int a; } thing;\n'),
    ('unfinished', 'src/base/x.c', body(['a++;  /* TODO: handle b */'])),
    ('goto', 'src/base/x.c', body(['goto out;'])),
    ('dead-code', 'src/base/x.c', '/* base/x.c: seeded */\n#if 0\nint a;\n#endif\n'),
    ('return-type', 'src/base/x.c', '/* base/x.c: seeded */\nint f(int a)\n{\n    return a;\n}\n'),
    ('layers', 'src/wall/x.c', '/* wall/x.c: seeded */\n#include "policy/policy.h"\n'),
    ('layers', 'src/base/x.c', '/* base/x.c: seeded */\n#include "match/host.h"\n'),
    ('layers', 'src/policy/x.c', '/* policy/x.c: seeded */\n#include "engine/engine.h"\n'),
    ('layers', 'src/engine/native/x.c', '/* engine/x.c: seeded */\n#include "cli/cli.h"\n'),
    ('layers', 'src/wall/x.c', '/* wall/x.c: seeded */\n#include "../base/err.h"\n'),
    ('layers', 'src/attic/x.c', '/* attic/x.c: seeded */\n'),
    ('doors', 'src/cli/x.c', '/* cli/x.c: seeded */\n#include "engine/native/plan.h"\n'),
    ('doors', 'src/cli/x.c', '/* cli/x.c: seeded */\n#include "engine/ops.h"\n'),
    ('doors', 'src/cli/x.c', '/* cli/x.c: as engine/native/plan.c does */\n'),
    ('doors', 'src/engine/x.c', '/* engine/x.c: seeded */\n#include "engine/native/plan.h"\n'),
    ('doors', 'src/engine/other/x.c', '/* other/x.c: seeded */\n#include "engine/native/plan.h"\n'),
]


@pytest.mark.parametrize('rule, path, text', BAD, ids=[f'{i}-{row[0]}' for i, row in enumerate(BAD)])
def test_a_bad_file_is_named_by_its_rule_only(tmp_path, rule, path, text):
    seed(tmp_path, path, text)
    code, out = run(tmp_path, ENTERED if rule == 'doors' else PICTURE)
    assert code == 1
    rules = {line.split(': ')[1] for line in out.splitlines() if line.startswith(path)}
    assert rules == {rule}, out


H = '/* base/{0}.h: seeded */\n#ifndef CLOCHE_BASE_{1}_H\n#define CLOCHE_BASE_{1}_H\n#include "base/{2}.h"\n#endif\n'


def test_headers_in_a_circle_are_found(tmp_path):
    for name, other in (('a', 'b'), ('b', 'c'), ('c', 'a')):
        seed(tmp_path, f'src/base/{name}.h', H.format(name, name.upper(), other))
    code, out = run(tmp_path)
    assert code == 1 and 'src/base/a.h:4: circle: base/a.h -> base/b.h -> base/c.h -> base/a.h' in out, out
    assert out.count('circle') == 1, out
    seed(tmp_path, 'src/base/c.h', H.format('c', 'C', 'd'))
    assert run(tmp_path)[0] == 0


def test_the_picture_is_held_to_the_code(tmp_path):
    def drawn(*rows):
        return '```arrows\n' + '\n'.join(rows) + '\n```\n'
    seed(tmp_path, 'src/match/x.c', '/* match/x.c: seeded */\n#include "base/err.h"\n')
    assert run(tmp_path, drawn('base:', 'match: base'))[0] == 0
    code, out = run(tmp_path, drawn('base:', 'match:'))
    assert code == 1 and 'match may not include base/err.h' in out, out
    code, out = run(tmp_path, drawn('base:', 'wall:', 'match: base wall'))
    assert code == 1 and 'nothing in match includes wall: an arrow too many' in out, out
    code, out = run(tmp_path, drawn('match: base'))
    assert code == 1 and 'base is no room' in out, out
    code, out = run(tmp_path, drawn('base: match', 'match: base'))
    assert code == 1 and 'circle: base -> match -> base' in out, out
    code, out = run(tmp_path, 'no block\n')
    assert code == 1 and 'src/match is no room' in out, out


NOT_BAD = [
    body(['fd = open(path, O_RDONLY | O_CLOEXEC);']),
    body(['fd = openat(dir, path,', '            O_RDONLY |', '            O_CLOEXEC);']),
    body(['fd = open(path, flags);']),
    body(['fd = openat(top, name, DIR_FLAGS | O_NOFOLLOW);']),
    body(['fd = open(path, O_RDWR);  /* checksrc: no O_CLOEXEC, it is for the command */']),
    '/* base/x.c: seeded */\ntypedef struct shown finder(const char *path);\n',
    body(['ops->open(path);']),
    body(['ops.system(path);']),
    body(['x = "goto";  /* strcpy(a, b) */']),
    '/* base/x.c: seeded */\nint accept(int fd, void *p);\n',
]


@pytest.mark.parametrize('text', NOT_BAD, ids=[str(i) for i in range(len(NOT_BAD))])
def test_what_only_looks_bad_is_left_alone(tmp_path, text):
    seed(tmp_path, 'src/base/x.c', text)
    code, out = run(tmp_path)
    assert code == 0, out


def test_an_engine_is_named_in_its_folder_only(tmp_path):
    seed(tmp_path, 'src/engine/odd/x.c', body(['x = "odd";']))
    seed(tmp_path, 'src/engine/registry.c', '/* engine/registry.c: seeded */\n#include "engine/odd/x.h"\n')
    seed(tmp_path, 'src/cli/x.c', body(['x = "an odd one";  /* "odd" */']) + '#include "engine/engine.h"\n')
    code, out = run(tmp_path, ENTERED)
    assert code == 0, out
    seed(tmp_path, 'src/cli/x.c', body(['x = "odd";']))
    code, out = run(tmp_path, ENTERED)
    assert code == 1 and 'src/cli/x.c:5: doors: ' in out


def test_what_one_file_leads_nobody_else_calls(tmp_path):
    page = '```arrows\negress:\n```\n'
    seed(tmp_path, 'src/egress/stages.h', '/* egress/stages.h: seeded */\n#ifndef CLOCHE_EGRESS_STAGES_H\n#define CLOCHE_EGRESS_STAGES_H\n'
         'struct conn;\n/* other_begin(c) is no name */\nvoid one_begin(struct conn *c);\nint *two_begin(struct conn *c);\n#endif\n')
    seed(tmp_path, 'src/egress/way.c', '/* egress/way.c: seeded */\nvoid\nnext(struct conn *c)\n{\n    one_begin(c);\n    two_begin(c);\n}\n')
    seed(tmp_path, 'src/egress/one.c', '/* egress/one.c: seeded */\nvoid\none_begin(struct conn *c)\n{\n    other_begin(c);\n}\n')
    code, out = run(tmp_path, page)
    assert code == 0, out
    seed(tmp_path, 'src/egress/two.c', '/* egress/two.c: seeded */\nint *\ntwo_begin(struct conn *c)\n{\n    one_begin(c);\n}\n')
    code, out = run(tmp_path, page)
    assert code == 1 and 'src/egress/two.c:5: led: one_begin is for src/egress/way.c to call' in out, out


def exceptions(tmp_path, text):
    seed(tmp_path, 'tools/checksrc.exceptions', textwrap.dedent(text))


def test_an_exception_lifts_one_limit_for_one_function(tmp_path):
    seed(tmp_path, 'src/base/x.c', body(['a++;'] * 90))
    exceptions(tmp_path, 'function-length src/base/x.c f 90  # why\n')
    assert run(tmp_path)[0] == 0
    seed(tmp_path, 'src/base/x.c', body(['a++;'] * 91))
    assert 'function-length' in run(tmp_path)[1]


def test_an_exception_that_is_too_generous_is_a_finding(tmp_path):
    seed(tmp_path, 'src/base/x.c', body(['a++;'] * 90))
    exceptions(tmp_path, 'function-length src/base/x.c f 95\n')
    code, out = run(tmp_path)
    assert code == 1 and 'lower it' in out


def test_an_exception_that_nobody_needs_is_a_finding(tmp_path):
    seed(tmp_path, 'src/base/x.c', body(['a++;']))
    exceptions(tmp_path, 'function-length src/base/x.c f 90\nfile-length src/base/gone.c - 700\n')
    code, out = run(tmp_path)
    assert code == 1 and out.count('no longer needed') == 2


def test_a_malformed_exception_is_a_finding(tmp_path):
    seed(tmp_path, 'src/base/good.c', GOOD)
    exceptions(tmp_path, 'everything src/base/good.c - 1\n')
    assert 'want: RULE PATH NAME LIMIT' in run(tmp_path)[1]
