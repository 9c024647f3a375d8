/* guest/client_priv.h: what client.c (requests, transport) and client_events.c (judging the guest) share */
#ifndef CLOCHE_GUEST_CLIENT_PRIV_H
#define CLOCHE_GUEST_CLIENT_PRIV_H

#include "guest/client.h"
#include "wire/table.h"

#define CLIENT_OUT_MAX    (8 * 1024 * 1024)     /* what may wait to be sent: one large EXEC beside a guard plan */
#define CLIENT_DATA_MARK  (256 * 1024)          /* stdin and file chunks are not taken while more than this waits */
#define CLIENT_IN_MAX     (4 * (FRAME_HEADER + MSG_DATA_MAX))
#define CLIENT_FD_SETS    8                     /* EXECs with descriptors that may wait to be sent */

enum client_state { CLIENT_FRESH = 1, CLIENT_READY = 2 };

struct client_exec {
    uint16_t id;                /* 0: free */
    enum exec_stdio stdio;
    bool started;
    bool stdin_closed;          /* by us, or it never had one of ours */
    uint32_t stdin_room;        /* credit */
    uint32_t window;            /* 0: not limited */
    uint32_t output_room[2];    /* credit that we gave for stdout, stderr */
};

struct client_file {
    uint16_t id;                /* 0: free */
    uint8_t type;
    bool ended;                 /* FILE_END or FILE_CANCEL was sent */
    bool watching;              /* WATCH: that was said */
    uint32_t room, window;      /* WATCH: credit that we gave, and the most of it */
    uint64_t left, said;        /* READ: bytes that may come yet, and that came */
};

/* Descriptors that leave with the frame at @at of the out buffer (or before it, never after). */
struct client_fds {
    size_t at;
    int fd[3];                  /* that many: */
    size_t n;
    bool owned;
};

struct guest_client {
    int fd;
    bool plain;                 /* not a socket: read and write */
    bool setup_done;
    bool closed;                /* end of the stream was read */
    bool closed_told;
    bool send_broken;           /* the guest is gone; what it said before is still to be read */
    bool failed;                /* protocol broken: nothing works any more */
    bool was_full;              /* the last read filled its room: ask for more next time */
    uint16_t next_exec, next_file;
    struct msg_gate gate;
    struct buf in, out;
    size_t in_at;               /* consumed part of in */
    size_t out_at;              /* sent part of out */
    struct client_fds sets[CLIENT_FD_SETS];
    size_t n_sets;
    struct client_exec execs[MSG_EXECS_MAX];
    struct client_file files[MSG_FILES_MAX + MSG_WATCHES_MAX];
    struct guest_event *event;  /* where the handlers put what they read */
    const char *why;            /* what a handler did not like */
    char root[MSG_PATH_MAX + 1];
};

extern const struct msg_rule client_rules[];
extern const size_t client_n_rules;

struct client_exec *client_exec_of(struct guest_client *c, uint16_t id);
struct client_file *client_file_of(struct guest_client *c, uint16_t id);

#endif
