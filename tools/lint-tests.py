#!/usr/bin/python3
"""No test lies where nothing runs it: unit programs and fuzz targets are in meson.build, the latter have a corpus, and what
defines tests in Python is named test_*.py in one of the suites that pytest.ini names.

    tools/lint-tests.py         exit 1 and a line for each that would never run
"""
import configparser
import glob
import os
import re
import sys

ELSEWHERE = ('tools/test_checksrc.py',)     # linters run it (tests/check/lint.py)


def not_in_meson(folder, prefix):
    with open(f'{folder}/meson.build', encoding='utf-8') as f:
        rows = set(re.findall(r"^\s*\['(\w+)'", f.read(), re.M))
    there = {os.path.basename(name)[:-2] for name in glob.glob(f'{folder}/{prefix}*.c')}
    yield from (f'{folder}/{name}.c is not in {folder}/meson.build: it is never built' for name in sorted(there - rows))


def without_corpus():
    for name in sorted(glob.glob('fuzz/fuzz_*.c')):
        corpus = f'fuzz/corpus/{os.path.basename(name)[:-2]}'
        if not os.path.isdir(corpus) or not os.listdir(corpus):
            yield f'{name} has no corpus: {corpus} is empty or not there'


def never_collected():
    config = configparser.ConfigParser()
    config.read('pytest.ini')
    suites = tuple(config['pytest']['testpaths'].split())
    for name in sorted(glob.glob('**/*.py', recursive=True)):
        if name.startswith('build') or name in ELSEWHERE:
            continue
        with open(name, encoding='utf-8') as f:
            defines = re.search(r'^(?:async )?def test_|^class Test\w*[:(]', f.read(), re.M)
        base = os.path.basename(name)
        if base.startswith('test_') and not name.startswith(suites):
            yield f'{name} lies in none of the suites ({", ".join(suites)})'
        elif defines and not base.startswith('test_') and name.startswith('tests/'):
            yield f'{name} defines tests, but pytest looks into test_*.py only'


def main():
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    lines = [*not_in_meson('tests/unit', 'test_'), *not_in_meson('fuzz', 'fuzz_'), *without_corpus(), *never_collected()]
    print('\n'.join(lines), end='\n' if lines else '')
    return 1 if lines else 0


if __name__ == '__main__':
    sys.exit(main())
