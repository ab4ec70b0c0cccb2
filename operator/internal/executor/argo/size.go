package argo

import (
	"encoding/json"

	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Argo stores a Workflow and its status in one object and fails it above 1 MiB, which is also about etcd's limit. If the object is larger,
// Argo compresses the nodes of the status and nothing else.
const (
	// maxWorkflowBytes leaves room for metadata of other writers.
	maxWorkflowBytes = 960 << 10
	// statusBytesPerBlock is the size in the compressed status of a block with two tries, which has a node for its retries and one for each
	// of its pods.
	statusBytesPerBlock = 1 << 10
)

// Fits returns an error if the Workflow of a wave cannot be built, or is too large together with its later status.
func (c Config) Fits(exp *experiment.Experiment, wave *record.Wave, lanes []design.Lane) error {
	built, err := Build(c, exp, wave, lanes, nil, longestDeadline)
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
