package mirror

import "encoding/binary"

// PartitionFor is the partition that Kafka's default partitioner gives a key:
// murmur2, the sign bit cleared, modulo the partitions. Records of one key must
// meet in one partition whoever writes them, or compaction keeps two.
// partitions must be positive.
func PartitionFor(key []byte, partitions int32) int32 {
	return int32(murmur2(key)&0x7fffffff) % partitions
}

// murmur2 is the 32-bit hash with Kafka's seed.
func murmur2(data []byte) uint32 {
	const (
		seed  = 0x9747b28c
		mul   = 0x5bd1e995
		shift = 24
	)
	h := uint32(seed) ^ uint32(len(data))
	for ; len(data) >= 4; data = data[4:] {
		k := binary.LittleEndian.Uint32(data) * mul
		k ^= k >> shift
		h = h*mul ^ k*mul
	}
	switch len(data) {
	case 3:
		h ^= uint32(data[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(data[1]) << 8
		fallthrough
	case 1:
		h ^= uint32(data[0])
		h *= mul
	}
	h ^= h >> 13
	h *= mul
	return h ^ h>>15
}
