/* engine/microvm/microvm.h: one sandbox of the microvm engine, for its files
 *
 * Theory: the tree of a sandbox is built by cloche from the same plan as the native engine's, outside of the machine;
 * virtiofsd gives it to the machine, and can reach nothing else. So what is read-only or closed stays so whatever the
 * machine's kernel does. QEMU runs that kernel, one of the distribution's packages, with an initramfs that is
 * cloche-machine (machine/) and the modules that it needs. There is no network device, no disk and no display: a
 * serial port is the guest's transport, a second one takes its status.
 *
 * A child of ours holds both (native/holder.h). Each has namespaces of its own, without a network, and a user that owns
 * nothing on the host:
 *
 *   cloche-vm      process 1 of a pid namespace; root, reads of both only what comes at the end
 *    ├ virtiofsd   a user namespace with the sandbox's user and one that owns nothing; its root is the tree
 *    ├ cloche-vm   with hosts by name: carries connections (machine/mux.h) into the sandbox's network, where every
 *    │             address leads to cloche-egress; another user, no capability, opens no file, a list of calls
 *    └ qemu        another user, no capability, its root is /usr and two files, Landlock, a list of system calls
 */
#ifndef CLOCHE_ENGINE_MICROVM_MICROVM_H
#define CLOCHE_ENGINE_MICROVM_MICROVM_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "engine/native/holder.h"
#include "engine/native/native.h"
#include "engine/ops.h"

#define MICROVM_QEMU     "qemu-system-x86_64"
#define MICROVM_VERSION  64
#define MICROVM_MODULES  64
#define MICROVM_ARGS     64

/* QEMU's root, in the child's work folder, and what lies in it. */
#define MICROVM_BOX      HOLDER_WORK "/vm"
#define MICROVM_KERNEL   "/kernel"
#define MICROVM_INITRD   "/initrd"

/* QEMU's descriptors. */
enum { MICROVM_FD_GUEST = 3, MICROVM_FD_END, MICROVM_FD_TREE, MICROVM_FD_NET, MICROVM_FDS };

struct microvm_kernel {
    char version[MICROVM_VERSION];
    char image[PATH_MAX];
    char modules[MICROVM_MODULES][PATH_MAX];    /* in the order in which they are loaded */
    size_t n_modules;
};

struct microvm {
    struct native native;       /* first */
    char qemu[PATH_MAX], virtiofsd[PATH_MAX];
    struct microvm_kernel kernel;
    bool kvm;                   /* the processor runs it; else it is emulated */
    uint32_t root_id;           /* the host's id of user 0 inside, as far as files are concerned */
    uint32_t qemu_id;           /* QEMU's */
    uint32_t net_id;            /* of who carries its connections */
    uint64_t memory_mib;        /* the machine's */
    unsigned cpus;
    uint64_t files;             /* that virtiofsd may have open: all that the machine's kernel remembers */
    uint64_t cpu_us;            /* when it was ended */
    struct buf initrd;
};

extern const struct engine engine_microvm;

static inline struct microvm *
microvm_of(struct sandbox *base)
{
    return (struct microvm *)base;
}

/* kernel.c: the newest kernel below "/", or what CLOCHE_KERNEL_ROOT names, with the modules that a machine needs; of
 * those for clouds the newest, where there is one; @docker: also those that a Docker Engine needs. 0, or -1 with
 * @err. */
int microvm_kernel_find(struct microvm_kernel *out, bool docker, struct err *err);
/* Whether the processor runs machines here; why not goes to @why (not empty then). */
bool microvm_has_kvm(char why[128]);
/* virtiofsd and QEMU, by name. */
int microvm_programs(const struct policy *p, char qemu[PATH_MAX], char virtiofsd[PATH_MAX], struct err *err);

/* initrd.c: the machine's initramfs, into sb->initrd. */
int microvm_initrd(struct microvm *sb, const struct policy *p, struct err *err);
/* One entry of a cpio archive ("newc"), and its end. Pure. */
void microvm_cpio(struct buf *out, const char *name, uint32_t mode, const void *data, size_t n);

/* command.c: what QEMU is started with, ended by NULL; texts go to @room. */
void microvm_qemu_argv(const struct microvm *sb, struct buf *room, const char *argv[MICROVM_ARGS]);

/* child.c */
_Noreturn void microvm_child(const struct native *native, const struct launch *l);

/* probe.c */
int microvm_probe(const char *runtime, struct engine_report *out, struct err *err);

#endif
