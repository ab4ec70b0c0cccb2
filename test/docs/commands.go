package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"mvdan.cc/sh/v3/syntax"
)

// Tree has the names that commands may use: make's targets and variables, the commands of our programs with their flags, the chart's values
// and
// the files of the tree.
type Tree struct {
	root string
	// recipes is the text of the Makefile, its includes, and the scripts that it starts.
	recipes string
	targets map[string]bool
	// assay and cluster are flags by command, such as "assay history rebuild".
	assay, cluster map[string]map[string]bool
	values         schema
}

// schema is the part of a JSON Schema that is read here.
type schema struct {
	Ref                  string            `json:"$ref"`
	Defs                 map[string]schema `json:"$defs"`
	Properties           map[string]schema
	Items                *schema
	AdditionalProperties json.RawMessage
}

var (
	target      = regexp.MustCompile(`(?m)^([a-zA-Z0-9][a-zA-Z0-9/_-]*)(?: [a-zA-Z0-9/_ -]*)?:(?:[^=]|$)`)
	commandHead = regexp.MustCompile(`(?m)^## (.+)$`)
	flagLine    = regexp.MustCompile(`(?m)^ +(?:(-[a-zA-Z]), )?(--[a-z][a-z0-9-]*)`)
	useLine     = regexp.MustCompile(`Use: +"([a-z-]+)`)
	flagCall    = regexp.MustCompile(`\.(?:String|StringVar|BoolVar|IntVar|Int64Var|StringArrayVar)\([^"\n]*"([a-z][a-z-]*)"`)
	index       = regexp.MustCompile(`\[[0-9]+\]`)
)

// ReadTree reads the names that commands may use from the tree with a root.
func ReadTree(root string) (Tree, error) {
	t := Tree{root: root, targets: map[string]bool{}, cluster: map[string]map[string]bool{"cluster": {}}}
	makefiles, err := filepath.Glob(filepath.Join(root, "hack", "make", "*.mk"))
	if err != nil {
		return t, err
	}
	scripts, err := filepath.Glob(filepath.Join(root, "hack", "*.sh"))
	if err != nil {
		return t, err
	}
	for _, file := range slices.Concat(makefiles, scripts, []string{filepath.Join(root, "Makefile")}) {
		text, err := os.ReadFile(file)
		if err != nil {
			return t, err
		}
		t.recipes += string(text)
		if filepath.Ext(file) == ".sh" {
			continue
		}
		for _, match := range target.FindAllStringSubmatch(string(text), -1) {
			t.targets[match[1]] = true
		}
	}
	reference, err := os.ReadFile(filepath.Join(root, "docs", "reference", "cli.md"))
	if err != nil {
		return t, err
	}
	t.assay = readReference(string(reference))
	sources, err := filepath.Glob(filepath.Join(root, "cluster", "internal", "cli", "*.go"))
	if err != nil {
		return t, err
	}
	for _, file := range sources {
		text, err := os.ReadFile(file)
		if err != nil {
			return t, err
		}
		for _, use := range useLine.FindAllStringSubmatch(string(text), -1) {
			if t.cluster[use[1]] == nil {
				t.cluster[use[1]] = map[string]bool{}
			}
		}
		for _, flag := range flagCall.FindAllStringSubmatch(string(text), -1) {
			t.cluster["cluster"]["--"+flag[1]] = true
		}
	}
	values, err := os.ReadFile(filepath.Join(root, "charts", "assay", "values.schema.json"))
	if err != nil {
		return t, err
	}
	return t, json.Unmarshal(values, &t.values)
}

// readReference reads the generated reference of the command line: a heading for each command, and the lines of its flags.
func readReference(text string) map[string]map[string]bool {
	out := map[string]map[string]bool{"assay": {}}
	heads := commandHead.FindAllStringSubmatchIndex(text, -1)
	for i, head := range heads {
		name, end := text[head[2]:head[3]], len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		if name == "Flags of every command" {
			name = "assay"
		}
		out[name] = map[string]bool{}
		for _, flag := range flagLine.FindAllStringSubmatch(text[head[1]:end], -1) {
			out[name][flag[2]] = true
			if flag[1] != "" {
				out[name][flag[1]] = true
			}
		}
	}
	return out
}

// Problems returns the names in a script that the tree lacks, each with its line.
func (t Tree) Problems(script string) []string {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	syntax.Walk(file, func(node syntax.Node) bool {
		if call, ok := node.(*syntax.CallExpr); ok {
			words := make([]string, len(call.Args))
			for i, word := range call.Args {
				words[i] = text(word)
			}
			for _, problem := range t.command(words) {
				out = append(out, fmt.Sprintf("%d: %s", call.Pos().Line(), problem))
			}
		}
		return true
	})
	return out
}

// unknown stands for text that is known only when the command runs.
const unknown = "\x00"

// text returns the value of a word, as far as it is known.
func text(word *syntax.Word) string {
	var out strings.Builder
	for _, part := range word.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			out.WriteString(part.Value)
		case *syntax.SglQuoted:
			out.WriteString(part.Value)
		case *syntax.DblQuoted:
			out.WriteString(text(&syntax.Word{Parts: part.Parts}))
		default:
			out.WriteString(unknown)
		}
	}
	return out.String()
}

// command returns the problems of a command.
func (t Tree) command(words []string) []string {
	for len(words) > 0 && (words[0] == "sudo" || words[0] == "exec" || strings.HasPrefix(words[0], "--preserve-env")) {
		words = words[1:]
	}
	if len(words) == 0 {
		return nil
	}
	out := t.files(words)
	program, args := words[0], words[1:]
	if program == "kubectl" && len(args) > 0 && args[0] == "assay" {
		program, args = "assay", args[1:]
	}
	switch strings.TrimPrefix(program, "bin/") {
	case "trap":
		if len(args) > 0 {
			out = append(out, t.trapped(args[0])...)
		}
		return out
	case "make":
		return append(out, t.makes(args)...)
	case "assay":
		return append(out, calls("assay", t.assay, args)...)
	case "cluster":
		return append(out, t.clusterCall(args)...)
	case "helm":
		return append(out, t.helm(args)...)
	}
	return out
}

// trapped returns the problems of the script of a trap, without its lines, which are within the trap's.
func (t Tree) trapped(script string) []string {
	if strings.Contains(script, unknown) {
		return nil
	}
	var out []string
	for _, problem := range t.Problems(script) {
		_, problem, _ = strings.Cut(problem, ": ")
		out = append(out, problem)
	}
	return out
}

// folders are those whose files commands name from the root of the tree.
var folders = []string{"hack/", "workflows/", "charts/", "docs/", "operator/", "cluster/", "runner/", "workloads/", "test/", "./workflows/"}

func (t Tree) files(words []string) []string {
	var out []string
	for i, word := range words {
		// A word with a space is a script, and the program of a bisection is one of each commit's worktree.
		if strings.ContainsAny(word, unknown+"*{ \n") || i > 0 && words[i-1] == "--program" {
			continue
		}
		inTree := slices.ContainsFunc(folders, func(folder string) bool { return strings.HasPrefix(word, folder) })
		if _, err := os.Stat(filepath.Join(t.root, filepath.FromSlash(word))); inTree && os.IsNotExist(err) {
			out = append(out, "the tree has no "+word)
		}
		if program, ok := strings.CutPrefix(word, "bin/"); ok && !t.builds(program) {
			out = append(out, "make builds no "+word)
		}
	}
	return out
}

// builds reports whether a recipe writes a program into bin/.
func (t Tree) builds(program string) bool {
	name := regexp.QuoteMeta(program)
	return regexp.MustCompile(`(?m)(-o \S*bin/|ln -sf \S+ bin/)` + name + `(\s|$)|^(KERNELS|RUST_PROGRAMS) :=.* ` + name + `( |$)`).MatchString(t.recipes)
}

func hasWord(text, word string) bool {
	return regexp.MustCompile(`(^|[^a-zA-Z0-9_-])` + regexp.QuoteMeta(word) + `($|[^a-zA-Z0-9_-])`).MatchString(text)
}

func (t Tree) makes(args []string) []string {
	var out []string
	for _, arg := range args {
		name, _, isVariable := strings.Cut(arg, "=")
		switch {
		case strings.Contains(name, unknown), strings.HasPrefix(arg, "-"):
		case isVariable && !hasWord(t.recipes, name):
			out = append(out, "make has no variable "+name)
		case !isVariable && !t.targets[name]:
			out = append(out, "make has no target "+name)
		}
	}
	return out
}

// calls returns the problems of the arguments of one of our programs.
func calls(command string, commands map[string]map[string]bool, args []string) []string {
	program := command
	for len(args) > 0 && commands[command+" "+args[0]] != nil {
		command, args = command+" "+args[0], args[1:]
	}
	if command == program && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		// Cobra's built-in commands are not in the reference.
		if args[0] == "completion" || args[0] == "help" || strings.Contains(args[0], unknown) {
			return nil
		}
		return []string{program + " has no command " + args[0]}
	}
	var out []string
	for _, arg := range args {
		if arg == "--" {
			break
		}
		flag, _, _ := strings.Cut(arg, "=")
		if strings.HasPrefix(flag, "-") && flag != "-" && flag != "--help" && !commands[command][flag] && !commands[program][flag] {
			out = append(out, command+" has no flag "+flag)
		}
	}
	return out
}

// clusterCall returns the problems of a call of the cluster tool, which has no reference to read: a flag is one of any of its commands.
func (t Tree) clusterCall(args []string) []string {
	if len(args) > 0 && t.cluster[args[0]] == nil {
		return []string{"cluster has no command " + args[0]}
	}
	var out []string
	for _, arg := range args {
		flag, _, _ := strings.Cut(arg, "=")
		if strings.HasPrefix(flag, "-") && !t.cluster["cluster"][flag] {
			out = append(out, "cluster has no flag "+flag)
		}
	}
	return out
}

// helm returns the problems of the values that a call of Helm sets.
func (t Tree) helm(args []string) []string {
	var out []string
	for i, arg := range args {
		sets, isSet := "", false
		for _, flag := range []string{"--set", "--set-string", "--set-json", "--set-file"} {
			if arg == flag && i+1 < len(args) {
				sets, isSet = args[i+1], true
			} else if rest, ok := strings.CutPrefix(arg, flag+"="); ok {
				sets, isSet = rest, true
			}
		}
		if !isSet {
			continue
		}
		for _, one := range strings.Split(sets, ",") {
			key, _, ok := strings.Cut(one, "=")
			if ok && !strings.Contains(key, unknown) && !t.hasValue(key) {
				out = append(out, "the chart has no value "+key)
			}
		}
	}
	return out
}

// hasValue reports whether the chart has a value, such as global.imagePullSecrets[0].name.
func (t Tree) hasValue(key string) bool {
	at := t.values
	for _, name := range strings.Split(key, ".") {
		items := len(index.FindAllString(name, -1))
		name = index.ReplaceAllString(name, "")
		at = t.resolve(at)
		next, ok := at.Properties[name]
		if !ok {
			// A map of anything has every key.
			return len(at.AdditionalProperties) > 0 && string(at.AdditionalProperties) != "false"
		}
		for ; items > 0; items-- {
			if next = t.resolve(next); next.Items == nil {
				return false
			}
			next = *next.Items
		}
		at = next
	}
	return true
}

func (t Tree) resolve(s schema) schema {
	for s.Ref != "" {
		s = t.values.Defs[strings.TrimPrefix(s.Ref, "#/$defs/")]
	}
	return s
}

// Steps are the scripts of a workflow or an action of GitHub, by the line where each begins.
func Steps(workflow []byte) (map[int]string, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(workflow, &document); err != nil {
		return nil, err
	}
	out := map[int]string{}
	collect(&document, out)
	return out, nil
}

// expression matches text that GitHub replaces before a shell runs.
var expression = regexp.MustCompile(`\$\{\{[^}]*\}\}`)

func collect(node *yaml.Node, out map[int]string) {
	for i, child := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 1 && node.Content[i-1].Value == "run" && child.Kind == yaml.ScalarNode {
			out[child.Line] = expression.ReplaceAllString(child.Value, "$$EXPRESSION")
		}
		collect(child, out)
	}
}
