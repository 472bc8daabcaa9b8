//! The cost of the second search of Tight-fit on chain, against neighbours alone: the same pools, in a program that does nothing else.

use crate::world::{precompile, Arb, TOKEN};
use alloy_primitives::{Address, Bytes, TxKind, U256};
use alloy_sol_types::SolCall;
use anyhow::{anyhow, ensure, Context, Result};
use muster_core::reputation::{tight_fit, tight_fit_of_neighbours, Exact, Fallback, Likelihood, Rule};
use muster_devnode::chain::{Clock, Config};
use muster_devnode::stylus::deployed_code;
use muster_devnode::{Chain, TxRequest};
use std::path::PathBuf;

/// Measure the cost of the second search of Tight-fit in gas and in ink.
///
/// Prints the table of docs/reputation.md. Gas does not depend on the machine, only on the compiled program.
#[derive(clap::Args)]
pub struct Options {
    /// The compiled program of test/search.
    program: PathBuf,
}

/// Random pools of each size, as many as docs/reputation.md compares with the optimum.
const POOLS: usize = 300;
/// Searches in one call, so that the cost of one is known to the tenth of a gas.
const TIMES: u8 = 10;
/// Stylus's price of a gas, in ink.
const INK: f64 = 10_000.0;
const WAD: u64 = 1_000_000_000_000_000_000;

/// Numbers that are the same in every run (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(x ^ (x >> 31)) * u128::from(end)) >> 64) as u64
    }
}

struct Program {
    chain: Chain,
    at: Address,
}

impl Program {
    fn deploy(wasm: &[u8]) -> Result<Program> {
        let config = Config { clock: Clock::Manual(1_800_000_000), base_fee: 1, ..Config::default() };
        let mut program = Program { chain: Chain::new(config).map_err(anyhow::Error::msg)?, at: Address::ZERO };
        program.chain.impersonate_all(true);
        let code = deployed_code(wasm);
        // Copies the code behind it into memory and returns it as the code.
        let copy = [0x61, (code.len() >> 8) as u8, code.len() as u8, 0x80, 0x60, 0x0a, 0x5f, 0x39, 0x5f, 0xf3];
        let (_, created) = program.send(TxKind::Create, 0, [&copy[..], &code].concat())?;
        program.at = created.context("no address")?;
        let activate = Arb::activateProgramCall { program: program.at }.abi_encode();
        program.send(TxKind::Call(precompile(0x71)), TOKEN, activate)?;
        Ok(program)
    }

    fn send(&self, to: TxKind, value: u128, data: Vec<u8>) -> Result<(u64, Option<Address>)> {
        let request = TxRequest {
            from: Some(self.chain.accounts()[0]),
            to: Some(to),
            value: Some(U256::from(value)),
            gas: Some(30_000_000),
            gas_price: Some(1),
            input: Bytes::from(data).into(),
            ..TxRequest::default()
        };
        let mined = self.chain.send(request)?;
        ensure!(mined.ok(), "refused: {:?}", mined.outcome);
        Ok((mined.outcome.gas_used, mined.outcome.created))
    }

    /// Gas of one search of neighbours alone, and of both searches; evaluations of each.
    fn search(&self, sizes: [u8; 2], target: u64, ratings: &[u64]) -> Result<[(f64, u32); 2]> {
        let numbers: Vec<u8> = [target].iter().chain(ratings).flat_map(|number| number.to_be_bytes()).collect();
        let call = |which: u8, times: u8| {
            self.send(TxKind::Call(self.at), 0, [&[which, sizes[0], sizes[1], times][..], &numbers].concat())
        };
        let one = |which: u8| -> Result<(f64, u32)> {
            let (gas, _) = call(which, 1 + TIMES)?;
            let (least, _) = call(which, 1)?;
            let rule = Rule::new(sizes[0].into(), sizes[1].into(), target).map_err(|why| anyhow!("{why:?}"))?;
            let mut free = ratings.to_vec();
            let formed = match which {
                1 => tight_fit_of_neighbours::<_, Exact>(&mut free, &rule, Fallback::Largest),
                _ => tight_fit::<_, Exact>(&mut free, &rule, Fallback::Largest),
            };
            Ok(((gas - least) as f64 / f64::from(TIMES), formed.context("no group")?.evaluations))
        };
        Ok([one(1)?, one(2)?])
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let parts: Vec<&str> = digits.as_bytes().rchunks(3).rev().map(|part| std::str::from_utf8(part).expect("digits")).collect();
    parts.join(",")
}

/// Measures, and prints the table.
pub fn run(options: &Options) -> Result<()> {
    let wasm = std::fs::read(&options.program)
        .with_context(|| format!("{}: script/bench search compiles it", options.program.display()))?;
    let program = Program::deploy(&wasm)?;
    let mut numbers = Numbers(42);
    println!("| workers | groups of | calls: neighbours | both searches | gas: neighbours | both searches | the second search: gas | ink |");
    println!("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let row = |workers: &str, sizes: [u8; 2], found: [(f64, f64); 2]| {
        let [(runs, few), (both, more)] = found;
        let second = both - runs;
        println!(
            "| {workers} | {} to {} | {few:.1} | {more:.1} | {} | {} | {} | {} |",
            sizes[0],
            sizes[1],
            thousands(runs),
            thousands(both),
            thousands(second),
            thousands(second * INK),
        );
    };
    for workers in [6usize, 8, 10, 32] {
        let sizes = if workers == 32 { [3, 9] } else { [3, 7] };
        let mut sums = [(0.0, 0.0); 2];
        for _ in 0..POOLS {
            let mut ratings: Vec<u64> = (0..workers).map(|_| numbers.below(WAD + 1)).collect();
            ratings.sort_unstable_by(|a, b| b.cmp(a));
            let target = WAD / 100 * (30 + numbers.below(66));
            for (sum, (gas, calls)) in sums.iter_mut().zip(program.search(sizes, target, &ratings)?) {
                *sum = (sum.0 + gas / POOLS as f64, sum.1 + f64::from(calls) / POOLS as f64);
            }
        }
        row(&format!("{workers}, the mean"), sizes, sums);
    }
    // Eight of 32 are needed for the target, which takes the largest size that the contract forms, and any other will do as the ninth. So
    // the last member moves to the end of the list.
    let ratings: Vec<u64> = (0..32).map(|i| if i < 8 { WAD / 10 * 9 } else { WAD / 10 * 6 - i }).collect();
    let mut least = Exact::default();
    ratings[..8].iter().chain(ratings.last()).for_each(|rating| least.push(rating));
    let worst = program.search([3, 9], least.value(), &ratings)?.map(|(gas, calls)| (gas, f64::from(calls)));
    ensure!(worst[1].1 - worst[0].1 == 5.0, "the second search is not at its longest");
    row("32, the worst case", [3, 9], worst);
    Ok(())
}
