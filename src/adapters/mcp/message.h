/* adapters/mcp/message.h: JSON-RPC 2.0 as MCP uses it: pure functions from a stranger's bytes to a judged message
 *
 * Revisions of the protocol: 2026-07-28, in which every request says all about itself, and the ones before it, in which
 * a session is made by `initialize`. https://modelcontextprotocol.io/specification
 */
#ifndef CLOCHE_ADAPTERS_MCP_MESSAGE_H
#define CLOCHE_ADAPTERS_MCP_MESSAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"

#define MCP_DEPTH_MAX  64       /* of brackets within brackets */
#define MCP_METHOD_MAX 128
#define MCP_ID_MAX     256      /* bytes of an id that is a string */
#define MCP_NAME_MAX   1024     /* of a header's value, decoded */

#define MCP_PARSE_ERROR      (-32700)
#define MCP_INVALID_REQUEST  (-32600)
#define MCP_NO_METHOD        (-32601)
#define MCP_INVALID_PARAMS   (-32602)
#define MCP_INTERNAL         (-32603)
#define MCP_HEADER_MISMATCH  (-32020)
#define MCP_NO_CAPABILITY    (-32021)
#define MCP_NO_VERSION       (-32022)

enum mcp_kind { MCP_REQUEST = 1, MCP_NOTIFICATION, MCP_RESPONSE };

struct mcp_message {
    enum mcp_kind kind;
    json_t *whole;              /* owned: mcp_message_free(); the others are borrowed from it */
    const char *method;         /* of requests and notifications */
    json_t *id;                 /* a string or a whole number; of requests and responses */
    json_t *params;             /* an object, or NULL */
    json_t *result, *error;     /* of a response: one of them */
};

/* 0, or one of the codes above with *why. After a failure @out->id is the id to answer with, or NULL; free it anyhow.
 * Refused: what is no JSON of RFC 8259, members that come twice, a NUL in a string, more than MCP_DEPTH_MAX levels,
 * batches, members of the wrong type. */
int mcp_parse(const char *p, size_t n, struct mcp_message *out, const char **why);
void mcp_message_free(struct mcp_message *m);

/* A header's value: without blanks around it, as it is or =?base64?...?=. False when malformed or too long; the text
 * has no NUL. */
bool mcp_header_text(const char *value, char out[MCP_NAME_MAX + 1]);
/* Whether an Accept header takes both kinds of answer. */
bool mcp_accepts(const char *accept, bool *stream);
/* Whether a Content-Type is application/json. */
bool mcp_is_json(const char *type);

/* The version's place in mcp_versions, newest first; -1: unknown. */
extern const char *const mcp_versions[];
extern const size_t mcp_n_versions;
#define MCP_VERSION_STATELESS 0
int mcp_version(const char *text);

/* @args against @schema, of which is understood: type, properties, required, additionalProperties: false, enum,
 * minimum, maximum, maxLength, items, maxItems. False with the reason in @why. */
bool mcp_schema_fits(const json_t *schema, const json_t *args, char *why, size_t size);

/* A host's name, `*.` or `**.` before it, `:PORT` after it: never an address. */
bool mcp_domain_well(const char *domain);

/* What a client is given to bring along when it calls again (state.c): for one caller, one call with exactly these
 * arguments, and a time. Whether it was used before is for whoever keeps what it is @about. */
#define MCP_KEY       32
#define MCP_ABOUT_MAX 64
#define MCP_STATE_MAX 192

struct mcp_state {
    uint32_t who;
    uint8_t digest[SHA256_SIZE];            /* of the call: mcp_call_digest() */
    uint64_t expires_ms;                    /* on the clock of who checks it */
    char about[MCP_ABOUT_MAX + 1];          /* no dot */
};

bool mcp_call_digest(const char *method, const char *name, const json_t *args, uint8_t out[SHA256_SIZE]);
void mcp_state_make(const uint8_t key[MCP_KEY], const struct mcp_state *s, char out[MCP_STATE_MAX + 1]);
/* Is @text what was made for s->who and s->digest, and not too old? The rest of @s is filled. */
bool mcp_state_check(const uint8_t key[MCP_KEY], const char *text, uint64_t now_ms, struct mcp_state *s);

#endif
