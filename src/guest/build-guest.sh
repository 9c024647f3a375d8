#!/bin/sh
# Build cloche-guest: one static position-independent program against musl.
# usage: build-guest.sh COMPILER OUTPUT SOURCE_ROOT VERSION SOURCES...
#
# musl-gcc wrappers do not know -static-pie (they would leave a program that needs an interpreter, which no
# sandbox has), so the start files are named here; a compiler whose own libc is musl needs none of that.
set -eu
cc=$1 out=$2 root=$3 version=$4
shift 4

# The kernel's headers come after musl's: only linux/*.h and asm/*.h are found there.
multiarch=$("$cc" -print-multiarch 2>/dev/null || true)
# The quotes are part of the value: the macro is a string.
# shellcheck disable=SC2089
flags="-std=gnu17 -O2 -D_GNU_SOURCE -DCLOCHE_GUEST=1 -DCLOCHE_VERSION=\"$version\" -I$root
    -Wall -Wextra -Werror -Wconversion -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
    -Wformat=2 -Wundef -Wwrite-strings -Wpointer-arith -Wno-missing-field-initializers
    -fPIE -fno-common -fno-strict-aliasing -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables
    -fstack-protector-strong -fstack-clash-protection -fcf-protection -ftrivial-auto-var-init=zero
    -fzero-call-used-regs=used
    -idirafter /usr/include ${multiarch:+-idirafter /usr/include/$multiarch}"
link="-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,-z,separate-code -Wl,-z,text -Wl,--gc-sections -Wl,--build-id=none -s"

startfile=$("$cc" -### -xc /dev/null -o /dev/null 2>&1 | tr ' ' '\n' | tr -d '"' | grep '/S\{0,1\}crt1\.o$' | head -n 1)
libdir=$(dirname "$startfile")
if [ -f "$libdir/rcrt1.o" ]; then
    # shellcheck disable=SC2086,SC2090
    exec "$cc" $flags $link "$@" -o "$out" -static -nostartfiles -Wl,-pie -Wl,--no-dynamic-linker \
        "$libdir/rcrt1.o" "$libdir/crti.o" "$libdir/crtn.o"
fi
# shellcheck disable=SC2086,SC2090
exec "$cc" $flags $link "$@" -o "$out" -static-pie
