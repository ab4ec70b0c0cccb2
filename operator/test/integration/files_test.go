package integration

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kyaml "sigs.k8s.io/yaml"

	"assay.dev/assay/operator/internal/manifest"
)

// mutations returns the number of mutated files.
func mutations() int {
	if testing.Short() {
		return 300
	}
	return 1500
}

// A file that assay accepts is accepted by the API server as assay sends it; a file that assay rejects is rejected as kubectl sends it.
// A file that passes a command offline is thus valid on a cluster, and every object of a cluster can be read.
func TestFiles_ReadAcceptsTheSameAsAPIServer(t *testing.T) {
	t.Parallel()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "files-"}}
	if err := admin.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	take := func(object client.Object) error {
		object.SetNamespace(namespace.Name)
		return admin.Create(t.Context(), object, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
	}
	samples := sampleDocuments(t)
	file := filepath.Join(t.TempDir(), "file.yaml")
	taken, refused := 0, 0
	for seed := range uint64(mutations()) {
		random := rand.New(rand.NewPCG(seed, 18))
		document := samples[random.IntN(len(samples))]()
		for range 1 + random.IntN(2) {
			mistake(random, document)
		}
		raw, err := yaml.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		set, err := manifest.Read(file)
		if err != nil {
			refused++
			// The API server would silently drop such a parameter.
			if kubectl := asKubectl(raw, take); kubectl == nil && !strings.Contains(err.Error(), "has no value: write one") {
				t.Errorf("seed %d: the API server accepts a file that assay rejects: %v\n%s", seed, err, raw)
			}
			continue
		}
		taken++
		for i := range set.Runs {
			if err := take(&set.Runs[i]); err != nil {
				t.Errorf("seed %d: the API server rejects a file that assay accepts: %v\n%s", seed, err, raw)
			}
		}
		for i := range set.Templates {
			if err := take(&set.Templates[i]); err != nil {
				t.Errorf("seed %d: the API server rejects a file that assay accepts: %v\n%s", seed, err, raw)
			}
		}
	}
	t.Logf("%d files taken, %d refused", taken, refused)
	if taken < mutations()/10 || refused < mutations()/10 {
		t.Errorf("%d files taken and %d refused: the mutations try one side only", taken, refused)
	}
}

// asKubectl converts a file to an object as kubectl does.
func asKubectl(raw []byte, take func(client.Object) error) error {
	converted, err := kyaml.YAMLToJSONStrict(raw)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(converted); err != nil {
		return err
	}
	return take(object)
}

// sampleDocuments returns the shipped objects, as generators of independent copies.
func sampleDocuments(t *testing.T) []func() *yaml.Node {
	t.Helper()
	root := filepath.Join("..", "..", "..")
	var out []func() *yaml.Node
	for _, pattern := range []string{"workflows/*/*/*.yaml", "charts/assay/files/benchmarktemplates/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for number := range 100 {
				parse := func() *yaml.Node { return documentOf(t, raw, number) }
				document := parse()
				if document == nil {
					break
				}
				if value := valueAt(document, "apiVersion"); value != nil && strings.HasPrefix(value.Value, "assay.dev/") {
					out = append(out, parse)
				}
			}
		}
	}
	if len(out) < 10 {
		t.Fatalf("only %d sample documents", len(out))
	}
	return out
}

// documentOf returns the nth document of a file, or nil.
func documentOf(t *testing.T, raw []byte, number int) *yaml.Node {
	t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	for i := 0; ; i++ {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			t.Fatal(err)
		}
		if i == number {
			return document.Content[0]
		}
	}
}

func valueAt(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// replacements are typical wrong values.
var replacements = []string{
	"", "~", "x", "X", "-1", "0", "1", "3", "1.5", "0.9", "1e3", "1e1.5", "0x10", "010", "99999999999", "1e30", "true", "no", "5m", "60", "-1h", "99999999h",
	"10Gi", "50%", "-5%", `"7"`, `""`, "[]", "{}", "[1]", "{a: 1}", "RatioAtMost", "LowerIsBetter", "2026-01-02", "latency", "throughput", "a b", ".inf",
	`"` + strings.Repeat("long", 100) + `"`,
}

// mistake changes one random place of the spec.
func mistake(random *rand.Rand, document *yaml.Node) {
	var all []*yaml.Node
	var collect func(*yaml.Node)
	collect = func(node *yaml.Node) {
		if len(node.Content) > 0 {
			all = append(all, node)
		}
		for _, inner := range node.Content {
			collect(inner)
		}
	}
	spec := valueAt(document, "spec")
	collect(spec)
	if len(all) == 0 {
		return
	}
	parent := all[random.IntN(len(all))]
	width := 1 // of an element of the parent
	if parent.Kind == yaml.MappingNode {
		width = 2
	}
	at := width * random.IntN(len(parent.Content)/width)
	switch random.IntN(5) {
	case 0: // left out
		parent.Content = append(parent.Content[:at:at], parent.Content[at+width:]...)
	case 1: // written twice
		parent.Content = append(parent.Content[:len(parent.Content):len(parent.Content)], parent.Content[at:at+width]...)
	case 2: // misspelt
		word := parent.Content[at]
		if word.Kind == yaml.ScalarNode && len(word.Value) > 1 {
			cut := random.IntN(len(word.Value))
			word.Value = word.Value[:cut] + word.Value[cut+1:]
		}
	default: // another value
		var value yaml.Node
		text := replacements[random.IntN(len(replacements))]
		if err := yaml.Unmarshal([]byte(fmt.Sprintf("[%s]", text)), &value); err != nil {
			panic(err) // The list above is wrong.
		}
		*parent.Content[at+width-1] = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
		if items := value.Content[0].Content; len(items) > 0 {
			*parent.Content[at+width-1] = *items[0]
		}
	}
}
