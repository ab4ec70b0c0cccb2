package turn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Classes of pods, as kubelet names the parents of their groups.
const (
	guaranteed = ""
	burstable  = "burstable"
	unknown    = "unknown"
)

// call is one call of the plugin by a node's container runtime, of a pod of a class.
func call(t *testing.T, folder, command, node, container, class string, now time.Time) error {
	t.Helper()
	group := filepath.Join(folder, "groups", class, "pod"+container)
	if err := os.MkdirAll(group, 0o700); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"CNI_COMMAND": command, "CNI_CONTAINERID": container,
		"CNI_ARGS": "IgnoreUnknown=1;K8S_POD_NAMESPACE=lab;K8S_POD_NAME=" + container + ";K8S_POD_UID=" + container,
	}
	input := fmt.Sprintf(`{"folder":%q,"node":%q,"pods":["/elsewhere",%q],"prevResult":{"ips":[]}}`, folder, node, folder+"/groups")
	out, err := run(func(name string) string { return env[name] }, strings.NewReader(input), now)
	if want := `{"ips":[]}`; command == "ADD" && err == nil && string(out) != want {
		t.Errorf("it passes on %s, want %s", out, want)
	}
	return err
}

func TestTurn_OneNodeAtATime(t *testing.T) {
	now := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	folder := t.TempDir()
	for i, step := range []struct {
		after                           time.Duration
		command, node, container, group string
		waitsFor                        string
	}{
		{0, "ADD", "a", "first", guaranteed, ""},
		{0, "ADD", "a", "second", guaranteed, ""}, // Pods of one node have different CPUs.
		{0, "ADD", "b", "third", burstable, ""},   // It has no exclusive CPU.
		{1, "ADD", "b", "fourth", guaranteed, "lab/"},
		{2, "DEL", "a", "first", guaranteed, ""},
		{3, "ADD", "b", "fourth", guaranteed, "lab/second"},
		{4, "DEL", "a", "second", guaranteed, ""},
		{5, "ADD", "a", "fifth", guaranteed, "lab/fourth"}, // It came later than one that waits.
		{6, "ADD", "b", "fourth", guaranteed, ""},
		{7, "ADD", "a", "fifth", guaranteed, "lab/fourth"},
		{8, "DEL", "b", "fourth", guaranteed, ""},
		{8, "DEL", "b", "fourth", guaranteed, ""}, // The runtime may repeat it.
		{9, "ADD", "b", "sixth", guaranteed, "lab/fifth"},
		{200, "ADD", "b", "sixth", guaranteed, ""}, // The fifth does not ask any more.
	} {
		err := call(t, folder, step.command, step.node, step.container, step.group, now.Add(step.after*time.Second))
		if (err == nil) != (step.waitsFor == "") || err != nil && !strings.Contains(err.Error(), "waiting for pod "+step.waitsFor) {
			t.Errorf("step %d: %s of %s on %s: got %v, want to wait for %q", i, step.command, step.container, step.node, err, step.waitsFor)
		}
	}
}

func TestTurn_EndsWithItsNode(t *testing.T) {
	folder, now := t.TempDir(), time.Now()
	if err := call(t, folder, "ADD", "a", "first", guaranteed, now); err != nil {
		t.Fatal(err)
	}
	if err := Forget(folder, "a"); err != nil {
		t.Fatal(err)
	}
	if err := call(t, folder, "ADD", "b", "second", guaranteed, now); err != nil {
		t.Errorf("the turn of a dead node is not over: %v", err)
	}
}

func TestTurn_RejectsUnusableCalls(t *testing.T) {
	for reason, tc := range map[string]struct{ command, node, container, group, want string }{
		"a pod without a group":       {"ADD", "a", "c", unknown, "control group"},
		"a container that is a path":  {"ADD", "a", "../c", guaranteed, "invalid configuration"},
		"a node that is a path":       {"DEL", "../a", "c", guaranteed, "invalid configuration"},
		"no container":                {"ADD", "a", "", guaranteed, "invalid configuration"},
		"a command of another format": {"GC", "a", "c", guaranteed, "CNI_COMMAND"},
	} {
		if err := call(t, t.TempDir(), tc.command, tc.node, tc.container, tc.group, time.Now()); err == nil ||
			!strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v", reason, err)
		}
	}
	var out bytes.Buffer
	status := Main(func(string) string { return "" }, strings.NewReader("{"), &out)
	var answer struct{ Code int }
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil || answer.Code != 100 || status != 1 {
		t.Errorf("an error is told as %q, status %d", out.String(), status)
	}
}
