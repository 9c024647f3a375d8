/* front/reply_e2b.h: routes of E2B's clients: who comes, and what a refusal looks like */
#ifndef CLOCHE_FRONT_REPLY_E2B_H
#define CLOCHE_FRONT_REPLY_E2B_H

struct request;

/* How a route's caller is named: Authorization or X-Sandbox-Key; or as E2B's clients do (adapters/routes.h). */
enum credential_way { CREDENTIAL_OURS, CREDENTIAL_API_KEY, CREDENTIAL_BOX_KEY };

/* What a refusal looks like. */
enum words { WORDS_OURS, WORDS_E2B, WORDS_RPC, WORDS_RPC_STREAM };

/* A refusal in E2B's or Connect's words. */
void reply_e2b(struct request *r, enum words words, unsigned status, const char *code, const char *detail,
               const char *text);

#endif
