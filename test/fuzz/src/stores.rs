//! Bytes as data from outside to the Rust library: a store's answers over HTTP, accounts' published stores, sealed objects, notes, errors,
//! amounts.

use crate::bytes::Bytes;
use alloy_primitives::{keccak256, B256, U256};
use muster_client::{
    digest_of, parse_amount, published_key, show_amount, Bounds, Given, Private, Refusal, Seal, Secrets, Seed, Stores, NOTE,
    SEALED,
};
use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{channel, Sender};
use std::time::Duration;

/// The most bytes of an object here.
const MOST: usize = 1_024;
const KINDS: [&str; 3] = ["http", "ipfs+http", "kubo+http"];
const STATUSES: [&str; 10] = [
    "200 OK",
    "200 OK",
    "200 OK",
    "404 Not Found",
    "403 Forbidden",
    "500 No",
    "206 Partial Content",
    "204 No Content",
    "304 Not Modified",
    "100 Continue",
];

/// Answers every request with the same bytes.
fn serve() -> (SocketAddr, Sender<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let (says, said) = channel::<Vec<u8>>();
    std::thread::spawn(move || {
        let mut answer = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            while let Ok(next) = said.try_recv() {
                answer = next;
            }
            let mut asked: Vec<u8> = Vec::new();
            let mut piece = [0; 1_024];
            while !asked.windows(4).any(|four| four == b"\r\n\r\n") {
                match stream.read(&mut piece) {
                    Ok(length @ 1..) => asked.extend(&piece[..length]),
                    _ => break,
                }
            }
            // The client may be gone.
            let _ = stream.write_all(&answer);
        }
    });
    (address, says)
}

/// An answer, and whether it is one to take.
fn answer(b: &mut Bytes, object: &[u8]) -> (Vec<u8>, bool) {
    if b.below(4) == 3 {
        return (b.0.to_vec(), false);
    }
    let status = b.of(&STATUSES);
    let mut body = object.to_vec();
    let whole = match b.below(4) {
        0 | 1 => true,
        2 => {
            body.truncate(b.byte().into());
            body.len() == object.len()
        }
        _ => {
            let at = b.byte() as usize;
            body.get_mut(at).map(|byte| *byte ^= 1).is_none()
        }
    };
    let mut out = format!("HTTP/1.1 {status}\r\nConnection: close\r\n").into_bytes();
    let mut fits = true;
    match b.below(4) {
        0 => out.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes()),
        1 => {
            let length = u64::from(b.byte()) << (b.byte() & 31);
            fits = length == body.len() as u64;
            out.extend(format!("Content-Length: {length}\r\n\r\n").bytes());
        }
        2 => {
            out.extend(b"Transfer-Encoding: chunked\r\n\r\n");
            let size = 1 + b.byte() as usize;
            let chunks: Vec<u8> =
                body.chunks(size).flat_map(|c| [format!("{:x}\r\n", c.len()).as_bytes(), c, b"\r\n"].concat()).collect();
            body = [&chunks[..], b"0\r\n\r\n"].concat();
        }
        _ => out.extend(b"\r\n"),
    }
    out.extend(&body);
    (out, status == "200 OK" && whole && fits)
}

fn ask(b: &mut Bytes) {
    thread_local! {
        static SERVER: (SocketAddr, Sender<Vec<u8>>) = serve();
        static RUNTIME: RefCell<tokio::runtime::Runtime> =
            RefCell::new(tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"));
    }
    let kind = b.of(&KINDS);
    let length = b.byte() as usize * (1 + b.byte() as usize % 6);
    let object = b.take(length).to_vec();
    let digest = digest_of(&object);
    let (says, takes) = answer(b, &object);
    SERVER.with(|(address, say)| {
        say.send(says).expect("it serves");
        let bounds = Bounds { bytes: MOST, timeout: Duration::from_secs(5) };
        let stores = Stores::open(&[format!("{kind}://{address}/")], bounds).expect("a store");
        match RUNTIME.with_borrow_mut(|runtime| runtime.block_on(stores.get(digest))) {
            Ok(found) => {
                assert_eq!(digest_of(&found.bytes), digest, "what was asked for");
                assert!(found.bytes.len() <= MOST);
            }
            Err(lost) => assert!(!takes || object.len() > MOST, "{kind}: {lost}"),
        }
    });
}

/// Panics where the library does, or takes bytes that it must not.
pub fn run(data: &[u8]) {
    thread_local!(static SECRETS: (Secrets, Private) = {
        let seed = Seed::new([7; 32]);
        let account = [9; 20].into();
        (Secrets::new(&seed, account, 412_346, [8; 20].into()), Private::of_seed(&seed, account))
    });
    let mut b = Bytes(data);
    match b.below(7) {
        0 | 1 => ask(&mut b),
        2 => {
            let Ok(text) = std::str::from_utf8(b.0) else { return };
            let bounds = Bounds::default();
            let (inside, outside) = (Stores::published(text, bounds, true), Stores::published(text, bounds, false));
            assert!(inside.names().count() <= 8 && outside.names().count() <= inside.names().count());
            // Nothing that reads a file or another's bucket.
            assert!(inside.names().all(|name| name.starts_with("http") || name.starts_with("ipfs+http")), "{text:?}");
            published_key(text);
        }
        3 => SECRETS.with(|(_, private)| {
            let _ = private.open_result(b.0);
            let _ = private.open_input(&[SEALED, b.0].concat());
        }),
        4 => {
            let seal = Seal::new(1, 2, B256::repeat_byte(3));
            let _ = seal.open(b.0.to_vec());
            SECRETS.with(|(secrets, _)| {
                let given = Given { id: 1, node: 2, deadline: 3 };
                let opening = secrets.answer(given, b.0);
                let object = Seal::new(1, 2, opening.salt).seal(b.0).expect("its own");
                assert_eq!(Seal::new(1, 2, opening.salt).open(object.clone()).expect("it was sealed"), b.0);
                let mut bent = object;
                let at = u16::from_be_bytes([keccak256(b.0)[0], keccak256(b.0)[1]]) as usize % bent.len();
                bent[at] ^= 1;
                assert!(Seal::new(1, 2, opening.salt).open(bent).is_err(), "a bent object");
                let note = secrets.note(1, 2, &opening);
                assert!(note.len() == NOTE && secrets.read_note(1, 2, &note).is_ok());
                assert!(secrets.read_note(1, 2, b.0).is_err(), "another's note");
            });
        }
        5 => {
            let refusal = Refusal::decode(b.0);
            assert!(!refusal.to_string().is_empty());
            refusal.notice();
            refusal.advice();
        }
        _ => {
            let Ok(text) = std::str::from_utf8(b.0) else { return };
            if let Ok(wei) = parse_amount(text) {
                assert_eq!(parse_amount(&show_amount(wei)).expect("what is shown"), wei, "{text:?}");
                assert!(wei <= U256::MAX);
            }
        }
    }
}
