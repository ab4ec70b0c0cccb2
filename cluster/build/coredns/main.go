// Command coredns is CoreDNS with the plugins that the cluster's Corefile names. The others bring the libraries of several clouds along,
// which take longer to compile than the rest. CoreDNS is made to be built like this:
// https://coredns.io/2017/07/25/compile-time-enabling-or-disabling-plugins/
package main

import (
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
)

func main() { coremain.Run() }
