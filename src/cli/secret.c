/* cli/secret.c: verbs that another program does
 *
 * cloche secret: cloche-vault, so that a value is in no other process. cloche signer: cloche-signer, likewise. cloche
 * gate: cloche-gate, which has the regular expressions that cloche has not. cloche image: cloche-image, which reads
 * archives. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "program/helper.h"
#include "program/say.h"

static int
become(const char *folder, char *name, int argc, char **argv)
{
    char program[PATH_MAX];
    char **words = calloc((size_t)argc + 2, sizeof(*words));
    struct err err = ERR_INIT;

    if (words == NULL)
        err_set(&err, ERR_SYSTEM, "memory", "out of memory");
    else if (helper_find(folder, name, program, &err) == 0) {
        words[0] = name;
        for (int i = 0; i < argc; i++)
            words[1 + i] = argv[i];
        execv(program, words);
        err_sys(&err, errno, "cli.program", "%s", program);
    }
    free(words);
    return cli_fail(&err, false);
}

int
cmd_secret(int argc, char **argv)
{
    char name[] = "cloche-vault";

    return become("vault", name, argc, argv);
}

int
cmd_image(int argc, char **argv)
{
    char name[] = "cloche-image";

    return become("imager", name, argc, argv);
}

int
cmd_signer(int argc, char **argv)
{
    char name[] = "cloche-signer";

    return become("signer", name, argc, argv);
}

int
cmd_gate(int argc, char **argv)
{
    char name[] = "cloche-gate";

    return become("gate", name, argc, argv);
}
