/* run/session_audit.h: one run in the audit record
 *
 * What happened is queued, and written when a second has passed since the first of it, and at the end: a short run pays
 * for one write. A policy that requires the record writes the beginning, to the disk, before anything of the sandbox
 * runs, and ends the run when more cannot be written.
 *
 * Values of secrets and of variables that the user set, and placeholders of secrets, are replaced by their names in
 * every text, in any case of letters. Every function takes NULL, which is a run that is not recorded.
 */
#ifndef CLOCHE_RUN_SESSION_AUDIT_H
#define CLOCHE_RUN_SESSION_AUDIT_H

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

#include "audit/audit.h"
#include "base/mask.h"
#include "run/net_log.h"
#include "run/session.h"

struct run_audit;

/* Open the record of the caller as the policy of @s asks for. 0, with *@out NULL when it is off or cannot be written
 * (then there is a warning in @r), or -1 with @err: it is required. */
int run_audit_open(const struct session *s, struct session_result *r, struct run_audit **out, struct err *err);

/* The sandbox is made and nothing of the command runs yet; @policy is the run's own, with the placeholders. -1 with
 * @err: it must not. */
int run_audit_start(struct run_audit *a, const struct session *s, const struct policy *policy,
                    const struct session_result *r, struct err *err);
/* The command will run without a sandbox because of @why. -1 as above. */
int run_audit_off(struct run_audit *a, const struct session *s, const char *why, struct err *err);

/* What is new among the decisions about the network; with @last also how often all of them were made. */
void run_audit_decisions(struct run_audit *a, struct net_log *log, bool last);
/* A connection waits for somebody's decision; it was made by @uid ("once", "sandbox", "always"). */
void run_audit_asked(struct run_audit *a, const json_t *question);
void run_audit_answer(struct run_audit *a, const json_t *question, bool allow, const char *scope, uid_t uid);
/* @uid has added a rule about hosts. */
void run_audit_rule(struct run_audit *a, bool deny, const char *rule, uid_t uid);
/* The rules about hosts were replaced by SRT's control descriptor. */
void run_audit_rules_replaced(struct run_audit *a);
/* cloche-egress has died, @how, for the @deaths-th time; @closed: the network stays closed. */
void run_audit_death(struct run_audit *a, const char *how, uint64_t deaths, bool closed);

/* When something is to be written (clock_us); 0: nothing. */
uint64_t run_audit_due(const struct run_audit *a);
/* Write it now. -1 with @err when the run must end. */
int run_audit_write(struct run_audit *a, struct err *err);

/* The run is over: @result and @why are what session_run says. Writes the rest and frees @a. -1 with @err when its end
 * had to be written and could not be. */
int run_audit_end(struct run_audit *a, const struct session *s, struct session_result *r, int result,
                  const struct err *why, struct err *err);

/* The same for a process that has no record but somebody who takes its entries, clean of what is in @masks (borrowed).
 * NULL: no memory. Entries come at once, from the functions above. */
typedef void run_audit_fn(void *ctx, const struct audit_entry *e);
struct run_audit *run_audit_remote(struct masks *masks, struct session_result *r, run_audit_fn *fn, void *ctx);
void run_audit_remote_end(struct run_audit *a);
/* What the run's result warns of and is not written yet; run_audit_start() and the end of a run do the same. */
void run_audit_warnings(struct run_audit *a);

/* What it hides: to be added to before run_audit_start(), which adds what the next one does. */
struct masks *run_audit_hides(struct run_audit *a);
/* The values of variables that the user set or passed, placeholders of secrets among them, and the parent proxy's
 * password. */
void run_audit_masks(struct masks *set, const struct policy *p);

/* An entry that belongs to no run, written at once; a warning where that fails. */
void audit_note(const struct audit_entry *e);
/* The record's folder: absolute, there or not. 0 or -1 with @err. */
int audit_folder(char out[4096], struct err *err);

#endif
