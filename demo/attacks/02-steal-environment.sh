# shellcheck shell=bash
# tried: find tokens in the environment of any process
# would: use your cloud account
# bare: yes
if cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | grep -q '^DEMO_TOKEN=hunter2'; then
    echo "found DEMO_TOKEN"
    exit 0
fi
echo "no process that can be seen has it"
exit 3
