//! The URLs that messages are uploaded to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ureq::http::Uri;
use ureq::http::uri::Authority;

/// The path of profiles in OTLP/HTTP.
pub const PROFILES_PATH: &str = "/v1development/profiles";

/// A URL that is not an endpoint. One line says what is wrong with the URL and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Not a URL, or a URL of another scheme.
    #[error("{url}: not an HTTP URL; write http://HOST:4318 or https://HOST:4318")]
    NotHttp {
        /// The URL as given.
        url: String,
    },
    /// The URL contains a user name or a password, which would end up in logs. The URL is left out for that
    /// reason.
    #[error("the URL contains a user name or password; send credentials as a header instead")]
    Credentials,
    /// The URL's host or port is impossible.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The URL's path or query has a character that RFC 3986 does not allow there. The text is left out,
    /// since a query may hold a secret.
    #[error("the URL's path or query has a character that is not allowed there; write it as %XX")]
    Path,
    /// The URL has a fragment, which no client sends.
    #[error("the URL ends in a fragment (#...), which is never sent; leave it out")]
    Fragment,
}

/// A host or port that cannot exist. HTTP libraries accept such and connect to another one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityError {
    /// Neither an address nor a name.
    #[error("host {host}: {reason}")]
    Host {
        /// The host as given.
        host: String,
        /// The rule that the host breaks.
        reason: &'static str,
    },
    /// The text after the host's colon is not a port.
    #[error("port {port:?}: must be a number from 0 to 65535")]
    Port {
        /// The port as given.
        port: String,
    },
}

/// The URL that messages are posted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    url: Uri,
}

impl Endpoint {
    /// An endpoint for all signals (`OTEL_EXPORTER_OTLP_ENDPOINT`). The path of profiles is appended to it.
    ///
    /// # Errors
    /// The text is not an HTTP URL or contains credentials.
    pub fn base(url: &str) -> Result<Self, EndpointError> {
        let given = parse(url)?;
        let path = given.path().trim_end_matches('/');
        let query = given.query().map(|query| format!("?{query}")).unwrap_or_default();
        let (scheme, authority) = origin(&given);
        let url = parse(&format!("{scheme}://{authority}{path}{PROFILES_PATH}{query}"))?;
        Ok(Self { url })
    }

    /// An endpoint for profiles only (`OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT`). It is used as it is.
    ///
    /// # Errors
    /// The text is not an HTTP URL or contains credentials.
    pub fn signal(url: &str) -> Result<Self, EndpointError> {
        Ok(Self { url: parse(url)? })
    }

    /// The URL.
    pub fn url(&self) -> &Uri {
        &self.url
    }

    /// Scheme, host, port and path, for log lines. The query is left out, since it may hold a secret.
    pub fn shown(&self) -> String {
        let (scheme, authority) = origin(&self.url);
        format!("{scheme}://{authority}{}", self.url.path())
    }

    /// Whether the endpoint uses TLS.
    pub fn is_https(&self) -> bool {
        self.url.scheme_str() == Some("https")
    }

    /// Whether the collector is on this machine. No proxy is used then.
    pub fn is_loopback(&self) -> bool {
        let host = self.url.host().unwrap_or_default();
        let address = host.trim_start_matches('[').trim_end_matches(']');
        host.eq_ignore_ascii_case("localhost") || address.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    }
}

fn parse(url: &str) -> Result<Uri, EndpointError> {
    // A query may hold a secret.
    let not_http = || EndpointError::NotHttp { url: url.split('?').next().unwrap_or_default().to_owned() };
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    if authority.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@')) {
        return Err(EndpointError::Credentials);
    }
    let uri: Uri = url.trim().parse().map_err(|_| not_http())?;
    let http = matches!(uri.scheme_str(), Some("http" | "https"));
    let authority = uri.authority().filter(|authority| http && !authority.host().is_empty());
    check_authority(authority.ok_or_else(not_http)?)?;
    if url.contains('#') {
        return Err(EndpointError::Fragment);
    }
    if !uri.path_and_query().is_none_or(|text| is_path(text.as_str())) {
        return Err(EndpointError::Path);
    }
    Ok(uri)
}

/// Checks host and port. An [`Authority`] accepts any text as a port, and an HTTP client then uses the
/// scheme's port.
pub(super) fn check_authority(authority: &Authority) -> Result<(), AuthorityError> {
    let host = authority.host();
    let refused = |reason| Err(AuthorityError::Host { host: host.to_owned(), reason });
    if let Some(address) = host.strip_prefix('[') {
        if address.strip_suffix(']').is_none_or(|address| address.parse::<Ipv6Addr>().is_err()) {
            return refused("not an IPv6 address");
        }
    } else if !is_host_name(host) {
        return refused("must be an address, or a name of letters, digits, hyphens and dots");
    } else if ends_in_number(host) && host.parse::<Ipv4Addr>().is_err() {
        return refused("ends in a number, but is not an IPv4 address");
    }
    let port = authority.as_str().rsplit_once('@').map_or(authority.as_str(), |(_, rest)| rest);
    let port = port.strip_prefix(host).unwrap_or(port);
    match port.strip_prefix(':') {
        None => Ok(()),
        Some(digits) if is_number(digits) && digits.parse::<u16>().is_ok() => Ok(()),
        Some(port) => Err(AuthorityError::Port { port: port.to_owned() }),
    }
}

/// Whether a host is a name: labels of at most 63 characters, at most 253 with the dots (RFC 1035, section
/// 2.3.4), and perhaps a final dot. Underscores are not allowed in host names, but names of containers
/// contain them.
fn is_host_name(host: &str) -> bool {
    let name = host.strip_suffix('.').unwrap_or(host);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// Whether resolvers parse a host as an IPv4 address (URL Standard, "ends in a number checker").
fn ends_in_number(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or(host).to_ascii_lowercase();
    let hexadecimal = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number(&last) || last.strip_prefix("0x").is_some_and(hexadecimal)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether all characters are allowed in a path and a query (RFC 3986, sections 3.3 and 3.4).
fn is_path(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?".contains(&byte);
    let mut pieces = text.split('%');
    let is_escape =
        |piece: &str| piece.len() >= 2 && piece.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    pieces.next().is_none_or(|first| first.bytes().all(is_plain))
        && pieces.all(|piece| is_escape(piece) && piece.bytes().all(is_plain))
}

fn origin(url: &Uri) -> (&str, &str) {
    (url.scheme_str().unwrap_or_default(), url.authority().map_or("", |authority| authority.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_gets_the_path_and_a_signal_endpoint_does_not() {
        for (given, base, signal) in [
            ("http://c:4318", "http://c:4318/v1development/profiles", "http://c:4318/"),
            ("http://c:4318/", "http://c:4318/v1development/profiles", "http://c:4318/"),
            ("https://c/otlp/", "https://c/otlp/v1development/profiles", "https://c/otlp/"),
            ("http://[::1]:1/x?k=v", "http://[::1]:1/x/v1development/profiles?k=v", "http://[::1]:1/x?k=v"),
        ] {
            assert_eq!(Endpoint::base(given).unwrap().url().to_string(), base);
            assert_eq!(Endpoint::signal(given).unwrap().url().to_string(), signal);
        }
    }

    #[test]
    fn urls_without_http_scheme_or_host_are_refused() {
        for url in ["", "localhost:4318", "localhost", "grpc://c:4317", "http://", "http:///x", "http://a b"]
        {
            let error = Endpoint::base(url).unwrap_err();
            assert_eq!(error, EndpointError::NotHttp { url: url.to_owned() });
        }
    }

    /// The HTTP library accepts such a URL, and posts to the scheme's own port.
    #[test]
    fn a_port_beyond_65535_is_an_error_and_no_other_port_is_used() {
        for port in ["99999", "65536", "+80", "x", "", "4318x", "-1", "18446744073709551617"] {
            for url in [format!("http://127.0.0.1:{port}"), format!("https://[::1]:{port}/x")] {
                let error = AuthorityError::Port { port: port.to_owned() }.into();
                assert_eq!(Endpoint::base(&url), Err(error), "{url}");
            }
        }
        for (url, port) in [("http://h:0", 0), ("http://h:65535", 65535), ("http://h:04318", 4318)] {
            assert_eq!(Endpoint::base(url).unwrap().url().port_u16(), Some(port), "{url}");
        }
    }

    #[test]
    fn a_host_is_an_address_or_a_name() {
        let long = format!("http://{}.example", "a".repeat(64));
        for url in [
            "http://999.1.1.1",
            "http://127.1:4318",
            "http://1",
            "http://0x7f.1",
            "http://h.0x7f000001",
            "http://a..b",
            "http://.h",
            "http://h:1,g:2",
            "http://a,b",
            "http://a!b:4318",
            "http://[127.0.0.1]:1",
            "http://[fe80::1%25eth0]:1",
            &long,
        ] {
            let error = Endpoint::base(url).unwrap_err();
            let is_refused = matches!(error, EndpointError::Authority(_) | EndpointError::NotHttp { .. });
            assert!(is_refused, "{url}: {error}");
        }
        for url in [
            "http://otel_collector:4318",
            "http://collector.monitoring.svc.cluster.local.:4318",
            "http://10.0.0.1",
            "http://1and1.example",
            "http://[::ffff:10.0.0.1]:1",
            "HTTP://Host",
        ] {
            assert!(Endpoint::base(url).is_ok(), "{url}: {:?}", Endpoint::base(url));
        }
    }

    #[test]
    fn paths_and_queries_have_their_own_characters_alone() {
        for url in
            ["http://h/%zz", "http://h/%", "http://h/{tenant}", "http://h/\u{e9}", "http://h/?a=\"secret"]
        {
            let error = Endpoint::base(url).unwrap_err();
            assert!(matches!(error, EndpointError::Path | EndpointError::NotHttp { .. }), "{url}: {error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        for url in ["http://h/#x", "http://h#/x"] {
            assert_eq!(Endpoint::base(url), Err(EndpointError::Fragment), "{url}");
        }
        assert!(Endpoint::base("http://h/a%20b/~c;d?e=f&g=(h)/?@").is_ok());
    }

    #[test]
    fn credentials_are_refused_and_not_repeated() {
        for url in ["http://me:secret@c:4318", "me:secret@c:4318", "https://secret@c"] {
            let error = Endpoint::base(url).unwrap_err();
            assert_eq!(error, EndpointError::Credentials);
            assert!(!error.to_string().contains("secret"));
        }
        assert!(Endpoint::base("http://c:4318/a@b").is_ok());
    }

    #[test]
    fn secrets_of_a_query_are_not_shown() {
        let endpoint = Endpoint::base("https://c/in?token=secret").unwrap();
        assert_eq!(endpoint.shown(), "https://c/in/v1development/profiles");
    }

    #[test]
    fn which_hosts_are_this_machine() {
        for (url, loopback) in [
            ("http://localhost:4318", true),
            ("http://127.0.0.2:4318", true),
            ("http://[::1]:4318", true),
            ("http://127.example.com", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(Endpoint::base(url).unwrap().is_loopback(), loopback, "{url}");
        }
    }
}
