package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const mountinfo = `21 1 254:0 / / rw - ext4 /dev/vda rw
40 21 0:41 / /var/lib/assay-cluster/ns rw - ext4 /dev/vda rw
41 40 0:42 / /var/lib/assay-cluster/ns/mnt rw - nsfs nsfs rw
42 21 0:43 / /var/lib/assay-cluster/a\040b rw - tmpfs tmpfs rw
43 21 0:44 / /var/lib/assay-cluster-of-another rw - tmpfs tmpfs rw
44 21 0:45 / /var/lib/assay-cluster rw - tmpfs tmpfs rw
`

func TestBelowFindsOursOnlyDeepestFirst(t *testing.T) {
	want := []string{
		"/var/lib/assay-cluster", "/var/lib/assay-cluster/a b", "/var/lib/assay-cluster/ns/mnt", "/var/lib/assay-cluster/ns",
	}
	if diff := cmp.Diff(want, mountsBelow(mountinfo, "/var/lib/assay-cluster")); diff != "" {
		t.Error(diff)
	}
}

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{`/a\040b`: "/a b", `/a\134b`: `/a\b`, `/plain`: "/plain", `/end\04`: `/end\04`} {
		if got := unescape(in); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}
