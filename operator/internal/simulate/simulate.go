// Package simulate makes ledgers whose truth is known: the frozen experiment, its waves and the attempts that a machine
// with given noise would have left. The analysis is tested against them.
package simulate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/record"
)

// Noise is what the machine adds, as standard deviations of the logarithm of a time.
type Noise struct {
	// Block is shared by everything in a block, Arm by the trials of an arm at a point in a block, Trial by the samples of a
	// trial; Sample is each sample's own and only ever slows down.
	Block, Arm, Trial, Sample float64
	// Heavy takes the first three from a t distribution with 3 degrees of freedom in place of a normal one.
	Heavy bool
}

// Machine is what runs the trials.
type Machine struct {
	Seed  uint64
	Noise Noise
	// Seconds is the true time of one iteration.
	Seconds func(point record.Point, arm string) float64
	// Samples is how many iterations a trial has; 0 means 30.
	Samples int
	// Executor names the pod; empty means "pod-" and the block.
	Executor string
}

// ScanSeconds are true times of the scan experiment: fused-naive is slower than the loop, fused-m4r far faster in batches.
func ScanSeconds(point record.Point, arm string) float64 {
	batch := float64(1)
	if point.Parameters["batchSize"] == "8" {
		batch = 8
	}
	perQuery := 13e-3
	switch {
	case arm == "fused-naive":
		perQuery = 15e-3
	case arm == "fused-m4r" && batch > 1:
		perQuery = 2e-3
	}
	return perQuery * batch
}

// Run executes every trial of the waves.
func (m Machine) Run(exp *experiment.Experiment, waves ...*record.Wave) []record.Attempt {
	random := rand.New(rand.NewPCG(m.Seed, 1))
	var out []record.Attempt
	clock := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	for _, wave := range waves {
		for _, block := range wave.Blocks {
			shared := m.Noise.Block * m.draw(random)
			arms := map[int]float64{}
			for slot, index := range slices.Concat(block.Warmup, block.Order) {
				warmup, number := slot < len(block.Warmup), slot
				if !warmup {
					number -= len(block.Warmup)
				}
				if _, ok := arms[index]; !ok {
					arms[index] = m.Noise.Arm * m.draw(random)
				}
				level := shared + arms[index] + m.Noise.Trial*m.draw(random)
				attempt := m.attempt(exp, wave, block, index, record.TrialName(block.ID, number, warmup), number, warmup)
				attempt.StartedAt = clock
				seconds := m.Seconds(wave.Points[wave.Cells[index].Point], wave.Arms[wave.Cells[index].Arm].Name) * math.Exp(level)
				attempt.Result = m.result(random, attempt, seconds, cmp.Or(m.Samples, 30))
				for _, sample := range attempt.Result.Metrics["latency"].Samples {
					attempt.DurationSeconds += sample
				}
				clock = clock.Add(time.Second + time.Duration(attempt.DurationSeconds*float64(time.Second))).Round(time.Millisecond)
				out = append(out, attempt)
			}
		}
	}
	return out
}

func (m Machine) draw(random *rand.Rand) float64 {
	z := random.NormFloat64()
	if !m.Noise.Heavy {
		return z
	}
	a, b, c := random.NormFloat64(), random.NormFloat64(), random.NormFloat64()
	return z / math.Sqrt((a*a+b*b+c*c)/3)
}

func (m Machine) attempt(exp *experiment.Experiment, wave *record.Wave, block record.Block, index int, trial string, slot int,
	warmup bool) record.Attempt {
	c := wave.Cells[index]
	executor := cmp.Or(m.Executor, "pod-"+block.ID)
	return record.Attempt{
		Schema: record.AttemptSchema, ID: executor + "/" + trial, Trial: trial, Run: exp.Run, Experiment: exp.Digest,
		Wave: wave.Wave, Block: block.ID, Slot: slot, Point: wave.Points[c.Point].Key, Arm: wave.Arms[c.Arm].Name, Warmup: warmup,
		Lease: block.Lease, Outcome: record.Succeeded, ExitCode: ptr.To(0), Argv: c.Argv, Parameters: c.Parameters,
		Environment: record.Environment{
			Hard: map[string]any{
				"architecture": "x86_64", "cpuModel": "AMD EPYC", "cpuFamily": 26.0, "microcode": "0x1000065", "kernelRelease": "6.18.44",
				"smt": false, "transparentHugepages": "madvise", "numaNodes": 1.0, "llcBytes": 33554432.0, "onlineCpus": 2.0,
			},
			Soft: map[string]any{"hostname": "node-a", "runnerVersion": "0.1.0"},
		},
		Isolation: record.Isolation{Level: "ExclusiveCPUs", CPUsAllowed: "1"},
		Noise:     Quiet(0.2),
		Resources: record.Resources{UserSeconds: ptr.To(0.2), MaxRSSBytes: ptr.To(int64(75497472)), MinorFaults: ptr.To(int64(16680))},
	}
}

func (m Machine) result(random *rand.Rand, attempt record.Attempt, seconds float64, samples int) *record.Result {
	latency := make([]float64, samples)
	expand, scan := make([]float64, samples), make([]float64, samples)
	var total float64
	for i := range latency {
		latency[i] = seconds * math.Exp(m.Noise.Sample*random.ExpFloat64())
		expand[i], scan[i] = latency[i]*0.1, latency[i]*0.9
		total += latency[i]
	}
	batch := 1.0
	if attempt.Parameters["batchSize"] == "8" {
		batch = 8
	}
	bytesPerSecond := 67108864 * float64(samples) / total
	return &record.Result{
		Schema:    record.ResultSchema,
		Workload:  record.WorkloadID{Name: "pir-scan", Version: "0.1.0", Build: map[string]string{"rustc": "1.95.0", "profile": "release"}},
		Effective: map[string]any{"path": "avx512", "threads": 1.0},
		Metrics: map[string]*record.Metric{
			"latency":    {Unit: "s", Samples: latency},
			"throughput": {Unit: "queries/s", Value: ptr.To(batch * float64(samples) / total)},
		},
		Phases: []record.Phase{{Name: "expand", Samples: expand}, {Name: "scan", Samples: scan}},
		// The outputs depend on the point and never on the arm.
		Parity:   &record.Parity{Algorithm: "sha256", Digest: fmt.Sprintf("%064x", len(attempt.Point)*1000+int(batch)), Items: int64(batch)},
		Ceilings: []record.Ceiling{{Name: "readBandwidth", Unit: "By/s", Limit: 64e9, Achieved: ptr.To(bytesPerSecond)}},
	}
}

// Wave plans complete blocks of the experiment, as the operator does.
func Wave(exp *experiment.Experiment, number, firstBlock, blocks int) (*record.Wave, error) {
	return design.BuildWave(exp, number, firstBlock, blocks, []design.Lane{{}})
}

// Objects are the ledger's objects by key: what the operator and the runner would have written.
func Objects(exp *experiment.Experiment, waves []*record.Wave, attempts []record.Attempt) (map[string][]byte, error) {
	values := map[string]any{"experiment.json": exp}
	for _, wave := range waves {
		values[record.WaveKey(wave.Wave)] = wave
	}
	for i := range attempts {
		values["attempts/"+attempts[i].Block+"/"+attempts[i].ID+".json"] = &attempts[i]
	}
	out := make(map[string][]byte, len(values))
	for key, value := range values {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		out[key] = raw
	}
	return out, nil
}
