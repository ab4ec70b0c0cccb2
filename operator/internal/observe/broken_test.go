package observe

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/executor"
	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/permanent"
	"assay.dev/assay/operator/internal/record"
)

// armsWave is a wave of two arms with alternating trials.
func armsWave(number, first, blocks, trials int) *record.Wave {
	wave := testWave(number, first, blocks, trials)
	wave.Arms = []record.Arm{{Name: "old", Baseline: true}, {Name: "new"}}
	wave.Cells = []record.Cell{{Arm: 0}, {Arm: 1}}
	for _, block := range wave.Blocks {
		for slot := range block.Order {
			block.Order[slot] = slot % 2
		}
	}
	return wave
}

func TestBrokenArms_OfFirstBlock(t *testing.T) {
	const ok, failed, malformed, slow = "Succeeded", "Failed", "Malformed", "TimedOut"
	all := func(count int, old, new string) (out []string) {
		for range count / 2 {
			out = append(out, old, new)
		}
		return out
	}
	for name, c := range map[string]struct {
		// tries are the outcomes of the attempts of the first block, in each of its executions.
		tries [][]string
		want  string
	}{
		"an arm that fails in all trials":           {[][]string{all(20, ok, failed)}, "[new]"},
		"an arm without a readable output":          {[][]string{all(20, ok, malformed)}, "[new]"},
		"every arm":                                 {[][]string{all(20, failed, malformed)}, "[old new]"},
		"the baseline":                              {[][]string{all(20, failed, ok)}, "[old]"},
		"timeouts":                                  {[][]string{all(20, slow, slow)}, "[]"},
		"failures and one timeout":                  {[][]string{append(all(18, failed, ok), slow, ok)}, "[old]"},
		"a block that has not ended":                {[][]string{all(18, failed, failed)}, "[]"},
		"a first success":                           {[][]string{append([]string{ok, ok}, all(18, failed, ok)...)}, "[]"},
		"no failure":                                {[][]string{all(20, ok, ok)}, "[]"},
		"an arm that ends every try of the block":   {[][]string{{ok, failed}, {ok, failed}, {ok, failed}}, "[new]"},
		"an arm that ended all tries but the last":  {[][]string{{ok, failed}, {ok, failed}}, "[]"},
		"the first arm, which ends every try":       {[][]string{{failed}, {failed}, {failed}}, "[old]"},
		"an arm that completed in one of the tries": {[][]string{{ok, failed}, {ok, ok, ok, failed}, {ok, failed}}, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			store, known := newCountingStore(t), &progress{retries: 2}
			wave := armsWave(0, 0, 3, 20)
			for try, outcomes := range c.tries {
				for slot, outcome := range outcomes {
					key := ledger.AttemptKey(wave.Blocks[0].ID, fmt.Sprintf("pod-%d", try), record.TrialName(wave.Blocks[0].ID, slot, false))
					if err := store.Create(t.Context(), key, fmt.Appendf(nil, `{"outcome": %q}`, outcome)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if got := fmt.Sprint(known.pass(t, store, wave)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// pass reads a wave in several reconciles.
func (p *progress) pass(t *testing.T, store *countingStore, wave *record.Wave) (broken []string) {
	t.Helper()
	for range 3 {
		if _, _, err := p.count(t.Context(), store, wave); err != nil {
			t.Fatal(err)
		}
		if _, err := p.failing(t.Context(), store, nil, wave); err != nil {
			t.Fatal(err)
		}
		var err error
		if broken, err = p.brokenArms(t.Context(), store, nil, wave); err != nil {
			t.Fatal(err)
		}
	}
	return broken
}

func TestBrokenArms_LaterBlocksAndWavesDecideNothing(t *testing.T) {
	store, known := newCountingStore(t), &progress{}
	first, second := armsWave(0, 0, 2, 4), armsWave(1, 2, 2, 4)
	write := func(block record.Block, outcome string) {
		for slot := range block.Order {
			key := ledger.AttemptKey(block.ID, "pod", record.TrialName(block.ID, slot, false))
			if err := store.Create(t.Context(), key, fmt.Appendf(nil, `{"outcome": %q}`, outcome)); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(first.Blocks[0], "Succeeded")
	write(first.Blocks[1], "Failed")
	if got := known.pass(t, store, first); len(got) > 0 {
		t.Errorf("the second block: %v", got)
	}
	write(second.Blocks[0], "Failed")
	if got := known.pass(t, store, second); len(got) > 0 {
		t.Errorf("the second wave: %v", got)
	}
	if got := (&progress{}).pass(t, store, second); len(got) > 0 {
		t.Errorf("the second wave, after a restart: %v", got)
	}
}

func TestPodState_UnstartedBlocks(t *testing.T) {
	pod := func(name, part string, phase corev1.PodPhase, states ...corev1.ContainerState) corev1.Pod {
		out := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{executor.PartLabel: part}},
			Spec: corev1.PodSpec{NodeName: "node-a"}, Status: corev1.PodStatus{Phase: phase}}
		for _, state := range states {
			out.Status.ContainerStatuses = append(out.Status.ContainerStatuses, corev1.ContainerStatus{Name: "main", State: state})
		}
		return out
	}
	ended := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, Message: message}}
	}
	waits := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	block, killed := executor.BlockPart, ended("StartError", "container init was OOM-killed (memory limit too low?)")
	for name, c := range map[string]struct {
		pods  []corev1.Pod
		count int
		class permanent.Class
		why   string
	}{
		"none": {[]corev1.Pod{pod("a", block, corev1.PodRunning, corev1.ContainerState{})}, 0, "", ""},
		"a memory limit that is too low": {[]corev1.Pod{pod("a", block, corev1.PodFailed, killed), pod("b", block, corev1.PodFailed, killed)},
			2, permanent.Permanent, `container main does not start: StartError: "container init was OOM-killed`},
		"a permanent failure is described first": {[]corev1.Pod{pod("a", block, corev1.PodFailed, ended("StartError", "context canceled")),
			pod("b", block, corev1.PodFailed, killed)}, 2, permanent.Permanent, "container main does not start: StartError"},
		"a container that waits for its restart": {[]corev1.Pod{pod("a", block, corev1.PodPending,
			waits("CreateContainerError", "no command specified"))}, 1, permanent.Permanent, `CreateContainerError: "no command specified"`},
		"an analysis":                {[]corev1.Pod{pod("a", executor.AnalysisPart, corev1.PodFailed, killed)}, 0, "", ""},
		"a trial's program crashed":  {[]corev1.Pod{pod("a", block, corev1.PodFailed, ended("Error", ""))}, 0, "", ""},
		"a Secret that is not there": {[]corev1.Pod{pod("a", block, corev1.PodPending, waits("CreateContainerConfigError", "not found"))}, 0, "", ""},
		"a pod that its kubelet refuses": {[]corev1.Pod{func() corev1.Pod {
			out := pod("a", block, corev1.PodFailed)
			out.Status.Reason, out.Status.Message = "AppArmor", "Cannot enforce AppArmor"
			return out
		}()}, 1, permanent.Permanent, "its pod does not start: AppArmor"},
	} {
		t.Run(name, func(t *testing.T) {
			got := podState(c.pods).Unstarted
			if got == nil {
				if c.count > 0 {
					t.Error("no pod is reported")
				}
				return
			}
			if got.Count != c.count || got.Class != c.class || !strings.Contains(got.Why, c.why) || got.Node != "node-a" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// An arm whose trials succeed with a result that the analysis rejects is broken, as one whose trials fail.
func TestBrokenArms_ResultsThatCannotBeUsed(t *testing.T) {
	exp, err := fixture.PairExperiment(nil)
	if err != nil {
		t.Fatal(err)
	}
	wave, err := fixture.Wave(exp, 0, 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	candidate := exp.Arms[1].Name
	reports := func(name string, metric record.Metric) func(*record.Attempt) {
		return func(a *record.Attempt) { a.Result.Metrics = map[string]*record.Metric{name: &metric} }
	}
	one := ptr.To(1.0)
	for name, c := range map[string]struct {
		arm   string
		spoil func(*record.Attempt)
		want  string
	}{
		"another unit":                 {candidate, reports("time", record.Metric{Unit: "ms", Value: one}), "[" + candidate + "]"},
		"another metric":               {candidate, reports("latency", record.Metric{Unit: "s", Value: one}), "[" + candidate + "]"},
		"a negative time":              {candidate, reports("time", record.Metric{Unit: "s", Value: ptr.To(-1.0)}), "[" + candidate + "]"},
		"usable results":               {candidate, func(*record.Attempt) {}, "[]"},
		"another unit in all arms":     {"", reports("time", record.Metric{Unit: "ms", Value: one}), "[" + exp.Arms[0].Name + " " + candidate + "]"},
		"another unit of the baseline": {exp.Arms[0].Name, reports("time", record.Metric{Unit: "ms", Value: one}), "[" + exp.Arms[0].Name + "]"},
		"a result that is not decoded": {candidate, reports("time", record.Metric{Unit: "ms", Histogram: &record.Histogram{}}), "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			store, known := newCountingStore(t), &progress{}
			attempts := fixture.NewWorld(fixture.Scenarios()[0], 0, 1, 1).Run(exp, wave)
			for i := range attempts {
				if c.arm == "" || attempts[i].Arm == c.arm {
					c.spoil(&attempts[i])
				}
			}
			objects, err := fixture.Objects(exp, []*record.Wave{wave}, attempts)
			if err != nil {
				t.Fatal(err)
			}
			for key, raw := range objects {
				if err := store.Create(t.Context(), key, raw); err != nil {
					t.Fatal(err)
				}
			}
			var broken []string
			for range 20 { // The first attempts are read a few at a time.
				if _, _, err := known.count(t.Context(), store, wave); err != nil {
					t.Fatal(err)
				}
				if _, err := known.failing(t.Context(), store, exp, wave); err != nil {
					t.Fatal(err)
				}
				if broken, err = known.brokenArms(t.Context(), store, exp, wave); err != nil {
					t.Fatal(err)
				}
			}
			if got := fmt.Sprint(broken); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
