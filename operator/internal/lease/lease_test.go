package lease

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var (
	eight  = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	first  = Holder{"lab", "first", "1"}
	second = Holder{"lab", "second", "2"}
)

func held(holder Holder) Lease {
	return Lease{Node: "node-a", Token: 4}.TakenBy(holder, false, time.Minute, eight)
}

func TestTakeable(t *testing.T) {
	busy := held(first)
	busy.Busy = "pod first-1"
	cases := map[string]struct {
		lease Lease
		after time.Duration
		want  bool
	}{
		"a node without a holder so far":                    {Lease{Node: "node-a"}, 0, true},
		"a node that was released":                          {held(first).Ended(Released, eight), 0, true},
		"a node that is held":                               {held(first), 0, false},
		"a lease in its last moment":                        {held(first), time.Minute - 1, false},
		"a lease that expired":                              {held(first), time.Minute, true},
		"a lease that expired while its holder's pod runs":  {busy, time.Hour, false},
		"a renewed lease is valid for another period":       {renewed(held(first), 59*time.Second), time.Minute, false},
		"a lease renewed by a clock that is slightly ahead": {renewed(held(first), 30*time.Second), 0, false},
		"a lease renewed far in the future":                 {renewed(held(first), 24*time.Hour), 0, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.lease.Takeable(eight.Add(tc.after)); got != tc.want {
				t.Errorf("takeable is %v, want %v: %+v", got, tc.want, tc.lease)
			}
		})
	}
}

func renewed(l Lease, after time.Duration) Lease {
	l.Renewed = eight.Add(after)
	return l
}

func TestRenewal_LeavesTimeForTwoFailures(t *testing.T) {
	l := held(first)
	if got := l.RenewIn(eight); got != 20*time.Second {
		t.Errorf("renewed after %s", got)
	}
	if l.Overdue(eight.Add(39*time.Second)) || !l.Overdue(eight.Add(40*time.Second)) {
		t.Error("the lease is not overdue exactly from two thirds of its duration")
	}
}

func TestToken_RisesWithEveryHolder(t *testing.T) {
	l := Lease{Node: "node-a"}
	var tokens []int64
	for _, holder := range []Holder{first, second, second, first} {
		l = l.TakenBy(holder, true, time.Minute, eight)
		tokens = append(tokens, l.Token)
		l = l.Ended(Released, eight)
		if l.Held() || l.Whole || l.Token != tokens[len(tokens)-1] || l.Last.Token != l.Token || l.Last.Holder != holder {
			t.Errorf("after its end the lease is %+v", l)
		}
	}
	if want := []int64{1, 2, 3, 4}; !slices.Equal(tokens, want) {
		t.Errorf("tokens are %v, want %v", tokens, want)
	}
}

func TestTaints(t *testing.T) {
	other := corev1.Taint{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}
	ours := func(uid string) corev1.Taint {
		return corev1.Taint{Key: TaintKey, Value: uid, Effect: corev1.TaintEffectNoSchedule}
	}
	whole := Lease{Node: "node-a"}.TakenBy(first, true, time.Minute, eight)
	cases := map[string]struct {
		existing []corev1.Taint
		lease    Lease
		want     []corev1.Taint
		changed  bool
	}{
		"an exclusive node is tainted, other taints remain":   {[]corev1.Taint{other}, whole, []corev1.Taint{other, ours("1")}, true},
		"no change if tainted":                                {[]corev1.Taint{ours("1"), other}, whole, []corev1.Taint{ours("1"), other}, false},
		"another run's old taint is removed":                  {[]corev1.Taint{ours("0"), other}, whole, []corev1.Taint{other, ours("1")}, true},
		"two taints become one":                               {[]corev1.Taint{ours("0"), ours("1")}, whole, []corev1.Taint{ours("1")}, true},
		"a released node loses it":                            {[]corev1.Taint{ours("1"), other}, whole.Ended(Released, eight), []corev1.Taint{other}, true},
		"a stray taint of a node without a holder is removed": {[]corev1.Taint{ours("9")}, Lease{Node: "node-a"}, nil, true},
		"a node held for its CPUs is not tainted":             {[]corev1.Taint{other}, held(first), []corev1.Taint{other}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, changed := Taints(tc.existing, tc.lease.Taint())
			if changed != tc.changed || len(got)+len(tc.want) > 0 && !slices.Equal(got, tc.want) {
				t.Errorf("taints are %v, changed %v, want %v, %v", got, changed, tc.want, tc.changed)
			}
		})
	}
	taint, toleration := *whole.Taint(), Toleration("1")
	if !toleration.ToleratesTaint(&taint) {
		t.Error("a run does not tolerate its own taint")
	}
	if taints := []corev1.Taint{other, taint}; !Tainted(taints, "1") || Tainted(taints, "2") || Tainted(taints[:1], "db") {
		t.Error("a node has the taint of another run, or lacks its own")
	}
	if others := Toleration("2"); others.ToleratesTaint(&taint) {
		t.Error("a run tolerates another one's taint")
	}
}

func TestQueue_Grant(t *testing.T) {
	waiter := func(name string, created time.Duration, wants int, nodes ...string) Waiter {
		return Waiter{Run: Holder{"lab", name, "uid-" + name}, Created: eight.Add(created), Nodes: nodes, Wants: wants}
	}
	cases := map[string]struct {
		takeable []string
		queue    []Waiter
		me       Waiter
		want     []string
		ahead    int
	}{
		"alone":                                   {[]string{"b", "a", "c"}, nil, waiter("me", 0, 2, "a", "b", "c"), []string{"a", "b"}, 0},
		"an older run precedes":                   {[]string{"a"}, []Waiter{waiter("older", -1, 1, "a")}, waiter("me", 0, 1, "a"), nil, 1},
		"a younger run follows":                   {[]string{"a"}, []Waiter{waiter("younger", 1, 1, "a")}, waiter("me", 0, 1, "a"), []string{"a"}, 0},
		"of the same second, the smaller uid":     {[]string{"a"}, []Waiter{waiter("a", 0, 1, "a")}, waiter("me", 0, 1, "a"), nil, 1},
		"a run for another node does not precede": {[]string{"a"}, []Waiter{waiter("older", -1, 1, "b")}, waiter("me", 0, 1, "a"), []string{"a"}, 0},
		"a node that an older run leaves":         {[]string{"a", "b"}, []Waiter{waiter("older", -1, 1, "a", "b")}, waiter("me", 0, 1, "a", "b"), []string{"b"}, 1},
		"an older run may use all nodes":          {[]string{"a", "b"}, []Waiter{waiter("older", -1, 5, "a", "b")}, waiter("me", 0, 1, "a", "b"), nil, 1},
		"nothing is free":                         {nil, nil, waiter("me", 0, 1, "a"), nil, 0},
		"a free node that does not match":         {[]string{"b"}, nil, waiter("me", 0, 1, "a"), nil, 0},
		"its own entry in the queue is ignored":   {[]string{"a"}, []Waiter{waiter("me", 0, 1, "a")}, waiter("me", 0, 1, "a"), []string{"a"}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			queue := NewQueue(tc.queue, nil)
			if got := queue.Grant(tc.takeable, tc.me); !slices.Equal(got, tc.want) {
				t.Errorf("granted %v, want %v", got, tc.want)
			}
			if got := queue.Ahead(tc.me); got != tc.ahead {
				t.Errorf("%d ahead, want %d", got, tc.ahead)
			}
		})
	}
}

func TestQueue_NamespacesAlternate(t *testing.T) {
	waiter := func(namespace, name string, created time.Duration) Waiter {
		return Waiter{Run: Holder{namespace, name, name}, Created: eight.Add(created), Nodes: []string{"a", "b"}, Wants: 1}
	}
	var crowd []Waiter
	for i := range 300 {
		crowd = append(crowd, waiter("crowd", fmt.Sprintf("c%03d", i), time.Duration(i)))
	}
	late := waiter("late", "l", time.Hour)
	cases := map[string]struct {
		held  map[string]int
		me    Waiter
		ahead int
	}{
		"one that comes after 300 of another namespace": {nil, late, 1},
		"whose neighbours hold a node already":          {map[string]int{"crowd": 1}, late, 0},
		"whose own namespace holds two":                 {map[string]int{"late": 2}, late, 3},
		"the second of its namespace, in the queue":     {nil, crowd[1], 1},
		"the last of its namespace, without others":     {nil, crowd[299], 299},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			queue := NewQueue(crowd, tc.held)
			if got := queue.Ahead(tc.me); got != tc.ahead {
				t.Errorf("%d ahead, want %d", got, tc.ahead)
			}
			if got := queue.Grant([]string{"a"}, tc.me); (len(got) > 0) != (tc.ahead == 0) {
				t.Errorf("granted %v with %d ahead", got, tc.ahead)
			}
		})
	}
}

// For any order of readers, no node is granted twice, and no run is granted a node before an older one.
func TestQueue_OrderOfReadersDoesNotMatter(t *testing.T) {
	var queue []Waiter
	for i, nodes := range [][]string{{"a", "b"}, {"b"}, {"a", "b", "c"}, {"c"}, {"d"}} {
		queue = append(queue, Waiter{Run: Holder{"lab", string(rune('p' + i)), string(rune('p' + i))}, Created: eight.Add(time.Duration(i)),
			Nodes: nodes, Wants: 1})
	}
	owner := map[string]string{}
	for _, me := range queue {
		for _, node := range NewQueue(queue, nil).Grant([]string{"a", "b", "c"}, me) {
			if before, taken := owner[node]; taken {
				t.Errorf("%s is granted to %s and %s", node, before, me.Run.Name)
			}
			owner[node] = me.Run.Name
		}
	}
	if want := map[string]string{"a": "p", "b": "q", "c": "r"}; !cmp.Equal(owner, want) {
		t.Errorf("granted %v, want %v", owner, want)
	}
}

func TestObject_RoundTrip(t *testing.T) {
	long := strings.Repeat("n", 250)
	draining := held(first)
	draining.Draining = true
	cases := map[string]Lease{
		"held":                     held(first),
		"being given back":         draining,
		"given back, taken anew":   draining.Ended(Released, eight).TakenBy(first, false, time.Minute, eight),
		"for itself":               Lease{Node: "node-a", Token: 6}.TakenBy(first, true, time.Minute, eight),
		"released":                 held(first).Ended(Released, eight.Add(time.Second)),
		"taken over":               held(first).Ended(Expired, eight).TakenBy(second, false, 30*time.Second, eight.Add(time.Hour)),
		"of a node of a long name": Lease{Node: long}.TakenBy(first, false, time.Minute, eight),
	}
	for name, want := range cases {
		t.Run(name, func(t *testing.T) {
			// The object has another lease before, of which no field may remain.
			object := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: Name(want.Node), ResourceVersion: "7",
				Annotations: map[string]string{WholeAnnotation: "true", DrainingAnnotation: "true"}}}
			object.Spec.HolderIdentity = ptr.To("somebody/else/9")
			if err := want.Write(object); err != nil {
				t.Fatal(err)
			}
			got, err := FromObject(object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" || object.ResourceVersion != "7" || len(object.Name) > 253 {
				t.Errorf("read back (-want +got):\n%s", diff)
			}
		})
	}
	if Name(long+"1") == Name(long+"2") {
		t.Error("two nodes share a Lease")
	}
	if fits := strings.Repeat("n", maxNameBytes-len("assay-node-")); Name(fits) != "assay-node-"+fits {
		t.Errorf("a name that fits is cut to %s", Name(fits))
	}
}

func TestObject_InvalidLeaseIsRejected(t *testing.T) {
	cases := map[string]struct {
		tamper func(*coordinationv1.Lease)
		want   string
	}{
		"another holder":              {func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("me") }, `holderIdentity is "me"`},
		"another node":                {func(l *coordinationv1.Lease) { l.Annotations[NodeAnnotation] = "node-b" }, `assay.dev/node is "node-b"`},
		"a damaged end":               {func(l *coordinationv1.Lease) { l.Annotations[LastAnnotation] = "{" }, LastAnnotation},
		"an end of an invalid holder": {func(l *coordinationv1.Lease) { l.Annotations[LastAnnotation] = `{"holder":"x"}` }, LastAnnotation},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "assay-system", Name: Name("node-a")}}
			if err := held(first).Write(object); err != nil {
				t.Fatal(err)
			}
			tc.tamper(object)
			_, err := FromObject(object)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "Lease assay-system/assay-node-node-a") {
				t.Errorf("error is %v, want it to name the Lease and say %q", err, tc.want)
			}
		})
	}
}
