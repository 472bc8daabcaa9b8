//! A network of agents, as processes, that compute embeddings while they are killed, the endpoint is away, one cheats and one is slow.
//!
//! The long form, by the agents, tasks and minutes that are asked for: 20, 1,000 and none if none are:
//! `AGENTS=20 TASKS=1000 MINUTES=30 script/test -p muster-agent --test fleet -- --ignored --nocapture`

use std::time::Duration;

use muster_fleet::play::{play, Plan};

async fn prove(plan: Plan) {
    let report = play(plan, |line| println!("{line}")).await.unwrap_or_else(|error| panic!("{error:#}"));
    println!("{report}");
    report.verify().unwrap_or_else(|error| panic!("{error:#}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_of_agents_computes() {
    prove(Plan {
        agents: 5,
        tasks: 40,
        lasts: Duration::ZERO,
        kills: Duration::from_secs(8),
        away: Duration::from_secs(2),
        outage: Duration::from_secs(5),
        patience: Duration::from_mins(30),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes long: a thousand tasks through twenty agents"]
async fn a_thousand_tasks_through_twenty_agents() {
    let number = |name: &str, usual: u32| std::env::var(name).map_or(usual, |text| text.parse().expect("a number"));
    prove(Plan {
        agents: number("AGENTS", 20) as usize,
        tasks: number("TASKS", 1_000),
        lasts: Duration::from_mins(number("MINUTES", 0).into()),
        kills: Duration::from_secs(15),
        away: Duration::from_secs(5),
        outage: Duration::from_secs(30),
        patience: Duration::from_hours(2),
    })
    .await;
}
