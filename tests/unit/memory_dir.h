/* tests/unit/memory_dir.h: a place for thousands of files, where what matters is how many there are and not what holds them
 *
 * A disk's file system takes ten times as long for them, and the other tests wait for it too.
 */
#ifndef CLOCHE_TESTS_UNIT_MEMORY_DIR_H
#define CLOCHE_TESTS_UNIT_MEMORY_DIR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <linux/magic.h>
#include <sys/statfs.h>

/* Room for all of these tests at once; a container's /dev/shm may have 64 MiB. */
#define MEMORY_DIR_BYTES (UINT64_C(512) << 20)
#define MEMORY_DIR_FILES (UINT64_C(200) * 1000)

/* A fresh directory named after @prefix, in memory if there is room, else in /tmp. Returns @path, or NULL with errno. */
static inline char *
memory_dir(char *path, size_t room, const char *prefix)
{
    struct statfs fs;
    bool fits = statfs("/dev/shm", &fs) == 0 && fs.f_type == TMPFS_MAGIC &&
                (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize >= MEMORY_DIR_BYTES && fs.f_ffree >= MEMORY_DIR_FILES;

    snprintf(path, room, "/dev/shm/%s-XXXXXX", prefix);
    if (fits && mkdtemp(path) != NULL)
        return path;
    snprintf(path, room, "/tmp/%s-XXXXXX", prefix);
    return mkdtemp(path);
}

#endif
