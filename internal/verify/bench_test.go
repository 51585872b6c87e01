package verify_test

import (
	"testing"

	"heliograph/internal/verify"
)

// BenchmarkVerify compares 200,000 records of about 130 bytes on both sides, over
// two embedded clusters in the same process: what a record costs, network aside.
// Here (2 vCPU, shared with other work and with both clusters) it was 1.7 million
// records a second, counted on both sides together.
func BenchmarkVerify(b *testing.B) {
	const n = 200_000
	w := newWorld(b)
	w.source.topic()
	w.target.topic()
	all := numbered(0, n)
	for i := range all {
		all[i].Value = append(make([]byte, 100), all[i].Value...)
	}
	w.source.produceAll(all)
	w.target.produceAll(all)
	b.ReportAllocs()
	for b.Loop() {
		if p := w.verify(); p.Verdict != verify.Equal || p.Equal != n {
			b.Fatalf("%+v", p)
		}
	}
	b.ReportMetric(float64(b.N)*2*n/b.Elapsed().Seconds(), "records/s")
}
