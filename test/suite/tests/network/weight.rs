//! Selection follows the weights.

use ethers::abi::Token;
use muster_devnode::chain::TxRequest;
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
        println!("selection_follows_weight: skipped, because RPC_URL names a node that would be sent 4,000 transactions");
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
    let spec = Spec { models: vec![1, 2], ..Spec::default() };
    // After a task that needs them the models are in use on a node: let every node have run one.
    let weights: Vec<f64> = STAKES
        .iter()
        .enumerate()
        .map(|(i, &stake)| {
            let s = (stake as f64 / 100.0).sqrt();
            let q = 0.5;
            let local = [1.0, 2.0, 1.0][i % 3];
            (1.0 + 0.7 * local / 2.0 + 0.3) * s * q / (s + q)
        })
        .collect();

    let request = |from: ethers::types::Address, function: &str, arguments: &[Token], value: u64| -> TxRequest {
        let data = w.muster.encode(function, arguments).unwrap();
        serde_json::from_value(json!({
            "from": from, "to": w.muster.address, "value": format!("{value:#x}"), "data": data,
        }))
        .unwrap()
    };
    let started = muster_cli::contract::interface().event("TaskStarted").unwrap().signature();
    let draw = || {
        let mined = chain.send(request(app.address(), "createTask", &[spec.token()], 1_000)).unwrap();
        assert!(mined.ok(), "{:?}", mined.outcome);
        let log = mined.outcome.logs.iter().find(|log| log.topics()[0].0 == started.0)?;
        let id = u64::from_be_bytes(log.topics()[1].0[24..].try_into().unwrap());
        let node = u32::from_be_bytes(log.topics()[2].0[28..].try_into().unwrap());
        Some((id, node as usize - 1))
    };
    let end = |id: u64, node: usize| {
        let digest = Token::FixedBytes(vec![1; 32]);
        let mined = chain.send(request(operators[node].address(), "submit", &[n(id), digest], 0)).unwrap();
        assert!(mined.ok(), "{:?}", mined.outcome);
    };
    // All busy at once, then all free again.
    let first: Vec<_> = (0..STAKES.len()).map(|_| draw().expect("one is idle")).collect();
    first.into_iter().for_each(|(id, node)| end(id, node));
    for (i, weight) in weights.iter().enumerate() {
        let view = w.view("weightOf", &[n(i as u64 + 1), spec.token()]).await.remove(0).into_tuple().unwrap();
        assert_eq!(view[0], Token::Bool(true));
        near(view[5].clone().into_uint().unwrap(), (weight * WAD as f64) as u64, 4_000);
    }

    let mut counts = [0f64; STAKES.len()];
    let mut undecided = 0;
    for _ in 0..DRAWS {
        match draw() {
            Some((id, node)) => {
                counts[node] += 1.0;
                end(id, node);
            }
            // Drawn again by the next call from another hash; that one serves it before its own task.
            None => {
                undecided += 1;
                let mined = chain.send(request(app.address(), "dispatch", &[n(16)], 0)).unwrap();
                for log in mined.outcome.logs.iter().filter(|log| log.topics()[0].0 == started.0) {
                    let id = u64::from_be_bytes(log.topics()[1].0[24..].try_into().unwrap());
                    let node = u32::from_be_bytes(log.topics()[2].0[28..].try_into().unwrap()) as usize - 1;
                    counts[node] += 1.0;
                    end(id, node);
                }
            }
        }
    }
    let total: f64 = counts.iter().sum();
    let chi_square = |expected: &[f64]| {
        let sum: f64 = expected.iter().sum();
        let terms = counts.iter().zip(expected).map(|(seen, e)| (seen - total * e / sum).powi(2) / (total * e / sum));
        terms.sum::<f64>()
    };
    let right = chi_square(&weights);
    println!("chi-square {right:.2} over {total} draws, {undecided} drawn again; limit {ONE_IN_A_MILLION}");
    assert!(right < ONE_IN_A_MILLION, "{counts:?} against {weights:?}");
    assert!(chi_square(&[1.0; STAKES.len()]) > ONE_IN_A_MILLION, "would not notice that stakes are ignored");
    let no_boost: Vec<_> = weights.iter().enumerate().map(|(i, w)| if i % 3 == 1 { w / 2.0 } else { w / 1.65 }).collect();
    assert!(chi_square(&no_boost) > right, "models make the observed difference");
    assert!(total as usize > DRAWS * 9 / 10);
}
