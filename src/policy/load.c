/* policy/load.c: from a settings file to the policy: reading, telling formats apart, calling the right walker */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "match/path.h"
#include "policy/schema.h"

#define SCRATCH_FIRST (16 * 1024)

static void
free_scratch(struct arena **a)
{
    arena_free(*a);
}

static bool
begins_as_json(struct str text)
{
    size_t i = 0;

    while (i < text.n && (text.p[i] == ' ' || text.p[i] == '\t' || text.p[i] == '\r' || text.p[i] == '\n'))
        i++;
    return i < text.n && text.p[i] == '{';
}

/* By name where the name says it, by the first character otherwise. */
static enum policy_format
language_of(const char *name, struct str text)
{
    struct str s = str_of(name);

    if (str_ends(s, STR_LIT(".yaml")) || str_ends(s, STR_LIT(".yml")))
        return POLICY_YAML;
    if (str_ends(s, STR_LIT(".json")))
        return POLICY_JSON;
    return begins_as_json(text) ? POLICY_JSON : POLICY_YAML;
}

/* SRT requires `network.allowedDomains` and `deniedDomains`; our own settings have neither. */
static bool
is_srt(const struct node *root)
{
    const struct node *network = node_member(root, "network");

    return node_member(network, "allowedDomains") != NULL || node_member(network, "deniedDomains") != NULL;
}

/* As the program whose settings these are: comments are passed over. */
static int
blank_comments(struct loader *l, struct arena *scratch, struct str *text)
{
    char *copy = arena_alloc(scratch, text->n + 1);
    struct policy_entry entry = { .literal = true, .from = { .kind = ORIGIN_FILE, .name = l->name } };

    if (copy == NULL)
        return policy_no_memory(l->err);
    memcpy(copy, text->p, text->n);
    if (!doc_blank_comments(copy, text->n))
        return 0;
    *text = (struct str){ copy, text->n };
    entry.value = entry.written = arena_join(l->p->arena, str_of(l->name), STR_LIT(": comments are no JSON; other "
                                             "readers of this file may refuse it"));
    return entry.value != NULL ? list_push(l->p, &l->p->notes, entry, l->err) : policy_no_memory(l->err);
}

/* What srt reads when it is told nothing: what is inside must not make it for the next run, either. Where it is the
 * file that was read, it is closed twice. */
static int
protect_usual_srt(struct policy *p, struct err *err)
{
    struct policy_entry entry = { .literal = true, .from = { .kind = ORIGIN_BUILTIN, .name = "the settings file" } };

    if (p->home == NULL)
        return 0;
    entry.value = entry.written = arena_join(p->arena, str_of(strcmp(p->home, "/") == 0 ? "" : p->home),
                                             STR_LIT("/.srt-settings.json"));
    return entry.value != NULL ? list_push(p, &p->deny_write, entry, err) : policy_no_memory(err);
}

static int
load(struct policy *p, const char *name, struct str text, enum policy_format format, struct err *err)
{
    __attribute__((cleanup(free_scratch))) struct arena *scratch = arena_new(SCRATCH_FIRST);
    struct loader l = { .p = p, .err = err };
    enum policy_format language = format == POLICY_SRT ? POLICY_JSON : format;
    struct node *root;

    l.name = arena_copy(p->arena, str_of(name));
    if (scratch == NULL || l.name == NULL)
        return policy_no_memory(err);
    if (text.n > POLICY_FILE_MAX)
        return err_set(err, ERR_LIMIT, "policy.file.too-large", "%s: larger than %d bytes", name, POLICY_FILE_MAX);
    if (text.n == 0) {
        err_set(err, ERR_POLICY, "policy.file.empty", "%s: the file is empty", name);
        return err_hint(err, "an empty policy is never taken for the default one");
    }
    if (language == POLICY_AUTO)
        language = language_of(name, text);
    l.lenient = format == POLICY_SRT && p->verb == VERB_SRT;
    if (l.lenient && blank_comments(&l, scratch, &text) < 0)
        return -1;
    root = language == POLICY_JSON ? doc_parse_json(scratch, l.name, text.p, text.n, err)
                                   : doc_parse_yaml(scratch, l.name, text.p, text.n, err);
    if (root == NULL)
        return -1;
    if (format == POLICY_SRT || (format == POLICY_AUTO && language == POLICY_JSON && is_srt(root))) {
        l.exact = true;
        if (srt_apply(&l, root) < 0)
            return -1;
        return l.lenient ? protect_usual_srt(p, err) : 0;
    }
    return settings_apply(&l, root);
}

int
policy_load_bytes(struct policy *p, const char *name, const void *data, size_t n, enum policy_format format,
                  const struct policy_host *host, struct err *err)
{
    (void)host;     /* its facts were kept by policy_init */
    return load(p, name, (struct str){ data, n }, format, err);
}

static int
read_settings(const char *path, int fd, struct buf *text, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_sys(err, errno, "policy.file.unreadable", "cannot read %s", path);
    if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode)) {
        err_set(err, ERR_POLICY, "policy.file.unreadable", "%s is neither a file nor a pipe", path);
        return err_hint(err, "name the settings file itself");
    }
    if (io_set_nonblock(fd, false) < 0 || io_read_all(fd, text) < 0) {
        if (errno == EFBIG)
            return err_set(err, ERR_LIMIT, "policy.file.too-large", "%s: larger than %d bytes", path, POLICY_FILE_MAX);
        return err_sys(err, errno, "policy.file.unreadable", "cannot read %s", path);
    }
    return 0;
}

/* What is inside must not write the rules for the next run: the settings file is closed to it wherever it lies. */
static int
protect_settings(struct policy *p, const char *path, int fd, struct err *err)
{
    static const struct where w = { .from = { .kind = ORIGIN_BUILTIN, .name = "the settings file" } };
    char link[64], real[PATH_TEXT_MAX + 1];
    struct stat st;
    ssize_t n;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, real, sizeof(real));
    for (int i = 0; i < 2; i++) {
        struct str text = i == 0 ? str_of(path) : (struct str){ real, n > 0 ? (size_t)n : 0 };
        struct policy_entry entry = { .literal = true, .from = w.from };
        /* to open(2) a tilde is a letter; the real path says the same without doubt */
        if (text.n == 0 || text.p[0] == '~' || (i == 1 && text.p[0] != '/'))
            continue;
        if (resolve_path(p, text, str_of(p->cwd), false, &w, &entry.value, err) < 0)
            return -1;
        p->settings = (struct policy_string){ .p = entry.value, .from = w.from };
        if (p->deny_write.n > 0 && strcmp(p->deny_write.v[p->deny_write.n - 1].value, entry.value) == 0)
            continue;
        entry.written = entry.value;
        if (list_push(p, &p->deny_write, entry, err) < 0)
            return -1;
    }
    return 0;
}

int
policy_load_file(struct policy *p, const char *path, enum policy_format format, const struct policy_host *host,
                 struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(POLICY_FILE_MAX);
    bool piped = strcmp(path, "-") == 0;
    const char *name = piped ? "standard input" : path;
    /* a FIFO that nobody writes must not hang us */
    cleanup_close int fd = piped ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                 : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0) {
        err_sys(err, errno, "policy.file.unreadable", "cannot open the settings file %s", name);
        return err_hint(err, "an explicit settings file is never replaced by defaults");
    }
    if (read_settings(name, fd, &text, err) < 0)
        return -1;
    if (policy_load_bytes(p, name, text.p, text.n, format, host, err) < 0)
        return -1;
    return protect_settings(p, piped ? "" : path, fd, err);
}
