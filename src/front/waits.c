/* front/waits.c: what waits for clients to read it, and what they sent that waits for its reader
 *
 * Streams stop at a ceiling of their own (FRONT_STREAM_MAX). All of them together, and answers that are told whole,
 * have another one, of which nobody has more than a share when it comes to that (hold.h): an operation is not listened
 * to then, output that is told whole is cut, and a large answer becomes a refusal.
 */
#include "base/array.h"
#include "front/collect.h"
#include "front/front.h"
#include "front/preview.h"

#define GIVEN_BACK 65536        /* of memory that is empty: kept no longer when there is little */

/* To who needs no credential all of it belongs. */
bool
hold_room(const struct request *r, const struct hold *h, size_t n)
{
    return hold_has(h, r->caller, r->caller == HOLD_NOBODY && !r->f->strangers, n);
}

bool
waits_room(const struct request *r, size_t n)
{
    return hold_room(r, &r->f->waits, n);
}

static size_t
taken(struct buf *b, bool little)
{
    if (little && b->n == 0 && b->cap >= GIVEN_BACK)
        buf_free(b);
    return b->cap;
}

void
waits_count(struct request *r)
{
    struct front *f = r->f;
    bool little = f->waits.all > f->waits.max / 2;
    size_t n = taken(&r->out, little) + taken(&r->err_out, little) + taken(&r->in, little) + r->answer_bytes;

    n += collect_held(r) + visit_held(r) + preview_held(r) + (r->rich != NULL ? rich_held(r->rich) : 0);
    f->eased = f->eased || n < r->waits;
    hold_count(&f->waits, r->caller, r->waits, n);
    r->waits = n;
}

/* Health has to be said whoever else asks; and who comes without a credential is not in the way of who has one in the
 * address. */
bool
waits_place(struct request *r)
{
    if ((r->route->open && !r->route->foreign) || (r->route->named && r->who == 0))
        return true;
    r->placed = hold_room(r, &r->f->places, 1);
    if (r->placed) {
        hold_count(&r->f->places, r->caller, 0, 1);
        return true;
    }
    reply_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, "http.busy", "let some of them end, and ask again",
                "too many requests of this credential are under way");
    return false;
}

void
waits_unplace(struct request *r)
{
    hold_count(&r->f->places, r->caller, r->placed, 0);
    r->placed = false;
}

void
waits_move(struct request *r, unsigned caller)
{
    struct hold *const of[] = { &r->f->bodies, &r->f->waits, &r->f->places };
    const size_t has[] = { r->held_bytes, r->waits, r->placed };

    for (size_t i = 0; i < ARRAY_LEN(of); i++) {
        hold_count(of[i], r->caller, has[i], 0);
        hold_count(of[i], caller, 0, has[i]);
    }
    r->caller = caller;
}

void
waits_keep(struct request *r, struct buf *into, bool *cut, const uint8_t *p, size_t n)
{
    size_t room = into->max - into->n, take = n < room ? n : room;

    if (*cut)
        return;         /* what came behind a hole would be taken for what came next */
    *cut = !waits_room(r, take) || buf_append(into, p, take) < 0 || take < n;
    waits_count(r);
}

void
waits_turn(struct front *f)
{
    if (!f->pressed || !f->eased)
        return;
    f->pressed = f->eased = false;
    for (struct request *r = f->requests; r != NULL; r = r->next)
        if (!r->dead)
            op_flow(r);
}
