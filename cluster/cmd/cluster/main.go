// Command cluster runs a one-node Kubernetes on this machine.
package main

import (
	"os"

	"assay.dev/assay/cluster/internal/cli"
)

func main() { os.Exit(cli.Main()) }
