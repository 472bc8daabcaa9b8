// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.27;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";
import {Ownable, Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {TimelockController} from "@openzeppelin/contracts/governance/TimelockController.sol";
import {VestingWallet} from "@openzeppelin/contracts/finance/VestingWallet.sol";
import {Clones} from "@openzeppelin/contracts/proxy/Clones.sol";
import {ERC1967Proxy} from "@openzeppelin/contracts/proxy/ERC1967/ERC1967Proxy.sol";
import {UUPSUpgradeable} from "@openzeppelin/contracts/proxy/utils/UUPSUpgradeable.sol";
import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
import {ERC20Votes} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Votes.sol";
import {ERC4626, IERC20} from "@openzeppelin/contracts/token/ERC20/extensions/ERC4626.sol";
import {ERC721Enumerable, ERC721} from "@openzeppelin/contracts/token/ERC721/extensions/ERC721Enumerable.sol";
import {ERC1155} from "@openzeppelin/contracts/token/ERC1155/ERC1155.sol";
import {Multicall} from "@openzeppelin/contracts/utils/Multicall.sol";
import {Nonces} from "@openzeppelin/contracts/utils/Nonces.sol";
import {Pausable} from "@openzeppelin/contracts/utils/Pausable.sol";
import {ReentrancyGuard} from "@openzeppelin/contracts/utils/ReentrancyGuard.sol";
import {MerkleProof} from "@openzeppelin/contracts/utils/cryptography/MerkleProof.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {P256} from "@openzeppelin/contracts/utils/cryptography/P256.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";

contract Token is ERC20, ERC20Permit, ERC20Votes, Multicall {
    constructor(uint256 supply) ERC20("Suite", "STE") ERC20Permit("Suite") {
        _mint(msg.sender, supply);
    }

    function clock() public view override returns (uint48) {
        return uint48(block.timestamp);
    }

    // solhint-disable-next-line func-name-mixedcase
    function CLOCK_MODE() public pure override returns (string memory) {
        return "mode=timestamp";
    }

    function _update(address from, address to, uint256 value) internal override(ERC20, ERC20Votes) {
        super._update(from, to, value);
    }

    function nonces(address owner) public view override(ERC20Permit, Nonces) returns (uint256) {
        return super.nonces(owner);
    }
}

contract Vault is ERC4626 {
    constructor(IERC20 asset) ERC20("Vault", "VLT") ERC4626(asset) {}
}

contract Collection is ERC721Enumerable {
    constructor() ERC721("Collection", "COL") {}

    function mint(address to, uint256 id) external {
        _safeMint(to, id);
    }
}

contract Items is ERC1155 {
    constructor() ERC1155("uri/{id}") {}

    function mint(address to, uint256[] calldata ids, uint256[] calldata amounts) external {
        _mintBatch(to, ids, amounts, "");
    }
}

contract Roles is AccessControl, Pausable, ReentrancyGuard {
    bytes32 public constant MINER = keccak256("MINER");
    uint256 public count;

    constructor() {
        _grantRole(DEFAULT_ADMIN_ROLE, msg.sender);
    }

    function mine() external onlyRole(MINER) whenNotPaused nonReentrant {
        count += 1;
    }

    function again() external nonReentrant {
        this.again();
    }

    function pause() external onlyRole(DEFAULT_ADMIN_ROLE) {
        _pause();
    }
}

contract Owned is Ownable2Step {
    constructor() Ownable(msg.sender) {}
}

contract Logic is UUPSUpgradeable {
    uint256 public value;

    function set(uint256 to) external {
        value = to;
    }

    function version() external pure virtual returns (uint256) {
        return 1;
    }

    function _authorizeUpgrade(address) internal override {}
}

contract LogicTwo is Logic {
    function version() external pure override returns (uint256) {
        return 2;
    }
}

contract Upgradable is ERC1967Proxy {
    constructor(address logic) ERC1967Proxy(logic, abi.encodeCall(Logic.set, (7))) {}
}

contract Tools {
    event Cloned(address clone);

    function clone(address of_, bytes32 salt) external {
        emit Cloned(Clones.cloneDeterministic(of_, salt));
    }

    function predict(address of_, bytes32 salt) external view returns (address) {
        return Clones.predictDeterministicAddress(of_, salt);
    }

    function inTree(bytes32[] calldata proof, bytes32 root, bytes32 leaf) external pure returns (bool) {
        return MerkleProof.verify(proof, root, leaf);
    }

    function signer(bytes32 hash, bytes calldata signature) external pure returns (address) {
        return ECDSA.recover(hash, signature);
    }

    function p256(bytes32 h, bytes32 r, bytes32 s, bytes32 x, bytes32 y) external view returns (bool) {
        return P256.verify(h, r, s, x, y);
    }

    function modExp(uint256 b, uint256 e, uint256 m) external view returns (uint256) {
        return Math.modExp(b, e, m);
    }

    function surroundings() external view returns (uint256 fee, address coinbase, uint256 random, uint256 limit) {
        return (block.basefee, block.coinbase, block.prevrandao, block.gaslimit);
    }
}

contract Wallet is VestingWallet {
    constructor(address to, uint64 start, uint64 duration) payable VestingWallet(to, start, duration) {}
}

contract Lock is TimelockController {
    constructor(uint256 delay, address[] memory who) TimelockController(delay, who, who, msg.sender) {}
}
