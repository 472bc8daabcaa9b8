//! Selection follows the weights.

use ethers::abi::Token;
use muster_devnode::chain::{Mined, TxRequest};
use muster_tests::*;
use serde_json::json;

use crate::{near, WAD};

/// Draws.
const DRAWS: usize = 2_000;
/// The value that chi-square with five degrees of freedom exceeds once in a million times.
const ONE_IN_A_MILLION: f64 = 35.888;
/// Stakes in units of the least.
const STAKES: [u64; 6] = [1, 2, 4, 9, 25, 100];

/// Every choice of a node is W over the sum of W: a chi-square test that raises a false alarm less than once in a
/// million runs. The same counts must fail against two wrong rules, so the test is able to fail.
#[tokio::test]
async fn selection_follows_weight() {
    let mut w = World::new(&[("drawDelay", 0)]).await;
    let Some(chain) = w.node.map(|node| node.chain().clone()) else {
        println!("selection_follows_weight: skipped, because RPC_URL names a node that would be sent 8,000 transactions");
        return;
    };
    let mut operators = Vec::new();
    for (i, stake) in STAKES.into_iter().enumerate() {
        // All hold one of the two models of the task or both, so M differs as well.
        let models: &[u64] = [&[1, 9][..], &[1, 2], &[2]][i % 3];
        let vram = [16u16, 24, 80][i / 2];
        operators.push(w.join(stake * LEAST, &format!("GPU {i}"), vram, models).await.0);
    }
    let app = w.actor(0).await;
    // The in-process interface reserves the most gas a transaction may use.
    for who in operators.iter().map(|operator| operator.address()).chain([app.address()]) {
        let wealth = format!("{:#x}", u64::MAX);
        let _: serde_json::Value = w.chain.request("anvil_setBalance", (who, wealth)).await.unwrap();
    }
    let request = |from: ethers::types::Address, function: &str, arguments: &[Token], value: u64| -> TxRequest {
        let data = w.muster.encode(function, arguments).unwrap();
        serde_json::from_value(json!({
            "from": from, "to": w.muster.address, "value": format!("{value:#x}"), "data": data,
        }))
        .unwrap()
    };
    let started = muster_cli::contract::interface().event("TaskStarted").unwrap().signature();
    let placed = |mined: &Mined| {
        let log = mined.outcome.logs.iter().find(|log| log.topics()[0].0 == started.0)?;
        let id = u64::from_be_bytes(log.topics()[1].0[24..].try_into().unwrap());
        let node = u32::from_be_bytes(log.topics()[2].0[28..].try_into().unwrap());
        Some((id, node as usize - 1))
    };
    // A task's id, its node, and how often the draw stayed undecided and was made again from a later block.
    let draw = |spec: &Spec| {
        let mut mined = chain.send(request(app.address(), "createTask", &[spec.token()], 1_000)).unwrap();
        for again in 0.. {
            assert!(mined.ok(), "{:?}", mined.outcome);
            if let Some((id, node)) = placed(&mined) {
                return (id, node, again);
            }
            mined = chain.send(request(app.address(), "dispatch", &[n(1)], 0)).unwrap();
        }
        unreachable!()
    };
    let end = |id: u64, node: usize| {
        let digest = Token::FixedBytes(vec![1; 32]);
        let mined = chain.send(request(operators[node].address(), "submit", &[n(id), digest], 0)).unwrap();
        assert!(mined.ok(), "{:?}", mined.outcome);
    };
    // All busy at once, then all free again: the task's models are now in use on every node.
    let needs = Spec { models: vec![1, 2], ..Spec::default() };
    let first = STAKES.map(|_| draw(&needs));
    first.into_iter().for_each(|(id, node, _)| end(id, node));

    // With models the few holders are searched; without, nodes are drawn from the tree and accepted by weight.
    for (spec, boost) in [(needs, [1.65, 2.0, 1.65]), (Spec::default(), [1.0; 3])] {
        let weights: Vec<f64> = STAKES
            .iter()
            .enumerate()
            .map(|(i, &stake)| {
                let (s, q) = ((stake as f64 / 100.0).sqrt(), 0.5);
                boost[i % 3] * s * q / (s + q)
            })
            .collect();
        for (i, weight) in weights.iter().enumerate() {
            let view = w.view("weightOf", &[n(i as u64 + 1), spec.token()]).await.remove(0).into_tuple().unwrap();
            assert_eq!(view[0], Token::Bool(true));
            near(view[5].clone().into_uint().unwrap(), (weight * WAD as f64) as u64, 4_000);
        }
        let mut counts = [0f64; STAKES.len()];
        let mut again = 0;
        for _ in 0..DRAWS {
            let (id, node, times) = draw(&spec);
            again += times;
            counts[node] += 1.0;
            end(id, node);
        }
        let chi_square = |expected: &[f64]| {
            let share = DRAWS as f64 / expected.iter().sum::<f64>();
            counts.iter().zip(expected).map(|(seen, e)| (seen - e * share).powi(2) / (e * share)).sum::<f64>()
        };
        let right = chi_square(&weights);
        println!("chi-square {right:.2} over {DRAWS} draws, {again} made again; limit {ONE_IN_A_MILLION}");
        assert!(right < ONE_IN_A_MILLION, "{counts:?} against {weights:?}");
        assert!(chi_square(&[1.0; STAKES.len()]) > ONE_IN_A_MILLION, "would not notice that stakes are ignored");
        let proportional = STAKES.map(|stake| stake as f64);
        assert!(chi_square(&proportional) > ONE_IN_A_MILLION, "would not notice weights proportional to stake");
    }
}
