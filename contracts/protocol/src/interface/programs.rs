//! The programs: which of them answers which function of the interface, and how.

use crate::abi::{IMuster::*, SOURCE};
use crate::admin::{self, stores, worker, Genesis};
use crate::codec::Calldata;
use crate::dispatch::Function;
use crate::flow::gas::{CALL_GAS, FREEING_GAS, QUEUEING_GAS};
use crate::flow::models::name_model;
use crate::host::{Host, Program};
use crate::store::sampler::Among;
use crate::store::{accounts, registry, routes};
use crate::view::lens;
use crate::Result;
use alloc::string::String;
use alloc::vec::Vec;
use alloy_primitives::{Address as Account, FixedBytes};
use alloy_sol_types::SolCall;
use muster_core::id::{GpuGroup, ModelId, NodeId, QueueId, TaskId, Ticket};
use muster_core::word::{Address, Word};

program! { SOURCE;
    /// The program of nodes: joining, staking, working or not, models; and of profiles.
    nodes NODES {
        // They write much themselves, and serve only the draws that they need served.
        acting(net, CALL_GAS) {
            #[payable] joinCall(gpu: &[u8], vram: u16, models: Vec<ModelId>) -> NodeId { net.join(gpu, vram, models) }
            #[payable] raiseStakeCall() { net.raise_stake() }
            reportDownloadedCall(models: Vec<ModelId>) { net.report_downloaded(models) }
        }
        serving(net, CALL_GAS) {
            pauseCall() { net.pause() }
            resumeCall() { net.resume() }
            quitCall() { net.quit() }
            reportRemovedCall(models: Vec<ModelId>) { net.report_removed(models) }
            purgeCall(model: ModelId, position: u32) { net.purge(model, position) }
            pokeCall(node: NodeId) { net.poke(node) }
            // For applications. It is here because `reputation`, whose draws use profiles, has no room for it.
            setProfileCall(profile: Profile) { net.set_profile(profile) }
        }
    }

    /// The program that creates a task.
    tasks TASKS {
        serving(net, CALL_GAS) {
            #[payable] createTaskCall(spec: TaskSpec) -> TaskId { net.create_task(spec) }
        }
    }

    /// The program of answers and draws, and of work for freed nodes.
    work WORK {
        serving(net, CALL_GAS) {
            submitCall(id: TaskId, digest: [u8; 32]) { net.submit(id, digest) }
        }
        // Its caller says how many draws it makes. It demands more gas for more.
        acting(net, CALL_GAS) {
            dispatchCall(count: u8) -> u8 { net.dispatch(count) }
        }
    }

    /// The program of many tasks at once: apart from `tasks`, for every call there pays for the size of that program.
    batches BATCHES {
        // It makes only cheap draws, and refuses where others are due.
        acting(net, CALL_GAS) {
            #[payable] createTasksCall(specs: Vec<TaskSpec>, fees: Vec<u128>, atomic: bool) -> Vec<TaskId> {
                net.create_tasks(specs, &fees, atomic)
            }
        }
    }

    /// The program of validation. It takes commitments and reveals whatever is due, and serves nothing.
    groups GROUPS {
        // Calls that may do more in a group demand more there. One block: each has its own copy of the code that opens the network.
        acting(net, FREEING_GAS) {
            commitCall(id: TaskId, commitment: [u8; 32]) { net.commit(id, commitment) }
            revealCall(id: TaskId, group: u32, node: NodeId, kind: u8, value: [u8; 32], salt: [u8; 32]) {
                net.reveal(id, group, node, kind, value, salt)
            }
            settleCall(id: TaskId, group: u32) { net.settle(id, group) }
        }
    }

    /// The program that draws several nodes at once: validators, and those of replicated tasks; and of tasks that end without an answer.
    draws DRAWS {
        acting(net, QUEUEING_GAS) {
            validateCall(id: TaskId, node: NodeId) { net.validate(id, node) }
        }
        acting(net, CALL_GAS) {
            formGroupCall() -> bool { Ok(net.form()) }
        }
        // They would fit no other program that frees nodes.
        serving(net, CALL_GAS) {
            reportErrorCall(id: TaskId, code: u8) { net.report_error(id, code) }
            expireCall(node: NodeId, id: TaskId) { net.expire(node, id) }
        }
    }

    /// The program that chooses nodes by their ratings.
    reputation REPUTATION {
        reading(net) {
            profileCall(application: Address) -> (Profile, u32, u32, u32) { Ok(net.profile(application)) }
        }
    }

    /// The program of administration, payments, the loupe, and the end of queued tasks. Nothing here draws, so that nothing can keep it
    /// from paying.
    admin ADMIN {
        acting(net, QUEUEING_GAS) {
            cancelCall(id: TaskId, ticket: Ticket) { net.cancel(id, ticket) }
            expireQueuedCall(id: TaskId, ticket: Ticket) { net.expire_queued(id, ticket) }
        }
        alone(host) {
            initialiseCall(owner: Address, treasury: Address, stake_unit: u64, minimum_stake: u128, upgrade_delay: u32, programs: Vec<Facet>) {
                admin::initialise(host, &Genesis { owner, treasury, stake_unit, minimum_stake, upgrade_delay }, &programs)
            }
            setParameterCall(parameter: u8, value: Word) { admin::set_parameter(host, parameter, value) }
            proposeParameterCall(parameter: u8, value: Word) { admin::propose_parameter(host, parameter, value) }
            acceptParameterCall(parameter: u8) { admin::accept_parameter(host, parameter) }
            listGpuGroupCall(group: GpuGroup, on: bool) { admin::list_gpu_group(host, group, on) }
            setPausedCall(on: bool) { admin::set_paused(host, on) }
            transferOwnershipCall(next: Address) { admin::transfer_ownership(host, next) }
            acceptOwnershipCall() { admin::accept_ownership(host) }
            proposeTreasuryCall(treasury: Address) { admin::propose_treasury(host, treasury) }
            acceptTreasuryCall() { admin::accept_treasury(host) }
            sweepTreasuryCall() { accounts::sweep_treasury(host) }
            nameModelCall(name: &[u8]) -> ModelId { name_model(host, name) }
            setWorkerCall(worker: Address) { worker::set_worker(host, worker) }
            acceptWorkCall(node: NodeId) { worker::accept_work(host, node) }
            leaveWorkCall() { worker::leave_work(host) }
            setStoresCall(uris: &[u8]) { stores::set_stores(host, uris) }
            withdrawCall(to: Address) { accounts::withdraw(host, to) }
            proposeProgramsCall(program: Address, selectors: Vec<FixedBytes<4>>) { admin::propose_programs(host, program, &selectors) }
            withdrawProgramsCall(program: Address, selectors: Vec<FixedBytes<4>>) { admin::withdraw_programs(host, program, &selectors) }
            acceptProgramsCall(program: Address, selectors: Vec<FixedBytes<4>>) { admin::accept_programs(host, program, &selectors) }
            renounceUpgradesCall() { admin::renounce_upgrades(host) }
        }
        looking(host) {
            parameterCall(which: u8) -> (Word, u64, u64) { admin::parameter(host, which) }
            proposedParameterCall(which: u8) -> (Word, u64) { admin::proposed_parameter(host, which) }
            proposedProgramsCall(program: Address, selectors: Vec<FixedBytes<4>>) -> u64 {
                Ok(admin::proposed_programs(host, program, &selectors))
            }
            workerOfCall(number: NodeId) -> (Address, bool) { Ok(worker::worker_of(host, number)) }
            storesOfCall(account: Address) -> String { Ok(stores::stores_of(host, account)) }
            pendingOwnerCall() -> Address { Ok(admin::pending_owner(host)) }
            pendingTreasuryCall() -> (Address, u64) { Ok(admin::pending_treasury(host)) }
            upgradesCall() -> (u32, bool) { admin::upgrades(host) }
            facetsCall() -> Vec<Facet> { Ok(lens::facets(host)) }
            facetFunctionSelectorsCall(facet: Account) -> Vec<FixedBytes<4>> {
                Ok(lens::facets(host).into_iter().find(|f| f.facetAddress == facet).map_or(Vec::new(), |f| f.functionSelectors))
            }
            facetAddressesCall() -> Vec<Account> { Ok(lens::facets(host).into_iter().map(|f| f.facetAddress).collect()) }
            facetAddressCall(selector: [u8; 4]) -> Address {
                Ok(if selector == installCall::SELECTOR { host.here() } else { routes::program_of(host, selector) })
            }
            supportsInterfaceCall(id: [u8; 4]) -> bool { Ok(admin::supports_interface(id, INTERFACE_ID)) }
        }
    }

    /// The program of reading.
    lens LENS {
        reading(net) {
            overviewCall() -> Overview { Ok(net.overview()) }
            ownerCall() -> Account { Ok(net.overview().owner) }
            accountCall(who: Address) -> AccountView { Ok(net.account_view(who)) }
            nodeCall(number: NodeId) -> NodeView { net.node_view(number) }
            nodeOfCall(who: Address) -> NodeId { Ok(accounts::node_of(net.host, who).0) }
            nodesCall(from: u32, count: u32) -> Vec<NodeView> { net.node_views(from, count) }
            weightOfCall(number: NodeId, spec: TaskSpec) -> WeightView { net.weight_of(number, &spec) }
            estimateCall(kind: u8, units: u32) -> (u32, u32, u128) { net.estimate_view(kind, units) }
            idleNodesCall(group: GpuGroup, class: u8, from: u32, count: u32) -> (u32, Vec<NodeId>) { net.listed_nodes(Among::Idle, group, class, from, count) }
            holdersCall(model: ModelId, from: u32, count: u32) -> (u32, Vec<NodeId>) { net.holders_view(model, from, count) }
            excludedNodesCall(from: u32, count: u32) -> (u32, Vec<NodeId>) { net.excluded_nodes(from, count) }
            outcomeCall(id: TaskId) -> Outcome { Ok(net.outcome(id)) }
            locateCall(id: TaskId, node: NodeId, ticket: Ticket) -> TaskView { Ok(net.locate(id, node, ticket)) }
            runningTaskCall(number: NodeId) -> TaskView { net.running_task(number) }
            pendingTasksCall(from: u32, count: u32) -> Vec<TaskView> { net.pending_tasks(from, count) }
            queuesCall(from: u32, count: u32) -> (u32, Vec<QueueView>) { net.queues(from, count) }
            queuedTasksCall(queue: QueueId, from: u32, count: u32) -> (u32, Vec<TaskView>) { net.queued_tasks(queue, from, count) }
            queuedBeforeCall(ticket: Ticket, from: u32, count: u32) -> (u32, u32) { net.queued_before(ticket, from, count) }
            groupsCall(from: u32, count: u32) -> (u32, Vec<GroupView>) { net.groups_view(from, count) }
            groupCall(place: u32) -> GroupView { Ok(net.group_view(place)) }
            validatorDrawsCall(from: u32, count: u32) -> Vec<TaskView> { net.validator_draws_view(from, count) }
            activeNodesCall(group: GpuGroup, class: u8, from: u32, count: u32) -> (u32, Vec<NodeId>) {
                net.listed_nodes(Among::Active, group, class, from, count)
            }
            bestQueuedCall(number: NodeId) -> TaskView { net.best_queued(number) }
        }
        looking(host) {
            gpuGroupCall(name: &[u8], vram: u16) -> GpuGroup { registry::find_gpu_group(host, name, vram) }
            gpuNameCall(group: GpuGroup) -> String { Ok(registry::gpu_name(host, group)) }
            gpuListedCall(group: GpuGroup) -> bool { Ok(registry::listed(host, group)) }
            gpuGroupsCall(vram: u16) -> u32 { Ok(registry::gpu_count(host, vram)) }
        }
    }
}

/// `type(IMuster).interfaceId`: all selectors of the interface, the router's and [`initialiseCall`]'s included, by exclusive or.
pub const INTERFACE_ID: [u8; 4] = {
    let mut id = installCall::SELECTOR;
    let mut p = 0;
    while p < PROGRAMS.len() {
        let mut i = 0;
        while i < PROGRAMS[p].1.len() {
            let selector = PROGRAMS[p].1[i].selector;
            id = [id[0] ^ selector[0], id[1] ^ selector[1], id[2] ^ selector[2], id[3] ^ selector[3]];
            i += 1;
        }
        p += 1;
    }
    id
};

/// All programs behind the router: their crates' names, and their functions.
pub const PROGRAMS: [(&str, &[Function]); 9] = [
    ("nodes", NODES),
    ("tasks", TASKS),
    ("work", WORK),
    ("batches", BATCHES),
    ("groups", GROUPS),
    ("draws", DRAWS),
    ("reputation", REPUTATION),
    ("admin", ADMIN),
    ("lens", LENS),
];

/// Whether a call is one of these functions'.
pub fn is_of(functions: &[Function], calldata: &[u8]) -> bool {
    calldata.first_chunk().is_some_and(|selector| functions.iter().any(|f| f.selector == *selector))
}

/// How a program answers calls on a host.
pub type Run<H> = fn(&mut H, &[u8]) -> Result<Vec<u8>>;

/// The programs that change something: their functions, and their entry points.
pub fn changing<H: Host>() -> [(Program, &'static [Function], Run<H>); 8] {
    [
        (Program::Nodes, NODES, nodes),
        (Program::Tasks, TASKS, tasks),
        (Program::Work, WORK, work),
        (Program::Batches, BATCHES, batches),
        (Program::Groups, GROUPS, groups),
        (Program::Draws, DRAWS, draws),
        (Program::Reputation, REPUTATION, reputation),
        (Program::Admin, ADMIN, admin),
    ]
}

/// Answers a call as the router with all its programs would, or one that installs: the whole contract on any host.
pub fn answer<H: Host>(host: &mut H, calldata: &[u8]) -> Result<Vec<u8>> {
    let selector = Calldata::new(calldata)?.selector;
    let mut all = changing::<H>().into_iter().chain([(Program::Lens, LENS, lens as Run<H>)]);
    let (program, _, run) =
        all.find(|(_, functions, _)| is_of(functions, calldata)).ok_or_else(|| refusal!(UnknownFunction(selector)))?;
    let before = host.enter(program);
    let answer = run(host, calldata);
    host.enter(before);
    answer
}
