/* policy/secret_file.c: files inside that hold placeholders of secrets
 *
 * They are made in the sandbox's own memory, so nothing of them is on the host and nothing of the host lies under them:
 * a place that a folder of the host shows is refused, for there the file would have to be made in that folder, or hide
 * what somebody else put there.
 */
#include <string.h>

#include "base/array.h"
#include "match/path.h"
#include "policy/internal.h"
#include "policy/place.h"
#include "policy/secret_text.h"

#define FILES_MAX 64
#define OWN_HOME POLICY_HOME

/* Inside `~` is the sandbox's own home. */
static int
inside_path(struct policy *p, struct str text, const struct where *w, char **out, struct err *err)
{
    char room[PATH_TEXT_MAX + 1], shown[SHOW_MAX];

    if (str_starts(text, STR_LIT("~/")) && text.n < PATH_TEXT_MAX - sizeof(OWN_HOME)) {
        memcpy(room, OWN_HOME, sizeof(OWN_HOME) - 1);
        memcpy(room + sizeof(OWN_HOME) - 1, text.p + 1, text.n - 1);
        text = (struct str){ room, sizeof(OWN_HOME) - 1 + text.n - 1 };
    }
    if (text.n == 0 || text.p[0] != '/' || text.p[text.n - 1] == '/') {
        where_fail(w, err, "policy.secret-file.path", "%s does not say where a file is to be inside",
                   show(text, shown));
        return err_hint(err, "an absolute path, or one that begins with \"~/\": the home inside, " OWN_HOME);
    }
    return resolve_path(p, text, STR_LIT("/"), false, w, out, err);
}

int
set_secret_file_parts(struct policy *p, struct str path, struct str text, struct str from_file, const struct where *w,
                      struct err *err)
{
    struct policy_secret_file file = { .from = w->from }, *v;

    if (inside_path(p, path, w, &file.path, err) < 0)
        return -1;
    if (p->n_secret_files == FILES_MAX)
        return where_fail(w, err, "policy.secret-file.too-many", "more than %d files with placeholders", FILES_MAX);
    if (text.n > SECRET_TEXT_MAX || (text.n > 0 && memchr(text.p, '\0', text.n) != NULL))
        return where_fail(w, err, "policy.secret-file.text", "the text has a NUL byte or more than %d bytes",
                          SECRET_TEXT_MAX);
    if (from_file.n > 0 && resolve_path(p, from_file, str_of(p->cwd), false, w, &file.template, err) < 0)
        return -1;
    file.text = from_file.n == 0 ? arena_copy(p->arena, text) : NULL;
    v = arena_alloc(p->arena, (p->n_secret_files + 1) * sizeof(*v));
    if (v == NULL || (from_file.n == 0 && file.text == NULL))
        return policy_no_memory(err);
    if (p->n_secret_files > 0)
        memcpy(v, p->secret_files, p->n_secret_files * sizeof(*v));
    v[p->n_secret_files++] = file;
    p->secret_files = v;
    return 0;
}

int
set_secret_file(struct policy *p, const struct policy_spec *s, struct str text, const struct where *w, struct err *err)
{
    const char *equals = text.n > 0 ? memchr(text.p, '=', text.n) : NULL;
    struct str path = text, what = { "", 0 };
    char room[128];

    (void)s;
    if (equals != NULL) {
        path.n = (size_t)(equals - text.p);
        what = (struct str){ equals + 1, text.n - path.n - 1 };
    }
    if (what.n > 1 && what.p[0] == '@')
        return set_secret_file_parts(p, path, (struct str){ NULL, 0 }, (struct str){ what.p + 1, what.n - 1 }, w, err);
    /* what does not look like a name may be a value by mistake: it is not shown */
    if (what.n == 0 || what.n > 64 || what.p[0] == '@' || memchr(what.p, '}', what.n) != NULL) {
        where_fail(w, err, "policy.secret-file.syntax", "not PATH=NAME or PATH=@FILE");
        return err_hint(err, "PATH inside; NAME of a secret of this run, or FILE on the host, whose text has ${NAME} "
                        "in it");
    }
    memcpy(room, "${", 2);
    memcpy(room + 2, what.p, what.n);
    room[2 + what.n] = '}';
    return set_secret_file_parts(p, path, (struct str){ room, what.n + 3 }, (struct str){ NULL, 0 }, w, err);
}

/* --- together with the rest --------------------------------------------------------------------------------------- */

/* Why there cannot be a file of ours at @path, in words that follow it; NULL: there can. */
static const char *
unfit(const struct policy *p, const char *path)
{
    static const char *const folders[] = { "/", "/tmp", "/home", OWN_HOME, "/workspace", "/var", "/var/tmp", "/run",
                                           "/dev/shm", "/etc", "/mnt" };
    struct place place;

    for (size_t i = 0; i < ARRAY_LEN(folders); i++)
        if (strcmp(path, folders[i]) == 0)
            return "is a folder inside";
    for (size_t i = 0; i < p->n_binds; i++)
        if (path_within(str_of(p->binds[i].dest), str_of(path)))
            return "is a folder inside: something is bound in it, or there";
    policy_place(p, path, false, &place);
    if (place.kind == PLACE_HOST)
        return "lies in a folder that is the host's, and would be made, or hide something, there";
    if (place.kind == PLACE_SYSTEM)
        return "lies in the system's folders, which are read-only";
    if (place.kind == PLACE_KERNEL)
        return "lies in the kernel's own tree";
    /* a shell may have written the caller's home for `~` */
    if (p->home != NULL && !path_within(STR_LIT(OWN_HOME), str_of(p->home)) &&
        path_within(str_of(path), str_of(p->home)))
        return "lies in your home, which is not the home inside (" OWN_HOME ")";
    return NULL;
}

int
check_secret_files(const struct policy *p, struct err *err)
{
    for (size_t i = 0; i < p->n_secret_files; i++) {
        const struct policy_secret_file *f = &p->secret_files[i];
        const char *key = f->from.kind == ORIGIN_FILE ? "secret-files" : NULL, *why;

        if (p->n_secrets == 0) {
            REFUSE(&f->from, key, "policy.secret-file.unknown", "%s: no secret is named whose placeholder it could "
                   "hold", f->path);
            return err_hint(err, "add --secret NAME; `cloche secret ls` lists them");
        }
        if (p->view.v != VIEW_PRIVATE) {
            REFUSE(&f->from, key, "policy.secret-file.view", "%s: in the host's tree there is no place for it",
                   f->path);
            return err_hint(err, "use --view private, or the secret's variable");
        }
        why = unfit(p, f->path);
        if (why != NULL) {
            REFUSE(&f->from, key, "policy.secret-file.place", "%s %s", f->path, why);
            return err_hint(err, "such as '~/.npmrc' (quoted, for the shell knows another home) or /run/secrets/NAME");
        }
        for (size_t k = 0; k < p->n_secret_files; k++)
            if (k != i && path_within(str_of(f->path), str_of(p->secret_files[k].path))) {
                REFUSE(&f->from, key, "policy.secret-file.twice", "%s: %s is a file already", f->path,
                       p->secret_files[k].path);
                return err_hint(err, "name each file once");
            }
    }
    return 0;
}
