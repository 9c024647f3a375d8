# shellcheck shell=bash
files=(/workspace/*) processes=(/proc/[0-9]*)
printf 'shell: %d file in /workspace, %d processes, home %s, host name %s\n' \
    "${#files[@]}" "${#processes[@]}" "$HOME" "$(cat /proc/sys/kernel/hostname)"
