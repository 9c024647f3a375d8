/* policy/policy.h: what one sandbox may do
 *
 * One struct, filled in layers (mode preset, then settings file, then command line), each layer overriding the
 * one before, then validated once and treated as immutable. Every value remembers where it came from, so that
 * `cloche policy show` and `cloche why` can say so. This layer never touches the OS beyond reading the settings
 * file that it was given: paths are kept as written (with `~` and relative paths made absolute against the
 * facts in struct policy_host) and globs are expanded by the engine, in the tree that they apply to.
 *
 * Grammar of every key, defaults and limits: docs/policy.md.
 */
#ifndef CLOCHE_POLICY_POLICY_H
#define CLOCHE_POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

#define CONTAINER_PREFIX_MAX 63
#define LABEL_MAX 255           /* of a security module's name */
#define POLICY_FILE_MAX   (1024 * 1024)     /* bytes of a settings file; larger is refused */
#define POLICY_LIST_MAX   4096              /* entries of any one list */
#define POLICY_PATH_MAX   4096
#define POLICY_ASK_MS     60000             /* of ask_ms by default */
#define POLICY_STRING_MAX 65536             /* bytes of one string value */
#define POLICY_HOME "/home/agent"           /* inside, under a private root */
#define POLICY_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"    /* the same */
#define POLICY_METHODS_MAX 16               /* of one rule about a host */
#define POLICY_TOOLS_MAX 32                 /* the same */
#define POLICY_NAME_SERVERS_MAX 8
#define POLICY_STRIP_MAX 64           /* names of fields, each of at most */
#define POLICY_STRIP_NAME_MAX 64      /* bytes */
#define POLICY_TCP_PORTS_MAX 32             /* that rules about hosts name, beside the usual ones */

/* Which defaults the limits take: docs/policy.md "Limits". */
enum policy_verb { VERB_RUN, VERB_CODE, VERB_SHELL, VERB_SRT };

enum policy_mode { MODE_OFF, MODE_LIGHT, MODE_STANDARD, MODE_MAX };

/* Which tree the sandbox sees. */
enum policy_view {
    VIEW_PRIVATE,       /* a private root: read-only system, own home, /workspace */
    VIEW_HOST,          /* the host's tree at its own paths, read-only but for allow_write (SRT semantics) */
};

/* What of the host's system folders a private root has. */
enum contents_kind {
    CONTENTS_HOST,      /* all of them */
    CONTENTS_MINIMAL,   /* no packages of languages, no clients of networks, but what @with names */
};

enum workspace_kind { WORKSPACE_TMPFS, WORKSPACE_RW, WORKSPACE_RO, WORKSPACE_COW };

/* What at least stands between a sandbox and the host's kernel; each is more than the one before it. */
enum policy_boundary {
    BOUNDARY_PROCESS,   /* walls around processes: the host's kernel answers their system calls */
    BOUNDARY_KERNEL,    /* another kernel answers them, which is a program of the host's (gVisor) */
    BOUNDARY_VM,        /* another kernel, in a machine of its own */
};

enum network_kind { NETWORK_NONE, NETWORK_ALLOWLIST, NETWORK_HOST };

/* What may be done where the host lacks a wall, each with what stands before it. What depends on the project, or on
 * something that can be used up, is refused whatever this says (run/fallback.h). */
enum fallback_kind {
    FALLBACK_REFUSE,
    FALLBACK_WARN,      /* without the one promise that is named, or in a weaker mode, with a warning */
    FALLBACK_BARE,      /* "no-sandbox": at last without any wall */
};

/* Whether a run is written into the audit record (docs/audit.md). */
enum record_kind {
    RECORD_OFF,
    RECORD_TRY,             /* where it cannot be written there is a warning */
    RECORD_REQUIRED,        /* nothing begins, and nothing goes on, that cannot be written */
};

/* Where a value came from, most specific last. */
enum origin_kind { ORIGIN_DEFAULT, ORIGIN_MODE, ORIGIN_FILE, ORIGIN_FLAG, ORIGIN_BUILTIN };

struct origin {
    enum origin_kind kind;
    const char *name;   /* file path, or flag ("--memory"), or preset ("standard"); owned by the policy's arena */
    unsigned line;      /* 1-based line in a file; 0 when not from a file */
};

struct policy_string {              /* a scalar string; p == NULL means not set */
    char *p;
    struct origin from;
};

/* Narrows a rule about a host to some requests. */
struct policy_scope {
    char *methods[POLICY_METHODS_MAX];  /* "GET" */
    size_t n_methods;                   /* 0: every method */
    char *path;                         /* of url_path_pattern() (match/url_path.h); NULL: every path */
    char *tools[POLICY_TOOLS_MAX];      /* patterns of match/tool.h for what may be called of an MCP server */
    size_t n_tools;                     /* 0: the rule is none about MCP */
};

/* One entry of a list of strings (paths, domains, names). */
struct policy_entry {
    char *value;        /* absolute, lexically normalised for path lists; a glob unless @literal */
    char *written;      /* as the user wrote it, for messages */
    bool literal;       /* no glob characters are special */
    bool absent;        /* in a plan: a built-in place that was looked for and is not there */
    bool own;           /* of @credentials: cloche's own folder, which no rule opens */
    const struct policy_scope *scope;   /* of a host; NULL: every request */
    struct origin from;
};

struct policy_list {
    struct policy_entry *v;
    size_t n;
    struct origin from; /* of the list as a whole (an empty list that was written is not an absent one) */
    bool set;
};

struct policy_bind {
    char *source;       /* absolute host path */
    char *dest;         /* absolute path inside */
    bool writable;
    bool own;           /* struct policy_host's @kept_home: in cloche's own folder, and made for it */
    struct origin from;
};

struct policy_env {
    char *name;
    char *value;        /* NULL: pass the host's value, if it has one */
    struct origin from;
};

/* A secret of the vault that the sandbox may use (docs/secrets.md); never a value. */
struct policy_secret {
    char *name;
    char *binding;      /* built-in binding; NULL: as it is stored */
    char *add;          /* header that is added to its requests, "NAME: TEXT {}"; NULL: as it is stored */
    char *env;          /* variable for the placeholder; NULL: as it is stored, none where a header is added */
    struct origin from;
};

/* A file inside that holds placeholders, in memory, for this run only (docs/secrets.md). */
struct policy_secret_file {
    char *path;         /* inside, absolute */
    char *text;         /* as policy/secret_text.h reads it; NULL: it is in @template */
    char *template;     /* absolute host path; NULL: @text */
    struct origin from;
};

struct policy_u64 {
    uint64_t v;         /* 0 means "no limit" for limits */
    struct origin from;
};

struct policy_bool {
    bool v;
    struct origin from;
};

struct policy_limits {
    struct policy_u64 memory;       /* bytes */
    struct policy_u64 cpu_milli;    /* thousandths of one CPU */
    struct policy_u64 pids;
    struct policy_u64 disk;         /* bytes of tmpfs: /, /tmp, home and a tmpfs /workspace together; also the cap of
                                     * a cow upper where it can be enforced */
    struct policy_u64 time_ms;      /* wall clock, then SIGTERM */
    struct policy_u64 grace_ms;     /* between SIGTERM and SIGKILL */
    struct policy_u64 output;       /* bytes of stdout and of stderr, each */
    struct policy_u64 nofile;       /* RLIMIT_NOFILE */
};

struct policy {
    struct { enum policy_mode v; struct origin from; } mode;
    struct { enum policy_view v; struct origin from; } view;
    struct { enum contents_kind v; struct origin from; } contents;     /* by default the verb decides: preset.c */
    struct policy_list with;                /* names of policy_with_names */
    struct { enum fallback_kind v; struct origin from; } fallback;
    struct { enum record_kind v; struct origin from; } audit;
    struct policy_string engine;            /* "auto", or one of struct policy_host's */
    struct policy_string runtime;           /* "auto", or a program that the engine has make the wall */
    struct { enum policy_boundary v; struct origin from; } boundary;
    struct policy_list agent_engines;       /* engines and runtimes that an agent's sandbox of cloche serve may name */
    struct policy_string image;             /* an image of the store whose files are the system; as it is written */
    struct policy_string container_prefix;  /* of the name of the container that it runs in; NULL: the engine's own */
    struct policy_string fallback_url;      /* guidance shown in the fallback warning */

    struct {
        enum workspace_kind kind;
        char *dir;                          /* absolute host directory; NULL for WORKSPACE_TMPFS */
        bool kind_given;                    /* the kind was written, not taken by default (rw) */
        bool own;                           /* a volume: in cloche's own folder, and made for it */
        char *at;                           /* its path inside, settled; NULL: see policy_workspace_at() (place.h) */
        struct origin from;
    } workspace;
    const char *fill;                       /* a folder of cloche's own with files that the sandbox's own folders begin
                                             * with (ENGINE_PLACES); borrowed, NULL: they begin empty */
    struct policy_bool keep_path;           /* the workspace lies inside where it lies outside */
    struct policy_string settings;          /* the settings file as it was named, absolute; NULL: none */
    struct policy_string workdir;           /* cwd inside; default /workspace (private), the caller's cwd (host view) */
    struct policy_bind *binds;
    size_t n_binds;

    struct policy_list deny_read;
    struct policy_list allow_read;          /* re-opens below deny_read */
    struct policy_list allow_write;
    struct policy_list deny_write;          /* beats allow_write */
    struct policy_list protect;             /* write-deny names (".git/hooks"): plain relative names, closed with all
                                             * below them at the top of each writable host tree, there or not, and
                                             * deeper down where they exist (@protect_depth). BUILTIN, or added by the
                                             * user: docs/policy.md lists them */
    struct policy_list led;                 /* in an engine's rules: places of the host that protected ones lead to */
    struct policy_list credentials;         /* credential places (absolute host paths), BUILTIN: unreadable unless
                                             * allow_read names that very place or one below it */
    struct policy_bool allow_git_config;
    struct policy_bool deny_hard_links;     /* files of bound folders that have names elsewhere too are unreadable. Off:
                                             * they can be read; writing to them makes a copy either way */
    struct policy_u64 protect_depth;        /* how deep below a writable tree existing protected names are searched
                                             * (SRT mandatoryDenySearchDepth) */
    struct policy_bool read_only_root;
    struct policy_bool private_docker;  /* a Docker Engine in the machine */

    struct policy_list unix_sockets;        /* allowed by path */
    struct policy_bool all_unix_sockets;

    struct {
        enum network_kind v;
        struct origin from;
    } network;
    struct policy_list allow_domains;
    struct policy_list deny_domains;
    struct policy_string preset;            /* "ci", "development": as for @registries (hosts/preset.h) */
    struct policy_list registries;          /* "npm" ...: hosts that whoever fills the policy asks clients for, and
                                             * adds with policy_allow_host before policy_validate */
    struct policy_bool ask;                 /* what no rule names is asked about instead of refused */
    struct policy_u64 ask_ms;               /* how long a connection waits for the answer; then it is refused */
    struct policy_list publish;             /* ports that the host reaches, as publish_format() writes them */
    struct policy_list host_ports;          /* of the host's loopback, that the command reaches; decimal */
    struct policy_bool allow_local_binding;
    struct {                                /* asked for everything that leaves; URLs as match/proxy.h reads them */
        struct policy_string http;          /* plain HTTP */
        struct policy_string https;         /* everything else; not set: @http does that too */
        struct policy_string no_proxy;      /* hosts that are reached directly */
    } parent_proxy;
    struct policy_bool open_tls;            /* cloche-egress opens TLS to every host, but to @keep_tls */
    struct policy_list keep_tls;            /* host patterns */
    struct policy_bool refuse_opaque;       /* connections that it does not look into do not pass */
    struct policy_bool refuse_moving;       /* requests whose path means another one once resolved (match/url_path.h) */
    struct policy_list strip_headers;       /* fields that answers lose on the way in */
    struct policy_list name_servers;        /* addresses, asked in place of the host's */
    struct policy_list extra_ca;            /* files of certificates (PEM) that are trusted beside the host's own: by
                                             * cloche-egress where it opens TLS, and by programs inside */
    struct policy_secret *secrets;
    size_t n_secrets;
    struct policy_secret_file *secret_files;
    size_t n_secret_files;
    const struct str *run_files;            /* what @secret_files hold in this run, one for each; NULL: nothing yet. Set
                                             * after validation by who starts the vault; borrowed */
    const char *run_ca;                     /* the certificate (PEM) of the CA that TLS is opened with in this run;
                                             * NULL: none is. Set after validation by who starts the vault; borrowed */

    struct policy_limits limits;

    struct policy_env *env;
    size_t n_env;
    struct policy_bool env_inherit;         /* start from the caller's environment (SRT) instead of an empty one */
    struct policy_list env_deny;            /* names removed even when inherited or passed */
    struct { uint32_t uid, gid; struct origin from; } user;     /* as seen inside; never 0 */
    struct policy_string hostname;

    struct policy_bool nested_userns;       /* SRT allowNestedUserNamespaces */
    struct policy_bool ptrace;              /* debuggers inside; standard true, max false */
    struct policy_list allow_calls;         /* system calls by name, beside the mode's list (match/calls.h) */
    struct policy_list deny_calls;          /* ... that no command may make */
    struct policy_string apparmor;          /* the profile that everything inside runs under; not set: the caller's */
    struct policy_string selinux;           /* the same, a security context */

    struct policy_list notes;               /* what a lenient loader left out, as sentences for people (@value) */

    bool denials_add;                       /* while it is loaded: denials of a layer are added to those below it */
    bool srt;                               /* filled from SRT settings: messages and host dialect follow SRT */
    enum policy_verb verb;                  /* as given to policy_init */
    char *home;                             /* the facts of struct policy_host that validation and `why` need */
    char *cwd;
    char *store;        /* of the vault: struct policy_host */
    char *kept_home;    /* the same */
    char *images;       /* the folder of the images, in its @state; NULL: none is known */
    const char *(*home_of_owner)(const char *path);
    uint64_t memory_total;
    const char *const *engines;
    void *arena;                            /* owns every string above */
};

/* The facts about the caller that paths and presets depend on; filled by cli, or by a test. */
struct policy_host {
    const char *home;           /* absolute; NULL when unknown: `~` is then refused */
    const char *cwd;            /* absolute */
    const char *state;          /* absolute: where cloche keeps its own state, closed like a place for credentials; or
                                 * NULL */
    const char *store;          /* the vault's folder, when it is not below home as usual; absolute, or NULL */
    const char *kept_home;      /* a folder in @state that is the home inside, and may be written; absolute, or NULL */
    const char *const *protect; /* names that are protected like the built-in ones, ended by NULL; NULL: none */
    const char *account_home;   /* of the caller's account, absolute and normal, where @home is another one; or NULL */
    const char *(*home_of_owner)(const char *path);     /* of the account whose @path is, absolute, valid until the next
                                                         * call; NULL: none is known. For root, whose sandboxes may
                                                         * become that user; for others NULL */
    const char *(*variable)(const char *name);  /* the caller's environment, which may move places of credentials; NULL:
                                                 * not asked, nor is @uid */
    uint32_t uid;
    uint64_t memory_total;      /* bytes; 0 unknown */
    const char *const *engines; /* names of those that there are, the one first that `auto` takes, ended by NULL; they
                                 * stay. NULL: none can be named */
};

/* @p becomes the preset of @mode for @verb. 0 or -1 with @err (out of memory). Free with policy_free. */
int policy_init(struct policy *p, enum policy_mode mode, enum policy_verb verb, const struct policy_host *host,
                struct err *err);
/* Those of @p's protected names that are not in every policy: a settings file's, and an agent's. A list ended by NULL
 * that the caller frees; the names are @p's. NULL: no memory. */
const char **policy_protect_added(const struct policy *p);
void policy_free(struct policy *p);      /* harmless on one that is all zero, and twice */
#define cleanup_policy __attribute__((cleanup(policy_free)))

/* Which language a settings file is written in; AUTO decides by name and content (see docs/policy.md). */
enum policy_format { POLICY_AUTO, POLICY_YAML, POLICY_JSON, POLICY_SRT };

/* Overlay the settings file @path, or what standard input holds ("-"). A `mode:` in the file re-bases on that preset
 * first, keeping flags for later.
 * Unknown or duplicate keys, wrong types, an empty or unreadable file: refused, naming file, line, key and fix. */
int policy_load_file(struct policy *p, const char *path, enum policy_format format, const struct policy_host *host,
                     struct err *err);
/* The same on bytes (fuzzed; @name is used in messages). */
int policy_load_bytes(struct policy *p, const char *name, const void *data, size_t n, enum policy_format format,
                      const struct policy_host *host, struct err *err);

/* Apply one command line flag, e.g. ("--memory", "512m"), ("--workspace", "src:cow"), ("--read-only-root", NULL).
 * policy_flag_lookup tells a verb's argument parser which flags exist and whether they take a value; policy_flag_next
 * lists them, from NULL to NULL. They are rows of the table in spec.h. */
struct policy_flag {
    const char *name;       /* with the leading dashes */
    const char *value;      /* metavariable ("SIZE"), or NULL when it takes none */
    const char *help;       /* one line */
};
const struct policy_flag *policy_flag_next(const struct policy_flag *flag);
const struct policy_flag *policy_flag_lookup(const char *name);
int policy_apply_flag(struct policy *p, const char *name, const char *value, const struct policy_host *host,
                      struct err *err);

/* What "auto" came to: that engine, and that runtime of it (NULL: it has none). Who asked for it stays who did. */
int policy_choose(struct policy *p, const char *engine, const char *runtime, struct err *err);
/* Add @host (HOST or HOST:PORT, no pattern) to the allowed ones. @from and its name are copied. */
int policy_own_folder(struct policy *p, const char *path, struct err *err);     /* of cloche's, which no rule opens */
int policy_allow_host(struct policy *p, const char *host, const struct origin *from, struct err *err);
/* Likewise a file of certificates, to --extra-ca. */
int policy_trust_file(struct policy *p, const char *file, const struct origin *from, struct err *err);

/* The image that was asked for, by another name of it. */
int policy_put_image(struct policy *p, const char *name, struct err *err);

/* Set the variable @name inside, unless a file or flag has said something about it. @from as above. */
int policy_give_env(struct policy *p, const char *name, const char *value, const struct origin *from, struct err *err);

/* Refuse impossible combinations, then settle what follows from the rest. Call once, after the last layer. After it:
 * rules' paths are host paths (the sandbox's names below /workspace and binds are translated); under a private root
 * allow_write holds only what no workspace or bind shows, each to be shown writable at its own path, and allow_read
 * either lifts denials below what is shown or names a path to be shown read-only at its own path; `.git/config` has
 * left the protected names when allow_git_config is set; the working directory is known; binds are sorted by
 * destination, parents first, no two alike. */
int policy_validate(struct policy *p, struct err *err);

/* Whether `cloche serve` can make sandboxes of @p: 0 or -1 with @err. */
int policy_fits_daemon(const struct policy *p, struct err *err);

/* Why the host's folder @path must not be shown in a sandbox, as words that follow the path, or NULL. For a validated
 * policy this can only be said of what links lead to: @workspace, the folder behind a workspace's name. A link is then
 * not enough to show a folder of the system; who means /etc names /etc. */
const char *policy_source_unfit(const char *path, bool workspace);

/* The ports that allow rules name and that nobody listens on inside anyway (53, 80, 443 and the proxy's 1080 and 3128),
 * each once, in the order of the rules, into @out. False when there are more than POLICY_TCP_PORTS_MAX, which
 * policy_validate refuses: @over (may be NULL) is the first rule too many. */
bool policy_tcp_ports(const struct policy *p, uint16_t out[POLICY_TCP_PORTS_MAX], size_t *n,
                      const struct policy_entry **over);

/* Where the value came from, for people: "settings.yaml:12", "--memory", "mode standard", "default", "built in". */
#define POLICY_ORIGIN_TEXT_MAX 512
const char *policy_origin_text(const struct origin *from, char out[POLICY_ORIGIN_TEXT_MAX]);

const char *policy_mode_name(enum policy_mode mode);
const char *policy_boundary_name(enum policy_boundary boundary);
bool policy_mode_parse(const char *name, enum policy_mode *out);

#endif
