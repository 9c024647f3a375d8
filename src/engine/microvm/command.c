/* engine/microvm/command.c: what QEMU is started with
 *
 * The machine is a q35 with as little as it can have: PCI, a clock, a serial line for the kernel's last words. QEMU's
 * own `microvm` has less, but no clock that Debian's kernel can use without KVM (no PIT, no HPET; measured: it hangs at
 * "Unable to calibrate against PIT").
 */
#include "engine/microvm/microvm.h"
#include "machine/config.h"

/* A text of this machine in @room, where it stays. */
static const char *
text(struct buf *room, const char *before, uint64_t number, const char *after)
{
    size_t at = room->n;

    buf_printf(room, "%s%llu%s", before, (unsigned long long)number, after);
    buf_put_u8(room, 0);
    return (const char *)room->p + at;
}

void
microvm_qemu_argv(const struct microvm *sb, struct buf *room, const char *argv[MICROVM_ARGS])
{
    const char *fixed[] = {
        MICROVM_QEMU, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none",
        "-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
        "-machine", "q35,memory-backend=ram,sata=off,smbus=off,vmport=off,hpet=off,smm=off,usb=off",
        "-bios", "qboot.rom", "-kernel", MICROVM_KERNEL, "-initrd", MICROVM_INITRD,
        "-append", "console=ttyS0 quiet panic=-1 reboot=t no_timer_check i8042.noaux i8042.nokbd random.trust_cpu=on",
        "-serial", "stdio",
        "-device", "virtio-serial-pci,max_ports=4",
        "-chardev", "socket,id=guest,fd=3",
        "-device", "virtserialport,chardev=guest,nr=1",
        "-chardev", "socket,id=end,fd=4",
        "-device", "virtserialport,chardev=end,nr=2",
        "-chardev", "socket,id=tree,fd=5",
        "-device", ("vhost-user-fs-pci,chardev=tree,tag=" MACHINE_TAG),
    };
    size_t n = 0;

    (void)buf_reserve(room, 512);       /* so that they do not move */
    _Static_assert(MICROVM_FD_GUEST == 3 && MICROVM_FD_END == 4 && MICROVM_FD_TREE == 5 &&
                   MICROVM_FD_NET == 6, "as the texts have it");
    _Static_assert(MACHINE_PORT_GUEST == 1 && MACHINE_PORT_END == 2 && MACHINE_PORT_NET == 3, "likewise");
    _Static_assert(sizeof(fixed) / sizeof(fixed[0]) + 16 < MICROVM_ARGS, "room for the rest");
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        argv[n++] = fixed[i];
    if (sb->native.plan.capture) {
        argv[n++] = "-chardev";
        argv[n++] = "socket,id=net,fd=6";
        argv[n++] = "-device";
        argv[n++] = "virtserialport,chardev=net,nr=3";
    }
    argv[n++] = "-accel";
    argv[n++] = sb->kvm ? "kvm" : "tcg,thread=multi,tb-size=128";
    argv[n++] = "-cpu";
    argv[n++] = sb->kvm ? "host" : "max";
    argv[n++] = "-smp";
    argv[n++] = text(room, "", sb->cpus, "");
    argv[n++] = "-m";
    argv[n++] = text(room, "", sb->memory_mib, "M");
    argv[n++] = "-object";
    argv[n++] = text(room, "memory-backend-memfd,id=ram,share=on,size=", sb->memory_mib, "M");
    argv[n] = NULL;
}
