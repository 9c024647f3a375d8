"""The engine microvm: whether it can be tried here, and daemons whose sandboxes are machines.

A kernel is needed, as Debian's package has it, and QEMU with virtiofsd: `make check-vm` gets all of them and names the
kernel's folder in CLOCHE_TEST_KERNEL_ROOT. Where a package has put a kernel into /boot, `make check` has them too.
"""
import os
import shutil

from helpers import leaks
from helpers.shared import WATCHED, Lender

NAMED = os.environ.get("CLOCHE_TEST_KERNEL_ROOT")
ROOT = NAMED or "/"
# Where one is emulated and others want the processors too, what takes a second elsewhere takes a minute: no time limit of a
# test's own is about that. More for a slower host: CLOCHE_TEST_MACHINE_S.
PATIENCE = ("--timeout", os.environ.get("CLOCHE_TEST_MACHINE_S", "220") + "s")


def why_not():
    """Where a kernel is named, nothing may be missing."""
    if NAMED:
        return None
    boot = os.path.join(ROOT, "boot")
    if not os.path.isdir(boot) or not any(name.startswith("vmlinuz-") for name in os.listdir(boot)):
        return "there is no kernel for a machine: make check-vm"
    return None if shutil.which("qemu-system-x86_64") else "qemu-system-x86_64 is not installed: tools/deps vm"


class MachineLender(Lender):
    """With one sandbox, that all its tests have: emulated, a machine starts in seconds of a processor."""

    def start(self, world):
        before = leaks.Watch()
        super().start(world)
        self.box = self.daemon.create()
        world.watch = leaks.Watch()
        self.came = {what: getattr(world.watch, what) - getattr(before, what) for what in WATCHED}

    def clear(self):
        """And what tests have put into that one."""
        super().clear()
        said = self.box.exec("chmod -R u+rwx /workspace /tmp 2>/dev/null; find /workspace /tmp -mindepth 1 -delete")
        assert said["exit_code"] == 0, said

    def end(self):
        if self.daemon is not None:
            self.box.delete()
        super().end()
