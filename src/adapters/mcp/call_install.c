/* adapters/mcp/call_install.c: code_install_package: one package of a registry, by that registry's own client inside
 *
 * The client runs in the sandbox like any other command: it reaches what the sandbox reaches, and writes where that
 * writes. What went wrong is read from what it said; a package that runs while it is installed can say it too, so the
 * word is for the caller's convenience and decides nothing.
 */
#include <string.h>

#include "adapters/mcp/mcp.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "match/package.h"

#define INSTALL_S    600
#define LOCK         "/workspace/node_modules/.package-lock.json"

/* npm holds a package to what its registry says of it. Whether that is what the caller said is looked at before
 * anything of the package runs. */
static const char npm_hashed[] =
    "p=$1; shift; n=${p%@*}; [ -n \"$n\" ] || n=$p\n"
    "run() { npm \"$@\" --no-audit --no-fund --no-update-notifier --prefix /workspace; }\n"
    "run install --ignore-scripts --save-exact \"$p\" || exit\n"
    "has=$(node -p 'JSON.parse(require(\"fs\").readFileSync(\"" LOCK "\"))"
    ".packages[\"node_modules/\" + process.argv[1]].integrity' \"$n\")\n"
    "case $has in *[!A-Za-z0-9+/=-]*) has='more than one hash';; esac\n"
    "for hash; do case \" $has \" in *\" $hash \"*) run rebuild; exit;; esac; done\n"
    "run uninstall \"$n\" > /dev/null\n"
    "echo \"EINTEGRITY: the registry has $p as $has, which is none of the hashes that were given\" >&2; exit 1\n";

/* What comes behind the client's words (match/package.h), and then the package. */
static const struct registry_way {
    const char *name;
    const char *plain[4];
    const char *hashed[8];          /* with hashes: package and hashes are standard input; */
    const char *script;             /* or a script instead of the client, and package and hashes behind it */
} ways[] = {
    { "pypi", { "--upgrade", "--" }, { "--upgrade", "--no-deps", "--no-build-isolation", "-r", "/dev/stdin" }, NULL },
    { "npm", { "--" }, { NULL }, npm_hashed },
};

static const char *
registry_of(const struct visit *r)
{
    const char *name = mcp_text(r, "registry");

    return name != NULL ? name : "pypi";
}

static const struct registry_way *
way_of(const struct visit *r)
{
    for (size_t i = 0; i < ARRAY_LEN(ways); i++)
        if (strcmp(ways[i].name, registry_of(r)) == 0)
            return &ways[i];
    return NULL;
}

static const char *
reason_of(const struct visit *r)
{
    static const char *const words[] = {
        [PACKAGE_FAILED] = "InstallFailed", [PACKAGE_NOT_FOUND] = "PackageNotFound",
        [PACKAGE_OTHER_HASH] = "HashMismatch", [PACKAGE_NO_WAY] = "RegistryUnreachable" };
    enum package_fault fault = package_fault_of(r->mcp->err.p, r->mcp->err.n);

    if (fault == PACKAGE_FAILED)
        fault = package_fault_of(r->mcp->out.p, r->mcp->out.n);
    return fault == PACKAGE_NO_WAY && r->mcp->registry_closed ? "RegistryNotAllowed" : words[fault];
}

static void
on_installed(struct visit *r, uint8_t flags, uint32_t code, uint64_t ms)
{
    int exit_code = call_code_of(flags, code);
    json_t *body = json_pack("{s:b, s:s, s:s, s:s}", "success", exit_code == 0, "sandbox_id", r->mcp->box, "package",
                             mcp_text(r, "package"), "registry", registry_of(r));
    const char *error = exit_code != 0 && call_error_of(flags) == NULL ? reason_of(r) : NULL;

    (void)ms;
    call_add_output(r, body, flags);
    if (error != NULL)
        json_object_set_new(body, "error", json_string(error));
    mcp_done(r, body, exit_code != 0);
}

static const struct visit_op_answers installed = { .out = call_output, .exit = on_installed, .failed = mcp_fail_err };

/* A requirement of pip's, with the hashes of which its archive has one. */
static bool
say_requirement(struct visit *r, const json_t *hashes)
{
    cleanup_buf struct buf text = BUF_INIT(64UL * 1024);
    json_t *hash;
    size_t i;

    buf_puts(&text, mcp_text(r, "package"));
    json_array_foreach(hashes, i, hash)
        buf_printf(&text, " --hash=%s", json_string_value(hash));
    buf_puts(&text, "\n");
    return buf_ok(&text) && visit_input(r, text.p, text.n);
}

/* Whether the sandbox was made for that registry: what it reaches otherwise, the client will tell. */
static bool
is_named(const struct edge_box *box, const char *registry)
{
    struct str names = edge_line(box->facts, "registries");
    size_t n;

    for (; names.n > 0; names.p += n, names.n -= n) {
        const char *blank = memchr(names.p, ' ', names.n);
        n = blank != NULL ? (size_t)(blank - names.p) : names.n;
        if (str_eq_c((struct str){ names.p, n }, registry))
            return true;
        n += blank != NULL ? 1 : 0;
    }
    return false;
}

static void
add_words(struct edge_op *op, const char *const *words)
{
    for (; *words != NULL; words++)
        op->argv[op->n_argv++] = *words;
}

static void
on_install_box(struct visit *r, const struct edge_box *box)
{
    static struct edge_op op;
    const struct registry_way *way = way_of(r);     /* call_install() has found it */
    const json_t *hashes = json_object_get(r->mcp->args, "hashes");
    bool hashed = json_array_size(hashes) > 0, scripted;

    if (way == NULL || !call_has_network(box)) {
        mcp_fail(r, "NetworkDisabled", "this sandbox was made without a network: make one with network_enabled");
        return;
    }
    scripted = hashed && way->script != NULL;
    r->mcp->registry_closed = str_eq_c(edge_line(box->facts, "network"), "allowlist") && !is_named(box, way->name);
    memset(&op, 0, sizeof(op));
    op.kind = OP_EXEC;
    op.path = "";
    op.timeout_ms = (uint64_t)r->mcp->timeout_s * 1000;
    add_words(&op, scripted ? (const char *const[]){ "sh", "-c", way->script, "npm", NULL }
                            : package_client_of(way->name)->words);
    if (!scripted)
        add_words(&op, hashed ? way->hashed : way->plain);
    if (hashed && !scripted && !say_requirement(r, hashes)) {
        mcp_fail(r, "InvalidArguments", "hashes are too many");
        return;
    }
    op.flags = hashed && !scripted ? OP_STDIN : 0;
    if (op.flags == 0)
        op.argv[op.n_argv++] = mcp_text(r, "package");
    for (size_t i = 0; op.flags == 0 && i < json_array_size(hashes); i++)
        op.argv[op.n_argv++] = json_string_value(json_array_get(hashes, i));
    visit_op(r, r->mcp->box, &op, &call_granted, &installed);
}

static const struct visit_answers install_box = { .box = on_install_box, .no = mcp_fail_err };

static bool
hashes_well(struct visit *r, const char *registry)
{
    const json_t *hashes = json_object_get(r->mcp->args, "hashes");
    json_t *hash;
    size_t i;

    json_array_foreach(hashes, i, hash) {
        if (!package_hash_well(registry, json_string_value(hash))) {
            mcp_fail(r, "InvalidArguments", "hashes[%zu] is not as %s writes them: %s", i, registry,
                     strcmp(registry, "npm") == 0 ? "sha512-BASE64" : "sha256:HEX");
            return false;
        }
    }
    if (i > 0 && !package_pinned(registry, mcp_text(r, "package"))) {
        mcp_fail(r, "InvalidArguments", "hashes are those of one version: name==1.0 of pypi, name@1.0.0 of npm");
        return false;
    }
    return true;
}

void
call_install(struct visit *r)
{
    const struct registry_way *way = way_of(r);

    r->mcp->timeout_s = INSTALL_S;
    if (!call_names_box(r))
        return;
    if (way == NULL)
        mcp_fail(r, "UnsupportedLanguage", "registry is not one of pypi, npm");
    else if (!package_well(way->name, mcp_text(r, "package")))
        mcp_fail(r, "InvalidArguments", "package is not a name of %s with at most a version: no URL, path or option",
                 way->name);
    else if (hashes_well(r, way->name))
        VISIT_ASK(r, EDGE_ASK_GET, &install_box, .id = r->mcp->box);
}
