# Runs on the remote host, read by `sh` from its standard input: takes the agent, or finds it in a process of ours; starts it,
# leaves nothing.
# Its output begins with `tcplab`; whatever a login script prints before that is ignored.
tcplab_main() {
    umask 077
    PATH=$PATH:/usr/sbin:/usr/bin:/sbin:/bin
    LC_ALL=C
    export PATH LC_ALL
    echo "tcplab machine $(uname -s) $(uname -m) $(command -v gzip >/dev/null && echo gzip)"
    read -r size digest holder || exit
    # The program is known by its contents.
    case $(readlink "/proc/$holder/exe" 2>/dev/null) in
    */"tcplab-agent-$digest (deleted)")
        exec 9<"/proc/$holder/exe"
        echo "tcplab agent held"
        ;;
    *) tcplab_take ;;
    esac
    echo "tcplab ready"
    read -r _ || exit
    exec /proc/self/fd/9 node --silence "$1"
}
# Takes the agent, and opens it as descriptor 9.
tcplab_take() {
    tried=
    for room in "${TMPDIR:-/tmp}" "${XDG_RUNTIME_DIR:-}" /dev/shm "$HOME"; do
        [ -d "$room" ] && [ -w "$room" ] || continue
        free=$(df -Pk "$room" 2>/dev/null | { read -r _; read -r _ _ _ free _; echo "${free:-0}"; })
        if [ "$free" -lt $((size / 1024 + 1)) ]; then
            tried="$tried $room (disk full)"
            continue
        fi
        dir=$(mktemp -d "$room/tcplab-XXXXXX" 2>/dev/null) || continue
        trap 'rm -rf "$dir"' EXIT
        trap exit HUP INT TERM
        # A file system may let no program run.
        if printf '#!/bin/sh\n' >"$dir/try" && chmod 700 "$dir/try" && "$dir/try" 2>/dev/null; then
            break
        fi
        tried="$tried $room (lets no program run)"
        rm -rf "$dir"
        dir=
    done
    if [ -z "${dir:-}" ]; then
        echo "tcplab error no directory can hold the agent of $size bytes:${tried:- none can be written}"
        exit
    fi
    echo "tcplab agent wanted"
    # How many bytes come, in which form.
    read -r sent form || exit
    agent=$dir/tcplab-agent-$digest
    if ! { head -c "$sent" | tcplab_unpack; } >"$agent" 2>"$dir/why" || [ "$(wc -c <"$agent")" -ne "$size" ]; then
        echo "tcplab error the agent did not arrive in $dir: $(cat "$dir/why")"
        exit
    fi
    chmod 700 "$agent"
    if ! "$agent" --version >/dev/null 2>"$dir/why" </dev/null; then
        echo "tcplab error the agent does not run on this host: $(head -n 1 "$dir/why")"
        exit
    fi
    # Open, it can be run by its descriptor when it has no name any more.
    exec 9<"$agent"
    rm -rf "$dir"
    trap - EXIT HUP INT TERM
}
tcplab_unpack() {
    case $form in
    gzip) gzip -dc ;;
    *) cat ;;
    esac
}
