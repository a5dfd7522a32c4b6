//! The id of the container that this process runs in, read from the kernel's files.
//!
//! With cgroup v1, and with v2 where the process sees the host's cgroups, the id is in the cgroup's path.
//! With v2 in a cgroup namespace that path is just `/`. But the runtime mounts the container's hostname,
//! hosts and resolv.conf from a directory whose name is the id.

use std::fs;

/// The number of hexadecimal digits of a container's id.
const ID_DIGITS: usize = 64;
/// AWS Fargate: an id is the task's 32 digits, a dash and a number.
const TASK_DIGITS: usize = 32;

/// Returns the id, or `None` outside a container or under a runtime that does not show it.
pub(super) fn id_of_this_process() -> Option<String> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    id_in_cgroup(&read("/proc/self/cgroup")).or_else(|| id_in_mountinfo(&read("/proc/self/mountinfo")))
}

/// Reads `hierarchy:controllers:path` lines (cgroups(7)). The innermost id of a path counts, since containers
/// nest.
fn id_in_cgroup(cgroup: &str) -> Option<String> {
    cgroup
        .lines()
        .filter_map(|line| line.splitn(3, ':').nth(2))
        .find_map(|path| path.rsplit('/').find_map(id_in_name))
}

/// Returns the id in one component of a cgroup's path: the whole component, systemd's `runtime-ID.scope`, or
/// the part after the last colon (containerd: `slice:cri-containerd:ID`).
fn id_in_name(name: &str) -> Option<String> {
    if is_task_container(name) {
        return Some(name.to_owned());
    }
    let name = name.strip_suffix(".scope").unwrap_or(name);
    let (runtime, id) = name.rsplit_once(['-', ':']).unwrap_or(("", name));
    // conmon monitors a container from outside.
    (is_id(id) && !runtime.ends_with("conmon")).then(|| id.to_owned())
}

/// Reads the mount points (proc_pid_mountinfo(5)): field 4 is the mounted directory within its file system,
/// field 5 the mount point. Kubernetes mounts these files from the pod's sandbox, whose id is not the
/// container's.
fn id_in_mountinfo(mountinfo: &str) -> Option<String> {
    mountinfo.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(3);
        let (root, mount_point) = (fields.next()?, fields.next()?);
        if !["/etc/hostname", "/etc/hosts", "/etc/resolv.conf"].contains(&mount_point) {
            return None;
        }
        let names: Vec<_> = root.split('/').collect();
        let id = names
            .windows(2)
            .find(|pair| matches!(pair[0], "containers" | "overlay-containers") && is_id(pair[1]));
        id.map(|pair| pair[1].to_owned())
    })
}

fn is_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(is_lower_hex)
}

fn is_task_container(text: &str) -> bool {
    text.split_once('-').is_some_and(|(task, number)| {
        let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
        task.len() == TASK_DIGITS && task.bytes().all(is_lower_hex) && is_number
    })
}

fn is_lower_hex(digit: u8) -> bool {
    matches!(digit, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "5cd8d3e62a1ee1aa3a6b5f5e2f8c55a4bba3ab33a3ce9e4a2a9f6cb3a2ff0db4";
    const OTHER: &str = "1111111111111111111111111111111111111111111111111111111111111111";

    fn cgroup(template: &str) -> Option<String> {
        id_in_cgroup(&template.replace("ID", ID).replace("OTHER", OTHER))
    }

    #[test]
    fn cgroup_paths_of_the_runtimes() {
        for (runtime, path) in [
            ("Docker, cgroupfs", "12:pids:/docker/ID"),
            ("Docker, systemd", "1:name=systemd:/system.slice/docker-ID.scope"),
            ("Docker, systemd inside", "0::/system.slice/docker-ID.scope/init.scope"),
            ("Docker in Docker", "4:memory:/docker/OTHER/docker/ID"),
            (
                "Kubernetes, cgroupfs",
                "11:cpu,cpuacct:/kubepods/besteffort/pod3b6d0f2e-1c4a-11e9-8f2a-0242ac110002/ID",
            ),
            (
                "Kubernetes, containerd",
                "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod2c48913c.slice/\
                 cri-containerd-ID.scope",
            ),
            (
                "containerd, colons",
                "0::/system.slice/containerd.service/kubepods-burstable-pod2c48.slice:cri-containerd:ID",
            ),
            ("CRI-O", "0::/kubepods.slice/kubepods-pod7.slice/crio-ID.scope"),
            ("Podman", "0::/machine.slice/libpod-ID.scope/container"),
            ("above the namespace's root", "0::/../cri-containerd-ID.scope"),
        ] {
            let file = format!("13:hugetlb:/\n{path}\n");
            assert_eq!(cgroup(&file).as_deref(), Some(ID), "{runtime}");
        }
    }

    #[test]
    fn fargate_names_a_task_and_a_container() {
        let id = "34dc0b5e626f2c5c4c5170e34b10e765-1234567890";
        let file = format!("9:perf_event:/ecs/34dc0b5e626f2c5c4c5170e34b10e765/{id}\n");
        assert_eq!(id_in_cgroup(&file).as_deref(), Some(id));
    }

    #[test]
    fn cgroup_paths_without_a_container() {
        for file in [
            "",
            "0::/\n",
            "0::/user.slice/user-1000.slice/session-2.scope\n",
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/\
             app-org.gnome.Terminal.slice/vte-spawn-5cd8d3e6.scope\n",
            "0::/machine.slice/libpod-conmon-ID.scope\n",
            "0::/docker/IDff\n",
            "garbage ID\n",
        ] {
            assert_eq!(cgroup(file), None, "{file}");
        }
        let upper_case = format!("0::/docker/{}\n", ID.to_uppercase());
        assert_eq!(id_in_cgroup(&upper_case), None);
    }

    fn mountinfo(lines: &[&str]) -> Option<String> {
        id_in_mountinfo(&lines.join("\n").replace("ID", ID).replace("OTHER", OTHER))
    }

    const ROOT: &str = "456 375 0:143 / / rw,relatime master:175 - overlay overlay \
                        rw,lowerdir=/var/lib/docker/overlay2/l/OTHER";

    #[test]
    fn mounts_of_docker_and_podman() {
        let docker =
            "472 456 254:1 /docker/containers/ID/hostname /etc/hostname rw,relatime - ext4 /dev/vda1 rw";
        assert_eq!(mountinfo(&[ROOT, docker]).as_deref(), Some(ID));
        let docker =
            "471 456 254:1 /var/lib/docker/containers/ID/resolv.conf /etc/resolv.conf rw - ext4 /dev/sda1 rw";
        assert_eq!(mountinfo(&[ROOT, docker]).as_deref(), Some(ID));
        let podman = "983 961 0:25 /containers/storage/overlay-containers/ID/userdata/hosts /etc/hosts rw - \
                      tmpfs tmpfs rw";
        assert_eq!(mountinfo(&[ROOT, podman]).as_deref(), Some(ID));
    }

    #[test]
    fn a_pods_sandbox_is_not_the_container() {
        let sandbox = "1 2 8:1 /var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/ID/hostname \
                       /etc/hostname rw - ext4 /d rw";
        let elsewhere = "1 2 8:1 /docker/containers/ID/mounts/x /data rw - ext4 /d rw";
        assert_eq!(mountinfo(&[ROOT, sandbox, elsewhere, "", "short line"]), None);
    }
}
