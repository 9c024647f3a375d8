/* vault/cmd_fail.c: how `cloche secret` and `cloche signer` say what is wrong */
#include <stdio.h>

#include "vault/cmd.h"

/* Control bytes of what people wrote do not reach their terminal. */
static void
print_safe(const char *text)
{
    for (; *text != '\0'; text++)
        fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, stderr);
}

int
cmd_fail(const struct err *err)
{
    fputs("cloche: ", stderr);
    print_safe(err->msg);
    fputs("\n        ", stderr);
    print_safe(err->hint);
    fprintf(stderr, "%s[%s]\n", err->hint[0] != '\0' ? "  " : "", err->code);
    return EXIT_REFUSED;
}
