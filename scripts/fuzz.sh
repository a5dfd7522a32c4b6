#!/usr/bin/env bash
# Runs fuzz targets on a number of inputs each: scripts/fuzz.sh [TARGET...]
#
# The default is all targets, one after another, which takes hours. RUNS (10,000,000) is the number of inputs
# of each target. SANITIZER (address) is one of cargo-fuzz's; with none, a target that is only safe Rust takes
# a fraction of the time. A target begins with the corpus target/fuzz-corpus/TARGET, to which libFuzzer adds:
# what is cheap to make is put there first, and the head of each target says what else is good. An input that
# fails is kept in target/fuzz-artifacts. Prints a line for each target, and exits with 1 if an input has
# failed.
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

# C code with functions inlined into each other, and with a function of another library.
readonly CODE='
struct pair { int value; struct pair *next; };
void *malloc(unsigned long);
static inline __attribute__((always_inline)) int inner(struct pair *of) {
    __asm__ volatile("nop; nop");
    return of->value;
}
static inline __attribute__((always_inline)) int middle(struct pair *of) {
    return inner(of) * inner(of->next);
}
__attribute__((used)) int outer(struct pair *of) { return middle(of) ^ 3; }
__attribute__((used)) struct pair *pair(void) { return malloc(sizeof(struct pair)); }'

# Compiles a small library with symbols, call frame information and a build-id: library FILE [FLAG...]
# Its addresses are offsets in the file, as they are in an image that is not loaded.
library() {
    cc -O1 -shared -nostdlib -Wl,--build-id,-z,noseparate-code,-z,norelro,-z,max-page-size=1 \
        -x c -o "$@" - <<<"$CODE"
}

# Compiles a small program whose code is at 0x1000, where target dwarf looks up: program FILE [FLAG...]
program() {
    cc -O1 -static -nostdlib -Wl,-e0,--build-id,-N,-Ttext=0x1000 \
        -Wl,--no-warn-rwx-segments,--unresolved-symbols=ignore-all -x c -o "$@" - <<<"$CODE"
}

# Writes two inputs of target dwarf: joined INPUT ROTATION FILE...
# The last byte of an input rotates the roles of its files. Of an input of even length, the target reads the
# debug information of only a few addresses.
joined() {
    local input=$1 byte="\\x0$2"
    shift 2
    { cat "$@" && printf "$byte"; } >"$input"
    { cat "$input" && printf "$byte"; } >"$input-longer"
}

# Compiles programs with debug information of each kind, into the present folder.
programs() {
    program plain -g
    program zlib -g -gz=zlib
    program dwarf2 -gdwarf-2
    program ranges -gdwarf-4 -ffunction-sections
    # Names in another unit.
    program units -g -flto
    objcopy --only-keep-debug plain debug
    strip -o stripped plain
    strip --strip-debug -o symbols plain
    cp plain linked && cp plain other && dwz -m alternative linked other
    cp plain linked5 && cp plain other && dwz --dwarf-5 -m supplementary linked5 other
    program split4 -gdwarf-4 -gsplit-dwarf
    program split5 -gdwarf-5 -gsplit-dwarf
    # This program of binutils reads only DWARF 4.
    dwp -e split4 -o package
}

# Makes the first corpus of target dwarf, from the programs of the present folder: dwarf_corpus FOLDER
dwarf_corpus() {
    for name in plain zlib dwarf2 ranges units; do
        joined "$1/$name" 0 "$name"
    done
    joined "$1/object" 0 debug stripped
    joined "$1/minidebug" 4 stripped symbols
    joined "$1/alternative" 3 linked alternative
    joined "$1/supplementary" 3 linked5 supplementary
    joined "$1/package" 2 split4 package
    joined "$1/split4" 1 split4 split4-*.dwo
    joined "$1/split5" 1 split5 split5-*.dwo
}

# Runs the example that writes first inputs: fuzz_inputs TARGET FOLDER
fuzz_inputs() {
    cargo run --quiet --locked --example fuzz_inputs -- "$@"
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
        (cd "$scratch" && programs && cp linked linked5 supplementary split? split?-*.dwo package "$2")
        fuzz_inputs debug_files "$2"
        ;;
    dwarf)
        (cd "$scratch" && programs && dwarf_corpus "$2")
        ;;
    dwarf_index)
        program "$scratch/object" -g
        cargo run --quiet --locked --example resolve_addresses -- --make "$2/index" "$scratch/object"
        ;;
    elf_file | elf_image)
        library "$2/library"
        library "$2/dynamic" -s -Wl,--hash-style=sysv
        library "$2/debug_frame" -g -fno-asynchronous-unwind-tables
        ;;
    mini_debug_info)
        library "$2/library"
        xz --stdout "$2/library" >"$2/library.xz"
        ;;
    symbolize)
        fuzz_inputs symbolize "$2"
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

scripts/install-toolchain.sh rust cc llvm fuzz
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
