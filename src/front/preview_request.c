/* front/preview_request.c: a client's request to a server in a sandbox, written anew */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "front/live.h"
#include "front/preview_priv.h"

#define FIELDS_MAX HTTP1_FIELDS_MAX

struct fields {
    struct request *r;
    struct http1_add add[FIELDS_MAX];
    size_t n;
    struct str options[HTTP1_OPTIONS_MAX];      /* of Connection; one less than that many */
    size_t n_options, lengths, codings, origins;
    struct str origin, length, coding;
    bool too_many;
};

static enum MHD_Result
on_option(void *ctx, enum MHD_ValueKind kind, const char *name, size_t name_n, const char *value, size_t n)
{
    struct fields *f = ctx;
    struct str rest = { value, value != NULL ? n : 0 };

    (void)kind;
    if (!http1_equal((struct str){ name, name_n }, STR_LIT("connection")))
        return MHD_YES;
    while (f->n_options < HTTP1_OPTIONS_MAX && http1_list_next(&rest, &f->options[f->n_options]))
        f->n_options++;
    f->too_many = f->n_options == HTTP1_OPTIONS_MAX;
    return MHD_YES;
}

static enum MHD_Result
on_field(void *ctx, enum MHD_ValueKind kind, const char *name_p, size_t name_n, const char *value_p, size_t value_n)
{
    struct fields *f = ctx;
    struct str name = { name_p, name_n }, value = { value_p, value_p != NULL ? value_n : 0 };

    (void)kind;
    if (http1_equal(name, STR_LIT("content-length"))) {
        f->lengths++;
        f->length = value;
    } else if (http1_equal(name, STR_LIT("transfer-encoding"))) {
        f->codings++;
        f->coding = value;
    } else if (http1_equal(name, STR_LIT("origin"))) {
        f->origins++;
        f->origin = value;
    }
    if (http1_is_hop(name) || !preview_goes_in(name, value))
        return MHD_YES;
    for (size_t i = 0; i < f->n_options; i++)
        if (http1_equal(name, f->options[i]))
            return MHD_YES;
    if (f->n == FIELDS_MAX - 4) {       /* those that are added have room */
        f->too_many = true;
        return MHD_NO;
    }
    f->add[f->n++] = (struct http1_add){ name, value };
    return MHD_YES;
}

static bool
framing_of(struct preview *p, const struct fields *f)
{
    p->framing = HTTP1_BODY_NONE;
    if (f->codings + f->lengths > 1)
        return false;
    if (f->codings == 1) {
        p->framing = HTTP1_BODY_CHUNKED;
        return http1_equal(f->coding, STR_LIT("chunked"));
    }
    if (f->lengths == 1)
        p->framing = HTTP1_BODY_LENGTH;
    return f->lengths == 0 || str_parse_u64(f->length, INT64_MAX, &p->length);
}

static void
preview_request_add(struct fields *f, struct str name, struct str value)
{
    f->add[f->n++] = (struct http1_add){ name, value };
}

/* A page of the preview's own is one of the server's own there. Other sites are told apart by the server. */
static bool
is_own_origin(const struct request *r, struct str origin, struct str host)
{
    struct door_origin said, own;

    return door_origin(origin, &said) && door_origin_of_host(host, r->f->tls, &own) && door_origin_eq(&said, &own);
}

bool
preview_write_head(struct request *r)
{
    static struct fields f;             /* there is one thread */
    struct preview *p = r->preview;
    struct str host = str_of(MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST));
    struct http1_request_out out = { .method = str_of(r->method), .form = HTTP1_ORIGIN, .scheme = HTTP1_SCHEME_HTTP,
                                     .host = STR_LIT("localhost"), .port = p->port, .path = p->target.path,
                                     .query = p->target.query };
    char own[32];

    f = (struct fields){ .r = r };
    (void)MHD_get_connection_values_n(r->c, MHD_HEADER_KIND, on_option, &f);
    (void)MHD_get_connection_values_n(r->c, MHD_HEADER_KIND, on_field, &f);
    if (f.too_many || f.origins > 1 || !framing_of(p, &f))
        return false;
    snprintf(own, sizeof(own), "http://localhost:%u", (unsigned)p->port);
    if (f.origins == 1)
        preview_request_add(&f, STR_LIT("Origin"), is_own_origin(r, f.origin, host) ? str_of(own) : f.origin);
    preview_request_add(&f, STR_LIT("X-Forwarded-Proto"), r->f->tls ? STR_LIT("https") : STR_LIT("http"));
    if (host.n > 0)
        preview_request_add(&f, STR_LIT("X-Forwarded-Host"), host);
    if (p->root[0] != '\0')
        preview_request_add(&f, STR_LIT("X-Forwarded-Prefix"), str_of(p->root));
    out.out = (struct http1_out){ .add = f.add, .n_add = f.n, .framing = p->framing, .body_length = p->length,
                                  .connection = p->websocket ? HTTP1_CONN_DEFAULT : HTTP1_CONN_CLOSE,
                                  .upgrade = p->websocket ? STR_LIT("websocket") : (struct str){ "", 0 } };
    return http1_write_request(&r->in, &out) == 0;
}

bool
preview_upgrades(struct request *r)
{
    const char *upgrade = MHD_lookup_connection_value(r->c, MHD_HEADER_KIND, MHD_HTTP_HEADER_UPGRADE);

    r->preview->websocket = upgrade != NULL && strcasecmp(upgrade, "websocket") == 0 && strcmp(r->method, "GET") == 0;
    if (!r->preview->websocket || upgrade_asked(r))
        return true;
    preview_over(r);
    return false;
}
