/* launcher/serve_gate.c: the gate's rules: a file's text, for the warden, which opens no files and reads what they
 * mean; and what cloche-gate says of them, because cloche has no regular expressions. Likewise what cloche-signer says
 * of a key, because cloche never has one */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "launcher/serve.h"
#include "policy/doc.h"
#include "program/helper.h"

#define EXIT_NOTHING 127    /* it could not be asked */

int
serve_gate_read(struct serve_plan *plan, struct err *err)
{
    if (strcmp(plan->gate, "off") == 0)
        return buf_puts(&plan->rules, "gate: off\n");
    if (plan->gate[0] == '\0' || io_read_regular(AT_FDCWD, plan->gate, &plan->rules) == 0)
        return 0;
    err_sys(err, errno, "gate.read", "%s", plan->gate);
    return err_hint(err, "a regular file with the gate's rules has at most 64 KiB; `cloche gate check FILE` judges it");
}

bool
serve_gate_is_off(const struct serve_plan *plan)
{
    struct arena *arena = arena_new(4096);
    struct err ignored = ERR_INIT;
    const struct node *top = NULL, *gate = NULL;
    bool off;

    if (arena != NULL && plan->rules.n > 0)
        top = doc_parse_yaml(arena, plan->gate, plan->rules.p, plan->rules.n, &ignored);
    if (top != NULL && top->type == NODE_MAP)
        gate = node_member(top, "gate");
    off = gate != NULL && gate->type == NODE_STRING && str_eq_c(gate->text, "off");
    if (arena != NULL)
        arena_free(arena);
    return off;
}

/* Its exit code, without a word from it, but what it says on standard error if that is to be @heard; -1 with @err. */
static int
judged(const char *program, char *const argv[], bool heard, struct err *err)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        cleanup_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null >= 0 && dup2(null, 0) >= 0 && dup2(null, 1) >= 0 &&
            (heard || dup2(null, 2) >= 0))
            execv(program, argv);
        _exit(EXIT_NOTHING);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            pid = -1;
    if (pid < 0)
        return err_sys(err, errno, "cli.program", "%s", program);
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_NOTHING;
}

/* 0; -1 with @err; or this process is that program, which says what is wrong; or, if it is to be asked @once, that has
 * said so, and this process ends as it did. */
static int
check_by(const char *folder, char *const argv[], bool once, struct err *err)
{
    char program[PATH_MAX];
    int r;

    if (helper_find(folder, argv[0], program, err) < 0)
        return -1;
    r = judged(program, argv, once, err);
    if (r <= 0)
        return r;
    if (once && r != EXIT_NOTHING)
        exit(r);
    execv(program, argv);
    return err_sys(err, errno, "cli.program", "%s", program);
}

int
serve_gate_check(const struct serve_plan *plan, bool json, struct err *err)
{
    char name[] = "cloche-gate", verb[] = "gate", check[] = "check", flag[] = "--json";
    char *argv[] = { name, verb, check, (char *)(uintptr_t)plan->gate, json ? flag : NULL, NULL };

    return plan->gate[0] == '\0' || strcmp(plan->gate, "off") == 0 ? 0 : check_by("gate", argv, false, err);
}

int
serve_signer_check(const struct serve_plan *plan, struct err *err)
{
    char name[] = "cloche-signer", verb[] = "signer", check[] = "check";
    char *argv[] = { name, verb, check, (char *)(uintptr_t)plan->signing_key,
                     (char *)(uintptr_t)plan->signing_policy, NULL };

    /* it may try a PIN, and a few wrong ones lock a token */
    return plan->signing_key[0] == '\0' ? 0 : check_by("signer", argv, true, err);
}
