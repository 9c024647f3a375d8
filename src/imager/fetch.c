/* imager/fetch.c: see fetch.h */
#include "imager/fetch.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/sha256.h"
#include "match/ip.h"

#define TRIES          5
#define CONNECT_S      30L
#define DOCUMENT_S     60L
#define SLOW_S         60L          /* that long without SLOW_BYTES a second: it is over */
#define SLOW_BYTES     256L
#define REDIRECTS      5L
#define TOKEN_MAX      16384
#define DIRECT_MAX     16384
#define LOOPBACK       "localhost,127.0.0.1,127.0.0.0/8"
#define HUB_HOST       "registry-1.docker.io"
#define ACCEPT                                                                                                         \
    "Accept: application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json, "    \
    "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"

/* Who is spoken to, and as whom. */
struct registry {
    const struct fetch *f;
    CURL *curl;
    bool local;                     /* this machine's loopback: plain HTTP may be */
    char base[600];                 /* "https://HOST/v2/PATH" */
    char direct[DIRECT_MAX];        /* hosts that no proxy is asked for */
    bool heeds;                     /* what the answer wants of us counts: it is the registry's own */
    char token[TOKEN_MAX + 32];     /* "Bearer ..." */
    struct fetch_challenge challenge;
    uint64_t all, got;              /* of all layers; for the progress */
    char errors[CURL_ERROR_SIZE];
};

/* Where an answer's body goes, of which there is an end. */
struct sink {
    struct registry *r;
    struct buf *doc;
    int fd;
    uint64_t max, n;                /* bytes that may come, that are there */
    struct sha256 hash;
    bool too_much, no_room;
    bool no_range;                  /* the answer would have been all of it, not what is missing */
};

/* --- one request -------------------------------------------------------------------------------------------------- */

/* Of this machine's own a proxy knows nothing, but would read the login in plain text; libcurl would ask it. */
static void
direct(struct registry *r)
{
    const char *said = getenv("no_proxy");

    said = said != NULL ? said : getenv("NO_PROXY");
    if (said != NULL && strcmp(said, "*") == 0)
        snprintf(r->direct, sizeof(r->direct), "*");
    else
        snprintf(r->direct, sizeof(r->direct), LOOPBACK ",%s", said != NULL ? said : "");
}

static size_t
on_data(char *data, size_t size, size_t n, void *ctx)
{
    struct sink *s = ctx;
    long status = 0;

    n *= size;
    curl_easy_getinfo(s->r->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200 && status != 206)
        return n;           /* what an error says is nobody's business */
    s->too_much = n > s->max - s->n;
    if (s->too_much)
        return 0;
    if (s->doc != NULL ? buf_append(s->doc, data, n) < 0 : io_write_full(s->fd, data, n) < 0) {
        s->no_room = true;
        return 0;
    }
    if (s->doc == NULL)
        sha256_add(&s->hash, data, n);
    s->n += n;
    return n;
}

static size_t
on_header(char *data, size_t size, size_t n, void *ctx)
{
    struct registry *r = ctx;
    static const char name[] = "www-authenticate:";
    struct fetch_challenge c;
    long led = 0;

    n *= size;
    curl_easy_getinfo(r->curl, CURLINFO_REDIRECT_COUNT, &led);
    /* who the registry led us to says to whom our login goes as little as who gives tokens */
    if (r->heeds && led == 0 && n > sizeof(name) && strncasecmp(data, name, sizeof(name) - 1) == 0) {
        fetch_challenge_read((struct str){ data + sizeof(name) - 1, strcspn(data + sizeof(name) - 1, "\r\n") }, &c);
        if (c.bearer || (c.basic && !r->challenge.bearer))
            r->challenge = c;
    }
    return n;
}

static int
on_progress(void *ctx, curl_off_t all, curl_off_t now, curl_off_t up, curl_off_t upped)
{
    struct registry *r = ctx;

    (void)all;
    (void)up;
    (void)upped;
    if (r->f->progress && r->all > 0)
        fprintf(stderr, "\r%llu of %llu MiB  ", (unsigned long long)((r->got + (uint64_t)now) >> 20),
                (unsigned long long)(r->all >> 20));
    return 0;
}

static void
prepare(struct registry *r, const char *url, struct sink *s, long seconds)
{
    struct curl_blob ca = { (void *)(uintptr_t)r->f->ca, r->f->ca_n, CURL_BLOB_NOCOPY };
    const char *protocols = r->local ? "https,http" : "https";
    CURL *c = r->curl;

    curl_easy_reset(c);
    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, r->errors);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, protocols);
    curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, protocols);
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(c, CURLOPT_MAXREDIRS, REDIRECTS);
    curl_easy_setopt(c, CURLOPT_NOPROXY, r->direct);
    curl_easy_setopt(c, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);      /* nor does a proxy say what the registry wants */
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
    curl_easy_setopt(c, CURLOPT_TIMEOUT, seconds);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, SLOW_S);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES);
    curl_easy_setopt(c, CURLOPT_USERAGENT, "cloche/" CLOCHE_VERSION);
    curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (r->f->ca_n > 0) {
        curl_easy_setopt(c, CURLOPT_CAINFO_BLOB, &ca);
        curl_easy_setopt(c, CURLOPT_CAPATH, NULL);
    }
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, s);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, r);
    curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(c, CURLOPT_XFERINFODATA, r);
    curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    if (s->n > 0)
        curl_easy_setopt(c, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)s->n);
    r->errors[0] = '\0';
}

/* The status of the answer, or -1 with @err. @token: as whom the registry knows us; libcurl gives it to no other host
 * that an answer leads to. */
static long
get(struct registry *r, const char *url, struct sink *s, bool token, long seconds, struct err *err)
{
    struct curl_slist *headers = curl_slist_append(NULL, ACCEPT);
    char line[TOKEN_MAX + 64];
    long status = 0;
    CURLcode code;

    prepare(r, url, s, seconds);
    r->heeds = token;
    if (token)
        r->challenge = (struct fetch_challenge){ .bearer = false };
    if (token && r->token[0] != '\0') {
        snprintf(line, sizeof(line), "Authorization: %s", r->token);
        headers = curl_slist_append(headers, line);
    } else if (!token && r->f->login != NULL) {
        curl_easy_setopt(r->curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        curl_easy_setopt(r->curl, CURLOPT_USERPWD, r->f->login);
    }
    curl_easy_setopt(r->curl, CURLOPT_HTTPHEADER, headers);
    code = curl_easy_perform(r->curl);
    curl_slist_free_all(headers);
    explicit_bzero(line, sizeof(line));
    curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_OK)
        return status;
    if (s->too_much)
        return err_set(err, ERR_LIMIT, "image.limit", "%s answers with more than it said, or than is taken", url);
    s->no_range = code == CURLE_RANGE_ERROR;
    if (s->no_room)
        return err_sys(err, errno, "image.store", "keep what the registry sends");
    err_set(err, ERR_SYSTEM, "image.registry", "%.300s: %s", url, r->errors[0] != '\0' ? r->errors
                                                                                     : curl_easy_strerror(code));
    if (code == CURLE_PEER_FAILED_VERIFICATION)
        return err_hint(err, "its certificate is not trusted here; --ca FILE names another one's certificate");
    return err_hint(err, "the registry cannot be reached, or broke off; what came of it is kept for the next try");
}

/* Whether HOST[:PORT] is this machine's own. */
static bool
is_local(const char *host)
{
    struct str name = { host, strcspn(host, ":") };
    struct ip ip;

    return str_eq_c(name, "localhost") || (ip_parse(name, &ip) && ip_classify(ip) == IP_LOOPBACK);
}

/* --- as whom ------------------------------------------------------------------------------------------------------ */

/* The realm is another host's as a rule, and gets our login: by HTTPS (libcurl knows of nothing else then), or here. */
static bool
realm_is_safe(const char *realm)
{
    char host[256];
    size_t n;

    if (strncasecmp(realm, "http://", 7) != 0)
        return strncasecmp(realm, "https://", 8) == 0;
    n = strcspn(realm + 7, "/?#");
    if (n >= sizeof(host) || memchr(realm + 7, '@', n) != NULL)
        return false;
    memcpy(host, realm + 7, n);
    host[n] = '\0';
    return is_local(host);
}

static int
token_get(struct registry *r, struct err *err)
{
    cleanup_buf struct buf doc = BUF_INIT(IMAGE_DOC_MAX);
    struct sink s = { .r = r, .doc = &doc, .max = IMAGE_DOC_MAX };
    char *service = curl_easy_escape(r->curl, r->challenge.service, 0), url[4096];
    char *scope = curl_easy_escape(r->curl, r->challenge.scope, 0);
    const char *text;
    json_t *answer;
    long status;
    int r2 = 0;

    if (!realm_is_safe(r->challenge.realm)) {
        curl_free(service);
        curl_free(scope);
        return err_set(err, ERR_DENIED, "image.login", "the registry asks for a login at \"%.200s\", which is neither "
                       "HTTPS nor this machine", r->challenge.realm);
    }
    snprintf(url, sizeof(url), "%s%sservice=%s&scope=%s", r->challenge.realm,
             strchr(r->challenge.realm, '?') != NULL ? "&" : "?", service != NULL ? service : "",
             scope != NULL ? scope : "");
    curl_free(service);
    curl_free(scope);
    status = get(r, url, &s, false, DOCUMENT_S, err);
    if (status < 0)
        return -1;
    answer = status == 200 ? json_loadb((const char *)doc.p, doc.n, 0, NULL) : NULL;
    text = json_string_value(json_object_get(answer, "token"));
    text = text != NULL ? text : json_string_value(json_object_get(answer, "access_token"));
    if (text == NULL || strlen(text) > TOKEN_MAX || strpbrk(text, "\r\n") != NULL)
        r2 = err_set(err, ERR_DENIED, "image.login", "%.200s gives no token (status %ld)", r->challenge.realm, status);
    else
        snprintf(r->token, sizeof(r->token), "Bearer %s", text);
    json_decref(answer);
    return r2;
}

static int
basic(struct registry *r)
{
    cleanup_buf struct buf text = BUF_INIT(4096);

    buf_puts(&text, "Basic ");
    if (r->f->login == NULL || base64_put(&text, r->f->login, strlen(r->f->login)) < 0 || buf_nul(&text) < 0)
        return -1;
    snprintf(r->token, sizeof(r->token), "%s", (const char *)text.p);
    return 0;
}

static int
denied(const struct registry *r, long status, struct err *err)
{
    char name[IMAGE_REF_MAX + 1];

    image_ref_name(r->f->ref, name);
    if (status == 404)
        return err_set(err, ERR_NOT_FOUND, "image.unknown", "the registry has no \"%s\"%s%s", name,
                       r->f->ref->digest[0] != '\0' ? "@" : "", r->f->ref->digest);
    if (status == 401 || status == 403) {
        err_set(err, ERR_DENIED, "image.login", "the registry does not give \"%s\" to %s (status %ld)", name,
                r->f->login != NULL ? "this login" : "everybody", status);
        return err_hint(err, "it may not exist, or want a login: `docker login` keeps one in ~/.docker/config.json, "
                        "which is read here too");
    }
    return err_set(err, ERR_SYSTEM, "image.registry", "the registry answers with status %ld", status);
}

/* @url, after the questions that it asks first. The status, 200 or 206; -1 with @err. */
static long
get_known(struct registry *r, const char *url, struct sink *s, long seconds, struct err *err)
{
    bool asked = false;

    for (;;) {
        long status = get(r, url, s, true, seconds, err);
        if (status < 0 || status == 200 || status == 206)
            return status;
        if (status != 401 || asked)
            return denied(r, status, err);
        asked = true;
        if (r->challenge.bearer ? token_get(r, err) < 0 : !r->challenge.basic || basic(r) < 0)
            return r->challenge.bearer ? -1 : denied(r, status, err);
    }
}

/* --- documents and layers ----------------------------------------------------------------------------------------- */

static int
no_match(const char *want, const char *is, struct err *err)
{
    err_set(err, ERR_DENIED, "image.digest", "what is named %s is %s", want, is);
    return err_hint(err, "the registry, or somebody on the way, gives another thing than was asked for");
}

static int
write_file(int place, const char *path, const void *data, size_t n, struct err *err)
{
    cleanup_close int fd = openat(place, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

    return fd < 0 || io_write_full(fd, data, n) < 0 ? err_sys(err, errno, "image.store", "keep %s", path) : 0;
}

/* The document @what ("manifests/latest", "blobs/sha256:..."), which has @digest unless that is "". It is kept; @digest
 * is its own afterwards. */
static int
document(struct registry *r, const char *what, char digest[IMAGE_DIGEST_TEXT + 1], struct buf *doc, struct err *err)
{
    struct sink s = { .r = r, .doc = doc, .max = IMAGE_DOC_MAX };
    char url[1024], is[IMAGE_DIGEST_TEXT + 1], path[IMAGE_BLOB_PATH];

    buf_reset(doc);
    snprintf(url, sizeof(url), "%s/%s", r->base, what);
    if (get_known(r, url, &s, DOCUMENT_S, err) < 0)
        return -1;
    image_digest_of(doc, is);
    if (digest[0] != '\0' && strcmp(digest, is) != 0)
        return no_match(digest, is, err);
    memcpy(digest, is, sizeof(is));
    image_blob_path(is, path);
    return write_file(r->f->place, path, doc->p, doc->n, err);
}

/* What is there of it already counts; hashed on the way. */
static int
take_up(struct sink *s, const struct image_blob *blob, struct err *err)
{
    char room[65536];
    ssize_t n;

    sha256_init(&s->hash);
    s->n = 0;
    if (lseek(s->fd, 0, SEEK_SET) < 0)
        return err_sys(err, errno, "image.store", "keep a layer");
    while ((n = read(s->fd, room, sizeof(room))) > 0) {
        sha256_add(&s->hash, room, (size_t)n);
        s->n += (uint64_t)n;
    }
    if (n < 0)
        return err_sys(err, errno, "image.store", "keep a layer");
    /* more than it is: somebody else's */
    return s->n <= blob->size ? 0 : ftruncate(s->fd, 0) < 0 ? err_sys(err, errno, "image.store", "keep a layer")
                                                            : take_up(s, blob, err);
}

/* Answers that are no part of it are not appended to it. -1 with errno. */
static int
begin_again(struct sink *s)
{
    sha256_init(&s->hash);
    s->n = 0;
    return ftruncate(s->fd, 0) < 0 || lseek(s->fd, 0, SEEK_SET) < 0 ? -1 : 0;
}

static int
layer_try(struct registry *r, const struct image_blob *blob, struct sink *s, struct err *err)
{
    char url[1024];
    long status;

    snprintf(url, sizeof(url), "%s/blobs/%s", r->base, blob->digest);
    if (take_up(s, blob, err) < 0)
        return -1;
    if (s->n == blob->size)
        return 0;
    s->too_much = false;
    status = get_known(r, url, s, 0, err);
    if (status < 0)
        return -1;
    return s->n == blob->size ? 0
                              : err_set(err, ERR_SYSTEM, "image.registry", "the registry ended before the layer did");
}

static int
layer(struct registry *r, const struct image_blob *blob, struct err *err)
{
    char path[IMAGE_BLOB_PATH], part[128], is[IMAGE_DIGEST_TEXT + 1];
    struct sink s = { .r = r, .max = blob->size };
    cleanup_close int fd = -1;
    int done = -1;

    image_blob_path(blob->digest, path);
    snprintf(part, sizeof(part), "%s.part", path);
    if (faccessat(r->f->place, path, F_OK, 0) == 0)
        return 0;
    fd = s.fd = openat(r->f->place, part, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_sys(err, errno, "image.store", "keep a layer");
    for (int i = 0; i < TRIES && done < 0; i++) {
        uint64_t before = s.n;
        done = layer_try(r, blob, &s, err);
        if (done < 0 && (err->kind != ERR_SYSTEM || !err_is(err, "image.registry")))
            return -1;
        if (done < 0 && s.no_range && begin_again(&s) < 0)
            return err_sys(err, errno, "image.store", "keep a layer");
        /* what came is a step; nothing, a wait */
        if (done < 0 && s.n <= before && !s.no_range && i + 1 < TRIES)
            sleep(1);
        s.no_range = false;
    }
    if (done < 0)
        return -1;
    image_digest_end(&s.hash, is);
    if (strcmp(is, blob->digest) != 0) {
        (void)begin_again(&s);
        return no_match(blob->digest, is, err);
    }
    r->got += blob->size;
    return renameat(r->f->place, part, r->f->place, path) < 0 ? err_sys(err, errno, "image.store", "keep a layer") : 0;
}

static bool
has_tree(const struct fetch *f, const struct buf *config)
{
    json_t *record = image_config_read(config->p, config->n, NULL, NULL);
    char tree[65];
    bool has = false;

    if (record != NULL) {
        image_tree_of(record, tree);
        has = faccessat(f->trees, tree, F_OK, 0) == 0;
    }
    json_decref(record);
    return has;
}

static int
layers(struct registry *r, const struct image_manifest *m, struct err *err)
{
    for (size_t i = 0; i < m->n_layers; i++) {
        if (m->layers[i].size > r->f->max - r->all) {
            err_set(err, ERR_LIMIT, "image.limit", "the image's layers are larger than %llu MiB",
                    (unsigned long long)(r->f->max >> 20));
            return err_hint(err, "--max-size SIZE allows more");
        }
        r->all += m->layers[i].size;
    }
    for (size_t i = 0; i < m->n_layers; i++)
        if (layer(r, &m->layers[i], err) < 0)
            return err_wrap(err, "layer %zu of %zu", i + 1, m->n_layers);
    if (r->f->progress && r->all > 0)
        fputc('\n', stderr);
    return 0;
}

/* From the name to the manifest for the platform, in @doc; *@top is what the name led to. */
static int
manifest(struct registry *r, struct buf *doc, char top[IMAGE_DIGEST_TEXT + 1], struct err *err)
{
    const struct image_ref *ref = r->f->ref;
    char what[256], digest[IMAGE_DIGEST_TEXT + 1];
    struct image_blob blob;
    int index;

    memcpy(top, ref->digest, IMAGE_DIGEST_TEXT + 1);
    snprintf(what, sizeof(what), "manifests/%s", ref->digest[0] != '\0' ? ref->digest : ref->tag);
    if (document(r, what, top, doc, err) < 0)
        return -1;
    for (int depth = 0; (index = image_is_index(doc->p, doc->n, err)) > 0; depth++) {
        if (depth == 4)
            return err_set(err, ERR_POLICY, "image.document", "indexes in indexes without end");
        if (image_index_pick(doc->p, doc->n, &r->f->platform, NULL, &blob, NULL, err) < 0)
            return -1;
        memcpy(digest, blob.digest, sizeof(digest));
        snprintf(what, sizeof(what), "manifests/%s", digest);
        if (document(r, what, digest, doc, err) < 0)
            return -1;
    }
    return index;
}

static int
all(struct registry *r, struct err *err)
{
    cleanup_buf struct buf doc = BUF_INIT(IMAGE_DOC_MAX);
    char top[IMAGE_DIGEST_TEXT + 1], what[128], index[256];
    struct image_manifest m;
    struct stat st;
    char path[IMAGE_BLOB_PATH];

    if (manifest(r, &doc, top, err) < 0 || image_manifest_read(doc.p, doc.n, &m, err) < 0)
        return -1;
    snprintf(what, sizeof(what), "blobs/%s", m.config.digest);
    if (document(r, what, m.config.digest, &doc, err) < 0 ||
        (!has_tree(r->f, &doc) && layers(r, &m, err) < 0))
        return -1;
    image_blob_path(top, path);
    if (fstatat(r->f->place, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_sys(err, errno, "image.store", "%s", path);
    snprintf(index, sizeof(index), "{\"schemaVersion\":2,\"manifests\":[{\"digest\":\"%s\",\"size\":%lld}]}", top,
             (long long)st.st_size);
    return write_file(r->f->place, "index.json", index, strlen(index), err);
}

/* HTTPS; with this machine's own where that is not spoken, plain HTTP. */
int
fetch_now(const struct fetch *f, struct err *err)
{
    static struct registry r;
    const char *host = strcmp(f->ref->host, IMAGE_HUB) == 0 ? HUB_HOST : f->ref->host;
    int done;

    r.f = f;
    r.curl = curl_easy_init();
    if (r.curl == NULL)
        return err_set(err, ERR_SYSTEM, "memory", "out of memory");
    r.local = is_local(host);
    direct(&r);
    snprintf(r.base, sizeof(r.base), "https://%s/v2/%s", host, f->ref->path);
    if (r.local) {
        struct sink none = { .r = &r, .doc = NULL, .max = 0, .fd = -1 };
        char url[384];
        snprintf(url, sizeof(url), "https://%s/v2/", host);
        prepare(&r, url, &none, CONNECT_S);
        curl_easy_setopt(r.curl, CURLOPT_NOBODY, 1L);
        if (curl_easy_perform(r.curl) == CURLE_SSL_CONNECT_ERROR)
            snprintf(r.base, sizeof(r.base), "http://%s/v2/%s", host, f->ref->path);
    }
    done = all(&r, err);
    curl_easy_cleanup(r.curl);
    explicit_bzero(r.token, sizeof(r.token));
    return done;
}
