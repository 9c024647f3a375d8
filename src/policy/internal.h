/* policy/internal.h: what the files of this layer share; nobody else includes it */
#ifndef CLOCHE_POLICY_INTERNAL_H
#define CLOCHE_POLICY_INTERNAL_H

#include "base/str.h"
#include "policy/doc.h"
#include "policy/policy.h"
#include "policy/spec.h"

/* --- arena.c: everything of one policy is freed at once, so it is carved from a few large pieces --------------- */

void *arena_alloc(struct arena *a, size_t n);           /* zeroed, aligned for anything; NULL: no memory */
void *arena_raw(struct arena *a, size_t n);             /* the same, not zeroed */
char *arena_copy(struct arena *a, struct str s);        /* NUL-terminated copy; @s must not hold a NUL */
char *arena_join(struct arena *a, struct str s, struct str t);

int policy_no_memory(struct err *err);                  /* -1 */

/* --- set.c: one value at a time, checked the same way whether a file or a flag brought it ---------------------- */

/* Where a value stands, for its origin and for messages. */
struct where {
    struct origin from;
    const char *key;        /* full key in a file ("filesystem.deny-read[2]"); NULL: from.name says it all */
};

/* "settings.yaml:14: limits.memory: MESSAGE" or "--memory: MESSAGE". Returns -1. */
int where_fail(const struct where *w, struct err *err, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The same of the node @n of the file @path. */
int node_refuse(const char *path, const struct node *n, const char *key, const char *code, const char *text,
                struct err *err);

/* @s in quotes for a message: control bytes escaped, cut to a readable length. */
#define SHOW_MAX 160
const char *show(struct str s, char out[SHOW_MAX]);

#define SPEC_OF_FLAG(flag_) \
    ((const struct policy_spec *)(const void *)((const char *)(flag_) - offsetof(struct policy_spec, flag)))

/* @text as the value of the row @s (of a list: one more entry). */
int spec_set(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w, struct err *err);
void set_bool(struct policy *p, const struct policy_spec *s, bool v, const struct where *w);
/* spec.c: @v and its origin into a word, switch or number; false: it is none. */
bool spec_put(struct policy *p, const struct policy_spec *s, uint64_t v, const struct origin *from);
/* close.c: @now, where `network: none` stands: what earlier layers opened is closed. */
void close_network(struct policy *p, const struct origin *now);

/* The kind of the row's entries, in settings or a policy of SRT's. */
static inline enum entry_kind
spec_entry(const struct policy_spec *s, bool srt)
{
    if ((s->entry != ENTRY_HOST && s->entry != ENTRY_HOST_PLAIN) || !srt)
        return s->entry;
    return s->at == offsetof(struct policy, deny_domains) ? ENTRY_HOST_SRT_DENY : ENTRY_HOST_SRT;
}

/* What hangs on rows. */
spec_setter set_mode, set_engine, set_network, set_parent, set_no_proxy, set_ask_timeout, set_hostname, set_image,
    set_container_prefix, set_label,
    set_user, set_workdir, set_workspace, set_bind, set_env_text, set_secret, set_secret_file;
spec_reader read_fallback, read_fallback_url, read_workspace, read_depth, read_env, read_bind, read_secret,
    read_secret_file;
spec_shower show_workspace, show_user, show_ask_timeout, show_parent;
spec_liner line_of_bind, line_of_env, line_of_secret, line_of_secret_file;
spec_hider hide_env, hide_secret_files, hide_parent;
spec_cover bind_covers, env_covers, secret_covers, secret_file_covers;
spec_within within_workspace, within_hosts, within_ask_timeout, within_name_servers, within_user;

/* set_workspace: "DIR", "DIR:rw|ro|cow" or "tmpfs". */
int set_workspace_dir(struct policy *p, struct str dir, const struct where *w, struct err *err);
spec_setter set_workspace_kind;
/* set_bind: "SRC[:DEST][:ro|:rw]". */
int set_bind_parts(struct policy *p, struct str source, struct str dest, bool writable, const struct where *w,
                   struct err *err);
/* @value NULL: pass the host's. */
int set_env(struct policy *p, struct str name, const struct str *value, const struct where *w, struct err *err);

/* set_secret: "NAME" or "NAME=BINDING", and ",add=HEADER: TEXT" behind it. */
/* All but the name may be empty: as they are stored. */
struct secret_parts { struct str name, binding, add, env; };
int set_secret_parts(struct policy *p, const struct secret_parts *s, const struct where *w, struct err *err);

/* set_secret_file: "PATH=NAME" or "PATH=@FILE". */
/* @from_file empty: @text is the file's text. */
int set_secret_file_parts(struct policy *p, struct str path, struct str text, struct str from_file,
                          const struct where *w, struct err *err);
int check_secret_files(const struct policy *p, struct err *err);

int list_add(struct policy *p, struct policy_list *list, enum entry_kind kind, struct str text,
             const struct where *w, struct err *err);
/* publish.c: a port that the host reaches, into @entry; and whether all of them can be. -1 with @err. */
int entry_port(struct policy *p, struct str text, struct policy_entry *entry, const struct where *w, struct err *err);
int entry_field(struct policy *p, struct str text, struct policy_entry *entry, const struct where *w, struct err *err);
int entry_address(struct policy *p, struct str text, struct policy_entry *entry, const struct where *w,
                  struct err *err);
int entry_publish(struct policy *p, struct str text, struct policy_entry *entry, const struct where *w,
                  struct err *err);
int check_publish(const struct policy *p, struct err *err);

/* calls.c: a system call that a list of the policy names; and what no mode, or not this one, may open. */
int entry_call(struct policy *p, struct str text, bool allow, struct policy_entry *entry, const struct where *w,
               struct err *err);
int check_calls(const struct policy *p, struct err *err);
/* engines.c: an engine or runtime that agents may name. */
int entry_engine(struct policy *p, struct str text, struct policy_entry *entry, const struct where *w, struct err *err);
/* set_list.c: whether a registry of packages has that name; -1 with the refusal of one that has not. */
bool policy_knows_registry(struct str text);
int policy_no_registry(struct str text, const struct where *w, struct err *err);
/* A list that is written replaces the one of the layer below. */
void list_begin(struct policy_list *list, const struct where *w);
/* Room for @n more entries, which the caller may put behind the last one itself. */
int list_reserve(struct policy *p, struct policy_list *list, size_t n, struct err *err);
int list_push(struct policy *p, struct policy_list *list, struct policy_entry entry, struct err *err);

/* @text as a normal absolute path in the arena; `~` is the home, a relative path lies below @base. */
int resolve_path(struct policy *p, struct str text, struct str base, bool glob, const struct where *w, char **out,
                 struct err *err);

/* Words (NULL ends them) with commas between them, as a hint has them; at most ERR_HINT_MAX bytes. */
const char *policy_words(const char *const *words, char out[ERR_HINT_MAX + 1]);

/* --- preset.c ------------------------------------------------------------------------------------------------- */

/* Put the preset of @mode under everything that a file or flag has set. */
int preset_apply(struct policy *p, enum policy_mode mode, const struct origin *from, struct err *err);
/* Make @p follow SRT semantics: host view, caller's environment, SRT's names and default writable places. */
int preset_srt(struct policy *p, struct err *err);

/* --- builtin.c ------------------------------------------------------------------------------------------------ */

int builtin_credentials(struct policy *p, const struct policy_host *host, struct err *err);
/* When it is known what is opened: the places of those whose folders these are, as whom root's sandbox may run. */
int credentials_of_owners(struct policy *p, struct err *err);
int builtin_protect(struct policy *p, bool srt, struct err *err);
int builtin_protect_more(struct policy *p, const char *const *names, struct err *err);
int builtin_env_deny(struct policy *p, struct err *err);

/* --- validate.c, settle.c ------------------------------------------------------------------------------------- */

/* The refusal of the value that came from @from. */
#define REFUSE(from_, key_, ...) where_fail(&(struct where){ .from = *(from_), .key = (key_) }, err, __VA_ARGS__)

/* The kernel's own tree (/proc, /sys, /dev) that @path lies in, or NULL: showing the host's into a sandbox undoes its
 * walls, and mounting over the sandbox's blinds us. */
const char *kernel_tree(const char *path);
/* What follows from the single values, once they are known to agree. */
int settle(struct policy *p, struct err *err);

static inline bool
origin_explicit(const struct origin *from)
{
    return from->kind == ORIGIN_FILE || from->kind == ORIGIN_FLAG;
}

#endif
