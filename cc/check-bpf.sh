#!/bin/sh
# Compiles every control of this folder for eBPF and, where the machine allows, lets the running kernel verify
# and register each for a moment. Exit code 0: all that could be checked is well; a check that the machine
# does not allow is named with the reason.
#
#   cc/check-bpf.sh            compile, and load where possible
#   cc/check-bpf.sh --compile  only compile
set -u
cd "$(dirname "$0")" || exit 3
clang=${CLANG:-clang}
objects=$(mktemp -d) || exit 3

# A control stays registered until someone unregisters it, so that is done however this ends.
registered=
unregister() {
    [ -z "$registered" ] && return
    id=$registered
    registered=
    timeout 30 bpftool struct_ops unregister id "$id" >/dev/null 2>&1 || echo "$id is still registered" >&2
}
trap 'unregister; rm -rf "$objects"' EXIT
trap 'exit 130' INT TERM HUP

# Whether TCP offers tl_$1 now.
offered() {
    case " $(cat /proc/sys/net/ipv4/tcp_available_congestion_control) " in
        *" tl_$1 "*) true ;;
        *) false ;;
    esac
}

why_not_loading() {
    [ "${1:-}" = --compile ] && echo "only compiling, as asked" && return
    command -v bpftool >/dev/null || { echo "bpftool is not installed"; return; }
    [ -r /sys/kernel/btf/vmlinux ] || { echo "the kernel has no BTF (/sys/kernel/btf/vmlinux)"; return; }
    [ "$(id -u)" = 0 ] || { echo "loading needs root"; return; }
    bpftool struct_ops list >/dev/null 2>&1 || echo "bpf() is not permitted here"
}

if ! command -v "$clang" >/dev/null; then
    echo "skipped: $clang is not installed"
    exit 0
fi
skip=$(why_not_loading "$@")
failed=0
for source in *.c; do
    name=${source%.c}
    object=$objects/$name.o
    if ! "$clang" -target bpf -O2 -g -std=gnu11 -Wall -Werror -Iinclude -c "$source" -o "$object"; then
        echo "$name: does not compile"
        failed=1
        continue
    fi
    if [ -n "$skip" ]; then
        echo "$name: compiles"
        continue
    fi
    # bpftool reports a name that is taken as the error "Success".
    if offered "$name"; then
        echo "$name: compiles; not loaded, for another process offers a tl_$name (bpftool struct_ops list shows it)"
        continue
    fi
    if ! timeout 60 bpftool struct_ops register "$object" >"$objects/log" 2>&1; then
        echo "$name: compiles, but the kernel refuses it:"
        tail -n 25 "$objects/log"
        failed=1
        continue
    fi
    registered=$(sed -n 's/.* id \([0-9]*\)$/\1/p' "$objects/log")
    if offered "$name"; then
        echo "$name: compiles, loads and registers as tl_$name"
    else
        echo "$name: loads, but TCP does not offer tl_$name"
        failed=1
    fi
    unregister
done
[ -n "$skip" ] && echo "not loaded into the kernel: $skip"
exit $failed
