//! Reports of a long-running program: a log by `tracing`, and metrics in Prometheus' format.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::extract::State;
use axum::http::{header, StatusCode};
use axum::routing::get;
use axum::Router;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tracing_subscriber::EnvFilter;

use crate::Error;

/// Begins the log, on standard error: a line each, or a JSON object each, with its time in UTC and its level. The filter is one of
/// `tracing-subscriber`'s, such as `info` or `warn,muster_client=debug`.
///
/// # Errors
/// [`Error::Answer`] if the filter cannot be read.
pub fn log(json: bool, filter: &str) -> Result<(), Error> {
    let wrong = |why: String| Error::Answer { what: format!("the log's filter {filter:?}"), why };
    let filter = EnvFilter::try_new(filter).map_err(|error| wrong(error.to_string()))?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let begun = if json {
        lines.json().flatten_event(true).try_init()
    } else {
        lines.with_target(false).with_ansi(std::io::stderr().is_terminal()).try_init()
    };
    begun.map_err(|error| wrong(error.to_string()))
}

/// Prints a line. If the reader has closed the pipe, as `| head` does, the process ends: it has nothing left to do.
///
/// # Panics
/// If standard output cannot be written to for another reason.
pub fn print(text: impl std::fmt::Display) {
    match std::io::Write::write_fmt(&mut std::io::stdout(), format_args!("{text}\n")) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => panic!("cannot write to standard output: {error}"),
    }
}

/// A metric: its name without the prefix, whether it is a counter (then the name ends with `_total`), and its description.
pub type Described = (&'static str, bool, &'static str);

type Labels = Vec<(String, String)>;

enum Values {
    Gauge(Family<Labels, Gauge<f64, AtomicU64>>),
    Counter(Family<Labels, Counter<f64, AtomicU64>>),
}

/// Metrics by name and labels.
pub struct Metrics {
    registry: Registry,
    values: BTreeMap<&'static str, Values>,
    /// The label sets in use: a family does not list them.
    labels: Mutex<BTreeMap<&'static str, BTreeSet<Labels>>>,
}

fn owned(labels: &[(&str, &str)]) -> Labels {
    labels.iter().map(|(name, value)| ((*name).to_string(), (*value).to_string())).collect()
}

/// Seconds since 1970 by this machine's clock.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl Metrics {
    /// Describes all metrics.
    pub fn new(prefix: &str, all: &[Described]) -> Self {
        let mut registry = Registry::with_prefix(prefix);
        let mut values = BTreeMap::new();
        for (name, counter, help) in all {
            let its = if *counter {
                let family = Family::default();
                registry.register(name.trim_end_matches("_total"), *help, family.clone());
                Values::Counter(family)
            } else {
                let family = Family::default();
                registry.register(*name, *help, family.clone());
                Values::Gauge(family)
            };
            values.insert(*name, its);
        }
        Self { registry, values, labels: Mutex::default() }
    }

    fn labels(&self) -> MutexGuard<'_, BTreeMap<&'static str, BTreeSet<Labels>>> {
        self.labels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn family(&self, name: &str) -> (&'static str, &Values) {
        let known = self.values.get_key_value(name);
        let (name, values) = known.unwrap_or_else(|| panic!("{name} is not described"));
        (name, values)
    }

    /// Sets a gauge.
    pub fn set(&self, name: &str, labels: &[(&str, &str)], value: f64) {
        let (name, values) = self.family(name);
        let labels = owned(labels);
        match values {
            Values::Gauge(family) => drop(family.get_or_create(&labels).set(value)),
            Values::Counter(_) => panic!("{name} is a counter"),
        }
        self.labels().entry(name).or_default().insert(labels);
    }

    /// Adds to a counter.
    pub fn add(&self, name: &str, labels: &[(&str, &str)], value: f64) {
        match self.family(name) {
            (_, Values::Counter(family)) => drop(family.get_or_create(&owned(labels)).inc_by(value)),
            (name, Values::Gauge(_)) => panic!("{name} is a gauge"),
        }
    }

    /// A value, if it was set.
    pub fn get(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let labels = owned(labels);
        match self.family(name).1 {
            Values::Gauge(family) => family.get(&labels).map(|gauge| gauge.get()),
            Values::Counter(family) => family.get(&labels).map(|counter| counter.get()),
        }
    }

    /// Replaces all of a gauge's values that have these labels, and forgets the former ones.
    pub fn replace(&self, name: &str, fixed: &[(&str, &str)], values: impl IntoIterator<Item = (Labels, f64)>) {
        let (name, family) = self.family(name);
        let Values::Gauge(family) = family else { panic!("{name} is a counter") };
        let fixed = owned(fixed);
        let mut labels = self.labels();
        let known = labels.entry(name).or_default();
        let before: BTreeSet<Labels> = known.iter().filter(|labels| labels.starts_with(&fixed)).cloned().collect();
        let mut after = BTreeSet::new();
        for (more, value) in values {
            let own = [fixed.clone(), more].concat();
            family.get_or_create(&own).set(value);
            after.insert(own);
        }
        for gone in before.difference(&after) {
            family.remove(gone);
            known.remove(gone);
        }
        known.extend(after);
    }

    /// OpenMetrics' text, which Prometheus reads.
    pub fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string succeeds");
        text
    }

    /// Writes the text for a collector of text files, such as node_exporter's: whole or not at all.
    ///
    /// # Errors
    /// [`Error::File`] if it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let failed = |source| Error::File { path: path.into(), source };
        let draft = path.with_extension("part");
        // The collector reads Prometheus' older format, which has no last line.
        let mut text = self.text();
        text.truncate(text.len() - "# EOF\n".len());
        std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, path)).map_err(failed)
    }
}

/// The content type of [`Metrics::text`] over HTTP.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Metrics to serve, and the greatest age of the gauge of this name, a time, for the program to count as healthy.
struct Served {
    metrics: Arc<Metrics>,
    looked: &'static str,
    most: Duration,
}

/// Serves `/metrics` and `/health`. Health means that the gauge `looked`, in seconds since 1970, is at most so old. Returns the address,
/// and goes on in a task of its own.
///
/// # Errors
/// [`Error::Url`] if the address is taken.
pub async fn serve(at: SocketAddr, metrics: Arc<Metrics>, looked: &'static str, most: Duration) -> Result<SocketAddr, Error> {
    let taken = |error: std::io::Error| Error::Serve(format!("cannot serve metrics at {at} (`--listen`): {error}"));
    let listener = TcpListener::bind(at).await.map_err(taken)?;
    let address = listener.local_addr().map_err(taken)?;
    let served = Arc::new(Served { metrics, looked, most });
    let app = Router::new()
        .route(
            "/metrics",
            get(|State(it): State<Arc<Served>>| async move { ([(header::CONTENT_TYPE, CONTENT_TYPE)], it.metrics.text()) }),
        )
        .route("/health", get(health))
        .with_state(served);
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, app).await {
            tracing::error!("metrics are served no more: {error}");
        }
    });
    Ok(address)
}

async fn health(State(it): State<Arc<Served>>) -> (StatusCode, String) {
    let ago = now().saturating_sub(it.metrics.get(it.looked, &[]).unwrap_or_default() as u64);
    let mut text = String::new();
    let _ = writeln!(text, "looked at the chain {ago} s ago");
    (if ago <= it.most.as_secs() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_written_as_prometheus_reads_them() {
        let metrics = Metrics::new(
            "muster_agent",
            &[("ready", false, "Ready"), ("jobs_open", false, "Jobs"), ("gas_wei_total", true, "Gas")],
        );
        metrics.set("ready", &[("node", "gpu\"0")], 1.0);
        let stage = |stage: &str, count| (owned(&[("stage", stage)]), count);
        metrics.set("jobs_open", &[("node", "gpu1"), ("stage", "taken")], 7.0);
        metrics.replace("jobs_open", &[("node", "gpu0")], [stage("taken", 2.0), stage("sent", 1.0)]);
        metrics.replace("jobs_open", &[("node", "gpu0")], [stage("sent", 3.0)]);
        metrics.add("gas_wei_total", &[], 1.5e15);
        metrics.add("gas_wei_total", &[], 1.0);
        let text = metrics.text();
        assert!(text.contains("# TYPE muster_agent_ready gauge\nmuster_agent_ready{node=\"gpu\\\"0\"} 1.0\n"), "{text}");
        assert!(text.contains("muster_agent_jobs_open{node=\"gpu0\",stage=\"sent\"} 3.0\n"), "{text}");
        assert!(
            text.contains("{node=\"gpu1\",stage=\"taken\"} 7.0\n") && !text.contains("{node=\"gpu0\",stage=\"taken\"}"),
            "{text}"
        );
        assert!(text.contains("# TYPE muster_agent_gas_wei counter\nmuster_agent_gas_wei_total 1500000000000001.0\n"), "{text}");
        assert!(text.ends_with("# EOF\n"));
        assert_eq!(metrics.get("gas_wei_total", &[]), Some(1_500_000_000_000_001.0));
        assert_eq!(metrics.get("ready", &[]), None);
    }

    #[test]
    fn a_text_file_has_no_last_line_of_the_newer_format() {
        let place = tempfile::tempdir().unwrap();
        let metrics = Metrics::new("muster", &[("up", false, "Up")]);
        metrics.set("up", &[], 0.0);
        metrics.write(&place.path().join("muster.prom")).unwrap();
        let text = std::fs::read_to_string(place.path().join("muster.prom")).unwrap();
        assert!(text.ends_with("muster_up 0.0\n"), "{text}");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
