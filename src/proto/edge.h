/* proto/edge.h: what is said between the processes of `cloche serve`
 *
 * Five edges, each a SOCK_SEQPACKET socket whose messages are frames (wire/packet.h) and whose dialogue is a table at
 * the end that listens. Here is what they share; the messages are in question.h and edge_*.h:
 *
 *     front  ⇄ warden     what a client asks for, and the answer; each question has a ticket
 *     warden ⇄ launcher   start a keeper; one has ended
 *     warden ⇄ keeper     make the sandbox, an operation in it, its end
 *     warden ⇄ scribe     entries of the audit record, and that they are written
 *     front  ⇄ keeper     one operation's streams; a socket of its own, made by the warden when it grants it. Pages of
 *                         a transcript come from the scribe in the same way
 *
 * Who asks: every question of a front names a caller by a handle, which the warden gave it for a credential
 * (EDGE_ASK_WHO; a front may keep it, epoch.h) and which it judges anew each time. 0 is nobody, who is the daemon's
 * owner on the edge of the owner's front (it takes connections that the kernel vouches for) and a stranger on that of
 * any other.
 *
 * Text that is kept for clients (labels, facts about a sandbox) travels as lines "\nNAME=VALUE\n...\n", so that nobody
 * but the front has to read JSON. Decoded strings are borrowed from the message.
 */
#ifndef CLOCHE_PROTO_EDGE_H
#define CLOCHE_PROTO_EDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"
#include "match/language.h"
#include "proto/field.h"

#define EDGE_ID          32                 /* hexadecimal digits: 128 random bits */
#define TRANSCRIPT_OWNER "{\"owner\":\""     /* and the token's id: how a transcript begins that is not the owner's */
#define EDGE_NAME_MAX    63                 /* of a sandbox */
#define EDGE_LABELS_MAX  4096               /* bytes of all labels of one */
#define EDGE_POLICY_MAX  (64 * 1024)        /* JSON of the policy that was asked for */
#define EDGE_FACTS_MAX   8192
#define EDGE_DETAIL_MAX  1024
#define EDGE_PATH_MAX    4096
#define EDGE_WORDS_MAX   1024               /* arguments of a command; and variables */
#define EDGE_WORDS_BYTES (124 * 1024)       /* together, each with the four bytes of its length */
#define EDGE_OP_MAX      (128 * 1024)       /* one operation, all words together */
#define EDGE_OP_BYTES    (EDGE_OP_MAX + 2048)   /* one operation as it is sent, to the warden and on to the keeper */
#define EDGE_WHO_MAX     159                /* bytes of a caller, in words */
#define EDGE_OPS_MAX     64                 /* operations at once in one sandbox */
#define EDGE_ENTRIES_MAX 10000              /* of one listing, ... */
#define EDGE_ENTRY_BYTES (EDGE_ENTRIES_MAX * 255)   /* ... and of their names together, which have 255 at most */
#define EDGE_CHUNK       (32 * 1024)        /* bytes of a stream in one message */
#define EDGE_MESSAGE_MAX (EDGE_OP_MAX + 4096)
#define EDGE_ROOM        (EDGE_MESSAGE_MAX + FRAME_HEADER + 1)
#define EDGE_LIST_MAX    200                /* sandboxes of one answer */
#define EDGE_HASH        32                 /* bytes of a SHA-256 */
#define EDGE_CURSOR_MAX  (EDGE_ID + 21)     /* where a list goes on: an id, or ID-CREATED as edge_cursor() reads it */
#define EDGE_SHOWN_MAX   (4 * 1024 * 1024)  /* of a policy as JSON, with where each value comes from */
#define EDGE_TRACE       16                 /* bytes of a trace's id (W3C Trace Context), */
#define EDGE_SPAN        8                  /* of a span's in it, */
#define EDGE_WORK        (EDGE_TRACE + EDGE_SPAN + 1)       /* of both and whether the trace is recorded */
#define EDGE_QUEUE_MAX   (16 * 1024 * 1024) /* bytes that may wait for one peer */
#define EDGE_CREDENTIAL_MAX 96
#define EDGE_WORKSPACE_MAX 255         /* bytes of a workspace's key */
#define EDGE_PRINT_MAX   1024               /* of a fingerprint */
#define EDGE_HOW_MAX     512
#define EDGE_METHOD_MAX  32                 /* of a request that it asks for */
#define EDGE_ASKED_MAX   3072               /* ... its path and query, as it is shown */
#define EDGE_HOST_MAX    253                /* of a name, or an address, that a sandbox asks for */
#define EDGE_NET_MS_MAX  86400000
#define EDGE_WHY_KILLED  "the daemon was killed, or gave up: it was destroyed"

#define EDGE_DEFAULT    0x01    /* ASK_CREATE: the sandbox of /api/sandbox; if one lives, it is the answer */

#define EDGE_REATTACH   0x02    /* ... : if the caller's newest one of that workspace is as this one would be, it is */

#define EDGE_FLEETING   0x04    /* ... : it ends with who asked, if they go (CANCEL) before they know of it */

#define EDGE_ONCE       0x08    /* ... : with FLEETING: also when they know of it. It is for one call */
#define EDGE_PERSISTS   0x10    /* ... : it comes back with the daemon; it has a volume */

#define EDGE_STRANGERS  0x01    /* FRONT: of connections that nobody vouches for; it knows no owner */
#define EDGE_ANY_ADDRESS 0x01   /* SETTINGS: any address is one of ours */
#define EDGE_SETTINGS_NAMES 96  /* hosts; and origins */
#define EDGE_BASE_MAX   300
#define EDGE_PEM_MAX    (256 * 1024)

#define EDGE_BOUNDED    0x01    /* MAKE: the policy allows no more than the daemon's settings (policy/within.h) */
#define EDGE_JUDGED     0x02    /* ... but for its network by name and its limits, which the gate has judged */

#define EDGE_SIGNALED   0x01    /* EXIT */
#define EDGE_TIMED_OUT  0x02
#define EDGE_OOM        0x04
#define EDGE_OUT_CUT    0x08
#define EDGE_ERR_CUT    0x10
#define EDGE_OWN_MEMORY 0x20    /* something of it was killed by a limit of memory that is the command's own */
#define EDGE_OWN_PIDS   0x40    /* it was refused a process by such a limit */

/* What a caller is. The daemon's owner is an operator. */
enum edge_role { EDGE_NOBODY, EDGE_OPERATOR, EDGE_AGENT, EDGE_APPROVER, EDGE_AUDITOR, EDGE_KEY, EDGE_ATTACH,
                 EDGE_ROLES };
const char *edge_role_name(enum edge_role role);
bool edge_role_parse(const char *name, enum edge_role *out);
bool edge_role_of_person(uint8_t role);      /* who looks after sandboxes, and is in none */

/* How a credential was presented: an Authorization of scheme Bearer takes tokens and keys, X-Sandbox-Key keys. */
enum edge_credential { EDGE_BEARER = 1, EDGE_SANDBOX_KEY };
/* "cloche_ROLE_" and 64 lower case hexadecimal digits, for the roles that have credentials; a sandbox's key is that of
 * the role "key", that of an editor's session of the role "attach". The role is a hint for people: what counts is what
 * the warden has on record. */
bool edge_credential_well(enum edge_credential kind, const char *text);

/* The seven states; `paused` is beside them. */
enum box_state {
    BOX_UNINITIALIZED, BOX_INITIALIZING, BOX_READY, BOX_DEGRADED, BOX_STOPPING, BOX_STOPPED, BOX_RECOVERING, BOX_STATES
};
const char *box_state_name(enum box_state state);
bool box_state_parse(const char *name, enum box_state *out);

/* Recovery by itself (edge_recovery.c): of one that is degraded for too long, or whose keeper or guest died. */
#define EDGE_RECOVER_NEVER  UINT32_MAX      /* CREATE, after_s: not, whatever the daemon does */
#define EDGE_RECOVER_AFTER  (24U * 3600)    /* seconds at most */
#define EDGE_RECOVER_TRIES  20U             /* at most */
#define EDGE_RECOVER_WINDOW_MIN 60U         /* seconds */
#define EDGE_RECOVER_WINDOW (30U * 24 * 3600)
#define EDGE_RECOVERY_FIELDS(F) \
    F(U32, after_s)         /* degraded for so long; 0: not by itself. CREATE: 0, as of the next two, the daemon's */ \
    F(U32, tries)           /* within @window_s, from 1 */ \
    F(U32, window_s)        /* from the first of them on */ \
    /* what came of it; all 0 in CREATE */ \
    F(U32, used)            /* of @tries, in the last window */ \
    F(BOOL, given_up)       /* all were: it stays as it is */ \
    F(U64, began_ms)        /* when that window began, since 1970; 0 there was none */ \
    F(U64, next_ms)         /* when the next one is due; 0 none is */
PROTO_STRUCT(edge_recovery, EDGE_RECOVERY_FIELDS);
/* The first three of CREATE are in their ranges, or not said. */
bool edge_recovery_well(const struct edge_recovery *r);
/* How many of its tries count when the window began @age_ms ago. */
uint32_t recovery_used(const struct edge_recovery *r, uint64_t age_ms);
/* How long to wait, in seconds, before the next one: from when it was found degraded, or @gone, on; longer each time
 * of a window, at most as long as that (or @after_s). 0: there is none left. */
uint32_t recovery_wait_s(const struct edge_recovery *r, uint64_t age_ms, bool gone);

/* 32 lower case hexadecimal digits and nothing else; or "" */
bool edge_is_id(const char *text);
bool edge_maybe_id(const char *text);
#define PROTO_ID(take, name) PROTO_COPY(take, name, EDGE_ID, edge_is_id)
#define PROTO_MAYBE_ID(take, name) PROTO_COPY(take, name, EDGE_ID, edge_maybe_id)
/* Messages of one field, on several edges. */
#define EDGE_ONLY_ID(F) F(ID, id)
PROTO_STRUCT(edge_only_id, EDGE_ONLY_ID);
#define EDGE_ONLY_NUMBER(F) F(U32, number)
PROTO_STRUCT(edge_number, EDGE_ONLY_NUMBER);
#define EDGE_ONLY_COUNT(F) F(U64, count)
PROTO_STRUCT(edge_count, EDGE_ONLY_COUNT);
#define EDGE_ONLY_YES(F) F(BOOL, yes)
PROTO_STRUCT(edge_yes, EDGE_ONLY_YES);
#define EDGE_ONLY_WHY(F) F(ERR, why)
PROTO_STRUCT(edge_why, EDGE_ONLY_WHY);
#define EDGE_ONLY_BYTES(F) F(REST, bytes, 1, EDGE_CHUNK)
PROTO_STRUCT(edge_bytes, EDGE_ONLY_BYTES);
/* Which of names[from..n) that is. */
bool edge_word(const char *const *names, int from, int n, const char *name, int *out);
/* "\nNAME=VALUE\n..." with names of letters, digits, "._/-", at most 63, each once; values without control bytes, at
 * most 255. "" is none. */
bool edge_labels_well(const char *labels);
/* The value of @name in such lines, or in facts about a sandbox; without a pointer: there is none. */
struct str edge_line(const char *lines, const char *name);
/* at most EDGE_WORKSPACE_MAX bytes without control characters */
bool edge_workspace_well(const char *key);
/* a letter or digit, then letters, digits, "._-", at most EDGE_NAME_MAX; or "" */
bool edge_name_well(const char *name);
bool edge_maybe_name(const char *name);

/* One sandbox, as it is told. */
#define EDGE_BOX_FIELDS(F) \
    F(ID, id) \
    F(ENUM, box_state, state, 0, BOX_STATES - 1) \
    F(BOOL, paused) \
    F(BOOL, is_default) \
    F(BOOL, persists)                       /* it is made anew when the daemon is there again, and has its volume */ \
    F(U64, created_ms)                      /* since 1970; 0 not yet, as of the next three */ \
    F(U64, started_ms) \
    F(U64, ended_ms) \
    F(U64, used_ms) \
    F(U32, idle_s)                          /* 0: no such limit; so too @life_s */ \
    F(U32, life_s) \
    F(STRUCT_IN, edge_recovery, recovery) \
    F(MAYBE_ID, owner)                      /* the token that made it; "": the daemon's owner */ \
    F(TEXT, name, EDGE_NAME_MAX) \
    F(TEXT_IF, labels, EDGE_LABELS_MAX, edge_labels_well) \
    F(TEXT, policy, EDGE_POLICY_MAX) \
    F(TEXT, facts, EDGE_FACTS_MAX) \
    F(TEXT, detail, EDGE_DETAIL_MAX) \
    F(TEXT_IF, workspace, EDGE_WORKSPACE_MAX, edge_workspace_well)  /* the key that its caller gave; "" none */ \
    F(MAYBE_ID, volume)                     /* that it has as its workspace; "" none */ \
    F(MAYBE_ID, base)                       /* the template that its files began as; "" none */ \
    /* lines, of an answer to REATTACH alone; "" else: reattached=yes or no, replaced=ID, differs=NAME,... */ \
    F(TEXT_IF, how, EDGE_HOW_MAX, edge_labels_well) \
    F(UNSAID, uint8_t bounds, bounds)       /* EDGE_BOUNDED ... */ \
    F(UNSAID, uint32_t asked_s, asked_s)    /* @life_s as it was made with: that is judged, and compared */ \
    /* the steady time (base/steady.h) of when it was first ready, used last, and of the recoveries' window */ \
    F(UNSAID, uint64_t begun_at, begun_at) \
    F(UNSAID, uint64_t used_at, used_at) \
    F(UNSAID, uint64_t tried_at, tried_at) \
    F(UNSAID, char key[65], key)            /* SHA-256 of its key, "" none */ \
    F(BLANK, print)                         /* what it is, in lines: "" not known */
PROTO_STRUCT(edge_box, EDGE_BOX_FIELDS);

/* What a sandbox is to be. Texts "" where there is nothing to say. */
#define EDGE_CREATE_FIELDS(F) \
    F(FLAGS, flags, EDGE_DEFAULT | EDGE_REATTACH | EDGE_FLEETING | EDGE_ONCE | EDGE_PERSISTS) \
    F(U32, idle_s)                          /* 0: as the daemon has it; so too @life_s */ \
    F(U32, life_s) \
    F(STRUCT_IN, edge_recovery, recovery) \
    F(TEXT, name, EDGE_NAME_MAX) \
    F(TEXT_IF, labels, EDGE_LABELS_MAX, edge_labels_well) \
    F(TEXT, policy, EDGE_POLICY_MAX) \
    F(TEXT_IF, workspace, EDGE_WORKSPACE_MAX, edge_workspace_well) \
    F(TEXT_IF, volume, EDGE_WORKSPACE_MAX, edge_workspace_well)     /* the name of its workspace; "" none */ \
    F(U32, keep_s)                          /* of it: retention; EDGE_KEEP_SAME as it is, or the usual one */ \
    F(TEXT_IF, base, EDGE_NAME_MAX, edge_maybe_name)    /* name or id of the template that it begins with; "" none */ \
    F(TEXT, language, LANGUAGE_TEXT_MAX)    /* of code that it is made for (match/language.h); "" none */ \
    F(MAYBE, key, EDGE_HASH)                /* of the caller's idempotency key, and of what it sent with it; */ \
    F(MAYBE, body, EDGE_HASH)               /* NULL: it has none */
PROTO_STRUCT(edge_create, EDGE_CREATE_FIELDS);

#define EDGE_KEEP_SAME  UINT32_MAX
#define EDGE_KEEP_USUAL (7U * 24 * 3600)
/* "ID" or "ID-CREATED" (milliseconds since 1970, decimal): @id, and @created_ms or 0. */
bool edge_cursor(const char *text, char id[EDGE_ID + 1], uint64_t *created_ms);
bool edge_maybe_cursor(const char *text);

/* What is kept in a folder of the daemon's: a durable workspace; a template, which sandboxes begin with copies of; or
 * one that was made for forks. */
enum volume_kind { VOLUME_WORKSPACE, VOLUME_TEMPLATE, VOLUME_FORK, VOLUME_KINDS };
/* The name of a volume is its owner's, as a workspace's key is well; of a template as a sandbox's; for forks its id. */
#define EDGE_VOLUME_FIELDS(F) \
    F(ID, id) \
    F(ENUM, volume_kind, kind, 0, VOLUME_KINDS - 1) \
    F(U64, bytes)           /* of a template: of its files */ \
    F(U64, paused_us)       /* in the answer to SNAPSHOT: for so long the sandbox was; else 0 */ \
    F(MAYBE_ID, owner) \
    F(MAYBE_ID, box)        /* the sandbox that has it; "" none */ \
    F(U64, created_ms) \
    F(U64, unused_ms)       /* for how long none has had it */ \
    F(U32, keep_s)          /* it is removed when that is so long; 0 never */ \
    F(TEXT_IF, name, EDGE_WORKSPACE_MAX, edge_volume_name_well)
PROTO_STRUCT(edge_volume, EDGE_VOLUME_FIELDS);

#define EDGE_EVENT_FIELDS(F) \
    F(U64, number) \
    F(U64, at_ms) \
    F(TEXT, id, EDGE_ID) \
    F(TEXT, type, ERR_CODE_MAX) \
    F(TEXT, detail, EDGE_DETAIL_MAX)
PROTO_STRUCT(edge_event, EDGE_EVENT_FIELDS);

#define TOKEN_LIVES_MAX (10UL * 365 * 24 * 3600)    /* seconds */
#define EDGE_CONSOLE_FOR_MAX    86400       /* seconds of a session of the console, */
#define EDGE_CONSOLE_WITHIN_MAX 600         /* and for its ticket to be used */
enum edge_token_ask { TOKEN_MAKE = 1, TOKEN_LIST, TOKEN_REVOKE };

/* A credential of a role, without what it is. LIST: items of it, then END; otherwise one that ends the answer. */
#define EDGE_TOKEN_FIELDS(F) \
    F(ID, id) \
    F(ENUM, edge_role, role, EDGE_NOBODY + 1, EDGE_KEY - 1) \
    F(U64, created_ms) \
    F(U64, expires_ms)      /* since 1970; 0 never */ \
    F(COPY, name, EDGE_NAME_MAX, edge_maybe_name)       /* for people */
PROTO_STRUCT(edge_token, EDGE_TOKEN_FIELDS);

/* CONNECT, ATTACH, BROWSER and DESKTOP are the warden's own: a front that asks for one is none of ours. */
enum op_kind { OP_EXEC = 1, OP_READ, OP_WRITE, OP_LIST, OP_STAT, OP_REMOVE, OP_MKDIR, OP_CONNECT, OP_WATCH, OP_ATTACH,
               OP_BROWSER, OP_DESKTOP, OP_KINDS };
bool op_is_wardens(enum op_kind kind);

/* BROWSER, in @offset: START: one runs and listens, at the port that DONE says, then or already; CONNECT: a connection
 * to that port, as of CONNECT. ONLY is asked of the warden: a START that no CONNECT follows. @path: the sandbox's
 * id. */
enum edge_browse { BROWSER_START = 1, BROWSER_CONNECT, BROWSER_ONLY };

/* DESKTOP: a connection to the display of the sandbox, by RFB (wire/rfb.h), which listens at this port of its loopback.
 * @path: the sandbox's id. */
#define DESKTOP_PORT      5977
#define DESKTOP_PORT_TEXT "5977"

#define OP_STDIN      0x01      /* EXEC: IN and IN_END come; otherwise stdin is /dev/null */
#define OP_RECURSIVE  0x02      /* REMOVE; WATCH: directories below it too */
#define OP_PARENTS    0x04      /* WRITE, MKDIR: missing folders are made */
#define OP_EXCLUSIVE  0x08      /* WRITE: it must not exist */
#define OP_LIVE       0x10      /* EXEC, with STDIN: RESIZE, SIGNAL and TAKEN are spoken */
#define OP_PTY        0x20      /* EXEC, with LIVE or BACKGROUND: in a terminal; no ERR comes */
#define OP_BACKGROUND 0x40      /* EXEC: goes on without its client, which is told RUN and DONE when it has begun. With
                                 * STDIN its stdin stays open, for RUN_INPUT */

#define OP_LIMITS     0x80      /* EXEC: with limits of its own; none is wider than the sandbox's */

#define OP_WRITES     0x01      /* ATTACH, DESKTOP: more than looking */

/* What a file is to hold, for who judges that. The front collects so much of a body before it asks. Of a longer one
 * nobody has seen the end, and @sha256 is random: no other question is the same. */
#define EDGE_SEEN_MAX (1024 * 1024)
#define EDGE_HEAD_MAX 256
#define EDGE_CONTENT_FIELDS(F) \
    F(BOOL, whole)              /* all of it was seen */ \
    F(U64, size)                /* of what was seen */ \
    F(RAW, sha256, SHA256_SIZE) \
    F(BYTES, head, EDGE_HEAD_MAX)   /* its first bytes */
PROTO_STRUCT(edge_content, EDGE_CONTENT_FIELDS);

/* No flag of another kind; EXEC has at least one word, which is not empty, and well-formed variables. Of a context: NEW
 * has BACKGROUND, and its language as its word; a call in one that word, and the code. */
#define EDGE_CONTEXT_NEW 1
#define EDGE_OP_FIELDS(F) \
    F(ENUM, op_kind, kind, 1, OP_KINDS - 1) \
    F(U8, flags) \
    F(U32_IN, mode, 0, 07777)   /* WRITE, MKDIR; 0: the usual */ \
    F(U16, rows)                /* with PTY, from 1; so too @cols */ \
    F(U16, cols) \
    F(U64, timeout_ms)          /* EXEC; 0: the policy's. ATTACH: until the session is over */ \
    F(U64, memory)              /* EXEC with LIMITS: bytes; 0: as the sandbox, as the next three */ \
    F(U64, output)              /* bytes of stdout and of stderr, each */ \
    F(U32, cpu_milli) \
    F(U32, pids) \
    F(BOOL, timed)              /* @timeout_ms is one of its limits */ \
    F(U64, offset)              /* READ. CONNECT: the port */ \
    F(U64, length)              /* READ; 0: to the end */ \
    F(U64_IN, context, 0, INT64_MAX)    /* EXEC: 0 in none; NEW, or the number of the one to run in */ \
    F(TEXT, path, EDGE_PATH_MAX)    /* EXEC: the working directory, "" the sandbox's own. CONNECT: the id of what was
                                     * exposed */ \
    /* EXEC; ATTACH: the keys of the session's host and of its user (edge_attach_keys_well) */ \
    F(WORDS, argv, 4, EDGE_WORDS_MAX, EDGE_OP_MAX, EDGE_WORDS_BYTES) \
    F(WORDS, env, 4, EDGE_WORDS_MAX, EDGE_OP_MAX, EDGE_WORDS_BYTES)     /* NAME=VALUE */ \
    F(STRUCT_IF, edge_content, content, op_writes)                      /* WRITE */
PROTO_STRUCT(edge_op, EDGE_OP_FIELDS);

const char *op_name(enum op_kind kind);
bool edge_words_fit(const struct edge_op *op, struct err *err);      /* what a command can have; false with @err */
/* Of a command: its working directory is where its text says, as far as no symbolic link is on the way: it has no `..`
 * as a name. False with @err (exec.cwd). */
bool edge_cwd_well(const struct edge_op *op, struct err *err);
/* A port of a sandbox that was exposed. Whoever has its capability can connect to it. */
#define EDGE_CAPABILITY 40      /* lower case hexadecimal digits: 160 random bits, and a label of a host's name */
#define EDGE_PORT_FIELDS(F) \
    F(ID, id) \
    F(ID, box) \
    F(U16_IN, port, 1, UINT16_MAX) \
    F(U64, created_ms) \
    F(U64, expires_ms)          /* since 1970; 0: as long as the sandbox lives */ \
    F(U64, connections)         /* so far */ \
    F(COPY, name, EDGE_NAME_MAX, edge_maybe_name)       /* for people */
PROTO_STRUCT(edge_port, EDGE_PORT_FIELDS);
bool edge_is_capability(const char *text);
bool edge_maybe_capability(const char *text);

/* A person's way into a sandbox (docs/attach.md): a ticket, which opens a session once, and then that session. */
#define EDGE_TICKET_MAX     256
#define EDGE_ATTACH_FOR_MAX (12U * 3600)        /* seconds of a session */
#define EDGE_ATTACH_WITHIN_MAX 600U             /* seconds for a ticket to be used */
#define EDGE_ATTACH_KEY_MAX 1024
#define EDGE_ATTACH_FIELDS(F) \
    F(ID, id) \
    F(ID, box) \
    F(BOOL, writes)             /* or looks */ \
    F(BOOL, screen)             /* by the desktop, with a viewer; or with an editor */ \
    F(BOOL, open)               /* it is a session */ \
    F(U64, until_ms)            /* since 1970: the ticket, or the session, is over */ \
    F(U32, seconds)             /* of the session */ \
    F(COPY, who, EDGE_WHO_MAX, NULL)            /* whose it is, in words */ \
    F(COPY, user, EDGE_NAME_MAX, NULL)          /* the sandbox's user, as it is called inside */ \
    F(TEXT, workspace, EDGE_PATH_MAX)           /* where that is, inside */
PROTO_STRUCT(edge_attach, EDGE_ATTACH_FIELDS);
const char *edge_attach_mode(bool screen, bool writes);     /* "inspect", "write", "view", "control" */
/* An Ed25519 key of OpenSSH: a private one in its own format, and a public one as "ssh-ed25519 BASE64"; and nothing
 * that a file of keys could take for something else. */
bool edge_attach_keys_well(const char *host, const char *user);

/* What a sandbox uses, as its keeper knows it. */
#define EDGE_RUNNING_MAX  8     /* commands that are named */
#define EDGE_RUNNING_NAME 63    /* bytes of each */
#define EDGE_USAGE_FIELDS(F) \
    F(U64, memory)              /* of the sandbox; 0 not known, as of the next one */ \
    F(U64, cpu_us) \
    F(U64, keeper_rss)          /* of its keeper */ \
    F(U64, keeper_cpu_us) \
    F(U32, pids)                /* processes, 0 not known */ \
    F(U32, ops)                 /* operations that run */ \
    F(WORDS, running, 1, EDGE_RUNNING_MAX, EDGE_RUNNING_NAME, EDGE_RUNNING_MAX * (EDGE_RUNNING_NAME + 5)) \
                                /* first words of commands that run */
PROTO_STRUCT(edge_usage, EDGE_USAGE_FIELDS);

/* What a WATCH says, until FAILED. The first is NONE with the directory, relative to the workspace; the
 * paths of all others are relative to that, so that what waits is no more than the sandbox said. */
enum edge_change_kind {
    EDGE_CHANGE_NONE,           /* nothing: it is there still */
    EDGE_CHANGE_WATCHING, EDGE_CHANGE_CREATED, EDGE_CHANGE_MODIFIED, EDGE_CHANGE_DELETED, EDGE_CHANGE_RENAMED,
    EDGE_CHANGE_UNWATCHED, EDGE_CHANGE_OVERFLOW, EDGE_CHANGE_KINDS
};
#define EDGE_CHANGE_FIELDS(F) \
    F(ENUM, edge_change_kind, kind, 0, EDGE_CHANGE_KINDS - 1) \
    F(BOOL, directory) \
    F(TEXT, path, EDGE_PATH_MAX)    /* "" of WATCHING and OVERFLOW, and of NONE but the first */ \
    F(TEXT, from, EDGE_PATH_MAX)    /* RENAMED: what it was before; "" otherwise */
PROTO_STRUCT(edge_change, EDGE_CHANGE_FIELDS);

/* How an operation ended. */
enum op_end { RESULT_OK, RESULT_NONZERO, RESULT_SIGNALED, RESULT_TIMED_OUT, RESULT_FAILED, RESULT_CANCELED,
                 RESULT_REFUSED, RESULTS };
const char *op_end_name(enum op_end result);
/* What a shell exits with when there is no such command, or it cannot be run; 0: @err is another failure. */
uint32_t edge_shells_code(const struct err *err);
#define EDGE_OP_RESULT_FIELDS(F) \
    F(ENUM, op_kind, kind, 1, OP_KINDS - 1) \
    F(ENUM, op_end, result, 0, RESULTS - 1) \
    F(U64, us)                  /* time; */ \
    F(U64, in)                  /* bytes into the sandbox */ \
    F(U64, out)                 /* and out of it */
PROTO_STRUCT(edge_op_result, EDGE_OP_RESULT_FIELDS);

#endif
