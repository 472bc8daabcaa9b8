//! A JSON-RPC endpoint somewhere else, asked again where that may help.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue, CONTENT_TYPE, RETRY_AFTER};
use reqwest::{redirect, Client, Url};
use serde::de::DeserializeOwned;
use serde_json::{json, Value};
use tokio::runtime::Runtime;

use crate::rpc::error::RpcError;

/// Most bytes of one answer.
const MAX_ANSWER: usize = 256 * 1024 * 1024;
/// The longest wait before it is asked again.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// Where to ask, and how patiently.
#[derive(Clone, Debug)]
pub struct Settings {
    /// JSON-RPC endpoint, `http` or `https`.
    pub url: String,
    /// `Name: value`, carried by each request.
    pub headers: Vec<String>,
    /// How long one answer may take.
    pub timeout: Duration,
    /// How often a request is sent again that was answered by a limit of rate, by a fault of the server, or not at all.
    pub retries: u32,
    /// The wait before the first of them; each further one takes twice as long.
    pub backoff: Duration,
}

impl Settings {
    /// With anvil's patience.
    pub fn new(url: impl Into<String>) -> Self {
        let (timeout, backoff) = (Duration::from_secs(45), Duration::from_secs(1));
        Self { url: url.into(), headers: Vec::new(), timeout, retries: 5, backoff }
    }
}

/// A JSON-RPC endpoint.
#[derive(Debug)]
pub struct Endpoint {
    settings: Settings,
    url: Url,
    name: String,
    client: Client,
    /// Drives the connections, so that a caller may wait on any thread. Taken when it ends.
    runtime: Option<Runtime>,
    /// It takes no batches.
    single: AtomicBool,
    sent: AtomicU64,
}

/// An answer of the endpoint.
struct Answer {
    status: u16,
    after: Option<Duration>,
    text: Vec<u8>,
}

/// Why a question has no result.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{words}")]
pub struct Failed {
    /// The endpoint and the reason.
    pub words: String,
    /// The endpoint's answer, if it was an error that asking again does not change.
    pub error: Option<RpcError>,
}

impl From<Failed> for String {
    fn from(failed: Failed) -> Self {
        failed.words
    }
}

/// Why there is no answer.
enum Unanswered {
    /// It may come later.
    Later {
        reason: String,
        after: Option<Duration>,
    },
    /// Batches are refused.
    Batch,
    Never(String),
    /// It is an error.
    Error(RpcError),
}

impl Endpoint {
    /// Prepares for asking; nothing is sent yet.
    ///
    /// # Errors
    /// In words: the URL or a header is malformed, or the system gives no thread.
    pub fn new(settings: Settings) -> Result<Self, String> {
        let url = Url::parse(&settings.url).map_err(|e| format!("the URL of the endpoint: {e}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("an endpoint is reached by http or https, not by {}", url.scheme()));
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for header in &settings.headers {
            let parts = header.split_once(':').and_then(|(name, value)| {
                let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
                Some((name, HeaderValue::from_str(value.trim()).ok()?))
            });
            let (name, value) = parts.ok_or("a header is written as \"Name: value\"")?;
            headers.insert(name, value);
        }
        // Another server would be sent headers that are meant for the endpoint.
        let client = Client::builder().timeout(settings.timeout).redirect(redirect::Policy::none()).default_headers(headers);
        let client = client.tls_backend_preconfigured(tls()?).build().map_err(|e| e.to_string())?;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).thread_name("devnode-fork").enable_all().build();
        let runtime = Some(runtime.map_err(|e| format!("no thread for the endpoint: {e}"))?);
        // Keys stand in paths and queries.
        let name = format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default())
            + &url.port().map_or_else(String::new, |port| format!(":{port}"));
        Ok(Self { settings, url, name, client, runtime, single: AtomicBool::new(false), sent: AtomicU64::new(0) })
    }

    /// Its place, without the parts of its URL that may be secret.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// HTTP requests sent so far.
    pub fn requests(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Asks one thing.
    ///
    /// # Errors
    /// See [`Failed`].
    pub fn one(&self, method: &str, params: Value) -> Result<Value, Failed> {
        Ok(self.ask(&[(method, params)])?.pop().unwrap_or_default())
    }

    /// Asks several things at once. The answers are in the order of the questions.
    ///
    /// # Errors
    /// See [`Failed`].
    pub fn ask(&self, calls: &[(&str, Value)]) -> Result<Vec<Value>, Failed> {
        if calls.len() > 1 && self.single.load(Ordering::Relaxed) {
            return calls.iter().map(|(method, params)| self.one(method, params.clone())).collect();
        }
        let failed = |reason: String, error| Err(Failed { words: format!("{}: {reason}", self.name), error });
        let mut wait = self.settings.backoff;
        let mut tries = 0;
        loop {
            match self.send(calls) {
                Ok(answers) => return Ok(answers),
                Err(Unanswered::Never(reason)) => return failed(reason, None),
                Err(Unanswered::Error(error)) => return failed(error.message.clone(), Some(error)),
                Err(Unanswered::Batch) => {
                    self.single.store(true, Ordering::Relaxed);
                    return self.ask(calls);
                }
                Err(Unanswered::Later { reason, .. }) if tries == self.settings.retries => {
                    let times = if tries > 0 { format!(", asked {} times", tries + 1) } else { String::new() };
                    return failed(format!("{reason}{times}"), None);
                }
                Err(Unanswered::Later { after, .. }) => {
                    std::thread::sleep(after.unwrap_or(wait).min(MAX_BACKOFF));
                    wait = wait.saturating_mul(2);
                    tries += 1;
                }
            }
        }
    }

    fn send(&self, calls: &[(&str, Value)]) -> Result<Vec<Value>, Unanswered> {
        let request = |(id, (method, params)): (usize, &(&str, Value))| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let mut requests: Vec<Value> = calls.iter().enumerate().map(request).collect();
        let body = if requests.len() == 1 { requests.remove(0) } else { Value::Array(requests) };
        let Answer { status, after, text } = self.post(body.to_string())?;
        if status == 429 || status >= 500 {
            return Err(Unanswered::Later { reason: format!("HTTP status {status}"), after });
        }
        let Ok(answer) = serde_json::from_slice::<Value>(&text) else {
            return Err(Unanswered::Never(format!("HTTP status {status} and no JSON")));
        };
        let mut answers: Vec<Option<Value>> = vec![None; calls.len()];
        match answer {
            Value::Array(list) if calls.len() > 1 => {
                for answer in list {
                    let id = answer["id"].as_u64().and_then(|id| usize::try_from(id).ok());
                    if let Some(place) = id.and_then(|id| answers.get_mut(id)) {
                        *place = Some(result(answer)?);
                    }
                }
            }
            answer if calls.len() == 1 => answers[0] = Some(result(answer)?),
            answer => {
                return Err(match result(answer) {
                    Err(later @ Unanswered::Later { .. }) => later,
                    _ => Unanswered::Batch,
                })
            }
        }
        answers.into_iter().map(|answer| answer.ok_or(Unanswered::Batch)).collect()
    }

    fn post(&self, body: String) -> Result<Answer, Unanswered> {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let request = self.client.post(self.url.clone()).body(body);
        let (tell, told) = mpsc::sync_channel(1);
        if let Some(runtime) = &self.runtime {
            runtime.spawn(async move {
                // The caller waits for it.
                let _ = tell.send(exchange(request).await);
            });
        }
        told.recv()
            .unwrap_or_else(|_| Err("the request was dropped".into()))
            .map_err(|reason| Unanswered::Later { reason, after: None })
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn exchange(request: reqwest::RequestBuilder) -> Result<Answer, String> {
    let mut response = request.send().await.map_err(reason)?;
    let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok()).map(Duration::from_secs);
    let status = response.status().as_u16();
    let mut text = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(reason)? {
        if text.len() + chunk.len() > MAX_ANSWER {
            return Err(format!("an answer of more than {MAX_ANSWER} bytes"));
        }
        text.extend_from_slice(&chunk);
    }
    Ok(Answer { status, after, text })
}

/// The root cause of a failed request, without its URL.
fn reason(error: reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".into();
    }
    let error = error.without_url();
    let mut deepest: &dyn std::error::Error = &error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

/// rustls by ring, with the system's certificates.
fn tls() -> Result<rustls::ClientConfig, String> {
    let mut roots = rustls::RootCertStore::empty();
    // Certificates that cannot be read are left out; without any, connections say so.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = rustls::crypto::ring::default_provider();
    let builder = rustls::ClientConfig::builder_with_provider(provider.into()).with_safe_default_protocol_versions();
    Ok(builder.map_err(|e| e.to_string())?.with_root_certificates(roots).with_no_client_auth())
}

/// Reads an answer.
pub(crate) fn read<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|e| format!("an answer that can't be read: {e}"))
}

/// The result in an answer.
fn result(mut answer: Value) -> Result<Value, Unanswered> {
    let error = &answer["error"];
    if error.is_null() {
        return Ok(answer["result"].take());
    }
    let message = error["message"].as_str().unwrap_or("an error without words").to_owned();
    let code = error["code"].as_i64().and_then(|code| code.try_into().ok()).unwrap_or(-32000);
    let data = error.get("data").filter(|data| !data.is_null()).cloned();
    let lower = message.to_lowercase();
    // Providers have no common code for it, and a contract may revert in the same words.
    let limited = matches!(code, 429 | -32005 | -32029)
        || code != 3
            && data.is_none()
            && ["rate limit", "too many requests", "compute units", "request limit"].iter().any(|words| lower.contains(words));
    let later = |reason| Unanswered::Later { reason, after: None };
    Err(if limited { later(message) } else { Unanswered::Error(RpcError { code, message, data }) })
}
