/* What tests/conformance/test_sdk_c.py has done by libcloche: sdk_c all | bytes | events | sends; 0, or a line of what failed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cloche/cloche.h"

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "line %d: %s [%s] %s\n", __LINE__, #what, error.code, error.message); \
            exit(1); \
        } \
    } while (0)

#define THREADS 20

static const char *const echo[] = { "printf", "\\377\\0\\303\\274", NULL };

static int
on_event(void *ctx, const char *event, const char *data, size_t n)
{
    char *seen = ctx;

    if (strlen(data) != n || strlen(seen) + strlen(event) + n + 2 > 4000)
        return 9;
    strcat(strcat(strcat(seen, event), " "), data);
    return strcmp(event, "stop") == 0;
}

static int
stop_at_once(void *ctx, const char *event, const char *data, size_t n)
{
    (void)event, (void)data, (void)n;
    return *(int *)ctx;
}

struct job {
    const struct cloche *c;
    const char *id;
    int number;
    bool right;
};

static void *
one_of_many(void *ctx)
{
    struct job *job = ctx;
    char text[32];
    const char *argv[] = { "echo", text, NULL };
    struct cloche_result r;

    snprintf(text, sizeof(text), "%d", job->number);
    if (cloche_run(job->c, job->id, argv, NULL, &r, NULL) == 0) {
        job->right = r.exit_code == 0 && r.out_n == strlen(text) + 1 && memcmp(r.out, text, strlen(text)) == 0;
        cloche_result_free(&r);
    }
    return NULL;
}

static void
many(const struct cloche *c, const char *id)
{
    struct cloche_error error = { .code = "" };
    struct job jobs[THREADS];
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){ .c = c, .id = id, .number = i };
        CHECK(pthread_create(&threads[i], NULL, one_of_many, &jobs[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0 && jobs[i].right);
}

static void
commands(struct cloche *c, const char *id)
{
    static const char *const slow[] = { "sleep", "1000", NULL }, *const fails[] = { "sh", "-c", "echo e >&2; exit 3", NULL };
    static const char *const kills[] = { "sh", "-c", "kill -9 $$", NULL };
    struct cloche_error error = { .code = "" };
    struct cloche_result r;

    CHECK(cloche_run(c, id, echo, NULL, &r, &error) == 0);
    CHECK(r.exit_code == 0 && r.out_n == 4 && memcmp(r.out, "\377\0\303\274", 5) == 0 && r.err_n == 0);
    cloche_result_free(&r);
    CHECK(cloche_run(c, id, fails, "{\"cwd\": \"/tmp\"}", &r, &error) == 0);
    CHECK(r.exit_code == 3 && strcmp((const char *)r.err, "e\n") == 0 && r.signal == 0);
    cloche_result_free(&r);
    CHECK(cloche_run(c, id, kills, NULL, &r, &error) == 0 && r.exit_code == -1 && r.signal == 9);
    cloche_result_free(&r);
    CHECK(cloche_run(c, id, slow, "{\"timeout_ms\": 100}", &r, &error) == 0 && r.timed_out);
    cloche_result_free(&r);
    CHECK(cloche_run(c, id, echo, "{\"background\": true}", &r, &error) == -1 && strcmp(error.code, "api.request") == 0);
    CHECK(cloche_run(c, id, echo, "[]", &r, &error) == -1 && strcmp(error.code, "api.request") == 0);
    cloche_set_timeout(c, 1);
    CHECK(cloche_run(c, id, slow, NULL, &r, &error) == -1 && strcmp(error.code, "api.time") == 0);
    cloche_set_timeout(c, CLOCHE_TIMEOUT_S);
    CHECK(cloche_execute(c, "shell", "echo 42", NULL, &r, &error) == 0 && strcmp((const char *)r.out, "42\n") == 0);
    cloche_result_free(&r);
}

static void
files(const struct cloche *c, const char *id)
{
    struct cloche_error error = { .code = "" };
    size_t n, large = 20 << 20;
    uint8_t *data, *back;

    CHECK(cloche_write(c, id, "\303\274 f", "a\0b", 3, &error) == 0);
    CHECK(cloche_read(c, id, "/workspace/\303\274 f", 3, &data, &n, &error) == 0 && n == 3 && memcmp(data, "a\0b", 4) == 0);
    free(data);
    CHECK(cloche_read(c, id, "\303\274 f", 2, &data, &n, &error) == -1 && strcmp(error.code, "api.answer") == 0 && data == NULL);
    CHECK(cloche_read(c, id, "none", 9, &data, &n, &error) == -1 && strcmp(error.code, "files.not-found") == 0);
    CHECK(cloche_read(c, id, "a/../../x", 9, &data, &n, &error) == -1 && strcmp(error.code, "files.path-escapes") == 0);
    CHECK(cloche_read(c, id, "/etc/passwd", 9, &data, &n, &error) == -1 && strcmp(error.code, "files.path-escapes") == 0);
    CHECK(cloche_write(c, id, "empty", NULL, 0, &error) == 0);
    CHECK(cloche_read(c, id, "empty", 0, &data, &n, &error) == 0 && n == 0);
    free(data);
    data = malloc(large);
    CHECK(data != NULL);
    for (size_t i = 0; i < large; i++)
        data[i] = (uint8_t)(i * 2654435761U >> 13);
    CHECK(cloche_write(c, id, "large", data, large, &error) == 0);
    CHECK(cloche_read(c, id, "large", large, &back, &n, &error) == 0 && n == large && memcmp(data, back, n) == 0);
    free(back);
    free(data);
}

static int
all(void)
{
    struct cloche_error error = { .code = "" };
    struct cloche *c = cloche_open(NULL, NULL, &error);
    char id[33], path[128], seen[4096] = "", *said;

    CHECK(c != NULL && strcmp(cloche_version(), "0.1.0") == 0);
    CHECK(cloche_create(c, "{\"name\": \"of-c\"}", id, &error) == 0);
    CHECK(cloche_create(c, "{\"name\": \"of-c\"}", id, &error) == -1 && strcmp(error.code, "sandbox.name-taken") == 0);
    CHECK(cloche_create(c, "{\"nmae\": 1}", id, &error) == -1 && strcmp(error.code, "sandbox.request") == 0);
    said = cloche_ask(c, "GET", "/v1/sandboxes/of-c", NULL, &error);
    CHECK(said != NULL && strstr(said, "\"name\":\"of-c\"") != NULL);
    free(said);
    commands(c, "of-c");
    files(c, "of-c");
    many(c, "of-c");
    snprintf(path, sizeof(path), "/v1/sandboxes/%s/exec", "of-c");
    CHECK(cloche_events(c, "POST", path, "{\"command\": \"echo a; exit 4\"}", on_event, seen, &error) == 0);
    CHECK(strstr(seen, "stdout {\"data\":\"a\\n\"}exit {\"exit_code\":4,") == seen);
    CHECK(cloche_events(c, "POST", path, "{\"command\": \"echo a; sleep 1000\"}", stop_at_once, &(int){ 7 }, &error) == 7);
    CHECK(cloche_events(c, "POST", path, "{\"command\": \"echo a; sleep 1000\"}", stop_at_once, &(int){ -5 }, &error) == -1);
    CHECK(strcmp(error.code, "api.request") == 0 && strstr(error.message, "-5") != NULL);
    CHECK(cloche_ask(c, "GET", "/v1/sandboxes/none", NULL, &error) == NULL && strcmp(error.code, "sandbox.not-found") == 0);
    CHECK(cloche_ask(c, "GET", "/v1 /x\r\nX: y", NULL, &error) == NULL && strcmp(error.code, "api.request") == 0);
    CHECK(cloche_delete(c, "..", &error) == -1 && strcmp(error.code, "api.request") == 0);
    CHECK(cloche_delete(c, "of-c", &error) == 0);
    cloche_close(c);
    c = cloche_open(NULL, "cloche_operator_5555555555555555555555555555555555555555555555555555555555555555", &error);
    CHECK(c != NULL && cloche_ask(c, "GET", "/v1/version", NULL, &error) == NULL && strcmp(error.code, "auth.unknown") == 0);
    CHECK(strstr(error.message, "5555") == NULL && strstr(error.hint, "5555") == NULL);
    cloche_close(c);
    CHECK(cloche_open(NULL, "a\r\nb", &error) == NULL && strcmp(error.code, "api.token") == 0);
    c = cloche_open("/nonexistent/nobody.sock", "", &error);
    CHECK(c != NULL && cloche_ask(c, "GET", "/v1/version", NULL, &error) == NULL && strcmp(error.code, "api.down") == 0);
    cloche_close(c);
    puts("passed");
    return 0;
}

/* A server that says what it should not, at $CLOCHE_SOCKET. */
static int
hostile(bool events)
{
    struct cloche_error error = { .code = "" };
    struct cloche *c = cloche_open(NULL, "", &error);
    char seen[4096] = "";
    uint8_t *data;
    size_t n;

    CHECK(c != NULL);
    cloche_set_timeout(c, 2);
    if (events)
        CHECK(cloche_events(c, "POST", "/v1/execute", "{}", on_event, seen, &error) == -1);
    else
        CHECK(cloche_read(c, "box", "f", 1 << 20, &data, &n, &error) == -1 && data == NULL && n == 0);
    cloche_close(c);
    printf("%s\n", error.code);
    return 0;
}

/* To a server at $CLOCHE_SOCKET that takes it slowly, or not at all. */
static int
sends(void)
{
    struct cloche_error error = { .code = "" };
    struct cloche *c = cloche_open(NULL, "", &error);
    uint8_t *data = calloc(1, 8 << 20);

    CHECK(c != NULL && data != NULL);
    cloche_set_timeout(c, 1);
    CHECK(cloche_write(c, "box", "f", data, 8 << 20, &error) == -1);
    cloche_close(c);
    free(data);
    printf("%s\n", error.code);
    return 0;
}

int
main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "all") == 0)
        return all();
    if (argc == 2 && strcmp(argv[1], "sends") == 0)
        return sends();
    return argc == 2 ? hostile(strcmp(argv[1], "events") == 0) : 2;
}
