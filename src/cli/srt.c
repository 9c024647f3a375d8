/* cli/srt.c: `cloche srt`, and cloche under the name `srt`: the command line of Anthropic's sandbox-runtime
 *
 * Same words, settings, exit codes and messages as npm's @anthropic-ai/sandbox-runtime (0.0.83), with this engine's
 * wall. What differs is said in docs/srt.md. Its words are parsed as its own parser does: known options are taken
 * wherever they stand before "--", unknown ones belong to the command.
 */
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
#include "base/str.h"
#include "cli/cli.h"
#include "program/caller.h"
#include "program/say.h"
#include "run/session.h"
#include "wall/capture.h"

#define SRT_COMPATIBLE "0.0.83"
#define DEFAULT_TMPDIR "/tmp/claude"
#define LOST_FILE "this file's rules (its denyRead, allowRead and credential entries included)"
#define LOST_FLAG "the rules --settings asked for"

static const char default_config[] =
    "{\"network\":{\"allowedDomains\":[],\"deniedDomains\":[]},"
    "\"filesystem\":{\"denyRead\":[],\"allowRead\":[],\"allowWrite\":[],\"denyWrite\":[]}}";

struct srt_args {
    bool debug, help, version;
    const char *settings, *command, *control_fd;
    const char **words;         /* room for argc + 1 */
    size_t n_words;
};

static void
debug(const struct srt_args *a, const char *what, const char *value)
{
    const char *env = getenv("SRT_DEBUG");

    if (a->debug || (env != NULL && *env != '\0'))
        fprintf(stderr, "[SandboxDebug] %s%s\n", what, value);
}

static int
usage(void)
{
    printf("Usage: srt [options] [command...]\n\n"
           "Run commands in a sandbox with network and filesystem restrictions\n\n"
           "Arguments:\n  command                command to run in the sandbox\n\n"
           "Options:\n"
           "  -V, --version          output the version number\n"
           "  -d, --debug            enable debug logging\n"
           "  -s, --settings <path>  path to config file (default: ~/.srt-settings.json)\n"
           "  -c <command>           run command string directly (like sh -c), no escaping applied\n"
           "  --control-fd <fd>      read config updates from an inherited file descriptor >= 3\n"
           "  -h, --help             display help for command\n");
    return 0;
}

/* The option at argv[i] when it takes a value: how many words it used, 0 when it is not that option. */
static int
take_value(int argc, char **argv, int i, const char *shorter, const char *longer, const char **out)
{
    const char *arg = argv[i];
    size_t n = longer != NULL ? strlen(longer) : 0;

    if ((shorter != NULL && strcmp(arg, shorter) == 0) || (longer != NULL && strcmp(arg, longer) == 0)) {
        if (i + 1 >= argc)
            return -1;
        *out = argv[i + 1];
        return 2;
    }
    if (longer != NULL && strncmp(arg, longer, n) == 0 && arg[n] == '=') {
        *out = arg + n + 1;
        return 1;
    }
    if (shorter != NULL && strncmp(arg, shorter, 2) == 0 && arg[1] != '-') {
        *out = arg + 2;
        return 1;
    }
    return 0;
}

static int
take_option(struct srt_args *a, int argc, char **argv, int i)
{
    const char *arg = argv[i];
    int n;

    if (strcmp(arg, "-d") == 0 || strcmp(arg, "--debug") == 0)
        return a->debug = true;
    if (strcmp(arg, "-h") == 0 || strcmp(arg, "--help") == 0)
        return a->help = true;
    if (strcmp(arg, "-V") == 0 || strcmp(arg, "--version") == 0)
        return a->version = true;
    n = take_value(argc, argv, i, "-s", "--settings", &a->settings);
    if (n == 0)
        n = take_value(argc, argv, i, "-c", NULL, &a->command);
    if (n == 0)
        n = take_value(argc, argv, i, NULL, "--control-fd", &a->control_fd);
    return n;
}

static int
parse(struct srt_args *a, int argc, char **argv)
{
    bool unknown = false;

    for (int i = 1; i < argc;) {
        int n;
        if (strcmp(argv[i], "--") == 0) {
            /* after an unknown option the separator is the command's */
            for (i += unknown ? 0 : 1; i < argc; i++)
                a->words[a->n_words++] = argv[i];
            break;
        }
        n = argv[i][0] == '-' && argv[i][1] != '\0' ? take_option(a, argc, argv, i) : 0;
        if (n < 0) {
            fprintf(stderr, "error: option '%s' argument missing\n", argv[i]);
            return -1;
        }
        if (n == 0) {
            unknown |= argv[i][0] == '-' && argv[i][1] != '\0';
            a->words[a->n_words++] = argv[i++];
            continue;
        }
        i += n;
    }
    a->words[a->n_words] = NULL;
    return 0;
}

static int
srt_refuse(const char *reason, const char *lost)
{
    fprintf(stderr, "Error: %s\nRefusing to run with the built-in defaults, which would drop %s.\n", reason, lost);
    return -1;
}

static int
load(struct policy *p, const struct srt_args *a, const struct policy_host *host)
{
    struct err err = ERR_INIT;
    char path[4096], text[4200];
    struct stat st;

    if (a->settings != NULL)
        snprintf(path, sizeof(path), "%s", a->settings);
    else
        snprintf(path, sizeof(path), "%s/.srt-settings.json", host->home != NULL ? host->home : "");
    if (stat(path, &st) < 0 && errno == ENOENT) {
        snprintf(text, sizeof(text), "%s does not exist.", path);
        if (a->settings != NULL)
            return srt_refuse(text, LOST_FLAG);
        debug(a, "No config found, using default config: ", path);
        if (policy_load_bytes(p, "built-in defaults", default_config, sizeof(default_config) - 1, POLICY_SRT, host,
                              &err) == 0)
            return 0;
    } else if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0) {
        snprintf(text, sizeof(text), "%s is empty. Delete it, or put a config in it.", path);
        return srt_refuse(text, LOST_FILE);
    } else if (policy_load_file(p, path, POLICY_SRT, host, &err) == 0) {
        return 0;
    }
    if (srt_refuse(err.msg, LOST_FILE) < 0 && err.hint[0] != '\0')
        fprintf(stderr, "%s [%s]\n", err.hint, err.code);
    return -1;
}

/* The descriptor of --control-fd into *@out (0: none). It is ours alone: the command has 0 to 2. */
static int
check_control_fd(const struct srt_args *a, int *out)
{
    uint64_t fd;

    if (a->control_fd == NULL)
        return 0;
    if (!str_parse_u64(str_of(a->control_fd), 1 << 20, &fd) || fd < 3) {
        fprintf(stderr,
                "error: option '--control-fd <fd>' argument '%s' is invalid. must be an integer file descriptor >= 3 "
                "(0-2 are stdin, stdout and stderr).\n",
                a->control_fd);
        return -1;
    }
    if (io_set_cloexec((int)fd, true) < 0) {
        fprintf(stderr, "Error: --control-fd %s is not an open descriptor: %s. Refusing to run the command without the "
                "control channel it asks for.\n", a->control_fd, strerror(errno));
        return -1;
    }
    *out = (int)fd;
    return 0;
}

/* What its model takes for the temporary folder: the caller's word, or its own folder. */
static const char *
temporary_name(void)
{
    static const char *const names[] = { "CLAUDE_CODE_TMPDIR", "CLAUDE_TMPDIR" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && *value != '\0')
            return value;
    }
    return DEFAULT_TMPDIR;
}

static void
temporary_folder(struct policy *p, const struct policy_host *host)
{
    const char *name = temporary_name();
    struct err err = ERR_INIT;
    char text[4096 + sizeof("TMPDIR=")];
    struct stat st;

    /* sandbox-runtime's own temporary folder; what it holds is the commands', so it is not ours to remove */
    if (strcmp(name, DEFAULT_TMPDIR) != 0)
        ;       /* the caller's, who lets it be written or not */
    else if (mkdir(name, 0700) < 0 && errno != EEXIST)
        cli_warn("%s cannot be made: %s", name, strerror(errno));
    else if (lstat(name, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        cli_warn("%s is not a folder of yours: the command's temporary files may be seen by others", name);
    snprintf(text, sizeof(text), "TMPDIR=%s", name);
    if (policy_apply_flag(p, "--env", text, host, &err) < 0 ||
        policy_apply_flag(p, "--env", "SANDBOX_RUNTIME=1", host, &err) < 0)
        cli_warn("%s", err.msg);
}

/* Ports 80 and 443 need none of these. Clients of other ports do, and a caller's own proxy cannot be reached inside.
 * The usual four (http_proxy ...) every sandbox with an allowlist gets. */
static void
proxies(struct policy *p, const struct policy_host *host)
{
    static const char *const urls[] = {
        "ALL_PROXY", "all_proxy", "FTP_PROXY", "ftp_proxy", "GRPC_PROXY", "grpc_proxy", "DOCKER_HTTP_PROXY",
        "DOCKER_HTTPS_PROXY" };
    struct err err = ERR_INIT;
    char text[128];

    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        snprintf(text, sizeof(text), "%s=http://%s:%d", urls[i], CAPTURE_SERVICE_ADDRESS, CAPTURE_PROXY_PORT);
        if (policy_apply_flag(p, "--env", text, host, &err) < 0)
            cli_warn("%s", err.msg);
    }
    snprintf(text, sizeof(text), "RSYNC_PROXY=%s:%d", CAPTURE_SERVICE_ADDRESS, CAPTURE_PROXY_PORT);
    if (policy_apply_flag(p, "--env", text, host, &err) < 0)
        cli_warn("%s", err.msg);
}

static int
exit_code(const struct session_result *r)
{
    if (r->signal == 2 || r->signal == 15)
        return 0;
    if (r->signal != 0) {
        fprintf(stderr, "Process killed by signal: SIG%s\n", report_signal(r->signal));
        return 1;
    }
    return r->exit_code;
}

static int
run(struct policy *p, const struct srt_args *a, int control_fd)
{
    const char *const shell[] = { "bash", "-c", a->command, NULL };
    struct session s = { .policy = p, .argv = a->command != NULL ? shell : a->words, .control_fd = control_fd };
    static struct session_result result;    /* large, and there is one */
    struct session_result *r = &result;
    struct err err = ERR_INIT;
    int code = 1;

    s.io = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) ? SESSION_PTY : SESSION_PASS;
    if (session_run(&s, r, &err) == 0)
        code = exit_code(r);
    else
        fprintf(stderr, "Error: %s\n%s%s[%s]\n", err.msg, err.hint, err.hint[0] != '\0' ? " " : "", err.code);
    session_result_free(r);
    return code;
}

int
cmd_srt(int argc, char **argv)
{
    struct srt_args a = { .words = calloc((size_t)argc + 1, sizeof(char *)) };
    cleanup_free const char **words = a.words;
    struct policy_host host;
    struct policy p = { 0 };
    struct err err = ERR_INIT;
    int code = 1, control_fd = 0;

    if (words == NULL || cli_host(&host, &err) < 0 || parse(&a, argc, argv) < 0)
        return 1;
    if (a.version) {
        printf(SRT_COMPATIBLE "\n");
        return 0;
    }
    if (a.help)
        return usage();
    if (policy_init(&p, MODE_STANDARD, VERB_SRT, &host, &err) < 0) {
        fprintf(stderr, "Error: %s\n", err.msg);
        return 1;
    }
    if (load(&p, &a, &host) < 0 || check_control_fd(&a, &control_fd) < 0) {
        policy_free(&p);
        return 1;
    }
    for (size_t i = 0; i < p.notes.n; i++)
        cli_warn("%s", p.notes.v[i].value);
    if (a.command != NULL)
        debug(&a, "Command string mode (-c): ", a.command);
    else if (a.n_words > 0)
        debug(&a, "Original command: ", a.words[0]);
    if (a.command == NULL && a.n_words == 0) {
        fprintf(stderr, "Error: No command specified. Use -c <command> or provide command arguments.\n");
    } else {
        temporary_folder(&p, &host);
        /* what is closed now may be opened over it */
        if (control_fd > 0 && p.network.v == NETWORK_NONE)
            p.network.v = NETWORK_ALLOWLIST;
        if (p.network.v == NETWORK_ALLOWLIST)
            proxies(&p, &host);
        if (policy_validate(&p, &err) < 0)
            fprintf(stderr, "Error: %s\n%s [%s]\n", err.msg, err.hint, err.code);
        else
            code = run(&p, &a, control_fd);
    }
    policy_free(&p);
    return code;
}
