package selection

import (
	"time"

	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/fixture"
	"assay.dev/assay/operator/internal/format"
	"assay.dev/assay/operator/internal/noise"
	"assay.dev/assay/operator/internal/record"
)

const (
	firstBlock = "w000-b0000"
	lastBlock  = "w001-b0002"
	oneTrial   = firstBlock + "-s00004"
)

// situation alters the ledger of a run of two waves with three blocks, of which the second wave has one.
type situation struct {
	name  string
	alter func(*testLedger)
}

// one alters a single trial that follows another trial of the same arm.
func one(change func(*record.Attempt)) func(*testLedger) {
	return func(l *testLedger) { l.each(ofTrials(oneTrial), change) }
}

func metric(change func(*record.Metric)) func(*testLedger) {
	return one(func(a *record.Attempt) {
		found := *a.Result.Metrics["latency"]
		change(&found)
		a.Result.Metrics["latency"] = &found
	})
}

func withSoft(key string, value any) func(*record.Attempt) {
	return func(a *record.Attempt) { a.Environment.Soft[key] = value }
}

// situations are ledgers in which attempts do not count, or may not decide.
var situations = []situation{
	{"an unaltered ledger", func(*testLedger) {}},

	{"a trial that failed", one(fail)},
	{"a trial that timed out", one(func(a *record.Attempt) { fail(a); a.Outcome = record.TimedOut })},
	{"a trial with malformed output", one(func(a *record.Attempt) { fail(a); a.Outcome = record.Malformed })},
	{"a failed trial with exit code 0 and a result", one(func(a *record.Attempt) { a.Outcome = record.Failed })},
	{"a trial that was not started", one(func(a *record.Attempt) { fail(a); a.Outcome = record.NotStarted })},
	{"a trial that was not started and has a signal", one(func(a *record.Attempt) {
		fail(a)
		a.Outcome, a.Signal = record.NotStarted, ptr.To(9)
	})},
	{"a block of which nothing was started", func(l *testLedger) {
		l.each(inBlock(lastBlock), func(a *record.Attempt) { fail(a); a.Outcome = record.NotStarted })
	}},
	{"a failed warm-up", func(l *testLedger) { l.each(ofTrials(firstBlock+"-w00001"), fail) }},
	{"a failed warm-up and failed trials of its cell", func(l *testLedger) {
		l.each(both(inBlock(firstBlock), func(a *record.Attempt) bool { return a.Arm == "fused-m4r" }), fail)
	}},
	{"a missing trial", func(l *testLedger) { l.remove(ofTrials(oneTrial)) }},
	{"a missing block", func(l *testLedger) { l.remove(inBlock(lastBlock)) }},

	{"a second execution of a block, by a name that sorts first", func(l *testLedger) { l.again("again", inBlock(firstBlock), unchanged) }},
	{"a second execution of a block, later", func(l *testLedger) {
		l.again("again", inBlock(firstBlock), func(a *record.Attempt) { a.StartedAt = a.StartedAt.Add(time.Hour) })
	}},
	{"a second execution of a block, on a node that sorts first", func(l *testLedger) {
		l.again("z", inBlock(firstBlock), func(a *record.Attempt) { a.StartedAt = a.StartedAt.Add(time.Hour) })
		l.each(inBlock(firstBlock), withSoft("nodeName", "node-b"))
		l.each(byExecutor("z"), withSoft("nodeName", "node-a"))
	}},
	{"a first execution with fewer trials", func(l *testLedger) {
		l.again("z", inBlock(firstBlock), func(a *record.Attempt) { a.StartedAt = a.StartedAt.Add(time.Hour) })
		l.remove(both(byExecutor("pod-"+firstBlock), func(a *record.Attempt) bool { return a.Warmup || a.Slot > 5 }))
	}},
	{"a second execution with failed trials", func(l *testLedger) {
		l.again("z", both(inBlock(firstBlock), ofArm("fused-m4r")), fail)
	}},
	{"a second execution with an unusable result", func(l *testLedger) {
		l.again("z", ofTrials(oneTrial), func(a *record.Attempt) { delete(a.Result.Metrics, "latency") })
	}},
	{"a second execution with a failed warm-up", func(l *testLedger) { l.again("z", ofTrials(firstBlock+"-w00001"), fail) }},
	{"a trial that only the superseded execution has", func(l *testLedger) {
		l.again("z", ofTrials(oneTrial), unchanged)
		l.remove(both(ofTrials(oneTrial), byExecutor("pod-"+firstBlock)))
	}},

	{"an attempt of another run", one(func(a *record.Attempt) { a.Run.UID = "other" })},
	{"an attempt of another experiment", one(func(a *record.Attempt) { a.Experiment = "sha256:0" })},
	{"an attempt at an unknown point", one(func(a *record.Attempt) { a.Point = "batchSize=99" })},
	{"an attempt of an unknown arm", one(func(a *record.Attempt) { a.Arm = "turbo" })},
	{"an attempt of another slot", one(func(a *record.Attempt) { a.Slot = 5 })},
	{"an attempt without an executor", one(func(a *record.Attempt) { a.ID = a.Trial + "x" })},
	{"an attempt of another wave", one(func(a *record.Attempt) { a.Wave = 1 })},
	{"an attempt that was planned for another arm", one(func(a *record.Attempt) {
		a.Arm = map[bool]string{true: "fused-m4r", false: "loop"}[a.Arm == "loop"]
	})},
	{"an attempt of a build that its arm does not have", one(func(a *record.Attempt) { a.Build = "b1" })},
	{"an attempt with another argument", one(func(a *record.Attempt) { a.Argv = append([]string{a.Argv[0], "--x"}, a.Argv[2:]...) })},
	{"an attempt under another lease", func(l *testLedger) {
		l.lend()
		one(func(a *record.Attempt) { a.Lease = &record.Lease{Node: "node-a", Token: 6} })(l)
	}},
	{"an unplanned attempt", func(l *testLedger) {
		a := l.attempts[0]
		a.Trial, a.Slot, a.Warmup = firstBlock+"-s00099", 99, false
		a.ID = "pod/" + a.Trial
		l.attempts = append(l.attempts, a)
	}},
	{"an attempt that is there twice", func(l *testLedger) {
		l.attempts = append(l.attempts, l.attempts[len(l.attempts)-1])
	}},

	{"a ledger without plans", func(l *testLedger) { l.waves = nil }},
	{"no plans, a missing trial, and an unreadable one", func(l *testLedger) {
		l.waves = nil
		l.unreadable(ofTrials(oneTrial))
		l.remove(ofTrials(lastBlock + "-s00000"))
	}},
	{"no plans and a foreign attempt", func(l *testLedger) {
		l.waves = nil
		one(func(a *record.Attempt) { a.Run.UID = "other" })(l)
	}},
	{"no plans and too many warm-ups", func(l *testLedger) { l.waves, l.exp.Plan.Design.WarmupTrials = nil, 0 }},
	{"no plans and a missing block", func(l *testLedger) {
		l.waves = nil
		l.remove(inBlock("w000-b0001"))
	}},
	{"a missing plan", func(l *testLedger) { l.waves = l.waves[1:] }},
	{"a plan of another experiment", func(l *testLedger) { l.waves[1].Experiment = "sha256:1" }},
	{"two plans of another experiment", func(l *testLedger) { l.waves[0].Experiment, l.waves[1].Experiment = "sha256:1", "sha256:1" }},
	{"a plan with an unknown arm", func(l *testLedger) {
		l.waves[1].Arms = append([]record.Arm{}, l.waves[1].Arms...)
		l.waves[1].Arms[1].Name = "turbo"
	}},
	{"a plan without a block", func(l *testLedger) { l.waves[0].Blocks = l.waves[0].Blocks[:1] }},
	{"a plan with too many warm-ups", func(l *testLedger) { l.exp.Plan.Design.WarmupTrials = 0 }},
	{"an unreadable plan", func(l *testLedger) {
		l.waves = l.waves[:1]
		l.problems = append(l.problems, record.Problem{Source: record.Source{Key: record.WaveKey(1)}, Reason: "it is truncated"})
	}},
	{"a later wave", func(l *testLedger) { l.through = 0 }},

	{"an altered attempt", func(l *testLedger) {
		l.seal()
		one(func(a *record.Attempt) { a.Source.SHA256 = "0" })(l)
	}},
	{"a removed attempt", func(l *testLedger) { l.seal(); l.remove(ofTrials(oneTrial)) }},
	{"a removed attempt of a second execution", func(l *testLedger) {
		l.again("z", inBlock(firstBlock), unchanged)
		l.seal()
		l.remove(both(ofTrials(oneTrial), byExecutor("z")))
	}},
	{"an unreadable attempt", func(l *testLedger) { l.unreadable(ofTrials(oneTrial)) }},
	{"an unreadable attempt of a second execution", func(l *testLedger) {
		l.again("z", ofTrials(oneTrial), unchanged)
		l.unreadable(both(ofTrials(oneTrial), byExecutor("z")))
	}},

	{"an unfinished trial", func(l *testLedger) { l.begin("lost", ofTrials(oneTrial)); l.remove(ofTrials(oneTrial)) }},
	{"two unfinished executions of a trial", func(l *testLedger) {
		l.begin("lost", ofTrials(oneTrial))
		l.begin("later", ofTrials(oneTrial))
		l.remove(ofTrials(oneTrial))
	}},
	{"an unfinished trial that was repeated", func(l *testLedger) { l.begin("lost", ofTrials(oneTrial)) }},
	{"an unfinished trial that was removed", func(l *testLedger) {
		l.seal()
		l.begin("lost", ofTrials(oneTrial))
		l.remove(ofTrials(oneTrial))
	}},
	{"an unfinished warm-up", func(l *testLedger) {
		l.begin("lost", ofTrials(firstBlock+"-w00001"))
		l.remove(ofTrials(firstBlock + "-w00001"))
	}},
	{"start markers of an unknown point, an unknown arm, another cell, an unplanned trial and a later wave", func(l *testLedger) {
		l.begin("lost", ofTrials(oneTrial, firstBlock+"-s00000", firstBlock+"-s00001", firstBlock+"-s00002", lastBlock+"-s00000"))
		l.markers[0].Point, l.markers[1].Arm = "batchSize=99", "turbo"
		l.markers[2].Arm = map[bool]string{true: "fused-m4r", false: "loop"}[l.markers[2].Arm == "loop"]
		l.markers[3].Trial = firstBlock + "-s00099"
		l.markers[4].Block, l.markers[4].Trial = "w002-b0003", "w002-b0003-s00000"
	}},

	{"leases in force", (*testLedger).lend},
	{"a lease that was never taken", func(l *testLedger) { l.lend(); l.leases.Taken = nil }},
	{"a lease that ended before the last trials", func(l *testLedger) {
		l.lend()
		l.leases.Ends = []record.LeaseEnd{{Run: l.exp.Run, Lease: l.leases.Taken[0].Lease, EndedAt: l.attempts[70].StartedAt}}
	}},
	{"a lease that had ended when one trial did", func(l *testLedger) {
		l.lend()
		one(func(a *record.Attempt) { a.Kept = &record.Kept{Lease: record.LeaseEnded} })(l)
	}},
	{"a failed trial of which the lease had ended", func(l *testLedger) {
		l.lend()
		one(func(a *record.Attempt) { fail(a); a.Kept = &record.Kept{Lease: record.LeaseEnded} })(l)
	}},

	{"a block of another environment", func(l *testLedger) {
		l.each(inBlock(lastBlock), func(a *record.Attempt) { a.Environment.Hard["cpuModel"] = "Xeon" })
	}},
	{"a trial of another environment", one(func(a *record.Attempt) { a.Environment.Hard["cpuModel"] = "Xeon" })},
	{"two environments of as many trials", func(l *testLedger) {
		l.remove(inBlock("w000-b0001"))
		l.waves[0].Blocks = l.waves[0].Blocks[:1]
		l.each(inBlock(firstBlock), func(a *record.Attempt) { a.Environment.Hard["cpuModel"] = "AMD EPYC 2" })
	}},

	{"a program that changed", func(l *testLedger) {
		l.each(all, withSoft("programDigest", "blake3:a"))
		l.each(both(ofArm("loop"), inBlock(lastBlock)), withSoft("programDigest", "blake3:b"))
	}},
	{"an image that some attempts do not name", func(l *testLedger) {
		l.each(ofArm("loop"), withSoft("image", "lab/x@sha256:1"))
		l.each(both(ofArm("loop"), inBlock(firstBlock)), withSoft("programDigest", "blake3:a"))
	}},
	{"a server that changed, as often as not", func(l *testLedger) {
		l.remove(inBlock("w000-b0001"))
		l.waves[0].Blocks = l.waves[0].Blocks[:1]
		l.each(all, func(a *record.Attempt) {
			a.Roles = []record.RoleSeen{{Name: "server", ProgramDigest: "blake3:" + a.Block}}
		})
	}},
	{"an arm of another workload", func(l *testLedger) {
		l.each(ofArm("fused-m4r"), func(a *record.Attempt) { a.Result.Workload.Name = "other" })
	}},
	{"an arm with a trial of another workload", one(func(a *record.Attempt) { a.Result.Workload.Name = "other" })},

	{"a trial beside another process", one(fixture.Neighbour{Slowdown: 2, OtherWork: 0.5, Steal: 0.3}.Disturb)},
	{"a trial beside another process, with a warning", func(l *testLedger) {
		l.exp.Plan.OnViolation = noise.Warn
		one(fixture.Neighbour{Slowdown: 2, OtherWork: 0.5, Steal: 0.3}.Disturb)(l)
	}},
	{"a trial without readings", one(func(a *record.Attempt) { a.Noise = record.NoiseWindows{} })},

	{"Succeeded with exit code 3", one(func(a *record.Attempt) { a.ExitCode = ptr.To(3) })},
	{"Succeeded with a signal", one(func(a *record.Attempt) { a.Signal = ptr.To(9) })},
	{"Succeeded after centuries", one(func(a *record.Attempt) { a.DurationSeconds = 1e16 })},
	{"Succeeded with a negative CPU time", one(func(a *record.Attempt) { a.Resources.UserSeconds = ptr.To(-1.0) })},
	{"Succeeded without a result", one(func(a *record.Attempt) { a.Result = nil })},
	{"a result without a parity digest", one(func(a *record.Attempt) { a.Result.Parity = nil })},
	{"a result without a metric", one(func(a *record.Attempt) { delete(a.Result.Metrics, "latency") })},
	{"a result without an optional metric that a gate reads", func(l *testLedger) {
		for i := range l.exp.Plan.Metrics {
			l.exp.Plan.Metrics[i].Optional = true
		}
		l.each(inBlock(firstBlock), func(a *record.Attempt) { delete(a.Result.Metrics, "throughput") })
	}},
	{"a metric in another unit", metric(func(m *record.Metric) { m.Unit = "ms" })},
	{"a negative sample", metric(func(m *record.Metric) { m.Samples = append([]float64{-1}, m.Samples[1:]...) })},
	{"too few samples", metric(func(m *record.Metric) { m.Samples = m.Samples[1:] })},
	{"too many samples", metric(func(m *record.Metric) { m.Samples = append([]float64{1}, m.Samples...) })},
	{"one value in place of samples", metric(func(m *record.Metric) { m.Samples, m.Value = nil, ptr.To(1.0) })},
	{"samples of zero for a ratio of percentiles", func(l *testLedger) {
		l.each(inBlock(firstBlock), func(a *record.Attempt) {
			zero := *a.Result.Metrics["latency"]
			zero.Samples = make([]float64, len(zero.Samples))
			a.Result.Metrics["latency"] = &zero
		})
	}},
	{"a rate of zero for a ratio", func(l *testLedger) {
		l.each(inBlock(firstBlock), func(a *record.Attempt) {
			a.Result.Metrics["throughput"] = &record.Metric{Unit: "queries/s", Value: ptr.To(0.0)}
		})
	}},
	{"samples where a gate reads a value", func(l *testLedger) {
		l.each(inBlock(firstBlock), func(a *record.Attempt) {
			a.Result.Metrics["throughput"] = &record.Metric{Unit: "queries/s", Samples: []float64{1, 2}}
		})
	}},
	{"a histogram that cannot be decoded", metric(func(m *record.Metric) {
		m.Samples, m.Histogram = nil, &record.Histogram{Encoding: "hdr-v2-deflate-base64", Scale: 1e-9, Count: 3, Data: "AAAA"}
	})},
	{"a phase of centuries", one(func(a *record.Attempt) { a.Result.Phases = []record.Phase{{Name: "load", Samples: []float64{1e16}}} })},
	{"a program without output", func(l *testLedger) {
		l.exp.Plan.Workload.Output.Format = format.None
		one(func(a *record.Attempt) { a.Result = nil })(l)
	}},

	{"trials that ran in another order than their slots", func(l *testLedger) {
		one(func(a *record.Attempt) { a.StartedAt = a.StartedAt.Add(-time.Hour) })(l)
	}},
	{"a trial with another CPU quota", one(func(a *record.Attempt) { a.Isolation.CPUQuota = ptr.To(1.5) })},
	{"a block that is a copy of another", func(l *testLedger) {
		began := map[int]record.Attempt{}
		l.each(both(inBlock(firstBlock), func(a *record.Attempt) bool { return !a.Warmup }), func(a *record.Attempt) { began[a.Slot] = *a })
		l.each(both(inBlock(lastBlock), func(a *record.Attempt) bool { return !a.Warmup }), func(a *record.Attempt) {
			a.StartedAt, a.DurationSeconds = began[a.Slot].StartedAt, began[a.Slot].DurationSeconds
		})
	}},
}
