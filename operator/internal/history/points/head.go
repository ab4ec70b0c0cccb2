package points

import assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"

// JudgeHead makes the head the only candidate of a run of a series. Its predecessor and the revisions around a suspected change are
// measured for comparison, so that none of them may be Go or the best. Completion gates remain those of all arms, because an arm that does
// not complete has no ratio; such a gate alone makes no candidate.
func JudgeHead(spec *assayv1alpha1.BenchmarkRunSpec) {
	for i := range spec.Gates {
		if gate := &spec.Gates[i]; gate.Candidate == "" && gate.Op != assayv1alpha1.Completes {
			gate.Candidate = Head
		}
	}
	for i := range spec.Predictions {
		if prediction := &spec.Predictions[i]; prediction.Candidate == "" {
			prediction.Candidate = Head
		}
	}
}
