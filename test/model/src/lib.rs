//! Common parts of the contracts' tests.
//!
//! | module | contents |
//! | --- | --- |
//! | [`world`] | a Muster in memory that plays calls as the programs do |
//! | [`model`] | a plain model of the network, and random operations that compare it with the real thing |
//! | [`system`] | the systems that the operations run on: that world, or the compiled programs on a chain |
//! | [`meter`] | the cost of a call that is played there |
//! | [`samples`] | a call of every function |
//! | [`validated`] | common parts of tests of tasks whose answers are checked |
//! | [`outcomes`] | every combination of the acts of a group's members, and the outcome that it must have |
//! | [`explorer`] | the state in the view of a reader of nothing but logs |
//! | [`search`] | an adversary that tries out attacks |
//! | [`properties`] | the properties of every state |
//! | [`drive`] | runs of random operations; one that fails is cut down to a short one |

pub mod drive;
pub mod explorer;
pub mod meter;
pub mod model;
pub mod outcomes;
pub mod properties;
pub mod samples;
pub mod system;
pub mod validated;
#[macro_use]
pub mod world;
pub mod search;

/// Prints a figure that `script/proof` puts into docs/generated/proof.md, always in this form: `proof WHAT: name = value; name =
/// value`. No `; ` of a value comes before a ` = ` of the same value.
pub fn proof(what: &str, values: &[(&str, &dyn std::fmt::Display)]) {
    let values: Vec<String> = values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    println!("proof {what}: {}", values.join("; "));
}
