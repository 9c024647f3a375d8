/* cli/console.c: `cloche console`: the page for people of cloche serve (docs/console.md)
 *
 * It has the daemon make a ticket, and prints the address of the page with it. Where there is a screen it opens it: by
 * a file that nobody else can read, for the words of a command line are everybody's to read.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "cli/cli.h"
#include "client/api_verb.h"
#include "program/state.h"

#define OWN  "console"      /* the folder in the state folder, */
#define FILE_NAME "open.html"       /* and what is in it, which is of no use when its ticket is used */

struct options {
    struct api_verb v;
    const char *role, *lasts;
    bool shut;
};

static json_t *
ticket(const struct options *o, struct err *err)
{
    json_t *body = json_object(), *said = NULL;

    if (o->role != NULL)
        json_object_set_new(body, "role", json_string(o->role));
    if (api_verb_seconds(body, "seconds", "--for", o->lasts, "24h", err) == 0)
        (void)api_ask(&o->v.api, "POST", "/v1/console", body, &said, err);
    json_decref(body);
    return said;
}

/* --- a browser ---------------------------------------------------------------------------------------------------- */

static bool
has_screen(void)
{
    return isatty(STDOUT_FILENO) && (getenv("DISPLAY") != NULL || getenv("WAYLAND_DISPLAY") != NULL);
}

/* @url has no character that HTML knows (api_verb_word). 0 or -1. */
static int
write_page(const char *url, char path[PATH_MAX])
{
    cleanup_close int own = state_own_open(OWN, "console.folder", NULL), file = -1;
    char text[1024], state[PATH_MAX];
    int n = snprintf(text, sizeof(text), "<!DOCTYPE html><meta charset=\"utf-8\"><title>cloche</title>"
                     "<meta http-equiv=\"refresh\" content=\"0; url=%s\"><p><a href=\"%s\">the console</a>\n",
                     url, url);

    if (own < 0 || n < 0 || (size_t)n >= sizeof(text) || state_dir_path(state, NULL) < 0 ||
        snprintf(path, PATH_MAX, "%s/" OWN "/" FILE_NAME, state) >= PATH_MAX)
        return -1;
    (void)unlinkat(own, FILE_NAME, 0);
    file = openat(own, FILE_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return file < 0 ? -1 : io_write_full(file, text, (size_t)n);
}

/* Whether xdg-open took it. Its address is printed in any case. */
static bool
open_page(const char *url)
{
    char path[PATH_MAX];
    const char *argv[] = { "xdg-open", path, NULL };
    int status = -1, r;
    pid_t pid;

    if (write_page(url, path) < 0)
        return false;
    r = posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)(uintptr_t)argv, environ);
    while (r == 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return r == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* --- the verb ----------------------------------------------------------------------------------------------------- */

static void
print_ticket(const struct options *o, const json_t *said)
{
    const char *url = json_string_value(json_object_get(said, "url"));
    const char *shown = api_verb_word(said, url != NULL ? "url" : "path", ":/#=[]");
    struct cli_time until = api_verb_time(said, "expires_ms");

    if (o->v.json)
        return api_verb_line(said);
    puts(shown);
    fflush(stdout);
    if (url == NULL)
        fprintf(stderr, "cloche: no browser reaches it: the daemon listens at no TCP address "
                "(cloche serve --listen tcp:127.0.0.1:7700)\n");
    else if (!o->shut && has_screen() && open_page(shown))
        fprintf(stderr, "cloche: it was given to your browser\n");
    fprintf(stderr, "cloche: the address is good once, until %.19s; `cloche token ls` lists the sessions, called "
            "console, and `cloche token revoke ID` ends one\n", until.text);
}

static int
console(void *options, const struct verb_words *w, struct err *err)
{
    const struct options *o = options;
    json_t *said = ticket(o, err);

    (void)w;
    if (said == NULL)
        return -1;
    print_ticket(o, said);
    json_decref(said);
    return 0;
}

int
cmd_console(int argc, char **argv)
{
    static const struct verb_form forms[] = {
        { NULL, "[--role ROLE] [--for TIME] [--no-open] [--json]", 0, 0, NULL, NULL, console },
    };
    static const struct verb_flag flags[] = {
        { "--role", 0, "ROLE", "what the page may do: operator, approver or auditor (operator)",
          FLAG_TEXT(struct options, role) },
        { "--for", 0, "TIME", "how long its session lasts, at most 24h (8h)", FLAG_TEXT(struct options, lasts) },
        { "--no-open", 0, NULL, "print the address and open no browser", FLAG_ON(struct options, shut) },
        API_ROW_SOCKET, API_ROW_JSON("one JSON object"),
    };
    static const struct verb verb = {
        .name = "console", VERB_FORMS(forms), VERB_FLAGS(flags), .begin = api_verb_begin,
        .misused = "cli.console.verb",
        .about = "Print the address of the page on which people see the sandboxes of cloche serve, and decide what "
                 "waits for them; open it where there is a screen.",
    };
    struct options o = { .role = NULL };

    return verb_main(&verb, &o, argc, argv);
}
