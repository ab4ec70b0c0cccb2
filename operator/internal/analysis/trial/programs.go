package trial

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay.dev/assay/operator/internal/record"
)

// programKeys are the soft keys that identify the program of a trial: two attempts of a cell that differ in one of them ran different
// programs, even if both were pulled by the same tag.
var programKeys = []string{"programDigest", "imageFilesDigest", "image"}

// ProgramsOf returns the digests of all programs and images that a trial executed, by their names.
func ProgramsOf(attempt *record.Attempt) map[string]string {
	out := map[string]string{}
	for _, key := range programKeys {
		if value, ok := attempt.Environment.Soft[key].(string); ok {
			out[key] = value
		}
	}
	for _, role := range attempt.Roles {
		// The digest of the role with the result is the programDigest of the trial.
		if role.ProgramDigest != "" && !role.Result {
			out["programDigest of role "+role.Name] = role.ProgramDigest
		}
	}
	return out
}

// ListPrograms formats programs as one comparable text.
func ListPrograms(programs map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(programs)) {
		fmt.Fprintf(&b, "%s=%s\n", key, programs[key])
	}
	return b.String()
}

// ExecutedFiles lists the digests of the files that a trial executed, without the name of the image.
func ExecutedFiles(attempt *record.Attempt) string {
	programs := ProgramsOf(attempt)
	delete(programs, "image")
	return ListPrograms(programs)
}

// ArmBuild names the build of an attempt for messages; the arm if it has no builds.
func ArmBuild(attempt *record.Attempt) string {
	if attempt.Build == "" {
		return "arm " + attempt.Arm
	}
	return fmt.Sprintf("build %s of arm %s", attempt.Build, attempt.Arm)
}
