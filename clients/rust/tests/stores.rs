//! Stores that have objects, lose them, change them, are away, or never end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use alloy::primitives::{Address, B256};
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::Router;
use muster_client::{cid_of, digest_of, Access, Bounds, Given, Object, Seal, Secrets, Seed, Store, Stores, Trouble};

const BOUNDS: Bounds = Bounds { bytes: 1_000, timeout: Duration::from_mins(1) };

/// A server of objects by path, whose requests can be looked at.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<Shelf>>);

#[derive(Default)]
struct Shelf {
    objects: HashMap<String, Vec<u8>>,
    requests: Vec<(Method, String, HashMap<String, String>)>,
    /// Answers with this instead.
    status: Option<StatusCode>,
    /// Answers without end.
    endless: bool,
    /// Does not answer.
    silent: bool,
}

impl Server {
    async fn start() -> (Self, String) {
        let server = Self::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(serve).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (server, url)
    }

    fn shelf(&self) -> std::sync::MutexGuard<'_, Shelf> {
        self.0.lock().unwrap()
    }
}

async fn serve(State(server): State<Server>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let (method, path) = (parts.method, parts.uri.path().to_string());
    let whole = parts.uri.path_and_query().unwrap().to_string();
    let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_string()));
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let (status, endless, silent) = {
        let mut shelf = server.shelf();
        shelf.requests.push((method.clone(), whole, headers.collect()));
        (shelf.status, shelf.endless, shelf.silent)
    };
    if silent {
        std::future::pending::<()>().await;
    }
    if endless {
        return Body::from_stream(futures_util::stream::repeat(Ok::<_, std::convert::Infallible>(Bytes::from_static(&[7; 64]))))
            .into_response();
    }
    if let Some(status) = status {
        return status.into_response();
    }
    let mut shelf = server.shelf();
    if method == Method::DELETE {
        let gone = shelf.objects.remove(&path).is_none();
        return if gone { StatusCode::NOT_FOUND } else { StatusCode::NO_CONTENT }.into_response();
    }
    if method == Method::PUT {
        shelf.objects.insert(path, body.to_vec());
        return (StatusCode::CREATED, [("etag", "\"1\"")]).into_response();
    }
    match shelf.objects.get(&path) {
        Some(bytes) => ([("etag", "\"1\""), ("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT")], bytes.clone()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn one(url: &str) -> Stores {
    Stores::open(&[url], BOUNDS).unwrap()
}

/// The failure of the only store to return the object of this digest.
async fn refused(url: &str, digest: B256) -> Trouble {
    let lost = one(url).get(digest).await.unwrap_err();
    assert_eq!(lost.object, Object::Plain(digest));
    assert_eq!(lost.attempts.len(), 1, "{lost}");
    lost.attempts[0].trouble.clone()
}

#[tokio::test]
async fn what_is_put_is_found_again() {
    let place = tempfile::tempdir().unwrap();
    let (server, url) = Server::start().await;
    let directory = place.path().join("a b/c");
    let file = format!("file://{}", directory.display().to_string().replace(' ', "%20"));
    for (put, get) in [(directory.to_str().unwrap(), file.as_str()), (&format!("{url}/below"), &format!("{url}/below/"))] {
        for bytes in [&b""[..], b"abc", &[9; 1_000]] {
            let digest = digest_of(bytes);
            assert_eq!(refused(get, digest).await, Trouble::Missing);
            assert_eq!(one(put).put(bytes).await.unwrap(), (digest, vec![]));
            assert_eq!(one(get).get(digest).await.unwrap().bytes, bytes);
            // Putting it again changes nothing.
            one(put).put(bytes).await.unwrap();
            assert_eq!(one(get).get(digest).await.unwrap().bytes, bytes);
        }
        let lost = one(put).put(&[9; 1_001]).await.unwrap_err();
        assert_eq!(lost.attempts[0].trouble, Trouble::TooLong(1_000));
    }
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(server.shelf().objects[&format!("/below/{abc}")], b"abc");
    let mut files: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files.len(), 3);
    assert!(files.iter().all(|name| name.len() == 64), "{files:?}");
    assert_eq!(std::fs::read(directory.join(abc)).unwrap(), b"abc");
}

#[tokio::test]
async fn missing_unreachable_corrupt_and_endless_are_told_apart() {
    let (server, url) = Server::start().await;
    let digest = digest_of(b"abc");
    let at = format!("/{}", Object::Plain(digest).name());
    assert_eq!(refused(&url, digest).await, Trouble::Missing);
    server.shelf().objects.insert(at, b"abd".to_vec());
    assert!(matches!(refused(&url, digest).await, Trouble::Corrupt(_)));
    server.shelf().endless = true;
    assert_eq!(refused(&url, digest).await, Trouble::TooLong(1_000));
    server.shelf().endless = false;
    for (status, expected) in [
        (StatusCode::GONE, Trouble::Missing),
        (StatusCode::FORBIDDEN, Trouble::Unreachable("HTTP 403".into())),
        (StatusCode::BAD_GATEWAY, Trouble::Unreachable("HTTP 502".into())),
        // A part is not the whole.
        (StatusCode::PARTIAL_CONTENT, Trouble::Unreachable("HTTP 206".into())),
        (StatusCode::NO_CONTENT, Trouble::Unreachable("HTTP 204".into())),
    ] {
        server.shelf().status = Some(status);
        assert_eq!(refused(&url, digest).await, expected);
    }
    server.shelf().silent = true;
    let began = Instant::now();
    let quick = Stores::open(&[&url], Bounds { timeout: Duration::from_millis(300), ..BOUNDS }).unwrap();
    let lost = quick.get(digest).await.unwrap_err();
    assert!(lost.passes() && began.elapsed() < BOUNDS.timeout, "{lost}");
    // No server listens there.
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    assert!(matches!(refused(&format!("http://{closed}"), digest).await, Trouble::Unreachable(_)));
    assert_eq!(
        Stores::default().get(digest).await.unwrap_err().to_string(),
        format!("{}: there is no store", &digest.to_string()[2..])
    );

    let place = tempfile::tempdir().unwrap();
    let directory = place.path().to_str().unwrap();
    let name = place.path().join(Object::Plain(digest).name());
    std::fs::write(&name, b"abd").unwrap();
    assert!(matches!(refused(directory, digest).await, Trouble::Corrupt(_)));
    std::fs::write(&name, [7; 1_001]).unwrap();
    assert_eq!(refused(directory, digest).await, Trouble::TooLong(1_000));
    std::fs::remove_file(&name).unwrap();
    std::fs::create_dir(&name).unwrap();
    assert!(matches!(refused(directory, digest).await, Trouble::Corrupt(_)));
    std::fs::write(place.path().join("file"), b"").unwrap();
    assert!(matches!(refused(place.path().join("file").to_str().unwrap(), digest).await, Trouble::Unreachable(_)));
}

#[tokio::test]
async fn stores_are_asked_one_after_the_other() {
    let place = tempfile::tempdir().unwrap();
    let (server, url) = Server::start().await;
    let directory = place.path().to_str().unwrap();
    let stores = Stores::open(&[&format!("ipfs+{url}"), &url, directory], BOUNDS).unwrap();
    // The gateway is read-only and not asked; one of two others is enough.
    server.shelf().status = Some(StatusCode::METHOD_NOT_ALLOWED);
    let (digest, others) = stores.put(b"abc").await.unwrap();
    assert_eq!(others.len(), 1);
    assert_eq!((others[0].store.as_str(), &others[0].trouble), (url.as_str(), &Trouble::ReadOnly("HTTP 405".into())));
    server.shelf().status = None;
    server.shelf().objects.insert(format!("/{}", Object::Plain(digest).name()), b"lie".to_vec());
    let found = stores.get(digest).await.unwrap();
    assert_eq!((found.bytes.as_slice(), found.store.as_str()), (&b"abc"[..], directory));
    let troubles: Vec<_> = found.attempts.into_iter().map(|attempt| attempt.trouble).collect();
    assert!(matches!(&troubles[..], [Trouble::Missing, Trouble::Corrupt(_)]), "{troubles:?}");
    // None takes it.
    server.shelf().status = Some(StatusCode::SERVICE_UNAVAILABLE);
    let lost = Stores::open(&[&format!("ipfs+{url}"), &url], BOUNDS).unwrap().put(b"abc").await.unwrap_err();
    assert!(lost.passes() && lost.attempts.len() == 1, "{lost}");
}

#[tokio::test]
async fn a_gateway_gives_plain_objects_by_their_cids() {
    let (server, url) = Server::start().await;
    let digest = digest_of(b"abc");
    server.shelf().objects.insert(format!("/ipfs/{}", cid_of(digest)), b"abc".to_vec());
    let gateway = one(&format!("ipfs+{url}"));
    assert_eq!(gateway.get(digest).await.unwrap().bytes, b"abc");
    assert!(server.shelf().requests[0].1.ends_with("?format=raw"));
    // Sealed ones it is not even asked for.
    let lost = gateway.open_sealed(&Seal::new(1, 1, digest)).await.unwrap_err();
    assert_eq!(lost.attempts[0].trouble, Trouble::Missing);
    assert_eq!(server.shelf().requests.len(), 1);
}

#[tokio::test]
async fn sealed_results_are_found_by_their_salt() {
    let place = tempfile::tempdir().unwrap();
    let (server, url) = Server::start().await;
    let stores = Stores::open(&[&url, place.path().to_str().unwrap()], BOUNDS).unwrap();
    let secrets = Secrets::new(&Seed::new([7; 32]), Address::ZERO, 1, Address::ZERO);
    let seal = Seal::new(5, 6, secrets.answer(Given { id: 5, node: 6, deadline: 9 }, b"a result").salt);
    let object = seal.seal(b"a result").unwrap();
    assert!(!object.windows(8).any(|part| part == b"a result"));
    assert_eq!(stores.put_sealed(&seal, &object).await.unwrap(), []);
    assert_eq!(stores.open_sealed(&seal).await.unwrap().bytes, b"a result");
    // Another node's sealed result is not accepted in its place.
    let salt = secrets.answer(Given { id: 5, node: 7, deadline: 9 }, b"a result").salt;
    let other = Seal::new(5, 7, salt).seal(b"a result").unwrap();
    server.shelf().objects.insert(format!("/{}", Object::Sealed(seal.name()).name()), other);
    let found = stores.open_sealed(&seal).await.unwrap();
    assert_eq!(found.bytes, b"a result");
    assert_eq!(found.attempts[0].trouble, Trouble::Corrupt("the seal is broken".into()));
}

#[tokio::test]
async fn headers_and_signed_urls_go_along_and_what_is_removed_is_gone() {
    let (server, url) = Server::start().await;
    let headers = [("Authorization".to_string(), "Bearer s3cret".to_string())];
    let with = Stores::from(vec![Store::open_with(&url, &headers, BOUNDS).unwrap()]);
    let at = url.clone();
    let sign = move |access, name: &str| Some(format!("{at}/{name}?for={access:?}&sig=s3cret").parse().unwrap());
    let signed = Stores::from(vec![Store::signed("signed", &[], BOUNDS, sign).unwrap()]);
    let digest = digest_of(b"abc");
    for stores in [&with, &signed] {
        assert_eq!(stores.put(b"abc").await.unwrap(), (digest, vec![]));
        assert_eq!(stores.get(digest).await.unwrap().bytes, b"abc");
        assert_eq!(stores.remove(Object::Plain(digest)).await, []);
        assert_eq!(stores.get(digest).await.unwrap_err().attempts[0].trouble, Trouble::Missing);
        // Removing a missing object succeeds.
        assert_eq!(stores.remove(Object::Plain(digest)).await, []);
    }
    let requests = std::mem::take(&mut server.shelf().requests);
    let (first, second) = requests.split_at(requests.len() / 2);
    assert!(first.iter().all(|(_, _, headers)| headers["authorization"] == "Bearer s3cret"));
    for ((method, path, headers), access) in second.iter().zip([Access::Put, Access::Get, Access::Delete]) {
        assert!(
            path.ends_with(&format!("?for={access:?}&sig=s3cret")) && !headers.contains_key("authorization"),
            "{method} {path}"
        );
    }
    for (name, value) in [("a b", "x"), ("a", "x\ns3cret")] {
        let wrong = Store::open_with(&url, &[(name.into(), value.into())], BOUNDS).err().unwrap().to_string();
        assert!(!wrong.contains("s3cret"), "{wrong}");
    }
}

#[tokio::test]
async fn what_others_publish_leads_nowhere_inside() {
    let (server, url) = Server::start().await;
    let digest = digest_of(b"abc");
    server.shelf().objects.insert(format!("/{}", Object::Plain(digest).name()), b"abc".to_vec());
    let port = url.rsplit_once(':').unwrap().1;
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join(Object::Plain(digest).name()), b"abc").unwrap();
    let directory = place.path().to_str().unwrap();
    let named = |host: &str| format!("http://{host}:{port}");
    for text in [
        &url,
        &named("localhost"),
        &named("[::ffff:127.0.0.1]"),
        &named("0.0.0.0"),
        directory,
        &format!("file://{directory}"),
        "s3://a",
    ] {
        assert!(Stores::published(text, BOUNDS, false).get(digest).await.is_err(), "{text}");
    }
    assert!(server.shelf().requests.is_empty());
    let inside = Stores::published(&format!("age:age1x {directory} ipfs:// {url}"), BOUNDS, true);
    assert_eq!(inside.names().collect::<Vec<_>>(), [url.as_str()]);
    assert_eq!(inside.get(digest).await.unwrap().bytes, b"abc");
    // No more than eight are looked at.
    let many = ["https://store.example"; 12].join(" ");
    assert_eq!(Stores::published(&many, BOUNDS, false).names().count(), 8);
}

#[tokio::test]
async fn a_silent_store_holds_up_no_other_and_a_file_is_there_once_it_is_right() {
    let ((silent, first), (liar, second), (right, third)) = (Server::start().await, Server::start().await, Server::start().await);
    let digest = digest_of(b"abc");
    let at = format!("/{}", Object::Plain(digest).name());
    silent.shelf().silent = true;
    liar.shelf().objects.insert(at.clone(), b"abd".to_vec());
    let stores = Stores::open(&[&first, &second, &third], BOUNDS).unwrap();
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("input");
    let quick = Stores::open(&[&second, &third], BOUNDS).unwrap();
    let lost = quick.get_to(digest, &file).await.unwrap_err();
    assert!(matches!(lost.attempts[0].trouble, Trouble::Corrupt(_)) && lost.attempts[1].trouble == Trouble::Missing, "{lost}");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    right.shelf().objects.insert(at, b"abc".to_vec());
    let begun = Instant::now();
    let kept = stores.get_to(digest, &file).await.unwrap();
    assert!(begun.elapsed() < BOUNDS.timeout);
    assert_eq!((kept.store.as_str(), kept.attempts.len()), (third.as_str(), 1));
    assert_eq!(std::fs::read(&file).unwrap(), b"abc");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    let nowhere = stores.get_to(digest, &place.path().join("no/such")).await;
    let quick = Stores::open(&[&third], BOUNDS).unwrap().get_to(digest, &place.path().join("no/such")).await;
    for lost in [nowhere.unwrap_err(), quick.unwrap_err()] {
        assert!(lost.attempts.iter().any(|attempt| matches!(attempt.trouble, Trouble::Unwritten(_))), "{lost}");
    }
}

/// The only test that sets these variables.
#[cfg(feature = "s3")]
#[tokio::test]
async fn a_bucket_is_a_store() {
    let (server, url) = Server::start().await;
    for (name, value) in [
        ("AWS_ENDPOINT", url.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "name"),
        ("AWS_SECRET_ACCESS_KEY", "s3cret"),
    ] {
        std::env::set_var(name, value);
    }
    let bucket = one("s3://bucket/some/path");
    let digest = digest_of(b"abc");
    assert_eq!(bucket.get(digest).await.unwrap_err().attempts[0].trouble, Trouble::Missing);
    assert_eq!(bucket.put(b"abc").await.unwrap().0, digest);
    assert_eq!(bucket.get(digest).await.unwrap().bytes, b"abc");
    let at = format!("/bucket/some/path/{}", Object::Plain(digest).name());
    for (method, path, headers) in &server.shelf().requests {
        assert_eq!(path, &at);
        let signed = &headers["authorization"];
        assert!(signed.starts_with("AWS4-HMAC-SHA256 Credential=name/") && !signed.contains("s3cret"), "{method} {signed}");
    }
    server.shelf().objects.insert(at, vec![7; 1_001]);
    assert_eq!(bucket.get(digest).await.unwrap_err().attempts[0].trouble, Trouble::TooLong(1_000));
    server.shelf().status = Some(StatusCode::FORBIDDEN);
    assert!(bucket.get(digest).await.unwrap_err().passes());
    let lost = bucket.put(b"abc").await.unwrap_err();
    assert_eq!(lost.attempts[0].trouble, Trouble::ReadOnly("it refuses these keys".into()));
}
