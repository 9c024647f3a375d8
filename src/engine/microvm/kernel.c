/* engine/microvm/kernel.c: what of the host a machine is made of: kernel, modules, QEMU, virtiofsd, perhaps KVM */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "engine/microvm/microvm.h"

#define IMAGE       "vmlinuz-"
#define CPUINFO_MAX (4 * 1024 * 1024)
#define KVM_API     12

/* In the order in which they are loaded. What a kernel has built in has no file. */
static const char *const modules[] = {
    "drivers/virtio/virtio_ring", "drivers/virtio/virtio", "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci_modern_dev", "drivers/virtio/virtio_pci", "drivers/char/virtio_console",
    "fs/fuse/fuse", "fs/fuse/virtiofs",
};

/* For a Docker Engine: what images are laid over each other with, bridges, and what iptables asks for (nft's or the
 * older ones). The machine's kernel cannot ask for one that is missing: there is no modprobe where it looks. */
static const char *const docker_modules[] = {
    "lib/libcrc32c", "fs/overlayfs/overlay", "net/llc/llc", "net/802/stp", "net/bridge/bridge",
    "net/bridge/br_netfilter", "drivers/net/veth", "net/netfilter/nfnetlink", "net/ipv4/netfilter/nf_defrag_ipv4",
    "net/ipv6/netfilter/nf_defrag_ipv6", "net/netfilter/nf_conntrack", "net/netfilter/nf_nat",
    "net/netfilter/x_tables", "net/netfilter/nf_tables", "net/netfilter/nft_compat", "net/netfilter/nft_chain_nat",
    "net/ipv4/netfilter/ip_tables", "net/ipv4/netfilter/iptable_filter", "net/ipv4/netfilter/iptable_nat",
    "net/netfilter/xt_tcpudp", "net/netfilter/xt_conntrack", "net/netfilter/xt_addrtype", "net/netfilter/xt_MASQUERADE",
    "net/netfilter/xt_nat", "net/netfilter/xt_REDIRECT", "net/netfilter/xt_comment", "net/netfilter/xt_mark",
    "net/netfilter/xt_multiport",
};
_Static_assert(ARRAY_LEN(modules) + ARRAY_LEN(docker_modules) <= MICROVM_MODULES, "all of them have a place");

/* Debian 12 has QEMU's own; later releases the one that is a program of its own. */
static const char *const servers[] = { "/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd" };

static const char *
kernel_root(void)
{
    const char *said = getenv("CLOCHE_KERNEL_ROOT");

    return said != NULL && said[0] == '/' ? said : "";
}

static void
find_modules(const char *root, const char *const *names, size_t n, struct microvm_kernel *k)
{
    static const char *const forms[] = { "", ".xz", ".zst", ".gz" };
    char version[MICROVM_VERSION];

    snprintf(version, sizeof(version), "%s", k->version);
    for (size_t i = 0; i < n; i++)
        for (size_t f = 0; f < ARRAY_LEN(forms); f++) {
            char *path = k->modules[k->n_modules];
            if (snprintf(path, PATH_MAX, "%s/lib/modules/%s/kernel/%s.ko%s", root, version, names[i], forms[f]) <
                    PATH_MAX && holder_trusts(NULL, path)) {
                k->n_modules++;
                break;
            }
        }
}

/* A kernel for clouds before others, then the newer one. */
static bool
is_better(const char *version, const char *than)
{
    bool cloud = strstr(version, "cloud") != NULL;

    if (than[0] == '\0')
        return true;
    return cloud != (strstr(than, "cloud") != NULL) ? cloud : strverscmp(version, than) > 0;
}

int
microvm_kernel_find(struct microvm_kernel *out, bool docker, struct err *err)
{
    const char *root = kernel_root();
    char path[PATH_MAX];
    cleanup_dir DIR *dir = NULL;

    *out = (struct microvm_kernel){ .n_modules = 0 };
    snprintf(path, sizeof(path), "%s/boot", root);
    dir = opendir(path);
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        const char *version = e->d_name + sizeof(IMAGE) - 1;
        if (strncmp(e->d_name, IMAGE, sizeof(IMAGE) - 1) != 0 || strlen(version) >= sizeof(out->version) ||
            !is_better(version, out->version))
            continue;
        if (snprintf(path, sizeof(path), "%s/lib/modules/%s/kernel", root, version) >= PATH_MAX ||
            access(path, F_OK) < 0 ||
            snprintf(path, sizeof(path), "%s/boot/%s", root, e->d_name) >= PATH_MAX || !holder_trusts(NULL, path))
            continue;
        snprintf(out->version, sizeof(out->version), "%s", version);
        snprintf(out->image, sizeof(out->image), "%s", path);
    }
    if (out->version[0] == '\0') {
        err_set(err, ERR_UNSUPPORTED, "microvm.kernel", "there is no kernel for a machine: no %s/boot/" IMAGE
                "VERSION with %s/lib/modules/VERSION, both root's own", root, root);
        return err_hint(err, "apt-get install linux-image-cloud-amd64 (it need not be booted); or name in "
                        "CLOCHE_KERNEL_ROOT a folder into which that package was unpacked");
    }
    find_modules(root, modules, ARRAY_LEN(modules), out);
    find_modules(root, docker_modules, docker ? ARRAY_LEN(docker_modules) : 0, out);
    return 0;
}

int
microvm_programs(const struct policy *p, char qemu[PATH_MAX], char virtiofsd[PATH_MAX], struct err *err)
{
    bool served = false;

    for (size_t i = 0; !served && i < ARRAY_LEN(servers); i++) {
        snprintf(virtiofsd, PATH_MAX, "%s", servers[i]);
        served = holder_trusts(p, virtiofsd);
    }
    /* it sees /usr, and nothing else of the host's tree */
    if (holder_find(p, MICROVM_QEMU, qemu) && strncmp(qemu, "/usr/", 5) == 0 && served)
        return 0;
    err_set(err, ERR_UNSUPPORTED, "microvm.programs", "%s is not installed, below /usr",
            served ? MICROVM_QEMU : "virtiofsd");
    return err_hint(err, "apt-get install qemu-system-x86 virtiofsd (in Debian 12 virtiofsd is in the former's own "
                    "packages); --engine native needs none");
}

bool
microvm_has_kvm(char why[128])
{
    cleanup_buf struct buf cpu = BUF_INIT(CPUINFO_MAX);
    cleanup_close int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);

    why[0] = '\0';
    if (kvm < 0) {
        snprintf(why, 128, "/dev/kvm: %s", strerror(errno));
        return false;
    }
    if (ioctl(kvm, KVM_GET_API_VERSION, 0UL) != KVM_API) {
        snprintf(why, 128, "/dev/kvm has another interface");
        return false;
    }
    if (io_read_file(AT_FDCWD, "/proc/cpuinfo", &cpu) == 0 && buf_nul(&cpu) == 0 &&
        (strstr((const char *)cpu.p, " vmx ") != NULL || strstr((const char *)cpu.p, " svm ") != NULL))
        return true;
    snprintf(why, 128, "no vmx and no svm in /proc/cpuinfo: /dev/kvm emulates, and kernels do not boot on it");
    return false;
}
