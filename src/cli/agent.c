/* cli/agent.c: cloche agent: an agent's program in this project, by its profile (docs/agents.md)
 *
 * A profile becomes flags of `cloche run`, before the caller's, which have the last word; what no flag says (the home
 * that is kept, the names that are protected) are facts of the caller (struct policy_host).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "cli/agent_git.h"
#include "cli/cli.h"
#include "cli/run.h"
#include "program/agent_home.h"
#include "program/agents.h"
#include "program/caller.h"
#include "program/drop_in.h"
#include "program/installed.h"
#include "program/logins.h"
#include "program/say.h"
#include "program/state.h"
#include "program/toolchains.h"
#include "program/words.h"
#include "run/args.h"

#define WORDS_MAX 1024

/* A command line that is made. */
struct line {
    char *v[WORDS_MAX + 1];
    int n;
    bool broken;
};

static void
line_free(struct line *l)
{
    for (int i = 0; i < l->n; i++)
        free(l->v[i]);
}

static void put(struct line *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void
put(struct line *l, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (l->n >= WORDS_MAX || vasprintf(&l->v[l->n], fmt, ap) < 0)
        l->broken = true;
    else
        l->v[++l->n] = NULL;
    va_end(ap);
}

static void
put_each(struct line *l, const char *flag, const struct agent_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        if (flag != NULL)
            put(l, "%s", flag);
        put(l, "%s", list->v[i]);
    }
}

static bool
host_has(const char *home, const char *relative, bool *folder)
{
    char path[PATH_MAX];
    struct stat st;

    if (home == NULL || snprintf(path, sizeof(path), "%s/%s", home, relative) >= PATH_MAX || stat(path, &st) < 0)
        return false;
    *folder = S_ISDIR(st.st_mode);
    return *folder || S_ISREG(st.st_mode);
}

/* What of the toolchains is not shown for the program itself. */
static void
put_tools(struct line *l, const struct installed *program, const struct toolchains *tools)
{
    for (size_t i = 0; i < tools->n_shown; i++) {
        bool there = false;

        for (size_t k = 0; k < program->n_shown; k++)
            there = there || strcmp(program->shown[k], tools->shown[i]) == 0;
        if (there)
            continue;
        put(l, "--bind");
        put(l, "%s", tools->shown[i]);
    }
    for (size_t i = 0; i < tools->n_env; i++) {
        put(l, "--env");
        put(l, "%s", tools->env[i]);
    }
}

/* Whoever keeps a login in what is shown keeps it. */
static void
put_logins(struct line *l, const struct installed *program, const struct toolchains *tools)
{
    cleanup_logins struct logins logins = { .n = 0 };
    int rc = 0;

    for (size_t i = 0; i < program->n_shown && rc == 0; i++)
        rc = logins_find(&logins, program->shown[i], NULL);
    for (size_t i = 0; i < tools->n_shown && rc == 0; i++)
        rc = logins_find(&logins, tools->shown[i], NULL);
    for (size_t i = 0; i < logins.n; i++) {
        put(l, "--deny-read");
        put(l, "%s", logins.v[i]);
    }
    l->broken |= rc < 0;
}

/* The flags of the profile. */
static void
put_flags(struct line *l, const struct agent *a, const struct installed *program, const struct toolchains *tools,
          const char *home)
{
    bool folder;

    put(l, "--workspace");
    put(l, ".");
    put(l, "--keep-path");
    put_each(l, "--allow-domain", &a->hosts);
    put_each(l, "--secret", &a->secrets);
    for (size_t i = 0; i < program->n_shown; i++) {
        put(l, "--bind");
        put(l, "%s", program->shown[i]);
    }
    for (size_t i = 0; i < a->show.n; i++)
        if (host_has(home, a->show.v[i], &folder)) {
            put(l, "--bind");
            put(l, "%s/%s:" POLICY_HOME "/%s", home, a->show.v[i], a->show.v[i]);
        }
    put_tools(l, program, tools);
    put_logins(l, program, tools);
    if (program->folders[0] != '\0' || tools->folders[0] != '\0') {
        put(l, "--env");
        put(l, "PATH=%s%s" POLICY_PATH, program->folders, tools->folders);
    }
    for (size_t i = 0; i < a->env.n; i++) {
        put(l, "--env");
        put(l, "%s%s%s", a->env.name[i], a->env.value[i] != NULL ? "=" : "",
            a->env.value[i] != NULL ? a->env.value[i] : "");
    }
}

/* Its home with a place for all that is shown in it. */
static int
prepare_home(const struct agent *a, const char *home, struct err *err)
{
    cleanup_close int fd = agent_home_open(a->name, err);
    bool folder;

    if (fd < 0)
        return -1;
    for (size_t i = 0; i < a->show.n; i++) {
        if (!host_has(home, a->show.v[i], &folder))
            agent_home_unplace(fd, a->show.v[i]);
        else if (agent_home_place(fd, a->show.v[i], folder, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < a->seed.n; i++)
        if (agent_home_seed(fd, a->seed.name[i], a->seed.value[i], err) < 0)
            return -1;
    return 0;
}

static int
find_program(const struct agent *a, const struct policy_host *host, struct installed *out, struct err *err)
{
    if (installed_find(a->program, a->find.v, host->home, host->cwd, out, err) == 0)
        return 0;
    return err_is(err, "agent.not-installed") && a->install[0] != '\0' ? err_hint(err, "%s", a->install) : -1;
}

static const struct verb agent_verb;

/* Whether the caller chose what of the host it has, or wants to hear nothing. */
static bool
is_told(char **argv, int at)
{
    static const char *const flags[] = { "--workspace", "--bind", "--quiet", "--no-workspace" };

    for (int i = 1; i < at; i++)
        for (size_t k = 0; k < ARRAY_LEN(flags); k++)
            if (strncmp(argv[i], flags[k], strlen(flags[k])) == 0)
                return true;
    return false;
}

/* `cloche agent [flags] NAME [ARG...]`, NAME at argv[@at]. */
static int
start(int argc, char **argv, int at, const char *toolchains, struct err *err)
{
    __attribute__((cleanup(agents_free))) struct agents all = { .n = 0 };
    __attribute__((cleanup(line_free))) struct line l = { .n = 0 };
    static struct installed program;
    static struct toolchains tools;
    struct policy_host host;
    char kept[PATH_MAX];
    const struct agent *a;

    if (cli_host(&host, err) < 0 || agents_load(&all, host.home, err) < 0 ||
        (a = agents_find(&all, argv[at], err)) == NULL || find_program(a, &host, &program, err) < 0 ||
        toolchains_find(toolchains != NULL ? toolchains : "auto", host.home, host.cwd, &tools, err) < 0 ||
        agent_home_path(a->name, kept, err) < 0 || prepare_home(a, host.home, err) < 0)
        return -1;
    host.kept_home = kept;
    host.protect = a->protect.v;
    put(&l, "%s", argv[0]);
    put_flags(&l, a, &program, &tools, host.home);
    for (int i = 1; i < at; i++)
        put(&l, "%s", argv[i]);
    put(&l, "--");
    put(&l, "%s", program.program);
    put_each(&l, NULL, &a->args);
    for (int i = at + 1; i < argc; i++)
        put(&l, "%s", argv[i]);
    if (l.broken)
        return err_set(err, ERR_LIMIT, "agent.words", "more than %d words, or out of memory", WORDS_MAX);
    if (!is_told(argv, at))
        agent_git_hint(host.cwd, host.home, a->name);
    return run_command(&agent_verb, l.n, l.v, &host);
}

/* --- ls, show, new ------------------------------------------------------------------------------------------------ */

static json_t *
texts(const struct agent_list *list)
{
    json_t *out = json_array();

    for (size_t i = 0; i < list->n; i++)
        json_array_append_new(out, cli_json_text(list->v[i]));
    return out;
}

static json_t *
row(const struct agent *a, const struct policy_host *host, struct installed *program)
{
    bool there = installed_find(a->program, a->find.v, host->home, host->cwd, program, NULL) == 0;
    char kept[PATH_MAX] = "";

    (void)agent_home_path(a->name, kept, NULL);
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", a->name, "about", cli_json_text(a->about),
                     "profile", cli_json_text(a->file), "program",
                     there ? cli_json_text(program->program) : json_null(), "install", cli_json_text(a->install),
                     "home", cli_json_text(kept), "hosts", texts(&a->hosts), "protect", texts(&a->protect));
}

static int
list(void *options, const struct verb_words *w, struct err *err)
{
    __attribute__((cleanup(agents_free))) struct agents all = { .n = 0 };
    const struct run_options *o = options;
    static struct installed program;
    struct policy_host host;
    json_t *rows = json_array();

    (void)w;
    if (cli_host(&host, err) < 0 || agents_load(&all, host.home, err) < 0) {
        json_decref(rows);
        return -1;
    }
    for (size_t i = 0; i < all.n; i++)
        json_array_append_new(rows, row(&all.rows[i], &host, &program));
    if (o->json)
        return cli_json(json_pack("{s:i, s:o}", "version", 1, "agents", rows), JSON_COMPACT);
    for (size_t i = 0; i < all.n; i++) {
        const char *path = json_string_value(json_object_get(json_array_get(rows, i), "program"));
        printf("%-12s  %-14s  %s\n", all.rows[i].name, path != NULL ? "installed" : "not installed",
               all.rows[i].about);
    }
    json_decref(rows);
    return 0;
}

/* As a shell reads it. */
static void
print_word(const char *word)
{
    bool plain = word[0] != '\0';

    for (const char *c = word; *c != '\0'; c++)
        plain = plain && (strchr("%+,-./:=@_~", *c) != NULL || (*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') ||
                          (*c >= 'a' && *c <= 'z'));
    if (plain) {
        printf(" %s", word);
        return;
    }
    printf(" '");
    for (const char *c = word; *c != '\0'; c++)
        printf(*c == '\'' ? "'\\''" : "%c", *c);
    printf("'");
}

static void
print_line(const struct agent *a, const struct installed *program, const struct policy_host *host)
{
    static struct toolchains tools;
    __attribute__((cleanup(line_free))) struct line l = { .n = 0 };

    (void)toolchains_find("auto", host->home, host->cwd, &tools, NULL);
    put_flags(&l, a, program, &tools, host->home);
    put(&l, "--");
    put(&l, "%s", program->program[0] != '\0' ? program->program : a->program);
    put_each(&l, NULL, &a->args);
    printf("as        cloche run");
    for (int i = 0; i < l.n; i++)
        print_word(l.v[i]);
    printf("\n");
}

static int
show(void *options, const struct verb_words *w, struct err *err)
{
    __attribute__((cleanup(agents_free))) struct agents all = { .n = 0 };
    const struct run_options *o = options;
    static struct installed program;
    struct policy_host host;
    const struct agent *a;
    json_t *said;

    if (cli_host(&host, err) < 0 || agents_load(&all, host.home, err) < 0 ||
        (a = agents_find(&all, w->v[0], err)) == NULL)
        return -1;
    said = row(a, &host, &program);
    if (o->json) {
        json_object_set_new(said, "version", json_integer(1));
        return cli_json(said, JSON_COMPACT);
    }
    printf("agent     %s%s%s\n", a->name, a->about[0] != '\0' ? ": " : "", a->about);
    printf("profile   %s\n", a->file);
    if (json_is_null(json_object_get(said, "program")))
        printf("program   %s, which is not installed%s%s\n", a->program, a->install[0] != '\0' ? ": " : "", a->install);
    else
        printf("program   %s\n", program.program);
    printf("home      %s\n", json_string_value(json_object_get(said, "home")));
    for (size_t i = 0; i < a->protect.n; i++)
        printf("%s%s\n", i == 0 ? "protects  " : "          ", a->protect.v[i]);
    print_line(a, &program, &host);
    json_decref(said);
    return 0;
}

static const char blank[] =
    "# A profile for `cloche agent`: docs/agents.md says what each key means.\n"
    "about: \"\"                      # one line\n"
    "program: NAME                  # its name on your PATH, or an absolute path\n"
    "install: \"\"                    # how to get it, for whoever has not\n"
    "hosts: []                      # as for --allow-domain: [api.example.org]\n"
    "show: []                       # of your home, read-only in the agent's: [~/.config/NAME/config.toml]\n"
    "protect: []                    # what it must not write, in its home and in the project: [.NAME/hooks]\n"
    "args: []                       # before yours\n"
    "env: {}\n";

/* The text of a new profile: of the one that has the name, or a blank one. */
static int
first_text(const struct agents *all, const char *name, struct buf *text, struct err *err)
{
    cleanup_close int fd = -1;

    for (size_t i = 0; i < all->n; i++) {
        if (strcmp(all->rows[i].name, name) != 0)
            continue;
        fd = open(all->rows[i].file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        return fd < 0 || io_read_all(fd, text) < 0 ? err_sys(err, errno, "agent.read", "%s", all->rows[i].file) : 0;
    }
    for (const char *line = blank; *line != '\0'; line = strchrnul(line, '\n') + 1) {
        int n = (int)(strchrnul(line, '\n') - line);
        if (strncmp(line, "program: NAME", 13) == 0)
            buf_printf(text, "program: \"%s\"%*s%.*s\n", name, strlen(name) < 18 ? 20 - (int)strlen(name) : 2, "",
                       n - 31, line + 31);      /* in quotes "true" is a text too */
        else
            buf_printf(text, "%.*s\n", n, line);
    }
    return buf_ok(text) ? 0 : err_set(err, ERR_SYSTEM, "memory", "out of memory");
}

static int
new(void *options, const struct verb_words *w, struct err *err)
{
    __attribute__((cleanup(agents_free))) struct agents all = { .n = 0 };
    cleanup_buf struct buf text = BUF_INIT(AGENT_FILE_MAX);
    cleanup_close int dir = -1, fd = -1;
    char folder[PATH_MAX], file[NAME_MAX + 1];
    struct policy_host host;

    (void)options;
    if (!agent_name_fits(str_of(w->v[0]))) {
        err_set(err, ERR_USAGE, "agent.name", "\"%.64s\" cannot name an agent", w->v[0]);
        return err_hint(err, "lower-case letters, digits and \"+-_#\", a letter first");
    }
    if (cli_host(&host, err) < 0 || agents_load(&all, host.home, err) < 0 ||
        first_text(&all, w->v[0], &text, err) < 0)
        return -1;
    if (drop_in_own("agents.d", host.home, folder) < 0)
        return err_set(err, ERR_USAGE, "agent.read", "neither XDG_CONFIG_HOME nor HOME says where profiles are");
    dir = state_make_path(folder);
    snprintf(file, sizeof(file), "%s.yaml", w->v[0]);
    fd = dir < 0 ? -1 : openat(dir, file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0 && errno == EEXIST)
        return err_set(err, ERR_USAGE, "agent.exists", "%s/%s is there already: edit it", folder, file);
    if (fd >= 0 && io_write_full(fd, text.p, text.n) < 0) {
        err_sys(err, errno, "agent.write", "%s/%s", folder, file);
        (void)unlinkat(dir, file, 0);       /* half a profile would be refused, and all others with it */
        return -1;
    }
    if (fd < 0)
        return err_sys(err, errno, "agent.write", "%s/%s", folder, file);
    printf("%s/%s\n", folder, file);
    return 0;
}

static const struct verb_form forms[] = {
    { NULL, "[flags] NAME [ARG...]", .run = NULL },
    { "ls", "ls [--json]", 0, 0, .run = list },
    { "show", "show [--json] NAME", 1, 1, "which agent?", "`cloche agent ls` shows them", show },
    { "new", "new NAME", 1, 1, "what is it called?", "cloche agent new NAME", new },
};

static const struct verb agent_verb = {
    .name = "agent", VERB_FORMS(forms), .flags = run_flags + 1, .n_flags = RUN_FLAGS - 1, .more = run_policy_help,
    .needs_word = true, .misused = "cli.agent", .surplus = "cli.operand",
    .about = "Start an agent's program in a sandbox, in this project, with a home of its own, as its profile says\n"
             "(man cloche-agent). Flags stand before NAME and have the last word; what follows is the program's.",
    .after = RUN_EXIT_HELP,
};

int
cmd_agent(int argc, char **argv)
{
    struct run_options o = { .pty = -1 };
    struct err err = ERR_INIT;
    int at = cli_policy_flags_end(argc, argv, &agent_verb, &o, &err), code;

    if (at < 0)
        return cli_fail(&err, cli_asks_json(argc, argv, true));
    if (o.help || at >= argc || strcmp(argv[at], "ls") == 0 || strcmp(argv[at], "show") == 0 ||
        strcmp(argv[at], "new") == 0)
        return verb_main(&agent_verb, &o, argc, argv);
    code = start(argc, argv, at, o.toolchains, &err);
    return code < 0 ? cli_fail(&err, o.json) : code;
}
