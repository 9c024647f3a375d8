#!/usr/bin/python3
"""Lay out the lines of a change as .clang-format says, and leave what is aligned by hand.

    tools/format.py [--diff] [COMMIT]

All lines of *.c and *.h that differ from COMMIT (HEAD), and new files. --diff shows what it would do, and does nothing.

clang-format 14 cannot leave columns alone: it sets comments beside members and the cells of tables anew, a whole table
for one row of it. So of what it would replace, this leaves out what is in other lines, and what would move a column:
two or more spaces within a line, or any before a comment.
"""
import difflib
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

FILES = ('*.c', '*.h')


def git(*words):
    return subprocess.run(['git', *words], capture_output=True, text=True, check=True).stdout


def changed(commit):
    """(file, [(first line, last line), ...]) of what differs from @commit; of a new file no lines: it is all ours."""
    file, lines = None, {}
    for line in git('diff', '-U0', '--no-color', '--no-ext-diff', '--no-prefix', '--relative', '--diff-filter=d', commit,
                    '--', *FILES).splitlines():
        if line.startswith('+++ '):
            file = line[4:].rstrip('\t')
        elif found := re.match(r'@@ -\S+ \+(\d+)(?:,(\d+))? @@', line):
            first, n = int(found[1]), int(found[2] or 1)
            if n > 0:
                lines.setdefault(file, []).append((first, first + n - 1))
    yield from lines.items()
    for file in git('ls-files', '--others', '--exclude-standard', '--', *FILES).splitlines():
        yield file, []


def is_column(text, at, n, new):
    """Whether the @n bytes at @at of @text are a column that somebody aligned, and @new would move it."""
    begun = text[text.rfind(b'\n', 0, at) + 1:at].strip() != b''
    return begun and (text[at:at + n] + new).strip(b' ') == b'' and (n > 1 or text.startswith(b'/*', at + n))


def formatted(name, text, lines):
    """@text (bytes) of the file @name as it should be in these @lines."""
    ranges = [f'--lines={first}:{last}' for first, last in lines]
    done = subprocess.run(['clang-format', f'--assume-filename={name}', '--style=file', '--output-replacements-xml', *ranges],
                          input=text, stdout=subprocess.PIPE, check=True)
    ours = {line for first, last in lines for line in range(first, last + 1)}
    out, end = b'', 0
    for found in ET.fromstring(done.stdout).iter('replacement'):
        at, n, new = int(found.get('offset')), int(found.get('length')), (found.text or '').encode()
        line = text.count(b'\n', 0, at) + 1
        inside = not lines or ours.intersection(range(line, line + text.count(b'\n', at, at + n) + 1))
        if inside and not is_column(text, at, n, new):
            out += text[end:at] + new
            end = at + n
    return out + text[end:]


def main():
    words = [word for word in sys.argv[1:] if word != '--diff']
    if len(words) > 1 or any(word.startswith('-') for word in words):
        print(__doc__.split('\n\n')[1], file=sys.stderr)
        return 2
    for name, lines in changed(*words or ['HEAD']):
        with open(name, 'rb') as f:
            old = f.read()
        new = formatted(name, old, lines)
        if new == old:
            continue
        if '--diff' in sys.argv[1:]:
            before, after = old.decode().splitlines(True), new.decode().splitlines(True)
            sys.stdout.writelines(difflib.unified_diff(before, after, name, name))
            continue
        with open(name, 'wb') as f:
            f.write(new)
        print(name)
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except (OSError, subprocess.CalledProcessError) as e:
        sys.exit(f'tools/format.py: {e}')
