#!/usr/bin/python3
"""checksrc: the house style, as a program.

    tools/checksrc.py [ROOT]          check src/, fuzz/, tests/, bench/ below ROOT (default: the repository)
    tools/checksrc.py --rules         print the rules

Prints one line per finding, `file:line: rule: message`, and exits 1 when there is any. Exceptions live in
tools/checksrc.exceptions, which may only shrink: an entry that is no longer needed, or that allows more than the
code uses, is itself a finding.

The C is not parsed: comments and literals are blanked, then the text is matched line by line. That is enough for a
style that the formatter and the compilers already hold in shape, and it keeps this file readable in one sitting.
"""
import os
import re
import sys

LINE_MAX = 120
FILE_MAX = 600
FUNCTION_MAX = 80
# Tests are tables of rows, one row a line, and one table a function.
TEST_LINE_MAX = 150
TEST_FILE_MAX = 800
TEST_FUNCTION_MAX = 120

BANNED = {
    'strcpy': 'memcpy with a checked length, or buf_puts',
    'strcat': 'buf_puts',
    'strncpy': 'memcpy with a checked length',
    'strncat': 'buf_append',
    'stpcpy': 'memcpy with a checked length',
    'sprintf': 'snprintf or buf_printf',
    'vsprintf': 'vsnprintf',
    'gets': 'io_read_all',
    'scanf': 'base/str.h',
    'sscanf': 'base/str.h',
    'fscanf': 'base/str.h',
    'strtok': 'struct str and memchr',
    'strtok_r': 'struct str and memchr',
    'atoi': 'str_parse_u64', 'atol': 'str_parse_u64', 'atoll': 'str_parse_u64', 'atof': 'str_parse_milli',
    'strtol': 'str_parse_u64', 'strtoul': 'str_parse_u64', 'strtoll': 'str_parse_u64',
    'strtoull': 'str_parse_u64', 'strtod': 'str_parse_milli',
    'system': 'posix_spawn or execve: never a shell',
    'popen': 'posix_spawn or execve: never a shell',
    'alloca': 'a fixed array or malloc',
    'mktemp': 'mkostemp', 'tmpnam': 'mkostemp', 'tempnam': 'mkostemp', 'tmpfile': 'memfd_create',
    'getwd': 'getcwd',
    'signal': 'sigaction',
    'rand': 'getrandom', 'srand': 'getrandom', 'random': 'getrandom', 'srandom': 'getrandom', 'drand48': 'getrandom',
    'gmtime': 'gmtime_r', 'localtime': 'localtime_r', 'ctime': 'strftime', 'asctime': 'strftime',
    'vfork': 'posix_spawn, or clone with CLONE_VFORK', 'creat': 'open with O_CREAT | O_CLOEXEC',
    'dup': 'fcntl(F_DUPFD_CLOEXEC)', 'accept': 'accept4 with SOCK_CLOEXEC', 'pipe': 'pipe2 with O_CLOEXEC',
    'inotify_init': 'inotify_init1', 'epoll_create': 'epoll_create1',
    'setjmp': 'early returns', 'longjmp': 'early returns',
}

# Tests may build their own constants with these; what they test never does.
TESTS_MAY = {'strcpy', 'strcat', 'strtol', 'strtoul', 'strtoll', 'strtoull', 'signal', 'dup', 'pipe', 'accept'}

# call -> flags of which one must stand among its arguments
CLOEXEC = {
    'open': ('O_CLOEXEC',), 'openat': ('O_CLOEXEC',),
    'socket': ('SOCK_CLOEXEC',), 'socketpair': ('SOCK_CLOEXEC',), 'accept4': ('SOCK_CLOEXEC',),
    'pipe2': ('O_CLOEXEC',), 'memfd_create': ('MFD_CLOEXEC',), 'dup3': ('O_CLOEXEC',),
    'epoll_create1': ('EPOLL_CLOEXEC',), 'eventfd': ('EFD_CLOEXEC',), 'signalfd': ('SFD_CLOEXEC',),
    'timerfd_create': ('TFD_CLOEXEC',), 'inotify_init1': ('IN_CLOEXEC',), 'fopen': ('"re"', '"we"', '"ae"', '"r+e"'),
    'mkostemp': ('O_CLOEXEC',),
}

# The page whose block ```arrows says which room may include headers of which others.
PICTURE = 'docs/architecture.md'

# A folder of folders: the headers by which the rest of src/ enters it. What lies in a folder of it (an engine) is that
# folder's own, but for one file that lists them, and its name is a word of that folder: others ask for it.
DOORS = {'engine': {'engine.h', 'host.h', 'leavings.h', 'led.h', 'rules.h'}}
LISTS = {'engine': 'src/engine/registry.c'}
# Folders that are built on another one: oci has its tree, network and cgroup from native's plan (docs/architecture.md).
BUILT_ON = {('engine', 'oci'): 'native', ('engine', 'docker'): 'native', ('engine', 'microvm'): 'native'}

# A header whose functions one file alone calls, beside the one that has them: it says what comes next, the others do not.
LED = {'src/egress/stages.h': 'src/egress/way.c'}

EXCEPTIONS = ('file-length', 'function-length', 'banned')
FOLDERS = ('src', 'fuzz', 'tests', 'bench')
SKIPPED = {'.git', '__pycache__', 'node_modules', 'corpus', 'data'}


class Report:
    """Findings, less what the exceptions file permits."""

    def __init__(self, root):
        self.root = root
        self.found = []
        self.allowed = {}           # (rule, path, name) -> [limit, largest seen or None, line in the file]
        self.path = os.path.join(root, 'tools', 'checksrc.exceptions')
        if os.path.exists(self.path):
            self.read()

    def read(self):
        with open(self.path, encoding='utf-8') as f:
            for number, line in enumerate(f, 1):
                words = line.split('#', 1)[0].split()
                if not words:
                    continue
                if len(words) != 4 or not words[3].isdigit() or words[0] not in EXCEPTIONS:
                    self.add('tools/checksrc.exceptions', number, 'exceptions',
                             f'want: RULE PATH NAME LIMIT, RULE one of {", ".join(EXCEPTIONS)}')
                    continue
                self.allowed[tuple(words[:3])] = [int(words[3]), None, number]

    def add(self, path, line, rule, message):
        self.found.append((path, line, rule, message))

    def measured(self, path, line, rule, name, value, limit, message):
        """A rule with a number: an exception may raise its limit for this one place, by no more than it needs."""
        entry = self.allowed.get((rule, path, name))
        if entry is not None:
            entry[1] = max(value, entry[1] or 0)
            limit = max(entry[0], limit)
        if value > limit:
            self.add(path, line, rule, message % (value, limit))

    def close(self):
        for (rule, path, name), (limit, seen, number) in self.allowed.items():
            tests = path.startswith('tests/')
            default = {'file-length': TEST_FILE_MAX if tests else FILE_MAX, 'banned': 0,
                       'function-length': TEST_FUNCTION_MAX if tests else FUNCTION_MAX}
            if seen is None or seen <= default[rule]:
                self.add('tools/checksrc.exceptions', number, 'exceptions',
                         f'{rule} {path} {name} is no longer needed: remove the line')
            elif seen < limit:
                self.add('tools/checksrc.exceptions', number, 'exceptions',
                         f'{rule} {path} {name} allows {limit} but the code needs {seen}: lower it')
        return sorted(self.found)


def blank(text):
    """Comments and literals replaced by spaces of equal length (newlines kept), so that positions still agree."""
    def spaces(match):
        token = match.group(0)
        if token[0] in '"\'':
            return token[0] + re.sub(r'[^\n]', ' ', token[1:-1]) + token[-1]
        return re.sub(r'[^\n]', ' ', token)
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, spaces, text, flags=re.S)


def comments_only(text):
    """The complement of blank(): what a person wrote in comments."""
    def keep(match):
        token = match.group(0)
        return token if token[0] == '/' else re.sub(r'[^\n]', ' ', token)
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    out, last = [], 0
    for match in re.finditer(pattern, text, flags=re.S):
        out.append(re.sub(r'[^\n]', ' ', text[last:match.start()]))
        out.append(keep(match))
        last = match.end()
    out.append(re.sub(r'[^\n]', ' ', text[last:]))
    return ''.join(out)


def line_of(text, position):
    return text.count('\n', 0, position) + 1


def arguments(code, start):
    """The span between the parenthesis at @start and its partner."""
    depth = 0
    for i in range(start, len(code)):
        if code[i] == '(':
            depth += 1
        elif code[i] == ')':
            depth -= 1
            if depth == 0:
                return start + 1, i
    return start + 1, len(code)


def check_lines(report, path, text, code):
    if '\t' in text:
        report.add(path, line_of(text, text.index('\t')), 'tab', 'a tab; indent with four spaces')
    if not text.endswith('\n'):
        report.add(path, text.count('\n') + 1, 'newline', 'no newline at the end of the file')
    columns, lines = (TEST_LINE_MAX, TEST_FILE_MAX) if path.startswith('tests/') else (LINE_MAX, FILE_MAX)
    for number, line in enumerate(text.split('\n'), 1):
        if len(line) > columns:
            report.add(path, number, 'line-length', f'{len(line)} columns; the limit is {columns}')
        if line != line.rstrip():
            report.add(path, number, 'trailing-blank', 'blank at the end of the line')
    for match in re.finditer(r'^#\s*if\s+0\b', code, flags=re.M):
        report.add(path, line_of(code, match.start()), 'dead-code', '#if 0: delete it, git remembers')
    report.measured(path, 1, 'file-length', '-', text.count('\n'), lines, '%d lines; the limit is %d: split it')


def check_words(report, path, text, code):
    for match in re.finditer(r'\b(TODO|FIXME|XXX|HACK)\b', comments_only(text)):
        report.add(path, line_of(text, match.start()), 'unfinished', f'{match.group(1)}: finish it or file an issue')
    for match in re.finditer(r'\btypedef\s+(struct|union|enum)\b[^;({]*[;{]', code):
        report.add(path, line_of(code, match.start()), 'typedef', f'typedef of a {match.group(1)}: name it by its tag')
    counts = {}
    for match in re.finditer(r'(?<![\w.>])([A-Za-z_]\w*)\s*\(', code):
        name = match.group(1)
        if path.startswith('tests/') and name in TESTS_MAY:
            continue
        if name in BANNED and not declared(code, match.start()):
            counts.setdefault(name, []).append(match.start())
    for name, places in counts.items():
        entry = report.allowed.get(('banned', path, name))
        if entry is not None:
            report.measured(path, line_of(code, places[-1]), 'banned', name, len(places), 0,
                            f'{name} is called %d times; the exception allows %d')
            continue
        for place in places:
            report.add(path, line_of(code, place), 'banned', f'{name}: use {BANNED[name]}')


def declared(code, position):
    """`int accept(...)` in a prototype or a struct member is a name, not a call: a type word stands before it."""
    before = code[:position].rstrip(' *')
    word = re.search(r'(\w+)$', before)
    same_line = code[:position].rfind('\n') < len(before)
    return bool(word and same_line and word.group(1) not in ('return', 'else', 'do', 'sizeof', 'case'))


def check_cloexec(report, path, text, code):
    for match in re.finditer(r'(?<![\w.>])(\w+)\s*\(', code):
        name = match.group(1)
        if name not in CLOEXEC or declared(code, match.start()):
            continue
        start, end = arguments(code, match.end() - 1)
        # Literals matter to fopen, names to the rest; a variable that holds the flags is named *flags* and is
        # checked where it is filled.
        given = text[start:end]
        line = text[:start].count('\n')
        if re.search(r'checksrc: no \w*CLOEXEC, \w+', text.split('\n')[line]):
            continue        # the reason stands beside it
        if not any(flag in given for flag in CLOEXEC[name]) and not re.search(r'\bflags\b|_FLAGS\b', code[start:end]):
            report.add(path, line_of(code, match.start()), 'cloexec',
                       f'{name} without {" or ".join(CLOEXEC[name])}: the descriptor would leak into what is executed')


def check_opening(report, path, text):
    if not text.startswith('/*'):
        report.add(path, 1, 'opening', 'the file does not open with a comment that says what it is for')
    if not path.endswith('.h'):
        return
    # CLOCHE_, folders, name: folders may be left out where the name says enough
    want = re.sub(r'\W', '_', os.path.basename(path)).upper()
    guard = re.search(r'^#ifndef (\w+)\n#define (\w+)$', text, flags=re.M)
    if guard is None or not re.fullmatch(rf'CLOCHE_(\w+_)?{want}', guard.group(1)) or guard.group(1) != guard.group(2):
        report.add(path, 1, 'guard', f'want an include guard CLOCHE_..._{want}')


def check_functions(report, path, code):
    """A body opens with `{` in column one below a line that ends the parameter list, and closes with `}` there."""
    lines = code.split('\n')
    start = None
    name = '?'
    longest = TEST_FUNCTION_MAX if path.startswith('tests/') else FUNCTION_MAX
    for number, line in enumerate(lines, 1):
        if line.startswith('{') and start is None:
            head = ' '.join(lines[max(0, number - 8):number - 1])
            if head.rstrip().endswith(')'):
                found = re.findall(r'(\w+)\s*\(', head)
                above = reversed(lines[max(0, number - 8):number - 1])
                named = [text for text in above if re.match(r'\w+\s*\(', text)]
                name = re.match(r'\w+', named[0]).group(0) if named else (found[0] if found else '?')
                start = number
                if not named and found:
                    report.add(path, number, 'return-type', f'{name}: the return type stands on its own line')
        elif line.startswith('}') and start is not None:
            report.measured(path, start, 'function-length', name, number - start - 1, longest,
                            name + ' has %d lines; the limit is %d')
            start = None
    for match in re.finditer(r'\bgoto\b', code):
        report.add(path, line_of(code, match.start()), 'goto', 'return early and let cleanup_* release')


def includes(text):
    return re.finditer(r'^#\s*include\s+"([^"]+)"', text, flags=re.M)


def check_doors(report, path, text, code):
    for room, doors in DOORS.items():
        inside = path.split('/')[1:3] if path.startswith(f'src/{room}/') else []
        place = os.path.join(report.root, 'src', room)
        names = [name for name in (sorted(os.listdir(place)) if os.path.isdir(place) else ())
                 if os.path.isdir(os.path.join(place, name))]
        for match in re.finditer(rf'\b{room}/(\w+(?:\.h|/))', text):
            name, line = match.group(1), line_of(text, match.start())
            if not inside and name not in doors:
                report.add(path, line, 'doors', f'{room}/{name} is not for others: {", ".join(sorted(doors))} are')
            elif inside and name[-1] == '/' and name[:-1] != inside[1] and path != LISTS[room] and \
                    name[:-1] != BUILT_ON.get((room, inside[1])):
                report.add(path, line, 'doors', f'{room}/{name} is its own: {LISTS[room]} lists it, nobody else knows it')
        for name in names if not inside else ():
            for match in re.finditer(rf'"{name}"', text):
                if code[match.start()] == '"':
                    report.add(path, line_of(text, match.start()), 'doors',
                               f'"{name}" is the name of one: {room}_name(), or a list of them, says it')


def check_led(report, path, code):
    for header, leader in LED.items():
        place = os.path.join(report.root, header)
        if path in (header, leader) or not path.startswith('src/') or not os.path.exists(place):
            continue
        with open(place, encoding='utf-8') as f:
            names = re.findall(r'^\w[\w *]*?\b(\w+)\(', blank(f.read()), flags=re.M)
        for match in re.finditer(rf'\b({"|".join(names)})\b', code) if names else ():
            if not re.search(rf'^{match.group(1)}\(', code, flags=re.M):
                report.add(path, line_of(code, match.start()), 'led', f'{match.group(1)} is for {leader} to call')


class Picture:
    """The rooms and their arrows as drawn, and what of them was seen."""

    def __init__(self, report):
        self.report = report
        self.arrows = {}            # room -> {room below: line of the page}
        self.seen = set()           # (room, room below)
        self.headers = {}           # "room/x.h" -> [(header that it includes, line)]
        path = os.path.join(report.root, PICTURE)
        inside = False
        if not os.path.exists(path):
            report.add(PICTURE, 1, 'layers', 'is not there, and has the rooms')
            return
        with open(path, encoding='utf-8') as f:
            for number, line in enumerate(f, 1):
                if line.startswith('```'):
                    inside = line.strip() == '```arrows'
                elif inside and line.strip():
                    room, _, below = line.partition(':')
                    self.arrows[room.strip()] = {name: number for name in below.split()}

    def check(self, path, text):
        parts = path.split('/')
        if len(parts) < 3:
            return
        room = parts[1]
        if room not in self.arrows:
            self.report.add(path, 1, 'layers', f'src/{room} is no room of {PICTURE}')
        for match in includes(text):
            target = match.group(1).split('/')[0]
            line = line_of(text, match.start())
            if '..' in match.group(1).split('/'):
                self.report.add(path, line, 'layers', f'"{match.group(1)}": include from src/, never upwards by ".."')
            elif target in self.arrows and target != room:
                self.seen.add((room, target))
                if target not in self.arrows.get(room, {}):
                    self.report.add(path, line, 'layers',
                                    f'{room} may not include {match.group(1)}: {PICTURE} has no such arrow')
            if path.endswith('.h'):
                self.headers.setdefault(path[len('src/'):], []).append((match.group(1), line))

    def circle(self, start, below):
        """The way from @start back to it, or None; @below(name) are those that follow."""
        stack, known = [(start, [start])], set()
        while stack:
            at, way = stack.pop()
            for name in below(at):
                if name == start:
                    return [*way, name]
                if name not in known:
                    known.add(name)
                    stack.append((name, [*way, name]))
        return None

    def close(self):
        for room, below in self.arrows.items():
            for name, number in below.items():
                if name not in self.arrows:
                    self.report.add(PICTURE, number, 'layers', f'{name} is no room')
                elif (room, name) not in self.seen:
                    self.report.add(PICTURE, number, 'layers', f'nothing in {room} includes {name}: an arrow too many')
            way = self.circle(room, lambda at: self.arrows.get(at, {}))
            if way is not None:
                self.report.add(PICTURE, next(iter(below.values())), 'circle', ' -> '.join(way))
        for header, rows in self.headers.items():
            way = self.circle(header, lambda at: [name for name, _ in self.headers.get(at, [])])
            if way is not None and header == min(way):
                self.report.add(f'src/{header}', rows[0][1], 'circle', ' -> '.join(way))


def check_file(report, picture, path):
    with open(os.path.join(report.root, path), encoding='utf-8') as f:
        text = f.read()
    code = blank(text)
    check_lines(report, path, text, code)
    check_words(report, path, text, code)
    check_opening(report, path, text)
    check_functions(report, path, code)
    if path.startswith('src/'):
        check_cloexec(report, path, text, code)
        check_doors(report, path, text, code)
        check_led(report, path, code)
        picture.check(path, text)


def sources(root):
    for top in FOLDERS:
        for folder, folders, files in os.walk(os.path.join(root, top)):
            folders[:] = sorted(name for name in folders if name not in SKIPPED and not name.startswith('build'))
            for name in sorted(files):
                if name.endswith(('.c', '.h')):
                    yield os.path.relpath(os.path.join(folder, name), root)


def main(argv):
    if argv[1:] == ['--rules']:
        print(f'lines <= {LINE_MAX} columns, files <= {FILE_MAX} lines, functions <= {FUNCTION_MAX} lines')
        print(f'in tests/: {TEST_LINE_MAX}, {TEST_FILE_MAX}, {TEST_FUNCTION_MAX}')
        for name in sorted(BANNED):
            print(f'banned: {name}: use {BANNED[name]}')
        for room, doors in DOORS.items():
            print(f'doors: of {room}/ others include {", ".join(sorted(doors))}')
        for header, leader in LED.items():
            print(f'led: what {header} declares {leader} calls, and nobody else')
        print(f'layers: as drawn in {PICTURE}; no circle of rooms, none of headers')
        return 0
    root = os.path.abspath(argv[1] if len(argv) > 1 else os.path.join(os.path.dirname(__file__), '..'))
    report = Report(root)
    picture = Picture(report)
    n = 0
    for path in sources(root):
        n += 1
        check_file(report, picture, path)
    picture.close()
    findings = report.close()
    for path, line, rule, message in findings:
        print(f'{path}:{line}: {rule}: {message}')
    print(f'checksrc: {n} files, {len(findings)} findings')
    if n == 0:
        print(f'checksrc: no source below {root}')
        return 1
    return 1 if findings else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv))
