package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// record runs a trial of the real program and returns its history's file. CURP_BINARY names the program.
func record(t *testing.T, flags ...string) string {
	t.Helper()
	binary := os.Getenv("CURP_BINARY")
	if binary == "" {
		t.Skip("CURP_BINARY names no batch-curp-ho: only the written histories are checked")
	}
	file := filepath.Join(t.TempDir(), "history.jsonl")
	arguments := append([]string{"run", "--history=" + file, "--ceilings=false", "--warmup-operations=100"}, flags...)
	var stdout, stderr bytes.Buffer
	command := exec.Command(binary, arguments...)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("batch-curp-ho %s: %v: %s", strings.Join(arguments, " "), err, stderr.String())
	}
	var result struct {
		Metrics struct{ Lost struct{ Value float64 } }
	}
	if err := json.Unmarshal(stdout.Bytes(), &result); err != nil || result.Metrics.Lost.Value > 0 {
		t.Fatalf("batch-curp-ho %s: %v, %g commands lost", strings.Join(arguments, " "), err, result.Metrics.Lost.Value)
	}
	return file
}

func TestRecordedHistories(t *testing.T) {
	// Few keys and many writes, so that commands get in each other's way.
	strong := []string{"--operations=6000", "--keys=5", "--skew-percent=0", "--weak-ratio=0", "--write-ratio=50", "--window=4"}
	mixed := []string{"--operations=6000", "--keys=40", "--skew-percent=50", "--weak-ratio=50", "--write-ratio=40", "--window=4"}
	rules := map[string][]string{
		"natural":   {"--flush=natural"},
		"immediate": {"--flush=immediate", "--message-writes=each"},
		"timed":     {"--flush=timed", "--batch-delay-micros=150", "--timer=precise"},
		"go-like":   {"--flush=timed", "--batch-delay-micros=150", "--timer=go-like", "--message-writes=each"},
		"routines":  {"--message-writes=each", "--descriptor-routines=3", "--write-lock=replica"},
	}
	events := map[string][]string{
		"all well":                  nil,
		"bound to the leader":       {"--bound-replica=leader"},
		"a follower killed":         {"--fault=kill", "--fault-replica=2", "--fault-after=2000"},
		"the bound follower killed": {"--fault=kill", "--fault-replica=1", "--fault-after=2000"},
		"the leader killed":         {"--fault=kill", "--fault-replica=0", "--fault-after=2000"},
		"the leader silent":         {"--fault=stop", "--fault-replica=0", "--fault-after=2000", "--suspect-after-millis=100"},
		"the bound one silent":      {"--fault=stop", "--fault-replica=1", "--fault-after=2000"},
		"the leader away":           {"--fault=pause", "--fault-replica=0", "--fault-after=500", "--fault-millis=300", "--suspect-after-millis=50"},
		"the leader started again":  {"--fault=restart", "--fault-replica=0", "--fault-after=500", "--fault-millis=5"},
		"a slow follower":           {"--slow-replica=2", "--slow-micros=500", "--suspect-after-millis=5000"},
		"a follower started again":  {"--fault=restart", "--fault-replica=1", "--fault-after=500", "--fault-millis=5"},
	}
	for rule, ruleFlags := range rules {
		for event, eventFlags := range events {
			for mix, mixFlags := range map[string][]string{"strong": strong, "mixed": mixed} {
				t.Run(strings.Join([]string{rule, event, mix}, "/"), func(t *testing.T) {
					file := record(t, append(append(append([]string{}, mixFlags...), ruleFlags...), eventFlags...)...)
					var out, errors bytes.Buffer
					if code := run([]string{"check", file}, &out, &errors); code != kept {
						t.Fatalf("exit code %d: %s", code, errors.String())
					}
					if !strings.HasPrefix(out.String(), "6600 commands of 5 sessions") {
						t.Errorf("got %q, want all 6600 commands of the script and the four streams", out.String())
					}
				})
			}
		}
	}
}

// A real history in which one answer was changed is found out: the checker does not pass everything.
func TestRecordedHistories_TamperedIsRejected(t *testing.T) {
	file := record(t, "--operations=2000", "--keys=5", "--skew-percent=0", "--weak-ratio=0", "--write-ratio=50", "--window=4")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	tampered := false
	for i := len(lines) - 1; i >= 0 && !tampered; i-- {
		op := Operation{}
		if err := json.Unmarshal([]byte(lines[i]), &op); err != nil {
			t.Fatal(err)
		}
		// A late read that found something now found nothing.
		if op.Op == "get" && op.Value != "" {
			lines[i] = strings.Replace(lines[i], `"value":"`+op.Value+`",`, "", 1)
			tampered = true
		}
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errors bytes.Buffer
	if code := run([]string{"check", file}, &out, &errors); !tampered || code != broken {
		t.Errorf("exit code %d, tampered %v: %s%s", code, tampered, out.String(), errors.String())
	}
}

func TestMisuse(t *testing.T) {
	for name, arguments := range map[string][]string{
		"nothing":        nil,
		"another verb":   {"prove", "file"},
		"no such file":   {"check", filepath.Join(t.TempDir(), "missing")},
		"too many files": {"check", "a", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errors bytes.Buffer
			if code := run(arguments, &out, &errors); code != misuse || out.Len() > 0 || errors.Len() == 0 {
				t.Errorf("exit code %d, out %q, errors %q", code, out.String(), errors.String())
			}
		})
	}
}
