package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const figure = `{"figure":"security.tenant_attacks_succeeded","value":0,"unit":"1","low":0,"high":3.4,"samples":20}`

// script runs hack/chaos.sh in a temporary tree, where every program prints its arguments on both outputs.
func script(t *testing.T, environment []string, tests string, arguments ...string) (stdout, stderr string, err error) {
	t.Helper()
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"chaos.sh", "lib.sh"} {
		raw, err := os.ReadFile(filepath.Join("..", "..", "hack", name))
		if err != nil {
			t.Fatal(err)
		}
		write("hack/"+name, string(raw))
	}
	const says = "#!/bin/sh\necho \"$(basename $0) $*\"\necho \"$(basename $0) $*\" >&2\n"
	for _, name := range []string{"path/make", "path/helm", "test/e2e/x", "test/chaos/x"} {
		write(name, says)
	}
	// The cluster has no installation yet.
	write("path/kubectl", "#!/bin/sh\necho \"kubectl $*\" >&2\n")
	write("path/go", says+"case \"$*\" in *TestAttacks*) "+tests+";; esac\n")
	write("bin/cluster", "#!/bin/sh\necho \"cluster $*\" >&2\ncase $1 in choose) echo embedded;; build) echo /path;; *) echo \"cluster "+
		"$*\";; esac\n")
	write("bin/chaos", "#!/bin/sh\necho \"chaos $*\" >&2\necho '{\"figure\":\"chaos.faults\"}'\n")
	command := exec.Command("bash", append([]string{filepath.Join(folder, "hack", "chaos.sh")}, arguments...)...)
	command.Env = append([]string{"PATH=" + filepath.Join(folder, "path") + ":" + os.Getenv("PATH"), "HOME=" + folder}, environment...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	err = command.Run()
	return out.String(), errs.String(), err
}

func TestSuite_PrintsOnlyFigures(t *testing.T) {
	logged := "echo '    attack_test.go:99: " + figure + "'"
	running := []string{"CHAOS_CLUSTER=running"}
	for name, tc := range map[string]struct {
		what, tests, want string
		environment       []string
		fails             bool
		says              []string
	}{
		"attacks on a dedicated cluster":       {what: "attack", tests: logged, want: figure + "\n", says: []string{"cluster up", "cluster down"}},
		"attacks on the cluster that is there": {what: "attack", tests: logged, environment: running, want: figure + "\n"},
		"attacks of which one succeeds":        {what: "attack", tests: logged + "; exit 1", environment: running, want: figure + "\n", fails: true},
		"attacks that end without a figure":    {what: "attack", tests: ":", environment: running, fails: true, says: []string{"without a figure"}},
		"attacks that end before they begin":   {what: "attack", tests: "exit 1", environment: running, fails: true},
		"faults without attacks":               {what: "chaos", tests: logged, environment: running, want: `{"figure":"chaos.faults"}` + "\n", says: []string{"-faults 200"}},
		"a few faults":                         {what: "smoke", environment: running, tests: ":", want: `{"figure":"chaos.faults"}` + "\n", says: []string{"-faults 10 -least 6", "-limit 4m", "-short", "-seed 1"}},
		"selected faults":                      {what: "smoke", environment: append(running, "SEED=7", "FAULTS=node-rebooted,pod-deleted"), tests: ":", want: `{"figure":"chaos.faults"}` + "\n", says: []string{"-seed 7 -kinds node-rebooted,pod-deleted"}},
		"an unknown command":                   {what: "charm", environment: running, tests: ":", fails: true, says: []string{"chaos, smoke and attack"}},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := script(t, tc.environment, tc.tests, tc.what)
			if stdout != tc.want {
				t.Errorf("standard output:\n%s\nwant:\n%s", stdout, tc.want)
			}
			if (err != nil) != tc.fails {
				t.Errorf("it ends with %v\n%s", err, stderr)
			}
			for _, text := range tc.says {
				if !strings.Contains(stderr, text) {
					t.Errorf("standard error does not say %q:\n%s", text, stderr)
				}
			}
		})
	}
}
