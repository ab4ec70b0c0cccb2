// Command dashgen writes the dashboards from Go into the chart, and the one of a run to where the operator embeds
// it. It is run by make generate, from the folder dashboards.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"assay.dev/assay/dashboards"
)

// embedded is the run's dashboard as the operator has it, without the white space.
const embedded = "../operator/internal/dashboard/run.json"

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "dashgen: "+err.Error())
		os.Exit(1)
	}
}

func write() error {
	files, err := dashboards.Files()
	if err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dashboards.Generated, "*.json"))
	if err != nil {
		return err
	}
	for _, name := range old {
		if _, kept := files[filepath.Base(name)]; !kept {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dashboards.Generated, name), content, 0o644); err != nil {
			return err
		}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, files["run.json"]); err != nil {
		return err
	}
	compact.WriteByte('\n')
	return os.WriteFile(embedded, compact.Bytes(), 0o644)
}
