package why

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// node is a place of the merged profile of two arms: a function under its callers.
type node struct {
	name     string
	self     arms
	children map[string]*node
}

// arms has a cost per block: of the baseline, and of the arm compared with it.
type arms [2][]float64

const (
	baseline = 0
	other    = 1
)

func newNode(name string, blocks int) *node {
	return &node{name: name, self: arms{make([]float64, blocks), make([]float64, blocks)}, children: map[string]*node{}}
}

func (a arms) add(b arms) {
	for arm := range a {
		for i, value := range b[arm] {
			a[arm][i] += value
		}
	}
}

func (a arms) difference() []float64 { return subtract(a[other], a[baseline]) }

func (a arms) clone() arms { return arms{slices.Clone(a[0]), slices.Clone(a[1])} }

func (n *node) total() arms {
	out := n.self.clone()
	for _, child := range n.children {
		out.add(child.total())
	}
	return out
}

// tree merges the profiles of the baseline and of another arm.
func (p *paired) tree(arm string) *node {
	root := newNode("", len(p.blocks))
	for side, name := range []string{p.question.Baseline, arm} {
		for block, trials := range p.trials[name] {
			for _, trial := range trials {
				for _, cost := range trial.Costs {
					at := root
					for _, frame := range withoutCycles(cost.Stack) {
						if at.children[frame] == nil {
							at.children[frame] = newNode(frame, len(p.blocks))
						}
						at = at.children[frame]
					}
					at.self[side][block] += cost.Seconds / float64(len(trials))
				}
			}
		}
	}
	return root
}

// withoutCycles removes the frames between two calls of the same function, so that recursion of any depth is one place.
func withoutCycles(stack []string) []string {
	out := make([]string, 0, len(stack))
	for _, frame := range stack {
		if at := slices.Index(out, frame); at >= 0 {
			out = out[:at]
		}
		out = append(out, frame)
	}
	return out
}

// part is a place with its difference, as the search returns it.
type part struct {
	path []string
	cost arms
	// members are the functions whose own cost is in the part: that of the place, and those that only one of the arms ran below it. A part
	// without members is the sum of small differences below its place.
	members map[string]arms
}

// last is the function of the place itself, or its class.
func (p *part) last() string { return p.path[len(p.path)-1] }

// merged returns the children that both arms ran, and the part of the place itself. A function that only one arm ran was perhaps inlined,
// renamed or split in the other. It is therefore dissolved: its own cost joins that of its caller, and its callees are matched in
// its place.
func (n *node) merged(path []string) (matched []*node, own part) {
	own = part{path: path, cost: n.self.clone(), members: map[string]arms{n.name: n.self.clone()}}
	children := n.children
	if len(path) == 0 {
		return slices.Collect(maps.Values(children)), own // Classes are never dissolved.
	}
	for {
		next, dissolved := map[string]*node{}, false
		for _, child := range children {
			total := child.total()
			if mean(total[baseline]) > 0 && mean(total[other]) > 0 {
				join(next, child)
				continue
			}
			dissolved = true
			own.cost.add(child.self)
			if have, ok := own.members[child.name]; ok {
				have.add(child.self)
			} else {
				own.members[child.name] = child.self.clone()
			}
			for _, below := range child.children {
				join(next, below)
			}
		}
		if children = next; !dissolved {
			break
		}
	}
	return slices.Collect(maps.Values(children)), own
}

// join adds a subtree to the one of the same name.
func join(into map[string]*node, from *node) {
	have := into[from.name]
	if have == nil {
		into[from.name] = from.clone()
		return
	}
	have.self.add(from.self)
	for _, child := range from.children {
		join(have.children, child)
	}
}

func (n *node) clone() *node {
	out := &node{name: n.name, self: n.self.clone(), children: make(map[string]*node, len(n.children))}
	for name, child := range n.children {
		out.children[name] = child.clone()
	}
	return out
}

// search finds the parts of a difference.
type search struct {
	resolution float64
	// level of one test, after the correction.
	level float64
	// floor is the least absolute difference of a part.
	floor float64
	// flat is the difference of each function's own cost over all places in a class, and flatTotal that with its callees.
	flat, flatTotal map[[2]string][]float64
	found           []part
	// moved are the parts, by class and function, of functions that one caller has lost and another one has gained.
	moved map[[2]string][]part
}

// explained is the result of a search.
type explained struct {
	asked       int
	causes      []Cause
	unexplained Cause
	rest        []float64
}

func (p *paired) explain(arm string, difference []float64) explained {
	root := p.tree(arm)
	figure := mean(p.figure(p.question.Baseline))
	// The number of questions does not depend on a difference: places count that are large enough in either arm.
	out := explained{asked: max(1, asked(root, nil, smallestPlace*figure))}
	s := &search{
		resolution: p.question.Resolution,
		level:      Level / float64(out.asked),
		floor:      max(MinEffect*figure, MinShare*math.Abs(mean(difference))),
		flat:       map[[2]string][]float64{},
		flatTotal:  map[[2]string][]float64{},
		moved:      map[[2]string][]part{},
	}
	s.flatten(root, "")
	s.visit(root, nil)
	s.addMoved()
	out.rest = slices.Clone(difference)
	for _, found := range s.found {
		out.rest = subtract(out.rest, found.cost.difference())
	}
	for _, found := range s.found {
		out.causes = append(out.causes, s.cause(found))
	}
	unexplained := arms{p.figure(p.question.Baseline), p.figure(arm)}
	for _, found := range s.found {
		for side := range unexplained {
			unexplained[side] = subtract(unexplained[side], found.cost[side])
		}
	}
	out.unexplained = Cause{Kind: Unexplained, Baseline: mean(unexplained[baseline]), Candidate: mean(unexplained[other]),
		Difference: interval(out.rest, s.level, s.resolution)}
	share(&out)
	slices.SortStableFunc(out.causes, func(a, b Cause) int {
		return cmp.Or(-cmp.Compare(math.Abs(a.Difference.Value), math.Abs(b.Difference.Value)), slices.Compare(a.Path, b.Path))
	})
	return out
}

// share sets the shares, so that the absolute shares add up to 1.
func share(of *explained) {
	total := math.Abs(of.unexplained.Difference.Value)
	for _, cause := range of.causes {
		total += math.Abs(cause.Difference.Value)
	}
	sign := 1.0
	if mean := sumOf(of); mean < 0 {
		sign = -1
	}
	set := func(cause *Cause) {
		d := cause.Difference
		if total == 0 {
			return
		}
		cause.Share = Interval{sign * d.Value / total, sign * d.Low / total, sign * d.High / total}
		if sign < 0 {
			cause.Share.Low, cause.Share.High = cause.Share.High, cause.Share.Low
		}
	}
	for i := range of.causes {
		set(&of.causes[i])
	}
	set(&of.unexplained)
}

func sumOf(of *explained) float64 {
	sum := of.unexplained.Difference.Value
	for _, cause := range of.causes {
		sum += cause.Difference.Value
	}
	return sum
}

// asked counts the places that a search may name.
func asked(n *node, path []string, smallest float64) (count int) {
	total := n.total()
	if max(mean(total[baseline]), mean(total[other])) < smallest {
		return 0
	}
	matched, _ := n.merged(path)
	count = 2 // The place itself, and the rest of its subtree.
	for _, child := range matched {
		count += asked(child, append(slices.Clone(path), child.name), smallest)
	}
	return count
}

// flatten adds up the cost of each function over all places.
func (s *search) flatten(n *node, class string) {
	for _, add := range []struct {
		into map[[2]string][]float64
		cost arms
	}{{s.flat, n.self}, {s.flatTotal, n.total()}} {
		at := [2]string{class, n.name}
		if add.into[at] == nil {
			add.into[at] = make([]float64, len(n.self[0]))
		}
		for i, value := range add.cost.difference() {
			add.into[at][i] += value
		}
	}
	for _, child := range n.children {
		below := class
		if below == "" {
			below = child.name
		}
		s.flatten(child, below)
	}
}

// visit names the parts of a subtree from the bottom up, and returns the cost that is not in a named part.
func (s *search) visit(n *node, path []string) arms {
	matched, own := n.merged(path)
	slices.SortFunc(matched, func(a, b *node) int { return cmp.Compare(a.name, b.name) })
	rest := own.cost.clone()
	if len(path) > 0 && s.takes(own) {
		rest = own.cost.zero()
	}
	for _, child := range matched {
		rest.add(s.visit(child, append(slices.Clone(path), child.name)))
	}
	if len(path) > 0 && len(matched) > 0 && s.takes(part{path: path, cost: rest}) {
		return rest.zero()
	}
	return rest
}

func (a arms) zero() arms { return arms{make([]float64, len(a[0])), make([]float64, len(a[1]))} }

// takes adds a part to the causes, or to the moved parts, if its interval excludes 0 and it is large enough.
func (s *search) takes(of part) bool {
	difference := of.cost.difference()
	size := mean(difference)
	if !s.large(difference) {
		return false
	}
	function, _ := of.function()
	at := [2]string{of.path[0], function}
	flat := s.flat[at]
	if len(of.members) == 0 {
		flat = s.flatTotal[at]
	}
	// The same function has lost elsewhere the cost that it has gained here: its caller was renamed, or the call moved.
	if total := mean(flat); total*size <= 0 || math.Abs(total) < math.Abs(size)/2 {
		s.moved[at] = append(s.moved[at], of)
	} else {
		s.found = append(s.found, of)
	}
	return true
}

func (s *search) large(difference []float64) bool {
	return math.Abs(mean(difference)) >= s.floor && interval(difference, s.level, s.resolution).Excludes(0)
}

// addMoved adds functions that moved and have also changed.
func (s *search) addMoved() {
	for at, parts := range s.moved {
		cost := parts[0].cost.zero()
		for _, moved := range parts {
			cost.add(moved.cost)
		}
		if s.large(cost.difference()) {
			s.found = append(s.found, part{path: []string{at[0], at[1]}, cost: cost, members: map[string]arms{at[1]: cost}})
		}
	}
}

// function returns the member with the largest difference in the direction of the part, and the members that only the baseline ran.
func (p *part) function() (name string, replaces []string) {
	if len(p.members) == 0 {
		return p.last(), nil
	}
	sign, largest := 1.0, math.Inf(-1)
	if mean(p.cost.difference()) < 0 {
		sign = -1
	}
	for _, member := range slices.Sorted(maps.Keys(p.members)) {
		cost := p.members[member]
		if d := sign * mean(cost.difference()); d > largest {
			name, largest = member, d
		}
	}
	for _, member := range slices.Sorted(maps.Keys(p.members)) {
		cost := p.members[member]
		if member != name && mean(cost[other]) == 0 && mean(cost[baseline]) > 0.1*math.Abs(mean(p.cost.difference())) {
			replaces = append(replaces, member)
		}
	}
	return name, replaces
}

func (s *search) cause(of part) Cause {
	function, replaces := of.function()
	if function == of.path[0] {
		function = ""
	}
	return Cause{
		Kind: kindOf(of.path[0], function), Function: function, Spread: len(of.members) == 0, Path: of.path, Replaces: replaces,
		Baseline: mean(of.cost[baseline]), Candidate: mean(of.cost[other]),
		Difference: interval(of.cost.difference(), s.level, s.resolution),
	}
}

// overlaps returns functions whose subtree, over all classes, contains more than one cause.
func (p *paired) overlaps(causes []Cause) []Overlap {
	holds := map[string]int{}
	for _, cause := range causes {
		seen := map[string]bool{}
		for _, frame := range cause.Path[min(1, len(cause.Path)):] {
			if !seen[frame] {
				holds[frame]++
			}
			seen[frame] = true
		}
	}
	inside := func(frame string) func(Trial) float64 {
		return func(trial Trial) (sum float64) {
			for _, cost := range trial.Costs {
				if slices.Contains(cost.Stack, frame) {
					sum += cost.Seconds
				}
			}
			return sum
		}
	}
	const most = 5
	var out []Overlap
	whole := math.Abs(mean(p.figure(p.question.Candidate)) - mean(p.figure(p.question.Baseline)))
	for _, frame := range slices.Sorted(maps.Keys(holds)) {
		if holds[frame] < 2 || whole == 0 {
			continue
		}
		d := interval(subtract(p.each(p.question.Candidate, inside(frame)), p.each(p.question.Baseline, inside(frame))),
			Level/float64(len(holds)), p.question.Resolution)
		out = append(out, Overlap{Function: frame, Difference: d, Share: math.Abs(d.Value) / whole})
	}
	slices.SortStableFunc(out, func(a, b Overlap) int { return -cmp.Compare(a.Share, b.Share) })
	return out[:min(most, len(out))]
}
