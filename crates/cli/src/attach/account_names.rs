//! The names of users and groups.

/// The name of a user, or the number where it has no name.
pub(super) fn user_name(uid: libc::uid_t) -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(uid)).ok().flatten();
    user.map_or_else(|| uid.to_string(), |user| user.name)
}

/// The name of a group, or the number where it has no name.
pub(super) fn group_name(gid: libc::gid_t) -> String {
    let group = nix::unistd::Group::from_gid(nix::unistd::Gid::from_raw(gid)).ok().flatten();
    group.map_or_else(|| gid.to_string(), |group| group.name)
}
