package release

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// commit is 40 hexadecimal digits.
var commit = strings.Repeat("0a", 20)

func released(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestProvenance_NamesSourcesAndFiles(t *testing.T) {
	dir := released(t, map[string]string{"b.tar.gz": "b", "a \"quoted\" name": "a"})
	build := Build{
		Commit: commit, Dirty: true, Builder: "https://ci.example/run/7",
		Parameters: map[string]string{"VERSION": "1.2.3", "REGISTRY": `a"b\c`},
		Tools:      map[string]string{"rustc": "rustc 1.90.0", "go": "go1.26.8"},
	}
	raw, err := Provenance(dir, build)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	subject := func(name, sum string) any {
		return map[string]any{"name": name, "digest": map[string]any{"sha256": sum}}
	}
	tool := func(name, version string) any {
		return map[string]any{"name": name, "annotations": map[string]any{"version": version}}
	}
	want := map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "predicateType": "https://slsa.dev/provenance/v1",
		"subject": []any{
			subject(`a "quoted" name`, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"),
			subject("b.tar.gz", "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"),
		},
		"predicate": map[string]any{
			"buildDefinition": map[string]any{
				"buildType":          "https://assay.dev/make-release/v1",
				"externalParameters": map[string]any{"VERSION": "1.2.3", "REGISTRY": `a"b\c`},
				"internalParameters": map[string]any{"uncommittedChanges": true},
				"resolvedDependencies": []any{
					map[string]any{"uri": "git+https://assay.dev/assay", "digest": map[string]any{"gitCommit": commit}},
					tool("go", "go1.26.8"), tool("rustc", "rustc 1.90.0"),
				},
			},
			"runDetails": map[string]any{"builder": map[string]any{"id": "https://ci.example/run/7"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statement (-want +got):\n%s", diff)
	}
	if again, err := Provenance(dir, build); err != nil || !bytes.Equal(raw, again) {
		t.Errorf("the same files gave two statements (%v)", err)
	}
}

func TestProvenance_IncompleteIsAnError(t *testing.T) {
	full := map[string]string{"a": "a"}
	for sentence, tc := range map[string]struct {
		files           map[string]string
		commit, builder string
		want            string
	}{
		"a commit that is cut short": {full, "0a0a0a0", "https://x", `invalid commit "0a0a0a0"`},
		"no commit":                  {full, "", "https://x", `invalid commit ""`},
		"a builder without a URL":    {full, commit, "me", `invalid builder "me"`},
		"a folder without files":     {nil, commit, "https://x", "has no files"},
	} {
		_, err := Provenance(released(t, tc.files), Build{Commit: tc.commit, Builder: tc.builder})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", sentence, err)
		}
	}
	if _, err := Provenance(filepath.Join(t.TempDir(), "absent"), Build{Commit: commit, Builder: "https://x"}); err == nil {
		t.Error("a folder that does not exist has a statement")
	}
}
