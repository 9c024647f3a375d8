#!/usr/bin/python3
"""The table of what each system call answers inside (tests/escape/syscalls_*.tsv), as rows of C for cloche-probe.

    gen_refused_calls.py TABLE OUTPUT

Only calls that some mode refuses are rows: X(number, name, standard, light, max), each of the three an errno or 0 where
the kernel is to answer.
"""
import sys


def main():
    table, output = sys.argv[1:]
    rows = []
    with open(table, encoding='utf-8') as f:
        for line in f:
            words = line.rstrip('\n').split('\t')
            if line.startswith('#') or '-' in words[0]:
                continue
            answers = ['0' if w == 'allow' else w for w in words[2:]]
            if len(answers) != 3:
                sys.exit(f'{table}: no three modes: {line!r}')
            if answers != ['0'] * 3:
                rows.append(f'    X({words[0]}, "{words[1]}", {", ".join(answers)})')
    with open(output, 'w', encoding='utf-8') as f:
        f.write('/* Made by tools/gen_refused_calls.py: do not edit. */\n#define REFUSED_CALLS(X) \\\n' +
                ' \\\n'.join(rows) + '\n')


main()
