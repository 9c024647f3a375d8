/* tests/lib/audit_writer: append entries to an audit record, and say which of them are there
 *
 *   audit_writer DIR TAG COUNT GROUP FILE_BYTES KEEP lazy|durable
 *
 * COUNT entries "TAG-0", "TAG-1" ..., GROUP to a commit; after each commit the number of entries that are written goes to
 * standard output as one line, in one write. Ends with 1 and the error's code on stderr at the first failure.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "audit/audit.h"
#include "base/io.h"

static int
failed(struct audit *a, const struct err *err)
{
    audit_close(a);
    fprintf(stderr, "%s: %s\n", err->code, err->msg);
    return 1;
}

int
main(int argc, char **argv)
{
    struct audit_options o = { .dir = argc > 1 ? argv[1] : "" };
    uint64_t count, group, keep;
    struct err err = ERR_INIT;
    struct audit *a = NULL;

    if (argc != 8 || !str_parse_u64(str_of(argv[3]), UINT32_MAX, &count) ||
        !str_parse_u64(str_of(argv[4]), 10000, &group) || group == 0 ||
        !str_parse_u64(str_of(argv[5]), UINT64_MAX, &o.file_bytes) || !str_parse_u64(str_of(argv[6]), AUDIT_KEEP_MAX, &keep))
        return 2;
    o.keep_files = (unsigned)keep;
    o.durable = strcmp(argv[7], "durable") == 0;
    if (audit_open(&o, &a, &err) < 0)
        return failed(a, &err);
    for (uint64_t i = 0; i < count; i++) {
        struct audit_entry e;
        char word[128], said[32];
        snprintf(word, sizeof(word), "%s-%llu", argv[2], (unsigned long long)i);
        audit_capability(&e, NULL, "test", "an entry of a test");
        audit_put_cstr(&e, "word", word);
        if (audit_append(a, &e, &err) < 0)
            return failed(a, &err);
        if (audit_queued(a) < group && i + 1 < count)
            continue;
        if (audit_commit(a, &err) < 0)
            return failed(a, &err);
        if (io_write_full(STDOUT_FILENO, said, (size_t)snprintf(said, sizeof(said), "%llu\n", (unsigned long long)i + 1)) < 0)
            return 3;
    }
    audit_close(a);
    return 0;
}
