// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.30;

interface IArbWasm {
    function activateProgram(address program) external payable returns (uint16 version, uint256 dataFee);
    function codehashVersion(bytes32 codehash) external view returns (uint16 version);
    function stylusVersion() external view returns (uint16 version);
}

/// The development node's StylusDeployer: interface, errors and order of checks of the one at the well-known address,
/// written anew. Creates a program, activates its code if that is due, calls it with `initData`, and sends back what
/// is left.
contract StylusDeployer {
    event ContractDeployed(address deployedContract);

    error ContractDeploymentError(bytes bytecode);
    error ContractInitializationError(address newContract, bytes data);
    error RefundExcessValueError(uint256 excessValue);
    error EmptyBytecode();
    error InitValueButNotInitData();

    IArbWasm private constant ARB_WASM = IArbWasm(address(0x71));

    /// With a salt other than zero the address depends on code, salt and `initData` (CREATE2), so who knows the
    /// address knows how the program was initialised.
    function deploy(bytes calldata bytecode, bytes calldata initData, uint256 initValue, bytes32 salt)
        external
        payable
        returns (address deployed)
    {
        if (bytecode.length == 0) revert EmptyBytecode();
        bytes memory code = bytecode;
        if (salt == 0) {
            assembly ("memory-safe") {
                deployed := create(0, add(code, 32), mload(code))
            }
        } else {
            bytes32 mixed = initSalt(salt, initData);
            assembly ("memory-safe") {
                deployed := create2(0, add(code, 32), mload(code), mixed)
            }
        }
        if (deployed == address(0)) {
            assembly ("memory-safe") {
                let size := returndatasize()
                if size {
                    let at := mload(0x40)
                    returndatacopy(at, 0, size)
                    revert(at, size)
                }
            }
            revert ContractDeploymentError(bytecode);
        }

        uint256 dataFee;
        if (requiresActivation(deployed)) {
            // ArbWasm keeps the data fee and moves the rest back without a call.
            (, dataFee) = ARB_WASM.activateProgram{value: msg.value - initValue}(deployed);
        }
        if (initData.length != 0) {
            (bool ok, bytes memory data) = deployed.call{value: initValue}(initData);
            if (!ok) revert ContractInitializationError(deployed, data);
        } else if (initValue != 0) {
            revert InitValueButNotInitData();
        }
        uint256 rest = msg.value - dataFee - initValue;
        if (rest != 0) {
            (bool sent,) = msg.sender.call{value: rest}("");
            if (!sent) revert RefundExcessValueError(rest);
        }
        emit ContractDeployed(deployed);
    }

    function initSalt(bytes32 salt, bytes calldata initData) public pure returns (bytes32) {
        return keccak256(abi.encodePacked(salt, initData));
    }

    function requiresActivation(address program) public view returns (bool) {
        try ARB_WASM.codehashVersion(program.codehash) returns (uint16 version) {
            return version != ARB_WASM.stylusVersion();
        } catch {
            return true;
        }
    }
}
