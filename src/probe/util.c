/* probe/util.c: see probe.h */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "probe/probe.h"

ssize_t
read_small(const char *path, char *out, size_t n)
{
    cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    size_t at = 0;

    out[0] = '\0';
    if (fd < 0)
        return -1;
    while (at < n - 1) {
        ssize_t got = read(fd, out + at, n - 1 - at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        at += (size_t)got;
    }
    out[at] = '\0';
    return (ssize_t)at;
}

bool
field_of(const char *text, const char *name, char *out, size_t n)
{
    size_t name_n = strlen(name), len;
    const char *at = text;

    while (at != NULL && (strncmp(at, name, name_n) != 0 || at[name_n] != ':')) {
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    if (at == NULL)
        return false;
    at += name_n + 1;
    at += strspn(at, " \t");
    len = strcspn(at, "\n");
    if (len >= n)
        len = n - 1;
    memcpy(out, at, len);
    out[len] = '\0';
    return true;
}

bool
all_digits(const char *s)
{
    return *s != '\0' && s[strspn(s, "0123456789")] == '\0';
}

void
ignore_ends(void)
{
    const struct sigaction ignore = { .sa_handler = SIG_IGN };

    sigaction(SIGTERM, &ignore, NULL);
    sigaction(SIGHUP, &ignore, NULL);
}

void
scratch_dir(const char *first, char *out, size_t n)
{
    const char *places[] = { first, getenv("TMPDIR"), "/tmp", "/dev/shm", getenv("HOME"), "." };

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (i > 0 && first != NULL)
            break;      /* told where: elsewhere nobody would tidy up */
        if (places[i] == NULL || places[i][0] == '\0')
            continue;
        if ((size_t)snprintf(out, n, "%s/cloche-probe-XXXXXX", places[i]) < n && mkdtemp(out) != NULL)
            return;
    }
    out[0] = '\0';
}
