/* engine/native/mountinfo.c: see mountinfo.h */
#include "engine/native/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/io.h"
#include "base/str.h"

int
mountinfo_read(struct buf *text, struct err *err)
{
    if (io_read_file(AT_FDCWD, "/proc/self/mountinfo", text) < 0 || buf_nul(text) < 0)
        return err_sys(err, errno, "wall.root", "/proc/self/mountinfo");
    return 0;
}

/* Blank, tab, newline and backslash are \ooo. */
static void
unescape(char *s)
{
    char *out = s;

    for (; *s != '\0'; s++) {
        if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' && s[3] >= '0' && s[3] <= '7') {
            *out++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
            s += 3;
        } else {
            *out++ = *s;
        }
    }
    *out = '\0';
}

static bool
parse(char *line, struct mount_line *out)
{
    char *field[5], *type = strstr(line, " - "), *end;

    if (type == NULL)
        return false;
    *type = '\0';
    type += 3;
    for (size_t i = 0; i < 5; i++) {
        field[i] = line;
        if ((end = strchr(line, ' ')) == NULL)
            return false;
        *end = '\0';
        line = end + 1;
    }
    type[strcspn(type, " ")] = '\0';
    unescape(field[3]);
    unescape(field[4]);
    *out = (struct mount_line){ .device = field[2], .root = field[3], .point = field[4], .type = type };
    return str_parse_u64(str_of(field[0]), UINT64_MAX, &out->id);
}

bool
mountinfo_next(char **at, struct mount_line *out)
{
    while (**at != '\0') {
        char *line = *at, *end = strchrnul(line, '\n');

        *at = *end == '\n' ? end + 1 : end;
        *end = '\0';
        if (parse(line, out))
            return true;
    }
    return false;
}
