#!/usr/bin/python3
"""Hold docs/testing.md to tests/check-all.tsv: what `make check` leaves out is said there, with the reason.

    tools/lint-check-all.py             exit 1 where the page says something else, or a pattern means no file
    tools/lint-check-all.py --write     put the table into the page
"""
import glob
import os
import sys

PAGE, TABLE = 'docs/testing.md', 'tests/check-all.tsv'
BEGIN, END = '<!-- tests/check-all.tsv -->\n', '<!-- end -->\n'
RUNS = {'self': 'the first run', 'other': "the other user's run", 'sanitized': 'the sanitized run', 'all': 'every run', 'turns': 'three runs of four, a quarter stays',
        'together': 'three runs of four, a quarter of all these stays'}


def rows():
    with open(TABLE, encoding='utf-8') as f:
        for number, line in enumerate(f, 1):
            if line.startswith('#'):
                continue
            fields = line.rstrip('\n').split('\t')
            if len(fields) != 3 or fields[0] not in RUNS:
                sys.exit(f'{TABLE}:{number}: a run ({", ".join(RUNS)}), patterns and a reason, with tabs between')
            for pattern in fields[1].split(' '):
                if not glob.glob(pattern.split('::')[0]):
                    sys.exit(f'{TABLE}:{number}: no file is meant by "{pattern}"')
            yield fields


def shown():
    lines = ['| left out of | tests | why |\n|---|---|---|\n']
    for run, patterns, reason in rows():
        names = ', '.join(f'`{p.removeprefix("tests/")}`' for p in patterns.split(' '))
        lines.append(f'| {RUNS[run]} | {names} | {reason} |\n')
    return ''.join(lines)


def main():
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(PAGE, encoding='utf-8') as f:
        page = f.read()
    if page.count(BEGIN) != 1 or END not in page.split(BEGIN)[1]:
        sys.exit(f'{PAGE}: the lines {BEGIN.strip()} and {END.strip()} must enclose the table')
    before, rest = page.split(BEGIN)
    right = before + BEGIN + shown() + END + rest.split(END, 1)[1]
    if '--write' in sys.argv[1:]:
        with open(PAGE, 'w', encoding='utf-8') as f:
            f.write(right)
    elif page != right:
        sys.exit(f'{PAGE} does not say what {TABLE} says: tools/lint-check-all.py --write')


if __name__ == '__main__':
    main()
