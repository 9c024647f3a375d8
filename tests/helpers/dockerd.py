"""A real dockerd for tests: its own folders, socket and cgroup parent, no bridge and no packet filter, so that nothing of the
machine's is touched; and an image made of the host's own programs, since no registry can be reached."""
import contextlib
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from io import BytesIO
from pathlib import Path

import pytest

from helpers import places

RUNTIME = [Path("/run/docker"), Path("/run/containerd")]      # it makes them whatever it is told
DOCKERD, DOCKER = "/usr/sbin/dockerd", "/usr/bin/docker"
IMAGE = "cloche-test-base:1"
START_S = 60
TOOLS = "bash sh cat ls id ln mkdir rm touch chmod chown stat cp mv head grep sed sleep env true timeout".split()
FOLDERS = "usr usr/bin usr/sbin usr/lib usr/local usr/local/bin etc home srv mnt media run var var/lib boot proc sys dev".split()
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
SHADOW = "root:SHADOW-OF-THE-CONTAINER:1::::::\n"
TEXTS = {"etc/passwd": "root:x:0:0:root:/root:/bin/bash\ndev:x:1000:1000::/home/dev:/bin/bash\n",
         "etc/group": "root:x:0:\ndev:x:1000:\n", "etc/shadow": SHADOW, "etc/nsswitch.conf": "hosts: files dns\n"}
ALL_CAPS = """CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE
    NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT
    SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG
    WAKE_ALARM BLOCK_SUSPEND AUDIT_READ""".split()


def held_caps():
    """What this machine's root has of them: a container cannot be given more (--privileged asks for all)."""
    mask = int(next(line for line in Path("/proc/self/status").read_text("ascii").splitlines()
                    if line.startswith("CapEff")).split()[1], 16)
    return [name for bit, name in enumerate(ALL_CAPS) if mask >> bit & 1]


def libraries(programs):
    found = set()
    for program in programs:
        listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
        for line in listed.splitlines():
            words = line.split()
            found |= {word for word in words[:1] + words[2:3] if word.startswith("/")}
    return found


def add_file(tar, path, seen):
    """With the links on the way, at its place below /usr."""
    path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    if path in seen or not path.startswith("/usr/"):
        return
    seen.add(path)
    tar.add(path, arcname=path[1:], recursive=False)
    if os.path.islink(path):
        add_file(tar, os.path.join(os.path.dirname(path), os.readlink(path)), seen)


def write_image(out, programs):
    """A tree to run the shell and @programs' libraries in."""
    def entry(tar, name, kind, mode, text=b"", link=""):
        made = tarfile.TarInfo(name)
        made.type, made.mode, made.size, made.linkname = kind, mode, len(text), link
        tar.addfile(made, BytesIO(text))
    with tarfile.open(out, "w") as tar:
        for name in FOLDERS:
            entry(tar, name, tarfile.DIRTYPE, 0o755)
        entry(tar, "root", tarfile.DIRTYPE, 0o700)
        entry(tar, "tmp", tarfile.DIRTYPE, 0o1777)
        for name, target in LINKS.items():
            entry(tar, name, tarfile.SYMTYPE, 0o777, link=target)
        for name, text in TEXTS.items():
            entry(tar, name, tarfile.REGTYPE, 0o600 if "shadow" in name else 0o644, text.encode())
        seen = set()
        tools = [f"/usr/bin/{tool}" for tool in TOOLS]
        for path in [*tools, *sorted(libraries([*tools, *programs]))]:
            add_file(tar, path, seen)


def unmount_below(root):
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text("utf-8").splitlines()]
    for place in sorted((m for m in mounts if m.startswith(f"{root}/")), reverse=True):
        subprocess.run(["umount", "-l", place], check=False)


def remove_cgroups(parent):
    # not Path.glob(): it stumbles over a neighbour's cgroup that goes meanwhile
    for above, names, _files in os.walk("/sys/fs/cgroup", topdown=False):
        for name in names:
            if f"/{parent}" in f"{above}/{name}":
                with contextlib.suppress(OSError):
                    os.rmdir(f"{above}/{name}")


class Dockerd:
    """Started by hand; .run() is `docker run --rm` of the image."""

    def __init__(self):
        self.root = Path(tempfile.mkdtemp(prefix="ct-dockerd-", dir="/tmp"))
        self.root.chmod(0o755)
        self.ours = [folder for folder in RUNTIME if not folder.exists()]
        self.parent = self.root.name
        self.host = f"unix://{self.root}/socket"
        self.log = (self.root / "log").open("wb")
        self.process = subprocess.Popen(
            [DOCKERD, "--data-root", self.root / "data", "--exec-root", self.root / "run", "-H", self.host,
             "--pidfile", self.root / "pid", "--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false",
             "--ip-masq=false", "--cgroup-parent", self.parent, "--shutdown-timeout", "5"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True)

    def why_not(self):
        """None as soon as it answers, or the last that it said."""
        end = time.monotonic() + START_S
        while time.monotonic() < end and self.process.poll() is None:
            if subprocess.run([DOCKER, "-H", self.host, "version"], capture_output=True, check=False).returncode == 0:
                return None
            time.sleep(0.05)
        return (self.root / "log").read_text("utf-8", "replace").strip()[-300:]

    def docker(self, *words, **kw):
        return subprocess.run([DOCKER, "-H", self.host, *map(str, words)], capture_output=True, text=True, check=False,
                              timeout=240, stdin=subprocess.DEVNULL, **kw)

    def make_image(self, programs):
        write_image(self.root / "image.tar", programs)
        made = self.docker("import", self.root / "image.tar", IMAGE)
        (self.root / "image.tar").unlink()
        assert made.returncode == 0, made

    def make_ours(self, out, target, name):
        """@name: deploy/image/Dockerfile's @target as it stands, on the test's base, of what would be installed, laid out in @out."""
        for folder, found in (("usr/bin", [self.programs / "cli/cloche"]), ("usr/libexec/cloche", self.programs.glob("*/cloche-*"))):
            (out / folder).mkdir(parents=True)
            for program in found:
                if program.is_file():
                    shutil.copy(program, out / folder)
        made = self.docker("build", "-q", "--network", "none", "--build-arg", f"BASE={IMAGE}", "--build-arg", "PACKAGES=", "--target", target,
                           "-f", places.REPO / "deploy/image/Dockerfile", "-t", name, out,
                           env={"PATH": "/usr/bin:/bin", "HOME": str(out.parent), "DOCKER_BUILDKIT": "0"})
        assert made.returncode == 0, made
        return name

    def run(self, words, command, image=IMAGE):
        return self.docker("run", "--rm", "--network", "none", *words, image, *command)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.log.close()
        unmount_below(self.root)
        remove_cgroups(self.parent)
        for folder in [*self.ours, self.root]:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def started():
    """One that answers; the test is skipped where there can be none."""
    if not places.IS_ROOT:
        pytest.skip("needs root on the host")
    if not all(map(shutil.which, (DOCKERD, DOCKER))):
        pytest.skip("no dockerd: apt-get install docker.io (tools/deps check)")
    made = Dockerd()
    try:
        why = made.why_not()
        if why is not None:
            pytest.skip(f"dockerd does not start here: {why}")
        yield made
    finally:
        made.end()
