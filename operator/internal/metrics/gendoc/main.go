// Command gendoc writes the reference of the metrics to a file, given as argument.
package main

import (
	"fmt"
	"os"

	"assay.dev/assay/operator/internal/metrics/catalog"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gendoc FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(catalog.Markdown()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "gendoc: "+err.Error())
		os.Exit(1)
	}
}
