package argo

import (
	"encoding/json"

	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Argo keeps a Workflow and its status in one object and gives it up above 1 MiB, which is also about what etcd takes. It
// compresses the nodes of the status, and nothing else, when the whole is larger.
const (
	// maxWorkflowBytes leaves room for metadata that others add.
	maxWorkflowBytes = 960 << 10
	// statusBytesPerBlock is what a block that was tried twice takes of the compressed status: the node of its retries and one
	// for each of its pods.
	statusBytesPerBlock = 1 << 10
)

// Fits reports whether Argo can take a wave's Workflow with the status that it will have, and whether it can be built at all.
func (c Config) Fits(exp *experiment.Experiment, wave *record.Wave, lanes []design.Lane) error {
	built, err := Build(c, exp, wave, lanes, longestDeadline)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(built)
	if err != nil {
		return err
	}
	if size := len(raw) + statusBytesPerBlock*len(wave.Blocks); size > maxWorkflowBytes {
		return &design.TooLarge{What: "the Argo Workflow", Found: size, Allowed: maxWorkflowBytes, Blocks: len(wave.Blocks)}
	}
	return nil
}
