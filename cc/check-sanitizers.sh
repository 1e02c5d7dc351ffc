#!/bin/sh
# Runs the tests of crates/control with every control compiled under the address and undefined-behaviour
# sanitizers. Needs Linux and a C compiler that has them as shared libraries.
set -eu
cd "$(dirname "$0")/.."
# The test programs are Rust; the sanitizer must be loaded before any of their libraries.
runtime=$(${CC:-cc} -print-file-name=libasan.so)
host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
export "CARGO_TARGET_${host}_RUNNER=env LD_PRELOAD=$runtime ASAN_OPTIONS=detect_leaks=0"
TCPLAB_CC_SANITIZE=1 UBSAN_OPTIONS=print_stacktrace=1 \
    cargo test -p tcplab-control --target-dir "${CARGO_TARGET_DIR:-target}/sanitized" --lib --tests
