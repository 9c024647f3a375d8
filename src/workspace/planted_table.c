/* workspace/planted_table.c: files that a tool obeys when somebody only enters, opens or builds the folder they are in
 *
 * A tool that asks first (direnv, VS Code, Vim's secure mode) stands here too: people agree. Left out is what runs only
 * when it is called by name (a Makefile, a script).
 */
#include "workspace/planted.h"

#include <string.h>

#include "base/array.h"

#define ENTER "direnv, mise and the like, on entering the folder"
#define OPEN  "the editor, on opening the folder or a file in it"
#define AGENT "the agent, when it starts in the folder"
#define PACK  "the package manager, at its next command there"
#define BUILD "the build tool, at its next command there (also for a language server)"
#define START "the interpreter, when it starts there"
#define DEBUG "the debugger, when it starts there"
#define SHELL "the shell, when this folder is a home"
#define VCS   "any of its commands there"
#define COMMIT "git hooks that call it, at the next commit"

static const struct planted_row rows[] = {
    { NULL, ".envrc", "direnv", ENTER },
    { NULL, ".mise.toml", "mise", ENTER }, { NULL, "mise.toml", "mise", ENTER },
    { NULL, ".mise.local.toml", "mise", ENTER }, { ".mise", "*", "mise", ENTER },
    { NULL, ".rtx.toml", "mise", ENTER }, { NULL, ".tool-versions", "asdf, mise", ENTER },
    { NULL, ".autoenv.zsh", "autoenv", ENTER }, { NULL, ".autoenv", "autoenv", ENTER },
    { NULL, "devbox.json", "devbox", ENTER },

    { ".vscode", "tasks.json", "VS Code tasks", OPEN }, { ".vscode", "settings.json", "VS Code settings", OPEN },
    { ".vscode", "launch.json", "VS Code launch configurations", OPEN },
    { ".vscode", "mcp.json", "VS Code MCP servers", OPEN },
    { ".vscode", "extensions.json", "VS Code extensions", OPEN },
    { NULL, "*.code-workspace", "VS Code workspace", OPEN }, { ".idea", "*", "JetBrains settings", OPEN },
    { ".zed", "*", "Zed settings", OPEN }, { ".fleet", "*", "Fleet settings", OPEN },
    { ".devcontainer", "*", "development container", OPEN },
    { NULL, ".devcontainer.json", "development container", OPEN },
    { NULL, "*.sublime-project", "Sublime Text project", OPEN },
    { NULL, ".exrc", "vi, Vim, Neovim", OPEN }, { NULL, ".vimrc", "Vim", OPEN }, { NULL, ".lvimrc", "Vim", OPEN },
    { NULL, ".nvimrc", "Neovim", OPEN }, { NULL, ".nvim.lua", "Neovim", OPEN }, { NULL, ".lazy.lua", "Neovim", OPEN },
    { NULL, ".dir-locals.el", "Emacs", OPEN }, { NULL, ".dir-locals-2.el", "Emacs", OPEN },
    { ".helix", "*", "Helix settings", OPEN },
    { NULL, ".eslintrc.js", "ESLint", OPEN }, { NULL, ".eslintrc.cjs", "ESLint", OPEN },
    { NULL, ".prettierrc.js", "Prettier", OPEN }, { NULL, ".prettierrc.cjs", "Prettier", OPEN },
    { NULL, ".prettierrc.mjs", "Prettier", OPEN },

    { NULL, ".mcp.json", "MCP servers", AGENT }, { ".claude", "*", "Claude Code", AGENT },
    { ".cursor", "*", "Cursor", AGENT }, { NULL, ".cursorrules", "Cursor", AGENT },
    { ".windsurf", "*", "Windsurf", AGENT }, { ".codex", "*", "Codex", AGENT }, { ".gemini", "*", "Gemini", AGENT },
    { ".roo", "*", "Roo", AGENT }, { ".continue", "*", "Continue", AGENT }, { ".kiro", "*", "Kiro", AGENT },
    { NULL, ".aider.conf.yml", "aider", AGENT },

    { NULL, ".npmrc", "npm, pnpm", PACK }, { NULL, ".yarnrc", "Yarn", PACK }, { NULL, ".yarnrc.yml", "Yarn", PACK },
    { NULL, ".pnp.cjs", "Yarn", PACK }, { NULL, ".pnp.loader.mjs", "Yarn", PACK }, { ".yarn", "*.cjs", "Yarn", PACK },
    { NULL, ".pnpmfile.cjs", "pnpm", PACK }, { NULL, "bunfig.toml", "Bun", PACK },
    { ".bundle", "config", "Bundler", PACK }, { NULL, ".condarc", "conda", PACK },

    { ".cargo", "config", "Cargo", BUILD }, { ".cargo", "config.toml", "Cargo", BUILD },
    { NULL, "rust-toolchain.toml", "rustup", BUILD }, { NULL, "rust-toolchain", "rustup", BUILD },
    { ".mvn", "*", "Maven", BUILD }, { NULL, ".bazelrc", "Bazel", BUILD },
    { NULL, "Directory.Build.props", "MSBuild", BUILD }, { NULL, "Directory.Build.targets", "MSBuild", BUILD },
    { NULL, "Directory.Build.rsp", "MSBuild", BUILD },

    { NULL, "sitecustomize.py", "Python", START }, { NULL, "usercustomize.py", "Python", START },
    { NULL, ".Rprofile", "R", START }, { NULL, ".Renviron", "R", START }, { NULL, ".irbrc", "Ruby", START },
    { NULL, ".pryrc", "Ruby", START }, { NULL, ".rspec", "RSpec", START }, { NULL, ".perldb", "Perl", START },
    { NULL, ".ghci", "GHC", START }, { NULL, ".ocamlinit", "OCaml", START }, { NULL, ".iex.exs", "Elixir", START },
    { NULL, ".gdbinit", "GDB", DEBUG }, { NULL, ".gdbearlyinit", "GDB", DEBUG }, { NULL, ".lldbinit", "LLDB", DEBUG },

    { NULL, ".bashrc", "bash", SHELL }, { NULL, ".bash_profile", "bash", SHELL },
    { NULL, ".bash_login", "bash", SHELL },
    { NULL, ".bash_logout", "bash", SHELL }, { NULL, ".bash_aliases", "bash", SHELL },
    { NULL, ".profile", "sh", SHELL }, { NULL, ".zshrc", "zsh", SHELL }, { NULL, ".zshenv", "zsh", SHELL },
    { NULL, ".zprofile", "zsh", SHELL }, { NULL, ".zlogin", "zsh", SHELL }, { NULL, ".zlogout", "zsh", SHELL },
    { NULL, ".kshrc", "ksh", SHELL }, { "fish", "config.fish", "fish", SHELL },

    { ".hg", "hgrc", "Mercurial", VCS }, { ".hg", "hgrc-not-shared", "Mercurial", VCS },
    { NULL, "lazygit.yml", "lazygit", VCS }, { NULL, ".lazygit.yml", "lazygit", VCS },
    { ".sl", "config", "Sapling", VCS }, { ".pijul", "config", "Pijul", VCS },
    { "sl", "config", "Sapling", VCS }, { "_darcs", "defaults", "darcs", VCS },
    { ".jj", "config.toml", "Jujutsu", VCS }, { ".jj", "workspace-config.toml", "Jujutsu", VCS },
    { ".svn", "config", "Subversion", VCS },
    { NULL, ".pre-commit-config.yaml", "pre-commit", COMMIT }, { NULL, "lefthook.yml", "lefthook", COMMIT },
    { NULL, ".lefthook.yml", "lefthook", COMMIT }, { ".husky", "*", "husky", COMMIT },
};

#define N_ROWS ARRAY_LEN(rows)

static bool
fits(const char *pattern, const char *name)
{
    size_t n = strlen(name), tail = strlen(pattern) - 1;

    if (pattern[0] != '*')
        return strcmp(pattern, name) == 0;
    return n >= tail && strcmp(name + n - tail, pattern + 1) == 0;
}

const struct planted_row *
planted_match(const char *dir, const char *name)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        const struct planted_row *r = &rows[i];
        /* of a hundred thousand names nearly all go by here */
        if ((r->name[0] != '*' && r->name[0] != name[0]) || (r->dir != NULL && dir == NULL))
            continue;
        if ((r->dir == NULL || strcmp(r->dir, dir) == 0) && fits(r->name, name))
            return r;
    }
    return NULL;
}

const char *
planted_dir(const char *name)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (rows[i].dir != NULL && strcmp(rows[i].dir, name) == 0)
            return rows[i].dir;
    return NULL;
}
