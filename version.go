package main

import (
	"cmp"
	"runtime/debug"
)

// Set by the linker: -ldflags "-X main.stampedVersion=v0.1.0 -X main.stampedDate=2026-11-30".
var stampedVersion, stampedDate string

// version returns what `--version` prints: the stamp of a release build, else what the Go toolchain
// recorded of the module and the commit.
func version() (version, date string) {
	version, date = stampedVersion, stampedDate
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return cmp.Or(version, "unknown"), cmp.Or(date, "unknown")
	}
	var revision, modified string
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.time":
			date = cmp.Or(date, s.Value)
		case "vcs.modified":
			if s.Value == "true" {
				modified = "+changes"
			}
		}
	}
	if version == "" && info.Main.Version != "" && info.Main.Version != "(devel)" {
		version = info.Main.Version
	}
	if version == "" && revision != "" {
		version = revision + modified
	}
	return cmp.Or(version, "development"), cmp.Or(date, "unknown")
}
