/* match/git_config.c: see git_config.h; the reader follows git's config.c, the list is ours */
#include "match/git_config.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"

/* --- reading --- */

#define END (-1)        /* of the text */
#define ODD (-2)        /* a byte that we refuse */

static bool
is_letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
is_key_char(int c)
{
    return is_letter(c) || (c >= '0' && c <= '9') || c == '-';
}

static bool
is_space(int c)
{
    return c == ' ' || c == '\t';
}

/* The next byte; CR LF is one line end. A NUL ends git's strings, and a lone CR is white space only to some. */
static int
next_byte(struct git_config_reader *r)
{
    if (r->at >= r->text.n)
        return END;
    int c = (unsigned char)r->text.p[r->at++];
    if (c == '\r' && r->at < r->text.n && r->text.p[r->at] == '\n')
        c = (unsigned char)r->text.p[r->at++];
    return c == '\0' || c == '\r' ? ODD : c;
}

static bool
git_config_put(char *buf, size_t cap, size_t *n, int c)
{
    if (*n >= cap)
        return false;
    buf[(*n)++] = (char)c;
    buf[*n] = '\0';
    return true;
}

/* ` "subsection"]`, after the blank. */
static bool
read_subsection(struct git_config_reader *r, size_t *n)
{
    int c;

    do
        c = next_byte(r);
    while (is_space(c));
    if (c != '"' || !git_config_put(r->key, GIT_CONFIG_KEY_MAX, n, '.'))
        return false;
    while ((c = next_byte(r)) != '"') {
        if (c == '\\')
            c = next_byte(r);
        if (c < 0 || c == '\n' || !git_config_put(r->key, GIT_CONFIG_KEY_MAX, n, c))
            return false;
    }
    return next_byte(r) == ']';
}

/* `section]`, `section "subsection"]` or the old `section.subsection]`, after the bracket. */
static bool
read_section(struct git_config_reader *r)
{
    size_t n = 0;
    int c;

    while ((c = next_byte(r)) != ']') {
        if (is_space(c)) {
            if (!read_subsection(r, &n))
                return false;
            break;
        }
        if ((!is_key_char(c) && c != '.') || !git_config_put(r->key, GIT_CONFIG_KEY_MAX, &n, ascii_lower((char)c)))
            return false;
    }
    if (n == 0 || !git_config_put(r->key, GIT_CONFIG_KEY_MAX, &n, '.'))
        return false;
    r->stem = n;
    return true;
}

static int
escaped(int c)
{
    switch (c) {
    case 't': return '\t';
    case 'b': return '\b';
    case 'n': return '\n';
    case '\\': case '"': return c;
    default: return ODD;
    }
}

/* What stands after the `=`, to the end of its line. */
static bool
read_value(struct git_config_reader *r, size_t *n)
{
    bool quoted = false, comment = false;
    size_t kept = 0;                    /* bytes that are not white space at the end */

    for (;;) {
        int c = next_byte(r);
        if (c == ODD)
            return false;
        if (c == END || c == '\n') {
            *n = kept;
            r->value[kept] = '\0';
            return !quoted;
        }
        if (comment)
            continue;
        if (!quoted && is_space(c)) {
            if (*n > 0 && !git_config_put(r->value, GIT_CONFIG_VALUE_MAX, n, c))
                return false;
            continue;
        }
        if (!quoted && (c == ';' || c == '#')) {
            comment = true;
            continue;
        }
        if (c == '"') {
            quoted = !quoted;
        } else if (c == '\\') {
            c = next_byte(r);
            if (c != '\n' && c != END && ((c = escaped(c)) == ODD || !git_config_put(r->value, GIT_CONFIG_VALUE_MAX, n,
                                                                                     c)))
                return false;
        } else if (!git_config_put(r->value, GIT_CONFIG_VALUE_MAX, n, c)) {
            return false;
        }
        kept = *n;
    }
}

/* `name`, `name = value`; @c is the name's first byte. */
static bool
read_entry(struct git_config_reader *r, int c, struct git_config_entry *e)
{
    size_t n = r->stem, value = 0;

    for (; is_key_char(c); c = next_byte(r))
        if (!git_config_put(r->key, GIT_CONFIG_KEY_MAX, &n, ascii_lower((char)c)))
            return false;
    while (is_space(c))
        c = next_byte(r);
    e->has_value = c == '=';
    r->value[0] = '\0';
    if (e->has_value ? !read_value(r, &value) : c != '\n' && c != END)
        return false;
    e->value = (struct str){ r->value, value };
    e->key = (struct str){ r->key, n };
    e->name = (struct str){ r->key + r->stem, n - r->stem };
    const char *dot = memchr(r->key, '.', r->stem);
    e->section = (struct str){ r->key, (size_t)(dot - r->key) };
    e->has_subsection = e->section.n + 1 < r->stem;
    e->subsection = STR_LIT("");
    if (e->has_subsection)
        e->subsection = (struct str){ dot + 1, r->stem - e->section.n - 2 };
    return true;
}

void
git_config_open(struct git_config_reader *r, struct str text)
{
    static const struct str bom = { "\xef\xbb\xbf", 3 };

    r->text = text;
    r->at = str_starts(text, bom) ? bom.n : 0;
    r->stem = 0;
    r->key[0] = r->value[0] = '\0';
}

int
git_config_next(struct git_config_reader *r, struct git_config_entry *e)
{
    bool comment = false;

    if (r->text.n > GIT_CONFIG_MAX)
        return -1;
    for (;;) {
        int c = next_byte(r);
        if (c == ODD)
            return -1;
        if (c == END)
            return 0;
        if (c == '\n')
            comment = false;
        else if (comment || is_space(c))
            continue;
        else if (c == '#' || c == ';')
            comment = true;
        else if (c == '[' ? !read_section(r) : r->stem == 0 || !is_letter(c))
            return -1;
        else if (c != '[')
            return read_entry(r, c, e) ? 1 : -1;
    }
}

/* --- judging --- */

enum rule {
    R_BOOL,         /* true, false, yes, no, on, off, a number, or nothing */
    R_NO,           /* false only */
    R_GROUP,        /* shared with the group at most (git init --shared) */
    R_NUMBER,       /* digits and a unit */
    R_WORD,         /* letters, digits and _.,:+-; what git knows by name */
    R_TEXT,         /* anything printable, in lines */
    R_URL,          /* git_config_url_harmless */
    R_PATH,         /* a relative path that does not lead up */
    R_WORKTREE,     /* up a bounded number of directories, then down */
    R_UPDATE,       /* how a submodule is updated; not a command */
};

enum sub { SUB_NONE, SUB_ANY, SUB_REMOTE, SUB_MODULE };

/* The keys that a configuration may hold. `*`: every name of the section. Left out on purpose, beside all that runs a
 * program or names another file: feature.* (may turn a monitor on), core.protectNTFS, core.protectHFS,
 * core.commentChar, log.showSignature, maintenance.*, safe.*, protocol.*.allow, and all that makes a partial clone
 * (extensions.partialClone, remote.*.promisor): whoever looks at one fetches what it has not from where it says. */
static const struct row {
    const char *section;
    enum sub sub;
    enum rule rule;
    const char *names;      /* in lower case, blanks between */
} rows[] = {
    { "core", SUB_NONE, R_BOOL, "filemode bare ignorecase precomposeunicode symlinks sparsecheckout sparsecheckoutcone "
      "preloadindex quotepath splitindex commitgraph multipackindex trustctime prefersymlinkrefs warnambiguousrefs" },
    { "core", SUB_NONE, R_NUMBER, "repositoryformatversion compression loosecompression bigfilethreshold" },
    { "core", SUB_NONE, R_WORD, "logallrefupdates autocrlf eol safecrlf untrackedcache abbrev whitespace checkstat "
      "hidedotfiles" },
    { "core", SUB_NONE, R_NO, "fsmonitor" },
    { "core", SUB_NONE, R_GROUP, "sharedrepository" },
    { "core", SUB_NONE, R_WORKTREE, "worktree" },
    { "extensions", SUB_NONE, R_BOOL, "worktreeconfig preciousobjects noop relativeworktrees" },
    { "extensions", SUB_NONE, R_WORD, "objectformat compatobjectformat refstorage" },
    { "remote", SUB_REMOTE, R_URL, "url pushurl" },
    { "remote", SUB_REMOTE, R_TEXT, "fetch push tagopt followremotehead" },
    { "remote", SUB_REMOTE, R_BOOL, "mirror prune prunetags skipdefaultupdate skipfetchall" },
    { "remote", SUB_NONE, R_URL, "pushdefault" },
    { "branch", SUB_ANY, R_URL, "remote pushremote" },
    { "branch", SUB_ANY, R_TEXT, "merge description vscode-merge-base gh-merge-base" },
    { "branch", SUB_ANY, R_WORD, "rebase" },
    { "branch", SUB_NONE, R_WORD, "autosetupmerge autosetuprebase sort" },
    { "submodule", SUB_MODULE, R_URL, "url" },
    { "submodule", SUB_MODULE, R_PATH, "path" },
    { "submodule", SUB_MODULE, R_TEXT, "branch" },
    { "submodule", SUB_MODULE, R_BOOL, "active shallow" },
    { "submodule", SUB_MODULE, R_WORD, "fetchrecursesubmodules ignore" },
    { "submodule", SUB_MODULE, R_UPDATE, "update" },
    { "submodule", SUB_NONE, R_TEXT, "active" },
    { "submodule", SUB_NONE, R_WORD, "recurse alternatelocation alternateerrorstrategy fetchjobs propagatebranches "
      "stickyrecursiveclone" },
    { "user", SUB_NONE, R_TEXT, "name email" },
    { "user", SUB_NONE, R_BOOL, "useconfigonly" },
    { "author", SUB_NONE, R_TEXT, "name email" },
    { "committer", SUB_NONE, R_TEXT, "name email" },
    { "init", SUB_NONE, R_TEXT, "defaultbranch" },
    { "commit", SUB_NONE, R_NO, "gpgsign" },
    { "commit", SUB_NONE, R_WORD, "verbose status cleanup" },
    { "tag", SUB_NONE, R_NO, "gpgsign forcesignannotated" },
    { "tag", SUB_NONE, R_WORD, "sort" },
    { "pull", SUB_NONE, R_WORD, "rebase ff" },
    { "push", SUB_NONE, R_WORD, "default autosetupremote followtags recursesubmodules" },
    { "push", SUB_NONE, R_NO, "gpgsign" },
    { "fetch", SUB_NONE, R_WORD, "prune prunetags recursesubmodules parallel writecommitgraph fsckobjects "
      "showforcedupdates output" },
    { "receive", SUB_NONE, R_WORD, "denycurrentbranch denynonfastforwards denydeletes denydeletecurrent fsckobjects" },
    { "transfer", SUB_NONE, R_BOOL, "fsckobjects" },
    { "uploadpack", SUB_NONE, R_BOOL, "allowfilter allowanysha1inwant allowreachablesha1inwant allowtipsha1inwant" },
    { "merge", SUB_NONE, R_WORD, "ff conflictstyle renames log renamelimit directoryrenames verbosity autostash stat" },
    { "rebase", SUB_NONE, R_WORD, "autosquash autostash updaterefs missingcommitscheck stat abbreviatecommands "
      "forkpoint rebasemerges" },
    { "rerere", SUB_NONE, R_BOOL, "enabled autoupdate" },
    { "diff", SUB_NONE, R_WORD, "algorithm renames renamelimit context interhunkcontext mnemonicprefix noprefix "
      "colormoved colormovedws ignoresubmodules submodule indentheuristic suppressblankempty autorefreshindex "
      "wserrorhighlight statgraphwidth" },
    { "log", SUB_NONE, R_TEXT, "date" },
    { "log", SUB_NONE, R_WORD, "decorate abbrevcommit follow showroot mailmap diffmerges" },
    { "status", SUB_NONE, R_WORD, "*" },
    { "color", SUB_NONE, R_TEXT, "*" },
    { "color", SUB_ANY, R_TEXT, "*" },
    { "column", SUB_NONE, R_TEXT, "*" },
    { "advice", SUB_NONE, R_BOOL, "*" },
    { "gc", SUB_NONE, R_NUMBER, "auto" },
    { "pack", SUB_NONE, R_NUMBER, "threads windowmemory packsizelimit window depth compression deltacachesize" },
    { "index", SUB_NONE, R_WORD, "version threads sparse skiphash recordendofindexentries recordoffsettable" },
    { "checkout", SUB_NONE, R_WORD, "workers thresholdforparallelism guess" },
    { "protocol", SUB_NONE, R_NUMBER, "version" },
    { "lfs", SUB_NONE, R_NUMBER, "repositoryformatversion" },
};

static bool
in_words(const char *words, struct str name)
{
    while (*words != '\0') {
        size_t n = strcspn(words, " ");
        if (n == name.n && memcmp(words, name.p, n) == 0)
            return true;
        words += n;
        words += strspn(words, " ");
    }
    return false;
}

static bool
printable(struct str s, bool lines)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == 0x7f || (c < 0x20 && !(lines && (c == '\n' || c == '\t'))))
            return false;
    }
    return true;
}

static bool
is_word(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_key_char(s.p[i]) && memchr("_.,:+", s.p[i], 5) == NULL)
            return false;
    return true;
}

static bool
is_number(struct str s)
{
    size_t n = s.n > 0 && s.p[0] == '-' ? 1 : 0, digits = 0;

    while (n < s.n && s.p[n] >= '0' && s.p[n] <= '9') {
        n++;
        digits++;
    }
    if (n < s.n && memchr("kKmMgG", s.p[n], 6) != NULL)
        n++;
    return digits > 0 && n == s.n;
}

static bool
same_word(struct str s, const char *word)
{
    size_t n = strlen(word);

    if (s.n != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (ascii_lower(s.p[i]) != word[i])
            return false;
    return true;
}

static bool
is_no(struct str s)
{
    return s.n == 0 || same_word(s, "false") || same_word(s, "no") || same_word(s, "off") || same_word(s, "0");
}

static bool
is_group(struct str s)
{
    return same_word(s, "group") || same_word(s, "true") || same_word(s, "1") || same_word(s, "umask");
}

static bool
is_bool(struct str s)
{
    return is_no(s) || same_word(s, "true") || same_word(s, "yes") || same_word(s, "on") || is_number(s);
}

/* Whether no component of @path is `..`, and it is relative. */
static bool
path_down(struct str path)
{
    if (path.n == 0 || path.p[0] == '/' || path.p[0] == '-')
        return false;
    for (size_t i = 0; i < path.n;) {
        const char *slash = memchr(path.p + i, '/', path.n - i);
        size_t end = slash != NULL ? (size_t)(slash - path.p) : path.n;
        if (end - i == 2 && memcmp(path.p + i, "..", 2) == 0)
            return false;
        i = end + 1;
    }
    return true;
}

static bool
worktree_inside(struct str path, size_t depth)
{
    if (path.n == 0)
        return false;
    for (; depth > 0 && str_starts(path, STR_LIT("../")); depth--)
        path = (struct str){ path.p + 3, path.n - 3 };
    return path.n == 0 || (depth > 0 && str_eq(path, STR_LIT(".."))) || (path_down(path) && printable(path, false));
}

bool
git_config_url_harmless(struct str url)
{
    static const char *const schemes[] = { "http", "https", "ssh", "git", "file", "git+ssh", "ssh+git" };
    size_t n = 0;
    bool known = false;

    if (url.n == 0 || url.p[0] == '-' || !printable(url, false))
        return false;
    while (n < url.n && (is_key_char(url.p[n]) || url.p[n] == '+' || url.p[n] == '.'))
        n++;
    struct str rest = { url.p + n, url.n - n };
    if (str_starts(rest, STR_LIT("::")))
        return false;
    if (!str_starts(rest, STR_LIT("://")))
        return !str_starts(url, STR_LIT("[-"));
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        known |= str_eq((struct str){ url.p, n }, str_of(schemes[i]));
    /* a host that ssh would take for an option */
    return known && !(rest.n > 3 && rest.p[3] == '-') && !str_starts(rest, STR_LIT("://[-"));
}

static bool
is_update(struct str s)
{
    return in_words("none checkout rebase merge", s);
}

static bool
value_harmless(enum rule rule, const struct git_config_entry *e, size_t depth)
{
    if (!e->has_value)
        return rule == R_BOOL;
    switch (rule) {
    case R_BOOL: return is_bool(e->value);
    case R_NO: return is_no(e->value);
    case R_GROUP: return is_no(e->value) || is_group(e->value);
    case R_NUMBER: return is_number(e->value);
    case R_WORD: return is_word(e->value);
    case R_TEXT: return printable(e->value, true);
    case R_URL: return git_config_url_harmless(e->value);
    case R_PATH: return path_down(e->value) && printable(e->value, false);
    case R_WORKTREE: return worktree_inside(e->value, depth);
    case R_UPDATE: return is_update(e->value);
    }
    return false;
}

static bool
subsection_fits(enum sub sub, const struct git_config_entry *e)
{
    switch (sub) {
    case SUB_NONE: return !e->has_subsection;
    case SUB_ANY: return e->has_subsection;
    /* a remote without a URL is taken for one itself; a submodule's name is a path below .git/modules */
    case SUB_REMOTE: return e->has_subsection && git_config_url_harmless(e->subsection);
    case SUB_MODULE: return e->has_subsection && path_down(e->subsection);
    }
    return false;
}

bool
git_config_entry_harmless(const struct git_config_entry *e, size_t depth)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (str_eq_c(e->section, rows[i].section) && subsection_fits(rows[i].sub, e) &&
            (strcmp(rows[i].names, "*") == 0 || in_words(rows[i].names, e->name)))
            return value_harmless(rows[i].rule, e, depth);
    return false;
}

void
git_config_said_key(struct str key, char out[GIT_CONFIG_SAID_MAX + 1])
{
    size_t n = key.n < GIT_CONFIG_SAID_MAX ? key.n : GIT_CONFIG_SAID_MAX;

    for (size_t i = 0; i < n; i++)
        out[i] = key.p[i] > 0x20 && key.p[i] < 0x7f ? key.p[i] : '?';
    out[n] = '\0';
}

bool
git_config_path(struct str value, const char *home, const char *base, char *out, size_t cap)
{
    static const struct str optional = STR_LIT(":(optional)");
    int n;

    if (str_starts(value, optional))
        value = (struct str){ value.p + optional.n, value.n - optional.n };
    if (str_starts(value, STR_LIT("~"))) {
        const char *slash = memchr(value.p, '/', value.n);
        size_t skip = slash != NULL ? (size_t)(slash - value.p) : value.n;
        n = home == NULL || slash == NULL ? -1
                                          : snprintf(out, cap, "%s%.*s", home, (int)(value.n - skip), value.p + skip);
    } else if (str_starts(value, STR_LIT("/"))) {
        n = snprintf(out, cap, "%.*s", (int)value.n, value.p);
    } else {
        n = base[0] == '\0' || value.n == 0 ? -1 : snprintf(out, cap, "%s/%.*s", base, (int)value.n, value.p);
    }
    return n > 0 && (size_t)n < cap;
}

int
git_config_judge(struct str text, size_t depth, struct git_config_fault *fault)
{
    struct git_config_reader r;
    struct git_config_entry e;
    int got;

    if (fault != NULL)
        fault->key[0] = '\0';
    git_config_open(&r, text);
    while ((got = git_config_next(&r, &e)) > 0) {
        if (git_config_entry_harmless(&e, depth))
            continue;
        if (fault != NULL)
            git_config_said_key(e.key, fault->key);
        return -1;
    }
    return got;
}
