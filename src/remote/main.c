/* remote/main.c: cloche-remote: asks a server for signatures, for cloche-signer (signer/behind.h)
 *
 * Started by the signer with its end of their socket at descriptor 3. The first message says where the server is; then
 * this process has sockets to other hosts, and nothing else (post/confine.c). It has the words that the server knows
 * its caller by, and no transaction: 32 bytes come, 64 go. What the server says is checked by the signer.
 *
 *      POST, {"ask": "public-key"}                    200, {"publicKey": "0x04..."}
 *      POST, {"ask": "sign", "digest": "0x..."}       200, {"signature": "0x..."}: r and s; 4xx: it does not sign
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/array.h"
#include "post/post.h"
#include "proto/edge_sign.h"
#include "wire/table.h"

#define FD_SIGNER 3
#define WAIT_MS   15000             /* less than the signer waits */
#define TURN_MS   200
#define BODY_MAX  256

enum { FRESH = 1, OPEN = 2 };

struct remote {
    struct post post;
    struct loop loop;
    struct hook_url url;
    char url_text[HOOK_URL_MAX + 1], bearer[TOKEN_WORD_MAX + 1];
    struct msg_gate gate;
    /* what the server said: */
    bool done;
    int status;
    char body[POST_ANSWER_MAX + 1];
    size_t body_n;
    bool failed, perhaps;       /* it may have done what it was asked for */
    char why[256];
    uint8_t in[EDGE_ROOM];
};

static void
say(struct remote *r, uint8_t type, const struct shape *shape, const void *m)
{
    (void)r;
    (void)proto_send(FD_SIGNER, type, shape, m, -1);    /* its end is noticed where it is read */
}

static int
refuse(struct remote *r, const struct err *why)
{
    PROTO_SAY(say, r, TOKEN_REFUSED, .perhaps = r->perhaps, .why = *why);
    return 0;
}

/* --- the server --------------------------------------------------------------------------------------------------- */

static void
answered(struct post *p, const struct post_answer *a, const char *why)
{
    struct remote *r = p->owner;

    r->done = true;
    r->failed = why != NULL;
    snprintf(r->why, sizeof(r->why), "%s", why != NULL ? why : "");
    r->status = a != NULL ? a->status : 0;
    /* that it refused is said by 4xx; other answers may be of something on the way, behind which it signs, and so may
     * those of a request that took too long (408), or was given up (499) */
    r->perhaps = p->sent && (r->status < 400 || r->status > 499 || r->status == 408 || r->status == 499);
    r->body_n = a != NULL && a->body.n < sizeof(r->body) ? a->body.n : 0;
    if (r->body_n > 0)
        memcpy(r->body, a->body.p, r->body_n);
}

/* @body is asked; of the answer, @n bytes of the member @name, in hexadecimal, into @out. */
static int
ask(struct remote *r, const char *body, const char *name, uint8_t *out, size_t n, struct err *err)
{
    const char *text;
    json_t *o;
    bool well;

    buf_reset(&r->post.out);
    post_head(&r->post, "application/json", strlen(body));
    buf_printf(&r->post.out, "Authorization: Bearer %s\r\n\r\n%s", r->bearer, body);
    r->done = r->perhaps = false;
    if (loop_round(&r->loop, 0, err) < 0)       /* the time, which went by */
        return -1;
    post_begin(&r->post);
    while (!r->done) {
        if (loop_round(&r->loop, TURN_MS, err) < 0) {
            r->perhaps = r->post.sent;
            return -1;
        }
        (void)post_late(&r->post);
    }
    if (r->failed)
        return err_set(err, ERR_SYSTEM, "sign.remote.answer", "the server that signs: %s", r->why);
    if (r->status != 200)
        return err_set(err, ERR_DENIED, "sign.remote.answer", "the server that signs answered %d", r->status);
    o = json_loadb(r->body, r->body_n, JSON_REJECT_DUPLICATES, NULL);
    text = json_string_value(json_object_get(o, name));
    well = text != NULL && strlen(text) == 2 + 2 * n && memcmp(text, "0x", 2) == 0 &&
           str_unhex((struct str){ text + 2, 2 * n }, out);
    json_decref(o);
    return well ? 0 : err_set(err, ERR_PROTOCOL, "sign.remote.answer", "the server that signs says no %s", name);
}

/* --- the signer --------------------------------------------------------------------------------------------------- */

static int
open_it(struct remote *r, const struct remote_where *m, struct err *err)
{
    const char *why = "";

    snprintf(r->url_text, sizeof(r->url_text), "%s", m->url);
    snprintf(r->bearer, sizeof(r->bearer), "%s", m->bearer);
    for (const char *c = r->bearer; *c != '\0'; c++)
        if (*c <= ' ' || *c > '~')
            return err_set(err, ERR_USAGE, "sign.remote.bearer", "what the server knows its caller by has odd bytes");
    if (!hook_url(str_of(r->url_text), &r->url, &why)) {
        err_set(err, ERR_USAGE, "sign.remote.url", "the URL %s", why);
        return err_hint(err, "https://HOST[:PORT][/PATH]; http for this host's loopback alone");
    }
    return post_open(&r->post, m->ca, err) < 0 ? -1 : post_confine(err);
}

static int
on_open(struct remote *r, const struct remote_where *m)
{
    struct token_point is = { .point = { 0 } };
    struct err err = ERR_INIT;

    if (open_it(r, m, &err) < 0 ||
        ask(r, "{\"ask\": \"public-key\"}", "publicKey", is.point, sizeof(is.point), &err) < 0)
        return refuse(r, &err);
    explicit_bzero(r->in, sizeof(r->in));
    r->gate.state = OPEN;
    say(r, TOKEN_IS, TOKEN_IS_SHAPE(), &is);
    return 0;
}

static int
on_digest(struct remote *r, const struct token_digest *m)
{
    char body[BODY_MAX], hex[65];
    struct token_rs made = { .rs = { 0 } };
    struct err err = ERR_INIT;

    str_hex(m->digest, sizeof(m->digest), hex);
    snprintf(body, sizeof(body), "{\"ask\": \"sign\", \"digest\": \"0x%s\"}", hex);
    if (ask(r, body, "signature", made.rs, sizeof(made.rs), &err) < 0)
        return refuse(r, &err);
    say(r, TOKEN_MADE, TOKEN_MADE_SHAPE(), &made);
    return 0;
}

#define HEARS(R) \
    R(REMOTE_OPEN, on_open, true, FRESH) \
    R(TOKEN_SIGN, on_digest, false, OPEN)
PROTO_RULES(rules, HEARS)

int
main(int argc, char **argv)
{
    static struct remote r = { .loop = { .epoll = -1 }, .post = {
        .timeout_ms = WAIT_MS, .whole = true, .done = answered, .server = WATCH_INIT, .out = BUF_INIT(8192) } };
    struct frame f;
    int n;

    (void)argv;
    if (argc != 1 || fcntl(FD_SIGNER, F_GETFD) < 0) {
        fprintf(stderr, "cloche-remote is started by cloche-signer; see `cloche signer --help`\n");
        return 1;
    }
    sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    r.post.url = &r.url;
    r.post.loop = &r.loop;
    r.post.owner = &r;
    r.gate = (struct msg_gate){ .rules = rules, .n_rules = ARRAY_LEN(rules), .state = FRESH };
    while ((n = packet_receive(FD_SIGNER, r.in, sizeof(r.in), &f, NULL, 0)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || msg_dispatch(&r.gate, &f, &r) != MSG_OK)
            return 1;
    }
    return 0;
}
