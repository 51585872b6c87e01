// Package cluster speaks Kafka; no other package that ships does.
//
// A [Client] stands for one cluster under one alias. It has two halves:
//
//   - Everything small and rare goes through one franz-go client: metadata,
//     topics, configs, ACLs, groups, transaction coordinators, offsets and the
//     few internal records of ours. Those are plain methods.
//   - Fetch and Produce, the two requests that carry data, have connections of
//     their own: [FetchConn] and [ProduceConn]. franz-go decodes every batch it
//     fetches and copies every batch it produces; these two read a whole answer
//     into a counted block and write batches from where they lie.
//
// The walk of a batch:
//
//	DialFetch(node) → Want(partition) … Fetch → Fetched{Buffer, Records}
//	     the block's size is asked of Options.Budget before it is read
//	DialProduce(node) → Send(request, done) … done(answer)
//	     the reader goroutine calls done in the order of the requests
//	Buffer.Release → block back to the pool, bytes back to the budget
//
// Words: a socket is a TCP connection that costs the scheduler little; a link is one authenticated TCP or TLS connection; a session is the
// broker's memory of what a FetchConn wants (KIP-227), so that an idle fetch
// names no partition; the pulse tells brokers that hang from slow ones; the gate holds back logins after a refused one; the
// topology is the cache of leaders, topic ids and addresses.
//
// Errors are *kafka.Error and name the cluster by its alias; a partition's own
// answer is a kafka.Code in the result. Secrets enter neither errors nor logs.
//
// The package decides nothing about replication: no retries of data, no order
// between connections, no bandwidth limit. It retries only what cannot be seen
// from outside, such as a fetch session that a broker forgot.
package cluster
