#!/usr/bin/env bash
# Runs fuzz targets on a number of inputs each: scripts/fuzz.sh [TARGET...]
#
# The default is all targets, one after another, which takes hours. RUNS (10,000,000) is the number of inputs
# of each target. SANITIZER (address) is one of cargo-fuzz's; with none, a target that is safe Rust alone
# takes a fraction of the time. A target begins with the corpus target/fuzz-corpus/TARGET, to which libFuzzer
# adds: what is cheap to make is put there first, and the head of each target says what else is good. An
# input that fails is kept in target/fuzz-artifacts. Prints a line for each target, and exits with 1 if an
# input has failed.
set -euo pipefail
cd "$(dirname "$0")/.."

export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH:$(scripts/cache-folder.sh)/bin"
# The sanitizers need an option of the compiler that the stable one takes only with this variable.
export RUSTC_BOOTSTRAP=1
runs=${RUNS:-10000000}
sanitizer=${SANITIZER:-address}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
    echo "fuzz: $*" >&2
    exit 1
}

# Compiles a small library with a symbol, call frame information and a build-id: library FILE [FLAG...]
library() {
    echo 'int twice(int n) { return 2 * n; } int four(int n) { return twice(twice(n)); }' |
        cc -O1 -shared -nostdlib -Wl,--build-id -x c -o "$@" -
}

# Compiles a small library whose debug information is outside, in split units.
split_library() {
    (cd "$scratch" && echo 'int twice(int n) { return 2 * n; }' >split.c &&
        cc -O1 -g -gsplit-dwarf -shared -nostdlib -o split.so split.c && cat split.so ./*.dwo) >"$1"
}

# Makes the first corpus of a target: first_corpus TARGET FOLDER
first_corpus() {
    case $1 in
    collapsed)
        echo '[main tid=1];a/B.c:7_[j];d_[k] 5' >"$2/line"
        ;;
    debug_files)
        library "$2/library"
        objcopy --add-gnu-debuglink="$2/library" "$2/library" "$2/linked"
        ;;
    dwarf)
        library "$2/plain" -g
        library "$2/zlib" -g -gz=zlib
        library "$2/dwarf2" -gdwarf-2
        split_library "$2/split"
        ;;
    dwarf_index)
        library "$scratch/object" -g
        cargo run --quiet --locked --example resolve_addresses -- --make "$2/index" "$scratch/object"
        ;;
    elf_file | elf_image)
        library "$2/library"
        ;;
    mini_debug_info)
        library "$2/library"
        xz --stdout "$2/library" >"$2/library.xz"
        ;;
    symbols_package)
        mkdir -p "$scratch/deb/DEBIAN"
        printf 'Package: a\nVersion: 1\nArchitecture: all\nMaintainer: a\nDescription: a\n' \
            >"$scratch/deb/DEBIAN/control"
        library "$scratch/deb/library"
        for compression in gzip xz zstd; do
            dpkg-deb --root-owner-group -Z"$compression" --build "$scratch/deb" "$2/$compression.deb"
            tar -C "$scratch/deb" -cf - library | "$compression" --stdout >"$2/tar.$compression"
        done
        ;;
    esac
}

mapfile -t targets < <(cd fuzz && cargo metadata --locked --no-deps --format-version 1 |
    python3 -c 'import json, sys
for target in json.load(sys.stdin)["packages"][0]["targets"]:
    if "bin" in target["kind"]:
        print(target["name"])')
for name in "$@"; do
    [[ " ${targets[*]} " == *" $name "* ]] || fail "no fuzz target $name; the targets are: ${targets[*]}"
done
[ $# = 0 ] || targets=("$@")

scripts/install-toolchain.sh rust cc fuzz
mkdir -p "$target/fuzz-artifacts"
red=0
for name in "${targets[@]}"; do
    corpus=$target/fuzz-corpus/$name
    if [ ! -d "$corpus" ]; then
        mkdir -p "$corpus"
        first_corpus "$name" "$corpus" >&2
    fi
    start=$SECONDS result='no input has failed'
    cargo fuzz run --sanitizer "$sanitizer" --target-dir "$target/fuzz" "$name" "$corpus" -- -runs="$runs" \
        -timeout=60 -artifact_prefix="$target/fuzz-artifacts/$name-" </dev/null >"$scratch/output" 2>&1 || {
        result="FAILED: $(grep -m1 -E '^(thread .* panicked|==[0-9]+==|SUMMARY|error)' "$scratch/output" ||
            tail -n1 "$scratch/output")"
        tail -n 60 "$scratch/output" >&2
        red=1
    }
    echo "$name: $runs inputs, $((SECONDS - start)) s: $result"
done
exit "$red"
