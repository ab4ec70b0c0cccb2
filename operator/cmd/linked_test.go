package main

import (
	"os/exec"
	"strings"
	"testing"
)

// The operator must not link servers, because every page of its program counts as memory of its pod.
func TestOperator_LinksNoServer(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, linked := range strings.Fields(string(out)) {
		for _, not := range []string{"k8s.io/apiserver/", "github.com/google/cel-go/", "google.golang.org/grpc/", "go.opentelemetry.io/"} {
			if strings.HasPrefix(linked, not) {
				t.Errorf("the operator is linked with %s: see docs/decisions/layers.md, and `go mod why` for who imports it", linked)
			}
		}
	}
}
