// Package crd holds the definitions that the API server is given, for programs that check a file as it would.
package crd

import "embed"

// Files are the definitions as they are generated.
//
//go:embed assay.dev_*.yaml
var Files embed.FS
