//! Inputs for nodes alone, and results for their creator alone: by this library, and as the TypeScript package seals them.
#![cfg(feature = "private")]

use alloy::hex;
use alloy::primitives::{Address, B256};
use alloy::signers::local::PrivateKeySigner;
use muster_client::{published_key, seal_input, seal_result, Opened, Private, PrivateError, Seed, SEALED};
use serde_json::Value;

fn of(key: u8) -> Private {
    Private::of(&PrivateKeySigner::from_bytes(&B256::repeat_byte(key)).unwrap())
}

#[test]
fn inputs_are_read_by_those_they_are_sealed_to_and_by_nobody_else() {
    let (one, two, other, creator) = (of(1), of(2), of(3), of(4));
    let (a, b, reply) = (one.recipient(), two.recipient(), creator.recipient());
    let sealed = seal_input(b"an input", &[&a, &b], Some(&reply)).unwrap();
    assert!(sealed.starts_with(SEALED) && !sealed.windows(8).any(|part| part == b"an input"));
    let opened = Opened { input: b"an input".to_vec(), reply: Some(reply.clone()) };
    assert_eq!(one.open_input(&sealed), Ok(opened.clone()));
    assert_eq!(two.open_input(&sealed), Ok(opened));
    assert_eq!(other.open_input(&sealed), Err(PrivateError::Others));
    for at in 0..sealed.len() {
        assert!(one.open_input(&sealed[..at]).is_err());
        let mut changed = sealed.clone();
        changed[at] ^= 1;
        // The part of the head for others may be broken: that does no harm.
        if let Ok(opened) = one.open_input(&changed) {
            assert_eq!(opened.input, b"an input");
        }
    }
    let result = seal_result(b"a result", &reply).unwrap();
    assert_eq!(creator.open_result(&result), Ok(b"a result".to_vec()));
    assert_eq!(one.open_result(&result), Err(PrivateError::Others));
    assert_eq!(seal_input(b"", &[], None), Err(PrivateError::Nobody));
    assert_eq!(seal_result(b"", "age1no"), Err(PrivateError::Key("age1no".into())));
}

#[test]
fn the_key_follows_from_the_accounts_and_is_published_beside_its_stores() {
    assert_eq!(of(1).recipient(), of(1).recipient());
    assert_ne!(of(1).recipient(), of(2).recipient());
    let published = format!("https://results.example {} ipfs://", of(1).entry());
    assert_eq!(published_key(&published), Some(&*of(1).recipient()));
    assert_eq!(published_key("https://results.example"), None);
    assert_eq!(of(1).entry().len(), 66, "{}", of(1).entry());
    let seeded = |seed, operator| Private::of_seed(&Seed::new([seed; 32]), Address::repeat_byte(operator)).recipient();
    assert_eq!(seeded(1, 1), seeded(1, 1));
    assert!(seeded(1, 1) != seeded(1, 2) && seeded(1, 1) != seeded(2, 1) && seeded(1, 1) != of(1).recipient());
}

/// Vectors sealed once by each package, because seals differ each time. With NEW set, prints new ones of this library.
#[test]
fn what_the_other_package_seals_is_opened() {
    let all: Value = serde_json::from_str(include_str!("../../vectors.json")).unwrap();
    let vectors = &all["private"];
    let text = |name: &str| vectors[name].as_str().unwrap().to_string();
    let account = PrivateKeySigner::from_slice(&hex::decode(text("account")).unwrap()).unwrap();
    let own = Private::of(&account);
    assert_eq!(own.recipient(), text("recipient"));
    if std::env::var_os("NEW").is_some() {
        let key = own.recipient();
        println!("{}", hex::encode(seal_input(text("input").as_bytes(), &[&key], Some(&key)).unwrap()));
        println!("{}", hex::encode(seal_result(text("result").as_bytes(), &key).unwrap()));
    }
    for by in ["typescript", "rust"] {
        let sealed = |name: &str| hex::decode(vectors[by][name].as_str().unwrap()).unwrap();
        let opened = Opened { input: text("input").into_bytes(), reply: Some(text("recipient")) };
        assert_eq!(own.open_input(&sealed("input")), Ok(opened), "{by}");
        assert_eq!(own.open_result(&sealed("result")), Ok(text("result").into_bytes()), "{by}");
    }
}

/// age parses a header anew for each line that it reads, and for each byte of a line without an end: four megabytes took hours, and the agent
/// answers nothing meanwhile.
#[test]
fn a_strangers_endless_header_takes_no_time() {
    let private = of(1);
    let begun = std::time::Instant::now();
    let sealed = |header: &str| [SEALED, b"age-encryption.org/v1\n", header.as_bytes()].concat();
    let mac = format!("--- {}\n", "A".repeat(43));
    for header in [
        format!("-> {}", "a".repeat(4 << 20)),
        format!("-> {}\n", "a ".repeat(400_000)),
        format!("-> {}\n\n{mac}", "a".repeat(1_000_000)),
        format!("{}{mac}", "-> a\n\n".repeat(150_000)),
        format!("{}{mac}", "-> a\n\n".repeat(1 << 20)),
        "-> a\n\n".repeat(1 << 20),
        format!("-> a\n\n---{}", " ".repeat(4 << 20)),
    ] {
        assert!(matches!(private.open_input(&sealed(&header)), Err(PrivateError::Broken(_) | PrivateError::Others)));
    }
    assert!(begun.elapsed().as_secs() < 120, "{:?}", begun.elapsed());
}
