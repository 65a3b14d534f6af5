#!/usr/bin/env bash
# Installs what the build needs beside Rust: a C compiler, and libclang for the bindings of
# PostgreSQL's parser. Does nothing where both are there.
#
#   scripts/setup.sh && cargo run --release -- --memory-limit 256MB

set -euo pipefail

[ -x "${CARGO_TARGET_DIR:-target}/release/thermocline" ] ||
    echo "The build takes 10 to 20 minutes on two cores, once."

missing=()
command -v cc > /dev/null || command -v gcc > /dev/null || command -v clang > /dev/null || missing+=(gcc)

has_libclang() {
    local directory
    for directory in "${LIBCLANG_PATH:-}" /usr/lib/llvm*/lib /usr/lib/llvm/*/lib* /usr/lib64 /usr/lib \
        /usr/lib/*-linux-gnu* /usr/local/lib /opt/homebrew/opt/llvm/lib /usr/local/opt/llvm/lib \
        /Library/Developer/CommandLineTools/usr/lib; do
        [ -n "$directory" ] || continue
        if compgen -G "$directory/libclang.so*" > /dev/null || compgen -G "$directory/libclang-[0-9]*.so*" > /dev/null ||
            compgen -G "$directory/libclang.dylib" > /dev/null; then
            return 0
        fi
    done
    return 1
}
has_libclang || missing+=(libclang)
[ "${#missing[@]}" -gt 0 ] || exit 0

as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)
case "${missing[*]}" in
    *gcc*) apt_packages=(gcc libc6-dev libclang-dev) dnf_packages=(gcc clang-devel) pacman_packages=(gcc clang) ;;
    *) apt_packages=(libclang-dev) dnf_packages=(clang-devel) pacman_packages=(clang) ;;
esac
if command -v apt-get > /dev/null; then
    echo "installing ${apt_packages[*]}"
    "${as_root[@]}" apt-get update -q
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${apt_packages[@]}"
elif command -v dnf > /dev/null; then
    "${as_root[@]}" dnf install -y "${dnf_packages[@]}"
elif command -v pacman > /dev/null; then
    "${as_root[@]}" pacman -S --noconfirm "${pacman_packages[@]}"
elif command -v brew > /dev/null; then
    brew install llvm
else
    echo "please install: ${missing[*]}" >&2
    exit 1
fi
