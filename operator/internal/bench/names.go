package bench

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"assay.dev/assay/operator/internal/experiment"
)

// longestName keeps tables narrow; the API would allow 63 characters.
const longestName = 40

// ArmName is the form that the API wants of an arm's name.
var ArmName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

var (
	notName    = regexp.MustCompile(`[^a-z0-9]+`)
	onlyDigits = regexp.MustCompile(`^[0-9-]+$`)
)

// Names returns the names of the arms: the differing words of the commands if they are distinct, else the commands.
func Names(commands [][]string) []string {
	for _, name := range []func([][]string, int) string{differing, programName} {
		out := make([]string, len(commands))
		for i := range commands {
			out[i] = name(commands, i)
		}
		if distinct(out) {
			return out
		}
	}
	out := []string{"baseline", "candidate"}
	for i := 2; i < len(commands); i++ {
		out = append(out, "candidate-"+strconv.Itoa(i))
	}
	return out[:len(commands)]
}

func distinct(names []string) bool {
	different := slices.Compact(slices.Sorted(slices.Values(names)))
	return len(different) == len(names) && !slices.Contains(names, "") && !slices.Contains(names, experiment.NullArm)
}

func programName(commands [][]string, i int) string { return slug(path.Base(commands[i][0])) }

// differing are the words of a command that are not in all commands, without the parts of those words that are.
func differing(commands [][]string, i int) string {
	everywhere := func(word string, of func([]string) []string) bool {
		return !slices.ContainsFunc(commands, func(command []string) bool { return !slices.Contains(of(command), word) })
	}
	whole := func(command []string) []string { return command }
	parts := func(command []string) (out []string) {
		for _, word := range command {
			if !everywhere(word, whole) {
				out = append(out, pieces(word)...)
			}
		}
		return out
	}
	var out []string
	for _, word := range commands[i] {
		if everywhere(word, whole) {
			continue
		}
		var left []string
		for _, piece := range pieces(word) {
			if !everywhere(piece, parts) {
				left = append(left, piece)
			}
		}
		text := slug(strings.Join(left, "-"))
		if onlyDigits.MatchString(text) {
			text = slug(path.Base(word)) // "level-9" says more than "9".
		}
		if text != "" {
			out = append(out, text)
		}
	}
	name := slug(strings.Join(out, "-"))
	if onlyDigits.MatchString(name) {
		return slug(path.Base(commands[i][0]) + "-" + name) // "sleep-0-33" says more than "0-33".
	}
	return name
}

// pieces splits a word at characters other than letters and digits.
func pieces(word string) []string {
	return strings.Fields(notName.ReplaceAllString(strings.ToLower(word), " "))
}

func slug(text string) string {
	text = strings.Trim(notName.ReplaceAllString(strings.ToLower(text), "-"), "-")
	return strings.Trim(text[:min(len(text), longestName)], "-")
}
