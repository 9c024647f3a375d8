printf 'shell: %s files in /workspace, %s processes, home %s, host name %s\n' \
    "$(ls | wc -l)" "$(ls -d /proc/[0-9]* | wc -l)" "$HOME" "$(cat /proc/sys/kernel/hostname)"
