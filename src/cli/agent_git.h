/* cli/agent_git.h: where an agent's git would find no repository, though the owner's does */
#ifndef CLOCHE_CLI_AGENT_GIT_H
#define CLOCHE_CLI_AGENT_GIT_H

/* Say on stderr by which flag the agent @name has the repository of the folder @cwd, which lies elsewhere: above it, or
 * where a linked worktree leads. Nothing where it is there, or there is none. Never by itself: that would give it more
 * than the folder. */
void agent_git_hint(const char *cwd, const char *home, const char *name);

#endif
