/* engine/microvm/initrd.c: the machine's initramfs: process 1, what it is told, and modules */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/io.h"
#include "base/str.h"
#include "engine/microvm/microvm.h"
#include "machine/config.h"
#include "machine/machine_image.h"

#define MODULE_MAX (16 * 1024 * 1024)

static void
pad(struct buf *out)
{
    while (out->n % 4 != 0 && buf_put_u8(out, 0) == 0)
        continue;
}

void
microvm_cpio(struct buf *out, const char *name, uint32_t mode, const void *data, size_t n)
{
    name += name[0] == '/';     /* of the root, which all of them are in */
    /* magic, inode, mode, uid, gid, links, time, size, device, device, its number, its number, length, checksum */
    buf_printf(out, "070701%08zX%08X%08X%08X%08X%08X%08zX%08X%08X%08X%08X%08zX%08X", out->n, mode, 0U, 0U, 1U, 0U, n,
               0U, 0U, 0U, 0U, strlen(name) + 1, 0U);
    buf_append(out, name, strlen(name) + 1);
    pad(out);
    buf_append(out, data, n);
    pad(out);
}

static void
config(const struct microvm *sb, const struct policy *p, struct buf *out)
{
    const struct native_plan *plan = &sb->native.plan;
    struct machine_config c = {
        .uid = plan->ids.inside_uid, .gid = plan->ids.inside_gid, .nofile = p->limits.nofile.v,
        .nproc = p->limits.pids.v > 0 ? p->limits.pids.v + 1 : 0,
        .inodes = sb->files / 4,
        .guest = HOLDER_GUEST, .filter = HOLDER_FILTER, .workdir = HOLDER_WORKDIR,
    };

    if (c.uid == 0)             /* root of the machine, with all that this is */
        c.filter[0] = '\0';
    c.net = plan->capture;
    c.docker = p->private_docker.v;
    for (size_t i = 0, n = 0; i < plan->n_ports; i++)
        n += (size_t)snprintf(c.ports + n, sizeof(c.ports) - n, "%u ", plan->ports[i]);
    snprintf(c.hostname, sizeof(c.hostname), "%s", plan->hostname);
    machine_config_put(&c, out);
}

static int
add_module(struct buf *out, const char *path, size_t i, struct err *err)
{
    cleanup_buf struct buf module = BUF_INIT(MODULE_MAX);
    bool packed = !str_ends(str_of(path), STR_LIT(".ko"));
    char name[32];

    if (io_read_file(AT_FDCWD, path, &module) < 0)
        return err_sys(err, errno, "microvm.kernel", "%s", path);
    snprintf(name, sizeof(name), MACHINE_MODULES "/%02zu%s", i, packed ? "z" : "");
    microvm_cpio(out, name, S_IFREG | 0444, module.p, module.n);
    return 0;
}

int
microvm_initrd(struct microvm *sb, const struct policy *p, struct err *err)
{
    static const char *const folders[] = { "/dev", "/proc", MACHINE_ROOT, MACHINE_MODULES };
    cleanup_buf struct buf text = BUF_INIT(65536);
    struct buf *out = &sb->initrd;

    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        microvm_cpio(out, folders[i], S_IFDIR | 0755, "", 0);
    microvm_cpio(out, MACHINE_EMPTY_D, S_IFDIR, "", 0);
    microvm_cpio(out, MACHINE_EMPTY, S_IFREG, "", 0);
    microvm_cpio(out, "init", S_IFREG | 0555, machine_image, machine_image_size);
    config(sb, p, &text);
    microvm_cpio(out, MACHINE_CONFIG, S_IFREG | 0400, text.p, text.n);
    for (size_t i = 0; i < sb->kernel.n_modules; i++)
        if (add_module(out, sb->kernel.modules[i], i, err) < 0)
            return -1;
    microvm_cpio(out, "TRAILER!!!", 0, "", 0);
    return buf_ok(&text) && buf_ok(out) ? 0 : err_set(err, ERR_SYSTEM, "memory", "out of memory");
}
