//! Host calls of Stylus programs, in the shape of Nitro's `stylusTracer`.

use revm::primitives::{Address, Bytes};

use super::{CallKind, Entered};

/// A call into the host, or a frame that EVM code opened (its name then begins with `evm_`).
#[derive(Clone, Debug)]
pub struct Hostio {
    /// Nitro's name of it.
    pub name: String,
    /// Arguments, one after the other, numbers big-endian.
    pub args: Bytes,
    /// Results.
    pub outs: Bytes,
    /// Ink before.
    pub start_ink: u64,
    /// Ink after.
    pub end_ink: u64,
    /// Of a call: the callee.
    pub address: Option<Address>,
    /// Of a call: the steps in its frame.
    pub steps: Option<Vec<Hostio>>,
}

/// Collects them while a transaction runs.
#[derive(Debug, Default)]
pub(crate) struct Hostios {
    /// Lists that are being written, outermost first.
    lists: Vec<Vec<Hostio>>,
    done: Vec<Hostio>,
}

impl Hostios {
    pub(super) fn enter(&mut self, entered: &Entered) {
        if let Some(list) = self.lists.last_mut() {
            let name = match entered.kind {
                CallKind::Call | CallKind::CallCode => "evm_call_contract",
                CallKind::DelegateCall => "evm_delegate_call_contract",
                CallKind::StaticCall => "evm_static_call_contract",
                CallKind::Create => "evm_create1",
                CallKind::Create2 => "evm_create2",
                CallKind::SelfDestruct => "evm_self_destruct",
            };
            list.push(Hostio {
                name: name.into(),
                args: Bytes::new(),
                outs: Bytes::new(),
                start_ink: 0,
                end_ink: 0,
                address: Some(entered.to.unwrap_or_default()),
                steps: None,
            });
        }
        self.lists.push(vec![]);
    }

    pub(super) fn exit(&mut self) {
        let Some(steps) = self.lists.pop() else { return };
        match self.lists.last_mut().and_then(|list| list.last_mut()) {
            Some(opened) => opened.steps = Some(steps),
            None => self.done = steps,
        }
    }

    pub(super) fn hostio(&mut self, name: &str, ink: (u64, u64), args: Vec<u8>, outs: Vec<u8>) {
        let Some(list) = self.lists.last_mut() else { return };
        let (mut address, mut steps) = (None, None);
        if matches!(name, "call_contract" | "delegate_call_contract" | "static_call_contract") {
            // The frame was noted as if EVM code had opened it. If it could not even be opened there is none.
            let opened = |last: &Hostio| last.name.strip_prefix("evm_") == Some(name) && last.steps.is_some();
            let frame = list.pop_if(|last| opened(last));
            address = frame.as_ref().map_or_else(|| args.get(..20).map(Address::from_slice), |f| f.address);
            steps = Some(frame.and_then(|f| f.steps).unwrap_or_default());
        }
        list.push(Hostio {
            name: name.into(),
            args: args.into(),
            outs: outs.into(),
            start_ink: ink.0,
            end_ink: ink.1,
            address,
            steps,
        });
    }

    pub(super) fn finish(self) -> Vec<Hostio> {
        self.done
    }
}
