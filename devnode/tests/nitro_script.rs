//! `script/devnode --nitro` can't be run where there is no Docker. Checks the parts of it that need none.

use alloy_consensus::transaction::SignerRecoverable;
use alloy_consensus::TxEnvelope;
use alloy_eips::eip2718::Decodable2718;
use alloy_primitives::hex;

#[test]
fn the_account_that_pays_for_the_create2_factory_is_the_one_that_signed_for_it() {
    let script = include_str!("../../script/devnode");
    let publish = script.lines().find(|line| line.starts_with("cast publish")).unwrap();
    let raw = publish.split_whitespace().find(|word| word.starts_with("0xf8")).unwrap();
    let tx = TxEnvelope::decode_2718_exact(&hex::decode(raw).unwrap()).unwrap();
    let signer = format!("{:#x}", tx.recover_signer().unwrap());
    assert!(script.lines().any(|line| line == format!("send {signer} --value 1ether")), "{signer}");
    let factory = tx.recover_signer().unwrap().create(0);
    assert!(script.contains(&format!("factory={factory}")), "{factory}");
}
