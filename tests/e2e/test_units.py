"""systemd's units and the Debian package: what they hold, that they are as closed as they can be, and that cloche works so."""
import fcntl
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from helpers import places, requirement

pytestmark = [requirement("R61"), pytest.mark.build]
REPO = Path(__file__).resolve().parents[2]
UNITS = REPO / "deploy" / "systemd"
EXPOSURE_MAX = 4.0      # systemd-analyze security's; what is left open is named in the unit, with why


def build_of(binary):
    """The build folder of the program under test, where meson can install from it."""
    build = places.build_folder(binary)
    if build is None:
        pytest.skip("no build folder that this user may install from")
    return build


@pytest.fixture(scope="module")
def cloche_binary():
    return places.find_cloche()


@pytest.fixture(scope="module")
def deb(cloche_binary, tmp_path_factory):
    """(the package, a folder with its content), made once for all workers of a run: it takes seconds of the processor."""
    build = build_of(cloche_binary)
    if not shutil.which("dpkg-shlibdeps"):
        pytest.skip("no dpkg-dev")
    if "-fsanitize" in (build / "build.ninja").read_text():
        pytest.skip("a sanitizer's build is not for others")
    out = tmp_path_factory.getbasetemp() / "deb"
    out.mkdir(exist_ok=True)
    with open(out / "lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (out / "whole").exists():
            make_deb(build, out)
    package, = out.glob("*.deb")
    return package, out / "root"


def run_deb(build, out):
    """tools/deb, whose package is packed as a release's but for xz, which takes half of the time: its path."""
    made = subprocess.run([REPO / "tools" / "deb", build, out], capture_output=True, text=True, check=False,
                          env={**os.environ, "DPKG_DEB_COMPRESSOR_TYPE": "gzip", "DPKG_DEB_COMPRESSOR_LEVEL": "1"})
    assert made.returncode == 0, made
    return Path(made.stdout.strip())


def make_deb(build, out):
    package = run_deb(build, out)
    subprocess.run(["dpkg-deb", "-x", package, out / "root"], check=True)
    for folder in (out.parent, out, out / "root"):
        folder.chmod(0o755)
    (out / "whole").touch()


def analyze(*words, **kw):
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze here (Debian package systemd)")
    return subprocess.run(["systemd-analyze", *map(str, words)], capture_output=True, text=True, check=False, **kw)


# --- the package ------------------------------------------------------------------------------------------------------

def test_the_package_is_whole(deb):
    package, root = deb
    listed = subprocess.run(["dpkg-deb", "-c", package], capture_output=True, text=True, check=True).stdout.splitlines()
    assert all(" root/root " in line for line in listed), listed
    names = {line.split()[5].removeprefix("./").rstrip("/"): line.split()[0] for line in listed}
    for name in ("usr/bin/cloche", "usr/bin/srt", *(f"usr/libexec/cloche/cloche-{p}" for p in ("front", "warden", "scribe", "webhook", "otlp", "gate", "egress", "vault"))):
        assert names[name][3] == "x" and "s" not in names[name], (name, names[name])
    for name in ("usr/lib/systemd/system/cloche.service", "usr/lib/systemd/system/cloche.socket", "usr/lib/systemd/user/cloche.service",
                 "usr/lib/systemd/user/cloche.socket", "usr/lib/sysusers.d/cloche.conf", "etc/cloche/serve.yaml",
                 "usr/share/man/man1/cloche-serve.1.gz", "usr/share/doc/cloche/copyright", "usr/share/doc/cloche/changelog.gz"):
        assert names[name].startswith("-rw-r--r--"), (name, names.get(name))
    assert not [n for n in names if n.startswith("usr/local")]
    field = lambda name: subprocess.run(["dpkg-deb", "-f", package, name], capture_output=True, text=True, check=True).stdout.strip()
    assert field("Package") == "cloche" and "libmicrohttpd" in field("Depends") and "libc6" in field("Depends")
    control = subprocess.run(["dpkg-deb", "--ctrl-tarfile", package], capture_output=True, check=True).stdout
    conffiles = subprocess.run(["tar", "-xO", "./conffiles"], input=control, capture_output=True, check=True).stdout
    assert conffiles == b"/etc/cloche/serve.yaml\n"
    sums = subprocess.run(["tar", "-xO", "./md5sums"], input=control, capture_output=True, check=True).stdout
    assert subprocess.run(["md5sum", "-c", "--quiet"], input=sums, cwd=root, capture_output=True, check=False).returncode == 0
    for script in ("postinst", "prerm", "postrm"):
        assert subprocess.run(["sh", "-n", REPO / "deploy" / "deb" / script], check=False).returncode == 0
    if shutil.which("lintian"):
        said = subprocess.run(["lintian", "--fail-on", "error", package], capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stdout


def test_cloche_runs_from_the_package(deb, cloche):
    _, root = deb
    packaged = type(cloche)(str(root / "usr" / "bin" / "cloche"), cloche.env, cloche.cwd, cloche.person, list(cloche.before))
    assert packaged("run", "--", "true").ok
    checked = packaged("config", "check", str(root / "etc" / "cloche" / "serve.yaml"))
    assert checked.ok, checked


def test_the_same_sources_make_the_same_package(deb, cloche_binary, tmp_path):
    assert run_deb(build_of(cloche_binary), tmp_path).read_bytes() == deb[0].read_bytes()


def test_installing_leaves_an_administrators_configuration_alone(cloche_binary, tmp_path):
    build = build_of(cloche_binary)

    def install():
        subprocess.run(["/usr/bin/meson", "install", "-C", build, "--no-rebuild", "--quiet"], check=True, capture_output=True,
                       env={**os.environ, "DESTDIR": str(tmp_path)})
    install()
    (found,) = tmp_path.rglob("etc/cloche/serve.yaml")
    assert found.read_bytes() == (REPO / "deploy" / "serve.yaml").read_bytes()
    found.write_text("max-sandboxes: 1\n")
    install()
    assert found.read_text() == "max-sandboxes: 1\n"


# --- the units --------------------------------------------------------------------------------------------------------

def settings(text):
    return dict(re.findall(r"^(\w+)=(.*)$", text, flags=re.M))


def test_systemd_takes_the_units(deb, tmp_path):
    _, root = deb
    for kind, words in (("system", []), ("user", ["--user"])):
        folder = tmp_path / kind
        folder.mkdir()
        for name in ("cloche.service", "cloche.socket"):
            text = (root / "usr" / "lib" / "systemd" / kind / name).read_text()
            # its programs are not at their place on this machine
            (folder / name).write_text(text.replace("/usr/bin/cloche", str(root / "usr" / "bin" / "cloche")))
        said = analyze("verify", "--man=no", *words, folder / "cloche.service", folder / "cloche.socket",
                       env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)})
        if "Failed to initialize manager" in said.stderr:
            pytest.skip("systemd-analyze verify needs more than there is here: " + said.stderr.strip())
        ours = [line for line in (said.stdout + said.stderr).splitlines() if "cloche" in line]
        assert not ours, (kind, said)


def test_what_the_service_leaves_open(deb):
    _, root = deb
    service = root / "usr" / "lib" / "systemd" / "system" / "cloche.service"
    said = analyze("security", "--offline=yes", "--no-pager", f"--threshold={int(EXPOSURE_MAX * 10)}", service)
    exposure = re.search(r"Overall exposure level for cloche.service: ([\d.]+)", said.stdout)
    assert exposure and float(exposure[1]) <= EXPOSURE_MAX and said.returncode == 0, said.stdout[-300:]
    assert settings(service.read_text())["User"] == "cloche"


# As systemd.exec(5) describes them, for a process of another user; $WORK is a folder of its own, outside of what is hidden.
HARDENED = r"""
set -e
mount --make-rprivate /
mount --rbind / /mnt            # a root of our own, as systemd makes one
cd /mnt
pivot_root . .
umount -l .
cd /
mount -t tmpfs -o mode=755 none /mnt
mkdir -m 700 /mnt/var
chown 65534:65534 /mnt/var
cp -r "$1" /mnt/prefix
chmod -R a+rX /mnt/prefix
mkdir /mnt/dev
mount -t tmpfs -o nosuid,mode=755 none /mnt/dev
cd /mnt/dev
mknod -m 666 null c 1 3; mknod -m 666 zero c 1 5; mknod -m 666 full c 1 7; mknod -m 666 random c 1 8
mknod -m 666 urandom c 1 9; mknod -m 666 tty c 5 0
mkdir pts shm
mount --bind /dev/pts pts
mount --bind /dev/shm shm
ln -s /proc/self/fd fd
ln -s pts/ptmx ptmx
mount -o remount,ro,nosuid,noexec /mnt/dev                       # PrivateDevices=
cd /
mount --move /mnt/dev /dev
for hidden in /root /home; do mount -t tmpfs -o mode=000 none $hidden; done         # ProtectHome=
for own in /tmp /var/tmp; do mount -t tmpfs -o mode=1777 none $own; done            # PrivateTmp=
for hidden in /usr/lib/modules; do [ ! -d $hidden ] || mount -t tmpfs -o mode=000 none $hidden; done
mount -o remount,bind,ro /                                                          # ProtectSystem=strict
shift
exec setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --bounding-set -all --inh-caps -all \
    env -i PATH=/usr/bin:/bin HOME=/mnt/var XDG_STATE_HOME=/mnt/var "$@"
"""
DAEMON = r"""
set -e
c=/mnt/prefix/bin/cloche
$c serve --max-sandboxes 4 2>/mnt/var/log &
s=/mnt/var/cloche/serve/api.sock
until grep -q 'serving on' /mnt/var/log; do kill -0 $! || { cat /mnt/var/log; exit 1; }; sleep 0.05; done
ask() { curl -sS --unix-socket $s "http://localhost$1" ${2:+-d "$2"}; echo; }
ask /v1/sandboxes '{"name": "one"}'
ask /v1/sandboxes/one/exec '{"command": "hostname; id -u; echo x > /tmp/f && cat /tmp/f; python3 -c \"print(6 * 7)\""}'
kill $!
wait $!
"""


def denied_by_the_service():
    """The system calls that its SystemCallFilter takes, as systemd names them."""
    text = settings((UNITS / "cloche.service.in").read_text())["SystemCallFilter"]
    assert text.startswith("~")
    names, todo = set(), text[1:].split()
    while todo:
        word = todo.pop()
        if word.startswith("@"):
            said = analyze("syscall-filter", "--no-pager", word)
            todo += [line.strip() for line in said.stdout.splitlines() if line.startswith("    ") and not line.strip().startswith("#")]
        else:
            names.add(word)
    return sorted(names)


def test_a_sandbox_can_be_made_under_all_that(deb, cloche_binary):
    """Not systemd itself, which this machine may not run: what it does for these settings, done by hand."""
    _, root = deb
    if not places.IS_ROOT:
        pytest.skip("needs root")
    denied = denied_by_the_service()
    deny = places.find_beside(cloche_binary.resolve(), "tests/lib/deny")
    if deny is None:
        pytest.skip("this build has no tests/lib/deny")
    known = [name for name in denied if subprocess.run([deny, f"{name}:EPERM", "--", "true"], capture_output=True, check=False).returncode == 0]
    assert {"reboot", "swapon", "init_module", "settimeofday"} <= set(known), known
    done = subprocess.run([deny, ",".join(f"{name}:EPERM" for name in known), "--", "unshare", "-m", "bash", "-c", HARDENED,
                           "hardened", str(root / "usr"), "sh", "-c", DAEMON],
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and r"x\n42\n" in done.stdout, done
