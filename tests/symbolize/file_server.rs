//! A server of files over HTTP, which counts requests and may misbehave.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// An answer: the status line's status, headers, and the body.
#[derive(Clone)]
pub(crate) struct Reply {
    pub(crate) status: &'static str,
    pub(crate) headers: String,
    pub(crate) body: Vec<u8>,
    /// The length that the header declares, if it is another one.
    pub(crate) declared: Option<usize>,
}

impl Reply {
    pub(crate) fn ok(body: Vec<u8>) -> Self {
        Self { status: "200 OK", headers: String::new(), body, declared: None }
    }

    /// The first half of a file, after which the connection ends.
    pub(crate) fn cut(whole: &[u8]) -> Self {
        Self { declared: Some(whole.len()), ..Self::ok(whole[..whole.len() / 2].to_vec()) }
    }

    pub(crate) fn status(status: &'static str) -> Self {
        Self { status, headers: String::new(), body: b"<html>no</html>".to_vec(), declared: None }
    }
}

/// A request: the path, and the lines of its headers.
type Request = (String, Vec<String>);

/// A server on a free port, until the test ends.
pub(crate) struct Server {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Answers each request by `reply`, given its path. `None`: the connection stays open without an answer.
    pub(crate) fn start(reply: impl Fn(&str) -> Option<Reply> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (kept, reply) = (requests.clone(), Arc::new(reply));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, reply) = (kept.clone(), reply.clone());
                thread::spawn(move || serve(stream, &kept, &*reply));
            }
        });
        Self { url, requests }
    }

    /// Serves fixed files, and 404 for others.
    pub(crate) fn of_files(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let files: HashMap<String, Vec<u8>> = files.into_iter().collect();
        Self::start(move |path| {
            let found = files.get(path).cloned().map(Reply::ok);
            Some(found.unwrap_or_else(|| Reply::status("404 Not Found")))
        })
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.requests.lock().unwrap().iter().map(|(path, _)| path.clone()).collect()
    }

    pub(crate) fn headers(&self) -> Vec<String> {
        self.requests.lock().unwrap().iter().flat_map(|(_, headers)| headers.clone()).collect()
    }
}

fn serve(stream: TcpStream, requests: &Mutex<Vec<Request>>, reply: &dyn Fn(&str) -> Option<Reply>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let headers = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    requests.lock().unwrap().push((path.clone(), headers));
    let Some(Reply { status, headers, body, declared }) = reply(&path) else {
        // Until the client gives up.
        let _ = lines.next();
        return;
    };
    let len = declared.unwrap_or(body.len());
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {len}\r\nconnection: close\r\n{headers}\r\n");
    let mut stream = stream;
    // A client that has read enough closes the connection.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
}
