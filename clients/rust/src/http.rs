//! One request to one node: bounded in time and size, and silent about the URL, which may hold a key.

use std::time::Duration;

use reqwest::header::{HeaderValue, CONTENT_TYPE};
use reqwest::{redirect, Client};
use url::Url;

use crate::Error;

/// The reason why a node did not answer a request, or is not asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// No connection, or it broke.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// No answer in time.
    #[error("no answer within {0:?}")]
    Slow(Duration),
    /// Refused by HTTP: too many requests, a wrong key, an outage.
    #[error("HTTP {0}")]
    Http(u16),
    /// An answer longer than the limit.
    #[error("an answer longer than {0} bytes")]
    TooLong(usize),
    /// An answer that does not fit the request.
    #[error("a malformed answer: {0}")]
    Malformed(String),
    /// It cannot serve the request now, though another may.
    #[error("unable: {0}")]
    Unable(String),
    /// Another chain's.
    #[error("is of chain {0}")]
    OtherChain(u64),
    /// Behind the others.
    #[error("{0} blocks behind the others")]
    Behind(u64),
    /// Contradicts the majority.
    #[error("contradicts the others about {0}")]
    Contradicts(String),
}

/// A URL by its scheme and host alone: user, path and query hold access keys of providers.
pub fn redacted(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let rest = if url.path().len() > 1 || url.query().is_some() || !url.username().is_empty() { "/..." } else { "" };
    format!("{}://{}{port}{rest}", url.scheme(), url.host_str().unwrap_or("?"))
}

/// Reads a URL of one of these schemes.
pub(crate) fn parse(text: &str, schemes: &[&str]) -> Result<Url, Error> {
    // The text itself may hold a key.
    let url = Url::parse(text.trim()).map_err(|error| Error::Url(error.to_string()))?;
    if !schemes.contains(&url.scheme()) {
        return Err(Error::Url(format!("the scheme is {}, not one of {}", url.scheme(), schemes.join(", "))));
    }
    if url.scheme().ends_with('s') && !cfg!(feature = "tls") {
        return Err(Error::Url(format!("{} needs the feature `tls`", url.scheme())));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(Error::Url("there is no host in it".into()));
    }
    Ok(url)
}

/// The one configuration of TLS: rustls by ring, with the system's certificates.
#[cfg(feature = "tls")]
pub(crate) fn tls() -> Result<rustls::ClientConfig, Error> {
    let mut roots = rustls::RootCertStore::empty();
    // Certificates that cannot be read are left out; without any, connections say so.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = rustls::crypto::ring::default_provider();
    let builder = rustls::ClientConfig::builder_with_provider(provider.into()).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| Error::Url(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// A client that fetches files: it follows at most ten redirects, and gives up after a minute of silence.
///
/// # Errors
/// If the system's certificates cannot be used.
pub fn fetcher() -> Result<Client, Error> {
    let builder = Client::builder().connect_timeout(Duration::from_secs(30)).read_timeout(Duration::from_mins(1));
    let builder = builder.redirect(redirect::Policy::limited(10));
    #[cfg(feature = "tls")]
    let builder = builder.tls_backend_preconfigured(tls()?);
    builder.build().map_err(|error| Error::Url(error.without_url().to_string()))
}

/// Statuses by which a provider, or what is before it, refuses whatever is asked; also where there is JSON beside it.
const REFUSED: [u16; 8] = [401, 402, 403, 408, 429, 502, 503, 504];

pub(crate) struct Poster {
    client: Client,
    timeout: Duration,
    most: usize,
}

impl Poster {
    pub fn new(timeout: Duration, most: usize) -> Result<Self, Error> {
        // A redirect would send the request, and a key in it, to a host that it was not meant for.
        let builder = Client::builder().timeout(timeout).redirect(redirect::Policy::none()).pool_max_idle_per_host(8);
        #[cfg(feature = "tls")]
        let builder = builder.tls_backend_preconfigured(tls()?);
        let client = builder.build().map_err(|error| Error::Url(error.without_url().to_string()))?;
        Ok(Self { client, timeout, most })
    }

    pub async fn post(&self, url: &Url, body: Vec<u8>) -> Result<Vec<u8>, Fault> {
        let json = HeaderValue::from_static("application/json");
        let answer = self.client.post(url.clone()).header(CONTENT_TYPE, json).body(body).send().await;
        let mut answer = answer.map_err(|error| self.fault(error))?;
        let mut text = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| self.fault(error))? {
            if text.len() + chunk.len() > self.most {
                return Err(Fault::TooLong(self.most));
            }
            text.extend_from_slice(&chunk);
        }
        let status = answer.status();
        // Some nodes complain in JSON under another status than 200.
        let complains = || serde_json::from_slice::<serde_json::Value>(&text).is_ok_and(|v| v.get("error").is_some());
        if status.is_success() || !REFUSED.contains(&status.as_u16()) && complains() {
            return Ok(text);
        }
        Err(Fault::Http(status.as_u16()))
    }

    fn fault(&self, error: reqwest::Error) -> Fault {
        if error.is_timeout() {
            return Fault::Slow(self.timeout);
        }
        Fault::Unreachable(reason(error))
    }
}

/// Posts JSON once. Of the answer only the status is read.
pub async fn post_json(url: &str, body: &serde_json::Value) -> Result<(), Error> {
    let url = parse(url, &["http", "https"])?;
    let poster = Poster::new(Duration::from_secs(15), 1 << 20)?;
    let posted = poster.post(&url, body.to_string().into()).await;
    posted.map(drop).map_err(|fault| Error::Unreachable(format!("{}: {fault}", redacted(&url))))
}

/// The root cause of a failed request, without its URL.
pub(crate) fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(inner) = source {
        text = inner.to_string();
        source = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_urls_are_not_shown() {
        let shown = |text: &str| redacted(&Url::parse(text).unwrap());
        assert_eq!(shown("https://arb.example.com/v2/s3cret"), "https://arb.example.com/...");
        assert_eq!(shown("https://s3cret:s3cret@example.com"), "https://example.com/...");
        assert_eq!(shown("wss://example.com:444?key=s3cret"), "wss://example.com:444/...");
        assert_eq!(shown("http://127.0.0.1:8547"), "http://127.0.0.1:8547");
        for text in ["s3cret", "ftp://example.com/s3cret", "http:///s3cret ", "https://[s3cret"] {
            if let Err(error) = parse(text, &["http", "https"]) {
                assert!(!error.to_string().contains("s3cret"), "{error}");
            }
        }
    }
}
