//! Positional parameters.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::error::RpcError;

/// The parameters of one request, taken from the front one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params {
    values: Vec<Box<RawValue>>,
    next: usize,
}

impl Params {
    /// Absent parameters are no parameters; anything but an array is refused.
    pub fn parse(params: Option<&RawValue>) -> Result<Self, RpcError> {
        let values = match params {
            None => Vec::new(),
            Some(params) if params.get() == "null" => Vec::new(),
            Some(params) => serde_json::from_str(params.get()).map_err(|_| RpcError::invalid_params("non-array args"))?,
        };
        Ok(Self { values, next: 0 })
    }

    /// The next parameter, which must be there.
    pub fn required<T: DeserializeOwned>(&mut self) -> Result<T, RpcError> {
        let index = self.next;
        self.optional()?.ok_or_else(|| RpcError::invalid_params(format!("missing value for required argument {index}")))
    }

    /// The next parameter; absent and `null` are the same.
    pub fn optional<T: DeserializeOwned>(&mut self) -> Result<Option<T>, RpcError> {
        let index = self.next;
        self.next += 1;
        match self.values.get(index) {
            None => Ok(None),
            Some(value) => {
                serde_json::from_str(value.get()).map_err(|e| RpcError::invalid_params(format!("invalid argument {index}: {e}")))
            }
        }
    }

    /// A parameter, without taking it. `None` if it is absent, or no such thing.
    pub fn peek<T: DeserializeOwned>(&self, index: usize) -> Option<T> {
        serde_json::from_str(self.values.get(index)?.get()).ok()
    }

    /// All of them.
    pub fn all(&self) -> Vec<serde_json::Value> {
        self.values.iter().filter_map(|value| serde_json::from_str(value.get()).ok()).collect()
    }

    /// Refuses parameters that nobody asked for.
    pub fn end(&self) -> Result<(), RpcError> {
        if self.values.len() > self.next {
            return Err(RpcError::invalid_params(format!("too many arguments, want at most {}", self.next)));
        }
        Ok(())
    }
}
