/* cli/common.c: see cli.h */
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/preset.h"
#include "cli/registry.h"
#include "cli/state.h"
#include "match/path.h"

bool
cli_colour(int fd)
{
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

    return isatty(fd) && term != NULL && strcmp(term, "dumb") != 0 && (no == NULL || *no == '\0');
}

bool
cli_utf8(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *locale = getenv(names[i]);

        if (locale != NULL && *locale != '\0')
            return strcasestr(locale, "utf-8") != NULL || strcasestr(locale, "utf8") != NULL;
    }
    return false;
}

int
cli_json(json_t *o, size_t flags)
{
    int r = json_dumpf(o, stdout, flags);

    json_decref(o);
    return r < 0 || fputc('\n', stdout) == EOF ? -1 : 0;
}

static void
fail_json(const struct err *err)
{
    json_t *out = json_pack("{s:i, s:s, s:{s:s, s:s, s:s}, s:i}", "version", 1, "reason", "refused", "error", "code",
                            err->code, "message", err->msg, "hint", err->hint, "exit_code", EXIT_REFUSED);

    if (out == NULL)    /* a message that is not UTF-8 */
        out = json_pack("{s:i, s:s, s:{s:s}, s:i}", "version", 1, "reason", "refused", "error", "code", err->code,
                        "exit_code", EXIT_REFUSED);
    (void)cli_json(out, JSON_COMPACT);
    fflush(stdout);
}

/* A path or command in a message may hold control bytes: a terminal would obey them. */
static void
print_safe(const char *s)
{
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s, next = (unsigned char)s[1];
        if (c < 0x20 || c == 0x7f)
            fprintf(stderr, "\\x%02x", c);
        else if (c == 0xc2 && next >= 0x80 && next < 0xa0)      /* C1 controls in UTF-8 */
            fprintf(stderr, "\\u%04x", (unsigned)*++s & 0xff);
        else
            fputc(c, stderr);
    }
}

int
cli_fail(const struct err *err, bool json)
{
    bool colour = cli_colour(STDERR_FILENO);

    if (json)
        fail_json(err);
    fprintf(stderr, "%scloche:%s ", colour ? "\033[1;31m" : "", colour ? "\033[0m" : "");
    print_safe(err->msg);
    fputs("\n        ", stderr);
    print_safe(err->hint);
    fprintf(stderr, "%s[%s]\n", err->hint[0] != '\0' ? "  " : "", err->code);
    return EXIT_REFUSED;
}

void
cli_warn(const char *fmt, ...)
{
    bool colour = cli_colour(STDERR_FILENO);
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (log_opened()) {
        log_say(LEVEL_WARN, "%s", text);
        return;
    }
    fprintf(stderr, "%scloche: warning:%s ", colour ? "\033[1;33m" : "", colour ? "\033[0m" : "");
    print_safe(text);
    fputc('\n', stderr);
}

static uint64_t
memory_total(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
}

/* Where the vault keeps its store (vault/store_disk.c) when that is not ~/.local/share/cloche. */
static const char *
store_folder(void)
{
    static char folder[PATH_MAX];
    const char *data = getenv("XDG_DATA_HOME");

    if (data != NULL && data[0] == '/')
        return snprintf(folder, sizeof(folder), "%s/cloche", data) < (int)sizeof(folder) ? folder : NULL;
    return geteuid() == 0 ? "/var/lib/cloche" : NULL;
}

/* For a caller without HOME (a service, a CI job): places for credentials are below it all the same. From the file
 * alone, since a static program cannot ask the system's other sources. */
static const char *
home_of_user(void)
{
    static char home[PATH_MAX];
    cleanup_file FILE *file = fopen("/etc/passwd", "re");
    const struct passwd *entry;
    size_t n;

    while (file != NULL && (entry = fgetpwent(file)) != NULL)
        if (entry->pw_uid == geteuid() && entry->pw_dir[0] == '/')
            return path_normalise(str_of(entry->pw_dir), STR_LIT(""), false, home, sizeof(home), &n) == PATH_OK
                       ? home : NULL;
    return NULL;
}

static const char *
variable(const char *name)
{
    return getenv(name);
}

int
cli_host(struct policy_host *host, struct err *err)
{
    static char cwd[PATH_MAX], state[PATH_MAX];
    const char *home = getenv("HOME");

    if (getcwd(cwd, sizeof(cwd)) == NULL)
        return err_sys(err, errno, "cli.cwd", "the working directory");
    if (cwd[0] != '/')
        return err_set(err, ERR_SYSTEM, "cli.cwd", "the working directory is not reachable from the root");
    host->cwd = cwd;
    host->account_home = home_of_user();
    host->home = home != NULL && home[0] == '/' ? home : host->account_home;
    host->variable = variable;
    host->uid = geteuid();
    host->state = state_dir_path(state, NULL) == 0 ? state : NULL;
    host->store = store_folder();
    host->memory_total = memory_total();
    return 0;
}

/* --- flags ----------------------------------------------------------------------------------------------------- */

bool
cli_has(int argc, char **argv, const char *word)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], word) == 0)
            return true;
    return false;
}

bool
cli_wants_help(int argc, char **argv)
{
    return cli_has(argc, argv, "--help") || cli_has(argc, argv, "-h");
}

int
cli_flag_at(struct cli_flag *f, int argc, char **argv, int i, struct err *err)
{
    const char *eq = strchr(argv[i], '=');
    size_t n = eq != NULL ? (size_t)(eq - argv[i]) : strlen(argv[i]);

    if (n >= sizeof(f->name))
        return err_set(err, ERR_USAGE, "cli.unknown-flag", "unknown flag %.60s...", argv[i]);
    memcpy(f->name, argv[i], n);
    f->name[n] = '\0';
    f->attached = eq != NULL;
    f->value = eq != NULL ? eq + 1 : i + 1 < argc ? argv[i + 1] : NULL;
    return 0;
}

int
cli_flag_words(const struct cli_flag *f, struct err *err)
{
    if (f->value == NULL)
        return err_set(err, ERR_USAGE, "cli.flag-value", "%s needs a value", f->name);
    return f->attached ? 1 : 2;
}

static size_t
distance(const char *a, const char *b)
{
    size_t row[66], la = strlen(a), lb = strlen(b);

    if (la > 64 || lb > 64)
        return 99;
    for (size_t j = 0; j <= lb; j++)
        row[j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t best = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[lb];
}

const char *
cli_nearest(const char *word, const char *const *known, size_t n)
{
    const char *nearest = NULL;
    size_t best = 3, typed = strlen(word), prefixes = 0;

    for (size_t i = 0; i < n; i++) {
        size_t d = distance(word, known[i]);
        if (known[i][0] == '-' && strlen(known[i]) == 2)
            continue;       /* it is near to every other letter */
        if (d < best) {
            best = d;
            nearest = known[i];
        }
    }
    /* the beginning of exactly one word is that word */
    for (size_t i = 0; nearest == NULL && typed > 2 && i < n; i++)
        prefixes += strncmp(word, known[i], typed) == 0;
    for (size_t i = 0; prefixes == 1 && i < n; i++)
        if (strncmp(word, known[i], typed) == 0)
            nearest = known[i];
    return nearest;
}

int
cli_misused(const char *code, const char *verb, const char *word, const char *const *known, struct err *err)
{
    char list[256] = "";
    const char *nearest = NULL;
    bool is = false;
    size_t n = 0, at = 0;

    for (; known[n] != NULL; n++) {
        at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", n > 0 ? ", " : "", known[n]);
        is = is || strcmp(known[n], word) == 0;
    }
    if (is)
        err_set(err, ERR_USAGE, code, "that is not how `cloche %s %s` is called", verb, word);
    else if (word[0] == '\0')
        err_set(err, ERR_USAGE, code, "`cloche %s` wants one of %s", verb, list);
    else
        err_set(err, ERR_USAGE, code, "\"%.64s\" is none of %s", word, list);
    nearest = is || word[0] == '\0' ? NULL : cli_nearest(word, known, n);
    return nearest != NULL ? err_hint(err, "did you mean `cloche %s %s`?", verb, nearest)
                           : err_hint(err, "`cloche %s --help` shows how it is called", verb);
}

static int
unknown_flag(const char *name, struct err *err)
{
    static const char *const verbs_own[] = { "--json", "--report",   "--pty",      "--no-pty", "--quiet",
                                             "--help", "--language", "--settings", "--mode" };
    const char *known[160], *nearest;
    size_t n = 0;

    for (size_t i = 0; i < sizeof(verbs_own) / sizeof(verbs_own[0]); i++)
        known[n++] = verbs_own[i];
    for (size_t i = 0; i < policy_n_flags && n < sizeof(known) / sizeof(known[0]); i++)
        known[n++] = policy_flags[i].name;
    nearest = cli_nearest(name, known, n);
    err_set(err, ERR_USAGE, "cli.unknown-flag", "unknown flag %s", name);
    return nearest != NULL ? err_hint(err, "did you mean %s? put `--` before the command's own flags", nearest)
                           : err_hint(err, "`cloche help` lists the flags; put `--` before the command's own flags");
}

/* Words that the flag at argv[i] takes; 0 for the end of the flags, -1 with @err. */
static int
flag_words(int argc, char **argv, int i, struct cli_flag *w, bool *policy_flag, cli_other_flag *other, void *ctx,
           struct err *err)
{
    const struct policy_flag *flag;
    bool builtin;
    int n;

    if (argv[i][0] != '-' || argv[i][1] == '\0' || strcmp(argv[i], "--") == 0)
        return 0;
    if (cli_flag_at(w, argc, argv, i, err) < 0)
        return -1;
    flag = policy_flag_lookup(w->name);
    builtin = strcmp(w->name, "--mode") == 0 || strcmp(w->name, "--settings") == 0;
    *policy_flag = flag != NULL || builtin;
    if (flag == NULL && !builtin) {
        n = other != NULL ? other(ctx, w->name, w->value, err) : 0;
        if (n == 0)
            return unknown_flag(w->name, err);
        if (n == 1 && w->attached)
            return err_set(err, ERR_USAGE, "cli.flag-value", "%s takes no value", w->name);
        return n == 2 && w->attached ? 1 : n;
    }
    if (builtin || flag->value != NULL)
        return cli_flag_words(w, err);
    if (w->attached)
        return err_set(err, ERR_USAGE, "cli.flag-value", "%s takes no value", w->name);
    w->value = NULL;
    return 1;
}

int
cli_policy_args_in(const char *forced, struct policy *p, enum policy_verb verb, int argc, char **argv,
                   const struct policy_host *host, cli_other_flag *other, void *ctx, struct err *err)
{
    enum policy_mode mode = MODE_STANDARD;
    const char *settings = NULL, *mode_name = NULL;
    struct cli_flag w;
    bool is_policy;
    int i, n, end;

    for (i = 1; i < argc; i += n) {
        n = flag_words(argc, argv, i, &w, &is_policy, other, ctx, err);
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        if (strcmp(w.name, "--mode") == 0)
            mode_name = w.value;
        else if (strcmp(w.name, "--settings") == 0)
            settings = w.value;
    }
    mode_name = forced != NULL ? forced : mode_name;
    end = i < argc && strcmp(argv[i], "--") == 0 ? i + 1 : i;
    if (mode_name != NULL && !policy_mode_parse(mode_name, &mode)) {
        err_set(err, ERR_USAGE, "policy.mode", "--mode \"%s\" is none of off, light, standard, max", mode_name);
        return err_hint(err, "standard is the default");
    }
    if (policy_init(p, mode, verb, host, err) < 0)
        return -1;
    if (mode_name != NULL && policy_apply_flag(p, "--mode", mode_name, host, err) < 0)
        return -1;
    if (settings != NULL && policy_load_file(p, settings, POLICY_AUTO, host, err) < 0)
        return -1;
    /* the command line has the last word, whatever its place relative to --settings */
    if (settings != NULL && mode_name != NULL && policy_apply_flag(p, "--mode", mode_name, host, err) < 0)
        return -1;
    for (i = 1; i < argc; i += n) {
        n = flag_words(argc, argv, i, &w, &is_policy, NULL, NULL, NULL);
        if (n == 0)
            break;
        if (n < 0) {
            /* not the policy's: accepted in the first pass */
            n = other(ctx, w.name, w.value, NULL);
            n = n == 2 && w.attached ? 1 : n;
            continue;
        }
        if (strcmp(w.name, "--mode") != 0 && strcmp(w.name, "--settings") != 0 &&
            policy_apply_flag(p, w.name, w.value, host, err) < 0)
            return -1;
    }
    if (preset_open(p, err) < 0 || registry_open(p, err) < 0)
        return -1;
    return policy_validate(p, err) < 0 ? -1 : end;
}

int
cli_policy_args(struct policy *p, enum policy_verb verb, int argc, char **argv, const struct policy_host *host,
                cli_other_flag *other, void *ctx, struct err *err)
{
    return cli_policy_args_in(NULL, p, verb, argc, argv, host, other, ctx, err);
}
