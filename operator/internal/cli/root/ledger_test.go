package root

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/store"

	"assay.dev/assay/operator/internal/cli/ledgers"
)

func TestProbe_Folder(t *testing.T) {
	folder := store.FolderURL(t.TempDir())
	out, _, err := assay(t, "ledger", "probe", "--ledger", folder)
	if err != nil || strings.Count(out, "yes") != len(store.AllTraits) || strings.Contains(out, "no\n") {
		t.Errorf("%v\n%s", err, out)
	}
	out, _, err = assay(t, "ledger", "probe", "--ledger", folder, "-o", "json")
	var traits []ledgers.Trait
	if err != nil || json.Unmarshal([]byte(out), &traits) != nil || len(traits) != len(store.AllTraits) || !traits[0].OK {
		t.Errorf("%v\n%s", err, out)
	}
}

// The installation fails with the message, because the job of the chart runs the second command.
func TestProbe_StoreWithoutPreconditionsRejected(t *testing.T) {
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("ETag", `"x"`) }))
	t.Cleanup(store.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	for _, command := range []string{"probe", "create-bucket"} {
		_, _, err := assay(t, "ledger", command, "--ledger", "s3://bench?endpoint="+store.URL)
		if err == nil {
			t.Errorf("%s takes it", command)
			continue
		}
		for _, word := range []string{store.URL, "If-None-Match: *", "object store unsuitable", "docs/reference/object-stores.md"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s does not say %q: %v", command, word, err)
			}
		}
	}
}
