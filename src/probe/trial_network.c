/* probe/trial_network.c: a network by name, tried with names that lead nowhere
 *
 * In a sandbox of prove's own one name below .invalid (RFC 2606: it never exists) and those below it are allowed, one
 * of them is denied again. No packet has to leave the host for that: what a rule refuses is refused with 403 before
 * anything is looked up; every other answer (a tunnel, or that the name was looked for in vain) means that it was let
 * through.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "probe/attack.h"
#include "probe/places.h"
#include "wall/capture.h"

#define OTHER "cloche-prove-other.invalid"
#define SEEN_MS 10000
#define WAIT_S 10       /* a machine that is busy is given the time */
#define COUNT(rows) ARRAY_LEN(rows)

static int
dial(int type, const char *address, uint16_t port)
{
    const struct timeval limit = { .tv_sec = WAIT_S };
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

    if (fd < 0 || inet_pton(AF_INET, address, &to.sin_addr) != 1)
        return fd;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* What comes back for @text, NUL-terminated. Length or -1. */
static ssize_t
ask(int fd, const void *text, size_t size, char *out, size_t room)
{
    ssize_t n;

    out[0] = '\0';
    if (fd < 0 || send(fd, text, size, MSG_NOSIGNAL) != (ssize_t)size)
        return -1;
    n = recv(fd, out, room - 1, 0);
    out[n < 0 ? 0 : n] = '\0';
    return n;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

/* How many addresses the sandbox's resolver has for @name; -1 when it does not answer. The last four bytes are the last
 * of them. */
static int
addresses_of(const char *name, unsigned char answer[600], size_t *answer_n)
{
    unsigned char query[300] = { 0x43, 0x50, 1, 0, 0, 1 };
    size_t n = 12;
    cleanup_close int fd = dial(SOCK_DGRAM, CAPTURE_SERVICE_ADDRESS, 53);
    ssize_t got;

    for (const char *at = name; *at != '\0';) {
        size_t label = strcspn(at, ".");

        query[n++] = (unsigned char)label;
        memcpy(query + n, at, label);
        n += label;
        at += label + (at[label] == '.');
    }
    n++;
    memcpy(query + n, "\0\1\0\1", 4);       /* A, IN */
    n += 4;
    if (fd < 0 || send(fd, query, n, 0) != (ssize_t)n)
        return -1;
    got = recv(fd, answer, 600, 0);
    *answer_n = got > 0 ? (size_t)got : 0;
    return got < 12 ? -1 : answer[6] << 8 | answer[7];
}

static int
n_addresses(const char *name)
{
    unsigned char answer[600];
    size_t n;

    return addresses_of(name, answer, &n);
}

static bool
below(const struct attempt *a, const char *label, char *out, size_t n)
{
    return a->p->allowed != NULL && (size_t)snprintf(out, n, "%s%s", label, a->p->allowed) < n;
}

enum outcome
trial_network_control(struct attempt *a)
{
    char name[200];

    if (!below(a, "www.", name, sizeof(name)))
        return outcome_of(a, SUCCEEDED, "no name was given");
    int n = n_addresses(name);
    return outcome_of(a, n > 0 ? BLOCKED : SUCCEEDED, "%s has %d addresses", name, n);
}

enum outcome
trial_network_names(struct attempt *a)
{
    /* a star is one label */
    const char *const labels[] = { "denied.", "not", "a.b.denied.", "a.b." };
    char name[200];

    if (n_addresses(OTHER) > 0)
        return outcome_of(a, SUCCEEDED, OTHER " has an address");
    for (size_t i = 0; i < COUNT(labels) && below(a, labels[i], name, sizeof(name)); i++)
        if (n_addresses(name) > 0)
            return outcome_of(a, SUCCEEDED, "%s has an address", name);
    return outcome_of(a, BLOCKED, "none of them has an address");
}

/* --- the proxy ---------------------------------------------------------------------------------------------------- */

/* The status of the proxy's answer to @request; 0 when it says nothing. */
static int
status_of(const char *request)
{
    char answer[600];
    cleanup_close int fd = dial(SOCK_STREAM, CAPTURE_SERVICE_ADDRESS, CAPTURE_PROXY_PORT);
    ssize_t n = ask(fd, request, strlen(request), answer, sizeof(answer));

    uint64_t status;

    return n > 12 && strncmp(answer, "HTTP/1.", 7) == 0 && str_parse_u64((struct str){ answer + 9, 3 }, 999, &status)
               ? (int)status : 0;
}

static int
connect_status(const char *host, unsigned port)
{
    char request[600];

    snprintf(request, sizeof(request), "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n\r\n", host, port, host, port);
    return status_of(request);
}

static bool
let_through(struct attempt *a, const char *how, const char *host, unsigned port, int status)
{
    if (status == 403)
        return false;
    outcome_of(a, SUCCEEDED, "%s %s:%u is answered by %d, where 403 is a refusal by rule", how, host, port, status);
    return true;
}

enum outcome
trial_network_connect(struct attempt *a)
{
    char name[200];

    if (let_through(a, "CONNECT", OTHER, 443, connect_status(OTHER, 443)) ||
        (below(a, "not", name, sizeof(name)) && let_through(a, "CONNECT", name, 443, connect_status(name, 443))) ||
        (below(a, "a.b.", name, sizeof(name)) && let_through(a, "CONNECT", name, 443, connect_status(name, 443))) ||
        let_through(a, "CONNECT", "192.0.2.1", 443, connect_status("192.0.2.1", 443)))
        return SUCCEEDED;
    return outcome_of(a, BLOCKED, "a name, one that ends alike, one too deep for the star, and an address are refused");
}

enum outcome
trial_network_request(struct attempt *a)
{
    char name[200], request[600];
    int status = status_of("GET http://" OTHER "/ HTTP/1.1\r\nHost: " OTHER "\r\nConnection: close\r\n\r\n");

    if (let_through(a, "GET", OTHER, 80, status))
        return SUCCEEDED;
    if (!below(a, "not", name, sizeof(name)))
        return BLOCKED;
    snprintf(request, sizeof(request), "GET http://%s/ HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", name, name);
    return let_through(a, "GET", name, 80, status_of(request)) ? SUCCEEDED : outcome_of(a, BLOCKED, "403 for both");
}

/* Of one host the rules open GET below one path (prove/prove_trial.c). */
static int
scope_status(const char *method, const char *path)
{
    char request[600];

    snprintf(request, sizeof(request), "%s http://" SCOPED_HOST "%s HTTP/1.1\r\nHost: " SCOPED_HOST
             "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", method, path);
    return status_of(request);
}

enum outcome
trial_network_scope(struct attempt *a)
{
    static const struct { const char *method, *path; } rows[] = {
        { "POST", SCOPED_PATH "x" }, { "DELETE", SCOPED_PATH "x" }, { "GET", "/other" },
        { "GET", SCOPED_PATH "../other" }, { "GET", SCOPED_PATH "%2e%2e/other" }, { "GET", SCOPED_PATH "..%2fother" },
        { "GET", "/" SCOPED_PATH "x" }, { "GET", SCOPED_PATH ".;/x" },
    };

    if (scope_status("GET", SCOPED_PATH "x") == 403)
        return outcome_of(a, NOT_APPLICABLE, "what the rule opens is refused as well");
    for (size_t i = 0; i < COUNT(rows); i++) {
        int status = scope_status(rows[i].method, rows[i].path);

        if (status != 403 && status != 400)
            return outcome_of(a, SUCCEEDED, "%s %s is answered by %d, where 403 is a refusal by rule", rows[i].method,
                              rows[i].path, status);
    }
    return outcome_of(a, BLOCKED, "other methods and paths are refused");
}

/* Where the host's table of names is prove's own (prove/prove_trial_outside.c). */
enum outcome
trial_network_led(struct attempt *a)
{
    static const char *const labels[] = {
#define LABEL(name, address) name ".",
        LED_NAMES(LABEL)
#undef LABEL
        LED_BOTH ".",
    };
    const char *first = NULL;
    size_t refused = 0;
    char name[200];
    int status = 0;

    for (size_t i = 0; i < COUNT(labels) && below(a, labels[i], name, sizeof(name)); i++) {
        int got = connect_status(name, 443);

        refused += got == 403;
        if (got != 403 && first == NULL) {
            first = labels[i];
            status = got;
        }
        if (i == 1 && refused == 0)
            return outcome_of(a, NOT_APPLICABLE, "the names lead nowhere here");
    }
    if (first != NULL)
        return outcome_of(a, SUCCEEDED, "%s%s is answered by %d, where 403 is a refusal by rule", first, a->p->allowed,
                          status);
    return outcome_of(a, BLOCKED, "all %zu are refused for where they lead", refused);
}

/* A connection to the address that stands for the allowed host. */
static int
dial_allowed(const struct attempt *a, uint16_t port, char name[200])
{
    unsigned char answer[600];
    char address[INET_ADDRSTRLEN];
    size_t n = 0;

    if (!below(a, "www.", name, 200) || addresses_of(name, answer, &n) < 1 || n < 16 ||
        inet_ntop(AF_INET, answer + n - 4, address, sizeof(address)) == NULL)
        return -1;
    return dial(SOCK_STREAM, address, port);
}

enum outcome
trial_network_another(struct attempt *a)
{
    char name[200], other[200], request[600], answer[600];
    cleanup_close int fd = dial_allowed(a, 80, name);

    if (fd < 0 || !below(a, "api.", other, sizeof(other)))
        return outcome_of(a, NOT_APPLICABLE, "the allowed host is not connected to");
    snprintf(request, sizeof(request), "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", other);
    if (ask(fd, request, strlen(request), answer, sizeof(answer)) > 12 && strncmp(answer + 8, " 403", 4) != 0)
        return outcome_of(a, SUCCEEDED, "for %s, where %s was connected to: %.12s", other, name, answer);
    return outcome_of(a, BLOCKED, "%s is refused where %s was connected to", other, name);
}

/* A ClientHello of TLS 1.3 that names @name ("": nobody), encrypted beside that where @ech. Its length. */
static size_t
make_hello(unsigned char out[600], const char *name, bool ech)
{
    static const unsigned char encrypted[] = { 0xfe, 0x0d, 0, 12, 0, 0, 1, 0, 1, 7, 0, 1, 1, 0, 1, 1 };
    static const unsigned char versions[] = { 0, 43, 0, 3, 2, 3, 4 };
    size_t len = strlen(name), n = 9;

    memset(out, 0, 600);
    memcpy(out, "\x16\3\1\0\0\1\0\0\0\3\3", 11);
    n = 11 + 32 + 1;                            /* no session */
    memcpy(out + n, "\0\2\x13\1\1\0", 6);     /* a cipher, no compression */
    n += 6 + 2;
    size_t extensions = n;
    if (len > 0) {
        const unsigned char head[] = { 0, 0, 0, (unsigned char)(len + 5), 0, (unsigned char)(len + 3), 0, 0,
                                       (unsigned char)len };
        memcpy(out + n, head, sizeof(head));
        memcpy(out + n + sizeof(head), name, len);
        n += sizeof(head) + len;
    }
    if (ech) {
        memcpy(out + n, encrypted, sizeof(encrypted));
        n += sizeof(encrypted);
    }
    memcpy(out + n, versions, sizeof(versions));
    n += sizeof(versions);
    out[extensions - 2] = (unsigned char)((n - extensions) >> 8);
    out[extensions - 1] = (unsigned char)(n - extensions);
    out[3] = (unsigned char)((n - 5) >> 8);
    out[4] = (unsigned char)(n - 5);
    out[7] = (unsigned char)((n - 9) >> 8);
    out[8] = (unsigned char)(n - 9);
    return n;
}

/* What became of them cannot be told here, where the name leads nowhere: the run's report says why each was refused. */
enum outcome
trial_network_hello(struct attempt *a)
{
    unsigned char hello[600];
    char name[200], answer[600];

    for (int i = 0; i < 3; i++) {
        cleanup_close int fd = dial_allowed(a, 443, name);
        char other[200];

        if (fd < 0 || !below(a, "api.", other, sizeof(other)))
            return outcome_of(a, NOT_APPLICABLE, "the allowed host is not connected to");
        size_t n = make_hello(hello, i == 0 ? other : i == 1 ? name : "", i == 1);
        (void)ask(fd, hello, n, answer, sizeof(answer));
    }
    return outcome_of(a, BLOCKED, "as outside says");
}

enum outcome
trial_network_socks(struct attempt *a)
{
    static const unsigned char hello[] = { 5, 1, 0 };
    unsigned char request[300] = { 5, 1, 0, 3, sizeof(OTHER) - 1 };
    char answer[300];
    cleanup_close int fd = dial(SOCK_STREAM, CAPTURE_SERVICE_ADDRESS, CAPTURE_SOCKS_PORT);

    if (ask(fd, hello, sizeof(hello), answer, sizeof(answer)) < 2)
        return outcome_of(a, SUCCEEDED, "the proxy says nothing");
    memcpy(request + 5, OTHER "\1\xbb", sizeof(OTHER) + 1);     /* 443 */
    if (ask(fd, request, 5 + sizeof(OTHER) - 1 + 2, answer, sizeof(answer)) < 2)
        return outcome_of(a, SUCCEEDED, "the proxy ends without an answer");
    return outcome_of(a, answer[1] == 2 ? BLOCKED : SUCCEEDED, "answer %d, where 2 is a refusal by rule", answer[1]);
}

enum outcome
trial_network_denied(struct attempt *a)
{
    const char *const labels[] = { "denied.", "DENIED." };
    char name[200];

    for (size_t i = 0; i < 2; i++)
        if (!below(a, labels[i], name, sizeof(name)) ||
            let_through(a, "CONNECT", name, 443, connect_status(name, 443)))
            return SUCCEEDED;
    /* at another port that the rule around it opens, and by the other way */
    if (below(a, "denied.", name, sizeof(name))) {
        char request[600];

        snprintf(request, sizeof(request), "GET http://%s/ HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", name,
                 name);
        if (let_through(a, "GET", name, 80, status_of(request)) ||
            let_through(a, "CONNECT", name, 80, connect_status(name, 80)))
            return SUCCEEDED;
    }
    return outcome_of(a, BLOCKED, "refused, in capitals too, and at each port");
}

enum outcome
trial_network_port(struct attempt *a)
{
    char name[200];

    if (!below(a, "www.", name, sizeof(name)) || let_through(a, "CONNECT", name, 22, connect_status(name, 22)) ||
        let_through(a, "CONNECT", name, 8443, connect_status(name, 8443)))
        return SUCCEEDED;
    return outcome_of(a, BLOCKED, "22 and 8443 are refused");
}

enum outcome
trial_network_loopback(struct attempt *a)
{
    static const char *const hosts[] = {
        "127.0.0.1", "localhost", "[::1]", "0.0.0.0", "127.1", "169.254.169.254",
        /* the same in other clothes: one address that carries another, and names for it */
        "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::ffff:169.254.169.254]",
        "2130706433", "0x7f.1", "localhost.", "a.localhost", "LOCALHOST",
        /* where other clouds have theirs */
        "168.63.129.16", "100.100.100.200", "192.0.0.192", "[fd00:ec2::254]", "metadata.google.internal",
        "metadata.goog", "METADATA.google.internal.",
        /* to everybody */
        "224.0.0.1", "255.255.255.255",
    };
    unsigned port = a->p->tcp_port != 0 ? a->p->tcp_port : 80;

    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        int status = connect_status(hosts[i], port);

        if (status != 400 && let_through(a, "CONNECT", hosts[i], port, status))
            return SUCCEEDED;
    }
    if (a->p->own_address != NULL &&
        let_through(a, "CONNECT", a->p->own_address, port, connect_status(a->p->own_address, port)))
        return SUCCEEDED;
    return outcome_of(a, BLOCKED, "none of its spellings is let through, though rules name some");
}

/* Seen from outside: here it is only kept alive until then (prove/prove_trial.c makes the file). */
enum outcome
trial_network_rights(struct attempt *a)
{
    const struct timespec pause = { 0, 5 * 1000 * 1000 };
    char path[600];

    snprintf(path, sizeof(path), "%s/egress-seen", a->p->project != NULL ? a->p->project : "");
    for (int i = 0; i < SEEN_MS / 5 && access(path, F_OK) < 0; i++)
        nanosleep(&pause, NULL);
    return outcome_of(a, BLOCKED, "as outside says");
}

enum outcome
trial_network_vault(struct attempt *a)
{
    return outcome_of(a, BLOCKED, "as outside says");
}

enum outcome
trial_network_direct(struct attempt *a)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: " OTHER "\r\nConnection: close\r\n\r\n";
    char answer[600];
    cleanup_close int odd = dial(SOCK_STREAM, "192.0.2.1", 9);
    cleanup_close int web = dial(SOCK_STREAM, "192.0.2.1", 80);
    ssize_t n = ask(web, request, sizeof(request) - 1, answer, sizeof(answer));

    if (odd >= 0)
        return outcome_of(a, SUCCEEDED, "192.0.2.1:9 is connected");
    if (n > 12 && strncmp(answer + 8, " 403", 4) != 0)
        return outcome_of(a, SUCCEEDED, "192.0.2.1:80 answers %.12s", answer);
    return outcome_of(a, BLOCKED, "port 9 is refused, port 80 answers %.12s", n > 12 ? answer : "nothing");
}
