/* documents of images: indexes, manifests, configurations, manifest.json, and names. The first byte says which */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "image/image.h"
#include "imager/fetch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
digest_or_stop(const char *s)
{
    if (!image_ref_is_digest(str_of(s)))
        abort();
}

static void
check_config(const uint8_t *data, size_t n)
{
    struct err err = ERR_INIT;
    json_t *record = image_config_read(data, n, NULL, &err);
    struct image image = { .record = record, .tree = -1 };
    const json_t *layer;
    char tree[65];
    size_t i;

    if (record == NULL && err.code[0] == '\0')
        abort();
    if (record == NULL)
        return;
    json_array_foreach(json_object_get(record, "layers"), i, layer) {
        digest_or_stop(json_string_value(layer));
    }
    for (i = 0; image_word(&image, "env", i) != NULL; i++)
        if (strchr(image_word(&image, "env", i), '=') == NULL)
            abort();
    if (image_text(&image, "workdir")[0] != '\0' && image_text(&image, "workdir")[0] != '/')
        abort();
    image_tree_of(record, tree);
    json_decref(record);
}

static void
check_manifest(const uint8_t *data, size_t n)
{
    static struct image_manifest m;
    struct err err = ERR_INIT;

    if (image_manifest_read(data, n, &m, &err) < 0) {
        if (err.code[0] == '\0')
            abort();
        return;
    }
    digest_or_stop(m.config.digest);
    for (size_t i = 0; i < m.n_layers; i++)
        digest_or_stop(m.layers[i].digest);
}

static void
check_index(const uint8_t *data, size_t n)
{
    const struct image_platform here = { "linux", "amd64", "" };
    char found[IMAGE_REF_MAX + 1];
    struct image_blob blob;
    struct image_ref ref;

    if (image_index_pick(data, n, &here, NULL, &blob, found, NULL) == 0) {
        digest_or_stop(blob.digest);
        if (found[0] != '\0' && image_ref_parse(str_of(found), &ref) != NULL)
            abort();
    }
    (void)image_is_index(data, n, NULL);
}

static void
check_login(const uint8_t *data, size_t n)
{
    static struct fetch_challenge c;
    char login[1024];

    fetch_challenge_read((struct str){ (const char *)data, n }, &c);
    for (const char *at = c.realm; *at != '\0'; at++)
        if ((unsigned char)*at < ' ')
            abort();
    (void)fetch_login_of((const char *)data, n, "a.example:1", login);
    if (login[0] != '\0' && strchr(login, ':') == NULL)
        abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct image_archive archive;
    char name[IMAGE_REF_MAX + 1];
    struct image_ref ref, again;

    if (n == 0)
        return 0;
    switch (data[0] % 6) {
    case 0: check_config(data + 1, n - 1); break;
    case 1: check_manifest(data + 1, n - 1); break;
    case 2: check_index(data + 1, n - 1); break;
    case 4: check_login(data + 1, n - 1); break;
    case 3: (void)image_archive_read(data + 1, n - 1, NULL, &archive, NULL); break;
    default:
        if (image_ref_parse((struct str){ (const char *)data + 1, n - 1 }, &ref) != NULL || ref.host[0] == '\0')
            break;
        image_ref_name(&ref, name);
        /* what is shown means the same */
        if (ref.tag[0] != '\0' && (image_ref_parse(str_of(name), &again) != NULL || strcmp(again.path, ref.path) != 0 ||
                                   strcmp(again.host, ref.host) != 0 || strcmp(again.tag, ref.tag) != 0))
            abort();
    }
    return 0;
}
