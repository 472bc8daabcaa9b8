//! Answers while they are made, for any reader: server-sent events at `/stream/TASK`, as docs/streams.md describes them. Only for
//! tasks whose answer is not compared with others' and not sealed. Everything here is bounded: the kept text, the number of readers,
//! and their time.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use alloy::primitives::B256;
use anyhow::{Context as _, Result};
use axum::extract::{Path, State};
use axum::http::{header, HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::map_response;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::Router;
use futures_util::stream;
use muster_client::{digest_of, Heard, Piece, Shown, Stopped, Streaming, Whole, Why, SHOWN};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{watch, OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout, timeout_at, Instant, Sleep};

use crate::metrics::Metrics;

/// The longest piece in bytes; an executor's longer ones are divided.
const PIECE: usize = 16 << 10;
/// The most pieces of an answer: each has a hash.
const PIECES: usize = 1 << 16;
/// How long a text can be read after its end: a reader may be slower than the node, or come back.
const KEPT: Duration = Duration::from_mins(1);
/// The most ended texts kept, the newest.
const KEPT_MOST: usize = 16;
/// The most concurrent readers of one answer, so that others are read, too.
const OF_ONE: usize = 16;
/// Connections beside those of readers: for requests, and for refusals.
const BESIDE: usize = 32;
/// How often idle readers get a comment.
const BEAT: Duration = Duration::from_secs(15);
/// The longest time of one connection; its reader may come again, after others had a chance.
const TURN: Duration = Duration::from_mins(10);
/// The time without a request after which a connection is closed.
const IDLE: Duration = Duration::from_secs(10);
/// The time without taking any output after which a connection is closed.
const STALL: Duration = Duration::from_secs(30);
/// The longest time of a connection whose reader takes its turn's output slowly, too.
const WHOLE: Duration = TURN.saturating_add(STALL);
/// The reply about a task that no node here works on.
const NOT_HERE: &str = "no answer to this task is made here now\n";

/// The streamed answers, by task.
pub struct Streams {
    shows: Mutex<BTreeMap<u64, Arc<Show>>>,
    most: usize,
    listeners: Arc<Semaphore>,
    metrics: Arc<Metrics>,
}

/// One task's answer.
pub struct Show {
    kept: Mutex<Kept>,
    changed: watch::Sender<()>,
    listeners: Arc<Semaphore>,
}

#[derive(Default)]
struct Kept {
    shown: Shown,
    /// Where each piece ends, and the hash up to there.
    marks: Vec<(usize, B256)>,
    end: Option<(End, Instant)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Whole(Whole),
    Stopped(Why),
    /// Nobody may read it.
    Hidden,
}

/// Streams an answer while its work goes on. If dropped before the end, there is no answer.
pub struct Showing(pub Arc<Show>);

impl Streams {
    /// Nothing yet, for so many readers.
    pub fn new(listeners: usize, metrics: Arc<Metrics>) -> Self {
        for name in ["stream_pieces_total", "stream_bytes_total", "stream_refused_total"] {
            metrics.0.add(name, &[], 0.0);
        }
        Self { shows: Mutex::default(), most: listeners, listeners: Arc::new(Semaphore::new(listeners)), metrics }
    }

    /// How many answers are shown and not over, and how many readers there are.
    pub fn seen(&self) -> (usize, usize) {
        let open = self.shows().values().filter(|show| show.kept().end.is_none()).count();
        (open, self.most - self.listeners.available_permits())
    }

    fn shows(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Show>>> {
        self.shows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Streams a task's answer from now on, replacing an earlier one; `hidden` only tells readers that they may not read it.
    pub fn begin(&self, task: u64, hidden: bool) -> Showing {
        let show =
            Arc::new(Show { kept: Mutex::default(), changed: watch::channel(()).0, listeners: Arc::new(Semaphore::new(OF_ONE)) });
        if hidden {
            show.kept().finish(End::Hidden);
        }
        let mut shows = self.shows();
        shows.retain(|_, show| !show.kept().is_old());
        let mut over: Vec<_> = shows.iter().filter_map(|(task, show)| Some((show.kept().end?.1, *task))).collect();
        over.sort_unstable();
        for (_, task) in over.iter().rev().skip(KEPT_MOST - 1) {
            shows.remove(task);
        }
        shows.insert(task, show.clone());
        Showing(show)
    }

    fn of(&self, task: u64) -> Option<Arc<Show>> {
        self.shows().get(&task).filter(|show| !show.kept().is_old()).cloned()
    }
}

impl Kept {
    fn finish(&mut self, end: End) {
        self.end.get_or_insert((end, Instant::now()));
    }

    fn is_old(&self) -> bool {
        self.end.is_some_and(|(end, at)| end != End::Hidden && at.elapsed() > KEPT)
    }
}

impl Show {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends text.
    pub fn push(&self, mut text: &str) {
        let mut kept = self.kept();
        while !text.is_empty() && kept.end.is_none() {
            let most = (1..=PIECE.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
            let (piece, rest) = text.split_at(most);
            if kept.shown.text().len() + piece.len() > SHOWN || kept.marks.len() == PIECES {
                kept.finish(End::Stopped(Why::Long));
                break;
            }
            kept.shown.push(piece);
            let mark = (kept.shown.text().len(), kept.shown.digest());
            kept.marks.push(mark);
            text = rest;
        }
        drop(kept);
        self.changed.send_replace(());
    }

    /// Starts over, because the answer is made once more. Readers of the first text notice a difference.
    pub fn again(&self) {
        let mut kept = self.kept();
        (kept.shown, kept.marks) = (Shown::default(), Vec::new());
    }

    /// Ends the stream before the answer.
    pub fn stop(&self, why: Why) {
        self.kept().finish(End::Stopped(why));
        self.changed.send_replace(());
    }

    /// Ends the stream with an answer of this digest.
    pub fn settle(&self, digest: B256) {
        let mut kept = self.kept();
        let (bytes, own) = (kept.shown.text().len(), kept.shown.digest());
        kept.finish(match bytes {
            0 => End::Stopped(Why::Whole),
            _ if own == digest => End::Whole(Whole { bytes, digest }),
            _ => End::Stopped(Why::Changed),
        });
        drop(kept);
        self.changed.send_replace(());
    }
}

impl Drop for Showing {
    fn drop(&mut self) {
        self.0.stop(Why::Failed);
    }
}

/// A reader of an answer.
struct Reading {
    show: Arc<Show>,
    changed: watch::Receiver<()>,
    /// Bytes sent so far.
    at: usize,
    over: bool,
    until: Instant,
    metrics: Arc<Metrics>,
    _permits: [OwnedSemaphorePermit; 2],
}

impl Reading {
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        while !self.over {
            self.changed.borrow_and_update();
            if let Some(event) = self.look() {
                return Some((Ok(event), self));
            }
            timeout_at(self.until, self.changed.changed()).await.ok()?.ok()?;
        }
        None
    }

    /// The next event that was not sent.
    fn look(&mut self) -> Option<Event> {
        let kept = self.show.kept();
        let next = kept.marks.partition_point(|(end, _)| *end <= self.at);
        if let Some((end, after)) = kept.marks.get(next) {
            // A reader whose position does not fit the present text begins again.
            let from = if kept.shown.text().is_char_boundary(self.at) { self.at } else { 0 };
            if from == 0 && next > 0 {
                self.at = 0;
                drop(kept);
                return self.look();
            }
            let piece = Piece { from, text: kept.shown.text()[from..*end].into(), after: *after };
            self.at = *end;
            self.metrics.0.add("stream_pieces_total", &[], 1.0);
            self.metrics.0.add("stream_bytes_total", &[], piece.text.len() as f64);
            return Some(event("piece", &piece).id(end.to_string()));
        }
        self.over = kept.end.is_some();
        match kept.end?.0 {
            End::Whole(whole) => Some(event("end", &whole)),
            End::Stopped(why) => Some(event("stopped", &Stopped { why })),
            End::Hidden => None,
        }
    }
}

fn event(name: &str, data: &impl Serialize) -> Event {
    Event::default().event(name).data(serde_json::to_string(data).unwrap_or_default())
}

/// Opens the address to serve at, or returns the reason why it cannot.
pub async fn listen(at: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(at).await.with_context(|| format!("cannot show answers at {at} (`listen` of [stream])"))
}

/// Serves `/stream/TASK` to as many readers as `streams` has room for.
pub async fn serve(streams: Arc<Streams>, listener: TcpListener) -> Result<()> {
    let (free, metrics) = (Arc::new(Semaphore::new(streams.most + BESIDE)), streams.metrics.clone());
    let app = Router::new().route("/stream/{task}", get(read).options(StatusCode::NO_CONTENT));
    let app = app.layer(map_response(openly)).with_state(streams);
    let doors = Doors { listener, free, metrics: Some(metrics), idle: IDLE, stall: STALL, whole: WHOLE };
    Ok(axum::serve(doors, app).await?)
}

async fn read(State(streams): State<Arc<Streams>>, Path(task): Path<u64>, headers: HeaderMap) -> Response {
    let Some(show) = streams.of(task) else {
        return (StatusCode::NOT_FOUND, NOT_HERE).into_response();
    };
    if matches!(show.kept().end, Some((End::Hidden, _))) {
        return (
            StatusCode::FORBIDDEN,
            "the answer to this task is not shown before it is given: it is compared with others', or sealed\n",
        )
            .into_response();
    }
    let permits = (streams.listeners.clone().try_acquire_owned(), show.listeners.clone().try_acquire_owned());
    let (Ok(one), Ok(other)) = permits else {
        streams.metrics.0.add("stream_refused_total", &[], 1.0);
        return (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "5")], "too many read\n").into_response();
    };
    let at = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok()).unwrap_or(0);
    let changed = show.changed.subscribe();
    let (until, metrics) = (Instant::now() + TURN, streams.metrics.clone());
    let reading = Reading { show, changed, at, over: false, until, metrics, _permits: [one, other] };
    Sse::new(stream::unfold(reading, Reading::next)).keep_alive(KeepAlive::new().interval(BEAT)).into_response()
}

/// Allows any page to read public streams, and keeps proxies from buffering them.
async fn openly(mut response: Response) -> Response {
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "last-event-id"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
        (header::CONNECTION, "close"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Accepts as many connections as there is room for, and closes idle ones.
pub(crate) struct Doors {
    listener: TcpListener,
    free: Arc<Semaphore>,
    /// Where refusals are counted, if anywhere.
    metrics: Option<Arc<Metrics>>,
    idle: Duration,
    stall: Duration,
    whole: Duration,
}

impl Doors {
    /// For so many connections.
    pub(crate) fn of(listener: TcpListener, most: usize) -> Self {
        Doors { listener, free: Arc::new(Semaphore::new(most)), metrics: None, idle: IDLE, stall: STALL, whole: WHOLE }
    }
}

impl axum::serve::Listener for Doors {
    type Io = Guarded;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Guarded, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, from)) => {
                    // Without room the connection is closed at once: a reader comes again.
                    let Ok(permit) = self.free.clone().try_acquire_owned() else {
                        if let Some(metrics) = &self.metrics {
                            metrics.0.add("stream_refused_total", &[], 1.0);
                        }
                        continue;
                    };
                    let _ = stream.set_nodelay(true);
                    let (idle, whole) = (Some(Box::pin(sleep(self.idle))), Some(Box::pin(sleep(self.whole))));
                    return (Guarded { stream, idle, stalled: None, stall: self.stall, whole, _permit: permit }, from);
                }
                // No file descriptor is left, for example.
                Err(_) => sleep(Duration::from_secs(1)).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends when the other side sends no request, or takes no output.
pub(crate) struct Guarded {
    stream: TcpStream,
    idle: Option<Pin<Box<Sleep>>>,
    /// Since when nothing could be written.
    stalled: Option<Pin<Box<Sleep>>>,
    stall: Duration,
    /// Its end, however slowly it is read.
    whole: Option<Pin<Box<Sleep>>>,
    _permit: OwnedSemaphorePermit,
}

fn too_long(sleep: &mut Option<Pin<Box<Sleep>>>, context: &mut Context<'_>) -> bool {
    sleep.as_mut().is_some_and(|sleep| sleep.as_mut().poll(context).is_ready())
}

impl AsyncRead for Guarded {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        if read.is_pending() && too_long(&mut self.idle, context) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl Guarded {
    fn guard<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if too_long(&mut self.whole, context) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        if written.is_ready() {
            (self.idle, self.stalled) = (None, None);
            return written;
        }
        let stall = self.stall;
        self.stalled.get_or_insert_with(|| Box::pin(sleep(stall)));
        if too_long(&mut self.stalled, context) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.guard(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// How a text that is shown here arrives where others are told to read it.
#[derive(Debug, PartialEq, Eq)]
pub enum Through {
    /// It comes at once.
    Open,
    /// It comes at once, to readers that go into networks of their own.
    Inside,
    /// It comes when all of it is there: something between keeps it back.
    KeptBack,
    /// It does not come; what is there instead.
    Lost(String),
}

/// Shows a text at an address for a moment, and reads it from where others are told to.
pub async fn comes_through(listener: TcpListener, url: &str, within: Duration) -> Through {
    let streams = Arc::new(Streams::new(4, Arc::default()));
    let (task, text) = (rand::random::<u64>(), format!("muster-agent doctor {:032x}", rand::random::<u128>()));
    let Showing(show) = &streams.begin(task, false);
    show.push(&text);
    let server = tokio::spawn(serve(streams.clone(), listener));
    let reader = |inside| Streaming::published(&format!("stream+{url}"), task, inside);
    let told = async {
        for (inside, through) in [(false, Through::Open), (true, Through::Inside)] {
            if timeout(within, reader(inside).next()).await == Ok(Heard::Text(text.clone())) {
                return through;
            }
        }
        // Others may have waited for the end of an open stream.
        let mut reads = reader(true);
        let end = async {
            sleep(within / 2).await;
            show.settle(digest_of(text.as_bytes()));
        };
        let ((), heard) = tokio::join!(end, timeout(2 * within, reads.next()));
        if heard == Ok(Heard::Text(text.clone())) {
            return Through::KeptBack;
        }
        Through::Lost(asked(url, task).await)
    };
    let told = told.await;
    server.abort();
    told
}

/// Whether an agent answers where others are told to read, and what is there instead if not.
pub async fn is_served(url: &str) -> Result<(), String> {
    let said = asked(url, rand::random()).await;
    if said == format!("404 Not Found: {}", NOT_HERE.trim()) {
        Ok(())
    } else {
        Err(said)
    }
}

/// The answer of a place about a task, in a line.
async fn asked(url: &str, task: u64) -> String {
    const MOST: usize = 200;
    const WITHIN: Duration = Duration::from_secs(20);
    let asking = async {
        let asked = muster_client::fetcher()?.get(format!("{}/{task}", url.trim_end_matches('/')));
        let mut answer = asked.send().await?;
        let (status, mut body) = (answer.status(), Vec::new());
        while let Some(bytes) = answer.chunk().await?.filter(|_| body.len() < MOST) {
            body.extend_from_slice(&bytes);
        }
        body.truncate(MOST);
        let line = String::from_utf8_lossy(&body).lines().next().unwrap_or_default().replace(char::is_control, " ");
        anyhow::Ok(format!("{status}: {line}"))
    };
    match timeout(WITHIN, asking).await {
        Ok(Ok(said)) => said,
        Ok(Err(error)) => format!("{error:#}"),
        Err(_) => format!("nothing comes within {} s", WITHIN.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn served(listeners: usize) -> (Arc<Streams>, SocketAddr) {
        let streams = Arc::new(Streams::new(listeners, Arc::default()));
        let listener = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(serve(streams.clone(), listener));
        (streams, at)
    }

    fn reader(at: SocketAddr, task: u64) -> Streaming {
        Streaming::published(&format!("https://elsewhere.invalid stream+http://{at}/stream"), task, true)
    }

    /// The response to a request, until the connection ends or a text appears in it.
    async fn asked(at: SocketAddr, request: &str, until: &str) -> String {
        let mut stream = TcpStream::connect(at).await.unwrap();
        stream.write_all(format!("{request}\r\nHost: here\r\n\r\n").as_bytes()).await.unwrap();
        let (mut text, mut some) = (String::new(), [0; 4096]);
        while !text.contains(until) {
            match stream.read(&mut some).await {
                Ok(0) | Err(_) => break,
                Ok(read) => text += &String::from_utf8_lossy(&some[..read]),
            }
        }
        text
    }

    #[tokio::test]
    async fn readers_have_the_pieces_as_they_come_and_the_end() {
        let (streams, at) = served(4).await;
        let mut early = reader(at, 7);
        // It is not there yet, and is asked for again.
        assert!(tokio::time::timeout(Duration::from_millis(100), early.next()).await.is_err());
        let showing = streams.begin(7, false);
        showing.0.push("one ");
        assert_eq!(early.next().await, Heard::Text("one ".into()));
        showing.0.push("twö");
        assert_eq!(early.next().await, Heard::Text("twö".into()));
        let mut late = reader(at, 7);
        assert_eq!(late.next().await, Heard::Text("one ".into()));
        showing.0.settle(digest_of("one twö".as_bytes()));
        assert_eq!((late.next().await, late.next().await), (Heard::Text("twö".into()), Heard::Whole));
        assert_eq!(early.next().await, Heard::Whole);
        assert_eq!(early.shown().digest(), digest_of("one twö".as_bytes()));
        // Also after the end, and from a reader's stated position.
        drop(showing);
        let again = asked(at, "GET /stream/7 HTTP/1.1\r\nLast-Event-ID: 4", "event: end").await;
        assert!(again.contains(r#"data: {"from":4,"text":"twö","#) && !again.contains("one"), "{again}");
        assert!(again.contains("access-control-allow-origin: *") && again.contains("text/event-stream"), "{again}");
        // No position is in the middle of a character.
        let odd = asked(at, "GET /stream/7 HTTP/1.1\r\nLast-Event-ID: 7", "event: end").await;
        assert!(odd.contains(r#""from":0"#) && odd.contains("event: end"), "{odd}");
    }

    #[tokio::test]
    async fn what_is_not_shown_is_said() {
        let (streams, at) = served(4).await;
        let _hidden = streams.begin(1, true);
        assert_eq!(reader(at, 1).next().await, Heard::Hidden);
        drop(streams.begin(2, false));
        assert_eq!(reader(at, 2).next().await, Heard::Stopped(Why::Failed));
        let changed = streams.begin(3, false);
        changed.0.push("one");
        changed.0.settle(digest_of(b"another"));
        let mut reads = reader(at, 3);
        assert_eq!((reads.next().await, reads.next().await), (Heard::Text("one".into()), Heard::Stopped(Why::Changed)));
        let whole = streams.begin(4, false);
        whole.0.settle(digest_of(b"a picture"));
        assert_eq!(reader(at, 4).next().await, Heard::Stopped(Why::Whole));
        let long = streams.begin(5, false);
        for _ in 0..=SHOWN / PIECE {
            long.0.push(&"x".repeat(PIECE));
        }
        assert_eq!(long.0.kept().end.unwrap().0, End::Stopped(Why::Long));
        assert!(long.0.kept().shown.text().len() <= SHOWN);
        let small = streams.begin(6, false);
        for _ in 0..=PIECES {
            small.0.push("x");
        }
        assert_eq!(small.0.kept().marks.len(), PIECES);
        assert_eq!(small.0.kept().end.unwrap().0, End::Stopped(Why::Long));
        // A reader of the first attempt notices that another attempt differs.
        let again = streams.begin(8, false);
        again.0.push("one, ");
        let mut reads = reader(at, 8);
        assert_eq!(reads.next().await, Heard::Text("one, ".into()));
        again.0.again();
        again.0.push("three, four");
        assert!(matches!(reads.next().await, Heard::Untrue(_)));
    }

    #[tokio::test]
    async fn readers_are_bounded_and_old_answers_are_forgotten() {
        let (streams, at) = served(1).await;
        let one = streams.begin(1, false);
        one.0.push("text");
        let mut first = reader(at, 1);
        assert_eq!(first.next().await, Heard::Text("text".into()));
        let refused = asked(at, "GET /stream/1 HTTP/1.1", "too many").await;
        assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("retry-after: 5"), "{refused}");
        let measured = |name| streams.metrics.0.get(name, &[]);
        assert_eq!(streams.seen(), (1, 1));
        assert_eq!(measured("stream_pieces_total").zip(measured("stream_bytes_total")), Some((1.0, 4.0)));
        assert_eq!(measured("stream_refused_total"), Some(1.0));
        drop(first);
        // Once its server has noticed.
        let mut second = reader(at, 1);
        assert_eq!(second.next().await, Heard::Text("text".into()));
        assert_eq!((streams.seen(), measured("stream_bytes_total")), ((1, 1), Some(8.0)));
        for task in 2..100 {
            drop(streams.begin(task, false));
        }
        let kept = streams.shows().len();
        assert!(kept <= KEPT_MOST + 1 && streams.of(1).is_some() && streams.of(99).is_some(), "{kept}");
    }

    #[tokio::test]
    async fn who_asks_nothing_or_takes_nothing_is_not_waited_for() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let at = listener.local_addr().unwrap();
        let short = Duration::from_millis(50);
        let (free, metrics) = (Arc::new(Semaphore::new(1)), Arc::<Metrics>::default());
        let mut doors = Doors { listener, free, metrics: Some(metrics.clone()), idle: short, stall: short, whole: WHOLE };
        let _silent = TcpStream::connect(at).await.unwrap();
        let (mut served, _) = axum::serve::Listener::accept(&mut doors).await;
        let asked = served.read(&mut [0; 8]).await;
        assert_eq!(asked.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let taken = loop {
            if let Err(error) = served.write(&[0; 1 << 14]).await {
                break error;
            }
        };
        assert_eq!(taken.kind(), io::ErrorKind::TimedOut);
        // While there is no room, others are refused.
        let (mut second, mut some) = (TcpStream::connect(at).await.unwrap(), [0; 8]);
        tokio::select! {
            _ = axum::serve::Listener::accept(&mut doors) => panic!("there is room for one"),
            read = second.read(&mut some) => assert!(matches!(read, Ok(0) | Err(_))),
        }
        assert_eq!(metrics.0.get("stream_refused_total", &[]), Some(1.0));
        drop(served);
        let _third = TcpStream::connect(at).await.unwrap();
        axum::serve::Listener::accept(&mut doors).await;
    }

    #[tokio::test]
    async fn a_slow_reader_has_its_place_for_a_time_and_no_longer() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let at = listener.local_addr().unwrap();
        let (long, whole) = (Duration::from_mins(1), Duration::from_millis(300));
        let free = Arc::new(Semaphore::new(1));
        let mut doors = Doors { listener, free, metrics: None, idle: long, stall: long, whole };
        let mut slow = TcpStream::connect(at).await.unwrap();
        let (mut served, _) = axum::serve::Listener::accept(&mut doors).await;
        let taking = tokio::spawn(async move {
            while slow.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {
                sleep(Duration::from_millis(1)).await;
            }
        });
        let taken = timeout(long, async {
            loop {
                if let Err(error) = served.write(&[0; 1 << 14]).await {
                    break error;
                }
            }
        });
        assert_eq!(taken.await.unwrap().kind(), io::ErrorKind::TimedOut);
        taking.abort();
    }

    #[tokio::test]
    async fn a_long_piece_is_divided_between_letters() {
        let streams = Streams::new(1, Arc::default());
        let showing = streams.begin(1, false);
        let text = format!("a{}", "ö".repeat(PIECE));
        showing.0.push(&text);
        let kept = showing.0.kept();
        assert_eq!((kept.shown.text(), kept.marks.len()), (text.as_str(), 3));
        assert!(kept.marks.iter().all(|(end, _)| text.is_char_boundary(*end)));
    }

    /// As both packages read it, and byte by byte.
    #[tokio::test]
    async fn what_is_sent_is_what_the_vectors_have() {
        let all: serde_json::Value = serde_json::from_str(include_str!("../../vectors.json")).unwrap();
        let vector = &all["streams"][0];
        let (streams, at) = served(1).await;
        let showing = streams.begin(1, false);
        for piece in ["Once ", "üpon 🐴", "\na \"time\""] {
            showing.0.push(piece);
        }
        showing.0.settle(digest_of(vector["text"].as_str().unwrap().as_bytes()));
        let answer = asked(at, "GET /stream/1 HTTP/1.0", "only its end ends it").await;
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, vector["events"].as_str().unwrap());
    }

    /// A proxy, which passes a connection's bytes on as they come, or all of them at its end.
    async fn proxy(to: SocketAddr, keeps_back: bool) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut from, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut to = TcpStream::connect(to).await?;
                    if !keeps_back {
                        return tokio::io::copy_bidirectional(&mut from, &mut to).await.map(|_| ());
                    }
                    let mut some = [0; 4096];
                    let read = from.read(&mut some).await?;
                    to.write_all(&some[..read]).await?;
                    let mut whole = Vec::new();
                    to.read_to_end(&mut whole).await?;
                    from.write_all(&whole).await
                });
            }
        });
        format!("http://{at}/stream")
    }

    #[tokio::test]
    async fn what_becomes_of_a_text_on_its_way_to_readers_is_found_out() {
        // Of what comes in the end, and of what does not.
        let (long, short) = (Duration::from_mins(1), Duration::from_secs(4));
        let listener = || async { listen("127.0.0.1:0".parse().unwrap()).await.unwrap() };
        let own = listener().await;
        let at = own.local_addr().unwrap();
        // Not by those who stay out of this machine.
        assert_eq!(comes_through(own, &proxy(at, false).await, long).await, Through::Inside);
        let own = listener().await;
        let at = own.local_addr().unwrap();
        assert_eq!(comes_through(own, &proxy(at, true).await, short).await, Through::KeptBack);
        let other = proxy(served(1).await.1, false).await;
        let said = comes_through(listener().await, &other, short).await;
        assert_eq!(said, Through::Lost("404 Not Found: no answer to this task is made here now".into()));
        let Through::Lost(said) = comes_through(listener().await, "http://127.0.0.1:1/stream", short).await else { panic!() };
        assert!(said.contains("refused"), "{said}");
        // Whether an agent is there.
        assert_eq!(is_served(&other).await, Ok(()));
        assert!(is_served(&other.replace("/stream", "/streams")).await.unwrap_err().starts_with("404 Not Found"));
    }
}
