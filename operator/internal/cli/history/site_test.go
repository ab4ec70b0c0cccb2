package history

import (
	"strings"
	"testing"

	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/store"
)

func TestSite_ReportAddresses(t *testing.T) {
	key := ledger.HTMLKey(0)
	for name, tc := range map[string]struct {
		store, here, served string
		want, says          string
	}{
		"in a folder beside the pages, as a relative path": {
			store: "file:///bench/ledgers/one", here: "file:///bench/public", want: "../ledgers/one/" + key,
		},
		"in a folder whose name has a blank": {
			store: "file:///bench/my%20ledgers/one", here: "file:///bench/public", want: "../my%20ledgers/one/" + key,
		},
		"in a served store, without the query of its URL": {
			store: "s3://assay/runs/one?endpoint=http://minio:9000", here: "file:///bench/public", served: "s3://assay=https://bench.example.org/l/",
			want: "https://bench.example.org/l/runs/one/" + key,
		},
		"not above the served folder": {
			store: "s3://assay/runs/../../login", here: "file:///bench/public", served: "s3://assay/runs=https://bench.example.org/l", says: "outside",
		},
		"nor through an alias of a parent": {
			store: "s3://assay/runs/%2e%2e/login", here: "file:///bench/public",
			served: "s3://assay/runs=https://bench.example.org/l", says: "outside",
		},
		"not in a bucket whose name only begins the same": {
			store: "s3://assay-other/runs/one", here: "file:///bench/public", served: "s3://assay=https://bench.example.org", says: "--served",
		},
		"not in a store that only programs read": {
			store: "s3://assay/runs/one", here: "file:///bench/public", says: "--reports copy",
		},
		"not inside an archive": {
			store: "file:///bench/one" + store.ArchiveExtension, here: "file:///bench/public", says: "inside an archive",
		},
		"not in a folder, from pages in a bucket": {
			store: "file:///bench/ledgers/one", here: "s3://pages/bench", says: "pages in an object store",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := siteOptions{}
			if tc.served != "" {
				o.served = []string{tc.served}
			}
			got, err := o.addressOf(tc.store, key, tc.here)
			if tc.says != "" {
				if err == nil || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("got %q, %v; want an error that says %q", got, err, tc.says)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}
