/* egress/mcp_rule.h: what a request asks of an MCP server, as rules about tools must know it
 *
 * Theory: a rule that opens some tools holds only if the server reads the same call out of the bytes as we do. So there
 * is no lenient mode: what is not plainly one JSON-RPC message in one spelling is MCP_BAD. Refused, each because some
 * server reads it as something else or lets the last, the first or either of two win: two members of one name (also
 * such that differ in case, for Go), members beside those of JSON-RPC, batches, bytes behind the message, line breaks
 * in it (bridges to stdio cut there), a byte order mark, what is not UTF-8, another content type, a content encoding,
 * fields that say another method or name than the body, or are there twice or with "_" for "-" (CGI and its heirs take
 * both for one).
 *
 * Streamable HTTP as it is in all versions of the protocol: POST of one message; GET (the stream of events) and DELETE
 * (the end of a session) without body. Pure.
 */
#ifndef CLOCHE_EGRESS_MCP_RULE_H
#define CLOCHE_EGRESS_MCP_RULE_H

#include <stddef.h>

#include "base/str.h"
#include "match/tool.h"
#include "wire/http1.h"

/* Bytes of a body. One less than the window of a stream of HTTP/2 (h2.h), so that one byte too many still comes. */
#define MCP_BODY_MAX 65534

enum mcp_kind {
    MCP_BAD = 0,        /* servers may read a call out of it, and which is not known */
    MCP_ELSE,           /* nothing of MCP; it cannot call a tool */
    MCP_UNREAD,         /* the head is in order; the body has to be known */
    MCP_OTHER,          /* of MCP, and calls no tool */
    MCP_CALL,           /* calls @tool */
};

struct mcp_message {
    enum mcp_kind kind;
    const char *fault;              /* of MCP_BAD: for people, static */
    char name[TOOL_NAME_MAX + 1];   /* of MCP_CALL */
    struct str tool;                /* is @name */
};

/* As far as the head alone says it. @out must not be moved: it points into itself. */
void mcp_read_head(const struct http1_head *head, struct mcp_message *out);
/* With the whole of its body. Never MCP_UNREAD. */
void mcp_read(const struct http1_head *head, struct str body, struct mcp_message *out);
/* MCP_BAD for that reason. */
void mcp_fault(struct mcp_message *out, const char *fault);

#endif
