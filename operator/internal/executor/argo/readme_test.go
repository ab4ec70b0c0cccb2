package argo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/test/golden"
)

const (
	graphBegins = "<!-- graph -->\n"
	graphEnds   = "<!-- /graph -->\n"
)

// graph returns the graph of a Workflow in Mermaid's syntax, as Argo's page shows it, with blocks by their display names, their
// dependencies and the exit handler.
func graph(built *Workflow) string {
	var out strings.Builder
	fmt.Fprintf(&out, "```mermaid\nflowchart LR\n  subgraph wave [\"%s\"]\n", built.Annotations[titleAnnotation])
	for _, task := range built.Spec.Templates[0].DAG.Tasks {
		display := ""
		for _, parameter := range task.Arguments.Parameters {
			if parameter.Name == "display" {
				display = *parameter.Value
			}
		}
		fmt.Fprintf(&out, "    %s[\"%s\"]\n", task.Name, display)
		if before, _, waits := strings.Cut(task.Depends, ".Succeeded"); waits {
			fmt.Fprintf(&out, "    %s --> %s\n", before, task.Name)
		}
	}
	fmt.Fprintf(&out, "  end\n  wave --> %s\n```\n", built.Spec.OnExit)
	return out.String()
}

func TestReadme_ShowsTheGraphOfAWave(t *testing.T) {
	exp := testExperiment(t, nil)
	lanes := []design.Lane{{Node: "node-a"}, {Node: "node-b"}}
	wave, err := design.BuildWave(exp, 0, 0, 5, lanes)
	if err != nil {
		t.Fatal(err)
	}
	want := graph(build(t, exp, wave, lanes))
	path := filepath.Join("..", "..", "..", "..", "README.md")
	readme, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(readme), graphBegins)
	shown, after, ends := strings.Cut(rest, graphEnds)
	if !begins || !ends {
		t.Fatalf("README.md has no place for the graph: write %s and %s", strings.TrimSpace(graphBegins), strings.TrimSpace(graphEnds))
	}
	if *golden.Update {
		if err := os.WriteFile(path, []byte(before+graphBegins+want+graphEnds+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("README.md shows another graph; run go test ./internal/executor/argo -update (-want +got):\n%s", diff)
	}
}
