//! Tasks whose groups are chosen by their members' ratings (redundancy 3), as docs/reputation.md has them.
//!
//! The nodes that chance chose are taken from the events. With a pool of everybody, First-fit and Tight-fit leave to chance only which of
//! several nodes of one rating are members. So the choice is compared with [`Algorithm::form`] over a plain slice of ratings.

use super::*;
use muster_core::adaptive::{HillClimber, Settings, Tally};
use muster_core::reputation::{Algorithm, Exact, Rule};
use muster_protocol::Network;

/// One as a wad.
const ONE: u64 = 1_000_000_000_000_000_000;
/// The largest pool that groups are formed of.
const POOL: usize = 32;
/// How far a likelihood in f64 may be from the contract's.
const NEAR: f64 = 1e-12;

/// The settings of an application, and the results of its groups since its target was last set.
#[derive(Clone, Debug)]
pub(super) struct Application {
    profile: Profile,
    climber: HillClimber,
    /// How often a predictive target was set.
    predicted: u64,
    groups: u64,
    successes: u64,
    members: u64,
}

impl Application {
    fn new(profile: Profile) -> Application {
        let settings = Settings { initial: profile.target, ..Settings::new(profile.alpha) };
        Application { profile, climber: HillClimber::new(settings), predicted: 0, groups: 0, successes: 0, members: 0 }
    }

    /// The number of nodes that its tasks pay for now.
    pub(super) fn most(&self) -> u64 {
        self.profile.most as u64
    }
}

impl Default for Application {
    fn default() -> Application {
        Application::new(crate::validated::USUAL)
    }
}

/// The likelihood that more than half of a group are right.
fn likelihood(ratings: &[u64]) -> f64 {
    let mut right = vec![1.0];
    for &rating in ratings {
        let p = rating as f64 / ONE as f64;
        right.push(0.0);
        for i in (0..right.len()).rev() {
            right[i] = right[i] * (1.0 - p) + if i > 0 { right[i - 1] * p } else { 0.0 };
        }
    }
    right[ratings.len() / 2 + 1..].iter().sum()
}

/// The group that an algorithm which leaves nothing to chance forms of ratings sorted by falling, moved to their front.
fn formed(algorithm: Algorithm, ratings: &mut [u64], rule: &Rule) -> Option<usize> {
    algorithm.form::<u64, Exact>(ratings, rule, |_| unreachable!("nothing is drawn")).map(|group| group.size)
}

/// All groups that are formed of ratings, one after the other, for a target.
fn partition(algorithm: Algorithm, ratings: &[u64], (least, most): (usize, usize), target: u64) -> Vec<Vec<u64>> {
    let rule = Rule::new(least, most, target).expect("within bounds");
    let (mut free, mut groups) = (ratings.to_vec(), Vec::new());
    while let Some(size) = formed(algorithm, &mut free, &rule) {
        groups.push(free.drain(..size).collect());
    }
    groups
}

/// Hundredths between the targets of which a predictive one is found.
const STEP: u64 = 2;

/// Asserts that the groups of a target and of those beside it have the largest expected gain together, and that it is the lowest of
/// those with the same groups. Both ends count twice.
fn check_predicted(algorithm: Algorithm, ratings: &[u64], bounds: (usize, usize), alpha: u64, target: u64) {
    let alpha = alpha as f64 / ONE as f64;
    let gain = |groups: &Vec<Vec<u64>>| {
        let expected: f64 = groups.iter().map(|group| likelihood(group)).sum();
        alpha * expected / (ratings.len() / bounds.0) as f64 + (1.0 - alpha) * expected / groups.len() as f64
    };
    let all: Vec<_> = (0..=100 / STEP).map(|i| partition(algorithm, ratings, bounds, ONE / 100 * STEP * i)).collect();
    let around = |i: usize| [&all[i.max(1) - 1], &all[i], &all[(i + 1).min(all.len() - 1)]];
    let gains: Vec<f64> = (0..all.len()).map(|i| around(i).map(gain).iter().sum()).collect();
    let chosen = (target / (ONE / 100 * STEP)) as usize;
    for i in 0..all.len() {
        assert!(gains[chosen] > gains[i] - 1e-9, "around {i} steps they gain more than around {target} of {ratings:?}");
        assert!(around(i) != around(chosen) || i >= chosen, "around {i} steps they are the same as around {target}");
    }
}

/// The predictive target that comes next after `before` that came to `former`, where it comes to `now`: the mean of both in which the
/// last of three has a third.
fn predicted(former: u64, before: u64, now: u64) -> u64 {
    let (count, step) = (before.min(2) + 1, ONE / 100 * STEP);
    // Rounding down lost less than the number of targets, and far less than a step.
    let next = (now * count + (count - 1) - former * (count - 1)) / step * step;
    assert_eq!((former * (count - 1) + next) / count, now, "no target after {before} that came to {former}");
    next
}

/// Fewest and most members of a task's group.
fn bounds(p: &Profile, task: &Task) -> (usize, usize) {
    let most = p.most.min(task.nodes as u8) as usize;
    (most.min(p.least as usize), most)
}

/// Whether a group hangs on nothing but the ratings of the pool.
fn foretold(algorithm: Algorithm, everybody: bool) -> bool {
    everybody && matches!(algorithm, Algorithm::FirstFit | Algorithm::TightFit)
}

impl Node {
    /// Its rating, a wad.
    fn rating(&self) -> u64 {
        let (judged, right) = self.judged;
        ((right + 1) as u128 * ONE as u128 / (judged + 2) as u128) as u64
    }
}

impl Model {
    pub(super) fn application(&self, who: Address) -> Application {
        self.applications.get(&who).cloned().unwrap_or_default()
    }

    pub(super) fn set_profile(&mut self, t: &mut Trace, by: Address, given: &Profile) -> Refused {
        let p = given;
        need!(p.algorithm <= 3 && 3 <= p.least && p.least <= p.most && p.most <= 9, "BadProfile");
        need!(
            p.reschedules <= 8 && p.targeting <= 2 && p.target <= ONE && p.alpha <= ONE && (300..=1_000_000).contains(&p.period),
            "BadProfile"
        );
        self.applications.insert(by, Application::new(given.clone()));
        t.expect(E::ProfileSet(IMuster::ProfileSet { application: by.into(), profile: given.clone() }));
        Ok(())
    }

    /// The draw of a task whose group is chosen by ratings, as the real thing decided it, checked.
    pub(super) fn draw_rated(&mut self, t: &mut Trace, mut task: Task, known: bool) {
        let mut before = task.chosen.take();
        let forms = matches!(t.peek(), Some(E::GroupFormed(formed)) if formed.id == task.id);
        if let Some(Choice { gone, .. }) = before.as_mut().filter(|_| !forms) {
            let freed = |e: &E| if let E::NodeExcluded(e) = e { Some(e.node) } else { None };
            let freed: Vec<u32> = t.events[t.next..].iter().map_while(freed).collect();
            if freed.is_empty() {
                self.note("rated: words written for the first time");
            } else {
                assert!(freed.iter().all(|node| task.reserved.contains(node)), "{freed:?} for {task:?}");
                task.reserved.retain(|node| !freed.contains(node));
                gone.extend(&freed);
                self.give_back(t, &freed, "rated: reserved nodes let go before");
            }
            self.pending.push_front(Task { chosen: before, ..task });
            return;
        }
        let reserved = std::mem::take(&mut task.reserved);
        let there = |n: &Node| task.fits(n) && self.eligible(self.h(n));
        let pool: Vec<u32> = self
            .nodes
            .iter()
            .map(|(&i, n)| (i, n))
            .filter(|(i, n)| {
                let idle = n.status == 1 && n.parked.is_none();
                (idle || reserved.contains(i)) && there(n)
            })
            .map(|(i, _)| i)
            .collect();
        let most = self.application(task.creator).most().min(task.nodes) as usize;
        // Those that a raised threshold excludes stand among the idle ones until poked.
        let idle = self.idle().filter(|(_, n)| task.fits(n)).count();
        let counted = idle + reserved.iter().filter(|i| there(&self.nodes[i])).count();
        let everybody = counted <= POOL;
        let kept_out = idle > self.idle().filter(|(_, n)| there(n)).count();
        if kept_out {
            self.note("rated: an idle node that H keeps out");
        }
        // They are counted here as well: a count of a GPU group knows nothing of H.
        let scored = counted as u64 >= self.set["scorePool"] && self.alike(&task, task.group());
        match t.peek().cloned() {
            Some(E::GroupChosen(chosen)) if chosen.id == task.id => {
                assert!(known && before.is_none() && pool.len() >= most, "{chosen:?} of {pool:?}");
                self.note("rated: chosen by one draw and formed by another");
                let mut ratings: Vec<u64> = pool.iter().map(|node| self.nodes[node].rating()).collect();
                ratings.sort_unstable_by_key(|&r| Reverse(r));
                self.renew(&task, &chosen, &ratings, everybody);
                let p = self.application(task.creator).profile;
                let told = IMuster::GroupChosen {
                    group: 0,
                    creator: task.creator.into(),
                    algorithm: p.algorithm,
                    target: p.target,
                    ..chosen
                };
                t.expect(E::GroupChosen(told));
                let profile = Profile { target: p.target, ..self.application(task.creator).profile };
                let choice = Choice { pool, everybody, gone: Vec::new(), scored, profile };
                self.pending.push_front(Task { reserved, chosen: Some(choice), ..task });
            }
            Some(E::GroupFormed(formed)) if formed.id == task.id => {
                assert!(known || before.is_some(), "{formed:?}");
                // Of those that were there when they were chosen.
                let at_once = before.is_none();
                let choice = before.unwrap_or_else(|| {
                    let profile = self.application(task.creator).profile;
                    Choice { pool, everybody, gone: Vec::new(), scored, profile }
                });
                assert!(!formed.nodes.iter().any(|node| choice.gone.contains(node)), "{formed:?} of {choice:?}");
                if !choice.everybody {
                    self.note("rated: drawn pool");
                }
                let chosen = self.choose(t, &task, &formed, &choice, at_once);
                self.form_at_once(t, task.clone(), &formed, choice.scored);
                let (drawn, others): (Vec<u32>, Vec<u32>) = reserved.iter().partition(|node| formed.nodes.contains(node));
                if !drawn.is_empty() {
                    self.note("rated: a reserved node chosen");
                }
                self.give_back(t, &others, "rated: a reserved node not chosen");
                t.expect(chosen);
                self.pre_download_for_group(t, &task);
            }
            Some(E::TaskRedrawn(redrawn)) if redrawn.id == task.id => {
                assert!(!known || !everybody, "{redrawn:?} of {pool:?}, reserved {reserved:?}");
                self.note(if known { "rated: too few drawn" } else { "rated: too old" });
                let undecided = task.undecided + u64::from(known);
                assert!(undecided < RATED_DRAWS, "undecided too often: {task:?}");
                let (reserved, others): (Vec<u32>, Vec<u32>) = reserved.into_iter().partition(|node| self.kept_reserved(*node));
                self.put_off(t, Task { undecided, reserved, ..task });
                self.give_back(t, &others, "rated: a reserved node let go");
            }
            event => {
                let last = !everybody && task.undecided + 1 == RATED_DRAWS;
                assert!(known && (last || everybody && pool.len() < most), "{event:?} of {pool:?} for {most}");
                self.note(if last { "rated: undecided too often" } else { "rated: too few there" });
                self.enqueue(t, task);
                self.give_back(t, &reserved, "rated: a reserved node returned");
            }
        }
    }

    /// Sets an application's target to the told one, where that is due, and checks it against the ratings of the pool, the highest first.
    fn renew(&mut self, task: &Task, chosen: &GroupChosen, ratings: &[u64], everybody: bool) {
        let mut app = self.application(task.creator);
        let p = &mut app.profile;
        if app.groups < p.period as u64 || p.targeting > 1 {
            return;
        }
        if p.targeting == 1 {
            let capacity = app.members / p.least as u64;
            app.climber.step(Tally { successes: app.successes, groups: app.groups, capacity });
            p.target = app.climber.target();
            self.note("rated: adaptive target set");
        } else {
            let next = predicted(p.target, app.predicted, chosen.target);
            assert!(next <= ONE, "{chosen:?}");
            (p.target, app.predicted) = (chosen.target, app.predicted + 1);
            let algorithm = Algorithm::new(p.algorithm).expect("within bounds");
            if foretold(algorithm, everybody) {
                check_predicted(algorithm, ratings, bounds(p, task), p.alpha, next);
                self.note("rated: predicted target checked");
            }
            self.note("rated: predictive target set");
        }
        (app.groups, app.successes, app.members) = (0, 0, 0);
        self.applications.insert(task.creator, app);
    }

    /// Checks the nodes chosen of a pool, sets the target where that is due and the group chosen `at_once`, and gives the event that must
    /// tell it.
    fn choose(&mut self, t: &Trace, task: &Task, told: &GroupFormed, choice: &Choice, at_once: bool) -> E {
        let pool = &choice.pool;
        let rating = |node: &u32| self.nodes[node].rating();
        for (i, node) in told.nodes.iter().enumerate() {
            assert!(pool.contains(node) && !told.nodes[..i].contains(node), "{node} of {pool:?}: {told:?}");
        }
        let mut group: Vec<u64> = told.nodes.iter().map(rating).collect();
        let mut ratings: Vec<u64> = pool.iter().map(rating).collect();
        [&mut group, &mut ratings].into_iter().for_each(|all| all.sort_unstable_by_key(|&r| Reverse(r)));
        let p = &choice.profile;
        let (least, most) = bounds(p, task);
        assert!(pool.len() >= most, "{told:?} of {pool:?}");
        let algorithm = Algorithm::new(p.algorithm).expect("within bounds");
        let foretold = foretold(algorithm, choice.everybody);
        let size = told.nodes.len();
        if most < p.most as usize {
            self.note("rated: paid for fewer than the profile says now");
        }
        let chosen = t.events[t.next..].iter().find_map(|e| match e {
            E::GroupChosen(chosen) if chosen.id == task.id => Some(chosen.clone()),
            _ => None,
        });
        let chosen = chosen.expect("it tells what was chosen");
        if at_once {
            self.renew(task, &chosen, &ratings, choice.everybody);
        }
        // It may have been changed since they were chosen.
        let now = self.application(task.creator).profile;
        let target = if at_once { now.target } else { p.target };
        if !at_once && now != *p {
            self.note("rated: formed under another profile");
        }
        let reached = chosen.likelihood >= target;
        assert!((likelihood(&group) - chosen.likelihood as f64 / ONE as f64).abs() < NEAR, "{chosen:?} of {group:?}");
        assert!((least..=most).contains(&size), "{told:?}: {least} to {most}");
        assert!(reached || size == most, "{chosen:?} has not reached its target");
        if foretold {
            let rule = Rule::new(least, most, target).expect("within bounds");
            let mut free = ratings.clone();
            let expected = formed(algorithm, &mut free, &rule).expect("there are enough");
            assert_eq!(group, free[..expected], "{algorithm:?} of {ratings:?} for {rule:?}");
        } else if algorithm == Algorithm::Fixed {
            assert_eq!(size, most, "{told:?}");
        } else if size > least {
            // Without the last one, whichever that was, it had not been reached.
            let without = |i: usize| likelihood(&[&group[..i], &group[i + 1..]].concat());
            let lower = (0..size).map(without).fold(1.0, f64::min);
            assert!(lower < target as f64 / ONE as f64 + NEAR, "{chosen:?} was reached before, of {group:?}");
        }
        self.note(["rated: fixed-size", "rated: first-fit", "rated: tight-fit", "rated: random-fit"][p.algorithm as usize]);
        self.note(if reached { "rated: target reached" } else { "rated: target missed" });
        self.note(if size == least {
            "rated: least group"
        } else if size == most {
            "rated: largest group"
        } else {
            "rated: group between"
        });
        E::GroupChosen(IMuster::GroupChosen {
            creator: task.creator.into(),
            algorithm: now.algorithm,
            size: size as u8,
            target: now.target,
            id: task.id,
            group: told.group,
            ..chosen
        })
    }

    /// The best queued task whose group is chosen by ratings: value, then its own GPU group, then arrival.
    pub(super) fn best_rated(&self, n: &Node) -> Option<usize> {
        let there = |&i: &usize| self.queue[i].policy == 3 && self.queue[i].fits(n);
        (0..self.queue.len()).filter(there).max_by_key(|&i| {
            let q = &self.queue[i];
            (q.value(), q.gpu.is_some(), Reverse(q.id))
        })
    }

    /// Judges a group that was chosen by ratings.
    pub(super) fn judge_rated(&mut self, t: &mut Trace, by: Address, place: u32) {
        let team = self.teams.remove(&place).expect("there is a group");
        let (task, size) = (&team.task, team.members.len());
        let answers: Vec<usize> = (0..size).filter(|&i| team.members[i].stage == ANSWERED).collect();
        let hamming = self.set["hammingMost"];
        let agreeing =
            |i: usize| answers.iter().filter(|&&j| team.same(team.members[i].answer, team.members[j].answer, hamming)).count();
        // Images need not agree both with a third: right are those that agree with the first that more than half agree with.
        let winner = answers.iter().copied().find(|&i| agreeing(i) > size / 2);
        let with_winner = |i: usize| winner.is_some_and(|w| team.same(team.members[i].answer, team.members[w].answer, hamming));
        let most: Vec<usize> = answers.iter().copied().filter(|&i| with_winner(i)).collect();
        if winner.is_some() && answers.iter().any(|&i| agreeing(i) > size / 2 && !with_winner(i)) {
            self.note("rated: agreed in a chain");
        }
        let mut app = self.application(task.creator);
        let majority = winner.is_some();
        let again = !majority && task.regrouped < app.profile.reschedules as u64;
        let mut paid = vec![0; size];
        if majority {
            let unshared = Self::unshared(&team, task.fee);
            self.reserve += unshared;
            let pot = task.fee - unshared;
            let share = pot / most.len() as u128;
            most.iter().for_each(|&i| paid[i] = share);
            paid[most[most.len() - 1]] += pot - share * most.len() as u128;
        }
        let outcome = match answers.len() {
            _ if majority => 0,
            _ if again => 4,
            2.. => 2,
            _ => 3,
        };
        let start_fee = if majority { 0 } else { task.start_fee() };
        let refund = if majority || again { 0 } else { task.fee - start_fee };
        self.note(match (outcome, answers.len()) {
            (0, all) if all == most.len() => "rated: majority",
            (0, _) => "rated: majority against others",
            (4, _) => "rated: given to another group",
            (2, _) => "rated: no majority",
            (_, 1) => "rated: one alone",
            _ => "rated: unanswered",
        });
        if !majority && answers.iter().any(|&i| agreeing(i) >= 2) {
            self.note("rated: agreed without a majority");
        }
        self.note(if team.scored { "rated: scored" } else { "rated: not scored" });
        if app.profile.targeting < 2 {
            (app.groups, app.successes, app.members) =
                (app.groups + 1, app.successes + majority as u64, app.members + size as u64);
        }
        self.applications.insert(task.creator, app);
        if again {
            let task = task.clone();
            self.put_off(t, Task { fee: task.fee - start_fee, regrouped: task.regrouped + 1, began: 0, ..task });
        }
        for (i, member) in team.members.iter().enumerate() {
            let verdict = match member.stage {
                ANSWERED if most.contains(&i) => 1,
                ANSWERED if majority => 2,
                ANSWERED => 6,
                COMMITTED => 3,
                FAILED => 4,
                _ => 5,
            };
            let node = member.node;
            t.expect(E::MemberJudged(IMuster::MemberJudged { id: task.id, node, group: place, verdict, paid: paid[i] }));
            self.credit(self.nodes[&node].operator, paid[i]);
            let counts = if team.scored && !matches!(verdict, 4 | 6) { Counts::Rating(verdict == 1) } else { Counts::Nothing };
            t.spent |= i >= 3;
            t.full |= i >= 3;
            let raises = verdict == 1 && (team.scored || most.len() as u64 >= self.set["boostPool"]);
            if raises && !team.scored {
                self.note("raised in a group that is not scored");
            }
            if self.conclude(t, place, task, member, (counts, raises), (0, false)) {
                self.release(t, by, node, May::Wait);
            }
        }
        let answer = winner.map_or(B256::ZERO, |i| team.members[i].answer);
        self.settled(t, task, place, (outcome, answer), (start_fee, refund));
    }

    pub(super) fn rate(&mut self, t: &mut Trace, node: u32, right: bool) {
        t.expect(E::NodeRated(IMuster::NodeRated { node, right }));
        let n = self.nodes.get_mut(&node).unwrap();
        let before = n.judged.0;
        n.judged = rated(n.judged, right);
        if n.judged.0 < before {
            self.note("rated: a rating halved");
        }
    }

    /// Compares every application's profile with the real thing, and that of an account that has set nothing.
    pub(super) fn compare_profiles<H: Host>(&self, net: &Network<H>) {
        for who in self.applications.keys().chain([&OWNER]) {
            let app = self.application(*who);
            let counted = (app.groups as u32, app.successes as u32, app.members as u32);
            let (profile, groups, successes, members) = net.profile(*who);
            assert_eq!((profile, (groups, successes, members)), (app.profile, counted), "profile of {who:?}");
        }
    }
}
