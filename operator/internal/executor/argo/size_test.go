package argo

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/design"
)

// compressedStatus is the status of a wave whose blocks were all tried twice, as Argo keeps it: the nodes as JSON, compressed
// with gzip, in base64.
func compressedStatus(t *testing.T, built *Workflow) int {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 1))
	nodes := map[string]any{}
	for i, task := range built.Spec.Templates[0].DAG.Tasks {
		add := func(suffix, kind string, children []string) string {
			id := fmt.Sprintf("%s-%d", built.Name, random.Uint32())
			nodes[id] = map[string]any{
				"id": id, "name": built.Name + "." + task.Name + suffix, "displayName": task.Name + suffix, "type": kind, "templateName": "block",
				"templateScope": "local/" + built.Name, "phase": "Succeeded", "boundaryID": built.Name, "children": children, "progress": "1/1",
				"startedAt": fmt.Sprintf("2026-11-22T%02d:%02d:%02dZ", i/60%24, i%60, random.IntN(60)), "finishedAt": fmt.Sprintf("2026-11-22T%02d:%02d:%02dZ", i/60%24, i%60, random.IntN(60)),
				"estimatedDuration": random.IntN(1000), "resourcesDuration": map[string]int{"cpu": random.IntN(1000), "memory": random.IntN(100000)},
				"inputs": task.Arguments, "outputs": map[string]any{"exitCode": "0", "artifacts": []any{map[string]any{
					"name": "attempts", "path": "/assay/out", "archive": map[string]any{"none": map[string]any{}},
					"s3": map[string]any{"key": "runs/benchmarks/x/y/attempts/" + task.Name + "/" + id},
				}}},
				"hostNodeName": "node-a", "message": "",
			}
			return id
		}
		first, second := add("(0)", "Pod", nil), add("(1)", "Pod", nil)
		add("", "Retry", []string{first, second})
	}
	raw, err := json.Marshal(nodes)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write(raw); err != nil || writer.Close() != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodedLen(packed.Len())
}

func TestFits_ThousandBlocksAreSplitBelowArgosLimit(t *testing.T) {
	const argoHolds = 1 << 20
	long := strings.Repeat("long-", 10)
	cases := map[string]func(*assayv1alpha1.BenchmarkRunSpec, *assayv1alpha1.BenchmarkTemplateSpec){
		"few cells": func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
			spec.Sweep.Axes = spec.Sweep.Axes[:1]
		},
		"long names": func(spec *assayv1alpha1.BenchmarkRunSpec, _ *assayv1alpha1.BenchmarkTemplateSpec) {
			for i := range spec.Arms {
				spec.Arms[i].Name = long + spec.Arms[i].Name
			}
		},
	}
	for name, edit := range cases {
		t.Run(name, func(t *testing.T) {
			config := testConfig(t)
			exp := testExperiment(t, func(spec *assayv1alpha1.BenchmarkRunSpec, template *assayv1alpha1.BenchmarkTemplateSpec) {
				spec.Design.Blocks, spec.Budget.Trials = assayv1alpha1.Blocks{Min: 1000, Max: 1000}, 100000
				edit(spec, template)
			})
			lanes := []design.Lane{{Node: "node-a." + long, Token: 1}, {Node: "node-b." + long, Token: 2}}
			course := design.Begin(exp)
			for course.Blocks() < 1000 && len(course.Waves) < 20 {
				course.Found.Valid = course.Blocks()
				step := course.Next()
				if step.Done {
					t.Fatalf("after %d blocks: %s", course.Blocks(), step.Why)
				}
				wave, err := course.Lay(step, lanes, config.Fits)
				if err != nil {
					t.Fatal(err)
				}
				built := build(t, exp, wave, lanes)
				raw, err := json.Marshal(built)
				if err != nil {
					t.Fatal(err)
				}
				status := compressedStatus(t, built)
				if status > statusBytesPerBlock*len(wave.Blocks) {
					t.Errorf("the status of %d blocks takes %d bytes, more than is counted on", len(wave.Blocks), status)
				}
				if size := len(raw) + status; size > argoHolds {
					t.Errorf("wave %d of %d blocks takes %d KiB with its status", wave.Wave, len(wave.Blocks), size>>10)
				}
				plan, err := json.Marshal(wave)
				if err != nil || len(plan) > 1<<20 {
					t.Errorf("the plan of wave %d takes %d KiB, and a ConfigMap holds 1024: %v", wave.Wave, len(plan)>>10, err)
				}
				course.Waves = append(course.Waves, *wave)
			}
			if course.Blocks() != 1000 || len(course.Waves) < 2 {
				t.Errorf("%d blocks in %d waves, want 1000 in more than one", course.Blocks(), len(course.Waves))
			}
		})
	}
}
