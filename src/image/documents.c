/* image/documents.c: indexes, manifests and configurations of images, which strangers wrote (see image.h) */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/array.h"
#include "image/image.h"

#define TEXT_MAX 65536

static int
bad(struct err *err, const char *what)
{
    return err_set(err, ERR_POLICY, "image.document", "the image's documents are not as they should be: %s", what);
}

static json_t *
load(const void *text, size_t n, struct err *err)
{
    json_error_t why;
    json_t *doc = n <= IMAGE_DOC_MAX ? json_loadb(text, n, JSON_REJECT_DUPLICATES, &why) : NULL;

    if (doc == NULL)
        err_set(err, ERR_POLICY, "image.document", "a document of the image %s", n <= IMAGE_DOC_MAX ? "is no JSON"
                                                                                 : "is too large");
    return doc;
}

static const char *
text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));

    return s != NULL ? s : "";
}

static bool
copy(char *out, size_t cap, const char *s)
{
    size_t n = strlen(s);

    if (n >= cap)
        return false;
    memcpy(out, s, n + 1);
    return true;
}

void
image_platform_here(struct image_platform *out)
{
    static const struct { const char *kernel, *name; } names[] = {
        { "x86_64", "amd64" }, { "aarch64", "arm64" }, { "armv7l", "arm" }, { "i686", "386" }, { "ppc64le", "ppc64le" },
        { "s390x", "s390x" }, { "riscv64", "riscv64" },
    };
    struct utsname host;

    *out = (struct image_platform){ .os = "linux", .architecture = "unknown" };
    if (uname(&host) < 0)
        return;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(host.machine, names[i].kernel) == 0)
            copy(out->architecture, sizeof(out->architecture), names[i].name);
}

bool
image_platform_parse(struct str text, struct image_platform *out)
{
    char *fields[] = { out->os, out->architecture, out->variant };
    size_t k = 0, n = 0;

    *out = (struct image_platform){ .os = "" };
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == '/') {
            if (n == 0 || ++k == ARRAY_LEN(fields))
                return false;
            n = 0;
        } else if (((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.') && n < 31) {
            fields[k][n++] = c;
        } else {
            return false;
        }
    }
    return k >= 1 && n > 0;
}

/* --- indexes and manifests ---------------------------------------------------------------------------------------- */

int
image_is_index(const void *text, size_t n, struct err *err)
{
    json_t *doc = load(text, n, err);
    bool index, manifest;

    if (doc == NULL)
        return -1;
    index = json_is_array(json_object_get(doc, "manifests"));
    manifest = json_is_array(json_object_get(doc, "layers")) && json_is_object(json_object_get(doc, "config"));
    json_decref(doc);
    if (index == manifest)
        return bad(err, "neither an index nor a manifest (schema version 1 is not read)");
    return index;
}

static int
blob_read(const json_t *o, struct image_blob *out, struct err *err)
{
    const char *digest = text_of(o, "digest");
    const json_t *size = json_object_get(o, "size");

    if (!image_ref_is_digest(str_of(digest)))
        return bad(err, "a digest is none of sha256");
    if (!json_is_integer(size) || json_integer_value(size) < 0)
        return bad(err, "a size is missing");
    copy(out->digest, sizeof(out->digest), digest);
    out->size = (uint64_t)json_integer_value(size);
    return 0;
}

static bool
fits(const json_t *entry, const struct image_platform *want)
{
    const json_t *p = json_object_get(entry, "platform");

    if (p == NULL)          /* it does not say: the configuration will */
        return true;
    return strcmp(text_of(p, "os"), want->os) == 0 && strcmp(text_of(p, "architecture"), want->architecture) == 0 &&
           (want->variant[0] == '\0' || strcmp(text_of(p, "variant"), want->variant) == 0);
}

/* The name that an entry of an index has, as people write it; "" without one. */
static void
name_of(const json_t *entry, char out[IMAGE_REF_MAX + 1])
{
    static const char *const keys[] = { "io.containerd.image.name", "org.opencontainers.image.ref.name" };
    const json_t *notes = json_object_get(entry, "annotations");
    struct image_ref ref;

    out[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(keys) && out[0] == '\0'; i++)
        if (image_ref_parse(str_of(text_of(notes, keys[i])), &ref) == NULL)
            image_ref_name(&ref, out);
}

static int
none_fits(const struct image_platform *want, const char *name, struct err *err)
{
    err_set(err, ERR_NOT_FOUND, "image.platform", "there is no image for %s/%s%s%s%s%s%s", want->os,
            want->architecture, want->variant[0] != '\0' ? "/" : "", want->variant, name != NULL ? " named \"" : "",
            name != NULL ? name : "", name != NULL ? "\"" : "");
    return err_hint(err, "--platform OS/ARCHITECTURE chooses another one");
}

int
image_index_pick(const void *text, size_t n, const struct image_platform *platform, const char *name,
                 struct image_blob *out, char found[IMAGE_REF_MAX + 1], struct err *err)
{
    json_t *doc = load(text, n, err);
    const json_t *entry, *chosen = NULL;
    bool named = false, several = false;
    char has[IMAGE_REF_MAX + 1];
    size_t i;
    int r = -1;

    if (doc == NULL)
        return -1;
    json_array_foreach(json_object_get(doc, "manifests"), i, entry) {
        if (!fits(entry, platform))
            continue;
        name_of(entry, has);
        if (name != NULL && strcmp(has, name) == 0 && !named) {
            chosen = entry;
            named = true;
        } else if (!named) {
            several = chosen != NULL;
            chosen = chosen != NULL ? chosen : entry;
        }
    }
    if (chosen == NULL) {
        none_fits(platform, NULL, err);
    } else if (several && !named && name == NULL) {
        err_set(err, ERR_USAGE, "image.several", "there are several images for %s/%s", platform->os,
                platform->architecture);
        err_hint(err, "give the name of the one that is meant");
    } else if (several && !named) {
        none_fits(platform, name, err);
    } else {
        r = blob_read(chosen, out, err);
        if (r == 0 && found != NULL)
            name_of(chosen, found);
    }
    json_decref(doc);
    return r;
}

int
image_manifest_read(const void *text, size_t n, struct image_manifest *out, struct err *err)
{
    json_t *doc = load(text, n, err);
    const json_t *layers = json_object_get(doc, "layers"), *layer;
    int r = -1;
    size_t i;

    *out = (struct image_manifest){ .n_layers = 0 };
    if (doc == NULL)
        return -1;
    if (!json_is_array(layers) || json_array_size(layers) > IMAGE_LAYERS_MAX)
        bad(err, "it has no layers, or more than 128");
    else
        r = blob_read(json_object_get(doc, "config"), &out->config, err);
    json_array_foreach(layers, i, layer) {
        if (r < 0)
            break;
        r = blob_read(layer, &out->layers[out->n_layers++], err);
    }
    json_decref(doc);
    return r;
}

/* --- docker save -------------------------------------------------------------------------------------------------- */

static void
archive_name(const json_t *entry, const char *want, char out[IMAGE_REF_MAX + 1])
{
    const json_t *tag;
    char first[IMAGE_REF_MAX + 1] = "";
    struct image_ref ref;
    size_t i;

    json_array_foreach(json_object_get(entry, "RepoTags"), i, tag) {
        if (!json_is_string(tag) || image_ref_parse(str_of(json_string_value(tag)), &ref) != NULL)
            continue;
        image_ref_name(&ref, out);
        if (want != NULL && strcmp(out, want) == 0)
            return;
        if (first[0] == '\0')
            memcpy(first, out, sizeof(first));
    }
    memcpy(out, first, sizeof(first));
}

static int
archive_entry(const json_t *entry, struct image_archive *out, struct err *err)
{
    const json_t *layers = json_object_get(entry, "Layers"), *layer;
    size_t i;

    if (!copy(out->config, sizeof(out->config), text_of(entry, "Config")) || out->config[0] == '\0' ||
        !json_is_array(layers) || json_array_size(layers) > IMAGE_LAYERS_MAX)
        return bad(err, "an image in manifest.json has no configuration, no layers, or too many");
    json_array_foreach(layers, i, layer) {
        if (!json_is_string(layer) ||
            !copy(out->layers[out->n_layers++], sizeof(out->layers[0]), json_string_value(layer)))
            return bad(err, "a layer in manifest.json has no name, or too long a one");
    }
    return 0;
}

int
image_archive_read(const void *text, size_t n, const char *name, struct image_archive *out, struct err *err)
{
    json_t *doc = load(text, n, err);
    const json_t *entry, *chosen = NULL;
    size_t i;
    int r = -1;

    *out = (struct image_archive){ .n_layers = 0 };
    if (doc == NULL)
        return -1;
    json_array_foreach(doc, i, entry) {
        archive_name(entry, name, out->name);
        if (name != NULL && strcmp(out->name, name) == 0) {
            chosen = entry;
            break;
        }
    }
    if (chosen == NULL && json_array_size(doc) > 1) {
        err_set(err, ERR_USAGE, "image.several", "the archive holds %zu images", json_array_size(doc));
        err_hint(err, "give the name of the one that is meant");
    } else {
        chosen = chosen != NULL ? chosen : json_array_get(doc, 0);
        archive_name(chosen, name, out->name);
        r = archive_entry(chosen, out, err);
    }
    json_decref(doc);
    return r;
}

/* --- configurations ----------------------------------------------------------------------------------------------- */

static bool
is_variable(const char *s)
{
    const char *eq = strchr(s, '=');

    return eq != NULL && eq != s && eq - s < 256;
}

/* A list of strings of @config as one of the record; a missing one is empty. */
static json_t *
strings(const json_t *config, const char *key, size_t max, bool variables, struct err *err)
{
    const json_t *list = json_object_get(config, key), *one;
    json_t *out = json_array();
    size_t i;

    if (list != NULL && !json_is_null(list) && (!json_is_array(list) || json_array_size(list) > max)) {
        bad(err, "a list of its configuration is none, or too long");
        json_decref(out);
        return NULL;
    }
    json_array_foreach(list, i, one) {
        if (!json_is_string(one) || json_string_length(one) > TEXT_MAX ||
            (variables && !is_variable(json_string_value(one)))) {
            bad(err, variables ? "a variable is not NAME=VALUE" : "a word of a command is none");
            json_decref(out);
            return NULL;
        }
        json_array_append_new(out, json_string(json_string_value(one)));
    }
    return out;
}

static json_t *
layers_of(const json_t *doc, struct err *err)
{
    const json_t *list = json_object_get(json_object_get(doc, "rootfs"), "diff_ids"), *one;
    json_t *out = json_array();
    size_t i;

    if (!json_is_array(list) || json_array_size(list) > IMAGE_LAYERS_MAX) {
        bad(err, "the configuration lists no layers, or more than 128");
        json_decref(out);
        return NULL;
    }
    json_array_foreach(list, i, one) {
        if (!json_is_string(one) || !image_ref_is_digest(str_of(json_string_value(one)))) {
            bad(err, "a layer's digest is none of sha256");
            json_decref(out);
            return NULL;
        }
        json_array_append_new(out, json_string(json_string_value(one)));
    }
    return out;
}

static json_t *
short_text(const json_t *o, const char *key, size_t max)
{
    const char *s = text_of(o, key);

    return json_string(strlen(s) <= max ? s : "");
}

/* An absolute path; what is written otherwise is meant from the root, as docker takes it. */
static json_t *
workdir_of(const json_t *config)
{
    const char *s = text_of(config, "WorkingDir");

    return s[0] == '\0' || strlen(s) >= 4095 ? json_string("") : s[0] == '/' ? json_string(s)
                                                                              : json_sprintf("/%s", s);
}

static int
fill(json_t *out, const json_t *doc, struct err *err)
{
    static const struct { const char *key, *from; size_t max; bool variables; } lists[] = {
        { "env", "Env", IMAGE_ENV_MAX, true }, { "entrypoint", "Entrypoint", IMAGE_WORDS_MAX, false },
        { "cmd", "Cmd", IMAGE_WORDS_MAX, false },
    };
    const json_t *config = json_object_get(doc, "config");
    json_t *layers = layers_of(doc, err);

    if (layers == NULL)
        return -1;
    json_object_set_new(out, "os", short_text(doc, "os", 31));
    json_object_set_new(out, "architecture", short_text(doc, "architecture", 31));
    json_object_set_new(out, "created", short_text(doc, "created", 63));
    json_object_set_new(out, "layers", layers);
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        json_t *list = strings(config, lists[i].from, lists[i].max, lists[i].variables, err);
        if (list == NULL)
            return -1;
        json_object_set_new(out, lists[i].key, list);
    }
    json_object_set_new(out, "user", short_text(config, "User", 255));
    json_object_set_new(out, "workdir", workdir_of(config));
    return 0;
}

json_t *
image_config_read(const void *text, size_t n, const struct image_platform *platform, struct err *err)
{
    json_t *doc = load(text, n, err), *out = NULL;

    if (doc == NULL)
        return NULL;
    out = json_object();
    if (!json_is_object(doc))
        bad(err, "the configuration is no object");
    else if (platform != NULL && (strcmp(text_of(doc, "os"), platform->os) != 0 ||
                                  strcmp(text_of(doc, "architecture"), platform->architecture) != 0))
        none_fits(platform, NULL, err);
    else if (fill(out, doc, err) == 0) {
        json_decref(doc);
        return out;
    }
    json_decref(out);
    json_decref(doc);
    return NULL;
}

void
image_tree_of(const json_t *record, char out[65])
{
    const json_t *layer;
    uint8_t hash[SHA256_SIZE];
    struct sha256 h;
    size_t i;

    sha256_init(&h);
    sha256_add(&h, "cloche tree 1\n", 14);      /* other rules of unpacking make other trees */
    json_array_foreach(json_object_get(record, "layers"), i, layer) {
        sha256_add(&h, json_string_value(layer), json_string_length(layer));
        sha256_add(&h, "\n", 1);
    }
    sha256_end(&h, hash);
    sha256_text(hash, out);
}

void
image_digest_end(struct sha256 *h, char out[IMAGE_DIGEST_TEXT + 1])
{
    uint8_t hash[SHA256_SIZE];

    sha256_end(h, hash);
    memcpy(out, "sha256:", 7);
    sha256_text(hash, out + 7);
}

void
image_digest_of(const struct buf *text, char out[IMAGE_DIGEST_TEXT + 1])
{
    struct sha256 h;

    sha256_init(&h);
    if (text->n > 0)
        sha256_add(&h, text->p, text->n);
    image_digest_end(&h, out);
}

void
image_blob_path(const char *digest, char out[IMAGE_BLOB_PATH])
{
    snprintf(out, IMAGE_BLOB_PATH, "blobs/sha256/%s", digest + 7);
}
