/* cli/run.c: cloche run, cloche code, cloche shell */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "cli/cli.h"
#include "cli/code_packages.h"
#include "cli/run.h"
#include "match/language.h"
#include "match/path.h"
#include "policy/place.h"
#include "program/caller.h"
#include "program/logins.h"
#include "program/runtimes.h"
#include "program/say.h"
#include "program/toolchains.h"
#include "program/verb.h"
#include "program/words.h"
#include "run/args.h"
#include "run/image_pin.h"
#include "run/planted.h"
#include "run/refusals.h"
#include "run/session.h"

#define CODE_MAX    (16UL * 1024 * 1024)    /* bytes of a code file */
#define CAPTURE_DEFAULT (1024 * 1024)

static int
set_pty(void *at, const char *value, struct err *err)
{
    (void)value;
    (void)err;
    *(int *)at = 1;
    return 0;
}

static int
set_no_pty(void *at, const char *value, struct err *err)
{
    (void)value;
    (void)err;
    *(int *)at = 0;
    return 0;
}

static int
add_package(void *at, const char *value, struct err *err)
{
    static struct packages said;
    struct packages **packages = at;

    *packages = &said;
    if (said.n == PACKAGES_MAX)
        return err_set(err, ERR_USAGE, "cli.package.many", "more than %d packages", PACKAGES_MAX);
    said.v[said.n++] = value;
    return 0;
}

const struct verb_flag run_flags[] = {
    /* of `cloche run` alone, and the first one for that */
    { "--no-entrypoint", 0, NULL, "with an image: run COMMAND itself, without the image's entry point",
      FLAG_ON(struct run_options, no_entrypoint) },
    /* of that and `cloche agent` */
    { "--toolchains", 0, "LIST", "rustup, nvm, pyenv ... of your home, read-only: auto, none, or names",
      FLAG_TEXT(struct run_options, toolchains) },
    { "--json", 0, NULL, "capture output; print one JSON object with it and the exit report",
      FLAG_ON(struct run_options, json) },
    { "--report", 0, "FILE", "write the exit report (JSON) to FILE", FLAG_TEXT(struct run_options, report) },
    { "--pty", 0, NULL, "a terminal inside (default: when stdin and stdout are one)",
      FLAG_SET(struct run_options, pty, set_pty) },
    { "--no-pty", 0, NULL, "no terminal inside", FLAG_SET(struct run_options, pty, set_no_pty) },
    { "--quiet", 'q', NULL, "no notices: of cut output, and at the end", FLAG_ON(struct run_options, quiet) },
    { "--help", 'h', NULL, NULL, FLAG_ON(struct run_options, help) },
    /* of `cloche code` alone, and the last ones for that */
    { "--package", 0, "NAME", "install a package of pypi or npm for this run, with a version or not; can be repeated",
      FLAG_SET(struct run_options, packages, add_package) },
    { "--language", 0, LANGUAGE_ROWS(LANGUAGE_NAME, "|"), "what FILE is written in; else its ending says it",
      FLAG_TEXT(struct run_options, language) },
};
#define N_SHARED (ARRAY_LEN(run_flags) - 2)
_Static_assert(N_SHARED == RUN_FLAGS, "cli/run.h");

void
run_policy_help(FILE *to)
{
    fprintf(to, "\npolicy (man cloche-policy):\n");
    cli_policy_flags(to);
}

static const struct verb_form run_form[] = { { NULL, "[flags] [--] COMMAND [ARG...]", .run = NULL } },
    shell_form[] = { { NULL, "[flags]", .run = NULL } },
    code_form[] = { { NULL, "[flags] [--language LANG] FILE|-", .run = NULL } };
static const struct verb run_verb = {
    .name = "run", VERB_FORMS(run_form), .flags = run_flags, .n_flags = N_SHARED, .more = run_policy_help,
    .about = "Run COMMAND in its own sandbox.", .after = RUN_EXIT_HELP,
}, shell_verb = {
    .name = "shell", VERB_FORMS(shell_form), .flags = run_flags + 2, .n_flags = N_SHARED - 2, .more = run_policy_help,
    .about = "An interactive shell in its own sandbox.", .after = RUN_EXIT_HELP,
}, code_verb = {
    .name = "code", VERB_FORMS(code_form), .flags = run_flags + 2, .n_flags = N_SHARED, .more = run_policy_help,
    .about = "Run FILE (or standard input) in its own sandbox.", .after = RUN_EXIT_HELP,
};

static int
help(const struct verb *v)
{
    verb_help(v, stdout);
    return 0;
}

static enum session_io
choose_io(const struct run_options *o)
{
    if (o->pty > 0)
        return SESSION_PTY;
    if (o->json)
        return SESSION_STREAM;
    if (o->pty == 0)
        return SESSION_PASS;
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) ? SESSION_PTY : SESSION_PASS;
}

/* The report file is opened before anything runs: a run whose report cannot be written does not start. */
static int
open_report(const struct run_options *o, int *fd, struct err *err)
{
    struct stat st;

    if (o->report == NULL)
        return 0;
    /* it may lie in a folder that a sandbox writes to: a link planted there must not choose the file. Truncated only
     * when it is known to be an ordinary file */
    *fd = open(o->report, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0644);
    if (*fd < 0) {
        err_sys(err, errno, "cli.report", "--report %s", o->report);
        return errno == ELOOP ? err_hint(err, "it is a symbolic link; name the file itself") : -1;
    }
    if (fstat(*fd, &st) < 0 || (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode)))
        return err_set(err, ERR_USAGE, "cli.report", "--report %s is not a file", o->report);
    if (S_ISREG(st.st_mode) && (st.st_nlink != 1 || ftruncate(*fd, 0) < 0))
        return err_set(err, ERR_USAGE, "cli.report", "--report %s cannot be rewritten: it has other names", o->report);
    return io_set_nonblock(*fd, false) < 0 ? err_sys(err, errno, "cli.report", "--report %s", o->report) : 0;
}

static int
execute(struct session *s, const struct run_options *o, struct err *err)
{
    static struct session_result result;    /* large, and there is one */
    struct session_result *r = &result;
    struct planted_roots planted = { .n = 0 };
    cleanup_close int report = -1;
    int code = -1;

    s->io = choose_io(o);
    s->capture = o->json;
    s->quiet = o->quiet || o->json;
    for (size_t i = 0; !s->quiet && i < s->policy->notes.n; i++)
        cli_warn("%s", s->policy->notes.v[i].value);
    int ended = open_report(o, &report, err) == 0 ? session_run(s, r, err) : -1;
    planted_after(s, r, &planted);
    if (ended == 0 && (!o->json || report_write(s, r, &planted, true, STDOUT_FILENO, err) == 0) &&
        (report < 0 || report_write(s, r, &planted, false, report, err) == 0))
        code = session_exit_code(r);
    if (code >= 0 && r->timed_out && !o->quiet && !o->json)
        cli_warn("the time limit of %llu ms was reached (--timeout raises it)",
                 (unsigned long long)s->policy->limits.time_ms.v);
    if (code >= 0 && r->oom_killed && !o->quiet && !o->json)
        cli_warn("the memory limit of %llu MiB was reached (--memory raises it)",
                 (unsigned long long)(s->policy->limits.memory.v >> 20));
    if ((code >= 0 || r->ran) && r->cow_id[0] != '\0' && !o->quiet && !o->json)
        fprintf(stderr, "cloche: changes are kept apart: `cloche diff %.12s`, then apply or discard\n", r->cow_id);
    if (!o->quiet && !o->json && isatty(STDERR_FILENO))
        refusals_tell(s, r);
    if (!o->quiet && !o->json)
        planted_warn(&planted);
    planted_roots_free(&planted);
    session_result_free(r);
    return code;
}

/* With --json nobody sees output go by: the source's cap holds unless the user set one. */
static void
default_capture(struct policy *p, const struct run_options *o)
{
    if (o->json && p->limits.output.from.kind < ORIGIN_FILE && p->limits.output.v == 0)
        p->limits.output.v = CAPTURE_DEFAULT;
}

/* What a policy was made of, to make it again. */
struct arguments {
    const struct verb *own;
    enum policy_verb verb;
    int argc;
    char **argv;
    const struct policy_host *host;
    struct run_options o;
};

static int
weaker(void *ctx, enum policy_mode mode, struct policy *out, struct err *err)
{
    struct arguments *a = ctx;

    if (cli_policy_args_in(policy_mode_name(mode), out, a->verb, a->argc, a->argv, a->host, a->own, &a->o, err) < 0)
        return -1;
    default_capture(out, &a->o);
    return 0;
}

static int
finish(int code, const struct err *err, bool json)
{
    return code < 0 ? cli_fail(err, json) : code;
}

int
run_command(const struct verb *v, int argc, char **argv, const struct policy_host *host)
{
    struct run_options o = { .pty = -1 };
    cleanup_policy struct policy p = { 0 };
    struct err err = ERR_INIT;
    struct arguments again = { v, VERB_RUN, argc, argv, host, { .pty = -1 } };
    struct session s = { .policy = &p, .weaker = weaker, .weaker_ctx = &again };
    struct image_words words = { NULL, NULL };
    int first = cli_policy_args(&p, VERB_RUN, argc, argv, host, v, &o, &err);

    if (o.help)
        return help(v);
    if (first < 0)
        return finish(-1, &err, o.json || cli_asks_json(argc, argv, true));
    if (first >= argc && p.image.p == NULL) {
        err_set(&err, ERR_USAGE, "cli.no-command", "no command was given");
        err_hint(&err, "cloche run [flags] -- COMMAND [ARG...]");
        return finish(-1, &err, o.json);
    }
    default_capture(&p, &o);
    s.argv = (const char *const *)(argv + first);
    if (p.image.p != NULL && image_words(&p, s.argv, o.no_entrypoint || v != &run_verb, &words, &err) == 0)
        s.argv = (const char *const *)words.v;
    else if (p.image.p != NULL)
        first = -1;
    first = first < 0 ? -1 : execute(&s, &o, &err);
    image_words_free(&words);
    return finish(first, &err, o.json);
}

/* The caller's command line with the flags for @t and @l before all others, so that those have the last word; @words
 * has room for it. How many words it has. */
static int
with_toolchains(struct toolchains *t, struct logins *l, int argc, char **argv, char **words)
{
    static char bind[] = "--bind", env[] = "--env", deny[] = "--deny-read", path[sizeof(t->folders) + 64];
    int n = 0;

    words[n++] = argv[0];
    for (size_t i = 0; i < t->n_shown; i++) {
        words[n++] = bind;
        words[n++] = t->shown[i];
    }
    for (size_t i = 0; i < l->n; i++) {
        words[n++] = deny;
        words[n++] = l->v[i];
    }
    for (size_t i = 0; i < t->n_env; i++) {
        words[n++] = env;
        words[n++] = t->env[i];
    }
    if (t->folders[0] != '\0') {
        snprintf(path, sizeof(path), "PATH=%s" POLICY_PATH, t->folders);
        words[n++] = env;
        words[n++] = path;
    }
    for (int i = 1; i < argc; i++)
        words[n++] = argv[i];
    words[n] = NULL;
    return n;
}

/* The folder of which a sandbox may have written: the current one, but not the home of somebody who stands there and
 * does not give it. */
static const char *
project_of(int end, char **argv, const struct policy_host *host)
{
    bool given = host->home == NULL || !path_within(str_of(host->home), str_of(host->cwd));

    for (int i = 1; i < end && !given; i++)
        given = strncmp(argv[i], "--workspace", 11) == 0 || strncmp(argv[i], "--settings", 10) == 0;
    return given ? host->cwd : NULL;
}

int
cmd_run(int argc, char **argv)
{
    static struct toolchains found;
    struct run_options o = { .pty = -1 };
    cleanup_free char **words = NULL;
    cleanup_logins struct logins logins = { .n = 0 };
    struct policy_host host;
    struct err err = ERR_INIT;
    int end;

    if (cli_host(&host, &err) < 0)
        return cli_fail(&err, cli_asks_json(argc, argv, true));
    /* what is wrong with the flags is said when they are taken */
    end = cli_policy_flags_end(argc, argv, &run_verb, &o, NULL);
    if (end < 0 || o.toolchains == NULL)
        return run_command(&run_verb, argc, argv, &host);
    words = calloc((size_t)argc + 2 * (TOOLCHAINS_SHOWN_MAX + TOOLCHAINS_ENV_MAX + LOGINS_MAX) + 4, sizeof(*words));
    if (words == NULL)
        err_set(&err, ERR_SYSTEM, "memory", "out of memory");
    if (words == NULL || toolchains_find(o.toolchains, host.home, project_of(end, argv, &host), &found, &err) < 0)
        return cli_fail(&err, cli_asks_json(argc, argv, true));
    for (size_t i = 0; i < found.n_shown; i++)
        if (logins_find(&logins, found.shown[i], &err) < 0)
            return cli_fail(&err, cli_asks_json(argc, argv, true));
    return run_command(&run_verb, with_toolchains(&found, &logins, argc, argv, words), words, &host);
}

int
cmd_shell(int argc, char **argv)
{
    const char *bash[] = { "/bin/bash", NULL };
    struct run_options o = { .pty = -1 };
    struct policy_host host;
    cleanup_policy struct policy p = { 0 };
    struct err err = ERR_INIT;
    struct arguments again = { &shell_verb, VERB_SHELL, argc, argv, &host, { .pty = -1 } };
    struct session s = { .policy = &p, .argv = bash, .weaker = weaker, .weaker_ctx = &again };
    int first;

    if (cli_host(&host, &err) < 0)
        return cli_fail(&err, cli_asks_json(argc, argv, false));
    first = cli_policy_args(&p, VERB_SHELL, argc, argv, &host, &shell_verb, &o, &err);
    if (o.help)
        return help(&shell_verb);
    if (first >= 0 && first < argc)
        first =
            err_set(&err, ERR_USAGE, "cli.operand", "shell takes no command (\"%s\"); use `cloche run`", argv[first]);
    if (first >= 0 && p.image.p != NULL && (bash[0] = image_shell(&p, &err)) == NULL)
        first = -1;
    if (first < 0)
        return finish(-1, &err, o.json || cli_asks_json(argc, argv, false));
    return finish(execute(&s, &o, &err), &err, o.json);
}

/* --- code ------------------------------------------------------------------------------------------------------- */

static int
read_code(const char *path, struct buf *code, struct err *err)
{
    cleanup_close int file = strcmp(path, "-") == 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : file;

    if (fd < 0) {
        err_sys(err, errno, "cli.code.read", "%s", path);
        return err_hint(err, "FILE is a path on the host, from where you are; - is standard input");
    }
    if (io_read_all(fd, code) < 0)
        return errno == EFBIG
                   ? err_set(err, ERR_LIMIT, "cli.code.too-large", "%s is larger than %lu bytes", path, CODE_MAX)
                   : err_sys(err, errno, "cli.code.read", "%s", path);
    return 0;
}

/* What was said, or else what the file's name says. NULL with @err. */
static const struct language *
code_language(const char *said, const char *path, struct err *err)
{
    const struct language *l = said != NULL || path == NULL ? runtimes_find(said, err) : runtimes_of_path(path, err);

    if (l == NULL && err->hint[0] == '\0')
        err_hint(err, "cloche code --language python FILE (or - for standard input); without --language the ending "
                 "of FILE says it, as in script.py");
    return l;
}

static int
code_check(const struct language *l, const struct policy *p, int argc, int first, struct err *err)
{
    if (l == NULL)
        return -1;
    if (first != argc - 1) {
        err_set(err, ERR_USAGE, "cli.no-file", "one FILE is needed, or - for standard input");
        return err_hint(err, "cloche code --language %s FILE", l->name);
    }
    if (p->mode.v == MODE_OFF || p->mode.v == MODE_LIGHT || p->view.v == VIEW_HOST) {
        err_set(err, ERR_POLICY, "cli.code.root",
                "code is put into the sandbox's own root, which this policy does not have");
        return err_hint(err, "use mode standard or max with the private view, or `cloche run`");
    }
    return 0;
}

/* Never one of the user's. */
static const char *
code_folder(const struct policy *p)
{
    struct place home;

    if (p->workspace.kind == WORKSPACE_TMPFS)
        return "/workspace";
    policy_place_inside(p, POLICY_HOME, &home);
    return home.kind == PLACE_OWN ? POLICY_HOME : "/tmp";
}

/* The code in its place, under @p. */
static int
run_code(struct policy *p, const struct language *language, const char *from, const struct buf *code,
         const struct run_options *o, struct err *err)
{
    struct session_file file = { .folder = code_folder(p), .name = language->file, .data = code->p, .n = code->n };
    struct session s = { .policy = p, .file = &file, .no_stdin = strcmp(from, "-") == 0 };
    const char *words[LANGUAGE_ARGV_MAX + 1];
    char path[64];

    snprintf(path, sizeof(path), "%s/%s", file.folder, file.name);
    language_words(language, path, words);
    s.argv = words;
    return execute(&s, o, err);
}

/* The same with packages: they are installed first, and then the command line says as well where they are. */
static int
run_code_with(struct packages *packages, const struct policy *before, const struct language *language, const char *from,
              const struct buf *code, int argc, char **argv, const struct policy_host *host, struct err *err)
{
    cleanup_free char **words = calloc((size_t)argc + PACKAGES_WORDS + 1, sizeof(*words));
    struct run_options o = { .pty = 0 };
    cleanup_policy struct policy p = { 0 };
    int n, result = -1;

    if (words == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    if (code_packages_install(packages, language, before, err) == 0) {
        n = code_packages_show(packages, language, code_folder(before), argc, argv, words);
        packages->n = 0;        /* they are said again */
        if (cli_policy_args(&p, VERB_CODE, n, words, host, &code_verb, &o, err) >= 0) {
            code_packages_own(packages, &p);
            result = run_code(&p, language, from, code, &o, err);
        }
    }
    code_packages_remove(packages);
    return result;
}

int
cmd_code(int argc, char **argv)
{
    struct run_options o = { .pty = 0 };
    struct policy_host host;
    cleanup_policy struct policy p = { 0 };
    struct err err = ERR_INIT;
    cleanup_buf struct buf code = BUF_INIT(CODE_MAX);
    const struct language *language;
    int first;

    if (cli_host(&host, &err) < 0)
        return cli_fail(&err, cli_asks_json(argc, argv, false));
    first = cli_policy_args(&p, VERB_CODE, argc, argv, &host, &code_verb, &o, &err);
    if (o.help)
        return help(&code_verb);
    language = first < 0 ? NULL : code_language(o.language, first < argc ? argv[first] : NULL, &err);
    if (first < 0 || code_check(language, &p, argc, first, &err) < 0 ||
        (o.packages != NULL && code_packages_check(o.packages, language, &err) < 0) ||
        read_code(argv[first], &code, &err) < 0)
        return finish(-1, &err, o.json || cli_asks_json(argc, argv, false));
    return finish(o.packages != NULL ? run_code_with(o.packages, &p, language, argv[first], &code, argc, argv, &host,
                                                     &err)
                                     : run_code(&p, language, argv[first], &code, &o, &err), &err, o.json);
}
