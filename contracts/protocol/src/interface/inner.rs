//! Calls of programs to each other, in the middle of a call with any value: no selector of the router leads here.

alloy_sol_types::sol! {
    /// Makes draws that are due.
    function serve(uint32 most, uint32 served, uint32 read) external payable returns (uint64);
    /// Takes a node out of the network; kicked is 1 or 0.
    function depart(uint32 node, uint8 kicked) external payable returns (uint64);
    /// Starts the best queued task on a node.
    function takeQueued(uint32 node) external payable returns (uint64);
    /// Queues the first Pending task.
    function queueFirst() external payable returns (uint64);
    /// Makes the next draw, which is of several nodes.
    function formNext() external payable returns (uint64);
    /// Finds queued work for a node, while tasks are queued that take three; wait is 1 if it may wait for others.
    function placeFreed(uint32 node, uint8 wait) external payable returns (uint64);
    /// Makes the next draw, a Pending task's whose nodes are chosen by their ratings.
    function formRated() external payable returns (uint64);
    /// Lets a node begin in the validation group that it was called to.
    function beginAssignment(uint32 node) external payable returns (uint64);
}

/// Declarations of the calls of programs to each other.
pub const ASKED: &str = "function serve(uint32,uint32,uint32) external payable returns (uint64);
function depart(uint32,uint8) external payable returns (uint64);
function takeQueued(uint32) external payable returns (uint64);
function queueFirst() external payable returns (uint64);
function formNext() external payable returns (uint64);
function placeFreed(uint32,uint8) external payable returns (uint64);
function formRated() external payable returns (uint64);
function beginAssignment(uint32) external payable returns (uint64);";
