package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
	"assay.dev/assay/operator/internal/store"
)

func TestTheStoresCredentialsAreFoundUnderTheKeysTheyHave(t *testing.T) {
	secret := func(data ...string) client.Object {
		out := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "s3"}, Data: map[string][]byte{}}
		for _, key := range data {
			out.Data[key] = []byte("value of " + key)
		}
		return out
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		keys    []string
		env     string
		want    string
		refused string
	}{
		"as the chart makes them":                    {objects: []client.Object{secret("accessKey", "secretKey")}, want: "value of accessKey"},
		"under names of one's own":                   {objects: []client.Object{secret("id", "key")}, keys: []string{"id", "key"}, want: "value of id"},
		"under names that nobody told":               {objects: []client.Object{secret("id", "key")}, refused: `no key "accessKey", it has id, key: name its keys with --secret-keys`},
		"under names that nobody told, keys at hand": {objects: []client.Object{secret("id", "key")}, env: "mine"},
		"nowhere":                             {refused: "--secret"},
		"nowhere, keys at hand":               {env: "mine"},
		"with one key name only":              {objects: []client.Object{secret("id", "key")}, keys: []string{"id"}, refused: "name two keys"},
		"with an empty key name":              {objects: []client.Object{secret("id", "key")}, keys: []string{"id", ""}, refused: "name two keys"},
		"with the secret key's name mistyped": {objects: []client.Object{secret("id", "key")}, keys: []string{"id", "kye"}, refused: `no key "kye"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_ACCESS_KEY_ID", tc.env)
			from := source{secret: "s3", keys: tc.keys}
			if tc.keys == nil {
				from.keys = []string{"accessKey", "secretKey"}
			}
			got, err := from.credentials(t.Context(), fake.NewClientBuilder().WithObjects(tc.objects...).Build(), "team-a")
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Fatalf("error %v, want one that says %q", err, tc.refused)
				}
				return
			}
			if err != nil || got.AccessKey != tc.want {
				t.Errorf("access key %q, %v; want %q", got.AccessKey, err, tc.want)
			}
		})
	}
}

// What two gates saved may be of two namespaces, and a run beside a gate's is of the namespace that the flags name. What a gate saved is
// its own, and nobody takes that of an earlier one for it.
func TestTheRunOfAGateIsOfItsNamespaceAndOthersAreNot(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "mine")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	where := store.FolderURL(judgedLedger(t))
	rest, err := url.Parse(namespaces(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	var mutex sync.Mutex
	var asked []string
	saved := filepath.Join(t.TempDir(), "saved.json")
	others := httputil.NewSingleHostReverseProxy(rest)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		if last := len(path) - 1; last < 2 || path[last-1] != "benchmarkruns" {
			others.ServeHTTP(w, r)
			return
		}
		run := aRun(path[len(path)-3], path[len(path)-1], complete(assayv1alpha1.VerdictGo))
		run.SetGroupVersionKind(runKind)
		run.Status.Ledger, run.Status.Wave = where, ptr.To[int32](0)
		mutex.Lock()
		asked = append(asked, run.Namespace+"/"+run.Name)
		if _, err := os.Stat(saved); err == nil {
			t.Error("while a gate waits, the file has the answer of an earlier one")
		}
		mutex.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(run); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	gate := func(namespace string) string {
		answer := &gateAnswer{Namespace: namespace, Name: "scan", Verdict: assayv1alpha1.VerdictGo, Passed: true}
		file := filepath.Join(t.TempDir(), "gate.json")
		if err := answer.keep(file); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for name, tc := range map[string]struct{ a, b, want string }{
		"two gates":             {gate("team-a"), gate("team-b"), "team-a/scan team-b/scan"},
		"a run beside a gate's": {gate("team-a"), "mine", "team-a/scan here/mine"},
		"a gate's beside a run": {"mine", gate("team-b"), "here/mine team-b/scan"},
	} {
		asked = nil
		if _, _, err := assay(t, "compare", tc.a, tc.b, "-n", "here", "--server", server.URL); err != nil {
			t.Fatal(name, err)
		}
		if got := strings.Join(asked, " "); got != tc.want {
			t.Errorf("%s: %s was read, want %s", name, got, tc.want)
		}
	}
	if err := os.WriteFile(saved, []byte(`{"verdict": "Go", "passed": true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := assay(t, "gate", "scan", "-n", "here", "--server", server.URL, "--save", saved); err != nil {
		t.Fatal(err)
	}
	if answer := readGate(t, saved); answer.Name != "scan" || !answer.Passed {
		t.Errorf("saved is %+v", answer)
	}
}
