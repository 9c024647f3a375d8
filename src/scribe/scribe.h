/* scribe/scribe.h: cloche-scribe: the one process of the daemon that writes its audit record, and reads transcripts
 *
 * The warden decides, and must not wait for a disk; this process waits for it, and can do nothing else: it has the
 * record's folder and that of the transcripts, and one socket. What the warden sends while a batch is on its way to the
 * disk is the next batch. A batch that fails is said, and nothing more is written until the warden begins again with
 * it: the warden keeps what was not said to be written.
 *
 * It reads bodies of entries, which the warden made, and transcripts, which it passes on without looking.
 */
#ifndef CLOCHE_SCRIBE_SCRIBE_H
#define CLOCHE_SCRIBE_SCRIBE_H

#include "base/loop.h"
#include "base/steady.h"
#include "proto/edge_keeper.h"
#include "proto/edge_scribe.h"

#define SCRIBE_PAGE     (256 * 1024)    /* bytes of a transcript that are read at a time */
#define SCRIBE_READS    32              /* pages under way; more are refused */
#define SCRIBE_PAST_MAX 2500            /* entries that are told again to a new warden */

/* transcript.c: pages of transcripts, and which of them are kept. */
struct page {
    struct watch socket;        /* to the front; none: free */
    struct packet_queue out;    /* ends with EDGE_DONE (where the next page begins) or EDGE_FAILED */
};
/* The transcript of @id in the folder @dir from @offset on, onto @p->socket, which is not watched and is closed when
 * nobody is there. */
void page_begin(struct page *p, const char *dir, const char *id, uint64_t offset);
/* What stays of those that ended: @n, as far as they changed within the last @s seconds (0: any time; by @clock, see
 * steady_age_s), and as many as have @bytes in all. Of each owner the newest, as many as its equal share of it, and of
 * what others leave of theirs. Those that a keeper holds (flock) stay and do not count: nothing that is written now
 * takes anything of what was. */
struct transcript_keep { uint64_t n, s, bytes; const struct steady *clock; };
/* What went for @keep's bytes is in @files and @bytes. */
void transcript_prune(const char *dir, const struct transcript_keep *keep, uint32_t *files, uint64_t *bytes);
/* Whether those that ended have more bytes than that: cheap. */
bool transcript_too_much(const char *dir, uint64_t bytes);

/* past.c: the newest entries of the record in @dir that the daemon wrote, oldest first. */
typedef void past_fn(void *ctx, struct str line);
void past_tell(const char *dir, past_fn *fn, void *ctx);

/* confine.c: from here on only files below the two folders can be opened. 0 or -1 with @err. */
int scribe_confine(const char *audit, const char *transcripts, struct err *err);

#endif
