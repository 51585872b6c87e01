package coord

import "heliograph/internal/kafka"

// Books are where the flow's positions and offset map lie, for whoever asks about
// partitions that another instance copies.
func (k *Keeper) Books() Books { return k.books }

// Replica is a partition that the flow copies, here or in another instance.
func (k *Keeper) Replica(tp kafka.TopicPartition) (Replica, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.replicas[k.LaneOf(tp)][tp]
	return r, ok
}
