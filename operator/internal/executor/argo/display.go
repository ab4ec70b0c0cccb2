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

// What people see in Argo's UI: a name and a line of what it is for every workflow, a short name for every block, and its plan as the
// node's inputs. Nothing of it is read by anybody but people.

// Annotations that Argo's UI shows, and the one that its links are made from.
const (
	titleAnnotation       = "workflows.argoproj.io/title"
	descriptionAnnotation = "workflows.argoproj.io/description"
	displayAnnotation     = "workflows.argoproj.io/display-name"
	// ReportAnnotation is the key of the wave's report in the bucket, with a slash before it.
	ReportAnnotation = "assay.dev/report"
)

// longestText bounds what a node's input holds: a workflow is one object, and has up to a thousand nodes.
const longestText = 160

// blockInputs are the parameters of a block: the first two steer it, the others are for people.
func blockInputs() []Parameter {
	var out []Parameter
	for _, name := range []string{"block", nodeInput, "display", "purpose", "points", "arms", "order", "trials", "sequence"} {
		out = append(out, Parameter{Name: name})
	}
	return out
}

// blockArguments fill them in.
func blockArguments(exp *experiment.Experiment, wave *record.Wave, b record.Block, lane design.Lane, lanes int) []Parameter {
	return []Parameter{
		value("block", b.ID), value(nodeInput, lane.Node), value("display", displayName(b, lane, lanes)), value("purpose", string(wave.Why())),
		value("points", describePoints(exp, wave, b)), value("arms", plain(describeArms(exp))), value("order", string(exp.Plan.Design.Order)),
		value("trials", describeTrials(b)), value("sequence", describeSequence(wave, b)),
	}
}

// annotate adds what the workflow is.
func annotate(out *Workflow, config Config, exp *experiment.Experiment, wave int, title, description string) {
	out.Annotations = map[string]string{
		titleAnnotation:       title,
		descriptionAnnotation: description,
		ReportAnnotation:      "/" + path.Join(config.Bucket.Prefix, ledger.RunPrefix(exp.Run), ledger.HTMLKey(wave)),
	}
}

// waveDescription names axes and arms, whose characters the API limits to those that no Markdown means anything by.
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

// plainValue is a value that means nothing in Markdown, nor to Argo.
var plainValue = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+-]*$`)

// shownValues is how many values of an axis are listed.
const shownValues = 8

// describeValues lists the values of an axis, or counts them where they are many or anything but plain.
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

// Argo marks a node as failed whose display name does not match ^[a-zA-Z0-9][a-zA-Z0-9-.]{0,61}[a-zA-Z0-9]$.
var unsafeInDisplay = regexp.MustCompile(`[^A-Za-z0-9]+`)

// longestDisplay is how much of a name the graph shows; it cuts longer ones in the middle.
const longestDisplay = 20

// blockNumber is the number in the name of a block, w000-b0003.
var blockNumber = regexp.MustCompile(`-b0*([0-9]+)$`)

// displayName is what a block is called in the graph: block-3, and where several nodes run blocks block-3.node-a. What the block runs is
// in its inputs.
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

// word makes of a text what may stand in a display name: letters, digits and single hyphens between them.
func word(text string, longest int) string {
	out := strings.Trim(unsafeInDisplay.ReplaceAllString(text, "-"), "-")
	return strings.Trim(out[:min(len(out), max(0, longest))], "-")
}

// pointsOf are the points that a block's trials are at, in the order of the wave.
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

// describePoints describes how many points there are, and which, as far as there is room.
func describePoints(exp *experiment.Experiment, wave *record.Wave, b record.Block) string {
	points := pointsOf(wave, b)
	if len(exp.Axes()) == 0 {
		return fmt.Sprint(len(points))
	}
	// Not all of them, for each of a thousand blocks.
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

// describeSequence are the arms as they really follow each other. Where several points are interleaved each is described alone,
// at the first of them.
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

// plain is a text that people wrote, short and without anything that Argo would replace: it reads {{ and }} as its own.
func plain(text string) string {
	text = strings.NewReplacer("{", "(", "}", ")").Replace(strings.Join(strings.Fields(text), " "))
	if runes := []rune(text); len(runes) > longestText {
		text = strings.TrimSpace(string(runes[:longestText-2])) + " …"
	}
	return text
}
