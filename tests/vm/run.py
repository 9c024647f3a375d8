#!/usr/bin/python3
"""`make check-vm`: the package and its units under a real systemd, on cgroup v2 and Debian's own kernel.

    tests/vm/run.py PACKAGE.deb FOLDER

Boots a Debian that mmdebstrap makes (once, kept in FOLDER) in QEMU, with the package installed and no network, and lets
its systemd start inside.py, which says what holds. The processor is emulated where /dev/kvm cannot be used: five minutes
then. Needs root (mmdebstrap, chroot), and Debian's packages.
"""
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = ("linux-image-cloud-amd64,systemd-sysv,udev,dbus,libpam-systemd,dbus-user-session,python3,curl,procps,"
           "iproute2,ca-certificates")
UNIT = """[Unit]
After=multi-user.target
[Service]
ExecStart=/usr/bin/python3 /root/inside.py
[Install]
WantedBy=graphical.target
"""
PATIENCE = 1500


def machine(folder):
    """The tree, without cloche; made once."""
    root = os.path.join(folder, "root")
    if not os.path.exists(root + ".made"):
        shutil.rmtree(root, ignore_errors=True)
        print("making a Debian (two minutes) ...", flush=True)
        # "important" has no recommended packages: little more than what boots
        subprocess.run(["mmdebstrap", "--quiet", "--variant=important", "--include=" + INCLUDE, "bookworm", root], check=True)
        open(root + ".made", "w", encoding="utf-8").close()
    return root


def install(root, package, folder):
    """A copy with the package in it. Its libraries come by the host's apt, while there is a network."""
    mine = os.path.join(folder, "installed")
    shutil.rmtree(mine, ignore_errors=True)
    subprocess.run(["cp", "-a", root, mine], check=True)
    shutil.copy(package, os.path.join(mine, "root", "cloche.deb"))
    shutil.copy("/etc/resolv.conf", os.path.join(mine, "etc", "resolv.conf"))
    for words in (["apt-get", "update", "-q"], ["apt-get", "install", "-y", "-q", "/root/cloche.deb"]):
        subprocess.run(["chroot", mine, *words], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    shutil.copy(os.path.join(HERE, "inside.py"), os.path.join(mine, "root", "inside.py"))
    units = os.path.join(mine, "etc", "systemd", "system")
    os.makedirs(os.path.join(units, "graphical.target.wants"), exist_ok=True)
    with open(os.path.join(units, "inside.service"), "w", encoding="utf-8") as f:
        f.write(UNIT)
    link = os.path.join(units, "graphical.target.wants", "inside.service")
    if not os.path.lexists(link):
        os.symlink("../inside.service", link)
    return mine


def boot(mine, folder):
    disk, out = os.path.join(folder, "disk.img"), os.path.join(folder, "out.log")
    for path in (disk, out):
        if os.path.exists(path):
            os.remove(path)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", mine, disk, "2500M"], check=True)
    kernel, = (n for n in os.listdir(os.path.join(mine, "boot")) if n.startswith("vmlinuz-"))
    initrd = kernel.replace("vmlinuz", "initrd.img")
    print("booting it ...", flush=True)
    # emulated: an ordinary kernel does not boot on every /dev/kvm
    subprocess.run(["qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "2048",
                    "-display", "none", "-monitor", "none", "-nic", "none", "-no-reboot",
                    "-serial", "file:" + os.path.join(folder, "console.log"), "-serial", "file:" + out,
                    "-kernel", os.path.join(mine, "boot", kernel), "-initrd", os.path.join(mine, "boot", initrd),
                    "-append", "root=/dev/vda rw console=ttyS0 quiet", "-drive", f"file={disk},if=virtio,format=raw,cache=unsafe"],
                   check=False, stdin=subprocess.DEVNULL, timeout=PATIENCE)
    with open(out, encoding="utf-8", errors="replace") as f:
        return f.read().replace("\r", "").splitlines()


def main():
    if len(sys.argv) != 3 or os.geteuid() != 0:
        sys.exit("tests/vm/run.py PACKAGE.deb FOLDER, as root")
    package, folder = sys.argv[1], os.path.abspath(sys.argv[2])
    os.makedirs(folder, exist_ok=True)
    lines = boot(install(machine(folder), package, folder), folder)
    print("\n".join(lines))
    good, bad = (sum(line.startswith(word) for line in lines) for word in ("ok ", "not ok "))
    if "# end" not in lines:
        bad += 1
        print("it did not come to its end; its console:", os.path.join(folder, "console.log"))
    print(f"{good} passed, {bad} failed, 0 skipped")
    sys.exit(0 if good > 0 and bad == 0 else 1)


if __name__ == "__main__":
    main()
