//! Attacks on the network and their results, by attacker. Many of these tests play an attack that an audit found, as it was made, and give
//! its remaining effect and its cost now; docs/security.md and docs/security-validation.md quote the figures.
//!
//! `w01` to `w21` are the ways in which earlier implementations of the source documents broke, by number. Where there is nothing of the
//! kind to call here, the test shows that no selector offers it, and tests the property that takes its place. docs/generated/proof.md lists
//! them from their comments: the number, the flaw, and after "Here" the property that holds.
//!
//! | file | actor |
//! | --- | --- |
//! | [`creator`] | an account that creates tasks, and has no nodes |
//! | [`node`] | one node, or its operator |
//! | [`operator`] | several nodes of one mind, or nodes and the tasks for them |
//! | [`owner`] | the contract's owner |
//! | [`outsider`] | anybody who calls |
//! | [`honest`] | nobody attacks, and some fail |
//! | [`young`] | anybody, in a young network |
//!
//! In each file the tests of a policy are one module: `single`, `sampled`, `replicated`, `rated`; those of errors, under any policy, `errors`.

mod creator;
mod help;
mod honest;
mod node;
mod operator;
mod outsider;
mod owner;
mod young;
