package observe

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	assayv1alpha1 "assay.dev/assay/operator/api/v1alpha1"
)

func TestASeriesIsTheOldestSchedules(t *testing.T) {
	began := time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)
	schedule := func(name, series string, minute int) assayv1alpha1.BenchmarkSchedule {
		return assayv1alpha1.BenchmarkSchedule{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(began.Add(time.Duration(minute) * time.Minute))},
			Spec:       assayv1alpha1.BenchmarkScheduleSpec{Series: series},
		}
	}
	deleted := schedule("first", "scan", 0)
	deleted.DeletionTimestamp = ptr.To(metav1.NewTime(began))
	all := []assayv1alpha1.BenchmarkSchedule{
		deleted, schedule("b", "scan", 2), schedule("a", "scan", 2), schedule("c", "scan", 3), schedule("d", "other", 1),
	}
	want := map[string]string{"a": "", "b": "a", "c": "a", "d": ""}
	for i := range all[1:] {
		one := &all[i+1]
		if got := rival(one, all); got != want[one.Name] {
			t.Errorf("%s yields to %q, want %q", one.Name, got, want[one.Name])
		}
	}
}
