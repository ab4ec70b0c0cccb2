package component

import _ "embed"

//go:embed files/kubelet.yaml
var kubeletConfig string

//go:embed files/kube-proxy.yaml
var kubeProxyConfig string

//go:embed files/containerd.toml
var containerdConfig string

//go:embed files/cni.conflist
var cniConfig string

//go:embed files/coredns.yaml
var coreDNSManifest string

//go:embed files/network-policies.yaml
var policiesManifest string
