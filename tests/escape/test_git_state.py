"""State that git executes: no sandbox leaves any in a folder of the host, whatever its name; and git goes on working.

Each attack works inside; then the real git runs on the host's side, as its owner would run it next. What the attack
planted writes a marker file when it runs. docs/name-guard.md says how such state is kept from coming into being.
"""
import os
import re

import pytest

from helpers import requirement
from helpers.git_bench import HEAD, INDEX_PYTHON, REPO, STATUS, config

pytestmark = [requirement("R91", "R11"), pytest.mark.usefixtures("needs_git")]

WAYS = ("standard", "light")            # each attack
OTHER_WAYS = ("host view", "code", "shell", "ordinary")     # these
TYPICAL = ("a bare repository at the top", "its configuration through a descriptor from before", "a nested repository as a gitlink",
           "core.hooksPath leads into the project", "a rebase's todo", "a hook in a nested repository", "a link in place of a message")


@pytest.fixture
def needs_git(has):
    has("git")


def bare_config():
    """The same for a bare repository, which gets a work tree."""
    return config() + " | sed 's/bare = false/bare = false\\n\\tworktree = ./'"


OUT = "OUT=${EVIL%evil}ran; "
EXCHANGE = "python3 -IS -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b\"{}\", -100, b\"{}\", 2)'"

# A submodule's repository far below in $top/n, with a work tree as far up as $top/rel says.
MODULE = (
    "top=$PWD; git init -q -b main n; cd n; echo x > ran; git add ran; git commit -qm x; mkdir -p .git/modules/1/2/3/4/m; "
    "cd .git/modules/1/2/3/4/m; cp -r $top/n/.git/objects $top/n/.git/refs $top/n/.git/index .; cp $top/n/.git/HEAD HEAD; "
    "printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = %s\n' \"$(cat $top/rel)\" > c; mv c config; ")

# What git checks out may have the shape of a repository, with any configuration: `bare` of the branch other, and x, which git takes for a submodule.
BRANCH = (
    REPO + "EVIL=$HOME/evil; git checkout -q -b other; mkdir -p bare/objects bare/refs; touch bare/objects/k bare/refs/k; (cd bare; " + HEAD + ") ; " +
    config() + " > bare/config; git add bare; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),x; git commit -qm other; ")
AWAY = "git checkout -q main; rm -rf bare x; "
CHECKOUT = "git checkout -q other; git status; git status"
# Git's own prompt (PROMPT_COMMAND='__git_ps1 "\\w" "\\$ "') has bash expand what the files hold that say how far a rebase is.
PROMPT = "bash -c '. $(git --exec-path)/git-sh-prompt; __git_ps1 before after; echo \"${PS1@P}\"'"
# What git before 2.34 does with the paths of a bisection.
OLD_BISECT = "set git log; eval '\"$@\"' --bisect -- $(cat .git/BISECT_NAMES)"
# Ways to write such a file.
NUMBERS = r"""number() { mkdir -p ${1%/*}; echo refs/heads/main > ${1%/*}/head-name; text="\$($EVIL); $EVIL"; echo 1 > v; mv v $1; echo "$text" >> $1
echo "$text" > t; mv t $1; exec 7>$1; echo "$text" >&7; exec 7>&-; rm -f $1; ln -s $PWD/u $1; rm -f $1; echo "$text" > u; ln -f u $1; echo "$text" > $1; }
"""
# An index is a list of paths, which `git checkout .` and `git restore .` make on the host without a second look.
INDEX = f"""cat > i.py <<'END'
import os
{INDEX_PYTHON}
HOOK, RAN, WHAT = '.git/hooks/post-index-change', os.environ['EVIL'][:-4] + 'ran', open(os.environ['P'], 'rb').read()
END
make() {{ (cat i.py; echo "open('i', 'wb').write(index($1))") | python3 -IS -; }}
"""
RESTORE = "git checkout .; git status"
# In rr-cache git notes how a conflict was resolved: all of the file that MERGE_RR names.
RERERE = ("H=$(printf %040d 1); mkdir -p .git/rr-cache/$H; echo x > .git/rr-cache/$H/preimage; printf '%s\\t%s\\0' $H ")
RECORDED = "git commit -q --allow-empty -m x; grep -rq evil-to-touch .git/rr-cache && touch $HOME/ran"
SECRET = "echo evil-to-touch > ../secret; "

SHARES = "mkdir -p {0} x; cp .git/HEAD {0}; echo {1} > {0}/commondir; echo {1} > c; mv c {0}/commondir; echo gitdir: ../{0} > x/.git; "

# name: (made on the host before, done inside, what the owner runs next, where, the workspace)
ATTACKS = {
    "a bare repository at the top": (
        REPO, "rm -rf .git/HEAD .git/refs .git/objects; mkdir objects refs; " + HEAD +
        bare_config() + " > config", STATUS, "", ""),
    "HEAD removed, the configuration first": (
        REPO, "rm -f .git/HEAD || mv .git/HEAD h; " + bare_config() + " > config; mkdir objects; " + HEAD +
        "mkdir refs", STATUS, "", ""),
    "a bare repository where the workspace is a subfolder": (
        REPO + "mkdir sub; ", "mkdir objects refs; " + HEAD + bare_config() + " > config", STATUS, "sub", "sub"),
    "its configuration through a descriptor from before": (
        REPO + "mkdir sub; ", "exec 7>config; mkdir objects refs; " + HEAD + bare_config() + " >&7", STATUS, "sub", "sub"),
    "its configuration renamed while open": (
        REPO + "mkdir sub; ", "mkdir objects refs; " + HEAD + "printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n' > x; exec 7>>x; "
        "mv x config; printf '\\tworktree = .\\n\\tfsmonitor = %s\\n' \"$EVIL\" >&7", STATUS, "sub", "sub"),
    "its configuration under another name": (
        REPO + "mkdir sub; ", "mkdir objects refs; " + HEAD + "printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n' > x; mv x config; "
        "ln config y || ln -L config y; printf '\\tworktree = .\\n\\tfsmonitor = %s\\n' \"$EVIL\" >> y; "
        "printf '\\tworktree = .\\n\\tfsmonitor = %s\\n' \"$EVIL\" >> x", STATUS, "sub", "sub"),
    "a hard link as its configuration": (
        REPO + "mkdir sub; ", "printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n' > y; ln y config; mkdir objects refs; " + HEAD +
        "ln y config; printf '\\tworktree = .\\n\\tfsmonitor = %s\\n' \"$EVIL\" >> y", STATUS, "sub", "sub"),
    "a link as its configuration": (
        REPO + "mkdir sub; ", bare_config() + " > y; ln -s y config; mkdir objects refs; " + HEAD + "ln -s y config", STATUS,
        "sub", "sub"),
    "its configuration written in place": (
        REPO + "mkdir sub; ", "mkdir objects refs; " + HEAD + "printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n' > x; mv x config; "
        "printf '\\tworktree = .\\n\\tfsmonitor = %s\\n' \"$EVIL\" >> config; (exec 7<config; "
        "printf '\\tworktree = .\\n\\tfsmonitor = %s\\n' \"$EVIL\" >> /proc/self/fd/7)", STATUS, "sub", "sub"),
    "links as its parts": (
        REPO + "mkdir sub; ", "mkdir x; " + bare_config() + " > config; ln -s x objects; ln -s x refs; " + HEAD, STATUS, "sub",
        "sub"),
    "its parts by rename": (
        REPO + "mkdir sub; ", "mkdir x y; " + bare_config() + " > config; " + HEAD + "mv x objects; mv y refs", STATUS, "sub",
        "sub"),
    "its parts by exchange": (
        REPO + "mkdir sub; ", "mkdir x y refs; " + bare_config() + " > config; " + HEAD + "touch objects; python3 -IS -c 'import "
        "ctypes; ctypes.CDLL(None).renameat2(-100, b\"x\", -100, b\"objects\", 2)'", STATUS, "sub", "sub"),
    "the whole of it moved into place": (
        REPO + "mkdir -p sub/deep; ", "mkdir t t/objects; " + bare_config() + " > t/config; cp .git/HEAD t/HEAD || printf "
        "'ref: refs/heads/main\\n' > t/HEAD; mkdir r; mv r t/refs; mv t deep/t; rmdir deep/t/refs; mkdir deep/t/refs",
        STATUS, "sub/deep/t", "sub"),
    "a nested repository as a gitlink": (
        REPO, "git init -q -b main n; cd n; echo b > b; git add b; git commit -qm n; git config core.fsmonitor \"$EVIL\"; " +
        config() + " > .git/config; " + config() + " > x; mv x .git/config; cd ..; "
        "git update-index --add --cacheinfo 160000,$(git -C n rev-parse HEAD),n", STATUS, "", ""),
    "an attribute's program in a nested repository": (
        REPO, "git init -q -b main n; cd n; echo b > b; git add b; git commit -qm n; echo '* filter=x' > .gitattributes; "
        "git config filter.x.clean \"$EVIL\"; printf '[filter \"x\"]\\n clean = %s\\n' \"$EVIL\" >> .git/config; "
        "echo c > b", STATUS, "n", ""),
    "an include in a nested repository": (
        REPO, "git init -q -b main n; cd n; " + config() + " > more; git config include.path ../more; "
        "printf '[include]\\n path = ../more\\n' >> .git/config", STATUS, "n", ""),
    "the configuration of an existing submodule": (
        "git init -q -b main ../lib; (cd ../lib; echo l > l; git add l; git commit -qm l); " + REPO +
        "git -c protocol.file.allow=always submodule --quiet add ../lib lib; git commit -qm sub; ",
        "printf '[core]\\n\\tfsmonitor = %s\\n' \"$EVIL\" >> .git/modules/lib/config; "
        "cp .git/modules/lib/config x; printf '[core]\\n\\tfsmonitor = %s\\n' \"$EVIL\" >> x; mv x .git/modules/lib/config",
        STATUS, "", ""),
    "a configuration of a worktree beside it": (
        "git init -q -b main ../lib; (cd ../lib; echo l > l; git add l; git commit -qm l); " + REPO +
        "git -c protocol.file.allow=always submodule --quiet add ../lib lib; git commit -qm sub; "
        "git -C lib config extensions.worktreeConfig true; ",
        config() + " > .git/modules/lib/config.worktree; " + config() + " > x; mv x .git/modules/lib/config.worktree",
        STATUS, "", ""),
    "an invented submodule": (
        REPO, "mkdir -p .git/modules; git init -q -b main --separate-git-dir .git/modules/n n; cd n; echo b > b; git add b; "
        "git commit -qm n; " + config() + " > ../.git/modules/n/config; git config core.fsmonitor \"$EVIL\"; cd ..; "
        "git update-index --add --cacheinfo 160000,$(git -C n rev-parse HEAD),n", STATUS, "", ""),
    "core.hooksPath leads into the project": (
        REPO + "git config core.hooksPath tools/hooks; ",
        "mkdir -p tools/hooks t/hooks; cp $P tools/hooks/pre-commit; cp $P t/hooks/pre-commit; chmod 755 "
        "tools/hooks/pre-commit t/hooks/pre-commit; mv tools old; mv t tools", "git commit --allow-empty -m x", "", ""),
    "core.hooksPath with hooks": (
        REPO + "git config core.hooksPath .husky; mkdir .husky; printf '#!/bin/sh\\n' > .husky/pre-commit; "
        "chmod 755 .husky/pre-commit; ", "cat $P > .husky/pre-commit; cp $P .husky/post-commit", "git commit "
        "--allow-empty -m x", "", ""),
    "core.hooksPath behind a link": (
        REPO + "git config core.hooksPath tools/hooks; mkdir -p real/hooks; ln -s real tools; ", "rm tools; mkdir -p tools/hooks "
        "t/hooks; cp $P tools/hooks/pre-commit; cp $P real/hooks/pre-commit; cp $P t/hooks/pre-commit; rmdir tools; mv t tools; "
        "ln -s t tools", "git commit --allow-empty -m x", "", ""),
    "core.hooksPath of the owner": (
        REPO + "git config --global core.hooksPath .hooks; ", "mkdir .hooks; cp $P .hooks/pre-commit; chmod 755 "
        ".hooks/pre-commit", "git commit --allow-empty -m x", "", ""),
    "include.path leads into the project": (
        REPO + "git config include.path ../local.inc; ", config() + " > local.inc", STATUS, "", ""),
    "includeIf leads into the project": (
        REPO + "git config includeIf.onbranch:main.path ../local.inc; ", config() + " > x; mv x local.inc", STATUS, "", ""),
    "include.path of the owner": (
        REPO + "git config --global include.path \"$PWD/dot/gitconfig\"; mkdir dot; touch dot/gitconfig; ",
        config() + " > dot/gitconfig", STATUS, "", ""),
    "a program that the configuration names": (
        REPO + "mkdir tools; printf '#!/bin/sh\\n' > tools/watch; chmod 755 tools/watch; "
        "git config core.fsmonitor tools/watch; ", "cat $P > tools/watch; chmod 755 tools/watch", STATUS, "", ""),
    "its git directory elsewhere in the project": (
        "git init -q -b main --separate-git-dir store .; echo a > a; git add a; git commit -qm one; ",
        "printf '[core]\\n\\tfsmonitor = %s\\n' \"$EVIL\" >> store/config; " + config() + " > x; mv x store/config",
        STATUS, "", ""),
    "its git directory elsewhere, replaced": (
        "git init -q -b main --separate-git-dir store .; echo a > a; git add a; git commit -qm one; ",
        "cp -r store s2; " + config() + " > s2/config; rm s2/config; " + config() + " > s2/config; mv store s1; mv s2 store",
        STATUS, "", ""),
    "a nested worktree's .git": (
        REPO + "git worktree add -q wt; ", "mkdir -p e/objects; " + config() + " > e/config; cp .git/HEAD e/HEAD; "
        "mkdir e/refs; echo \"gitdir: $PWD/../e\" > wt/.git; echo 'gitdir: ../e' > wt/.git", STATUS, "wt", ""),
    "a worktree's commondir": (
        REPO + "git worktree add -q wt; ", "mkdir -p e; " + config() + " > e/config; mkdir e/objects e/refs; "
        "echo ../../../e > .git/worktrees/wt/commondir", STATUS, "wt", ""),
    "a .git that leads to what is checked out": (
        BRANCH + AWAY, "mkdir x; echo 'gitdir: ../bare' > x/.git; echo 'gitdir: ../bare' > f; mv f x/.git; ln f x/.git", CHECKOUT, "", ""),
    "a .git that leads there through another name": (
        BRANCH + AWAY, "mkdir x y; ln -s ../bare .git/y; echo 'gitdir: ../.git/y' > y/.git; mv y/.git x/.git; mv y x; mkdir x; "
        "echo 'gitdir: ../.git/y' > x/.git", CHECKOUT, "", ""),
    "a worktree's commondir that leads there": (
        BRANCH + AWAY, SHARES.format(".git/worktrees/w", "../../../bare"), CHECKOUT, "", ""),
    "a commondir that leads above .git": (
        BRANCH.replace("bare/", "").replace("mkdir -p bare/objects", "mkdir -p objects").replace("cd bare", "cd .").replace(
            "git add bare", "git add HEAD config objects refs") + AWAY, SHARES.format(".git/w", "../.."), CHECKOUT, "", ""),
    "a worktree that is moved to where its commondir leads above .git": (
        BRANCH.replace("bare/", "").replace("mkdir -p bare/objects", "mkdir -p objects").replace("cd bare", "cd .").replace(
            "git add bare", "git add HEAD config objects refs") + AWAY, SHARES.format(".git/worktrees/w", "../..") +
        "mv .git/worktrees/w .git/w; echo gitdir: ../.git/w > x/.git", CHECKOUT, "", ""),
    "what was checked out becomes a submodule's repository": (
        BRANCH, "mkdir -p .git/modules x; mv bare .git/modules/m; echo 'gitdir: ../.git/modules/m' > x/.git", STATUS, "", ""),
    "what was checked out comes with a .git": (
        BRANCH, "mkdir -p g/modules n x; cp -r .git/objects .git/refs .git/HEAD g; mv bare g/modules/m; mv g n/.git; "
        "echo 'gitdir: ../n/.git/modules/m' > x/.git", STATUS, "", ""),
    "what was checked out comes with a folder": (
        BRANCH, "mkdir -p .git/modules x y; mv bare y/m; mv y .git/modules/y; echo 'gitdir: ../.git/modules/y/m' > x/.git", STATUS, "", ""),
    "a worktree's own configuration": (
        REPO + "git worktree add -q wt; git config extensions.worktreeConfig true; ",
        config() + " > .git/worktrees/wt/config.worktree; " + config() + " > x; mv x .git/worktrees/wt/config.worktree",
        STATUS, "wt", ""),
    "a rebase's todo": (
        REPO + "echo b > b; git add b; git commit -qm two; ",
        "GIT_SEQUENCE_EDITOR='sed -i s/pick/edit/' git rebase -q -i HEAD~1; echo \"exec $EVIL\" >> "
        ".git/rebase-merge/git-rebase-todo; echo \"x $EVIL\" > t; mv t .git/rebase-merge/git-rebase-todo",
        "git rebase --continue", "", ""),
    "how far a rebase is, in the prompt": (
        REPO, NUMBERS + "number .git/rebase-merge/msgnum; echo 3 > .git/rebase-merge/end", PROMPT, "", ""),
    "of how many, in the prompt": (
        REPO, NUMBERS + "number .git/rebase-merge/end; echo 3 > .git/rebase-merge/msgnum", PROMPT, "", ""),
    "how far an am is, in the prompt": (
        REPO, NUMBERS + "number .git/rebase-apply/next; number .git/rebase-apply/last", PROMPT, "", ""),
    "how far a nested rebase is, in the prompt": (
        REPO, NUMBERS + "git init -q n; number n/.git/r/msgnum; echo 3 > n/.git/r/end; mv n/.git/r n/.git/rebase-merge; "
        "number n/.git/rebase-merge/msgnum", PROMPT, "n", ""),
    "a bisection's paths": (
        REPO, NUMBERS + "number .git/BISECT_NAMES", OLD_BISECT, "", ""),
    "a server's program": (
        REPO, "mkdir .git/gitweb; cp $P .git/gitweb/x-lighttpd; cp $P s; mv s .git/gitweb/x-lighttpd; mkdir g; cp $P g/x-lighttpd; "
        "chmod 755 .git/gitweb/* g/*; rmdir .git/gitweb; mv g .git/gitweb", "timeout 2 git instaweb --httpd=x-lighttpd --local", "", ""),
    "a server's settings": (
        REPO, "mkdir -p .git/gitweb; echo \"system('$EVIL');\" > t; cp t .git/gitweb/gitweb_config.perl; mv t .git/gitweb/gitweb_config.perl",
        "perl -e 'do \"./.git/gitweb/gitweb_config.perl\"'", "", ""),
    "links where programs beside git write": (
        REPO, OUT + "ln -s $OUT .git/gitk.cache; ln -s ${OUT%/ran} .git/filter-repo; ln -s ${OUT%/ran} .git/gitweb; mkdir .git/annex; ln -s ${OUT%/ran} "
        ".git/annex/x; echo 1 > .git/pid && ln -s $OUT .git/fsmonitor--daemon",
        "for f in gitk.cache filter-repo/ran gitweb/ran annex/x/ran; do echo > .git/$f; done; test -e .git/pid && touch $HOME/ran", "", ""),
    "a rebase that the host began": (
        REPO + "echo b > b; git add b; git commit -qm two; GIT_SEQUENCE_EDITOR='sed -i s/pick/edit/' git rebase -q -i HEAD~1; ",
        "echo \"exec $EVIL\" >> .git/rebase-merge/git-rebase-todo; echo \"exec $EVIL\" > t; "
        "mv t .git/rebase-merge/git-rebase-todo; cp -r .git/rebase-merge r; echo \"exec $EVIL\" >> r/git-rebase-todo; "
        "mv .git/rebase-merge q; mv r .git/rebase-merge", "git rebase --continue", "", ""),
    "a rebase's todo with a line ahead": (
        REPO + "echo b > b; git add b; git commit -qm two; ",
        "GIT_SEQUENCE_EDITOR=\"sed -i '1i exec $EVIL'\" git rebase -i HEAD~1", "git rebase --continue", "", ""),
    "a rebase's strategy": (
        REPO + "echo b > b; git add b; git commit -qm two; echo c > c; git add c; git commit -qm three; "
        "git branch side HEAD~1; git checkout -q side; echo d > d; git add d; git commit -qm d; "
        "GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -q -i HEAD~1; ",
        "mkdir git-merge-x; cp $P evil; chmod 755 evil; echo x/../evil > .git/rebase-merge/strategy; "
        "echo x/../evil > t; mv t .git/rebase-merge/strategy; git rev-parse main | sed 's/^/pick /' > t; "
        "mv t .git/rebase-merge/git-rebase-todo", "git rebase --continue", "", ""),
    "a hook in a nested repository": (
        REPO, "git init -q n; cd n; cp $P .git/hooks/post-index-change; chmod 755 .git/hooks/post-index-change; "
        "cp $P .git/hooks/x.sample; chmod 755 .git/hooks/x.sample; mv .git/hooks/x.sample "
        ".git/hooks/post-index-change; ln .git/hooks/x.sample .git/hooks/post-index-change; cp -r .git/hooks h; "
        "cp $P h/post-index-change; mv .git/hooks g; mv h .git/hooks; cd .git; mv g hooks; ln -s ../../h hooks; echo b > "
        "../b", "git add b; git status", "n", ""),
    "a hook from before the repository": (
        REPO + "mkdir sub; ", "mkdir hooks; cp $P hooks/post-index-change; mkdir objects refs; " + HEAD +
        "printf '[core]\\n repositoryformatversion = 0\\n bare = false\\n worktree = .\\n' > t; mv t config; echo b > b", "git add b; git status", "sub", "sub"),
    "a hook while nobody may look": (
        REPO + "mkdir sub; ", "git init -q --bare b; cd b/hooks; chmod 600 ..; cp $P post-index-change; chmod 755 "
        "post-index-change; chmod 700 ..; cd ..; echo b > b", "git --work-tree=. add b; git --work-tree=. status", "sub/b", "sub"),
    "a configuration while nobody may look": (
        REPO + "mkdir sub; ", "git init -q n; cd n; exec 8<.git/config; chmod 0 .git; printf '\\tfsmonitor = %s\\n' "
        "\"$EVIL\" >> /proc/self/fd/8; chmod 700 .git", STATUS, "sub/n", "sub"),
    "a configuration too far down": (
        REPO + "mkdir sub; ", """python3 -IS -c "
import os
os.mkdir('deep')
os.chdir('deep')
os.system('git init -q n')
for i in range(25):
    os.mkdir('d' * 200)
    os.rename('n', 'd' * 200 + '/n')
    os.chdir('d' * 200)
fd = os.open('n/.git/config', os.O_RDONLY)
for attempt in (lambda: os.open(f'/proc/self/fd/{fd}', os.O_WRONLY | os.O_APPEND),
                lambda: os.open('n/.git/config', os.O_WRONLY | os.O_APPEND)):
    try:
        os.write(attempt(), b'\\tfsmonitor = ' + os.environ['EVIL'].encode() + b'\\n')
    except OSError as e:
        print(e)
for i in range(25):
    os.rename('n', '../n')
    os.chdir('..')
" """, STATUS, "sub/deep/n", "sub"),
    "a work tree that leads out when its repository is moved": (
        REPO + "realpath -m --relative-to=$PWD/demo/.git $HOME > rel; ", "top=$PWD; mkdir -p q/b/c/d/e/f; cd q/b/c/d/e/f; "
        "git init -q -b main demo; cd demo; echo x > ran; git add ran; git commit -qm x; rm ran; "
        "printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = %s\n' \"$(cat $top/rel)\" > c; "
        "mv c .git/config; cd ..; mv demo $top/demo", "git checkout -f", "demo", ""),
    "a submodule's repository that is moved out": (
        REPO + "realpath -m --relative-to=$PWD/m $HOME > rel; ", MODULE + "cd $top; mv n/.git/modules n/mods; mv n/.git g; mv g/modules mods; mv n/.git/modules/1/2/3/4 4; "
        "for m in n/.git/modules/1/2/3/4/m n/mods/1/2/3/4/m mods/1/2/3/4/m g/modules/1/2/3/4/m 4/m; do mv $m m; done; rm -f m/index", "git checkout -f", "m", ""),
    "a submodule's repository that is renamed where no path can be told": (
        REPO + "realpath -m --relative-to=$PWD/m $HOME > rel; ", MODULE + """
cd $top; mkdir -p $(printf w/%.0s $(seq 25)); mv n $(printf w/%.0s $(seq 25)); python3 -IS -c "
import os
def every(step):
    for i in range(25):
        step()
every(lambda: os.chdir('w'))
every(lambda: (os.chdir('..'), os.rename('w', 'd' * 200)))
every(lambda: os.chdir('d' * 200))
for name in ('.git', '.git/modules'):
    try: os.rename('n/' + name, 'n/g')
    except OSError as e: print(e)
every(lambda: (os.chdir('..'), os.rename('d' * 200, 'w')))
os.renames('w/' * 25 + 'n', 'n')
"; mv n/g/modules modules; mv n/g modules; mv modules/1/2/3/4/m m; rm -f m/index""", "git checkout -f", "m", ""),
    "a hard link of a link as .git": (
        "true; ", "mkdir d x; " + config() + " > x/config; ln -s ../x l; ln -P l d/.git", "git init -q; git status", "d", ""),
    "a repository with hard links to another": (
        "mkdir -p a/b/c/d; git init -q -b main a/b/c/d/r1; cp -al a/b/c/d/r1 a/b/c/d/r2; ",
        "cd a/b/c/d/r2; mv .git/config y; printf '\tfsmonitor = %s\n' \"$EVIL\" >> y", STATUS, "a/b/c/d/r1", ""),
    "hooks for a repository that the owner will make": (
        "true; ", "mkdir -p .git/hooks; cp $P .git/hooks/post-index-change; chmod 755 .git/hooks/post-index-change; "
        "mkdir -p s/hooks; cp $P s/hooks/post-index-change; mv s .git", "git init -q; echo a > a; git add a; git status",
        "", ""),
    "a configuration for a repository that the owner will make": (
        "true; ", "mkdir .git; " + config() + " > .git/config; mkdir s; " + config() + " > s/config; mv s .git; rmdir .git; "
        "mv s .git", "git init -q; git status", "", ""),
    # git follows a link where it writes by itself: $OUT is what it would write to on the host
    "a link in place of the index": (
        REPO, OUT + "rm -f .git/index; ln -s $OUT .git/index; ln -s $OUT l; mv l .git/index; ln -s $OUT l; ln -P l .git/index; "
        "touch .git/index; ln -s $OUT l; " + EXCHANGE.format("l", ".git/index"), "git add a", "", ""),
    "a link in place of a message": (
        REPO, OUT + "ln -sf $OUT .git/COMMIT_EDITMSG; echo 'touch ran' > .git/MERGE_MSG", "git commit --allow-empty", "", ""),
    "a link in place of what was fetched": (
        REPO, OUT + "ln -sf $OUT .git/FETCH_HEAD", "git fetch . main", "", ""),
    "a link in place of a log": (
        REPO, OUT + "rm -f .git/logs/HEAD; ln -s $OUT .git/logs/HEAD", "git commit --allow-empty -m x", "", ""),
    "a link in place of a branch's log": (
        REPO, OUT + "rm -f .git/logs/refs/heads/main; cd .git/logs/refs; ln -s $OUT heads/main", "git commit --allow-empty -m x",
        "", ""),
    "logs moved into place": (
        REPO, OUT + "mkdir l; ln -s $OUT l/HEAD; mv .git/logs k; rm -rf .git/logs; mv l .git/logs", "git commit --allow-empty -m x", "", ""),
    "a log from before the repository": (
        REPO, OUT + "git init -q -b main n; cd n; git commit -q --allow-empty -m n; mv .git g; mv g/refs r; rm -f g/logs/HEAD; "
        "ln -s $OUT g/logs/HEAD; mv r g/refs; mv g .git; mv g/refs r; mv g .git; mv r .git/refs", "git commit --allow-empty -m x", "n", ""),
    "a log in a repository of another name": (
        REPO, OUT + "git clone -q --bare . b; mkdir b/logs; ln -s $OUT b/logs/HEAD; git -C b config core.logAllRefUpdates always",
        "git -C b branch x; git -C b symbolic-ref -m x HEAD refs/heads/x", "", ""),
    "a link in place of worktrees": (
        REPO + "mkdir -p ../kept/dir; touch ../kept/dir/file; ",
        "mkdir .git/worktrees; ln -s ../../../kept/dir .git/worktrees/x; rmdir .git/worktrees; ln -s ../../kept .git/worktrees; "
        "mkdir w; ln -s ../../../kept/dir w/x; mv w .git/worktrees",
        "git worktree prune; test -e ../kept/dir/file || touch $HOME/ran", "", ""),
    "a link in place of a submodule's index": (
        "git init -q -b main ../lib; (cd ../lib; echo l > l; git add l; git commit -qm l); " + REPO +
        "git -c protocol.file.allow=always submodule --quiet add ../lib lib; git commit -qm sub; ",
        OUT + "rm .git/modules/lib/index; ln -s $OUT .git/modules/lib/index", "git add l", "lib", ""),
    # what git makes of an index on the host
    "an index with a hook": (
        REPO, INDEX + "make \"'a', HOOK\"; mv i .git/index", RESTORE, "", ""),
    "an index with a hook, written in place": (
        REPO, INDEX + "make \"'a', HOOK\"; cat i > .git/index; rm -f .git/index; cat i > .git/index; ln i .git/index; mkdir z", RESTORE, "", ""),
    "an index with a hook, opened before": (
        REPO, INDEX + "make \"'a', HOOK\"; cp .git/index j; exec 7<>j; mv j .git/index; cat i >&7; exec 8<>.git/index; cat i >&8", RESTORE, "", ""),
    "an index with a hook in other case": (
        REPO, INDEX + "make \"'a', '.git/HOOKS/../hooks/post-index-change'\"; mv i .git/index", RESTORE, "", ""),
    "an index that leads out": (
        REPO, INDEX + "make \"'a', RAN\"; mv i .git/index", RESTORE, "", ""),
    "an index that leads up": (
        REPO, INDEX + "make \"'a', os.path.relpath(RAN)\"; mv i .git/index", "git restore .", "", ""),
    "an index that leads up, in between": (
        REPO, INDEX + "make \"'a', 'd/../' + os.path.relpath(RAN)\"; mkdir d; mv i .git/index", "git restore .", "", ""),
    "an index with a hook, in version 4": (
        REPO, INDEX + "echo VERSION = 4 >> i.py; make \"'a', HOOK\"; mv i .git/index", RESTORE, "", ""),
    "a split index with a hook": (
        REPO, INDEX + "make HOOK; H=$(tail -c 20 i | od -An -v -tx1 | tr -d ' \\n'); cp i .git/sharedindex.$H; mv i .git/sharedindex.$H; "
        "make \"more=b'link' + struct.pack('>I', 60) + bytes.fromhex('$H') + (struct.pack('>II', 0, 1) + bytes(12)) * 2\"; mv i .git/index", RESTORE, "", ""),
    "an index with a hook in a nested repository": (
        REPO, INDEX + "git init -q -b main n; cp i.py n; cd n; make HOOK; mv i .git/index", RESTORE, "n", ""),
    "an index with a hook, from before the repository": (
        REPO, INDEX + "git init -q -b main n; cp i.py n; cd n; make HOOK; mv .git g; mv g/refs r; cp i g/index; mv r g/refs; mv g .git; mv g/refs r; mv g .git; "
        "mv r .git/refs", RESTORE, "n", ""),
    "the index of a worktree with a hook": (
        REPO + "git worktree add -q w; ", INDEX + "make \"'a', '../' + HOOK\"; mv i .git/worktrees/w/index", "git checkout .; git -C .. status", "w", ""),
    "the index of a submodule with a hook": (
        "git init -q -b main ../lib; (cd ../lib; echo l > l; git add l; git commit -qm l); " + REPO +
        "git -c protocol.file.allow=always submodule --quiet add ../lib lib; git commit -qm sub; ",
        INDEX + "cp i.py lib; cd lib; make \"'l', '../' + HOOK\"; mv i ../.git/modules/lib/index", "git checkout .; touch ../a; git -C .. status", "lib", ""),
    # what it reads on the host, and leaves in the project
    "a conflict's path that leads out": (
        SECRET + REPO, RERERE + "../secret > r; mv r .git/MERGE_RR", RECORDED, "", ""),
    "a conflict's path that leads out, written in place": (
        SECRET + REPO, RERERE + "../secret > .git/MERGE_RR; mkdir z", RECORDED, "", ""),
    "a conflict's path that is a link": (
        SECRET + REPO, "ln -s ../secret l; " + RERERE + "l > r; mv r .git/MERGE_RR", RECORDED, "", ""),
    "a conflict's path that leads out, from before the repository": (
        SECRET + REPO, "git init -q -b main n; cd n; mv .git g; " + RERERE.replace(".git/", "g/") + "../../secret > r; mv g/refs s; mv r g/MERGE_RR; mv s g/refs; "
        "mv g .git; mv g/refs s; mv g .git; mv s .git/refs", RECORDED, "n", ""),
}


def attack(bench, name):
    before, inside, after, where, sub = ATTACKS[name]
    bench.host(before)
    done = bench.inside(inside, sub)
    if bench.project.joinpath(where).is_dir():
        bench.host(after, cwd=bench.project / where, check=False)
    return done


@pytest.mark.parametrize("name", ATTACKS)
def test_the_attacks_are_real(bench, name):
    this = bench("bare")
    done = attack(this, name)
    assert this.ran(), f"no attack at all: {done!r}"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_runs_on_the_host(bench, name, way):
    this = bench(way)
    done = attack(this, name)
    assert not this.ran(), done
    assert not re.search("^cloche: (?!warning)", done.err, re.M), done


@pytest.mark.parametrize("way", OTHER_WAYS)
@pytest.mark.parametrize("name", TYPICAL)
def test_nothing_runs_in_other_ways(bench, name, way):
    this = bench("standard", "ordinary") if way == "ordinary" else bench(way)
    done = attack(this, name)
    assert not this.ran(), done


# --- ordinary work goes on

LOCAL = """
echo 1 > f; git add f; git commit -qm one; echo 2 >> f; git commit -qam two; echo 3 >> f; git commit -qam three
git checkout -q -b side HEAD~1; mkdir d; echo s > d/s; git add d; git commit -qm side; git rebase -q main
echo t > d/t; git add d; git commit -qm more
GIT_SEQUENCE_EDITOR="sed -i 2s/pick/fixup/" git rebase -q -i HEAD~2
GIT_SEQUENCE_EDITOR="sed -i 1s/pick/edit/" git rebase -q -i HEAD~1; git commit -q --amend -m again; git rebase --continue
git checkout -q main; git merge -q --no-edit side; git revert --no-edit HEAD; git cherry-pick HEAD~1
git checkout -q --detach HEAD~1; git checkout -q main
git stash -q; git tag t; git gc -q; git fsck; git clone -q --bare . b.git
git worktree add -q wt; (cd wt; echo w > w; git add w; git commit -qm w); git worktree remove --force wt
"""
SHARED = """
git remote add other "$PWD/b.git"; git push -q other main; git fetch -q other; git branch -m main trunk
git branch -m trunk main; git config branch.main.description text
"""
MODULES = """
git submodule --quiet add "$PWD/b.git" mod; git commit -qm submodule
(cd mod; git config user.name b; echo m > m; git add m; git commit -qm inside; git config core.fsmonitor false)
git clone -q . again; (cd again; git submodule --quiet update --init; git sparse-checkout set d; git status --short)
git reset -q --hard; rm -rf again
"""
IN_PLACE = """
git checkout -q -b x HEAD~1; echo x > f; git commit -qam x; git rebase -q -X theirs main; git checkout -q main
git format-patch -q -1 --stdout x~1 > ../p; git checkout -q -b y x~2; git am -q ../p; git checkout -q main
cp -r . ../copied; git -C ../copied status --short; test -s ../copied/.git/config
tar -cf ../t.tar .; mkdir ../tarred; tar -C ../tarred -xf ../t.tar; git -C ../tarred status --short
rm -rf ../copied ../tarred ../t.tar ../p
"""
# The index in each of git's forms: with blocks for threads, split, sparse, with longer names of objects, and what is noted of conflicts.
INDEXES = """
git init -q i; cd i; echo 1 > f; git add f; git commit -qm one; blob=$(git hash-object f)
seq -f "100644 $blob 0\tfar/below/%06.0f" 25000 | git -c index.threads=4 -c index.recordOffsetTable=true -c index.recordEndOfIndexEntries=true update-index --index-info
grep -qa IEOT .git/index; grep -qa EOIE .git/index; test $(git ls-files | wc -l) = 25001; git commit -qm many
for v in 4 3 2; do git -c index.threads=4 update-index --index-version $v; echo $v > g; git add -N g; git add g; test $(git ls-files | wc -l) = 25002; git rm -q --cached g; done
git update-index --split-index; echo x > h; git add h; test -n "$(ls .git/sharedindex.*)"; git commit -qm split; git update-index --no-split-index; git update-index --untracked-cache
cd ..; git init -q --object-format=sha256 s; cd s; mkdir d e; echo 1 > f; touch d/1 e/1; git add .; git commit -qm one; git config user.name b; git update-index --index-version 4; echo 2 > f; git add f
git commit -qm two; git sparse-checkout set --cone --sparse-index d; git status --short; git commit -q --allow-empty -m sparse; git sparse-checkout disable; test -e e/1
git worktree add -q ../w; (cd ../w; echo w > w; git add w; git commit -qm w; git status --short); git worktree remove --force ../w
git config rerere.enabled true; git checkout -q -b x HEAD~1; git checkout -q HEAD~1 f; echo 3 > f; git commit -qam three; git checkout -q -b y HEAD~1; echo 5 > f; git commit -qam five
git merge -q x || echo conflict; echo 4 > f; git add f; git commit -qm four; git status --short; cd ..; cp -r s t; git -C t status --short; rm -rf i s t
"""
WORK = {"empty top": "git init -q .\n" + LOCAL + SHARED, "repository": LOCAL, "indexes": "mkdir indexes; cd indexes\n" + INDEXES,
        "subfolder": "mkdir deep; cd deep; git init -q .\n" + LOCAL + SHARED + MODULES + IN_PLACE}


@pytest.mark.parametrize("where", WORK)
@pytest.mark.parametrize("way", ["standard", "light"])
def test_git_works(bench, way, where):
    """What is protected by name at the top (.gitmodules, the configuration that was there) stays so."""
    this = bench(way)
    if where == "repository":
        this.host("git init -q -b main .; git commit -q --allow-empty -m zero")
    done = this.inside("set -e; export HOME=$PWD/.home; mkdir .home; git config --global protocol.file.allow always; "
                       "git config --global init.defaultBranch main\n" + WORK[where] + "echo all of it")
    assert done.ok and done.out.endswith("all of it\n"), done
    if where == "indexes":
        return
    top = this.project / ("deep" if where == "subfolder" else "")
    assert "one" in this.host("git log --oneline; git fsck; git status --short", cwd=top).out


@pytest.mark.parametrize("way", ["standard", "light"])
def test_head_stays_where_it_is(bench, way):
    this = bench(way)
    this.host(REPO + "git branch other")
    done = this.inside("rm -f .git/HEAD; mv .git/HEAD h; echo junk > .git/HEAD; ln .git/HEAD h; echo junk > .git/HEAD.lock; mv .git/HEAD.lock .git/HEAD; rm -f "
                       ".git/HEAD.lock; git checkout -q other && git checkout -q --detach && git checkout -q -b a/b && "
                       "git symbolic-ref HEAD")
    assert done.out.split() == ["refs/heads/a/b"], done
    assert this.host("git symbolic-ref HEAD").out.split() == ["refs/heads/a/b"]


def test_what_is_written_in_place_is_judged(bench):
    """It takes its name when it is complete, if it is harmless then."""
    this = bench("standard")
    done = this.inside("""
git init -q n; cd n; rm .git/config; sync() { mkdir -p x; rmdir x; }
(printf '[core]\\n\\trepositoryformatversion = 0\\n'; sync; printf '\\tbare = false\\n') > .git/config; sync; cat .git/config
cp .git/config c; rm .git/config; sync; (cat c; echo ' fsmonitor = evil') > .git/config; sync; cat .git/config && echo BAD
exec 7>.git/config; cat c >&7; sync; test -e .git/config && echo BAD; echo ' fsmonitor = evil' >&7; exec 7>&-; sync
test -e .git/config && echo BAD; (cat c; exec 8<>.git/config; cat c >&8; exec 8>&-; sync; exec 8>>.git/config && echo BAD)
rm -f .git/config; exec 7>.git/config; ln .git/config y; ln -L /proc/self/fd/7 y; cat c >&7; exec 8</proc/self/fd/7; exec 7>&-
mv .git/config k; cp k .git/config; sleep 0.3; test -s .git/config || echo BAD; git add c; mv .git/index k; cp k .git/index; sleep 0.3; test -s .git/index || echo BAD
python3 -IS -c 'import os; os.open(".git/index", os.O_WRONLY)'; sleep 0.3; test $(stat -c %a .git/index) = $(stat -c %a k) || echo BAD
sync; exec 9>/proc/self/fd/8; echo ' fsmonitor = evil' >&9; grep evil .git/config && echo BAD; echo end""")
    assert "BAD" not in done.out and done.out.endswith("end\n") and "bare = false" in done.out, done


def test_denials_say_what_it_was(bench):
    this = bench("standard")
    done = this.inside("git init -q n; git -C n config core.fsmonitor evil; git -C n config user.name me; cat n/.git/config; "
                       "echo > n/.git/hooks/pre-commit", flags=["--json"])
    denied = {(d["op"], os.path.basename(d["target"])): d["rule"] for d in done.json["denied"]}
    assert denied[("rename", "config")] == "git state: git configuration: core.fsmonitor", done.json
    assert denied[("create", "pre-commit")] == "git state: git hook", done.json
    assert "name = me" in done.json["stdout"] and "fsmonitor" not in done.json["stdout"]


@pytest.mark.parametrize("way", ["standard", "light"])
def test_directories_move_outside_the_workspace(bench, way):
    """In mode light TMPDIR is on the host's file system, and in no tree of the rules."""
    done = bench(way).inside("set -e; cd $TMPDIR; mkdir -p a/x b r/.git/modules/m; mv a b/; mv b/a $OLDPWD/a; mv $OLDPWD/a b/; ls b; "
                             "mv r/.git r/g || echo kept")
    assert done.out == ("a\nkept\n" if way == "light" else "a\n"), done


def test_nothing_else_is_refused(bench):
    """Names of the same sound where no repository is."""
    this = bench("standard")
    done = this.inside("set -e; mkdir -p src/hooks src/objects src/x/refs remotes sequencer/todo; echo 1 > src/hooks/use.js; "
                       "echo 1 > config; echo 2 >> config; ln config c2; ln -s config c3; mv src/hooks src/h; echo > "
                       "src/config; echo HEAD > src/HEAD; echo 1 > remotes/a; mv src/h src/hooks; rm -r src; git init -q r; "
                       "echo 1 > r/hooks; mkdir r/refs; echo > r/config; echo fine")
    assert done.out.strip() == "fine", done
