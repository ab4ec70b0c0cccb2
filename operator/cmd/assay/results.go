package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/report"
)

func newResultsCommand() *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	var form, secret string
	command := &cobra.Command{
		Use:   "results NAME",
		Short: "Print what a run measured, from its ledger",
		Long: "Print what a run measured, from its ledger. An object store inside the cluster is reached through a port-forward; " +
			"its credentials come from the Secret that the chart puts into every run namespace.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cluster, err := connect(flags)
			if err != nil {
				return err
			}
			return printResults(cmd.Context(), cluster, args[0], form, secret, cmd.OutOrStdout())
		},
	}
	command.Flags().StringVarP(&form, "output", "o", "table", "table, report (Markdown), html, csv, json (the whole analysis) or attempts (every attempt, one JSON object a line)")
	command.Flags().StringVar(&secret, "secret", "assay-ledger", "Secret with the object store's credentials, in the run's namespace")
	flags.AddFlags(command.Flags())
	return command
}

func printResults(ctx context.Context, cluster *cluster, name, form, secret string, out io.Writer) error {
	var run assayv1alpha1.BenchmarkRun
	if err := cluster.Get(ctx, types.NamespacedName{Namespace: cluster.namespace, Name: name}, &run); err != nil {
		return fmt.Errorf("BenchmarkRun %s/%s: %w", cluster.namespace, name, err)
	}
	if run.Status.Wave == nil || run.Status.Ledger == "" {
		return fmt.Errorf("BenchmarkRun %s/%s has measured nothing yet: see assay watch %s", run.Namespace, run.Name, run.Name)
	}
	store, closeStore, err := openRunLedger(ctx, cluster, &run, secret)
	if err != nil {
		return err
	}
	defer closeStore()

	wave := int(*run.Status.Wave)
	switch form {
	case "table":
		return printTable(ctx, store, wave, out)
	case "report":
		return copyObject(ctx, store, ledger.ReportKey(wave), out)
	case "html":
		return copyObject(ctx, store, ledger.HTMLKey(wave), out)
	case "csv":
		return copyObject(ctx, store, ledger.TableKey(wave), out)
	case "json":
		return copyObject(ctx, store, ledger.AnalysisKey(wave), out)
	case "attempts":
		return printAttempts(ctx, store, out)
	default:
		return &exitCode{exitUsage, fmt.Errorf("--output is %q: use table, report, html, csv, json or attempts", form)}
	}
}

func printTable(ctx context.Context, store ledger.Store, wave int, out io.Writer) error {
	frozen, err := ledger.ReadExperiment(ctx, store)
	if err != nil {
		return err
	}
	raw, err := store.Get(ctx, ledger.AnalysisKey(wave))
	if err != nil {
		return fmt.Errorf("ledger object %s: %w", ledger.AnalysisKey(wave), err)
	}
	var found analysis.Analysis
	if err := json.Unmarshal(raw, &found); err != nil {
		return fmt.Errorf("ledger object %s: %w", ledger.AnalysisKey(wave), err)
	}
	return report.Terminal(out, frozen, &found)
}

func copyObject(ctx context.Context, store ledger.Store, key string, out io.Writer) error {
	raw, err := store.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("ledger object %s: %w", key, err)
	}
	_, err = out.Write(raw)
	return err
}

// printAttempts prints every attempt as it was written, on one line each.
func printAttempts(ctx context.Context, store ledger.Store, out io.Writer) error {
	keys, err := store.List(ctx, ledger.AttemptsPrefix)
	if err != nil {
		return err
	}
	for _, key := range keys {
		raw, err := store.Get(ctx, key)
		if err != nil {
			return fmt.Errorf("ledger object %s: %w", key, err)
		}
		var line bytes.Buffer
		if err := json.Compact(&line, raw); err != nil {
			return fmt.Errorf("ledger object %s is no JSON: %w", key, err)
		}
		line.WriteByte('\n')
		if _, err := out.Write(line.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// openRunLedger opens the run's ledger from outside the cluster.
func openRunLedger(ctx context.Context, cluster *cluster, run *assayv1alpha1.BenchmarkRun, secret string) (ledger.Store, func(), error) {
	address, err := url.Parse(run.Status.Ledger)
	if err != nil {
		return nil, nil, fmt.Errorf("status.ledger %q: %w", run.Status.Ledger, err)
	}
	var credentials corev1.Secret
	if err := cluster.Get(ctx, types.NamespacedName{Namespace: run.Namespace, Name: secret}, &credentials); err != nil {
		return nil, nil, fmt.Errorf("credentials of the ledger: Secret %s/%s: %w", run.Namespace, secret, err)
	}
	closeStore := func() {}
	query := address.Query()
	if endpoint, err := url.Parse(query.Get("endpoint")); err == nil && insideCluster(endpoint.Hostname()) {
		port, stop, err := forward(ctx, cluster, endpoint)
		if err != nil {
			return nil, nil, err
		}
		closeStore = stop
		query.Set("endpoint", fmt.Sprintf("%s://%s", endpoint.Scheme, net.JoinHostPort("127.0.0.1", strconv.Itoa(port))))
		address.RawQuery = query.Encode()
	}
	store, err := ledger.Open(ctx, address.String(), ledger.Options{
		AccessKey: string(credentials.Data["accessKey"]),
		SecretKey: string(credentials.Data["secretKey"]),
	})
	if err != nil {
		closeStore()
		return nil, nil, err
	}
	return store, closeStore, nil
}

// insideCluster recognises service.namespace.svc, with or without the cluster's domain.
func insideCluster(host string) bool {
	parts := strings.Split(host, ".")
	return len(parts) >= 3 && parts[2] == "svc"
}

// forward makes a service's port reachable on a free port of this machine until it is stopped.
func forward(ctx context.Context, cluster *cluster, endpoint *url.URL) (port int, stop func(), err error) {
	parts := strings.Split(endpoint.Hostname(), ".")
	name := types.NamespacedName{Namespace: parts[1], Name: parts[0]}
	pod, target, err := behind(ctx, cluster, name, endpoint.Port())
	if err != nil {
		return 0, nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(cluster.config)
	if err != nil {
		return 0, nil, err
	}
	server, err := url.Parse(cluster.config.Host)
	if err != nil {
		return 0, nil, err
	}
	server = server.JoinPath("api", "v1", "namespaces", pod.Namespace, "pods", pod.Name, "portforward")
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, server)

	stopChannel, ready, failed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", target)}, stopChannel, ready, io.Discard, io.Discard)
	if err != nil {
		return 0, nil, err
	}
	go func() { failed <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-failed:
		return 0, nil, fmt.Errorf("port-forward to pod %s/%s: %w", pod.Namespace, pod.Name, err)
	case <-time.After(30 * time.Second):
		close(stopChannel)
		return 0, nil, fmt.Errorf("port-forward to pod %s/%s: not ready after 30s", pod.Namespace, pod.Name)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		close(stopChannel)
		return 0, nil, err
	}
	return int(ports[0].Local), func() { close(stopChannel) }, nil
}

// behind finds a ready pod behind the service and the container port that the service port leads to.
func behind(ctx context.Context, cluster *cluster, name types.NamespacedName, port string) (*corev1.Pod, int32, error) {
	var service corev1.Service
	if err := cluster.Get(ctx, name, &service); err != nil {
		return nil, 0, fmt.Errorf("read Service %s: %w", name, err)
	}
	var pods corev1.PodList
	if err := cluster.List(ctx, &pods, client.InNamespace(name.Namespace), client.MatchingLabels(service.Spec.Selector)); err != nil {
		return nil, 0, fmt.Errorf("pods of Service %s: %w", name, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !isReady(pod) {
			continue
		}
		for _, servicePort := range service.Spec.Ports {
			if strconv.Itoa(int(servicePort.Port)) == port {
				return pod, containerPort(pod, &servicePort), nil
			}
		}
		return nil, 0, fmt.Errorf("no port %s at Service %s", port, name)
	}
	return nil, 0, fmt.Errorf("no ready pod behind Service %s: see kubectl get pods -n %s", name, name.Namespace)
}

func containerPort(pod *corev1.Pod, port *corev1.ServicePort) int32 {
	if port.TargetPort.StrVal == "" {
		if port.TargetPort.IntVal != 0 {
			return port.TargetPort.IntVal
		}
		return port.Port
	}
	for _, container := range pod.Spec.Containers {
		for _, candidate := range container.Ports {
			if candidate.Name == port.TargetPort.StrVal {
				return candidate.ContainerPort
			}
		}
	}
	return port.Port
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
