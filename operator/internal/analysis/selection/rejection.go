package selection

import (
	"cmp"
	"fmt"
	"slices"

	"assay.dev/assay/operator/internal/analysis"
	"assay.dev/assay/operator/internal/record"
)

// Rejection is the reason why an attempt is not used, in words for people.
type Rejection string

const (
	foreign     Rejection = "not part of this experiment"
	altered     Rejection = "changed since it was analysed before"
	unreadable  Rejection = "unreadable"
	absent      Rejection = "missing"
	staleLease  Rejection = "under a stale lease"
	superseded  Rejection = "superseded by another execution of the block"
	Failed      Rejection = "failed"
	notStarted  Rejection = "not started"
	Unusable    Rejection = "reporting something that cannot be used"
	environment Rejection = "from another environment"
	Noisy       Rejection = "beyond a noise limit"
)

// Reason returns the rejection as one word of the analysis format.
func (r Rejection) Reason() analysis.Reason {
	return map[Rejection]analysis.Reason{
		foreign: "foreign", altered: "altered", unreadable: "unreadable", absent: "missing", staleLease: analysis.StaleLease,
		superseded: "superseded", Failed: "failed", notStarted: "not_started", Unusable: "unusable", environment: "environment", Noisy: "noise",
	}[r]
}

// Exclusion is a rejected object of the ledger.
type Exclusion struct {
	analysis.Exclusion
	Kind Rejection
	// of is the rejected attempt; nil if the object is not an attempt.
	of *record.Attempt
}

func exclude(object string, kind Rejection, format string, args ...any) Exclusion {
	return Exclusion{Exclusion: analysis.Exclusion{Attempt: object, Reason: fmt.Sprintf(format, args...)}, Kind: kind}
}

// findings are the result of a check of the ledger: gaps in the evidence, and objects to exclude. Not every gap has an object.
type findings struct {
	gaps     []string
	excluded []Exclusion
}

func (f *findings) add(gap string, kind Rejection, format string, args ...any) {
	f.gaps = append(f.gaps, gap)
	f.excluded = append(f.excluded, exclude(gap, kind, format, args...))
}

// ruling is the result of a rule for attempts: those that it admits and those that it rejects, each in their order.
type ruling struct {
	admitted []*record.Attempt
	rejected []Exclusion
}

// rule applies reason to every attempt: one without a reason is admitted.
func rule(attempts []*record.Attempt, kind Rejection, reason func(*record.Attempt) string) ruling {
	return ruleOfKinds(attempts, func(attempt *record.Attempt) (Rejection, string) { return kind, reason(attempt) })
}

func ruleOfKinds(attempts []*record.Attempt, reason func(*record.Attempt) (Rejection, string)) ruling {
	out := ruling{admitted: make([]*record.Attempt, 0, len(attempts))}
	for _, attempt := range attempts {
		kind, why := reason(attempt)
		if why == "" {
			out.admitted = append(out.admitted, attempt)
			continue
		}
		out.rejected = append(out.rejected, Exclusion{analysis.Exclusion{Attempt: attempt.ID, Reason: why}, kind, attempt})
	}
	return out
}

// kindsOf maps the attempts that the rulings reject to the kinds of their rejections.
func kindsOf(rulings ...ruling) map[*record.Attempt]Rejection {
	out := map[*record.Attempt]Rejection{}
	for _, of := range rulings {
		for _, rejected := range of.rejected {
			out[rejected.of] = rejected.Kind
		}
	}
	return out
}

func rejectedBy(rulings ...ruling) (out []Exclusion) {
	for _, of := range rulings {
		out = append(out, of.rejected...)
	}
	return out
}

// Excluded lists the rejected objects as the analysis shows them, sorted by their names.
func (a Admission) Excluded() []analysis.Exclusion {
	var out []analysis.Exclusion
	for _, rejected := range a.Rejected {
		out = append(out, rejected.Exclusion)
	}
	slices.SortStableFunc(out, func(a, b analysis.Exclusion) int { return cmp.Compare(a.Attempt, b.Attempt) })
	return out
}

// Isolation counts the attempts used by the isolation level that they had.
func (a Admission) Isolation() map[string]int {
	out := map[string]int{}
	for _, attempt := range a.Used {
		out[attempt.Isolation.Level]++
	}
	return out
}
