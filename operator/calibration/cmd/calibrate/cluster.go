package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/record"
)

// onCluster applies a run, waits for it and reads its ledger, using the public commands. It deletes its objects.
func (o *realOptions) onCluster(ctx context.Context, row *calibrate.RealTally, run *assayv1alpha1.BenchmarkRun,
	truth map[string]float64) (out calibrate.RealRun, err error) {
	started := time.Now()
	run.Name = fmt.Sprintf("%s-%d", strings.TrimSuffix(fileOf(row), ".yaml"), started.UnixMilli())
	run.Namespace, run.TypeMeta = o.namespace, metav1.TypeMeta{APIVersion: assayv1alpha1.GroupVersion.String(), Kind: "BenchmarkRun"}
	var pod *corev1.Pod
	if row.Neighbour != "" {
		pod = o.neighbourPod(row.Neighbour, run.Name+"-neighbour")
		if err := o.kubectl(ctx, pod, nil, "apply", "-f", "-"); err != nil {
			return out, err
		}
		defer func() {
			err = errors.Join(err, o.kubectl(context.WithoutCancel(ctx), nil, nil, "delete", "pod", pod.Name, "--grace-period=0", "--force"))
		}()
		if err := o.kubectl(ctx, nil, nil, "wait", "pod/"+pod.Name, "--for=condition=Ready", "--timeout=2m"); err != nil {
			return out, err
		}
	}
	if err := o.kubectl(ctx, run, nil, "apply", "-f", "-"); err != nil {
		return out, err
	}
	defer func() {
		err = errors.Join(err, o.kubectl(context.WithoutCancel(ctx), nil, nil, "delete", "benchmarkrun", run.Name, "--timeout=2m"))
	}()
	if err := o.kubectl(ctx, nil, nil, "wait", "benchmarkrun/"+run.Name, "--for=condition=Complete", "--timeout=30m"); err != nil {
		return out, err
	}
	var result analysis.Analysis
	raw, err := o.assay(ctx, "results", run.Name, "-o", "json")
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return out, fmt.Errorf("analysis of %s: %w", run.Name, err)
	}
	raw, err = o.assay(ctx, "results", run.Name, "-o", "attempts")
	if err != nil {
		return out, err
	}
	attempts, err := readAttempts(raw)
	if err != nil {
		return out, fmt.Errorf("attempts of %s: %w", run.Name, err)
	}
	var busy []calibrate.Busy
	if pod != nil {
		var log bytes.Buffer
		if err := o.kubectl(ctx, nil, &log, "logs", pod.Name); err != nil {
			return out, err
		}
		if busy, err = spans(log.String(), time.Now()); err != nil {
			return out, err
		}
	}
	out = calibrate.Conclude(&result, attempts, truth, busy)
	out.Seconds = time.Since(started).Seconds()
	return out, nil
}

// kubectl runs kubectl in the calibration's namespace.
func (o *realOptions) kubectl(ctx context.Context, object any, out io.Writer, arguments ...string) error {
	return kubectl(ctx, o.namespace, object, out, arguments...)
}

func (o *realOptions) assay(ctx context.Context, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, filepath.Join(o.binDir, "assay"), append(arguments, "--namespace", o.namespace)...)
	raw, err := command.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("assay %s: %w: %s", strings.Join(arguments, " "), err, bytes.TrimSpace(failed.Stderr))
	}
	return raw, err
}

func readAttempts(raw []byte) ([]record.Attempt, error) {
	var out []record.Attempt
	for decoder := json.NewDecoder(bytes.NewReader(raw)); decoder.More(); {
		var attempt record.Attempt
		if err := decoder.Decode(&attempt); err != nil {
			return nil, err
		}
		out = append(out, attempt)
	}
	return out, nil
}

// neighbourPod is a typical neighbour on a cluster, a pod without exclusive CPUs.
func (o *realOptions) neighbourPod(kind, name string) *corev1.Pod {
	pod := restrictedPod(name, o.image, corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
	}, "/assay-neighbour", "--kind", kind, "--rest", strconv.Itoa(int(neighbourRests.Seconds())), "--seconds", strconv.Itoa(neighbourWorks),
		"--rounds", "1000", "--bytes", strconv.Itoa(64<<20), "--folder", "/scratch")
	pod.Spec.SecurityContext.FSGroup = ptr.To[int64](65532)
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "scratch", MountPath: "/scratch"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	return pod
}

// spans parses a neighbour's log into active spans. A span in progress counts from the end of the last pause.
func spans(log string, now time.Time) ([]calibrate.Busy, error) {
	var out []calibrate.Busy
	for line := range strings.Lines(log) {
		_, times, ok := strings.Cut(strings.TrimSpace(line), " from ")
		if !ok {
			continue
		}
		from, to, ok := strings.Cut(times, " to ")
		begin, beginErr := strconv.ParseFloat(from, 64)
		end, endErr := strconv.ParseFloat(to, 64)
		if !ok || beginErr != nil || endErr != nil {
			return nil, fmt.Errorf("the neighbour printed %q: want \"… from SECONDS to SECONDS\"", line)
		}
		out = append(out, calibrate.Busy{From: unix(begin), To: unix(end)})
	}
	if len(out) > 0 {
		if next := out[len(out)-1].To.Add(neighbourRests); next.Before(now) {
			out = append(out, calibrate.Busy{From: next, To: now})
		}
	}
	return out, nil
}

func unix(seconds float64) time.Time {
	return time.UnixMilli(int64(seconds * 1000))
}
