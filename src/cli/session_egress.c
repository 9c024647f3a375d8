/* cli/session_egress.c: cloche-egress for one run
 *
 * It is a program of its own, started with nothing but its control socket and the listeners. What it decided comes back
 * as one JSON object a message (egress/log.c); denials go into the report like every other denial.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cli/cli.h"
#include "cli/session_priv.h"

#define FD_HIGH      64         /* above everything that gets a fixed number in the child */
#define MESSAGE_MAX  8192
#define ENTRY_MAX    4096

static _Noreturn void
child(const char *program, int control, const int listeners[CAPTURE_LISTENERS], int vault)
{
    int high[2 + CAPTURE_LISTENERS], n = 1 + CAPTURE_LISTENERS + (vault >= 0);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    char name[] = "cloche-egress";
    char *const argv[] = { name, NULL }, *const env[] = { NULL };
    sigset_t none;

    /* the user's own stdin and stdout are not its business; it lets go of stderr when it has started */
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
        _exit(1);
    high[0] = fcntl(control, F_DUPFD_CLOEXEC, FD_HIGH);
    for (size_t i = 0; i < CAPTURE_LISTENERS; i++)
        high[1 + i] = fcntl(listeners[i], F_DUPFD_CLOEXEC, FD_HIGH);
    high[1 + CAPTURE_LISTENERS] = vault >= 0 ? fcntl(vault, F_DUPFD_CLOEXEC, FD_HIGH) : -1;
    for (int i = 0; i < n; i++)
        if (high[i] < 0 || dup2(high[i], 3 + i) < 0)
            _exit(1);
    (void)io_close_from(3 + n);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    execve(program, argv, env);
    _exit(1);
}

static int
say(int control, const void *message, size_t n, struct err *err)
{
    return send(control, message, n, MSG_NOSIGNAL) == (ssize_t)n
               ? 0 : err_sys(err, errno, "egress.rules", "tell cloche-egress its rules");
}

static int
say_list(int control, char kind, const struct policy_list *list, struct err *err)
{
    char message[MESSAGE_MAX], origin[POLICY_ORIGIN_TEXT_MAX];

    for (size_t i = 0; i < list->n; i++) {
        int n = snprintf(message, sizeof(message), "%c%s%c%s", kind, list->v[i].value, '\0',
                         policy_origin_text(&list->v[i].from, origin));
        if (n < 0 || (size_t)n >= sizeof(message))
            return err_set(err, ERR_LIMIT, "egress.rules", "the rule \"%.60s...\" is too long", list->v[i].value);
        if (say(control, message, (size_t)n, err) < 0)
            return -1;
    }
    return 0;
}

/* It gets the vault, and what it trusts beside the host's certificates in connections that it opens. */
static int
say_vault(struct live *l, struct err *err)
{
    const struct policy_list *files = &l->s->policy->extra_ca;
    char message[MESSAGE_MAX];

    close_fd(&l->vault_for_egress);
    for (size_t i = 0; i < files->n; i++) {
        int n = snprintf(message, sizeof(message), "C%s", files->v[i].value);
        if (say(l->egress, message, (size_t)n, err) < 0)
            return -1;
    }
    return say(l->egress, "V", 1, err);
}

/* In pieces: a list may be longer than a message. */
static int
say_parent(int control, char kind, const struct policy_string *text, struct err *err)
{
    char message[MESSAGE_MAX];
    size_t n = text->p != NULL ? strlen(text->p) : 0;

    for (size_t at = 0, take; at < n; at += take) {
        take = n - at < sizeof(message) / 2 ? n - at : sizeof(message) / 2;
        message[0] = 'P';
        message[1] = kind;
        memcpy(message + 2, text->p + at, take);
        if (say(control, message, take + 2, err) < 0)
            return -1;
    }
    return 0;
}

static int
say_parents(int control, const struct policy *p, struct err *err)
{
    return say_parent(control, 'h', &p->parent_proxy.http, err) < 0 ||
           say_parent(control, 's', &p->parent_proxy.https, err) < 0 ||
           say_parent(control, 'n', &p->parent_proxy.no_proxy, err) < 0 ? -1 : 0;
}

int
egress_start(struct live *l, struct err *err)
{
    const struct policy *p = l->s->policy;
    cleanup_close int theirs = -1;
    char program[PATH_MAX];
    int pair[2];

    if (helper_find("egress", "cloche-egress", program, err) < 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "egress.control", "socketpair");
    l->egress = pair[0];
    theirs = pair[1];
    l->egress_pid = fork();
    if (l->egress_pid < 0)
        return err_sys(err, errno, "egress.start", "fork");
    if (l->egress_pid == 0)
        child(program, theirs, l->sb->listeners, l->vault_for_egress);
    /* ours go: when egress ends, whoever connects is refused at once */
    for (size_t i = 0; i < CAPTURE_LISTENERS; i++)
        close_fd(&l->sb->listeners[i]);
    if (l->vault_for_egress >= 0 && say_vault(l, err) < 0)
        return -1;
    if ((p->srt && say(l->egress, "S", 1, err) < 0) || say_list(l->egress, 'A', &p->allow_domains, err) < 0 ||
        say_list(l->egress, 'D', &p->deny_domains, err) < 0 || say_parents(l->egress, p, err) < 0)
        return -1;
    return say(l->egress, "G", 1, err);
}

static void
note(struct live *l, const json_t *entry)
{
    const char *verdict = json_string_value(json_object_get(entry, "verdict"));
    const char *host = json_string_value(json_object_get(entry, "host"));
    const char *rule = json_string_value(json_object_get(entry, "rule"));
    const char *reason = json_string_value(json_object_get(entry, "reason"));
    const json_t *port = json_object_get(entry, "port");
    struct msg_denied d = { .count = 1, .op = "connect", .rule = rule != NULL ? rule : reason != NULL ? reason : "" };
    char target[320];

    if (verdict == NULL || strcmp(verdict, "deny") != 0 || host == NULL)
        return;
    if (json_integer_value(port) > 0)
        snprintf(target, sizeof(target), "%s:%d", host, (int)json_integer_value(port));
    else
        snprintf(target, sizeof(target), "%s", host);
    d.target = target;
    session_note_denied(l->r, &d);
}

void
egress_read(struct live *l)
{
    char message[ENTRY_MAX];

    for (int i = 0; i < 64 && l->egress >= 0; i++) {
        ssize_t n = recv(l->egress, message, sizeof(message), MSG_DONTWAIT);
        json_t *entry;
        if (n < 0)
            return;
        if (n == 0) {
            cli_warn("cloche-egress has ended: no connection is opened any more");
            close_fd(&l->egress);
            return;
        }
        entry = json_loadb(message, (size_t)n, JSON_REJECT_DUPLICATES, NULL);
        if (entry != NULL)
            note(l, entry);
        json_decref(entry);
    }
}

void
egress_stop(struct live *l)
{
    if (l->egress_pid <= 0)
        return;
    egress_read(l);
    close_fd(&l->egress);
    kill(l->egress_pid, SIGKILL);
    while (waitpid(l->egress_pid, NULL, 0) < 0 && errno == EINTR)
        ;
    l->egress_pid = 0;
}
