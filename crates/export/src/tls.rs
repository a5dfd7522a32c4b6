//! Connections over TLS, and advice for connections that fail.
//!
//! The HTTP client's own connector accepts no certificate verifier other than rustls's, and [`super::trust`]
//! adds one.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConfig, ClientConnection, StreamOwned};
use ureq::Error;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport, TransportAdapter,
};

/// Adds TLS to the connections of the preceding connector, if the URL says `https`.
pub(super) struct TlsConnector(pub(super) Arc<ClientConfig>);

impl fmt::Debug for TlsConnector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TlsConnector")
    }
}

impl<In: Transport> Connector<In> for TlsConnector {
    type Out = Either<In, TlsTransport>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        let Some(transport) = chained else { return Ok(None) };
        if !details.needs_tls() || transport.is_tls() {
            return Ok(Some(Either::A(transport)));
        }
        let host = details.uri.host().unwrap_or_default();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let name = ServerName::try_from(host.to_owned());
        let name =
            name.map_err(|_| Error::Tls("the endpoint's host is not a name that a certificate can have"))?;
        let connection = ClientConnection::new(self.0.clone(), name).map_err(of_rustls)?;
        let mut stream = StreamOwned::new(
            connection,
            TransportAdapter::new(transport.boxed(), details.current_time.clone()),
        );
        stream.sock.set_timeout(details.timeout);
        stream.conn.complete_io(&mut stream.sock).map_err(within_handshake)?;
        let (input, output) = (details.config.input_buffer_size(), details.config.output_buffer_size());
        Ok(Some(Either::B(TlsTransport { buffers: LazyBuffers::new(input, output), stream })))
    }
}

/// Wraps an error as rustls itself wraps its errors in those of its streams.
fn of_rustls(error: rustls::Error) -> Error {
    Error::Io(io::Error::new(io::ErrorKind::InvalidData, error))
}

fn within_handshake(error: io::Error) -> Error {
    match error.kind() {
        kind
        @ (io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => {
            let line =
                "the connection ended in the TLS handshake; if the port speaks plain HTTP, write http://";
            Error::Io(io::Error::new(kind, line))
        }
        // An error of the HTTP client, such as a timeout, is passed through unchanged.
        _ => Error::from(error),
    }
}

/// Reads the alert that a peer sent before the connection ended, and returns it in place of the error, which
/// says less. A stream whose write fails does not read the alert by itself.
fn alert_or(stream: &mut StreamOwned<ClientConnection, TransportAdapter>, error: io::Error) -> Error {
    if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) {
        while stream.conn.read_tls(&mut stream.sock).is_ok_and(|bytes| bytes > 0) {
            if let Err(alert) = stream.conn.process_new_packets() {
                return of_rustls(alert);
            }
        }
    }
    Error::from(error)
}

/// A connection over TLS.
pub(super) struct TlsTransport {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl fmt::Debug for TlsTransport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TlsTransport").field("inner", &self.stream.sock.inner()).finish()
    }
}

impl Transport for TlsTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.sock.set_timeout(timeout);
        let output = &self.buffers.output()[..amount];
        self.stream.write_all(output).map_err(|error| alert_or(&mut self.stream, error))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.sock.set_timeout(timeout);
        let input = self.buffers.input_append_buf();
        let amount = self.stream.read(input).map_err(|error| alert_or(&mut self.stream, error))?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.sock.get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

/// Advice on a TLS error. Empty if no advice is known.
pub(super) fn advice(error: &rustls::Error, has_authorities: bool) -> &'static str {
    use rustls::Error as E;
    match error {
        E::InvalidCertificate(certificate) => match certificate {
            CertificateError::UnknownIssuer if has_authorities => {
                "no certificate in the file that certificate= names has signed the server's certificate; set \
                 certificate=PATH to the file of the server's authority, or of the server's own certificate"
            }
            CertificateError::UnknownIssuer => {
                "no authority that this system trusts has signed the server's certificate; set \
                 certificate=PATH to the PEM file of its authority, or of a self-signed certificate"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "the endpoint must have a name that is in the server's certificate (subjectAltName)"
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => {
                "renew the server's certificate, or set this machine's clock"
            }
            // rustls has no name for this error: by its basic constraints the certificate belongs to an
            // authority.
            CertificateError::Other(_) => {
                "if it is an authority's own (CA:TRUE), set certificate=PATH to this certificate"
            }
            _ => "",
        },
        E::AlertReceived(alert) => match alert {
            AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::AccessDenied
            | AlertDescription::UnknownCA => {
                "the server wants a client's certificate that it trusts: set client_certificate and \
                 client_key"
            }
            AlertDescription::NoApplicationProtocol => {
                "the port perhaps speaks only gRPC: name the port of OTLP over HTTP, usually 4318"
            }
            AlertDescription::ProtocolVersion | AlertDescription::HandshakeFailure => {
                "the server must speak TLS 1.2 or 1.3"
            }
            AlertDescription::UnrecognisedName => "the server has no certificate for the endpoint's host",
            _ => "",
        },
        E::InvalidMessage(_) => "the port perhaps does not speak TLS: write http:// for plain HTTP",
        E::PeerIncompatible(_) => "the server must speak TLS 1.2 or 1.3",
        _ => "",
    }
}

/// The rustls error inside a stream's error.
pub(super) fn rustls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}
