package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// kubectl runs kubectl in a namespace, with an optional object as standard input. Without out its output is only part of the error.
func kubectl(ctx context.Context, namespace string, object any, out io.Writer, arguments ...string) error {
	command := exec.CommandContext(ctx, "kubectl", append([]string{"--namespace", namespace}, arguments...)...)
	if object != nil {
		raw, err := json.Marshal(object)
		if err != nil {
			return err
		}
		command.Stdin = bytes.NewReader(raw)
	}
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if out != nil {
		command.Stdout = out
	}
	if err := command.Run(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(arguments, " "), err, bytes.TrimSpace(output.Bytes()))
	}
	return nil
}

// restrictedPod returns a pod with the rights of a block's pod, and one container named main.
func restrictedPod(name, image string, resources corev1.ResourceRequirements, command ...string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "main", Image: image, Command: command, Resources: resources,
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}
}
