/* cli/serve_gate.c: the gate's rules: a file's text, for the warden, which opens no files and reads what they mean */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/io.h"
#include "cli/serve.h"

int
serve_gate_read(struct serve_plan *plan, struct err *err)
{
    if (strcmp(plan->gate, "off") == 0)
        return buf_puts(&plan->rules, "gate: off\n");
    if (plan->gate[0] == '\0' || io_read_file(AT_FDCWD, plan->gate, &plan->rules) == 0)
        return 0;
    err_sys(err, errno, "gate.read", "%s", plan->gate);
    return err_hint(err, "a file with the gate's rules has at most 64 KiB; `cloche gate check FILE` judges it");
}
