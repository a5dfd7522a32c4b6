//! Where to upload to.

use std::net::IpAddr;

use ureq::http::Uri;

/// The path that OTLP/HTTP gives profiles.
pub const PROFILES_PATH: &str = "/v1development/profiles";

/// A URL that is no endpoint: what is wrong with it, and what to write instead, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Not a URL at all, or one with another scheme.
    #[error("{url}: not an HTTP URL; write http://HOST:4318 or https://HOST:4318")]
    NotHttp {
        /// What was given.
        url: String,
    },
    /// A user name or a password in it: they would end up in logs. The URL is left out for the same reason.
    #[error("the URL contains a user name or password; send credentials as a header instead")]
    Credentials,
}

/// The URL that messages are posted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    url: Uri,
}

impl Endpoint {
    /// An endpoint for all signals (`OTEL_EXPORTER_OTLP_ENDPOINT`): the path of profiles is appended to it.
    ///
    /// # Errors
    /// The text is no HTTP URL or contains credentials.
    pub fn base(url: &str) -> Result<Self, EndpointError> {
        let given = parse(url)?;
        let path = given.path().trim_end_matches('/');
        let query = given.query().map(|query| format!("?{query}")).unwrap_or_default();
        let (scheme, authority) = origin(&given);
        let url = parse(&format!("{scheme}://{authority}{path}{PROFILES_PATH}{query}"))?;
        Ok(Self { url })
    }

    /// An endpoint for profiles only (`OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT`): used as it is.
    ///
    /// # Errors
    /// The text is no HTTP URL or contains credentials.
    pub fn signal(url: &str) -> Result<Self, EndpointError> {
        Ok(Self { url: parse(url)? })
    }

    /// The URL.
    pub fn url(&self) -> &Uri {
        &self.url
    }

    /// Scheme, host, port and path, for log lines: a query may hold a secret.
    pub fn shown(&self) -> String {
        let (scheme, authority) = origin(&self.url);
        format!("{scheme}://{authority}{}", self.url.path())
    }

    /// Whether it wants TLS.
    pub fn is_https(&self) -> bool {
        self.url.scheme_str() == Some("https")
    }

    /// Whether the collector is on this machine, where no proxy leads.
    pub fn is_loopback(&self) -> bool {
        let host = self.url.host().unwrap_or_default();
        let address = host.trim_start_matches('[').trim_end_matches(']');
        host.eq_ignore_ascii_case("localhost") || address.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    }
}

fn parse(url: &str) -> Result<Uri, EndpointError> {
    let not_http = || EndpointError::NotHttp { url: url.to_owned() };
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    if authority.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@')) {
        return Err(EndpointError::Credentials);
    }
    let uri: Uri = url.trim().parse().map_err(|_| not_http())?;
    let http = matches!(uri.scheme_str(), Some("http" | "https"));
    let host = uri.host().is_some_and(|host| !host.is_empty());
    if http && host { Ok(uri) } else { Err(not_http()) }
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
    fn what_is_no_endpoint() {
        for url in ["", "localhost:4318", "localhost", "grpc://c:4317", "http://", "http:///x", "http://a b"]
        {
            let error = Endpoint::base(url).unwrap_err();
            assert_eq!(error, EndpointError::NotHttp { url: url.to_owned() });
        }
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
