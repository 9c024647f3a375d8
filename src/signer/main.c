/* signer/main.c: cloche-signer (signer.h) */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "proto/edge_sign.h"
#include "signer/signer.h"
#include "signer/token.h"
#include "vault/seal.h"

#define FD_WARDEN 3
#define FD_SIGNER 3

/* Not to be tried again by whoever started us. */
static bool
is_last(const char *code)
{
    return strcmp(code, "sign.token.pin") == 0 || strcmp(code, "sign.key.other") == 0;
}

static int
serve(const char *name, const char *path)
{
    cleanup_buf struct buf text = BUF_INIT(POLICY_TEXT_MAX);
    struct err err = ERR_INIT;
    struct sign_key *key;
    int r = -1;

    log_open("cloche-signer");
    sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    key = secret_memory_init(&err) == 0 ? signer_key(name, &err) : NULL;
    if (key != NULL && signer_policy(path, &text, &err) == 0 && signer_confine(&err) == 0)
        r = signer_serve(FD_WARDEN, key, &text);       /* it cannot write a log any more */
    else
        log_say(LEVEL_ERROR, "%s [%s]", err.msg, err.code);
    sign_key_free(key);
    return r == 0 ? 0 : key == NULL && is_last(err.code) ? SIGNER_EXIT_LAST : 1;
}

int
main(int argc, char **argv)
{
    if (secret_process() < 0) {
        perror("cloche-signer");
        return 1;
    }
    /* a file that may not be larger is an error like a full disk */
    sigaction(SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    if (argc > 1 && strcmp(argv[1], "signer") == 0)
        return signer_cmd(argc - 1, argv + 1);
    if (argc == 4 && strcmp(argv[1], "serve") == 0 && fcntl(FD_WARDEN, F_GETFD) >= 0)
        return serve(argv[2], argv[3]);
    if (argc == 2 && strcmp(argv[1], "token") == 0 && fcntl(FD_SIGNER, F_GETFD) >= 0)
        return token_serve(FD_SIGNER) < 0;
    fprintf(stderr, "cloche-signer is started by cloche; see `cloche signer --help`\n");
    return 1;
}
