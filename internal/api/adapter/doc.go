// Package adapter is what the APIs of others, ovh, aiven and connect, share: how a
// request is found and what it needs, and how control's words become theirs.
//
// It may know HTTP and control. What an answer or an error looks like is each API's own.
//
// Invariants:
//   - Only what cannot change anything needs no more than the scope to read.
package adapter
