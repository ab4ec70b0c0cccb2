// Command network-policies enforces the cluster's NetworkPolicies with the kernel's packet filter. Called by the container runtime
// (CNI_COMMAND is set) it is a plugin of the pod network, which holds a pod back until its rules are there.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"assay.dev/assay/cluster/cmd/network-policies/internal/enforcer"
	"assay.dev/assay/cluster/cmd/network-policies/internal/plugin"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if command := os.Getenv("CNI_COMMAND"); command != "" {
		os.Exit(asPlugin(ctx, command))
	}
	if err := serve(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "network-policies:", err)
		os.Exit(1)
	}
}

// asPlugin answers as the pod network's specification wants it: also errors go to standard output.
func asPlugin(ctx context.Context, command string) int {
	out, err := plugin.Run(ctx, command, os.Getenv("CNI_ARGS"), os.Stdin)
	status := 0
	if err != nil {
		out, _ = json.Marshal(map[string]any{"cniVersion": "0.4.0", "code": 100, "msg": err.Error()})
		status = 1
	}
	os.Stdout.Write(out)
	return status
}

func serve(ctx context.Context) error {
	kubeconfig := flag.String("kubeconfig", "", "file with the address of the API server and credentials for it")
	health := flag.String("health", "", "address to answer /healthz on")
	socket := flag.String("socket", "", "socket that the pod network's plugin asks on")
	nft := flag.String("nft", "nft", "the program nft")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	keeper, err := enforcer.New(client, func(ctx context.Context, rules string) error { return apply(ctx, *nft, rules) })
	if err != nil {
		return err
	}
	if err := os.Remove(*socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	public, private := http.NewServeMux(), http.NewServeMux()
	public.HandleFunc("GET /healthz", keeper.ServeHealth)
	private.HandleFunc("POST /expect", keeper.ServeExpect)
	failed := make(chan error, 2)
	for _, server := range []struct {
		network, address string
		handler          http.Handler
	}{{"tcp", *health, public}, {"unix", *socket, private}} {
		listener, err := (&net.ListenConfig{}).Listen(ctx, server.network, server.address)
		if err != nil {
			return err
		}
		go func() {
			failed <- (&http.Server{Handler: server.handler, ReadHeaderTimeout: 5 * time.Second}).Serve(listener)
		}()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		keeper.Run(ctx, func(err error) { fmt.Fprintln(os.Stderr, time.Now().UTC().Format(time.RFC3339), err) })
	}()
	select {
	case err := <-failed:
		return err
	case <-ended:
		return nil
	}
}

// apply hands the kernel a transaction.
func apply(ctx context.Context, nft, rules string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, nft, "-f", "-")
	cmd.Stdin = strings.NewReader(rules)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, strings.TrimSpace(said.String()))
	}
	return nil
}
