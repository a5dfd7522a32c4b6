# The settings of builds for aarch64 that tests use; to be sourced in the repository's root. Sets the array
# `profile`, arguments of cargo. Builds with the same settings share their files.
#
# Dependencies are tested elsewhere, so they are compiled as fast as possible. The tests take seconds.
profile=(--config 'profile.dev.debug=false' --config 'profile.dev.opt-level=1')
for crate in $(sed -n '/^\[profile.dev.package\]/,/^$/s/^\(.*\)\.opt-level.*/\1/p' Cargo.toml); do
    profile+=(--config "profile.dev.package.$crate.opt-level=0")
done
