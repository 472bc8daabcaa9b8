//! The strategies, as plans of one life.

use super::parties::{Nature, Side};
use crate::world::{Dice, TOKEN};

/// The offer of a task of its own for each node's work, in wei. As little as it may, one for each second that it is expected to take; a
/// hundredth of a token, half of one, and six.
pub const OFFERS: [u128; 4] = [60, TOKEN / 100, TOKEN / 2, 6 * TOKEN];

/// The answer of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The right one.
    Right,
    /// The false answer that all of the adversary's give.
    False,
    /// That one where two of the group are its own or, as the first node, before anybody can know; otherwise the right one.
    FalseTogether,
    /// An error.
    Error,
    /// An error where two of the group are its own, otherwise the right one.
    ErrorTogether,
    /// An error as the first node, before anybody is drawn to validate it; otherwise the right one.
    ErrorFirst,
    /// The commitment of another of the group, and at its reveal the other's answer.
    Copy,
}

/// When a node commits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// At once: it knows the answer already.
    Instant,
    /// When it has worked.
    Normal,
    /// In the last second.
    Last,
    /// Never.
    Never,
}

/// When a node reveals.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reveal {
    /// As soon as it may.
    Open,
    /// In the last second.
    Last,
    /// Never.
    Never,
}

/// The act of a node once it has committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leave {
    /// It works on.
    Stay,
    /// It pauses.
    Pause,
    /// It quits, and its operator asks for the stake again and again.
    Quit,
    /// The same, and it tries to join again.
    Rejoin,
    /// Any of these, or nothing, each time.
    Any,
}

/// The act of its other nodes before one of its nodes commits; they are back at once after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Away {
    /// They stay.
    Stay,
    /// They pause.
    Pause,
    /// They quit, and join again with other addresses.
    Quit,
}

/// How the adversary plays one life.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The answers of its nodes.
    pub answer: Answer,
    /// When they commit.
    pub pace: Pace,
    /// When they reveal.
    pub reveal: Reveal,
    /// Their act after committing.
    pub leave: Leave,
    /// The creator of the task.
    pub creator: Side,
    /// The nature of its right answer.
    pub nature: Nature,
    /// From 0 to 3.
    pub policy: u8,
    /// Nodes of a rated group of its application's, and how often such a task goes to another group.
    pub rated: (u8, u8),
    /// The offer of its own tasks for each node's work, in wei.
    pub offer: u128,
    /// Whether its tasks are created by one call.
    pub batch: bool,
    /// The act of its other nodes before a commitment.
    pub away: Away,
    /// Images, or answers that must be equal.
    pub images: bool,
    /// Whether the task requires a model that only the adversary's nodes hold.
    pub model: bool,
    /// Whether it requires the adversary's own GPU name.
    pub name: bool,
    /// Tasks at once.
    pub tasks: u64,
    /// Dust tasks of the adversary's, in whose groups its nodes keep others' commitments open.
    pub binding: u64,
    /// Whether its nodes' answers are validated when few honest nodes can be drawn.
    pub waits: bool,
    /// Whether it looks for calls that move a draw whose hash is known.
    pub meddles: bool,
    /// Whether it chooses among hashes where it is alone in a block.
    pub grinds: bool,
    /// Pending tasks that it creates again and again.
    pub ring: u64,
    /// Six-hour rounds for which it holds the queue.
    pub queue: u64,
    /// Whether it calls all that pays a driver.
    pub drives: bool,
    /// Whether it tries calls that it is not entitled to.
    pub tries: bool,
}

/// How honest nodes play.
pub const HONEST: Plan = Plan {
    answer: Answer::Right,
    pace: Pace::Normal,
    reveal: Reveal::Open,
    leave: Leave::Stay,
    creator: Side::Honest,
    nature: Nature::Plain,
    policy: 1,
    rated: (3, 2),
    offer: TOKEN / 2,
    batch: false,
    away: Away::Stay,
    images: false,
    model: false,
    name: false,
    tasks: 1,
    binding: 0,
    waits: false,
    meddles: false,
    grinds: false,
    ring: 0,
    queue: 0,
    drives: false,
    tries: false,
};

macro_rules! strategies {
    ($($(#[$doc:meta])* $name:ident = $what:literal,)+) => {
        /// The adversary's aim in a life.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Strategy {
            $(#[doc = $what] $name,)+
        }

        impl Strategy {
            /// All of them.
            pub const ALL: &'static [Strategy] = &[$(Strategy::$name,)+];

            /// In words.
            pub fn words(self) -> &'static str {
                match self {
                    $(Strategy::$name => $what,)+
                }
            }
        }
    };
}

strategies! {
    Nothing = "nothing: its nodes are honest",
    False = "false answers",
    FalseTogether = "false answers where no honest majority can see them",
    Copy = "copying another's commitment",
    Withhold = "withholding",
    WaitOut = "waiting out: the last second, or never",
    Grind = "grinding, alone in one block of ten",
    Choose = "choosing when to validate, others bound by dust tasks",
    Meddle = "meddling between hash and draw",
    Ring = "the ring of Pending tasks flooded",
    Queue = "the queue held for days",
    Rejoin = "quitting and rejoining with open commitments",
    Slashed = "slashed while idle, busy, paused or leaving",
    Model = "a private model",
    Name = "a private GPU name",
    Precomputed = "precomputed answers to its own tasks",
    NoRight = "its own tasks without a right answer",
    Ambiguous = "its own tasks with two right answers",
    Only = "its own tasks that only its nodes can answer",
    Nobody = "its own tasks that nobody can answer",
    Reserve = "draining the reserve",
    Errors = "errors, so that others work for nothing",
    Away = "its other nodes leave before a commitment, and come back",
    Combined = "two of these at once",
}

impl Strategy {
    /// One by chance; combinations four times as often as any other.
    pub fn pick(dice: &mut Dice) -> Strategy {
        let all = Strategy::ALL;
        all.get(dice.below(all.len() as u64 + 3) as usize).copied().unwrap_or(Strategy::Combined)
    }

    /// A plan for one life.
    pub fn plan(self, dice: &mut Dice) -> Plan {
        let own = |dice: &mut Dice| if dice.below(2) == 0 { Side::Adversary } else { Side::Honest };
        let mut plan = Plan {
            policy: 1 + dice.below(3) as u8,
            rated: (3 + 2 * dice.below(4) as u8, dice.below(9) as u8),
            images: dice.below(4) == 0,
            tasks: 1 + dice.below(3),
            batch: dice.below(8) == 0,
            offer: OFFERS[dice.below(4) as usize],
            tries: dice.below(4) == 0,
            drives: dice.below(4) == 0,
            ..HONEST
        };
        match self {
            Strategy::Nothing => (plan.tries, plan.drives) = (false, false),
            Strategy::False => (plan.answer, plan.pace, plan.creator) = (Answer::False, Pace::Instant, own(dice)),
            Strategy::FalseTogether => (plan.answer, plan.creator) = (Answer::FalseTogether, own(dice)),
            Strategy::Copy => (plan.answer, plan.pace) = (Answer::Copy, Pace::Last),
            Strategy::Withhold => {
                plan.reveal = Reveal::Never;
                plan.answer = [Answer::Right, Answer::False][dice.below(2) as usize];
                plan.creator = own(dice);
            }
            Strategy::WaitOut => {
                plan.pace = [Pace::Last, Pace::Never][dice.below(2) as usize];
                plan.reveal = [Reveal::Last, Reveal::Never][dice.below(2) as usize];
                plan.creator = own(dice);
            }
            Strategy::Grind => (plan.grinds, plan.answer, plan.creator) = (true, Answer::FalseTogether, own(dice)),
            Strategy::Choose => {
                (plan.binding, plan.waits, plan.policy) = (4 + dice.below(16), true, 1);
                (plan.answer, plan.images) = (Answer::FalseTogether, false);
            }
            Strategy::Meddle => (plan.meddles, plan.answer, plan.creator) = (true, Answer::FalseTogether, own(dice)),
            Strategy::Ring => {
                // Now and then to the brim.
                plan.ring = if dice.below(40) == 0 { 5_000 } else { 20 + dice.below(200) };
                plan.answer = [Answer::FalseTogether, Answer::Right][dice.below(2) as usize];
            }
            Strategy::Queue => (plan.queue, plan.answer) = (1 + dice.below(12), Answer::FalseTogether),
            Strategy::Rejoin => {
                plan.leave = [Leave::Quit, Leave::Rejoin][dice.below(2) as usize];
                plan.answer = Answer::False;
                plan.reveal = [Reveal::Open, Reveal::Never][dice.below(2) as usize];
            }
            Strategy::Slashed => {
                (plan.leave, plan.answer, plan.pace) = (Leave::Any, Answer::False, Pace::Instant);
                plan.reveal = [Reveal::Open, Reveal::Last, Reveal::Never][dice.below(3) as usize];
                (plan.tasks, plan.policy) = (3 + dice.below(3), 1 + dice.below(2) as u8);
            }
            Strategy::Model => {
                (plan.model, plan.creator, plan.answer) = (true, Side::Adversary, Answer::FalseTogether);
                plan.pace = Pace::Instant;
            }
            Strategy::Name => {
                (plan.name, plan.creator, plan.images) = (true, Side::Adversary, true);
                plan.pace = Pace::Instant;
                plan.answer = [Answer::Right, Answer::False, Answer::FalseTogether][dice.below(3) as usize];
            }
            Strategy::Precomputed => (plan.pace, plan.creator) = (Pace::Instant, Side::Adversary),
            Strategy::NoRight => {
                (plan.nature, plan.creator) = (Nature::NoRight, Side::Adversary);
                plan.answer = [Answer::Right, Answer::FalseTogether, Answer::Error][dice.below(3) as usize];
            }
            Strategy::Ambiguous => (plan.nature, plan.creator) = (Nature::Ambiguous, Side::Adversary),
            Strategy::Only => {
                (plan.nature, plan.creator) = (Nature::Lacking, Side::Adversary);
                plan.pace = Pace::Instant;
                (plan.model, plan.policy) = (dice.below(2) == 0, dice.below(4) as u8);
            }
            Strategy::Nobody => {
                (plan.nature, plan.creator, plan.answer) = (Nature::Lacking, Side::Adversary, Answer::Error);
                (plan.pace, plan.policy) = (Pace::Instant, dice.below(4) as u8);
            }
            Strategy::Away => {
                plan.away = [Away::Pause, Away::Quit][dice.below(2) as usize];
                (plan.answer, plan.policy, plan.images) = (Answer::False, 1, false);
                (plan.pace, plan.creator) = (Pace::Instant, own(dice));
            }
            Strategy::Reserve => {
                (plan.policy, plan.creator, plan.drives) = (1, Side::Adversary, true);
                plan.pace = Pace::Instant;
                plan.reveal = [Reveal::Open, Reveal::Open, Reveal::Never][dice.below(3) as usize];
                plan.answer = [Answer::Right, Answer::FalseTogether, Answer::Error, Answer::ErrorFirst][dice.below(4) as usize];
            }
            Strategy::Errors => {
                plan.answer = [Answer::Error, Answer::ErrorTogether, Answer::ErrorFirst][dice.below(3) as usize];
                plan.creator = own(dice);
            }
            Strategy::Combined => {
                let some = |dice: &mut Dice| loop {
                    let strategy = Strategy::ALL[1 + dice.below(Strategy::ALL.len() as u64 - 2) as usize];
                    if strategy != Strategy::Ambiguous {
                        return strategy.plan(dice);
                    }
                };
                plan = some(dice).with(some(dice), dice);
            }
        }
        plan
    }
}

impl Plan {
    /// It in words: its tasks, then the differences from honest nodes' plan.
    pub fn words(&self) -> String {
        let mut words = vec![format!("policy {}", self.policy)];
        let mut say = |on: bool, what: String| {
            if on {
                words.push(what);
            }
        };
        let name = |what: &dyn std::fmt::Debug| format!("{what:?}").to_lowercase();
        say(self.policy == 3, format!("groups of {}, {} more", self.rated.0, self.rated.1));
        say(
            self.creator == Side::Adversary,
            match self.nature {
                Nature::Plain => "its own tasks".into(),
                Nature::NoRight => "its own tasks without a right answer".into(),
                Nature::Ambiguous => "its own tasks with two right answers".into(),
                Nature::Lacking => "its own tasks that no honest node can answer".into(),
            },
        );
        say(self.creator == Side::Adversary && self.offer == OFFERS[0], "at the least fee".into());
        say(self.images, "images".into());
        say(self.model, "a private model".into());
        say(self.name, "a private GPU name".into());
        let answers = match self.answer {
            Answer::Right => "Right answers",
            Answer::False => "False answers",
            Answer::FalseTogether => "False answers with two of a group",
            Answer::Error => "Errors",
            Answer::ErrorTogether => "Errors with two of a group",
            Answer::ErrorFirst => "An error of the first node",
            Answer::Copy => "Copies",
        };
        say(true, answers.into());
        say(self.pace != Pace::Normal, format!("commits {}", name(&self.pace)));
        say(self.reveal != Reveal::Open, format!("reveals {}", name(&self.reveal)));
        say(self.leave != Leave::Stay, format!("then {}", name(&self.leave)));
        say(self.away != Away::Stay, format!("others {} before", name(&self.away)));
        say(self.batch, "a batch".into());
        say(self.binding > 0, "dust tasks that bind".into());
        say(self.waits, "waits to validate".into());
        say(self.meddles, "meddles".into());
        say(self.grinds, "grinds".into());
        say(self.ring > 0, "floods the ring".into());
        say(self.queue > 0, "holds the queue".into());
        say(self.drives, "drives".into());
        // A sentence of its own.
        words.join(", ").replacen(&format!(", {answers}"), &format!(". {answers}"), 1)
    }

    /// Every move of either plan; where they differ in a choice of one, either's.
    pub fn with(self, other: Plan, dice: &mut Dice) -> Plan {
        let mut coin = || dice.below(2) == 0;
        let named = self.name || other.name;
        Plan {
            answer: if self.answer == Answer::Right || coin() { other.answer } else { self.answer },
            pace: if self.pace == Pace::Normal || coin() { other.pace } else { self.pace },
            reveal: if self.reveal == Reveal::Open { other.reveal } else { self.reveal },
            leave: if self.leave == Leave::Stay { other.leave } else { self.leave },
            creator: if self.creator == Side::Adversary { self.creator } else { other.creator },
            nature: if self.nature == Nature::Plain { other.nature } else { self.nature },
            policy: if coin() { self.policy } else { other.policy },
            rated: if coin() { self.rated } else { other.rated },
            offer: if coin() { self.offer } else { other.offer },
            batch: self.batch || other.batch,
            away: if self.away == Away::Stay { other.away } else { self.away },
            images: named || if coin() { self.images } else { other.images },
            model: self.model || other.model,
            name: named,
            tasks: self.tasks.max(other.tasks),
            binding: self.binding.max(other.binding),
            waits: self.waits || other.waits,
            meddles: self.meddles || other.meddles,
            grinds: self.grinds || other.grinds,
            ring: self.ring.max(other.ring),
            queue: self.queue.max(other.queue),
            drives: self.drives || other.drives,
            tries: true,
        }
    }
}
