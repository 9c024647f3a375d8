/* keeper/keeper_print.c: what a sandbox would be, said as digests before it is made
 *
 * Two sandboxes are taken for the same only where all of these are: what it is held to, the settings below that, the
 * system that it sees, the machine, and the programs that it is made by. Whoever compares them sees no value.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/sha256.h"
#include "engine/engine.h"
#include "keeper/keeper.h"
#include "policy/describe.h"
#include "policy/policy.h"
#include "program/helper.h"

/* With its length, so that no two lists of parts are the same. */
static void
keeper_print_add(struct sha256 *h, const void *p, size_t n)
{
    uint64_t length = n;

    sha256_add(h, &length, sizeof(length));
    sha256_add(h, p, n);
}

/* A file's contents; one that is not there is that. 0 or -1 with @err. */
static int
add_file(struct sha256 *h, const char *path, struct err *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    static uint8_t room[64 * 1024];
    struct sha256 file;
    uint8_t digest[SHA256_SIZE];
    ssize_t n;

    if (fd < 0 && errno != ENOENT)
        return err_sys(err, errno, "serve.print", "%s", path);
    sha256_init(&file);
    while (fd >= 0 && (n = read(fd, room, sizeof(room))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, errno, "serve.print", "%s", path);
        sha256_add(&file, room, (size_t)n);
    }
    sha256_end(&file, digest);
    keeper_print_add(h, digest, fd >= 0 ? sizeof(digest) : 0);
    return 0;
}

static void
keeper_print_put(struct buf *out, const char *name, struct sha256 *h)
{
    uint8_t digest[SHA256_SIZE];
    char text[SHA256_TEXT + 1];

    sha256_end(h, digest);
    sha256_text(digest, text);
    buf_printf(out, "%s=%s\n", name, text);
}

static int
put_profile(struct buf *out, const char *name, const struct policy *p, struct err *err)
{
    json_t *profile = keeper_profile(p);
    cleanup_free char *text = profile != NULL ? json_dumps(profile, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    struct sha256 h;

    json_decref(profile);
    if (text == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    sha256_init(&h);
    keeper_print_add(&h, text, strlen(text));
    policy_add_hidden(p, &h);           /* what the files that it names hold now, too */
    keeper_print_put(out, name, &h);
    return 0;
}

/* Without an image the host's own system is that: its release is the tag. An image's name has its id behind it
 * (run/image_pin.h). */
static int
put_image(struct buf *out, const struct policy *p, struct err *err)
{
    struct sha256 h;

    sha256_init(&h);
    if (p->image.p != NULL)
        keeper_print_add(&h, p->image.p, strlen(p->image.p));
    else if (add_file(&h, "/etc/os-release", err) < 0)
        return -1;
    keeper_print_put(out, "image", &h);
    return 0;
}

static int
put_host(struct buf *out, struct err *err)
{
    struct utsname host;
    struct sha256 h;

    sha256_init(&h);
    if (uname(&host) < 0)
        return err_sys(err, errno, "serve.print", "uname");
    keeper_print_add(&h, host.nodename, strlen(host.nodename));
    keeper_print_add(&h, host.release, strlen(host.release));
    keeper_print_add(&h, host.version, strlen(host.version));
    keeper_print_add(&h, host.machine, strlen(host.machine));
    if (add_file(&h, "/etc/machine-id", err) < 0)
        return -1;
    keeper_print_put(out, "host", &h);
    return 0;
}

/* An OCI runtime, a machine's programs and kernel, or a daemon's version. */
static int
add_makers(struct sha256 *h, const struct policy *p, struct err *err)
{
    static struct engine_makers makers;     /* large */

    if (engine_makers(p, &makers, err) < 0)
        return -1;
    for (size_t i = 0; i < ENGINE_MAKERS; i++)
        if (makers.programs[i][0] != '\0' && add_file(h, makers.programs[i], err) < 0)
            return -1;
    if (makers.daemon[0] != '\0')
        keeper_print_add(h, makers.daemon, strlen(makers.daemon));
    return 0;
}

/* cloche itself, which has the guest in it, and what it would start. */
static int
put_runtime(struct buf *out, const struct policy *p, struct err *err)
{
    static const struct { const char *folder, *name; } programs[] = {
        { "egress", "cloche-egress" }, { "vault", "cloche-vault" },
    };
    char path[PATH_MAX];
    struct sha256 h;

    sha256_init(&h);
    keeper_print_add(&h, CLOCHE_VERSION, strlen(CLOCHE_VERSION));
    if (add_file(&h, "/proc/self/exe", err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(programs); i++)
        if (helper_find(programs[i].folder, programs[i].name, path, err) < 0 || add_file(&h, path, err) < 0)
            return -1;
    if (add_makers(&h, p, err) < 0)
        return -1;
    keeper_print_put(out, "runtime", &h);
    return 0;
}

int
keeper_print_policy(const struct policy *p, struct buf *out, struct err *err)
{
    return put_profile(out, "profile", p, err);
}

int
keeper_print(const struct keeper_live *k, const struct policy *p, struct buf *out, struct err *err)
{
    cleanup_policy struct policy template = { .srt = false };

    buf_put_u8(out, '\n');
    if (put_profile(out, "profile", p, err) < 0 || keeper_policy_read(k, &template, "", 0, err) < 0 ||
        put_profile(out, "template", &template, err) < 0 || put_image(out, p, err) < 0 || put_host(out, err) < 0 ||
        put_runtime(out, p, err) < 0)
        return -1;
    return buf_nul(out) == 0 ? 0 : err_set(err, ERR_SYSTEM, "memory", "out of memory");
}
