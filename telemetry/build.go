// Package telemetry is what Varve tells about itself: its build, its metrics
// and its log.
package telemetry

import (
	"runtime"
	"runtime/debug"
)

// The Makefile sets these with the linker's -X.
var (
	version = "dev"
	commit  string
)

// A BuildInfo says which program runs.
type BuildInfo struct {
	Version   string
	Commit    string // "" where the build had no repository
	GoVersion string
}

// Build returns the build of this program.
func Build() BuildInfo {
	b := BuildInfo{Version: version, Commit: commit, GoVersion: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok || commit != "" {
		return b
	}
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if b.Commit != "" {
		b.Commit += dirty
	}
	return b
}
