/* engine/oci/holes.c: runtimes' versions with holes that are known
 *
 * A release that only mends lies beside later ones, so a hole has a fixed version for each line of releases.
 * Distributions often mend an older version, whose number stays: then doctor says more than there is.
 */
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "engine/oci/oci.h"

#define NOT_IMAGE "not by cloche's use: the tree and its /dev are made by cloche"

static const struct hole {
    const char *runtime, *name;
    const char *fixed;          /* the first that has the fix, of each line of releases; the last for all later ones */
    const char *what, *reach;
} holes[] = {
    { "runc", "CVE-2023-25809", "1.1.5", "/sys/fs/cgroup can be written to", "not by cloche's use: /sys is not there" },
    { "runc", "CVE-2023-27561", "1.1.5", "a link as /proc or /sys undoes masks", NOT_IMAGE },
    { "runc", "CVE-2023-28642", "1.1.5", "a link as /proc undoes AppArmor's and SELinux' rules", NOT_IMAGE },
    { "runc", "CVE-2024-21626", "1.1.12", "a working directory behind a descriptor of runc's leads to the host",
      "not by cloche's use: the working directory is / until the guest runs" },
    { "runc", "CVE-2024-45310", "1.1.14 1.2.0", "a race of containers with a volume makes empty files on the host",
      "not by cloche's use: places for mounts are made by cloche" },
    { "runc", "CVE-2025-31133", "1.2.8 1.3.3 1.4.0", "a link as /dev/null undoes masks of /proc", NOT_IMAGE },
    { "runc", "CVE-2025-52565", "1.2.8 1.3.3 1.4.0", "a link below /dev/pts undoes masks by way of /dev/console",
      "not by cloche's use: there is no console" },
    { "runc", "CVE-2025-52881", "1.2.8 1.3.3 1.4.0", "writes to /proc are led elsewhere, by a race of containers",
      "not by cloche's use: sandboxes share no mounts that runc makes" },
    { "runc", "CVE-2026-41579", "1.3.6 1.4.3 1.5.0", "a link as /dev lets files called ptmx be removed on the host",
      NOT_IMAGE },
    { "crun", "CVE-2025-24965", "1.20", "with its krun handler a file is written outside of the tree",
      "not by cloche's use: that handler is not asked for" },
    { "crun", "CVE-2026-47766", "1.28", "a link as /dev lets files be made on the host", NOT_IMAGE },
};

/* "1.2.8-rc.1": three numbers, the last of which may be missing, as one. A release candidate is less than the release.
 * False: it is no such number. */
static bool
number(struct str s, uint64_t *line, uint64_t *all)
{
    uint64_t v[3] = { 0, 0, 0 };

    for (size_t i = 0; i < 3; i++) {
        size_t n = 0;

        while (n < s.n && s.p[n] >= '0' && s.p[n] <= '9')
            n++;
        if (!str_parse_u64((struct str){ s.p, n }, 9999, &v[i]))
            return false;
        s = (struct str){ s.p + n, s.n - n };
        if (s.n == 0 || s.p[0] != '.')
            break;
        s = (struct str){ s.p + 1, s.n - 1 };
    }
    *line = v[0] * 10000 + v[1];
    *all = (*line * 10000 + v[2]) * 2 + !str_starts(s, STR_LIT("-rc"));
    return true;
}

static bool
has_fix(const char *fixed, uint64_t line, uint64_t all)
{
    uint64_t fix_line = 0, fix = UINT64_MAX;
    size_t n;

    for (; *fixed != '\0'; fixed += n + strspn(fixed + n, " ")) {
        n = strcspn(fixed, " ");
        if (!number((struct str){ fixed, n }, &fix_line, &fix) || fix_line == line)
            break;
    }
    return fix_line == line ? all >= fix : line > fix_line;
}

size_t
oci_holes(const char *runtime, const char *version, struct engine_hole *out, size_t max)
{
    uint64_t line, all;
    size_t n = 0;

    if (!number(str_of(version), &line, &all))
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(holes) && n < max; i++)
        if (strcmp(holes[i].runtime, runtime) == 0 && !has_fix(holes[i].fixed, line, all))
            out[n++] = (struct engine_hole){ holes[i].name, holes[i].fixed, holes[i].what, holes[i].reach };
    return n;
}
