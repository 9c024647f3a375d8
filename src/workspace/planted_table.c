/* workspace/planted_table.c: files that a tool obeys when somebody only enters, opens or asks about their folder
 *
 * A tool that asks first (direnv, VS Code, Vim's secure mode) stands here too: people agree. Left out is the project's
 * own code: what runs when it is called by name, built or tested (a Makefile, a script, conftest.py, build.rs), and
 * build scripts that their tool evaluates at every command (docs/security.md).
 */
#include "workspace/planted.h"

#include <string.h>
#include <strings.h>

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
    { NULL, "mise.local.toml", "mise", ENTER }, { "mise", "*.toml", "mise", ENTER },
    { NULL, ".autoenv_leave.zsh", "autoenv", ENTER },
    { NULL, "devbox.json", "devbox", ENTER },
    { NULL, ".rvmrc", "RVM", ENTER }, { ".shadowenv.d", "*", "Shadowenv", ENTER },
    { NULL, ".env", "autoenv, zsh's dotenv", ENTER }, { NULL, ".env.leave", "autoenv", ENTER },
    { NULL, ".venv", "what activates environments", ENTER },
    { NULL, ".pkgx.yml", "pkgx", ENTER }, { NULL, ".pkgx.yaml", "pkgx", ENTER },

    { ".vscode", "tasks.json", "VS Code tasks", OPEN }, { ".vscode", "settings.json", "VS Code settings", OPEN },
    { ".vscode", "launch.json", "VS Code launch configurations", OPEN },
    { ".vscode", "mcp.json", "VS Code MCP servers", OPEN },
    { ".vscode", "extensions.json", "VS Code extensions", OPEN },
    { ".vscode", "c_cpp_properties.json", "VS Code's C and C++", OPEN },
    { NULL, "*.code-workspace", "VS Code workspace", OPEN }, { ".idea", "*", "JetBrains settings", OPEN },
    { ".zed", "*", "Zed settings", OPEN }, { ".fleet", "*", "Fleet settings", OPEN },
    { ".devcontainer", "*", "development container", OPEN },
    { NULL, ".devcontainer.json", "development container", OPEN },
    { NULL, "*.sublime-project", "Sublime Text project", OPEN },
    { NULL, ".exrc", "vi, Vim, Neovim", OPEN }, { NULL, ".vimrc", "Vim", OPEN }, { NULL, ".lvimrc", "Vim", OPEN },
    { NULL, ".nvimrc", "Neovim", OPEN }, { NULL, ".nvim.lua", "Neovim", OPEN }, { NULL, ".lazy.lua", "Neovim", OPEN },
    { NULL, ".dir-locals.el", "Emacs", OPEN }, { NULL, ".dir-locals-2.el", "Emacs", OPEN },
    { ".helix", "*", "Helix settings", OPEN },
    { NULL, ".ycm_extra_conf.py", "YouCompleteMe", OPEN }, { NULL, ".luarc.json", "Lua language server", OPEN },
    { NULL, ".luarc.jsonc", "Lua language server", OPEN }, { NULL, ".luacheckrc", "Luacheck", OPEN },
    { NULL, ".rubocop.yml", "RuboCop", OPEN }, { NULL, ".solargraph.yml", "Solargraph", OPEN },
    { NULL, ".pylintrc", "Pylint", OPEN }, { NULL, "pylintrc", "Pylint", OPEN },
    { ".vs", "*.json", "Visual Studio settings", OPEN },
    { ".nova", "*", "Nova settings", OPEN }, { ".lapce", "*", "Lapce settings", OPEN },
    { NULL, ".lite_project.lua", "Lite XL", OPEN }, { NULL, ".kateproject", "Kate", OPEN },
    { NULL, ".project", "Eclipse, Java language server", OPEN }, { NULL, ".factorypath", "Eclipse", OPEN },
    { ".externalToolBuilders", "*", "Eclipse", OPEN }, { NULL, "nim.cfg", "Nim", OPEN },
    { ".bsp", "*.json", "Build Server Protocol", OPEN }, { ".bloop", "*.json", "Bloop", OPEN },
    { NULL, "buildServer.json", "Build Server Protocol", OPEN }, { NULL, "hie.yaml", "Haskell language server", OPEN },
    { ".lsp", "config.edn", "clojure-lsp", OPEN }, { NULL, ".merlin", "Merlin", OPEN },
    { NULL, "rust-analyzer.toml", "rust-analyzer", OPEN }, { NULL, ".rust-analyzer.toml", "rust-analyzer", OPEN },
    { NULL, "config.nims", "Nim", OPEN }, { NULL, "analysis_options.yaml", "Dart", OPEN },
    { NULL, ".flake8", "Flake8", OPEN }, { NULL, "mypy.ini", "mypy", OPEN }, { NULL, ".mypy.ini", "mypy", OPEN },
    { NULL, ".lintr", "lintr", OPEN }, { NULL, ".formatter.exs", "Elixir language server", OPEN },
    { NULL, "Steepfile", "Steep", OPEN }, { ".ruby-lsp", "*", "Ruby language server", OPEN },
    { NULL, ".golangci.yml", "golangci-lint", OPEN }, { NULL, ".golangci.yaml", "golangci-lint", OPEN },
    { NULL, ".golangci.toml", "golangci-lint", OPEN }, { NULL, ".golangci.json", "golangci-lint", OPEN },
    { NULL, "phpstan.neon", "PHPStan", OPEN }, { NULL, "phpstan.neon.dist", "PHPStan", OPEN },
    { NULL, "psalm.xml", "Psalm", OPEN }, { NULL, ".phpactor.json", "Phpactor", OPEN },
    { NULL, "phpcs.xml", "PHP_CodeSniffer", OPEN }, { NULL, ".phpcs.xml", "PHP_CodeSniffer", OPEN },
    { NULL, ".ansible-lint", "ansible-lint", OPEN }, { NULL, ".cmake-format.py", "cmake-format", OPEN },
    { NULL, "deno.json", "Deno language server", OPEN }, { NULL, "deno.jsonc", "Deno language server", OPEN },
    { NULL, ".oxlintrc.json", "Oxlint", OPEN }, { NULL, ".babelrc", "Babel", OPEN },
    { NULL, ".babelrc.js", "Babel", OPEN }, { NULL, ".babelrc.json", "Babel", OPEN },
    { NULL, "babel.config.js", "Babel", OPEN }, { NULL, "babel.config.cjs", "Babel", OPEN },
    { NULL, "babel.config.json", "Babel", OPEN }, { NULL, "postcss.config.js", "PostCSS", OPEN },
    { NULL, "postcss.config.cjs", "PostCSS", OPEN }, { NULL, "postcss.config.mjs", "PostCSS", OPEN },
    { NULL, ".graphqlrc.js", "GraphQL", OPEN }, { NULL, "graphql.config.js", "GraphQL", OPEN },
    { NULL, ".markdownlint-cli2.jsonc", "markdownlint", OPEN },
    { NULL, ".markdownlint-cli2.yaml", "markdownlint", OPEN },
    { NULL, ".markdownlint-cli2.cjs", "markdownlint", OPEN }, { NULL, ".markdownlint-cli2.mjs", "markdownlint", OPEN },
    { NULL, ".stylelintrc.yml", "Stylelint", OPEN }, { NULL, ".stylelintrc.yaml", "Stylelint", OPEN },
    { NULL, ".stylelintrc.mjs", "Stylelint", OPEN },
    { NULL, "eslint.config.js", "ESLint", OPEN }, { NULL, "eslint.config.cjs", "ESLint", OPEN },
    { NULL, "eslint.config.mjs", "ESLint", OPEN }, { NULL, "eslint.config.ts", "ESLint", OPEN },
    { NULL, ".eslintrc", "ESLint", OPEN }, { NULL, ".eslintrc.json", "ESLint", OPEN },
    { NULL, ".eslintrc.yml", "ESLint", OPEN }, { NULL, ".eslintrc.yaml", "ESLint", OPEN },
    { NULL, "prettier.config.js", "Prettier", OPEN }, { NULL, "prettier.config.cjs", "Prettier", OPEN },
    { NULL, "prettier.config.mjs", "Prettier", OPEN }, { NULL, "prettier.config.ts", "Prettier", OPEN },
    { NULL, ".prettierrc", "Prettier", OPEN }, { NULL, ".prettierrc.json", "Prettier", OPEN },
    { NULL, ".prettierrc.yml", "Prettier", OPEN }, { NULL, ".prettierrc.yaml", "Prettier", OPEN },
    { NULL, ".prettierrc.toml", "Prettier", OPEN }, { NULL, ".prettierrc.ts", "Prettier", OPEN },
    { NULL, "stylelint.config.js", "Stylelint", OPEN }, { NULL, "stylelint.config.cjs", "Stylelint", OPEN },
    { NULL, "stylelint.config.mjs", "Stylelint", OPEN }, { NULL, ".stylelintrc", "Stylelint", OPEN },
    { NULL, ".stylelintrc.js", "Stylelint", OPEN }, { NULL, ".stylelintrc.cjs", "Stylelint", OPEN },
    { NULL, ".stylelintrc.json", "Stylelint", OPEN }, { NULL, "tailwind.config.js", "Tailwind CSS", OPEN },
    { NULL, "tailwind.config.cjs", "Tailwind CSS", OPEN }, { NULL, "tailwind.config.mjs", "Tailwind CSS", OPEN },
    { NULL, "tailwind.config.ts", "Tailwind CSS", OPEN }, { NULL, "svelte.config.js", "Svelte", OPEN },
    { NULL, ".php-cs-fixer.php", "PHP CS Fixer", OPEN }, { NULL, ".php-cs-fixer.dist.php", "PHP CS Fixer", OPEN },
    { NULL, ".eslintrc.js", "ESLint", OPEN }, { NULL, ".eslintrc.cjs", "ESLint", OPEN },
    { NULL, ".prettierrc.js", "Prettier", OPEN }, { NULL, ".prettierrc.cjs", "Prettier", OPEN },
    { NULL, ".prettierrc.mjs", "Prettier", OPEN },

    { NULL, ".mcp.json", "MCP servers", AGENT }, { ".claude", "*", "Claude Code", AGENT },
    { ".cursor", "*", "Cursor", AGENT }, { NULL, ".cursorrules", "Cursor", AGENT },
    { ".windsurf", "*", "Windsurf", AGENT }, { ".codex", "*", "Codex", AGENT }, { ".gemini", "*", "Gemini", AGENT },
    { ".roo", "*", "Roo", AGENT }, { ".continue", "*", "Continue", AGENT }, { ".kiro", "*", "Kiro", AGENT },
    { NULL, ".aider.conf.yml", "aider", AGENT },
    { ".opencode", "*", "opencode", AGENT }, { NULL, "opencode.json", "opencode", AGENT },
    { NULL, "opencode.jsonc", "opencode", AGENT }, { ".qwen", "*", "Qwen Code", AGENT },
    { ".amazonq", "*", "Amazon Q", AGENT }, { ".trae", "*", "Trae", AGENT }, { ".factory", "*", "Factory", AGENT },
    { ".augment", "*", "Augment", AGENT }, { ".junie", "*", "Junie", AGENT },
    { NULL, ".crush.json", "Crush", AGENT }, { NULL, "crush.json", "Crush", AGENT },
    { ".kilocode", "*", "Kilo Code", AGENT }, { ".openhands", "*", "OpenHands", AGENT },
    { ".vibe", "*", "Mistral Vibe", AGENT }, { ".amp", "*", "Amp", AGENT }, { ".agents", "*", "Codex, Amp", AGENT },
    { ".github", "*.json", "GitHub Copilot", AGENT },

    { NULL, ".npmrc", "npm, pnpm", PACK }, { NULL, ".yarnrc", "Yarn", PACK }, { NULL, ".yarnrc.yml", "Yarn", PACK },
    { NULL, ".pnp.cjs", "Yarn", PACK }, { NULL, ".pnp.loader.mjs", "Yarn", PACK }, { ".yarn", "*.cjs", "Yarn", PACK },
    { NULL, ".pnpmfile.cjs", "pnpm", PACK }, { NULL, "bunfig.toml", "Bun", PACK },
    { ".bundle", "config", "Bundler", PACK }, { NULL, ".condarc", "conda", PACK },
    { NULL, ".pnpmfile.mjs", "pnpm", PACK }, { NULL, ".pdm-python", "PDM", PACK },
    { NULL, "ansible.cfg", "Ansible", PACK },
    { NULL, "uv.toml", "uv", PACK }, { NULL, "pdm.toml", "PDM", PACK }, { NULL, "poetry.toml", "Poetry", PACK },
    { NULL, "nuget.config", "NuGet", PACK },

    { ".cargo", "config", "Cargo", BUILD }, { ".cargo", "config.toml", "Cargo", BUILD },
    { NULL, "rust-toolchain.toml", "rustup", BUILD }, { NULL, "rust-toolchain", "rustup", BUILD },
    { ".mvn", "*", "Maven", BUILD }, { NULL, ".bazelrc", "Bazel", BUILD },
    { NULL, "Directory.Build.props", "MSBuild", BUILD }, { NULL, "Directory.Build.targets", "MSBuild", BUILD },
    { NULL, "Directory.Build.rsp", "MSBuild", BUILD },
    { NULL, ".bazeliskrc", "Bazelisk", BUILD }, { "tools", "bazel", "Bazelisk", BUILD },
    { NULL, ".buckconfig", "Buck", BUILD }, { NULL, "gradle.properties", "Gradle", BUILD },
    { NULL, "gradle-wrapper.properties", "Gradle", BUILD }, { NULL, ".sbtopts", "sbt", BUILD },
    { NULL, ".jvmopts", "sbt", BUILD },
    { NULL, ".sbtrc", "sbt", BUILD }, { NULL, ".mill-jvm-opts", "Mill", BUILD },
    { NULL, ".bazelversion", "Bazelisk", BUILD }, { NULL, ".buckconfig.local", "Buck", BUILD },
    { NULL, ".plzconfig", "Please", BUILD }, { NULL, ".pants.rc", "Pants", BUILD },
    { NULL, "local.properties", "Android's Gradle", BUILD }, { ".gradle", "config.properties", "Gradle", BUILD },
    { NULL, "gradle-daemon-jvm.properties", "Gradle", BUILD }, { NULL, "global.json", ".NET SDK", BUILD },
    { NULL, "Directory.Packages.props", "MSBuild", BUILD }, { NULL, "Directory.Solution.props", "MSBuild", BUILD },
    { NULL, "Directory.Solution.targets", "MSBuild", BUILD },
    { NULL, ".latexmkrc", "latexmk", BUILD }, { NULL, "latexmkrc", "latexmk", BUILD },

    { NULL, "sitecustomize.py", "Python", START }, { NULL, "usercustomize.py", "Python", START },
    { NULL, ".Rprofile", "R", START }, { NULL, ".Renviron", "R", START }, { NULL, ".irbrc", "Ruby", START },
    { NULL, ".pryrc", "Ruby", START }, { NULL, ".rspec", "RSpec", START }, { NULL, ".perldb", "Perl", START },
    { NULL, ".ghci", "GHC", START }, { NULL, ".ocamlinit", "OCaml", START }, { NULL, ".iex.exs", "Elixir", START },
    { NULL, ".gdbinit", "GDB", DEBUG }, { NULL, ".gdbearlyinit", "GDB", DEBUG }, { NULL, ".lldbinit", "LLDB", DEBUG },
    { NULL, ".pdbrc", "pdb", DEBUG }, { NULL, ".byebugrc", "Byebug", DEBUG }, { NULL, ".rdbgrc", "rdbg", DEBUG },
    { NULL, "ipython_config.py", "IPython", START }, { NULL, "jupyter_config.py", "Jupyter", START },
    { NULL, "jupyter_server_config.py", "Jupyter", START }, { NULL, "jupyter_notebook_config.py", "Jupyter", START },
    { NULL, "jupyter_lab_config.py", "Jupyter", START },
    { NULL, ".octaverc", "Octave", START }, { NULL, ".erlang", "Erlang", START },
    { NULL, ".nrepl.edn", "nREPL", START }, { NULL, ".rspec-local", "RSpec", START },

    { NULL, ".bashrc", "bash", SHELL }, { NULL, ".bash_profile", "bash", SHELL },
    { NULL, ".bash_login", "bash", SHELL },
    { NULL, ".bash_logout", "bash", SHELL }, { NULL, ".bash_aliases", "bash", SHELL },
    { NULL, ".profile", "sh", SHELL }, { NULL, ".zshrc", "zsh", SHELL }, { NULL, ".zshenv", "zsh", SHELL },
    { NULL, ".zprofile", "zsh", SHELL }, { NULL, ".zlogin", "zsh", SHELL }, { NULL, ".zlogout", "zsh", SHELL },
    { NULL, ".kshrc", "ksh", SHELL }, { "fish", "config.fish", "fish", SHELL },
    { NULL, ".cshrc", "csh", SHELL }, { NULL, ".tcshrc", "tcsh", SHELL }, { NULL, ".login", "csh", SHELL },
    { NULL, ".logout", "csh", SHELL }, { NULL, ".bash_completion", "bash", SHELL },
    { NULL, ".xprofile", "X session", SHELL }, { NULL, ".xsession", "X session", SHELL },
    { NULL, ".xsessionrc", "X session", SHELL }, { NULL, ".xinitrc", "X session", SHELL },
    { NULL, ".pam_environment", "PAM", SHELL }, { NULL, ".tmux.conf", "tmux", SHELL },
    { NULL, ".screenrc", "screen", SHELL }, { NULL, ".direnvrc", "direnv", SHELL },
    { NULL, ".lessfilter", "lesspipe", SHELL }, { NULL, ".forward", "delivery of mail", SHELL },
    { NULL, ".gitconfig", "git", SHELL }, { NULL, ".inputrc", "readline", SHELL },
    { NULL, ".procmailrc", "delivery of mail", SHELL }, { ".ssh", "rc", "SSH server", SHELL },
    { ".ssh", "config", "SSH", SHELL }, { ".ssh", "authorized_keys", "SSH server", SHELL },

    { ".hg", "hgrc", "Mercurial", VCS }, { ".hg", "hgrc-not-shared", "Mercurial", VCS },
    { NULL, "lazygit.yml", "lazygit", VCS }, { NULL, ".lazygit.yml", "lazygit", VCS },
    { ".sl", "config", "Sapling", VCS }, { ".pijul", "config", "Pijul", VCS },
    { "sl", "config", "Sapling", VCS }, { "sl", "config-git-user", "Sapling", VCS },
    { "sl", "config-git-repo", "Sapling", VCS }, { ".jj", "repo", "Jujutsu", VCS, true },
    { "_darcs", "defaults", "darcs", VCS },
    { ".jj", "config.toml", "Jujutsu", VCS }, { ".jj", "workspace-config.toml", "Jujutsu", VCS },
    { ".svn", "config", "Subversion", VCS },
    { ".hg", "sharedpath", "Mercurial", VCS }, { NULL, ".hgsubstate", "Mercurial", VCS },
    { NULL, ".hgsub", "Mercurial", VCS },
    { NULL, ".fslckout", "Fossil", VCS }, { NULL, "_FOSSIL_", "Fossil", VCS },
    { ".bzr", "branch.conf", "Breezy", VCS }, { "CVS", "Root", "CVS", VCS }, { ".repo", "main.py", "repo", VCS },
    { NULL, ".gclient", "gclient", VCS }, { NULL, ".mrconfig", "myrepos", VCS },
    { NULL, ".reviewboardrc", "RBTools", VCS }, { NULL, "Vagrantfile", "Vagrant", VCS },
    { NULL, ".p4config", "Perforce", VCS }, { NULL, ".lfsconfig", "Git LFS", VCS },
    { NULL, ".pre-commit-config.yaml", "pre-commit", COMMIT }, { NULL, "lefthook.yml", "lefthook", COMMIT },
    { NULL, ".lefthook.yml", "lefthook", COMMIT }, { ".husky", "*", "husky", COMMIT },
    { NULL, "lefthook.yaml", "lefthook", COMMIT }, { NULL, ".lefthook.yaml", "lefthook", COMMIT },
    { NULL, "lefthook-local.yml", "lefthook", COMMIT }, { NULL, ".lefthook-local.yml", "lefthook", COMMIT },
    { NULL, ".overcommit.yml", "Overcommit", COMMIT }, { NULL, ".lintstagedrc", "lint-staged", COMMIT },
    { NULL, ".lintstagedrc.json", "lint-staged", COMMIT }, { NULL, ".lintstagedrc.js", "lint-staged", COMMIT },
    { NULL, "lint-staged.config.js", "lint-staged", COMMIT }, { NULL, "commitlint.config.js", "commitlint", COMMIT },
    { NULL, "lint-staged.config.mjs", "lint-staged", COMMIT }, { NULL, ".lintstagedrc.yml", "lint-staged", COMMIT },
    { NULL, ".lintstagedrc.mjs", "lint-staged", COMMIT }, { NULL, ".commitlintrc.js", "commitlint", COMMIT },
    { NULL, "commitlint.config.mjs", "commitlint", COMMIT }, { NULL, "lefthook.toml", "lefthook", COMMIT },
    { NULL, "lefthook.json", "lefthook", COMMIT }, { NULL, ".simple-git-hooks.json", "simple-git-hooks", COMMIT },
    { NULL, "captainhook.json", "CaptainHook", COMMIT }, { NULL, "grumphp.yml", "GrumPHP", COMMIT },
};

#define N_ROWS ARRAY_LEN(rows)

/* Without case: on a file system that folds it another spelling is the same file. */
static bool
fits(const char *pattern, const char *name)
{
    size_t n = strlen(name), tail = strlen(pattern) - 1;

    if (pattern[0] != '*')
        return strcasecmp(pattern, name) == 0;
    return n >= tail && strcasecmp(name + n - tail, pattern + 1) == 0;
}

const struct planted_row *
planted_match(const char *dir, bool in, const char *name)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        const struct planted_row *r = &rows[i];
        /* of a hundred thousand names nearly all go by here */
        if ((r->name[0] != '*' && (r->name[0] | 0x20) != (name[0] | 0x20)) ||
            (r->dir != NULL && (dir == NULL || (r->directly && !in))))
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
        if (rows[i].dir != NULL && (rows[i].dir[0] | 0x20) == (name[0] | 0x20) && strcasecmp(rows[i].dir, name) == 0)
            return rows[i].dir;
    return NULL;
}

const struct planted_row *
planted_below(const char *name)
{
    const char *dir = planted_dir(name);

    for (size_t i = 0; dir != NULL && i < N_ROWS; i++)
        if (rows[i].dir == dir)
            return &rows[i];
    return NULL;
}

/* The row for @name, a file in @dir or a directory. */
static const struct planted_row *
row_of(const char *dir, const char *name)
{
    const struct planted_row *r = planted_match(dir != NULL ? planted_dir(dir) : NULL, true, name);

    return r != NULL ? r : planted_below(name);
}

bool
planted_of_home(struct str names)
{
    char text[256];
    char *name;
    const struct planted_row *r;

    if (names.n >= sizeof(text))
        return false;
    memcpy(text, names.p, names.n);
    text[names.n] = '\0';
    name = strchr(text, '/');
    if (name != NULL)
        *name++ = '\0';
    r = row_of(name != NULL ? text : NULL, name != NULL ? name : text);
    /* the configuration of each program is there in a home; a project has it for those that the table knows */
    return r != NULL ? strcmp(r->runs, SHELL) == 0 : name != NULL && strcasecmp(text, ".config") == 0;
}
