//! Recognises a peer's protocol by the first bytes that the peer sends. An HTTP client only reports that the
//! bytes are no answer, but a user has to know why.

use std::sync::Arc;

use parking_lot::Mutex;
use ureq::Error;
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, NextTimeout, Transport};

/// A protocol that a connection's first bytes show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// An answer of HTTP/1.
    Http,
    /// A record of TLS: an alert, or a handshake.
    Tls,
    /// A frame of HTTP/2. gRPC servers send one before they receive a request.
    Http2,
}

impl Protocol {
    fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [b'H', b'T', b'T', b'P', b'/', ..] => Some(Self::Http),
            // RFC 8446, section 5.1: an alert or a handshake record, and the major version of TLS and SSL 3.
            [0x15 | 0x16, 3, ..] => Some(Self::Tls),
            // RFC 9113, section 4.1: a SETTINGS or GOAWAY frame, shorter than 64 KiB, on stream 0.
            [0, _, _, 4 | 7, _, 0, 0, 0, 0, ..] => Some(Self::Http2),
            _ => None,
        }
    }
}

/// The protocol of the latest connection.
#[derive(Clone, Debug, Default)]
pub(super) struct PeerProtocol(Arc<Mutex<Option<Protocol>>>);

impl PeerProtocol {
    pub(super) fn protocol(&self) -> Option<Protocol> {
        *self.0.lock()
    }
}

/// Adds a [`WatchedConnection`] layer to the connections of the preceding connector.
#[derive(Debug)]
pub(super) struct WatchConnector(pub(super) PeerProtocol);

impl<In: Transport> Connector<In> for WatchConnector {
    type Out = WatchedConnection<In>;

    fn connect(&self, _: &ConnectionDetails<'_>, chained: Option<In>) -> Result<Option<Self::Out>, Error> {
        *self.0.0.lock() = None;
        Ok(chained.map(|inner| WatchedConnection { inner, seen: self.0.clone(), is_fresh: true }))
    }
}

/// A connection whose first received bytes are inspected.
#[derive(Debug)]
pub(super) struct WatchedConnection<T> {
    inner: T,
    seen: PeerProtocol,
    is_fresh: bool,
}

impl<T: Transport> WatchedConnection<T> {
    fn inspect(&mut self) {
        if self.is_fresh {
            self.is_fresh = false;
            *self.seen.0.lock() = Protocol::of(self.inner.buffers().input());
        }
    }
}

impl<T: Transport> Transport for WatchedConnection<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.inner.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let result = self.inner.transmit_output(amount, timeout);
        // A peer that closes a connection in the middle of a request may have sent the reason before. The
        // connection has ended, so reading does not wait.
        if let Err(Error::Io(error)) = &result
            && matches!(error.kind(), std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset)
            && self.is_fresh
            && (!self.inner.buffers().input().is_empty()
                || self.inner.await_input(timeout).is_ok_and(|is_there| is_there))
        {
            self.inspect();
        }
        result
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let is_there = self.inner.await_input(timeout)?;
        if is_there {
            self.inspect();
        }
        Ok(is_there)
    }

    fn is_open(&mut self) -> bool {
        self.inner.is_open()
    }

    fn is_tls(&self) -> bool {
        self.inner.is_tls()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_identify_a_protocol() {
        for (bytes, protocol) in [
            (&b"HTTP/1.0 400 Bad Request\r\n"[..], Some(Protocol::Http)),
            (&[0x15, 3, 1, 0, 2, 2, 70], Some(Protocol::Tls)),
            (&[0x16, 3, 3, 0, 90], Some(Protocol::Tls)),
            // The SETTINGS frame that Go's gRPC server sends first.
            (&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0x40, 0], Some(Protocol::Http2)),
            (&[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0], Some(Protocol::Http2)),
            (&[0, 0, 6, 4, 0, 0, 0, 0], None),
            (b"220 mail.example.com ESMTP", None),
            (b"", None),
        ] {
            assert_eq!(Protocol::of(bytes), protocol, "{bytes:?}");
        }
    }
}
