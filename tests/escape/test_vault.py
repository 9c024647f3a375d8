"""Attacks on secrets: from inside the sandbox, and from outside on the processes that hold them."""
import os
import re

import pytest

from helpers import leaks, memory, places, requirement
from helpers.runner import Runner, wait_for

pytestmark = [requirement("R12", "R16")]
VALUE = "ghp_" + "TheRealValue0123456789" + "abcdefGHIJKL"

# Everything that a process inside can read: its environment, every file, every process's memory and command line.
HUNT = r"""
import os, sys
needle = bytes.fromhex(sys.argv[1])
found, looked = [], 0
def look(path, limit=8 << 20):
    global looked
    try:
        with open(path, 'rb') as f:
            looked += 1
            if needle in f.read(limit): found.append(path)
    except (OSError, ValueError): pass
for name, value in os.environ.items():
    if needle in (name + value).encode('utf-8', 'surrogateescape'): found.append('environment ' + name)
for pid in [p for p in os.listdir('/proc') if p.isdigit()]:
    for name in ('environ', 'cmdline', 'auxv', 'maps'): look(f'/proc/{pid}/{name}')
    if int(pid) == os.getpid(): continue
    try:
        for line in open(f'/proc/{pid}/maps'):
            low, high = (int(x, 16) for x in line.split()[0].split('-'))
            with open(f'/proc/{pid}/mem', 'rb') as m:
                m.seek(low)
                if needle in m.read(min(high - low, 8 << 20)): found.append('memory of ' + pid)
    except (OSError, ValueError): pass
for root in sys.argv[2:]:
    for base, dirs, names in os.walk(root):
        for n in names: look(os.path.join(base, n))
print('looked at', looked, 'found', found)
"""


@pytest.fixture
def vault(anyone):
    anyone.env["XDG_DATA_HOME"] = str(anyone.home / "data")
    anyone.store = anyone.home / "data" / "cloche"
    result = anyone("secret", "set", "token", "--binding", "github", stdin=VALUE)
    assert result.ok, result
    return anyone


def running(vault, *more):
    """A sandbox with the secret, and its cloche-vault."""
    process = vault.popen("run", "--secret", "token", "--allow-domain", "api.github.com", *more, "--", "/bin/sh", "-c",
                          "echo ready; exec sleep 600")
    assert process.stdout.readline() == b"ready\n", process.stderr.read()
    pids = [pid for pid in leaks.descendants(process.pid) if memory.name_of(pid) == "cloche-vault"]
    assert len(pids) == 1
    return process, pids[0]


def end(process):
    process.terminate()
    process.wait(60)


def test_the_sandbox_finds_the_value_nowhere(vault, world):
    needle = VALUE.encode().hex()
    bare = Runner({**vault.env, "LEAK": VALUE}, vault.cwd, vault.person)
    world.runners.append(bare)
    bare.tmp = vault.tmp
    words = [places.PYTHON, "-I", "-S", "-c", HUNT, needle]
    (vault.home / "leak").write_text(VALUE)
    hunted = bare.run([*words, vault.home]).out             # the hunt finds what is there
    assert "environment LEAK" in hunted and "/leak" in hunted
    (vault.home / "leak").unlink()
    words += ["/home", "/tmp", "/run", "/etc", "/workspace", "/var", "/mnt", "/root", "/dev/shm"]
    result = vault("run", "--secret", "token", "--allow-domain", "api.github.com", "--", *words)
    assert result.ok and re.search(r"looked at [1-9]\d* found \[\]", result.out), result


def test_the_vault_has_no_network_no_files_and_no_rights(vault):
    process, pid = running(vault)
    try:
        if not places.IS_ROOT:
            with pytest.raises(PermissionError):        # not dumpable: not even its owner
                os.listdir(f"/proc/{pid}/fd")
        else:
            held = {fd: os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
            assert {t for t in held.values() if not t.startswith("socket:[")} == {"/dev/null"}, held
            inodes = {t[8:-1] for t in held.values() if t.startswith("socket:[")}
            for table in ("tcp", "tcp6", "udp", "udp6", "raw", "packet"):
                with open(f"/proc/{pid}/net/{table}", encoding="utf-8") as f:
                    assert not inodes & set(f.read().split()), table
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            assert int(status[name], 16) == 0, (name, status)
        assert status["NoNewPrivs"] == "1"
        assert status["Seccomp"] == ("0" if "asan" in str(vault.binary) else "2")
        assert int(status["VmLck"].split()[0]) > 0
        assert "0" not in status["Uid"].split()
        with open(f"/proc/{pid}/limits", encoding="utf-8") as f:
            assert re.search(r"^Max core file size +0 +0 ", f.read(), re.M)
        with open(f"/proc/{pid}/cmdline", encoding="utf-8") as f:
            assert f.read() == "cloche-vault\0"
    finally:
        end(process)


def test_the_vault_is_closed_to_its_own_user(vault, command):
    process, pid = running(vault)
    try:
        code = (f"import os\nfor n in ('mem', 'environ', 'maps', 'fd'):\n"
                f"    p = '/proc/{pid}/' + n\n    try: os.listdir(p) if n == 'fd' else open(p, 'rb').read(1); print('open', n)\n"
                f"    except OSError as e: print('closed', n)\n")
        who = Runner(vault.env, vault.cwd, vault.person or places.ordinary_user() if places.IS_ROOT else None)
        result = who.run([places.PYTHON, "-I", "-S", "-c", code])
        assert "open" not in result.out and result.out.count("closed") == 4, result
    finally:
        end(process)


@pytest.mark.root
def test_the_value_is_in_no_other_memory_and_in_no_file(vault):
    """The memory of every process of the run, as root; the store, the state folder, what the run left, cores."""
    needle = VALUE.encode()
    process, pid = running(vault, "--report", vault.project / "report.json")
    try:
        assert memory.in_memory(pid, needle) is True        # the search finds it where it has to be
        # all that a run starts is below it, and what loses its parent becomes ours (helpers/leaks.py); we are who asks
        family = {p: text for p, text in leaks.descendants().items() if p != pid and "[Z]" not in text}
        looked = {p: memory.in_memory(p, needle) for p in family}
        assert len(looked) >= 3 and set(looked.values()) == {False}, (family, looked)
        assert looked[process.pid] is False
    finally:
        end(process)
    for root in (vault.home, vault.state, vault.tmp, vault.project, "/var/lib/systemd/coredump", "/var/crash"):
        assert memory.in_files(root, needle) == [], root


@pytest.mark.root       # reading memory
def test_the_key_is_in_no_other_process(vault):
    key = (vault.store / "secrets.key").read_bytes()
    process, pid = running(vault)
    try:
        # wiped once the run has started: what is bound is all that is left
        assert memory.in_memory(pid, key) is False
        for other in leaks.descendants(process.pid):
            assert memory.in_memory(other, key) in (False, None)
    finally:
        end(process)


def test_a_killed_vault_is_noticed_and_nothing_is_left(vault):
    process, pid = running(vault)
    try:
        os.kill(pid, 9)
        assert b"cloche-vault has ended" in process.stderr.readline()
    finally:
        end(process)
    assert wait_for(lambda: not os.path.exists(f"/proc/{pid}"))


def test_the_vault_ends_with_its_run(vault):
    process, pid = running(vault)
    process.kill()
    process.wait(60)

    def gone():
        leaks.reap_adopted(set())
        return not os.path.exists(f"/proc/{pid}")
    assert wait_for(gone, seconds=60)


@pytest.mark.parametrize("view", ["private", "host"])
def test_the_store_is_closed_wherever_it_lies(vault, view):
    """In a folder that is shown inside; without the rule it would be readable."""
    where = vault.home / "shown"
    where.mkdir(mode=0o755)
    if vault.person is not None:
        os.chown(where, vault.person.pw_uid, vault.person.pw_gid)
    vault.env["XDG_DATA_HOME"] = str(where)
    assert vault("secret", "set", "token", "--binding", "github", stdin=VALUE).ok
    inside = where if view == "host" else "/mnt/shown"
    flags = ["--view", "host"] if view == "host" else ["--bind", f"{where}:{inside}:ro"]
    code = (f"import os\nfor n in ('secrets', 'secrets.key'):\n"
            f"    try: print(len(open('{inside}/cloche/' + n, 'rb').read()))\n    except OSError as e: print('closed')\n")
    result = vault("run", *flags, "--", places.PYTHON, "-I", "-S", "-c", code)
    assert result.ok and result.out.split() in (["closed", "closed"], ["0", "0"]), result
    opened = vault("run", *flags, "--allow-read", f"{where}/cloche/secrets", "--", places.PYTHON, "-I", "-S", "-c", code)
    assert opened.code == 125 and "[policy.own-folder]" in opened.err, opened


def test_the_store_is_neither_moved_nor_made_where_home_is_the_workspace(vault):
    """What is behind a closed name must not be shown to the next run under another one; nor may a run leave a store."""
    vault.env["XDG_DATA_HOME"] = str(vault.home / ".local" / "share")
    code = ("mv .local x; mv .local/share x; mv .local/share/cloche x; mkdir -p .local/share; mkdir .local/share/cloche && echo made; "
            "cat x/share/cloche/secrets.key x/cloche/secrets.key x/secrets.key; touch fine")
    run = ("run", "--workspace", f"{vault.home}:rw", "--", "sh", "-c", code)
    bare = vault(*run)
    assert "made" not in bare.out and not (vault.home / ".local" / "share" / "cloche").exists(), bare
    assert vault("secret", "set", "token", "--binding", "github", stdin=VALUE).ok
    for _ in range(2):
        result = vault(*run)
        assert result.ok and not result.out and not (vault.home / "x").exists(), result
    assert (vault.home / ".local" / "share" / "cloche" / "secrets.key").exists() and (vault.home / "fine").exists()


@pytest.mark.parametrize("link", ["home", "data", "dangling"])
def test_a_store_that_links_lead_to_is_not_made(vault, link):
    """The way to the store leads over a link into the tree that a run writes; there is no store yet."""
    tree, other = vault.home / "tree", vault.home / "link"
    target = {"home": tree, "data": tree / "data", "dangling": tree / "later" / "data"}[link]
    (target if link != "dangling" else tree).mkdir(parents=True)
    if vault.person is not None:
        for path in (tree, target):
            if path.exists():
                os.chown(path, vault.person.pw_uid, vault.person.pw_gid)
    other.symlink_to(target)
    if link == "home":
        vault.env["HOME"], made = str(other), ".local/share/cloche"
        del vault.env["XDG_DATA_HOME"]
    else:
        vault.env["XDG_DATA_HOME"], made = str(other), f"{target.relative_to(tree)}/cloche"
    code = f"mkdir -p {os.path.dirname(made)}; mkdir {made} && echo made; touch fine"
    result = vault("run", "--workspace", f"{tree}:rw", "--", "sh", "-c", code)
    assert "made" not in result.out and (tree / "fine").exists() and not (tree / made).exists(), result
