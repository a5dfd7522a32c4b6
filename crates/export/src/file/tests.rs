//! Tests of the file exporter.

use std::os::unix::process::CommandExt;
use std::process::Command;

use tempfile::TempDir;

use super::*;

fn message(content_type: ContentType, body: &[u8]) -> OutgoingMessage {
    OutgoingMessage { body: body.to_vec(), content_type, samples: 7 }
}

fn protobuf(body: &[u8]) -> OutgoingMessage {
    message(ContentType::Protobuf, body)
}

fn exporter(folder: &TempDir, name: &str) -> FileExporter {
    FileExporter::new(folder.path().join(name).to_str().unwrap()).unwrap()
}

fn names(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn tally(messages: u64, samples: u64, bytes: u64) -> Tally {
    Tally { messages, samples, bytes }
}

#[test]
fn protobuf_messages_are_appended_with_their_length_in_front() {
    let folder = TempDir::new().unwrap();
    let exporter_ = exporter(&folder, "profiles.otlp");
    assert!(names(&folder).is_empty(), "nothing is created before there is a message");
    let path = exporter_.write(&protobuf(b"abc")).unwrap();
    exporter_.write(&protobuf(b"")).unwrap();
    // A second exporter, as after a restart, appends after the first one's messages.
    exporter(&folder, "profiles.otlp").write(&protobuf(b"de")).unwrap();
    assert_eq!(fs::read(path).unwrap(), b"\0\0\0\x03abc\0\0\0\0\0\0\0\x02de");
    assert_eq!(exporter_.stats(), FileStats { written: tally(2, 14, 3), ..FileStats::default() });
}

#[test]
fn json_documents_are_lines() {
    let folder = TempDir::new().unwrap();
    let path = exporter(&folder, "p.json").write(&message(ContentType::Json, b"{\"a\":1}")).unwrap();
    exporter(&folder, "p.json").write(&message(ContentType::Json, b"{}")).unwrap();
    assert_eq!(fs::read(path).unwrap(), b"{\"a\":1}\n{}\n");
}

#[test]
fn with_a_time_every_message_is_a_file_of_its_own() {
    let folder = TempDir::new().unwrap();
    let exporter = exporter(&folder, "p-%t.otlp");
    let bodies: Vec<[u8; 1]> = (0..20).map(|n| [n]).collect();
    let paths: Vec<_> = bodies.iter().map(|body| exporter.write(&protobuf(body)).unwrap()).collect();
    for (path, body) in paths.iter().zip(&bodies) {
        assert_eq!(fs::read(path).unwrap(), body, "{}", path.display());
    }
    assert_eq!(names(&folder).len(), 20, "no temporary file is left");
    assert!(names(&folder).iter().all(|name| name.starts_with("p-2") && name.ends_with(".otlp")));
}

#[test]
fn a_temporary_file_of_a_dead_process_is_replaced() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("x.tmp"), b"old and long").unwrap();
    write_new(&folder.path().join("x.tmp"), b"new").unwrap();
    assert_eq!(fs::read(folder.path().join("x.tmp")).unwrap(), b"new");
}

#[test]
fn a_new_file_is_written_after_rotation() {
    let folder = TempDir::new().unwrap();
    let exporter = exporter(&folder, "p");
    let path = exporter.write(&protobuf(b"1")).unwrap();
    fs::rename(&path, folder.path().join("p.1")).unwrap();
    exporter.write(&protobuf(b"2")).unwrap();
    assert_eq!(fs::read(folder.path().join("p.1")).unwrap(), b"\0\0\0\x011");
    assert_eq!(fs::read(path).unwrap(), b"\0\0\0\x012");
}

#[test]
fn a_missing_folder_is_named_at_the_start_and_later() {
    let folder = TempDir::new().unwrap();
    let name = folder.path().join("sub/p.otlp");
    let error = FileExporter::new(name.to_str().unwrap()).unwrap_err();
    let expected = format!("the folder {} does not exist; create it", folder.path().join("sub").display());
    assert!(matches!(error, FileError::NoFolder { .. }));
    assert!(error.to_string().contains(&expected), "{error}");

    fs::create_dir(folder.path().join("sub")).unwrap();
    for name in ["sub/p.otlp", "sub/%t"] {
        let exporter = exporter(&folder, name);
        fs::remove_dir_all(folder.path().join("sub")).unwrap();
        assert!(matches!(exporter.write(&protobuf(b"x")), Err(FileError::NoFolder { .. })));
        assert_eq!(exporter.stats(), FileStats { pending: tally(1, 7, 1), ..FileStats::default() });
        fs::create_dir(folder.path().join("sub")).unwrap();
        exporter.write(&protobuf(b"x")).unwrap();
        let (written, pending) = (tally(1, 7, 1), tally(1, 7, 1));
        assert_eq!(exporter.stats(), FileStats { written, pending, ..FileStats::default() });
    }
}

/// Regression: such messages were counted as failed and never retried.
#[test]
fn failed_messages_are_retried_in_their_order() {
    for name in ["sub/p.otlp", "sub/%t"] {
        let folder = TempDir::new().unwrap();
        let sub = folder.path().join("sub");
        fs::create_dir(&sub).unwrap();
        let exporter = exporter(&folder, name);
        fs::remove_dir(&sub).unwrap();
        for body in [b"1", b"2"] {
            exporter.write(&protobuf(body)).unwrap_err();
        }
        exporter.retry();
        assert_eq!(exporter.stats(), FileStats { pending: tally(2, 14, 2), ..FileStats::default() });
        fs::create_dir(&sub).unwrap();
        exporter.retry();
        exporter.write(&protobuf(b"3")).unwrap();
        exporter.retry();
        assert_eq!(exporter.stats(), FileStats { written: tally(3, 21, 3), ..FileStats::default() });
        let mut files: Vec<_> = fs::read_dir(&sub).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        let content: Vec<_> = files.iter().flat_map(|file| fs::read(file).unwrap()).collect();
        let expected: &[u8] = if name.contains('%') { b"123" } else { b"\0\0\0\x011\0\0\0\x012\0\0\0\x013" };
        assert_eq!(content, expected);
    }
}

#[test]
fn messages_kept_for_a_retry_are_bounded_and_counted() {
    let exporter = FileExporter::new("/dev/full").unwrap();
    let number = KEPT.messages as u64;
    for _ in 0..number + 3 {
        exporter.write(&protobuf(b"1")).unwrap_err();
    }
    exporter.retry();
    let (failed, pending) = (tally(3, 21, 3), tally(number, 7 * number, number));
    assert_eq!(exporter.stats(), FileStats { failed, pending, ..FileStats::default() });
    exporter.write(&protobuf(&vec![0; KEPT.bytes + 1])).unwrap_err();
    assert_eq!(exporter.stats().failed.messages, 4);
    exporter.give_up();
    let stats = exporter.stats();
    assert_eq!((stats.failed.messages, stats.failed.samples), (number + 4, 7 * (number + 4)));
    assert_eq!(stats.pending, Tally::default());
}

/// The process's umask does not matter.
#[test]
fn files_are_the_users_alone() {
    let folder = TempDir::new().unwrap();
    for name in ["grows", "own-%t"] {
        let path = exporter(&folder, name).write(&protobuf(b"x")).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o600, "{name}");
    }
    let rolling = exporter(&folder, "rolls-%t").rolling(Some(Duration::from_secs(3600)));
    let path = rolling.write(&protobuf(b"x")).unwrap();
    assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o600);
}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn a_symbolic_link_is_not_followed_in_a_folder_that_others_can_write() {
    for mode in [0o1777, 0o777, 0o775] {
        let folders = [TempDir::new().unwrap(), TempDir::new().unwrap()];
        let [shared, own] = folders.each_ref().map(TempDir::path);
        let target = own.join("target");
        fs::write(&target, b"").unwrap();
        let early = exporter(&folders[0], "link");
        for (link, to) in [("link", &target), ("dangling", &own.join("none")), ("folder", &own.to_owned())] {
            std::os::unix::fs::symlink(to, shared.join(link)).unwrap();
        }
        allow(shared, mode);
        for name in ["link", "dangling", "folder/p", "folder/%t"] {
            let error = FileExporter::new(shared.join(name).to_str().unwrap()).unwrap_err();
            assert!(matches!(error, FileError::Link { .. }), "{name}: {error}");
        }
        assert!(matches!(early.write(&protobuf(b"x")), Err(FileError::Link { .. })));
        assert_eq!(fs::read(&target).unwrap(), b"");
        assert_eq!(names(&folders[1]), ["target"]);
        // No other user can have created the link in this folder.
        allow(shared, 0o755);
        early.write(&protobuf(b"x")).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"\0\0\0\x01x");
    }
}

/// Needs root, since other users cannot create files of another user. The file's owner is `nobody`.
#[test]
fn a_file_that_another_user_has_made_is_not_written_to_where_everybody_can_make_one() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("not tested: root alone makes files of other users");
        return;
    }
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("p");
    fs::write(&path, b"").unwrap();
    std::os::unix::fs::chown(&path, Some(65_534), Some(65_534)).unwrap();
    allow(folder.path(), 0o1777);
    let error = FileExporter::new(path.to_str().unwrap()).unwrap_err();
    assert!(matches!(error, FileError::Owner { .. }), "{error}");
    allow(folder.path(), 0o755);
    exporter(&folder, "p").write(&protobuf(b"x")).unwrap();
}

#[test]
fn a_fifo_or_folder_as_output_file_is_refused() {
    let folder = TempDir::new().unwrap();
    let fifo = folder.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for path in [fifo.as_path(), folder.path()] {
        let error = FileExporter::new(path.to_str().unwrap()).unwrap_err();
        assert!(matches!(error, FileError::Kind { .. }), "{error}");
    }
    assert!(matches!(FileExporter::new("a%z"), Err(FileError::Pattern(_))));
}

#[test]
fn a_file_that_holds_something_else_is_not_touched() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("p");
    let cases: [(&[u8], ContentType); 6] = [
        (b"FLR\0 a recording", ContentType::Protobuf),
        (b"\0\0\0\x02ab\0\0\0\x03de", ContentType::Protobuf),
        (b"\0\0\0\x02ab\0\0", ContentType::Protobuf),
        (b"\0\0\0\x02ab", ContentType::Json),
        (b"{}", ContentType::Json),
        (b"text\n", ContentType::Json),
    ];
    for (content, content_type) in cases {
        fs::write(&path, content).unwrap();
        let error = exporter(&folder, "p").write(&message(content_type, b"{}")).unwrap_err();
        assert!(matches!(error, FileError::Foreign { .. }), "{error}");
        assert_eq!(fs::read(&path).unwrap(), content);
    }
}

#[test]
fn a_file_locked_by_another_is_not_waited_for_without_end() {
    let folder = TempDir::new().unwrap();
    let exporter = exporter(&folder, "p");
    let path = exporter.write(&protobuf(b"1")).unwrap();
    let other = File::open(&path).unwrap();
    other.lock().unwrap();
    assert!(matches!(exporter.write(&protobuf(b"2")), Err(FileError::Locked { .. })));
    other.unlock().unwrap();
    exporter.write(&protobuf(b"3")).unwrap();
    assert_eq!(fs::read(path).unwrap(), b"\0\0\0\x011\0\0\0\x013");
}

#[test]
fn a_full_device_is_an_error_with_its_path_and_reason() {
    let exporter = FileExporter::new("/dev/full").unwrap();
    let error = exporter.write(&protobuf(b"1")).unwrap_err();
    assert!(error.to_string().starts_with("file=/dev/full: No space left on device"), "{error}");
    assert_eq!(exporter.stats().pending, tally(1, 7, 1));
    exporter.give_up();
    assert_eq!(exporter.stats().failed, tally(1, 7, 1));
}

const LIMITED: &str = "OTLPPROF_TEST_LIMITED_FOLDER";

/// The part of the next test that runs in a process whose files may not grow beyond 64 bytes.
#[test]
fn in_a_process_with_a_file_size_limit() {
    let Ok(folder) = std::env::var(LIMITED) else { return };
    let whole = FileExporter::new(&format!("{folder}/whole")).unwrap();
    whole.write(&protobuf(&[1; 40])).unwrap();
    let error = whole.write(&protobuf(&[2; 40])).unwrap_err();
    assert!(matches!(error, FileError::Io { .. }), "{error}");
    whole.write(&protobuf(&[3; 16])).unwrap();
    let own = FileExporter::new(&format!("{folder}/own-%t")).unwrap();
    own.write(&protobuf(&[4; 100])).unwrap_err();
}

#[test]
fn a_write_that_breaks_off_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    let test = "file::tests::in_a_process_with_a_file_size_limit";
    command.args(["--exact", test, "--nocapture"]).env(LIMITED, folder.path());
    // SAFETY: setrlimit and signal are async-signal-safe, as all code between fork and exec must be.
    unsafe {
        command.pre_exec(|| {
            let limit = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            match libc::setrlimit(libc::RLIMIT_FSIZE, &limit) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        });
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(names(&folder), ["whole"]);
    let expected = [&[0, 0, 0, 40][..], &[1; 40], &[0, 0, 0, 16], &[3; 16]].concat();
    assert_eq!(fs::read(folder.path().join("whole")).unwrap(), expected);
}
