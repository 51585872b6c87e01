package cluster

import (
	"context"
	"log/slog"
	"time"
)

// A Budget bounds the memory of fetch answers. Acquire is called with the size
// of the block an answer needs, after the answer announced its length and before
// a byte of its body is read: an answer that has no room waits in the socket.
// Release is called with the same number when the block's last reference goes.
//
// Acquire must let a size larger than the whole budget pass when nothing else is
// held, or one oversized batch would stop its partition for ever.
type Budget interface {
	Acquire(ctx context.Context, n int) error
	Release(n int)
}

// Options describe a cluster. Zero durations and sizes take the defaults named
// beside them.
type Options struct {
	Alias            string   // names the cluster in every error and log line
	BootstrapServers []string // host:port
	ClientID         string   // "heliograph"
	Security         Security // PLAINTEXT
	Rack             string   // lets brokers name a nearer replica (KIP-392)

	DialTimeout      time.Duration // 10 s, TCP and TLS together
	RequestTimeout   time.Duration // 30 s beyond what a request itself may wait
	MetadataMaxAge   time.Duration // 5 min between refreshes nobody asked for
	MaxResponseBytes int32         // 100 MiB; a larger answer ends its connection

	// Budget bounds the blocks of fetch answers; nil is no bound.
	Budget Budget
	// Log may be nil.
	Log *slog.Logger
}

const (
	defaultClientID         = "heliograph"
	defaultDialTimeout      = 10 * time.Second
	defaultRequestTimeout   = 30 * time.Second
	defaultMetadataMaxAge   = 5 * time.Minute
	defaultMaxResponseBytes = 100 << 20
)

func (o Options) withDefaults() Options {
	if o.ClientID == "" {
		o.ClientID = defaultClientID
	}
	if o.DialTimeout <= 0 {
		o.DialTimeout = defaultDialTimeout
	}
	if o.RequestTimeout <= 0 {
		o.RequestTimeout = defaultRequestTimeout
	}
	if o.MetadataMaxAge <= 0 {
		o.MetadataMaxAge = defaultMetadataMaxAge
	}
	if o.MaxResponseBytes <= 0 {
		o.MaxResponseBytes = defaultMaxResponseBytes
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Log = o.Log.With("cluster", o.Alias)
	return o
}
