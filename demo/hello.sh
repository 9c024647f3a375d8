# shellcheck shell=bash
files=(/workspace/*) processes=(/proc/[0-9]*)
printf 'shell: files in /workspace: %d, processes: %d, home %s, host name %s\n' \
    "${#files[@]}" "${#processes[@]}" "$HOME" "$(cat /proc/sys/kernel/hostname)"
