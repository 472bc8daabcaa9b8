//! `kill -9` between any two steps, and at any moment, and the agent's recovery. Prints a table.

use std::time::Duration;

use muster_client::{Account, Event, IMuster};
use muster_fleet::site::{calls_by, count, digest_to, gpt, journal, Agent, Running, Site};

/// Steps after which an agent kills itself, in the order in which a task goes through them. A `sent` is after the transaction was mined,
/// before the journal knows; `clients/rust` has tests of the moments between signing, writing and sending.
const OFF_CHAIN: [&str; 6] = ["journalled", "taken", "executing", "executed", "ran", "stored"];
/// Those of an answer.
const ANSWERED: [&str; 2] = ["sending", "sent"];
/// Those of a commitment.
const COMMITTED: [&str; 3] = ["committed", "revealing", "revealed"];
/// Those of a commitment that is checked.
const VALIDATED: [&str; 2] = ["validated", "committed"];

/// The number of the agents' transactions: answers, and reveals.
async fn sent(site: &Site, agents: &[Agent]) -> (usize, usize) {
    let (mut answers, mut reveals) = (0, 0);
    for agent in agents {
        let calls = calls_by(site, agent.key).await;
        answers += count::<IMuster::submitCall>(&calls) + count::<IMuster::commitCall>(&calls);
        reveals += count::<IMuster::revealCall>(&calls);
    }
    (answers, reveals)
}

/// The figures of a row.
struct Row {
    died: usize,
    stage: String,
    runs: usize,
    answers: usize,
    reveals: usize,
    outcome: String,
}

/// Gives the agents a task, has each kill itself at this point, starts it again, and follows the task to its end.
async fn row(site: &Site, application: &Account, agents: &[Agent], spec: IMuster::TaskSpec, point: &str) -> Row {
    let input = format!("{} at {point}", spec.redundancy);
    let runs = || agents.iter().map(Agent::runs).sum::<usize>();
    let (had_runs, (had_answers, had_reveals)) = (runs(), sent(site, agents).await);
    let id = site.task(application, spec, &input, 300_000).await;
    let mut running: Vec<Running> = agents.iter().map(|agent| agent.start(Some(point))).collect();
    let mut dead = vec![false; agents.len()];
    let mut stage = String::new();
    let what = format!("the end of task {id}, killed at {point}");
    let ended = site.until(&what, async || {
        for (i, agent) in agents.iter().enumerate() {
            if !dead[i] && running[i].ended().is_some() {
                dead[i] = true;
                let found = journal(agent).and_then(|jobs| jobs.into_iter().find(|(task, ..)| *task == id));
                stage = found.map_or("-".into(), |(_, stage, _)| stage);
                running[i] = agent.start(None);
            }
        }
        site.events().await.into_iter().find_map(|event| match event {
            Event::TaskSucceeded(e) if e.id == id => Some((e.resultDigest, "success")),
            Event::GroupSettled(e) if e.id == id => Some((e.answer, if e.outcome == 0 { "all right" } else { "judged" })),
            Event::TaskAborted(e) if e.id == id => Some((e.creator.into_word(), "aborted")),
            Event::TaskErrorReported(e) if e.id == id => Some((e.creator.into_word(), "error")),
            _ => None,
        })
    });
    let (answer, outcome) = ended.await;
    let right = answer == digest_to(&input) || answer[7] == 1 && answer[8..] == [0; 24];
    assert!(right, "{outcome} with {answer} at {point}\n{}", agents[0].log());
    // One that dies after the end is started again, too: it must not do anything more.
    site.until("nothing is open", async || {
        for (i, agent) in agents.iter().enumerate() {
            if !dead[i] && running[i].ended().is_some() {
                dead[i] = true;
                stage = "revealing".into();
                running[i] = agent.start(None);
            }
        }
        let over = |agent: &Agent| journal(agent).is_some_and(|jobs| jobs.iter().all(|(_, stage, _)| stage == "over"));
        agents.iter().all(over).then_some(())
    })
    .await;
    running.iter_mut().for_each(Running::kill);
    let (answers, reveals) = sent(site, agents).await;
    assert_eq!(
        site.store().get(digest_to(&input)).await.is_ok(),
        had_reveals == reveals,
        "only answers that are not sealed lie open"
    );
    let died = dead.iter().filter(|dead| **dead).count();
    Row {
        died,
        stage,
        runs: runs() - had_runs,
        answers: answers - had_answers,
        reveals: reveals - had_reveals,
        outcome: outcome.into(),
    }
}

fn show(policy: &str, point: &str, row: &Row) {
    let Row { died, stage, runs, answers, reveals, outcome } = row;
    println!("| {policy} | {point} | {died} | {stage} | {runs} | {answers} | {reveals} | {outcome} |");
}

fn head() {
    println!("| task | killed at | agents | journal | runs | answers sent | reveals sent | came to |");
    println!("| --- | --- | ---: | --- | ---: | ---: | ---: | --- |");
}

async fn with_agents(parameters: &[(&str, u64)], names: &[&str]) -> (Site, Vec<Agent>, Account) {
    let mut site = Site::new(parameters).await;
    let mut agents = Vec::new();
    for name in names {
        agents.push(site.agent(name).await);
    }
    let mut running: Vec<_> = agents.iter().map(|agent| agent.start(None)).collect();
    site.until("all have joined", async || {
        (site.muster.read(IMuster::overviewCall {}).await.unwrap().nodesJoined as usize == names.len()).then_some(())
    })
    .await;
    running.iter_mut().for_each(Running::kill);
    let application = site.account(20_000_000).await;
    (site, agents, application)
}

#[tokio::test]
async fn killed_between_any_two_steps_it_answers_once_and_reveals() {
    let (site, agents, application) = with_agents(&[("sampleBps", 0), ("scorePool", 3)], &["gpu0"]).await;
    head();
    // Earlier steps are the same for all policies.
    for point in ANSWERED {
        let row = row(&site, &application, &agents, gpt(0), point).await;
        show("single", point, &row);
        assert_eq!((row.died, row.runs, row.answers, row.reveals), (1, 1, 1, 0), "{point}");
    }
    for point in OFF_CHAIN.into_iter().chain(ANSWERED).chain(COMMITTED) {
        let row = row(&site, &application, &agents, IMuster::TaskSpec { kind: 0, ..gpt(1) }, point).await;
        show("sampled, not checked", point, &row);
        assert_eq!((row.died, row.answers, row.reveals), (1, 1, 1), "{point}");
        // A stored result is not computed again.
        assert_eq!(row.runs, 1 + usize::from(point == "executed"), "{point}");
    }
}

#[tokio::test]
async fn killed_while_a_group_is_formed_and_judged_it_reveals_all_the_same() {
    let (site, agents, application) = with_agents(&[("sampleBps", 10_000), ("scorePool", 3)], &["gpu0", "gpu1", "gpu2"]).await;
    head();
    for point in VALIDATED.into_iter().chain(["sent", "revealing", "revealed"]) {
        let row = row(&site, &application, &agents, IMuster::TaskSpec { kind: 0, ..gpt(1) }, point).await;
        show("sampled and checked", point, &row);
        let most = if point == "validated" { 1 } else { 3 };
        assert!((1..=most).contains(&row.died), "{} died at {point}", row.died);
        assert_eq!((row.runs, row.answers, row.reveals, row.outcome.as_str()), (3, 3, 3, "all right"), "{point}");
    }
}

#[tokio::test]
async fn killed_at_any_moment_it_answers_once_and_reveals() {
    let (site, agents, application) = with_agents(&[("sampleBps", 0), ("scorePool", 3)], &["gpu0"]).await;
    let agent = &agents[0];
    let mut state = std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos() | 1;
    println!("seed {state}");
    println!("| milliseconds until it is killed | answers sent | reveals sent |\n| --- | ---: | ---: |");
    for round in 0..6 {
        let had = sent(&site, &agents).await;
        let input = format!("any moment {round}");
        let id = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(1) }, &input, 100_000).await;
        let mut moments = Vec::new();
        for _ in 0..4 {
            // xorshift.
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            let moment = u64::from(state) % 2_500;
            let mut running = agent.start(None);
            tokio::time::sleep(Duration::from_millis(moment)).await;
            running.kill();
            site.world.node.unwrap().chain().mine(1, 0).unwrap();
            moments.push(moment.to_string());
        }
        let mut running = agent.start(None);
        site.event("its end", |event| match event {
            Event::TaskSucceeded(e) if e.id == id => Some(()),
            _ => None,
        })
        .await;
        running.kill();
        let has = sent(&site, &agents).await;
        println!("| {} | {} | {} |", moments.join(", "), has.0 - had.0, has.1 - had.1);
        assert_eq!((has.0 - had.0, has.1 - had.1), (1, 1), "seed {state}\n{}", agent.log());
    }
}
