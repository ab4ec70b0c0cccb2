package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"assay.dev/assay/operator/calibration/calibrate"
	"assay.dev/assay/operator/internal/analysis/stats"
	"assay.dev/assay/operator/internal/quantity"
	"assay.dev/assay/operator/internal/record"
)

// perturbation compares a kernel in a pod like a block's with the same binary on the host, in alternation.
type perturbation struct {
	blocks, pairs int
	program       string
	image         string
	cpu           string
	namespace     string
	arguments     []string
}

func newPerturbationCommand() *cobra.Command {
	p := perturbation{}
	command := &cobra.Command{
		Use: "perturbation", Short: "Compare a kernel in a pod with the same binary on this machine, as a figure", Args: cobra.NoArgs,
		Long: "Run a kernel alternately in a pod configured like a block's pod (Guaranteed, one whole CPU, restricted) and as a process " +
			"of this machine on the same CPU. The node must be this machine, and KUBECONFIG must lead to it. " +
			"A block is a separate pod with several pairs, the first of which is a warm-up. Prints pod over host: " +
			"median kernel time, the median of a block's pairs, the geometric mean over blocks with Student's interval.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			figure, err := p.measure(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return figure.Write(cmd.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.IntVar(&p.blocks, "blocks", 24, "pods")
	flags.IntVar(&p.pairs, "pairs", 16, "pairs of one process in the pod and one on this machine, for each pod")
	flags.StringVar(&p.program, "program", filepath.Join("bin", "scan-pir"), "the program, the same as /scan-pir in the image")
	flags.StringVar(&p.image, "image", "assay.dev/assay-scan:0.1.0", "image with the program")
	flags.StringVar(&p.cpu, "cpu", "1", "CPU that the kubelet's static CPU manager gives to the pod")
	flags.StringVar(&p.namespace, "namespace", "default", "namespace of the pods")
	flags.StringArrayVar(&p.arguments, "argument",
		[]string{"run", "--rows=262144", "--iterations=20", "--batch-size=1", "--strategy=loop", "--ceilings=false"}, "arguments of the program")
	return command
}

func (p perturbation) measure(ctx context.Context, log io.Writer) (calibrate.Figure, error) {
	if p.blocks < 3 || p.pairs < 2 {
		return calibrate.Figure{}, errors.New(
			"--blocks, --pairs: at least 3 blocks are needed for an interval, and 2 pairs because the first one is a warm-up")
	}
	var logs []float64
	for i := range p.blocks {
		middle, err := p.block(ctx, i)
		if err != nil {
			return calibrate.Figure{}, fmt.Errorf("block %d: %w", i, err)
		}
		fmt.Fprintf(log, "block %d: pod over host %s\n", i, quantity.Decimals(math.Exp(middle), 4))
		logs = append(logs, middle)
	}
	return calibrate.RatioFigure("pod.perturbation", "x", logs), nil
}

// block returns the median log ratio of pod to host over the pairs of one pod. The median is robust against single disturbed processes.
func (p perturbation) block(ctx context.Context, number int) (_ float64, err error) {
	resources := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("512Mi")}
	// The sleep exceeds the lifetime of the pod.
	pod := restrictedPod(fmt.Sprintf("assay-perturbation-%d-%d", time.Now().UnixMilli(), number), p.image,
		corev1.ResourceRequirements{Requests: resources, Limits: resources},
		"/assay-neighbour", "--kind", "cpu", "--seconds", "1", "--rest", "3600")
	pod.Spec.Tolerations = []corev1.Toleration{{Key: "assay.dev/leased", Operator: corev1.TolerationOpExists}}
	if err := kubectl(ctx, p.namespace, pod, nil, "create", "-f", "-"); err != nil {
		return 0, err
	}
	defer func() {
		ctx := context.WithoutCancel(ctx)
		err = errors.Join(err, kubectl(ctx, p.namespace, nil, nil, "delete", "pod", pod.Name, "--grace-period=0", "--force"))
	}()
	if err := kubectl(ctx, p.namespace, nil, nil, "wait", "pod/"+pod.Name, "--for=condition=Ready", "--timeout=2m"); err != nil {
		return 0, err
	}
	var logs []float64
	for pair := range p.pairs {
		var inside, outside float64
		turns := []func() error{
			func() (err error) { inside, err = p.inPod(ctx, pod.Name); return },
			func() (err error) { outside, err = p.onHost(ctx); return },
		}
		// Alternate the order, so that drift does not favour one side.
		if pair%2 == 1 {
			slices.Reverse(turns)
		}
		for _, turn := range turns {
			if err := turn(); err != nil {
				return 0, fmt.Errorf("pair %d: %w", pair, err)
			}
		}
		if pair > 0 {
			logs = append(logs, math.Log(inside/outside))
		}
	}
	return stats.Median(logs), nil
}

// kernelTime returns the median latency that the program reports.
func kernelTime(raw []byte) (float64, error) {
	result := record.Result{}
	if err := json.Unmarshal(raw, &result); err != nil {
		return 0, fmt.Errorf("%w in %.200q", err, raw)
	}
	samples := slices.Sorted(slices.Values(result.Metrics["latency"].Samples))
	if len(samples) == 0 {
		return 0, errors.New("the program reported no latency")
	}
	return samples[len(samples)/2], nil
}

func (p perturbation) onHost(ctx context.Context) (float64, error) {
	command := exec.CommandContext(ctx, "taskset", append([]string{"--cpu-list", p.cpu, p.program}, p.arguments...)...)
	raw, err := command.Output()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", command, err)
	}
	return kernelTime(raw)
}

// inPod runs the program as a process of the pod's container, as assay-runner does with trials.
func (p perturbation) inPod(ctx context.Context, pod string) (float64, error) {
	var out bytes.Buffer
	if err := kubectl(ctx, p.namespace, nil, &out,
		append([]string{"exec", pod, "--container=main", "--", "/" + filepath.Base(p.program)}, p.arguments...)...); err != nil {
		return 0, err
	}
	return kernelTime(out.Bytes())
}
