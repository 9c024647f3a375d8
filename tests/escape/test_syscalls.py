"""Every system call number through every entry, against tables that are checked in; and the attacks behind them.

The tables (syscalls_*.tsv beside this file) say what each number answers inside when all arguments are -1. `allow`
is tested by comparison: the answer must be the one that the same call gets outside. Everything is tried twice, in
whole sandboxes and behind the filter alone (tests/lib/filtered), so that a call which only some other wall refuses
does not pass for filtered.
"""
import os
import platform
import shutil
from pathlib import Path

import pytest

from helpers import places, requirement

pytestmark = [requirement("R26"),
              pytest.mark.skipif(platform.machine() != "x86_64", reason="the tables are those of x86-64")]

TABLES = {"native": "syscalls_x86_64.tsv", "x32": "syscalls_x32.tsv", "i386": "syscalls_i386.tsv"}
MODES = ["standard", "light", "max"]
FILTER_FLAGS = {"standard": ["--list", "standard", "--ptrace"], "light": ["--list", "light", "--ptrace", "--closed"],
                "max": ["--list", "max"]}
NUMBERS = range(1024)
# Below the name guard Landlock is closed: the guard acts for its callers and must not be outside their domain.
MEMFD_CREATE = 319
GUARDED = {444: "EOPNOTSUPP", 446: "EOPNOTSUPP"}
# In light mode the guard is always there, and answers for changes of metadata too: it looks at arguments in another
# order than the kernel, and hides openat2, whose arguments lie in memory.
GUARDED_LIGHT = {**GUARDED, 188: "EFAULT", 189: "EFAULT", 190: "EBADF", 199: "EBADF", 280: "EINVAL", 437: "ENOSYS",
                 452: "ENOSYS", 463: "ENOSYS", 466: "ENOSYS"}
VHANGUP = 153       # outside it would hang up the terminal of whoever runs the tests as root


def read_table(entry):
    """number → {mode: answer}; what the file does not name is ENOSYS."""
    answers = {nr: dict.fromkeys(MODES, "ENOSYS") for nr in NUMBERS}
    seen = set()
    for line in (Path(__file__).parent / TABLES[entry]).read_text().splitlines():
        if line.startswith("#"):
            continue
        words = line.split("\t")
        first, _, last = words[0].partition("-")
        for nr in range(int(first), int(last or first) + 1):
            assert nr not in seen, f"{TABLES[entry]}: {nr} is there twice"
            seen.add(nr)
            answers[nr] = dict(zip(MODES, words[-3:]))
    assert seen, f"{TABLES[entry]} is empty"
    return answers


def unprivileged():
    """Words that make a command as powerless as a sandbox's, without its walls: what `allow` is compared with."""
    words = ["setpriv", "--no-new-privs"]
    if places.IS_ROOT:
        words += ["--reuid", "65534", "--regid", "65534", "--clear-groups"]
    return words


def parse_sweep(result):
    assert result.ok, result
    answers = {}
    for line in result.out.splitlines():
        _, number, answer = line.split("\t")
        answers[int(number)] = answer
    return answers


@pytest.fixture
def tools(binary, project):
    """trysyscall and filtered where everybody may execute them, and where they can be bound from."""
    made = {}
    for name in ("trysyscall", "filtered"):
        source = places.find_beside(binary, f"tests/lib/{name}")
        if source is None:
            pytest.skip(f"tests/lib/{name} is not built")
        made[name] = project / name
        shutil.copy(source, made[name])
        made[name].chmod(0o755)
    return made


@pytest.fixture
def outside(command, tools):
    """trysyscall without any wall, as nobody."""
    def run(*words, **kw):
        return command([*unprivileged(), str(tools["trysyscall"]), *words], check=False, **kw)
    return run


@pytest.fixture
def bare_answers(outside):
    return parse_sweep(outside("sweep", "native", str(VHANGUP)))


@pytest.fixture(params=["sandbox", "filter"])
def inside(request, cloche, command, tools):
    """inside(mode, words...): trysyscall in a sandbox, or behind the filter alone."""
    trysyscall = str(tools["trysyscall"])

    def in_sandbox(mode, *words, flags=(), **kw):
        return cloche("run", "--mode", mode, "--bind", trysyscall, "--timeout", "5m", *flags, "--",
                      trysyscall, *words, **kw)

    def behind_filter(mode, *words, flags=(), **kw):
        return command([*unprivileged(), str(tools["filtered"]), *FILTER_FLAGS[mode], "--", trysyscall, *words],
                       check=False, **kw)
    return in_sandbox if request.param == "sandbox" else behind_filter


def compare(table, mode, found, bare, beside=None):
    """The differences, as readable lines; what @beside says of a number is right too."""
    wrong = []
    for nr in NUMBERS:
        want = table[nr][mode]
        if want == "allow":
            want = bare.get(nr, found[nr])      # only vhangup is missing, and that is not allowed
        if found[nr] not in (want, (beside or {}).get(nr)):
            wrong.append(f"{nr}: {found[nr]}, the table says {table[nr][mode]}, outside {bare.get(nr, '-')}")
    return wrong


@pytest.mark.parametrize("mode", MODES)
def test_every_native_number(request, inside, bare_answers, mode):
    found = parse_sweep(inside(mode, "sweep", "native"))
    assert set(found) == set(NUMBERS)
    guarded = GUARDED_LIGHT if mode == "light" else GUARDED
    if request.node.callspec.params["inside"] == "filter":
        guarded = None
    elif mode == "max" and not places.IS_ROOT:      # no memory files where no cgroup counts them (docs/limits.md)
        guarded = {**guarded, MEMFD_CREATE: "ENOSYS"}
    assert not compare(read_table("native"), mode, found, bare_answers, guarded)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("entry", ["x32", "i386"])
def test_every_number_of_other_entries(inside, mode, entry):
    found = parse_sweep(inside(mode, "sweep", entry))
    assert set(found) == set(NUMBERS)
    assert not compare(read_table(entry), mode, found, {})


def test_the_i386_entry_is_real_on_this_host(outside):
    result = outside("call", "i386", "20")
    if "SIGSEGV" in result.out:
        pytest.skip("this kernel has no 32-bit entry (ia32_emulation=off)")
    assert result.out.strip() == "ok", result       # getpid


def test_the_table_refuses_more_in_stricter_modes():
    """max never allows what standard refuses."""
    table = read_table("native")
    loose = [nr for nr in NUMBERS if table[nr]["max"] == "allow" != table[nr]["standard"]]
    assert not loose
    allowed = {mode: sum(row[mode] == "allow" for row in table.values()) for mode in MODES}
    assert allowed["max"] < allowed["light"] < allowed["standard"] < 310, allowed


def test_known_numbers_are_in_the_table():
    """The distribution's header knows no call that the table does not name."""
    header = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
    if not header.exists():
        pytest.skip("no kernel headers")
    named = {}
    for line in (Path(__file__).parent / TABLES["native"]).read_text().splitlines():
        if not line.startswith("#"):
            number, name = line.split("\t")[:2]
            named[int(number)] = name
    for line in header.read_text().splitlines():
        words = line.split()
        if len(words) == 3 and words[1].startswith("__NR_") and words[2].isdigit():
            assert named.get(int(words[2])) == words[1][5:], line


# name: words for `trysyscall call`, what happens outside, what must happen in standard, light, max.
# @N is a page that begins with the number N.
CLONE_USER = 0x10000011         # CLONE_NEWUSER | SIGCHLD
ATTACKS = {
    "user namespace by clone": (["native", 56, CLONE_USER], "ok", ["EPERM"] * 3),
    "user namespace by clone, high bits": (["native", 56, 0x1_00000000 | CLONE_USER], "ok", ["EPERM"] * 3),
    "user namespace by unshare": (["native", 272, 0x10000000], "ok", ["EPERM"] * 3),
    "clone3, whose flags cannot be seen": (["native", 435, "@", 88], "ok", ["ENOSYS"] * 3),
    "io_uring": (["native", 425, 1, "@"], "ok", ["ENOSYS"] * 3),
    "session keyring": (["native", 250, 0, -1, 1], "ok", ["EPERM"] * 3),
    "netlink beside routing": (["native", 41, 16, 3, 4], "ok", ["EAFNOSUPPORT"] * 3),
    "netlink kernel events": (["native", 41, 16, 3, 15], "ok", ["EAFNOSUPPORT"] * 3),
    "vsock": (["native", 41, 40, 1, 0], None, ["EAFNOSUPPORT"] * 3),
    "AF_ALG": (["native", 41, 38, 5, 0], None, ["EAFNOSUPPORT"] * 3),
    "packet socket": (["native", 41, 17, 3, 0], "EPERM", ["EAFNOSUPPORT"] * 3),
    "packet socket, high bits": (["native", 41, 0x1_00000011, 3, 0], "EPERM", ["EAFNOSUPPORT"] * 3),
    "multipath TCP": (["native", 41, 2, 1, 262], None, ["EPROTONOSUPPORT", "EAFNOSUPPORT", "EPROTONOSUPPORT"]),
    "kernel TLS on a socket": (["native", 54, 0, 6, 31, "@", 4], None, ["ENOPROTOOPT"] * 3),
    "pages moved into a pipe": (["native", 278, 1, "@", 0, 0], "ok", ["ENOSYS"] * 3),
    "TCP in light without network": (["native", 41, 2, 1, 0], "ok", ["ok", "EAFNOSUPPORT", "ok"]),
    "file handle": (["native", 303, 0xffffff9c, "@0x2e", "@128", "@", 0], "ok", ["EPERM"] * 3),
    "local descriptor table": (["native", 154, 0, "@", 16], "ok", ["ENOSYS"] * 3),
    "readable means executable": (["native", 135, 0x400000], "ok", ["EPERM"] * 3),
    "fanotify": (["native", 300, 0x200, 0], "ok", ["EPERM"] * 3),
    "kcmp": (["native", 312, 1, 1, 0, 0, 0], None, ["EPERM"] * 3),
    "merging memory with others": (["native", 157, 67, 1], None, ["EPERM"] * 3),
    "unknown prctl": (["native", 157, 0x7fff], "EINVAL", ["EINVAL"] * 3),
    "being traced": (["native", 101, 0], "ok", ["ok", "ok", "EPERM"]),
    "shared memory of the host": (["native", 29, 0, 4096, 0o1600], "ok", ["ok", "ENOSYS", "ENOSYS"]),
    "limits of another process": (["native", 302, 1, 7, "@", 0], "EPERM", [None, "EPERM", None]),
    "system log": (["native", 103, 10], None, ["EPERM"] * 3),
    "int 0x80 for a refused call": (["i386", 310, 0x10000000], "ok", ["SIGSYS"] * 3),       # unshare
    "int 0x80 for an allowed call": (["i386", 20], "ok", ["SIGSYS"] * 3),                   # getpid
    "x32 number": (["x32", 39], None, ["ENOSYS"] * 3),
    "number minus one": (["native", 0xffffffff], "ENOSYS", ["ENOSYS"] * 3),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks(inside, outside, attack, mode):
    words, bare_want, wanted = ATTACKS[attack]
    words = ["call", *(str(w) for w in words)]
    want = wanted[MODES.index(mode)]
    bare = outside(*words)
    if bare_want == "ok" and bare.out.strip() in ("ENOSYS", "EPERM", "SIGSEGV"):
        pytest.skip(f"this host refuses it to everybody: {bare.out.strip()}")
    if bare_want is not None:
        assert bare.out.strip() == bare_want, bare
    result = inside(mode, *words)
    if want is not None:
        assert result.out.strip() == want, result


@pytest.mark.ordinary       # light as root does not write to root's own folders
@pytest.mark.parametrize("mode", MODES)
def test_set_user_id_files_cannot_be_made(cloche, bare, project, mode):
    """With the workspace bound, the file would be the caller's own set-user-ID program."""
    victim = project / "tool"
    victim.write_text("#!/bin/sh\n")
    if places.IS_ROOT:
        os.chown(victim, cloche.person.pw_uid, cloche.person.pw_gid)
    attack = ("import os,sys\n"
              "for how in (lambda p: os.chmod(p, 0o4755), lambda p: os.fchmod(os.open(p, os.O_RDONLY), 0o4755)):\n"
              " try: how(sys.argv[1]); print('made')\n"
              " except OSError as e: print(e)\n")
    assert bare(attack, args=[str(victim)]).out.count("made") == 2
    assert victim.stat().st_mode & 0o4000
    victim.chmod(0o755)
    where = str(victim) if mode == "light" else "/workspace/tool"
    result = cloche.sandbox(attack, flags=["--mode", mode, "--workspace", f"{project}:rw"], args=[where])
    assert result.ok and "made" not in result.out and result.errno == "EPERM", result
    assert not victim.stat().st_mode & 0o6000


@pytest.mark.parametrize("mode", MODES)
def test_every_process_is_filtered(cloche, mode):
    """All that can be seen from inside, the guest included, in every thread."""
    code = ("import glob\n"
            "for p in glob.glob('/proc/[0-9]*/task/[0-9]*/status'):\n"
            " try: t = open(p).read()\n"
            " except OSError: continue\n"
            " f = dict(l.split(':\\t', 1) for l in t.splitlines() if ':\\t' in l)\n"
            " print(p.split('/')[2], f['Name'], f['Seccomp'], f['NoNewPrivs'])\n")
    if mode == "light":     # there the host's processes can be seen too: look at ourselves only
        code = code.replace("/proc/[0-9]*/", "/proc/self/")
    result = cloche.sandbox(code, flags=["--mode", mode])
    assert result.ok and result.out, result
    for line in result.out.splitlines():
        assert line.split()[-2:] == ["2", "1"], line


def test_a_later_filter_cannot_widen(cloche, tools):
    """A program may add a filter of its own; allowing everything there gives nothing back."""
    code = ("import ctypes,struct\n"
            "libc = ctypes.CDLL(None, use_errno=True)\n"
            "insn = ctypes.create_string_buffer(struct.pack('=HBBI', 6, 0, 0, 0x7fff0000))\n"
            "prog = struct.pack('=HxxxxxxQ', 1, ctypes.addressof(insn))\n"
            "assert libc.syscall(317, 1, 0, prog) == 0, ctypes.get_errno()\n"
            "assert libc.syscall(272, 0x10000000) == -1\n"
            "print(ctypes.get_errno())\n")
    assert cloche.sandbox(code).out.strip() == "1"


def test_a_32_bit_program_is_killed_not_confused(cloche, command, tools, project, has):
    """Its numbers mean other calls in the native table: none may get through."""
    has("gcc")
    source = project / "t.s"
    source.write_text(".globl _start\n_start: mov $4, %eax\n mov $1, %ebx\n mov $m, %ecx\n mov $2, %edx\n int $0x80\n"
                      " mov $1, %eax\n xor %ebx, %ebx\n int $0x80\n.data\nm: .ascii \"hi\"\n")
    binary = project / "t32"
    for words in (["as", "--32", "-o", project / "t.o", source],
                  ["ld", "-m", "elf_i386", "-o", binary, project / "t.o"]):
        if not command(words, check=False).ok:
            pytest.skip("the tools cannot make 32-bit programs")
    bare = command([str(binary)], check=False)
    if bare.out != "hi":
        pytest.skip("this kernel runs no 32-bit programs")
    result = cloche("run", "--bind", str(binary), "--", str(binary))
    assert result.out == "" and result.code == 128 + 31, result


def test_debuggers_work_where_they_are_allowed(cloche, has):
    has("strace")
    result = cloche("run", "--", "strace", "-e", "trace=getpid", "-f", "/bin/true")
    assert result.ok and "exited with 0" in result.err, result
    refused = cloche("run", "--mode", "max", "--", "strace", "/bin/true")
    assert not refused.ok


@pytest.mark.ordinary
def test_light_changes_no_metadata_outside(cloche, bare, world, project):
    """Landlock does not see chmod, times and attributes: without namespaces the caller's other files have names."""
    victim = world.root / "own" / "victim"
    attack = ("import os,sys\np = sys.argv[1]\n"
              "fd = os.open(p, os.O_RDONLY)\n"
              "for name, how in (('chmod', lambda: os.chmod(p, 0o666)), ('fchmod', lambda: os.fchmod(fd, 0o606)),\n"
              "                  ('utime', lambda: os.utime(p, (1, 1))), ('futime', lambda: os.utime(fd, (2, 2))),\n"
              "                  ('setxattr', lambda: os.setxattr(p, 'user.cloche', b'1')),\n"
              "                  ('fsetxattr', lambda: os.setxattr(fd, 'user.cloche2', b'1'))):\n"
              " try: how(); print('changed by', name)\n"
              " except OSError as e: print(name, e)\n")
    changes = []
    for run in (bare, cloche.sandbox):
        victim.unlink(missing_ok=True)
        victim.write_text("mine\n")
        if cloche.person is not None and places.IS_ROOT:
            os.chown(victim, cloche.person.pw_uid, cloche.person.pw_gid)
        os.utime(victim, (1000, 1000))
        flags = ["--mode", "light", "--workspace", f"{project}:rw"] if run is not bare else []
        result = run(attack, flags=flags, args=[str(victim)])
        assert result.ok or run is not bare, result
        changes.append([line for line in result.out.splitlines() if line.startswith("changed by")])
    assert len(changes[0]) >= 4, "the attack is real on this host"
    assert not changes[1]
    assert victim.stat().st_mode & 0o777 == 0o644 and victim.stat().st_mtime == 1000


DENIED = {      # rule for tests/lib/deny: call, answer with it
    "unshare": (["272", "0x400"], "ENOSYS"),
    "unshare:EACCES": (["272", "0x400"], "EACCES"),
    "272:EACCES": (["272", "0x400"], "EACCES"),
    "clone:flags&0x10000000=EPERM": (["56", str(CLONE_USER)], "EPERM"),
    "clone:flags&0x8000=EPERM": (["56", "17"], "ok"),
    "socket:arg0==2=EACCES": (["41", "2", "1", "0"], "EACCES"),
    "socket:arg0==10=EACCES": (["41", "2", "1", "0"], "ok"),
    "getppid,unshare:EPERM,personality:EINVAL": (["135", "0xffffffff"], "EINVAL"),
    "@userns": (["272", "0x10000000"], "EPERM"),
    "@userns,getuid": (["272", "0x400"], "ok"),
    "@landlock": (["444", "0", "0", "1"], "EOPNOTSUPP"),
    "@newmount": (["428", "0", "0", "0"], "ENOSYS"),
    "@notify": (["317", "1", "8", "@"], "EINVAL"),
    "@seccomp": (["317", "2", "0", "@"], "ENOSYS"),
}


@pytest.mark.parametrize("rule", DENIED)
def test_the_tool_that_takes_calls_away(command, deny, tools, rule):
    """tests/lib/deny is what the feature-loss tests stand on: it must take away that call, and no other."""
    words, want = DENIED[rule]
    result = command([*unprivileged(), *deny(rule), str(tools["trysyscall"]), "call", "native", *words])
    assert result.out.strip() == want, result


@pytest.mark.parametrize("rule", ["nonsense", "read:EWHAT", "read:arg7&1=EPERM", "read:arg0=EPERM", "@nothing", ""])
def test_the_tool_refuses_what_it_does_not_understand(command, deny, rule):
    result = command([*deny(rule), "true"], check=False)
    assert result.code == 125 and result.err.startswith("deny: "), result
