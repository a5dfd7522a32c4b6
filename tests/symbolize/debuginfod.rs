//! The client of debuginfod servers, and the store as such a server's folder: our client against Debian's
//! debuginfod, and the clients of elfutils and LLVM against our store.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::file_server::{Reply, Server};
use crate::libraries::{Library, copy, examine, folder, has, sharing_by_dwz};
use otlpprof_core::build_id::BuildId;
use otlpprof_debug_files::debuginfod::error::{ClientError, FetchError};
use otlpprof_debug_files::debuginfod::{DebuginfodClient, Settings};
use otlpprof_debug_files::store::Store;
use otlpprof_debug_files::{FileId, FileKind, Locator, ObjectFiles, ObjectIdentity, Places, Quality};
use otlpprof_testkit::commands::text;
use otlpprof_testkit::skipped::not_tested;
use otlpprof_testkit::this_build;

/// A library and the cache of a client.
struct Scene {
    directory: tempfile::TempDir,
    library: Library,
}

/// A client, which has nothing to say without the variables that ask for it.
fn connect(settings: Settings) -> Result<Option<DebuginfodClient>, ClientError> {
    DebuginfodClient::new(settings, |line| panic!("{line}"))
}

impl Scene {
    fn new(function: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let library = Library::compile(directory.path(), function, &[]);
        Self { directory, library }
    }

    fn cache(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    fn cached(&self, kind: FileKind) -> PathBuf {
        self.cache().join(self.library.id().to_string()).join(kind.name())
    }

    fn settings(&self, servers: &[&Server]) -> Settings {
        let urls = servers.iter().map(|server| server.url.clone()).collect();
        Settings { timeout: Duration::from_secs(60), ..Settings::of(urls, Some(self.cache())) }
    }

    fn client(&self, servers: &[&Server]) -> DebuginfodClient {
        connect(self.settings(servers)).unwrap().unwrap()
    }

    /// The path that a server is asked for.
    fn url_path(&self, kind: FileKind) -> String {
        format!("/buildid/{}/{}", self.library.id(), kind.name())
    }

    /// A server that has the debug file.
    fn server(&self) -> Server {
        Server::of_files([(self.url_path(FileKind::DebugInfo), fs::read(&self.library.debug).unwrap())])
    }

    fn fetch(&self, client: &DebuginfodClient) -> Result<PathBuf, FetchError> {
        client.fetch(&self.library.id(), FileKind::DebugInfo, None)
    }

    /// Asserts that nothing has entered the cache for the library.
    fn assert_nothing_cached(&self) {
        let names = fs::read_dir(self.cache().join(self.library.id().to_string()));
        let names: Vec<_> = names.into_iter().flatten().map(|entry| entry.unwrap().file_name()).collect();
        assert!(names.is_empty(), "{names:?}");
    }
}

/// Each place has the debug file. The first of the places that still has the file gives it, and the server
/// is not asked before.
#[test]
fn places_are_used_in_their_order() {
    let scene = Scene::new("ordered");
    let Library { debug, .. } = &scene.library;
    let at = |place: &str| scene.directory.path().join(place);
    let (id, server) = (scene.library.id(), scene.server());
    let folder_of_object = folder(at("machine"));
    let object = folder_of_object.join("lib.so");
    scene.library.link(&object, debug);
    let in_tree = format!("root/.build-id/{}/{}.debug", &id.to_string()[..2], &id.to_string()[2..]);
    let below_root = at("root").join(folder_of_object.strip_prefix("/").unwrap());
    let linked = Path::new(".debug").join(debug.file_name().unwrap());
    let in_order = [
        at("path/deep/any-name"),
        at(&in_tree),
        below_root.join("lib.so.debug"),
        folder_of_object.join("lib.so.debug"),
        Store::at(at("store")).path_of(&id, FileKind::DebugInfo),
        folder_of_object.join(linked),
        below_root.join(debug.file_name().unwrap()),
    ];
    for place in &in_order {
        copy(debug, place.clone());
    }
    let places = Places {
        paths: vec![at("path")],
        debug_roots: vec![at("root")],
        machine: true,
        store: Some(at("store")),
        debuginfod: Some(scene.client(&[&server])),
        cache: None,
    };
    let identity = ObjectIdentity { path: Some(text(&object).to_owned()), ..scene.library.identity() };
    let located = || Locator::new(places.clone()).locate(&identity).unwrap().debug.unwrap();
    let mut left = in_order.to_vec();
    while !left.is_empty() {
        let found = located();
        let place = left.iter().position(|place| *place == found);
        assert_eq!(place, Some(0), "{}, and there are {left:?}", found.display());
        assert!(server.paths().is_empty(), "{:?}", server.paths());
        fs::remove_file(left.remove(0)).unwrap();
    }
    assert_eq!(located(), scene.cached(FileKind::DebugInfo));
    assert_eq!(server.paths(), [scene.url_path(FileKind::DebugInfo)]);
}

#[test]
fn a_file_is_fetched_once_and_kept_as_elfutils_keeps_it() {
    let scene = Scene::new("kept");
    let server = scene.server();
    let client = scene.client(&[&server]);
    let found: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| scene.fetch(&client))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
    });
    assert!(found.iter().all(|path| *path == scene.cached(FileKind::DebugInfo)));
    assert_eq!(fs::read(&found[0]).unwrap(), fs::read(&scene.library.debug).unwrap());
    assert_eq!(server.paths(), [scene.url_path(FileKind::DebugInfo)]);
    // Another process finds it in the cache.
    assert!(scene.fetch(&scene.client(&[&server])).is_ok());
    assert_eq!(server.paths().len(), 1);
    // A file in the cache that is another's is fetched again.
    fs::write(&found[0], "<html>").unwrap();
    assert!(scene.fetch(&scene.client(&[&server])).is_ok());
    assert_eq!(fs::read(&found[0]).unwrap(), fs::read(&scene.library.debug).unwrap());
}

#[test]
fn a_miss_is_an_empty_file_for_a_while() {
    let scene = Scene::new("missed");
    let server = Server::of_files([]);
    let client = scene.client(&[&server]);
    for _ in 0..2 {
        assert!(scene.fetch(&client).unwrap_err().is_absence());
    }
    assert_eq!(fs::metadata(scene.cached(FileKind::DebugInfo)).unwrap().len(), 0);
    assert!(scene.fetch(&scene.client(&[&server])).unwrap_err().is_absence());
    assert_eq!(server.paths().len(), 1, "the miss is remembered");
    // Long enough ago, it is asked for again.
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(601);
    let file = fs::File::open(scene.cached(FileKind::DebugInfo)).unwrap();
    file.set_times(fs::FileTimes::new().set_modified(long_ago)).unwrap();
    let has_it = scene.server();
    assert!(scene.fetch(&scene.client(&[&has_it])).is_ok());
}

/// Servers that are down, misbehave, or have another's file do not keep a file from being found, and none of
/// their answers enters the cache.
#[test]
fn only_a_whole_file_of_the_right_identity_enters_the_cache() {
    let scene = Scene::new("wanted");
    let other = Library::compile(scene.directory.path(), "unwanted", &[]);
    let whole = fs::read(&scene.library.debug).unwrap();
    let bad = [
        Reply::ok(b"<!DOCTYPE html><html>Sign in</html>".to_vec()),
        Reply::ok(Vec::new()),
        Reply::ok(fs::read(&other.debug).unwrap()),
        Reply::ok(whole[..whole.len() / 2].to_vec()),
        Reply::cut(&whole),
        Reply::status("500 Internal Server Error"),
        Reply::status("403 Forbidden"),
    ];
    let bad: Vec<Server> = bad.map(|reply| Server::start(move |_| Some(reply.clone()))).into();
    for server in &bad {
        let error = scene.fetch(&scene.client(&[server])).unwrap_err();
        let shown = error.to_string();
        assert!(!error.is_absence() && shown.contains(&server.url) && !shown.contains('\n'), "{shown}");
        scene.assert_nothing_cached();
    }
    let good = scene.server();
    // A server that never answers, and a port that nobody listens at.
    let silent = Server::start(|_| None);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut settings = scene.settings(&bad.iter().chain([&silent, &good]).collect::<Vec<_>>());
    settings.urls.insert(0, format!("http://{closed}"));
    let client = connect(settings).unwrap().unwrap();
    assert_eq!(fs::read(scene.fetch(&client).unwrap()).unwrap(), whole);
}

#[test]
fn a_silent_server_is_given_up() {
    let scene = Scene::new("silent");
    let silent = Server::start(|_| None);
    let settings = Settings { timeout: Duration::from_secs(1), retries: 0, ..scene.settings(&[&silent]) };
    let client = connect(settings).unwrap().unwrap();
    assert!(!scene.fetch(&client).unwrap_err().is_absence());
    scene.assert_nothing_cached();
}

/// Regression: each file of each object waited for a silent server, and retries did so too.
#[test]
fn a_silent_server_is_not_asked_again_at_once() {
    let scene = Scene::new("spared");
    let silent = Server::start(|_| None);
    let settings = Settings { timeout: Duration::from_secs(1), retries: 2, ..scene.settings(&[&silent]) };
    let client = connect(settings).unwrap().unwrap();
    for kind in [FileKind::DebugInfo, FileKind::Executable] {
        let error = client.fetch(&scene.library.id(), kind, None).unwrap_err();
        assert!(!error.is_absence() && error.to_string().contains(&silent.url), "{error}");
    }
    // A busy machine may not have read the one request.
    assert!(silent.paths().len() <= 1, "{:?}", silent.paths());
}

/// Regression: servers were named as if they had been asked.
#[test]
fn a_miss_that_is_remembered_is_the_reason() {
    let scene = Scene::new("remembered");
    let server = Server::of_files([]);
    let miss = scene.cached(FileKind::DebugInfo);
    let reason = || {
        let places = Places { debuginfod: Some(scene.client(&[&server])), ..Places::default() };
        Locator::new(places).locate(&scene.library.identity()).unwrap_err().to_string()
    };
    assert!(!reason().contains(text(&miss)));
    let why = format!("(not asked, because {} says that no server had the file)", miss.display());
    assert!(reason().contains(&why), "{}", reason());
}

#[test]
fn a_transfer_is_given_up_after_the_time_that_the_variables_allow() {
    let scene = Scene::new("slow");
    let silent = Server::start(|_| None);
    let max_time = Some(Duration::from_secs(1));
    let settings = Settings { max_time, retries: 0, timeout: Duration::ZERO, ..scene.settings(&[&silent]) };
    let client = connect(settings).unwrap().unwrap();
    let error = scene.fetch(&client).unwrap_err();
    assert!(!error.is_absence() && error.to_string().contains(&silent.url), "{error}");
    scene.assert_nothing_cached();
}

#[test]
fn broken_transfers_are_retried_as_often_as_the_variables_say() {
    let scene = Scene::new("broken");
    let whole = fs::read(&scene.library.debug).unwrap();
    let cut = Reply::cut(&whole);
    for retries in [0, 2] {
        let (cut, whole, asked) = (cut.clone(), whole.clone(), AtomicUsize::new(0));
        // The last try succeeds.
        let server = Server::start(move |_| {
            let is_last = asked.fetch_add(1, Ordering::Relaxed) == 2;
            Some(if is_last { Reply::ok(whole.clone()) } else { cut.clone() })
        });
        let client = connect(Settings { retries, ..scene.settings(&[&server]) }).unwrap().unwrap();
        let fetched = scene.fetch(&client);
        assert_eq!(
            (fetched.is_ok(), server.paths().len() as u32),
            (retries == 2, retries + 1),
            "{fetched:?}"
        );
    }
    // An answer that is no file is none the next time either.
    fs::remove_file(scene.cached(FileKind::DebugInfo)).unwrap();
    let refusing = Server::start(|_| Some(Reply::status("403 Forbidden")));
    assert!(scene.fetch(&scene.client(&[&refusing])).is_err());
    assert_eq!(refusing.paths().len(), 1);
}

/// The cache's folder says how long files are kept, as elfutils' client reads it.
#[test]
fn files_that_nobody_uses_leave_the_cache() {
    let scene = Scene::new("unused");
    let server = scene.server();
    let kept = scene.fetch(&scene.client(&[&server])).unwrap();
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(1000);
    let age = |path: &Path| {
        let times = fs::FileTimes::new().set_accessed(long_ago).set_modified(long_ago);
        fs::File::open(path).unwrap().set_times(times).unwrap();
    };
    let folder = |name: &str| scene.cache().join(name);
    let unused = folder(&"ab".repeat(20)).join("debuginfo");
    let other = folder("somebodys").join("debuginfo");
    for path in [&unused, &other] {
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(path, "content").unwrap();
        age(path);
    }
    // Before the cache misses a file, it is cleaned.
    let missed = FileId::parse(&"cd".repeat(20)).unwrap();
    let clean = || {
        let _ = fs::remove_dir_all(folder(&missed.to_string()));
        let fetched = scene.client(&[&server]).fetch(&missed, FileKind::DebugInfo, None);
        assert!(fetched.unwrap_err().is_absence());
    };
    // Not yet: a day must pass between two cleanings.
    clean();
    assert!(unused.exists());
    fs::write(folder("cache_clean_interval_s"), "500").unwrap();
    // Not yet: files are kept for a week.
    age(&folder("cache_clean_interval_s"));
    clean();
    assert!(unused.exists());
    fs::write(folder("max_unused_age_s"), "500").unwrap();
    age(&folder("cache_clean_interval_s"));
    clean();
    assert!(!unused.exists() && !unused.parent().unwrap().exists());
    assert!(kept.exists() && other.exists(), "a file in use, and one that is not the cache's");
}

/// Regression: the objects of a profile were fetched one after another, so that slow servers' times added up.
#[test]
fn several_objects_are_fetched_at_once() {
    const OBJECTS: usize = 6;
    // The number of requests that have come, and whether all came before one was answered.
    let come = Arc::new((Mutex::new(0), Condvar::new()));
    let together = Arc::new(AtomicUsize::new(0));
    let (waiting, counted) = (come.clone(), together.clone());
    let server = Server::start(move |path| {
        if path.ends_with("debuginfo") {
            let (count, changed) = &*waiting;
            let mut count = count.lock().unwrap();
            *count += 1;
            changed.notify_all();
            let longest = Duration::from_secs(30);
            let (_guard, gave_up) =
                changed.wait_timeout_while(count, longest, |count| *count < OBJECTS).unwrap();
            counted.fetch_add(usize::from(!gave_up.timed_out()), Ordering::Relaxed);
        }
        Some(Reply::status("404 Not Found"))
    });
    let scene = Scene::new("several");
    let places = Places { debuginfod: Some(scene.client(&[&server])), ..Places::default() };
    let identity = |number: usize| ObjectIdentity {
        build_id: BuildId::from_hex(&format!("{number:040x}")),
        ..ObjectIdentity::default()
    };
    let identities: Vec<_> = (0..OBJECTS).map(identity).collect();
    let located = Locator::new(places).locate_all(&identities.iter().collect::<Vec<_>>());
    assert!(located.iter().all(Result::is_err), "{located:?}");
    assert_eq!(together.load(Ordering::Relaxed), OBJECTS, "answered alone");
}

#[test]
fn sizes_headers_and_redirects_are_as_the_variables_say() {
    let scene = Scene::new("bounded");
    let len = fs::metadata(&scene.library.debug).unwrap().len();
    let server = scene.server();
    let small = Settings { max_size: len - 1, ..scene.settings(&[&server]) };
    let error = scene.fetch(&connect(small).unwrap().unwrap()).unwrap_err().to_string();
    assert!(error.contains(&len.to_string()), "{error}");
    // A server behind another one, which redirects.
    let to = format!("location: {}{}\r\n", server.url, scene.url_path(FileKind::DebugInfo));
    let redirect = Reply { headers: to, ..Reply::status("302 Found") };
    let front = Server::start(move |_| Some(redirect.clone()));
    assert!(scene.fetch(&scene.client(&[&front])).is_ok());
    // Headers of the user's go to the server itself, and nowhere else.
    fs::remove_file(scene.cached(FileKind::DebugInfo)).unwrap();
    let headers = scene.directory.path().join("headers");
    fs::write(&headers, "Authorization: Bearer secret\n").unwrap();
    let with_headers =
        |server: &Server| Settings { headers_file: Some(headers.clone()), ..scene.settings(&[server]) };
    let before = server.paths().len();
    let client = connect(with_headers(&front)).unwrap().unwrap();
    assert!(scene.fetch(&client).is_err());
    assert_eq!(server.paths().len(), before);
    let client = connect(with_headers(&server)).unwrap().unwrap();
    assert!(scene.fetch(&client).is_ok());
    assert!(server.headers().iter().any(|line| line.eq_ignore_ascii_case("authorization: Bearer secret")));
}

#[test]
fn servers_that_cannot_be_any_are_a_mistake() {
    let scene = Scene::new("mistaken");
    for url in ["debuginfod.example", "ftp://x", "http://user:secret@host", "file://folder", "file://%zz"] {
        let settings = Settings::of(vec![url.to_owned()], Some(scene.cache()));
        let error = connect(settings).unwrap_err().to_string();
        assert!(!error.contains("secret") && !error.contains('\n'), "{error}");
    }
    // Regression: the advice was the port of an OTLP backend.
    let settings = Settings::of(vec!["localhost:8002".to_owned()], Some(scene.cache()));
    let error = connect(settings).unwrap_err().to_string();
    assert!(error.starts_with("localhost:8002: ") && error.contains("http://HOST:8002"), "{error}");
    assert!(connect(Settings::of(Vec::new(), None)).unwrap().is_none());
    assert!(connect(Settings::of(vec!["http://h".to_owned()], None)).is_err());
}

#[test]
fn a_url_of_a_folder_is_a_server() {
    let scene = Scene::new("filed");
    let store = store_of(&scene, &[&scene.library.debug]);
    let with_space = scene.directory.path().join("a store");
    std::os::unix::fs::symlink(&store, &with_space).unwrap();
    let escaped = text(&with_space).replace(' ', "%20");
    for url in [format!("file://{}", text(&store)), format!("file://localhost{escaped}/")] {
        let cache = tempfile::tempdir().unwrap();
        let client = connect(Settings::of(vec![url], Some(cache.path().to_owned()))).unwrap().unwrap();
        let found = scene.fetch(&client).unwrap();
        assert!(found.starts_with(cache.path()));
        assert_eq!(fs::read(found).unwrap(), fs::read(&scene.library.debug).unwrap());
        let absent = client.fetch(&scene.library.id(), FileKind::Executable, None);
        assert!(absent.unwrap_err().is_absence());
    }
    // The folder is like any server: another object's file is not used.
    let other = Library::compile(scene.directory.path(), "unfiled", &[]);
    let place = store.join(&scene.url_path(FileKind::DebugInfo)[1..]);
    fs::remove_file(&place).unwrap();
    copy(&other.debug, place);
    let settings = Settings::of(vec![format!("file://{}", text(&store))], Some(scene.cache()));
    assert!(!scene.fetch(&connect(settings).unwrap().unwrap()).unwrap_err().is_absence());
    scene.assert_nothing_cached();
}

/// Runs `symbols check` on a profile of the library. Returns standard error.
fn narrated(scene: &Scene, servers: &[&Server], variables: &[&str]) -> String {
    let profile = scene.directory.path().join("profile.folded");
    fs::write(&profile, format!("{}.<remote>(0x1000) 1\n", scene.library.id())).unwrap();
    let urls: Vec<_> = servers.iter().map(|server| &*server.url).collect();
    let cache = tempfile::tempdir().unwrap();
    let mut command = assert_cmd::Command::new(this_build::command());
    command.args(["symbols", "check", "--not-this-machine", "--store", "/no/store", text(&profile)]);
    command.env("OTLPPROF_CACHE", cache.path()).env("DEBUGINFOD_CACHE_PATH", cache.path());
    command.env_remove("DEBUGINFOD_PROGRESS").env_remove("DEBUGINFOD_VERBOSE");
    command.env("DEBUGINFOD_URLS", urls.join(" ")).envs(variables.iter().map(|name| (name, "1")));
    let output = command.assert().success().get_output().clone();
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn downloads_and_answers_are_shown_if_the_variables_say_so() {
    let scene = Scene::new("narrated");
    let (without, with) = (Server::of_files([]), scene.server());
    let servers = [&without, &with];
    assert_eq!(narrated(&scene, &servers, &[]), "");
    let len = fs::metadata(&scene.library.debug).unwrap().len();
    let path = scene.url_path(FileKind::DebugInfo);
    let shown = narrated(&scene, &servers, &["DEBUGINFOD_PROGRESS"]);
    assert_eq!(shown, format!("Downloading from {}{path} 0/{len}\n", with.url));
    let shown = narrated(&scene, &[&with], &["DEBUGINFOD_VERBOSE"]);
    assert!(shown.contains(&format!("debuginfod: {}{path}: downloaded\n", with.url)), "{shown}");
    let shown = narrated(&scene, &[&with, &with], &["DEBUGINFOD_VERBOSE"]);
    assert!(!shown.contains("Downloading"), "{shown}");
}

#[test]
fn the_locator_asks_servers_only_for_what_is_better() {
    let scene = Scene::new("asked");
    let server = Server::of_files([
        (scene.url_path(FileKind::DebugInfo), fs::read(&scene.library.debug).unwrap()),
        (scene.url_path(FileKind::Executable), fs::read(&scene.library.stripped).unwrap()),
    ]);
    let here = folder(scene.directory.path().join("here"));
    let places = |path: &Path| Places {
        paths: vec![path.to_owned()],
        debuginfod: Some(scene.client(&[&server])),
        ..Places::default()
    };
    let found = Locator::new(places(&here)).locate(&scene.library.identity()).unwrap();
    assert_eq!(found.debug, Some(scene.cached(FileKind::DebugInfo)));
    assert_eq!(server.paths(), [scene.url_path(FileKind::DebugInfo)]);
    copy(&scene.library.debug, here.join("x"));
    let found = Locator::new(places(&here)).locate(&scene.library.identity()).unwrap();
    assert_eq!((found.debug, found.quality), (Some(here.join("x")), Quality::DebugInfo));
    assert_eq!(server.paths().len(), 1);
}

/// A library's debug file that needs a supplementary file, and servers that have the debug file.
struct SupplementaryScene {
    directory: tempfile::TempDir,
    library: Library,
    supplementary: PathBuf,
}

impl SupplementaryScene {
    /// A scene of the files that dwz makes with these options.
    fn new(options: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let ([library, _], supplementary) = sharing_by_dwz(directory.path(), options);
        Self { directory, library, supplementary }
    }

    /// The paths of the debug file and of the supplementary file at a server.
    fn url_paths(&self) -> [String; 2] {
        let of = |id: FileId| format!("/buildid/{id}/debuginfo");
        [of(self.library.id()), of(FileId::of(&examine(&self.supplementary).build_id.unwrap()).unwrap())]
    }

    /// A server that has the debug file, and answers so when it is asked for the supplementary file.
    fn server(&self, supplementary: Reply) -> Server {
        let [debug, shared] = self.url_paths();
        let whole = fs::read(&self.library.debug).unwrap();
        Server::start(move |path| {
            Some(match path {
                _ if path == debug => Reply::ok(whole.clone()),
                _ if path == shared => supplementary.clone(),
                _ => Reply::status("404 Not Found"),
            })
        })
    }

    fn locate(&self, server: &Server, cache: &str) -> ObjectFiles {
        let settings = Settings::of(vec![server.url.clone()], Some(self.directory.path().join(cache)));
        let places = Places { debuginfod: connect(settings).unwrap(), ..Places::default() };
        Locator::new(places).locate(&self.library.identity()).unwrap()
    }
}

#[test]
fn supplementary_files_are_fetched() {
    if !has(&["dwz"]) {
        return;
    }
    // With `.gnu_debugaltlink`, and with `.debug_sup` of DWARF 5.
    for options in [&[][..], &["-5"]] {
        let scene = SupplementaryScene::new(options);
        let whole = fs::read(&scene.supplementary).unwrap();
        let server = scene.server(Reply::ok(whole.clone()));
        let found = scene.locate(&server, "cache");
        assert_eq!(fs::read(found.supplementary.expect("a supplementary file")).unwrap(), whole);
        assert_eq!((found.problems, found.quality), (Vec::new(), Quality::DebugInfo));
        assert_eq!(server.paths(), scene.url_paths());
    }
}

/// Regression: the reason why a server had not given a supplementary file was discarded, and a file with code
/// was asked for in its place.
#[test]
fn servers_that_fail_to_give_a_supplementary_file_are_named() {
    if !has(&["dwz"]) {
        return;
    }
    let scene = SupplementaryScene::new(&[]);
    let [debug, shared] = scene.url_paths();
    let id = shared.split('/').nth(2).unwrap();
    let cut = Reply::cut(&fs::read(&scene.supplementary).unwrap());
    for (number, (reply, why)) in [
        (Reply::status("500 Internal Server Error"), Some("500")),
        (Reply::ok(b"<!DOCTYPE html><html>Sign in</html>".to_vec()), Some("not an ELF file")),
        (Reply::ok(fs::read(&scene.library.debug).unwrap()), Some("not used: build-id")),
        (cut, Some("")),
        (Reply::status("404 Not Found"), None),
    ]
    .into_iter()
    .enumerate()
    {
        let server = scene.server(reply);
        let found = scene.locate(&server, &format!("cache{number}"));
        let [problem] = &found.problems[..] else { panic!("{:?}", found.problems) };
        let needed = "needs a supplementary file, which is not found: ../.dwz/common.debug with build-id ";
        assert!(problem.contains(&format!("{needed}{id}")) && !problem.contains('\n'), "{problem}");
        match why {
            Some(why) => assert!(problem.contains(&server.url) && problem.contains(why), "{problem}"),
            None => assert!(problem.ends_with(id), "{problem}"),
        }
        assert_eq!(found.supplementary, None);
        let mut asked = server.paths();
        asked.dedup();
        assert_eq!(asked, [debug.clone(), shared.clone()]);
    }
    // The command prints the line.
    let server = scene.server(Reply::status("500 Internal Server Error"));
    let profile = scene.directory.path().join("profile.folded");
    fs::write(&profile, format!("{}.<remote>(0x1000) 1\n", scene.library.id())).unwrap();
    let mut command = assert_cmd::Command::new(this_build::command());
    command.args(["symbolize", "--not-this-machine", "--store", "/no/store", text(&profile), "-o"]);
    command.arg(scene.directory.path().join("named.otlp"));
    let cache = scene.directory.path().join("cache-of-command");
    command.env("OTLPPROF_CACHE", &cache).env("DEBUGINFOD_CACHE_PATH", &cache);
    let output = command.env("DEBUGINFOD_URLS", &server.url).assert().success().get_output().clone();
    let shown = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<_> = shown.lines().filter(|line| line.contains(&server.url)).collect();
    assert!(matches!(lines[..], [line] if line.contains("supplementary") && line.contains("500")), "{shown}");
}

/// Runs `symbols add`, and returns the store's folder.
fn store_of(scene: &Scene, files: &[&Path]) -> PathBuf {
    let store = scene.directory.path().join("store");
    let mut command = assert_cmd::Command::new(this_build::command());
    command.args(["symbols", "add", "--store", text(&store)]).args(files).assert().success();
    store
}

/// Serves a folder as any static file server does.
fn static_server(root: PathBuf) -> Server {
    Server::start(move |path| {
        let is_plain = path.starts_with('/') && !path.contains("..") && !path.contains('%');
        let content = is_plain.then(|| fs::read(root.join(&path[1..])).ok()).flatten();
        Some(content.map_or_else(|| Reply::status("404 Not Found"), Reply::ok))
    })
}

#[test]
fn clients_of_elfutils_and_llvm_retrieve_from_the_store() {
    if !has(&["debuginfod-find", "llvm-debuginfod-find-19"]) {
        return;
    }
    let scene = Scene::new("served");
    let store = store_of(&scene, &[&scene.library.debug, &scene.library.stripped]);
    let server = static_server(store);
    let id = scene.library.id().to_string();
    let run = |program: &str, arguments: &[&str], cache: &str| {
        let mut command = Command::new(program);
        command.args(arguments).env("DEBUGINFOD_URLS", &server.url);
        command.env("DEBUGINFOD_CACHE_PATH", scene.directory.path().join(cache));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    for (kind, file) in
        [(FileKind::DebugInfo, &scene.library.debug), (FileKind::Executable, &scene.library.stripped)]
    {
        let expected = fs::read(file).unwrap();
        let path = run("debuginfod-find", &[kind.name(), &id], "elfutils");
        let path = String::from_utf8(path).unwrap();
        assert_eq!(fs::read(path.trim()).unwrap(), expected, "debuginfod-find {}", kind.name());
        let option = format!("--{}", kind.name());
        let dumped = run("llvm-debuginfod-find-19", &[&option, "--dump", &id], "llvm");
        assert_eq!(dumped, expected, "llvm-debuginfod-find {}", kind.name());
    }
    // The cache is elfutils' own: what its client has fetched is not fetched again, and the reverse.
    let asked = server.paths().len();
    let settings =
        |cache: &str| Settings::of(vec![server.url.clone()], Some(scene.directory.path().join(cache)));
    let ours = connect(settings("elfutils")).unwrap().unwrap();
    assert!(scene.fetch(&ours).is_ok());
    assert_eq!(server.paths().len(), asked);
    let ours = connect(settings("shared")).unwrap().unwrap();
    assert!(scene.fetch(&ours).is_ok());
    let missing = FileId::parse("00112233").unwrap();
    assert!(ours.fetch(&missing, FileKind::DebugInfo, None).unwrap_err().is_absence());
    let asked = server.paths().len();
    run("debuginfod-find", &["debuginfo", &id], "shared");
    let mut command = Command::new("debuginfod-find");
    command.args(["debuginfo", "00112233"]).env("DEBUGINFOD_URLS", &server.url);
    command.env("DEBUGINFOD_CACHE_PATH", scene.directory.path().join("shared"));
    assert!(!command.output().unwrap().status.success());
    assert_eq!(server.paths().len(), asked, "elfutils' client reads our cache, misses included");
}

/// Debian's debuginfod, ended with the test.
struct Debuginfod(Child);

impl Drop for Debuginfod {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn our_client_retrieves_from_debians_debuginfod() {
    if !has(&["debuginfod"]) {
        return;
    }
    let scene = Scene::new("scanned");
    let files = folder(scene.directory.path().join("files"));
    copy(&scene.library.debug, files.join("scanned.debug"));
    copy(&scene.library.stripped, files.join("scanned.so"));
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let database = scene.directory.path().join("database");
    let mut command = Command::new("debuginfod");
    command.args(["-d", text(&database), "-p", &port.to_string(), "-F", text(&files)]);
    command.env_remove("DEBUGINFOD_URLS").env("HOME", scene.directory.path());
    let log = fs::File::create(scene.directory.path().join("log")).unwrap();
    let child = command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
    let mut server = Debuginfod(child);
    let settings = Settings::of(vec![format!("http://127.0.0.1:{port}")], Some(scene.cache()));
    // It scans in the background: until it has, each client is a new one, without the miss.
    let mut last = String::new();
    for _ in 0..300 {
        let client = connect(settings.clone()).unwrap().unwrap();
        let places = Places { debuginfod: Some(client), ..Places::default() };
        let identity: ObjectIdentity = scene.library.identity();
        match Locator::new(places).locate(&identity) {
            Ok(found) if found.quality == Quality::DebugInfo => {
                let debug = fs::read(found.debug.unwrap()).unwrap();
                assert_eq!(debug, fs::read(&scene.library.debug).unwrap());
                let client = connect(settings).unwrap().unwrap();
                let executable = client.fetch(&scene.library.id(), FileKind::Executable, None).unwrap();
                assert_eq!(fs::read(executable).unwrap(), fs::read(&scene.library.stripped).unwrap());
                return;
            }
            Ok(found) => last = format!("{:?}", found.problems),
            Err(error) => last = error.to_string(),
        }
        if let Some(status) = server.0.try_wait().unwrap() {
            let log = fs::read_to_string(scene.directory.path().join("log")).unwrap_or_default();
            // The machine may have no libmicrohttpd port to spare, for which the client is not to blame.
            not_tested(&format!("Debian's debuginfod, which ended with {status}: {log}"));
            return;
        }
        let _ = fs::remove_dir_all(scene.cache());
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("debuginfod has not served the file: {last}");
}
