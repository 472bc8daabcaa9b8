use crate::id::NodeId;
use crate::word::Word;

packed! {
    /// An account: Muster's debt to it, and its node.
    ///
    /// ```text
    /// | works | kicked | node | release | unbonding | credit |
    ///     8       8       24       40         48       128
    /// ```
    pub struct Account {
        /// Credit that `withdraw` pays out now, in wei.
        credit: u128 = "uint128" 128,
        /// Returned stake waiting for `release`, in stake units.
        unbonding: u64 = "uint48" 48,
        /// When `unbonding` can be withdrawn, in seconds since 1970.
        release: u64 = "uint40" 40,
        /// Number of the node that the account joined, or works for; 0 for none.
        node: NodeId = "uint24" 24,
        /// Whether the account's node was kicked out; it can never join again.
        kicked: bool = "bool" 8,
        /// Whether it only works for the node: another account is the operator.
        works: bool = "bool" 8,
    }
}

// The two things that nearly every call wants of an account, without reading the rest of it.
impl Account {
    /// From an account's word: its node, and whether the account only works for it.
    #[inline]
    pub fn node_in(word: Word) -> (NodeId, bool) {
        let high = word.0[3];
        (NodeId((high >> 24) as u32 & 0xff_ffff), high >> 56 != 0)
    }

    /// An account's word with `wei` more credit. The sum must stay below 2^128.
    #[inline]
    pub fn credited(word: Word, wei: u128) -> Word {
        let Word([low, high, rest @ ..]) = word;
        let credit = (low as u128 | (high as u128) << 64) + wei;
        Word([credit as u64, (credit >> 64) as u64, rest[0], rest[1]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::word::Packed;

    #[test]
    fn what_is_read_of_the_word_is_what_the_record_says() {
        for (node, works) in [(0, false), (1, false), (0xff_ffff, true), (0xabcdef, false), (7, true)] {
            let account = Account {
                credit: (1 << 100) + 3,
                unbonding: (1 << 48) - 1,
                release: (1 << 40) - 1,
                node: NodeId(node),
                kicked: true,
                works,
            };
            assert_eq!(Account::node_in(account.pack()), (NodeId(node), works));
            let richer = Account { credit: account.credit + u64::MAX as u128, ..account };
            assert_eq!(Account::credited(account.pack(), u64::MAX as u128), richer.pack());
        }
    }
}
