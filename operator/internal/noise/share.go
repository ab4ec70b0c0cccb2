package noise

import "assay.dev/assay/operator/internal/record"

// Share is what a limit of the kind is set against in a trial: a share of the time, or how much slower than at its best a
// probe was. It is false when there is no reading.
func (r *Reference) Share(kind Kind, attempt *record.Attempt) (float64, bool) {
	read := r.read(kind, attempt)
	return read.share, read.ok
}
