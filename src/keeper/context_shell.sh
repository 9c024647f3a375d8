# keeper/context_shell.sh: what runs a context's code in bash, in the sandbox (see context_python.py, which says more)
# shellcheck shell=bash
#
# It is interrupted by SIGINT, which its commands get too, and SIGURG: of SIGINT bash takes no note if the command that it
# waits for ends well in that moment; of another signal it does, unless it runs a trap of SIGINT.
exec 60<&0 61>&1 62>&2 </dev/null
__cloche_say() {
    builtin local end=${3-}
    builtin printf '\1%s%s%04x%s' "$__cloche_mark" "$2" "${#end}" "$end" >&"$1"
}
__cloche_two() { builtin return 2; }
__cloche_stop() {       # every command from here on returns, until no function is left
    __cloche_stopped=1
    builtin shopt -s extdebug
    builtin trap '((!${#FUNCNAME[@]})) || __cloche_two' DEBUG
}
__cloche_run() { builtin eval "$__cloche_trace$__cloche_code" 60<&- 61>&- 62>&-; }
__cloche_trace=
builtin trap '' INT URG
while IFS= builtin read -r -d '' -u 60 __cloche_mark && IFS= builtin read -r -d '' -u 60 __cloche_code; do
    __cloche_stopped=
    builtin trap __cloche_stop INT URG
    __cloche_say 62 B
    __cloche_say 61 B       # it may be interrupted from here on
    __cloche_run
    {                       # none of this is in the trace of set -x
        __cloche_end=$?
        case $- in *x*) __cloche_trace='builtin set -x;' ;; *) __cloche_trace= ;; esac
        case :$SHELLOPTS: in
        *:posix:*) \unset -f builtin ;;
        *) POSIXLY_CORRECT=1; \unset -f builtin; \unset POSIXLY_CORRECT ;;      # the code's functions stand before it otherwise
        esac
        builtin set +x
        # Struck, and bash has not acted on it: it forgets a trap that comes amid another. wait tells (1 is no child of it).
        builtin wait 1 || case $? in 130 | 151) __cloche_stopped=1 ;; esac
        builtin trap : INT URG
        builtin kill -URG $$    # what bash noted and has not acted on it would act on in a later call
        builtin trap '' INT URG
        builtin wait 1 || builtin :     # and one that came behind a wait would end a later call's wait: it ends this one
    } 2>/dev/null
    if [[ $__cloche_stopped ]]; then
        builtin trap - DEBUG
        builtin shopt -u extdebug
        __cloche_end=130
    fi
    __cloche_say 62 E
    __cloche_say 61 E "$__cloche_end"
done
