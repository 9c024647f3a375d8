"""Everyday tools work unmodified in the standard mode with a project bound at /workspace."""
import os
import textwrap

import pytest

from helpers import requirement

pytestmark = requirement("R01", "R64")


@pytest.fixture
def run(cloche):
    """run("git init && ...") in a sandbox with the project; asserts success."""
    def go(script, *flags, check=True, **kw):
        result = cloche("run", "--workspace", cloche.project, *flags, "--", "bash", "-euc", script, **kw)
        assert not check or result.ok, result
        return result
    return go


def write(project, **files):
    for name, text in files.items():
        path = project / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")


GIT_USER = "git config --global user.email a@example.org; git config --global user.name A; " \
           "git config --global init.defaultBranch main; "


# git -----------------------------------------------------------------------------------------------------------
@pytest.fixture
def repository(command, cloche, has):
    """A git repository made on the host by the owner of the project."""
    has("git")
    write(cloche.project, README_dot_md="hello\n")
    if cloche.person:
        os.chown(cloche.project / "README.md", cloche.person.pw_uid, -1)
    for words in (["init", "-q", "-b", "main"], ["config", "user.email", "a@example.org"], ["config", "user.name", "A"],
                  ["add", "."], ["commit", "-qm", "first"]):
        command(["git", *words], cwd=cloche.project)
    return cloche.project


def test_git_works_in_a_bound_repository(run, repository, command):
    result = run("git status --short; echo more >> README.md; git add -A; git commit -qm second; git log --format=%s; "
                 "git diff HEAD~1 --stat; git branch topic; git checkout -q topic; echo t > t; git add t; "
                 "git commit -qm topic; git checkout -q main; git merge -q --no-edit topic; git stash list; git gc -q")
    assert "second\nfirst\n" in result.out
    assert command(["git", "log", "--format=%s"], cwd=repository).out.split() == ["topic", "second", "first"]
    assert command(["git", "fsck", "--strict"], cwd=repository).ok


def test_git_does_not_find_the_owner_dubious(run, repository):
    result = run("git rev-parse --show-toplevel", check=False)
    assert "dubious" not in result.err and result.out == "/workspace\n", result


def test_git_init_in_an_empty_workspace(cloche, has):
    has("git")
    result = cloche("run", "--", "bash", "-euc", GIT_USER + "git init -q; echo x > f; git add f; git commit -qm one; "
                    "git log --oneline | wc -l")
    assert result.ok and result.out.strip() == "1", result


def test_git_init_in_a_bound_project_without_repository(cloche, has, project):
    """The protected names (.git/hooks, .git/config) do not exist yet; below /tmp a repository can be made all the same."""
    has("git")
    result = cloche("run", "--workspace", project, "--", "bash", "-euc",
                    GIT_USER + "git init -q /tmp/r; cd /tmp/r; echo x > f; git add f; git commit -qm one; git log "
                               "--oneline | wc -l")
    assert result.ok and result.out.strip() == "1", result


def test_git_clone_and_worktree_and_push_local(run, repository):
    result = run(GIT_USER + "git clone -q /workspace /tmp/clone; cd /tmp/clone; echo c > c; git add c; git commit -qm "
                            "clone; "
                 "git push -q origin HEAD:refs/heads/from-clone; cd /workspace; git log --format=%s -1 from-clone; "
                 "git worktree add -q /tmp/tree from-clone; ls /tmp/tree; git worktree remove /tmp/tree; git worktree "
                 "prune")
    assert result.out.split() == ["clone", "README.md", "c"], result


def test_git_worktree_inside_the_project(run, repository):
    assert run("git worktree add -q -b side wt; cd wt; echo w > w; git add w; git commit -qm side; "
               "git -C /workspace log --format=%s -1 side; git -C /workspace worktree remove wt").out == "side\n"


def test_git_submodule_bare_bundle_archive(run, repository):
    run("git clone -q --bare /workspace /tmp/bare.git; git bundle create -q /tmp/b.bundle main; "
        "git clone -q -b main /tmp/b.bundle /tmp/from-bundle; git archive main | tar t | grep README.md")


def test_git_apply_and_rebase(run, repository):
    result = run("git checkout -qb a; echo 1 > a; git add a; git commit -qm a; git checkout -q main; echo 2 > b; git "
                 "add b; "
                 "git commit -qm b; git checkout -q a; git rebase -q main; git log --format=%s | tr '\\n' ' '; "
                 "git format-patch -q -1 -o /tmp; git checkout -q main; git am -q /tmp/*.patch; git log --format=%s -1")
    assert result.out == "a b first a\n", result


@requirement("R03")
def test_git_hooks_of_the_project_cannot_be_planted(run, repository):
    result = run("echo '#!/bin/sh' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", check=False)
    assert not result.ok, result
    assert not (repository / ".git/hooks/pre-commit").exists()
    run("git config core.fsmonitor /tmp/evil", check=False)
    assert "evil" not in (repository / ".git/config").read_text()


@requirement("R03")
def test_git_config_can_be_allowed(run, repository):
    run("git config user.name B; git remote add up /tmp/x", "--allow-git-config")
    assert "name = B" in (repository / ".git/config").read_text()
    assert not run("echo x > .git/hooks/pre-commit", "--allow-git-config", check=False).ok


@pytest.mark.ordinary
def test_git_as_an_ordinary_user(run, repository, command):
    run("echo more >> README.md; git commit -qam second; git log --format=%s")
    assert command(["git", "log", "--format=%s"], cwd=repository).out.split() == ["second", "first"]
    assert command(["git", "status", "--short"], cwd=repository).out == ""


# node ----------------------------------------------------------------------------------------------------------
def test_npm_init_install_and_test(run, project, has):
    has("npm", "node")
    write(project, dep__package_dot_json='{"name":"dep","version":"1.2.3","main":"index.js"}\n',
          dep__index_dot_js="module.exports = n => n * 2;\n", app__test_dot_js="""
          const assert = require('assert');
          const { test } = require('node:test');
          test('doubles', () => assert.strictEqual(require('dep')(21), 42));
          """)
    result = run("cd app; npm init -y >/dev/null; npm pkg set scripts.test='node --test test.js'; "
                 "npm install --offline --no-audit --no-fund ../dep; npm test; npm ls --all")
    assert "# pass 1" in result.out or "pass 1" in result.out, result
    assert "dep@1.2.3" in result.out
    assert (project / "app/package-lock.json").exists()


def test_npm_pack_and_install_of_the_tarball(run, project, has):
    has("npm")
    write(project, dep__package_dot_json='{"name":"dep","version":"1.0.0","bin":{"dep-tool":"tool.js"}}\n',
          dep__tool_dot_js="#!/usr/bin/env node\nconsole.log('tool ran', process.argv[2]);\n")
    result = run("chmod +x dep/tool.js; cd dep; npm pack --silent >/dev/null; mkdir -p /tmp/app; cd /tmp/app; "
                 "npm init -y >/dev/null; npm install --offline --no-audit --no-fund /workspace/dep/dep-1.0.0.tgz "
                 ">/dev/null; "
                 "npx --offline dep-tool yes")
    assert result.out.strip() == "tool ran yes", result


def test_node_children_workers_and_files(run, project, has):
    has("node")
    write(project, main_dot_js="""
        const cp = require('child_process'), fs = require('fs'), os = require('os');
        const { Worker, isMainThread, parentPort } = require('worker_threads');
        if (!isMainThread) { parentPort.postMessage(6 * 7); return; }
        if (process.argv[2] === 'child') { process.send({ pid: process.pid }); return; }
        (async () => {
          console.log(cp.execSync('echo shell').toString().trim());
          console.log(cp.spawnSync('cat', { input: 'piped' }).stdout.toString());
          await new Promise(done => cp.fork(__filename, ['child']).on('message', m => { console.log(typeof m.pid); })
            .on('exit', done));
          await new Promise(done => new Worker(__filename).on('message', m => { console.log(m); done(); }));
          fs.mkdirSync('deep/er', { recursive: true }); fs.writeFileSync('deep/er/f', 'x');
          await fs.promises.rm('deep', { recursive: true });
          const t = fs.mkdtempSync(os.tmpdir() + '/n-'); fs.rmdirSync(t);
          console.log(os.userInfo().username, os.homedir());
          const server = require('http').createServer((q, r) => r.end('served')).listen(0, '127.0.0.1', async () => {
            const answer = await fetch('http://127.0.0.1:' + server.address().port);
            console.log(await answer.text()); server.close(); server.closeAllConnections();
          });
        })();
        """)
    result = run("node main.js")
    assert result.out.split() == ["shell", "piped", "number", "42", "agent", "/home/agent", "served"], result


def test_node_file_watching(run, project, has):
    has("node")
    write(project, watch_dot_js="""
        const fs = require('fs');
        const w = fs.watch('.', (event, name) => {
          if (name === 'f') { console.log('saw', name); w.close(); process.exit(0); }
        });
        setTimeout(() => fs.writeFileSync('f', 'x'), 100);
        setTimeout(() => process.exit(1), 20000);
        """)
    assert run("node watch.js").out.startswith("saw f")


# python --------------------------------------------------------------------------------------------------------
SETUP = """
    from setuptools import setup
    setup(name='localthing', version='3.1', py_modules=['localthing'],
          entry_points={'console_scripts': ['localthing=localthing:main']})
    """


def test_venv_and_pip_install_of_local_packages(run, project, has):
    has("pip")
    write(project, pkg__setup_dot_py=SETUP, pkg__localthing_dot_py="def main(): print('installed', 6 * 7)\n")
    result = run("cd pkg; python3 setup.py -q sdist -d /tmp/dist bdist_wheel -d /tmp/dist >/dev/null 2>&1; ls "
                 "/tmp/dist; "
                 "python3 -m venv --system-site-packages /tmp/v; . /tmp/v/bin/activate; "
                 "pip install -q --no-index --find-links /tmp/dist localthing; localthing; pip uninstall -qy "
                 "localthing; "
                 "pip install -q --no-index --no-build-isolation /tmp/dist/localthing-3.1.tar.gz; localthing; "
                 "pip show localthing | head -2")
    assert result.out.count("installed 42") == 2, result
    assert "localthing-3.1-py3-none-any.whl" in result.out and "Version: 3.1" in result.out


def test_venv_in_the_project(run, project):
    run("python3 -m venv --without-pip venv; venv/bin/python -c 'import sys; assert sys.prefix == \"/workspace/venv\"'")


def test_pytest(run, project):
    write(project, test_it_dot_py="""
        import pytest
        def test_ok(tmp_path): (tmp_path / 'f').write_text('x')
        def test_out(capsys): print('hi'); assert capsys.readouterr().out == 'hi\\n'
        @pytest.mark.parametrize('n', range(5))
        def test_n(n, monkeypatch): monkeypatch.setenv('A', str(n))
        """)
    result = run("ls; python3 -m pytest -q")
    assert "7 passed" in result.out, result


def test_python_standard_library(run):
    code = """
        import sqlite3, subprocess, tempfile, threading, multiprocessing, asyncio, socket, mmap, os
        import concurrent.futures as cf
        import ctypes, curses, lzma, bz2, zlib, ssl, hashlib, locale, getpass, pathlib, fcntl, select, resource, json
        db = sqlite3.connect('/tmp/x.db'); db.execute('create table t(a)')
        db.execute('insert into t values (1)'); db.commit()
        assert subprocess.run(['sh', '-c', 'exit 3']).returncode == 3
        with cf.ProcessPoolExecutor(3) as pool: assert sum(pool.map(abs, range(-10, 0))) == 55
        with cf.ThreadPoolExecutor(8) as pool: assert sum(pool.map(abs, range(100))) == 4950
        async def main():
            p = await asyncio.create_subprocess_exec('echo', 'hi', stdout=asyncio.subprocess.PIPE)
            assert (await p.communicate())[0] == b'hi\\n'
            async def serve(r, w): w.write(await r.readline()); await w.drain(); w.close()
            server = await asyncio.start_server(serve, '127.0.0.1', 0)
            r, w = await asyncio.open_connection(*server.sockets[0].getsockname())
            w.write(b'x\\n'); assert await r.readline() == b'x\\n'; w.close(); server.close()
            unix = await asyncio.start_unix_server(serve, '/tmp/s'); r, w = await asyncio.open_unix_connection('/tmp/s')
            w.write(b'y\\n'); assert await r.readline() == b'y\\n'; w.close(); unix.close()
        asyncio.run(main())
        m = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC); m.close()
        a, b = socket.socketpair(); a.send(b'z'); assert b.recv(1) == b'z'
        assert getpass.getuser() == 'agent' and pathlib.Path.home() == pathlib.Path('/home/agent')
        print('fine')
        """
    assert run(f"python3 - <<'EOF'\n{textwrap.dedent(code)}\nEOF").out == "fine\n"


# C and the rest ------------------------------------------------------------------------------------------------
def test_gcc_and_make(run, project, has):
    has("gcc", "make")
    write(project, main_dot_c='#include <stdio.h>\nint twice(int);\nint main(void) { printf("%d\\n", twice(21)); }\n',
          twice_dot_c="int twice(int n) { return 2 * n; }\n",
          Makefile="prog: main.o twice.o\n\t$(CC) -o $@ $^\ncheck: prog\n\t./prog | grep -qx 42\n.PHONY: check\n")
    run("make -s -j2 check CFLAGS='-O2 -g -fPIE'; gcc -shared -fPIC -o libtwice.so twice.c; "
        "gcc -o dyn main.c -L. -ltwice; LD_LIBRARY_PATH=. ./dyn | grep -qx 42; gcc -static -o st main.c twice.c; ./st "
        "| grep -qx 42")
    assert (project / "prog").exists()


def test_cpp_threads_and_exceptions(run, project, has):
    has("g++")
    write(project, m_dot_cc="#include <thread>\n#include <vector>\n#include <cstdio>\n#include <stdexcept>\n"
          "int main() { int n = 0; std::vector<std::thread> v; for (int i = 0; i < 8; i++) v.emplace_back([&]{ "
          "__sync_add_and_fetch(&n, 1); }); for (auto &t : v) t.join(); try { throw std::runtime_error(\"x\"); } "
          "catch (const std::exception &) { n++; } std::printf(\"%d\\n\", n); }\n")
    assert run("g++ -pthread -o m m.cc && ./m").out == "9\n"


def test_debuggers_and_tracers_inside(run, has):
    has("strace")
    assert "execve" in run("strace -f -o /tmp/t true; cat /tmp/t").out


def test_archives(run, project):
    write(project, a__b="content\n")
    run("tar czf /tmp/x.tgz a; mkdir /tmp/o; tar xzf /tmp/x.tgz -C /tmp/o; cmp a/b /tmp/o/a/b; tar cJf x.txz a; tar "
        "tJf x.txz")


def test_zip(run, project, has):
    has("zip", "unzip")
    write(project, a__b="content\n")
    run("zip -qr /tmp/x.zip a; cd /tmp; unzip -q x.zip; cmp a/b /workspace/a/b")


def test_sqlite(run, has):
    has("sqlite3")
    assert run("sqlite3 x.db 'pragma journal_mode=wal; create table t(a); insert into t values (1),(2); select sum(a) "
               "from t'"
               ).out.split() == ["wal", "3"]


def test_perl_awk_sed_and_text_tools(run, has):
    has("perl")
    assert run("perl -e 'print 6*7, \"\\n\"'; awk 'BEGIN { print 6*7 }'; echo 41 | sed s/1/2/; seq 42 | tail -1; "
               "printf '3\\n1\\n2\\n' | sort | paste -sd,").out.split() == ["42", "42", "42", "42", "1,2,3"]


def test_bash_features(run):
    result = run("set -o pipefail; a=(1 2 3); echo ${#a[@]}; diff <(echo a) <(echo a) && echo same; "
                 "coproc cat; echo co >&${COPROC[1]}; read -r x <&${COPROC[0]}; echo $x; kill $COPROC_PID; exec "
                 "{fd}>/tmp/f; echo y >&$fd; "
                 "cat <<< here; trap 'echo trapped' USR1; kill -USR1 $$; timeout 0.2 sleep 9 || echo $?; "
                 "mkfifo p; (echo via > p) & cat p; wait $!; [[ -e /dev/fd/0 ]] && echo devfd")
    assert result.out.split() == ["3", "same", "co", "here", "trapped", "124", "via", "devfd"], result


def test_find_xargs_and_locks(run, project):
    for i in range(50):
        write(project, **{f"d{i % 5}__f{i}": "x\n"})
    assert run("find . -type f | xargs -n 7 -P 4 cat | wc -l; flock /tmp/l -c 'echo locked'").out.split() == ["50",
                                                                                                              "locked"]


def test_file_operations_in_the_project(run, project):
    """rename, exchange, hard link, symlink, fifo, socket, fallocate, copy_file_range, O_TMPFILE, a copy of a tree."""
    code = """
        import os, socket, ctypes
        os.makedirs('a/b'); open('a/f', 'w').write('1'); os.rename('a/f', 'a/b/f')
        os.link('a/b/f', 'a/h'); os.symlink('h', 'a/s')
        os.mkfifo('a/p'); s = socket.socket(socket.AF_UNIX); s.bind('a/sock'); s.close(); os.unlink('a/sock')
        fd = os.open('a', os.O_TMPFILE | os.O_RDWR, 0o600); os.write(fd, b'tmp')
        os.link(f'/proc/self/fd/{fd}', 't', dst_dir_fd=os.open('a', os.O_RDONLY), follow_symlinks=True)
        assert open('a/t').read() == 'tmp'
        fd = os.open('a/big', os.O_CREAT | os.O_RDWR); os.posix_fallocate(fd, 0, 1 << 20)
        other = os.open('a/copy', os.O_CREAT | os.O_RDWR); assert os.copy_file_range(fd, other, 1 << 20) > 0
        os.chmod('a/f2' if os.path.exists('a/f2') else 'a/h', 0o600); os.utime('a/h'); os.truncate('a/copy', 5)
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.renameat2(-100, b'a/t', -100, b'a/copy', 2) == 0 or ctypes.get_errno() in (22, 38)
        import shutil; shutil.copytree('a', 'c', symlinks=True, ignore=lambda d, n: ['p'])
        shutil.rmtree('a'); shutil.rmtree('c')
        print(os.listdir('.'))
        """
    assert run(f"python3 - <<'EOF'\n{textwrap.dedent(code)}\nEOF").out == "[]\n"


def test_inotify_in_the_project(run, project):
    code = """
        import ctypes, os, select
        libc = ctypes.CDLL(None, use_errno=True); fd = libc.inotify_init1(0); assert fd >= 0
        assert libc.inotify_add_watch(fd, b'.', 0x100) >= 0
        open('new', 'w').close(); assert select.select([fd], [], [], 20)[0]; print(b'new' in os.read(fd, 4096))
        """
    assert run(f"python3 - <<'EOF'\n{textwrap.dedent(code)}\nEOF").out == "True\n"


def test_tmux_screen_like_multiplexers(run, has):
    has("tmux")
    assert "inner 42" in run("export TERM=xterm; tmux -f /dev/null new-session -d -x 80 -y 24 'echo inner $((6*7)); "
                             "sleep 30'; "
                             "for i in 1 2 3 4 5 6 7 8 9 10; do tmux capture-pane -p | grep inner && break; sleep 0.3; "
                             "done; "
                             "tmux kill-server").out


def test_pty_inside(run):
    assert "inner" in run("script -qec 'echo inner; tty' /dev/null").out


def test_many_processes_quickly(run):
    assert run("for i in $(seq 300); do /bin/true; done; echo done").out == "done\n"


def test_sudo_and_su_do_not_work(run):
    assert "0" not in run("su -c 'id -u' root </dev/null 2>&1; sudo -n id -u 2>&1; true", check=False).out.split()
