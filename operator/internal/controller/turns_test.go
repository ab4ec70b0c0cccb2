package controller

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
)

// request parses a text such as "lab/scan".
func request(namespace string, number int) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(number)}}
}

// A namespace with thousands of runs that are requeued permanently must not delay those of other namespaces.
func TestControllerOptions_NamespacesAlternate(t *testing.T) {
	add := func(namespace string, from, to int) (out []ctrl.Request) {
		for i := from; i < to; i++ {
			out = append(out, request(namespace, i))
		}
		return out
	}
	for sentence, tc := range map[string]struct {
		added []ctrl.Request
		// again adds each item of crowd again after its reconcile.
		again bool
		// place is the number of the reconcile of lab/0, from 1.
		place int
	}{
		"alone":                            {add("lab", 0, 1), false, 1},
		"behind one other":                 {slices.Concat(add("crowd", 0, 1), add("lab", 0, 1)), false, 2},
		"behind five thousand of another":  {slices.Concat(add("crowd", 0, 5000), add("lab", 0, 1)), false, 2},
		"where they are requeued at once":  {slices.Concat(add("crowd", 0, 5000), add("lab", 0, 1)), true, 2},
		"behind some of two others":        {slices.Concat(add("crowd", 0, 50), add("mob", 0, 50), add("lab", 0, 1)), false, 3},
		"as the third of its namespace":    {slices.Concat(add("lab", 1, 3), add("crowd", 0, 50), add("lab", 0, 1)), false, 5},
		"where it was added a second time": {slices.Concat(add("crowd", 0, 9), add("lab", 0, 1), add("lab", 0, 1)), false, 2},
	} {
		queue := controllerOptions(1).NewQueue("", workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
		for _, item := range tc.added {
			queue.Add(item)
		}
		seen, place := map[ctrl.Request]int{}, 0
		for pass := 1; queue.Len() > 0 && pass <= 6000; pass++ {
			item, _ := queue.Get()
			if seen[item]++; item == request("lab", 0) {
				place = pass
			}
			queue.Done(item)
			if tc.again && item.Namespace == "crowd" && pass < 100 {
				queue.Add(item)
			}
		}
		if place != tc.place {
			t.Errorf("%s: reconcile number %d, want %d", sentence, place, tc.place)
		}
		for _, item := range tc.added {
			if seen[item] == 0 || seen[item] > 1 && !tc.again {
				t.Errorf("%s: %s is reconciled %d times", sentence, item, seen[item])
			}
		}
		queue.ShutDown()
	}
}

// Nodes have no namespace, and one controller.
func TestControllerOptions_AreUsedByEveryNamespacedController(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	built := regexp.MustCompile(`(?s)NewControllerManagedBy\(manager\)\.\s+Named\("(\w+)"\)\.(.*?)(?:Complete|Build)\(|NewControllerManagedBy`)
	var took []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range built.FindAllStringSubmatch(string(source), -1) {
			name, takes := found[1], strings.Contains(found[2], "WithOptions(controllerOptions(")
			switch {
			case takes:
				took = append(took, name)
			case name != "nodelease":
				t.Errorf("%s: the controller %q does not share the queue: add WithOptions(controllerOptions(…))", file, name)
			}
		}
	}
	if slices.Sort(took); !slices.Equal(took, []string{"benchmarkrun", "benchmarkschedule"}) {
		t.Errorf("controllers with shared queues: %v", took)
	}
}
