#![doc = include_str!("../README.md")]
//!
//! | module | what |
//! | --- | --- |
//! | [`abi`] | the contract's calls, events and errors as types |
//! | [`Muster`], [`Account`] | asking a contract, and calling it |
//! | [`Endpoints`] | several nodes as one |
//! | [`Events`], [`Cursor`] | events, each once |
//! | [`Sender`] | transactions that survive restarts |
//! | [`Wallet`], [`Place`] | who signs them: a key here, a Ledger, AWS, Google, a signer elsewhere |
//! | [`Stores`] | where inputs and results are |
//! | [`Outcome`], [`Muster::result`] | from a task to the bytes of its result |
//! | [`Muster::streaming`], [`Muster::prove`] | an answer while it is made, and whether it is the one on the chain |
//! | [`Secrets`], [`Seal`], [`Opening`] | commitments, and the results sealed under them |
//! | `Private`, `seal_input` | with the feature `private`: inputs for nodes alone, results for their creator alone |
//! | [`pause`] | why agents pause their nodes, as their calls say it |
//! | [`key`] | keys out of encrypted files or the environment |
//! | `observe` | a log and metrics, behind the feature of this name |
//! | [`safe`] | files for the transaction builder of a Safe |
//! | [`parse_amount`], [`show_amount`] | amounts as people write them |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod abi;
mod address;
mod amount;
#[cfg(feature = "s3")]
mod bucket;
mod cursor;
mod endpoints;
mod error;
mod events;
mod file;
mod http;
mod journal;
pub mod key;
mod muster;
#[cfg(feature = "observe")]
pub mod observe;
mod past;
pub mod pause;
#[cfg(feature = "private")]
mod private;
mod pulse;
mod request;
mod results;
pub mod safe;
mod seal;
mod sender;
mod shown;
mod store;
mod stream;
mod trouble;
mod wallet;

pub use abi::{Advice, Event, IMuster, Reason, Refusal};
pub use address::parse_address;
pub use alloy;
pub use amount::parse_amount;
pub use cursor::{Cursor, Mark};
pub use endpoints::{Endpoints, Settings, Standing};
pub use error::{Complaint, Error};
pub use events::{Batch, Events, Logged, Reading};
pub use file::{private_directory, Lock};
pub use http::{fetcher, post_json, redacted, Fault};
pub use journal::{Entry, Fate, Signed};
pub use muster::{parameter, Account, Done, Muster, BATCH, DISPATCH, LATE_REVEALS};
pub use past::Searched;
#[cfg(feature = "private")]
pub use private::{published_key, seal_input, seal_result, Opened, Private, PrivateError, SEALED};
pub use pulse::{Head, Pulse};
pub use request::Request;
pub use results::{Answer, Lookup, NoResult, Outcome};
pub use seal::{digest_of, image_hashes, image_value, Given, Opening, Seal, SealError, Secrets, Seed, NOTE};
pub use sender::{Above, Sender, Sending};
pub use shown::show_amount;
#[cfg(feature = "private")]
pub use store::PrivateResult;
pub use store::{cid_of, Access, Attempt, Bounds, Found, Kept, Lost, Object, Store, Stores, BLOCK};
pub use stream::{AnswerTexts, Heard, Piece, Shown, Stopped, Streaming, Unproven, Untrue, Whole, Why, SHOWN};
pub use trouble::Trouble;
pub use wallet::{Place, Wallet};
