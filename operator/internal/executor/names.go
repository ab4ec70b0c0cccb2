package executor

import (
	"fmt"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/record"
)

// Labels of executions and of their pods, whichever engine creates them.
const (
	// RunLabel is the name of the BenchmarkRun.
	RunLabel = "assay.dev/run"
	// RunUIDLabel distinguishes runs that used the same name.
	RunUIDLabel = "assay.dev/run-uid"
	// WaveLabel is the number of the wave.
	WaveLabel = "assay.dev/wave"
	// PartLabel is the part of a run that a pod executes, block or analysis.
	PartLabel = "assay.dev/part"
	// ManagedByLabel selects every object that the operator creates.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of ManagedByLabel.
	ManagedBy = "assay-operator"

	// BlockPart and AnalysisPart are the values of PartLabel.
	BlockPart, AnalysisPart = "block", "analysis"
)

// KeeperContainer is the keeper's container in the pod of a block, and MainContainer that of the block or the analysis itself. A pod is
// controlled by an object with the name of its execution.
const KeeperContainer, MainContainer = "keeper", "main"

// EngineContainer is the container that the engine adds to every pod beside MainContainer.
const EngineContainer = "wait"

// Init containers of a pod: the engine's own, the one that installs the runner, and one per image of an arm, whose names have a number.
const (
	EngineInitContainer, InstallContainer = "init", "install"
	ImageContainerPrefix                  = "image-"
)

// IsForeign reports whether a container of a run's pod was added by another program, such as an admission webhook.
func IsForeign(name string) bool {
	switch name {
	case MainContainer, EngineContainer, KeeperContainer, EngineInitContainer, InstallContainer:
		return false
	}
	number, found := strings.CutPrefix(name, ImageContainerPrefix)
	_, err := strconv.ParseUint(number, 10, 16)
	return !found || err != nil
}

// WaveFile is the key of the wave's plan in its ConfigMap.
const WaveFile = "wave.json"

// Name returns the name of the execution of a wave, which is also that of its ConfigMap. It has at most 63 characters, because the name of
// a run has at most 52.
func Name(run string, wave int) string { return run + "-w" + record.WaveName(wave) }

// AnalysisName returns the name of the execution of a further analysis of a wave; the first try is 1.
func AnalysisName(run string, wave, try int) string {
	return fmt.Sprintf("%s-a%d", Name(run, wave), try)
}

// Labels returns the labels of a wave's objects.
func Labels(run record.Run, wave int) map[string]string {
	return map[string]string{
		ManagedByLabel: ManagedBy,
		RunLabel:       run.Name,
		RunUIDLabel:    run.UID,
		WaveLabel:      fmt.Sprint(wave),
	}
}

// OwnLabels returns those of the labels by which the operator finds executions and pods.
func OwnLabels(all map[string]string) map[string]string {
	return Only(all, ManagedByLabel, RunLabel, RunUIDLabel, WaveLabel, PartLabel)
}

// Only returns the entries of a map with the given keys.
func Only(all map[string]string, keys ...string) map[string]string {
	out := map[string]string{}
	for _, key := range keys {
		if value, ok := all[key]; ok {
			out[key] = value
		}
	}
	return out
}
