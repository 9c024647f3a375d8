/* wall/own_id.c: see own_id.h */
#include "wall/own_id.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/str.h"

#define HIGH   0x70000000U      /* the first range; each has 2^24 */
#define WIDTH  0x01000000U
#define NEAR   1100U            /* so far below the top is the first range of a small namespace; each has 1000 */
#define RANGES 2U

/* The next word of the first line of uid_map(5). */
static struct str
word(struct str *rest)
{
    struct str w;
    size_t n = 0;

    while (rest->n > 0 && (*rest->p == ' ' || *rest->p == '\n'))
        rest->p++, rest->n--;
    while (n < rest->n && rest->p[n] != ' ' && rest->p[n] != '\n')
        n++;
    w = (struct str){ rest->p, n };
    rest->p += n;
    rest->n -= n;
    return w;
}

int
own_id(enum own_range range, uint32_t seed, uint32_t *out, struct err *err)
{
    uint8_t room[512];
    cleanup_buf struct buf text = BUF_INIT_IN(room, 4096);
    uint64_t inside, count;
    struct str rest, first, third;

    if (io_read_file(AT_FDCWD, "/proc/self/uid_map", &text) < 0)
        return err_sys(err, errno, "wall.userns", "/proc/self/uid_map");
    rest = (struct str){ (const char *)text.p, text.n };
    first = word(&rest);
    (void)word(&rest);
    third = word(&rest);
    if (!str_parse_u64(first, UINT32_MAX, &inside) || !str_parse_u64(third, UINT32_MAX, &count))
        return err_set(err, ERR_SYSTEM, "wall.userns", "/proc/self/uid_map is not understood");
    if (inside == 0 && count > HIGH + RANGES * WIDTH)
        *out = HIGH + (uint32_t)range * WIDTH + seed % WIDTH;
    else if (count > 2000 + (uint64_t)range * 1000)
        *out = (uint32_t)(inside + count - NEAR - (uint32_t)range * 1000 + seed % 1000);
    else
        *out = 0;
    return 0;
}

/* In the first line of uid_map, "0 OUTSIDE COUNT". */
bool
own_id_is_hosts_root(void)
{
    uint8_t room[512];
    cleanup_buf struct buf text = BUF_INIT_IN(room, 4096);
    const char *p;

    if (io_read_file(AT_FDCWD, "/proc/self/uid_map", &text) < 0 || buf_nul(&text) < 0)
        return true;
    p = (const char *)text.p;
    p += strspn(p, " ");
    p += strspn(p, "0123456789");
    p += strspn(p, " ");
    return p[0] == '0' && p[1] == ' ';
}
