package e2e

import (
	"testing"
	"time"
)

// A trial is a server and a client: the server is fresh in every trial, ready before the client, and ended after it.
func TestRoles_ClientAndServerAreOneTrial(t *testing.T) {
	const name = "client-and-server"
	remove(t, name)
	t.Cleanup(func() { remove(t, name) })
	command(t, "kubectl", "apply", "-n", namespace, "-f", "workflows/examples/client-and-server/run.yaml")
	run := untilComplete(t, name, 4*time.Minute)
	wins(t, run, "nodelay", "without Nagle's algorithm nothing waits for an acknowledgement")
	for _, attempt := range attempts(t, name) {
		if attempt["outcome"] != "Succeeded" {
			t.Errorf("attempt %v is %v: %v", attempt["id"], attempt["outcome"], attempt["message"])
			continue
		}
		roles, _ := attempt["roles"].([]any)
		if len(roles) != 2 {
			t.Fatalf("attempt %v has %d roles, want server and client: %v", attempt["id"], len(roles), roles)
		}
		server, _ := roles[0].(map[string]any)
		if server["name"] != "server" || server["signal"] != float64(15) || server["killed"] != nil {
			t.Errorf("the server of %v: %v; want that SIGTERM ended it", attempt["id"], server)
		}
		// The block has one CPU, so both roles share it, and that is said.
		if server["shared"] != true || softKey(attempt, "roleCpus") == "" {
			t.Errorf("the server of %v does not say that it shared its CPU: %v", attempt["id"], server)
		}
	}
}
