//! A call of every function of the interface, for two tests that need each: one of the dispatch tables bends its bytes, and fuzzing begins
//! with it. Both fail if a function is missing here.

use crate::world::*;
use alloy_primitives::U256;
use alloy_sol_types::SolCall;
use muster_protocol::IMuster::*;

/// A well-formed call, and the bytes that the interface's own codec makes of its answer after reading it.
pub struct Sample {
    /// The function's.
    pub signature: &'static str,
    /// Selector and arguments.
    pub data: Vec<u8>,
    /// Reads an answer and writes it.
    pub again: fn(&[u8]) -> Vec<u8>,
}

fn sample<C: SolCall>(call: C) -> Sample {
    Sample {
        signature: C::SIGNATURE,
        data: call.abi_encode(),
        again: |answer| C::abi_encode_returns(&C::abi_decode_returns_validate(answer).expect(C::SIGNATURE)),
    }
}

/// A task with every field set.
pub fn wanted() -> TaskSpec {
    TaskSpec {
        kind: 2,
        units: 90,
        vram: 16,
        gpu: 1 << 16 | 24,
        flags: 1,
        inputDigest: [8; 32].into(),
        models: vec![1, 2, 3],
        ..spec(0, &[])
    }
}

/// A call of every function; a world that has ended a few tasks has something to say to most.
pub fn samples() -> Vec<Sample> {
    let (parameter, value) = (parameter("unbonding"), U256::from(7_000));
    let selectors: Vec<_> = [[1, 2, 3, 4].into(), submitCall::SELECTOR.into()].into();
    let program = who(70).into();
    let facet = Facet { facetAddress: program, functionSelectors: selectors.clone() };
    let genesis = genesis();
    let (target, alpha) = (900_000_000_000_000_000, 400_000_000_000_000_000);
    let profile = Profile { algorithm: 2, least: 4, most: 8, reschedules: 1, targeting: 1, target, alpha, period: 400 };
    vec![
        sample(joinCall { gpuName: "a card with a name longer than one word".into(), vram: 48, models: vec![4, 5] }),
        sample(raiseStakeCall {}),
        sample(pauseCall {}),
        sample(resumeCall {}),
        sample(quitCall {}),
        sample(reportDownloadedCall { models: vec![7, 8, 9] }),
        sample(reportRemovedCall { models: vec![1] }),
        sample(purgeCall { model: 1, position: 0 }),
        sample(pokeCall { node: 2 }),
        sample(withdrawCall { to: who(1).into() }),
        sample(createTaskCall { spec: wanted() }),
        sample(createTasksCall { specs: vec![wanted(), spec(8, &[3])], fees: vec![2, 3], atomic: false }),
        sample(cancelCall { id: 6, ticket: 16 << 32 }),
        sample(expireQueuedCall { id: 7, ticket: 16 << 32 }),
        sample(submitCall { id: 2, resultDigest: [9; 32].into() }),
        sample(reportErrorCall { id: 2, code: 3 }),
        sample(expireCall { node: 2, id: 2 }),
        sample(dispatchCall { count: 2 }),
        sample(commitCall { id: 2, commitment: [9; 32].into() }),
        sample(revealCall { id: 2, group: 0, node: 2, kind: 0, value: [9; 32].into(), salt: [8; 32].into() }),
        sample(validateCall { id: 2, node: 2 }),
        sample(formGroupCall {}),
        sample(setProfileCall { profile }),
        sample(profileCall { application: who(50).into() }),
        sample(settleCall { id: 2, group: 1 }),
        sample(listGpuGroupCall { group: 1 << 16 | 24, listed: true }),
        sample(groupsCall { from: 1, count: 9 }),
        sample(groupCall { place: 1 }),
        sample(validatorDrawsCall { from: 0, count: 9 }),
        sample(gpuListedCall { group: 1 << 16 | 24 }),
        sample(activeNodesCall { group: 1 << 16 | 24, class: 0, from: 0, count: 9 }),
        sample(initialise(&genesis, &[facet.clone(), facet])),
        sample(setParameterCall { parameter: 7, value }),
        sample(proposeParameterCall { parameter, value }),
        sample(acceptParameterCall { parameter }),
        sample(setPausedCall { on: true }),
        sample(transferOwnershipCall { newOwner: who(3).into() }),
        sample(acceptOwnershipCall {}),
        sample(proposeTreasuryCall { treasury: who(4).into() }),
        sample(acceptTreasuryCall {}),
        sample(sweepTreasuryCall {}),
        sample(proposeProgramsCall { program, selectors: selectors.clone() }),
        sample(withdrawProgramsCall { program, selectors: selectors.clone() }),
        sample(acceptProgramsCall { program, selectors: selectors.clone() }),
        sample(renounceUpgradesCall {}),
        sample(overviewCall {}),
        sample(ownerCall {}),
        sample(parameterCall { which: 3 }),
        sample(proposedParameterCall { which: parameter }),
        sample(proposedProgramsCall { program, selectors }),
        sample(upgradesCall {}),
        sample(accountCall { who: who(1).into() }),
        sample(nodeCall { number: 1 }),
        sample(nodeOfCall { who: who(2).into() }),
        sample(nodesCall { from: 1, count: 9 }),
        sample(workerOfCall { number: 1 }),
        sample(weightOfCall { number: 1, spec: wanted() }),
        sample(estimateCall { kind: 0, units: 3 }),
        sample(gpuGroupCall { name: "RTX 4090".into(), vram: 24 }),
        sample(gpuNameCall { group: 1 << 16 | 24 }),
        sample(gpuGroupsCall { vram: 24 }),
        sample(idleNodesCall { group: 1 << 16 | 24, class: 0, from: 0, count: 9 }),
        sample(holdersCall { model: 1, from: 0, count: 9 }),
        sample(runningTaskCall { number: 2 }),
        sample(pendingTasksCall { from: 0, count: 9 }),
        sample(queuedTasksCall { queue: 16, from: 0, count: 9 }),
        sample(bestQueuedCall { number: 1 }),
        sample(excludedNodesCall { from: 0, count: 9 }),
        sample(outcomeCall { id: 8 }),
        sample(locateCall { id: 9, nodeHint: 0, ticketHint: 0 }),
        sample(queuesCall { from: 0, count: 9 }),
        sample(queuedBeforeCall { ticket: 16 << 32, from: 0, count: 9 }),
        sample(setWorkerCall { worker: who(9).into() }),
        sample(acceptWorkCall { node: 1 }),
        sample(leaveWorkCall {}),
        sample(setStoresCall { uris: "https://a.example/results ipfs://results.of.a.node".into() }),
        sample(storesOfCall { account: who(1).into() }),
        sample(nameModelCall { name: "a model with a name longer than one word".into() }),
        sample(pendingOwnerCall {}),
        sample(pendingTreasuryCall {}),
        sample(facetsCall {}),
        sample(facetFunctionSelectorsCall { facet: who(71).into() }),
        sample(facetAddressesCall {}),
        sample(facetAddressCall { selector: pauseCall::SELECTOR.into() }),
        sample(supportsInterfaceCall { interfaceId: [1, 255, 201, 167].into() }),
    ]
}
