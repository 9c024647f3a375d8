#!/usr/bin/python3
"""Every relative link in a Markdown file leads to a file (and, with #, to a heading) of this tree."""
import os
import re
import sys

REPO = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def anchors(path):
    with open(path, encoding='utf-8') as f:
        text = re.sub(r'```.*?```', '', f.read(), flags=re.S)
    for heading in re.findall(r'^#+\s+(.*)$', text, flags=re.M):
        plain = re.sub(r'[`*]|\[([^]]*)\]\([^)]*\)', r'\1', heading).lower()
        yield re.sub(r'\s', '-', re.sub(r'[^\w\s-]', '', plain).strip())


def pages():
    for base, folders, files in os.walk(REPO):
        folders[:] = [f for f in folders if not f.startswith(('build', '.')) and f != 'node_modules']
        for name in files:
            if name.endswith('.md'):
                yield os.path.join(base, name)


def main():
    broken = n = 0
    for page in sorted(pages()):
        with open(page, encoding='utf-8') as f:
            text = re.sub(r'```.*?```', lambda m: '\n' * m.group(0).count('\n'), f.read(), flags=re.S)
        for match in re.finditer(r'\]\(([^)\s]+)\)', text):
            target = match.group(1)
            if re.match(r'[a-z]+:', target):
                continue
            n += 1
            path, _, anchor = target.partition('#')
            full = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            line = text.count('\n', 0, match.start()) + 1
            where = f'{os.path.relpath(page, REPO)}:{line}'
            if not os.path.exists(full):
                print(f'{where}: {target}: no such file')
                broken += 1
            elif anchor and full.endswith('.md') and anchor not in anchors(full):
                print(f'{where}: {target}: no such heading')
                broken += 1
    print(f'links: {n} checked, {broken} broken')
    return 1 if broken else 0


if __name__ == '__main__':
    sys.exit(main())
