package local

import (
	"context"
	"errors"
	"io"
	"testing"

	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/plan"
	"assay.dev/assay/operator/internal/record"
)

var testRun = record.Run{Namespace: "local", Name: "scan", UID: "u"}

// onEngine is an engine with a run of two blocks, of which the first reports to reached before the second may start.
func onEngine(t *testing.T, analyze func(context.Context, int) error) (engine *Engine, start plan.StartWave, reached chan string) {
	t.Helper()
	wave := twoBlocks()
	wave.Run = testRun
	reached = make(chan string)
	engine = &Engine{
		Executor: &Executor{Runner: fakeRunner(t, "true"), Folder: ledgerFolder(t), Name: "here", Log: io.Discard},
		Done:     func(block record.Block) { reached <- block.ID },
		Analyze:  analyze,
	}
	return engine, plan.StartWave{Wave: wave}, reached
}

func state(t *testing.T, engine *Engine) executor.Execution {
	t.Helper()
	var out executor.Execution
	if err := engine.Visit(t.Context(), executor.Query{Namespace: "local", Name: "scan"}, func(e executor.Execution) { out = e }); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEngine_ExecuteRunsAllBlocksAndTheAnalysis(t *testing.T) {
	analysed := -1
	engine, start, reached := onEngine(t, func(_ context.Context, wave int) error { analysed = wave; return nil })
	go func() {
		for range reached {
		}
	}()
	if err := engine.Execute(t.Context(), start); err != nil || analysed != 0 {
		t.Errorf("error %v, analysed wave %d, want wave 0", err, analysed)
	}
	if got := state(t, engine); !got.Seen || !got.Ended || got.Name != "scan-w000" || got.Message != "" {
		t.Errorf("execution %+v, want scan-w000 ended without a message", got)
	}
}

func TestEngine_SuspendedExecutionStartsNoFurtherBlock(t *testing.T) {
	engine, start, reached := onEngine(t, nil)
	id := executor.ID{Namespace: "local", Name: "scan-w000"}
	if err := engine.StartWave(t.Context(), nil, start); err != nil {
		t.Fatal(err)
	}
	if err := engine.Suspend(t.Context(), nil, id, true); err != nil {
		t.Fatal(err)
	}
	<-reached
	if got := state(t, engine); !got.Suspended || got.Ended {
		t.Errorf("execution %+v, want it suspended", got)
	}
	select {
	case block := <-reached:
		t.Fatalf("block %s ran while the execution was suspended", block)
	default:
	}
	if err := engine.Suspend(t.Context(), nil, id, false); err != nil {
		t.Fatal(err)
	}
	if block := <-reached; block != "w000-b0001" {
		t.Errorf("block %s ran after resuming, want the second", block)
	}
}

func TestEngine_StopEndsBlocksAndAnalysesOnRequest(t *testing.T) {
	for sentence, analyze := range map[string]bool{"with the analysis": true, "without the analysis": false} {
		t.Run(sentence, func(t *testing.T) {
			analysed := false
			engine, start, reached := onEngine(t, func(context.Context, int) error { analysed = true; return nil })
			ended := make(chan error, 1)
			go func() { ended <- engine.Execute(t.Context(), start) }()
			<-reached
			id := executor.ID{Namespace: "local", Name: "scan-w000"}
			if err := engine.Suspend(t.Context(), nil, id, true); err != nil {
				t.Fatal(err)
			}
			if err := engine.Stop(t.Context(), nil, id, executor.Stop{Analyze: analyze, Again: "node lost"}); err != nil {
				t.Fatal(err)
			}
			go func() {
				for range reached {
				}
			}()
			if err := <-ended; !errors.Is(err, context.Canceled) || analysed != analyze {
				t.Errorf("error %v, analysed %v, want a cancelled wave and %v", err, analysed, analyze)
			}
			if got := state(t, engine); !got.Stopped || !got.Ended || got.Again != "node lost" {
				t.Errorf("execution %+v, want it stopped and ended", got)
			}
		})
	}
}

func TestEngine_FailureOfTheRunnerIsTheMessage(t *testing.T) {
	engine, start, _ := onEngine(t, nil)
	engine.Executor.Runner = fakeRunner(t, "exit 2")
	if err := engine.Execute(t.Context(), start); err == nil || state(t, engine).Message != err.Error() {
		t.Errorf("error %v, message %q, want them equal", err, state(t, engine).Message)
	}
	if err := engine.Delete(t.Context(), nil, executor.ID{Namespace: "local", Name: "scan-w000"}); err != nil || state(t, engine).Name != "" {
		t.Errorf("error %v, execution %+v, want it deleted", err, state(t, engine))
	}
}
