//! Nitro's answers to calls at 0xc8, where there is no contract: facts that a node knows and no contract can.
//!
//! Without an L1 there are no batches, no outbox and no retryable tickets: calls about them are refused.

use alloy_primitives::{Address, Bytes, TxKind, U256};
use alloy_rpc_types_eth::{BlockId, TransactionInput};
use alloy_sol_types::{sol, SolCall, SolValue};

use super::error::CallError;
use super::{Chain, TxRequest};

/// NodeInterface.
pub const NODE_INTERFACE: Address = Address::with_last_byte(0xc8);

sol! {
    interface NodeInterface {
        function nitroGenesisBlock() external pure returns (uint256);
        function blockL1Num(uint64 l2BlockNum) external view returns (uint64);
        function l2BlockRangeForL1(uint64 blockNum) external view returns (uint64 firstBlock, uint64 lastBlock);
        function getL1Confirmations(bytes32 blockHash) external view returns (uint64);
        function gasEstimateComponents(address to, bool contractCreation, bytes calldata data) external payable
            returns (uint64 gasEstimate, uint64 gasEstimateForL1, uint256 baseFee, uint256 l1BaseFeeEstimate);
        function gasEstimateL1Component(address to, bool contractCreation, bytes calldata data) external payable
            returns (uint64 gasEstimateForL1, uint256 baseFee, uint256 l1BaseFeeEstimate);
        function findBatchContainingBlock(uint64 blockNum) external view returns (uint64);
        function estimateRetryableTicket(address sender, uint256 deposit, address to, uint256 l2CallValue,
            address excessFeeRefundAddress, address callValueRefundAddress, bytes calldata data) external;
        function constructOutboxProof(uint64 size, uint64 leaf) external view
            returns (bytes32 send, bytes32 root, bytes32[] memory proof);
        function legacyLookupMessageBatchProof(uint256 batchNum, uint64 index) external view;
    }
}

impl Chain {
    /// The answer to a call, if it goes to [`NODE_INTERFACE`].
    pub fn node_interface(&self, request: &TxRequest, at: BlockId) -> Option<Result<Bytes, CallError>> {
        if request.to != Some(TxKind::Call(NODE_INTERFACE)) {
            return None;
        }
        Some(self.ask_node(request, at).map(Bytes::from))
    }

    fn ask_node(&self, request: &TxRequest, at: BlockId) -> Result<Vec<u8>, CallError> {
        let refuse = |reason: &str| Err(CallError::Override(format!("NodeInterface: {reason}")));
        let data = request.input.input().cloned().unwrap_or_default();
        let Some(selector) = data.first_chunk::<4>().copied() else { return refuse("no method") };
        let malformed = |_| CallError::Override("NodeInterface: arguments do not fit".into());
        match selector {
            NodeInterface::nitroGenesisBlockCall::SELECTOR => Ok(U256::ZERO.abi_encode()),
            NodeInterface::blockL1NumCall::SELECTOR => {
                let call = NodeInterface::blockL1NumCall::abi_decode(&data).map_err(malformed)?;
                match self.block(BlockId::number(call.l2BlockNum)) {
                    Some(block) => Ok(U256::from(block.l1_number).abi_encode()),
                    None => refuse("unknown block"),
                }
            }
            NodeInterface::l2BlockRangeForL1Call::SELECTOR => {
                let call = NodeInterface::l2BlockRangeForL1Call::abi_decode(&data).map_err(malformed)?;
                match self.blocks_of_l1(call.blockNum) {
                    Some((first, last)) => Ok((first, last).abi_encode()),
                    None => refuse("requested L1 block number is not that of any L2 block"),
                }
            }
            NodeInterface::getL1ConfirmationsCall::SELECTOR => {
                let call = NodeInterface::getL1ConfirmationsCall::abi_decode(&data).map_err(malformed)?;
                match self.block(call.blockHash.into()) {
                    Some(_) => Ok(U256::ZERO.abi_encode()),
                    None => refuse("unknown block hash"),
                }
            }
            NodeInterface::gasEstimateComponentsCall::SELECTOR => {
                let call = NodeInterface::gasEstimateComponentsCall::abi_decode(&data).map_err(malformed)?;
                let inner = TxRequest {
                    to: Some(if call.contractCreation { TxKind::Create } else { TxKind::Call(call.to) }),
                    input: TransactionInput::new(call.data),
                    ..request.clone()
                };
                let gas = self.estimate_gas(&inner, at, None, None)?;
                Ok((gas, 0u64, U256::from(self.base_fee()), self.l1_price()).abi_encode())
            }
            NodeInterface::gasEstimateL1ComponentCall::SELECTOR => {
                NodeInterface::gasEstimateL1ComponentCall::abi_decode(&data).map_err(malformed)?;
                Ok((0u64, U256::from(self.base_fee()), self.l1_price()).abi_encode())
            }
            NodeInterface::findBatchContainingBlockCall::SELECTOR
            | NodeInterface::estimateRetryableTicketCall::SELECTOR
            | NodeInterface::constructOutboxProofCall::SELECTOR
            | NodeInterface::legacyLookupMessageBatchProofCall::SELECTOR => {
                refuse("this node has no L1: no batches, no outbox and no retryable tickets")
            }
            _ => refuse("no such method"),
        }
    }

    /// L1's price, as ArbGasInfo gives it; nothing is charged by it here.
    fn l1_price(&self) -> U256 {
        self.state().storage(crate::evm::ARBOS_STATE, crate::arbos::Number::L1PricePerUnit.slot())
    }

    /// The first and last block that carry an L1 number.
    fn blocks_of_l1(&self, number: u64) -> Option<(u64, u64)> {
        let inner = self.0.inner.read();
        // It never falls along the chain.
        let first = inner.blocks.partition_point(|stored| stored.block.l1_number < number);
        let end = inner.blocks.partition_point(|stored| stored.block.l1_number <= number);
        let l2 = |index: usize| inner.blocks.get(index).map(|stored| stored.block.header.number);
        (first < end).then(|| Some((l2(first)?, l2(end - 1)?)))?
    }
}
