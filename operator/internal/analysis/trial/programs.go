package trial

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/record"
)

// programKeys are the soft keys that say what a trial executed: two attempts of a cell that differ in one are not attempts of
// the same thing, whatever tag both were pulled by.
var programKeys = []string{"programDigest", "imageFilesDigest", "image"}

// ProgramsOf are the digests of everything a trial executed, by what they are of.
func ProgramsOf(attempt *record.Attempt) map[string]string {
	out := map[string]string{}
	for _, key := range programKeys {
		if value, ok := attempt.Environment.Soft[key].(string); ok {
			out[key] = value
		}
	}
	for _, role := range attempt.Roles {
		// That of the role with the result is the trial's own.
		if role.ProgramDigest != "" && !role.Result {
			out["programDigest of role "+role.Name] = role.ProgramDigest
		}
	}
	return out
}

// ListPrograms is the same as one text, to compare.
func ListPrograms(programs map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(programs)) {
		fmt.Fprintf(&b, "%s=%s\n", key, programs[key])
	}
	return b.String()
}

// ExecutedFiles are the digests of what a trial executed, under whatever name.
func ExecutedFiles(attempt *record.Attempt) string {
	programs := ProgramsOf(attempt)
	delete(programs, "image")
	return ListPrograms(programs)
}

// ArmBuild names what an attempt ran, for messages: a build, or the arm where it is one.
func ArmBuild(attempt *record.Attempt) string {
	if attempt.Build == "" {
		return "arm " + attempt.Arm
	}
	return fmt.Sprintf("build %s of arm %s", attempt.Build, attempt.Arm)
}
