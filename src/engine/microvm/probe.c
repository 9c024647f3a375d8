/* engine/microvm/probe.c: what a machine promises here */
#include <stdio.h>

#include "engine/microvm/microvm.h"
#include "engine/native/built_on.h"

enum { VM_ROOT, VM_PROGRAMS, VM_KERNEL, VM_KVM, VM_LIGHT, VM_FEATURES };

static const struct feature_info info[VM_FEATURES] = {
    { "microvm-root", "root that can give a sandbox a user of its own", "namespaces", NEED_NONE, NEED_MUST, NEED_MUST },
    { "microvm-programs", "QEMU and virtiofsd", "root", NEED_NONE, NEED_MUST, NEED_MUST },
    { "microvm-kernel", "a kernel for the machine", "root", NEED_NONE, NEED_MUST, NEED_MUST },
    { "microvm-kvm", "KVM, so that the machine is not emulated", "root", NEED_NONE, NEED_WANT, NEED_WANT },
    { "microvm-light", "a light mode", "root", NEED_MUST, NEED_NONE, NEED_NONE },
};

static void
promises(bool kvm, struct engine_report *out)
{
    struct promise_state *kernel = &out->promises[PROMISE_KERNEL_BOUNDARY];

    built_on_not_kept(out, PROMISE_LANDLOCK, "none is set inside the machine: its tree, the user and the name guard "
                      "are the walls around files (QEMU itself has one)", "--engine native has it");
    *kernel = (struct promise_state){ .state = ENFORCED };
    snprintf(kernel->how, sizeof(kernel->how), "%s", kvm ? "QEMU with KVM" : "QEMU, emulated (TCG)");
    out->promises[PROMISE_MEMORY_LIMIT] = (struct promise_state){ .state = ENFORCED, .how = "the machine's memory" };
}

int
microvm_probe(const char *runtime, struct engine_report *out, struct err *err)
{
    static struct microvm_kernel kernel;    /* large */
    char qemu[PATH_MAX], virtiofsd[PATH_MAX], why_no_kvm[128];
    struct err why = ERR_INIT;
    bool kvm = microvm_has_kvm(why_no_kvm);

    (void)runtime;
    if (built_on_probe(info, VM_FEATURES, "a machine has no light mode", out, err) < 0)
        return -1;
    promises(kvm, out);
    if (microvm_programs(NULL, qemu, virtiofsd, &why) < 0) {
        built_on_missing(&out->features[VM_PROGRAMS], why.msg, why.hint);
    } else {
        snprintf(out->program, sizeof(out->program), "%.255s", qemu);
        snprintf(out->features[VM_PROGRAMS].detail, sizeof(out->features[0].detail), "%.60s, %.60s", qemu, virtiofsd);
    }
    if (microvm_kernel_find(&kernel, false, &why) < 0)
        built_on_missing(&out->features[VM_KERNEL], why.msg, why.hint);
    else
        snprintf(out->features[VM_KERNEL].detail, sizeof(out->features[0].detail), "%.120s", kernel.image);
    if (!kvm)
        built_on_missing(&out->features[VM_KVM], why_no_kvm, "a host with hardware virtualization, and /dev/kvm; "
                         "without it the machine is emulated: slower, and to QEMU's developers no security boundary");
    return 0;
}
