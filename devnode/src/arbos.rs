//! ArbOS's own state: parameters, programs, cache managers.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use imbl::HashMap;
use revm::primitives::{address, keccak256, Address, B256, U256};

/// The account in whose storage ArbOS's own state lies.
pub const ARBOS_STATE: Address = address!("a4b05fffffffffffffffffffffffffffffffffff");

/// Keeps the hashes of the last 393,168 L2 blocks (EIP-2935 as Arbitrum has it, from ArbOS 40 on).
pub const HISTORY_STORAGE: Address = address!("0000f90827f1c53a10cb7a02335b175320002935");

/// The L1 block hashes BLOCKHASH answers with. They are not L1's: ArbOS stores the L2 parent's hash when the L1
/// number moves, and fills skipped numbers by hashing.
#[derive(Clone, Debug, Default)]
pub(crate) struct L1Hashes {
    next: u64,
    ring: HashMap<u64, B256>,
    /// The words that a call overrides.
    overridden: HashMap<u64, B256>,
}

impl L1Hashes {
    /// Hash of L1 block `number`, if it is one of the 256 before the current.
    pub(crate) fn get(&self, number: u64) -> Option<B256> {
        if let Some(hash) = self.overridden.get(&number) {
            return Some(*hash);
        }
        if number >= self.next || number + 256 < self.next {
            return None;
        }
        self.ring.get(&(number % 256)).copied()
    }

    /// All of it, to be written down.
    pub(crate) fn dump(&self) -> (u64, BTreeMap<u64, B256>) {
        (self.next, self.ring.iter().map(|(number, hash)| (*number, *hash)).collect())
    }

    pub(crate) fn of_dump(next: u64, ring: BTreeMap<u64, B256>) -> Self {
        Self { next, ring: ring.into_iter().collect(), overridden: HashMap::new() }
    }

    /// Makes BLOCKHASH answer otherwise.
    pub(crate) fn override_hash(&mut self, number: u64, hash: B256) {
        self.overridden.insert(number, hash);
    }

    /// At the start of an L2 block: `l1_number` is the number it carries, `parent` the hash of its L2 parent.
    pub(crate) fn start_block(&mut self, l1_number: u64, parent: B256) {
        if l1_number <= self.next || l1_number == 0 {
            return;
        }
        let number = l1_number - 1;
        let mut next = self.next;
        if next + 256 < number {
            next = number - 256;
        }
        while next + 1 < number {
            next += 1;
            let mut preimage = [0; 40];
            preimage[..32].copy_from_slice(parent.as_slice());
            preimage[32..].copy_from_slice(&next.to_le_bytes());
            self.ring.insert(next % 256, keccak256(preimage));
        }
        self.ring.insert(number % 256, parent);
        self.next = number + 1;
    }
}

/// Words of ArbOS's storage, where Nitro has them, so that a copy of another chain finds them.
#[derive(Clone, Copy)]
pub(crate) enum Slot {
    /// [`Params`], packed.
    Params,
    /// [`Program`], packed, by code hash.
    Program(B256),
    /// Hash of the instrumented module, by code hash.
    ModuleHash(B256),
    /// A field of [`DataPricer`], in their order.
    DataPricer(u64),
    /// Gas charged at the start of each activation.
    ActivationGas,
    /// Number of members of a set.
    SetSize(Set),
    /// Member of a set by position, from 1.
    SetMember(Set, u64),
    /// Position of an address in a set, 0 if it isn't in it.
    SetPosition(Set, Address),
    /// A plain number.
    Number(Number),
}

/// Sets of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    ChainOwners,
    CacheManagers,
    /// ArbAddressTable's; nobody is ever taken out.
    AddressTable,
}

/// Settings that are kept and given back. Only the floor changes anything else here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    L1PricePerUnit,
    MinBaseFee,
    SpeedLimit,
    BrotliLevel,
    UpgradeVersion,
    UpgradeTime,
    /// Bit 0 is set where calldata has a price floor (EIP-7623).
    CalldataFloor,
}

impl Number {
    /// Where it lies.
    pub(crate) fn slot(self) -> U256 {
        Slot::Number(self).key()
    }
}

/// A space of Nitro's nested storage, by the path to it.
fn space(path: &[&[u8]]) -> Vec<u8> {
    path.iter().fold(vec![], |outer, id| keccak256([&outer[..], id].concat()).to_vec())
}

/// A word of a space.
fn word_of(mut space: Vec<u8>, key: B256) -> U256 {
    // Pages of 256 words stay together.
    let (page, offset) = key.split_at(31);
    space.extend_from_slice(page);
    let mut slot = keccak256(&space);
    slot[31] = offset[0];
    slot.into()
}

fn nitro_slot(path: &[&[u8]], key: B256) -> U256 {
    word_of(space(path), key)
}

const L1_PRICING: &[u8] = &[0];
const L2_PRICING: &[u8] = &[1];
const PROGRAMS: &[u8] = &[8];
const FEATURES: &[u8] = &[9];

/// The slots that every transaction or start of a program reads.
static PARAMS: LazyLock<U256> = LazyLock::new(|| nitro_slot(&[PROGRAMS, &[0]], B256::ZERO));
static PROGRAM: LazyLock<Vec<u8>> = LazyLock::new(|| space(&[PROGRAMS, &[1]]));
static FEATURE_BITS: LazyLock<U256> = LazyLock::new(|| nitro_slot(&[FEATURES], B256::ZERO));

impl Slot {
    pub(crate) fn key(self) -> U256 {
        let number = |n: u64| B256::from(U256::from(n));
        let set = |set: Set| -> &[&[u8]] {
            match set {
                Set::AddressTable => &[&[3]],
                Set::ChainOwners => &[&[4]],
                Set::CacheManagers => &[PROGRAMS, &[4]],
            }
        };
        let positions = |set: Set| -> &[&[u8]] {
            match set {
                Set::AddressTable => &[&[3], &[]],
                Set::ChainOwners => &[&[4], &[0]],
                Set::CacheManagers => &[PROGRAMS, &[4], &[0]],
            }
        };
        match self {
            Self::Params => *PARAMS,
            Self::Program(hash) => word_of(PROGRAM.clone(), hash),
            Self::ModuleHash(hash) => nitro_slot(&[PROGRAMS, &[2]], hash),
            Self::DataPricer(field) => nitro_slot(&[PROGRAMS, &[3]], number(field)),
            Self::ActivationGas => nitro_slot(&[PROGRAMS, &[5]], B256::ZERO),
            Self::SetSize(of) => nitro_slot(set(of), B256::ZERO),
            Self::SetMember(of, position) => nitro_slot(set(of), number(position)),
            Self::SetPosition(of, address) => nitro_slot(positions(of), address.into_word()),
            Self::Number(Number::UpgradeVersion) => nitro_slot(&[], number(1)),
            Self::Number(Number::UpgradeTime) => nitro_slot(&[], number(2)),
            Self::Number(Number::BrotliLevel) => nitro_slot(&[], number(7)),
            Self::Number(Number::L1PricePerUnit) => nitro_slot(&[L1_PRICING], number(7)),
            Self::Number(Number::SpeedLimit) => nitro_slot(&[L2_PRICING], number(0)),
            Self::Number(Number::MinBaseFee) => nitro_slot(&[L2_PRICING], number(3)),
            Self::Number(Number::CalldataFloor) => *FEATURE_BITS,
        }
    }
}

/// Reads big-endian fields off a word, first field first.
struct Unpack([u8; 32], usize);

impl Unpack {
    fn take(&mut self, bytes: usize) -> u64 {
        let field = &self.0[self.1..self.1 + bytes];
        self.1 += bytes;
        field.iter().fold(0, |n, b| n << 8 | u64::from(*b))
    }
}

/// Writes big-endian fields into a word, first field first.
#[derive(Default)]
struct Pack([u8; 32], usize);

impl Pack {
    fn put(mut self, value: u64, bytes: usize) -> Self {
        self.0[self.1..self.1 + bytes].copy_from_slice(&value.to_be_bytes()[8 - bytes..]);
        self.1 += bytes;
        self
    }

    fn word(self) -> U256 {
        U256::from_be_bytes(self.0)
    }
}

/// Rules for Stylus programs that chain owners may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Params {
    pub version: u16,
    /// Ink per gas.
    pub ink_price: u32,
    /// Words.
    pub max_stack_depth: u32,
    pub free_pages: u16,
    pub page_gas: u16,
    pub page_limit: u16,
    /// In units of 128 gas.
    pub min_init_gas: u8,
    /// In units of 32 gas.
    pub min_cached_init_gas: u8,
    /// In units of 2 %.
    pub init_cost_scalar: u8,
    /// In units of 2 %.
    pub cached_cost_scalar: u8,
    pub expiry_days: u16,
    pub keepalive_days: u16,
    /// Programs a block remembers.
    pub block_cache_size: u16,
    /// Bytes after decompression.
    pub max_wasm_size: u32,
    pub max_fragment_count: u8,
}

impl Params {
    /// The parameters of a chain that started with, or was upgraded to, an ArbOS version.
    pub(crate) fn of_version(arbos: u64) -> Self {
        Self {
            version: if arbos >= 59 { 3 } else { 2 },
            ink_price: 10_000,
            max_stack_depth: if arbos >= 50 { 22_000 } else { 4 * 65_536 },
            free_pages: 2,
            page_gas: 1000,
            page_limit: 128,
            min_init_gas: 69,
            min_cached_init_gas: 11,
            init_cost_scalar: 50,
            cached_cost_scalar: 50,
            expiry_days: 365,
            keepalive_days: 31,
            block_cache_size: 32,
            max_wasm_size: if arbos >= 60 { 256 * 1024 } else { 128 * 1024 },
            max_fragment_count: if arbos >= 60 { 4 } else { 0 },
        }
    }

    pub(crate) fn pack(&self) -> U256 {
        Pack::default()
            .put(self.version.into(), 2)
            .put(self.ink_price.into(), 3)
            .put(self.max_stack_depth.into(), 4)
            .put(self.free_pages.into(), 2)
            .put(self.page_gas.into(), 2)
            .put(self.page_limit.into(), 2)
            .put(self.min_init_gas.into(), 1)
            .put(self.min_cached_init_gas.into(), 1)
            .put(self.init_cost_scalar.into(), 1)
            .put(self.cached_cost_scalar.into(), 1)
            .put(self.expiry_days.into(), 2)
            .put(self.keepalive_days.into(), 2)
            .put(self.block_cache_size.into(), 2)
            .put(self.max_wasm_size.into(), 4)
            .put(self.max_fragment_count.into(), 1)
            .word()
    }

    pub(crate) fn unpack(word: U256) -> Self {
        let mut w = Unpack(word.to_be_bytes(), 0);
        Self {
            version: w.take(2) as u16,
            ink_price: w.take(3) as u32,
            max_stack_depth: w.take(4) as u32,
            free_pages: w.take(2) as u16,
            page_gas: w.take(2) as u16,
            page_limit: w.take(2) as u16,
            min_init_gas: w.take(1) as u8,
            min_cached_init_gas: w.take(1) as u8,
            init_cost_scalar: w.take(1) as u8,
            cached_cost_scalar: w.take(1) as u8,
            expiry_days: w.take(2) as u16,
            keepalive_days: w.take(2) as u16,
            block_cache_size: w.take(2) as u16,
            max_wasm_size: w.take(4) as u32,
            max_fragment_count: w.take(1) as u8,
        }
    }

    pub(crate) fn expiry_seconds(&self) -> u64 {
        u64::from(self.expiry_days) * 86_400
    }

    pub(crate) fn keepalive_seconds(&self) -> u64 {
        u64::from(self.keepalive_days) * 86_400
    }
}

/// The second ages are counted from.
pub(crate) const START_TIME: u64 = 1_421_388_000;

/// Whole hours since [`START_TIME`], in 24 bits.
pub(crate) fn hours_since_start(time: u64) -> u32 {
    (time.saturating_sub(START_TIME) / 3600).min(0xff_ffff) as u32
}

/// An activated program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Program {
    /// Stylus version it was activated for; 0 = never.
    pub version: u16,
    pub init_cost: u16,
    pub cached_cost: u16,
    pub footprint: u16,
    /// Hours since [`START_TIME`].
    pub activated_at: u32,
    pub asm_estimate_kb: u32,
    pub cached: bool,
}

impl Program {
    pub(crate) fn pack(&self) -> U256 {
        Pack::default()
            .put(self.version.into(), 2)
            .put(self.init_cost.into(), 2)
            .put(self.cached_cost.into(), 2)
            .put(self.footprint.into(), 2)
            .put(self.activated_at.into(), 3)
            .put(self.asm_estimate_kb.into(), 3)
            .put(self.cached.into(), 1)
            .word()
    }

    pub(crate) fn unpack(word: U256) -> Self {
        let mut w = Unpack(word.to_be_bytes(), 0);
        Self {
            version: w.take(2) as u16,
            init_cost: w.take(2) as u16,
            cached_cost: w.take(2) as u16,
            footprint: w.take(2) as u16,
            activated_at: w.take(3) as u32,
            asm_estimate_kb: w.take(3) as u32,
            cached: w.take(1) != 0,
        }
    }

    /// Seconds since activation, which is known to the hour.
    pub(crate) fn age(&self, time: u64) -> u64 {
        time.saturating_sub(START_TIME + u64::from(self.activated_at) * 3600)
    }

    /// Whether it may run.
    pub(crate) fn check_active(&self, params: &Params, time: u64) -> Result<(), Inactive> {
        if self.version == 0 {
            return Err(Inactive::NotActivated);
        }
        if self.version != params.version {
            return Err(Inactive::NeedsUpgrade { version: self.version, current: params.version });
        }
        let age = self.age(time);
        if age > params.expiry_seconds() {
            return Err(Inactive::Expired { age });
        }
        Ok(())
    }

    /// Gas an uncached start costs on top of [`Program::cached_gas`].
    pub(crate) fn init_gas(&self, params: &Params) -> u64 {
        scaled(params.min_init_gas, 128, self.init_cost, params.init_cost_scalar)
    }

    /// Gas every start costs.
    pub(crate) fn cached_gas(&self, params: &Params) -> u64 {
        scaled(params.min_cached_init_gas, 32, self.cached_cost, params.cached_cost_scalar)
    }

    /// Estimated size of the machine code in bytes.
    pub(crate) fn asm_size(&self) -> u32 {
        self.asm_estimate_kb.saturating_mul(1024)
    }
}

/// Minimum plus cost times scalar, rounded up.
fn scaled(min: u8, unit: u64, cost: u16, scalar: u8) -> u64 {
    u64::from(min) * unit + (u64::from(cost) * u64::from(scalar) * 2).div_ceil(100)
}

/// Why a program doesn't run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inactive {
    NotActivated,
    NeedsUpgrade { version: u16, current: u16 },
    Expired { age: u64 },
}

impl std::fmt::Display for Inactive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotActivated => write!(f, "error ProgramNotActivated()"),
            Self::NeedsUpgrade { version, current } => write!(f, "error ProgramNeedsUpgrade({version}, {current})"),
            Self::Expired { age } => write!(f, "error ProgramExpired({age})"),
        }
    }
}

/// Price of machine code: rises with recent activations, falls as time passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DataPricer {
    pub demand: u32,
    pub bytes_per_second: u32,
    pub last_update: u64,
    pub min_price: u32,
    pub inertia: u32,
}

impl Default for DataPricer {
    fn default() -> Self {
        // One tebibyte a year.
        let hourly: u64 = (1 << 40) / (365 * 24);
        Self {
            demand: 0,
            bytes_per_second: (hourly / 3600) as u32,
            last_update: START_TIME,
            min_price: 82_928_201,
            inertia: 21_360_419,
        }
    }
}

impl DataPricer {
    /// Reads its fields, which lie in five words.
    pub(crate) fn load(mut field: impl FnMut(Slot) -> U256) -> Self {
        let mut field = |n| field(Slot::DataPricer(n)).saturating_to::<u64>();
        Self {
            demand: field(0) as u32,
            bytes_per_second: field(1) as u32,
            last_update: field(2),
            min_price: field(3) as u32,
            inertia: field(4) as u32,
        }
    }

    pub(crate) fn fields(&self) -> [(Slot, U256); 5] {
        let fields =
            [self.demand.into(), self.bytes_per_second.into(), self.last_update, self.min_price.into(), self.inertia.into()];
        std::array::from_fn(|n| (Slot::DataPricer(n as u64), U256::from(fields[n])))
    }

    /// Takes `bytes` of machine code in and returns their price in wei.
    pub(crate) fn charge(&mut self, bytes: u32, time: u64) -> u64 {
        let passed = u32::try_from(time.wrapping_sub(self.last_update)).unwrap_or(u32::MAX);
        let credit = self.bytes_per_second.saturating_mul(passed);
        self.demand = self.demand.saturating_sub(credit).saturating_add(bytes);
        self.last_update = time;
        let exponent = 10_000 * u64::from(self.demand) / u64::from(self.inertia.max(1));
        let multiplier = exp_bips(exponent, 12);
        let per_byte = u64::from(self.min_price).saturating_mul(multiplier) / 10_000;
        per_byte.saturating_mul(bytes.into())
    }
}

/// e^x in ten-thousandths by `terms` terms of its series, each division rounded down.
fn exp_bips(x: u64, terms: u64) -> u64 {
    const ONE: u64 = 10_000;
    let mut sum = ONE + x / terms;
    for i in (1..terms).rev() {
        sum = ONE + sum.saturating_mul(x) / (i * ONE);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use revm::primitives::b256;

    /// Read off public chains.
    #[test]
    fn words_lie_where_nitro_has_them() {
        for (number, slot) in [
            (Number::BrotliLevel, b256!("15fed0451499512d95f3ec5a41c878b9de55f21878b5b4e190d4667ec709b407")),
            (Number::L1PricePerUnit, b256!("a9f6f085d78d1d37c5819e5c16c9e03198bd14e08cd1f6f8191bc6207b9e9707")),
            (Number::MinBaseFee, b256!("e54de2a4cdacc0a0059d2b6e16348103df8c4aff409c31e40ec73d11926c8203")),
        ] {
            assert_eq!(B256::from(number.slot()), slot, "{number:?}");
        }
    }

    #[test]
    fn the_data_pricer_is_read_as_it_is_written() {
        let mut pricer = DataPricer { min_price: 7, ..DataPricer::default() };
        pricer.charge(1 << 20, START_TIME + 9);
        let fields = pricer.fields();
        let word = |slot: Slot| fields.iter().find(|(other, _)| other.key() == slot.key()).map(|(_, word)| *word);
        assert_eq!(DataPricer::load(|slot| word(slot).expect("one of them")), pricer);
    }
}
