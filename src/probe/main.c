/* probe/main.c: the command line of cloche-probe (see probe.h) */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "probe/probe.h"

static int
mistake(const char *what, const char *value)
{
    fprintf(stderr, "cloche-probe: %s: %s\n", what, value);
    return -1;
}

static int
number(const char *text, uint64_t max, uint64_t *out)
{
    return str_parse_u64(str_of(text), max, out) ? 0 : mistake("not a number", text);
}

/* "DEV:INO" */
static int
host_root(struct probe *p, const char *text)
{
    const char *colon = strchr(text, ':');

    if (colon == NULL || !str_parse_u64((struct str){ text, (size_t)(colon - text) }, UINT64_MAX, &p->host_dev) ||
        !str_parse_u64(str_of(colon + 1), UINT64_MAX, &p->host_ino))
        return mistake("not DEVICE:INODE", text);
    return 0;
}

static int
path_option(const char **list, size_t *n, const char *value)
{
    if (*n == PROBE_PATHS_MAX)
        return mistake("too many paths", value);
    list[(*n)++] = value;
    return 0;
}

static int
option(struct probe *p, const char *name, const char *value)
{
    uint64_t v;

    if (strcmp(name, "--host-pid") == 0 || strcmp(name, "--tcp-port") == 0) {
        if (number(value, name[2] == 't' ? 65535 : 1 << 30, &v) < 0)
            return -1;
        if (name[2] == 't')
            p->tcp_port = (uint16_t)v;
        else
            p->host_pid = (pid_t)v;
        return 0;
    }
    if (strcmp(name, "--host-name") == 0)
        p->host_name = value;
    else if (strcmp(name, "--unix-path") == 0)
        p->unix_path = value;
    else if (strcmp(name, "--unix-abstract") == 0)
        p->unix_abstract = value;
    else if (strcmp(name, "--scratch") == 0)
        p->scratch = value;
    else if (strcmp(name, "--host-file") == 0)
        p->host_file = value;
    else if (strcmp(name, "--exe-path") == 0)
        p->exe_path = value;
    else if (strcmp(name, "--host-root") == 0)
        return host_root(p, value);
    else if (strcmp(name, "--read") == 0)
        return path_option(p->read_paths, &p->n_read, value);
    else if (strcmp(name, "--write") == 0)
        return path_option(p->write_paths, &p->n_write, value);
    else
        return mistake("unknown option", name);
    return 0;
}

/* Our own program may be descriptor 0 (a memory file that was executed from there): put it away, so that what is
 * listed later is what a command would have. */
static void
own_image_away(void)
{
    struct stat own, in;
    int null;

    if (stat("/proc/self/exe", &own) < 0 || fstat(0, &in) < 0 || own.st_dev != in.st_dev || own.st_ino != in.st_ino)
        return;
    null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null > 0) {
        dup2(null, 0);
        close(null);
    }
}

int
main(int argc, char **argv)
{
    static struct probe p;

    if (argc < 2)
        return mistake("usage", "cloche-probe posture|activity|attacks [options]") < 0 ? 2 : 0;
    if (strcmp(argv[1], "nothing") == 0)
        return 0;
    p.guest_pid = getppid();
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--bare") == 0) {
            p.bare = true;
            continue;
        }
        if (strcmp(argv[i], "--no-walk") == 0) {
            p.no_walk = true;
            continue;
        }
        if (i + 1 == argc)
            return mistake("needs a value", argv[i]) < 0 ? 2 : 0;
        if (option(&p, argv[i], argv[i + 1]) < 0)
            return 2;
        i++;
    }
    own_image_away();
    if (strcmp(argv[1], "posture") == 0)
        return posture_write(&p, STDOUT_FILENO) < 0 ? 1 : 0;
    if (strcmp(argv[1], "activity") == 0)
        return activity_run(&p, STDOUT_FILENO) < 0 ? 1 : 0;
    if (strcmp(argv[1], "attacks") == 0)
        return attacks_write(&p, STDOUT_FILENO) < 0 ? 1 : 0;
    mistake("unknown word", argv[1]);
    return 2;
}
