/* vault/main.c: cloche-vault: the process that holds secrets
 *
 * Started by cloche run with the supervisor's socket at descriptor 3 and nothing else, or by `cloche secret`, whose
 * words it gets. Either way nobody can read its memory, and it leaves no core.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "vault/cmd.h"
#include "vault/seal.h"
#include "vault/serve.h"

#define FD_SUPERVISOR 3

int
main(int argc, char **argv)
{
    struct err err = ERR_INIT;

    if (secret_process() < 0) {
        perror("cloche-vault");
        return 1;
    }
    /* a file that may not be larger is an error like a full disk */
    sigaction(SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    if (argc > 1 && strcmp(argv[1], "secret") == 0)
        return vault_cmd(argc - 1, argv + 1);
    sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    if (argc > 1 || fcntl(FD_SUPERVISOR, F_GETFD) < 0) {
        fprintf(stderr, "cloche-vault is started by cloche; see `cloche secret --help`\n");
        return 1;
    }
    /* what went wrong was said to the supervisor */
    return vault_serve(FD_SUPERVISOR, &err) == 0 ? 0 : 1;
}
