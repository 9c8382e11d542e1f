//! Numbers derived from texts, the same in each run: seeds of clusters, IDs of members.

/// The same number for the same text: FNV-1a, 64 bits.
pub(super) fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
