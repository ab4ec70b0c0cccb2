// Command chartgen writes the generated files of charts/assay. Run it in charts/test.
package main

import (
	"fmt"
	"os"

	"assay.dev/assay/charts/test/generate"
)

func main() {
	if err := generate.Write("../.."); err != nil {
		fmt.Fprintln(os.Stderr, "chartgen: "+err.Error())
		os.Exit(1)
	}
}
