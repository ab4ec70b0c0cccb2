package argo

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"assay.dev/assay/operator/internal/design"
	"assay.dev/assay/operator/internal/experiment"
	"assay.dev/assay/operator/internal/ledger"
	"assay.dev/assay/operator/internal/record"
)

// Argo's UI shows a title and a description for every Workflow, a short name for every block, and the plan of a block as the inputs of its
// node. These texts are for users, and no program reads them.

// Annotations that Argo's UI shows, and the annotation from which it builds links.
const (
	titleAnnotation       = "workflows.argoproj.io/title"
	descriptionAnnotation = "workflows.argoproj.io/description"
	displayAnnotation     = "workflows.argoproj.io/display-name"
	// ReportAnnotation is the key of the wave's report in the bucket, with a slash before it.
	ReportAnnotation = "assay.dev/report"
)

// longestText limits the length of a node's input, because a Workflow is one object with up to a thousand nodes.
const longestText = 160

// blockInputs returns the parameters of a block. The first two control it, the others are for users.
func blockInputs() []Parameter {
	var out []Parameter
	for _, name := range []string{"block", nodeInput, "display", "purpose", "points", "arms", "order", "trials", "sequence"} {
		out = append(out, Parameter{Name: name})
	}
	return out
}

// blockArguments returns the values of blockInputs for a block.
func blockArguments(exp *experiment.Experiment, wave *record.Wave, b record.Block, lane design.Lane, lanes int) []Parameter {
	return []Parameter{
		value("block", b.ID), value(nodeInput, lane.Node), value("display", displayName(b, lane, lanes)), value("purpose", string(wave.Purpose)),
		value("points", describePoints(exp, wave, b)), value("arms", plain(describeArms(exp))), value("order", string(exp.Plan.Design.Order)),
		value("trials", describeTrials(b)), value("sequence", describeSequence(wave, b)),
	}
}

// annotate adds the title, the description and the key of the report to a Workflow.
func annotate(out *Workflow, config Config, exp *experiment.Experiment, wave int, title, description string) {
	out.Annotations = map[string]string{
		titleAnnotation:       title,
		descriptionAnnotation: description,
		ReportAnnotation:      "/" + path.Join(config.Bucket.Prefix, ledger.RunPrefix(exp.Run), ledger.HTMLKey(wave)),
	}
}

// waveDescription returns the description of a wave. The API limits the names of axes and arms to characters without meaning in Markdown.
func waveDescription(exp *experiment.Experiment, wave *record.Wave, lanes []design.Lane) string {
	text := fmt.Sprintf("%d blocks, %d trials, on %d nodes. Arms: %s. Order: %s.", len(wave.Blocks), wave.Trials(), len(lanes),
		describeArms(exp), exp.Plan.Design.Order)
	if axes := exp.Axes(); len(axes) > 0 {
		var along []string
		for _, axis := range axes {
			along = append(along, axis+" "+describeValues(wave, axis))
		}
		text += fmt.Sprintf(" Points: %d of %s.", len(wave.Points), strings.Join(along, "; "))
	}
	return text
}

// plainValue matches values without meaning in Markdown or to Argo.
var plainValue = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+-]*$`)

// shownValues is the maximum number of listed values of an axis.
const shownValues = 8

// describeValues lists the values of an axis, or their number if there are many or one does not match plainValue.
func describeValues(wave *record.Wave, axis string) string {
	var values []string
	for _, point := range wave.Points {
		if value := point.Parameters[axis]; !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	if len(values) > shownValues || slices.ContainsFunc(values, func(value string) bool { return !plainValue.MatchString(value) }) {
		return fmt.Sprintf("with %d values", len(values))
	}
	return strings.Join(values, ", ")
}

// Argo fails a node if its display name does not match ^[a-zA-Z0-9][a-zA-Z0-9-.]{0,61}[a-zA-Z0-9]$.
var unsafeInDisplay = regexp.MustCompile(`[^A-Za-z0-9]+`)

// longestDisplay is the maximum length of a name in the graph, which elides the middle of longer names.
const longestDisplay = 20

// blockNumber matches the number in the name of a block, such as w000-b0003.
var blockNumber = regexp.MustCompile(`-b0*([0-9]+)$`)

// displayName returns the name of a block in the graph, block-3, or block-3.node-a if several nodes run blocks. The inputs of the node
// describe the block's trials.
func displayName(b record.Block, lane design.Lane, lanes int) string {
	name := word(b.ID, longestDisplay)
	if number := blockNumber.FindStringSubmatch(b.ID); number != nil {
		name = "block-" + number[1]
	}
	host, _, _ := strings.Cut(lane.Node, ".")
	if node := word(host, longestDisplay-len(name)-1); lanes > 1 && node != "" {
		name += "." + node
	}
	return name
}

// word converts a text to letters, digits and single hyphens, which a display name may contain, and shortens it to longest characters.
func word(text string, longest int) string {
	out := strings.Trim(unsafeInDisplay.ReplaceAllString(text, "-"), "-")
	return strings.Trim(out[:min(len(out), max(0, longest))], "-")
}

// pointsOf returns the points of a block's trials, in the order of the wave.
func pointsOf(wave *record.Wave, b record.Block) []record.Point {
	used := map[int]bool{}
	for _, cell := range b.Order {
		used[wave.Cells[cell].Point] = true
	}
	var out []record.Point
	for i, point := range wave.Points {
		if used[i] {
			out = append(out, point)
		}
	}
	return out
}

// describePoints returns the number of points and as many of their keys as fit into longestText.
func describePoints(exp *experiment.Experiment, wave *record.Wave, b record.Block) string {
	points := pointsOf(wave, b)
	if len(exp.Axes()) == 0 {
		return fmt.Sprint(len(points))
	}
	// Stop at the limit, because a wave has up to a thousand blocks.
	text := fmt.Sprintf("%d:", len(points))
	for i, point := range points {
		if i > 0 {
			text += ";"
		}
		if text += " " + point.Key; len(text) > longestText*utf8.UTFMax {
			text += " …"
			break
		}
	}
	return plain(text)
}

func describeArms(exp *experiment.Experiment) string { return strings.Join(exp.ArmNames(), ", ") }

func describeTrials(b record.Block) string {
	if len(b.Warmup) > 0 {
		return fmt.Sprintf("%d and %d warm-ups", len(b.Order), len(b.Warmup))
	}
	return fmt.Sprint(len(b.Order))
}

// describeSequence returns the arms in the order of the block's trials. If points are interleaved, it describes the first of them only.
func describeSequence(wave *record.Wave, b record.Block) string {
	points := pointsOf(wave, b)
	if len(points) == 0 {
		return ""
	}
	var arms []string
	for _, cell := range b.Order {
		if wave.Points[wave.Cells[cell].Point].Key == points[0].Key {
			arms = append(arms, wave.Arms[wave.Cells[cell].Arm].Name)
		}
	}
	text := strings.Join(arms, " ")
	if len(points) > 1 {
		text += " at " + points[0].Key
	}
	return plain(text)
}

// plain returns a user's text, shortened and without braces, because Argo replaces text between {{ and }}.
func plain(text string) string {
	text = strings.NewReplacer("{", "(", "}", ")").Replace(strings.Join(strings.Fields(text), " "))
	if runes := []rune(text); len(runes) > longestText {
		text = strings.TrimSpace(string(runes[:longestText-2])) + " …"
	}
	return text
}
