package local

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
)

// fakeRunner is a runner that records its arguments.
func fakeRunner(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "assay-runner")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// ledgerFolder is a ledger of which the keeper of a block can read the format.
func ledgerFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, ledger.ExperimentKey), []byte(`{"format": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

func twoBlocks() *record.Wave {
	return &record.Wave{Blocks: []record.Block{{ID: "w000-b0000"}, {ID: "w000-b0001"}}}
}

func TestRun_StartsARunnerWithKeeperPerBlock(t *testing.T) {
	var log bytes.Buffer
	folder := ledgerFolder(t)
	executor := &Executor{Runner: fakeRunner(t, `echo "$@"`), Folder: folder, Name: "here", Log: &log}
	var done []string
	if err := executor.Run(context.Background(), twoBlocks(), func(b record.Block) { done = append(done, b.ID) }); err != nil {
		t.Fatal(err)
	}
	for _, block := range []string{"w000-b0000", "w000-b0001"} {
		want := "block --wave " + folder + "/waves/000/wave.json --block " + block + " --keeper fd:3 --finish-seconds 0\n"
		if !strings.Contains(log.String(), want) {
			t.Errorf("want the call %q, got:\n%s", want, log.String())
		}
	}
	if strings.Join(done, " ") != "w000-b0000 w000-b0001" {
		t.Errorf("done: %v", done)
	}
}

func TestRun_PinsBlocksToCPUs(t *testing.T) {
	var log bytes.Buffer
	executor := &Executor{Runner: fakeRunner(t, `grep Cpus_allowed_list /proc/self/status`), Folder: ledgerFolder(t), Name: "here", CPUs: 1,
		Log: &log}
	if err := executor.Run(context.Background(), &record.Wave{Blocks: []record.Block{{ID: "w000-b0000"}}}, nil); err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(log.String(), ":")
	if strings.ContainsAny(strings.TrimSpace(list), ",-") {
		t.Errorf("the block could use CPUs %s, want one", list)
	}
}

func TestRun_TooManyCPUsIsRejected(t *testing.T) {
	executor := &Executor{Runner: fakeRunner(t, "true"), Folder: ledgerFolder(t), Name: "here", CPUs: 100000, Log: &bytes.Buffer{}}
	err := executor.Run(context.Background(), twoBlocks(), nil)
	if err == nil || !strings.Contains(err.Error(), "spec.placement.cpus is 100000") {
		t.Errorf("got %v", err)
	}
	if err := executor.CheckCPUs(); err == nil || !strings.HasPrefix(err.Error(), "spec.placement.cpus is 100000 and this process may use ") {
		t.Errorf("before a block: %v", err)
	}
	executor.CPUs = 1
	if err := executor.CheckCPUs(); err != nil {
		t.Error(err)
	}
}

func TestRun_FailedRunnerEndsTheWave(t *testing.T) {
	executor := &Executor{Runner: fakeRunner(t, "exit 2"), Folder: ledgerFolder(t), Name: "here", Log: &bytes.Buffer{}}
	if err := executor.Run(context.Background(), twoBlocks(), nil); err == nil ||
		!strings.Contains(err.Error(), "block w000-b0000: exit status 2") {
		t.Errorf("got %v", err)
	}
}

func TestRun_CancelSignalsTheRunner(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	var log bytes.Buffer
	executor := &Executor{Runner: fakeRunner(t, `trap 'echo asked; exit 143' TERM; touch `+ready+`; while :; do sleep 0.05; done`),
		Folder: ledgerFolder(t), Name: "here", Log: &log}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(ready); err == nil {
				cancel()
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	if err := executor.Run(ctx, twoBlocks(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if !strings.Contains(log.String(), "asked") {
		t.Error("the runner was killed without a signal")
	}
}

// timeout and CI systems signal the process group. A trial in that group would be killed and count as failed.
func TestRun_RunnersHaveTheirOwnProcessGroup(t *testing.T) {
	var log bytes.Buffer
	executor := &Executor{Runner: fakeRunner(t, `cut -d " " -f 5 /proc/self/stat`), Folder: ledgerFolder(t), Name: "here", Log: &log}
	if err := executor.Run(context.Background(), twoBlocks(), nil); err != nil {
		t.Fatal(err)
	}
	groups := strings.Fields(log.String())
	if own := strconv.Itoa(syscall.Getpgrp()); len(groups) != 2 || slices.Contains(groups, own) {
		t.Errorf("this process is in group %s, and the runners in %v", own, groups)
	}
}

func TestPrepare(t *testing.T) {
	folder := t.TempDir()
	program := filepath.Join(folder, "scan-pir")
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	wave := &record.Wave{
		Workload: record.Workload{Image: "lab/scan:1"},
		Arms:     []record.Arm{{Name: "a"}},
		Cells:    []record.Cell{{Argv: []string{"/image/path/scan-pir", "run"}}},
	}
	prepared, err := Prepare(wave, Programs{Folders: []string{folder}})
	if err != nil {
		t.Fatal(err)
	}
	if got := prepared.Cells[0].Argv; got[0] != program || got[1] != "run" || prepared.Workload.Image != "" {
		t.Errorf("prepared %v with image %q", got, prepared.Workload.Image)
	}
	if wave.Cells[0].Argv[0] != "/image/path/scan-pir" || wave.Workload.Image == "" {
		t.Error("Prepare modified its argument")
	}

	wave.Cells[0].Argv[0] = "/image/path/no-such-program"
	if _, err := Prepare(wave, Programs{Folders: []string{folder}}); err == nil || !strings.Contains(err.Error(), "--bin-dir") {
		t.Errorf("got %v, want a message that names the remedy", err)
	}
}

func TestRun_InstrumentStartsTheRunnerAndStopsAfterIt(t *testing.T) {
	var calls []string
	executor := &Executor{Runner: fakeRunner(t, "true"), Folder: ledgerFolder(t), Name: "here", Log: &bytes.Buffer{}}
	executor.Instrument = func(block *record.Block, start func() (int, error)) (func() error, error) {
		pid, err := start()
		if err != nil || pid <= 0 {
			t.Errorf("process %d, %v", pid, err)
		}
		calls = append(calls, "start "+block.ID)
		return func() error {
			calls = append(calls, "stop "+block.ID)
			if block.ID == "w000-b0001" {
				return errors.New("the recording was lost")
			}
			return nil
		}, nil
	}
	err := executor.Run(context.Background(), twoBlocks(), nil)
	if err == nil || !strings.Contains(err.Error(), "block w000-b0001: the recording was lost") {
		t.Errorf("error %v", err)
	}
	if want := []string{"start w000-b0000", "stop w000-b0000", "start w000-b0001", "stop w000-b0001"}; !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}
}

func TestRun_InstrumentThatFailsEndsTheBlock(t *testing.T) {
	executor := &Executor{Runner: fakeRunner(t, "true"), Folder: ledgerFolder(t), Name: "here", Log: &bytes.Buffer{}}
	executor.Instrument = func(*record.Block, func() (int, error)) (func() error, error) { return nil, errors.New("no rights") }
	if err := executor.Run(context.Background(), twoBlocks(), nil); err == nil || !strings.Contains(err.Error(), "no rights") {
		t.Errorf("error %v", err)
	}
}
