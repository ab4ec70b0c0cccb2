package main

import (
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
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/calibrate"
	"assay.dev/assay/operator/internal/record"
)

// perturbation compares a kernel in a pod like a block's with the same binary on the bare host, turn by turn.
type perturbation struct {
	pairs     int
	program   string
	image     string
	cpu       string
	namespace string
	arguments []string
}

func newPerturbationCommand() *cobra.Command {
	p := perturbation{}
	command := &cobra.Command{
		Use: "perturbation", Short: "Compare a kernel in a pod with the same binary on this machine, as a figure", Args: cobra.NoArgs,
		Long: "Run a kernel in turns: in a pod that has what a block's pod has (Guaranteed, one whole CPU, restricted), and as a process of this machine on the same CPU. " +
			"The node must be this machine, and KUBECONFIG must lead to it. Prints pod over host: median kernel time, paired, with Student's interval on logarithms.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			figure, err := p.measure(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(figure)
		},
	}
	flags := command.Flags()
	flags.IntVar(&p.pairs, "pairs", 20, "pairs of one pod and one process")
	flags.StringVar(&p.program, "program", filepath.Join("bin", "scan-pir"), "the program, the same as /scan-pir in the image")
	flags.StringVar(&p.image, "image", "assay.dev/assay-scan:0.1.0", "image with the program")
	flags.StringVar(&p.cpu, "cpu", "1", "CPU that the kubelet's static CPU manager gives to the pod")
	flags.StringVar(&p.namespace, "namespace", "default", "namespace of the pods")
	flags.StringArrayVar(&p.arguments, "argument", []string{"run", "--rows=262144", "--iterations=60", "--batch-size=1", "--strategy=loop", "--ceilings=false"}, "arguments of the program")
	return command
}

func (p perturbation) measure(ctx context.Context, log io.Writer) (*calibrate.Figure, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var logs []float64
	for i := range p.pairs {
		var pod, host float64
		turns := []func() error{
			func() (err error) { pod, err = p.inPod(ctx, clients, i); return },
			func() (err error) { host, err = p.onHost(ctx); return },
		}
		// Who goes first alternates, so that a drift does not favour one side.
		if i%2 == 1 {
			slices.Reverse(turns)
		}
		for _, turn := range turns {
			if err := turn(); err != nil {
				return nil, fmt.Errorf("pair %d: %w", i, err)
			}
		}
		fmt.Fprintf(log, "pair %d: pod %.4g s, host %.4g s\n", i, pod, host)
		logs = append(logs, math.Log(pod/host))
	}
	if len(logs) < 3 {
		return nil, errors.New("--pairs: fewer than 3 pairs have no interval")
	}
	mean, deviation := stat.MeanStdDev(logs, nil)
	n := float64(len(logs))
	half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.975) * deviation / math.Sqrt(n)
	return &calibrate.Figure{
		Figure: "pod.perturbation", Value: math.Exp(mean), Unit: "x", Low: math.Exp(mean - half), High: math.Exp(mean + half), Samples: len(logs),
	}, nil
}

// kernelTime is the median latency that the program reports.
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

func (p perturbation) inPod(ctx context.Context, clients kubernetes.Interface, pair int) (float64, error) {
	pods := clients.CoreV1().Pods(p.namespace)
	resources := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("512Mi")}
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: fmt.Sprintf("assay-perturbation-%d-", pair)},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
			Tolerations: []corev1.Toleration{{Key: "assay.dev/leased", Operator: corev1.TolerationOpExists}},
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "main", Image: p.image, Command: append([]string{"/" + filepath.Base(p.program)}, p.arguments...),
				Resources:       corev1.ResourceRequirements{Requests: resources, Limits: resources},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("create pod: %w", err)
	}
	defer func() {
		_ = pods.Delete(context.WithoutCancel(ctx), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	}()
	if err := ended(ctx, clients, p.namespace, pod.Name); err != nil {
		return 0, err
	}
	raw, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("log of pod %s: %w", pod.Name, err)
	}
	return kernelTime(raw)
}

// ended waits until a pod has succeeded.
func ended(ctx context.Context, clients kubernetes.Interface, namespace, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	events, err := clients.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
	if err != nil {
		return fmt.Errorf("watch pod %s: %w", name, err)
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		switch {
		case !ok || event.Type == watch.Deleted:
			return fmt.Errorf("pod %s is gone", name)
		case pod.Status.Phase == corev1.PodSucceeded:
			return nil
		case pod.Status.Phase == corev1.PodFailed:
			return fmt.Errorf("pod %s failed: %s %s", name, pod.Status.Reason, pod.Status.Message)
		}
	}
	return fmt.Errorf("pod %s did not end within two minutes", name)
}
