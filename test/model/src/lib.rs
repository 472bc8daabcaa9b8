//! What the tests of the contracts share.
//!
//! | module | what |
//! | --- | --- |
//! | [`world`] | a Muster in memory that plays calls as the programs do |
//! | [`model`] | a plain model of the network, and random operations that compare it with the real thing |
//! | [`system`] | what the operations are tried on: that world, or the compiled programs on a chain |
//! | [`meter`] | what a call costs that is played there |
//! | [`validated`] | what tests share of tasks whose answers are checked |
//! | [`outcomes`] | every combination of what the members of a group can do, and what has to come of it |
//! | [`explorer`] | the state as someone knows it who has read nothing but logs |
//! | [`search`] | an adversary that tries what attacks come to |
//! | [`drive`] | runs of random operations; one that fails is cut down to a short one |

pub mod drive;
pub mod explorer;
pub mod meter;
pub mod model;
pub mod outcomes;
pub mod system;
pub mod validated;
#[macro_use]
pub mod world;
pub mod search;

/// Prints a figure that `script/proof` puts into docs/generated/proof.md, always in this form: `proof WHAT: name = value; name =
/// value`. Values hold no `;`.
pub fn proof(what: &str, values: &[(&str, &dyn std::fmt::Display)]) {
    let values: Vec<String> = values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    println!("proof {what}: {}", values.join("; "));
}
