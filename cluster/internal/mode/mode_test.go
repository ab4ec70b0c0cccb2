package mode

import (
	"context"
	"errors"
	"strings"
	"testing"

	"assay.dev/assay/cluster/internal/host"
)

func TestDecide_ModeOfTheMachine(t *testing.T) {
	no := errors.New("cannot")
	for reason, tc := range map[string]struct {
		asked Mode
		facts Facts
		want  Mode
		why   string
	}{
		"the requested mode is used, even if no mode can work": {Existing, Facts{no, no}, Existing, "asks for it"},
		"Docker answers":                          {"", Facts{nil, no}, Kind, "Docker engine answers"},
		"Docker answers and embedded could run":   {"", Facts{nil, nil}, Kind, "CLUSTER=embedded"},
		"only embedded can run":                   {"", Facts{no, nil}, Embedded, "no Docker engine"},
		"no mode can work, and none is requested": {"", Facts{no, no}, "", ""},
	} {
		mode, why, err := Decide(tc.asked, tc.facts)
		if mode != tc.want || !strings.Contains(why, tc.why) || (err == nil) != (tc.want != "") {
			t.Errorf("%s: got %q because %q, %v", reason, mode, why, err)
		}
		if err != nil && !strings.Contains(err.Error(), "CLUSTER=existing") {
			t.Errorf("%s: the error does not say what to do: %v", reason, err)
		}
	}
}

func TestParse_InvalidModesAreRejected(t *testing.T) {
	if _, err := Parse("minikube"); err == nil {
		t.Error("want an error")
	}
}

type docker struct {
	out string
	err error
}

func (d docker) Output(_ context.Context, command host.Command) ([]byte, error) {
	if command.Path != "docker" {
		return nil, errors.New("unexpected: " + command.String())
	}
	return []byte(d.out), d.err
}

func TestDocker_Availability(t *testing.T) {
	for reason, tc := range map[string]struct {
		engine docker
		ok     bool
	}{
		"an engine names its version":                 {docker{out: "27.3.1\n"}, true},
		"a client without an engine fails":            {docker{err: errors.New("cannot connect")}, false},
		"a client that says nothing is no engine yet": {docker{out: "\n"}, false},
	} {
		if err := Docker(context.Background(), tc.engine); (err == nil) != tc.ok {
			t.Errorf("%s: %v", reason, err)
		}
	}
}
