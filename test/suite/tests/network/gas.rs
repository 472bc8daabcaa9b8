//! Gas limits: a call that may make others' draws demands gas for it at its start, so nobody can change its work by a limit.

use std::collections::BTreeSet;

use ethers::abi::Token;
use ethers::providers::{Middleware, RpcError};
use ethers::types::{Eip1559TransactionRequest, TransactionReceipt, U256};
use muster_tests::chain::{interface, wait, Account, Outgoing};
use muster_tests::*;

const FEE: u128 = 1_000;

/// Sends a call with a gas limit on a chain that is taken back afterwards; gives its receipt.
async fn tried(w: &World, by: &Account, function: &str, arguments: &[Token], value: u128, gas: u64) -> TransactionReceipt {
    let snapshot: U256 = w.chain.request("evm_snapshot", ()).await.unwrap();
    let data = w.muster.encode(function, arguments).unwrap();
    // Its nonce is read anew: earlier transactions are reverted.
    let mut account = Account::new(&w.chain, &by.wallet.signer().to_bytes()).unwrap();
    let call = Outgoing { to: Some(w.muster.address), value: value.into(), data, gas: Some(gas) };
    let hash = account.submit(&w.chain, call).await.unwrap();
    let receipt = wait(&w.chain, hash).await.unwrap();
    let _: bool = w.chain.request("evm_revert", [snapshot]).await.unwrap();
    receipt
}

/// Why a call with a gas limit fails: the error's name.
async fn reason(w: &World, by: &Account, function: &str, arguments: &[Token], value: u128, gas: u64) -> String {
    let call = Eip1559TransactionRequest {
        from: Some(by.address()),
        to: Some(w.muster.address.into()),
        value: Some(value.into()),
        data: Some(w.muster.encode(function, arguments).unwrap()),
        gas: Some(gas.into()),
        ..Default::default()
    };
    let error = w.chain.provider.call(&call.into(), None).await.unwrap_err();
    let data = error.as_error_response().and_then(|response| response.as_revert_data()).unwrap_or_default();
    let known = interface().errors().find(|error| data.get(..4) == Some(&error.signature()[..4]));
    known.map_or_else(|| format!("{error}"), |error| error.name.clone())
}

/// The sender of a call chooses its gas limit. With a draw of three nodes due, every limit from far below the demanded gas to far above it
/// is tried: the call is refused with `GasTooLow`, or does the very same.
#[tokio::test]
async fn nobody_gains_by_a_chosen_gas_limit() {
    let mut w = World::new(&[]).await;
    if !w.travels("nobody_gains_by_a_chosen_gas_limit") {
        return;
    }
    for gpu in ["A", "B", "C", "D", "E"] {
        w.join(LEAST, gpu, 24, &[]).await;
    }
    let (app, mut other) = (w.actor(0).await, w.actor(0).await);
    let three = Spec { redundancy: 2, ..Spec::default() };
    w.send(&mut other, "createTask", &[three.token()], 3 * FEE).await;
    let calls: [(&str, Vec<Token>, u128); 2] =
        [("createTask", vec![Spec::default().token()], FEE), ("dispatch", vec![n(1u8)], 0)];
    for (function, arguments, value) in calls {
        let (mut outcomes, mut refused, mut accepted) = (BTreeSet::new(), 0, u64::MAX);
        let mut gas = 100_000;
        while gas < 4_000_000 {
            let receipt = tried(&w, &app, function, &arguments, value, gas).await;
            if receipt.status == Some(1.into()) {
                accepted = accepted.min(gas);
                outcomes.insert(format!("{:?}", receipt.logs.iter().map(|log| (&log.topics, &log.data)).collect::<Vec<_>>()));
            } else {
                assert!(gas < accepted, "{function}: {gas} fails, {accepted} did not");
                // Below the gas that reaches the program at all, the router has nothing to say.
                if gas > 250_000 {
                    assert_eq!(reason(&w, &app, function, &arguments, value, gas).await, "GasTooLow", "{function} with {gas}");
                    refused += 1;
                }
            }
            gas += gas / 12;
        }
        assert!(refused > 0 && accepted < 1_200_000, "{function}: accepted from {accepted} on");
        assert_eq!(outcomes.len(), 1, "{function}: what it does hangs on the limit");
        // An estimate finds that limit, whatever is due.
        let plain = Eip1559TransactionRequest {
            from: Some(app.address()),
            to: Some(w.muster.address.into()),
            value: Some(value.into()),
            data: Some(w.muster.encode(function, &arguments).unwrap()),
            ..Default::default()
        };
        let estimate = w.chain.provider.estimate_gas(&plain.into(), None).await.unwrap().as_u64();
        let receipt = tried(&w, &app, function, &arguments, value, estimate).await;
        assert_eq!(receipt.status, Some(1.into()), "{function} with its estimate of {estimate}");
        println!("{function}: refused below about {accepted}, estimated at {estimate}, used {}", receipt.gas_used.unwrap());
    }
}
