//! Which partition a key belongs to: murmur2, as in Kafka's Java client and librdkafka's `murmur2_random`.

/// The partition of `key` among `partitions`. Equal to what the broker's clients compute, which each ack checks.
///
/// Algorithm: MurmurHash2 by Austin Appleby, with the seed and sign mask of Kafka's `Utils.murmur2` and
/// `toPositive`.
#[must_use]
pub fn partition_of(key: &[u8], partitions: usize) -> usize {
    (murmur2(key) & 0x7fff_ffff) as usize % partitions.max(1)
}

fn murmur2(data: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;

    let mut hash = SEED ^ data.len() as u32;
    let mut words = data.chunks_exact(4);
    for word in words.by_ref() {
        let mut k = word.iter().rev().fold(0_u32, |k, byte| (k << 8) | u32::from(*byte));
        k = k.wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        hash ^= rest.iter().rev().fold(0_u32, |k, byte| (k << 8) | u32::from(*byte));
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of `UtilsTest.testMurmur2` in apache/kafka.
    #[test]
    fn hashes_as_kafka_does() {
        let cases: [(&[u8], i32); 6] = [
            (b"21", -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            (b"abc", 479_470_107),
        ];
        for (text, hash) in cases {
            assert_eq!(murmur2(text).cast_signed(), hash);
        }
    }
}
