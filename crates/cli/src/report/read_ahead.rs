//! Messages of files that other threads read, check and prepare while the caller takes them in order.
//!
//! One thread reads the files. Each message goes to one of several threads, which checks and prepares the
//! message. The caller gets the results in the order of the messages, so that nothing depends on the number
//! of threads.

use std::sync::mpsc::{Receiver, channel};
use std::thread;

use anyhow::anyhow;
use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_workers::{Workers, processors};
use parking_lot::{Condvar, Mutex};

use super::messages::ReadMessage;
use super::profile_file::ProfileFile;

/// The most bytes of messages between the thread that reads and the caller, beyond [`FEW`] messages.
const MOST_BYTES: usize = 8 << 20;
/// The most messages between them.
const MOST: usize = 64;
/// The number of messages that may be there however large they are: one that is prepared, and one that the
/// caller takes.
const FEW: usize = 2;
/// The most threads that prepare messages: the caller takes about as long as a few of them.
const MOST_THREADS: usize = 8;

/// A message that is being prepared, and its size in bytes.
struct Pending<P> {
    prepared: Receiver<anyhow::Result<P>>,
    size: usize,
}

/// Calls `take` with each message of the files, prepared by `prepare`, in order, until a message is broken.
/// Returns a line for each damaged recording.
pub(crate) fn each_message_ahead<P: Send>(
    files: &[ProfileFile],
    prepare: impl Fn(EncodedMessage) -> P + Sync,
    take: impl FnMut(P),
) -> anyhow::Result<Vec<String>> {
    each_message_by(processors(MOST_THREADS), files, prepare, take)
}

/// As [`each_message_ahead`], with this number of threads that prepare messages.
fn each_message_by<P: Send>(
    threads: usize,
    files: &[ProfileFile],
    prepare: impl Fn(EncodedMessage) -> P + Sync,
    mut take: impl FnMut(P),
) -> anyhow::Result<Vec<String>> {
    let room = &Room::default();
    let check = |(file, message): (&ProfileFile, ReadMessage)| file.check(message).map(&prepare);
    let (append, order) = channel::<Pending<P>>();
    thread::scope(|scope| {
        // Also if `take` panics, the other threads end.
        let _closed = CloseAtEnd(room);
        let workers = Workers::start(scope, threads, &check)?;
        let reader = scope.spawn(move || {
            let mut damage = Vec::new();
            for file in files {
                damage.extend(file.each_read(&mut |message| {
                    let size = message.size();
                    anyhow::ensure!(room.enter(size), "the messages are no longer wanted");
                    // The caller is gone after an error.
                    let _ = append.send(Pending { prepared: workers.give((file, message)), size });
                    Ok(())
                })?);
            }
            Ok(damage)
        });
        for Pending { prepared, size } in order {
            let prepared = prepared.recv().map_err(|_| anyhow!("a thread that reads has panicked"))?;
            take(prepared?);
            room.leave(size);
        }
        reader.join().map_err(|_| anyhow!("the thread that reads has panicked"))?
    })
}

/// The room for messages between the thread that reads and the caller.
#[derive(Default)]
struct Room {
    taken: Mutex<Taken>,
    changed: Condvar,
}

#[derive(Default)]
struct Taken {
    messages: usize,
    bytes: usize,
    is_closed: bool,
}

impl Room {
    /// Waits until there is room for a message of this size. Returns whether it is still wanted.
    fn enter(&self, size: usize) -> bool {
        let mut taken = self.taken.lock();
        self.changed.wait_while(&mut taken, |taken| {
            let is_full = taken.bytes + size > MOST_BYTES || taken.messages >= MOST;
            !taken.is_closed && taken.messages >= FEW && is_full
        });
        taken.messages += 1;
        taken.bytes += size;
        !taken.is_closed
    }

    fn leave(&self, size: usize) {
        let mut taken = self.taken.lock();
        taken.messages -= 1;
        taken.bytes -= size;
        self.changed.notify_all();
    }
}

/// Ends all waiting for room when it is dropped.
struct CloseAtEnd<'r>(&'r Room);

impl Drop for CloseAtEnd<'_> {
    fn drop(&mut self) {
        self.0.taken.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message, after its length, with a dictionary of so many strings.
    fn message(strings: u8) -> Vec<u8> {
        let table = [0x2a, 0].repeat(strings.into());
        [&[0, 0, 0, 2 * strings + 2, 0x12, 2 * strings][..], &table].concat()
    }

    /// The files' messages, by index and number of strings, as so many threads prepare them, and the error.
    fn read(threads: usize, files: &[ProfileFile]) -> (Vec<(usize, usize)>, Option<String>) {
        let mut taken = Vec::new();
        let prepare = |message: EncodedMessage| (message.index, message.tables().strings().len());
        let read = each_message_by(threads, files, prepare, |prepared| taken.push(prepared));
        (taken, read.err().map(|error| error.to_string()))
    }

    #[test]
    fn messages_come_in_order_up_to_the_first_broken_one() {
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str, messages: Vec<Vec<u8>>| {
            let path = folder.path().join(name);
            std::fs::write(&path, messages.concat()).unwrap();
            ProfileFile::open(&path).unwrap()
        };
        let whole = || (0..50).map(message).collect::<Vec<_>>();
        let files = [open("one", whole()), open("two", whole())];
        let expected: Vec<_> = (0..50).chain(0..50).map(|number| (number, number)).collect();
        // The eighth message has a string that is no UTF-8. The file ends within a message.
        let mut broken = whole();
        broken[7] = vec![0, 0, 0, 5, 0x12, 3, 0x2a, 1, 0xff];
        broken.push(vec![0, 0, 0, 9]);
        let broken = [open("three", whole()), open("four", broken)];
        for threads in [1, 2, 5] {
            assert_eq!(read(threads, &files), (expected.clone(), None), "{threads}");
            let (taken, error) = read(threads, &broken);
            assert_eq!(taken, expected[..57], "{threads}");
            assert!(error.is_some_and(|error| error.contains("four: ") && error.contains("(message 7, ")));
        }
    }
}
