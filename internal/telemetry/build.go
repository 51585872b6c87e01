package telemetry

import (
	"runtime"
	"runtime/debug"
)

// Build describes the running binary.
type Build struct {
	Version  string `json:"version"`  // release, or "devel"
	Commit   string `json:"commit"`   // VCS revision; empty where it was not built from a checkout
	Modified bool   `json:"modified"` // the checkout had uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"` // "linux/amd64"
}

// ReadBuild describes this process. release is the version set at link time and
// wins over what the Go toolchain recorded; it may be empty.
func ReadBuild(release string) Build {
	b := Build{Version: release, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if b.Version == "" && info.Main.Version != "(devel)" {
			b.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	if b.Version == "" {
		b.Version = "devel"
	}
	return b
}
