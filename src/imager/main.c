/* imager/main.c: cloche-image: `cloche image`
 *
 * A program of its own, for it has the libraries that read archives and speak to registries. It keeps the store of
 * images; what strangers wrote is read by processes of its own (work.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "imager/imager.h"
#include "program/json.h"
#include "program/say.h"

#define SIZE_DEFAULT (32ULL << 30)
#define SIZE_MAX_TIB (64ULL << 40)
#define FILES_DEFAULT 2000000
#define TIME_DEFAULT_S 3600
#define TIME_MAX_MS   (24ULL * 3600 * 1000)

static int
set_platform(void *at, const char *value, struct err *err)
{
    if (image_platform_parse(str_of(value), at))
        return 0;
    err_set(err, ERR_USAGE, "image.platform", "--platform \"%.60s\" is no platform", value);
    return err_hint(err, "write OS/ARCHITECTURE[/VARIANT], as in linux/arm64");
}

static int
set_size(void *at, const char *value, struct err *err)
{
    uint64_t *size = at;

    if (str_parse_size(str_of(value), SIZE_MAX_TIB, size) && *size > 0)
        return 0;
    err_set(err, ERR_USAGE, "image.size", "--max-size \"%.60s\" is no size", value);
    return err_hint(err, "write it like 512m or 40g");
}

static int
set_files(void *at, const char *value, struct err *err)
{
    if (str_parse_u64(str_of(value), UINT32_MAX, at) && *(uint64_t *)at > 0)
        return 0;
    return err_set(err, ERR_USAGE, "image.size", "--max-files \"%.60s\" is no number from 1 on", value);
}

static int
set_time(void *at, const char *value, struct err *err)
{
    uint64_t ms;

    if (str_parse_duration_ms(str_of(value), TIME_MAX_MS, &ms) && ms >= 1000) {
        *(uint64_t *)at = ms / 1000;
        return 0;
    }
    err_set(err, ERR_USAGE, "image.time", "--timeout \"%.60s\" is no time from 1s to 24h", value);
    return err_hint(err, "write it like 20m");
}

static int
add_allow(void *at, const char *value, struct err *err)
{
    struct image_options *o = at;

    if (o->n_allow == IMAGE_ALLOW_MAX)
        return err_set(err, ERR_LIMIT, "image.allow", "more than %d times --allow-domain", IMAGE_ALLOW_MAX);
    o->allow[o->n_allow++] = value;
    return 0;
}

static int
add_arg(void *at, const char *value, struct err *err)
{
    struct image_options *o = at;

    if (o->n_args == IMAGE_ALLOW_MAX)
        return err_set(err, ERR_LIMIT, "image.build-arg", "more than %d times --build-arg", IMAGE_ALLOW_MAX);
    if (value[0] == '=' || strchr(value, '=') == NULL) {
        err_set(err, ERR_USAGE, "image.build-arg", "--build-arg \"%.60s\" has no name, or no value", value);
        return err_hint(err, "write NAME=VALUE; values of this environment are not taken");
    }
    o->args[o->n_args++] = value;
    return 0;
}

/* --- taking in ---------------------------------------------------------------------------------------------------- */

static bool
has_tree(void *ctx, const char *tree)
{
    return store_has_tree(ctx, tree);
}

/* What a person should know that is not as in the image. */
static void
warn_left_out(const json_t *record)
{
    const json_t *left = json_object_get(record, "left_out");
    long long devices = (long long)json_integer_value(json_object_get(left, "devices"));
    long long fifos = (long long)json_integer_value(json_object_get(left, "fifos"));
    long long setuid = (long long)json_integer_value(json_object_get(left, "setuid"));

    if (devices + fifos > 0)
        cli_warn("left out: %lld devices, %lld FIFOs and sockets", devices, fifos);
    if (setuid > 0)
        cli_warn("%lld files have lost setuid or setgid", setuid);
}

static int
say_taken(const struct image_options *o, json_t *record, const char *name, struct err *err)
{
    json_object_set_new(record, "name", json_string(name != NULL ? name : ""));
    if (o->json) {
        json_object_set_new(record, "version", json_integer(1));
        return cli_json_print(record, err);
    }
    warn_left_out(record);
    name = json_text(record, "name");       /* what was given may have lain there */
    printf("%s  %s\n", name[0] != '\0' ? name : "(no name)", json_text(record, "id"));
    json_decref(record);
    return cli_flush(err);
}

int
image_take(struct image_options *o, struct store *s, struct stage *stage, const struct image_source *what,
           const char *name, const char *from, struct err *err)
{
    struct work w = { .source = what->fd, .folder = what->folder, .place = stage->dir, .name = what->select,
                      .config = what->config, .platform = o->platform,
                      .any_platform = o->platform.os[0] != '\0', .limits = { o->max_size, o->max_files } };
    bool unpacked = false;
    json_t *record;

    if (!w.any_platform)
        image_platform_here(&w.platform);
    record = work_run(&w, has_tree, s, &unpacked, err);
    if (record == NULL)
        return -1;
    if (name == NULL && json_text(record, "name")[0] != '\0')
        name = json_text(record, "name");
    json_object_set_new(record, "source", cli_json_text(from));
    json_object_set_new(record, "imported", json_integer((json_int_t)time(NULL)));
    if (store_put(s, stage, record, unpacked, name, err) < 0) {
        json_decref(record);
        return -1;
    }
    return say_taken(o, record, name, err);
}

int
image_name_of(const char *written, char out[IMAGE_REF_MAX + 1], struct err *err)
{
    struct image_ref ref;
    const char *fault = image_ref_parse(str_of(written), &ref);

    if (fault != NULL || ref.host[0] == '\0' || ref.tag[0] == '\0') {
        err_set(err, ERR_USAGE, "image.name", "\"%.100s\" is no name for an image%s%s", written,
                fault != NULL ? ": " : "", fault != NULL ? fault : "");
        return err_hint(err, "write NAME or NAME:TAG, as in tools:1");
    }
    image_ref_name(&ref, out);
    return 0;
}

static int
open_source(const char *path, bool *folder, struct err *err)
{
    cleanup_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(err, errno, "image.source", "%s", path);
    *folder = S_ISDIR(st.st_mode);
    if (*folder || S_ISREG(st.st_mode))
        return take_fd(&fd);
    err_set(err, ERR_USAGE, "image.source", "%s is neither a file nor a folder", path);
    return err_hint(err, "what comes from another program has to be a file first");
}

static int
image_import(void *options, const struct verb_words *w, struct err *err)
{
    struct image_options *o = options;
    char name[IMAGE_REF_MAX + 1];
    struct store s = STORE_INIT;
    struct stage stage = STAGE_INIT;
    cleanup_close int source = -1;
    bool folder, named = w->n > 1;
    struct image_source what;
    int r = -1;

    if (named && image_name_of(w->v[1], name, err) < 0)
        return -1;
    source = open_source(w->v[0], &folder, err);
    if (source >= 0 && store_open(&s, err) == 0 && stage_begin(&s, &stage, err) == 0) {
        what = (struct image_source){ .fd = source, .folder = folder, .select = named ? name : NULL };
        r = image_take(o, &s, &stage, &what, what.select, w->v[0], err);
    }
    stage_end(&s, &stage);
    store_close(&s);
    return r;
}

/* --- showing ------------------------------------------------------------------------------------------------------ */

static void
print_size(long long bytes, char out[16])
{
    snprintf(out, 16, bytes < 10 << 20 ? "%lldK" : "%lldM", bytes < 10 << 20 ? (bytes + 1023) >> 10 : bytes >> 20);
}

static void
print_row(const json_t *record, const char *name)
{
    long long at = (long long)json_integer_value(json_object_get(record, "imported"));
    struct timespec when = { .tv_sec = (time_t)at };
    char size[16];

    print_size((long long)json_integer_value(json_object_get(record, "bytes")), size);
    printf("%-40s  %-19.19s  %-12s  %-20.19s  %7s\n", name, json_text(record, "id"),
           json_text(record, "architecture"), cli_time(&when).text, size);
}

static int
image_ls(void *options, const struct verb_words *w, struct err *err)
{
    const struct image_options *o = options;
    struct store s = STORE_INIT;
    const json_t *record, *name;
    json_t *list = store_open(&s, err) == 0 ? store_list(&s, err) : NULL;
    size_t i, k;

    (void)w;
    store_close(&s);
    if (list == NULL)
        return -1;
    if (o->json)
        return cli_json_print(json_pack("{s:i, s:o}", "version", 1, "images", list), err);
    printf("%-40s  %-19s  %-12s  %-20s  %7s\n", "NAME", "ID", "ARCHITECTURE", "HERE SINCE", "SIZE");
    json_array_foreach(list, i, record) {
        json_array_foreach(json_object_get(record, "names"), k, name) {
            print_row(record, json_string_value(name));
        }
        if (json_array_size(json_object_get(record, "names")) == 0)
            print_row(record, "-");
    }
    json_decref(list);
    return cli_flush(err);
}

static int
image_inspect(void *options, const struct verb_words *w, struct err *err)
{
    const struct image_options *o = options;
    struct store s = STORE_INIT;
    struct image image = IMAGE_INIT;
    int r = store_open(&s, err) == 0 ? image_find(s.path, w->v[0], &image, err) : -1;

    store_close(&s);
    if (r == 0) {
        json_object_set_new(image.record, "version", json_integer(1));
        json_object_set_new(image.record, "path", cli_json_text(image.path));
        r = cli_json(json_incref(image.record), o->json ? JSON_COMPACT : JSON_INDENT(2)) < 0
                ? err_set(err, ERR_SYSTEM, "cli.output", "cannot write the result") : cli_flush(err);
    }
    image_close(&image);
    return r;
}

/* --- removing ----------------------------------------------------------------------------------------------------- */

static int
remove_one(struct store *s, const char *name, json_t *removed, struct err *err)
{
    char id[IMAGE_DIGEST_TEXT + 1];
    bool gone, busy = false;

    if (store_remove(s, name, id, &gone, &busy, err) < 0)
        return -1;
    if (busy)
        cli_warn("%s: a sandbox has its files; the next change of the store after its end removes them", name);
    json_array_append_new(removed, json_pack("{s:s, s:s, s:b, s:b}", "name", name, "id", id, "removed", gone, "in_use",
                                             busy));
    return 0;
}

static int
image_rm(void *options, const struct verb_words *w, struct err *err)
{
    const struct image_options *o = options;
    struct store s = STORE_INIT;
    json_t *removed = json_array();
    const json_t *one;
    size_t i;
    int r = store_open(&s, err);

    for (size_t k = 0; r == 0 && k < w->n; k++)
        r = remove_one(&s, w->v[k], removed, err);
    store_close(&s);
    if (r == 0 && o->json)
        return cli_json_print(json_pack("{s:i, s:o}", "version", 1, "images", removed), err);
    json_array_foreach(removed, i, one) {
        printf("%s  %s\n", json_is_true(json_object_get(one, "removed")) ? "removed" : "name gone",
               json_text(one, "name"));
    }
    json_decref(removed);
    return r < 0 ? -1 : cli_flush(err);
}

static int
image_prune(void *options, const struct verb_words *w, struct err *err)
{
    const struct image_options *o = options;
    struct store s = STORE_INIT;
    size_t n = 0;
    int r = store_open(&s, err) == 0 ? store_prune(&s, &n, err) : -1;

    (void)w;
    store_close(&s);
    if (r < 0)
        return -1;
    if (o->json)
        return cli_json_print(json_pack("{s:i, s:I}", "version", 1, "removed", (json_int_t)n), err);
    printf("%zu images without a name removed\n", n);
    return cli_flush(err);
}

/* --- the verb ----------------------------------------------------------------------------------------------------- */

static const struct verb_form forms[] = {
    { "import", "import FILE|DIR [NAME]", 1, 2, "what is to be imported is missing", "cloche image import FILE [NAME]",
      image_import },
    { "build", "build RECIPE|./FOLDER [NAME]", 0, 2, NULL, NULL, image_build },
    { "save", "save NAME...", 1, VERB_ANY, "the image's name is missing", "cloche image save NAME --output FILE",
      image_save },
    { "pull", "pull NAME", 1, 1, "the image's name is missing", "cloche image pull NAME", image_pull },
    { "ls", "ls", 0, 0, NULL, NULL, image_ls },
    { "inspect", "inspect NAME", 1, 1, "the image's name is missing", "cloche image inspect NAME", image_inspect },
    { "rm", "rm NAME...", 1, VERB_ANY, "the image's name is missing", "cloche image rm NAME", image_rm },
    { "prune", "prune", 0, 0, NULL, NULL, image_prune },
};

static const struct verb_flag flags[] = {
    { "--platform", 0, "OS/ARCHITECTURE", "which of an image's platforms; this machine's by default",
      FLAG_SET(struct image_options, platform, set_platform) },
    { "--max-size", 0, "SIZE", "refuse an image whose files are larger; 32g by default",
      FLAG_SET(struct image_options, max_size, set_size) },
    { "--max-files", 0, "N", "refuse an image with more files and folders; 2000000 by default",
      FLAG_SET(struct image_options, max_files, set_files) },
    { "--ca", 0, "FILE", "certificates that a registry is trusted by; the host's by default",
      FLAG_TEXT(struct image_options, ca) },
    { "--list", 0, NULL, "build: the recipes that there are", FLAG_ON(struct image_options, list) },
    { "--show", 0, NULL, "build: what is in the recipe, instead of building it", FLAG_ON(struct image_options, show) },
    { "--allow-domain", 0, "HOST[:PORT]", "build: another host that the build may reach", .at = 0, .set = add_allow },
    { "--timeout", 0, "TIME", "build: how long it may take; 1h by default",
      FLAG_SET(struct image_options, time_s, set_time) },
    { "--verbose", 0, NULL, "build: all that mmdebstrap or Docker says", FLAG_ON(struct image_options, verbose) },
    { "--file", 0, "FILE", "build: of the folder; Containerfile or Dockerfile by default",
      FLAG_TEXT(struct image_options, file) },
    { "--target", 0, "STAGE", "build: the stage of the Containerfile; the last one by default",
      FLAG_TEXT(struct image_options, target) },
    { "--build-arg", 0, "NAME=VALUE", "build: a variable of the Containerfile (ARG)", .at = 0, .set = add_arg },
    { "--builder", 0, "NAME", "build: the image whose Docker builds; localhost/docker:bookworm by default",
      FLAG_TEXT(struct image_options, builder) },
    { "--memory", 0, "SIZE", "build: of the machine that builds; 4g by default",
      FLAG_TEXT(struct image_options, memory) },
    { "--output", 0, "FILE", "save: a new file; standard output by default", FLAG_TEXT(struct image_options, output) },
    { "--json", 0, NULL, "one JSON object", FLAG_ON(struct image_options, json) },
};

static const struct verb image_verb = {
    .name = "image",
    .about = "Images: systems that sandboxes have instead of the host's (cloche run --image NAME).\n",
    .after = "FILE is an OCI layout or `docker save` archive, or a tar of the files themselves (`docker export`,\n"
             "mmdebstrap); DIR is an OCI layout. FOLDER has a Containerfile, which Docker builds in a machine of its\n"
             "own.\n",
    VERB_FORMS(forms),
    VERB_FLAGS(flags),
    .needs_word = true,
    .misused = "image.misused",
};

int
main(int argc, char **argv)
{
    struct image_options o = { .max_size = SIZE_DEFAULT, .max_files = FILES_DEFAULT,
                               .time_s = TIME_DEFAULT_S };

    sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    /* a file that may not be larger is an error like a full disk */
    sigaction(SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    umask(0077);
    if (argc > 1 && strcmp(argv[1], "image") == 0)
        return verb_main(&image_verb, &o, argc - 1, argv + 1);
    fprintf(stderr, "cloche-image is started by cloche; see `cloche image --help`\n");
    return 1;
}
