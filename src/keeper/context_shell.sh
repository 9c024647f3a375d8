# keeper/context_shell.sh: what runs a context's code in bash, in the sandbox (see context_python.py, which says more)
# shellcheck shell=bash
exec 60<&0 61>&1 62>&2 </dev/null
__cloche_say() {
    builtin local end=${3-}
    builtin printf '\1%s%s%04x%s' "$__cloche_mark" "$2" "${#end}" "$end" >&"$1"
}
__cloche_two() { builtin return 2; }
__cloche_stop() {       # every command from here on returns, until no function is left
    builtin shopt -s extdebug
    builtin trap '((!${#FUNCNAME[@]})) || __cloche_two' DEBUG
}
__cloche_run() { builtin eval "$__cloche_code" 60<&- 61>&- 62>&-; }
while IFS= builtin read -r -d '' -u 60 __cloche_mark && IFS= builtin read -r -d '' -u 60 __cloche_code; do
    builtin trap __cloche_stop INT
    __cloche_say 62 B
    __cloche_say 61 B       # it may be interrupted from here on
    __cloche_run
    __cloche_end=$?
    builtin trap '' INT
    if builtin shopt -q extdebug; then
        builtin trap - DEBUG
        builtin shopt -u extdebug
        __cloche_end=130
    fi
    __cloche_say 62 E
    __cloche_say 61 E "$__cloche_end"
done
