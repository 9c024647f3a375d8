/* adapters/mcp/mcp.h: /mcp: the Model Context Protocol over HTTP (docs/mcp.md)
 *
 * One HTTP request is one message. A call of a tool is a chain of questions, as a route's is; its answer is JSON, or a
 * stream of events with what it says meanwhile. A client that goes away takes its call along.
 *
 *     post.c     the routes: headers, the two forms of the protocol, methods
 *     rpc.c      the life of a call, and all that is said to its client
 *     session.c  what `initialize` made; forgotten when the front dies, and clients then begin anew
 *     tools.c    the table of tools with their schemas
 *     call*.c    what they do
 */
#ifndef CLOCHE_ADAPTERS_MCP_MCP_H
#define CLOCHE_ADAPTERS_MCP_MCP_H

#include "adapters/adapters.h"
#include "adapters/mcp/message.h"
#include "match/language.h"
#include "wire/rich.h"

#define MCP_OUTPUT_MAX  (1024UL * 1024)     /* of each stream of a command, and of a file that is read */
#define MCP_CUT         "\n[OUTPUT TRUNCATED]"
#define MCP_FILES_MAX   1000                /* entries of one listing */
#define MCP_IDLE_S      1800                /* sandboxes made here end when nothing ran for so long */
#define MCP_SESSIONS    256
#define MCP_CAPABILITIES_MAX 4096           /* bytes of a client's, which its session keeps */
#define MCP_ALIVE_S     15                  /* a stream on which nothing else was said gets a comment */
#define MCP_LOOK_MS     1000                /* ... which is looked for so often */
#define MCP_META        "io.modelcontextprotocol/"

struct mcp_session {
    char id[33];                            /* 128 random bits; "" free */
    uint32_t who;                           /* nobody else can use it */
    unsigned caller;                        /* whose places it takes (hold.h) */
    int version;
    json_t *capabilities;                   /* the client's */
    uint64_t used;                          /* a clock of requests, for who goes first */
};

struct mcp_tool;

/* Of all calls. */
extern struct mcp_all {
    struct mcp_session *sessions;
    uint64_t turns;
    struct timer alive;                     /* set while events are sent: who is told nothing else is told that */
    uint8_t key[MCP_KEY];                   /* of what clients bring along */
} mcp_all;

struct mcp_call {
    struct mcp_message message;
    int version;
    bool streams;                           /* the client takes events */
    bool streaming;                         /* and gets them */
    bool over;
    uint64_t said_s;                        /* when something was said last */
    struct mcp_session *session;            /* NULL in the stateless form */
    char session_id[33];                    /* whose it was, should the place be another's by now */
    const struct mcp_tool *tool;
    json_t *args;                           /* an object, owned */
    const json_t *token;                    /* of progress, borrowed */
    uint64_t progress;
    json_t *capabilities;                   /* of the client, owned: its session may end first */
    char wait[40];                          /* the id of a question to the client; "" none */
    void (*answered)(struct visit *r, const json_t *result);     /* NULL @result: it refused */
    bool judged;                            /* as a whole, by its arguments */
    bool holds;                             /* until somebody has decided: the client knows what for */
    char box[EDGE_NAME_MAX + 1];
    bool made;                              /* by this call, whose client has not been told which it is */
    int64_t timeout_s;
    struct buf out, err;                    /* a command's output */
    struct buf half[2];                     /* of its progress */
    bool cut[2];
    struct rich rich;                       /* of code in a context: results; */
    const char *context_state;              /* what became of that; NULL: nobody said */
    bool registry_closed;                   /* an installation: the sandbox was not made for that registry */
    int step;                               /* of fixtures */
};

struct mcp_tool {
    const char *name, *title, *description;
    const char *input, *output;             /* schemas, as text */
    bool reads_only, destroys, reaches_out; /* what clients tell their user */
    bool gated;                             /* judged before it begins; others by what they ask for (mcp_gate_own) */
    void (*settle)(json_t *args);           /* its arguments in one form, before they are judged; or NULL */
    void (*begin)(struct visit *r);
    json_t *listed;                         /* made of the above at the start */
};

/* What a test build adds; the daemon's own is empty (none.c). */
struct mcp_extra {
    struct mcp_tool *tools;
    size_t n_tools;
    const char *capabilities;               /* JSON, "" none */
    /* Other methods: false when it is none of its own. */
    bool (*method)(struct visit *r, const char *method, json_t *params);
};
extern const struct mcp_extra mcp_extra;

/* rpc.c */
int mcp_open(void);                                         /* before confinement; -1: no memory */
void mcp_result(struct visit *r, json_t *result);         /* takes the reference; ends the request */
void mcp_error(struct visit *r, int code, json_t *data, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
bool mcp_begin(struct visit *r);                           /* false: no memory */
json_t *mcp_server_info(void);
/* A refusal of the request as such, with its status. */
void mcp_turn_away(struct visit *r, unsigned status, int code, json_t *data, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
bool mcp_is_live(const struct visit *r);                  /* a call that has not ended */
bool mcp_is_stateless(const struct visit *r);
void mcp_begin_stream(struct visit *r);                   /* from here on events, where the client takes them */
void mcp_say(struct visit *r, json_t *message);           /* one event; takes the reference */
void mcp_progress(struct visit *r, const uint8_t *p, size_t n, bool is_err);
/* Ask the client (sessions only, on its stream). */
void mcp_ask_client(struct visit *r, const char *method, json_t *params,
                    void (*answered)(struct visit *r, const json_t *result));
void mcp_cancel(struct visit *r);
/* What runs in @session: the request @id, or all (NULL); not @by. */
void mcp_cancel_in(struct visit *by, const char *session, const json_t *id);

/* session.c */
struct mcp_session *mcp_session_new(const struct visit *r, int version, json_t *capabilities);
struct mcp_session *mcp_session_find(uint32_t who, const char *id);
void mcp_session_end(struct mcp_session *s);

/* tools.c */
extern struct mcp_tool mcp_tools[];
extern const size_t mcp_n_tools;
int mcp_tools_open(void);                   /* with the first settings, and anew with each; -1: no memory */
struct mcp_tool *mcp_tool_find(const char *name);
json_t *mcp_tools_json(void);

/* call_gate.c: begin the tool, when it may */
void mcp_gate(struct visit *r);
/* Of a tool that is judged by what it asks for, first: whether that waits for a decision. False: said. Its answers have
 * mcp_verdict() as .gate, and it is begun again when it is to wait. */
bool mcp_gate_own(struct visit *r);
void mcp_verdict(struct visit *r, const struct edge_verdict *v);

/* call.c: ends of calls */
void mcp_done(struct visit *r, json_t *structured, bool failed);      /* takes the reference */
/* {success: false, error: ..., error_type: ...} */
void mcp_fail(struct visit *r, const char *type, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void mcp_fail_err(struct visit *r, const struct err *err);
const char *mcp_text(const struct visit *r, const char *name);       /* an argument; NULL: not given */
bool mcp_true(const struct visit *r, const char *name);
json_t *mcp_output(struct buf *b, bool cut);                            /* what a command said, as text */
/* sandbox_id into the call; false: said. */
bool call_names_box(struct visit *r);

/* The same with @more, a list of content beside the text (taken). */
void mcp_done_with(struct visit *r, json_t *structured, bool failed, json_t *more);

/* call_context.c: the argument context_id, false: said; what is said of code in one; and that into an answer, of which
 * pictures are a list of their own. */
bool context_of(struct visit *r, uint64_t *number);
void context_result(struct visit *r, const uint8_t *p, size_t n, bool last);
void context_ran(struct visit *r, const struct edge_run *run);
json_t *context_put(struct visit *r, json_t *body);
void call_context(struct visit *r);
void call_execute(struct visit *r);       /* call_run.c */
/* ... and for others that run a command: its output, which is kept and told as progress; that and what ended it into a
 * result; its exit code; what happens when it begins. */
void call_output(struct visit *r, bool is_err, const uint8_t *p, size_t n);
void call_add_output(struct visit *r, json_t *body, uint8_t flags);
const char *call_error_of(uint8_t flags);                               /* NULL: it ended by itself */
int call_code_of(uint8_t flags, uint32_t code);
extern const struct visit_answers call_granted;
bool call_has_network(const struct edge_box *box);
void call_install(struct visit *r);       /* call_install.c */
void call_create(struct visit *r);        /* call_box.c */
void call_list(struct visit *r);
void call_destroy(struct visit *r);
void call_expose(struct visit *r);
void call_workspace(struct visit *r);
void call_computer(struct visit *r);      /* call_computer.c */
void call_write(struct visit *r);         /* call_file.c */
void call_read(struct visit *r);
void call_list_files(struct visit *r);
/* A sandbox as the call's arguments want it (network_enabled, allowed_domains); the answers get it. False: said. */
bool call_make(struct visit *r, const char *name, const char *language, const struct visit_answers *answers);

#endif
