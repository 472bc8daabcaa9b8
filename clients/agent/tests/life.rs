//! Agents at work, against the compiled programs: tasks of every policy from their draw to their pay.

use std::sync::Arc;
use std::time::Duration;

use alloy::primitives::{B256, U256};
use alloy::signers::local::PrivateKeySigner;
use muster_client::{
    cid_of, digest_of, seal_input, Bounds, Event, Heard, IMuster, Lookup, Object, Opening, Outcome, Private, Seal, Stores,
    Streaming, Unproven, Why,
};
use muster_fleet::site::{answer_to, calls_by, count, digest_to, gpt, journal, Agent, Site, GPU, VRAM};
use muster_fleet::stores::{http, Ipfs, S3};
use muster_fleet::world::LEAST;

/// The node that an agent has joined.
async fn joined(site: &Site, agent: &Agent) -> u32 {
    let operator = PrivateKeySigner::from_bytes(&agent.key).unwrap().address();
    site.event(&format!("{} joins", agent.name), |event| match event {
        Event::NodeJoined(e) if e.operator == operator => Some(e.node),
        _ => None,
    })
    .await
}

#[tokio::test]
async fn a_single_task_is_answered_and_its_result_can_be_had() {
    let mut site = Site::new(&[]).await;
    let agent = site.agent("gpu0").await;
    let mut running = agent.start(None);
    let node = joined(&site, &agent).await;
    let name = site.muster.read(IMuster::gpuNameCall { group: site.view(node).await.gpu }).await.unwrap();
    assert!(name.starts_with(&format!("{GPU}+")) && name.len() == GPU.len() + 9, "{name}");
    assert_eq!(site.view(node).await.vram, VRAM);
    let application = site.account(1_000_000).await;
    // Only the agent draws it.
    let id = site.task(&application, gpt(0), "what is a muster?", 70_000).await;
    let answered = site.event("an answer", |event| match event {
        Event::TaskSucceeded(e) if e.id == id => Some(e.clone()),
        _ => None,
    });
    let answered = answered.await;
    assert_eq!((answered.node, answered.resultDigest, answered.paid), (node, digest_to("what is a muster?"), 70_000));
    let found = site.store().get(answered.resultDigest).await.unwrap();
    assert_eq!(found.bytes, answer_to("what is a muster?").into_bytes());
    site.until("the journal knows", async || (journal(&agent)? == [(id, "over".into(), Some("success".into()))]).then_some(()))
        .await;

    // A second agent is not let in.
    let other = agent.command(&["run"]).output().unwrap();
    assert!(!other.status.success() && String::from_utf8_lossy(&other.stderr).contains("another agent uses"));

    // A missing input, and a task that the executor refuses, cost the node nothing.
    let spec = IMuster::TaskSpec { inputDigest: B256::repeat_byte(9), ..gpt(0) };
    agent.behave("refuses");
    let refused = site.task(&application, gpt(0), "no", 70_000).await;
    let code = site.event("an error", |event| match event {
        Event::TaskErrorReported(e) if e.id == refused => Some(e.code),
        _ => None,
    });
    assert_eq!(code.await, 1);
    // Until then it rests.
    site.world.travel(60);
    agent.behave("answers");
    let done = application.call(IMuster::createTaskCall { spec }, U256::from(70_000)).await.unwrap();
    let missing = done.events.iter().find_map(|event| if let Event::TaskCreated(e) = event { Some(e.id) } else { None }).unwrap();
    let code = site.event("an error", |event| match event {
        Event::TaskErrorReported(e) if e.id == missing => Some(e.code),
        _ => None,
    });
    assert_eq!(code.await, 4);
    assert_eq!(site.view(node).await.status, 1);
    running.kill();
}

#[tokio::test]
async fn what_may_be_sampled_is_committed_to_and_revealed_and_what_is_sampled_is_judged() {
    let parameters = [("sampleBps", 5_000), ("scorePool", 3)];
    let mut site = Site::new(&parameters).await;
    let mut agents = Vec::new();
    for name in ["gpu0", "gpu1", "gpu2"] {
        agents.push(site.agent(name).await);
    }
    let _running: Vec<_> = agents.iter().map(|agent| agent.start(None)).collect();
    for agent in &agents {
        joined(&site, agent).await;
    }
    let application = site.account(10_000_000).await;
    let images = IMuster::TaskSpec { kind: 0, ..gpt(1) };
    let (mut sampled, mut alone) = (0, 0);
    for round in 0..12 {
        let id = site.task(&application, images.clone(), &format!("image {round}"), 100_000).await;
        let settled = site.event("the task's end", |event| match event {
            Event::TaskSucceeded(e) if e.id == id => Some(None),
            Event::GroupSettled(e) if e.id == id => Some(Some((e.outcome, e.answer))),
            _ => None,
        });
        match settled.await {
            None => alone += 1,
            Some((outcome, answer)) => {
                assert_eq!((outcome, answer[7]), (0, 1), "all agree");
                sampled += 1;
            }
        }
        // The sealed result is there, under the name derived from the revealed salt.
        let events = site.events().await;
        let revealed: Vec<_> =
            events.iter().filter_map(|e| if let Event::AnswerRevealed(e) = e { Some(e) } else { None }).collect();
        for answer in revealed.iter().filter(|answer| answer.id == id) {
            let seal = Seal::new(id, answer.node, answer.salt);
            let found = site.store().open_sealed(&seal).await.unwrap();
            let wanted = answer_to(&format!("image {round}")).into_bytes();
            assert!(found.bytes.starts_with(b"\x89PNG") && found.bytes.windows(wanted.len()).any(|part| part == wanted));
        }
        if sampled > 0 && alone > 0 {
            break;
        }
    }
    assert!(sampled > 0 && alone > 0, "{sampled} sampled, {alone} not: of twelve, all alike once in 2,000 runs");
    for agent in &agents {
        site.until("nothing is open", async || journal(agent)?.iter().all(|(_, stage, _)| stage == "over").then_some(())).await;
        let calls = calls_by(&site, agent.key).await;
        assert_eq!(count::<IMuster::commitCall>(&calls), count::<IMuster::revealCall>(&calls), "{}", agent.log());
    }
}

/// A group waits for a called node that sits on a sampled task of its own. Nobody has validated that task. The agent of another member has it
/// validated, earns its start fee, and the group goes on.
#[tokio::test]
async fn an_agent_has_validated_what_its_group_waits_for() {
    let mut site = Site::new(&[("sampleBps", 10_000), ("scorePool", 3)]).await;
    let application = site.account(10_000_000).await;
    let join = |name: &str| IMuster::joinCall { gpuName: name.into(), vram: VRAM, models: vec![] };
    // A new name costs a hundredth of the least stake.
    let stake = U256::from(LEAST + LEAST / 100);
    let fails = |id: u64, node: u32| {
        let opening = Opening { kind: 1, value: B256::with_last_byte(1), salt: B256::repeat_byte(7) };
        IMuster::commitCall { id, commitment: opening.commitment(id, node) }
    };
    // Its own task can go to nobody else.
    let sitter = site.account(2 * LEAST).await;
    sitter.call(join("the sitter's"), stake).await.unwrap();
    let group = site.view(1).await.gpu;
    let images = IMuster::TaskSpec { kind: 0, ..gpt(1) };
    let own = site.task(&application, IMuster::TaskSpec { gpu: group, ..images.clone() }, "its own", 100_000).await;
    site.until("it is drawn", async || {
        let _ = application.call(IMuster::dispatchCall { count: 1 }, U256::ZERO).await;
        (site.muster.read(IMuster::runningTaskCall { number: 1 }).await.unwrap().id == own).then_some(())
    })
    .await;
    sitter.call(fails(own, 1), U256::ZERO).await.unwrap();

    let agent = site.agent("gpu0").await;
    agent.behave("slow 3");
    let mut running = agent.start(None);
    let node = joined(&site, &agent).await;
    let id = site.task(&application, images, "everybody's", 100_000).await;
    site.event("a start", |event| matches!(event, Event::TaskStarted(e) if (e.id, e.node) == (id, node)).then_some(())).await;
    let third = site.account(2 * LEAST).await;
    third.call(join("another"), stake).await.unwrap();
    let members = site.event("a group", |event| match event {
        Event::GroupFormed(e) if e.id == id => Some(e.nodes.clone()),
        _ => None,
    });
    let mut members = members.await;
    members.sort_unstable();
    assert_eq!(members, [1, node, 3]);
    assert!(site.view(1).await.calledTo > 0, "it sits on its own");
    third.call(fails(id, 3), U256::ZERO).await.unwrap();

    let (beneficiary, paid) = site
        .event("its own task is validated", |event| match event {
            Event::TaskSampled(e) if e.id == own => Some((e.beneficiary, e.paid)),
            _ => None,
        })
        .await;
    let operator = PrivateKeySigner::from_bytes(&agent.key).unwrap().address();
    assert_eq!((beneficiary, paid), (operator, 2_000), "{}", agent.log());
    site.event("the sitter begins", |event| matches!(event, Event::MemberStarted(e) if (e.id, e.node) == (id, 1)).then_some(()))
        .await;
    // Nothing that opens a sampled answer was sent before the group.
    let calls = calls_by(&site, agent.key).await;
    assert_eq!((count::<IMuster::validateCall>(&calls), count::<IMuster::revealCall>(&calls)), (2, 0), "{}", agent.log());
    running.kill();
}

/// Groups of three, for any ratings.
const THREE: IMuster::Profile = IMuster::Profile {
    algorithm: 0,
    least: 3,
    most: 3,
    reschedules: 0,
    targeting: 2,
    target: 490_000_000_000_000_000,
    alpha: 500_000_000_000_000_000,
    period: 300,
};

#[tokio::test]
async fn three_nodes_of_one_agent_answer_a_replicated_task_alike() {
    let mut site = Site::new(&[("scorePool", 3)]).await;
    let agent = site.agent("gpu0").await;
    let more = [site.key(3 * LEAST).await, site.key(3 * LEAST).await];
    let text = std::fs::read_to_string(agent.home.join("agent.toml")).unwrap();
    let node = text[text.find("[[node]]").unwrap()..].to_string();
    let mut all = text;
    for i in 1..3 {
        all += &node.replace("\"gpu0\"", &format!("\"gpu{i}\"")).replace("GPU_KEY", &format!("GPU_KEY{i}"));
    }
    std::fs::write(agent.home.join("agent.toml"), all).unwrap();
    let mut command = agent.command(&["run"]);
    let log = std::fs::File::create(agent.home.join("log")).unwrap();
    command.env("GPU_KEY1", more[0].to_string()).env("GPU_KEY2", more[1].to_string()).stderr(log);
    let mut running = command.spawn().unwrap();
    let group = site.until("three join", async || {
        let nodes = site.muster.read(IMuster::nodesCall { from: 1, count: 64 }).await.unwrap();
        (nodes.len() == 3).then(|| nodes[0].gpu)
    });
    let group = group.await;
    site.world.rule(IMuster::listGpuGroupCall { group, listed: true }).await;
    let application = site.account(10_000_000).await;
    let id = site.task(&application, IMuster::TaskSpec { gpu: group, ..gpt(2) }, "three at once", 300_000).await;
    let settled = site.event("a judgement", |event| match event {
        Event::GroupSettled(e) if e.id == id => Some((e.outcome, e.answer)),
        _ => None,
    });
    assert_eq!(settled.await, (0, digest_to("three at once")));
    let paid: Vec<_> = site
        .events()
        .await
        .iter()
        .filter_map(|event| if let Event::MemberJudged(e) = event { Some((e.verdict, e.paid)) } else { None })
        .collect();
    assert!(paid.len() == 3 && paid.iter().all(|(verdict, paid)| *verdict == 1 && *paid > 0), "{paid:?}");

    // With all of them at work it is queued. Those that are free then wait for each other, and draw it, because nobody else does.
    agent.behave("slow 3");
    let mut alone = Vec::new();
    for which in ["one", "two", "three"] {
        alone.push(site.task(&application, gpt(0), which, 70_000).await);
    }
    site.until("all are at work", async || {
        let events = site.events().await;
        let started = |id: &u64| events.iter().any(|event| matches!(event, Event::TaskStarted(e) if e.id == *id));
        alone.iter().all(started).then_some(())
    })
    .await;
    let id = site.task(&application, IMuster::TaskSpec { gpu: group, ..gpt(2) }, "three in turn", 300_000).await;
    let settled = site.event("a judgement of those that had to wait", |event| match event {
        Event::GroupSettled(e) if e.id == id => Some((e.outcome, e.answer)),
        _ => None,
    });
    assert_eq!(settled.await, (0, digest_to("three in turn")));
    agent.behave("answers");

    // And a rated one.
    application.call(IMuster::setProfileCall { profile: THREE }, U256::ZERO).await.unwrap();
    let id = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(3) }, "three rated", 300_000).await;
    let settled = site.event("a judgement", |event| match event {
        Event::GroupSettled(e) if e.id == id => Some(e.outcome),
        _ => None,
    });
    assert_eq!(settled.await, 0);
    running.kill().unwrap();
    running.wait().unwrap();
}

#[tokio::test]
async fn who_has_only_the_key_reveals_what_another_machine_has_committed_to() {
    let mut site = Site::new(&[("sampleBps", 0), ("scorePool", 3)]).await;
    let agent = site.agent("gpu0").await;
    let mut running = agent.start(None);
    joined(&site, &agent).await;
    running.kill();
    let application = site.account(10_000_000).await;
    let id = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(1) }, "lost and found", 100_000).await;
    // It is killed when its commitment is on the chain, and then the machine is lost.
    let mut running = agent.start(Some("committed"));
    site.until("it dies", async || running.ended()).await;
    let committed = site.events().await.iter().any(|event| matches!(event, Event::AnswerCommitted(e) if e.id == id));
    assert!(committed, "{}", agent.log());
    std::fs::remove_dir_all(agent.home.join("state")).unwrap();
    let _running = agent.start(None);
    let revealed = site.event("a reveal", |event| match event {
        Event::TaskSucceeded(e) if e.id == id => Some(e.paid),
        _ => None,
    });
    assert_eq!(revealed.await, 100_000);
    assert_eq!(agent.runs(), 1, "it was not run again");
    site.until("it says so", async || agent.log().contains("was committed to already").then_some(())).await;
    let calls = calls_by(&site, agent.key).await;
    assert_eq!((count::<IMuster::commitCall>(&calls), count::<IMuster::revealCall>(&calls)), (1, 1));
}

#[tokio::test]
async fn a_key_that_only_works_answers_and_the_operator_is_paid() {
    let mut site = Site::new(&[("sampleBps", 0), ("scorePool", 3)]).await;
    let mut agent = site.agent("gpu0").await;
    let mut running = agent.start(None);
    let node = joined(&site, &agent).await;
    running.kill();
    let operator = site.account_of(agent.key, "operator").await;
    // Another key on the machine, and the operator's is away from it.
    agent.key = site.key(0).await;
    agent.node_more = format!("operator = \"{}\"", operator.address());
    agent.configure(&site);
    std::fs::remove_dir_all(agent.home.join("state")).unwrap();
    let _running = agent.start(None);
    let why = "is not named as the worker";
    site.until(why, async || agent.log().contains(why).then_some(())).await;
    let worker = PrivateKeySigner::from_bytes(&agent.key).unwrap().address();
    operator.call(IMuster::setWorkerCall { worker }, U256::ZERO).await.unwrap();
    let accepted = site.event("the work is accepted", |event| match event {
        Event::WorkAccepted(e) => Some((e.node, e.worker)),
        _ => None,
    });
    assert_eq!(accepted.await, (node, worker));
    let application = site.account(1_000_000).await;
    let id = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(1) }, "by a worker", 100_000).await;
    site.event("an answer", |event| match event {
        Event::TaskSucceeded(e) if e.id == id => Some(()),
        _ => None,
    })
    .await;
    let owed = site.muster.read(IMuster::accountCall { who: operator.address() }).await.unwrap().credit;
    assert_eq!(owed, 100_000);
    assert_eq!(count::<IMuster::revealCall>(&calls_by(&site, agent.key).await), 1);
}

#[tokio::test]
async fn who_has_only_the_key_reveals_in_a_group_too() {
    reveals_in_a_group(2).await;
}

/// Nobody can be slashed there, so the chain's count of open commitments does not show the missing one.
#[tokio::test]
async fn who_has_only_the_key_reveals_in_a_rated_group_too() {
    reveals_in_a_group(3).await;
}

async fn reveals_in_a_group(redundancy: u8) {
    let mut site = Site::new(&[("scorePool", 3)]).await;
    let mut agents = Vec::new();
    for name in ["gpu0", "gpu1", "gpu2"] {
        agents.push(site.agent(name).await);
    }
    let mut running: Vec<_> = agents.iter().map(|agent| agent.start(None)).collect();
    for agent in &agents {
        joined(&site, agent).await;
    }
    running[0].kill();
    let application = site.account(10_000_000).await;
    application.call(IMuster::setProfileCall { profile: THREE }, U256::ZERO).await.unwrap();
    running[0] = agents[0].start(Some("committed"));
    let id = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(redundancy) }, "lost in a group", 300_000).await;
    site.until("it dies", async || running[0].ended()).await;
    std::fs::remove_dir_all(agents[0].home.join("state")).unwrap();
    running[0] = agents[0].start(None);
    let settled = site.event("a judgement", |event| match event {
        Event::GroupSettled(e) if e.id == id => Some(e.outcome),
        _ => None,
    });
    assert_eq!(settled.await, 0);
    let right = site.events().await.iter().filter(|event| matches!(event, Event::MemberJudged(e) if e.verdict == 1)).count();
    assert_eq!((right, agents[0].runs()), (3, 1));
}

/// Inputs in a bucket and on IPFS, results in buckets. One of the stores is down, one never answers, one lies and one is slow. Every task
/// is answered, and its result is read where the chain says that it is.
#[tokio::test(flavor = "multi_thread")]
async fn bytes_go_by_buckets_and_by_ipfs_while_stores_fail() {
    let mut site = Site::new(&[("sampleBps", 0), ("scorePool", 3)]).await;
    let bucket = S3::start(&site.place.path().join("s3"), "bytes");
    let (ipfs, gateway) = Ipfs::start().await;
    let (liar, lies) = Ipfs::start().await;
    let (slow, late) = Ipfs::start().await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    let down = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let down = format!("http://{down}");

    let (mut agents, mut nodes, mut keys, mut running) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (name, failing) in [("gpu0", &silent), ("gpu1", &down)] {
        let mut agent = site.agent(name).await;
        let (published, secret) = (format!("{}/{name}", bucket.public("bytes")), bucket.store(&format!("bytes/{name}")));
        agent.stores = Some(format!(
            "get = [{failing:?}]\nput = [{failing:?}, {secret:?}]\npublish = [{published:?}]\npublished_within = 5\n\
             private_hosts = [\"127.0.0.1\"]"
        ));
        agent.environment = S3::keys();
        agent.configure(&site);
        running.push(agent.start(None));
        let node = joined(&site, &agent).await;
        let said = site.until("it publishes its store", async || {
            Some(site.muster.stores_of_node(node).await.unwrap()).filter(|said| !said.is_empty())
        });
        let said = said.await;
        let key = said.strip_prefix(&format!("{published} age:")).unwrap_or_else(|| panic!("{said}"));
        keys.push(key.to_string());
        agents.push(agent);
        nodes.push(node);
    }

    let application = site.account(1_000_000).await;
    let uris = format!("{silent} {down} ipfs+{lies} ipfs+{late} ipfs+{gateway} {}", bucket.public("bytes"));
    application.call(IMuster::setStoresCall { uris }, U256::ZERO).await.unwrap();
    let kubo = |url: &str| Stores::open(&[format!("kubo+{url}")], Bounds::default()).unwrap();
    slow.takes(Duration::from_millis(1_500));
    let bounds = Bounds { timeout: Duration::from_secs(20), ..Bounds::default() };
    let lookup = Lookup { bounds, inside: true, ..Lookup::default() };
    let private = Arc::new(Private::of(&PrivateKeySigner::random()));
    let with_key = Lookup { private: Some(private.clone()), ..lookup.clone() };
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let mut outcomes = Vec::new();
    for (input, policy, secret) in [
        ("by ipfs", 0, false),
        ("by the bucket", 0, false),
        ("by the slow one", 1, false),
        ("for nodes alone", 0, true),
        ("for nodes alone, committed to", 1, true),
    ] {
        let bytes = if secret {
            seal_input(input.as_bytes(), &keys, Some(&private.recipient())).unwrap()
        } else {
            input.as_bytes().to_vec()
        };
        // The liar says that it has them all.
        let (digest, _) = kubo(&lies).put(&bytes).await.unwrap();
        liar.lies(true);
        match input {
            "by ipfs" => drop(kubo(&gateway).put(&bytes).await.unwrap()),
            "by the slow one" => drop(kubo(&late).put(&bytes).await.unwrap()),
            _ => put_signed(&bucket, &bytes).await,
        }
        assert_eq!(ipfs.has(digest), input == "by ipfs", "{}", cid_of(digest));
        ipfs.is_away(input != "by ipfs");
        let spec = IMuster::TaskSpec { inputDigest: digest, kind: 1 - policy, ..gpt(policy) };
        let done = application.call(IMuster::createTaskCall { spec }, U256::from(100_000)).await.unwrap();
        let id = done.events.iter().find_map(|event| if let Event::TaskCreated(e) = event { Some(e.id) } else { None }).unwrap();
        site.event("an answer", |event| match event {
            Event::TaskSucceeded(e) if e.id == id => Some(()),
            Event::TaskErrorReported(e) if e.id == id => {
                panic!("{input}: error {}\n{}\n{}", e.code, agents[0].log(), agents[1].log())
            }
            _ => None,
        })
        .await;
        let outcome = Outcome::of(id, &site.events().await).unwrap();
        let found = site.muster.result(&outcome, if secret { &with_key } else { &lookup }).await.unwrap();
        if secret {
            // Nobody can read it without the key, though the salt is public by now.
            let error = site.muster.result(&outcome, &lookup).await.unwrap_err().to_string();
            assert!(error.contains("corrupt"), "{error}");
        }
        let wanted = answer_to(input).into_bytes();
        assert!(found.bytes == wanted || policy == 1 && found.bytes.windows(wanted.len()).any(|part| part == wanted), "{input}");
        outcomes.push(outcome);
    }

    // A probe is written, read back where it is published, and removed; the store that is down is reported.
    let bytes = site.place.path().join("s3/bytes/gpu1");
    let before = std::fs::read_dir(&bytes).map_or(0, Iterator::count);
    running.pop();
    let doctor = agents[1].command(&["doctor"]).output().unwrap();
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert!(said.contains(&format!("WRONG  store of results: {down}: unreachable")), "{said}");
    assert!(said.contains("takes 52 bytes and gives them back") && said.contains("has the object"), "{said}");
    assert_eq!(std::fs::read_dir(&bytes).map_or(0, Iterator::count), before, "{said}");

    // A missing result: the error names the node that promised it, with each store's failure.
    std::fs::remove_dir_all(site.place.path().join("s3/bytes")).unwrap();
    let outcome = &outcomes[0];
    let error = site.muster.result(outcome, &lookup).await.unwrap_err().to_string();
    let node = outcome.answers[0].node;
    let told = format!("task {} was answered by node {node}, and no store gives the result: http://", outcome.id);
    assert!(nodes.contains(&node) && error.starts_with(&told), "{error}");
    assert_eq!(outcome.answers[0].value, digest_to("by ipfs"));
}

/// Puts bytes into the bucket with the keys.
async fn put_signed(bucket: &S3, bytes: &[u8]) {
    for (name, value) in S3::keys() {
        std::env::set_var(name, value);
    }
    let store = Stores::open(&[bucket.store("bytes")], Bounds::default()).unwrap();
    assert_eq!(store.put(bytes).await.unwrap(), (digest_of(bytes), vec![]));
    // With an unknown key the bucket refuses them.
    std::env::set_var("AWS_ACCESS_KEY_ID", "another");
    let other = Stores::open(&[bucket.store("bytes")], Bounds::default()).unwrap();
    other.put(bytes).await.unwrap_err();
    std::env::set_var("AWS_ACCESS_KEY_ID", "S3RVER");
    let object = Object::Plain(digest_of(bytes));
    assert_eq!(other.remove(object).await.len(), 1);
}

/// `script/bench stores`: how long bytes take to and from stores of this machine.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it measures"]
async fn times_by_size() {
    for (name, value) in S3::keys() {
        std::env::set_var(name, value);
    }
    let place = tempfile::tempdir().unwrap();
    let bucket = S3::start(&place.path().join("s3"), "bytes");
    let (_node, ipfs) = Ipfs::start().await;
    let http = http().await;
    let directory = place.path().join("directory").to_str().unwrap().to_string();
    let kinds = [
        ("a directory", directory.clone(), directory, usize::MAX),
        ("HTTP", http.clone(), http, usize::MAX),
        ("a bucket, signed", bucket.store("bytes"), bucket.store("bytes"), usize::MAX),
        ("a bucket, read by HTTP", bucket.store("bytes"), bucket.public("bytes"), usize::MAX),
        ("IPFS, read by a gateway", format!("kubo+{ipfs}"), format!("ipfs+{ipfs}"), muster_client::BLOCK),
    ];
    let largest = std::env::var("LARGEST").map_or(1 << 30, |bytes| bytes.parse().unwrap());
    let bounds = Bounds { bytes: 1 << 31, timeout: Duration::from_mins(10) };
    println!("| store | bytes | put, s | found and checked, s |\n| --- | ---: | ---: | ---: |");
    for (name, put, get, most) in kinds {
        let (put, get) = (Stores::open(&[put], bounds).unwrap(), Stores::open(&[get], bounds).unwrap());
        for (at, size) in
            [1 << 10, 1 << 20, 1 << 26, 1 << 30].into_iter().enumerate().filter(|(_, size)| *size <= most.min(largest))
        {
            let bytes = vec![at as u8; size];
            let begun = std::time::Instant::now();
            let (digest, _) = put.put(&bytes).await.unwrap();
            let putting = begun.elapsed();
            drop(bytes);
            let begun = std::time::Instant::now();
            get.get_to(digest, &place.path().join("found")).await.unwrap();
            println!("| {name} | {size} | {:.3} | {:.3} |", putting.as_secs_f64(), begun.elapsed().as_secs_f64());
            put.remove(Object::Plain(digest)).await;
        }
    }
}

/// A running task's answer, as its node streams it.
async fn streaming(site: &Site, id: u64) -> Streaming {
    let node = site.event("its node", |event| match event {
        Event::TaskStarted(e) if e.id == id => Some(e.node),
        _ => None,
    });
    site.muster.streaming(id, node.await, true).await.unwrap()
}

/// Texts that are read while they are made, and forbidden streams: a text that is not the node's answer, compared answers, and
/// sealed ones.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_read_while_it_is_made_and_proven_by_the_chain() {
    let mut site = Site::new(&[("sampleBps", 0), ("scorePool", 3)]).await;
    let mut agent = site.agent("gpu0").await;
    let at = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let metrics = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let shown = format!("[stream]\nlisten = \"{at}\"\nurl = \"http://{at}/stream\"\nlisteners = 4");
    agent.more = format!("listen = \"{metrics}\"\n{shown}");
    agent.configure(&site);
    let mut running = agent.start(None);
    let node = joined(&site, &agent).await;
    let said = site.until("it publishes where it shows answers", async || {
        Some(site.muster.stores_of_node(node).await.unwrap()).filter(|said| !said.is_empty())
    });
    let said = said.await;
    let key = said.strip_prefix(&format!("stream+http://{at}/stream age:")).unwrap_or_else(|| panic!("{said}")).to_string();
    let application = site.account(10_000_000).await;
    let lookup = Lookup { configured: site.store(), inside: true, ..Lookup::default() };
    let ended = async |id: u64| {
        site.event("an answer", |event| match event {
            Event::TaskSucceeded(e) if e.id == id => Some(()),
            _ => None,
        })
        .await;
        Outcome::of(id, &site.events().await).unwrap()
    };

    agent.behave("shows");
    let id = site.task(&application, gpt(0), "drow yb drow", 70_000).await;
    let mut reads = streaming(&site, id).await;
    assert_eq!(reads.next().await, Heard::Text("word b".into()));
    // The node has not answered yet: it waits for a signal.
    assert!(!site.events().await.iter().any(|event| matches!(event, Event::TaskSucceeded(e) if e.id == id)));
    let mut second = streaming(&site, id).await;
    assert_eq!(second.next().await, Heard::Text("word b".into()));
    let asked = muster_client::fetcher().unwrap().get(format!("http://{metrics}/metrics"));
    let text = asked.send().await.unwrap().text().await.unwrap();
    for (name, value) in [("streams_open", 1), ("stream_readers", 2), ("stream_bytes_total", 12), ("stream_refused_total", 0)] {
        let said = text.lines().find_map(|line| line.strip_prefix(&format!("muster_agent_{name} "))?.parse().ok());
        assert_eq!(said, Some(f64::from(value)), "{name} in\n{text}");
    }
    agent.behave("answers");
    assert_eq!((reads.next().await, reads.next().await), (Heard::Text("y word".into()), Heard::Whole));
    let outcome = ended(id).await;
    assert_eq!(outcome.answers[0].value, reads.shown().digest());
    assert!(site.muster.prove(&outcome, reads.shown(), &lookup).await.unwrap().is_empty());
    // A reader that missed the rest gets it from the store.
    assert_eq!(site.muster.prove(&outcome, second.shown(), &lookup).await.unwrap(), b"y word");

    // An agent that is killed while somebody reads begins the task again; its earlier text is the beginning of the new one.
    agent.behave("shows");
    let id = site.task(&application, gpt(0), "niaga dna ecno", 70_000).await;
    let mut reads = streaming(&site, id).await;
    assert_eq!(reads.next().await, Heard::Text("once an".into()));
    running.kill();
    agent.behave("answers");
    let _running = agent.start(None);
    let outcome = ended(id).await;
    assert_eq!(site.muster.prove(&outcome, reads.shown(), &lookup).await.unwrap(), b"d again");

    agent.behave("shows another");
    let id = site.task(&application, gpt(0), "the true text", 70_000).await;
    let mut reads = streaming(&site, id).await;
    assert_eq!(reads.next().await, Heard::Text("anothe".into()));
    agent.behave("answers");
    assert_eq!((reads.next().await, reads.next().await), (Heard::Text("r text".into()), Heard::Stopped(Why::Changed)));
    let outcome = ended(id).await;
    match site.muster.prove(&outcome, reads.shown(), &lookup).await.unwrap_err() {
        Unproven::Other { answer, result } => {
            assert_eq!((answer, result), (digest_to("the true text"), Some(answer_to("the true text").into_bytes())));
        }
        other => panic!("{other}"),
    }

    // Tasks that nobody may watch still run.
    agent.behave("shows");
    let id = site.task(&application, IMuster::TaskSpec { kind: 0, ..gpt(1) }, "compared", 100_000).await;
    assert_eq!(streaming(&site, id).await.next().await, Heard::Hidden);
    ended(id).await;
    let sealed = seal_input(b"sealed", &[&key], None).unwrap();
    let (digest, _) = site.store().put(&sealed).await.unwrap();
    let spec = IMuster::TaskSpec { inputDigest: digest, ..gpt(0) };
    let done = application.call(IMuster::createTaskCall { spec }, U256::from(70_000)).await.unwrap();
    let id = done.events.iter().find_map(|event| if let Event::TaskCreated(e) = event { Some(e.id) } else { None }).unwrap();
    assert_eq!(streaming(&site, id).await.next().await, Heard::Hidden);
    ended(id).await;
}
