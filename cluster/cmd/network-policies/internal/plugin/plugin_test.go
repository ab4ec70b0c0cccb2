package plugin

import (
	"strings"
	"testing"
)

func TestPlugin_UnenforceablePodDoesNotStart(t *testing.T) {
	for sentence, tc := range map[string]struct{ command, stdin, want string }{
		"no server listens":         {"ADD", `{"socket": "/nowhere", "prevResult": {"ips": [{"address": "10.0.0.5/24"}]}}`, "network policies: "},
		"no address was given":      {"ADD", `{"socket": "/nowhere", "prevResult": {"ips": []}}`, "0 addresses"},
		"it is the first plugin":    {"ADD", `{"socket": "/nowhere"}`, "prevResult"},
		"the command is not known":  {"GC", `{}`, `CNI_COMMAND is "GC"`},
		"removing a pod is nothing": {"DEL", `{}`, ""},
	} {
		_, err := Run(t.Context(), tc.command, "K8S_POD_NAME=a", strings.NewReader(tc.stdin))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: got %v, want %q", sentence, err, tc.want)
		}
	}
}
