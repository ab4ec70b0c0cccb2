// Command assay plans, runs, watches and judges benchmark runs, with or without a cluster. Installed as kubectl-assay it
// is a kubectl plugin.
package main

import (
	"os"

	"assay.dev/assay/operator/internal/cli/root"
)

//go:generate go run . reference --to ../../../docs/reference/cli.md

// version is set when the program is built.
var version = "unreleased"

func main() { os.Exit(root.Main(version)) }
