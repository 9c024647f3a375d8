/* probe/main.c: the command line of cloche-probe (see probe.h) */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
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
by_place(const void *a, const void *b)
{
    const struct needle *x = a, *y = b;

    return x->dev != y->dev ? (x->dev < y->dev ? -1 : 1) : x->ino != y->ino ? (x->ino < y->ino ? -1 : 1) : 0;
}

/* "DEV:INO,DEV:INO" */
static int
needles(struct probe *p, const char *text)
{
    while (*text != '\0') {
        struct needle *n = &p->needles[p->n_needles];
        size_t dev_n = strcspn(text, ":"), ino_n;
        const char *ino = text + dev_n + (text[dev_n] != '\0');

        ino_n = strcspn(ino, ",");
        if (p->n_needles == PROBE_NEEDLES_MAX ||
            !str_parse_u64((struct str){ text, dev_n }, UINT64_MAX, &n->dev) ||
            !str_parse_u64((struct str){ ino, ino_n }, UINT64_MAX, &n->ino))
            return mistake("not DEVICE:INODE,...", text);
        p->n_needles++;
        text = ino + ino_n + (ino[ino_n] != '\0');
    }
    qsort(p->needles, p->n_needles, sizeof(p->needles[0]), by_place);
    return 0;
}

/* Options of the trials. 1: it was one of them. */
static int
trial_option(struct probe *p, const char *name, const char *value)
{
    const struct { const char *name; const char **at; } texts[] = {
        { "--mode", &p->mode },     { "--project", &p->project }, { "--home", &p->home },
        { "--hidden", &p->hidden }, { "--token", &p->token },     { "--allowed", &p->allowed },
        { "--leave", &p->leave },   { "--own-address", &p->own_address },
        { "--opened", &p->opened }, { "--denied", &p->denied },
    };
    const struct { const char *name; uint64_t *at; } numbers[] = {
        { "--limit-memory", &p->limit_memory }, { "--limit-pids", &p->limit_pids },
        { "--limit-disk", &p->limit_disk },     { "--limit-nofile", &p->limit_nofile },
        { "--limit-output", &p->limit_output }, { "--walk-s", &p->walk_s },
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (strcmp(name, texts[i].name) == 0)
            return *texts[i].at = value, 1;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        if (strcmp(name, numbers[i].name) == 0)
            return number(value, UINT64_MAX, numbers[i].at) < 0 ? -1 : 1;
    if (strcmp(name, "--needles") == 0)
        return needles(p, value) < 0 ? -1 : 1;
    return 0;
}

static int
option(struct probe *p, const char *name, const char *value)
{
    int trial = trial_option(p, name, value);
    uint64_t v;

    if (trial != 0)
        return trial < 0 ? -1 : 0;
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

static int
act(const struct probe *p, const char *word)
{
    static const struct { const char *word; enum trial_stage stage; } stages[] = {
        { "attacks", STAGE_ATTACKS }, { "project", STAGE_PROJECT }, { "limits", STAGE_LIMITS },
        { "network", STAGE_NETWORK }, { "copy", STAGE_COPY },
    };
    static const struct { const char *word; int (*fn)(const struct probe *p); } ends[] = {
        { "memory", trial_memory }, { "memory-shared", trial_memory_shared },
        { "memory-sockets", trial_memory_sockets }, { "memory-datagrams", trial_memory_datagrams },
        { "time", trial_time }, { "output", trial_output },
    };

    if (strcmp(word, "here") == 0)
        return printf("{}\n") > 0 ? 0 : 1;
    if (strcmp(word, "posture") == 0)
        return posture_write(p, STDOUT_FILENO) < 0 ? 1 : 0;
    if (strcmp(word, "activity") == 0)
        return activity_run(p, STDOUT_FILENO) < 0 ? 1 : 0;
    for (size_t i = 0; i < ARRAY_LEN(stages); i++)
        if (strcmp(word, stages[i].word) == 0)
            return attacks_write(p, stages[i].stage, STDOUT_FILENO) < 0 ? 1 : 0;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (strcmp(word, ends[i].word) == 0)
            return ends[i].fn(p);
    mistake("unknown word", word);
    return 2;
}

int
main(int argc, char **argv)
{
    static struct probe p;

    if (argc < 2)
        return mistake("usage", "cloche-probe posture|activity|attacks|TRIAL [options]") < 0 ? 2 : 0;
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
        if (strcmp(argv[i], "--private") == 0) {
            p.own_root = true;
            continue;
        }
        if (i + 1 == argc)
            return mistake("needs a value", argv[i]) < 0 ? 2 : 0;
        if (option(&p, argv[i], argv[i + 1]) < 0)
            return 2;
        i++;
    }
    own_image_away();
    return act(&p, argv[1]);
}
