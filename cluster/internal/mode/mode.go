// Package mode selects the kind of cluster that the demo and the tests use, and runs a kind cluster in a Docker engine.
package mode

import (
	"context"
	"fmt"
	"strings"
	"time"

	"assay.dev/assay/cluster/internal/host"
)

// Mode is a kind of cluster.
type Mode string

// The kinds of clusters.
const (
	// Embedded is the one-node cluster of this program.
	Embedded Mode = "embedded"
	// Kind is a kind cluster of our own in a Docker engine.
	Kind Mode = "kind"
	// Existing is the cluster of the user's current kubeconfig.
	Existing Mode = "existing"
)

// Parse reads a mode as a user writes it; empty means: choose one.
func Parse(text string) (Mode, error) {
	switch mode := Mode(text); mode {
	case "", Embedded, Kind, Existing:
		return mode, nil
	}
	return "", fmt.Errorf("CLUSTER is %q: use embedded, kind, existing, or nothing for the first that can work", text)
}

// Facts are the inputs of the decision. Each is nil, or the reason why that mode cannot work.
type Facts struct {
	// Docker is nil where a Docker engine answers.
	Docker error
	// Embedded is nil where the embedded cluster can run.
	Embedded error
}

// Decide picks the mode, and reports why. A cluster the user already has is never chosen unasked: installing into it is not
// ours to decide.
func Decide(asked Mode, facts Facts) (Mode, string, error) {
	switch {
	case asked != "":
		return asked, fmt.Sprintf("CLUSTER=%s asks for it", asked), nil
	case facts.Docker == nil:
		return Kind, "a Docker engine answers (CLUSTER=embedded runs without it)", nil
	case facts.Embedded == nil:
		return Embedded, fmt.Sprintf("no Docker engine answers (%s), and this machine can run the embedded cluster", short(facts.Docker)), nil
	}
	return "", "", fmt.Errorf("no cluster can run here:\n  kind: %s\n  embedded: %w\nuse CLUSTER=existing to install into the cluster your "+
		"current kubeconfig points to",
		short(facts.Docker), facts.Embedded)
}

// Docker returns nil where a Docker engine answers.
func Docker(ctx context.Context, run host.Runner) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := run.Output(ctx, host.Command{Path: "docker", Args: []string{"version", "--format", "{{.Server.Version}}"}})
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(out)) == "" {
		return fmt.Errorf("docker names no server version")
	}
	return nil
}

func short(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(strings.TrimSpace(line), ":")
}
