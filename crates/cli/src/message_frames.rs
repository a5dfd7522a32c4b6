//! Messages with length prefixes, out of bytes that arrive part by part.

/// Bytes of a length prefix.
const PREFIX: usize = 4;
/// The longest message. The agent's have at most a quarter of it.
const LONGEST: usize = 256 << 20;

/// Bytes that have arrived, and of which messages are made.
#[derive(Debug, Default)]
pub(super) struct MessageFrames {
    bytes: Vec<u8>,
    /// The bytes that have been taken.
    at: usize,
}

/// A length that no message has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of {0} bytes is none of the agent's")]
pub(super) struct TooLong(usize);

impl MessageFrames {
    /// Adds bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the next whole message, without its length.
    pub(super) fn take_next(&mut self) -> Result<Option<Vec<u8>>, TooLong> {
        let Some((prefix, rest)) = self.bytes[self.at..].split_first_chunk::<PREFIX>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*prefix) as usize;
        if length > LONGEST {
            return Err(TooLong(length));
        }
        let message = rest.get(..length).map(<[u8]>::to_vec);
        if message.is_some() {
            self.at += PREFIX + length;
        }
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_whole_however_their_bytes_arrive() {
        let all = b"\0\0\0\x03abc\0\0\0\0\0\0\0\x02de";
        for part in 1..=all.len() {
            let (mut frames, mut messages) = (MessageFrames::default(), Vec::new());
            for bytes in all.chunks(part) {
                frames.push(bytes);
                while let Some(message) = frames.take_next().unwrap() {
                    messages.push(message);
                }
            }
            assert_eq!(messages, [&b"abc"[..], b"", b"de"], "{part}");
        }
    }

    #[test]
    fn a_length_that_no_message_has_is_an_error() {
        let mut frames = MessageFrames::default();
        frames.push(b"GET / HTTP");
        assert!(frames.take_next().is_err());
    }
}
