/* hosts/registry_kept.c: see registry_kept.h */
#include "hosts/registry_kept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "hosts/ask.h"
#include "hosts/registry_priv.h"
#include "program/state.h"

#define VERSION     2
#define LOCK_MS     60000           /* then it is asked twice, rather than never */
#define KEPT_MAX    (256 * 1024)
#define SETTLED_NS  100000000       /* a file that changed so shortly before it was read may have changed afterwards */

/* --- what it depends on ------------------------------------------------------------------------------------------- */

static bool
begins(const char *text, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strncasecmp(text, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

/* A password does not go to the disk. */
static bool
has_credentials(const char *entry)
{
    static const char *const names[] = { "auth", "pass", "token", "secret", "key" };
    static const char *const values[] = { "passw", "passphrase", "token", "secret", "@" };
    size_t n = strcspn(entry, "=");

    for (size_t at = 0; entry[at] != '\0'; at++)
        if (at < n ? begins(entry + at, names, ARRAY_LEN(names))
                   : begins(entry + at, values, ARRAY_LEN(values)))
            return true;
    return false;
}

/* The variables that decide where a client goes. NULL: one may hold credentials. */
static json_t *
variables(const struct policy *p)
{
    static const char *const deciding[] = { "HOME=", "XDG_CONFIG_", "npm_", "NODE_", "PREFIX=", "PIP_", "PYTHON",
                                            "VIRTUAL_ENV", "APT_", "CARGO_", "RUSTUP_", "MAVEN_", "M2_",
                                            "JAVA_" };
    json_t *all = json_object();

    for (char **e = environ; *e != NULL; e++) {
        size_t n = strcspn(*e, "=");
        if (!begins(*e, deciding, ARRAY_LEN(deciding)) || !ask_passes(p, *e))
            continue;
        if (has_credentials(*e) || (*e)[n] == '\0' ||
            json_object_setn_new(all, *e, n, json_string(*e + n + 1)) < 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

/* Which state the file is in; NULL: that cannot be said. */
static json_t *
state_of(const char *path, struct timespec *changed)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR ? json_string("absent") : NULL;
    if (changed != NULL)
        *changed = st.st_ctim;
    return json_sprintf("%llx:%llu:%lld:%lld.%09ld:%lld.%09ld", (unsigned long long)st.st_dev,
                        (unsigned long long)st.st_ino, (long long)st.st_size, (long long)st.st_mtim.tv_sec,
                        st.st_mtim.tv_nsec, (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
}

/* All of it but the files; NULL: nothing is to be kept, or taken. */
static json_t *
circumstances(const struct policy *p, const char *client)
{
    cleanup_buf struct buf path = BUF_INIT(ASK_OUT_MAX);
    char program[PATH_MAX], state[PATH_MAX];
    json_t *env, *which;

    if (state_dir_path(state, NULL) < 0 || ask_writable(p, state) || ask_find(p, client, &path, program, NULL) < 0)
        return NULL;
    env = variables(p);
    which = state_of(program, NULL);
    if (env == NULL || which == NULL) {
        json_decref(env);
        json_decref(which);
        return NULL;
    }
    return json_pack("{s:i, s:s, s:s, s:s, s:o, s:o}", "version", VERSION, "cloche", CLOCHE_VERSION, "path",
                     (const char *)path.p, "program", program, "state", which, "variables", env);
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

static json_t *
load(int dir, const char *file)
{
    cleanup_close int fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    cleanup_buf struct buf text = BUF_INIT(KEPT_MAX);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0 ||
        st.st_nlink != 1 || io_read_all(fd, &text) < 0)
        return NULL;
    return json_loadb((const char *)text.p, text.n, JSON_REJECT_DUPLICATES, NULL);
}

static void
save(int dir, const char *file, const json_t *o)
{
    cleanup_free char *text = json_dumps(o, JSON_COMPACT);
    char fresh[128];
    int fd;
    bool whole;

    snprintf(fresh, sizeof(fresh), "%s.%ld", file, (long)getpid());
    unlinkat(dir, fresh, 0);
    fd = text == NULL ? -1 : openat(dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    whole = io_write_full(fd, text, strlen(text)) == 0;
    if (close(fd) < 0 || !whole || renameat(dir, fresh, dir, file) < 0)
        unlinkat(dir, fresh, 0);
}

/* --- both --------------------------------------------------------------------------------------------------------- */

static bool
is_fresh(const json_t *answer, json_int_t most_s)
{
    json_int_t at = json_integer_value(json_object_get(answer, "at")), now = (json_int_t)time(NULL);
    const char *path;
    json_t *state;

    if (at <= 0 || at > now || now - at >= most_s || json_array_size(json_object_get(answer, "hosts")) == 0)
        return false;
    json_object_foreach(json_object_get(answer, "files"), path, state) {
        json_t *now_in = state_of(path, NULL);
        bool same = now_in != NULL && json_equal(now_in, state);
        json_decref(now_in);
        if (!same)
            return false;
    }
    return true;
}

static json_t *
take(const struct policy *p, const char *name, const char *client, json_int_t most_s)
{
    json_t *now = circumstances(p, client), *kept = NULL, *answer = NULL;
    cleanup_close int dir = now != NULL ? state_own_open("registries", "cli.registry", NULL) : -1;
    char file[64];

    snprintf(file, sizeof(file), "%s.json", name);
    if (dir >= 0)
        kept = load(dir, file);
    if (kept != NULL && json_equal(now, json_object_get(kept, "for")) &&
        is_fresh(json_object_get(kept, "answer"), most_s))
        answer = json_incref(json_object_get(kept, "answer"));
    json_decref(now);
    json_decref(kept);
    return answer;
}

json_t *
registry_kept(const struct policy *p, const char *name, const char *client)
{
    return take(p, name, client, KEPT_S);
}

json_t *
registry_kept_for(const struct policy *p, const char *name, long most_s)
{
    const struct registry_client *client = registry_client(name);

    return client != NULL ? take(p, name, client->program, most_s) : NULL;
}

/* The states of the files in @files now; false when one changed so shortly before @began that it may have changed
 * again. */
static bool
settled(json_t *files, const struct timespec *began)
{
    const char *path;
    json_t *state;

    json_object_foreach(files, path, state) {
        struct timespec changed = { 0 };
        json_t *now_in = state_of(path, &changed);
        long long since = ((long long)began->tv_sec - changed.tv_sec) * 1000000000 + began->tv_nsec - changed.tv_nsec;
        if (since < SETTLED_NS || json_object_set_new(files, path, now_in) < 0)
            return false;
    }
    return true;
}

void
registry_keep(const struct policy *p, const char *name, const char *client, const struct timespec *began,
              json_t *answer)
{
    json_t *now = circumstances(p, client), *kept = NULL;
    cleanup_close int dir = now != NULL ? state_own_open("registries", "cli.registry", NULL) : -1;
    char file[64];

    snprintf(file, sizeof(file), "%s.json", name);
    if (dir >= 0 && settled(json_object_get(answer, "files"), began))
        kept = json_pack("{s:O, s:o}", "for", now, "answer", json_copy(answer));
    if (kept != NULL &&
        json_object_set_new(json_object_get(kept, "answer"), "at", json_integer((json_int_t)began->tv_sec)) == 0)
        save(dir, file, kept);
    json_decref(now);
    json_decref(kept);
}

int
registry_lock(const struct policy *p, const char *name)
{
    char state[PATH_MAX], file[64];
    cleanup_close int dir = state_dir_path(state, NULL) == 0 && !ask_writable(p, state)
                                ? state_own_open("registries", "cli.registry", NULL) : -1;
    cleanup_close int lock = -1;
    uint64_t began = clock_ms();

    snprintf(file, sizeof(file), "%s.lock", name);
    if (dir >= 0)
        lock = openat(dir, file, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    while (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0) {
        const struct timespec pause = { 0, 20000000 };
        if ((errno != EWOULDBLOCK && errno != EINTR) || clock_since(clock_ms(), began) >= LOCK_MS)
            close_fd(&lock);
        else
            nanosleep(&pause, NULL);
    }
    return take_fd(&lock);
}
