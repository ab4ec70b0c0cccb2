package executor

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"assay.dev/assay/operator/internal/record"
)

// PlanConfigMap returns the ConfigMap with the plan of a wave, which the pods of its blocks mount.
func PlanConfigMap(wave *record.Wave) (*corev1.ConfigMap, error) {
	raw, err := record.Line(wave)
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: wave.Run.Namespace, Name: Name(wave.Run.Name, wave.Wave), Labels: Labels(wave.Run, wave.Wave),
		},
		Immutable: ptr.To(true),
		Data:      map[string]string{WaveFile: string(raw)},
	}, nil
}
