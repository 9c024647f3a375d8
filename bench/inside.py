#!/usr/bin/python3
"""The steady-state workloads, timed from inside so that the start of a sandbox does not count.

    inside.py WORKLOAD SCRATCH DATA     prints the seconds that the work itself took

SCRATCH is a writable folder (a tmpfs everywhere, so that no disk takes part); DATA has the compiled loop, the C files
and the repository that prepare() made.
"""
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time

SYSCALLS = 3_000_000
C_FILES = 8
REPO_FILES = 3000
QUIET = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}


def syscalls(scratch, data):
    done = subprocess.run([f'{data}/work', str(SYSCALLS)], capture_output=True, text=True, check=True)
    return int(done.stdout) / 1e9


def timed(function):
    def run(scratch, data):
        began = time.monotonic()
        function(scratch, data)
        return time.monotonic() - began
    return run


@timed
def compile_c(scratch, data):
    """One compiler after the other, objects into the scratch folder."""
    for i in range(C_FILES):
        subprocess.run(['/usr/bin/gcc', '-O1', '-c', f'{data}/c/unit{i}.c', '-o', f'{scratch}/unit{i}.o'], check=True)


@timed
def git_clone(scratch, data):
    subprocess.run(['/usr/bin/git', '-c', 'safe.directory=*', 'clone', '-q', '--no-local', '--no-hardlinks',
                    f'{data}/repo', f'{scratch}/clone'], check=True, **QUIET)


@timed
def sqlite_loop(scratch, data):
    """Small transactions: a journal file is made, locked, removed for each. Without fsync: it would time the disk."""
    base = sqlite3.connect(f'{scratch}/bench.db', isolation_level=None)
    base.execute('PRAGMA synchronous=OFF')
    base.execute('CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT)')
    for i in range(4000):
        base.execute('INSERT INTO t VALUES (?, ?)', (i, 'x' * 200))
    base.close()


@timed
def small_files(scratch, data):
    """Names are made, renamed and removed: what a guard over names could slow down."""
    for i in range(2000):
        path = f'{scratch}/f{i % 50}'
        with open(path, 'w', encoding='ascii') as f:
            f.write('x')
        os.rename(path, path + '.done')
        os.unlink(path + '.done')


WORKLOADS = {
    'getppid': (syscalls, f'{SYSCALLS:,} getppid(2) calls'),
    'compile': (compile_c, f'gcc -O1 over {C_FILES} C files'),
    'git-clone': (git_clone, f'git clone of a repository of {REPO_FILES:,} files'),
    'sqlite': (sqlite_loop, '4,000 SQLite transactions'),
    'names': (small_files, '2,000 files created, renamed, removed'),
}


def prepare(data, work_source):
    """Make what the workloads read, below @data."""
    subprocess.run(['/usr/bin/gcc', '-O2', '-D_GNU_SOURCE', '-o', f'{data}/work', work_source], check=True)
    pick = random.Random(1)
    os.makedirs(f'{data}/c')
    for i in range(C_FILES):
        with open(f'{data}/c/unit{i}.c', 'w', encoding='ascii') as f:
            f.write('#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n')
            for j in range(120):
                f.write(f'int f{j}(int a, char *s)\n{{\n    int t[{j + 4}];\n    for (int i = 0; i < {j + 4}; i++)\n'
                        f'        t[i] = a * i + (int)strlen(s) % {pick.randrange(1, 99)};\n'
                        f'    return t[a & 3] + snprintf(s, 8, "%d", t[2]);\n}}\n')
    repo = f'{data}/repo'
    for i in range(REPO_FILES):
        folder = f'{repo}/d{i % 60}/e{i % 7}'
        os.makedirs(folder, exist_ok=True)
        with open(f'{folder}/file{i}.txt', 'w', encoding='ascii') as f:
            f.write(''.join(f'{pick.random()}\n' for _ in range(pick.randrange(5, 120))))
    git = ['/usr/bin/git', '-C', repo, '-c', 'user.name=bench', '-c', 'user.email=bench@localhost']
    for words in (['init', '-q'], ['add', '.'], ['commit', '-q', '-m', 'files'], ['gc', '-q']):
        subprocess.run([*git, *words], check=True, **QUIET)


def main():
    workload, scratch, data = sys.argv[1:4]
    folder = os.path.join(scratch, f'run-{os.getpid()}')
    os.mkdir(folder)
    print(f'{WORKLOADS[workload][0](folder, data):.6f}')
    shutil.rmtree(folder)


if __name__ == '__main__':
    main()
